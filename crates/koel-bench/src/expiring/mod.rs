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

use std::process::Command;

use serde_json::{Value, json};
use testkit::keys::hashes;

use crate::args::ExpiringArgs;
use crate::clock::timed;
use crate::report::plot::{Axis, Chart, Ink, Line};
use crate::table::{Columns, Table, grouped, print};
use crate::{Failure, machine};
use subjects::{SUBJECTS, Subject, Window};

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
    let lines = SUBJECTS.iter().map(|subject| in_own_process(subject.name, args.keys));
    let lines = lines.collect::<Result<Vec<_>, Failure>>()?;
    if args.json {
        print(&lines, true);
        return Ok(());
    }
    println!(
        "{} keys in each window; {}, {}",
        grouped(args.keys),
        machine::description(),
        machine::today()
    );
    let table = Table::of(&lines, FIGURES);
    println!("{}", table.markdown());
    args.plot.as_ref().map_or(Ok(()), |path| chart(&lines).save(path))
}

fn in_own_process(name: &str, keys: u64) -> Result<Value, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    let output =
        command.args(["expiring", "--keys", &keys.to_string(), "--only", name]).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn measure(subject: &Subject, keys: u64) -> Value {
    let [before, _] = machine::resident_bytes();
    let mut window = (subject.build)(keys, RATE, STEPS);
    let mut stream = hashes(1, u64::MAX);
    let each = usize::try_from(keys / STEPS).expect("few");
    let mut last = Vec::new();
    let mut fill = |window: &mut dyn Window, keys: &mut dyn FnMut(u64)| {
        for _ in 0..STEPS {
            window.step();
            for key in stream.by_ref().take(each) {
                window.insert(key);
                keys(key);
            }
        }
    };
    fill(&mut *window, &mut |_| ());
    fill(&mut *window, &mut |_| ());
    let (time, ()) = timed(|| fill(&mut *window, &mut |_| ()));
    let [after, _] = machine::resident_bytes();
    fill(&mut *window, &mut |key| last.push(key));
    let forgotten = last.iter().filter(|&&key| !window.contains(key)).count();
    let found = hashes(2, ABSENT).filter(|&key| window.contains(key)).count();
    let bits = window.bytes().map(|bytes| 8.0 * bytes as f64 / keys as f64);
    drop((window, last));
    let [filling, churn] = pauses::longest(subject, keys);
    json!({
        "filter": subject.name,
        "bits_per_key": bits,
        "resident_bits_per_key": 8.0 * after.saturating_sub(before) as f64 / keys as f64,
        "ns_per_insert": time.as_secs_f64() * 1e9 / (keys / STEPS * STEPS) as f64,
        "longest_filling_us": filling.insert,
        "longest_insert_us": churn.insert,
        "longest_step_us": churn.step,
        "false_positives": 100.0 * found as f64 / ABSENT as f64,
        "forgotten": forgotten,
    })
}

/// Memory against throughput: a point for each filter.
fn chart(lines: &[Value]) -> Chart {
    let point = |line: &Value| {
        let bits = line["resident_bits_per_key"].as_f64().unwrap_or(0.0);
        (bits.max(1.0), 1e3 / line["ns_per_insert"].as_f64().unwrap_or(1.0))
    };
    let points = lines.iter().enumerate().map(|(number, line)| Line {
        name: line["filter"].as_str().unwrap_or_default().to_owned(),
        ink: Ink::Filter(number),
        points: vec![point(line)],
    });
    let most = lines.iter().map(|line| point(line).1).fold(1.0, f64::max);
    let ticks = [16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0];
    Chart {
        title: "Filters that forget after a window",
        x: Axis {
            title: "resident bits per key of a window",
            logarithmic: true,
            ticks: ticks.map(|tick| (tick, format!("{tick}"))).into(),
            from: 14.0,
            to: 1400.0,
        },
        y: Axis::linear("million inserts a second", 0.0, most * 1.1, (most / 6.0).ceil()),
        lines: points.collect(),
    }
}
