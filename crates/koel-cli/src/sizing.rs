//! From arguments to an empty filter, and the sums over inserts that tell how many different keys there were.
//!
//! An insert that was not contained before was a new key; but with probability p, the false-positive rate at that moment, a new key
//! looks contained. So each key judged new stands for 1/(1-p) new keys: one seen and p/(1-p) mistaken for an old one. Their sum is an
//! unbiased estimate of the distinct keys, its excess over the keys judged new the expected number of mistakes.
//! p moves slowly, so it is looked up once for every 0.4 % of growth: the sum is off by at most that part of the excess.
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

/// Keys inserted, and what they say about the number of different ones.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    /// Keys offered.
    pub(crate) keys: u64,
    /// Keys judged new.
    pub(crate) judged_new: u64,
    /// Expected number of new keys that were judged old.
    pub(crate) expected_mistaken: f64,
    odds: f64,
    odds_good_until: u64,
}

impl Tally {
    /// Inserts a key: every copy, or with `unique` only if it is not contained. Says whether it was judged new.
    pub(crate) fn insert(
        &mut self,
        filter: &mut CuckooFilter,
        key: &[u8],
        unique: bool,
    ) -> Result<bool, Full> {
        let hash = filter.hasher().hash(key);
        let new = if unique {
            filter.insert_unique_hash(hash)?
        } else {
            let new = !filter.contains_hash(hash);
            filter.insert_hash(hash)?;
            new
        };
        self.keys += 1;
        if new {
            if self.judged_new >= self.odds_good_until {
                self.odds = self.odds_of_mistake(filter);
                self.odds_good_until = self.judged_new + self.judged_new / 256 + 1;
            }
            self.judged_new += 1;
            self.expected_mistaken += self.odds;
        }
        Ok(new)
    }

    /// p/(1-p) at present. A second copy takes a slot but makes no new fingerprint, so only the share of different keys errs.
    fn odds_of_mistake(&self, filter: &CuckooFilter) -> f64 {
        let slots = filter.slots_in_use().max(1) as f64;
        let rate = filter.false_positive_rate() * (self.judged_new as f64 / slots).min(1.0);
        rate / (1.0 - rate)
    }

    /// The estimated number of different keys, never more than there were keys.
    pub(crate) fn distinct(&self) -> u64 {
        quantity::to_u64(self.judged_new as f64 + self.expected_mistaken).min(self.keys)
    }
}
