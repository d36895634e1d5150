//! What bytes and keys of strangers make a filter allocate, counted by the allocator: the bounds of
//! docs/SECURITY.md.

use allocation_counter::measure;
use koel::{CuckooFilter, FilterView, KeyHash, Merge, PatchSummary};
use testkit::addressing::Addressing;
use testkit::keys::{self, all_at, at};

/// For small things: searches, nodes of trees, the ends of buffers.
const SMALL: u64 = 400 << 10;

/// The most bytes that were allocated at a time during a call, those that stay, and its result.
fn allocated<T>(call: impl FnOnce() -> T) -> ([u64; 2], T) {
    let mut result = None;
    let info = measure(|| result = Some(call()));
    let stay = u64::try_from(info.bytes_current).unwrap_or(0);
    ([info.bytes_max, stay], result.expect("it was called"))
}

fn hashes(seed: u64, count: u64) -> Vec<KeyHash> {
    keys::hashes(seed, count).map(at).collect()
}

/// Keys for one pair of buckets, each with another fingerprint.
fn of_one_pair(filter: &CuckooFilter, count: usize) -> Vec<KeyHash> {
    let addressing = Addressing::of(&filter.to_bytes());
    let keys: Vec<u64> = keys::sharing_pair(&addressing, 7).take(count).collect();
    all_at(&keys)
}

/// A full filter, and absent keys that it reports.
fn with_mistakes() -> (CuckooFilter, Vec<KeyHash>) {
    let mut filter = CuckooFilter::builder(100_000, 0.03).build().unwrap();
    filter.insert_many(&hashes(1, 100_000)).unwrap();
    let wrong = hashes(2, 1_000_000).into_iter().filter(|key| filter.contains(key)).collect();
    (filter, wrong)
}

/// Filters of one segment and of several, and such as have much beside the table: copies, a stash,
/// corrections.
fn laden() -> Vec<CuckooFilter> {
    let filled = |keys| {
        let mut filter = CuckooFilter::builder(keys, 1e-4).growable().build().unwrap();
        filter.insert_many(&hashes(1, keys)).unwrap();
        filter
    };
    let mut copied = filled(100_000);
    (0..3).for_each(|_| copied.insert_many(&hashes(1, 100_000)).unwrap());
    let mut stashing = CuckooFilter::builder(1000, 1e-6).growable().build().unwrap();
    stashing.insert_many(&of_one_pair(&stashing, 50_000)).unwrap();
    let (mut corrected, wrong) = with_mistakes();
    corrected.force_refute_many(&wrong).unwrap();
    vec![filled(100_000), filled(5_000_000), copied, stashing, corrected]
}

/// Its bytes, the entries of a segment, and the records beside the table, as bytes in memory.
fn bound(filter: &CuckooFilter) -> u64 {
    let records = filter.distinct_counters() + filter.stashed_keys() + filter.corrections();
    let of_segment = filter.slots() / filter.segments();
    filter.size_in_bytes() as u64 + 24 * of_segment + 64 * records
}

#[test]
fn a_view_is_opened_and_asked_without_memory() {
    for filter in laden() {
        let bytes = filter.to_bytes();
        let ([most, _], ()) = allocated(|| {
            let view = FilterView::open(&bytes).unwrap();
            for key in keys::hashes(3, 1000).map(at) {
                assert_eq!(view.contains(&key), view.count(&key) > 0);
            }
        });
        assert_eq!(most, 0, "{filter:?}");
    }
}

#[test]
fn bytes_of_filters_make_what_they_are_and_the_entries_of_a_segment() {
    for filter in laden() {
        let (bytes, most) = (filter.to_bytes(), bound(&filter));
        let ([at_once, _], loaded) = allocated(|| CuckooFilter::from_bytes(&bytes).unwrap());
        let ([streamed, _], _) = allocated(|| CuckooFilter::load_from(&*bytes).unwrap());
        assert!(at_once.max(streamed) < most + SMALL, "{at_once}, {streamed} of {most}");
        let empty = {
            let mut empty = loaded.clone();
            empty.clear();
            empty
        };
        let patch = empty.patch_to(&loaded).unwrap();
        let ([summary, _], _) = allocated(|| PatchSummary::of(&patch).unwrap());
        assert_eq!(summary, 0);
        let ([patched, _], _) = allocated(|| empty.patched(&patch).unwrap());
        assert!(patched < 2 * most + SMALL, "{patched} of {most}");
        let view = FilterView::open(&bytes).unwrap();
        for counts in [Merge::Sum, Merge::Max] {
            let mut union = loaded.clone();
            let ([merged, _], ()) = allocated(|| union.merge(&view, counts).unwrap());
            let most = most.max(bound(&union));
            assert!(merged < 3 * most + SMALL, "{counts:?}: {merged} of {most}");
        }
    }
}

#[test]
fn parts_and_pieces_make_no_more_than_twice_their_bytes_and_the_entries_of_a_segment() {
    let plan = CuckooFilter::builder(2_000_000, 0.001).pieces().unwrap();
    assert!(plan.segments() > 1);
    let keys: Vec<u64> = (0..2_000_000).collect();
    let parts = plan.split(&keys).unwrap().into_iter().map(koel::Part::into_bytes);
    let mut pieces = Vec::new();
    for (number, part) in (0..).zip(parts) {
        let ([built, _], piece) = allocated(|| plan.build(number, [&part]).unwrap());
        pieces.push(piece.into_bytes());
        let bytes = part.len() as u64;
        assert!(built < 2 * bytes + SMALL, "{built} of {bytes}");
    }
    let ([joined, _], filter) = allocated(|| plan.join(&pieces, None).unwrap());
    assert!(joined < bound(&filter) + SMALL, "{joined} of {}", bound(&filter));
}

#[test]
fn a_record_beside_the_table_takes_at_most_64_bytes_of_memory() {
    let mut stashing = CuckooFilter::builder(60_000, 1e-9).counter_limit(u64::MAX).build().unwrap();
    let chosen = of_one_pair(&stashing, 20_000);
    let mut most = Vec::new();
    let ([_, stay], ()) = allocated(|| chosen.iter().for_each(|key| stashing.insert(key).unwrap()));
    most.push((stay, stashing.stashed_keys()));

    let mut copied = CuckooFilter::builder(20_000, 0.001).build().unwrap();
    let keys = hashes(1, 20_000);
    let ([_, stay], ()) = allocated(|| (0..3).for_each(|_| copied.insert_many(&keys).unwrap()));
    most.push((stay, copied.distinct_counters()));

    let (filter, wrong) = with_mistakes();
    let (mut one, mut all) = (filter.clone(), filter);
    let ([_, stay], ()) =
        allocated(|| wrong.iter().for_each(|key| assert_eq!(one.refute(key), Ok(true))));
    most.push((stay, one.corrections()));
    let ([taken, _], _) = allocated(|| all.force_refute_many(&wrong).unwrap());
    most.push((taken, all.corrections()));
    for (bytes, records) in most {
        assert!(records > 10_000 && bytes < 64 * records, "{bytes} for {records}");
    }
}
