//! One filter shared by many threads: no false negatives while entries move, exact counts of
//! copies, and the answers of a plain filter.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use koel::{Builder, ConcurrentFilter, ConvertError, CuckooFilter, FullError, Merge, Prefer};
use proptest::prelude::*;
use testkit::addressing::{Addressing, Entry};
use testkit::audit::audit;
use testkit::cases::{Case, Op, Setup};
use testkit::keys::{self, all_at, at};
use testkit::threads::SetOnDrop;

use crate::errors::asked_for;

const PREFERENCES: [Prefer; 2] = [Prefer::Small, Prefer::Fast];
/// One builder for each cell width: 32 and 64 bits.
const RATES: [f64; 2] = [0.03, 0.001];

fn builders(capacity: u64) -> impl Iterator<Item = Builder<ConcurrentFilter>> {
    let rates = move |prefer| {
        RATES.map(|rate| ConcurrentFilter::builder(capacity, rate).prefer(prefer).seed(3))
    };
    PREFERENCES.into_iter().flat_map(rates)
}

fn filters(capacity: u64) -> impl Iterator<Item = ConcurrentFilter> {
    builders(capacity).map(|builder| builder.build().unwrap())
}

/// Checks the filter's invariants, those of the format, and that all sizes add up.
fn assert_sound(filter: &ConcurrentFilter) -> CuckooFilter {
    let snapshot = filter.snapshot().unwrap();
    assert_eq!(snapshot.verify(), Ok(()));
    assert_eq!(audit(&snapshot.to_bytes()), Ok(()));
    assert_eq!((snapshot.len(), snapshot.slots_in_use()), (filter.len(), filter.slots_in_use()));
    assert_eq!(snapshot.distinct_counters(), filter.distinct_counters());
    snapshot
}

mod alone {
    //! On one thread, a concurrent filter behaves like a plain filter.

    use super::*;

    /// The number of copies by entry: keys that share an entry are indistinguishable.
    struct Multiset {
        filter: ConcurrentFilter,
        hashes: Vec<u64>,
        addressing: Addressing,
        held: BTreeMap<Entry, u64>,
        copies: Vec<u64>,
        promises: bool,
    }

    impl Multiset {
        fn new(setup: &Setup) -> Option<Self> {
            let filter = setup.build();
            let (hashes, addressing) = (setup.hashes(&filter), Addressing::of(&filter.to_bytes()));
            let promises = setup.promises_capacity();
            let filter = ConcurrentFilter::try_from(filter).ok()?;
            let copies = vec![0; hashes.len()];
            Some(Self { filter, hashes, addressing, held: BTreeMap::new(), copies, promises })
        }

        fn held(&self, key: u8) -> u64 {
            let entry = self.addressing.entry(self.hashes[usize::from(key)]);
            self.held.get(&entry).copied().unwrap_or(0)
        }

        fn hold(&mut self, key: u8) {
            let key = usize::from(key);
            *self.held.entry(self.addressing.entry(self.hashes[key])).or_default() += 1;
            self.copies[key] += 1;
        }

        fn insert(&mut self, key: u8) -> Result<(), FullError> {
            let inserted = self.filter.insert(&at(self.hashes[usize::from(key)]));
            match inserted {
                Ok(()) => self.hold(key),
                Err(full) => {
                    assert_eq!(
                        matches!(full, FullError::Slots { .. }),
                        self.held(key) == 0,
                        "{full}"
                    );
                    let distinct = self.held.values().filter(|&&copies| copies > 0).count() as u64;
                    assert!(!self.promises || distinct >= self.filter.capacity(), "{full}");
                }
            }
            inserted
        }

        fn insert_unique(&mut self, key: u8) {
            match self.filter.insert_unique(&at(self.hashes[usize::from(key)])) {
                Ok(added) => {
                    assert_eq!(added, self.held(key) == 0);
                    if added {
                        self.hold(key);
                    }
                }
                Err(full) => {
                    assert!(matches!(full, FullError::Slots { .. }) && self.held(key) == 0)
                }
            }
        }

        /// Removes only keys that were inserted, or that the filter reports as absent.
        fn remove(&mut self, key: u8) {
            let number = usize::from(key);
            if self.copies[number] > 0 || self.held(key) == 0 {
                let removed = self.filter.remove(&at(self.hashes[number]));
                assert_eq!(removed, self.held(key) > 0);
                if removed {
                    *self.held.entry(self.addressing.entry(self.hashes[number])).or_default() -= 1;
                    self.copies[number] -= 1;
                }
            }
        }

