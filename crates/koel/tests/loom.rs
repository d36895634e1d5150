//! The concurrent filter in every interleaving of two threads: loom tries them all, on tables of a
//! few buckets.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p koel --release --test loom`. Each model has two threads
//! that each do one thing, and a condition that holds in every order. Loom also tries the stale
//! values that a weaker memory model allows. The tests are known to fail if a move announces its
//! arrival after it clears the source, if any ordering is relaxed, or if moves or removals run
//! outside the lock of their shard.
#![cfg(loom)]
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use koel::{ConcurrentFilter, CuckooFilter, Prefer};
use loom::sync::Arc;
use loom::thread;
use testkit::addressing::Addressing;
use testkit::image::{self, HEADER_BYTES};
use testkit::keys;
use testkit::keys::at;

#[path = "it/support.rs"]
#[expect(dead_code, reason = "the other tests use it all")]
mod support;

/// An empty filter of this many buckets, with plain slots of 16 bits, four to a word of 64.
fn empty(buckets: u32) -> CuckooFilter {
    let builder = |rate| CuckooFilter::builder(8, rate).prefer(Prefer::Fast).counter_limit(8);
    let mut filters = (1..).map(|bits| builder(0.5_f64.powi(bits)).build().unwrap());
    let filter = filters.find(|filter| filter.layout().fingerprint_bits() == 16).unwrap();
    CuckooFilter::from_bytes(&image::reshape(&filter.to_bytes(), 0, buckets)).unwrap()
}

/// The slots of every bucket, read from the bytes.
fn slots(filter: &CuckooFilter) -> Vec<Vec<u64>> {
    let bytes = filter.to_bytes();
    let words = bytes[HEADER_BYTES..].chunks(8).take(usize::try_from(filter.buckets()).unwrap());
    let slots = |word: &[u8]| {
        word.chunks(2).map(|slot| u64::from(slot[0]) | u64::from(slot[1]) << 8).collect()
    };
    words.map(slots).collect()
}

/// A filter in which `arriving` finds room only after one move, that of `moved`.
struct Crowd {
    filter: CuckooFilter,
    arriving: u64,
    moved: u64,
}

/// Fills filters with different keys until one is such a crowd. If `to_home`, the moved key leaves
/// its second bucket, which a lookup reads last.
fn crowd(buckets: u32, to_home: bool) -> Crowd {
    for seed in 0..10_000 {
        let mut filter = empty(buckets);
        let mut held = Vec::new();
        let addressing = Addressing::of(&filter.to_bytes());
        for hash in keys::hashes(seed, 4 * u64::from(buckets) - 1) {
            let before = filter.clone();
            if filter.insert(&at(hash)).is_err() {
                break;
            }
            let (was, is) = (slots(&before), slots(&filter));
            let moved = held.iter().copied().filter(|&key| {
                let (home, other) = addressing.pair(key);
                let (from, to) = if to_home { (other, home) } else { (home, other) };
                let count = |slots: &[Vec<u64>], bucket: u64| {
                    let bucket = &slots[usize::try_from(bucket).unwrap()];
                    bucket.iter().filter(|&&slot| slot == addressing.fingerprint(key)).count()
                };
                from != to
                    && count(&was, from) > count(&is, from)
                    && count(&was, to) < count(&is, to)
            });
            let changed = was.iter().zip(&is).filter(|(was, is)| was != is).count();
            if let (2, Some(moved)) = (changed, moved.last()) {
                return Crowd { filter: before, arriving: hash, moved };
            }
            held.push(hash);
        }
    }
    panic!("no such crowd");
}

/// Tries every interleaving of `one` and `other` on copies of `filter`, and passes each result to
/// `check`. Runs twice with the threads swapped: loom starts with one thread running to its end and
/// branches where the second one reads.
fn model<A: 'static, B: 'static>(
    filter: &CuckooFilter,
    one: impl Fn(&ConcurrentFilter) -> A + Copy + Send + Sync + 'static,
    other: impl Fn(&ConcurrentFilter) -> B + Copy + Send + Sync + 'static,
    check: impl Fn(&ConcurrentFilter, A, B) + Copy + Send + Sync + 'static,
) {
    all_orders(filter, one, other, check);
    all_orders(filter, other, one, move |filter, b, a| check(filter, a, b));
}

