//! `koel check`: which lines are in the set.
//!
//! Works like grep with the filter as the pattern: lines in, selected lines out, the exit code says whether there were any. The filter is
//! mapped, so a filter of gigabytes answers its first line at once. Cost: one hash and two bucket reads per line; memory: one buffer.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use crate::failure::{Failure, Outcome};
use crate::filter_file::FilterFile;
use crate::hosts;
use crate::input::InputArgs;
use crate::output::Lines;
use crate::progress::Stdout;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
A line that was put in is always found; any other is found at the filter's error rate (see `koel info`).
The file's header is checked, its table is trusted, so that a large filter opens at once; `koel info` checks all.

Examples:
  koel check domains.koel seen.txt              lines that are in the set
  koel check -v domains.koel seen.txt           lines that certainly are not
  koel check -c domains.koel < seen.txt         how many are
  if echo example.com | koel check -q domains.koel; then ..
  koel check --url domains.koel urls.txt        hosts and parent domains count too; e-mail addresses work

Exit codes: 0 some line was selected, 1 none, 2 error.")]
pub(crate) struct Args {
    /// The filter to ask
    filter: PathBuf,

    #[command(flatten)]
    input: InputArgs,

    /// Select the lines that are not in the set
    #[arg(short = 'v', long)]
    invert: bool,

    /// Print only how many lines are selected
    #[arg(short, long)]
    count: bool,

    /// Print nothing, stop at the first selected line
    #[arg(short, long, conflicts_with = "count")]
    quiet: bool,

    /// A line is also in the set when the host of its URL, or a domain above it, is
    #[arg(long)]
    url: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let file = FilterFile::open(&args.filter)?;
    let filter = file.view()?;
    let inputs = args.input.open()?;
    let mut known = Vec::new();
    let prints = !args.count && !args.quiet;
    let mut out = Lines::answering(&inputs)?;
    let mut selected: u64 = 0;
    let busy = if prints { Stdout::Busy } else { Stdout::Silent };
    inputs.each_until("checking", busy, |lines, _| {
        known.resize(lines.len(), false);
        filter.contains_many(lines, &mut known);
        if args.url {
            for (line, known) in lines.iter().zip(&mut known) {
                *known = *known || hosts::host_or_parent(line, |name| filter.contains(name));
            }
        }
        for (line, _) in lines.iter().zip(&known).filter(|&(_, &known)| known != args.invert) {
            selected += 1;
            if prints {
                out.line(line, inputs.terminator())?;
            }
        }
        out.caught_up()?;
        Ok(args.quiet && selected > 0)
    })?;
    if args.count {
        out.raw(format!("{selected}\n").as_bytes())?;
    }
    out.finish()?;
    Ok(Outcome::some_if(selected > 0))
}
