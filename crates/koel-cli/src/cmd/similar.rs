//! `koel similar`: estimates how many keys two filters have in common, without the keys.
//!
//! Two compatible filters store equal keys as equal entries, so their overlap can be estimated from
//! the filters alone. Uses: near-duplicate lists, the reach of two campaigns, the gain of a merge.
//! Each figure has a standard error: two thirds of all true values lie within one of it, 95 %
//! within two. Cost: both filters are read once. Memory: none, because they stay mapped.

use std::path::PathBuf;

use crate::failure::{Failure, Outcome};
use crate::filter::compare::{self, numbers, whole};
use crate::quantity::{grouped, unless_zero};
use crate::report::Report;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel similar monday.koel tuesday.koel
  koel similar --json a.koel b.koel

Build both filters with --grow, or build both with the same --keys.
--fpr, --prefer and --seed must be the same, too.
The number after +- is the standard error: different keys can share an entry in a filter.")]
pub(crate) struct Args {
    /// The first filter file
    first: PathBuf,

    /// The second filter file
    second: PathBuf,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let found = compare::compare(&args.first, &args.second)?;
    let mut report = Report::default();
    for (name, label, estimate) in [
        ("common", "in both", found.common()),
        ("only_first", "only in the first", found.only_first()),
        ("only_second", "only in the second", found.only_second()),
        ("union", "in either", found.union()),
    ] {
        let [keys, error] = [estimate.value, estimate.standard_error].map(|it| grouped(whole(it)));
        report.add(name, numbers(estimate), label, format!("{keys} +- {error}"));
    }
    let (first, second) = (found.corrections_first(), found.corrections_second());
    report
        .add("corrections_only_first", first, "corrections only in the first", unless_zero(first))
        .add(
            "corrections_only_second",
            second,
            "corrections only in the second",
            unless_zero(second),
        );
    let jaccard = found.jaccard();
    report.add("jaccard", numbers(jaccard), "Jaccard similarity", format!("{jaccard:.5}"));
    report.print(args.json)
}
