//! Makes a patch: finds what changed between two filters.
//!
//! Cost: that of a join of two [`runs`](crate::state::runs), and 8 bytes for each change.

use alloc::vec::Vec;

use super::changes::Diff;
use super::error::PatchError;
use super::message::{self, Content, Digest, End};
use super::numbers::Numbers;
use crate::error::{FullError, MergeError};
use crate::state::Body;
use crate::state::runs::each_pair;

/// Refuses filters whose entries have different names, or whose settings differ otherwise.
pub(super) fn check_alike<B: AsRef<[u8]> + Sync, O: AsRef<[u8]> + Sync>(
    old: &Body<B>,
    new: &Body<O>,
) -> Result<(), PatchError> {
    let [one, other] = [old.state.profile, new.state.profile];
    if one.capacity != other.capacity {
        return Err(PatchError::Sizes { old: one.capacity, new: other.capacity });
    }
    old.check_alike(new)?;
    MergeError::unless_alike([
        ("rate", one.rate.to_bits() == other.rate.to_bits()),
        ("counter limit", one.counter_limit == other.counter_limit),
        ("growth", one.growable == other.growable),
        ("application bytes", one.application == other.application),
        ("settings", old.settings() == new.settings()),
    ])?;
    Ok(())
}

/// The patch that makes `new` of `old`.
pub(super) fn make<B: AsRef<[u8]> + Sync, O: AsRef<[u8]> + Sync>(
    old: &Body<B>,
    new: &Body<O>,
    settings: u64,
) -> Result<Vec<u8>, PatchError> {
    // Growth may leave so many that a count, and a digest, would say less than there is.
    for held in [old.held(), new.held()] {
        u64::try_from(held).map_err(|_| FullError::Overflow)?;
    }
    let (mut diffs, mut digests) = (<[Diff; 3]>::default(), <[Digest; 2]>::default());
    let ([entries, stash, corrections], [one, other]) = (&mut diffs, &mut digests);
    let buckets = match (old.table.grows(), new.table.grows()) {
        (_, true) => new.table.buckets(),
        (true, false) => new.table.base().buckets(),
        (false, false) => 0,
    };
    let numbers = Numbers::of(old, buckets).ok_or(PatchError::Forged)?;
    each_pair(old, new, |_, [ours, theirs]| {
        ours.entries().for_each(|it| one.add(Content::Entries, it));
        theirs.entries().for_each(|it| other.add(Content::Entries, it));
        Ok::<_, PatchError>(entries.read(numbers.of_run(ours), numbers.of_run(theirs))?)
    })?;
    let (our_side, their_side) = (&old.state.side, &new.state.side);
    stash.read(
        our_side.stashed_keys().inspect(|it| one.add(Content::Stash, *it)),
        their_side.stashed_keys().inspect(|it| other.add(Content::Stash, *it)),
    )?;
    corrections.read(
        our_side.corrections.iter().inspect(|it| one.add(Content::Corrections, *it)),
        their_side.corrections.iter().inspect(|it| other.add(Content::Corrections, *it)),
    )?;
    let ends =
        [End { digest: *one, keys: old.state.len }, End { digest: *other, keys: new.state.len }];
    Ok(message::write(settings, ends, buckets, &diffs)?)
}
