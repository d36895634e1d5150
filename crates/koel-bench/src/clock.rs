//! CPU time of this thread, and summaries of many measurements.
//!
//! CPU time excludes other work on the machine, but not its effect on caches and memory. So each
//! figure is a median, printed with its spread.

use std::time::Duration;

use cpu_time::ThreadTime;

/// Runs `work` and returns the CPU time it took, with its result.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = ThreadTime::now();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_and_the_spread_is_relative_to_it() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), 2.5);
        assert_eq!(spread(&[3.0, 1.0, 2.0]), 1.0);
        assert_eq!((median(&[]), spread(&[])), (0.0, 0.0));
    }
}
