//! `koel plan`: computes memory, false-positive rate or number of keys from the other two.
//!
//! It does so for Koel and for other filters. Koel's rows come from the planner of `koel build`, so
//! the size is that of the file, to the byte. The other rows come from formulas (`families`).
//!
//! If memory is given, a binary search finds the lowest rate or the most keys that fit. Cost: at
//! most some hundred plans, and no memory.
#![forbid(unsafe_code)]

use std::ops::RangeInclusive;

use koel::{BuildError, CuckooFilter, Plan, Prefer};
use serde_json::{Value, json};

use crate::failure::{Failure, Outcome};
use crate::families::Family;
use crate::output;
use crate::quantity::{self, bytes, counted, grouped, to_u64};
use crate::sizing::{self, build_failure};

/// The false-positive rates that a row may have. With a higher one nearly every answer is wrong,
/// and hashes of 64 bits reach no lower one.
const RATES: RangeInclusive<f64> = 5.5e-20..=0.99;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel plan --keys 10M --fpr 0.1%               how much memory?
  koel plan --keys 10M --memory 16MiB           what false-positive rate?
  koel plan --fpr 1e-6 --memory 1.5GiB          how many keys?

Give two of the three options; the table shows the third figure.")]
pub(crate) struct Args {
    /// Number of distinct keys, such as 121570 or 10M
    #[arg(long, value_name = "N", value_parser = quantity::parse_keys)]
    #[arg(allow_negative_numbers = true)]
    keys: Option<u64>,

    /// False-positive rate, such as 0.001, 0.1% or 1/1000
    #[arg(long, value_name = "P", value_parser = quantity::parse_rate)]
    #[arg(allow_negative_numbers = true)]
    fpr: Option<f64>,

