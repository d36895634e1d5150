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
//! * a key that was inserted has an entry with its stamp or a younger one;
//! * answers, ages and `len` are those of the entries, and so no key is forgotten;
//! * a jump in time answers like single steps, a batch and a file like the filter;
//! * an insert that fails changes no byte of a filter that does not grow.
//!
//! Stamps have two or three bits, so that they wrap often.

use std::collections::BTreeMap;

use koel::{
    ExpiringFilter, ExpiringView, FullError, ImageError, InsertError, KeyHash, MapletView, WhenFull,
};

use crate::addressing::Addressing;
use crate::audit::Name;
use crate::exercise::{Subject, asked, is_one_line};
use crate::image;
use crate::keys::{self, at};

/// Ticks of a step.
const STEP: u64 = 10;
/// The step of a new filter: a multiple of every number of stamps.
const FIRST: u64 = 1 << 20;
/// From so many steps on, a group of buckets only knows that it was swept longer ago.
const FAR: u64 = 1 << 14;
/// The numbers of hashes in use, without and with growth.
const HASHES: [usize; 2] = [96, 320];

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
    keys: Vec<KeyHash>,
    /// All that the filter can know of each key.
    names: Vec<Name>,
    entries: Entries,
    step: u64,
    began: u64,
    evicted: u64,
    youngest_evicted: Option<u64>,
}

