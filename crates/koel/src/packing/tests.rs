//! Compares packings with decoded buckets, for every layout.

use super::layout::MAX_BUCKET_BITS;
use super::*;
use crate::address::geometry::CORE_BITS;
use alloc::vec::Vec;
use testkit::keys::splitmix64 as hash;

/// Every layout of a filter, some with values, and one with slots of 64 bits.
fn layouts() -> impl Iterator<Item = Layout> {
    let codecs = [Codec::Plain, Codec::SemiSorted];
    let widths = move |codec| {
        (8..=33).flat_map(move |bits| [0, 1, 5].map(|value| Layout::new(codec, bits, value)))
    };
    let layouts = codecs.into_iter().flat_map(widths).flatten();
    layouts.chain(Layout::new(Codec::Plain, 24, 40))
}

fn noise(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *seed ^ (*seed >> 29)
}

fn copies_in(slots: [u64; SLOTS], slot: u64) -> u64 {
    Bucket(slots).copies(slot)
}

/// Two buckets of a layout, with random bits before, between and behind them.
struct Pair {
    layout: Layout,
    bytes: Vec<u8>,
    starts: [u64; 2],
}

impl Pair {
    /// The first bucket has these slots, the second is empty.
    fn new(layout: Layout, packing: &impl Packing, slots: [u64; SLOTS]) -> Self {
        let bits = u64::from(layout.bucket_bits());
        let mut pair = Self { layout, bytes: alloc::vec![0xff; 200], starts: [bits, 3 * bits] };
        packing.write(&mut pair.bytes, bits, slots);
        packing.write(&mut pair.bytes, 3 * bits, [0; SLOTS]);
        pair
    }

    /// The slots, decoded bit by bit.
    fn decoded(&self, number: usize) -> [u64; SLOTS] {
        let (start, bits) = (self.starts[number], self.layout.bucket_bits());
        if bits <= MAX_BUCKET_BITS {
            return self.layout.decode(load(&self.bytes, start, bits)).0;
        }
        let slot = |i: u64| u64::try_from(load(&self.bytes, start + 64 * i, 64)).unwrap();
        [slot(0), slot(1), slot(2), slot(3)]
    }

    /// The decoded slots in ascending order: a change may reorder them.
    fn sorted(&self, number: usize) -> [u64; SLOTS] {
        let mut slots = self.decoded(number);
        slots.sort_unstable();
        slots
    }

    /// Whether no bit outside the two buckets has changed.
    fn is_intact(&self) -> bool {
        let mut ones = self.bytes.clone();
        for bit in self.starts.into_iter().flat_map(|it| it..it + self.starts[0]) {
            ones[byte_index(bit / 8)] |= 1 << (bit % 8);
        }
        ones.iter().all(|&byte| byte == 0xff)
    }
}

/// Calls `check` with every layout, some buckets of it, and a slot similar to theirs.
fn each_bucket(mut check: impl FnMut(Layout, [u64; SLOTS], u64)) {
    let mut seed = 1;
    for layout in layouts() {
        let slot_mask = u64::MAX >> (u64::BITS - layout.slot_bits());
        for _ in 0..500 {
            // Few distinct values, so that equal and nearly equal slots are common. Every entry has
            // a core.
            let core = 1 << (layout.fingerprint_bits() - CORE_BITS);
            let mut slot = || noise(&mut seed) & slot_mask & !(noise(&mut seed) & !0x13) | core;
            let slots = [slot(), slot(), slot(), 0];
            for probe in slots.into_iter().chain([slot(), slot(), 0, slot_mask]) {
                check(layout, slots, probe);
            }
        }
    }
}

/// Bit i is set if slot i of a bucket matches the key.
fn matching_slots<M: Matching>(packing: &impl Packing, bytes: &[u8], start: u64, key: u64) -> u32 {
    fn bits<M: Matching, P: Packing>(packing: &P, registers: P::Registers, key: u64) -> u32 {
        matching_bits::<M, P::Coding>(packing.lanes(), registers.as_ref(), key)
    }
    bits::<M, _>(packing, packing.registers(bytes, start), key)
}

/// A bucket in which no slot is empty.
fn full(slots: [u64; SLOTS]) -> [u64; SLOTS] {
    slots.map(|slot| if slot == 0 { slots[0] } else { slot })
}

