//! Computes memory, false-positive rate or number of keys of a filter from the other two, for Koel
//! and for other filters. The command `koel plan` and the page in `web/` print the result.
//!
//! Koel's rows come from the planner that builds filters, so the size is that of the file, to the
//! byte. The other rows come from formulas ([`Family`]), without headers.
//!
//! If memory is given, a binary search finds the lowest rate or the most keys that fit. Cost: at
//! most some hundred plans, and no memory.
//!
//! ```
//! use koel_plan::{Question, compare};
//!
//! let rows = compare(Question::Memory { keys: 10_000_000, fpr: 0.001 })?;
//! let small = rows[0].answer.expect("possible");
//! assert!(small.bits_per_key < 12.5);
//! # Ok::<(), koel::BuildError>(())
//! ```
#![forbid(unsafe_code)]

mod families;

use std::ops::RangeInclusive;

use koel::{BuildError, Builder, CuckooFilter, Plan, Prefer};

pub use families::Family;

/// The initial capacity of a growable filter for an unknown number of keys.
pub const GROW_FROM: u64 = 1000;
/// The number of distinct keys up to which such a filter keeps its false-positive rate.
pub const GROW_TO: u64 = 1_000_000_000;

/// The false-positive rates that a row may have. With a higher one nearly every answer is wrong,
/// and hashes of 64 bits reach no lower one.
const RATES: RangeInclusive<f64> = 5.5e-20..=0.99;

/// The figure to compute, with the two that are given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Question {
    /// How many bytes?
    Memory {
        /// Distinct keys.
        keys: u64,
        /// The false-positive rate.
        fpr: f64,
    },
    /// Which false-positive rate?
    Rate {
        /// Distinct keys.
        keys: u64,
        /// Bytes.
        memory: u64,
    },
    /// How many distinct keys?
    Keys {
        /// The false-positive rate.
        fpr: f64,
        /// Bytes.
        memory: u64,
    },
}

/// A filter, and what it can do.
#[derive(Clone, Debug)]
pub struct Row {
    /// The kind of filter, for Koel with the layout of its buckets.
    pub name: String,
    /// Whether keys can be added one by one.
    pub can_add: bool,
    /// Whether keys can be removed and counted.
    pub can_remove: bool,
    /// Whether it can grow without its keys.
    pub can_grow: bool,
    /// All three figures; `None` if the filter cannot have the two that are given.
    pub answer: Option<Answer>,
}

/// The figures of a filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// Distinct keys.
    pub keys: u64,
    /// The false-positive rate when full: for Koel often a little lower than requested.
    pub fpr: f64,
    /// Bytes.
    pub memory: u64,
    /// Bits per key.
    pub bits_per_key: f64,
}

/// The answers of all filters. The first row is the filter that `koel build` builds.
///
/// # Errors
/// [`BuildError`] if keys and rate are given and no filter can be built for them.
pub fn compare(question: Question) -> Result<Vec<Row>, BuildError> {
    if let Question::Memory { keys, fpr } = question {
        fixed(keys, fpr, Prefer::Small)?;
    }
    let mut rows = vec![
        koel_row("Koel, small", question, Prefer::Small),
        koel_row("Koel, fast", question, Prefer::Fast),
        growable_row(question),
    ];
    rows.extend(Family::ALL.map(|family| other_row(family, question)));
    Ok(rows)
}

/// Makes a builder with a capacity of [`GROW_TO`] start small and grow.
#[must_use]
pub fn unbounded(builder: Builder<CuckooFilter>) -> Builder<CuckooFilter> {
    builder.grow_from(GROW_FROM)
}

/// The least memory with which Koel would have an answer, for how many keys.
///
/// # Errors
/// [`BuildError`] if it would have none with any memory.
pub fn least(question: Question) -> Result<(u64, u64), BuildError> {
    let (keys, fpr) = match question {
        Question::Memory { keys, fpr } => (keys, fpr),
        Question::Rate { keys, .. } => (keys, *RATES.end()),
        Question::Keys { fpr, .. } => (1, fpr),
    };
    fixed(keys, fpr, Prefer::Small).map(|plan| (plan.size_in_bytes as u64, keys))
}

/// The rate to build the filter of this answer with: the given one, or the computed one, rounded up
/// so that the same layout is chosen.
#[must_use]
pub fn rate_to_build(question: Question, found: &Answer) -> String {
    match question {
        Question::Memory { fpr, .. } | Question::Keys { fpr, .. } => fpr.to_string(),
        Question::Rate { .. } => format!("{:.2e}", found.fpr * 1.005),
    }
}

fn koel_row(name: &str, question: Question, prefer: Prefer) -> Row {
    Row::koel(name, answer(question, |keys, fpr| Some(planned(fixed(keys, fpr, prefer).ok()?))))
}

/// The filter that `koel build` builds.
fn fixed(keys: u64, fpr: f64, prefer: Prefer) -> Result<Plan, BuildError> {
    CuckooFilter::builder(keys, fpr).prefer(prefer).plan()
}

/// The filter that `koel build --grow` builds.
fn growable_row(question: Question) -> Row {
    let found = answer(question, |keys, fpr| {
        let builder = unbounded(CuckooFilter::builder(GROW_TO, fpr));
        let plan = builder.plan_grown(keys).ok();
        // The most that there can be stands for more.
        let (plan, answer) = planned(plan.filter(|plan| plan.size_in_bytes < usize::MAX)?);
        Some((plan, Answer { fpr, ..answer }))
    });
    Row::koel("Koel, growable", found)
}

