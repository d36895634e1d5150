//! The tour's growth: from a thousand names to a million, in a filter that was not told how many will come, only what is asked of it when they are a million.
#![forbid(unsafe_code)]

use std::collections::HashSet;

use koel::CuckooFilter;

use super::{PROMISE, names, story::Story, within};
use crate::failure::Failure;
use crate::output;
use crate::quantity::{bytes, grouped, rate};
use crate::sizing::refused;

const FIRST: u64 = 1000;
const DOUBLINGS: u32 = 10;
/// A filter that grows is never emptier than this, once it has.
const LOAD: f64 = 0.88;

pub(super) fn grow(
    story: &mut Story,
    listed: &HashSet<String>,
    absent: &[String],
) -> Result<(), Failure> {
    let last = FIRST << DOUBLINGS;
    story.chapter(
        "Growing",
        &format!(
            "A filter with room for {} keys grows, without being shown a key again, while {} names that are neither on the list nor among the million go in. \
             At each doubling the million are asked for.",
            grouped(FIRST),
            grouped(last)
        ),
    )?;
    let filter = CuckooFilter::builder(last, PROMISE).grow_from(FIRST).build();
    let mut filter = filter.map_err(|error| refused(&error))?;
    output::print(&format!(
        "\n   {:>10} {:>11} {:>13} {:>7} {:>11} {:>10}\n",
        "keys", "memory", "bits per key", "load", "wrong", "promised"
    ))?;
    let mut names = names::absent(listed).skip(absent.len());
    let mut held: Vec<String> = Vec::new();
    let (mut room, mut kept, mut full_enough) = (true, true, true);
    for doubling in 0..=DOUBLINGS {
        let keys = usize::try_from(FIRST << doubling).unwrap_or(usize::MAX);
        let before = held.len();
        held.extend(names.by_ref().take(keys - before));
        room &= filter.insert_many(&held[before..]).is_ok();
        let wrong = among(&filter, absent);
        kept &= within(wrong, absent.len());
        full_enough &= doubling < 2 || filter.load_factor() >= LOAD;
        output::print(&row(&filter, wrong, absent.len()))?;
    }
    let lost = held.len() - among(&filter, &held);
    output::print("\n")?;
    story.say(&format!("Of the {} that went in, {lost} are missed.", grouped(last)))?;
    story.promise(room && lost == 0, "a filter that grows takes every key and loses none")?;
    story.promise(kept, "at every size the error rate is at most the promised one")?;
    story.promise(
        full_enough,
        &format!(
            "from {} keys on {:.0} % of its slots or more are in use",
            grouped(4 * FIRST),
            LOAD * 100.0
        ),
    )
}

/// How many of the names are taken for members.
fn among(filter: &CuckooFilter, names: &[String]) -> usize {
    let mut found = vec![false; names.len()];
    filter.contains_many(names, &mut found);
    found.iter().filter(|&&found| found).count()
}

fn row(filter: &CuckooFilter, wrong: usize, asked: usize) -> String {
    let size = filter.size_in_bytes();
    format!(
        "   {:>10} {:>11} {:>13.2} {:>7.3} {:>11} {:>10}\n",
        grouped(filter.len()),
        bytes(size as u64),
        size as f64 * 8.0 / filter.len() as f64,
        filter.load_factor(),
        rate(wrong as f64 / asked as f64),
        rate(PROMISE)
    )
}
