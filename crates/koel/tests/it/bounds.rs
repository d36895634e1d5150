//! The work and the memory of one insert, whatever the keys: honest ones, and such as somebody
//! chose for one pair of buckets.

use koel::{
    Builder, CountingFilter, CuckooFilter, ExpiringFilter, FilterView, FullError, Merge,
    MergeError, Prefer, WhenFull,
};
use testkit::addressing::Addressing;
use testkit::audit::audit;
use testkit::keys::{self, all_at, at};

/// How honest keys fill filters that grow from many sizes. Prints the keys in the stash.
#[test]
#[ignore = "a measurement: prints the table of docs/decisions/0036-bounded-inserts.md"]
fn honest_keys_in_the_stash() {
    let keys: u64 = std::env::var("KEYS").map_or(4_000_000, |keys| keys.parse().unwrap());
    println!("| built for | rate | preference | keys | in the stash | rate said |");
    for first in [1, 10, 50, 100, 1000, 30_000, 1_000_000] {
        for (rate, prefer) in [
            (0.05, Prefer::Small),
            (0.001, Prefer::Small),
            (0.05, Prefer::Fast),
            (0.001, Prefer::Fast),
        ] {
            let builder = CuckooFilter::builder(first, rate).prefer(prefer).growable();
            let mut filter = builder.build().unwrap();
            let mut most = 0;
            for hash in keys::hashes(first, keys) {
                let before = filter.buckets();
                filter.insert(&at(hash)).unwrap();
                most = most.max((filter.buckets() - before) * 64 / before);
            }
            let stashed = filter.stashed_keys();
            let said = filter.false_positive_rate();
            println!("| {first} | {rate} | {prefer:?} | {keys} | {stashed} | {said:.6} | {most}");
        }
    }
}

/// What chosen keys cost: the mean and the longest insert, and what it does to the table.
#[test]
#[ignore = "a measurement: prints the table of docs/decisions/0036-bounded-inserts.md"]
fn cost_of_chosen_keys() {
    println!("| begin | keys | mean, us | longest, us | buckets before, after | in the stash |");
    let builder = || CuckooFilter::builder(1_000_000, 0.001);
    for (name, builder, honest) in [
        ("fixed", builder(), 900_000),
        ("growable, nearly empty", builder().growable(), 1000),
        ("grown", builder().grow_from(1000), 900_000),
    ] {
        let mut built = builder.build().unwrap();
        keys::hashes(1, honest).for_each(|hash| built.insert(&at(hash)).unwrap());
        let fresh: Vec<u64> = keys::hashes(2, 10_000).collect();
        for (chosen_as, keys) in ["honest", "one pair", "closed region", "one pair for long"]
            .into_iter()
            .zip([fresh].into_iter().chain(chosen(&built)))
        {
            let (mut filter, mut longest) = (built.clone(), 0.0_f64);
            let start = std::time::Instant::now();
            for &hash in &keys {
                let one = std::time::Instant::now();
                filter.insert(&at(hash)).unwrap();
                longest = longest.max(one.elapsed().as_secs_f64() * 1e6);
            }
            let mean = start.elapsed().as_secs_f64() * 1e6 / keys.len() as f64;
            let (before, after) = (built.buckets(), filter.buckets());
            let stashed = filter.stashed_keys();
            println!(
                "| {name} | {} {chosen_as} | {mean:.1} | {longest:.0} | {before}, {after} | {stashed} |",
                keys.len(),
            );
        }
    }
}

/// Ways to begin: fixed, growable and hardly filled, about to grow, and grown.
fn filters(prefer: Prefer) -> Vec<CuckooFilter> {
    let builder = |keys| CuckooFilter::builder(keys, 0.001).prefer(prefer);
    let filled = |filter: Builder<CuckooFilter>, keys| {
        let mut filter = filter.build().unwrap();
        keys::hashes(1, keys).for_each(|hash| filter.insert(&at(hash)).unwrap());
        filter
    };
    vec![
        filled(builder(3000), 1000),
        filled(builder(100_000).growable(), 100),
        filled(builder(3000).growable(), 2990),
        filled(builder(3000).growable(), 3010),
        filled(builder(100_000).grow_from(1000), 20_000),
    ]
}

