//! Any operations on a small expiring filter that grows.
//!
//! Its entries are prefixes of keys, which get shorter and are doubled, so no map of entries is
//! kept. Instead the entries after each operation, read by [`Name`] from the bytes, are compared
//! with those before it:
//!
//! * a live entry is still there, or shorter ones or its halves are, none with an older stamp;
//!   unless its key was removed;
//! * an entry has the stamp of one that was there before it, or that of a key that was inserted;
//! * answers, ages and `len` are those of the entries, and no key is forgotten;
//! * a jump answers like steps, a batch and a file like the filter.

use std::collections::BTreeMap;

use koel::{ExpiringFilter, ExpiringView, InsertError};

use super::{FIRST, STEP, Stamps, at_step};
use crate::audit::Name;
use crate::image;
use crate::keys::{self, all_at, at};

/// The number of hashes in use.
const HASHES: usize = 320;

/// Entries by base and core: the rest of the name, and the step of the stamp.
type Entries = BTreeMap<(u64, u64), Vec<(Name, u64)>>;

pub(super) fn run(settings: [u8; 5], operations: &[[u8; 3]]) {
    let mut model = Model::new(settings);
    for &operation in operations {
        model.step(operation);
    }
}

struct Model {
    filter: ExpiringFilter,
    hashes: Vec<u64>,
    names: Vec<Name>,
    entries: Entries,
    /// The step at which each key was inserted or renewed last.
    last: BTreeMap<usize, u64>,
    step: u64,
}

/// What an operation did besides time and growth.
#[derive(Default)]
struct Change {
    /// Keys that were inserted, and the step that each got.
    inserted: Vec<(usize, u64)>,
    removed: Option<usize>,
    cleared: bool,
}

fn related<'a>(entries: &'a Entries, name: &Name) -> &'a [(Name, u64)] {
    entries.get(&(name.base, name.core)).map_or(&[], Vec::as_slice)
}

/// Whether the keys of a name all have an entry of this step or a later one.
fn is_covered(entries: &Entries, name: &Name, step: u64) -> bool {
    let related = related(entries, name);
    if related.iter().any(|(entry, its)| *its >= step && entry.has(name)) {
        return true;
    }
    let is_split = related.iter().any(|(entry, _)| name.has(entry));
    is_split
        && [false, true].into_iter().all(|bit| {
            let mut half = name.clone();
            half.string.push(bit);
            is_covered(entries, &half, step)
        })
}

impl Model {
    fn new([steps, shape, rate, _, seed]: [u8; 5]) -> Self {
        let steps = [4, 6, 5, 3, 1][usize::from(steps % 5)];
        let rate = [0.02, 0.004, 1e-6][usize::from(rate % 3)];
        let builder = ExpiringFilter::builder(1, rate).window(STEP * steps).grow_from(1);
        let steps = u32::try_from(steps).expect("few");
        let whole = builder.steps(steps).build().expect("sound settings").to_bytes();
        let (segment_bits, buckets) = (shape % 3, 1 + u32::from(shape / 3 % 8));
        let bytes = at_step(image::reshape(&whole, segment_bits, buckets), seed);
        let hashes: Vec<u64> = keys::hashes(seed.into(), HASHES as u64).collect();
        Self {
            filter: ExpiringFilter::from_bytes(&bytes).expect("an empty filter"),
            names: hashes.iter().map(|&hash| Name::of_hash(&bytes, hash)).collect(),
            hashes,
            entries: Entries::new(),
            last: BTreeMap::new(),
            step: FIRST,
        }
    }

