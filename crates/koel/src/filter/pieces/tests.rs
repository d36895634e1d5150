//! Small plans of many segments: whatever way keys are divided, the bytes are the same, the answers
//! are those of single inserts, and whatever is wrong is refused.

extern crate std;

use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use std::fs;

use proptest::prelude::*;
use testkit::keys::hashes;

use super::message::PIECE;
use super::{PieceError, PiecePlan};
use crate::image::frame::MessageError;
use crate::image::shape::Shape;
use crate::{
    BuildError, CuckooFilter, FileError, FilterView, FullError, ImageError, Part, Piece, Prefer,
};

/// A plan for about `capacity` keys in small segments.
fn plan(prefer: Prefer, rate: f64, segment_bits: u32, capacity: u64) -> PiecePlan {
    let plan = CuckooFilter::builder(capacity, rate).prefer(prefer).pieces().unwrap();
    assert_eq!(plan.segments(), 1);
    let share = capacity >> segment_bits;
    let slots = share + 6 * share.isqrt() + share / 20 + 60;
    let segment_buckets = u32::try_from(slots.div_ceil(4).next_multiple_of(2)).unwrap();
    // One segment keeps its odd number of buckets, which need not end with a byte.
    let one = plan.shape.segment_buckets;
    let segment_buckets = if segment_bits == 0 { one | 1 } else { segment_buckets };
    PiecePlan { shape: Shape { segment_bits, segment_buckets, ..plan.shape }, ..plan }
}

fn joined(plan: &PiecePlan, pieces: &[Piece]) -> CuckooFilter {
    let filter = plan.join(pieces, None).unwrap();
    filter.verify().unwrap();
    filter
}

fn saved(plan: &PiecePlan, pieces: &[Piece], keys: Option<u64>) -> Result<Vec<u8>, FileError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.koel");
    let result = plan.save(&path, pieces.iter().map(Ok::<_, FileError>), keys);
    let left = folder.path().read_dir().unwrap().count();
    assert_eq!(left, usize::from(result.is_ok()), "no temporary file is left");
    result.map(|_| fs::read(path).unwrap())
}

/// The pieces of parts from several machines.
fn built(plan: &PiecePlan, machines: &[&[u64]]) -> Vec<Piece> {
    let parts: Vec<Part> = machines.iter().flat_map(|keys| plan.split(keys).unwrap()).collect();
    let of = |segment| parts.iter().filter(move |part| part.segment() == segment);
    (0..plan.segments()).map(|segment| plan.build(segment, of(segment)).unwrap()).collect()
}

