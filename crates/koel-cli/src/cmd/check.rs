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
use crate::filter::asked::{AskArgs, Asked, Place};
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
  koel check https://example.org/domains.koel seen.txt   use a filter without downloading it
  if echo example.com | koel check -q domains.koel; then ..

A key that was added is always found. An absent key is reported as present at the filter's
false-positive rate (see koel info), and so -v misses as many: one in a thousand at the usual rate.
To miss none, build the filter with --never and the lines that will be checked.
Before the first key is reported absent, koel verifies the checksum of the whole file, since damage
can hide keys. With --no-verify, it does not, and a filter is only read where keys need it.

Of a filter at an address, koel reads ranges of bytes, with a few requests for each key (--traffic).
Any web server that serves ranges will do. The server learns which buckets a key may be in; with
--pages 64K, only in which part of the file. Koel checks each bucket, but not the checksum of the
whole file.

Lines become keys as when the filter was built (koel build --help): with one built with --format
hosts, the hosts of the input are looked up and printed. --url reads each line as a URL instead.
Its host and each parent domain are looked up, so a URL with a host of three names is a false
positive at three times the filter's rate, and at four times if the filter was built from plain
lines, because the line itself is looked up too.

Exit codes: 0 a line was selected, 1 none was, 2 error.")]
pub(crate) struct Args {
    /// The filter file, or its https:// address
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
    ask: AskArgs,
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
    let place = Place::open(&args.filter, args.ask)?;
    let opened = place.asked(args.ask);
    let mut filter = opened.map_err(|failure| args.input.or_swapped(failure))?;
    let mut inputs = args.input.open()?;
    if args.url {
        inputs.read_urls();
    }
    if args.line_number {
        inputs.number_lines();
    }
    if filter.is_far() {
        inputs.in_large_groups();
    }
    let format = inputs.use_recipe_of(&args.filter, filter.application())?;
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
            filter.contains_many(keys, &mut found)?;
        }
        let answers = tally.note_all(answers(args, &filter, keys, &found, asks_line)?, asks_line);
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
        out.raw(tally.json(&skipped, filter.traffic()).as_bytes())?;
    } else if args.count {
        out.raw(format!("{}\n", tally.selected).as_bytes())?;
    }
    out.finish()?;
    skipped.warn();
    warnings.print();
    filter.tell_traffic();
    Ok(Outcome::some_if(tally.selected > 0))
}

/// Whether each key is in; with `--url`, those that are not are asked for their hosts. `None` for
/// a line without a host.
fn answers(
    args: &Args,
    filter: &Asked<'_>,
    keys: &[&[u8]],
    found: &[bool],
    asks_line: bool,
) -> Result<Vec<Option<bool>>, Failure> {
    let mut answers: Vec<_> = found.iter().map(|&found| Some(found)).collect();
    if args.url {
        let rest: Vec<_> = (0..keys.len()).filter(|&at| !found[at]).collect();
        let lines: Vec<_> = rest.iter().map(|&at| keys[at]).collect();
        for (at, answer) in rest.into_iter().zip(filter.hosts_or_parents(&lines, asks_line)?) {
            answers[at] = answer;
        }
    }
    Ok(answers)
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

    fn note_all(&mut self, answers: Vec<Option<bool>>, asks_line: bool) -> Vec<Option<bool>> {
        answers.into_iter().map(|answer| self.note(answer, asks_line)).collect()
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

    fn json(&self, skipped: &Skipped, traffic: Option<(u64, u64)>) -> String {
        let mut report = Report::default();
        report.json("lines", self.asked).json("selected", self.selected);
        report.json("skipped", skipped.json());
        if let Some((requests, bytes)) = traffic {
            report.json("requests", requests).json("bytes", bytes);
        }
        report.text(true)
    }
}
