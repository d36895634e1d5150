//! Builds an empty filter from arguments, inserts keys, and words its figures for reports.

use clap::ValueEnum;
use clap::builder::{OsStringValueParser, TypedValueParser};
use koel::{
    BuildError, Builder, CuckooFilter, FullError, Key, KeyHasher, PiecePlan, Plan, Prefer, Store,
};

use koel_plan::{GROW_TO, unbounded};

use crate::failure::Failure;
use crate::input::Inputs;
use crate::lists::secret::{self, Secret};
use crate::quantity::{self, grouped};
use crate::report::Report;
use koel_lines::{ApplicationBytes, Recipe};

/// Why a filter cannot grow, and what to do.
pub(crate) const CANNOT_GROW: &str =
    "it cannot grow at its false-positive rate and size; build a larger filter from the keys";

/// The arguments of every verb that makes a filter.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ShapeArgs {
    /// Number of distinct keys to make room for, such as 121570 or 10M
    #[arg(long, value_name = "N", value_parser = quantity::parse_keys)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) keys: Option<u64>,

    /// Optimise for size (small) or speed (fast, default of dedup without --keys)
    #[arg(long, value_enum, value_name = "WHAT", display_order = 40, hide_possible_values = true)]
    prefer: Option<Preference>,

    /// Seed of the hash; only filters with equal seeds can be merged
    #[arg(long, value_name = "N", display_order = 41)]
    #[arg(default_value_t = KeyHasher::DEFAULT_SEED, hide_default_value = true)]
    #[arg(value_parser = parse_seed)]
    seed: u64,

    /// Hash with a secret, random or from FILE, for keys that an adversary chooses
    #[arg(long, value_name = "FILE", display_order = 42, conflicts_with = "seed")]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = secret::AT_RANDOM)]
    #[arg(value_parser = OsStringValueParser::new().try_map(|file| Secret::from_argument(&file)))]
    secret: Option<Secret>,

    /// How keys are made of lines, for the filter to store.
    #[arg(skip)]
    application: ApplicationBytes,
}

fn parse_seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "give a whole number below 2^64".to_owned())
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Preference {
    // Without doc comments, with which clap would double the length of the help.
    Small,
    Fast,
}

impl ShapeArgs {
    /// Lets the filter store how keys are made of lines.
    pub(crate) fn read_lines_by(&mut self, recipe: &Recipe) {
        self.application = recipe.to_bytes();
    }

    /// An empty filter for `keys` keys, or for one if `keys` is 0.
    pub(crate) fn build(&self, keys: u64, fpr: f64) -> Result<CuckooFilter, Failure> {
        self.builder(keys, fpr).build().map_err(|error| self.failure(keys, fpr, &error))
    }

    /// An error of a builder, with the lowest rate that is possible where that is the remedy.
    fn failure(&self, keys: u64, fpr: f64, error: &BuildError) -> Failure {
        let plan = |keys, fpr| self.builder(keys, fpr).plan();
        match (error, plan(keys, fpr)) {
            (BuildError::NoMemory, Ok(plan)) => Failure::Usage(format!(
                "the filter for {} would take {}, for which the system has no memory; give fewer \
                 --keys, a larger --fpr, or --memory",
                quantity::counted(keys, "key"),
                quantity::bytes(plan.size_in_bytes as u64)
            )),
            _ => size_failure(fpr, error, plan),
        }
    }

    /// An empty growable filter for `--keys`, or for an unknown number of keys.
    pub(crate) fn build_growable(&self, fpr: f64) -> Result<CuckooFilter, Failure> {
        let builder = match self.keys {
            Some(keys) => self.builder(keys, fpr).growable(),
            None => unbounded(self.builder(GROW_TO, fpr)),
        };
        builder.build().map_err(|error| build_failure(&error))
    }

    /// An empty growable filter that is not saved, so that speed matters more than a sixth of the
    /// memory. If the false-positive rate is too small to grow, a fixed one for the lines of the
    /// files, which are counted first. Lines of a pipe would not be printed before its end.
    pub(crate) fn build_for(&self, inputs: &mut Inputs, fpr: f64) -> Result<CuckooFilter, Failure> {
        let either = [Preference::Fast, Preference::Small];
        for &prefer in self.prefer.as_ref().map_or(&either[..], std::slice::from_ref) {
            let shape = Self { prefer: Some(prefer), ..self.clone() };
            match unbounded(shape.builder(GROW_TO, fpr)).build() {
                Err(BuildError::TooPrecise { .. }) => {}
                built => return built.map_err(|error| build_failure(&error)),
            }
        }
        if inputs.has_stream() {
            return Err(Failure::Usage(format!(
                "a filter cannot grow at a rate of {}, and the lines of a pipe cannot be counted \
                 before they are printed; give --keys, a larger --fpr, or the name of a file",
                quantity::rate(fpr)
            )));
        }
        self.build(inputs.count()?, fpr)
    }

    /// Whether there is a `--secret`.
    pub(crate) fn has_secret(&self) -> bool {
        self.secret.is_some()
    }

    /// Whether a `--seed` was given that is not that of this hasher.
    pub(crate) fn has_other_seed(&self, hasher: KeyHasher) -> bool {
        self.seed != KeyHasher::DEFAULT_SEED && hasher != KeyHasher::Xxh3 { seed: self.seed }
    }

    /// The size of the filter that [`Self::build`] would build.
    pub(crate) fn plan(&self, keys: u64, fpr: f64) -> Result<Plan, Failure> {
        self.builder(keys, fpr).plan().map_err(|error| self.failure(keys, fpr, &error))
    }

