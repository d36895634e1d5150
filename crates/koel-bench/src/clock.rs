//! CPU time of this thread, and summaries of many measurements.
//!
//! CPU time excludes other work on the machine, but not its effect on caches and memory. So each
//! figure is a median, printed with its spread.

use std::time::{Duration, Instant};

use cpu_time::{ProcessTime, ThreadTime};

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
}
