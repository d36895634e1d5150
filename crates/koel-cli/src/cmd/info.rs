//! `koel info`: shows the figures of a filter and checks it for damage.
//!
//! It checks everything: the checksum of the table, every bucket and every counter. The header of a
//! damaged file is still shown, because it helps to find a copy. Cost: two passes over the file.
//!
//! Of a filter at a URL only the header and the exact answers are read, and the report says so.

use std::path::PathBuf;

use koel::FilterView;
use koel_lines::{Format, Recipe, StoredField};
use serde_json::{Value, json};

use crate::failure::{Failure, Outcome};
use crate::filter::file::FilterFile;
use crate::filter::sizing::{self, RATE};
use crate::output;
use crate::quantity::{self, bytes, counted, grouped};
use crate::report::Report;
use crate::web::{self, WebArgs, WebFilter};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel info domains.koel
  koel info --json domains.koel | jq .load_factor
  koel info https://example.org/domains.koel     read its header and corrections only

Exit codes: 0 the filter is intact, 2 it is damaged or cannot be read.")]
pub(crate) struct Args {
    /// The filter file, or its https:// address; `-` is standard input
    filter: PathBuf,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    if web::is_url(&args.filter) {
        return report_of_web(args)?.print(args.json);
    }
    let file = FilterFile::open_or_stdin(&args.filter)?;
    let filter = file.view()?;
    let verdict = filter.verify();
    // The buckets of a damaged table may hold invalid codes.
    let occupancy = verdict.is_ok().then(|| filter.occupancy());
    let report = report(args, &filter, occupancy);
    let histogram = occupancy.filter(|_| !args.json).map_or(String::new(), histogram);
    // Damage is an error even if the reader closed the pipe.
    let printed = output::print(&(report.text(args.json) + &histogram));
    verdict.map_err(|error| file.failure(error))?;
    printed.map(|()| Outcome::Done)
}

/// What the header of a filter on a web server says.
fn report_of_web(args: &Args) -> Result<Report, Failure> {
    let filter = WebFilter::open(&args.filter, WebArgs::default())?;
    let (remote, (requests, read)) = (&filter.remote, filter.traffic());
    let rates = [remote.false_positive_rate(), remote.requested_false_positive_rate()];
    let keys = format!("{} (built for {})", grouped(remote.len()), grouped(remote.capacity()));
    let line_options = Recipe::from_bytes(remote.application());
    let mut report = Report::default();
    report.row("file", args.filter.display().to_string());
    report
        .json("keys", remote.len())
        .json("capacity", remote.capacity())
        .row("keys", keys)
        .add("size_in_bytes", remote.size_in_bytes(), "size", bytes(remote.size_in_bytes()))
        .json("fpr_requested", rates[1])
        .add("fpr_expected", rates[0], RATE, sizing::rates_text(rates))
        .add("layout", remote.layout().to_string(), "layout", remote.layout().to_string())
        .add("hash", remote.hasher().to_string(), "hash", remote.hasher().to_string())
        .json("line_options", line_options.map(json_of))
        .row("line options", self::line_options(remote.application()))
        .json("corrections", remote.corrections())
        .row("beside the table", counted(remote.corrections(), "correction"))
        .json("intact", Value::Null)
        .row("integrity", "not checked: only the header and corrections were read")
        .json("requests", requests)
        .json("bytes", read)
        .row("traffic", filter.traffic_words());
    Ok(report)
}

fn report(args: &Args, filter: &FilterView<'_>, occupancy: Option<[u64; 5]>) -> Report {
    let mut report = Report::default();
    report
        .json("keys", filter.len())
        .json("distinct_estimate", filter.distinct_estimate())
        .json("capacity", filter.capacity())
        .json("load_factor", filter.load_factor())
        .json("bits_per_key", filter.bits_per_key())
        .json("size_in_bytes", filter.size_in_bytes())
        .json("fpr_requested", filter.requested_false_positive_rate())
        .json("fpr_expected", filter.false_positive_rate())
        .json("url_fpr_of_3_labels", url_rate(filter))
        .json("layout", filter.layout().to_string())
        .json("hash", filter.hasher().to_string())
        .json("trusts_hashes", filter.trusts_hashes())
        .json("line_options", Recipe::from_bytes(filter.application()).map(json_of))
        .json("slots", filter.slots())
        .json("slots_in_use", filter.slots_in_use())
        .json("buckets", filter.buckets())
        .json("segments", filter.segments())
        .json("counters", filter.distinct_counters())
        .json("counter_limit", counter_limit(filter))
        .json("stashed_keys", filter.stashed_keys())
        .json("corrections", filter.corrections())
        .json("growable", filter.is_growable())
        .json("has_grown", filter.has_grown())
        .json("intact", occupancy.is_some())
        .json("occupancy", occupancy.map(Vec::from));
    report.row("file", args.filter.display().to_string());
    add_rows(&mut report, filter);
    report.row("integrity", if occupancy.is_some() { "ok" } else { "DAMAGED" });
    report
}