/// Addresses of keys that no eviction helps: for one pair of buckets, for three buckets whose other
/// buckets are among them, and for one pair that stays one through five doublings.
fn chosen(filter: &CuckooFilter) -> [Vec<u64>; 3] {
    let addressing = Addressing::of(&filter.to_bytes());
    let pair = keys::sharing_pair(&addressing, keys::splitmix64(7)).take(60).collect();
    // Entries of the first kind move between two buckets, those of the second to one more.
    let (fraction_bits, first) = (addressing.fraction_bits(), addressing.buckets() / 2);
    let second = addressing.other(first, 5 << fraction_bits);
    let closed = [(first, 5), (second, 9)].into_iter().flat_map(|(bucket, core)| {
        (0..1 << fraction_bits.min(5))
            .map(move |fraction| addressing.hash_of(bucket, core << fraction_bits | fraction))
    });
    let after_growth = keys::sharing_pair(&addressing, keys::splitmix64(7)).step_by(32);
    let after_growth = after_growth.flat_map(|hash| (0..16).map(move |i| hash + i));
    [pair, closed.collect(), after_growth.take(60).collect()]
}

#[test]
fn chosen_keys_cost_one_step_each_and_none_is_refused_or_lost() {
    for prefer in [Prefer::Small, Prefer::Fast] {
        let mut stashed = 0;
        for built in filters(prefer) {
            for keys in chosen(&built) {
                let (mut filter, honest) = (built.clone(), built.len());
                for (number, &hash) in (1..).zip(&keys) {
                    let before = filter.buckets();
                    filter.insert(&at(hash)).unwrap();
                    let grown = filter.buckets() - before;
                    // Two chunks of a 64th of the level.
                    assert!(grown <= before / 32 + 2, "{grown} buckets at once");
                    assert_eq!(filter.len(), honest + number);
                }
                stashed += filter.stashed_keys();
                // No more growth than as many honest keys cause.
                let (mut due, as_many) = (built.clone(), keys.len() as u64);
                keys::hashes(2, as_many).for_each(|hash| due.insert(&at(hash)).unwrap());
                assert!(filter.buckets() <= due.buckets(), "{filter:?}, {due:?}");
                assert_eq!(filter.verify(), Ok(()));
                check(&filter, &keys, honest);
                let bytes = filter.to_bytes();
                assert_eq!(audit(&bytes), Ok(()));
                check_batches(&built, &filter, &keys);
                let mut back = CuckooFilter::from_bytes(&bytes).unwrap();
                assert!(back == filter && back.to_bytes() == bytes);
                back.shrink_to_fit();
                check(&back, &keys, honest);
                keys.iter().for_each(|&hash| assert!(back.remove(&at(hash))));
                assert_eq!((back.stashed_keys(), back.len()), (0, honest));
                check(&back, &[], honest);
            }
        }
        assert!(stashed > 100, "{stashed}");
    }
}

/// Chosen keys lie in the stash, and say nothing of how full the table is.
#[test]
fn a_table_grows_for_its_load_alone_however_large_the_stash_is() {
    let builder = || CuckooFilter::builder(1000, 1e-6);
    for (built, honest) in [(builder().growable(), 100), (builder().grow_from(1000), 2000)] {
        let mut filter = built.build().unwrap();
        keys::hashes(1, honest).for_each(|hash| filter.insert(&at(hash)).unwrap());
        let mut grown = filter.clone();
        grown.reserve(1000).unwrap();
        let addressing = Addressing::of(&filter.to_bytes());
        let keys: Vec<u64> =
            keys::sharing_pair(&addressing, keys::splitmix64(7)).take(20_000).collect();
        keys.iter().for_each(|&hash| filter.insert(&at(hash)).unwrap());
        let stashed = usize::try_from(filter.stashed_keys()).unwrap();
        assert!(stashed > 19_000 && filter.buckets() <= grown.buckets(), "{filter:?}");
        assert!(filter.size_in_bytes() <= grown.size_in_bytes() + 24 * stashed);
        check(&filter, &keys, honest);
        assert_eq!(audit(&filter.to_bytes()), Ok(()));
    }
}

/// All keys are in, in a view too.
fn check(filter: &CuckooFilter, keys: &[u64], honest: u64) {
    let bytes = filter.to_bytes();
    let view = FilterView::open(&bytes).unwrap();
    for hash in keys::hashes(1, honest).chain(keys.iter().copied()) {
        assert!(filter.contains(&at(hash)) && view.contains(&at(hash)));
        assert!(filter.count(&at(hash)) > 0 && view.count(&at(hash)) == filter.count(&at(hash)));
    }
    let all = all_at(keys);
    let (mut found, mut counts) = (vec![false; all.len()], vec![0; all.len()]);
    view.contains_many(&all, &mut found);
    view.count_many(&all, &mut counts);
    assert!(found.iter().all(|&found| found));
    assert!(all.iter().zip(counts).all(|(key, count)| count == filter.count(key)));
}