/// What an operation did besides time, growth and evictions.
enum Change {
    Nothing,
    Cleared,
    /// The key with this number is there for that step.
    Inserted(usize, u64),
    Removed(usize),
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
        let all = twins.chain(pairs).chain(keys::hashes(seed.into(), u64::MAX));
        let (keys, names) =
            all.take(count).map(|hash| (at(hash), Name::of_hash(&bytes, hash))).unzip();
        Self {
            filter: ExpiringFilter::from_bytes(&bytes).expect("an empty filter"),
            grows,
            keys,
            names,
            entries: Entries::new(),
            step: FIRST,
            began: 0,
            evicted: 0,
            youngest_evicted: None,
        }
    }

    fn step(&mut self, [kind, key, argument]: [u8; 3]) {
        let (index, argument) = (usize::from(key) % self.keys.len(), u64::from(argument));
        let change = match kind % 16 {
            0..3 => self.insert_run(index, 1, argument % 2 == 1),
            3..8 => {
                let count = if self.grows { argument } else { argument % 40 };
                self.insert_run(index, count, argument % 2 == 1)
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
                Change::Nothing
            }
            14 if argument < 64 => {
                self.began = argument * 1000;
                self.filter.rebase(self.began);
                Change::Nothing
            }
            15 if argument < 16 => {
                self.filter.clear();
                (self.evicted, self.youngest_evicted) = (0, None);
                Change::Cleared
            }
            _ => self.reload(),
        };
        self.check(&change);
    }

    /// The age of the youngest entry of a key, if it is live.
    fn age(&self, index: usize) -> Option<u64> {
        let name = &self.names[index];
        let matches = related(&self.entries, name).iter().filter(|(entry, _)| entry.has(name));
        let age = matches.map(|&(_, step)| self.step - step).min();
        age.filter(|&age| age <= self.filter.steps())
    }

    /// Inserts so many keys, and beside that a batch of them.
    fn insert_run(&mut self, first: usize, count: u64, unique: bool) -> Change {
        let run: Vec<usize> = (0..count).zip(first..).map(|(_, i)| i % self.keys.len()).collect();
        let keys: Vec<KeyHash> = run.iter().map(|&index| self.keys[index]).collect();
        let (mut batched, mut added) = (self.filter.clone(), vec![true; keys.len()]);
        let done = if unique {
            batched.insert_unique_many(&keys, &mut added)
        } else {
            batched.insert_many(&keys, &mut added)
        };
        for (i, (&index, key)) in run.iter().zip(&keys).enumerate() {
            let (known, before) = (self.age(index), self.filter.to_bytes());
            let inserted =
                if unique { self.filter.insert_unique(key) } else { self.filter.insert(key) };
            let Ok(new) = inserted.map_err(|full| self.check_refusal(full, known, &before)) else {
                assert!(done.is_err() && !added[i..].contains(&true));
                break;
            };
            assert_eq!([new, added[i]], [known.is_none(); 2]);
            let is_stamped = !unique || new;
            self.check(&if is_stamped { self.inserted(index, 0) } else { Change::Nothing });
        }
        assert!(batched == self.filter, "a batch differs from single inserts");
        Change::Nothing
    }

    fn inserted(&self, index: usize, age: u64) -> Change {
        Change::Inserted(index, self.step - age)
    }

    fn insert_with_ttl(&mut self, index: usize, ttl: u64) -> Change {
        let (known, before) = (self.age(index), self.filter.to_bytes());
        let age = self.filter.steps().checked_sub(ttl.div_ceil(STEP));
        match (self.filter.insert_with_ttl(&self.keys[index], ttl), age) {
            (Ok(new), Some(age)) => {
                assert_eq!(new, known.is_none());
                return self.inserted(index, age);
            }
            (Err(InsertError::Full(full)), Some(_)) => self.check_refusal(full, known, &before),
            (refused, _) => {
                let window = STEP * self.filter.steps();
                assert_eq!(refused, Err(InsertError::TimeToLive { ttl, window }));
            }
        }
        Change::Nothing
    }

    /// Eight keys with the same buckets may meet in tables of so few.
    fn check_refusal(&self, full: FullError, known: Option<u64>, before: &[u8]) {
        assert!(is_one_line(&full.to_string()));
        assert!(known.is_none() && self.filter.when_full() == WhenFull::Fail);
        if !self.grows {
            assert!(matches!(full, FullError::Window { .. }), "{full}");
            assert!(self.filter.to_bytes() == before, "a refusal changed the filter");
            assert!(self.filter.len() >= 4, "full with {} entries", self.filter.len());
        }
    }

    fn remove(&mut self, index: usize) -> Change {
        let (key, mut removed) = (self.keys[index], [false]);
        if index.is_multiple_of(2) {
            removed[0] = self.filter.remove(&key);
        } else {
            self.filter.remove_many(&[key], &mut removed);
        }
        assert_eq!(removed[0], self.age(index).is_some());
        Change::Removed(index)
    }

    /// Advances in one jump, and beside it a step at a time, if that does not take long.
    fn advance(&mut self, now: u64) -> Change {
        let steps = now.saturating_sub(self.began) / STEP;
        let (before, later_len) = (self.filter.len(), self.filter.len_at(now));
        let at_later = |key| self.filter.contains_at(key, now);
        let later: Vec<bool> = self.keys.iter().map(at_later).collect();
        let mut slow = self.filter.clone();
        let expired = self.filter.advance(now);
        self.step += steps;
        self.began += steps * STEP;
        assert_eq!([expired, later_len], [before - self.filter.len(), self.filter.len()]);
        let is_short = steps < 300;
        for step in (1..=steps).take_while(|_| is_short) {
            slow.advance(slow.step_began() + STEP + step % STEP);
        }
        let counts = |filter: &ExpiringFilter| (filter.len(), filter.step_began());
        assert!(!is_short || counts(&slow) == counts(&self.filter));
        for (key, later) in self.keys.iter().zip(later) {
            assert_eq!(self.filter.contains(key), later, "at a later tick");
            let is_same = slow.age(key) == self.filter.age(key);
            assert!(!is_short || is_same, "a jump differs from steps");
        }
        Change::Nothing
    }

    fn reload(&mut self) -> Change {
        let bytes = self.filter.to_bytes();
        let read = ExpiringFilter::from_bytes(&bytes).expect("its own bytes");
        assert!(read == self.filter && read.to_bytes() == bytes);
        self.filter = read;
        Change::Nothing
    }

    /// The entries that the bytes have, read as those of a maplet whose values are the stamps.
    /// docs/FORMAT.md says how many steps ago one came, from when its group of buckets was swept.
    fn read_entries(&self, image: &[u8]) -> Entries {
        let sweeps = image::section_bytes(image, "sweeps");
        let swept = image[sweeps.clone()].as_chunks().0;
        let mut maplet = image[..sweeps.start].to_vec();
        image::zero(&mut maplet, &image::TIME);
        let [now, window, bits, keys] =
            ["step", "steps", "value bits", "entries"].map(|name| image::read(image, name));
        image::set(&mut maplet, &[("kind", 1), ("keys", keys)]);
        image::reseal(&mut maplet);
        let largest = (1_u64 << bits) - 1;
        let mut entries = Entries::new();
        for slot in MapletView::open(&maplet).expect("the same table").entries() {
            let swept = swept[usize::try_from(slot.bucket / 16).expect("small")];
            let swept = u64::from(u16::from_le_bytes(swept));
            let last = swept + largest - window;
            let since = now.wrapping_sub(swept) & 0xffff;
            let age = since + (last.wrapping_sub(slot.value) & largest);
            let age = age.checked_sub(largest - window).expect("a step that is over");
            let name = Name::in_slot(&maplet, slot.bucket, slot.fingerprint);
            let twins = entries.entry((name.base, name.core)).or_default();
            let is_twice = twins.iter().any(|(other, _)| *other == name);
            assert!(self.grows || !is_twice, "an entry is there twice");
            twins.push((name, self.step - age));
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
        match *change {
            Change::Nothing => {}
            Change::Cleared => assert!(self.entries.is_empty()),
            Change::Inserted(index, step) => {
                assert!(self.age(index).is_some_and(|age| age <= self.step - step), "forgotten");
            }
            Change::Removed(index) => assert!(self.age(index).is_none()),
        }
        let all = || self.entries.values().flatten();
        let live = all().filter(|(_, step)| self.step - step <= self.filter.steps());
        let counts = [self.filter.len(), view.len(), self.filter.slots_in_use()];
        let live = live.count() as u64;
        assert_eq!(counts, [live, live, all().count() as u64]);
        assert_eq!((self.filter.step_began(), self.filter.evicted()), (self.began, self.evicted));
        assert_eq!(self.filter.youngest_evicted(), self.youngest_evicted);
        let (mut found, mut ages) = (vec![true; self.keys.len()], vec![Some(9); self.keys.len()]);
        self.filter.contains_many(&self.keys, &mut found);
        view.age_many(&self.keys, &mut ages);
        for (index, key) in self.keys.iter().enumerate() {
            let age = self.age(index);
            assert_eq!([self.filter.age(key), view.age(key), ages[index]], [age; 3]);
            assert_eq!([self.filter.contains(key), found[index]], [age.is_some(); 2]);
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
            let is_new = matches!(change, Change::Inserted(index, its)
                if its == step && name.has(&self.names[*index]));
            assert!(was_there || is_new, "an entry from nowhere: {name:?}");
        }
    }

    /// No live entry is gone, unless it was removed or evicted.
    fn check_lasting(&mut self, before: &Entries, change: &Change) {
        let may_go = |name: &Name| match change {
            Change::Removed(index) => name.has(&self.names[*index]),
            Change::Cleared => true,
            Change::Nothing | Change::Inserted(..) => false,
        };
        let was_lost = |(name, step): &&(Name, u64)| {
            self.step - step <= self.filter.steps()
                && !may_go(name)
                && !is_covered(&self.entries, name, *step)
        };
        let lost: Vec<&(Name, u64)> = before.values().flatten().filter(was_lost).collect();
        let may_evict = matches!(change, Change::Inserted(..))
            && self.filter.when_full() == WhenFull::EvictOldest;
        if may_evict && self.filter.evicted() > self.evicted {
            assert!(lost.len() == 1, "{} entries for one that was evicted", lost.len());
            let age = self.step - lost[0].1;
            self.evicted += 1;
            self.youngest_evicted = Some(self.youngest_evicted.map_or(age, |it| it.min(age)));
        } else {
            assert!(lost.is_empty(), "live entries are gone: {lost:?}");
        }
    }
}