fn check_bucket(layout: Layout, packing: &impl Packing, slots: [u64; SLOTS], probe: u64) {
    let pair = Pair::new(layout, packing, slots);
    let (bytes, starts, decoded) = (&pair.bytes, pair.starts, pair.decoded(0));
    let says = || alloc::format!("{layout} {slots:x?} {probe:x}");
    assert!(pair.is_intact(), "{}", says());
    let mut ascending = slots;
    ascending.sort_unstable();
    assert_eq!(pair.sorted(0), ascending, "{}", says());
    assert_eq!(packing.slots(bytes, starts[0]), decoded, "{}", says());
    let fingerprint = layout.fingerprint_of(probe);
    let alike = decoded.map(|slot| layout.fingerprint_of(slot) == fingerprint);
    let bits = (0..SLOTS).map(|i| u32::from(alike[i]) << i).sum::<u32>();
    assert_eq!(matching_slots::<Exact>(packing, bytes, starts[0], fingerprint), bits, "{}", says());
    // The other bucket is empty.
    let found = bits != 0 || fingerprint == 0;
    for starts in [starts, [starts[1], starts[0]]] {
        let matches = packing.matches::<Exact>(bytes, starts, [fingerprint; 2]);
        assert_eq!(matches, found, "{}", says());
    }
    assert_eq!(packing.vacancies(bytes, starts[0]), copies_in(slots, 0), "{}", says());
    assert_eq!(packing.has_room(bytes, starts[0]), copies_in(slots, 0) > 0, "{}", says());
    let filled = Pair::new(layout, packing, full(slots));
    assert!(!packing.has_room(&filled.bytes, starts[0]), "{}", says());
    assert_eq!(packing.vacancies(&filled.bytes, starts[0]), 0, "{}", says());
    check_candidates(packing, &pair, fingerprint, alike);
}

fn check_candidates(packing: &impl Packing, pair: &Pair, fingerprint: u64, alike: [bool; SLOTS]) {
    let decoded = pair.decoded(0);
    let held = (0..SLOTS).filter(|&i| alike[i]).map(|i| (0, decoded[i]));
    let empty = (0..SLOTS).filter(|_| fingerprint == 0).map(|_| (1, 0));
    let mut expected: Vec<_> = held.chain(empty).collect();
    let mut candidates = packing.candidates::<Exact>(&pair.bytes, pair.starts, [fingerprint; 2]);
    assert_eq!(candidates.count_left(), expected.len());
    let mut found: Vec<_> = core::iter::from_fn(|| candidates.next_of_pair()).collect();
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected, "{}", pair.layout);
    // A pair of one bucket counts its slots once.
    let once = packing.candidates::<Exact>(&pair.bytes, [pair.starts[0]; 2], [fingerprint; 2]);
    assert_eq!(once.count_left(), alike.iter().filter(|&&alike| alike).count());
}

#[test]
fn a_packing_reads_the_slots_of_a_bucket() {
    each_bucket(|layout, slots, probe| {
        with_packing!(&AnyPacking::new(layout, None), packing => {
            check_bucket(layout, packing, slots, probe);
        });
    });
}

/// Replaces `old` by `new` in the slots of a bucket, if present.
fn replaced(mut slots: [u64; SLOTS], old: u64, new: u64) -> Option<[u64; SLOTS]> {
    *slots.iter_mut().find(|slot| **slot == old)? = new;
    slots.sort_unstable();
    Some(slots)
}

fn check_changes(layout: Layout, packing: &impl Packing, slots: [u64; SLOTS], probe: u64) {
    let fresh = || Pair::new(layout, packing, slots);
    let last = u64::MAX >> (u64::BITS - layout.slot_bits());
    let starts = fresh().starts;
    for new in [0, 1, 16, slots[1], last] {
        let mut pair = fresh();
        let done = packing.replace(&mut pair.bytes, starts[0], probe, new);
        let expected = replaced(slots, probe, new);
        assert_eq!(done, expected.is_some(), "{layout} {slots:x?} {probe:x}");
        let now = expected.unwrap_or_else(|| fresh().sorted(0));
        assert_eq!(pair.sorted(0), now, "{layout} {slots:x?} {probe:x} {new:x}");
        assert!(pair.is_intact() && pair.decoded(1) == [0; SLOTS]);
        assert!(is_canonical(&pair));
    }
    let copies = copies_in(slots, probe);
    let of_pair = packing.copies(&fresh().bytes, starts, probe);
    assert_eq!(of_pair, copies + if probe == 0 { 4 } else { 0 }, "{layout}");
    assert_eq!(packing.copies(&fresh().bytes, [starts[0]; 2], probe), copies, "{layout}");
    if probe != 0 {
        check_pair(packing, &fresh, slots, probe);
    }
}

