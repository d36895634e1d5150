//! Checks the hash vectors and the complete examples of docs/FORMAT.md against the code.
//! `image/header.rs` and `address/geometry` check its tables of fields and of locations.

use koel::{
    CountingFilter, CuckooFilter, ExpiringFilter, FilterView, KeyHash, KeyHasher, Maplet, Prefer,
    WhenFull,
};
use testkit::addressing::Addressing;
use testkit::keys::{address, at, sharing_pair};

use crate::subject::Subject;
use crate::support::{FORMAT, body, read, rows};

fn hash(hasher: KeyHasher, key: &str) -> KeyHash {
    match key.split_once(' ') {
        Some(("text", text)) => hasher.hash(text),
        Some(("u32", number)) => hasher.hash(&number.parse::<u32>().unwrap()),
        Some(("u64", number)) => hasher.hash(&number.parse::<u64>().unwrap()),
        Some(("i64", number)) => hasher.hash(&number.parse::<i64>().unwrap()),
        Some((count, "zero bytes")) => hasher.hash(&vec![0; count.parse().unwrap()]),
        _ => hasher.hash(""),
    }
}

#[test]
fn the_hash_vectors_match_the_format() {
    let key = core::array::from_fn(|i| u8::try_from(i).unwrap());
    let hashers =
        [KeyHasher::Xxh3 { seed: 0 }, KeyHasher::Xxh3 { seed: 42 }, KeyHasher::Sip13 { key }];
    let rows = rows("| key | XXH3");
    assert_eq!(rows.len(), 7);
    for row in rows {
        for (hasher, stated) in hashers.into_iter().zip(&row[1..]) {
            assert_eq!(
                format!("{:016x}", address(hash(hasher, row[0]))),
                *stated,
                "{} {hasher}",
                row[0]
            );
        }
    }
}

#[test]
fn the_route_vectors_match_the_format() {
    let rows = rows("| hash | address");
    assert_eq!(rows.len(), 4);
    for row in rows {
        let [hash, expected] = [row[0], row[1]].map(|hex| u64::from_str_radix(hex, 16).unwrap());
        assert_eq!(address(KeyHash::new(hash)), expected);
        assert_eq!(at(expected), KeyHash::new(hash));
        // Two filters agree on the address of a key if their bytes are equal.
        let builder = CuckooFilter::builder(1_000_000, 1e-6);
        let (mut mixes, mut trusts) =
            (builder.build().unwrap(), builder.clone().trust_hashes().build().unwrap());
        mixes.insert(&KeyHash::new(hash)).unwrap();
        trusts.insert(&KeyHash::new(expected)).unwrap();
        let (mixes, trusts) = (mixes.to_bytes(), trusts.to_bytes());
        assert_eq!((read(&trusts, "route"), read(&mixes, "route")), (1, 0));
        assert!(body(&mixes) == body(&trusts));
    }
    let seed = format!("{:016x}", KeyHasher::DEFAULT_SEED);
    assert!(FORMAT.contains(&seed), "{seed}");
}

/// The first `length` bytes of the dump under this heading; lines that the page omits are all
/// zeros.
fn whole(heading: &str, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let (page, _) = FORMAT.split(heading).nth(1).unwrap().split_once("\n#").unwrap();
    let is_offset = |digits: &str| u32::from_str_radix(digits, 16).is_ok();
    let is_row = |line: &&str| line.split_once("  ").is_some_and(|(start, _)| is_offset(start));
    let lines = page.lines().filter(is_row);
    let rows: Vec<_> = lines.map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
    let hex = |digits: &str| usize::from_str_radix(digits, 16).unwrap();
    for row in &rows {
        for (i, byte) in row[1..].iter().enumerate() {
            bytes[hex(row[0]) + i] = u8::from_str_radix(byte, 16).unwrap();
        }
    }
    bytes
}

/// The bytes are those of the page, which are read back.
#[track_caller]
fn assert_is_example<S: Subject>(heading: &str, it: &S) {
    let bytes = it.to_bytes();
    assert!(bytes == whole(&format!("## {heading}\n"), bytes.len()), "{heading}: {}", dump(&bytes));
    assert!(S::from_bytes(&bytes).unwrap() == *it);
}