    fn step(&mut self, [kind, key, argument]: [u8; 3]) {
        let (index, argument) = (usize::from(key), u64::from(argument));
        match kind % 16 {
            0..3 => self.insert_run(index, 1, argument),
            3..8 => self.insert_run(index, argument, argument),
            8 => self.insert_with_ttl(index, argument % 60),
            9 => self.remove(index),
            10 | 11 => self.advance(self.filter.step_began() + argument % (5 * STEP)),
            12 => self.advance(self.filter.step_began() + argument * 2),
            13 => {
                self.filter.shrink_to_fit();
                self.check(&Change::default());
            }
            14 if argument < 16 => {
                self.filter.clear();
                self.check(&Change { cleared: true, ..Change::default() });
            }
            _ => self.reload(),
        }
    }

    /// The age of the youngest entry of a key, if it is live.
    fn age(&self, index: usize) -> Option<u64> {
        let name = &self.names[index];
        let matches = related(&self.entries, name).iter().filter(|(entry, _)| entry.has(name));
        let age = matches.map(|&(_, step)| self.step - step).min();
        age.filter(|&age| age <= self.filter.steps())
    }

    /// Inserts so many keys, and beside that a batch of them.
    fn insert_run(&mut self, first: usize, count: u64, kind: u64) {
        let unique = kind % 2 == 1;
        let count = usize::try_from(count).expect("small");
        let run: Vec<usize> = (first..first + count).map(|index| index % HASHES).collect();
        let hashes: Vec<u64> = run.iter().map(|&index| self.hashes[index]).collect();
        let (mut batched, mut added) = (self.filter.clone(), vec![true; count]);
        let done = if unique {
            batched.insert_unique_many(&all_at(&hashes), &mut added)
        } else {
            batched.insert_many(&all_at(&hashes), &mut added)
        };
        for (i, &index) in run.iter().enumerate() {
            let (known, key) = (self.age(index), at(self.hashes[index]));
            let inserted =
                if unique { self.filter.insert_unique(&key) } else { self.filter.insert(&key) };
            let Ok(new) = inserted else {
                // Eight keys with the same buckets meet in tables of so few.
                assert!(done.is_err() && known.is_none() && !added[i..].contains(&true));
                self.check(&Change::default());
                break;
            };
            assert_eq!([new, added[i]], [known.is_none(); 2]);
            let inserted = if unique && !new { Vec::new() } else { vec![(index, self.step)] };
            self.check(&Change { inserted, ..Change::default() });
        }
        assert!(batched == self.filter, "a batch differs from single inserts");
    }

    fn insert_with_ttl(&mut self, index: usize, ttl: u64) {
        let (known, key) = (self.age(index), at(self.hashes[index]));
        let inserted = self.filter.insert_with_ttl(&key, ttl);
        let Some(age) = self.filter.steps().checked_sub(ttl.div_ceil(STEP)) else {
            return assert!(matches!(inserted, Err(InsertError::TimeToLive { .. })));
        };
        let Ok(new) = inserted else {
            assert!(known.is_none());
            return self.check(&Change::default());
        };
        assert_eq!(new, known.is_none());
        self.check(&Change { inserted: vec![(index, self.step - age)], ..Change::default() });
    }

    fn remove(&mut self, index: usize) {
        let removed = self.filter.remove(&at(self.hashes[index]));
        assert_eq!(removed, self.age(index).is_some());
        self.check(&Change { removed: Some(index), ..Change::default() });
        assert!(self.age(index).is_none());
    }

    fn advance(&mut self, now: u64) {
        let began = self.filter.step_began();
        let steps = (now - began) / STEP;
        let later: Vec<bool> =
            self.hashes.iter().map(|&hash| self.filter.contains_at(&at(hash), now)).collect();
        let (mut slow, before) = (self.filter.clone(), self.filter.len());
        let expired = self.filter.advance(now);
        assert_eq!(expired, before - self.filter.len());
        (1..=steps).for_each(|step| {
            slow.advance(began + step * STEP);
        });
        assert_eq!((slow.len(), slow.step_began()), (self.filter.len(), began + steps * STEP));
        for (&hash, later) in self.hashes.iter().zip(later) {
            assert_eq!([self.filter.contains(&at(hash)), slow.contains(&at(hash))], [later; 2]);
            assert_eq!(
                self.filter.age(&at(hash)),
                slow.age(&at(hash)),
                "a jump differs from steps"
            );
        }
        self.step += steps;
        self.check(&Change::default());
    }

