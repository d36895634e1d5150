//! What `stats`, `gc`, `verify` and `salvage` do for an ordered store.
#![forbid(unsafe_code)]

use koel_store::{Damage, LsmStats, LsmStore};
use serde_json::json;

use super::database::Database;
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::progress::{Progress, Stdout};
use crate::quantity::{bytes, counted, grouped};

/// `koel store stats`.
pub(super) fn stats(db: &Database, json: bool) -> Result<Outcome, Failure> {
    let stats = db.ordered_stats()?;
    output::print(&if json { output::json(&as_json(&stats)) } else { as_table(&stats) })?;
    Ok(Outcome::Done)
}

fn as_json(stats: &LsmStats) -> serde_json::Value {
    let runs = stats.runs.iter().map(|run| {
        json!({
            "file": run.number,
            "bytes": run.bytes,
            "entries": run.entries,
            "keys": run.keys,
            "tombstones": run.tombstones,
        })
    });
    json!({
        "kind": "ordered",
        "entries": entries(stats),
        "table_bytes": stats.table_bytes(),
        "log_bytes": stats.log_bytes,
        "log_entries": stats.memtable_entries,
        "guide_bytes": stats.guide_bytes,
        "runs": runs.collect::<Vec<_>>(),
    })
}

fn as_table(stats: &LsmStats) -> String {
    let (runs, tables) = (stats.runs.len() as u64, bytes(stats.table_bytes()));
    let mut report = output::table(&[
        ("kind", "ordered".to_owned()),
        ("entries", format!("{}, old versions and deletions included", grouped(entries(stats)))),
        ("on disk", format!("{tables} in {}", counted(runs, "run"))),
        (
            "log",
            format!("{} ({})", bytes(stats.log_bytes), counted(stats.memtable_entries, "record")),
        ),
        ("guide", format!("{} in memory", bytes(stats.guide_bytes))),
    ]);
    for (run, number) in stats.runs.iter().zip(1_u64..) {
        let (size, keys) = (bytes(run.bytes), counted(run.keys, "key"));
        let deletions = counted(run.tombstones, "deletion");
        let line = format!("run {number:<5}{size:>10}  {keys}, {deletions}\n");
        report.push_str(&line);
    }
    report
}

/// Versions of keys in all runs and in the log.
fn entries(stats: &LsmStats) -> u64 {
    stats.runs.iter().map(|run| run.entries).sum::<u64>() + stats.memtable_entries
}

/// `koel store gc`.
pub(super) fn gc(db: &Database, json: bool) -> Result<Outcome, Failure> {
    let store = db.open_ordered()?;
    let on_disk = |store: &LsmStore| store.stats().table_bytes() + store.stats().log_bytes;
    let before = on_disk(&store);
    store.compact().map_err(|error| db.failure(error))?;
    let (after, runs) = (on_disk(&store), store.stats().runs.len() as u64);
    store.close().map_err(|error| db.failure(error))?;
    db.keep_reserve();
    output::print(&if json {
        output::json(&json!({ "bytes_before": before, "bytes": after, "runs": runs }))
    } else {
        output::table(&[
            ("runs", grouped(runs)),
            ("on disk", format!("{} ({} before)", bytes(after), bytes(before))),
        ])
    })?;
    Ok(Outcome::Done)
}

/// `koel store verify`.
pub(super) fn verify(db: &Database, json: bool) -> Result<Outcome, Failure> {
    let store = db.read_ordered()?;
    let stats = store.stats();
    let total = stats.table_bytes() + stats.log_bytes;
    let (progress, mut seen) =
        (Progress::start("verifying records", Some(total), Stdout::Silent), 0);
    let verified = store.verify(|read, _| {
        progress.advance(read - seen);
        seen = read;
    });
    let verified = verified.map_err(|error| db.failure(error))?;
    drop(progress);
    // Damage is an error even if the reader closed the pipe.
    let printed = output::print(&if json {
        output::json(&json!({
            "records": verified.records,
            "bytes": verified.bytes,
            "damage": texts(&verified.damages),
        }))
    } else {
        output::table(&[
            ("records", format!("{} checked", grouped(verified.records))),
            ("on disk", format!("{} read", bytes(verified.bytes))),
        ]) + &damage_lines(&verified.damages)
    });
    if verified.damages.is_empty() {
        return printed.map(|()| Outcome::Done);
    }
    Err(Failure::Broken(format!(
        "{}: {}; restore the store from a copy, or use `koel store salvage`",
        db.folder().display(),
        counted(verified.damages.len() as u64, "damaged place"),
    )))
}

/// `koel store salvage`.
pub(super) fn salvage(old: &Database, new: &Database, json: bool) -> Result<Outcome, Failure> {
    let store = new.create_ordered_store()?;
    let mut progress = None;
    let mut seen = 0;
    let salvaged = store.salvage(old.folder(), |read, all| {
        let start = || Progress::start("salvaging files", Some(all), Stdout::Silent);
        progress.get_or_insert_with(start).advance(read - seen);
        seen = read;
    });
    let salvaged = salvaged.map_err(|error| old.failure(error))?;
    drop(progress);
    let keys = entries(&store.stats());
    store.close().map_err(|error| new.failure(error))?;
    output::print(&if json {
        output::json(&json!({
            "records": salvaged.records,
            "keys": keys,
            "lost_keys": salvaged.lost,
            "damage": texts(&salvaged.damages),
        }))
    } else {
        output::table(&[
            ("records", format!("{} read", grouped(salvaged.records))),
            ("keys", format!("{} recovered, {} lost", grouped(keys), grouped(salvaged.lost))),
        ]) + &damage_lines(&salvaged.damages)
    })?;
    Ok(Outcome::some_if(salvaged.damages.is_empty()))
}

fn texts(damages: &[Damage]) -> Vec<String> {
    damages.iter().map(ToString::to_string).collect()
}

/// A line for each damaged place.
fn damage_lines(damages: &[Damage]) -> String {
    let line = |text: &String| format!("DAMAGED  {}\n", output::escape_controls(text));
    texts(damages).iter().map(line).collect()
}
