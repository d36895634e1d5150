//! A copy that is read from a file grows like the filter that was written, also while its buckets
//! are being widened.

use koel::{CuckooFilter, Prefer};

/// Operations of every kind around the beginning of growth: single keys and many, known ones among
/// them, and removals.
fn change(filter: &mut CuckooFilter, round: u64) {
    let first = 10_000 * round;
    for key in first..first + 30 {
        filter.insert(&key).unwrap();
        filter.insert_unique(&(key / 2)).unwrap();
    }
    for key in first..first + 10 {
        assert!(filter.remove(&key));
    }
    let many: Vec<u64> = (0..5000).map(|i| first + i % 600).collect();
    if round.is_multiple_of(2) {
        filter.insert_many(&many).unwrap();
    } else {
        filter.insert_unique_many(&many[..40], &mut [false; 40]).unwrap();
    }
}

#[test]
fn a_copy_from_a_file_grows_like_its_filter() {
    for prefer in [Prefer::Small, Prefer::Fast] {
        for capacity in [1000, 20_000] {
            let builder = CuckooFilter::builder(capacity, 0.001).prefer(prefer).growable();
            let mut filter = builder.build().unwrap();
            let mut next = (1_u64 << 40)..;
            while !filter.has_grown() {
                filter.insert(&next.next().unwrap()).unwrap();
            }
            for round in 0..24 {
                let mut copy = CuckooFilter::from_bytes(&filter.to_bytes()).unwrap();
                assert!(copy == filter, "{prefer:?}, round {round}");
                let mut original = filter.clone();
                for later in 0..3 {
                    change(&mut original, 3 * round + later);
                    change(&mut copy, 3 * round + later);
                    assert!(copy.to_bytes() == original.to_bytes(), "{prefer:?}, round {round}");
                }
                filter.insert(&next.next().unwrap()).unwrap();
            }
        }
    }
}
