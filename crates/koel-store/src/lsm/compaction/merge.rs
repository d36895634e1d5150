//! Several runs into one, or a memtable into a run: which versions are kept.
//!
//! A read at a sequence number sees the newest version of a key up to that number. The sequence
//! numbers at which reads happen divide the versions of a key into stripes, and only the newest
//! version of a stripe can be seen. So one a stripe is kept, and the others are dropped.
//!
//! A range deletion hides the versions before it as a newer version would, and stays itself
//! (`range_deletions.rs`): the runs that are not merged now may have more of its keys.
//!
//! A tombstone ends where nothing older is left that it hides: in a merge of the oldest runs, if no
//! older version of its key is kept.
//!
//! A guide has one pair for each run and key. So a merge reports the surplus: the hash of a key
//! once for each input that has the key, but one fewer if the output has it.
//!
//! Cost: each entry is read and compared once with the key before it, and a heap finds the next
//! input. Memory: a key, and as many sequence numbers as there are stripes.

use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, OnceLock};

use crate::Error;
use crate::kernel::memory::{copy_into, push};
use crate::kernel::poison::panic_message;
use crate::lsm::entry::{Cursor, Entry, LAST_SEQUENCE, stripe_of};
use crate::lsm::iter::MergeCursor;
use crate::lsm::range_deletions::RangeDeletions;

/// What is kept of the versions of a key.
#[derive(Clone, Copy)]
pub(in crate::lsm) struct Rules<'a> {
    /// The sequence numbers at which reads happen, ascending; besides them, reads of the newest
    /// versions.
    pub(in crate::lsm) boundaries: &'a [u64],
    /// Whether no older run than the inputs may have their keys.
    pub(in crate::lsm) is_bottom: bool,
    /// The range deletions of the inputs.
    pub(in crate::lsm) range_deletions: &'a RangeDeletions,
    pub(in crate::lsm) filter: Option<&'a Filter>,
}

impl Rules<'_> {
    /// Returns the range deletions that are kept.
    pub(in crate::lsm) fn kept_range_deletions(&self) -> RangeDeletions {
        self.range_deletions.merged(self.boundaries, self.is_bottom)
    }

    /// Returns whether a version in this stripe is hidden from every read by a range deletion.
    #[inline]
    fn is_range_deleted(&self, entry: &Entry<'_>, stripe: usize) -> bool {
        let last = self.boundaries.get(stripe).copied().unwrap_or(LAST_SEQUENCE);
        self.range_deletions.newest(entry.key, last) > entry.sequence
    }
}

/// Takes the entries that are kept. An error ends the merge.
pub(in crate::lsm) type Sink<'a> = dyn FnMut(Entry<'_>) -> Result<(), Error> + 'a;

/// Passes what is kept of the entries of several runs to `sink`. `inputs` are cursors of the runs,
/// youngest first. Returns the surplus hashes, each made by `hash`; `None` if there were more than
/// `surplus_limit`.
pub(in crate::lsm) fn merge(
    inputs: Vec<Box<dyn Cursor>>,
    rules: Rules<'_>,
    hash: impl Fn(&[u8]) -> u64,
    surplus_limit: u64,
    sink: &mut Sink<'_>,
) -> Result<Option<Vec<u64>>, Error> {
    debug_assert!(inputs.len() <= 128, "more runs than ids");
    let mut inputs = MergeCursor::new(inputs);
    inputs.first()?;
    let mut versions = Versions::new(rules);
    let mut surplus = Surplus { hashes: Some(Vec::new()), limit: surplus_limit };
    // The inputs that had an entry of the key, as a mask and counted.
    let (mut seen, mut of_key) = (0_u128, 0);
    while let (Some(input), Some(entry)) = (inputs.source(), inputs.entry()) {
        if !versions.is_of_key(entry.key) {
            let is_kept = versions.end_key(sink)?;
            surplus.add(of_key - u64::from(is_kept), || hash(&versions.key))?;
            versions.start_key(entry.key)?;
            (seen, of_key) = (0, 0);
        }
        versions.add(entry, sink)?;
        of_key += u64::from(seen >> input & 1 == 0);
        seen |= 1 << input;
        inputs.next()?;
    }
    let is_kept = versions.end_key(sink)?;
    surplus.add(of_key - u64::from(is_kept), || hash(&versions.key))?;
    Ok(surplus.hashes)
}

