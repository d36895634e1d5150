//! The inputs that fuzzing starts from: small sound filters of every codec and shape, which a
//! fuzzer would not guess, and operations that fill and empty a filter.
//!
//! They are made here rather than kept, so that they follow the format. The seeds of stores and
//! tables are beside the tests that read them.

use koel::{CountingFilter, CuckooFilter, ExpiringFilter, FilterView, Maplet, Prefer, WhenFull};

use crate::exercise::Subject;
use crate::keys::at;
use crate::patches::shaped;
use crate::{image, keys};

/// Filters of one bucket to 41, empty, half full and full, with and without counters; some grow.
///
/// # Panics
/// If a filter of this list cannot be built.
#[must_use]
pub fn images() -> Vec<Vec<u8>> {
    let mut images = Vec::new();
    for (prefer, rate) in [
        (Prefer::Small, 0.03),
        (Prefer::Small, 0.001),
        (Prefer::Small, 1e-8),
        (Prefer::Fast, 0.02),
        (Prefer::Fast, 1e-6),
    ] {
        let builder = CuckooFilter::builder(20, rate).prefer(prefer);
        let whole = builder.build().expect("rates of this list can be built");
        let cut = [(0, 1), (0, 3), (1, 2), (3, 1)]
            .map(|(segment_bits, buckets)| shaped(&builder, segment_bits, buckets));
        for mut filter in cut.into_iter().chain([whole]) {
            images.push(filter.to_bytes());
            // Every third hash is a copy of the one before the last.
            for (i, hash) in keys::hashes(1, filter.slots()).enumerate() {
                let hash = if i % 3 == 2 { keys::splitmix64(i as u64 % 2) } else { hash };
                if filter.insert(&at(hash)).is_err() || i as u64 == filter.slots() / 3 {
                    images.push(filter.to_bytes());
                }
            }
            images.push(filter.to_bytes());
        }
    }
    // Those that grow: some have not grown yet, some have a little, some several times.
    for (prefer, rate) in [(Prefer::Small, 0.05), (Prefer::Small, 0.001), (Prefer::Fast, 0.01)] {
        let slowly = CuckooFilter::builder(20, rate).growable();
        for way in [slowly, CuckooFilter::builder(2000, rate).grow_from(1)] {
            let mut filter = shaped(&way.prefer(prefer), 0, 3);
            for (i, hash) in keys::hashes(1, 80).enumerate() {
                let hash = if i % 5 == 2 { keys::splitmix64(i as u64 % 2) } else { hash };
                images.extend((i % 10 == 0).then(|| filter.to_bytes()));
                filter.insert(&at(hash)).expect("it grows");
            }
        }
    }
    images.dedup();
    images
}

/// Expiring filters with live and dead entries, and operations on others.
///
/// # Panics
/// If a filter of this list cannot be built.
#[must_use]
pub fn expiring() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = Vec::new();
    for (steps, when_full) in [(4, WhenFull::Fail), (6, WhenFull::EvictOldest)] {
        let builder = ExpiringFilter::builder(8, 0.01).window(60).steps(steps);
        let whole = builder.when_full(when_full).build().expect("a window that can be divided");
        let small = image::reshape(&whole.to_bytes(), 0, 3);
        let mut filter = ExpiringFilter::from_bytes(&small).expect("reshaped filters are sound");
        for (tick, hash) in (0..).step_by(5).zip(keys::hashes(1, 20)) {
            filter.advance(tick);
            let is_in = filter.insert(&at(hash)).is_ok();
            assert!(is_in || when_full == WhenFull::Fail);
        }
        seeds.extend([small, filter.to_bytes()]);
    }
    // Settings, the second of which chooses growth, then operations: a kind, a key and an argument
    // each.
    for (number, when_full) in (0..12_u8).zip([0, 1, 0, 1].into_iter().cycle()) {
        let operations = keys::hashes(number.into(), 60);
        let operations = operations.flat_map(|hash| hash.to_le_bytes().into_iter().take(3));
        let shape = if number < 6 { 5 * number } else { 122 + number };
        let settings = [number, shape, number / 2, when_full, number];
        seeds.push(settings.into_iter().chain(operations).collect());
    }
    seeds
}

