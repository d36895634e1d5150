//! `koel check`: prints the lines that are in a filter.
//!
//! It works like grep with the filter as the pattern: it reads lines and prints those selected, and
//! its exit code tells whether there were any. The filter is mapped, so even one of gigabytes
//! answers the first line at once.
//!
//! Cost: one hash and two bucket reads per line. Memory: one buffer.

use std::path::PathBuf;

use crate::failure::{Failure, Outcome};
use crate::filter::file::{FilterFile, VerifyArgs};
use crate::input::InputArgs;
use crate::lists::hosts;
use crate::lists::{Format, Skip};
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
Before the first key is reported absent, the checksum of the whole file is checked, since damage can
hide keys. With --no-verify, a filter of more than 16 MiB is only read where it is asked.

A filter reads lines as those that it was built from (koel build --help): of one built with --format
hosts, the hosts of the input are looked up and printed. --url reads each line as a URL instead.
Its host and each parent domain are looked up, so a URL with a host of three names is a false
positive at three times the filter's rate, and at four times if the filter was built from plain
lines, because the line itself is looked up too.

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

    /// Select a line if the host of its URL or a parent domain is in the filter
    #[arg(long)]
    url: bool,

    #[command(flatten)]
    verify: VerifyArgs,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let file = FilterFile::open(&args.filter)?;
    let mut filter = file.checked(args.verify)?;
    let mut inputs = args.input.open()?;
    if args.url {
        inputs.read_urls();
    }
    let format = inputs.use_recipe_of(&args.filter, filter.view.application())?;
    let asks_line = !args.url || format == Format::Lines;
    let mut found = Vec::new();
    let prints = !args.count && !args.quiet;
    let mut out = Lines::for_inputs(&inputs)?;
    let (mut selected, mut asked, mut without_host) = (0_u64, 0_u64, 0_u64);
    let busy = if prints { Stdout::Busy } else { Stdout::Silent };
    let mut skipped = inputs.each_line("checking", busy, |group, _| {
        let keys = group.keys();
        if let Some(header) = group.header.filter(|_| prints) {
            out.line(header, inputs.terminator())?;
        }
        found.clear();
        found.resize(keys.len(), false);
        if asks_line {
            filter.view.contains_many(keys, &mut found);
        }
        let contains = |name: &[u8]| filter.view.contains(name);
        // `None` for a line that cannot be looked up.
        let answer = |(key, &found): (&&[u8], &bool)| match args.url {
            true if !found => hosts::host_or_parent(key, asks_line, contains)
                .or_else(|| asks_line.then_some(false)),
            _ => Some(found),
        };
        let answers: Vec<_> = keys.iter().zip(&found).map(answer).collect();
        if answers.contains(&Some(false)) {
            filter.before_absent()?;
        }
        asked += keys.len() as u64;
        without_host += answers.iter().filter(|answer| answer.is_none()).count() as u64;
        let wanted = Some(!args.invert);
        for (line, _) in group.lines.iter().zip(&answers).filter(|&(_, &it)| it == wanted) {
            selected += 1;
            if prints {
                out.line(line, inputs.terminator())?;
            }
        }
        out.end_group()?;
        Ok(args.quiet && selected > 0)
    })?;
    if without_host > 0 && without_host == asked {
        return Err(Failure::Usage("no line of the input has a host to look up".to_owned()));
    }
    skipped.add_many(Skip::NoHost, without_host);
    if args.count {
        out.raw(format!("{selected}\n").as_bytes())?;
    }
    out.finish()?;
    skipped.warn();
    Ok(Outcome::some_if(selected > 0))
}
