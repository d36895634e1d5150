//! `maplet`: keys with small values, in two shapes that stores need: 5-bit ids of the runs of an
//! LSM-tree, and 40-bit locations in a log.
//!
//! Measures a full maplet: CPU nanoseconds per operation, single and batched; a copy of the maplet;
//! the number of wrong values. `counting.rs` counts events with a counting filter and with the
//! filter's counters.

mod counting;

use std::hint::black_box;
use std::time::Duration;

use koel::{KeyHash, Maplet, Values};
use serde_json::{Value, json};
use testkit::keys::hashes;

use crate::args::SizesArgs;
use crate::clock::{each, median, timed};
use crate::table::{grouped, print};
use crate::{Failure, machine};

/// Name, false-positive rate and bits of a value.
const SHAPES: [(&str, f64, u32); 2] = [("run id", 0.004, 5), ("location", 1e-5, 40)];

/// Keys of one call of `get_many`.
const PART: usize = 4096;

pub(crate) fn run(args: &SizesArgs) -> Result<(), Failure> {
    if !args.output.json {
        println!("{}\nMedians of {}.", machine::description(), args.output.reps);
    }
    for &keys in &args.keys {
        machine::require_memory_of(keys)?;
        let rows = SHAPES.map(|shape| measure(shape, keys, args.output.reps));
        if !args.output.json {
            println!("\n{} entries: nanoseconds per operation\n", grouped(keys));
        }
        print(&rows, args.output.json);
        if !args.output.json {
            println!("\n{} events by Zipf's law, counted by key\n", grouped(keys));
        }
        print(&counting::measure(keys), args.output.json);
    }
    Ok(())
}

fn measure((shape, rate, value_bits): (&'static str, f64, u32), keys: u64, reps: u32) -> Value {
    let present: Vec<_> = hashes(1, keys).map(KeyHash::new).collect();
    let absent: Vec<_> = hashes(2, keys).map(KeyHash::new).collect();
    // Computed as in `one_round`.
    let values: Vec<_> =
        present.iter().map(|hash| hash.get() >> (u64::BITS - value_bits)).collect();
    let builder = Maplet::builder(keys, rate, value_bits).trust_hashes();
    let empty = builder.build().expect("a shape that can be built");
    let mut full = empty.clone();
    full.insert_many(&present, &values).expect("room for the capacity");
    let count = |keys: &[KeyHash]| keys.iter().map(|key| full.get(key).len()).sum::<usize>();
    let [wrong, right] = [&absent, &present].map(|keys| count(keys) as f64 / keys.len() as f64);
    let rounds: Vec<_> = (0..reps).map(|_| one_round(&empty, &present, &values, &absent)).collect();
    let mut row = json!({ "maplet": format!("{shape}, {}, {keys} entries", full.layout()) });
    for (at, (op, _)) in rounds[0].iter().enumerate() {
        row[*op] = json!(median(&rounds.iter().map(|round| round[at].1).collect::<Vec<_>>()));
    }
    // The mean number of values of an absent key and of a present one.
    row["bits/entry"] = json!(full.bits_per_entry());
    row["wrong values"] = json!(wrong);
    row["values"] = json!(right);
    row
}

/// Nanoseconds of each operation; gigabytes a second of a copy.
fn one_round(
    empty: &Maplet,
    present: &[KeyHash],
    values: &[u64],
    absent: &[KeyHash],
) -> Vec<(&'static str, f64)> {
    let mut round = Vec::new();
    let mut add = |op, time: Duration| round.push((op, each(time, present.len() as u64)));
    let mut singly = empty.clone();
    let inserted = timed(|| {
        for (hash, &value) in black_box(present).iter().zip(values) {
            singly.insert(hash, value).expect("room for the capacity");
        }
    });
    add("insert", inserted.0);
    drop(singly);
    let mut full = empty.clone();
    let (time, done) = timed(|| full.insert_many(present, values));
    add("insert many", time);
    done.expect("room for the capacity");
    // In parts, as programs ask: the values of a million keys at once would be timed as memory.
    let mut found = vec![Values::default(); PART];
    for (op, many, keys) in
        [("absent", "absent many", absent), ("present", "present many", present)]
    {
        let mut last = 0;
        let each = |key| full.get(key).for_each(|value| last = value.max(last));
        add(op, timed(|| black_box(keys).iter().for_each(each)).0);
        let mut each = |part: &[KeyHash]| full.get_many(part, &mut found[..part.len()]);
        add(many, timed(|| black_box(keys).chunks(PART).for_each(&mut each)).0);
    }
    // The value is computed, not read. A caller has it at hand, and the maplet is timed, not a
    // second stream from memory.
    let shift = u64::BITS - full.layout().value_bits();
    let (time, replaced) = timed(|| {
        let keys = black_box(present).iter().map(|hash| (hash, hash.get() >> shift));
        keys.filter(|&(hash, value)| full.replace(hash, value, value ^ 1) == Ok(true)).count()
    });
    add("replace", time);
    // If two keys share fingerprint and value, both are replaced, one for the other.
    assert_eq!(replaced, present.len());
    let back: Vec<_> = values.iter().map(|&value| (value ^ 1, value)).collect();
    let mut replaced = vec![false; present.len()];
    let (time, done) = timed(|| full.replace_many(black_box(present), &back, &mut replaced));
    add("replace many", time);
    done.expect("values of the width");
    assert!(replaced.iter().all(|&replaced| replaced));
    // Times the second of two copies: the first may wait for memory that the host of a virtual
    // machine has taken back, at 2.4 s per GiB.
    drop(black_box(full.clone()));
    let (copying, copy) = timed(|| black_box(full.clone()));
    round.push(("copy, GB/s", copy.size_in_bytes() as f64 / copying.as_secs_f64() / 1e9));
    round
}
