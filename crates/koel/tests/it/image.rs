//! Untrusted bytes: a valid filter round-trips, everything else is refused with a reason, and
//! nothing panics.
//!
//! The filters are small, so that *every* flip, cut and extension can be tried.
//! `testkit::image::reseal` makes the checksums valid again, so that the checks behind them are
//! reached.

use std::convert::Infallible;

use koel::{CuckooFilter, FilterView, ImageError, Merge, MergeError, Prefer};
use testkit::addressing::Addressing;
use testkit::exercise::{self, arbitrary_bytes};
use testkit::image::{self, HEADER_BYTES};
use testkit::keys;
use testkit::keys::{all_at, at};

use crate::damage::flipped;
use crate::support::{counters, field, forged, read, set};

/// One small filter of each kind, with plain entries, second copies and counters.
fn samples() -> Vec<CuckooFilter> {
    let builders = [
        CuckooFilter::builder(1, 0.03).seed(3).counter_limit(9),
        CuckooFilter::builder(2, 0.001),
        CuckooFilter::builder(2, 1e-8).sip_key([5; 16]),
        CuckooFilter::builder(2, 0.02).prefer(Prefer::Fast),
        CuckooFilter::builder(3, 0.001).prefer(Prefer::Fast).counter_limit(2),
    ];
    let fill = |mut filter: CuckooFilter| {
        keys::hashes(1, 60).for_each(|hash| filter.insert(&at(hash)).unwrap());
        keys::hashes(1, 2).for_each(|hash| {
            (0..5).for_each(|_| filter.insert(&at(hash)).unwrap());
        });
        assert_eq!(filter.distinct_counters(), 2);
        filter
    };
    builders.into_iter().map(|builder| fill(builder.build().unwrap())).collect()
}

/// Whatever is in that memory, and however much there is of it.
#[test]
fn a_copy_in_memory_of_the_caller_is_equal() {
    let grown = || {
        let mut filter = CuckooFilter::builder(9, 0.01).growable().build().unwrap();
        keys::hashes(1, 700).for_each(|hash| filter.insert(&at(hash)).unwrap());
        filter
    };
    for mut filter in samples().into_iter().chain([grown()]) {
        let bytes = filter.to_bytes();
        for words in [0, 1, bytes.len() / 8, bytes.len() / 8 + 100] {
            let memory = || vec![u64::MAX; words];
            let mut copy = filter.try_clone_in(memory()).unwrap();
            assert!(copy == filter && copy.to_bytes() == bytes);
            assert!(CuckooFilter::from_trusted_bytes(&bytes, memory()).unwrap() == filter);
            let more = at(keys::hashes(2, 1).next().unwrap());
            assert_eq!(copy.insert(&more), filter.insert(&more));
            assert!(copy == filter && copy.remove(&more) == filter.remove(&more));
            filter = CuckooFilter::from_bytes(&bytes).unwrap();
        }
    }
}

/// A sample cut down to `1 << segment_bits` segments of few buckets, nearly full.
fn reshaped(sample: &CuckooFilter, segment_bits: u8, buckets: u32) -> CuckooFilter {
    let bytes = image::reshape(&sample.to_bytes(), segment_bits, buckets);
    let mut filter = CuckooFilter::from_bytes(&bytes).unwrap();
    let taken = keys::hashes(2, filter.slots()).filter(|&hash| filter.insert(&at(hash)).is_ok());
    assert!(taken.count() as u64 >= filter.slots() / 2);
    filter
}

/// Samples, and each in other shapes.
pub(crate) fn samples_of_all_shapes() -> Vec<CuckooFilter> {
    let shapes = |filter| [reshaped(&filter, 0, 1), reshaped(&filter, 2, 3), filter];
    samples().into_iter().flat_map(shapes).collect()
}

/// A growable filter with counters whose buckets are being widened.
fn midway() -> CuckooFilter {
    let mut filter = CuckooFilter::builder(3000, 0.001).growable().build().unwrap();
    (0..20_u64).for_each(|key| (0..5).for_each(|_| filter.insert(&key).unwrap()));
    (0_u64..).find(|key| filter.insert(key).is_ok() && filter.has_grown());
    (0..10_u64).for_each(|key| filter.insert(&key).unwrap());
    filter
}

