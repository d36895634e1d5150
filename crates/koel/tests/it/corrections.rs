//! Corrections: a key that was refuted is not reported, and no member is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use koel::{
    CuckooFilter, FilterView, FullError, ImageError, Merge, MergeError, Prefer, RefuteError,
};
use testkit::audit::audit;
use testkit::{image, keys};

/// A filter, the exact multiset of the keys that are in, and the keys that were refuted since they
/// were in.
struct Refuted {
    filter: CuckooFilter,
    held: BTreeMap<u64, u64>,
    absent: BTreeSet<u64>,
}

impl Refuted {
    fn new(filter: CuckooFilter) -> Self {
        Self { filter, held: BTreeMap::new(), absent: BTreeSet::new() }
    }

    /// Makes an operation that the number chooses, mostly with the key that it names.
    fn step(&mut self, number: u64, other: &mut Self) {
        let key = number >> 8 & 0x3ff;
        match number % 64 {
            0..24 => self.insert(key),
            24..34 => self.remove(key),
            34..50 => self.refute(key),
            50..52 => self.filter.shrink_to_fit(),
            // Refused by a filter of one size that is full: it changes nothing.
            52 => self.filter.reserve(key).unwrap_or(()),
            53 if key.is_multiple_of(16) => {
                self.filter.clear();
                self.held.clear();
                self.absent.clear();
            }
            54..58 => {
                self.filter = CuckooFilter::from_bytes(&self.filter.to_bytes()).unwrap();
            }
            58 => std::mem::swap(self, other),
            59 => self.merge(other),
            60..62 => self.insert_many(key),
            62 => self.insert_unique(key),
            63 => self.refute_many(key),
            _ => {}
        }
    }

    fn hold(&mut self, key: u64, copies: u64) {
        *self.held.entry(key).or_insert(0) += copies;
        self.absent.remove(&key);
    }

    fn insert(&mut self, key: u64) {
        if self.filter.insert(&key).is_ok() {
            self.hold(key, 1);
        }
    }

    fn insert_many(&mut self, first: u64) {
        let (keys, before): (Vec<u64>, u64) = ((first..first + 10).collect(), self.filter.len());
        let result = self.filter.insert_many(&keys);
        let done = self.filter.len() - before;
        assert!(result.is_ok() == (done == 10));
        (first..first + done).for_each(|key| self.hold(key, 1));
    }

    /// A refuted key is not reported, so it is added.
    fn insert_unique(&mut self, key: u64) {
        let was_reported = self.filter.contains(&key);
        if self.filter.insert_unique(&key).is_ok_and(|is_new| is_new) {
            assert!(!was_reported);
            self.hold(key, 1);
        }
    }

    fn remove(&mut self, key: u64) {
        let Some(copies) = self.held.get_mut(&key) else { return };
        *copies -= 1;
        self.held.retain(|_, copies| *copies > 0);
        assert!(self.filter.remove(&key));
    }

    fn refute(&mut self, key: u64) {
        if self.held.contains_key(&key) {
            return;
        }
        let was_reported = self.filter.contains(&key);
        assert_eq!(self.filter.refute(&key), Ok(was_reported));
        if was_reported {
            self.absent.insert(key);
            assert!(!self.filter.remove(&key) && self.filter.count(&key) == 0);
            assert_eq!(self.filter.refute(&key), Ok(false));
        }
    }

    fn refute_many(&mut self, first: u64) {
        let absent = (first..first + 10).filter(|key| !self.held.contains_key(key));
        let keys: Vec<u64> = absent.collect();
        let reported: Vec<u64> =
            keys.iter().copied().filter(|key| self.filter.contains(key)).collect();
        assert_eq!(self.filter.refute_many(&keys), Ok(reported.len() as u64));
        self.absent.extend(reported);
    }

    /// A correction stays if the other filter does not report its key.
    fn merge(&mut self, other: &Self) {
        let ours = self.filter.clone();
        if self.filter.merge(&other.filter, Merge::Sum).is_err() {
            assert!(self.filter == ours);
            return;
        }
        other.held.iter().for_each(|(&key, copies)| self.hold(key, *copies));
        self.absent.retain(|key| !other.filter.contains(key));
        self.absent.extend(other.absent.iter().filter(|key| !ours.contains(*key)));
    }

    fn check(&self) {
        let Self { filter, held, absent } = self;
        assert!(held.iter().all(|(key, &copies)| filter.count(key) >= copies));
        assert!(held.keys().all(|key| filter.contains(key)));
        assert!(!absent.iter().any(|key| filter.contains(key)));
        assert_eq!(filter.corrections(), absent.len() as u64);
    }
}