    /// Memory, such as 64M or 1.5GiB (units of 1024), or 64MB (units of 1000)
    #[arg(long, value_name = "SIZE", value_parser = quantity::parse_size)]
    #[arg(allow_negative_numbers = true)]
    memory: Option<u64>,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

/// The figure to compute, with the two that are given.
#[derive(Clone, Copy, Debug)]
enum Question {
    Memory { keys: u64, fpr: f64 },
    Rate { keys: u64, memory: u64 },
    Keys { fpr: f64, memory: u64 },
}

/// One line of the table.
#[derive(Clone, Debug)]
struct Row {
    name: String,
    can_add: bool,
    /// Whether keys can be removed and counted.
    can_remove: bool,
    can_grow: bool,
    answer: Option<Answer>,
}

#[derive(Clone, Copy, Debug)]
struct Answer {
    keys: u64,
    /// The false-positive rate when full: for Koel often a little lower than requested.
    fpr: f64,
    memory: u64,
    bits_per_key: f64,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let question = match (args.keys, args.fpr, args.memory) {
        (Some(keys), Some(fpr), None) => Question::Memory { keys, fpr },
        (Some(keys), None, Some(memory)) => Question::Rate { keys, memory },
        (None, Some(fpr), Some(memory)) => Question::Keys { fpr, memory },
        _ => {
            return Err(Failure::Usage(
                "give two of --keys, --fpr and --memory, such as `koel plan --keys 10M --fpr 0.1%`"
                    .to_owned(),
            ));
        }
    };
    if let Question::Memory { keys, fpr } = question {
        CuckooFilter::builder(keys, fpr).plan().map_err(|error| build_failure(&error))?;
    }
    let mut rows = vec![
        koel_row("Koel, small", question, Prefer::Small),
        koel_row("Koel, fast", question, Prefer::Fast),
        growable_row(question),
    ];
    rows.extend(Family::ALL.map(|family| other_row(family, question)));
    let report =
        if args.json { output::json(&json_report(&rows)) } else { text_report(question, &rows) };
    output::print(&report)?;
    Ok(Outcome::Done)
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
        let builder = sizing::unbounded(CuckooFilter::builder(sizing::GROW_TO, fpr));
        let (plan, answer) = planned(builder.plan_grown(keys).ok()?);
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
            can_grow: found.is_none_or(|(plan, _)| plan.growth_limit.is_some()),
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

fn text_report(question: Question, rows: &[Row]) -> String {
    let (title, column) = match question {
        Question::Memory { keys, fpr } => {
            let rate = quantity::rate(fpr);
            (format!("{}, false-positive rate {rate}", counted(keys, "key")), "memory")
        }
        Question::Rate { keys, memory } => {
            (format!("{} in {}", counted(keys, "key"), bytes(memory)), "false positives")
        }
        Question::Keys { fpr, memory } => {
            (format!("false-positive rate {} in {}", quantity::rate(fpr), bytes(memory)), "keys")
        }
    };
    let lines: Vec<_> = rows.iter().map(|row| (row, figures(question, row.answer))).collect();
    let width = rows.iter().map(|row| row.name.len()).fold(0, usize::max);
    let bits_width = lines.iter().map(|(_, [bits, _])| bits.len()).fold(8, usize::max);
    let value_width = lines.iter().map(|(_, [_, value])| value.len()).fold(15, usize::max);
    let mut text = format!(
        "{title}\n\n{:width$}  {:>bits_width$}  {column:>value_width$}  \
         add  remove  count  grow\n",
        "filter", "bits/key"
    );
    for (row, [bits, value]) in &lines {
        let (add, remove, grow) = (yes(row.can_add), yes(row.can_remove), yes(row.can_grow));
        text += &format!(
            "{:width$}  {bits:>bits_width$}  {value:>value_width$}  \
             {add:3}  {remove:6}  {remove:5}  {grow}\n",
            row.name
        );
    }
    text += NOTES;
    text += &match rows[0].answer {
        Some(small) => format!(
            "\n  koel build INPUT --keys {} --fpr {} -o OUT\n",
            small.keys,
            rate_option(question, small)
        ),
        None => format!("\n{}\n", least(question)),
    };
    text
}

/// The cells of a row: bits per key, and the figure to compute.
fn figures(question: Question, answer: Option<Answer>) -> [String; 2] {
    let Some(answer) = answer else { return ["-".to_owned(), "not possible".to_owned()] };
    let value = match question {
        Question::Memory { .. } => bytes(answer.memory),
        Question::Rate { .. } => quantity::rate(answer.fpr),
        Question::Keys { .. } => grouped(answer.keys),
    };
    [format!("{:.2}", answer.bits_per_key), value]
}

/// The least memory with which there would be an answer for Koel.
fn least(question: Question) -> String {
    let (keys, fpr) = match question {
        Question::Memory { keys, fpr } => (keys, fpr),
        Question::Rate { keys, .. } => (keys, *RATES.end()),
        Question::Keys { fpr, .. } => (1, fpr),
    };
    match fixed(keys, fpr, Prefer::Small) {
        Ok(plan) => {
            let memory = bytes(plan.size_in_bytes as u64);
            format!("Koel needs at least {memory} for {}.", counted(keys, "key"))
        }
        Err(error) => format!("Koel: {error}."),
    }
}

const NOTES: &str = "
Koel rows have the size of the whole file. The growable row is a filter built with
`koel build --grow` that has grown to this many keys. Where the last column says yes, a filter can
also be made growable later with `koel grow`. Other rows are computed by formulas, without headers.
";

/// The value of `--fpr` for `koel build`: the given rate, or the computed one, rounded up so that
/// the same layout is chosen.
fn rate_option(question: Question, found: Answer) -> String {
    match question {
        Question::Memory { fpr, .. } | Question::Keys { fpr, .. } => fpr.to_string(),
        Question::Rate { .. } => format!("{:.2e}", found.fpr * 1.005),
    }
}

fn yes(can: bool) -> &'static str {
    if can { "yes" } else { "no" }
}

fn json_report(rows: &[Row]) -> Value {
    let filters = rows.iter().map(|row| {
        json!({
            "filter": row.name,
            "keys": row.answer.map(|answer| answer.keys),
            "fpr": row.answer.map(|answer| answer.fpr),
            "memory_in_bytes": row.answer.map(|answer| answer.memory),
            "bits_per_key": row.answer.map(|answer| answer.bits_per_key),
            "can_add": row.can_add,
            "can_remove": row.can_remove,
            "can_count": row.can_remove,
            "can_grow": row.can_grow,
        })
    });
    Value::Array(filters.collect())
}
