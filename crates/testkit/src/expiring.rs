//! Any operations on a small expiring filter, beside a model that knows the true step of each
//! entry; and any bytes, like [`exercise`](crate::exercise) for filters.
//!
//! The model is a map from entries, computed by [`Addressing`], to the steps of their stamps,
//! without a modulus. After each operation it checks:
//!
//! * answers, ages and `len` are those of the map;
//! * every slot of the table is an entry of the map of the right age, however long it has been
//!   dead, and no live entry is missing or there twice;
//! * one jump in time answers like single steps;
//! * a file answers like the filter, and is the same when it is written again;
//! * an insert that fails changes no byte.
//!
//! Stamps have two or three bits, so that they wrap often. `growing` does the same for a filter
//! that grows, whose entries are prefixes.

mod growing;

use std::collections::BTreeMap;

use koel::{
    ExpiringFilter, ExpiringView, FullError, ImageError, InsertError, MapletEntry, MapletView,
    WhenFull,
};

use crate::addressing::{Addressing, Entry};
use crate::exercise::{assert_small, is_one_line, read_once};
use crate::image;
use crate::keys::{self, all_at, at};

/// Ticks of a step.
const STEP: u64 = 10;
/// The step of a new filter: a multiple of every number of stamps.
const FIRST: u64 = 1 << 20;
/// From so many steps on, a group of buckets only knows that it was swept longer ago.
const FAR: u64 = 1 << 14;
/// The number of hashes in use.
const HASHES: usize = 96;

/// Runs the operations that `bytes` stand for: five bytes of settings, then three for each. The
/// top bit of the second setting chooses a filter that grows.
///
/// # Panics
/// If the filter and the model differ.
pub fn run(bytes: &[u8]) {
    let Some((settings, operations)) = bytes.split_first_chunk::<5>() else { return };
    if settings[1] >= 128 {
        return growing::run(*settings, operations.as_chunks().0);
    }
    let mut model = Model::new(*settings);
    for operation in operations.as_chunks().0 {
        model.step(*operation);
        model.check();
    }
}

/// The image of an empty filter, a few steps before all sweeps are refreshed.
fn at_step(mut image: Vec<u8>, seed: u8) -> Vec<u8> {
    let step = [1_u64, 2, 3, 4][usize::from(seed % 4)] * FAR - 1 - u64::from(seed / 4);
    let [low, high, ..] = step.to_le_bytes();
    image[130..132].copy_from_slice(&[low, high]);
    let buckets = u32::from_le_bytes(image[20..24].try_into().expect("4 bytes")) << image[18];
    let groups = usize::try_from(buckets.div_ceil(16)).expect("small");
    let first = image.len() - 2 * groups.next_multiple_of(8);
    image[first..first + 2 * groups].as_chunks_mut().0.fill([low, high]);
    image::reseal(&mut image);
    image
}

/// A filter, and what it must hold.
struct Model {
    filter: ExpiringFilter,
    addressing: Addressing,
    hashes: Vec<u64>,
    /// The step of the stamp of each entry, also of expired ones.
    steps: BTreeMap<Entry, u64>,
    step: u64,
    began: u64,
    evicted: u64,
    youngest_evicted: Option<u64>,
}

impl Model {
    fn new([steps, shape, rate, when_full, seed]: [u8; 5]) -> Self {
        let steps = [4, 6, 5, 3, 1][usize::from(steps % 5)];
        let rate = [0.1, 0.004, 1e-6][usize::from(rate % 3)];
        let when_full = [WhenFull::Fail, WhenFull::EvictOldest][usize::from(when_full % 2)];
        let builder = ExpiringFilter::builder(1, rate).window(STEP * steps).when_full(when_full);
        let steps = u32::try_from(steps).expect("few");
        let whole = builder.steps(steps).build().expect("sound settings").to_bytes();
        let (segment_bits, buckets) = (shape % 3, 1 + u32::from(shape / 3 % 12));
        let bytes = at_step(image::reshape(&whole, segment_bits, buckets), seed);
        let addressing = Addressing::of(&bytes);
        let first = keys::splitmix64(seed.into());
        let twins = keys::sharing_entry(&addressing, first).take(4);
        let pairs = keys::sharing_pair(&addressing, first).take(HASHES / 4);
        let all = twins.chain(pairs).chain(keys::hashes(seed.into(), HASHES as u64));
        Self {
            filter: ExpiringFilter::from_bytes(&bytes).expect("an empty filter"),
            addressing,
            hashes: all.take(HASHES).collect(),
            steps: BTreeMap::new(),
            step: FIRST,
            began: 0,
            evicted: 0,
            youngest_evicted: None,
        }
    }

