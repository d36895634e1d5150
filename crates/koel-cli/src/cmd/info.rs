//! `koel info`: shows the figures of a filter and checks it for damage.
//!
//! It checks everything: the checksum of the table, every bucket and every counter. The header of a
//! damaged file is still shown, because it helps to find a copy. Cost: two passes over the file.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use koel::FilterView;
use serde_json::{Value, json};

use crate::failure::{Failure, Outcome};
use crate::filter::file::FilterFile;
use crate::filter::sizing;
use crate::lists::Format;
use crate::lists::recipe::{Recipe, StoredField};
use crate::output;
use crate::quantity::{self, bytes, counted, grouped};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel info domains.koel
  koel info --json domains.koel | jq .load_factor

Exit codes: 0 the filter is intact, 2 it is damaged or cannot be read.")]
pub(crate) struct Args {
    /// The filter file; `-` is standard input
    filter: PathBuf,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let file = FilterFile::open_or_stdin(&args.filter)?;
    let filter = file.view()?;
    let verdict = filter.verify();
    // The buckets of a damaged table may hold invalid codes.
    let occupancy = verdict.is_ok().then(|| filter.occupancy());
    let report = if args.json {
        output::json(&json_report(&filter, occupancy))
    } else {
        text_report(args, &filter, occupancy)
    };
    // Damage is an error even if the reader closed the pipe.
    let printed = output::print(&report);
    verdict.map_err(|error| file.failure(error))?;
    printed.map(|()| Outcome::Done)
}

fn json_report(filter: &FilterView<'_>, occupancy: Option<[u64; 5]>) -> Value {
    json!({
        "keys": filter.len(),
        "distinct_estimate": filter.distinct_estimate(),
        "capacity": filter.capacity(),
        "load_factor": filter.load_factor(),
        "bits_per_key": filter.bits_per_key(),
        "size_in_bytes": filter.size_in_bytes(),
        "fpr_requested": filter.requested_false_positive_rate(),
        "fpr_expected": filter.false_positive_rate(),
        "url_fpr_of_3_labels": url_rate(filter),
        "layout": filter.layout().to_string(),
        "hash": filter.hasher().to_string(),
        "trusts_hashes": filter.trusts_hashes(),
        "line_options": Recipe::from_bytes(filter.application()).map(|recipe| json!({
            "format": recipe.format.name(),
            "field": match &recipe.field {
                StoredField::None => None,
                StoredField::LongDelimiter => Some("not stored".to_owned()),
                StoredField::Field(field) => Some(field.words()),
            },
            "ignore_case": recipe.options.ignores_case,
            "trim": recipe.options.trims,
            "keep_cr": recipe.options.keeps_cr,
        })),
        "slots": filter.slots(),
        "slots_in_use": filter.slots_in_use(),
        "buckets": filter.buckets(),
        "segments": filter.segments(),
        "counters": filter.distinct_counters(),
        "counter_limit": counter_limit(filter),
        "stashed_keys": filter.stashed_keys(),
        "corrections": filter.corrections(),
        "growable": filter.is_growable(),
        "has_grown": filter.has_grown(),
        "intact": occupancy.is_some(),
        "occupancy": occupancy,
    })
}

/// The false-positive rate of `check --url` for a host of three names: it and its two parents are
/// looked up. `None` for a filter that was not built of hosts.
fn url_rate(filter: &FilterView<'_>) -> Option<f64> {
    let recipe = Recipe::from_bytes(filter.application())?;
    let rate = 1.0 - (1.0 - filter.false_positive_rate()).powi(3);
    (recipe.format != Format::Lines).then_some(rate)
}

/// The hash function, and whether ready hashes are taken as they are.
fn hash(filter: &FilterView<'_>) -> String {
    let route = if filter.trusts_hashes() { ", ready hashes trusted" } else { "" };
    format!("{}{route}", filter.hasher())
}

/// How keys are made of lines.
fn line_options(filter: &FilterView<'_>) -> String {
    match Recipe::from_bytes(filter.application()).map(|recipe| recipe.words()) {
        None => "of another program, or of a later version".to_owned(),
        Some(words) if words.is_empty() => "none".to_owned(),
        Some(words) => words.join(" "),
    }
}

fn text_report(args: &Args, filter: &FilterView<'_>, occupancy: Option<[u64; 5]>) -> String {
    let limit = counter_limit(filter);
    let mut rows = vec![
        ("file", args.filter.display().to_string()),
        ("keys", sizing::keys_of_capacity(filter.len(), filter.capacity(), filter.has_grown())),
        (
            "load factor",
            format!(
                "{:.4} ({} of {} slots in use)",
                filter.load_factor(),
                grouped(filter.slots_in_use()),
                grouped(filter.slots())
            ),
        ),
        ("size", bytes(filter.size_in_bytes() as u64)),
        (
            "bits per key",
            sizing::bits_per_key(filter.bits_per_key(), filter.len(), filter.has_grown()),
        ),
        (
            "false-positive rate",
            sizing::rates(filter.false_positive_rate(), filter.requested_false_positive_rate()),
        ),
        (
            "layout",
            format!(
                "{}, {} in {}",
                filter.layout(),
                counted(filter.buckets(), "bucket"),
                counted(filter.segments(), "segment")
            ),
        ),
        ("growable", growth(filter)),
        ("hash", hash(filter)),
        ("line options", line_options(filter)),
        (
            "counters",
            format!(
                "{}{} in use (for keys with more than two copies)",
                grouped(filter.distinct_counters()),
                limit.map(|limit| format!(" of {}", grouped(limit))).unwrap_or_default()
            ),
        ),
        (
            "beside the table",
            format!(
                "{}, {} (koel refute)",
                counted(filter.stashed_keys(), "key"),
                counted(filter.corrections(), "correction")
            ),
        ),
        ("integrity", if occupancy.is_some() { "ok" } else { "DAMAGED" }.to_owned()),
    ];
    if let Some(rate) = url_rate(filter) {
        let of_urls = format!("{} for a host of three names", quantity::rate(rate));
        rows.insert(6, ("  of URLs", of_urls));
    }
    output::table(&rows) + &occupancy.map(histogram).unwrap_or_default()
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
