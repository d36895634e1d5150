//! Measures the latency of single inserts and the peak memory. Each filter grows again in a process
//! of its own, with keys generated on the fly, so that nothing else is in memory.
//!
//! Every insert of the last doubling is timed in CPU time, which excludes other work on the
//! machine. The time to read the clock is measured first and subtracted. A virtual machine's pauses
//! are still included, so an empty loop is timed in the same way for as long.

use std::time::Duration;

use cpu_time::ThreadTime;
use serde_json::{Value, json};
use testkit::keys::hashes;

use super::curve::PRESENT;
use crate::clock::{Times, median, timed};
use crate::subject::{Mode, insert_all};
use crate::subjects::Growing;
use crate::table::figure;
use crate::{Failure, machine};

/// The columns of [`cells`].
pub(super) const PAUSES: [&str; 6] =
    ["p50, us", "p99", "p99.9", "longest", "above 1 ms", "memory x"];

/// What [`measure`] found, in microseconds.
pub(super) fn cells(pauses: &Value) -> Vec<String> {
    let times = ["p50_ns", "p99_ns", "p999_ns", "longest_ns"];
    let micros = |field: &str| figure(pauses[field].as_f64().map(|nanoseconds| nanoseconds / 1e3));
    let mut cells = times.map(micros).to_vec();
    cells.push(format!("{} ({})", pauses["above_ms"], pauses["idle_above_ms"]));
    cells.push(figure(pauses["peak_by_table"].as_f64()));
    cells
}

/// Runs [`measure`] in a process of its own.
pub(super) fn apart(filter: &Growing, last: u64, rate: f64) -> Result<Value, Failure> {
    let (keys, rate) = (last.to_string(), rate.to_string());
    let size = ["growth", "--pauses", "--keys", &keys, "--fpr", &rate];
    machine::apart(&[&size[..], &["--only", filter.name]].concat())
}

/// The latency of single inserts in nanoseconds; the number of those that took more than a
/// millisecond, and of clock readings that did, one after the other for as long as all those
/// inserts; the peak memory of the process in excess of that before, relative to the bytes of the
/// final table.
pub(super) fn measure(filter: &Growing, last: u64, rate: f64) -> Value {
    let clock = median(&(0..1000).map(|_| timed(|| ()).0.as_secs_f64() * 1e9).collect::<Vec<_>>());
    let clock = Duration::from_secs_f64(clock / 1e9);
    let [before, _] = machine::resident_bytes();
    let mut growing = (filter.build)(last, rate);
    let mut stream = hashes(PRESENT, last);
    let untimed = usize::try_from(last / 2).unwrap_or(usize::MAX);
    insert_all(growing.as_mut(), stream.by_ref().take(untimed), Mode::Batch);
    let (start, mut times) = (ThreadTime::now(), Times::new());
    for key in stream {
        let (time, _) = timed(|| growing.insert(&[key], Mode::Single));
        times.add(time.saturating_sub(clock));
    }
    let taken = start.elapsed();
    let [_, peak] = machine::resident_bytes();
    json!({
        "filter": filter.name,
        "timed": times.count(),
        "p50_ns": times.share(0.5),
        "p99_ns": times.share(0.99),
        "p999_ns": times.share(0.999),
        "longest_ns": times.longest(),
        "above_ms": times.above_ms,
        "idle_above_ms": idle(taken).above_ms,
        "peak_by_table": peak.saturating_sub(before) as f64 / growing.bytes() as f64,
    })
}

/// Times an empty operation again and again.
fn idle(time: Duration) -> Times {
    let (start, mut times) = (ThreadTime::now(), Times::new());
    while start.elapsed() < time {
        times.add(timed(|| ()).0);
    }
    times
}
