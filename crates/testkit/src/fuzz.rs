//! The fuzz targets: what any bytes are tried as, and the inputs that fuzzing starts from.
//!
//! `fuzz/` tries new inputs for as long as it is told to. The tests of this file try the seeds and
//! a fixed number of changes of them, without cargo-fuzz.

use koel::{CountingFilter, CuckooFilter, ExpiringFilter, Maplet};
use koel_store::{LogStore, LsmStore};

use crate::cases::Case;
use crate::exercise::{Subject, arbitrary_bytes, fuzzed_bytes, with_values};
use crate::model::Model;
use crate::{expiring, patches, pieces, seeds, stores, tables};

/// A fuzz target.
#[derive(Debug)]
pub struct Target {
    /// Its name in `fuzz/`.
    pub name: &'static str,
    /// Tries any bytes. Panics if a promise is broken.
    pub run: fn(&[u8]),
    /// The inputs that fuzzing starts from.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// Any bytes: refused with a reason, or a sound filter that takes whatever is done to it. As they
/// are, and with checksums that fit.
pub const IMAGE: Target = Target {
    name: "image",
    run: |bytes| fuzzed_bytes(bytes, arbitrary_bytes::<CuckooFilter>),
    seeds: || with_bounds::<CuckooFilter>(seeds::images()),
};

/// The same for maplets and counting filters.
pub const MAPLET: Target = Target {
    name: "maplet",
    run: |bytes| fuzzed_bytes(bytes, with_values),
    seeds: || {
        let maplets = with_bounds::<Maplet>(seeds::maplets());
        [maplets, with_bounds::<CountingFilter>(seeds::counting())].concat()
    },
};

/// The same for expiring filters; bytes that do not start as a file are operations on one, beside
/// the model that says what must come of them.
pub const EXPIRING: Target = Target {
    name: "expiring",
    run: |bytes| match bytes {
        [b'k', b'o', b'e', b'l', ..] => fuzzed_bytes(bytes, arbitrary_bytes::<ExpiringFilter>),
        _ => expiring::run(bytes),
    },
    seeds: || with_bounds::<ExpiringFilter>(seeds::expiring()),
};

/// Operations on any small filter, beside the exact multiset that says what must come of them.
pub const MODEL: Target = Target {
    name: "model",
    run: |bytes| drop(Model::run(&Case::decode(bytes, 24))),
    seeds: seeds::models,
};

/// Any bytes as a patch of a small filter: refused with a reason, or what the format says.
pub const PATCH: Target =
    Target { name: "patch", run: patches::fuzzed_bytes, seeds: patches::seeds };

/// Any bytes as a part or a piece of a filter: refused with a reason, or a sound filter with the
/// keys of the part.
pub const PIECE: Target = Target { name: "piece", run: pieces::fuzzed_bytes, seeds: pieces::seeds };

/// Any bytes as manifest, logs and hints of a store: refused with a reason, or no value but those
/// with a right checksum.
pub const STORE: Target = Target {
    name: "store",
    run: stores::fuzzed_bytes::<LogStore>,
    seeds: stores::seeds::<LogStore>,
};

/// Any bytes as manifest, logs and tables of an ordered store: refused with a reason, or all ways
/// of reading it agree.
pub const ORDERED: Target = Target {
    name: "ordered",
    run: stores::fuzzed_bytes::<LsmStore>,
    seeds: stores::seeds::<LsmStore>,
};

/// Any bytes as a table of an ordered store: refused with a reason, or the same entries whichever
/// way they are read.
pub const TABLE: Target = Target { name: "table", run: tables::fuzzed_bytes, seeds: tables::seeds };

/// All of them. `fuzz/` also has `valkey`, whose body is a test of the module.
pub const TARGETS: [Target; 9] =
    [IMAGE, MAPLET, EXPIRING, MODEL, PATCH, PIECE, STORE, ORDERED, TABLE];

/// Seeds, and some of them with fields and records at their bounds.
fn with_bounds<S: Subject>(mut seeds: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let some = seeds::at_bounds::<S>(seeds.iter().step_by(4));
    seeds.extend(some);
    seeds
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Random;

    /// Tries the seeds, and so many inputs with a few changed bytes or without their end.
    fn holds(target: &Target, changed: u64) {
        let seeds = (target.seeds)();
        seeds.iter().for_each(|seed| (target.run)(seed));
        for number in 0..changed {
            let mut random = Random::new(number);
            let mut input = seeds[random.below(seeds.len())].clone();
            for _ in 0..1 + random.below(4) {
                let at = random.below(input.len());
                let any = random.bytes(1)[0];
                input[at] = [input[at] ^ 1 << random.below(8), 0, 1, 0x7f, 0x80, 0xff, any]
                    [random.below(7)];
            }
            if random.chance(5) {
                input.truncate(1 + random.below(input.len()));
            }
            (target.run)(&input);
        }
    }

    macro_rules! tests {
        ($($name:ident $target:ident $changed:literal;)+) => {
            $(#[test] fn $name() { holds(&$target, $changed); })+
        };
    }

    tests! {
        any_image_is_refused_or_sound IMAGE 20_000;
        any_maplet_is_refused_or_sound MAPLET 20_000;
        any_expiring_filter_is_refused_or_sound EXPIRING 200;
        any_operations_are_those_of_a_multiset MODEL 1_000;
        any_patch_is_refused_or_what_the_format_says PATCH 10_000;
        any_part_or_piece_is_refused_or_joined PIECE 5_000;
        any_store_is_refused_or_returns_what_was_written STORE 4_000;
        any_ordered_store_is_sound_or_reported ORDERED 400;
        any_table_is_sound_or_reported TABLE 4_000;
    }
}
