//! `filters`: every filter with the same keys, as tables or as JSON.

mod measure;

pub(crate) use measure::{AT_LEAST, Loads, Row, in_turn, measure};

use serde_json::json;

use crate::args::FiltersArgs;
use crate::subject::Op;
use crate::subjects::{YARDSTICK, chosen};
use crate::table::{Table, figure, grouped, percent, share};
use crate::{Failure, machine};

/// The legend printed above the tables.
const LEGEND: &str = "\
Millions of operations per second of one thread's CPU time, medians. insert: up to a load of 0.95. mix: present and absent keys in random order. `x`: how many times as fast koel-fast is, with one key per call. `+-`: the largest
spread of the five, (max - min) / median. bits/key: memory per inserted key. fpr: measured with absent keys. load: share of slots in use at the first refusal.";

pub(crate) fn run(args: &FiltersArgs) -> Result<(), Failure> {
    let subjects = chosen(&args.only)?;
    if args.huge {
        machine::restart_with_huge_pages()?;
        report_huge_pages();
    }
    if !args.output.json {
        println!("{}\n{LEGEND}", machine::description());
    }
    for &keys in &args.keys {
        machine::require_memory_of(keys)?;
        let rows =
            measure(&subjects, usize::try_from(keys)?, args.fpr, args.output.reps, Loads::Measure);
        if args.output.json {
            rows.iter().for_each(print_json);
        } else {
            println!("\n{} keys, target false-positive rate {}", grouped(keys), args.fpr);
            print!("\n{}\n{}", table(&rows).markdown(), notes(&rows));
        }
    }
    Ok(())
}

/// Reports whether the allocator really provides huge pages, with a touched table of 64 MiB.
fn report_huge_pages() {
    let table = std::hint::black_box(vec![1_u8; 64 << 20]);
    let huge = machine::huge_bytes();
    drop(table);
    eprintln!("huge pages: {} MiB of a table of 64 MiB", huge >> 20);
}

/// Prints one line per operation.
fn print_json(row: &Row) {
    for op in Op::ALL {
        if let (Some(mode), Some(mops)) = (row.subject.mode(op), row.mops(op)) {
            let line = json!({
                "filter": row.subject.name,
                "keys": row.keys,
                "op": op.name(),
                "mode": mode.name(),
                "mops": mops,
                "bits_per_key": row.bits_per_key,
                "fpr": row.fpr(),
                "load": row.load,
                "spread": row.spread(op),
            });
            println!("{line}");
        }
    }
}

/// One row per subject, with its speed relative to Koel's.
fn table(rows: &[Row]) -> Table {
    let yardstick = rows.iter().find(|row| row.subject.name == YARDSTICK);
    let mut table = Table::new(&[
        "filter", "mode", "insert", "x", "hit", "x", "miss", "x", "mix", "x", "delete", "x", "+-",
        "bits/key", "fpr", "load",
    ]);
    for row in rows {
        let mut cells = vec![row.subject.name.to_string(), row.subject.insert.name().to_string()];
        for op in Op::ALL {
            let ratio = yardstick.and_then(|koel| Some(koel.mops(op)? / row.mops(op)?));
            cells.extend([figure(row.mops(op)), figure(ratio)]);
        }
        let spread = Op::ALL.map(|op| row.spread(op)).into_iter().fold(0.0, f64::max);
        cells.push(format!("{:.0} %", spread * 100.0));
        cells.push(figure(Some(row.bits_per_key)));
        cells.extend([percent(row.fpr()), share(row.load)]);
        table.push(cells);
    }
    table
}

/// The remarks on the figures, one line each.
fn notes(rows: &[Row]) -> String {
    let mut notes = String::new();
    for row in rows {
        let name = row.subject.name;
        if !row.subject.note.is_empty() && !name.ends_with("+mix") {
            notes += &format!("* {name}: {}.\n", row.subject.note);
        }
        if row.lost > 0 {
            notes += &format!("* {name}: {} keys refused or not found again.\n", row.lost);
        }
    }
    notes
}