fn all_orders<A: 'static, B: 'static>(
    filter: &CuckooFilter,
    first: impl Fn(&ConcurrentFilter) -> A + Copy + Send + Sync + 'static,
    second: impl Fn(&ConcurrentFilter) -> B + Copy + Send + Sync + 'static,
    check: impl Fn(&ConcurrentFilter, A, B) + Copy + Send + Sync + 'static,
) {
    let filter = filter.clone();
    let mut loom = loom::model::Builder::new();
    loom.max_branches = 10_000;
    loom.check(move || {
        let filter = Arc::new(ConcurrentFilter::try_from(filter.clone()).unwrap());
        let shared = Arc::clone(&filter);
        let second = thread::spawn(move || second(&shared));
        let first = first(&filter);
        let second = second.join().unwrap();
        check(&filter, first, second);
    });
}

/// Checks that the filter is sound and holds this many keys, with no thread running.
fn assert_len(filter: &ConcurrentFilter, len: u64) {
    let snapshot = filter.snapshot().unwrap();
    assert_eq!(snapshot.verify(), Ok(()));
    assert_eq!((snapshot.len(), filter.len()), (len, len));
    assert_eq!(snapshot.slots_in_use(), filter.slots_in_use());
}

#[test]
fn a_key_is_found_while_it_moves() {
    for (buckets, to_home) in [(2, true), (3, true), (3, false), (4, true)] {
        let Crowd { filter, arriving, moved } = crowd(buckets, to_home);
        model(
            &filter,
            move |f| f.insert(&at(arriving)),
            move |f| f.contains(&at(moved)),
            |_, inserted, found| assert_eq!((inserted, found), (Ok(()), true)),
        );
    }
}

#[test]
fn a_key_is_counted_once_while_it_moves() {
    let Crowd { filter, arriving, moved } = crowd(2, true);
    let insert = move |f: &ConcurrentFilter| f.insert(&at(arriving));
    model(
        &filter,
        insert,
        move |f| f.count(&at(moved)),
        |_, inserted, count| {
            assert_eq!((inserted, count), (Ok(()), 1));
        },
    );
}

#[test]
fn a_key_that_is_removed_while_it_moves_is_gone() {
    let Crowd { filter, arriving, moved } = crowd(2, true);
    let len = filter.len();
    let insert = move |f: &ConcurrentFilter| f.insert(&at(arriving));
    model(
        &filter,
        insert,
        move |f| f.remove(&at(moved)),
        move |filter, inserted, removed| {
            assert_eq!((inserted, removed), (Ok(()), true));
            assert_eq!((filter.count(&at(moved)), filter.count(&at(arriving))), (0, 1));
            assert_len(filter, len);
        },
    );
}

#[test]
fn a_snapshot_has_a_key_that_moves() {
    for to_home in [true, false] {
        let Crowd { filter, arriving, moved } = crowd(2, to_home);
        let insert = move |f: &ConcurrentFilter| f.insert(&at(arriving));
        let snapshot = |f: &ConcurrentFilter| f.snapshot().unwrap();
        model(&filter, insert, snapshot, move |_, _, snapshot| {
            assert_eq!((snapshot.verify(), snapshot.count(&at(moved))), (Ok(()), 1));
        });
    }
}

/// A filter of four buckets that holds one key, this many times.
fn copies(hash: u64, copies: u64) -> CuckooFilter {
    let mut filter = empty(4);
    (0..copies).for_each(|_| filter.insert(&at(hash)).unwrap());
    filter
}

