//! Filters built in pieces, at the size that has several segments, and the messages of
//! docs/FORMAT.md. `filter/pieces/tests.rs` has the properties, in small segments.

use koel::{CuckooFilter, FilterView, KeyHasher, PiecePlan, Prefer};
use testkit::keys::{address, hashes};

use crate::support::{FORMAT, dump, field};

/// Enough keys for several segments.
const KEYS: u64 = 3_100_000;

/// At full capacity, with the sizes that users get.
#[test]
fn pieces_of_a_large_filter_give_the_filter_of_all_keys() {
    let keys: Vec<u64> = hashes(1, KEYS).collect();
    for prefer in [Prefer::Small, Prefer::Fast] {
        let builder = CuckooFilter::builder(KEYS, 0.001).prefer(prefer);
        let plan = builder.pieces().unwrap();
        assert!(plan.segments() > 2 && plan.capacity() == KEYS);
        let pieces = plan.build_all(&keys).unwrap();
        let filter = plan.join(pieces.iter().rev(), Some(KEYS)).unwrap();
        filter.verify().unwrap();
        assert_eq!(filter.segments(), plan.segments());
        let whole = builder.build_from(&keys).unwrap();
        assert_eq!(filter.len(), whole.len());
        assert_eq!(filter.false_positive_rate(), whole.false_positive_rate());
        assert_eq!(filter.size_in_bytes(), whole.size_in_bytes());
        let mut found = vec![false; keys.len()];
        filter.contains_many(&keys, &mut found);
        assert!(found.iter().all(|&is_in| is_in));
    }
}

/// Regression: at full capacity, one segment in 3 million got more than five standard deviations
/// above its share, and a build of thousands of segments failed by chance.
#[test]
fn a_segment_takes_all_keys_that_may_come_to_it_by_chance() {
    let plan = CuckooFilter::builder(KEYS, 0.001).pieces().unwrap();
    let share = KEYS / plan.segments();
    let many = usize::try_from(share + 8 * share.isqrt()).unwrap();
    let here = hashes(2, u64::MAX).filter(|key| plan.segment_of(key) == 1);
    let keys: Vec<u64> = here.take(many).collect();
    let pieces = [plan.build(1, plan.split(&keys).unwrap()).unwrap()];
    let filter = plan.join(&pieces, Some(keys.len() as u64)).unwrap();
    filter.verify().unwrap();
    let mut found = vec![false; keys.len()];
    filter.contains_many(&keys, &mut found);
    assert!(found.iter().all(|&is_in| is_in));
    // More cannot come by chance.
    let more = hashes(3, u64::MAX).filter(|key| plan.segment_of(key) == 1).take(many / 50);
    let keys: Vec<u64> = keys.into_iter().chain(more).collect();
    let full = plan.build(1, plan.split(&keys).unwrap()).unwrap_err();
    assert!(full.to_string().starts_with("segment 1 has no room for its 7"), "{full}");
}

/// A plan is made on each machine, so it must come out alike, and be told apart from others.
#[test]
fn the_digest_of_a_plan_is_that_of_the_page() {
    let builder = CuckooFilter::builder(KEYS, 0.001).counter_limit(77);
    let secret = builder.clone().sip_key([3; 16]);
    for (builder, unique, flags, hash) in
        [(builder, false, 0, [0; 16]), (secret.growable().trust_hashes(), true, 15, [3; 16])]
    {
        let plan = builder.pieces().unwrap();
        let plan = if unique { plan.unique() } else { plan };
        let image = builder.build().unwrap().to_bytes();
        let of = |name| &image[field(name)];
        let settings = [
            of("capacity"),
            of("requested rate"),
            &77_u64.to_le_bytes(),
            of("segment buckets"),
            of("segment bits"),
            of("codec"),
            of("fingerprint bits"),
            &[flags],
            of("seed"),
            of("application bytes"),
        ]
        .concat();
        assert_eq!(settings.len(), 56);
        assert!(flags == 0 || of("seed") == hash);
        let digest = address(KeyHasher::Xxh3 { seed: 0 }.hash(&settings));
        let part = plan.split(&[1_u64]).unwrap().swap_remove(0).into_bytes();
        assert_eq!(part[16..24], digest.to_le_bytes());
    }
}

fn example() -> PiecePlan {
    CuckooFilter::builder(1, 0.03).seed(42).pieces().unwrap()
}

#[test]
fn the_part_and_the_piece_of_the_format_are_these() {
    let plan = example();
    let parts = plan.split(&["example.org", "twice", "twice"]).unwrap();
    let piece = plan.build(0, &parts).unwrap();
    let (frame, image) = piece.as_ref().split_at(48);
    let dumps = dump(parts[0].as_ref()) + &dump(&frame[..40]);
    assert!(FORMAT.contains(&dumps), "{dumps}");
    let segment = FilterView::open(image).unwrap();
    assert_eq!((segment.len(), segment.count("twice")), (3, 2));
    assert_eq!(segment.capacity(), 10);
    assert_eq!(plan.join([&piece], None).unwrap().capacity(), 1);
}

#[test]
fn addresses_are_those_of_the_format() {
    let plan = CuckooFilter::builder(KEYS, 0.001).pieces().unwrap();
    for key in ["", "a", "example.org"] {
        let address = address(plan.hasher().hash(key));
        assert_eq!(plan.address(key), address);
        assert_eq!(plan.segment_of(key), address >> 62);
        assert_eq!(plan.segment_of(&plan.hasher().hash(key)), address >> 62);
    }
    assert_eq!((example().segments(), example().segment_of("a")), (1, 0));
}