/// Batches give the bytes of single calls, and answer for keys in the stash.
fn check_batches(built: &CuckooFilter, filter: &CuckooFilter, keys: &[u64]) {
    let (mut many, all) = (built.clone(), all_at(keys));
    many.insert_many(&all).unwrap();
    assert!(many == *filter, "inserting many is not inserting each");
    let mut added = vec![true; all.len()];
    many.insert_unique_many(&all, &mut added).unwrap();
    assert!(many == *filter && added.iter().all(|&added| !added));
    many.insert_many(&all).unwrap();
    let stashed = many.stashed_keys();
    assert!(stashed >= filter.stashed_keys());
    let mut removed = vec![false; all.len()];
    many.remove_many(&all, &mut removed);
    many.remove_many(&all, &mut removed);
    assert!(removed.iter().all(|&removed| removed));
    assert_eq!((many.len(), many.stashed_keys()), (built.len(), 0));
}

#[test]
fn a_fixed_filter_takes_its_capacity_of_chosen_keys_and_refuses_more_unchanged() {
    let built = |limit| CuckooFilter::builder(40, 1e-5).counter_limit(limit).build().unwrap();
    let mut filter = built(u64::MAX);
    let addressing = Addressing::of(&filter.to_bytes());
    let keys: Vec<u64> = keys::sharing_pair(&addressing, keys::splitmix64(3)).take(60).collect();
    keys[..40].iter().for_each(|&hash| filter.insert(&at(hash)).unwrap());
    assert_eq!((filter.len(), filter.stashed_keys()), (40, 32));
    let before = filter.to_bytes();
    assert!(matches!(filter.insert(&at(keys[40])), Err(FullError::Slots { .. })));
    assert!(filter.insert_many(&all_at(&keys[40..])).is_err());
    assert_eq!(filter.to_bytes(), before);
    // A copy of a key in the stash needs no more room.
    filter.insert(&at(keys[39])).unwrap();
    assert_eq!(filter.count(&at(keys[39])), 2);

    let mut limited = built(3);
    let inserted = keys.iter().take_while(|&&hash| limited.insert(&at(hash)).is_ok()).count();
    assert_eq!((inserted, limited.stashed_keys()), (11, 3));
}

/// Keys in the stash of one filter may be in the table of the other, in its stash, or nowhere. A
/// union stashes none from a table, since entries do not tell their keys: it may find no room.
#[test]
fn a_union_counts_the_keys_of_two_stashes_or_changes_nothing() {
    let copies = |side: u64, number: u64| keys::splitmix64(number << 1 | side) % 6;
    for prefer in [Prefer::Small, Prefer::Fast] {
        let mut stashed = [0; 2];
        for (built, keys) in filters(prefer).iter().flat_map(|it| chosen(it).map(|keys| (it, keys)))
        {
            let [one, other] = [0, 1].map(|side| {
                let mut filter = built.clone();
                for (number, &hash) in (0..).zip(&keys) {
                    (0..copies(side, number)).for_each(|_| filter.insert(&at(hash)).unwrap());
                }
                filter
            });
            for (into, from) in [(&one, &other), (&other, &one)] {
                for counts in [Merge::Sum, Merge::Max] {
                    let mut union = into.clone();
                    let merged = union.merge(from, counts);
                    assert_eq!(union.verify(), Ok(()));
                    assert_eq!(audit(&union.to_bytes()), Ok(()));
                    if merged.is_err() {
                        assert!(matches!(merged, Err(MergeError::Full(FullError::Slots { .. }))));
                        assert!(union == *into && !union.has_grown());
                        continue;
                    }
                    stashed[usize::from(counts == Merge::Max)] += union.stashed_keys();
                    for (number, &hash) in (0..).zip(&keys) {
                        let both = [0, 1].map(|side| copies(side, number));
                        let least = match counts {
                            Merge::Sum => both[0] + both[1],
                            Merge::Max => both[0].max(both[1]),
                        };
                        assert!(union.count(&at(hash)) >= least, "{counts:?}, key {number}");
                    }
                }
            }
        }
        assert!(stashed[0] > 100 && stashed[1] > 100, "{stashed:?}");
    }
}

