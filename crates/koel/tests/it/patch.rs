//! Patches: what they make is the new filter as a multiset, whatever happened between both, and
//! nothing else is ever made.

use std::collections::BTreeMap;

use koel::{
    Builder, CuckooFilter, FilterView, FullError, MessageError, PatchError, PatchSummary, Prefer,
};
use testkit::addressing::Addressing;
use testkit::audit::audit;
use testkit::cases::{Case, Setup};
use testkit::keys::{self, at};
use testkit::patches::{Content, assert_is, either_way, reseal, shaped};

use crate::support::{FORMAT, dump, forged, with_counts};

/// A filter, and the keys that were inserted and not removed.
#[derive(Clone)]
struct Held {
    filter: CuckooFilter,
    keys: BTreeMap<u64, u64>,
}

impl Held {
    fn new(setup: &Setup) -> Self {
        Self { filter: setup.build(), keys: BTreeMap::new() }
    }

    /// Changes the filter so many times, with some of these hashes.
    fn change(&mut self, hashes: &[u64], seed: u64, times: u64) {
        for choice in keys::hashes(seed, times) {
            let hash = hashes[usize::try_from(choice >> 8).unwrap_or(0) % hashes.len()];
            match choice % 16 {
                0..8 => self.insert(hash),
                8 => (0..choice >> 60).for_each(|_| self.insert(hash)),
                9..14 => self.remove(hash),
                _ => {
                    if !self.keys.contains_key(&hash) {
                        either_way(self.filter.refute(&at(hash)));
                    }
                }
            }
        }
    }

    fn insert(&mut self, hash: u64) {
        if self.filter.insert(&at(hash)).is_ok() {
            *self.keys.entry(hash).or_insert(0) += 1;
        }
    }

    fn remove(&mut self, hash: u64) {
        let Some(copies) = self.keys.get_mut(&hash) else { return };
        *copies -= 1;
        assert!(self.filter.remove(&at(hash)));
        self.keys.retain(|_, copies| *copies > 0);
    }
}

/// Any setup, with few keys or many, and the hashes that its filters get.
fn setup(seed: u64) -> (Setup, Vec<u64>) {
    let bytes: Vec<u8> = keys::hashes(seed, 6).map(|hash| hash.to_le_bytes()[0]).collect();
    let setup = Case::decode(&bytes, 0).setup;
    let hashes = setup.hashes(&setup.build());
    (setup, hashes)
}

/// Patches `old` to `new`, if the new entries fit. Checks everything that a patch promises.
fn check(old: &Held, new: &Held) -> Option<CuckooFilter> {
    let content = Content::of(&new.filter);
    let patch = match old.filter.patch_to(&new.filter) {
        Ok(patch) => patch,
        Err(PatchError::Full(_)) => return None,
        Err(error) => panic!("{error}"),
    };
    let before = old.filter.to_bytes();
    let patched = old.filter.patched(&patch).unwrap();
    assert_is(&patched, &content);
    assert!(new.keys.iter().all(|(&key, &copies)| patched.count(&at(key)) >= copies));
    let [old_view, new_view] = [&old.filter, &new.filter].map(CuckooFilter::to_bytes);
    let [old_view, new_view] = [&old_view, &new_view].map(|it| FilterView::open(it).unwrap());
    assert_eq!(old_view.patch_to(&new_view), Ok(patch.clone()));
    assert!(old_view.patched(&patch).unwrap() == patched && old.filter.to_bytes() == before);
    let summary = PatchSummary::of(&patch).unwrap();
    assert_eq!([summary.old_keys, summary.new_keys], [old.filter.len(), new.filter.len()]);
    if Content::of(&old.filter) == content {
        assert!(patch.len() == 74 && patched == old.filter, "{}", patch.len());
    } else {
        assert_eq!(patched.patched(&patch), Err(PatchError::Applied));
    }
    Some(patched)
}

