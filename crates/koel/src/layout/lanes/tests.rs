//! Lanes against buckets that are taken apart, for every layout.

use super::super::{Bucket, MAX_BUCKET_BITS};
use super::*;
use core::cell::Cell;

/// Every layout that a filter may have, and some with values, of buckets that fit into a register.
fn layouts() -> impl Iterator<Item = Layout> {
    let codecs = [Codec::Plain, Codec::SemiSorted];
    let widths = move |codec| {
        (8..=33).flat_map(move |bits| [0, 1, 5].map(|value| Layout::new(codec, bits, value)))
    };
    let layouts = codecs.into_iter().flat_map(widths).flatten();
    layouts.filter(|layout| layout.bucket_bits() <= MAX_BUCKET_BITS)
}

fn noise(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *seed ^ (*seed >> 29)
}

/// `check` with the lanes of every layout, a bucket of it, and a stream of slots like its own.
fn each_bucket(mut check: impl FnMut(Layout, Bucket, &mut dyn FnMut() -> u64)) {
    let mut seed = 1;
    for layout in layouts() {
        let slot_mask = u64::MAX >> (u64::BITS - layout.slot_bits());
        for _ in 0..500 {
            // Few distinct values, so that equal and nearly equal slots are common; and a core, as every entry has one.
            let core = 1 << (layout.fingerprint_bits() - CORE_BITS);
            let mut slot = || noise(&mut seed) & slot_mask & !(noise(&mut seed) & !0x13) | core;
            let bucket = Bucket([slot(), slot(), slot(), 0]);
            check(layout, bucket, &mut slot);
        }
    }
}

/// A third of the time of a batch of lookups in a large table went to buckets of which only the first and the last byte of their own had been asked for: registers are wider.
#[test]
fn the_last_byte_that_is_read_of_a_bucket_is_within_reach() {
    for layout in layouts() {
        let (lanes, sorted) = (Lanes::new(layout), layout.codec() == Codec::SemiSorted);
        let last_bit = Cell::new(u64::from(layout.bucket_bits()) - 1);
        let load = |offset: u64| {
            last_bit.set(last_bit.get().max(offset / 8 * 8 + u64::from(u64::BITS) - 1));
            0
        };
        match lanes.form() {
            Form::WidePlain => _ = lanes.halves::<false>(load),
            Form::WideSorted => _ = lanes.halves::<true>(|offset| load(offset + 4)),
            _ => _ = load(0),
        }
        let reach = lanes.reach() as u64;
        assert!(last_bit.get() / 8 <= reach, "{layout}");
        // A table that starts every bucket at a whole byte reads no bit of another line for nothing.
        let register = if layout.bucket_bits() <= u64::BITS { 8 } else { 16 };
        assert!(reach + 1 >= register && (sorted || reach + 1 == register), "{layout}");
    }
}

/// Everything that lanes can do with a word, against the slots themselves.
fn check_word<W: Word, const SORTED: bool>(layout: Layout, bucket: Bucket, probe: u64) {
    let lanes = Lanes::new(layout);
    // Whatever follows the bucket in the register does not matter.
    let junk = u128::MAX.checked_shl(layout.bucket_bits()).unwrap_or(0);
    let word = W::narrow(layout.encode(bucket) | junk);
    let slots = layout.decode(layout.encode(bucket));
    assert_eq!(lanes.slots::<W, SORTED>(word), slots.0, "{layout}");
    let fingerprint = layout.fingerprint_of(probe);
    let alike = slots.0.iter().filter(|&&slot| layout.fingerprint_of(slot) == fingerprint);
    let alike = alike.count() as u64;
    let holds = alike > 0;
    let pattern = lanes.pattern::<W, SORTED>(probe);
    assert_eq!(lanes.count(lanes.alike::<W, SORTED>(word, pattern)), alike);
    if W::BITS == 64 {
        let word = u64::narrow(word.wide());
        let pattern = lanes.pattern::<u64, SORTED>(fingerprint);
        // The other bucket is empty.
        let found = holds || fingerprint == 0;
        for pair in [[word, 0], [0, word]].map(|pair| lanes.opened::<SORTED>(pair)) {
            assert_eq!(lanes.pair_has::<SORTED>(pair, fingerprint), found, "{layout}");
            assert_eq!(lanes.match_byte::<SORTED>(pair, pattern), u8::from(found));
        }
    }
    if W::BITS == 128 {
        Lanes::of_part(layout).check::<SORTED>(&lanes, layout, (word.wide(), slots), probe);
    }
    check_both::<W, SORTED>(&lanes, [word, W::narrow(junk)], probe);
    let equal = lanes.equal::<W, SORTED>(word, pattern);
    assert_eq!(lanes.count(equal), slots.copies(probe), "{layout} {bucket:x?} {probe:x}");
    let free = lanes.empty::<W, SORTED>(word);
    assert_eq!(lanes.count(free), slots.copies(0));
    assert_eq!(lanes.more(equal, free), slots.copies(probe) > slots.copies(0));
    assert_eq!(lanes.has_room::<W, SORTED>(word), slots.copies(0) > 0);
    let full = Bucket(bucket.0.map(|slot| if slot == 0 { bucket.0[0] } else { slot }));
    let full = W::narrow(layout.encode(full) | junk);
    assert!(!lanes.has_room::<W, SORTED>(full), "{layout} {bucket:x?}");
    if equal != W::ZERO {
        for new in [0, 1, 16, bucket.0[1], u64::MAX >> (u64::BITS - layout.slot_bits())] {
            let change = lanes.change::<W, SORTED>(word, equal, probe, new);
            assert_eq!((change & lanes.bucket::<W>()).wide(), change.wide(), "{layout}");
            let mut expected = slots;
            let at = expected.0.iter().position(|&slot| slot == probe).unwrap();
            expected.0[at] = new;
            let kept = (word ^ change) & lanes.bucket::<W>();
            assert_eq!(
                kept.wide(),
                layout.encode(expected),
                "{layout} {bucket:x?} {probe:x} {new:x}"
            );
        }
    }
}

