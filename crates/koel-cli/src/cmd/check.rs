//! `koel check`: prints the lines that are in a filter.
//!
//! It works like grep with the filter as the pattern: it reads lines and prints those selected, and
//! its exit code tells whether there were any. The filter is mapped, so even one of gigabytes
//! answers the first line at once.
//!
//! Cost: one hash and two bucket reads per line. Memory: one buffer.
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
Examples:
  koel check domains.koel seen.txt              print the lines that are in the filter
  koel check -v domains.koel seen.txt           print the lines that are certainly not in it
  koel check -c domains.koel < seen.txt         count the lines that are in it
  koel check --url domains.koel urls.txt        match hosts and parent domains of URLs and e-mails
  koel check --csv --field mail m.koel new.csv  match a column, print whole records
  if echo example.com | koel check -q domains.koel; then ..

A key that was added is always found. An absent key is reported as present at the filter's
false-positive rate (see koel info).
Of a filter of more than 16 MiB only the header is checked for damage, so that it opens at once;
--verify checks all of it first.

Exit codes: 0 a line was selected, 1 none was, 2 error.")]
pub(crate) struct Args {
    /// The filter file
    filter: PathBuf,

    #[command(flatten)]
    input: InputArgs,

    /// Select the lines that are not in the filter
    #[arg(short = 'v', long)]
    invert: bool,

    /// Print only the number of selected lines
    #[arg(short, long)]
    count: bool,

    /// Print nothing and stop at the first selected line
    #[arg(short, long, conflicts_with = "count")]
    quiet: bool,

    /// Also select a line if the host of its URL or a parent domain is in the filter
    #[arg(long)]
    url: bool,

    /// Check the whole filter for damage first, however large it is
    #[arg(long)]
    verify: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let file = FilterFile::open(&args.filter)?;
    let filter = file.verified_view(args.verify)?;
    let mut inputs = args.input.open()?;
    inputs.use_options_of(&args.filter, filter.line_options())?;
    let mut found = Vec::new();
    let prints = !args.count && !args.quiet;
    let mut out = Lines::for_inputs(&inputs)?;
    let mut selected: u64 = 0;
    let busy = if prints { Stdout::Busy } else { Stdout::Silent };
    let skipped = inputs.each_line("checking", busy, |group, _| {
        let keys = group.keys();
        if let Some(header) = group.header.filter(|_| prints) {
            out.line(header, inputs.terminator())?;
        }
        found.resize(keys.len(), false);
        filter.contains_many(keys, &mut found);
        if args.url {
            for (key, found) in keys.iter().zip(&mut found) {
                *found = *found || hosts::host_or_parent(key, |name| filter.contains(name));
            }
        }
        for (line, _) in group.lines.iter().zip(&found).filter(|&(_, &found)| found != args.invert)
        {
            selected += 1;
            if prints {
                out.line(line, inputs.terminator())?;
            }
        }
        out.end_group()?;
        Ok(args.quiet && selected > 0)
    })?;
    if args.count {
        out.raw(format!("{selected}\n").as_bytes())?;
    }
    out.finish()?;
    skipped.warn();
    Ok(Outcome::some_if(selected > 0))
}
