//! The comparison in the tour: the same list in a `HashSet` and in a Bloom filter.
//!
//! The Bloom filter (crate fastbloom) is built for the same keys and rate. The memory of the
//! `HashSet` is computed: its table has 8/7 as many buckets as its capacity, each with a `String`
//! (three words) and a control byte, and the text of each name is on the heap. The overhead of the
//! allocator is not included, so the real figure is higher.
#![forbid(unsafe_code)]

use std::collections::HashSet;
use std::time::Instant;

use fastbloom::BloomFilter;
use koel::FilterView;

use super::rate::PROMISED_RATE;
use super::story::Story;
use crate::failure::Failure;
use crate::quantity::{bytes, grouped};

pub(crate) fn compare(
    story: &mut Story,
    koel: &FilterView<'_>,
    set: &HashSet<String>,
    absent: &[String],
) -> Result<(), Failure> {
    story.chapter(
        "Alternatives",
        "The same list is in a HashSet and in a Bloom filter (crate fastbloom) for the same keys \
         and false-positive rate. The same million absent names are looked up in each. The memory \
         of the HashSet is computed.",
    )?;
    let mut bloom = BloomFilter::with_false_pos(PROMISED_RATE).seed(&0).expected_items(set.len());
    bloom.insert_all(set);
    let missed = set.iter().filter(|name| !bloom.contains(name.as_str())).count();
    let rows = [
        Row::measure("HashSet<String>", set_bytes(set), "yes", absent, |name| set.contains(name)),
        Row::measure("Bloom filter", (bloom.num_bits() / 8) as u64, "no", absent, |name| {
            bloom.contains(name)
        }),
        Row::measure("Koel", koel.size_in_bytes() as u64, "yes", absent, |name| {
            koel.contains(name)
        }),
    ];
    let mut table = format!(
        "\n   {:16} {:>10}  {:>15}  {:>12}  {}\n",
        "", "memory", "false positives", "lookup time", "removals"
    );
    for row in &rows {
        let nanoseconds = format!("{:.0} ns", row.nanoseconds);
        table += &format!(
            "   {:16} {:>10}  {:>15}  {nanoseconds:>12}  {}\n",
            row.name,
            bytes(row.bytes),
            grouped(row.false_positives),
            row.removals
        );
    }
    story.lines(&(table + "\n"))?;
    let smaller = rows[0].bytes > 10 * rows[2].bytes;
    story.promise(smaller && missed == 0, "a filter takes less than a tenth of a HashSet's memory")
}

struct Row {
    name: &'static str,
    bytes: u64,
    /// Whether keys can be removed.
    removals: &'static str,
    false_positives: u64,
    nanoseconds: f64,
}

impl Row {
    fn measure(
        name: &'static str,
        bytes: u64,
        removals: &'static str,
        absent: &[String],
        contains: impl Fn(&str) -> bool,
    ) -> Self {
        let started = Instant::now();
        let false_positives = absent.iter().filter(|name| contains(name)).count() as u64;
        let nanoseconds = started.elapsed().as_secs_f64() * 1e9 / absent.len() as f64;
        Self { name, bytes, removals, false_positives, nanoseconds }
    }
}

fn set_bytes(set: &HashSet<String>) -> u64 {
    let buckets = set.capacity() / 7 * 8;
    let table = buckets * (size_of::<String>() + 1);
    let text: usize = set.iter().map(String::capacity).sum();
    (table + text) as u64
}
