//! From arguments to an empty filter, and keys into it.
#![forbid(unsafe_code)]

use clap::ValueEnum;
use koel::{BuildError, Builder, CuckooFilter, Full, Plan, Prefer};

use crate::failure::Failure;
use crate::quantity;

/// The arguments of every verb that makes a filter.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ShapeArgs {
    /// Room for so many different keys, such as 121570 or 10M; counted from the input when absent
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

/// The estimated number of different keys.
pub(crate) fn distinct(filter: &CuckooFilter) -> u64 {
    quantity::to_u64(filter.distinct_estimate())
}