/// Maplets of every kind of slot, of one bucket and of three, filling up; some grow.
///
/// # Panics
/// If a filter of this list cannot be built.
#[must_use]
pub fn maplets() -> Vec<Vec<u8>> {
    let kinds = [(0.03, 1), (0.01, 5), (0.001, 20), (0.000_1, 40)];
    let builders = kinds.into_iter().flat_map(|(rate, bits)| {
        [Maplet::builder(20, rate, bits), Maplet::builder(2000, rate, bits).grow_from(1)]
    });
    let empty = builders.map(|builder| builder.build().expect("widths that can be built"));
    let insert = |maplet: &mut Maplet, hash, number| maplet.insert(&at(hash), number % 2).is_ok();
    empty.flat_map(|empty| filling_up(&empty, insert)).collect()
}

/// Counting filters of one bucket and of three, filling up, with counts that fit into slots and
/// that do not; some grow.
///
/// # Panics
/// If a filter of this list cannot be built.
#[must_use]
pub fn counting() -> Vec<Vec<u8>> {
    let builders = [(0.03, 1), (0.001, 3), (0.000_1, 40)].into_iter().flat_map(|(rate, bits)| {
        let builder = CountingFilter::builder(2000, rate).count_bits(bits);
        [builder.clone(), builder.grow_from(1)]
    });
    let empty = builders.map(|builder| builder.build().expect("widths that can be built"));
    let add = |filter: &mut CountingFilter, hash, number| filter.add(&at(hash), number + 1).is_ok();
    empty.flat_map(|empty| filling_up(&empty, add)).collect()
}

/// A filter cut down to one bucket and to three, and some of what `insert` makes of it with one
/// hash more each, until it has no room.
fn filling_up<S: Subject>(whole: &S, insert: fn(&mut S, u64, u64) -> bool) -> Vec<Vec<u8>> {
    let mut images = Vec::new();
    for buckets in [1, 3] {
        images.push(image::reshape(&S::WRITE(whole), 0, buckets));
        let mut it = S::READ(&images[images.len() - 1]).expect("reshaped filters are sound");
        for (number, hash) in (0..30).zip(keys::hashes(2, 30)) {
            if !insert(&mut it, hash, number) {
                break;
            }
            images.extend((number % 10 == 7).then(|| S::WRITE(&it)));
        }
    }
    images
}

/// Sound files with fields and records at their bounds, made of these.
pub fn at_bounds<'a, S: Subject>(seeds: impl IntoIterator<Item = &'a Vec<u8>>) -> Vec<Vec<u8>> {
    let sound = seeds.into_iter().filter(|seed| S::READ(seed).is_ok());
    let all = sound.flat_map(|seed| {
        BOUNDS.iter().map(|change| {
            let mut image = seed.clone();
            change(&mut image);
            image::reseal(&mut image);
            image
        })
    });
    all.filter(|image| S::READ(image).is_ok()).collect()
}

/// Changes of a sound file, after most of which most are sound.
const BOUNDS: [fn(&mut Vec<u8>); 14] = [
    |image| image::set(image, &[("capacity", 0), ("counter limit", 0)]),
    |image| {
        let counters = image::read(image, "counters");
        image::set(image, &[("capacity", 1), ("counter limit", counters)]);
    },
    |image| image::set(image, &[("capacity", u64::MAX), ("counter limit", u64::MAX)]),
    |image| image::set(image, &[("keys", 0)]),
    |image| image::set(image, &[("keys", 1)]),
    |image| image::set(image, &[("grows", 1)]),
    |image| {
        let buckets = FilterView::open(image).map_or(0, |view| view.buckets());
        image::set(image, &[("narrow buckets", buckets)]);
    },
    |image| largest_counter(image),
    |image| largest_stash(image, u64::MAX),
    |image| largest_stash(image, u64::MAX - 1),
    most_corrections,
    |image| {
        largest_stash(image, u64::MAX);
        most_corrections(image);
        image::set(image, &[("capacity", u64::MAX), ("counter limit", u64::MAX)]);
    },
    |image| image::set(image, &[("step began", u64::MAX)]),
    |image| image::set(image, &[("evicted", u64::MAX), ("youngest evicted", 1)]),
];

/// The last counter has all copies that can be counted.
fn largest_counter(image: &mut [u8]) {
    let room = u64::MAX - image::read(image, "keys");
    let end = image::section_bytes(image, "counters").end;
    if let Some(record) = image::section(image, "counters").last() {
        let count = image::word(record, 1).saturating_add(room);
        image[end - 8..end].copy_from_slice(&count.to_le_bytes());
        image::set(image, &[("keys", u64::MAX)]);
    }
}

