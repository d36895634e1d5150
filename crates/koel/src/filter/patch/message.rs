//! A patch as bytes: docs/FORMAT.md, "A patch".
//!
//! ```text
//!     | frame: settings, digest and keys of the old and of the new filter, buckets of the new
//!     one | directory | lists |
//! ```
//!
//! * The *settings* are a digest by the hash of the filter itself. So a patch of a filter with a
//!   secret does not contain the secret, and nothing that tells it.
//! * The *digest* of a filter is the sum of a hash of each entry, times its copies, of each stashed
//!   key and of each correction. It depends neither on where entries are nor on their order, so it
//!   is computed in one walk over the buckets.
//! * *Buckets* is how far the new filter has grown: its buckets, or 0 in a table of one size.

use alloc::vec::Vec;

use super::bits::{BitWriter, NoMemory};
use super::changes::{ARE_COUNTED, Changes, Diff};
use super::error::PatchError;
use super::lists::Ascending;
use crate::image::frame::Frame;

/// The frame of a patch.
const PATCH: Frame<6> = Frame(b"koelptch", 3, "patch");
/// Bytes that the table and the stash may grow by for each byte of the patch. An entry that was
/// added takes five bits of a patch and more, and five bytes of a table or less; a stashed key five
/// bytes, and 24.
const ROOM: usize = 16;
/// Lists of a patch: three each for entries, stash and corrections.
const LISTS: usize = 9;

/// What a filter consists of, each a list of keys with counts: orders of entries, and addresses.
#[derive(Clone, Copy, Debug)]
pub(super) enum Content {
    Entries,
    Stash,
    Corrections,
}

/// The order-free digest of the content of a filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Digest(u64);

impl Digest {
    #[inline(always)]
    pub(super) fn add(&mut self, content: Content, (key, copies): (u64, u64)) {
        let hash = mixed(key.wrapping_add((content as u64 + 1).wrapping_mul(STEP)));
        self.0 = self.0.wrapping_add(hash.wrapping_mul(copies));
    }
}

/// The increment of SplitMix64.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The output function of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): every bit of the result
/// depends on every bit of the number, and no two numbers have the same result.
#[inline(always)]
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// A filter before or after a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub(super) digest: Digest,
    /// Keys, copies included.
    pub(super) keys: u64,
}

/// A patch that was read.
pub(super) struct Message<'a> {
    pub(super) settings: u64,
    pub(super) old: End,
    pub(super) new: End,
    /// The buckets of the new filter if it has grown, otherwise 0.
    pub(super) buckets: u64,
    /// Bytes by which the table and the stash of the new filter may be larger than the old ones.
    pub(super) room: usize,
    /// Changes of entries, of the stash and of corrections.
    pub(super) changes: [Changes<'a>; 3],
    /// How many numbers the lists of each have: gone, added and with another count.
    pub(super) lens: [[u64; 3]; 3],
}

impl<'a> Message<'a> {
    /// Reads the frame and the directory of a patch.
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, PatchError> {
        let framed = PATCH.read(bytes).map_err(PatchError::Message)?;
        let [settings, old, new, old_keys, new_keys, buckets] = framed.words;
        let are_counted: [bool; LISTS] = joined([ARE_COUNTED; 3]);
        let lists = Ascending::of_directory(framed.content, are_counted);
        let (lists, lens) = lists.ok_or(PatchError::Forged)?;
        let lens = divided(lens);
        // Corrections have no counts.
        if lens[2][2] > 0 {
            return Err(PatchError::Forged);
        }
        Ok(Self {
            settings,
            old: End { digest: Digest(old), keys: old_keys },
            new: End { digest: Digest(new), keys: new_keys },
            buckets,
            room: bytes.len().saturating_mul(ROOM),
            changes: divided(lists).map(Changes::new),
            lens,
        })
    }
}

/// Writes a patch.
pub(super) fn write(
    settings: u64,
    ends: [End; 2],
    buckets: u64,
    diffs: &[Diff; 3],
) -> Result<Vec<u8>, NoMemory> {
    let (mut directory, mut lists) = (BitWriter::default(), Vec::new());
    for diff in diffs {
        lists.try_reserve(3).map_err(|_| NoMemory)?;
        lists.extend(diff.write(&mut directory)?);
    }
    let directory = directory.finish()?;
    let content = directory.len() + lists.iter().map(Vec::len).sum::<usize>();
    let mut bytes = PATCH.with_room(content).ok_or(NoMemory)?;
    bytes.extend_from_slice(&directory);
    lists.iter().for_each(|list| bytes.extend_from_slice(list));
    let [old, new] = ends;
    let words = [settings, old.digest.0, new.digest.0, old.keys, new.keys, buckets];
    PATCH.seal(words, &mut bytes);
    Ok(bytes)
}

/// All elements in a row.
fn joined<T: Copy + Default>(groups: [[T; 3]; 3]) -> [T; LISTS] {
    let mut all = groups.into_iter().flatten();
    [(); LISTS].map(|()| all.next().unwrap_or_default())
}

/// The elements in groups of three.
fn divided<T>([a, b, c, d, e, f, g, h, i]: [T; LISTS]) -> [[T; 3]; 3] {
    [[a, b, c], [d, e, f], [g, h, i]]
}