#[test]
fn a_key_is_found_while_one_copy_is_inserted_and_another_removed() {
    let hash = keys::splitmix64(1);
    let replace = move |f: &ConcurrentFilter| (f.insert(&at(hash)), f.remove(&at(hash)));
    for held in [1, 2] {
        let ask = move |f: &ConcurrentFilter| f.contains(&at(hash));
        model(&copies(hash, held), replace, ask, move |filter, replaced, found| {
            assert_eq!((replaced, found), ((Ok(()), true), true));
            assert_len(filter, held);
        });
    }
}

#[test]
fn a_key_is_found_while_a_copy_in_the_first_bucket_replaces_the_one_read_last() {
    // The key is in its second bucket. New copies go to the first, as long as that one is emptier.
    let mut filter = empty(4);
    let addressing = Addressing::of(&filter.to_bytes());
    let apart = |&hash: &u64| addressing.pair(hash).0 != addressing.pair(hash).1;
    let hash = keys::hashes(1, 100).find(apart).unwrap();
    let (home, _) = addressing.pair(hash);
    for twin in keys::sharing_home(&addressing, home).take(4) {
        filter.insert(&at(twin)).unwrap();
    }
    filter.insert(&at(hash)).unwrap();
    let come_and_go = move |f: &ConcurrentFilter| {
        (0..2).all(|_| f.insert(&at(hash)).is_ok()) && (0..2).all(|_| f.remove(&at(hash)))
    };
    model(
        &filter,
        come_and_go,
        move |f| f.contains(&at(hash)),
        |_, done, found| {
            assert!(done && found);
        },
    );
}

#[test]
fn two_inserts_of_a_key_leave_two_copies_and_two_removals_of_one_copy_take_one() {
    let hash = keys::splitmix64(1);
    let insert = move |f: &ConcurrentFilter| f.insert(&at(hash));
    model(&empty(4), insert, insert, move |filter, one, other| {
        assert_eq!((one, other, filter.count(&at(hash))), (Ok(()), Ok(()), 2));
        assert_len(filter, 2);
    });
    let remove = move |f: &ConcurrentFilter| f.remove(&at(hash));
    model(&copies(hash, 1), remove, remove, |filter, one, other| {
        assert!(one != other);
        assert_len(filter, 0);
    });
}

#[test]
fn of_two_unique_inserts_of_a_key_one_succeeds() {
    let hash = keys::splitmix64(1);
    let insert = move |f: &ConcurrentFilter| f.insert_unique(&at(hash)).unwrap();
    model(&empty(4), insert, insert, |filter, one, other| {
        assert!(one != other);
        assert_len(filter, 1);
    });
}

#[test]
fn a_copy_that_is_counted_while_another_is_removed_is_not_lost() {
    let hash = keys::splitmix64(1);
    for held in [1, 2, 3] {
        let insert = move |f: &ConcurrentFilter| f.insert(&at(hash));
        let remove = move |f: &ConcurrentFilter| f.remove(&at(hash));
        model(&copies(hash, held), insert, remove, move |filter, inserted, removed| {
            assert_eq!((inserted, removed), (Ok(()), true));
            assert_eq!((filter.count(&at(hash)), filter.contains(&at(hash))), (held, true));
            assert_len(filter, held);
        });
    }
}

#[test]
fn a_copy_counted_while_another_is_removed_keeps_its_slot() {
    // Capacity 1, so that a second copy is counted at once.
    let hash = keys::splitmix64(1);
    let image = copies(hash, 1).to_bytes();
    let filter = crowded(&image);
    let insert = move |f: &ConcurrentFilter| f.insert(&at(hash));
    let remove = move |f: &ConcurrentFilter| f.remove(&at(hash));
    model(&filter, insert, remove, move |filter, inserted, removed| {
        assert_eq!((inserted, removed), (Ok(()), true));
        assert!(filter.contains(&at(hash)));
        assert_len(filter, 1);
    });
}

/// The filter with its capacity set to 1.
fn crowded(image: &[u8]) -> CuckooFilter {
    CuckooFilter::from_bytes(&support::forged(image, &[("capacity", 1)])).unwrap()
}