#[test]
fn the_examples_of_filters_are_these() {
    let builder = CuckooFilter::builder(1, 0.03).seed(42);
    let [mut filter, mut grown] =
        [builder.clone(), builder.growable()].map(|builder| builder.build().unwrap());
    for filter in [&mut filter, &mut grown] {
        filter.insert("example.org").unwrap();
        (0..5).for_each(|_| filter.insert("twice").unwrap());
    }
    assert_is_example("A whole filter", &filter);
    assert_eq!(["example.org", "twice", "absent"].map(|key| filter.count(key)), [1, 5, 0]);

    grown.reserve(212).unwrap();
    grown.insert("later").unwrap();
    assert_is_example("A whole grown filter", &grown);
    // The locations in the table below the dump.
    let entries: Vec<_> = grown.entries().map(|entry| entry.bucket).collect();
    assert_eq!(entries, [18, 21, 27]);

    let mut filter = CuckooFilter::builder(9, 0.000_15).seed(42).trust_hashes().build().unwrap();
    let addressing = Addressing::of(&filter.to_bytes());
    let hashes = sharing_pair(&addressing, 0).take(9).map(KeyHash::new);
    hashes.for_each(|hash| filter.insert(&hash).unwrap());
    let reported = (0_u64..).find(|key| filter.contains(key)).unwrap();
    filter.refute(&reported).unwrap();
    assert_is_example("A filter with a stash", &filter);
    let bytes = filter.to_bytes();
    let view = FilterView::open(&bytes).unwrap();
    assert_eq!((view.stashed_keys(), view.corrections(), view.contains(&reported)), (1, 1, false));
}

#[test]
fn the_examples_of_other_types_are_these() {
    let mut maplet = Maplet::builder(1, 0.03, 40).seed(42).build().unwrap();
    maplet.insert("example.org", 513).unwrap();
    maplet.insert("twice", 1_099_511_627_775).unwrap();
    maplet.insert("twice", 0).unwrap();
    assert_is_example("A whole maplet", &maplet);

    let mut counting = CountingFilter::builder(1, 0.03).count_bits(2).seed(42).build().unwrap();
    counting.insert("example.org").unwrap();
    counting.add("often", 1000).unwrap();
    assert_is_example("A whole counting filter", &counting);

    let builder = ExpiringFilter::builder(1, 0.03).window(60).steps(6).seed(42);
    let mut expiring = builder.when_full(WhenFull::EvictOldest).build().unwrap();
    expiring.advance(1000);
    expiring.insert("example.org").unwrap();
    expiring.advance(1035);
    expiring.insert("later").unwrap();
    assert_is_example("A whole expiring filter", &expiring);
    let ages = ["example.org", "later", "no"].map(|key| expiring.age(key));
    assert_eq!(ages, [Some(3), Some(0), None]);
}

/// The lines of 16 bytes that are not all zeros.
fn dump(bytes: &[u8]) -> String {
    let lines = bytes.chunks(16).enumerate().filter(|(_, line)| line.iter().any(|&byte| byte != 0));
    let hex = |line: &[u8]| line.iter().map(|byte| format!(" {byte:02x}")).collect::<String>();
    lines.map(|(i, line)| format!("{:04x} {}\n", 16 * i, hex(line))).collect()
}

/// Layout, whether keyed, and XXH3-64 of the bytes of filters that hold 0 to 999, with the
/// multiples of ten inserted three times.
const IMAGES: [(Prefer, f64, bool, u64); 9] = [
    (Prefer::Small, 0.03, false, 0xcb57_3be0_ec00_82d6),
    (Prefer::Small, 0.01, false, 0xa175_fd1b_9e97_2989),
    (Prefer::Small, 0.001, false, 0xa1d1_b17a_11bf_cabe),
    (Prefer::Small, 0.000_1, true, 0xc731_2bee_2b6f_c907),
    (Prefer::Small, 1e-8, false, 0xf5e9_da3c_f544_1334),
    (Prefer::Fast, 0.03, false, 0xd1a0_bb7e_ec38_6ba3),
    (Prefer::Fast, 0.002, true, 0x84fd_033e_00da_e416),
    (Prefer::Fast, 0.000_2, false, 0x78cd_a94c_2858_6ac2),
    (Prefer::Fast, 1e-6, false, 0xb81f_04c8_3c32_83f6),
];

#[test]
fn the_bytes_of_every_kind_of_filter_are_stable() {
    let found = IMAGES.map(|(prefer, rate, keyed, _)| {
        let builder = CuckooFilter::builder(1000, rate).prefer(prefer);
        let builder = if keyed { builder.sip_key([3; 16]) } else { builder };
        let mut filter = builder.build().unwrap();
        for key in 0..1000_u64 {
            let times = if key % 10 == 0 { 3 } else { 1 };
            (0..times).for_each(|_| filter.insert(&key).unwrap());
        }
        let digest = address(KeyHasher::default().hash(&filter.to_bytes()));
        (prefer, rate, keyed, digest)
    });
    assert!(found == IMAGES, "{found:#018x?}");
}
