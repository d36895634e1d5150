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
use crate::table::{Table, figure, grouped, percent, print, share};
use crate::{Failure, machine};
use curve::{Curve, LOOKUPS, Point};
use pauses::PAUSES;

/// The legend printed above the tables.
const LEGEND: &str = "\
Nanoseconds of CPU time per operation. insert: since the previous size; for a fixed filter, all of its keys. mean insert: since the first key. hit, miss: single \
lookups; many: batches of 4096 keys. `fixed`: a full Koel filter of fixed size with the same bytes, measured in turns with the growing one. In the first table bits/key and \
load are means over the sizes; `x`: time relative to the fixed filter, the median over the sizes, then at the largest; p50 to longest: microseconds of single inserts over the \
last doubling; above 1 ms: the number of those inserts and, in brackets, of empty clock readings over the same time; memory x: peak memory relative to the bytes of the final table.";

/// The legend of the table of pauses alone.
const INSERTS: &str = "Single inserts and memory only. Begun large: with room for three quarters of the keys, so that the first growth, which widens the slots, is that of a large table. \
Locations: the index of the log store, with its own false-positive rate.";

pub(crate) fn run(args: &GrowthArgs) -> Result<(), Failure> {
    let filters = filters_for(args)?;
    if args.pauses {
        let measured = |filter: &&Growing| pauses::measure(filter, args.keys, args.fpr);
        print(&filters.iter().map(measured).collect::<Vec<_>>(), true);
        return Ok(());
    }
    let (others, filters) = filters.into_iter().partition::<Vec<_>, _>(|it| it.inserts_alone);
    let pauses = |filter: &Growing| pauses::apart(filter, args.keys, args.fpr);
    let mut grown = Vec::new();
    for filter in filters {
        let pauses = pauses(filter)?;
        let curve = curve::measure(filter, args.keys, args.fpr);
        if args.json {
            curve.points.iter().for_each(|point| print_point(filter.name, point));
            println!("{pauses}");
        }
        grown.push((filter.name, curve, pauses));
    }
    let others = others.into_iter().map(pauses).collect::<Result<Vec<_>, _>>()?;
    if args.json {
        print(&others, true);
        return Ok(());
    }
    println!("{}\n{LEGEND}\n\n{}", machine::description(), summary(&grown).markdown());
    println!("{INSERTS}\n\n{}", inserts_table(&others).markdown());
    for (name, curve, _) in &grown {
        println!("{name}, to {} keys at {}\n", grouped(args.keys), args.fpr);
        println!("{}", table(curve).markdown());
    }
    Ok(())
}

/// The filters whose names contain one of the words, or all if no word is given. Fails if the
/// machine cannot measure them.
fn filters_for(args: &GrowthArgs) -> Result<Vec<&'static Growing>, Failure> {
    if args.keys < FIRST {
        return Err(format!("give {} keys or more", grouped(FIRST)).into());
    }
    machine::require_memory_of(args.keys)?;
    let words = &args.only;
    let wanted = |filter: &&Growing| {
        words.is_empty() || words.iter().any(|word| filter.name.contains(word.as_str()))
    };
    let found: Vec<_> = GROWING.iter().filter(wanted).collect();
    if found.is_empty() {
        let names = GROWING.each_ref().map(|filter| filter.name);
        return Err(format!("no such filter; there are: {}", names.join(", ")).into());
    }
    Ok(found)
}

/// One row per filter.
fn inserts_table(filters: &[Value]) -> Table {
    let mut table = Table::new(&[&["filter"][..], &PAUSES].concat());
    for pauses in filters {
        let name = pauses["filter"].as_str().unwrap_or_default().to_owned();
        table.push([name].into_iter().chain(pauses::cells(pauses)).collect());
    }
    table
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
fn table(curve: &Curve) -> Table {
    let heading = ["", "keys", "bits/key", "fpr", "load", "insert", "mean insert"];
    let mut table = Table::new(&[&heading[..], &LOOKUPS].concat());
    for point in &curve.points {
        let mut cells = vec![
            if point.fixed { "fixed" } else { "" }.to_string(),
            grouped(point.keys),
            figure(Some(point.bits_per_key())),
            percent(Some(point.fpr)),
            share(point.load),
            figure(Some(point.insert)),
            figure(Some(point.mean_insert)),
        ];
        cells.extend(point.lookups.map(figure));
        table.push(cells);
    }
    table
}

/// One row per filter, over all sizes.
fn summary(filters: &[(&str, Curve, Value)]) -> Table {
    let heading = ["filter", "bits/key", "load", "highest fpr", "insert x", "lookup x", "many x"];
    let mut table = Table::new(&[&heading[..], &PAUSES].concat());
    for (name, curve, pauses) in filters {
        let mut cells = vec![
            (*name).to_string(),
            figure(Some(curve.mean_bits_per_key())),
            share(curve.mean_load()),
            percent(Some(curve.highest_fpr())),
        ];
        cells.extend(curve.beside_fixed().map_or([(); 3].map(|()| "-".into()), |ratios| {
            ratios.map(|[all, last]| format!("{all:.2}, {last:.2}"))
        }));
        cells.extend(pauses::cells(pauses));
        table.push(cells);
    }
    table
}