#[test]
fn any_range_of_a_file_is_written_alone() {
    for filter in samples().into_iter().chain([midway()]) {
        let all = filter.to_bytes();
        let edges = [
            0,
            1,
            HEADER_BYTES - 1,
            HEADER_BYTES,
            HEADER_BYTES + 1,
            700,
            all.len() / 2,
            all.len() - 17,
            all.len(),
        ];
        let most = all.len() as u64 + 20;
        let any = keys::hashes(3, 300).map(|hash| usize::try_from(hash % most).unwrap());
        let ends: Vec<usize> = edges.into_iter().chain(any).collect();
        for (&start, &end) in ends.iter().zip(ends.iter().cycle().skip(7)) {
            let mut written = Vec::new();
            let Ok(()) = filter.write_range(start..end, |piece| {
                written.extend_from_slice(piece);
                Ok::<(), Infallible>(())
            });
            let within =
                start.min(all.len())..end.clamp(start, all.len().max(start)).min(all.len());
            let expected = all.get(within).unwrap_or_default();
            assert!(written == expected, "{start}..{end} of {}", all.len());
        }
    }
}

#[test]
fn every_flipped_bit_of_a_file_is_detected() {
    for filter in samples() {
        let bytes = filter.to_bytes();
        for bit in 0..8 * bytes.len() {
            let damaged = flipped(&bytes, bit);
            let error = CuckooFilter::from_bytes(&damaged).unwrap_err();
            let expected = match bit / 8 {
                0..8 => ImageError::NotAFilter,
                8..10 => match u16::from_le_bytes([damaged[8], damaged[9]]) {
                    version @ ..5 => ImageError::Older { version },
                    version => ImageError::Newer { version },
                },
                10..HEADER_BYTES => ImageError::Checksum { part: "header" },
                _ => ImageError::Checksum { part: "body" },
            };
            assert_eq!(error, expected, "bit {bit}");
            let opened = FilterView::open(&damaged);
            assert_eq!(opened.as_ref().err(), Some(&expected).filter(|_| bit < 8 * HEADER_BYTES));
            let checksum = opened.as_ref().map_err(|&error| error).and_then(|view| {
                assert_eq!(view.verify(), view.verify_checksum());
                view.verify_checksum()
            });
            assert_eq!(checksum, Err(expected));
        }
    }
}

/// A view answers some questions from the header alone and may never read the body, so the header
/// must be consistent.
#[test]
fn a_header_with_inconsistent_counts_is_not_opened() {
    for filter in samples() {
        let (entries, len) = (filter.slots_in_use(), filter.len());
        let forgeries = [
            ("entries", filter.slots() + 1),
            ("keys", entries - 1),
            ("distinct entries", entries + 1),
            ("counters", entries + 1),
            ("counter limit", filter.distinct_counters() - 1),
        ];
        for (field, value) in forgeries {
            // With this many keys, only the forged field can be invalid.
            let keys = ("keys", len + filter.slots());
            let image = forged(&filter.to_bytes(), &[keys, (field, value)]);
            let refused = FilterView::open(&image).unwrap_err();
            assert!(matches!(refused, ImageError::Field { field: f, .. } if f == field), "{field}");
        }
    }
}

/// Bucket and fingerprint take 56 bits of a hash. A header that needs 57 is refused for that
/// reason, not for its length.
#[test]
fn more_buckets_than_a_hash_can_name_are_refused_before_their_bytes_are_counted() {
    let bytes = CuckooFilter::builder(1, 1e-8).build().unwrap().to_bytes();
    for (segment_bits, segment_buckets, fits) in [
        (3, 1 << 20, true),
        (4, 1 << 20, false),
        (3, (1 << 20) + 1, false),
        (23, 1, true),
        (24, 1, false),
        (255, u64::from(u32::MAX), false),
    ] {
        let image = forged(
            &bytes,
            &[
                ("fingerprint bits", 33),
                ("fraction bits at first", 27),
                ("fraction bits", 27),
                ("segment bits", segment_bits),
                ("segment buckets", segment_buckets),
            ],
        );
        let length = bytes.len() as u64;
        match FilterView::open(&image).unwrap_err() {
            ImageError::Length { got, .. } => assert!(fits && got == length),
            error => {
                let field = "segment bits";
                assert_eq!(error, ImageError::Field { field, got: segment_bits });
                assert!(!fits, "{segment_bits} {segment_buckets}");
            }
        }
    }
}

