//! One filter shared by many threads: no false negatives while entries move, exact counts of
//! copies, and the answers of a plain filter.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use koel::{Builder, ConcurrentFilter, ConvertError, CuckooFilter, FullError, Merge, Prefer};
use testkit::addressing::Addressing;
use testkit::audit::audit;
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
pub(crate) fn assert_sound(filter: &ConcurrentFilter) -> CuckooFilter {
    let snapshot = filter.snapshot().unwrap();
    assert_eq!(snapshot.verify(), Ok(()));
    assert_eq!(audit(&snapshot.to_bytes()), Ok(()));
    assert_eq!((snapshot.len(), snapshot.slots_in_use()), (filter.len(), filter.slots_in_use()));
    assert_eq!(snapshot.distinct_counters(), filter.distinct_counters());
    snapshot
}

mod alone {
    //! On one thread. `multiset.rs` and `alike.rs` have what it shares with other types.

    use super::*;

    #[test]
    fn a_concurrent_filter_refuses_the_ninth_chosen_key_of_a_pair() {
        for filter in filters(1000) {
            let addressing = Addressing::of(&filter.snapshot().unwrap().to_bytes());
            let pair = keys::sharing_pair(&addressing, keys::splitmix64(7));
            let keys: Vec<_> = pair.map(at).collect();
            // Some layouts have only four fingerprints for a pair.
            let taken = keys.iter().take_while(|key| filter.insert(*key).is_ok()).count();
            assert_eq!(taken, keys.len().min(8));
            assert!(keys[..taken].iter().all(|key| filter.contains(key)));
            let before = assert_sound(&filter);
            assert!(keys[taken..].iter().all(|key| filter.insert(key).is_err()));
            assert!(assert_sound(&filter) == before);
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
        assert!(filter.into_filter().unwrap() == builder.build().unwrap().into_filter().unwrap());
    }
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