#[test]
fn what_a_patch_makes_is_the_new_filter_as_a_multiset_whatever_happened() {
    let (mut made, mut full, mut seen) = (0, 0, [0; 4]);
    for seed in 0..600 {
        let (setup, hashes) = setup(seed);
        let mut old = Held::new(&setup);
        old.change(&hashes, seed, seed % 7 * 60);
        let mut new = if seed % 3 == 0 { Held::new(&setup) } else { old.clone() };
        new.change(&hashes, seed + 1000, seed % 5 * 40);
        let Some(patched) = check(&old, &new) else {
            full += 1;
            continue;
        };
        made += 1;
        let Content(parts) = Content::of(&patched);
        let is_there = [0, 1, 2].map(|i| !parts[i].is_empty());
        let is_there = [is_there[0], is_there[1], is_there[2], patched.distinct_counters() > 0];
        (0..4).for_each(|i| seen[i] += u32::from(is_there[i]));
        // The next night starts from what was patched, or from equal content in other slots.
        let mut last = Held { filter: patched, keys: new.keys.clone() };
        last.change(&hashes, seed + 2000, 30);
        let next = Held { filter: new.filter.clone(), keys: new.keys };
        let (Some(one), Some(other)) = (check(&next, &last), check(&last, &next)) else { continue };
        assert_is(&one, &Content::of(&last.filter));
        assert_is(&other, &Content::of(&next.filter));
    }
    assert!(made > 500 && full < 90, "{made} {full}");
    assert!(seen.iter().all(|&times| times > 40), "{seen:?}");
}

/// A patch depends on the content alone, and equal bytes stay equal.
#[test]
fn equal_copies_stay_equal_and_equal_content_gives_an_equal_patch() {
    let builder = CuckooFilter::builder(2000, 0.001);
    let list = |range: std::ops::Range<u64>, step: usize| {
        let mut filter = builder.build().unwrap();
        let (range, reversed) = (range.clone(), range.rev());
        if step == 0 { filter.try_extend(range) } else { filter.try_extend(reversed) }.unwrap();
        filter
    };
    let [old, same] = [0, 1].map(|step| list(0..1800, step));
    let [new, like] = [0, 1].map(|step| list(30..1850, step));
    assert!(old != same && new != like);
    let patch = old.patch_to(&new).unwrap();
    assert_eq!(same.patch_to(&like).unwrap(), patch);
    let copies = [0; 3].map(|_| CuckooFilter::from_bytes(&old.to_bytes()).unwrap());
    let patched = copies.map(|copy| copy.patched(&patch).unwrap().to_bytes());
    assert!(patched.iter().all(|bytes| *bytes == patched[0]));
    assert_is(&same.patched(&patch).unwrap(), &Content::of(&new));
}

/// At the size and load that users get, in several segments.
#[test]
fn a_patch_of_many_keys_takes_few_bytes_a_change() {
    let keys: Vec<u64> = keys::hashes(1, 1_010_000).collect();
    for prefer in [Prefer::Small, Prefer::Fast] {
        let builder = CuckooFilter::builder(1_000_000, 0.001).prefer(prefer);
        let old = builder.build_from(&keys[..1_000_000]).unwrap();
        let mut new = builder.build_from(&keys[1000..1_001_000]).unwrap();
        assert!(old.segments() > 1 || prefer == Prefer::Small);
        let refuted = (0..1_000_000_u64).filter(|key| new.refute(key).unwrap()).count();
        let patch = old.patch_to(&new).unwrap();
        let changes = 2000 + refuted;
        assert!(patch.len() < 7 * refuted + 5 * 1000, "{} for {changes}", patch.len());
        assert_is_like(&old.patched(&patch).unwrap(), &new);
        new.clone().refute(&0_u64).unwrap();
        let names = builder.build_from(&keys[1000..1_001_000]).unwrap();
        let patch = old.patch_to(&names).unwrap();
        assert!(2 * patch.len() < 7 * 2000, "{} bytes for 2000 changes", patch.len());
    }
}

/// The same content, without the slow check of every byte.
fn assert_is_like(filter: &CuckooFilter, other: &CuckooFilter) {
    assert!(Content::of(filter) == Content::of(other));
    assert_eq!((filter.len(), filter.verify()), (other.len(), Ok(())));
}

