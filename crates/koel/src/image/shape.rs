//! The shape and the settings of a table.

use crate::address::geometry::{CORE_BITS, Geometry, possible_entries};
use crate::address::hash::Route;
use crate::packing::Layout;

/// Whether a filter is optimised for size or for speed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prefer {
    /// Fewest bits per key: semi-sorted buckets of any fingerprint width, designed for a load of
    /// 0.97.
    #[default]
    Small,
    /// Fewest instructions: plain buckets of 8, 12, 16, 24 or 32 bits per slot, designed for a load
    /// of 0.95.
    Fast,
}

/// The settings that a filter was built with, besides its shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Profile {
    /// From keys to addresses.
    pub(crate) route: Route,
    pub(crate) capacity: u64,
    pub(crate) rate: f64,
    pub(crate) counter_limit: u64,
    /// Whether the filter grows when it is full.
    pub(crate) growable: bool,
    /// Bytes of the application.
    pub(crate) application: [u8; 8],
}

impl Profile {
    /// The bytes of the application that are equal in filters of equal keys.
    pub(crate) fn kind_of_keys(&self) -> [u8; 2] {
        let [first, second, ..] = self.application;
        [first, second]
    }
}

/// The shape of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) layout: Layout,
    pub(crate) segment_bits: u32,
    pub(crate) segment_buckets: u32,
}

impl Shape {
    /// The shape of a table with this addressing.
    pub(crate) fn of(geometry: &Geometry, layout: Layout) -> Self {
        Self {
            layout,
            segment_bits: geometry.segment_bits(),
            segment_buckets: geometry.segment_buckets(),
        }
    }

    pub(crate) fn geometry(&self) -> Geometry {
        let fingerprint_bits = self.layout.fraction_bits() + CORE_BITS;
        Geometry::new(self.segment_bits, self.segment_buckets, fingerprint_bits)
    }

    pub(crate) fn buckets(&self) -> u64 {
        u64::from(self.segment_buckets) << self.segment_bits
    }

    /// Expected false-positive rate with `keys` distinct keys in the filter.
    pub(crate) fn rate_after(&self, keys: u64) -> f64 {
        rate_after(keys, possible_entries(self.layout.fraction_bits(), self.buckets()))
    }

    /// Expected matches of an absent key among `entries` entries.
    pub(crate) fn candidates_after(&self, entries: u64) -> f64 {
        entries as f64 / possible_entries(self.layout.fraction_bits(), self.buckets())
    }
}

/// Probability that an absent key has the entry of one of `keys` keys: `1 - exp(-keys/possible)`,
/// as a series.
fn rate_after(keys: u64, possible: f64) -> f64 {
    let x = keys as f64 / possible;
    x * (1.0 - x / 2.0 * (1.0 - x / 3.0 * (1.0 - x / 4.0)))
}

/// Keys that make `distinct` different entries on average: the inverse of [`rate_after`] times
/// `possible`, which is `-possible ln(1 - distinct/possible)`, as a series.
pub(crate) fn distinct_keys(distinct: u64, possible: f64) -> f64 {
    let share = distinct as f64 / possible;
    distinct as f64 * (1.0 + share * (1.0 / 2.0 + share * (1.0 / 3.0 + share / 4.0)))
}

/// Bits of `size_in_bytes` per key. No keys count as one.
pub(crate) fn bits_per_key(size_in_bytes: usize, keys: f64) -> f64 {
    size_in_bytes as f64 * 8.0 / keys.max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_series_approximate_an_exponential_and_a_logarithm() {
        for percent in [0, 1, 5, 20_u64] {
            let x = percent as f64 / 100.0;
            // `rest` is a bound for the omitted terms of the series.
            let close = |found: f64, exact: f64, rest: f64| {
                assert!((found - exact).abs() <= rest + 1e-9 * exact, "{found}, not {exact}");
            };
            close(rate_after(percent * 10_000, 1e6), -(-x).exp_m1(), x.powi(5) / 100.0);
            let keys = -1e6 * (-x).ln_1p();
            close(distinct_keys(percent * 10_000, 1e6), keys, 1e6 * x.powi(5) / 3.0);
        }
    }
}