fn add_rows(report: &mut Report, filter: &FilterView<'_>) {
    let (slots, in_use) = (grouped(filter.slots()), grouped(filter.slots_in_use()));
    let load = filter.load_factor();
    let of_urls = url_rate(filter).map_or(String::new(), |rate| {
        format!("{} for a host of three names", quantity::rate(rate))
    });
    let buckets = counted(filter.buckets(), "bucket");
    let segments = counted(filter.segments(), "segment");
    let trust = if filter.trusts_hashes() { ", ready hashes trusted" } else { "" };
    let limit = counter_limit(filter).map_or(String::new(), |it| format!(" of {}", grouped(it)));
    let counters = format!("{}{limit} in use", grouped(filter.distinct_counters()));
    let stashed = counted(filter.stashed_keys(), "key");
    let corrections = counted(filter.corrections(), "correction");
    report
        .row("keys", sizing::keys_and_capacity(filter))
        .row("load factor", format!("{load:.4} ({in_use} of {slots} slots in use)"))
        .row("size", bytes(filter.size_in_bytes() as u64))
        .row("bits per key", sizing::bits_per_key(filter))
        .row(RATE, sizing::rates(filter))
        .row("  of URLs", of_urls)
        .row("layout", format!("{}, {buckets} in {segments}", filter.layout()))
        .row("growable", growth(filter))
        .row("hash", format!("{}{trust}", filter.hasher()))
        .row("line options", line_options(filter.application()))
        .row("counters", format!("{counters} (for keys with more than two copies)"))
        .row("beside the table", format!("{stashed}, {corrections} (koel refute)"));
}

/// How keys are made of lines.
fn json_of(recipe: Recipe) -> Value {
    json!({
        "format": recipe.format.name(),
        "field": match &recipe.field {
            StoredField::None => None,
            StoredField::NotStored => Some("not stored".to_owned()),
            StoredField::Field(field) => Some(field.words()),
        },
        "ignore_case": recipe.options.ignores_case,
        "trim": recipe.options.trims,
        "keep_cr": recipe.options.keeps_cr,
    })
}

/// The false-positive rate of `check --url` for a host of three names: it and its two parents are
/// looked up. `None` for a filter that was not built of hosts.
fn url_rate(filter: &FilterView<'_>) -> Option<f64> {
    let recipe = Recipe::from_bytes(filter.application())?;
    let rate = 1.0 - (1.0 - filter.false_positive_rate()).powi(3);
    (recipe.format != Format::Lines).then_some(rate)
}

/// How keys are made of lines.
fn line_options(application: [u8; 8]) -> String {
    match Recipe::from_bytes(application).map(|recipe| recipe.words()) {
        None => "of another program, or of a later version".to_owned(),
        Some(words) if words.is_empty() => "none".to_owned(),
        Some(words) => words.join(" "),
    }
}

/// The greatest number of counters, if there is a limit.
fn counter_limit(filter: &FilterView<'_>) -> Option<u64> {
    Some(filter.counter_limit()).filter(|&limit| limit < u64::MAX)
}

fn growth(filter: &FilterView<'_>) -> String {
    let capacity = grouped(filter.capacity());
    match (filter.is_growable(), filter.has_grown()) {
        (false, _) if filter.growth_limit().is_none() => {
            "no (not possible at this false-positive rate and size)".to_owned()
        }
        (false, _) => "no (enable with `koel grow`)".to_owned(),
        (true, false) => "yes".to_owned(),
        (true, true) => {
            format!("yes, has grown (rate requested for up to {capacity} distinct keys)")
        }
    }
}

/// A bar for each number of entries in a bucket. The bars of all buckets together have 40 signs.
fn histogram(occupancy: [u64; 5]) -> String {
    let buckets: u64 = occupancy.iter().sum::<u64>().max(1);
    let mut text = String::from("\nentries         buckets    share\n");
    for (entries, &count) in occupancy.iter().enumerate() {
        let share = count as f64 / buckets as f64;
        // Rounds up, so that a few buckets look different from none.
        let signs = (0..40).filter(|&sign| f64::from(sign) < share * 40.0).count();
        let bar = "#".repeat(signs);
        text += &format!("{entries:7}  {:>14} {:6.2} %  {bar}\n", grouped(count), share * 100.0);
    }
    text
}
