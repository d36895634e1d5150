//! CPU time of this thread, and summaries of many measurements.
//!
//! CPU time excludes other work on the machine, but not its effect on caches and memory. So each
//! figure is a median, printed with its spread.

use std::time::{Duration, Instant};

use cpu_time::{ProcessTime, ThreadTime};
use hdrhistogram::Histogram;

/// Runs `work` and returns the CPU time it took, with its result.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = ThreadTime::now();
    let answer = work();
    (start.elapsed(), answer)
}

/// As [`timed`], with the CPU time of all threads, for work that may be divided among some.
pub(crate) fn timed_everywhere<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = ProcessTime::now();
    let answer = work();
    (start.elapsed(), answer)
}

/// Millions of operations per second.
pub(crate) fn mops(operations: usize, time: Duration) -> f64 {
    operations as f64 / time.as_secs_f64().max(1e-9) / 1e6
}

/// The median; the mean of the middle two if the count is even, and 0 if there are none.
pub(crate) fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.len(), sorted.len() / 2) {
        (0, _) => 0.0,
        (n, half) if n % 2 == 1 => sorted[half],
        (_, half) => f64::midpoint(sorted[half - 1], sorted[half]),
    }
}

/// (max - min) / median; 0 if there are no samples.
pub(crate) fn spread(samples: &[f64]) -> f64 {
    let largest = samples.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let smallest = samples.iter().copied().fold(f64::INFINITY, f64::min);
    if samples.is_empty() { 0.0 } else { (largest - smallest) / median(samples).max(1e-9) }
}

/// The values that these shares of all values, which are sorted, do not exceed.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a count")]
pub(crate) fn at_shares<T: Copy, const N: usize>(sorted: &[T], shares: [f64; N]) -> [T; N] {
    let last = sorted.len() - 1;
    shares.map(|share| sorted[((last as f64 * share).ceil() as usize).min(last)])
}

/// The median and the 99th percentile of operations that were timed singly, less the clock, in
/// nanoseconds.
pub(crate) fn half_and_p99(mut times: Vec<Duration>) -> [f64; 2] {
    times.sort_unstable();
    let clock = clock();
    at_shares(&times, [0.5, 0.99]).map(|time| (each(time, 1) - clock).max(0.0))
}

/// The number of the longest times that are kept as they are.
const KEPT: usize = 5;

/// The longest time that a histogram tells from longer ones, in nanoseconds: an hour.
const HOUR: u64 = 3_600_000_000_000;

/// Times of any number of operations, in nanoseconds to two digits, and the longest as they are. It
/// takes 40 kB, so that it is not seen in the memory of what is measured.
pub(crate) struct Times {
    all: Histogram<u64>,
    /// The longest first.
    longest: Vec<u64>,
    /// The number of those above a millisecond.
    pub(crate) above_ms: u64,
}

impl Times {
    pub(crate) fn new() -> Self {
        let all = Histogram::new_with_max(HOUR, 2).expect("two digits of so much");
        Self { all, longest: Vec::with_capacity(KEPT + 1), above_ms: 0 }
    }

    pub(crate) fn add(&mut self, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.all.saturating_record(nanoseconds);
        self.above_ms += u64::from(nanoseconds > 1_000_000);
        if self.longest.len() < KEPT || nanoseconds > self.longest[KEPT - 1] {
            let at = self.longest.partition_point(|&longer| longer > nanoseconds);
            self.longest.insert(at, nanoseconds);
            self.longest.truncate(KEPT);
        }
    }

    /// Runs an operation, and adds how long the caller waited for it.
    pub(crate) fn time<T>(&mut self, operation: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let answer = operation();
        self.add(start.elapsed());
        answer
    }

    pub(crate) fn count(&self) -> u64 {
        self.all.len()
    }

    pub(crate) fn mean(&self) -> f64 {
        self.all.mean()
    }

    /// The longest time; 0 if there is none.
    pub(crate) fn longest(&self) -> u64 {
        self.longest.first().copied().unwrap_or(0)
    }

    /// The longest times in milliseconds, the longest first.
    pub(crate) fn longest_ms(&self) -> Vec<f64> {
        self.longest.iter().map(|&nanoseconds| nanoseconds as f64 / 1e6).collect()
    }

    /// The nanoseconds within which this share of the operations finished.
    pub(crate) fn share(&self, share: f64) -> u64 {
        self.all.value_at_quantile(share).min(self.longest())
    }
}

/// Two readings of the wall clock, in nanoseconds.
pub(crate) fn clock() -> f64 {
    let times = (0..100_000).map(|_| Instant::now().elapsed().as_nanos() as f64);
    median(&times.collect::<Vec<_>>())
}

/// Nanoseconds per operation.
pub(crate) fn each(time: Duration, operations: u64) -> f64 {
    time.as_secs_f64() * 1e9 / operations.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_and_the_spread_is_relative_to_it() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), 2.5);
        assert_eq!(spread(&[3.0, 1.0, 2.0]), 1.0);
        assert_eq!((median(&[]), spread(&[])), (0.0, 0.0));
        assert_eq!(at_shares(&[1, 2, 3], [0.0, 0.5, 0.6, 1.0]), [1, 2, 3, 3]);
    }

    #[test]
    fn the_longest_times_are_kept_as_they_are() {
        let mut times = Times::new();
        assert_eq!((times.count(), times.longest(), times.share(0.5)), (0, 0, 0));
        for number in 0..1000 {
            times.add(Duration::from_micros(1 + number * 7 % 1000));
        }
        times.add(Duration::from_nanos(2_345_678));
        assert_eq!(times.longest_ms(), [2.345_678, 1.0, 0.999, 0.998, 0.997]);
        assert_eq!((times.count(), times.above_ms, times.share(1.0)), (1001, 1, 2_345_678));
        let half = times.share(0.5) as f64;
        assert!((half / 501e3 - 1.0).abs() < 0.01 && (times.mean() / 503e3 - 1.0).abs() < 0.01);
    }
}