impl Subject for ExpiringFilter {
    const READ: fn(&[u8]) -> Result<Self, ImageError> = Self::from_bytes;
    const WRITE: fn(&Self) -> Vec<u8> = Self::to_bytes;
    const VERIFY: fn(&Self) -> Result<(), ImageError> = Self::verify;

    fn question(bytes: &[u8]) -> Result<(), ImageError> {
        let view = ExpiringView::open(bytes)?;
        let keys = asked();
        let mut found = vec![false; keys.len()];
        view.contains_many(&keys, &mut found);
        for (key, found) in keys.iter().zip(found) {
            assert_eq!([view.contains(key), view.age(key).is_some()], [found; 2]);
            assert!(!view.contains_at(key, u64::MAX) || found);
        }
        assert!(view.steps() <= 200 && view.step_ticks() > 0 && view.window() > 0);
        view.verify()
    }

    /// Keys are in for their window.
    fn exercise(&mut self, _: u64, choices: impl Iterator<Item = u64>) {
        let mut inserted: BTreeMap<u64, u64> = BTreeMap::new();
        for choice in choices {
            let hash = keys::splitmix64((choice >> 8) % 40);
            let (began, evicted) = (self.step_began(), self.evicted());
            match choice % 8 {
                0..4 => match self.insert(&at(hash)) {
                    // A full counter does not tell whether an entry was evicted.
                    Ok(_) if self.evicted() == evicted && evicted < u64::MAX => {
                        inserted.insert(hash, began);
                    }
                    Ok(_) => inserted.clear(),
                    Err(full) => assert!(is_one_line(&full.to_string())),
                },
                4 | 5 => {
                    let steps = (choice >> 16) % 4;
                    self.advance(began.saturating_add(steps.saturating_mul(self.step_ticks())));
                }
                6 if self.remove(&at(hash)) => inserted.clear(),
                _ => *self = Self::from_bytes(&self.to_bytes()).expect("its own bytes"),
            }
            let window = self.window();
            inserted.retain(|_, began| self.step_began() - *began <= window);
            assert!(inserted.keys().all(|&hash| self.contains(&at(hash))), "forgotten early");
            assert!(self.len() <= self.slots_in_use());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exercise::arbitrary_bytes;

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
                accepted += u32::from(arbitrary_bytes::<ExpiringFilter>(&bytes, 500).is_ok());
            }
        }
        assert_eq!(accepted, 1 + 3 * 7);
    }
}
