//! Files of unknown bytes, from a fuzzer or from a manipulated file that was accepted, and
//! operations on filters of unknown content. Other modules have those on other kinds.
//!
//! The content is unknown, so the oracle is the effect of each operation: an insert adds one to a
//! count, a removal subtracts one, a refusal changes no byte. Afterwards the filter must verify and
//! its bytes must round-trip. [`bounds`] adds every operation at the bounds of every field.

pub mod bounds;

use koel::{
    CountingFilter, CuckooFilter, FilterView, FullError, ImageError, KeyHash, Maplet, Merge,
    MergeError,
};

use xxhash_rust::xxh3::xxh3_64;

use crate::addressing::Addressing;
use crate::audit::{audit, totals};
use crate::exercise::bounds::Bounds;
use crate::image::{HEADER_BYTES, read, reseal, set};
use crate::keys;
use crate::keys::at;
use crate::patches::either_way;

/// The number of hashes in use.
const HASHES: usize = 48;
/// Operations on few inputs.
const MANY: u32 = 1000;
/// The most bytes of a filter that was read from some kilobytes and grown by 1000 operations.
const MOST_BYTES: usize = 1 << 20;

/// A kind of file, of which any bytes may be one.
pub trait Subject: PartialEq + Sized {
    /// Reads and verifies bytes.
    const READ: fn(&[u8]) -> Result<Self, ImageError>;
    /// Writes them.
    const WRITE: fn(&Self) -> Vec<u8>;
    /// Verifies what was changed since.
    const VERIFY: fn(&Self) -> Result<(), ImageError>;

    /// Opens a view, calls every query of it before anything is verified, and then verifies it.
    ///
    /// # Errors
    /// Why the bytes were refused.
    fn question(bytes: &[u8]) -> Result<(), ImageError>;

    /// Does what each of these numbers chooses, and compares what comes of it.
    fn exercise(&mut self, seed: u64, choices: impl Iterator<Item = u64>);
}

/// Checks the promise of the format for any bytes: they are a sound file of this kind, or are
/// refused with a reason in one line. A view of them has the same answer; what is accepted is
/// written as it was, takes operations [at its bounds](bounds), and is sound after `operations`
/// steps, which the length chooses.
///
/// # Errors
/// Why the bytes were refused.
///
/// # Panics
/// If opening and reading disagree, or what was accepted misbehaves.
pub fn arbitrary_bytes<S: Bounds>(bytes: &[u8], operations: u32) -> Result<(), ImageError> {
    let (trusted, read) = (S::question(bytes), S::READ(bytes));
    assert_eq!(trusted, read.as_ref().map(|_| ()).map_err(|error| *error), "two answers");
    let mut it = read.inspect_err(|error| assert!(is_one_line(&error.to_string())))?;
    assert!(S::WRITE(&it) == bytes, "read, and written otherwise");
    if operations == MANY {
        bounds::all(&it);
    } else {
        bounds::one(&it, xxh3_64(bytes));
    }
    let seed = bytes.len() as u64;
    it.exercise(seed, keys::hashes(seed, operations.into()));
    bounds::assert_sound(&it);
    Ok(())
}

/// The same, for kinds with values.
///
/// # Errors
/// Why both refused the bytes.
///
/// # Panics
/// If both accept the bytes, or one of them misbehaves.
pub fn with_values(bytes: &[u8], operations: u32) -> Result<(), ImageError> {
    let maplet = arbitrary_bytes::<Maplet>(bytes, operations);
    let counting = arbitrary_bytes::<CountingFilter>(bytes, operations);
    assert!(maplet.is_err() || counting.is_err(), "one file of two kinds");
    maplet.or(counting)
}

/// Tries bytes from a fuzzer unchanged, where a checksum almost always refuses them, and with valid
/// checksums, so that every other check is reached; a filter also with totals that fit, because a
/// fuzzer that changes a slot or a record seldom changes them too. `holds` checks the promise with
/// a given number of operations: [`arbitrary_bytes`], or the function for another kind of file.
///
/// # Panics
/// As `holds`, or if valid checksums make it refuse bytes that it accepted.
pub fn fuzzed_bytes(bytes: &[u8], holds: impl Fn(&[u8], u32) -> Result<(), ImageError>) {
    let first = holds(bytes, operations(bytes));
    let mut sealed = bytes.to_vec();
    reseal(&mut sealed);
    let second = holds(&sealed, operations(bytes));
    assert!(first.is_err() || second.is_ok(), "sealing broke a sound file");
    if let Some(totals) = second.err().and_then(|_| totals(&sealed)) {
        set(&mut sealed, &totals);
        reseal(&mut sealed);
        either_way(holds(&sealed, operations(bytes)));
    }
}

