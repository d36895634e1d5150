//! Any operations on a small expiring filter, beside a model that knows the true step of each
//! entry; and any bytes, like [`exercise`](crate::exercise) for filters.
//!
//! The model is the entries of the table with the steps of their stamps, without a modulus. They
//! are read from the bytes after each operation and compared with those before it. In a filter that
//! grows they are prefixes of keys ([`Name`]), which get shorter and are doubled:
//!
//! * a live entry is still there, or shorter ones or its halves are, none with an older stamp,
//!   unless its key was removed or it was evicted;
//! * an entry, dead or alive, has the stamp of one that was there before it, or that of a key that
//!   was inserted;
//! * answers, ages and `len` are those of the entries, and no key is forgotten;
//! * a jump in time answers like single steps, a batch and a file like the filter;
//! * an insert that fails changes no byte of a filter that does not grow.
//!
//! Stamps have two or three bits, so that they wrap often.

use std::collections::BTreeMap;

use koel::{
    ExpiringFilter, ExpiringView, FullError, ImageError, InsertError, MapletEntry, MapletView,
    WhenFull,
};

use crate::addressing::Addressing;
use crate::audit::Name;
use crate::exercise::{assert_small, is_one_line, read_once};
use crate::image;
use crate::keys::{self, all_at, at};

/// Ticks of a step.
const STEP: u64 = 10;
/// The step of a new filter: a multiple of every number of stamps.
const FIRST: u64 = 1 << 20;
/// From so many steps on, a group of buckets only knows that it was swept longer ago.
const FAR: u64 = 1 << 14;
/// The numbers of hashes in use, without and with growth.
const HASHES: [u64; 2] = [96, 320];

/// Runs the operations that `bytes` stand for: five bytes of settings, then three for each. The
/// top bit of the second setting chooses a filter that grows.
///
/// # Panics
/// If the filter and the model differ.
pub fn run(bytes: &[u8]) {
    let Some((settings, operations)) = bytes.split_first_chunk::<5>() else { return };
    let mut model = Model::new(*settings);
    for operation in operations.as_chunks().0 {
        model.step(*operation);
    }
}

/// The image of an empty filter, a few steps before all sweeps are refreshed.
fn at_step(mut image: Vec<u8>, seed: u8) -> Vec<u8> {
    let step = [1_u64, 2, 3, 4][usize::from(seed % 4)] * FAR - 1 - u64::from(seed / 4);
    image::set(&mut image, &[("step", step)]);
    let sweeps = image::section_bytes(&image, "sweeps");
    let [low, high, ..] = step.to_le_bytes();
    image[sweeps].as_chunks_mut().0.fill([low, high]);
    image::reseal(&mut image);
    image
}

/// Entries by base and core: the rest of the name, and the step of the stamp.
type Entries = BTreeMap<(u64, u64), Vec<(Name, u64)>>;

/// A filter, and what it must hold.
struct Model {
    filter: ExpiringFilter,
    grows: bool,
    addressing: Addressing,
    hashes: Vec<u64>,
    /// All that the filter can know of each hash.
    names: Vec<Name>,
    entries: Entries,
    /// The step at which each key was inserted or renewed last.
    last: BTreeMap<usize, u64>,
    step: u64,
    began: u64,
    evicted: u64,
    youngest_evicted: Option<u64>,
}