    fn reload(&mut self) {
        let bytes = self.filter.to_bytes();
        let read = ExpiringFilter::from_bytes(&bytes).expect("its own bytes");
        assert!(read == self.filter && read.to_bytes() == bytes);
        self.filter = read;
    }

    /// The entries that the bytes have.
    fn read_entries(&self, bytes: &[u8]) -> Entries {
        let stamps = Stamps::of(bytes);
        let mut entries = Entries::new();
        for slot in stamps.view().entries() {
            let name = Name::in_slot(&stamps.maplet, slot.bucket, slot.fingerprint);
            let step = self.step - stamps.age(&slot);
            entries.entry((name.base, name.core)).or_default().push((name, step));
        }
        entries
    }

    /// Compares the entries with those before the operation, and the answers with the entries.
    fn check(&mut self, change: &Change) {
        let bytes = self.filter.to_bytes();
        let view = ExpiringView::open(&bytes).expect("its own bytes");
        assert_eq!((view.verify(), bytes.len()), (Ok(()), self.filter.size_in_bytes()));
        let entries = self.read_entries(&bytes);
        let before = std::mem::replace(&mut self.entries, entries);
        self.check_origins(&before, change);
        self.check_lasting(&before, change);
        let all = || self.entries.values().flatten();
        let live = all().filter(|(_, step)| self.step - step <= self.filter.steps());
        let counts = [self.filter.len(), view.len(), self.filter.slots_in_use()];
        let live = live.count() as u64;
        assert_eq!(counts, [live, live, all().count() as u64]);
        let keys = all_at(&self.hashes);
        let mut ages = vec![None; HASHES];
        view.age_many(&keys, &mut ages);
        for (index, age) in ages.into_iter().enumerate() {
            let expected = self.age(index);
            assert_eq!([age, self.filter.age(&keys[index])], [expected; 2]);
            let known = self.last.get(&index).map(|last| self.step - last);
            let known = known.filter(|&known| known <= self.filter.steps());
            assert!(known.is_none_or(|known| age.is_some_and(|age| age <= known)), "forgotten");
        }
    }

    /// Every entry comes from one that was there, or from a key that was inserted.
    fn check_origins(&self, before: &Entries, change: &Change) {
        for (name, step) in self.entries.values().flatten() {
            let was_there = related(before, name)
                .iter()
                .any(|(old, its)| its == step && (name.has(old) || old.has(name)));
            let mut inserted = change.inserted.iter();
            let is_new = inserted.any(|(index, its)| its == step && name.has(&self.names[*index]));
            assert!(was_there || is_new, "an entry from nowhere: {name:?}");
        }
    }

    /// No live entry is gone, unless it was removed. Notes what is known of the keys.
    fn check_lasting(&mut self, before: &Entries, change: &Change) {
        let removed = change.removed.map(|index| self.names[index].clone());
        let is_removed =
            |name: &Name| change.cleared || removed.as_ref().is_some_and(|key| name.has(key));
        for (name, step) in before.values().flatten() {
            let is_live = self.step - step <= self.filter.steps();
            if is_live && !is_removed(name) {
                assert!(is_covered(&self.entries, name, *step), "a live entry is gone: {name:?}");
            }
        }
        for &(index, step) in &change.inserted {
            let last = self.last.entry(index).or_insert(step);
            *last = step.max(*last);
        }
        let (names, steps, now) = (&self.names, self.filter.steps(), self.step);
        self.last.retain(|index, last| {
            let matches = related(before, &names[*index]).iter();
            let gone = matches.filter(|(entry, _)| entry.has(&names[*index]));
            now - *last <= steps && !gone.clone().any(|(entry, _)| is_removed(entry))
        });
    }
}