        fn apply(&mut self, op: &Op) {
            let run = |first: u8, count: u8| (0..count).map(move |i| first.wrapping_add(i));
            match *op {
                Op::Insert(key) => self.insert(key).unwrap_or(()),
                Op::InsertTimes(key, times) => {
                    let _stopped = (0..times).try_for_each(|_| self.insert(key)).is_err();
                }
                Op::InsertRun(first, count) => {
                    let _stopped = run(first, count).try_for_each(|key| self.insert(key)).is_err();
                }
                Op::InsertUnique(key) => self.insert_unique(key),
                Op::Remove(key) => self.remove(key),
                Op::RemoveRun(first, count) => run(first, count).for_each(|key| self.remove(key)),
                Op::Reload => {
                    let filter = self.filter.snapshot().unwrap();
                    self.filter = ConcurrentFilter::try_from(filter).unwrap();
                }
                _ => self.check(),
            }
        }

        fn check(&self) {
            let snapshot = assert_sound(&self.filter);
            assert_eq!(self.filter.len(), self.held.values().sum::<u64>());
            let (mut found, mut counts) = (vec![false; 256], vec![0; 256]);
            self.filter.contains_many(&all_at(&self.hashes), &mut found);
            self.filter.count_many(&all_at(&self.hashes), &mut counts);
            for (key, &hash) in (0..=u8::MAX).zip(&self.hashes) {
                let held = self.held(key);
                assert_eq!(self.filter.count(&at(hash)), held);
                assert_eq!(self.filter.contains(&at(hash)), held > 0);
                assert_eq!((found[usize::from(key)], counts[usize::from(key)]), (held > 0, held));
                assert_eq!(snapshot.count(&at(hash)), held);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn after_any_operations_it_equals_its_multiset(
            bytes in prop::collection::vec(any::<u8>(), 6..200),
        ) {
            let case = Case::decode(&bytes, 60);
            if let Some(mut multiset) = Multiset::new(&case.setup) {
                case.ops.iter().for_each(|op| multiset.apply(op));
                multiset.check();
                (0..=u8::MAX).for_each(|key| {
                    (0..multiset.copies[usize::from(key)]).for_each(|_| multiset.remove(key));
                });
                prop_assert!(multiset.filter.is_empty());
                prop_assert_eq!(multiset.filter.slots_in_use(), 0);
                prop_assert!(multiset.filter.into_filter().unwrap() == case.setup.build());
            }
        }
    }

    #[test]
    fn the_capacity_fits_with_every_key_once_and_with_every_key_five_times() {
        for capacity in [1, 7, 100, 3000, 40_000, 1_000_000] {
            for times in if capacity < 100_000 { 1..=5 } else { 1..=1 } {
                for filter in filters(capacity) {
                    let all: Vec<u64> = keys::hashes(capacity, capacity).collect();
                    for _ in 0..times {
                        filter.insert_many(&all_at(&all)).unwrap();
                    }
                    assert!(all.iter().all(|&hash| filter.count(&at(hash)) >= times));
                    assert_eq!(filter.len(), capacity * times);
                }
            }
        }
    }

    #[test]
    fn the_false_positive_rate_is_as_promised() {
        for filter in filters(100_000) {
            keys::hashes(1, 100_000).for_each(|hash| filter.insert(&at(hash)).unwrap());
            let rate = assert_sound(&filter).false_positive_rate();
            let asked = 20_000_000;
            let wrong = keys::hashes(2, asked).filter(|&hash| filter.contains(&at(hash))).count();
            let expected = asked as f64 * rate;
            assert!((wrong as f64 - expected).abs() < 5.0 * expected.sqrt(), "{filter:?} {wrong}");
            // Some keys share an entry and are counted twice here.
            assert!((rate..rate * 1.05).contains(&filter.false_positive_rate()));
        }
    }

    #[test]
    fn every_layout_up_to_64_bits_round_trips_byte_for_byte() {
        for prefer in PREFERENCES {
            for rate in [0.03, 0.01, 0.004, 0.001, 0.000_2, 0.000_06, 0.000_01, 1e-7] {
                let mut filter = CuckooFilter::builder(1000, rate).prefer(prefer).build().unwrap();
                keys::hashes(5, 1000).for_each(|hash| filter.insert(&at(hash)).unwrap());
                (0..5).for_each(|_| filter.insert("many times").unwrap());
                let bits = filter.layout().bucket_bits();
                match ConcurrentFilter::try_from(filter.clone()) {
                    Ok(concurrent) => {
                        assert!(bits <= 64);
                        assert_eq!(concurrent.count("many times"), 5);
                        assert!(keys::hashes(5, 1000).all(|hash| concurrent.contains(&at(hash))));
                        assert!(assert_sound(&concurrent) == filter);
                        assert!(concurrent.into_filter().unwrap() == filter);
                    }
                    Err(error) => {
                        assert_eq!(error.error, ConvertError::TooWide { bucket_bits: bits });
                        assert!(bits > 64);
                    }
                }
            }
        }
    }

    #[test]
    fn the_rate_that_an_error_suggests_has_buckets_that_fit_into_a_word() {
        for capacity in [100, 10_000, 1_000_000] {
            for prefer in PREFERENCES {
                let filter = |rate| CuckooFilter::builder(capacity, rate).prefer(prefer);
                let shared =
                    |rate| ConcurrentFilter::builder(capacity, rate).prefer(prefer).build();
                shared(asked_for(&shared(1e-15).unwrap_err())).unwrap();
                let of_file = |rate| ConcurrentFilter::try_from(filter(rate).build().unwrap());
                of_file(asked_for(&of_file(1e-6).unwrap_err())).unwrap();
            }
        }
    }

    #[test]
    fn counts_do_not_overflow() {
        let mut filter =
            ConcurrentFilter::builder(9, 0.001).build().unwrap().into_filter().unwrap();
        filter.insert("a").unwrap();
        while filter.len() < u64::MAX / 2 {
            let twin = filter.clone();
            filter.merge(&twin, Merge::Sum).unwrap();
            filter.insert("a").unwrap();
        }
        let most = u64::MAX - filter.slots();
        let full = ConcurrentFilter::try_from(filter.clone()).unwrap();
        assert_eq!(full.insert("a"), Ok(()));
        let twin = filter.clone();
        filter.merge(&twin, Merge::Sum).unwrap();
        assert!(filter.len() > most);
        let refused = ConcurrentFilter::try_from(filter.clone()).unwrap_err();
        assert!(refused.error == ConvertError::Overflow && *refused.filter == filter);
        while filter.len() > most {
            assert!(filter.remove("a"));
        }
        let full = ConcurrentFilter::try_from(filter).unwrap();
        assert_eq!(full.insert("a"), Err(FullError::Overflow));
        assert!(full.remove("a"));
        assert_eq!(full.insert("a"), Ok(()));
        assert_eq!(full.insert("b"), Ok(()));
        assert_sound(&full);
    }

    #[test]
    fn a_full_filter_returns_an_error_and_keeps_its_keys() {
        for filter in filters(500) {
            let all: Vec<u64> = keys::hashes(6, 5000).collect();
            let accepted: Vec<u64> =
                all.iter().copied().filter(|&hash| filter.insert(&at(hash)).is_ok()).collect();
            assert!((500..5000).contains(&accepted.len()));
            assert!(accepted.iter().all(|&hash| filter.contains(&at(hash))));
            assert!(filter.load_factor() > 0.9);
            assert_sound(&filter);
            let mut removed = vec![false; accepted.len()];
            filter.remove_many(&all_at(&accepted), &mut removed);
            assert!(removed.iter().all(|&removed| removed));
            assert!(filter.is_empty());
        }
    }
}

/// Calls `work` with the numbers 0 to `threads - 1`, each on its own thread.
fn on_threads<T: Send>(threads: u64, work: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let work = &work;
    thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|i| scope.spawn(move || work(i))).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn threads_that_insert_and_remove_a_few_shared_keys_keep_exact_counts() {
    // Few buckets, so that entries move and counters change all the time.
    for builder in builders(40) {
        let filter = builder.build().unwrap();
        let all: Vec<u64> = keys::hashes(7, 40).collect();
        for round in 0..60 {
            let held = on_threads(4, |thread| {
                let mut held = vec![0_u64; all.len()];
                for choice in keys::hashes(round << 8 | thread, 3000) {
                    let key = usize::try_from(choice % 40).unwrap();
                    if choice >> 62 != 0 && held[key] > 0 {
                        assert!(filter.contains(&at(all[key])) && filter.count(&at(all[key])) > 0);
                        assert!(filter.remove(&at(all[key])), "a copy of this thread is gone");
                        held[key] -= 1;
                    } else {
                        filter.insert(&at(all[key])).unwrap();
                        held[key] += 1;
                    }
                }
                held
            });
            let total = |key: usize| held.iter().map(|held| held[key]).sum::<u64>();
            let addressing = Addressing::of(&assert_sound(&filter).to_bytes());
            for &hash in &all {
                let twins =
                    (0..40).filter(|&key| addressing.entry(all[key]) == addressing.entry(hash));
                assert_eq!(filter.count(&at(hash)), twins.map(total).sum::<u64>());
            }
            assert_eq!(filter.len(), (0..40).map(total).sum::<u64>());
            for (key, &hash) in all.iter().enumerate() {
                assert!((0..total(key)).all(|_| filter.remove(&at(hash))));
            }
            assert_eq!(
                (filter.len(), filter.slots_in_use(), filter.distinct_counters()),
                (0, 0, 0)
            );
        }
        assert!(filter.into_filter().unwrap() == builder_of_same_shape(&builder));
    }
}

/// An empty plain filter with as many buckets as `builder` gives a concurrent filter.
fn builder_of_same_shape(builder: &Builder<ConcurrentFilter>) -> CuckooFilter {
    builder.build().unwrap().into_filter().unwrap()
}

#[test]
fn of_threads_that_insert_or_remove_one_unique_key_exactly_one_succeeds() {
    for filter in filters(2000) {
        for round in 0..20 {
            let all: Vec<u64> = keys::hashes(round, 2000).collect();
            let added = on_threads(3, |_| {
                let new = |&&hash: &&u64| filter.insert_unique(&at(hash)).unwrap();
                all.iter().filter(new).count() as u64
            });
            assert_eq!(added.iter().sum::<u64>(), filter.len());
            assert!(all.iter().all(|&hash| filter.contains(&at(hash))));
            let removed = on_threads(3, |_| {
                all.iter().filter(|&&hash| filter.remove(&at(hash))).count() as u64
            });
            assert_eq!(removed.iter().sum::<u64>(), added.iter().sum::<u64>());
            assert!(filter.is_empty());
        }
    }
}

/// Looks up keys that are always present, while two threads replace the other keys at 95 % load:
/// `lookups` times, and until there were as many inserts as a thousandth of that. Returns the
/// numbers of false negatives and of inserts.
fn misses_under_churn(builder: &Builder<ConcurrentFilter>, lookups: u64) -> (u64, u64) {
    const LASTING: u64 = 20_000;
    let filter = builder.build().unwrap();
    let lasting: Vec<u64> = keys::hashes(8, LASTING).collect();
    filter.insert_many(&all_at(&lasting)).unwrap();
    let passing = filter.slots() * 95 / 100 - LASTING;
    let (stop, inserts, mut misses) = (AtomicBool::new(false), AtomicU64::new(0), 0);
    thread::scope(|scope| {
        let stopping = SetOnDrop(&stop);
        for writer in 0..2_u64 {
            let (filter, stop, inserts) = (&filter, &stop, &inserts);
            scope.spawn(move || {
                let _stopping = SetOnDrop(stop);
                let fresh = keys::hashes(100 + writer, u64::MAX);
                let old = fresh.clone();
                let window = usize::try_from(passing / 2).unwrap();
                let insert = |hash| {
                    filter.insert(&at(hash)).unwrap();
                    inserts.fetch_add(1, Ordering::Relaxed);
                };
                fresh.clone().take(window).for_each(insert);
                for (hash, old) in fresh.skip(window).zip(old) {
                    assert!(filter.remove(&at(old)));
                    insert(hash);
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
        }
        let mut found = vec![false; lasting.len()];
        for round in 0.. {
            let is_enough = round >= lookups / (2 * LASTING)
                && inserts.load(Ordering::Relaxed) > lookups / 1000;
            // A writer that ends before has failed.
            if is_enough || stop.load(Ordering::Relaxed) {
                break;
            }
            let one_by_one = lasting.iter().filter(|&&hash| !filter.contains(&at(hash))).count();
            filter.contains_many(&all_at(&lasting), &mut found);
            let at_once = found.iter().filter(|&&found| !found).count();
            misses += (one_by_one + at_once) as u64;
            if round % 64 == 0 {
                let snapshot = filter.snapshot().unwrap();
                assert!(lasting.iter().all(|&hash| snapshot.contains(&at(hash))));
            }
        }
        drop(stopping);
    });
    assert_sound(&filter);
    (misses, inserts.into_inner())
}

/// `cargo test -p koel --test it -- --nocapture beside_writers` prints how many inserts ran during
/// the lookups.
#[test]
fn no_key_is_missed_in_200_million_lookups_beside_writers_at_95_percent() {
    let builders: Vec<Builder<ConcurrentFilter>> = builders(60_000).collect();
    let lookups = 200_000_000 / builders.len() as u64;
    for builder in &builders {
        let (misses, inserts) = misses_under_churn(builder, lookups);
        println!("{lookups} lookups beside {inserts} inserts: {misses} missed");
        assert_eq!(misses, 0);
    }
}