/// What an operation did besides time, growth and evictions.
#[derive(Default)]
struct Change {
    /// A key that was inserted, and the step that it got.
    inserted: Option<(usize, u64)>,
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
    fn new([steps, shape, rate, when_full, seed]: [u8; 5]) -> Self {
        let grows = shape >= 128;
        let steps = [4, 6, 5, 3, 1][usize::from(steps % 5)];
        let rate = [if grows { 0.02 } else { 0.1 }, 0.004, 1e-6][usize::from(rate % 3)];
        let when_full = [WhenFull::Fail, WhenFull::EvictOldest][usize::from(when_full % 2)];
        let builder = ExpiringFilter::builder(1, rate).window(STEP * steps);
        let builder = if grows { builder.grow_from(1) } else { builder.when_full(when_full) };
        let steps = u32::try_from(steps).expect("few");
        let whole = builder.steps(steps).build().expect("sound settings").to_bytes();
        let most = if grows { 8 } else { 12 };
        let (segment_bits, buckets) = (shape % 3, 1 + u32::from(shape / 3 % most));
        let bytes = at_step(image::reshape(&whole, segment_bits, buckets), seed);
        let addressing = Addressing::of(&bytes);
        let (first, count) = (keys::splitmix64(seed.into()), HASHES[usize::from(grows)]);
        // Those of one entry and of one pair of buckets; a table that grows would split for ever.
        let crowded = if grows { 0 } else { 24 };
        let twins = keys::sharing_entry(&addressing, first).take(crowded / 6);
        let pairs = keys::sharing_pair(&addressing, first).take(crowded);
        let all = twins.chain(pairs).chain(keys::hashes(seed.into(), count));
        let hashes: Vec<u64> = all.take(usize::try_from(count).expect("few")).collect();
        Self {
            filter: ExpiringFilter::from_bytes(&bytes).expect("an empty filter"),
            grows,
            addressing,
            names: hashes.iter().map(|&hash| Name::of_hash(&bytes, hash)).collect(),
            hashes,
            entries: Entries::new(),
            last: BTreeMap::new(),
            step: FIRST,
            began: 0,
            evicted: 0,
            youngest_evicted: None,
        }
    }

