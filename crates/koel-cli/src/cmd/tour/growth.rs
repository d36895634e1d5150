//! The growth chapter of the tour: a filter with room for a thousand names grows to a million.
//!
//! It is built for a false-positive rate at a million keys, and grows without the original keys.
#![forbid(unsafe_code)]

use std::collections::HashSet;

use koel::CuckooFilter;

use super::names;
use super::rate::{PROMISED_RATE, is_within};
use super::story::Story;
use crate::failure::Failure;
use crate::filter::sizing::build_failure;
use crate::quantity::{bytes, grouped, rate};

const FIRST: u64 = 1000;
const DOUBLINGS: u32 = 10;
/// The load factor of a grown filter is never lower than this.
const LOAD: f64 = 0.85;

pub(super) fn grow(
    story: &mut Story,
    listed: &HashSet<String>,
    absent: &[String],
) -> Result<(), Failure> {
    let last = FIRST << DOUBLINGS;
    story.chapter(
        "Growing",
        &format!(
            "A filter with room for {} keys grows while {} new names are inserted. It does not \
             need the earlier keys to do so. At each doubling, the million absent names are looked \
             up.",
            grouped(FIRST),
            grouped(last)
        ),
    )?;
    let filter = CuckooFilter::builder(last, PROMISED_RATE).grow_from(FIRST).build();
    let mut filter = filter.map_err(|error| build_failure(&error))?;
    let mut table = format!(
        "\n   {:>10} {:>11} {:>13} {:>12} {:>16} {:>10}\n",
        "keys", "memory", "bits per key", "load factor", "false positives", "promised"
    );
    let mut names = names::absent(listed).skip(absent.len());
    let mut inserted: Vec<String> = Vec::new();
    let (mut room, mut kept, mut full_enough) = (true, true, true);
    for doubling in 0..=DOUBLINGS {
        let keys = usize::try_from(FIRST << doubling).unwrap_or(usize::MAX);
        let before = inserted.len();
        inserted.extend(names.by_ref().take(keys - before));
        room &= filter.insert_many(&inserted[before..]).is_ok();
        let wrong = count_found(&filter, absent);
        kept &= is_within(wrong, absent.len());
        full_enough &= doubling < 2 || filter.load_factor() >= LOAD;
        table += &row(&filter, wrong, absent.len());
    }
    let missed = inserted.len() - count_found(&filter, &inserted);
    story.lines(&(table + "\n"))?;
    story.say(&format!("Of the {} inserted names, {missed} were missed.", grouped(last)))?;
    let fixed = CuckooFilter::builder(last, PROMISED_RATE).plan();
    let fixed = fixed.map_err(|error| build_failure(&error))?;
    story.say(&format!(
        "Growth has a price: a filter built for {} names would take {:.2} bits per key \
         (computed), and an insert in it is faster.",
        grouped(last),
        fixed.bits_per_key
    ))?;
    story.promise(room && missed == 0, "a growable filter takes every key and loses none")?;
    story.promise(kept, "at every size the false-positive rate is at most the promised one")?;
    story.promise(
        full_enough,
        &format!(
            "from {} keys on, at least {:.0} % of the slots are in use",
            grouped(4 * FIRST),
            LOAD * 100.0
        ),
    )
}

/// The number of names that the filter reports as present.
fn count_found(filter: &CuckooFilter, names: &[String]) -> usize {
    let mut found = vec![false; names.len()];
    filter.contains_many(names, &mut found);
    found.iter().filter(|&&found| found).count()
}

fn row(filter: &CuckooFilter, wrong: usize, lookups: usize) -> String {
    let size = filter.size_in_bytes();
    format!(
        "   {:>10} {:>11} {:>13.2} {:>12.3} {:>16} {:>10}\n",
        grouped(filter.len()),
        bytes(size as u64),
        size as f64 * 8.0 / filter.len() as f64,
        filter.load_factor(),
        rate(wrong as f64 / lookups as f64),
        rate(PROMISED_RATE)
    )
}