/// The number of operations for a fuzzer's input: a few for most, so that many inputs are tried,
/// and many, with all bounds, for one in 256.
fn operations(bytes: &[u8]) -> u32 {
    let sum = bytes.iter().fold(0_u8, |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte));
    if sum == 0 { MANY } else { 12 }
}

impl Subject for CuckooFilter {
    const READ: fn(&[u8]) -> Result<Self, ImageError> = Self::from_bytes;
    const WRITE: fn(&Self) -> Vec<u8> = Self::to_bytes;
    const VERIFY: fn(&Self) -> Result<(), ImageError> = Self::verify;

    fn question(bytes: &[u8]) -> Result<(), ImageError> {
        let trusted = FilterView::open(bytes).and_then(|view| {
            question(&view);
            view.verify()
        });
        assert_eq!(audit(bytes).is_ok(), trusted.is_ok(), "against the format: {trusted:?}");
        trusted
    }

    fn exercise(&mut self, seed: u64, choices: impl Iterator<Item = u64>) {
        let mut hands = Hands { keys: choose(self, seed), inserted: Vec::new() };
        choices.for_each(|choice| hands.step(self, choice));
        assert!(hands.inserted.iter().all(|key| self.contains(key)));
    }
}

/// The keys that views are asked for.
pub(crate) fn asked() -> Vec<KeyHash> {
    keys::hashes(21, 8).chain([0, u64::MAX]).map(at).collect()
}

/// Calls every query of an unverified view: none may panic.
pub fn question(view: &FilterView<'_>) {
    let keys = asked();
    let (mut found, mut counts) = (vec![false; keys.len()], vec![0; keys.len()]);
    view.contains_many(&keys, &mut found);
    view.count_many(&keys, &mut counts);
    for (i, key) in keys.iter().enumerate() {
        assert_eq!((found[i], counts[i]), (view.contains(key), view.count(key)));
        assert!(!found[i] || counts[i] > 0);
    }
    assert_eq!(view.occupancy().iter().sum::<u64>(), view.buckets());
    assert!(view.len() >= view.slots_in_use() || view.has_grown());
    assert!(is_one_line(&format!("{view:?}")));
}

/// Whether an error's message is one line that is not empty.
#[must_use]
pub fn is_one_line(message: &str) -> bool {
    !message.trim().is_empty() && !message.contains('\n')
}

/// Input never decides how much memory is taken, whatever a forged file makes of growth.
pub(crate) fn assert_small(size_in_bytes: usize) {
    assert!(size_in_bytes < MOST_BYTES, "{size_in_bytes} bytes");
}

/// Keys of every kind: uniform, of one entry, of one home bucket.
fn choose(filter: &CuckooFilter, seed: u64) -> Vec<KeyHash> {
    let addressing = Addressing::of(&filter.to_bytes());
    let first = keys::splitmix64(seed);
    let twins = keys::sharing_entry(&addressing, first).take(4);
    let neighbours = keys::sharing_home(&addressing, addressing.pair(first).0).take(HASHES / 2);
    let hashes = twins.chain(neighbours).chain(keys::hashes(seed, u64::MAX));
    hashes.take(HASHES).map(at).collect()
}

/// The keys in use, and those that were inserted and not removed, with repetitions.
struct Hands {
    keys: Vec<KeyHash>,
    inserted: Vec<KeyHash>,
}

impl Hands {
    fn step(&mut self, filter: &mut CuckooFilter, choice: u64) {
        let key = self.keys[index(choice >> 32, HASHES)];
        match choice % 64 {
            0..32 => self.insert(filter, key),
            32..40 => self.insert_unique(filter, key),
            40..60 => self.remove(filter, choice),
            60 => *filter = CuckooFilter::from_bytes(&filter.to_bytes()).expect("its own bytes"),
            61 => merge_with_itself(filter, key),
            63 if filter.is_growable() => filter.shrink_to_fit(),
            62 if (choice >> 8).is_multiple_of(16) => {
                filter.clear();
                self.inserted.clear();
                assert!(filter.is_empty() && filter.slots_in_use() == 0);
            }
            _ => assert_eq!(filter.occupancy().iter().sum::<u64>(), filter.buckets()),
        }
    }

    fn insert(&mut self, filter: &mut CuckooFilter, key: KeyHash) {
        let before = filter.clone();
        match filter.insert(&key) {
            Ok(()) => {
                assert_eq!(filter.len(), before.len() + 1);
                assert!(has_one_more(filter, key, &before), "not counted");
                self.inserted.push(key);
            }
            Err(full) => {
                assert!(is_one_line(&full.to_string()));
                let [now, then] = [&*filter, &before].map(|it| (it.count(&key), it.len()));
                assert_eq!(now, then);
                let same = *filter == before || filter.is_growable();
                assert!(same, "a refusal changed the filter");
            }
        }
    }

