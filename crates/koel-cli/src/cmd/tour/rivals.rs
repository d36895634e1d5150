//! The tour's comparison: the same list in a `HashSet` and in a Bloom filter, asked the same questions.
//!
//! The Bloom filter is a real one (crate fastbloom), built for the same keys and rate. The memory of the `HashSet` is computed from what
//! it holds: its table has 8/7 of its capacity in buckets, each a `String` (three words) and a control byte; the text of each name lies
//! on the heap. What the allocator adds to each of those is not in it, so the truth is somewhat more.
#![forbid(unsafe_code)]

use std::collections::HashSet;
use std::time::Instant;

use fastbloom::BloomFilter;
use koel::FilterView;

use super::{PROMISE, story::Story};
use crate::failure::Failure;
use crate::output;
use crate::quantity::{bytes, grouped};

pub(crate) fn compare(
    story: &mut Story,
    koel: &FilterView<'_>,
    set: &HashSet<String>,
    absent: &[String],
) -> Result<(), Failure> {
    story.chapter(
        "What else one could use",
        "The same list in a HashSet, whose memory is computed, and in a Bloom filter (crate fastbloom), built \
         for the same keys and error rate; the same million names asked of each.",
    )?;
    let mut bloom = BloomFilter::with_false_pos(PROMISE).seed(&0).expected_items(set.len());
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
    output::print(&format!(
        "\n   {:16} {:>10}  {:>12}  {:>12}  {}\n",
        "", "memory", "wrong", "a question", "can forget"
    ))?;
    for row in &rows {
        let nanoseconds = format!("{:.0} ns", row.nanoseconds);
        output::print(&format!(
            "   {:16} {:>10}  {:>12}  {nanoseconds:>12}  {}\n",
            row.name,
            bytes(row.bytes),
            grouped(row.wrong),
            row.forgets
        ))?;
    }
    output::print("\n")?;
    let smaller = rows[0].bytes > 10 * rows[2].bytes;
    story.promise(smaller && missed == 0, "less than a tenth of the memory of a HashSet")
}

struct Row {
    name: &'static str,
    bytes: u64,
    forgets: &'static str,
    /// Absent names taken for members.
    wrong: u64,
    nanoseconds: f64,
}

impl Row {
    fn measure(
        name: &'static str,
        bytes: u64,
        forgets: &'static str,
        absent: &[String],
        contains: impl Fn(&str) -> bool,
    ) -> Self {
        let started = Instant::now();
        let wrong = absent.iter().filter(|name| contains(name)).count() as u64;
        let nanoseconds = started.elapsed().as_secs_f64() * 1e9 / absent.len() as f64;
        Self { name, bytes, forgets, wrong, nanoseconds }
    }
}

fn set_bytes(set: &HashSet<String>) -> u64 {
    let buckets = set.capacity() / 7 * 8;
    let table = buckets * (size_of::<String>() + 1);
    let text: usize = set.iter().map(String::capacity).sum();
    (table + text) as u64
}
