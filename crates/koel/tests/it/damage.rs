//! Damaged files of every type. The files are small, so that *every* flip, cut and extension can be
//! tried.

use koel::{
    CountingFilter, CuckooFilter, ExpiringFilter, ImageError, Maplet, MapletView, WhenFull,
};
use testkit::exercise::arbitrary_bytes;
use testkit::image::{self, HEADER_BYTES};
use testkit::keys::{self, at};

use crate::subject::Subject;
use crate::support::{counters, forged, read, with_counts};

/// Reads the bytes of any file of a type, makes so many changes to what they hold, and checks that
/// type's promises.
type Read = fn(&[u8], u32) -> Result<(), ImageError>;

/// A type of file.
struct Kind {
    /// What errors call it.
    name: &'static str,
    files: Vec<Vec<u8>>,
    read: Read,
    operations: u32,
    /// More flips than this are harmless.
    harmless: usize,
}

fn kinds() -> [Kind; 4] {
    let filters =
        crate::image::samples_of_all_shapes().iter().map(CuckooFilter::to_bytes).collect();
    let kind = |name, files, read, harmless| Kind { name, files, read, operations: 30, harmless };
    [
        Kind { operations: 100, ..kind("filter", filters, arbitrary_bytes::<CuckooFilter>, 1000) },
        kind("counting filter", counting_filters(), arbitrary_bytes::<CountingFilter>, 500),
        kind("maplet", maplets(), arbitrary_bytes::<Maplet>, 1000),
        kind("expiring filter", expiring_filters(), arbitrary_bytes::<ExpiringFilter>, 500),
    ]
}

/// With and without counters, nearly full; half of them have grown.
fn counting_filters() -> Vec<Vec<u8>> {
    let builders = [(0.05, 1), (0.001, 3), (1e-6, 40)].into_iter().flat_map(|(rate, bits)| {
        let builder = CountingFilter::builder(8, rate).count_bits(bits);
        [builder.clone(), builder.grow_from(1)]
    });
    let filled = builders.map(|builder| {
        let whole = builder.build().unwrap().to_bytes();
        let mut filter = CountingFilter::from_bytes(&image::reshape(&whole, 0, 3)).unwrap();
        for (times, hash) in (1..).zip(keys::hashes(1, 11)) {
            assert!(filter.add(&at(hash), times).is_ok() || !filter.contains(&at(hash)));
        }
        assert!(filter.len() > 20);
        filter.to_bytes()
    });
    filled.collect()
}

/// Of each packing, nearly full.
fn maplets() -> Vec<Vec<u8>> {
    let fill = |small: &Maplet, segment_bits, buckets| {
        let bytes = image::reshape(&small.to_bytes(), segment_bits, buckets);
        let mut maplet = Maplet::from_bytes(&bytes).unwrap();
        let taken = keys::hashes(1, maplet.slots())
            .filter(|&hash| maplet.insert(&at(hash), small.value(hash)).is_ok());
        assert!(taken.count() as u64 >= maplet.slots() / 2);
        maplet.to_bytes()
    };
    // Some pairs are in the stash.
    let small = Maplet::fixed(12);
    small.iter().flat_map(|small| [fill(small, 0, 3), fill(small, 1, 4)]).collect()
}

/// Nearly full, with live and dead entries.
fn expiring_filters() -> Vec<Vec<u8>> {
    let ways =
        [(0.05, 4, WhenFull::EvictOldest), (0.001, 24, WhenFull::Fail), (1e-6, 1, WhenFull::Fail)];
    let filled = ways.map(|(rate, steps, when_full)| {
        let builder = ExpiringFilter::builder(8, rate).window(70).steps(steps);
        let whole = builder.when_full(when_full).build().unwrap().to_bytes();
        let mut filter = ExpiringFilter::from_bytes(&image::reshape(&whole, 0, 3)).unwrap();
        for (i, hash) in (0..).zip(keys::hashes(1, 14)) {
            filter.advance(i * 70 / 9);
            assert!(filter.insert(&at(hash)).is_ok() || !filter.contains(&at(hash)));
        }
        assert!(filter.len() > 5, "{filter:?}");
        filter.to_bytes()
    });
    filled.into()
}

