//! `report`: the tables of docs/BENCHMARKS.md and of the pages beside it. `scripts/plots` draws
//! what they say.
//!
//! * filters: `filters` at two sizes
//! * sizes: throughput by size of the table
//! * space: bits per key by false-positive rate, and the cost of a number of keys just above a
//!   power of two
//! * load: the cost of an insert as a filter fills up, and of a delete plus an insert at a steady
//!   load
//! * growth: `growth` from a thousand keys to many

use testkit::keys::hashes;

use crate::args::{FiltersArgs, GrowthArgs, Output, ReportArgs, Section};
use crate::clock::{each, median, timed};
use crate::filters::{self, Loads, measure};
use crate::subject::{Filter, Op, Subject};
use crate::subjects::{SUBJECTS, chosen};
use crate::table::{Table, figure, grouped};
use crate::{Failure, growth};

/// The target false-positive rate: fingerprints of twelve bits in a cuckoo filter.
const RATE: f64 = 0.002;

/// The filters by size of the table, by false-positive rate, and by load, besides those of
/// [`COMMON`].
const BY_SIZE: [&str; 3] = ["cuckoofilter+mix", "fastbloom+mix", "sbbf"];
const BY_RATE: [&str; 3] = ["atomic-cuckoo-filter+mix", "fastbloom+mix", "sbbf"];
const BY_LOAD: [&str; 2] = ["cuckoofilter+mix", "atomic-cuckoo-filter+mix"];
const COMMON: [&str; 4] = ["koel-fast", "koel-small", "qfilter", "scalable_cuckoo_filter+mix"];

const RATES: [f64; 7] = [0.03, 0.01, 0.003, 0.001, 0.000_3, 0.000_1, 0.000_03];
/// The number of keys looked up to measure a false-positive rate.
const ABSENT: u64 = 8_000_000;

/// The loads up to which inserts are timed together.
const STEPS: [f64; 14] =
    [0.3, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.88, 0.9, 0.92, 0.93, 0.94, 0.95, 0.96];
/// The loads at which keys are replaced.
const STEADY: [f64; 7] = [0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.94];
/// The number of keys deleted, then inserted, at a time.
const CHURNED: usize = 64;

pub(crate) fn run(args: &ReportArgs) -> Result<(), Failure> {
    // 95 % of a power of two: see `args.rs`.
    let one_size = if args.quick { 20_000 } else { full(1 << 20) };
    let reps = if args.quick { 1 } else { 3 };
    match args.section {
        Section::Filters => filters::run(&FiltersArgs {
            keys: if args.quick { vec![20_000] } else { vec![full(1 << 20), full(1 << 24)] },
            fpr: RATE,
            only: Vec::new(),
            output: Output { reps, json: false },
            huge: false,
        }),
        Section::Sizes => {
            // Twelve bits per slot.
            let fits = |slots: &u64| slots * 3 / 2 <= args.max_bytes;
            let slots = (15..=30).step_by(2).map(|bits| 1 << bits).filter(fits);
            by_size(&if args.quick { vec![1 << 13, 1 << 15] } else { slots.collect() }, reps)
        }
        Section::Space => by_rate(one_size).map(|()| by_count(one_size)),
        Section::Load => by_load(usize::try_from(one_size)?, reps),
        Section::Growth => growth::run(&GrowthArgs {
            keys: if args.quick { 20_000 } else { 16_000_000 },
            fpr: 0.001,
            only: Vec::new(),
            json: false,
            pauses: false,
        }),
    }
}

fn full(slots: u64) -> u64 {
    slots * 19 / 20
}

/// The filters with these names and those of [`COMMON`], in all modes.
fn drawn(others: &[&str]) -> Result<Vec<&'static Subject>, Failure> {
    chosen(&COMMON.iter().chain(others).map(ToString::to_string).collect::<Vec<_>>())
}

/// Throughput by size of the table.
fn by_size(slots: &[u64], reps: u32) -> Result<(), Failure> {
    let subjects = drawn(&BY_SIZE)?;
    let mut rows = Vec::new();
    for &slots in slots {
        eprintln!("filters by size, {} keys", grouped(full(slots)));
        // The largest sizes take minutes each.
        let reps = if slots > 1 << 22 { 1 } else { reps };
        rows.extend(measure(&subjects, usize::try_from(full(slots))?, RATE, reps, Loads::Skip));
    }
    let mut table =
        Table::new(&["filter", "keys", "KiB", "insert", "hit", "miss", "mix", "delete"]);
    for subject in subjects {
        for row in rows.iter().filter(|row| std::ptr::eq(row.subject, subject)) {
            let mut cells = vec![subject.label(), grouped(row.keys as u64)];
            cells.push(format!("{:.0}", row.bits_per_key * row.keys as f64 / 8192.0));
            cells.extend(Op::ALL.map(|op| figure(row.mops(op))));
            table.push(cells);
        }
    }
    println!(
        "## By size of the table\n\nTables in pages of 4 KiB. Above 4 million keys, everything was measured once.\n\n{}",
        table.markdown()
    );
    Ok(())
}

/// False-positive rate and bits per key, both measured.
fn measured(subject: &Subject, keys: &[u64], rate: f64, absent: &[u64]) -> (f64, f64) {
    let mut filter = (subject.build)(keys.len(), rate);
    let accepted = filter.insert(keys, subject.insert).max(1);
    let found = subject.find.map_or(0, |mode| filter.find(absent, mode));
    (found as f64 / absent.len() as f64, filter.bytes() as f64 * 8.0 / accepted as f64)
}