fn settings() -> impl Strategy<Value = (Prefer, f64, u32, bool)> {
    let prefer = prop_oneof![Just(Prefer::Small), Just(Prefer::Fast)];
    (prefer, prop_oneof![Just(0.03), Just(0.001), Just(1e-6), Just(3e-9)], 0..7_u32, any::<bool>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn the_bytes_depend_on_the_keys_only(
        (prefer, rate, segment_bits, unique) in settings(),
        copies in prop::collection::vec(1..6_usize, 0..900),
        cut in any::<prop::sample::Index>(),
        shuffle in any::<u64>(),
    ) {
        let plan = plan(prefer, rate, segment_bits, 1500);
        let plan = if unique { plan.unique() } else { plan };
        let keys = hashes(shuffle, copies.len() as u64).zip(&copies);
        let mut keys: Vec<u64> = keys.flat_map(|(key, &copies)| vec![key; copies]).collect();
        let mut here = plan.build_all(&keys).unwrap();
        let filter = joined(&plan, &here);

        keys.sort_unstable_by_key(|key| key.wrapping_mul(shuffle | 1));
        let cut = cut.index(keys.len() + 1);
        let mut there = built(&plan, &[&keys[cut..], &keys[..cut]]);
        prop_assert!(here == there);
        // Pieces in another order, and one that comes twice.
        there.sort_unstable_by_key(|piece| piece.segment().wrapping_mul(shuffle | 1) % 63);
        there.extend(here.pop());
        let image = filter.to_bytes();
        prop_assert!(plan.join(&there, Some(keys.len() as u64)).unwrap().to_bytes() == image);
        prop_assert!(saved(&plan, &there, None).unwrap() == image);
        prop_assert!(CuckooFilter::from_bytes(&image).unwrap() == filter);

        // Counts of single inserts, which do not depend on their order.
        let mut oracle = CuckooFilter::empty(plan.shape, plan.profile).unwrap();
        for key in &keys {
            if unique { oracle.insert_unique(key).map(|_| ()) } else { oracle.insert(key) }.unwrap();
        }
        prop_assert_eq!(filter.len(), oracle.len());
        for key in keys {
            prop_assert_eq!(filter.count(&key), oracle.count(&key));
        }
    }

    /// Any byte may be wrong, and any may be missing.
    #[test]
    fn damaged_messages_are_refused(at in any::<prop::sample::Index>(), flip in 1..=255_u8) {
        let plan = plan(Prefer::Small, 0.001, 2, 400);
        let keys: Vec<u64> = hashes(1, 300).collect();
        let mut part = plan.split(&keys).unwrap().swap_remove(1).into_bytes();
        let mut pieces: Vec<_> =
            plan.build_all(&keys).unwrap().into_iter().map(Piece::into_bytes).collect();
        let (in_part, in_piece) = (at.index(part.len()), at.index(pieces[1].len()));
        let is_part_0 = |built| matches!(built, Err(PieceError::Part { number: 0, .. }));
        let built = plan.build(1, [&part[..in_part]]);
        prop_assert!(is_part_0(built));
        part[in_part] ^= flip;
        let built = plan.build(1, [&part]);
        prop_assert!(is_part_0(built));
        let cut = [&pieces[0][..], &pieces[1][..in_piece]];
        let is_named = |error| matches!(error, PieceError::Piece { number: 1, .. });
        prop_assert!(is_named(plan.join(cut, None).unwrap_err()));
        pieces[1][in_piece] ^= flip;
        prop_assert!(is_named(plan.join(&pieces, None).unwrap_err()));
    }
}

#[test]
fn counters_are_sorted_whatever_the_order_of_pieces() {
    let plan = plan(Prefer::Fast, 0.001, 4, 1500);
    let keys: Vec<u64> = hashes(3, 700).flat_map(|key| [key; 5]).collect();
    let mut pieces = plan.build_all(&keys).unwrap();
    let image = joined(&plan, &pieces).to_bytes();
    assert!(FilterView::open(&image).unwrap().distinct_counters() > 600);
    for _ in 0..16 {
        pieces.rotate_left(5);
        pieces.swap(2, 9);
        assert!(saved(&plan, &pieces, None).unwrap() == image);
    }
}

#[test]
fn what_is_lost_is_noticed() {
    let plan = plan(Prefer::Small, 0.001, 3, 2000);
    let keys: Vec<u64> = hashes(4, 1500).collect();
    let mut pieces = plan.build_all(&keys).unwrap();
    let lost = pieces.remove(5);
    pieces.remove(6);
    let missing = PieceError::Missing { segment: 5, missing: 2 };
    assert_eq!(plan.join(&pieces, None).unwrap_err(), missing);
    assert!(matches!(saved(&plan, &pieces, None), Err(FileError::Piece(e)) if e == missing));
    assert_eq!(
        missing.to_string(),
        "segment 5 has no piece, and neither have 1 others; if it is empty, give the number of \
         keys that went into the parts"
    );
    assert!(matches!(
        plan.join(&pieces, Some(1500)),
        Err(PieceError::Keys { expected: 1500, got }) if got < 1500
    ));
    // A lost part: the pieces are all there.
    let parts = plan.split(&keys[100..]).unwrap();
    let of = |segment| parts.iter().filter(move |part| part.segment() == segment);
    let pieces: Vec<_> = (0..8).map(|segment| plan.build(segment, of(segment)).unwrap()).collect();
    assert_eq!(plan.join(&pieces, None).unwrap().len(), 1400);
    let lost_part = PieceError::Keys { expected: 1500, got: 1400 };
    assert_eq!(plan.join(&pieces, Some(1500)).unwrap_err(), lost_part);
    drop(lost);
}

#[test]
fn segments_without_keys_need_no_piece_where_the_number_of_keys_is_known() {
    let plan = plan(Prefer::Small, 0.001, 6, 3000);
    for count in [0, 1, 3, 40] {
        let keys: Vec<u64> = hashes(count, count).collect();
        let all = plan.build_all(&keys).unwrap();
        let image = joined(&plan, &all).to_bytes();
        let used: Vec<u64> = keys.iter().map(|key| plan.segment_of(key)).collect();
        let some: Vec<_> =
            all.into_iter().filter(|piece| used.contains(&piece.segment())).collect();
        assert!(plan.join(&some, None).is_err());
        assert!(plan.join(&some, Some(count)).unwrap().to_bytes() == image);
        assert!(saved(&plan, &some, Some(count)).unwrap() == image);
    }
}

#[test]
fn pieces_of_other_plans_and_contradicting_ones_are_named() {
    let plan = plan(Prefer::Small, 0.001, 2, 1000);
    let keys: Vec<u64> = hashes(5, 500).collect();
    let pieces = plan.build_all(&keys).unwrap();
    let mut profile = plan.profile;
    profile.capacity += 1;
    let others = [
        plan.unique(),
        PiecePlan { profile, ..plan },
        PiecePlan { shape: Shape { segment_bits: 1, ..plan.shape }, ..plan },
    ];
    let foreign = |number| PieceError::Piece { number, fault: MessageError::Foreign };
    for other in others {
        assert_eq!(other.join(&pieces, None).unwrap_err(), foreign(0));
        let part = PieceError::Part { number: 0, fault: MessageError::Foreign };
        assert_eq!(other.build(0, plan.split(&keys).unwrap()).unwrap_err(), part);
        let mixed = [&other.build_all(&keys).unwrap()[..1], &pieces].concat();
        assert_eq!(other.join(&mixed, None).unwrap_err(), foreign(1));
    }
    let one = *keys.iter().find(|key| plan.segment_of(*key) == 2).unwrap();
    let others: Vec<u64> = keys.iter().copied().filter(|&key| key != one).collect();
    let contradiction = [&pieces[..3], &plan.build_all(&others).unwrap()].concat();
    let fault = MessageError::Contradicts { segment: 2 };
    let refused = plan.join(&contradiction, None).unwrap_err();
    assert_eq!(refused, PieceError::Piece { number: 5, fault });
    let parts = plan.split(&keys).unwrap();
    let misplaced = PieceError::Part { number: 1, fault: MessageError::Misplaced { segment: 1 } };
    assert_eq!(plan.build(0, &parts).unwrap_err(), misplaced);
    let none = PieceError::NoSegment { segment: 4, segments: 4 };
    assert_eq!(plan.build(4, &parts[..0]).unwrap_err(), none);
    let other = PieceError::Piece { number: 0, fault: MessageError::Other { expected: "piece" } };
    assert_eq!(plan.join(&parts, None).unwrap_err(), other);
}

#[test]
fn keys_that_do_not_fit_are_an_error_of_their_segment() {
    let plan = plan(Prefer::Small, 0.001, 1, 100);
    let keys: Vec<u64> = hashes(6, 5000).filter(|key| plan.segment_of(key) == 1).collect();
    let full = plan.build(1, plan.split(&keys).unwrap()).unwrap_err();
    assert!(matches!(
        full,
        PieceError::Full { segment: 1, keys: n, full: FullError::Slots { .. } }
            if n == keys.len() as u64
    ));
    let mut few = plan;
    few.profile.counter_limit = 2;
    let copies: Vec<u64> = hashes(7, 4).flat_map(|key| [key; 5]).collect();
    let counters = PieceError::TooMany(FullError::Counters { limit: 2 });
    let pieces = few.build_all(&copies);
    assert!(pieces.map_or(true, |pieces| few.join(&pieces, None).unwrap_err() == counters
        && matches!(saved(&few, &pieces, None), Err(FileError::Piece(e)) if e == counters)));
}

/// A filter that starts small has one segment, and is no longer a row of segments once it is large.
#[test]
fn growing_filters_are_built_in_pieces_only_if_they_have_not_grown() {
    let builder = CuckooFilter::builder(1_000_000, 0.001);
    assert_eq!(builder.clone().grow_from(1000).pieces(), Err(BuildError::Pieces));
    let plan = builder.growable().pieces().unwrap();
    let mut filter = plan.join(plan.build_all(&[1_u64, 2]).unwrap(), None).unwrap();
    assert!(filter.is_growable() && filter.contains(&1_u64));
    filter.try_extend(0..1_500_000_u64).unwrap();
    assert!(filter.has_grown() && filter.contains(&2_u64));
}

/// A piece may be a sound filter, and no segment: what it has beside its table would be lost, or
/// would be two equal records of the whole.
#[test]
fn a_piece_with_corrections_or_with_addresses_of_no_segment_is_refused() {
    let plan = plan(Prefer::Small, 1e-6, 2, 400);
    let of = |change: &dyn Fn(&mut CuckooFilter)| {
        let mut filter = CuckooFilter::empty(plan.segment_shape(), plan.profile).unwrap();
        change(&mut filter);
        let (content, keys) = (filter.to_bytes(), filter.len());
        let mut piece = PIECE.with_room(content.len()).unwrap();
        piece.extend_from_slice(&content);
        PIECE.seal([plan.digest(), 1, keys], &mut piece);
        plan.join([piece], Some(keys))
    };
    let stashing = |low: u64| {
        move |filter: &mut CuckooFilter| {
            filter.body.state.side.stash_copies((5 << 40 | low, 0), 1);
            filter.body.state.len = 1;
        }
    };
    assert_eq!(of(&stashing(0)).unwrap().len(), 1);
    let refused = |built: Result<CuckooFilter, PieceError>| match built.unwrap_err() {
        PieceError::Piece {
            fault: MessageError::Forged(ImageError::Field { field, .. }), ..
        } => field,
        error => panic!("{error}"),
    };
    assert_eq!(refused(of(&stashing(1))), "stashed key");
    assert_eq!(refused(of(&|filter| filter.body.state.side.correct(4))), "corrections");
}
