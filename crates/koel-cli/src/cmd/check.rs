//! `koel check`: prints the lines that are in a filter.
//!
//! It works like grep with the filter as the pattern: it reads lines and prints those selected, and
//! its exit code tells whether there were any. The filter is mapped, so even one of gigabytes
//! answers the first line at once.
//!
//! Cost: one hash and two bucket reads per line. Memory: one buffer.

use std::path::PathBuf;

use koel_lines::{Format, Skip};

use crate::failure::{Failure, Outcome};
use crate::filter::file::{FilterFile, VerifyArgs};
use crate::input::InputArgs;
use crate::lists::keys::Group;
use crate::lists::skipped::Skipped;
use crate::output::{self, Lines};
use crate::progress::Stdout;
use crate::quantity::counted;
use crate::report::Report;
use crate::streams::Warnings;

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
false-positive rate (see koel info), and so -v misses as many: one in a thousand at the usual rate.
To miss none, build the filter with --never and the lines that will be asked.
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

    /// Print the number of each line before it
    #[arg(short = 'n', long, conflicts_with_all = ["count", "quiet", "json"])]
    line_number: bool,

    /// Print the name of the input before each line
    #[arg(short = 'H', long, conflicts_with_all = ["count", "quiet", "json"])]
    with_filename: bool,

    /// Print the numbers of lines as JSON, and no line
    #[arg(long, conflicts_with_all = ["count", "quiet"])]
    json: bool,

    /// Select a line if the host of its URL or a parent domain is in the filter
    #[arg(long)]
    url: bool,

    #[command(flatten)]
    verify: VerifyArgs,
}

impl Args {
    /// What is printed before a line: `INPUT:NUMBER:`, as grep does.
    fn prefix(&self, group: &Group<'_>, at: usize) -> String {
        let mut prefix = String::new();
        if self.with_filename {
            prefix = format!("{}:", output::escape_controls(&group.input.display().to_string()));
        }
        if self.line_number {
            prefix += &format!("{}:", group.numbers[at]);
        }
        prefix
    }
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let file = FilterFile::open(&args.filter)?;
    let opened = file.checked(args.verify);
    let mut filter = opened.map_err(|failure| args.input.or_swapped(failure))?;
    let mut inputs = args.input.open()?;
    if args.url {
        inputs.read_urls();
    }
    if args.line_number {
        inputs.number_lines();
    }
    let format = inputs.use_recipe_of(&args.filter, filter.view.application())?;
    let asks_line = !args.url || format == Format::Lines;
    let mut found = Vec::new();
    let prints = !(args.count || args.quiet || args.json);
    let mut out = Lines::for_inputs(&inputs)?;
    let mut tally = Tally::default();
    let busy = if prints { Stdout::Busy } else { Stdout::Silent };
    let skipped = inputs.each_line("checking", busy, |group, _| {
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
        let answers = keys.iter().zip(&found).map(|(key, &found)| {
            let of_url = args.url && !found;
            let answer = of_url.then(|| koel_lines::host_or_parent(key, asks_line, contains));
            tally.note(answer.unwrap_or(Some(found)), asks_line)
        });
        let answers: Vec<_> = answers.collect();
        if answers.contains(&Some(false)) {
            filter.before_absent()?;
        }
        let wanted = Some(!args.invert);
        for at in (0..answers.len()).filter(|&at| answers[at] == wanted) {
            tally.selected += 1;
            if prints {
                out.raw(args.prefix(group, at).as_bytes())?;
                out.line(group.lines[at], inputs.terminator())?;
            }
        }
        out.end_group()?;
        Ok(args.quiet && tally.selected > 0)
    })?;
    let warnings = tally.misread(args, asks_line)?;
    let skipped = tally.skipped(skipped, asks_line);
    if args.json {
        out.raw(tally.json(&skipped).as_bytes())?;
    } else if args.count {
        out.raw(format!("{}\n", tally.selected).as_bytes())?;
    }
    out.finish()?;
    skipped.warn();
    warnings.print();
    Ok(Outcome::some_if(tally.selected > 0))
}

/// What became of the lines.
#[derive(Default)]
struct Tally {
    asked: u64,
    found: u64,
    without_host: u64,
    selected: u64,
}

impl Tally {
    /// Counts the answer for a line, `None` for a URL without a host. Returns it: a line that is
    /// also looked up as it is has one.
    fn note(&mut self, answer: Option<bool>, asks_line: bool) -> Option<bool> {
        self.asked += 1;
        self.found += u64::from(answer == Some(true));
        self.without_host += u64::from(answer.is_none());
        answer.or_else(|| asks_line.then_some(false))
    }

    /// What was not understood: an error if it is all that was asked, since "none" would be no
    /// answer.
    fn misread(&self, args: &Args, asks_line: bool) -> Result<Warnings, Failure> {
        let warnings = Warnings::default();
        if self.without_host > 0 && self.without_host == self.asked {
            let sentence =
                "no line of the input has a host to look up; see --field and --delimiter";
            return Err(Failure::Usage(sentence.to_owned()));
        }
        if self.without_host > 0 && asks_line {
            let lines = counted(self.without_host, "line");
            warnings.add(format!("{lines} without a host: only looked up as they are"));
        }
        if args.url && asks_line && self.found == 0 && self.asked > 0 {
            let sentence = "was built from plain lines, so only a line of it that is a host can \
                            match; build a hosts file or ad-block rules with --format";
            warnings.about(&args.filter, sentence);
        }
        Ok(warnings)
    }

    fn skipped(&self, mut skipped: Skipped, asks_line: bool) -> Skipped {
        if !asks_line {
            skipped.add_many(Skip::NoHost, self.without_host);
        }
        skipped
    }

    fn json(&self, skipped: &Skipped) -> String {
        let mut report = Report::default();
        report.json("lines", self.asked).json("selected", self.selected);
        report.json("skipped", skipped.json());
        report.text(true)
    }
}