/// Whether the bucket has the one canonical encoding of its slots.
fn is_canonical(pair: &Pair) -> bool {
    let bits = pair.layout.bucket_bits();
    bits > MAX_BUCKET_BITS || pair.layout.is_canonical(load(&pair.bytes, pair.starts[0], bits))
}

/// The first bucket has `slots`, the second is empty.
fn check_pair(packing: &impl Packing, fresh: &impl Fn() -> Pair, slots: [u64; SLOTS], probe: u64) {
    let (layout, starts, copies) = (fresh().layout, fresh().starts, copies_in(slots, probe));
    for most in 0..4 {
        let (mut apart, mut alone) = (fresh(), fresh());
        let put = packing.put(&mut apart.bytes, starts, probe, most);
        let put_alone = packing.put(&mut alone.bytes, [starts[0]; 2], probe, most);
        if copies > most {
            assert_eq!([put, put_alone], [Put::Repeated(copies); 2], "{layout}");
            continue;
        }
        // The emptier bucket is the second one.
        assert_eq!((put, apart.sorted(0)), (Put::Done, fresh().sorted(0)), "{layout}");
        assert_eq!(apart.sorted(1), [0, 0, 0, probe], "{layout}");
        assert_eq!(put_alone, Put::Done, "{layout}");
        assert_eq!(Some(alone.sorted(0)), replaced(slots, 0, probe), "{layout}");
        assert!(apart.is_intact() && alone.is_intact());
    }
    let taken = [Taken::Absent, Taken::Last].get(usize::try_from(copies).unwrap()).copied();
    for starts in [starts, [starts[1], starts[0]], [starts[0]; 2]] {
        let mut pair = fresh();
        let exchanged = packing.exchange(&mut pair.bytes, starts, probe, 0);
        assert_eq!(exchanged, taken.unwrap_or(Taken::Copy), "{layout} {slots:x?} {probe:x}");
        let expected = replaced(slots, probe, 0).unwrap_or_else(|| fresh().sorted(0));
        assert!(pair.sorted(0) == expected && pair.is_intact(), "{layout}");
    }
}

#[test]
fn a_packing_changes_a_bucket_like_its_decoded_slots() {
    each_bucket(|layout, slots, probe| {
        with_packing!(&AnyPacking::new(layout, None), packing => {
            check_changes(layout, packing, slots, probe);
        });
    });
}

fn is_halves(packing: &AnyPacking) -> bool {
    matches!(packing, AnyPacking::PlainHalves(..) | AnyPacking::SortedHalves(..))
}

#[test]
fn reads_of_halves_stay_within_reach() {
    for layout in layouts() {
        let packing = AnyPacking::new(layout, None);
        let last = match &packing {
            AnyPacking::PlainHalves(halves, _) => halves.last_bit_read(0),
            AnyPacking::SortedHalves(halves, _) => halves.last_bit_read(4),
            _ => continue,
        };
        assert!(last / 8 <= packing.reach() as u64, "{layout}");
        assert!(packing.reach() < halves::LATER + 8, "{layout}");
    }
}

/// A register is wider than a bucket, so `reach` covers the bytes of the register. When only the
/// bytes of the bucket were prefetched, batched lookups in a large table took a third longer.
#[test]
fn reads_of_a_bucket_stay_within_reach() {
    for layout in layouts() {
        let packing = AnyPacking::new(layout, None);
        let (bits, reach) = (u64::from(layout.bucket_bits()), packing.reach());
        for start in [0, bits] {
            let first = byte_index(start / 8);
            // Halves check the length once, for more bytes than they read. The test above checks
            // their reads.
            let checked = if is_halves(&packing) { halves::LATER + 8 } else { reach + 1 };
            let bytes = alloc::vec![0; first + checked];
            with_packing!(&packing, packing => {
                assert!(packing.has_room(&bytes, start));
                assert_eq!(packing.slots(&bytes, start), [0; SLOTS], "{layout}");
                assert!(!packing.matches::<Exact>(&bytes, [start; 2], [1; 2]), "{layout}");
            });
        }
        // Plain buckets read exactly one register.
        let register = if bits <= 64 {
            8
        } else if bits <= 128 {
            16
        } else {
            32
        };
        let sorted = layout.codec() == Codec::SemiSorted;
        assert!(reach + 1 >= register && (sorted || reach + 1 == register), "{layout}");
    }
}

