//! Prints the figures of the stores, as tables and as JSON.

use serde_json::{Value, json};

use super::Subject;
use super::measure::{INDEX_BYTES, Overhead, Row};
use super::subject::SCANNED;
use crate::args::StoresArgs;
use crate::machine;
use crate::table::{Columns, Table, grouped};

/// The tables: loading, gets, and what is on disk and how long it takes to open.
const TABLES: [&Columns; 3] = [
    &[
        ("store", "store"),
        ("load_cpu_us", "CPU us"),
        ("thousands_per_second", "thousands/s"),
        ("longest_write_ms", "longest ms"),
        ("busiest_ms", "busiest ms"),
        ("written", "written, calls"),
        ("written_pages", "written, pages"),
    ],
    &[
        ("store", "store"),
        ("hit_cpu_ns", "hit CPU"),
        ("hit_p50_ns", "p50"),
        ("hit_p99_ns", "p99"),
        ("reads_per_hit", "reads"),
        ("miss_cpu_ns", "miss CPU"),
        ("miss_p50_ns", "p50"),
        ("miss_p99_ns", "p99"),
        ("reads_per_miss", "reads"),
        ("scan_us", "scan us"),
    ],
    &[
        ("store", "store"),
        ("disk", "on disk"),
        ("index_bytes_per_key", "index bytes/key"),
        ("resident_mib", "memory MiB"),
        ("close_s", "close s"),
        ("open_s", "open s"),
        ("open_killed_s", "killed s"),
    ],
];

/// All figures of one store.
pub(super) fn json(row: &Row, args: &StoresArgs, overhead: Overhead) -> Value {
    let (load, hit, miss) = (&row.load, &row.hit, &row.miss);
    json!({
        "store": row.name, "keys": args.keys, "value_bytes": args.value_bytes,
        "load_cpu_us": load.cpu, "load_own_us": load.own, "thousands_per_second": load.rate / 1e3,
        "longest_write_ms": load.longest.as_secs_f64() * 1e3, "busiest_ms": load.busiest.as_secs_f64() * 1e3,
        "written": load.called, "written_pages": load.paged, "disk": row.disk,
        "hit_cpu_ns": hit.cpu, "hit_p50_ns": hit.half, "hit_p99_ns": hit.p99, "reads_per_hit": hit.reads,
        "miss_cpu_ns": miss.cpu, "miss_p50_ns": miss.half, "miss_p99_ns": miss.p99,
        "reads_per_miss": miss.reads, "clock_ns": overhead.clock, "key_ns": overhead.key, "two_lines_ns": overhead.lines,
        "index_bytes_per_key": row.index_bytes_per_key, "resident_mib": row.resident_bytes as f64 / f64::from(1 << 20),
        "close_s": row.close.as_secs_f64(), "open_s": row.open.as_secs_f64(),
        "open_killed_s": row.open_killed.as_secs_f64(), "scan_us": row.scan,
    })
}

/// The tables and their legend.
pub(super) fn page(
    rows: &[Value],
    subjects: &[&Subject],
    args: &StoresArgs,
    Overhead { clock, key, lines }: Overhead,
) {
    println!(
        "{}\n{} entries, keys of 16 bytes, values of {}; all data in the page cache; {} gets of each kind, one thread.\n\
         The clock, read twice: {clock:.0} ns, subtracted from p50 and p99. Making a key: {key:.0} ns, included in the CPU time of gets.\n\
         Two random cache lines of a table of {INDEX_BYTES} bytes per key, prefetched together and timed as single gets are: p50 {lines:.0} ns.",
        machine::description(),
        grouped(args.keys),
        grouped(args.value_bytes),
        grouped(args.queries)
    );
    println!(
        "CPU us: of all threads, less {:.2} for making an entry and reading the clock. Written, on disk: bytes relative to those of keys and values.\n\
         Gets in ns; a scan of {SCANNED} entries in us of CPU time.\n",
        rows.first().and_then(|row| row["load_own_us"].as_f64()).unwrap_or(0.0)
    );
    for columns in TABLES {
        println!("{}", Table::of(rows, columns).markdown());
    }
    for subject in subjects {
        println!("{}: {}", subject.name, subject.note);
    }
}