fn with_stash_and_corrections() -> [CuckooFilter; 2] {
    let builder = CuckooFilter::builder(40, 1e-3).seed(42).counter_limit(20);
    let empty = shaped(&builder, 1, 5);
    let pair = Addressing::of(&empty.to_bytes());
    let chosen: Vec<u64> = keys::sharing_pair(&pair, 7).take(12).collect();
    let fill = |filter: &mut CuckooFilter, first: usize| {
        chosen[first..first + 10].iter().for_each(|&hash| either_way(filter.insert(&at(hash))));
        (0..12_u64).for_each(|key| filter.insert(&(key + first as u64)).unwrap());
        (0..5).for_each(|_| filter.insert(&(first as u64 + 3)).unwrap());
        let absent = 100 + first as u64..5000;
        absent.for_each(|key| either_way(filter.refute(&key)));
    };
    [0, 2].map(|first| {
        let mut filter = empty.clone();
        fill(&mut filter, first);
        assert!(filter.stashed_keys() > 0 && filter.corrections() > 0);
        filter
    })
}

/// Every bit and every length, as they arrive and with a checksum that fits.
#[test]
fn no_damage_makes_another_filter_than_the_new_one() {
    let [old, new] = with_stash_and_corrections();
    let (patch, content) = (old.patch_to(&new).unwrap(), Content::of(&new));
    let before = old.to_bytes();
    let mut harmless = 0;
    for bit in 0..8 * patch.len() {
        let mut damaged = patch.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let error = old.patched(&damaged).unwrap_err();
        let expected = match bit / 8 {
            0..8 => MessageError::Other { expected: "patch" },
            8..10 => {
                MessageError::Version { version: u16::from_le_bytes([damaged[8], damaged[9]]) }
            }
            _ => MessageError::Damaged,
        };
        assert_eq!(error, PatchError::Message(expected), "bit {bit}");
        reseal(&mut damaged);
        match old.patched(&damaged) {
            Ok(patched) => {
                assert_is(&patched, &content);
                harmless += 1;
            }
            Err(error) => assert!(!error.to_string().contains('\n')),
        }
    }
    // The bits of the checksum itself.
    assert_eq!(harmless, 64);
    for end in 0..patch.len() {
        let error = old.patched(&patch[..end]).unwrap_err();
        assert_eq!(error, PatchError::Message(MessageError::Damaged), "{end}");
        let mut cut = patch[..end].to_vec();
        reseal(&mut cut);
        assert!(old.patched(&cut).is_err());
    }
    for byte in 0..=u8::MAX {
        let mut longer = [&patch[..], &[byte]].concat();
        assert_eq!(old.patched(&longer), Err(PatchError::Message(MessageError::Damaged)));
        reseal(&mut longer);
        assert_eq!(old.patched(&longer), Err(PatchError::Forged));
    }
    assert_eq!(old.to_bytes(), before);
}

#[test]
fn a_wrong_base_is_refused_with_what_to_do() {
    let [old, new] = with_stash_and_corrections();
    let patch = old.patch_to(&new).unwrap();
    assert_eq!(new.patched(&patch), Err(PatchError::Applied));
    let mut other = old.clone();
    other.remove(&3_u64);
    let wrong = PatchError::WrongBase { expected: old.len(), found: other.len() };
    assert_eq!(other.patched(&patch), Err(wrong));
    assert!(wrong.to_string().contains("get the whole new filter"));
    // One correction or one stashed copy makes another filter too.
    let mut other = old.clone();
    assert!((0..100_000_u64).any(|key| other.refute(&key) == Ok(true)));
    assert!(matches!(other.patched(&patch), Err(PatchError::WrongBase { .. })));
    for builder in [
        CuckooFilter::builder(40, 1e-3).seed(43),
        CuckooFilter::builder(40, 1e-3).sip_key([1; 16]),
        CuckooFilter::builder(41, 1e-3).seed(42),
        CuckooFilter::builder(40, 1e-2).seed(42),
    ] {
        let filter = builder.counter_limit(20).build().unwrap();
        assert_eq!(filter.patched(&patch), Err(PatchError::OtherSettings));
    }
}

