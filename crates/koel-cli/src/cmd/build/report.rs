//! The report of `koel build`, for people and as JSON.
#![forbid(unsafe_code)]

use koel::{CuckooFilter, Store};
use serde_json::json;

use super::never::Refuted;
use super::settings::{Read, Settings};
use crate::filter::sizing;
use crate::output;
use crate::quantity::{self, bytes, grouped};

pub(super) fn report(
    settings: &Settings,
    filter: &CuckooFilter<impl Store>,
    read: &Read,
    refuted: Option<&Refuted>,
    as_json: bool,
) -> String {
    if as_json {
        json_report(filter, read, refuted)
    } else {
        text_report(settings, filter, read, refuted)
    }
}

fn json_report(
    filter: &CuckooFilter<impl Store>,
    read: &Read,
    refuted: Option<&Refuted>,
) -> String {
    output::json(&json!({
        "lines": read.keys,
        "skipped": read.skipped.json(),
        "keys": filter.len(),
        "distinct_estimate": sizing::distinct(filter),
        "capacity": filter.capacity(),
        "size_in_bytes": filter.size_in_bytes(),
        "bits_per_key": filter.bits_per_key(),
        "growable": filter.is_growable(),
        "fpr_requested": filter.requested_false_positive_rate(),
        "fpr_expected": filter.false_positive_rate(),
        "never": refuted.map(Refuted::json),
        "warning": warning(filter),
    }))
}

/// What is wrong with a filter that was built.
fn warning(filter: &CuckooFilter<impl Store>) -> Option<String> {
    let nothing = || "the filter is empty, because the input has no keys".to_owned();
    filter.is_empty().then(nothing).or_else(|| sizing::rate_warning(filter))
}

fn text_report(
    settings: &Settings,
    filter: &CuckooFilter<impl Store>,
    read: &Read,
    refuted: Option<&Refuted>,
) -> String {
    let mut rows = vec![
        ("keys", grouped(filter.len())),
        ("distinct keys", format!("about {}", grouped(sizing::distinct(filter)))),
        ("size", bytes(filter.size_in_bytes() as u64)),
        (
            "bits per key",
            format!(
                "{} for {}",
                sizing::bits_per_key(filter.bits_per_key(), filter.len(), filter.has_grown()),
                quantity::counted(sizing::keys_of_size(filter), "distinct key")
            ),
        ),
        (
            "false-positive rate",
            sizing::rates(filter.false_positive_rate(), filter.requested_false_positive_rate()),
        ),
    ];
    rows.extend(read.skipped.row());
    rows.extend(refuted.map(Refuted::rows).unwrap_or_default());
    rows.extend(warning(filter).map(|warning| ("warning", warning)));
    if let Some(hint) = size_hint(settings, filter) {
        rows.push(("hint", hint));
    }
    output::table(&rows)
}

/// A hint if the filter is larger than needed: lines repeat, or `--keys` is too large.
fn size_hint(settings: &Settings, filter: &CuckooFilter<impl Store>) -> Option<String> {
    let distinct = sizing::distinct(filter);
    if settings.grow || distinct == 0 || distinct as f64 > 0.9 * filter.capacity() as f64 {
        return None;
    }
    // Four standard errors above the estimate, so that all keys fit.
    let error = (distinct as f64 * filter.false_positive_rate() / 2.0).sqrt();
    let enough = distinct + quantity::to_u64(4.0 * error) + 1;
    let plan = settings.shape.plan(enough, settings.fpr).ok()?;
    if plan.size_in_bytes as f64 > 0.9 * filter.size_in_bytes() as f64 {
        return None;
    }
    let smaller = bytes(plan.size_in_bytes as u64);
    let unique = if settings.unique { "" } else { " --unique" };
    let without = if settings.unique { "" } else { ", but would not count copies" };
    Some(format!("--keys {enough}{unique} would take {smaller}{without}"))
}
