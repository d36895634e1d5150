//! From arguments to an empty filter, and keys into it.
#![forbid(unsafe_code)]

use clap::ValueEnum;
use koel::{BuildError, Builder, CuckooFilter, Full, Plan, Prefer};

use crate::failure::Failure;
use crate::input::Inputs;
use crate::quantity::{self, grouped};

/// Keys that a filter of keys of an unknown number has room for at first.
pub(crate) const GROW_FROM: u64 = 1000;
/// Different keys up to which such a filter keeps its error rate.
pub(crate) const GROW_TO: u64 = 1_000_000_000;

/// Of a filter whose layout cannot grow.
pub(crate) const CANNOT_GROW: &str =
    "at its error rate a filter cannot grow, build a larger one from the keys";

/// The arguments of every verb that makes a filter.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ShapeArgs {
    /// Room for so many different keys, such as 121570 or 10M
    #[arg(long, value_name = "N", value_parser = quantity::parse_keys)]
    pub(crate) keys: Option<u64>,

    /// Fewest bits for each key, or fewest instructions
    #[arg(long, value_enum, default_value = "small", value_name = "WHAT")]
    prefer: Preference,

    /// Seed of the hash; filters to be merged need equal seeds
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Preference {
    // No doc comments here: clap would spread every help of the verb over twice the lines.
    Small,
    Fast,
}

impl ShapeArgs {
    /// An empty filter for `keys` keys (at least one: a filter of nothing can still be asked).
    pub(crate) fn build(&self, keys: u64, fpr: f64) -> Result<CuckooFilter, Failure> {
        self.builder(keys, fpr).build().map_err(|error| refused(&error))
    }

    /// The same, and it grows when it is full.
    pub(crate) fn build_growable(&self, keys: u64, fpr: f64) -> Result<CuckooFilter, Failure> {
        self.builder(keys, fpr).growable().build().map_err(|error| refused(&error))
    }

    /// An empty filter that grows from a few keys to any number.
    pub(crate) fn build_growing(&self, fpr: f64) -> Result<CuckooFilter, Failure> {
        growing(self.builder(GROW_TO, fpr)).build().map_err(|error| refused(&error))
    }

    /// The same; or where the error rate is too small for a filter that grows, one for as many keys as there are lines, which are counted for it.
    pub(crate) fn build_for(&self, inputs: &mut Inputs, fpr: f64) -> Result<CuckooFilter, Failure> {
        match growing(self.builder(GROW_TO, fpr)).build() {
            Err(BuildError::TooPrecise { .. }) => self.build(inputs.count()?, fpr),
            built => built.map_err(|error| refused(&error)),
        }
    }

    /// What [`Self::build`] would build.
    pub(crate) fn plan(&self, keys: u64, fpr: f64) -> Result<Plan, Failure> {
        self.builder(keys, fpr).plan().map_err(|error| refused(&error))
    }

    fn builder(&self, keys: u64, fpr: f64) -> Builder {
        let prefer = match self.prefer {
            Preference::Small => Prefer::Small,
            Preference::Fast => Prefer::Fast,
        };
        CuckooFilter::builder(keys.max(1), fpr).prefer(prefer).seed(self.seed)
    }
}

/// The filter of keys of an unknown number, for a builder with a capacity of [`GROW_TO`].
pub(crate) fn growing(builder: Builder) -> Builder {
    builder.grow_from(GROW_FROM)
}

pub(crate) fn refused(error: &BuildError) -> Failure {
    Failure::Usage(error.to_string())
}

/// Adds keys: every copy of each, or with `unique` only those not contained.
pub(crate) fn insert(filter: &mut CuckooFilter, keys: &[&[u8]], unique: bool) -> Result<(), Full> {
    if unique {
        filter.insert_unique_many(keys, &mut vec![false; keys.len()])
    } else {
        filter.insert_many(keys)
    }
}

/// How many keys there are, and for how many there is room where that does not grow with them.
pub(crate) fn keys_and_room(filter: &CuckooFilter) -> String {
    held(filter.len(), filter.capacity(), filter.has_grown())
}

/// The same, from the figures of any filter.
pub(crate) fn held(keys: u64, capacity: u64, has_grown: bool) -> String {
    let keys = grouped(keys);
    if has_grown {
        return keys;
    }
    format!("{keys}, built for {} different ones", grouped(capacity))
}

/// Bits for each key, of a filter that has so many. In one that grows, the size follows the keys, and without any it says nothing.
pub(crate) fn bits_per_key(bits: f64, keys: u64, has_grown: bool) -> String {
    if has_grown && keys == 0 { "-".to_owned() } else { format!("{bits:.2}") }
}

/// The different keys that the size is to be divided by: those there is room for, or, where room grows with them, those there are.
pub(crate) fn keys_of_size(filter: &CuckooFilter) -> u64 {
    if filter.has_grown() { distinct(filter) } else { filter.capacity() }
}

/// The estimated number of different keys.
pub(crate) fn distinct(filter: &CuckooFilter) -> u64 {
    quantity::to_u64(filter.distinct_estimate())
}