/// Two words at once are two words.
fn check_both<W: Word, const SORTED: bool>(lanes: &Lanes, words: [W; 2], probe: u64) {
    let pattern = lanes.pattern::<W, SORTED>(probe);
    for words in [words, [words[1], words[0]]] {
        let equal = words.map(|word| lanes.equal::<W, SORTED>(word, pattern));
        let empty = words.map(|word| lanes.empty::<W, SORTED>(word));
        assert!(lanes.both_equal::<W, SORTED>(words, probe) == equal);
        assert!(lanes.both_empty::<W, SORTED>(words) == empty);
        let emptier = lanes.count(empty[0]) > lanes.count(empty[1]);
        assert_eq!(lanes.is_emptier::<W, SORTED>(empty[0], empty[1]), emptier);
        let holds = equal != [W::ZERO; 2];
        let may_hold = lanes.either_may_equal::<W, SORTED>(words, probe);
        assert!(may_hold == holds || SORTED && may_hold);
    }
}

#[test]
fn lanes_do_with_a_word_what_one_would_do_with_its_slots() {
    each_bucket(|layout, bucket, slot| {
        let last = u64::MAX >> (u64::BITS - layout.slot_bits());
        for probe in bucket.0.into_iter().chain([slot(), slot(), 0, last]) {
            match Form::of(layout) {
                Form::Plain => check_word::<u64, false>(layout, bucket, probe),
                Form::Sorted => check_word::<u64, true>(layout, bucket, probe),
                Form::WidePlain => check_word::<u128, false>(layout, bucket, probe),
                Form::WideSorted => check_word::<u128, true>(layout, bucket, probe),
                Form::Quad | Form::Apart => panic!("no bucket of 256 bits fits a register"),
            }
        }
    });
}

/// Slots of 64 bits have no word to be encoded in: the lanes are the slots.
#[test]
fn lanes_of_64_bits_do_what_one_would_do_with_their_slots() {
    let layout = Layout::new(Codec::Plain, 24, 40).unwrap();
    let lanes = Lanes::new(layout);
    assert_eq!((lanes.form(), lanes.bucket_bits()), (Form::Quad, 256));
    let mut seed = 3;
    for _ in 0..20_000 {
        // Few distinct slots, so that equal ones, equal fingerprints and empty slots are common.
        let mut slot = || (noise(&mut seed) & 1) << 63 | (noise(&mut seed) & 3) << 18;
        let slots = [slot(), slot(), slot(), slot()];
        let (probe, new) = (slot(), slot() | 1);
        let mut bytes = [0xff; 40];
        (0..SLOTS).for_each(|i| slots[i].write(&mut bytes, 8 * i + 5));
        let word = Quad::read(&bytes, 5);
        assert_eq!(lanes.slots::<Quad, false>(word), slots);
        let pattern = lanes.pattern::<Quad, false>(probe);
        let positions =
            |holds: &dyn Fn(u64) -> bool| slots.iter().filter(|&&slot| holds(slot)).count() as u64;
        let equal = lanes.equal::<Quad, false>(word, pattern);
        let empty = lanes.empty::<Quad, false>(word);
        let alike = lanes.alike::<Quad, false>(word, pattern);
        let same = |slot| layout.fingerprint_of(slot) == layout.fingerprint_of(probe);
        assert_eq!(lanes.count(equal), positions(&|slot| slot == probe));
        assert_eq!(lanes.count(empty), positions(&|slot| slot == 0));
        assert_eq!(lanes.count(alike), positions(&same));
        assert_eq!(lanes.more(alike, empty), lanes.count(alike) > lanes.count(empty));
        let both = lanes.count(equal) + lanes.count(empty);
        assert_eq!(lanes.is_one([equal, empty]), both == 1);
        if let Some(at) = slots.iter().position(|&slot| slot == probe) {
            let mut expected = slots;
            expected[at] = new;
            let change = lanes.change::<Quad, false>(word, equal, probe, new);
            (word ^ change).write(&mut bytes, 5);
            assert_eq!(
                Quad::read(&bytes, 5),
                Quad::read(&expected.map(u64::to_le_bytes).concat(), 0)
            );
            assert!(bytes[..5].iter().chain(&bytes[37..]).all(|&byte| byte == 0xff));
        }
    }
}

#[test]
fn a_bucket_of_128_bits_is_the_widest() {
    assert!(layouts().all(|layout| layout.bucket_bits() <= MAX_BUCKET_BITS));
    assert!(layouts().any(|layout| layout.bucket_bits() == MAX_BUCKET_BITS));
}
