//! Patches: what makes the filter of today of the filter of yesterday, in some bytes a change.
//!
//! Two filters of one shape with the same keys have the same entries with the same copies, wherever
//! these are. A patch has the entries that are gone, that are new and that have other copies, and
//! the same of the stash and of corrections. It finds them in a join of both filters
//! ([`runs`](crate::state::runs)), and says which they are by numbers.
//!
//! * `make`: finds what changed. `apply`: changes a copy.
//! * `numbers`: the numbers that stand for entries.
//! * `changes`: what changed between two ascending lists, found and applied.
//! * `lists`, `bits`: ascending numbers in the Golomb-Rice code.
//! * `message`: the frame, the directory and the digests (docs/FORMAT.md). `error`: what may fail.
//!
//! **Nothing is wrong silently.** The checksum finds damage, the digest of the old filter a wrong
//! base, and the digest of the new filter all other mistakes. A patch is applied to a copy, which
//! is dropped if anything fails. How much memory that takes depends on the filter, not on the
//! patch.
//!
//! **Equal filters.** Entries are taken out and added in the order of their runs. So filters that
//! were equal byte for byte are so afterwards.
//!
//! **Growth.** If one of both filters has grown, the new one is built from all its entries, and no
//! entry loses a bit. So what a patch makes has the entries of the new filter, and the next patch
//! fits, although both may have grown differently.
//!
//! Cost: O(buckets), sorting the entries of a cut at a time, and a copy of the filter. The choices
//! and figures: docs/decisions/0041-patches.md.

mod apply;
mod bits;
mod changes;
mod error;
mod lists;
mod make;
mod message;
mod numbers;

pub use error::PatchError;

use alloc::vec::Vec;

use message::Message;

use crate::CuckooFilter;
use crate::state::store::Store;

/// What a patch holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PatchSummary {
    /// Keys of the filter that it was made for, copies included.
    pub old_keys: u64,
    /// Keys of the filter that it makes, copies included.
    pub new_keys: u64,
    /// Entries that it takes out, with those of the [stash](CuckooFilter::stashed_keys).
    pub removed: u64,
    /// Entries that it adds, with those of the stash.
    pub added: u64,
    /// Entries of which it says how many copies they have: some of those that it adds, and others
    /// whose copies it changes.
    pub recounted: u64,
    /// [Corrections](CuckooFilter::corrections) that it takes back.
    pub lifted: u64,
    /// Corrections that it makes.
    pub corrected: u64,
}

impl PatchSummary {
    /// Reads the summary of a patch, and checks its checksum. O(bytes).
    ///
    /// # Errors
    /// [`PatchError::Message`] and [`PatchError::Forged`].
    pub fn of(patch: &[u8]) -> Result<Self, PatchError> {
        let message = Message::read(patch)?;
        let [names, stash, [lifted, corrected, _]] = message.lens;
        let [removed, added, recounted] = [0, 1, 2].map(|i| names[i].saturating_add(stash[i]));
        let (old_keys, new_keys) = (message.old.keys, message.new.keys);
        Ok(Self { old_keys, new_keys, removed, added, recounted, lifted, corrected })
    }
}

impl<S: Store> CuckooFilter<S> {
    /// The patch that makes `new` of this filter, for those who have this one:
    /// [`patched`](Self::patched) applies it. It takes some 2 bytes for each key that came or went,
    /// whatever the size of the filter.
    ///
    /// ```
    /// use koel::CuckooFilter;
    ///
    /// let builder = CuckooFilter::builder(10_000, 0.001);
    /// let (mut monday, mut tuesday) = (builder.build()?, builder.build()?);
    /// monday.try_extend(0..8000_u64)?;
    /// tuesday.try_extend(50..8060_u64)?;
    /// let patch = monday.patch_to(&tuesday)?;
    /// assert!(patch.len() < 400);
    /// let patched = monday.patched(&patch)?;
    /// assert!((50..8060_u64).all(|key| patched.contains(&key)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Both must have the same settings, the same capacity and the same secret. They may have
    /// grown, also differently. What the patch makes has the entries, copies, stash and corrections
    /// of `new`. The entries may be in other slots, so its bytes may differ from those of `new`.
    /// The same patches applied to equal bytes give equal bytes: publish what the patch makes, not
    /// `new`.
    ///
    /// A patch does not contain the secret. It shows which entries came and went.
    ///
    /// O(buckets). Applies the patch once, so that one that is returned can be applied. Views are
    /// [verified](Self::verify) first.
    ///
    /// # Errors
    /// [`PatchError::Incompatible`] and [`PatchError::Sizes`] if the filters have different entries
    /// for a key. [`PatchError::Sparse`] if the new filter has grown to far more than it needs.
    /// [`PatchError::Full`] if the new entries find no room, or if a filter that has grown has more
    /// than 2^64 - 1 copies with those that [growth left](Self::leftovers).
    pub fn patch_to<T: Store>(&self, new: &CuckooFilter<T>) -> Result<Vec<u8>, PatchError> {
        make::check_alike(&self.body, &new.body)?;
        self.body.require_sound()?;
        new.body.require_sound()?;
        let patch = make::make(&self.body, &new.body, self.body.settings())?;
        self.patched(&patch)?;
        Ok(patch)
    }

    /// The filter that a [patch](Self::patch_to) makes of this one, which stays as it is.
    ///
    /// O(buckets), and the memory of a copy. A view is [verified](Self::verify) first.
    ///
    /// # Errors
    /// [`PatchError`] if the bytes are not a sound patch ([`Message`](PatchError::Message),
    /// [`Forged`](PatchError::Forged)), if it was made for another filter
    /// ([`OtherSettings`](PatchError::OtherSettings), [`WrongBase`](PatchError::WrongBase),
    /// [`Applied`](PatchError::Applied)), or if there is no room for what it adds.
    pub fn patched(&self, patch: &[u8]) -> Result<CuckooFilter, PatchError> {
        let message = Message::read(patch)?;
        Ok(CuckooFilter { body: apply::apply(&self.body, message)? })
    }
}