#[test]
fn no_bucket_exceeds_128_bits_except_with_slots_of_64() {
    let bits = || layouts().map(|layout| layout.bucket_bits());
    assert!(bits().all(|bits| bits <= MAX_BUCKET_BITS || bits == 256));
    assert!(bits().any(|bits| bits == MAX_BUCKET_BITS));
}

// ---- marked fingerprints

/// Whether a stored fingerprint matches a key, bit by bit.
fn is_match(marked: Marked, stored: u64, (core, string): (u64, u64)) -> bool {
    let (bits, known) = marked.known(stored);
    stored != 0 && marked.core(stored) == core && (0..known).all(|i| (bits ^ string) >> i & 1 == 0)
}

fn marked_layouts() -> Vec<Layout> {
    let widths = |codec| (8..=40).flat_map(move |bits| [0, 1, 5, 13].map(|v| (codec, bits, v)));
    let all = [Codec::Plain, Codec::SemiSorted].into_iter().flat_map(widths);
    all.filter_map(|(codec, bits, v)| Layout::new(codec, bits, v)).map(Layout::with_marks).collect()
}

fn check_marked(layout: Layout, packing: &impl Packing, slots: [u64; SLOTS], key: (u64, u64)) {
    let marked = layout.marks().unwrap();
    let pair = Pair::new(layout, packing, slots);
    let matching = |slot| is_match(marked, layout.fingerprint_of(slot), key);
    let expected = pair.decoded(0).map(matching);
    let bits = (0..SLOTS).map(|i| u32::from(expected[i]) << i).sum::<u32>();
    let longest = marked.longest(key.0, key.1);
    let found = matching_slots::<Prefixed>(packing, &pair.bytes, pair.starts[0], longest);
    assert_eq!(found, bits, "{layout} {slots:x?} {key:x?}");
    let [one, other] = pair.starts;
    for starts in [[one, one], [one, other], [other, one]] {
        let matches = packing.matches::<Prefixed>(&pair.bytes, starts, [longest; 2]);
        assert_eq!(matches, bits != 0, "{layout} {slots:x?} {key:x?}");
        let candidates = packing.candidates::<Prefixed>(&pair.bytes, starts, [longest; 2]);
        let expected = slots.into_iter().filter(|&slot| matching(slot));
        assert_eq!(candidates.count_left(), expected.count());
        assert!(candidates.into_iter().all(matching));
    }
    assert_eq!(packing.vacancies(&pair.bytes, one), copies_in(slots, 0));
    assert_eq!(packing.has_room(&pair.bytes, one), slots.contains(&0));
}

#[test]
fn a_lane_matches_if_core_and_stored_bits_match_the_key() {
    for layout in marked_layouts() {
        let marked = layout.marks().unwrap();
        for i in 0..400 {
            // Few cores and strings that often agree in their first bits.
            let key = |n: u64| (1 + hash(n) % 3 * 20, hash(n + 1) | 0x2b & hash(n + 2));
            let slot = |n: u64| {
                let (core, string) = key(n);
                let known = (hash(n + 3) % u64::from(marked.most() + 1)).min(hash(n + 4) % 41);
                let fingerprint = marked.fingerprint(core, string, u32::try_from(known).unwrap());
                let value = hash(n + 5) & !(u64::MAX << layout.value_bits());
                if hash(n + 6).is_multiple_of(5) { 0 } else { layout.slot(fingerprint, value) }
            };
            let slots = [0, 10, 20, 30].map(|n| slot(100 * i + n));
            let probe = key(100 * i + 10 * (i % 5));
            with_packing!(&AnyPacking::new(layout, None), packing => {
                check_marked(layout, packing, slots, probe);
            });
        }
    }
}
