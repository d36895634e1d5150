//! What `stats`, `gc`, `verify` and `salvage` do for an ordered store.
#![forbid(unsafe_code)]

use koel_store::{LsmStats, LsmStore};
use serde_json::json;

use super::database::Database;
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::quantity::{bytes, counted, grouped};

/// `koel store stats`.
pub(super) fn stats(db: &Database, json: bool) -> Result<Outcome, Failure> {
    let stats = db.read_ordered()?.stats();
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
        let (entries, tombstones) = (grouped(run.entries), grouped(run.tombstones));
        let line = format!(
            "run {number:<5}{:>10}  {entries} entries, {tombstones} of them deletions\n",
            bytes(run.bytes)
        );
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
