//! `koel count`: prints how many times each line was added to a filter.
//!
//! A count is exact unless another key has the same fingerprint and buckets: then it includes the
//! copies of that key. This happens at the filter's false-positive rate. Cost: one hash and two
//! bucket reads per line, and one search of the counters for keys with more than two copies.
//! Memory: one buffer.

use std::io::Write;
use std::path::PathBuf;

use crate::failure::{Failure, Outcome};
use crate::filter::file::{FilterFile, VerifyArgs};
use crate::input::InputArgs;
use crate::output::Lines;
use crate::progress::Stdout;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel count visits.koel pages.txt
  koel count visits.koel pages.txt | sort -rn | head

For every line of the input, koel prints its count, a tab and the line.
At the filter's false-positive rate, a count includes the copies of another key.")]
pub(crate) struct Args {
    /// The filter file
    filter: PathBuf,

    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    verify: VerifyArgs,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let file = FilterFile::open(&args.filter)?;
    let opened = file.checked(args.verify);
    let mut filter = opened.map_err(|failure| args.input.or_swapped(failure))?;
    // Damage can make any count too low.
    filter.before_absent()?;
    let filter = filter.view;
    let mut inputs = args.input.open()?;
    inputs.use_recipe_of(&args.filter, filter.application())?;
    let mut out = Lines::for_inputs(&inputs)?;
    let mut number = Vec::with_capacity(24);
    let mut counts = Vec::new();
    let skipped = inputs.each_line("counting", Stdout::Busy, |group, _| {
        counts.resize(group.lines.len(), 0);
        filter.count_many(group.keys(), &mut counts);
        group.lines.iter().zip(&counts).try_for_each(|(line, count)| {
            number.clear();
            write!(number, "{count}\t").expect("a vector takes every byte");
            out.raw(&number)?;
            out.line(line, inputs.terminator())
        })?;
        out.end_group().map(|_| false)
    })?;
    out.finish()?;
    skipped.warn();
    Ok(Outcome::Done)
}
