//! `koel info`: what a filter holds, and whether its bytes are sound.
//!
//! The one reader that checks everything: the checksum over the table, every bucket and every counter. Of a damaged file the header is
//! still shown, because it says which file to look for. Cost: two passes over the file.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use koel::FilterView;
use serde_json::{Value, json};

use crate::failure::{Failure, Outcome};
use crate::filter_file::FilterFile;
use crate::output;
use crate::quantity::{bytes, counted, grouped, rate};
use crate::sizing;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel info domains.koel
  koel info --json domains.koel | jq .load_factor

Exit codes: 0 the filter is sound, 2 it is not.")]
pub(crate) struct Args {
    /// The filter to look at; `-` is standard input
    filter: PathBuf,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let file = FilterFile::open_or_stdin(&args.filter)?;
    let filter = file.view()?;
    let verdict = filter.verify();
    // The buckets of a damaged table may hold codes that mean nothing.
    let occupancy = verdict.is_ok().then(|| filter.occupancy());
    let report = if args.json {
        output::json(&json_report(&filter, occupancy))
    } else {
        text_report(args, &filter, occupancy)
    };
    // A reader that went away does not make it sound.
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
        "layout": filter.layout().to_string(),
        "hash": filter.hasher().to_string(),
        "slots": filter.slots(),
        "slots_in_use": filter.slots_in_use(),
        "buckets": filter.buckets(),
        "segments": filter.segments(),
        "counters": filter.distinct_counters(),
        "counter_limit": counter_limit(filter),
        "growable": filter.is_growable(),
        "has_grown": filter.has_grown(),
        "sound": occupancy.is_some(),
        "occupancy": occupancy,
    })
}

fn text_report(args: &Args, filter: &FilterView<'_>, occupancy: Option<[u64; 5]>) -> String {
    let limit = counter_limit(filter);
    let rows = [
        ("file", args.filter.display().to_string()),
        ("keys", sizing::held(filter.len(), filter.capacity(), filter.has_grown())),
        (
            "load",
            format!(
                "{:.4}, {} of {} slots in use",
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
            "error rate",
            format!(
                "{} expected now, {} asked for",
                rate(filter.false_positive_rate()),
                rate(filter.requested_false_positive_rate())
            ),
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
        ("grows", growth(filter)),
        ("hash", filter.hasher().to_string()),
        (
            "counters",
            format!(
                "{}{}, for keys with more copies than the buckets hold",
                grouped(filter.distinct_counters()),
                limit.map(|limit| format!(" of {}", grouped(limit))).unwrap_or_default()
            ),
        ),
        ("checksum", if occupancy.is_some() { "sound" } else { "DAMAGED" }.to_owned()),
    ];
    output::table(&rows) + &occupancy.map(histogram).unwrap_or_default()
}

/// How many keys may have a counter, where that is limited.
fn counter_limit(filter: &FilterView<'_>) -> Option<u64> {
    Some(filter.counter_limit()).filter(|&limit| limit < u64::MAX)
}

fn growth(filter: &FilterView<'_>) -> String {
    let room = grouped(filter.capacity());
    match (filter.is_growable(), filter.has_grown()) {
        (false, _) if !filter.layout().can_grow() => "no, nor can it at its error rate".to_owned(),
        (false, _) => "no; `koel grow` lets it".to_owned(),
        (true, false) => "when it is full".to_owned(),
        (true, true) => {
            format!("has grown; the error rate was asked for up to {room} different keys")
        }
    }
}

/// One bar for each number of entries a bucket can hold; all buckets together are 40 signs wide.
fn histogram(occupancy: [u64; 5]) -> String {
    let buckets: u64 = occupancy.iter().sum::<u64>().max(1);
    let mut text = String::from("\nentries  buckets\n");
    for (entries, &count) in occupancy.iter().enumerate() {
        let share = count as f64 / buckets as f64;
        // A bar of its own for the few, so that few and none differ.
        let signs = (0..40).filter(|&sign| f64::from(sign) < share * 40.0).count();
        let bar = "#".repeat(signs);
        text += &format!("{entries:7}  {:>14} {:6.2} %  {bar}\n", grouped(count), share * 100.0);
    }
    text
}