#[test]
fn no_member_is_lost_and_no_refuted_key_is_reported_whatever_happens() {
    for seed in 0..60 {
        let prefer = if seed % 2 == 0 { Prefer::Small } else { Prefer::Fast };
        let builder = CuckooFilter::builder(100, 0.03).prefer(prefer).seed(seed);
        let builder = if seed % 3 == 0 { builder } else { builder.growable() };
        let [mut one, mut other] = [0; 2].map(|_| Refuted::new(builder.build().unwrap()));
        for number in keys::hashes(seed, 1200) {
            one.step(number, &mut other);
            one.check();
        }
        let (mut filter, keys): (_, Vec<u64>) = (one.filter, (0..1024).collect());
        let mut found = vec![false; keys.len()];
        filter.contains_many(&keys, &mut found);
        assert!(keys.iter().zip(found).all(|(key, found)| found == filter.contains(key)));
        assert_eq!(filter.verify(), Ok(()));
        assert_eq!(audit(&filter.to_bytes()), Ok(()));
        // The last, because copies that entries share do not add up.
        if filter.merge(&other.filter, Merge::Max).is_ok() {
            assert!(one.held.keys().chain(other.held.keys()).all(|key| filter.contains(key)));
        }
    }
}

#[test]
fn a_million_allowed_keys_need_as_many_corrections_as_are_reported() {
    let mut filter = CuckooFilter::builder(100_000, 0.001).build().unwrap();
    (0..100_000_u64).for_each(|key| filter.insert(&key).unwrap());
    let size = filter.size_in_bytes();
    let allowed = 100_000..1_100_000_u64;
    let reported = allowed.clone().filter(|key| filter.contains(key)).count();
    let refuted = allowed.clone().filter(|key| filter.refute(key).unwrap()).count();
    assert_eq!((refuted, filter.corrections()), (reported, reported as u64));
    assert!((800..1200).contains(&refuted));
    assert_eq!(filter.size_in_bytes(), size + 8 * refuted);
    assert!(!allowed.clone().any(|key| filter.contains(&key)));
    assert!((0..100_000_u64).all(|key| filter.contains(&key)));
}

#[test]
fn corrections_end_at_the_number_of_slots() {
    let mut filter = CuckooFilter::builder(1, 0.03).build().unwrap();
    filter.insert(&0_u64).unwrap();
    let slots = filter.slots();
    let mut wrong = (1_u64..).filter(|key| filter.contains(key));
    let first: Vec<u64> = (0..slots).filter_map(|_| wrong.next()).collect();
    let last = wrong.next().unwrap();
    assert!(first.iter().all(|key| filter.refute(key) == Ok(true)));
    let before = filter.to_bytes();
    assert_eq!(filter.refute(&last), Err(FullError::Corrections { limit: slots }));
    assert_eq!(filter.to_bytes(), before);
    assert!(filter.contains(&0_u64) && filter.contains(&last));
}

/// The bound holds whichever way they come: a union, a smaller table, and a forged file.
#[test]
fn no_filter_has_more_corrections_than_slots() {
    let built = |keys: Range<u64>| {
        let mut filter = CuckooFilter::builder(100, 0.03).growable().build().unwrap();
        filter.extend(keys);
        filter
    };
    let refuted = |filter: &mut CuckooFilter, first: u64, most: usize| {
        let wrong = (first..).filter(|key| filter.contains(key));
        let wrong: Vec<u64> = wrong.take(most).collect();
        assert!(wrong.iter().all(|key| filter.refute(key) == Ok(true)));
    };
    let (mut one, mut other) = (built(0..50), built(50..51));
    let slots = usize::try_from(one.slots()).unwrap();
    refuted(&mut one, 1000, slots);
    // More than those of the first that the second reports.
    refuted(&mut other, 1 << 40, 20);
    let before = one.to_bytes();
    let limit = one.slots();
    let refused = one.merge(&other, Merge::Max);
    assert_eq!(refused, Err(MergeError::Full(FullError::Corrections { limit })));
    assert_eq!(one.to_bytes(), before);

    let mut large = built(0..10_000);
    refuted(&mut large, 1 << 20, 2000);
    (0..10_000_u64).for_each(|key| assert!(large.remove(&key)));
    assert_eq!(large.corrections(), 2000);
    large.shrink_to_fit();
    assert!(large.slots() >= 2000 && large.slots() < 8000, "{large:?}");
    assert_eq!(CuckooFilter::from_bytes(&large.to_bytes()).as_ref(), Ok(&large));

    let mut forged = before;
    forged.extend_from_slice(&u64::MAX.to_le_bytes());
    image::set(&mut forged, &[("corrections", limit + 1)]);
    image::reseal(&mut forged);
    assert_eq!(
        CuckooFilter::from_bytes(&forged).unwrap_err(),
        ImageError::Field { field: "corrections", got: limit + 1 }
    );
    assert_eq!(audit(&forged), Err("corrections"));
}