/// The bytes with one bit changed.
pub(crate) fn flipped(bytes: &[u8], bit: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[bit / 8] ^= 1 << (bit % 8);
    bytes
}

/// With valid checksums, both outcomes must occur: fields such as the seed may have any value,
/// others may not.
#[test]
fn every_flipped_bit_is_detected_and_with_valid_checksums_refused_or_harmless() {
    for Kind { name, files, read, operations, harmless } in kinds() {
        let (mut accepted, mut refused) = (0, 0);
        for bytes in files {
            for bit in 0..8 * bytes.len() {
                let mut changed = flipped(&bytes, bit);
                assert!(read(&changed, 0).is_err(), "{name}: bit {bit} is not detected");
                image::reseal(&mut changed);
                match read(&changed, operations) {
                    Ok(()) => accepted += 1,
                    Err(ImageError::Checksum { .. }) => panic!("{name}: bit {bit}: not sealed"),
                    Err(_) => refused += 1,
                }
            }
        }
        let enough = accepted > harmless && refused > 1000;
        assert!(enough, "{name}: {accepted} accepted, {refused} refused");
    }
}

#[test]
fn every_file_that_is_cut_short_or_has_a_byte_more_is_refused() {
    for Kind { files, read, .. } in kinds() {
        for bytes in files {
            let whole = bytes.len() as u64;
            for end in 0..bytes.len() {
                let length = |expected| ImageError::Length { expected, got: end as u64 };
                let expected = match end {
                    0 => ImageError::NotAFilter,
                    1..HEADER_BYTES => length(HEADER_BYTES as u64),
                    _ => length(whole),
                };
                assert_eq!(read(&bytes[..end], 0), Err(expected), "{end} bytes");
            }
            let error = ImageError::Length { expected: whole, got: whole + 1 };
            for byte in 0..=u8::MAX {
                assert_eq!(read(&[&bytes[..], &[byte]].concat(), 0), Err(error));
            }
        }
    }
}

#[test]
fn a_file_of_one_type_is_refused_by_the_others_and_the_error_names_both() {
    for Kind { name: found, files, read: own, .. } in &kinds() {
        assert!(files.iter().all(|file| own(file, 0) == Ok(())));
        for Kind { name: asked, read, .. } in kinds().iter().filter(|kind| kind.name != *found) {
            for file in files {
                let refused = read(file, 0).unwrap_err();
                assert_eq!(refused, ImageError::Kind { asked, found });
                let sentence = refused.to_string();
                assert!(sentence.contains(asked) && sentence.contains(found), "{sentence}");
            }
        }
    }
}

