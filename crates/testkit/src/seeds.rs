//! The inputs that fuzzing starts from: small sound filters of every codec and shape, which a
//! fuzzer would not guess, and operations that fill and empty a filter.
//!
//! They are made here rather than kept, so that they follow the format. The seeds of stores and
//! tables are beside the tests that read them.

use koel::{CountingFilter, CuckooFilter, ExpiringFilter, Maplet, Prefer, WhenFull};

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
