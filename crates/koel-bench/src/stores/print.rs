//! Prints the figures of the stores, as tables and as JSON.

use serde_json::{Value, json};

use super::Subject;
use super::measure::{INDEX_BYTES, Overhead, Row};
use crate::args::StoresArgs;
use crate::machine;
use crate::table::{Table, figure, grouped};

/// All figures of one store.
pub(super) fn json(row: &Row, args: &StoresArgs, overhead: Overhead) -> Value {
    let (load, hit, miss) = (&row.load, &row.hit, &row.miss);
    json!({
        "store": row.name, "keys": args.keys, "value_bytes": args.value_bytes,
        "load_cpu_us": load.cpu, "load_own_us": load.own, "load_per_second": load.rate,
        "longest_write_ms": load.longest.as_secs_f64() * 1e3, "busiest_ms": load.busiest.as_secs_f64() * 1e3,
        "written": load.called, "written_pages": load.paged, "disk": row.disk,
        "hit_cpu_ns": hit.cpu, "hit_p50_ns": hit.half, "hit_p99_ns": hit.p99, "reads_per_hit": hit.reads,
        "miss_cpu_ns": miss.cpu, "miss_p50_ns": miss.half, "miss_p99_ns": miss.p99,
        "reads_per_miss": miss.reads, "clock_ns": overhead.clock, "key_ns": overhead.key, "two_lines_ns": overhead.lines,
        "index_bytes_per_key": row.index_bytes_per_key, "resident_bytes": row.resident_bytes,
        "close_s": row.close.as_secs_f64(), "open_s": row.open.as_secs_f64(),
        "open_killed_s": row.open_killed.as_secs_f64(), "scan_us": row.scan,
    })
}

/// The tables and their legend.
pub(super) fn page(
    rows: &[Row],
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
        "\nLoading: CPU time of all threads, less {:.3} us for making entries and reading the clock; bytes written (in calls, in pages) and bytes on disk, relative to those of keys and values\n",
        rows.first().map_or(0.0, |row| row.load.own)
    );
    print!("{}", loading(rows).plain());
    println!("\nGets in ns, and records read per get; CPU time of scans of 100 entries; memory\n");
    print!("{}", getting(rows).plain());
    println!();
    for subject in subjects {
        println!("{}: {}", subject.name, subject.note);
    }
}

fn loading(rows: &[Row]) -> Table {
    let mut table = Table::new(&[
        "store",
        "CPU us",
        "k/s",
        "calls",
        "pages",
        "disk",
        "longest ms",
        "busiest ms",
        "close s",
        "open s",
        "killed s",
    ]);
    for row in rows {
        let load = &row.load;
        let mut cells = vec![row.name.to_string()];
        let figures = [load.cpu, load.rate / 1e3, load.called, load.paged, row.disk];
        cells.extend(figures.map(|value| figure(Some(value))));
        let times =
            [load.longest * 1000, load.busiest * 1000, row.close, row.open, row.open_killed];
        cells.extend(times.map(|time| figure(Some(time.as_secs_f64()))));
        table.push(cells);
    }
    table
}

fn getting(rows: &[Row]) -> Table {
    let mut table = Table::new(&[
        "store",
        "hit CPU",
        "p50",
        "p99",
        "reads",
        "miss CPU",
        "p50",
        "p99",
        "reads",
        "scan us",
        "index B/key",
        "MiB",
    ]);
    for row in rows {
        let mut cells = vec![row.name.to_string()];
        for gets in [&row.hit, &row.miss] {
            cells.extend([gets.cpu, gets.half, gets.p99].map(|value| figure(Some(value))));
            cells.push(gets.reads.map_or_else(|| "-".into(), |reads| format!("{reads:.6}")));
        }
        cells.push(figure(row.scan));
        cells.push(figure(row.index_bytes_per_key));
        cells.push(figure(Some(row.resident_bytes as f64 / f64::from(1 << 20))));
        table.push(cells);
    }
    table
}
