//! `koel count`: how often each line was put into the filter.
//!
//! Exact up to keys that look the same: at the filter's error rate a count includes the copies of another key. Cost: one hash and two
//! bucket reads per line, and a search among the side counters for keys with more than two copies; memory: one buffer.
#![forbid(unsafe_code)]

use std::io::Write;
use std::path::PathBuf;

use crate::failure::{Failure, Outcome};
use crate::filter_file::FilterFile;
use crate::input::InputArgs;
use crate::output::Lines;
use crate::progress::Stdout;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Prints COUNT, a tab and the line, for every line of the input.

Examples:
  koel count visits.koel pages.txt
  koel count visits.koel pages.txt | sort -rn | head")]
pub(crate) struct Args {
    /// The filter to ask
    filter: PathBuf,

    #[command(flatten)]
    input: InputArgs,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let file = FilterFile::open(&args.filter)?;
    let filter = file.view()?;
    let inputs = args.input.open()?;
    let mut out = Lines::answering(&inputs)?;
    let mut number = Vec::with_capacity(24);
    let mut counts = Vec::new();
    inputs.each("counting", Stdout::Busy, |lines| {
        counts.resize(lines.len(), 0);
        filter.count_many(lines, &mut counts);
        lines.iter().zip(&counts).try_for_each(|(line, count)| {
            number.clear();
            write!(number, "{count}\t").expect("a vector takes every byte");
            out.raw(&number)?;
            out.line(line, inputs.terminator())
        })?;
        out.caught_up()
    })?;
    out.finish()?;
    Ok(Outcome::Done)
}
