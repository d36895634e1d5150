//! Speed: all filters at a few sizes as tables, and some filters at many sizes as plots.

use std::path::Path;

use super::plot::{Axis, Chart, Ink, Line};
use super::{Scale, byte_ticks, full, picture};
use crate::Failure;
use crate::filters::{self, LEGEND, Loads, Row, measure};
use crate::subject::{Op, Subject};
use crate::subjects::{SUBJECTS, chosen};
use crate::table::{Table, figure, grouped};

/// The target false-positive rate: fingerprints of twelve bits in a cuckoo filter.
const RATE: f64 = 0.002;

/// The filters in the plots by size; the position in the list chooses the colour.
const PLOTTED: [&str; 7] = [
    "koel-fast",
    "koel-small",
    "qfilter",
    "cuckoofilter+mix",
    "scalable_cuckoo_filter+mix",
    "fastbloom+mix",
    "sbbf",
];

/// A table of all filters for each number of keys.
pub(super) fn tables(scale: &Scale) -> Result<String, Failure> {
    let mut page = format!("## All filters\n\n{}\n\n", LEGEND.replace('\n', " "));
    let subjects = chosen(&[])?;
    for &keys in &scale.keys {
        eprintln!("all filters, {} keys", grouped(keys as u64));
        let rows = measure(&subjects, keys, RATE, scale.repetitions, Loads::Measure);
        page +=
            &format!("### {} keys, target false-positive rate {RATE}\n\n", grouped(keys as u64));
        page += &format!("{}\n{}\n", filters::table(&rows).markdown(), filters::notes(&rows));
    }
    Ok(page)
}

/// Inserts and lookups by size of the table.
pub(super) fn by_size(scale: &Scale, plots: &Path) -> Result<String, Failure> {
    let names = PLOTTED.map(String::from);
    let subjects = chosen(&names)?;
    let mut rows = Vec::new();
    for &slots in &scale.slots {
        eprintln!("filters by size, {} keys", grouped(full(slots) as u64));
        // The largest sizes take minutes each.
        let repetitions = if slots > 1 << 22 { 1 } else { scale.repetitions };
        rows.extend(measure(&subjects, full(slots), RATE, repetitions, Loads::Skip));
    }
    let mut page = "## By size of the table\n\nTables in pages of 4 KiB. Above 4 million keys, \
        everything was measured once.\n\n"
        .to_owned();
    for (op, file, title) in [
        (Op::Miss, "lookups.svg", "Lookups of absent keys, millions per second"),
        (Op::Insert, "inserts.svg", "Inserts until full, millions per second"),
    ] {
        chart(op, title, &rows).save(&plots.join(file))?;
        page += &picture(plots, file, title);
    }
    page += &by_size_table(&rows);
    Ok(page)
}

fn chart(op: Op, title: &'static str, rows: &[Row]) -> Chart {
    let mut lines: Vec<_> =
        plotted().map(|(number, subject)| line(op, rows, subject, number)).collect();
    lines.retain(|line| !line.points.is_empty());
    let points = || lines.iter().flat_map(|line| &line.points);
    let sizes: Vec<_> = points().map(|point| point.0).collect();
    Chart {
        title,
        x: Axis::marked("bytes of the table", byte_ticks(&sizes)),
        y: Axis::decades("millions a second", points().map(|point| point.1)),
        lines,
    }
}

/// The plotted subjects in all their modes, each with the number of its look.
fn plotted() -> impl Iterator<Item = (usize, &'static Subject)> {
    let number = |name: &str| PLOTTED.iter().position(|plotted| *plotted == name);
    SUBJECTS.iter().filter_map(move |subject| Some((number(subject.name)?, subject)))
}

fn line(op: Op, rows: &[Row], subject: &'static Subject, number: usize) -> Line {
    let of = rows.iter().filter(|row| std::ptr::eq(row.subject, subject));
    let point = |row: &Row| Some((row.bits_per_key * row.keys as f64 / 8.0, row.mops(op)?));
    let ink = if subject.is_single() { Ink::Filter(number) } else { Ink::Variant(number) };
    Line { name: subject.label(), ink, points: of.filter_map(point).collect() }
}

/// The figures of the plots.
fn by_size_table(rows: &[Row]) -> String {
    let mut table =
        Table::new(&["filter", "keys", "KiB", "insert", "hit", "miss", "mix", "delete"]);
    for (_, subject) in plotted() {
        for row in rows.iter().filter(|row| std::ptr::eq(row.subject, subject)) {
            let mut cells = vec![subject.label(), grouped(row.keys as u64)];
            cells.push(format!("{:.0}", row.bits_per_key * row.keys as f64 / 8192.0));
            cells.extend(Op::ALL.map(|op| figure(row.mops(op))));
            table.push(cells);
        }
    }
    format!("<details><summary>The figures</summary>\n\n{}\n</details>\n\n", table.markdown())
}