#[test]
fn filters_that_cannot_be_patched_are_refused_with_how_to_build_them() {
    let base = || CuckooFilter::builder(1000, 0.001);
    let old = base().build().unwrap();
    let to = |builder: Builder<CuckooFilter>| old.patch_to(&builder.build().unwrap()).unwrap_err();
    assert_eq!(to(CuckooFilter::builder(1001, 0.001)), PatchError::Sizes { old: 1000, new: 1001 });
    for (builder, field) in [
        (base().prefer(Prefer::Fast), "layout"),
        (base().seed(1), "hash"),
        (base().sip_key([1; 16]), "hash"),
        (base().trust_hashes(), "route"),
        (base().application([1, 0, 0, 0, 0, 0, 0, 0]), "application bytes"),
        (base().application([0, 0, 0, 0, 0, 0, 0, 1]), "application bytes"),
        (base().counter_limit(1), "counter limit"),
        (base().growable().counter_limit(old.counter_limit()), "growth"),
        (CuckooFilter::builder(1000, 0.001 + 1e-12), "rate"),
    ] {
        let refused = to(builder);
        assert_eq!(refused, PatchError::Incompatible { field });
        assert!(refused.to_string().contains("build the new one with"), "{refused}");
    }
    let start = base().growable().build().unwrap();
    let mut later = start.clone();
    later.extend(0..900_u64);
    let patched = start.patched(&start.patch_to(&later).unwrap()).unwrap();
    assert_is(&patched, &Content::of(&later));
    assert!(patched.is_growable());
    let mut sparse = start.clone();
    sparse.reserve(5000).unwrap();
    let refused = start.patch_to(&sparse).unwrap_err();
    assert!(matches!(refused, PatchError::Sparse { entries: 0, .. }), "{refused}");
}

/// A growable filter with these copies of keys, in an order of its own, of which it forgets some.
fn grown(builder: &Builder<CuckooFilter>, seed: u64, keys: u64, gone: u64) -> Held {
    let mut held = Held { filter: builder.build().unwrap(), keys: BTreeMap::new() };
    let mut hashes: Vec<u64> = keys::hashes(3, keys).collect();
    hashes.sort_unstable_by_key(|hash| hash.rotate_left(u32::try_from(seed).unwrap()));
    for (number, hash) in (0..).zip(&hashes) {
        (0..[1, 1, 1, 1, 2, 7][number % 6]).for_each(|_| held.insert(*hash));
    }
    hashes.iter().take(usize::try_from(gone).unwrap()).for_each(|hash| held.remove(*hash));
    let absent = keys::hashes(4, 300).filter(|hash| !held.keys.contains_key(hash));
    absent.for_each(|hash| either_way(held.filter.refute(&at(hash))));
    held
}

/// Whether growth differs or not, a patch makes the entries of the new filter, so the next patch
/// fits what this one made.
#[test]
fn filters_that_grew_differently_are_patched_one_after_the_other() {
    for (rate, prefer) in [(0.03, Prefer::Small), (1e-3, Prefer::Fast), (1e-6, Prefer::Small)] {
        let builder = CuckooFilter::builder(60, rate).prefer(prefer).growable().sip_key([7; 16]);
        // The numbers of keys in one filter after the other, and how many of them are forgotten.
        let steps = [(9, 0), (4000, 0), (4100, 90), (3000, 10), (30_000, 2500), (50, 4), (0, 0)];
        let held = (1..).zip(steps).map(|(seed, (keys, gone))| grown(&builder, seed, keys, gone));
        let all: Vec<Held> = held.collect();
        let mut held = all[0].filter.clone();
        for step in all.windows(2) {
            let [old, new] = step else { unreachable!() };
            let patch = old.filter.patch_to(&new.filter).unwrap();
            let made = old.filter.patched(&patch).unwrap();
            held = held.patched(&patch).expect("what the patches before made");
            assert!(made == held || !made.has_grown(), "its bytes depend on its entries");
            for (hash, &copies) in &new.keys {
                assert!(held.count(&at(*hash)) >= copies, "{rate}");
            }
            assert_eq!(
                [held.len(), held.corrections()],
                [new.filter.len(), new.filter.corrections()]
            );
            let difference = held.compare(&new.filter).unwrap();
            assert_eq!([difference.surplus_first(), difference.surplus_second()], [0; 2]);
            assert_eq!(held.patched(&patch).unwrap_err(), PatchError::Applied);
            assert_eq!(held.verify(), Ok(()));
            assert_eq!(audit(&held.to_bytes()), Ok(()));
            assert!(
                FilterView::open(&old.filter.to_bytes()).unwrap().patched(&patch).unwrap() == made
            );
        }
    }
}