#[test]
fn many_keys_are_refuted_as_one_after_the_other_or_not_at_all() {
    let mut many = CuckooFilter::builder(1000, 0.03).build().unwrap();
    (0..1000_u64).for_each(|key| many.insert(&key).unwrap());
    let mut single = many.clone();
    // Each key twice, some of them refuted before.
    let absent: Vec<u64> = (1000..3000).chain(1000..3000).collect();
    for filter in [&mut many, &mut single] {
        assert!((1000..1500_u64).all(|key| filter.refute(&key).is_ok()));
    }
    let made = absent.iter().filter(|key| single.refute(*key).unwrap()).count();
    assert!(made > 0);
    assert_eq!(many.refute_many(&absent), Ok(made as u64));
    assert_eq!(many.refute_many(&absent), Ok(0));
    assert!(many == single && many.to_bytes() == single.to_bytes());

    let (before, limit) = (many.to_bytes(), many.slots());
    let too_many: Vec<u64> = (3000..200_000).collect();
    let full = FullError::Corrections { limit };
    assert_eq!(many.refute_many(&too_many), Err(RefuteError::Full(full)));
    assert_eq!(many.force_refute_many(&too_many), Err(full));
    assert_eq!(many.to_bytes(), before);
    assert_eq!(many.refute_many::<u64>(&[]), Ok(0));
}

/// Ten lines of a list given to `refute` by mistake would hide ten names.
#[test]
fn keys_that_are_in_are_not_refuted_by_accident() {
    for rate in [0.03, 1e-3, 1e-6] {
        let mut filter = CuckooFilter::builder(10_000, rate).build().unwrap();
        (0..10_000_u64).for_each(|key| filter.insert(&key).unwrap());
        let before = filter.to_bytes();
        let expected = |asked: usize| asked as f64 * filter.false_positive_rate();
        // Among absent keys, ten times as many as chance allows.
        for absent in [0, 100, 30_000] {
            let likely = expected(absent + 100);
            let is_many = |it: &u32| f64::from(*it) > 10.0 * (1.0 + likely.sqrt());
            let listed = u64::from((10_u32..).find(is_many).unwrap());
            let keys: Vec<u64> = (0..listed).chain(10_000..10_000 + absent as u64).collect();
            let mut copy = filter.clone();
            let error = copy.refute_many(&keys).unwrap_err();
            let RefuteError::Members { asked, reported, expected } = error else {
                panic!("{error}")
            };
            assert_eq!(asked, keys.len() as u64);
            let likely = keys.len() as f64 * filter.false_positive_rate();
            let is_rounded_up = (expected as f64 - likely - 0.5).abs() <= 0.5;
            assert!(reported >= listed && is_rounded_up, "{error}");
            assert_eq!(copy.to_bytes(), before);
            assert_eq!(copy.force_refute_many(&keys), Ok(reported));
            assert!(keys.iter().all(|key| !copy.contains(key)));
        }
        // One that somebody names, and a handful, as often as it comes.
        let mut copy = filter.clone();
        assert_eq!(copy.refute_many(&[1_u64; 100]), Ok(1));
        assert_eq!(copy.refute_many(&[2_u64, 3, 4, 5]), Ok(4));
        assert!(copy.refute_many(&(6..16_u64).collect::<Vec<_>>()).is_err());
        assert!(copy.contains(&6_u64) && !copy.contains(&5_u64));
    }
}

/// Of 4,000 batches of absent keys, none is refused.
#[test]
fn absent_keys_are_refuted_in_batches_of_any_size() {
    let mut filter = CuckooFilter::builder(1000, 0.03).build().unwrap();
    (0..1000_u64).for_each(|key| filter.insert(&key).unwrap());
    let mut first = 1000_u64;
    for size in [1, 2, 5, 10, 30, 100, 300, 1000].into_iter().cycle().take(4000) {
        let reported = (first..first + size).filter(|key| filter.contains(key)).count() as u64;
        assert_eq!(filter.check_refutation(size, reported), Ok(()), "{size} from {first}");
        first += size;
    }
}

#[test]
fn a_list_that_is_built_anew_keeps_its_corrections_but_those_of_its_own_keys() {
    let mut filter = CuckooFilter::builder(1000, 0.03).build().unwrap();
    (0..1000_u64).for_each(|key| filter.insert(&key).unwrap());
    let absent: Vec<u64> = (1000..9000).collect();
    let made = filter.refute_many(&absent).unwrap();
    let mut same = filter.clone();
    same.clear_keys();
    assert_eq!((same.len(), same.corrections()), (0, made));
    assert!(absent.iter().all(|key| !same.contains(key)));
    FilterView::open(&same.to_bytes()).unwrap().verify().unwrap();
    same.insert_many(&(0..1000_u64).collect::<Vec<_>>()).unwrap();
    assert!(same.holds_the_same(&filter).unwrap());
    // Another list, with some names that were absent.
    filter.clear_keys();
    filter.insert_many(&(500..1500_u64).collect::<Vec<_>>()).unwrap();
    assert!((500..1500_u64).all(|key| filter.contains(&key)));
    let reported = |key: &&u64| same.corrections_beyond(&filter) > 0 && filter.contains(*key);
    assert!(filter.corrections() < made && filter.corrections() > made / 2);
    assert!(absent[500..].iter().filter(reported).count() < 8000 * 3 / 100 * 2);
}