#[test]
fn chosen_keys_by_brute_force_with_the_public_hash() {
    let mut filter = CuckooFilter::builder(2000, 0.001).growable().build().unwrap();
    let addressing = Addressing::of(&filter.to_bytes());
    let hasher = filter.hasher();
    let address = |key: &u64| keys::address(hasher.hash(key));
    let target = addressing.pair(address(&0));
    let found = (0_u64..).filter(|key| addressing.pair(address(key)) == target);
    let keys: Vec<u64> = found.take(40).collect();
    keys.iter().for_each(|key| filter.insert(key).unwrap());
    // Some share an entry, and so a slot or a counter.
    assert!(!filter.has_grown() && filter.stashed_keys() > 16, "{filter:?}");
    assert!(keys.iter().all(|key| filter.contains(key)));
    // Absent keys of the same two buckets are reported at the rate of full buckets, no more.
    let absent = (0_u64..).filter(|key| addressing.pair(address(key)) == target).skip(40);
    assert!(absent.take(300).filter(|key| filter.contains(key)).count() < 60);
}

#[test]
fn counts_of_chosen_keys_are_exact() {
    for grow_from in [None, Some(500)] {
        let builder = CountingFilter::builder(500, 0.001);
        let builder = grow_from.map_or(builder.clone(), |keys| builder.grow_from(keys));
        let mut filter = builder.build().unwrap();
        let addressing = Addressing::of(&filter.to_bytes());
        let keys: Vec<u64> =
            keys::sharing_pair(&addressing, keys::splitmix64(3)).take(30).collect();
        for (times, &hash) in (1..).zip(&keys) {
            assert_eq!(filter.add(&at(hash), times).unwrap(), times);
        }
        assert_eq!(filter.stashed_keys(), 22);
        filter.insert_many(&all_at(&keys)).unwrap();
        assert!((2..).zip(&keys).all(|(times, &hash)| filter.count(&at(hash)) == times));
        assert_eq!(filter.counts().sum::<u64>(), filter.len());
        assert_eq!(filter.verify(), Ok(()));
        let mut removed = [false; 30];
        filter.remove_many(&all_at(&keys), &mut removed);
        assert!(removed.iter().all(|&removed| removed));
        assert!((1..).zip(&keys).all(|(times, &hash)| filter.count(&at(hash)) == times));
        let back = CountingFilter::from_bytes(&filter.to_bytes()).unwrap();
        assert!(back == filter && filter.stashed_keys() == 22);
    }
}

#[test]
fn chosen_keys_of_an_expiring_filter_cost_one_step_each_and_nothing_is_forgotten() {
    let built = |grows: bool, when_full| {
        let builder = ExpiringFilter::builder(100_000, 0.001).window(1000).when_full(when_full);
        if grows { builder.grow_from(1000) } else { builder }.build().unwrap()
    };
    for grows in [false, true] {
        let mut filter = built(grows, WhenFull::Fail);
        keys::hashes(1, 3000).for_each(|hash| assert!(filter.insert(&at(hash)).unwrap()));
        let addressing = Addressing::of(&filter.to_bytes());
        let keys: Vec<u64> =
            keys::sharing_pair(&addressing, keys::splitmix64(3)).take(40).collect();
        let mut taken = vec![];
        for &hash in &keys {
            let before = filter.buckets();
            match filter.insert(&at(hash)) {
                Ok(_) => taken.push(hash),
                Err(full) => assert!(matches!(full, FullError::Window { .. })),
            }
            assert!(filter.buckets() - before <= before / 32 + 2);
        }
        assert!(taken.len() >= 8 && (taken.len() < 40) != grows, "{}", taken.len());
        assert!(keys::hashes(1, 3000).chain(taken).all(|hash| filter.contains(&at(hash))));
        assert_eq!(filter.verify(), Ok(()));
    }
}

/// Copies that come from two growable filters of one shape: the union grows, whatever the counts.
#[test]
fn unions_of_growable_filters_with_copies_fit() {
    for seed in 0..3 {
        for counts in [Merge::Sum, Merge::Max] {
            for grow_from in [false, true] {
                let builder = CuckooFilter::builder(1000, 0.001).seed(seed);
                let builder = if grow_from { builder.grow_from(10) } else { builder.growable() };
                let (mut one, mut two) = (builder.build().unwrap(), builder.build().unwrap());
                for key in 0..40_000_u64 {
                    (0..key % 3 + 1).for_each(|_| one.insert(&key).unwrap());
                    two.insert(&(key + 20_000)).unwrap();
                }
                one.merge(&two, counts).unwrap();
                assert!((0..60_000_u64).all(|key| one.contains(&key)));
                let least = |key: u64| match counts {
                    Merge::Sum => key % 3 + 1 + u64::from(key >= 20_000),
                    Merge::Max => key % 3 + 1,
                };
                assert!((0..40_000_u64).all(|key| one.count(&key) >= least(key)));
                assert_eq!(one.verify(), Ok(()));
            }
        }
    }
}