/// A view of damaged bytes is no base, and no new filter.
#[test]
fn damaged_views_are_refused() {
    let mut filter = CuckooFilter::builder(100, 0.001).build().unwrap();
    filter.extend(0..90_u64);
    let mut bytes = filter.to_bytes();
    bytes[200] ^= 4;
    let view = FilterView::open(&bytes).unwrap();
    assert!(matches!(view.patch_to(&filter), Err(PatchError::Unsound(_))));
    assert!(matches!(filter.patch_to(&view), Err(PatchError::Unsound(_))));
    let patch = filter.patch_to(&filter).unwrap();
    assert!(matches!(view.patched(&patch), Err(PatchError::Unsound(_))));
}

/// A patch is refused where its keys find no counter, before somebody publishes it.
#[test]
fn a_patch_that_cannot_be_applied_is_not_made() {
    let builder = CuckooFilter::builder(1, 0.03).counter_limit(1);
    let [mut old, mut new] = [0; 2].map(|_| builder.build().unwrap());
    (0..2_u64).for_each(|key| (0..3).for_each(|_| either_way(new.insert(&key))));
    assert!(old.patch_to(&new).is_ok());
    // The new filter has a second copy in a slot that the old one must count.
    old.extend(10..10 + old.slots() - 4);
    let mut crowded = old.clone();
    for key in 10..14_u64 {
        (0..2).for_each(|_| either_way(crowded.insert(&key)));
    }
    match old.patch_to(&crowded) {
        Ok(patch) => assert_is(&old.patched(&patch).unwrap(), &Content::of(&crowded)),
        Err(error) => assert!(matches!(error, PatchError::Full(FullError::Counters { limit: 1 }))),
    }
}

/// A filter with a secret: its patch does not contain it, nor its unkeyed digest.
#[test]
fn a_patch_does_not_contain_the_secret() {
    let of = |key: [u8; 16]| {
        let empty = CuckooFilter::builder(100, 0.001).sip_key(key).build().unwrap();
        empty.patch_to(&empty).unwrap()
    };
    let key = core::array::from_fn(|i| 0xa7 ^ u8::try_from(13 * i).unwrap());
    let (one, other) = (of(key), of([9; 16]));
    assert!(!key.windows(3).any(|part| one.windows(3).any(|found| found == part)));
    // All but the settings and the checksum are equal.
    assert!(one[16..24] != other[16..24] && one[24..56] == other[24..56]);
}

/// The vector of docs/FORMAT.md.
#[test]
fn the_patch_of_the_format_is_this_one() {
    let [mut old, mut new] =
        [0; 2].map(|_| CuckooFilter::builder(1, 0.03).seed(42).build().unwrap());
    ["example.org", "gone"].iter().for_each(|key| old.insert(key).unwrap());
    ["example.org", "new", "new", "new"].iter().for_each(|key| new.insert(key).unwrap());
    let absent = (0_u64..).find(|key| new.refute(key).unwrap()).unwrap();
    let patch = old.patch_to(&new).unwrap();
    let dump = dump(&patch);
    assert!(FORMAT.contains(&dump), "{absent}:\n{dump}");
    assert!(FORMAT.contains(&format!("the integer {absent} ")), "{absent}");
    let patched = old.patched(&patch).unwrap();
    assert_eq!((patched.count("new"), patched.corrections(), patched.len()), (3, 1, 4));
}

/// A count was cut off at the largest number on one side only, and the patch was said to be for
/// another filter.
#[test]
fn a_filter_of_more_copies_than_can_be_counted_has_no_patch() {
    let mut filter = CuckooFilter::builder(2000, 0.001).grow_from(1).build().unwrap();
    (0..5).for_each(|_| filter.insert("a").unwrap());
    let counted = with_counts(&filter.to_bytes(), &[u64::MAX]);
    let filter = CuckooFilter::from_bytes(&forged(&counted, &[("keys", u64::MAX)])).unwrap();
    let mut empty = filter.clone();
    empty.clear();
    for [old, new] in [[&filter, &filter], [&filter, &empty], [&empty, &filter]] {
        assert_eq!(old.patch_to(new), Err(PatchError::Full(FullError::Overflow)));
    }
    assert!(empty.patch_to(&empty).is_ok());
}
