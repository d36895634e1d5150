//! `thresholds`: how full the exact map gets in each shape before an insert first fails, compared
//! with the theoretical load.
//!
//! The map is the library's, with its own hash under a fixed key. A failure is what a user can see
//! of it: the table grows, or the entry overflows. A search stops after 4096 entries, so large
//! tables fail slightly below the theoretical load, which assumes an unlimited search.

use koel::CuckooMap;
use koel::map::SipState;
use serde_json::json;
use testkit::keys::hashes;

use crate::args::ThresholdsArgs;
use crate::table::{Table, grouped};
use crate::{Failure, machine};

/// A number of hash functions and of slots per bucket.
pub(crate) struct Shape {
    pub(crate) hashes: usize,
    pub(crate) slots: usize,
    /// The load up to which almost every set of keys can be placed, as the number of buckets goes
    /// to infinity. Source: N. Fountoulakis, M. Khosla, K. Panagiotou, The Multiple-Orientability
    /// Thresholds for Random Hypergraphs (SODA 2011).
    pub(crate) threshold: f64,
    fill: fn(usize, u64) -> Filled,
}

/// The shapes under measurement.
pub(crate) const SHAPES: [Shape; 7] = [
    shape::<2, 1>(0.5),
    shape::<3, 1>(0.917_935),
    shape::<4, 1>(0.976_770),
    shape::<2, 2>(0.897_012),
    shape::<2, 4>(0.980_370),
    shape::<2, 8>(0.997_853),
    shape::<4, 2>(0.998_241),
];

const fn shape<const HASHES: usize, const SLOTS: usize>(threshold: f64) -> Shape {
    Shape { hashes: HASHES, slots: SLOTS, threshold, fill: fill::<HASHES, SLOTS> }
}

/// A table at its first failure.
struct Filled {
    keys: usize,
    load: f64,
}

/// Tables of one shape and about one size at their first failures: means.
pub(crate) struct Threshold {
    pub(crate) shape: &'static Shape,
    pub(crate) keys: u64,
    pub(crate) load: f64,
}

/// Fills a table of about `slots` slots.
fn fill<const HASHES: usize, const SLOTS: usize>(slots: usize, seed: u64) -> Filled {
    let hasher = SipState::with_key(u128::from(seed).to_le_bytes());
    let empty = |capacity| {
        CuckooMap::<u64, (), _, HASHES, SLOTS>::with_capacity_and_hasher(capacity, hasher.clone())
    };
    // A map asked for this many keys has a few slots more.
    let mut map = empty((slots * slots / empty(slots).slots().max(1)).max(1));
    let slots = map.slots();
    let mut keys = hashes(seed, u64::MAX);
    while map.slots() == slots && map.overflow_len() == 0 {
        keys.next().map(|key| map.insert(key, ()));
    }
    let keys = map.len() - 1;
    Filled { keys, load: keys as f64 / slots as f64 }
}

/// Measures every shape at this size.
pub(crate) fn measure(slots: u64, tables: u32) -> Result<Vec<Threshold>, Failure> {
    let slots = usize::try_from(slots)?;
    let of = |shape: &'static Shape| {
        let filled = (0..u64::from(tables)).map(|seed| (shape.fill)(slots, seed));
        let (mut keys, mut load) = (0, 0.0);
        for table in filled {
            keys += table.keys as u64;
            load += table.load;
        }
        Threshold { shape, keys: keys / u64::from(tables), load: load / f64::from(tables) }
    };
    Ok(SHAPES.iter().map(of).collect())
}

pub(crate) fn run(args: &ThresholdsArgs) -> Result<(), Failure> {
    let mut sizes = Vec::new();
    for &slots in &args.keys {
        machine::require_memory_of(slots)?;
        let measured = measure(slots, args.reps)?;
        if args.json {
            measured.iter().for_each(print_json);
        }
        sizes.push((slots, measured));
    }
    if !args.json {
        println!("Share of slots in use at the first failure, means of {} tables.\n", args.reps);
        print!("{}", table(&sizes).plain());
    }
    Ok(())
}

fn print_json(threshold: &Threshold) {
    let line = json!({
        "hashes": threshold.shape.hashes,
        "slots": threshold.shape.slots,
        "keys": threshold.keys,
        "load": threshold.load,
        "threshold": threshold.shape.threshold,
    });
    println!("{line}");
}

/// One row per shape, one column per size.
pub(crate) fn table(sizes: &[(u64, Vec<Threshold>)]) -> Table {
    let mut heading = vec!["hashes x slots".to_string(), "theory".into()];
    heading.extend(sizes.iter().map(|(slots, _)| format!("{} slots", grouped(*slots))));
    let mut table = Table::new(&heading.iter().map(String::as_str).collect::<Vec<_>>());
    for (row, shape) in SHAPES.iter().enumerate() {
        let mut cells = vec![shape.name(), format!("{:.4}", shape.threshold)];
        cells.extend(sizes.iter().map(|(_, measured)| format!("{:.4}", measured[row].load)));
        table.push(cells);
    }
    table
}

impl Shape {
    pub(crate) fn name(&self) -> String {
        format!("{} x {}", self.hashes, self.slots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The probability that a Poisson variable with this mean is at least `least`.
    fn at_least(mean: f64, least: usize) -> f64 {
        let mut term = (-mean).exp();
        let mut below = 0.0;
        for count in 0..least {
            below += term;
            term *= mean / (count + 1) as f64;
        }
        1.0 - below
    }

    /// The formula of the source, solved by bisection.
    fn threshold(hashes: usize, slots: usize) -> f64 {
        let excess =
            |x: f64| x * at_least(x, slots) / at_least(x, slots + 1) - (hashes * slots) as f64;
        let (mut low, mut high) = (1e-4, 100.0);
        for _ in 0..100 {
            let middle = f64::midpoint(low, high);
            if excess(middle) < 0.0 { low = middle } else { high = middle }
        }
        let others = i32::try_from(hashes - 1).unwrap();
        low / (hashes as f64 * at_least(low, slots).powi(others)) / slots as f64
    }

    #[test]
    fn the_published_thresholds_are_those_of_the_formula() {
        for shape in &SHAPES {
            let exact = threshold(shape.hashes, shape.slots);
            assert!((shape.threshold - exact).abs() < 2e-4, "{}: {exact}", shape.name());
        }
    }
}