    /// The plan to build that filter in pieces.
    pub(crate) fn pieces(&self, keys: u64, fpr: f64) -> Result<PiecePlan, Failure> {
        self.builder(keys, fpr).pieces().map_err(|error| self.failure(keys, fpr, &error))
    }

    fn builder(&self, keys: u64, fpr: f64) -> Builder<CuckooFilter> {
        let prefer = match self.prefer {
            None | Some(Preference::Small) => Prefer::Small,
            Some(Preference::Fast) => Prefer::Fast,
        };
        let builder = CuckooFilter::builder(keys.max(1), fpr).prefer(prefer);
        self.hashed(builder.application(self.application))
    }

    /// A builder with the seed or the secret of the arguments.
    pub(crate) fn hashed<F>(&self, builder: Builder<F>) -> Builder<F> {
        match self.secret {
            Some(secret) => builder.sip_key(secret.key()),
            None => builder.seed(self.seed),
        }
    }
}

pub(crate) fn build_failure(error: &BuildError) -> Failure {
    Failure::Usage(error.to_string())
}

/// [`build_failure`], and for too many keys the lowest rate at which so many fit. To divide them
/// among filters would be no way out: whoever asks all of them adds up their rates.
pub(crate) fn size_failure(
    fpr: f64,
    error: &BuildError,
    plan: impl Fn(u64, f64) -> Result<Plan, BuildError>,
) -> Failure {
    let BuildError::TooLarge { capacity, largest } = *error else { return build_failure(error) };
    let (mut low, mut high) = (fpr, 0.5);
    if plan(capacity, high).is_err() {
        return build_failure(error);
    }
    while high > 1.001 * low {
        let middle = (low * high).sqrt();
        if plan(capacity, middle).is_ok() { high = middle } else { low = middle }
    }
    Failure::Usage(format!(
        "{} are too many for a filter with a false-positive rate of {}, which holds at most {}; the \
         lowest rate for so many is {}, and several filters would add up their rates",
        quantity::counted(capacity, "key"),
        quantity::rate(fpr),
        grouped(largest),
        quantity::rate(1.005 * high)
    ))
}

/// Inserts every copy of each key, or with `unique` only keys that are not contained yet.
pub(crate) fn insert(
    filter: &mut CuckooFilter,
    keys: &[impl Key],
    unique: bool,
) -> Result<(), FullError> {
    if unique {
        filter.insert_unique_many(keys, &mut vec![false; keys.len()])
    } else {
        filter.insert_many(keys)
    }
}

/// The number of keys, and the capacity unless the filter has grown.
pub(crate) fn keys_and_capacity(filter: &CuckooFilter<impl Store>) -> String {
    let keys = grouped(filter.len());
    if filter.has_grown() {
        return keys;
    }
    format!("{keys} (built for {} distinct keys)", grouped(filter.capacity()))
}

/// The label of both false-positive rates.
pub(crate) const RATE: &str = "false-positive rate";

/// Both false-positive rates of a filter.
pub(crate) fn rates(filter: &CuckooFilter<impl Store>) -> String {
    rates_text([filter.false_positive_rate(), filter.requested_false_positive_rate()])
}

/// The rate as the filter is, and the one that was requested.
pub(crate) fn rates_text(rates: [f64; 2]) -> String {
    let [expected, requested] = rates.map(quantity::rate);
    format!("{expected} expected, {requested} requested")
}

/// Adds both to a report.
pub(crate) fn add_rates(report: &mut Report, filter: &CuckooFilter<impl Store>) {
    report.json("fpr_requested", filter.requested_false_positive_rate()).add(
        "fpr_expected",
        filter.false_positive_rate(),
        RATE,
        rates(filter),
    );
}

/// A rate above the requested one by this factor is reported. Below it, both print alike.
const NOTABLE: f64 = 1.01;

/// The warning for a filter whose false-positive rate is above the requested one.
///
/// A small table has many more slots than keys. With an entry in each its rate is at most 1.35
/// times the requested one.
pub(crate) fn rate_warning(filter: &CuckooFilter<impl Store>) -> Option<String> {
    let (expected, requested) =
        (filter.false_positive_rate(), filter.requested_false_positive_rate());
    (expected > NOTABLE * requested).then(|| {
        format!(
            "the false-positive rate is {}, not {}: the filter was built for {} and holds about {}; \
             a larger --keys keeps the rate",
            quantity::rate(expected),
            quantity::rate(requested),
            quantity::counted(filter.capacity(), "key"),
            grouped(distinct(filter)),
        )
    })
}

/// Bits per key. A grown filter without keys has no meaningful figure.
pub(crate) fn bits_per_key(filter: &CuckooFilter<impl Store>) -> String {
    if filter.has_grown() && filter.is_empty() {
        return "-".to_owned();
    }
    format!("{:.2}", filter.bits_per_key())
}

/// The estimated number of distinct keys.
pub(crate) fn distinct(filter: &CuckooFilter<impl Store>) -> u64 {
    quantity::to_u64(filter.distinct_estimate())
}

/// The expected number of new lines that were dropped while `printed` new lines were printed.
///
/// Of all new lines, the share `rate` is dropped and the rest is printed. `rates` are the filter's
/// false-positive rates before and after.
pub(crate) fn wrongly_dropped(printed: usize, rates: [f64; 2]) -> f64 {
    let rate = f64::midpoint(rates[0], rates[1]);
    printed as f64 * rate / (1.0 - rate).max(f64::EPSILON)
}