    fn insert_unique(&mut self, filter: &mut CuckooFilter, key: KeyHash) {
        let (before, copies) = (filter.clone(), filter.count(&key));
        match filter.insert_unique(&key) {
            Ok(true) => {
                assert!(copies == 0 && has_one_more(filter, key, &before), "not new");
                self.inserted.push(key);
            }
            unchanged => {
                assert!(unchanged.is_err() || copies > 0);
                let grew = unchanged.is_err() && filter.is_growable();
                assert!(grew || *filter == before, "a refusal changed the filter");
            }
        }
    }

    fn remove(&mut self, filter: &mut CuckooFilter, choice: u64) {
        if self.inserted.is_empty() {
            return;
        }
        let key = self.inserted.swap_remove(index(choice >> 8, self.inserted.len()));
        let before = filter.clone();
        assert!(filter.remove(&key), "an inserted key is not found");
        assert!(has_one_less(filter, key, &before), "not counted");
        assert_eq!(filter.len(), before.len() - 1);
    }
}

/// Whether the count of a key has grown by one. In a grown filter an entry that moved may have lost
/// bits and match the key now; and a key that had a correction counts what others have in its
/// entry.
fn has_one_more(filter: &CuckooFilter, key: KeyHash, before: &CuckooFilter) -> bool {
    let (count, copies) = (filter.count(&key), before.count(&key));
    let may_be_more = filter.has_grown() || filter.corrections() < before.corrections();
    count == copies.saturating_add(1) || may_be_more && count > copies
}

/// Whether the count of a key has fallen by one. In a grown filter, the counts of several matching
/// entries may saturate, and the last key takes along what growth left. A key that was in the stash
/// counts what others have in its entry.
fn has_one_less(filter: &CuckooFilter, key: KeyHash, before: &CuckooFilter) -> bool {
    let (count, copies) = (filter.count(&key), before.count(&key));
    let saturates = copies == u64::MAX && count == copies;
    let is_cleared = filter.slots_in_use() == 0 && count == 0;
    count == copies - 1
        || filter.has_grown() && (saturates || is_cleared)
        || filter.stashed_keys() < before.stashed_keys()
}

/// Asserts that the larger of equal counts changed nothing. Of a grown filter, the union may have
/// more keys: nobody can tell what growth left from a key that only one of two filters has.
pub(crate) fn assert_same_table(bytes: [&[u8]; 2], has_grown: bool) {
    let behind = if has_grown { HEADER_BYTES } else { 0 };
    assert!(bytes[0][behind..] == bytes[1][behind..], "equal counts changed the filter");
}

/// Whether growth is due or under way. A merge makes all of it, and so does `reserve`, but for
/// buckets that are still to be widened.
fn has_step_due(filter: &CuckooFilter) -> bool {
    let mut settled = filter.clone();
    filter.has_grown()
        && (read(&filter.to_bytes(), "narrow buckets") > 0
            || settled.reserve(0).is_err()
            || settled != *filter)
}

/// Merges the filter with itself: the maximum makes the growth that is due, and else changes
/// nothing; the sum is twice as large, or does not fit. In a grown filter it may be larger, because
/// a key may match entries that lost bits. The maximum of a grown filter may then not fit either:
/// what growth left counts as keys.
fn merge_with_itself(filter: &mut CuckooFilter, key: KeyHash) {
    let (twin, copies) = (filter.clone(), filter.count(&key));
    match filter.merge(&twin, Merge::Max) {
        Ok(()) if has_step_due(&twin) => assert!(filter.count(&key) >= copies),
        Ok(()) => {
            assert_same_table([&twin.to_bytes(), &filter.to_bytes()], twin.has_grown());
            assert!((0..=twin.leftovers()).contains(&(filter.len() - twin.len())), "{filter:?}");
        }
        Err(failure) => {
            assert_eq!(failure, MergeError::Full(FullError::Overflow));
            assert!(*filter == twin, "a refusal changed the filter");
            let has_leftovers = twin.len().checked_add(twin.leftovers()).is_none();
            assert!(has_leftovers || has_step_due(&twin), "{filter:?}");
        }
    }
    *filter = twin.clone();
    match filter.merge(&twin, Merge::Sum) {
        Ok(()) if filter.has_grown() => {
            assert!(filter.count(&key) >= copies.saturating_mul(2));
        }
        Ok(()) => assert_eq!(filter.count(&key), 2 * copies),
        Err(_) => assert!(*filter == twin, "a refusal changed the filter"),
    }
    assert_small(filter.size_in_bytes());
    *filter = twin;
}

pub(crate) fn index(choice: u64, len: usize) -> usize {
    usize::try_from(choice % len as u64).expect("below a length")
}
