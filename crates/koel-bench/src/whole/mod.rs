//! `whole`: operations on whole filters, beside inserting the same keys.
//!
//! Every subject holds the same keys four times. The first and the second filter have as many keys,
//! of which 99 % are the same. They are merged by `Max`, compared and patched. A table with room
//! for half as many again holds the first filter's keys, and one of its size that many others, none
//! of them in common. They are merged by `Sum`. What grows began with room for a thousand.
//!
//! Figures are CPU nanoseconds for each key of the second filter, or of the only one. A merge and
//! the insert in the line above it write the same keys into copies of one table.

mod subjects;

use serde_json::{Value, json};

use crate::args::SizesArgs;
use crate::clock::median;
use crate::filters::in_turn;
use crate::table::{Table, grouped, print_as};
use crate::{Failure, machine};
use subjects::{Keys, SUBJECTS};

/// The tables of all subjects and the copies of one of them, for each key.
const BYTES_A_KEY: u64 = 256;

/// What is measured, one line each.
#[derive(Clone, Copy)]
enum Op {
    InsertAgain,
    Max,
    InsertNew,
    Sum,
    Compare,
    PatchTo,
    Patched,
    Shrink,
    FromBytes,
    Bits,
}

impl Op {
    const ALL: [(Self, &str); 10] = [
        (Self::InsertAgain, "insert, 1 % new"),
        (Self::Max, "merge Max, 1 % new"),
        (Self::InsertNew, "insert, all new"),
        (Self::Sum, "merge Sum, all new"),
        (Self::Compare, "compare, 1 % new"),
        (Self::PatchTo, "patch_to, 1 % new"),
        (Self::Patched, "patched, 1 % new"),
        (Self::Shrink, "shrink_to_fit, half removed"),
        (Self::FromBytes, "from_bytes"),
        (Self::Bits, "bits/key"),
    ];
}

/// A figure of each operation, if the subject has it.
type Round = [Option<f64>; Op::ALL.len()];

pub(crate) fn run(args: &SizesArgs) -> Result<(), Failure> {
    if !args.output.json {
        println!("{}\nMedians of {}.", machine::description(), args.output.reps);
    }
    for &keys in &args.keys {
        machine::require_memory(keys.saturating_mul(BYTES_A_KEY))?;
        let rows = measure(&Keys::new(usize::try_from(keys)?), args.output.reps);
        if !args.output.json {
            println!("\nnanoseconds for each key of the second filter, or of the only one\n");
        }
        print_as(&rows, &table(&rows, keys), args.output.json);
    }
    Ok(())
}

/// The rows, under the number of keys.
fn table(rows: &[Value], keys: u64) -> Table {
    let heading = format!("{} keys", grouped(keys));
    let subjects = SUBJECTS.iter().map(|(name, _)| (*name, *name));
    Table::of(rows, &[("operation", &*heading)].into_iter().chain(subjects).collect::<Vec<_>>())
}

/// A row for each operation.
fn measure(keys: &Keys, reps: u32) -> Vec<Value> {
    let subjects = SUBJECTS.map(|(_, prepare)| prepare(keys));
    let mut rounds = SUBJECTS.map(|_| Vec::<Round>::new());
    for rep in 0..reps {
        for at in in_turn(subjects.len(), rep) {
            rounds[at].push(subjects[at](keys));
        }
    }
    let row = |(op, operation)| {
        let mut row = json!({ "operation": operation, "keys": keys.count });
        for ((name, _), rounds) in SUBJECTS.iter().zip(&rounds) {
            let figures: Vec<_> = rounds.iter().filter_map(|round| round[op as usize]).collect();
            row[*name] = json!((!figures.is_empty()).then(|| median(&figures)));
        }
        row
    };
    Op::ALL.map(row).into()
}