/// Surplus hashes, up to a limit.
struct Surplus {
    hashes: Option<Vec<u64>>,
    limit: u64,
}

impl Surplus {
    fn add(&mut self, times: u64, hash: impl Fn() -> u64) -> Result<(), Error> {
        let Some(hashes) = self.hashes.as_mut().filter(|_| times > 0) else { return Ok(()) };
        if hashes.len() as u64 + times > self.limit {
            self.hashes = None;
            return Ok(());
        }
        let hash = hash();
        (0..times).try_for_each(|_| push(hashes, hash))
    }
}

/// The versions of one key, newest first.
struct Versions<'a> {
    rules: Rules<'a>,
    key: Vec<u8>,
    /// Whether there is a key yet.
    is_started: bool,
    /// The stripe of the last version.
    stripe: Option<usize>,
    /// Tombstones that are written if an older version follows, or may be in another run.
    tombstones: Vec<u64>,
    /// Whether a version was written.
    is_kept: bool,
}

impl<'a> Versions<'a> {
    fn new(rules: Rules<'a>) -> Self {
        let (key, tombstones) = (Vec::new(), Vec::new());
        Self { rules, key, is_started: false, stripe: None, tombstones, is_kept: false }
    }

    fn is_of_key(&self, key: &[u8]) -> bool {
        self.is_started && self.key == key
    }

    fn start_key(&mut self, key: &[u8]) -> Result<(), Error> {
        copy_into(&mut self.key, key)?;
        (self.is_started, self.stripe, self.is_kept) = (true, None, false);
        Ok(())
    }

    /// Adds the next older version.
    fn add(&mut self, entry: Entry<'_>, sink: &mut Sink<'_>) -> Result<(), Error> {
        let stripe = stripe_of(entry.sequence, self.rules.boundaries);
        let is_newest = self.stripe.replace(stripe) != Some(stripe);
        if !is_newest || self.rules.is_range_deleted(&entry, stripe) {
            return Ok(());
        }
        let is_kept = match (entry.value, self.rules.filter) {
            (Some(value), Some(filter)) => filter.keeps(entry.key, value)?,
            (value, _) => value.is_some(),
        };
        match entry.value.filter(|_| is_kept) {
            None => push(&mut self.tombstones, entry.sequence),
            Some(_) => {
                self.write_tombstones(sink)?;
                self.is_kept = true;
                sink(entry)
            }
        }
    }

    /// Ends the key. Returns whether a version of it was written.
    fn end_key(&mut self, sink: &mut Sink<'_>) -> Result<bool, Error> {
        if self.rules.is_bottom {
            self.tombstones.clear();
        }
        self.write_tombstones(sink)?;
        Ok(self.is_kept)
    }

    fn write_tombstones(&mut self, sink: &mut Sink<'_>) -> Result<(), Error> {
        self.is_kept |= !self.tombstones.is_empty();
        for sequence in self.tombstones.drain(..) {
            sink(Entry { key: &self.key, sequence, value: None })?;
        }
        Ok(())
    }
}

type IsKept = dyn Fn(&[u8], &[u8]) -> bool + Send + Sync;

/// Whether an entry with this key and value is kept when it is rewritten.
#[derive(Clone)]
pub(in crate::lsm) struct Keep(Arc<IsKept>);

impl Keep {
    pub(in crate::lsm) fn new(keep: impl Fn(&[u8], &[u8]) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(keep))
    }
}

impl std::fmt::Debug for Keep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keep")
    }
}

/// A compaction filter. Code of the caller may panic. Then the merge that called it ends with an
/// error, and from then on every entry is kept, so that the store goes on: it would meet the same
/// entry again and again.
#[derive(Debug)]
pub(in crate::lsm) struct Filter {
    keep: Keep,
    panicked: OnceLock<String>,
}

impl Filter {
    pub(in crate::lsm) fn new(keep: Keep) -> Self {
        Self { keep, panicked: OnceLock::new() }
    }

    /// Returns whether an entry is kept.
    ///
    /// # Errors
    /// [`Error::FilterPanicked`] if the filter panics now.
    pub(super) fn keeps(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        if self.panicked.get().is_some() {
            return Ok(true);
        }
        panic::catch_unwind(AssertUnwindSafe(|| (self.keep.0)(key, value))).map_err(|panic| {
            let reason = panic_message(&*panic).to_owned();
            self.panicked.get_or_init(|| reason.clone());
            Error::FilterPanicked { reason }
        })
    }

