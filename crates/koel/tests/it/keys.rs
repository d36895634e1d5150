//! Keys and their hashes are interchangeable: a call with keys gives the answers and bytes of the
//! call with their hashes.

use koel::{CountingFilter, CuckooFilter, KeyHash, KeyHasher, Maplet, Values};

/// Keys of several lengths, one of them twice.
const NAMES: [&str; 6] = ["ada", "grace", "mary", "ada", "", "emmy noether"];

fn hashes(hasher: KeyHasher) -> [KeyHash; 6] {
    NAMES.map(|name| hasher.hash(name))
}

#[test]
fn a_filter_treats_keys_like_their_hashes() {
    let builder = CuckooFilter::builder(10_000, 1e-6);
    for builder in [builder.clone(), builder.grow_from(1000)] {
        let (mut by_keys, mut by_hashes) = (builder.build().unwrap(), builder.build().unwrap());
        let hashes = hashes(by_keys.hasher());
        let mut added = [[false; 6]; 2];
        by_keys.insert_unique_many(&NAMES, &mut added[0]).unwrap();
        by_hashes.insert_unique_many(&hashes, &mut added[1]).unwrap();
        assert_eq!(added, [[true, true, true, false, true, true]; 2]);
        for (name, hash) in NAMES.into_iter().zip(hashes) {
            assert_eq!(by_keys.insert_unique(name), by_hashes.insert_unique(&hash));
        }
        assert_eq!(by_keys.insert_unique("emmy"), Ok(true));
        assert_eq!(by_hashes.insert_unique(&by_keys.hasher().hash("emmy")), Ok(true));
        by_keys.try_extend(NAMES).unwrap();
        hashes.iter().for_each(|hash| by_hashes.insert(hash).unwrap());
        assert!(by_keys == by_hashes && by_keys.len() == 6 + 6);
    }
}

#[test]
fn a_maplet_treats_keys_like_their_hashes() {
    let values = [1, 2, 3, 4, 5, 6];
    let changes = values.map(|value| (value, 10 + value % 5));
    for builder in [Maplet::builder(100, 1e-6, 8), Maplet::builder(100, 1e-6, 8).grow_from(1)] {
        let (mut by_keys, mut by_hashes) = (builder.build().unwrap(), builder.build().unwrap());
        let hashes = hashes(by_keys.hasher());
        by_keys.insert_many(&NAMES, &values).unwrap();
        by_hashes.insert_many(&hashes, &values).unwrap();
        let mut replaced = [[false; 5]; 2];
        by_keys.replace_many(&NAMES[1..], &changes[1..], &mut replaced[0]).unwrap();
        by_hashes.replace_many(&hashes[1..], &changes[1..], &mut replaced[1]).unwrap();
        assert_eq!(replaced, [[true; 5]; 2]);
        assert!(by_keys == by_hashes);
        let mut found = [(); 2].map(|()| [(); 6].map(|()| Values::default()));
        by_keys.get_many(&NAMES, &mut found[0]);
        by_hashes.get_many(&hashes, &mut found[1]);
        let [by_keys, by_hashes] = found.map(|found| {
            found.map(|values| {
                let mut values: Vec<u64> = values.collect();
                values.sort_unstable();
                values
            })
        });
        let expected: [&[u64]; 6] = [&[1, 14], &[12], &[13], &[1, 14], &[10], &[11]];
        assert_eq!(by_keys, expected);
        assert_eq!(by_keys, by_hashes);
    }
}

#[test]
fn a_counting_filter_treats_keys_like_their_hashes() {
    let builder = CountingFilter::builder(100, 1e-6);
    for builder in [builder.clone(), builder.grow_from(1)] {
        let (mut by_keys, mut by_hashes) = (builder.build().unwrap(), builder.build().unwrap());
        let hashes = hashes(by_keys.hasher());
        by_keys.insert_many(&NAMES).unwrap();
        by_hashes.insert_many(&hashes).unwrap();
        assert!(by_keys == by_hashes);
        let mut counts = [[9; 6]; 2];
        by_keys.count_many(&NAMES, &mut counts[0]);
        by_hashes.count_many(&hashes, &mut counts[1]);
        assert_eq!(counts, [[2, 1, 1, 2, 1, 1]; 2]);
        assert!(NAMES.iter().all(|name| by_keys.contains(*name)) && !by_keys.contains("noether"));
    }
}

#[cfg(feature = "std")]
#[test]
fn a_concurrent_filter_treats_keys_like_their_hashes() {
    let builder = koel::ConcurrentFilter::builder(100, 1e-4);
    let (by_keys, by_hashes) = (builder.build().unwrap(), builder.build().unwrap());
    let hashes = hashes(by_keys.hasher());
    by_keys.insert_many(&NAMES).unwrap();
    by_hashes.insert_many(&hashes).unwrap();
    assert_eq!(by_keys.insert_unique("ada"), Ok(false));
    assert_eq!(by_keys.insert_unique("emmy"), Ok(true));
    assert!(by_hashes.insert_unique(&by_keys.hasher().hash("emmy")).unwrap());
    assert!(by_keys.snapshot() == by_hashes.snapshot());
    let (mut found, mut counts, mut removed) = ([false; 6], [9; 6], [false; 6]);
    by_keys.contains_many(&NAMES, &mut found);
    by_keys.count_many(&NAMES, &mut counts);
    assert_eq!((found, counts), ([true; 6], [2, 1, 1, 2, 1, 1]));
    by_keys.remove_many(&NAMES, &mut removed);
    assert_eq!((removed, by_keys.len()), ([true; 6], 1));
    assert!(by_keys.contains("emmy") && !by_keys.contains("ada"));
}
