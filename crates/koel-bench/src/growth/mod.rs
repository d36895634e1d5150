//! `growth`: growable filters from a thousand keys on: their cost at each size, the latency of
//! single inserts, and memory.
//!
//! `curve.rs` measures at sizes a factor of 2^(1/4) apart. `pauses.rs` grows each filter again and
//! times every insert.

mod curve;
mod pauses;

use serde_json::{Value, json};

use crate::args::GrowthArgs;
use crate::subjects::{FIRST, GROWING, Growing};
use crate::table::{Table, figure, grouped, print};
use crate::{Failure, machine};
pub(crate) use curve::{Curve, LOOKUPS, Point, measure};
use pauses::PAUSES;

/// The legend printed above the tables.
pub(crate) const LEGEND: &str = "\
Nanoseconds of CPU time per operation. insert: since the previous size; for a fixed filter, all of its keys. mean insert: since the first key. hit, miss: single \
lookups; many: batches of 4096 keys. `fixed`: a full Koel filter of fixed size with the same bytes, measured in turns with the growing one. In the last table bits/key and \
load are means over the sizes; `x`: time relative to the fixed filter, the median over the sizes, then at the largest; p50 to longest: microseconds of single inserts over the \
last doubling; above 1 ms: the number of those inserts and, in brackets, of empty clock readings over the same time; memory x: peak memory relative to the bytes of the final table.";

/// The legend of the last table.
pub(crate) const INSERTS: &str = "Single inserts and memory only. Begun large: with room for three quarters of the keys, so that the first growth, which widens the slots, is that of a large table. \
Locations: the index of the log store, with its own false-positive rate.";

pub(crate) fn run(args: &GrowthArgs) -> Result<(), Failure> {
    let filters = filters_for(args)?;
    if args.pauses {
        let measured = |filter: &&Growing| pauses::measure(filter, args.keys, args.fpr);
        print(&filters.iter().map(measured).collect::<Vec<_>>(), true);
        return Ok(());
    }
    if !args.json {
        println!("{}\n{LEGEND}", machine::description());
    }
    let (others, filters) = filters.into_iter().partition::<Vec<_>, _>(|it| it.inserts_alone);
    for filter in filters {
        let grown = Grown::measure(filter, args.keys, args.fpr)?;
        if args.json {
            grown.curve.points.iter().for_each(|point| print_point(filter.name, point));
            println!("{}", grown.pauses);
        } else {
            println!("\n{}, to {} keys at {}\n", filter.name, grouped(args.keys), args.fpr);
            print!("{}", table(&grown.curve).markdown());
            println!("\n{}", summary(&[grown]).markdown());
        }
    }
    let others = measure_inserts(&others, args.keys, args.fpr)?;
    if args.json {
        print(&others, true);
    } else if !others.is_empty() {
        println!("\n{INSERTS}\n\n{}", inserts_table(&others).markdown());
    }
    Ok(())
}

/// The filters that the arguments select. Fails if the machine cannot measure them.
fn filters_for(args: &GrowthArgs) -> Result<Vec<&'static Growing>, Failure> {
    if args.keys < FIRST {
        return Err(format!("give {} keys or more", grouped(FIRST)).into());
    }
    machine::require_memory_of(args.keys)?;
    chosen(&args.only)
}

/// Pauses and memory of filters for which nothing else is measured.
pub(crate) fn measure_inserts(
    filters: &[&Growing],
    last: u64,
    rate: f64,
) -> Result<Vec<Value>, Failure> {
    filters.iter().map(|filter| pauses::apart(filter, last, rate)).collect()
}

/// One row per filter.
pub(crate) fn inserts_table(filters: &[Value]) -> Table {
    let mut table = Table::new(&[&["filter"][..], &PAUSES].concat());
    for pauses in filters {
        let name = pauses["filter"].as_str().unwrap_or_default().to_owned();
        table.push([name].into_iter().chain(pauses::cells(pauses)).collect());
    }
    table
}

/// All measurements of one filter.
pub(crate) struct Grown {
    pub(crate) name: &'static str,
    pub(crate) curve: Curve,
    pub(crate) pauses: Value,
}

impl Grown {
    pub(crate) fn measure(filter: &Growing, last: u64, rate: f64) -> Result<Self, Failure> {
        let pauses = pauses::apart(filter, last, rate)?;
        Ok(Self { name: filter.name, curve: measure(filter, last, rate), pauses })
    }
}

/// The filters whose names contain one of the words, or all if no word is given.
fn chosen(words: &[String]) -> Result<Vec<&'static Growing>, Failure> {
    let wanted = |filter: &&Growing| words.iter().any(|word| filter.name.contains(word.as_str()));
    let found: Vec<_> =
        GROWING.iter().filter(|filter| words.is_empty() || wanted(filter)).collect();
    if found.is_empty() {
        let names = GROWING.each_ref().map(|filter| filter.name);
        return Err(format!("no such filter; there are: {}", names.join(", ")).into());
    }
    Ok(found)
}

fn print_point(name: &str, point: &Point) {
    let mut line = json!({
        "filter": name,
        "fixed": point.fixed,
        "keys": point.keys,
        "bytes": point.bytes,
        "bits_per_key": point.bits_per_key(),
        "fpr": point.fpr,
        "load": point.load,
        "insert_ns": point.insert,
        "mean_insert_ns": point.mean_insert,
    });
    for (lookup, nanoseconds) in LOOKUPS.into_iter().zip(point.lookups) {
        line[format!("{}_ns", lookup.replace(' ', "_"))] = json!(nanoseconds);
    }
    println!("{line}");
}

/// One row per size.
pub(crate) fn table(curve: &Curve) -> Table {
    let mut heading = vec!["", "keys", "bits/key", "fpr", "load", "insert", "mean insert"];
    heading.extend(LOOKUPS);
    let mut table = Table::new(&heading);
    for point in &curve.points {
        let mut cells = vec![
            if point.fixed { "fixed" } else { "" }.to_string(),
            grouped(point.keys),
            figure(Some(point.bits_per_key())),
            format!("{:.4} %", point.fpr * 100.0),
            point.load.map_or("-".into(), |load| format!("{load:.3}")),
            figure(Some(point.insert)),
            figure(Some(point.mean_insert)),
        ];
        cells.extend(point.lookups.map(figure));
        table.push(cells);
    }
    table
}

/// One row per filter, over all sizes.
pub(crate) fn summary(filters: &[Grown]) -> Table {
    let mut heading =
        vec!["filter", "bits/key", "load", "highest fpr", "insert x", "lookup x", "many x"];
    heading.extend(PAUSES);
    let mut table = Table::new(&heading);
    for Grown { name, curve, pauses } in filters {
        let beside = curve.beside_fixed().map_or([None; 3], |ratios| ratios.map(Some));
        let mut cells = vec![
            name.to_string(),
            figure(Some(curve.mean_bits_per_key())),
            curve.mean_load().map_or("-".into(), |load| format!("{load:.3}")),
            format!("{:.4} %", curve.highest_fpr() * 100.0),
        ];
        cells.extend(beside.map(|ratios: Option<[f64; 2]>| {
            ratios.map_or("-".into(), |[all, last]| format!("{all:.2}, {last:.2}"))
        }));
        cells.extend(pauses::cells(pauses));
        table.push(cells);
    }
    table
}