    fn step(&mut self, [kind, key, argument]: [u8; 3]) {
        let (index, argument) = (usize::from(key) % HASHES, u64::from(argument));
        match kind % 16 {
            0..4 => self.insert(index, Some(0), false),
            4..6 => self.insert(index, Some(0), true),
            6 => self.insert_with_ttl(index, argument % 80),
            7..9 => (0..argument % 64).for_each(|i| self.insert_run(index, i, argument)),
            9 => self.insert_many(index, argument),
            10 => self.remove(index),
            11 | 12 => self.advance(self.began.saturating_add(argument % (5 * STEP))),
            13 => self.advance(match argument {
                0..4 => u64::MAX - argument,
                4..16 => self.began.saturating_sub(argument * 5),
                _ => self.began.saturating_add(argument * 2),
            }),
            14 if argument < 64 => self.rebase(argument * 1000),
            15 if argument < 16 => {
                self.filter.clear();
                self.steps.clear();
                (self.evicted, self.youngest_evicted) = (0, None);
            }
            _ => self.reload(),
        }
    }

    fn window(&self) -> u64 {
        self.filter.steps()
    }

    /// The age of a live entry.
    fn age(&self, entry: Entry) -> Option<u64> {
        let age = self.step - self.steps.get(&entry)?;
        (age <= self.window()).then_some(age)
    }

    fn insert_run(&mut self, index: usize, i: u64, kind: u64) {
        let index = (index + usize::try_from(i).expect("small")) % HASHES;
        self.insert(index, Some(0), kind % 2 == 1);
    }

    fn insert_with_ttl(&mut self, index: usize, ttl: u64) {
        self.insert(index, self.window().checked_sub(ttl.div_ceil(STEP)), false);
        let window = STEP * self.window();
        if ttl > window {
            let refused = self.filter.insert_with_ttl(&at(self.hashes[index]), ttl);
            assert_eq!(refused, Err(InsertError::TimeToLive { ttl, window }));
        }
    }

    /// Inserts a key that starts with this age, if it is within the window.
    fn insert(&mut self, index: usize, age: Option<u64>, unique: bool) {
        let Some(age) = age else { return };
        let (hash, before) = (self.hashes[index], self.filter.to_bytes());
        let entry = self.addressing.entry(hash);
        let known = self.age(entry);
        let ttl = STEP * (self.window() - age);
        let inserted = match (unique, age) {
            (true, _) => self.filter.insert_unique(&at(hash)).map_err(InsertError::Full),
            (_, 0) => self.filter.insert(&at(hash)).map_err(InsertError::Full),
            _ => self.filter.insert_with_ttl(&at(hash), ttl),
        };
        match inserted {
            Ok(new) => {
                assert_eq!(new, known.is_none(), "new or not");
                let age = match known {
                    Some(known) if unique || known < age => known,
                    _ => age,
                };
                self.steps.insert(entry, self.step - age);
                self.note_evicted(entry);
            }
            Err(full) => {
                assert!(matches!(full, InsertError::Full(FullError::Window { .. })));
                assert!(is_one_line(&full.to_string()));
                assert!(known.is_none() && self.filter.when_full() == WhenFull::Fail);
                assert!(self.filter.to_bytes() == before, "a refusal changed the filter");
                assert!(self.filter.len() >= 4, "full with {} entries", self.filter.len());
            }
        }
    }

    /// Takes the entry that the last insert evicted out of the model.
    fn note_evicted(&mut self, inserted: Entry) {
        if self.filter.evicted() == self.evicted {
            return;
        }
        self.evicted += 1;
        assert_eq!(
            (self.filter.evicted(), self.filter.when_full()),
            (self.evicted, WhenFull::EvictOldest)
        );
        let gone: Vec<Entry> = self
            .hashes
            .iter()
            .map(|&hash| (hash, self.addressing.entry(hash)))
            .filter(|&(hash, entry)| self.age(entry).is_some() && !self.filter.contains(&at(hash)))
            .map(|(_, entry)| entry)
            .collect();
        let entry = *gone.first().expect("an entry was evicted");
        assert!(gone.iter().all(|&other| other == entry) && entry != inserted);
        let age = self.age(entry);
        self.youngest_evicted =
            self.youngest_evicted.map_or(age, |least| age.map(|age| age.min(least)));
        self.steps.remove(&entry);
    }

    /// A batch does what single inserts do.
    fn insert_many(&mut self, index: usize, argument: u64) {
        let count = usize::try_from(argument % 80).expect("small");
        let hashes: Vec<u64> = (index..index + count).map(|i| self.hashes[i % HASHES]).collect();
        let (mut batched, mut added) = (self.filter.clone(), vec![true; count]);
        let done = if argument.is_multiple_of(2) {
            batched.insert_many(&all_at(&hashes), &mut added)
        } else {
            batched.insert_unique_many(&all_at(&hashes), &mut added)
        };
        let mut expected = vec![false; count];
        for (i, found) in expected.iter_mut().enumerate() {
            let (index, len) = ((index + i) % HASHES, self.filter.len());
            let (was_in, evicted) = (self.filter.contains(&at(self.hashes[index])), self.evicted);
            self.insert(index, Some(0), argument % 2 == 1);
            *found = !was_in && (self.filter.len() > len || self.evicted > evicted);
            if !was_in && !*found {
                break;
            }
        }
        assert!(done.is_err() || expected.len() == count);
        assert_eq!(added, expected);
        assert!(batched == self.filter, "a batch differs from single inserts");
    }