    /// Returns what the filter said when it panicked, if it did.
    pub(in crate::lsm) fn panicked(&self) -> Option<&str> {
        self.panicked.get().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Bound;

    use testkit::keys::splitmix64;

    use super::*;
    use crate::lsm::range_deletions::KeyRange;

    /// Key, sequence number, value.
    type Version = (u8, u64, Option<Vec<u8>>);

    /// A cursor that only moves forward.
    #[derive(Debug)]
    struct List(Vec<(Vec<u8>, u64, Option<Vec<u8>>)>, usize);

    impl List {
        fn boxed(run: &[Version]) -> Box<dyn Cursor> {
            let mut entries: Vec<_> =
                run.iter().map(|(key, at, value)| (vec![*key], *at, value.clone())).collect();
            entries.sort_by(|one, other| one.0.cmp(&other.0).then(other.1.cmp(&one.1)));
            Box::new(Self(entries, 0))
        }
    }

    impl Cursor for List {
        fn entry(&self) -> Option<Entry<'_>> {
            let (key, sequence, value) = self.0.get(self.1)?;
            Some(Entry { key, sequence: *sequence, value: value.as_deref() })
        }

        fn first(&mut self) -> Result<(), Error> {
            self.1 = 0;
            Ok(())
        }

        fn next(&mut self) -> Result<(), Error> {
            self.1 += 1;
            Ok(())
        }

        fn seek(&mut self, _: &[u8], _: u64) -> Result<(), Error> {
            unimplemented!("merges move forward")
        }

        fn seek_before(&mut self, _: &[u8]) -> Result<(), Error> {
            unimplemented!("merges move forward")
        }

        fn last(&mut self) -> Result<(), Error> {
            unimplemented!("merges move forward")
        }

        fn previous(&mut self) -> Result<(), Error> {
            unimplemented!("merges move forward")
        }
    }

    /// What a read at a sequence number sees: nothing, a tombstone, or a value. A range deletion
    /// is a tombstone of each of its keys.
    fn read(versions: &[Version], key: u8, at: u64) -> Option<(u64, Option<Vec<u8>>)> {
        let seen = versions.iter().filter(|version| version.0 == key && version.1 <= at);
        seen.max_by_key(|version| version.1).map(|(_, at, value)| (*at, value.clone()))
    }

    /// Whether the filter drops a value: if its first byte is odd.
    fn drops(value: &[u8]) -> bool {
        value[0] % 2 == 1
    }

    fn keeps(_: &[u8], value: &[u8]) -> bool {
        !drops(value)
    }

    /// Runs, youngest first, and rules.
    struct Case {
        runs: Vec<Vec<Version>>,
        boundaries: Vec<u64>,
        is_bottom: bool,
        is_filtered: bool,
        limit: u64,
        /// The first key, the last one, and the sequence number of each range deletion.
        ranges: Vec<(u8, u8, u64)>,
        range_deletions: RangeDeletions,
    }

    impl Case {
        fn random(number: u64) -> Self {
            let mut state = number << 32;
            let mut below = |end: u64| {
                state += 1;
                splitmix64(state) % end
            };
            let (mut runs, mut ranges, mut sequence) = (Vec::new(), Vec::new(), 0_u64);
            let has_ranges = below(2) == 0;
            for _ in 0..=below(5) {
                let mut run = Vec::new();
                for _ in 0..below(30) {
                    sequence += 1;
                    if has_ranges && below(12) == 0 {
                        let one = |number: u64| u8::try_from(number).unwrap();
                        let first = below(10);
                        ranges.push((one(first), one(first + below(10)), sequence));
                        continue;
                    }
                    let value = (below(3) > 0).then(|| vec![sequence.to_le_bytes()[0]]);
                    run.push((u8::try_from(below(10)).unwrap(), sequence, value));
                }
                runs.insert(0, run);
            }
            let mut boundaries: Vec<u64> = (0..below(4)).map(|_| below(sequence + 1)).collect();
            boundaries.sort_unstable();
            boundaries.push(sequence);
            let (is_bottom, is_filtered) = (below(2) == 0, below(3) == 0);
            let mut range_deletions = RangeDeletions::default();
            for &(first, last, at) in &ranges {
                let bounds = (Bound::Included(&[first][..]), Bound::Included(&[last][..]));
                let keys = KeyRange::between(bounds.0, bounds.1).unwrap().unwrap();
                range_deletions.add(keys, at, &boundaries);
            }
            let limit = below(20);
            Self { runs, boundaries, is_bottom, is_filtered, limit, ranges, range_deletions }
        }