impl Row {
    fn koel(name: &str, found: Option<(Plan, Answer)>) -> Self {
        Self {
            name: found.map_or(name.to_owned(), |(plan, _)| format!("{name} ({})", plan.layout)),
            can_add: true,
            can_remove: true,
            can_grow: found.is_some_and(|(plan, _)| plan.growth_limit.is_some()),
            answer: found.map(|(_, answer)| answer),
        }
    }
}

fn planned(plan: Plan) -> (Plan, Answer) {
    let answer = Answer {
        keys: plan.capacity,
        fpr: plan.false_positive_rate,
        memory: plan.size_in_bytes as u64,
        bits_per_key: plan.bits_per_key,
    };
    (plan, answer)
}

/// Answers the question with `plan`, the filter for keys and a false-positive rate.
fn answer(
    question: Question,
    plan: impl Fn(u64, f64) -> Option<(Plan, Answer)>,
) -> Option<(Plan, Answer)> {
    let fits = |keys: u64, fpr: f64, memory: u64| {
        plan(keys, fpr).filter(|(_, answer)| answer.memory <= memory)
    };
    match question {
        Question::Memory { keys, fpr } => plan(keys, fpr),
        Question::Rate { keys, memory } => smallest(-64.0, RATES.end().log2(), |exponent| {
            fits(keys, exponent.exp2(), memory).is_some()
        })
        .and_then(|exponent| fits(keys, exponent.exp2(), memory)),
        // Searches the negated exponent: the fewer keys, the better they fit.
        Question::Keys { fpr, memory } => {
            let keys = |exponent: f64| to_u64((-exponent).exp2().floor());
            smallest(-60.0, 0.0, |exponent| fits(keys(exponent), fpr, memory).is_some())
                .and_then(|exponent| fits(keys(exponent), fpr, memory))
        }
    }
}

fn other_row(family: Family, question: Question) -> Row {
    let answer = match question {
        Question::Memory { keys, fpr } => family.bits_per_key(fpr).map(|bits_per_key| Answer {
            keys,
            fpr,
            memory: to_u64((bits_per_key * keys as f64 / 8.0).ceil()),
            bits_per_key,
        }),
        Question::Rate { keys, memory } => {
            let most = memory as f64 * 8.0 / keys as f64;
            family.rate(most).filter(|fpr| fpr <= RATES.end()).map(|fpr| {
                let fpr = fpr.max(*RATES.start());
                let bits_per_key = family.bits_per_key(fpr).map_or(most, |bits| bits.min(most));
                let bytes = to_u64((bits_per_key * keys as f64 / 8.0).ceil());
                Answer { keys, fpr, memory: bytes.min(memory), bits_per_key }
            })
        }
        Question::Keys { fpr, memory } => family.bits_per_key(fpr).map(|bits_per_key| Answer {
            keys: to_u64((memory as f64 * 8.0 / bits_per_key).floor()),
            fpr,
            memory,
            bits_per_key,
        }),
    };
    let answer = answer.filter(|answer| answer.keys > 0);
    Row {
        name: family.name().to_owned(),
        can_add: family.can_add(),
        can_remove: false,
        can_grow: false,
        answer,
    }
}

/// The smallest good value between `low` and `high`, by binary search. `None` if there is none.
///
/// Every value above a good one must be good.
fn smallest(low: f64, high: f64, good: impl Fn(f64) -> bool) -> Option<f64> {
    if !good(high) {
        return None;
    }
    let (mut bad, mut best) = (low, high);
    for _ in 0..60 {
        let middle = (bad + best) / 2.0;
        if good(middle) { best = middle } else { bad = middle }
    }
    Some(best)
}

/// The nearest whole number, at least 0 and at most `u64::MAX`.
#[expect(
    clippy::cast_possible_truncation,
    reason = "`as` from a float saturates, which is what the name promises"
)]
fn to_u64(value: f64) -> u64 {
    value.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Some rows cannot have any two figures, but none may miss those that are given.
    #[test]
    fn each_answer_keeps_the_two_figures_that_are_given() {
        for keys in [1, 1000, 121_570, 10_000_000] {
            for fpr in [0.3, 0.01, 0.001, 1e-6, 1e-9] {
                let rows = compare(Question::Memory { keys, fpr }).unwrap();
                for (i, answer) in
                    rows.iter().enumerate().filter_map(|(i, row)| Some((i, row.answer?)))
                {
                    assert!(answer.keys == keys && answer.fpr <= fpr, "{i}: {answer:?}");
                    check_the_inverse(i, &answer, fpr);
                }
            }
        }
    }

    /// The memory of an answer holds its keys at its rate.
    fn check_the_inverse(row: usize, answer: &Answer, fpr: f64) {
        let Answer { keys, memory, .. } = *answer;
        let by_rate = compare(Question::Rate { keys, memory }).unwrap();
        if let Some(found) = by_rate[row].answer {
            assert!(found.memory <= memory && found.keys == keys, "{row}: {found:?}");
            assert!(found.fpr <= fpr * (1.0 + 1e-6), "{row}: {found:?}, {answer:?}");
        }
        let by_keys = compare(Question::Keys { fpr, memory }).unwrap();
        let found = by_keys[row].answer.unwrap();
        assert!(found.memory <= memory, "{row}: {found:?}");
        assert!(found.keys + 1 >= keys, "{row}: {found:?}, {answer:?}");
    }

    #[test]
    fn what_no_filter_can_be_is_an_error() {
        assert!(compare(Question::Memory { keys: 1000, fpr: 1e-30 }).is_err());
        let rows = compare(Question::Keys { fpr: 0.001, memory: 10 }).unwrap();
        assert_eq!(rows[0].answer, None);
        let (memory, keys) = least(Question::Keys { fpr: 0.001, memory: 10 }).unwrap();
        assert!(memory > 10 && keys == 1);
    }
}
