//! A stream of new keys through filters that forget them after a window: memory, the cost of an
//! insert, the longest pauses, and keys that are forgotten early.
//!
//! A window has so many keys and is divided into 24 steps. Two windows fill a filter, and the third
//! is timed as a whole. Another filter then tells the pauses (`pauses`). Each filter runs in a
//! process of its own, so that its resident memory can be told.
//!
//! `expiring-atomic-filter` is not here: it takes the time from the system's clock, in seconds.

mod pauses;
mod subjects;

use serde_json::{Value, json};
use testkit::keys::hashes;

use crate::args::ExpiringArgs;
use crate::clock::{each, timed};
use crate::subject::{Filter, Mode, insert_all};
use crate::table::{Columns, Table, grouped, print_as};
use crate::{Failure, machine};
use subjects::{SUBJECTS, Subject};

/// Steps of a window.
const STEPS: u64 = 24;
/// The false-positive rate that is asked for.
const RATE: f64 = 0.001;
/// Absent keys that are looked up.
const ABSENT: u64 = 1_000_000;

/// The figures, and the headings of their columns.
const FIGURES: &Columns = &[
    ("filter", "filter"),
    ("bits_per_key", "bits/key"),
    ("resident_bits_per_key", "resident"),
    ("ns_per_insert", "ns/insert"),
    ("longest_filling_us", "filling, us"),
    ("longest_insert_us", "longest, us"),
    ("longest_step_us", "longest step, us"),
    ("false_positives", "absent, %"),
    ("forgotten", "forgotten"),
];

pub(crate) fn run(args: &ExpiringArgs) -> Result<(), Failure> {
    if let Some(name) = &args.only {
        let subject = SUBJECTS.iter().find(|subject| subject.name == name);
        let subject = subject.ok_or("no filter has this name")?;
        println!("{}", measure(subject, args.keys));
        return Ok(());
    }
    let keys = args.keys.to_string();
    let apart = |it: &Subject| machine::apart(&["expiring", "--keys", &keys, "--only", it.name]);
    let lines = SUBJECTS.iter().map(apart).collect::<Result<Vec<_>, Failure>>()?;
    if !args.json {
        let (keys, machine) = (grouped(args.keys), machine::description());
        println!("{keys} keys in each window; {machine}, {}", machine::today()?);
    }
    print_as(&lines, &Table::of(&lines, FIGURES), args.json);
    Ok(())
}

fn measure(subject: &Subject, keys: u64) -> Value {
    let [before, _] = machine::resident_bytes();
    let mut window = (subject.build)(keys, RATE, STEPS);
    let mut stream = hashes(1, u64::MAX);
    let part = usize::try_from(keys / STEPS).expect("few");
    let mut fill = |window: &mut dyn Filter| {
        for _ in 0..STEPS {
            window.step();
            let accepted = insert_all(window, stream.by_ref().take(part), Mode::Single);
            assert_eq!(accepted, part, "room for a window");
        }
    };
    fill(&mut *window);
    fill(&mut *window);
    let (time, ()) = timed(|| fill(&mut *window));
    let [after, _] = machine::resident_bytes();
    fill(&mut *window);
    let all = part * usize::try_from(STEPS).expect("few");
    let last: Vec<_> = hashes(1, u64::MAX).skip(3 * all).take(all).collect();
    let forgotten = all - window.find(&last, Mode::Single);
    let absent: Vec<_> = hashes(2, ABSENT).collect();
    let found = window.find(&absent, Mode::Single);
    let bits = Some(window.bytes()).filter(|&bytes| bytes > 0);
    let bits = bits.map(|bytes| 8.0 * bytes as f64 / keys as f64);
    drop((window, last, absent));
    let [filling, churn] = pauses::longest(subject, keys);
    json!({
        "filter": subject.name,
        "bits_per_key": bits,
        "resident_bits_per_key": 8.0 * after.saturating_sub(before) as f64 / keys as f64,
        "ns_per_insert": each(time, keys / STEPS * STEPS),
        "longest_filling_us": filling.insert,
        "longest_insert_us": churn.insert,
        "longest_step_us": churn.step,
        "false_positives": 100.0 * found as f64 / ABSENT as f64,
        "forgotten": forgotten,
    })
}