/// Bits per key by false-positive rate.
fn by_rate(count: u64) -> Result<(), Failure> {
    eprintln!("bits per key by false-positive rate");
    let keys: Vec<_> = hashes(1, count).collect();
    let absent: Vec<_> = hashes(2, ABSENT.min(count * 8)).collect();
    let mut table = Table::new(&["filter", "asked for", "measured", "bits/key", "above log2(1/p)"]);
    for subject in drawn(&BY_RATE)?.into_iter().filter(|it| it.is_single()) {
        for rate in RATES {
            let (error, bits) = measured(subject, &keys, rate, &absent);
            table.push(vec![
                subject.name.to_string(),
                format!("{rate}"),
                format!("{error:.6}"),
                figure(Some(bits)),
                figure((error > 0.0).then(|| bits + error.log2())),
            ]);
        }
    }
    println!("## Space\n\n{} keys.\n\n{}", grouped(count), table.markdown());
    Ok(())
}

/// Bits per key at three numbers of keys, one of which suits a power of two of slots.
fn by_count(count: u64) {
    let counts = [count, count / 90 * 91, count / 90 * 100];
    let heading = counts.map(|count| format!("{} keys", grouped(count)));
    let mut table = Table::new(&["filter", &heading[0], &heading[1], &heading[2]]);
    for subject in SUBJECTS.iter().filter(|it| it.is_single() && !it.name.contains('+')) {
        let bits = counts.map(|count| {
            let keys: Vec<_> = hashes(1, count).collect();
            figure(Some(measured(subject, &keys, RATE, &keys[..1]).1))
        });
        table.push([vec![subject.name.to_string()], bits.to_vec()].concat());
    }
    println!(
        "### A few keys more\n\nBits per key, target false-positive rate {RATE}. Most tables have a power of two of slots: they double when \
         the keys no longer fit.\n\n{}",
        table.markdown()
    );
}

/// Medians of several repetitions of `costs` at these loads, for each filter.
fn by_load(keys: usize, reps: u32) -> Result<(), Failure> {
    let table = |loads: &[f64], costs: fn(&Subject, usize) -> Vec<Option<f64>>| {
        let heading: Vec<_> = loads.iter().map(ToString::to_string).collect();
        let heading = std::iter::once("load").chain(heading.iter().map(String::as_str));
        let mut table = Table::new(&heading.collect::<Vec<_>>());
        for subject in drawn(&BY_LOAD)?.into_iter().filter(|it| it.is_single()) {
            let runs: Vec<_> = (0..reps).map(|_| costs(subject, keys)).collect();
            let mut cells = vec![subject.name.to_string()];
            cells.extend((0..loads.len()).map(|at| {
                // Without loads that were not reached every time.
                let reached = runs.iter().map(|run| run[at]).collect::<Option<Vec<_>>>();
                figure(reached.map(|costs| median(&costs)))
            }));
            table.push(cells);
        }
        Ok::<_, Failure>(table.markdown())
    };
    eprintln!("inserts by load");
    println!(
        "## Filling up\n\nBuilt for {} keys, target false-positive rate {RATE}. Nanoseconds per insert since the previous load, until one \
         is refused, or the filter grows.\n\n{}",
        grouped(keys as u64),
        table(&STEPS, filling)?
    );
    eprintln!("churn by load");
    println!(
        "## Churn\n\nNanoseconds per delete plus insert, half as many of each as there are slots, in single calls: the {CHURNED} oldest keys leave, \
         {CHURNED} new ones arrive. Loads at which a filter refused a key are missing.\n\n{}",
        table(&STEADY, churning)?
    );
    Ok(())
}

/// The number of slots that makes up this load.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a count")]
fn share(slots: usize, load: f64) -> usize {
    (slots as f64 * load) as usize
}

/// Nanoseconds per insert between one load and the next, up to the first refusal.
fn filling(subject: &Subject, keys: usize) -> Vec<Option<f64>> {
    let mut filter = (subject.build)(keys, RATE);
    let slots = filter.slots().expect("a filter that can be full");
    let keys: Vec<_> = hashes(1, slots as u64).collect();
    let mut filled = Some(0);
    let cost = |load: f64| {
        let before = filled.take()?;
        let batch = &keys[before..share(slots, load)];
        let (time, accepted) = timed(|| filter.fill(batch, subject.insert));
        filled = (accepted == batch.len()).then_some(before + accepted);
        filled.map(|_| each(time, accepted as u64))
    };
    STEPS.into_iter().map(cost).collect()
}

/// Nanoseconds per delete plus insert at each load.
fn churning(subject: &Subject, keys: usize) -> Vec<Option<f64>> {
    let at = |load: f64| {
        let mut filter = (subject.build)(keys, RATE);
        let slots = filter.slots()?;
        let stream: Vec<_> = hashes(1, 2 * slots as u64).collect();
        let held = share(slots, load);
        if filter.fill(&stream[..held], subject.insert) < held {
            return None;
        }
        let rounds = (slots / 2).div_ceil(CHURNED);
        let (time, refused) = timed(|| churn(filter.as_mut(), subject, &stream, held, rounds));
        (refused == 0).then(|| each(time, (rounds * CHURNED) as u64))
    };
    STEADY.into_iter().map(at).collect()
}

/// Replaces the oldest keys with new ones, and returns how many of these were refused.
fn churn(
    filter: &mut dyn Filter,
    subject: &Subject,
    stream: &[u64],
    held: usize,
    rounds: usize,
) -> usize {
    let mut refused = 0;
    for first in (0..rounds).map(|round| round * CHURNED) {
        filter.delete(&stream[first..first + CHURNED], subject.insert);
        refused += CHURNED - filter.insert(&stream[held + first..][..CHURNED], subject.insert);
    }
    refused
}