    fn remove(&mut self, index: usize) {
        let hash = self.hashes[index];
        let entry = self.addressing.entry(hash);
        let mut removed = [false];
        if index.is_multiple_of(2) {
            removed[0] = self.filter.remove(&at(hash));
        } else {
            self.filter.remove_many(&[at(hash)], &mut removed);
        }
        assert_eq!(removed[0], self.age(entry).is_some());
        if removed[0] {
            self.steps.remove(&entry);
        }
    }

    /// Advances in one jump, and beside it a step at a time, if that does not take long.
    fn advance(&mut self, now: u64) {
        let steps = now.saturating_sub(self.began) / STEP;
        let before = self.filter.len();
        let later: Vec<bool> =
            self.hashes.iter().map(|&hash| self.filter.contains_at(&at(hash), now)).collect();
        let (mut slow, later_len) = (self.filter.clone(), self.filter.len_at(now));
        let expired = self.filter.advance(now);
        self.step += steps;
        self.began += steps * STEP;
        assert_eq!(expired, before - self.filter.len());
        assert_eq!(later_len, self.filter.len(), "at a later tick");
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
    }

    fn rebase(&mut self, now: u64) {
        self.filter.rebase(now);
        self.began = now;
    }

    fn reload(&mut self) {
        let bytes = self.filter.to_bytes();
        let read = ExpiringFilter::from_bytes(&bytes).expect("its own bytes");
        assert!(read == self.filter && read.to_bytes() == bytes);
        self.filter = read;
    }

    fn check(&self) {
        let filter = &self.filter;
        let bytes = filter.to_bytes();
        let view = ExpiringView::open(&bytes).expect("its own bytes");
        assert_eq!((view.verify(), bytes.len()), (Ok(()), filter.size_in_bytes()));
        let live = self.steps.keys().filter(|&&entry| self.age(entry).is_some()).count() as u64;
        assert_eq!([filter.len(), view.len()], [live; 2]);
        assert_eq!((filter.step_began(), filter.evicted()), (self.began, self.evicted));
        assert_eq!(filter.youngest_evicted(), self.youngest_evicted);
        let keys = all_at(&self.hashes);
        let (mut found, mut ages) = (vec![true; HASHES], vec![Some(9); HASHES]);
        filter.contains_many(&keys, &mut found);
        view.age_many(&keys, &mut ages);
        for (i, &hash) in self.hashes.iter().enumerate() {
            let age = self.age(self.addressing.entry(hash));
            assert_eq!([filter.age(&keys[i]), view.age(&keys[i]), ages[i]], [age; 3]);
            assert_eq!([filter.contains(&keys[i]), found[i]], [age.is_some(); 2]);
        }
        self.audit(&bytes);
    }

    /// Reads every slot, as if it were one of a maplet.
    fn audit(&self, image: &[u8]) {
        let stamps = Stamps::of(image);
        let (mut seen, mut live) = (BTreeMap::new(), 0);
        for slot in stamps.view().entries() {
            let entry = self.addressing.entry_in(slot.bucket, slot.fingerprint);
            let step = self.steps.get(&entry).expect("an entry that was inserted");
            let age = stamps.age(&slot);
            let is_far = age >= FAR - 8 && self.step - step > age;
            assert!(is_far || age == self.step - step, "another age");
            assert!(seen.insert(entry, ()).is_none(), "an entry is there twice");
            live += u64::from(self.step - step <= self.window());
        }
        assert_eq!(live, self.filter.len(), "a live entry is gone");
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
        let field = |at: usize| u64::from_le_bytes(image[at..at + 8].try_into().expect("8 bytes"));
        let records = usize::try_from(field(96)).expect("small");
        let (table, records) = image.split_at(image.len() - 16 * records);
        let sweeps = records.as_chunks().0.iter().copied().map(u16::from_le_bytes).collect();
        let step = u16::from_le_bytes([image[130], image[131]]);
        let mut maplet = table.to_vec();
        // Kind, step, counters, counter limit, and all that is said of time.
        maplet[12] = 1;
        [130..136, 96..112, 152..173].into_iter().for_each(|field| maplet[field].fill(0));
        image::set(&mut maplet, 80, field(88));
        image::reseal(&mut maplet);
        Self { maplet, sweeps, step, window: image[168].into() }
    }

    fn view(&self) -> MapletView<'_> {
        MapletView::open(&self.maplet).expect("the same table")
    }

    /// How many steps ago the entry of a slot came: as docs/FORMAT.md says.
    fn age(&self, slot: &MapletEntry) -> u64 {
        let largest = (1_u64 << self.maplet[17]) - 1;
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
mod tests;