/// Stashed keys have all copies that make `keys` of them.
fn largest_stash(image: &mut Vec<u8>, keys: u64) {
    let copies = keys.saturating_sub(image::read(image, "keys"));
    image::add_record(image, "stashed keys", &[keys::splitmix64(5), 0, copies]);
    image::set(image, &[("keys", keys)]);
}

/// There are as many corrections as slots.
fn most_corrections(image: &mut Vec<u8>) {
    let slots = FilterView::open(image).map_or(0, |view| view.slots());
    for hash in keys::hashes(6, slots - image::read(image, "corrections").min(slots)) {
        image::add_record(image, "corrections", &[hash]);
    }
}

/// Each kind of operation on each kind of setup, in an order that varies.
#[must_use]
pub fn models() -> Vec<Vec<u8>> {
    let seed = |number: u64| {
        let setup = keys::splitmix64(number).to_le_bytes();
        let ops = (0..24_u8).flat_map(move |step| {
            let [kind, key, more, ..] =
                keys::splitmix64(1000 * number + u64::from(step)).to_le_bytes();
            [kind, key, more]
        });
        setup[..6].iter().copied().chain(ops).collect()
    };
    (0..32).map(seed).collect()
}

#[cfg(test)]
mod tests {
    use koel::ImageError;

    use super::*;
    use crate::exercise::bounds::{self, Bounds};
    use crate::exercise::{arbitrary_bytes, with_values};

    /// Every how manyth seed is tried, and operations on each: 1 and 300 take minutes.
    const STEP: usize = 5;
    const OPERATIONS: u32 = 100;

    /// Sets each field of the headers of `seeds` to extreme values, with valid checksums: they are
    /// refused or sound. Returns how many are sound.
    fn with_extreme_fields(
        seeds: &[Vec<u8>],
        holds: impl Fn(&[u8], u32) -> Result<(), ImageError>,
    ) -> usize {
        let fields = (12..image::field("body checksum").start)
            .flat_map(|at| [1, 2, 4, 8].map(|width| (at, width)));
        let aligned = fields.filter(|(at, width)| at % width == 0);
        let mut accepted = 0;
        for (at, width) in aligned {
            let largest = u64::MAX >> (64 - 8 * width);
            for value in [0, 1, largest / 2, largest / 2 + 1, largest - 1, largest] {
                for seed in seeds {
                    let mut bytes = seed.clone();
                    bytes[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
                    image::reseal(&mut bytes);
                    accepted += usize::from(holds(&bytes, OPERATIONS).is_ok());
                }
            }
        }
        accepted
    }

    /// Does everything at its bounds with sound files that are at theirs. Returns how many.
    fn at_their_bounds<S: Bounds>(seeds: &[Vec<u8>]) -> usize {
        let seeds = at_bounds::<S>(seeds.iter().step_by(4));
        seeds.iter().for_each(|seed| bounds::all(&S::READ(seed).expect("sound")));
        seeds.len()
    }

    #[test]
    fn files_at_their_bounds_take_everything_at_its_bounds() {
        let mut expiring = expiring();
        expiring.retain(|seed| seed.starts_with(b"koel"));
        let tried = [
            at_their_bounds::<CuckooFilter>(&images()),
            at_their_bounds::<CountingFilter>(&counting()),
            at_their_bounds::<Maplet>(&maplets()),
            at_their_bounds::<ExpiringFilter>(&expiring),
        ];
        assert!(
            tried.iter().zip([200, 20, 20, 2]).all(|(&tried, least)| tried > least),
            "{tried:?}"
        );
    }

    #[test]
    fn extreme_fields_are_refused_or_sound() {
        let some = |seeds: Vec<Vec<u8>>| seeds.into_iter().step_by(STEP).collect::<Vec<_>>();
        let mut expiring = expiring();
        expiring.retain(|seed| seed.starts_with(b"koel"));
        let accepted = [
            with_extreme_fields(&expiring, arbitrary_bytes::<ExpiringFilter>),
            with_extreme_fields(&some(maplets()), with_values),
            with_extreme_fields(&some(counting()), with_values),
            with_extreme_fields(&some(images()), arbitrary_bytes::<CuckooFilter>),
        ];
        assert!(accepted.iter().all(|&accepted| accepted > 1000), "{accepted:?}");
    }
}