#[test]
fn two_keys_that_need_room_both_get_it() {
    let Crowd { mut filter, arriving, moved } = crowd(3, true);
    while filter.slots_in_use() > filter.slots() - 3 {
        let held =
            keys::hashes(0, u64::MAX).find(|&hash| hash != moved && filter.contains(&at(hash)));
        filter.remove(&at(held.unwrap()));
    }
    let len = filter.len();
    let addressing = Addressing::of(&filter.to_bytes());
    let last = keys::sharing_home(&addressing, addressing.pair(arriving).0).next().unwrap();
    let insert = move |f: &ConcurrentFilter| f.insert(&at(arriving));
    model(
        &filter,
        insert,
        move |f| f.insert(&at(last)),
        move |filter, one, other| {
            assert_eq!((one, other), (Ok(()), Ok(())));
            assert!(filter.contains(&at(arriving)) && filter.contains(&at(last)));
            assert_len(filter, len + 2);
        },
    );
}

#[test]
fn a_key_whose_spare_copy_makes_room_is_found_and_keeps_its_count() {
    // Two buckets of four slots: one key twice, the others once, and a new key to insert.
    let spare = keys::splitmix64(1);
    let mut filter = empty(2);
    (0..2).for_each(|_| filter.insert(&at(spare)).unwrap());
    let mut others = keys::hashes(3, 1000);
    while filter.slots_in_use() < filter.slots() {
        let _full = filter.insert(&at(others.next().unwrap())).is_err();
    }
    let len = filter.len();
    let new = others.find(|&hash| {
        let mut twin = filter.clone();
        let takes_it = twin.insert(&at(hash)).is_ok() && twin.distinct_counters() == 1;
        takes_it && !filter.contains(&at(hash))
    });
    let new = new.unwrap();
    let insert = move |f: &ConcurrentFilter| f.insert(&at(new));
    let ask = move |f: &ConcurrentFilter| (f.contains(&at(spare)), f.count(&at(spare)));
    model(&filter, insert, ask, move |filter, inserted, answers| {
        assert_eq!((inserted, answers), (Ok(()), (true, 2)));
        assert_len(filter, len + 1);
    });
    let remove = move |f: &ConcurrentFilter| f.remove(&at(spare));
    model(&filter, insert, remove, move |filter, inserted, removed| {
        assert_eq!((inserted, removed, filter.count(&at(spare))), (Ok(()), true, 1));
        assert_len(filter, len);
    });
}

#[test]
fn a_slot_emptied_during_a_search_for_room_is_not_counted_as_a_copy() {
    // Three full buckets. Two entries leave the second bucket. Its empty slots must not be taken
    // for copies in the third, which stays full.
    let mut filter = empty(3);
    let new = |filter: &CuckooFilter, hash| !filter.contains(&at(hash));
    let mut held = keys::hashes(1, 1000).collect::<Vec<u64>>();
    held.retain(|&hash| new(&filter, hash) && filter.insert(&at(hash)).is_ok());
    assert_eq!(filter.slots_in_use(), filter.slots());
    let addressing = Addressing::of(&filter.to_bytes());
    let lies_in = |hash: u64, slot: u64| {
        let (home, other) = addressing.pair(hash);
        addressing.fingerprint(hash) == slot && (home == 1 || other == 1)
    };
    let entry = |slot| held.iter().copied().find(|&hash| lies_in(hash, slot)).unwrap();
    let leaving = [0, 1].map(|i| entry(slots(&filter)[1][i]));
    let arriving = keys::sharing_home(&addressing, 1).find(|&hash| new(&filter, hash)).unwrap();
    let len = filter.len();
    model(
        &crowded(&filter.to_bytes()),
        move |f| f.insert(&at(arriving)),
        move |f| leaving.map(|hash| f.remove(&at(hash))),
        move |filter, inserted, removed| {
            assert_eq!(removed, [true; 2]);
            assert_eq!(filter.distinct_counters(), 0);
            assert_len(filter, len - 2 + u64::from(inserted.is_ok()));
        },
    );
}
