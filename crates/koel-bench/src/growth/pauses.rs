//! Measures the latency of single inserts and the peak memory. Each filter grows again in a process
//! of its own, with keys generated on the fly, so that nothing else is in memory.
//!
//! Every insert of the last doubling is timed in CPU time, which excludes other work on the
//! machine. The time to read the clock is measured first and subtracted. A virtual machine's pauses
//! are still included, so an empty loop is timed in the same way for as long.

use std::process::Command;
use std::time::Duration;

use cpu_time::ThreadTime;
use serde_json::{Value, json};
use testkit::keys::hashes;

use super::curve::PRESENT;
use crate::clock::{median, timed};
use crate::subject::Filter;
use crate::subjects::Growing;
use crate::table::figure;
use crate::{Failure, machine};

/// Steps from one power of two to the next, in bits.
const STEPS_BITS: u32 = 5;
const SLICE: usize = 4096;
/// From this many nanoseconds on an insert counts as a pause.
const LONG: f64 = 1e6;

/// The columns of [`cells`].
pub(crate) const PAUSES: [&str; 6] =
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
pub(crate) fn apart(filter: &Growing, last: u64, rate: f64) -> Result<Value, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["growth", "--pauses", "--keys", &last.to_string(), "--fpr", &rate.to_string()]);
    let output = command.args(["--only", filter.name]).output()?;
    let error = || String::from_utf8_lossy(&output.stderr).into_owned();
    serde_json::from_slice(&output.stdout)
        .map_err(|_| format!("the process apart failed: {}", error()).into())
}

/// The latency of single inserts in nanoseconds; the number of those that took more than [`LONG`],
/// and of clock readings that did, one after the other for as long as all those inserts; the peak
/// memory of the process in excess of that before, relative to the bytes of the final table.
pub(super) fn measure(filter: &Growing, last: u64, rate: f64) -> Value {
    let clock = median(&(0..1000).map(|_| timed(|| ()).0.as_secs_f64() * 1e9).collect::<Vec<_>>());
    let [before, _] = machine::resident_bytes();
    let mut growing = (filter.build)(last, rate);
    let mut stream = hashes(PRESENT, last);
    let untimed = usize::try_from(last / 2).unwrap_or(usize::MAX);
    grow(growing.as_mut(), &mut stream.by_ref().take(untimed));
    let (start, mut times) = (ThreadTime::now(), Histogram::new());
    for key in stream {
        let (time, _) = timed(|| growing.insert(&[key]));
        times.add((time.as_secs_f64() * 1e9 - clock).max(0.0));
    }
    let taken = start.elapsed();
    let [_, peak] = machine::resident_bytes();
    json!({
        "filter": filter.name,
        "timed": times.all,
        "p50_ns": times.share(0.5),
        "p99_ns": times.share(0.99),
        "p999_ns": times.share(0.999),
        "longest_ns": times.longest,
        "above_ms": times.long,
        "idle_above_ms": idle(taken).long,
        "peak_by_table": peak.saturating_sub(before) as f64 / growing.bytes() as f64,
    })
}

/// Times an empty operation again and again.
fn idle(time: Duration) -> Histogram {
    let (start, mut times) = (ThreadTime::now(), Histogram::new());
    while start.elapsed() < time {
        times.add(timed(|| ()).0.as_secs_f64() * 1e9);
    }
    times
}

fn grow(filter: &mut dyn Filter, keys: &mut dyn Iterator<Item = u64>) {
    let mut slice = Vec::with_capacity(SLICE);
    loop {
        slice.clear();
        slice.extend(keys.take(SLICE));
        if slice.is_empty() {
            break;
        }
        filter.insert(&slice);
    }
}

/// A histogram of nanoseconds per insert, by [`step_of`].
struct Histogram {
    counts: Vec<u64>,
    all: u64,
    longest: f64,
    long: u64,
}

impl Histogram {
    fn new() -> Self {
        Self { counts: vec![0; 64 << STEPS_BITS], all: 0, longest: 0.0, long: 0 }
    }

    fn add(&mut self, nanoseconds: f64) {
        self.counts[step_of(nanoseconds)] += 1;
        self.all += 1;
        self.longest = self.longest.max(nanoseconds);
        self.long += u64::from(nanoseconds > LONG);
    }

    /// The nanoseconds within which this share of the inserts finished, to about three percent.
    fn share(&self, share: f64) -> f64 {
        let mut left = self.all as f64 * share;
        let within = self.counts.iter().position(|&count| {
            left -= count as f64;
            left <= 0.0
        });
        within.map_or(self.longest, |step| end_of(step).min(self.longest))
    }
}

/// The step of a time. Below 2^[`STEPS_BITS`] each whole nanosecond has a step of its own; above,
/// each power of two is divided into that many steps.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "nanoseconds of an insert"
)]
fn step_of(nanoseconds: f64) -> usize {
    let whole = nanoseconds as u64;
    // Keeps the leading 1 and the [`STEPS_BITS`] bits after it.
    let shift = (u64::BITS - whole.leading_zeros()).saturating_sub(STEPS_BITS + 1);
    (whole >> shift) as usize + ((shift as usize) << STEPS_BITS)
}

/// The nanoseconds at which a step ends.
fn end_of(step: usize) -> f64 {
    let lowest = 1 << STEPS_BITS;
    if step < 2 * lowest {
        return (step + 1) as f64;
    }
    let shift = step / lowest - 1;
    ((step - shift * lowest + 1) as f64) * 2_f64.powi(i32::try_from(shift).unwrap_or(i32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_in_the_step_that_ends_just_after_it() {
        for whole in (0..5000).chain([123_456, 999_999, 40_000_000]) {
            let time = f64::from(whole);
            let end = end_of(step_of(time));
            assert!(end > time && end <= (time * 1.04).max(time + 1.0), "{time}: {end}");
        }
    }
}