#[test]
fn counters_out_of_order_twice_or_too_large_are_refused() {
    for filter in samples() {
        let sealed = filter.to_bytes();
        let refused = |forge: &dyn Fn(&mut [[u8; 16]])| {
            let mut forged = sealed.clone();
            forge(counters(&mut forged));
            image::reseal(&mut forged);
            match arbitrary_bytes::<CuckooFilter>(&forged, 0) {
                Err(ImageError::Field { field, .. }) => field,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(refused(&|records| records.swap(0, 1)), "counter name");
        assert_eq!(refused(&|records| records[1] = records[0]), "counter name");
        // A shift by 64 bits once.
        assert_eq!(refused(&|records| records[0][..8].fill(0)), "counter name");
        let most = |records: &mut [[u8; 16]]| records.iter_mut().for_each(|r| r[8..].fill(0xff));
        assert_eq!(refused(&most), "keys");
        assert_eq!(refused(&|records| records[1][8..].fill(0)), "counter value");
        assert_eq!(refused(&|records| records[0][8] += 1), "keys");
    }
}

/// Growth may leave copies in counters that belong to no key, but none in the stash.
#[test]
fn more_copies_in_the_stash_than_keys_are_refused() {
    let mut filter = CuckooFilter::builder(100, 1e-4).grow_from(20).build().unwrap();
    keys::hashes(3, 100).for_each(|hash| filter.insert(&at(hash)).unwrap());
    let addressing = Addressing::of(&filter.to_bytes());
    let pair = keys::sharing_pair(&addressing, keys::splitmix64(7)).take(20);
    pair.for_each(|hash| filter.insert(&at(hash)).unwrap());
    let bytes = filter.to_bytes();
    let section = image::section_bytes(&bytes, "stashed keys");
    assert!(filter.stashed_keys() > 1);
    for copies in [filter.len(), u64::MAX] {
        let mut forged = bytes.clone();
        forged[section.start + 16..section.start + 24].copy_from_slice(&copies.to_le_bytes());
        image::reseal(&mut forged);
        let refused = arbitrary_bytes::<CuckooFilter>(&forged, 0).unwrap_err();
        assert_eq!(refused, ImageError::Field { field: "stashed copies", got: filter.len() });
    }
}

/// Removing more than is in takes keys of the table, and never the number below the stash.
#[test]
fn a_filter_that_grew_and_lost_too_much_has_the_keys_of_its_stash_and_is_read_back() {
    let mut filter = CuckooFilter::builder(100, 1e-4).grow_from(20).build().unwrap();
    keys::hashes(3, 100).for_each(|hash| filter.insert(&at(hash)).unwrap());
    let addressing = Addressing::of(&filter.to_bytes());
    let pair: Vec<u64> = keys::sharing_pair(&addressing, keys::splitmix64(7)).take(20).collect();
    pair.iter().for_each(|&hash| filter.insert(&at(hash)).unwrap());
    let mut forged = filter.to_bytes();
    // As if most of its entries had been left by growth.
    let stashed = filter.stashed_keys();
    image::set(&mut forged, &[("keys", stashed + 3)]);
    image::reseal(&mut forged);
    let mut filter = CuckooFilter::from_bytes(&forged).unwrap();
    for hash in keys::hashes(3, 100) {
        filter.remove(&at(hash));
        assert!(filter.len() >= stashed);
        assert_eq!(CuckooFilter::from_bytes(&filter.to_bytes()).as_ref(), Ok(&filter));
    }
    assert_eq!((filter.len(), filter.slots_in_use()), (stashed, 0));
    assert_eq!(pair.iter().filter(|&&hash| filter.contains(&at(hash))).count() as u64, stashed);
}

#[test]
fn views_answer_alike_at_every_alignment() {
    for filter in samples() {
        let bytes = filter.to_bytes();
        for shift in 0..=16 {
            let mut shifted = vec![0xff; shift];
            shifted.extend_from_slice(&bytes);
            shifted.extend_from_slice(&[0xff; 16]);
            let view = FilterView::open(&shifted[shift..shift + bytes.len()]).unwrap();
            assert_eq!(view.verify(), Ok(()));
            for hash in keys::hashes(1, 300) {
                assert_eq!(view.contains(&at(hash)), filter.contains(&at(hash)));
                assert_eq!(view.count(&at(hash)), filter.count(&at(hash)));
            }
            assert_eq!((view.len(), view.occupancy()), (filter.len(), filter.occupancy()));
            assert!(view.to_bytes() == bytes);
        }
    }
}

#[test]
fn a_view_of_garbage_behind_a_sound_header_answers_without_a_panic() {
    for (seed, filter) in (0..).zip(samples()) {
        for round in 0..200 {
            let mut bytes = filter.to_bytes();
            let noise = keys::hashes(1000 * seed + round, u64::MAX).flat_map(u64::to_le_bytes);
            // Some bodies repeat one byte: all zeros, all ones, or one nibble.
            let same = round % 8 == 0;
            for (byte, noise) in bytes[HEADER_BYTES..].iter_mut().zip(noise) {
                *byte = if same { round.to_le_bytes()[0].wrapping_mul(17) } else { noise };
            }
            image::reseal_header(&mut bytes);
            let view = FilterView::open(&bytes).unwrap();
            exercise::question(&view);
            let mut union = filter.clone();
            let damaged = ImageError::Checksum { part: "body" };
            assert_eq!(union.merge(&view, Merge::Max), Err(MergeError::Unsound(damaged)));
            assert!(union == filter, "a refusal changed the filter");
            let hashes: Vec<u64> = keys::hashes(round, 200).collect();
            let mut found = vec![false; hashes.len()];
            view.contains_many(&all_at(&hashes), &mut found);
            for (&hash, found) in hashes.iter().zip(found) {
                assert_eq!(view.contains(&at(hash)), found);
                assert!(!found || view.count(&at(hash)) > 0);
            }
            assert_eq!(view.len(), filter.len());
            assert_eq!(view.verify(), Err(damaged));
            // Regression: a copy of a damaged view had a new checksum, and was sound.
            let copy = view.to_bytes();
            assert!(copy == bytes && CuckooFilter::from_bytes(&copy) == Err(damaged));
            image::reseal(&mut bytes);
            assert_eq!(FilterView::open(&bytes).unwrap().verify_checksum(), Ok(()));
            assert!(matches!(CuckooFilter::from_bytes(&bytes), Err(ImageError::Field { .. })));
        }
    }
}

#[test]
fn random_bytes_are_refused() {
    for seed in 0..20_000 {
        let bytes: Vec<u8> = keys::hashes(seed, seed % 80).flat_map(u64::to_le_bytes).collect();
        assert_eq!(arbitrary_bytes::<CuckooFilter>(&bytes, 0), Err(ImageError::NotAFilter));
        let mut named = b"koel\r\n\x1a\n\x03\0".to_vec();
        named.extend(bytes);
        image::reseal(&mut named);
        assert!(arbitrary_bytes::<CuckooFilter>(&named, 0).is_err());
    }
}

#[test]
fn another_version_is_reported_as_older_or_newer_whatever_the_rest_of_the_header() {
    let mut bytes = samples()[0].to_bytes();
    bytes[10..].fill(0xee);
    for version in (0..5).chain(6..=u16::MAX) {
        bytes[8..10].copy_from_slice(&version.to_le_bytes());
        let expected = match version {
            ..5 => ImageError::Older { version },
            _ => ImageError::Newer { version },
        };
        assert_eq!(CuckooFilter::from_bytes(&bytes), Err(expected));
    }
}

/// Later versions will give some of these bytes a meaning, and others are of an expiring filter.
#[test]
fn bytes_that_a_filter_does_not_have_are_refused_by_name() {
    let whole = samples()[0].to_bytes();
    for name in [
        "secret kind",
        "evicted",
        "sweeps",
        "step",
        "step length",
        "step began",
        "steps",
        "youngest evicted",
        "when full",
    ] {
        for byte in 0..field(name).len() {
            let got = 8 << (8 * byte);
            let error = CuckooFilter::from_bytes(&forged(&whole, &[(name, got)])).unwrap_err();
            assert_eq!(error, ImageError::Field { field: name, got });
        }
    }
}

/// `found/` has the inputs on which fuzzing failed, each named after its bug.
#[test]
fn inputs_that_fuzzing_found_no_longer_fail() {
    let found = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/found");
    let files: Vec<_> =
        std::fs::read_dir(found).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() >= 5);
    // Some are of earlier versions, with the same fields.
    let version = ("version", read(&samples()[0].to_bytes(), "version"));
    for file in files {
        let image = forged(&std::fs::read(file).unwrap(), &[version]);
        exercise::fuzzed_bytes(&image, arbitrary_bytes::<CuckooFilter>);
    }
}

/// No builder makes plain buckets that are not whole bytes. Reading them as whole bytes once ran
/// past the table for 36 to 52 bits, and gave wrong answers for 60 and 124.
#[test]
fn plain_buckets_that_are_not_whole_bytes_are_refused() {
    let sample = CuckooFilter::builder(5, 0.02).prefer(Prefer::Fast).build().unwrap().to_bytes();
    for fingerprint_bits in 8..=32 {
        let expected = fingerprint_bits % 2 == 0;
        for buckets in [1, 3, 7, 16, 27, 40] {
            let mut image = sample.clone();
            let fraction_bits = fingerprint_bits - 6;
            set(&mut image, &[("fingerprint bits", fingerprint_bits)]);
            set(&mut image, &[("fraction bits at first", fraction_bits)]);
            set(&mut image, &[("fraction bits", fraction_bits)]);
            let image = image::reshape(&image, 0, buckets);
            assert_eq!(testkit::audit::audit(&image).is_ok(), expected, "{fingerprint_bits}");
            match arbitrary_bytes::<CuckooFilter>(&image, 100) {
                Ok(()) => assert!(expected, "{fingerprint_bits}"),
                Err(error) => {
                    assert!(!expected, "{fingerprint_bits}");
                    let field = "fingerprint bits";
                    assert_eq!(error, ImageError::Field { field, got: fingerprint_bits });
                }
            }
        }
    }
}

/// Entries without stored bits go into both halves of every bucket that is split. In a table full
/// of them, an insert would split until memory runs out.
#[test]
fn a_table_full_of_entries_without_bits_is_not_split_forever() {
    const BUCKETS: u64 = 40;
    let filter = CuckooFilter::builder(10_000, 0.004).prefer(Prefer::Fast).grow_from(1000).build();
    let mut image = image::reshape(&filter.unwrap().to_bytes(), 0, 40);
    let bits = usize::try_from(read(&image, "fingerprint bits")).unwrap();
    let fraction_bits = read(&image, "fraction bits");
    for slot in 0..4 * BUCKETS {
        // The core around the mark, with no bit below it.
        let core = slot % 63 + 1;
        let void = core >> 4 << (fraction_bits + 5) | 1 << 4 | core & 15;
        let at = usize::try_from(slot).unwrap() * bits;
        for bit in (0..bits).filter(|bit| void >> bit & 1 == 1) {
            image[HEADER_BYTES + (at + bit) / 8] |= 1 << ((at + bit) % 8);
        }
    }
    // Each of them has the weight 2^64.
    image[field("match weight").start + 8] = 4 * u8::try_from(BUCKETS).unwrap();
    let fields = ["keys", "entries", "distinct entries"];
    let image = forged(&image, &fields.map(|field| (field, 4 * BUCKETS)));
    let mut filter = CuckooFilter::from_bytes(&image).unwrap();
    let before = filter.clone();
    let refused = keys::hashes(1, 100).filter(|&hash| filter.insert(&at(hash)).is_err()).count();
    assert!(refused > 0);
    assert!(filter.size_in_bytes() < 10 * before.size_in_bytes());
}

/// A filter has narrow buckets in memory where a view of its bytes has wide ones.
#[test]
fn a_view_whose_buckets_are_narrow_is_merged_to_the_same_bytes() {
    for (prefer, rate) in [(Prefer::Small, 0.05), (Prefer::Small, 0.001), (Prefer::Fast, 0.01)] {
        let filled = |seed: u64, more: usize| {
            let builder = CuckooFilter::builder(3000, rate).prefer(prefer).growable();
            let (mut filter, mut hashes) = (builder.build().unwrap(), keys::hashes(seed, u64::MAX));
            let more_keys = hashes.clone().take(300);
            more_keys.for_each(|hash| (0..3).for_each(|_| filter.insert(&at(hash)).unwrap()));
            hashes.find(|&hash| filter.insert(&at(hash)).is_ok() && filter.has_grown());
            hashes.take(more).for_each(|hash| filter.insert(&at(hash)).unwrap());
            filter
        };
        let mut empty = filled(1, 0);
        empty.clear();
        let mut narrow = 0;
        for more in [0, 10, 50, 200, 600] {
            let from = filled(1, more);
            let bytes = from.to_bytes();
            narrow += u32::from(read(&bytes, "narrow buckets") > 0);
            let view = FilterView::open(&bytes).unwrap();
            for into in [&from, &empty, &filled(1, 3), &filled(2, 20), &filled(2, 2000)] {
                for counts in [Merge::Sum, Merge::Max] {
                    let [mut union, mut other] = [into.clone(), into.clone()];
                    assert_eq!(union.merge(&from, counts), other.merge(&view, counts));
                    assert!(union == other, "{prefer:?} {rate} {more} {counts:?}");
                }
            }
        }
        assert!(narrow > 0);
    }
}