        fn rules<'a>(&'a self, filter: &'a Filter) -> Rules<'a> {
            Rules {
                boundaries: &self.boundaries,
                is_bottom: self.is_bottom,
                range_deletions: &self.range_deletions,
                filter: self.is_filtered.then_some(filter),
            }
        }

        /// All sequence numbers at which reads happen.
        fn reads(&self) -> impl Iterator<Item = u64> {
            self.boundaries.iter().copied().chain([u64::MAX])
        }

        /// The range deletions as tombstones of a key.
        fn deletions(&self, key: u8) -> impl Iterator<Item = Version> {
            let of_key = self.ranges.iter().filter(move |it| (it.0..=it.1).contains(&key));
            of_key.map(move |it| (key, it.2, None))
        }

        /// Compares what each read of a key sees before and after. A range deletion may stand for
        /// tombstones.
        fn check_reads(&self, output: &[Version], key: u8) {
            let input = [self.runs.concat(), self.deletions(key).collect()].concat();
            let kept = self.range_deletions.merged(&self.boundaries, self.is_bottom);
            for at in self.reads() {
                let expected = read(&input, key, at)
                    .map(|(_, value)| value.filter(|value| !(self.is_filtered && drops(value))));
                let deleted = kept.newest(&[key], at);
                let found = read(output, key, at).filter(|seen| seen.0 > deleted);
                let found = found.map(|(_, value)| value);
                let found = found.or_else(|| (deleted > 0).then_some(None));
                if self.is_bottom {
                    assert_eq!(found.flatten(), expected.flatten(), "{key} at {at}");
                } else {
                    assert_eq!(found, expected, "{key} at {at}");
                }
            }
        }

        /// Checks that a read sees each version that was kept, and returns the surplus of the key.
        fn check_kept(&self, output: &[Version], key: u8) -> u64 {
            let of_key = || output.iter().filter(|version| version.0 == key);
            let is_hidden = |version: &Version, at: u64| {
                self.deletions(key).any(|deletion| (version.1..=at).contains(&deletion.1))
            };
            let is_seen = |version: &Version| {
                self.reads().any(|at| {
                    let seen = read(output, key, at);
                    seen.is_some_and(|seen| seen.0 == version.1) && !is_hidden(version, at)
                })
            };
            assert!(of_key().all(is_seen), "a version of {key} that no read sees");
            let oldest = of_key().next_back();
            assert!(!self.is_bottom || oldest.is_none_or(|version| version.2.is_some()));
            let inputs = self.runs.iter().filter(|run| run.iter().any(|version| version.0 == key));
            inputs.count() as u64 - u64::from(oldest.is_some())
        }
    }

    /// Appends the entries to a list.
    fn append(output: &mut Vec<Version>) -> impl FnMut(Entry<'_>) -> Result<(), Error> {
        |entry| {
            output.push((entry.key[0], entry.sequence, entry.value.map(<[u8]>::to_vec)));
            Ok(())
        }
    }

    #[test]
    fn every_read_sees_the_same_after_a_merge_and_nothing_else_is_kept() {
        for number in 0..1_200 {
            let case = Case::random(number);
            let mut output = Vec::new();
            let cursors = case.runs.iter().map(|run| List::boxed(run)).collect();
            let hash = |key: &[u8]| u64::from(key[0]);
            let mut sink = append(&mut output);
            let filter = Filter::new(Keep::new(keeps));
            let merged = merge(cursors, case.rules(&filter), hash, case.limit, &mut sink).unwrap();
            drop(sink);
            let is_before = |one: &Version, other: &Version| {
                (one.0, u64::MAX - one.1) < (other.0, u64::MAX - other.1)
            };
            assert!(output.is_sorted_by(is_before), "{number}");
            let mut surplus = Vec::new();
            for key in 0..10 {
                case.check_reads(&output, key);
                surplus.extend((0..case.check_kept(&output, key)).map(|_| u64::from(key)));
            }
            let is_short = surplus.len() as u64 <= case.limit;
            assert_eq!(merged, is_short.then_some(surplus), "{number}");
        }
    }
}