    fn step(&mut self, [kind, key, argument]: [u8; 3]) {
        let (index, argument) = (usize::from(key) % self.hashes.len(), u64::from(argument));
        match kind % 16 {
            0..3 => self.insert_run(index, 1, argument),
            3..8 => {
                self.insert_run(index, if self.grows { argument } else { argument % 40 }, argument)
            }
            8 => self.insert_with_ttl(index, argument % 80),
            9 => self.remove(index),
            10 | 11 => self.advance(self.began.saturating_add(argument % (5 * STEP))),
            12 => self.advance(match argument {
                0..4 if !self.grows => u64::MAX - argument,
                4..16 => self.began.saturating_sub(argument * 5),
                _ => self.began.saturating_add(argument * 2),
            }),
            13 if self.grows => {
                self.filter.shrink_to_fit();
                self.check(&Change::default());
            }
            14 if argument < 64 => {
                self.began = argument * 1000;
                self.filter.rebase(self.began);
                self.check(&Change::default());
            }
            15 if argument < 16 => {
                self.filter.clear();
                (self.evicted, self.youngest_evicted) = (0, None);
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
        let run: Vec<usize> =
            (first..first + count).map(|index| index % self.hashes.len()).collect();
        let hashes: Vec<u64> = run.iter().map(|&index| self.hashes[index]).collect();
        let (mut batched, mut added) = (self.filter.clone(), vec![true; count]);
        let done = if unique {
            batched.insert_unique_many(&all_at(&hashes), &mut added)
        } else {
            batched.insert_many(&all_at(&hashes), &mut added)
        };
        for (i, &index) in run.iter().enumerate() {
            let (known, before, key) = (self.age(index), self.filter.to_bytes(), at(hashes[i]));
            let inserted =
                if unique { self.filter.insert_unique(&key) } else { self.filter.insert(&key) };
            let Ok(new) = inserted.map_err(|full| self.check_refusal(full, known, &before)) else {
                assert!(done.is_err() && !added[i..].contains(&true));
                break;
            };
            assert_eq!([new, added[i]], [known.is_none(); 2]);
            let inserted = (!unique || new).then_some((index, self.step));
            self.check(&Change { inserted, ..Change::default() });
        }
        assert!(batched == self.filter, "a batch differs from single inserts");
    }

    fn insert_with_ttl(&mut self, index: usize, ttl: u64) {
        let (known, before, key) =
            (self.age(index), self.filter.to_bytes(), at(self.hashes[index]));
        let age = self.filter.steps().checked_sub(ttl.div_ceil(STEP));
        match (self.filter.insert_with_ttl(&key, ttl), age) {
            (Ok(new), Some(age)) => {
                assert_eq!(new, known.is_none());
                let inserted = Some((index, self.step - age));
                self.check(&Change { inserted, ..Change::default() });
            }
            (Err(InsertError::Full(full)), Some(_)) => self.check_refusal(full, known, &before),
            (refused, _) => {
                let window = STEP * self.filter.steps();
                assert_eq!(refused, Err(InsertError::TimeToLive { ttl, window }));
            }
        }
    }

    /// Eight keys with the same buckets may meet in tables of so few.
    fn check_refusal(&mut self, full: FullError, known: Option<u64>, before: &[u8]) {
        assert!(is_one_line(&full.to_string()));
        assert!(known.is_none() && self.filter.when_full() == WhenFull::Fail);
        if !self.grows {
            assert!(matches!(full, FullError::Window { .. }), "{full}");
            assert!(self.filter.to_bytes() == before, "a refusal changed the filter");
            assert!(self.filter.len() >= 4, "full with {} entries", self.filter.len());
        }
        self.check(&Change::default());
    }

    fn remove(&mut self, index: usize) {
        let (key, mut removed) = (at(self.hashes[index]), [false]);
        if index.is_multiple_of(2) {
            removed[0] = self.filter.remove(&key);
        } else {
            self.filter.remove_many(&[key], &mut removed);
        }
        assert_eq!(removed[0], self.age(index).is_some());
        self.check(&Change { removed: Some(index), ..Change::default() });
        assert!(self.age(index).is_none());
    }

    /// Advances in one jump, and beside it a step at a time, if that does not take long.
    fn advance(&mut self, now: u64) {
        let steps = now.saturating_sub(self.began) / STEP;
        let (before, later_len) = (self.filter.len(), self.filter.len_at(now));
        let later: Vec<bool> =
            self.hashes.iter().map(|&hash| self.filter.contains_at(&at(hash), now)).collect();
        let mut slow = self.filter.clone();
        let expired = self.filter.advance(now);
        self.step += steps;
        self.began += steps * STEP;
        assert_eq!([expired, later_len], [before - self.filter.len(), self.filter.len()]);
        for (&hash, later) in self.hashes.iter().zip(later) {
            assert_eq!(self.filter.contains(&at(hash)), later, "at a later tick");
        }
        if steps < 300 {
            (1..=steps).for_each(|step| {
                slow.advance(slow.step_began() + STEP + step % STEP);
            });
            assert_eq!((slow.len(), slow.step_began()), (self.filter.len(), self.began));
            let ages = |filter: &ExpiringFilter| {
                self.hashes.iter().map(|&hash| filter.age(&at(hash))).collect::<Vec<_>>()
            };
            assert_eq!(ages(&slow), ages(&self.filter), "a jump differs from steps");
        }
        self.check(&Change::default());
    }

    fn reload(&mut self) {
        let bytes = self.filter.to_bytes();
        let read = ExpiringFilter::from_bytes(&bytes).expect("its own bytes");
        assert!(read == self.filter && read.to_bytes() == bytes);
        self.filter = read;
        self.check(&Change::default());
    }

    /// The entries that the bytes have, as if they were those of a maplet.
    fn read_entries(&self, bytes: &[u8]) -> Entries {
        let stamps = Stamps::of(bytes);
        let mut entries = Entries::new();
        for slot in stamps.view().entries() {
            let name = if self.grows {
                Name::in_slot(&stamps.maplet, slot.bucket, slot.fingerprint)
            } else {
                let bits = self.addressing.fraction_bits();
                let string = (0..bits).map(|i| slot.fingerprint >> i & 1 == 1).collect();
                let base = self.addressing.entry_in(slot.bucket, slot.fingerprint).lower;
                Name { base, core: slot.fingerprint >> bits, string }
            };
            let twins = entries.entry((name.base, name.core)).or_default();
            let is_twice = twins.iter().any(|(other, _)| *other == name);
            assert!(self.grows || !is_twice, "an entry is there twice");
            twins.push((name, self.step - stamps.age(&slot)));
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
        assert_eq!((self.filter.step_began(), self.filter.evicted()), (self.began, self.evicted));
        assert_eq!(self.filter.youngest_evicted(), self.youngest_evicted);
        let keys = all_at(&self.hashes);
        let (mut found, mut ages) = (vec![true; keys.len()], vec![Some(9); keys.len()]);
        self.filter.contains_many(&keys, &mut found);
        view.age_many(&keys, &mut ages);
        for (index, key) in keys.iter().enumerate() {
            let age = self.age(index);
            assert_eq!([self.filter.age(key), view.age(key), ages[index]], [age; 3]);
            assert_eq!([self.filter.contains(key), found[index]], [age.is_some(); 2]);
            let known = self.last.get(&index).map(|last| self.step - last);
            let known = known.filter(|&known| known <= self.filter.steps());
            assert!(known.is_none_or(|known| age.is_some_and(|age| age <= known)), "forgotten");
        }
    }

    /// Every entry comes from one that was there, or from a key that was inserted. One that has
    /// been dead for long may have another age.
    fn check_origins(&self, before: &Entries, change: &Change) {
        for (name, step) in self.entries.values().flatten() {
            let is_far = self.step - step >= FAR - 8;
            let was_there = related(before, name).iter().any(|(old, its)| {
                (its == step || is_far && its < step) && (name.has(old) || old.has(name))
            });
            let mut inserted = change.inserted.iter();
            let is_new = inserted.any(|(index, its)| its == step && name.has(&self.names[*index]));
            assert!(was_there || is_new, "an entry from nowhere: {name:?}");
        }
    }

    /// No live entry is gone, unless it was removed or evicted. Notes what is known of the keys.
    fn check_lasting(&mut self, before: &Entries, change: &Change) {
        let removed = change.removed.map(|index| self.names[index].clone());
        let is_removed =
            |name: &Name| change.cleared || removed.as_ref().is_some_and(|key| name.has(key));
        let (steps, now) = (self.filter.steps(), self.step);
        let was_lost = |(name, step): &&(Name, u64)| {
            now - step <= steps && !is_removed(name) && !is_covered(&self.entries, name, *step)
        };
        let lost: Vec<&(Name, u64)> = before.values().flatten().filter(was_lost).collect();
        let may_evict =
            change.inserted.is_some() && self.filter.when_full() == WhenFull::EvictOldest;
        if may_evict && self.filter.evicted() > self.evicted {
            assert!(lost.len() == 1, "{} entries for one that was evicted", lost.len());
            self.evicted += 1;
            let age = now - lost[0].1;
            let youngest = self.youngest_evicted.map_or(age, |least| least.min(age));
            self.youngest_evicted = Some(youngest);
        } else {
            assert!(lost.is_empty(), "live entries are gone: {lost:?}");
        }
        if let Some((index, step)) = change.inserted {
            let last = self.last.entry(index).or_insert(step);
            *last = step.max(*last);
        }
        let is_gone = |name: &Name| is_removed(name) || lost.iter().any(|(other, _)| other == name);
        self.last.retain(|index, last| {
            let matches = related(before, &self.names[*index]).iter();
            let mut gone = matches.filter(|(entry, _)| entry.has(&self.names[*index]));
            now - *last <= steps && !gone.any(|(entry, _)| is_gone(entry))
        });
    }
}

/// The table of an expiring filter, as a maplet whose values are the stamps, and the times at which
/// its groups were swept.
struct Stamps {
    maplet: Vec<u8>,
    sweeps: Vec<u16>,
    /// The number of the present step, modulo 2^16.
    step: u16,
    window: u64,
}

impl Stamps {
    fn of(image: &[u8]) -> Self {
        let (table, sweeps) = image.split_at(image::section_bytes(image, "sweeps").start);
        let sweeps = sweeps.as_chunks().0.iter().copied().map(u16::from_le_bytes).collect();
        let [step, window, entries] =
            ["step", "steps", "entries"].map(|name| image::read(image, name));
        let mut maplet = table.to_vec();
        image::zero(&mut maplet, &["when full", "evicted", "sweeps", "step", "steps"]);
        image::zero(&mut maplet, &["youngest evicted", "step length", "step began"]);
        image::set(&mut maplet, &[("kind", 1), ("keys", entries)]);
        image::reseal(&mut maplet);
        Self { maplet, sweeps, step: u16::try_from(step).expect("16 bits"), window }
    }

    fn view(&self) -> MapletView<'_> {
        MapletView::open(&self.maplet).expect("the same table")
    }

    /// How many steps ago the entry of a slot came: as docs/FORMAT.md says.
    fn age(&self, slot: &MapletEntry) -> u64 {
        let largest = (1_u64 << image::read(&self.maplet, "value bits")) - 1;
        let swept = self.sweeps[usize::try_from(slot.bucket / 16).expect("small")];
        let last = u64::from(swept) + largest - self.window;
        let since = u64::from(self.step.wrapping_sub(swept));
        let age = since + (last.wrapping_sub(slot.value) & largest);
        age.checked_sub(largest - self.window).expect("a step that is over")
    }
}

/// Checks the promise of the format for any bytes: they are a sound expiring filter, or are refused
/// with a reason in one line.
///
/// # Errors
/// Why the bytes were refused.
///
/// # Panics
/// If opening and reading disagree, or an accepted filter misbehaves.
pub fn arbitrary_bytes(bytes: &[u8], operations: u32) -> Result<(), ImageError> {
    let trusted = ExpiringView::open(bytes).and_then(|view| {
        question(&view);
        view.verify()
    });
    let mut filter =
        read_once(bytes, trusted, ExpiringFilter::from_bytes(bytes), ExpiringFilter::to_bytes)?;
    exercise(&mut filter, bytes.len() as u64, operations);
    Ok(())
}

/// Calls every query of an unverified view: none may panic.
fn question(view: &ExpiringView<'_>) {
    let hashes: Vec<u64> = keys::hashes(21, 8).chain([0, u64::MAX]).collect();
    let mut found = vec![false; hashes.len()];
    view.contains_many(&all_at(&hashes), &mut found);
    for (&hash, found) in hashes.iter().zip(found) {
        assert_eq!([view.contains(&at(hash)), view.age(&at(hash)).is_some()], [found; 2]);
        assert!(!view.contains_at(&at(hash), u64::MAX) || found);
    }
    assert!(view.steps() <= 200 && view.step_ticks() > 0 && view.window() > 0);
}

/// Applies `operations` steps, chosen by `seed`, to a sound filter of unknown content: keys are in
/// for their window, and the filter is sound afterwards.
fn exercise(filter: &mut ExpiringFilter, seed: u64, operations: u32) {
    let mut inserted: BTreeMap<u64, u64> = BTreeMap::new();
    for choice in keys::hashes(seed, u64::from(operations)) {
        let hash = keys::splitmix64((choice >> 8) % 40);
        let (began, evicted) = (filter.step_began(), filter.evicted());
        match choice % 8 {
            0..4 => match filter.insert(&at(hash)) {
                // A full counter does not tell whether an entry was evicted.
                Ok(_) if filter.evicted() == evicted && evicted < u64::MAX => {
                    inserted.insert(hash, began);
                }
                Ok(_) => inserted.clear(),
                Err(full) => assert!(is_one_line(&full.to_string())),
            },
            4 | 5 => {
                let steps = (choice >> 16) % 4;
                filter.advance(began.saturating_add(steps.saturating_mul(filter.step_ticks())));
            }
            6 if filter.remove(&at(hash)) => inserted.clear(),
            _ => *filter = ExpiringFilter::from_bytes(&filter.to_bytes()).expect("its own bytes"),
        }
        let window = filter.window();
        inserted.retain(|_, began| filter.step_began() - *began <= window);
        assert!(inserted.keys().all(|&hash| filter.contains(&at(hash))), "forgotten early");
        assert!(filter.len() <= filter.slots_in_use());
    }
    assert_small(filter.size_in_bytes());
    assert_eq!(filter.verify(), Ok(()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_header_of_evictions_is_refused_or_sound() {
        let builder = ExpiringFilter::builder(1, 0.1).window(60).when_full(WhenFull::EvictOldest);
        let whole = builder.steps(6).build().expect("sound settings").to_bytes();
        let empty = image::reshape(&whole, 0, 1);
        let mut accepted = 0;
        for evicted in [0, 1, u64::MAX - 1, u64::MAX] {
            for youngest in 0..10 {
                let mut bytes = empty.clone();
                image::set(&mut bytes, &[("evicted", evicted), ("youngest evicted", youngest)]);
                image::reseal(&mut bytes);
                accepted += u32::from(arbitrary_bytes(&bytes, 500).is_ok());
            }
        }
        assert_eq!(accepted, 1 + 3 * 7);
    }
}