/// The field that an image with valid checksums is refused for.
#[track_caller]
fn refused(read: Read, image: &[u8]) -> &'static str {
    match read(image, 0) {
        Err(ImageError::Field { field, .. }) => field,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_invalid_field_is_named() {
    let maplet = Maplet::builder(1, 1e-5, 33).build().unwrap().to_bytes();
    let expiring = expiring_filters().swap_remove(1);
    let of_maplet = [
        ("kind", 4),
        ("codec", 1),
        ("value bits", 0),
        ("value bits", 41),
        ("fingerprint bits", 33),
        ("stashed keys", 1),
        ("counters", 1),
        ("evicted", 1),
        ("sweeps", 1),
        ("distinct entries", 1),
    ];
    let of_expiring = [
        ("step length", 0),
        ("steps", 0),
        ("steps", 31),
        ("steps", 201),
        ("youngest evicted", 3),
        ("youngest evicted", 26),
        ("when full", 2),
        ("narrow buckets", 1),
        ("keys", 0),
        ("counters", 1),
        ("counter limit", 1),
        ("sweeps", 0),
        ("sweeps", 2),
    ];
    let maplet: (_, Read, _) = (maplet, arbitrary_bytes::<Maplet>, &of_maplet[..]);
    let expiring: (_, Read, _) = (expiring, arbitrary_bytes::<ExpiringFilter>, &of_expiring[..]);
    for (image, read, fields) in [maplet, expiring] {
        for &(name, value) in fields {
            assert_eq!(refused(read, &forged(&image, &[(name, value)])), name, "{value}");
        }
    }
}

/// A file may not hold a group that was swept at a step to come.
#[test]
fn forged_sweeps_are_refused() {
    let mut image = expiring_filters().swap_remove(1);
    let sweeps = image::section_bytes(&image, "sweeps");
    image[sweeps.start + 1] = 0x80;
    image::reseal(&mut image);
    assert_eq!(refused(arbitrary_bytes::<ExpiringFilter>, &image), "sweeps");
}

/// A view is not verified, and its stash need not ascend.
#[test]
fn a_lookup_in_a_stash_that_does_not_ascend_ends() {
    let mut maplet = Maplet::builder(100, 0.01, 8).build().unwrap();
    (0..20).for_each(|value| maplet.insert("key", value).unwrap());
    let mut image = maplet.to_bytes();
    let stash = image::section_bytes(&image, "stashed keys");
    image[stash].as_chunks_mut::<24>().0.reverse();
    let view = MapletView::open(&image).unwrap();
    assert!(view.get("key").take(100).count() <= 20);
    assert!(view.verify().is_err());
}

/// A value of 33 bits beside a fingerprint of 31 fills a slot; one beside a fingerprint of 24
/// leaves bits that must be zero.
#[test]
fn bits_behind_a_value_must_be_zero() {
    let whole = Maplet::builder(1, 1e-5, 33).build().unwrap().to_bytes();
    let bits = [("fingerprint bits", 24), ("fraction bits at first", 18), ("fraction bits", 18)];
    let mut maplet = Maplet::from_bytes(&forged(&whole, &bits)).unwrap();
    maplet.insert("key", (1 << 33) - 1).unwrap();
    let mut bytes = maplet.to_bytes();
    let top = bytes.iter().rposition(|&byte| byte != 0).unwrap();
    bytes[top] |= 0x80;
    assert_eq!(refused(arbitrary_bytes::<Maplet>, &forged(&bytes, &[("keys", 1)])), "bucket");
}

/// Edits the bytes of a filter of one key into states that no filter writes.
#[test]
fn slots_and_counters_that_contradict_each_other_are_refused() {
    let mut filter = CountingFilter::builder(8, 0.004_8).count_bits(3).build().unwrap();
    filter.add("ada", 9).unwrap();
    assert_eq!(filter.layout().to_string(), "plain 4x11+3");
    let bytes = filter.to_bytes();
    let refused = |image: &[u8]| refused(arbitrary_bytes::<CountingFilter>, image);
    assert_eq!(refused(&forged(&bytes, &[("counter limit", 0)])), "counter limit");
    let count = u64::from(counters(&mut bytes.clone())[0][8]);
    assert_eq!(refused(&with_counts(&bytes, &[count + 1])), "keys");
    assert_eq!(refused(&with_counts(&bytes, &[0])), "counter value");
    let mut other = bytes.clone();
    counters(&mut other)[0][7] ^= 1;
    image::reseal(&mut other);
    assert_eq!(refused(&other), "counter name");
    // The word of the only bucket in use: seven bytes.
    let first = (HEADER_BYTES..bytes.len()).find(|&at| bytes[at] != 0).unwrap();
    let bucket = first - (first - HEADER_BYTES) % 7;
    let word = u64::from_le_bytes(bytes[bucket..bucket + 8].try_into().unwrap());
    let with_word = |word: u64, fields: &[(&str, u64)]| {
        let mut bytes = bytes.clone();
        bytes[bucket..bucket + 8].copy_from_slice(&word.to_le_bytes());
        forged(&bytes, fields)
    };
    // A counter whose value would fit into the slot, and none.
    for (count, field) in [(6, "counter name"), (0, "bucket")] {
        assert_eq!(refused(&with_word(word & !(7 << 11) | count << 11, &[])), field);
    }
    // A second slot for the same key.
    let more = [("entries", 1), ("keys", 7)].map(|(it, more)| (it, read(&bytes, it) + more));
    assert_eq!(refused(&with_word(word | (word & 0x3fff) << 14, &more)), "distinct entries");
}
