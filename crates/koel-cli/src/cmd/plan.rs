//! `koel plan`: of keys, error rate and memory, two give the third, for Koel and for the filters one might use instead.
//!
//! Koel's rows come from the planner that `koel build` uses, so the size is that of the file to the byte; the others from formulas
//! (`families`). The size of a filter that has grown depends on how far it has come within a doubling: the row says what it is at most. Where memory is given, the smallest rate or the most keys that fit are found by halving: some fifty plans, no memory.
#![forbid(unsafe_code)]

use koel::{CuckooFilter, Layout, Plan, Prefer};
use serde_json::{Value, json};

use crate::failure::{Failure, Outcome};
use crate::families::Family;
use crate::output;
use crate::quantity::{self, bytes, counted, grouped, to_u64};
use crate::sizing::{self, refused};

/// The load of a filter that grows is never much below this; on the way it is 0.92 on average.
const EMPTIEST_LOAD: f64 = 0.89;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Give two of the three; the table shows the third.

Examples:
  koel plan --keys 10M --fpr 0.1%               how much memory?
  koel plan --keys 10M --memory 16MiB           what error rate?
  koel plan --fpr 1e-6 --memory 1.5GiB          how many keys?")]
pub(crate) struct Args {
    /// Different keys, such as 121570 or 10M
    #[arg(long, value_name = "N", value_parser = quantity::parse_keys)]
    keys: Option<u64>,

    /// Share of absent keys that may look present: 0.001, 0.1% or 1/1000
    #[arg(long, value_name = "P", value_parser = quantity::parse_rate)]
    fpr: Option<f64>,

    /// Memory, such as 64M, 1.5GiB (units of 1024) or 64MB (of 1000)
    #[arg(long, value_name = "SIZE", value_parser = quantity::parse_size)]
    memory: Option<u64>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What is asked for: the two that are known.
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
    inserts: bool,
    /// Deletes and counts.
    forgets: bool,
    grows: bool,
    answer: Option<Answer>,
}

#[derive(Clone, Copy, Debug)]
struct Answer {
    keys: u64,
    /// The error rate when full: for Koel often a little less than was asked for.
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
        CuckooFilter::builder(keys, fpr).plan().map_err(|error| refused(&error))?;
    }
    let mut rows = vec![
        koel_row("Koel, small", question, Prefer::Small),
        koel_row("Koel, fast", question, Prefer::Fast),
        growing_row(question),
    ];
    rows.extend(Family::ALL.map(|family| other_row(family, question)));
    let report =
        if args.json { output::json(&json_report(&rows)) } else { text_report(question, &rows) };
    output::print(&report)?;
    Ok(Outcome::Done)
}

fn koel_row(name: &str, question: Question, prefer: Prefer) -> Row {
    let found = answer(question, |keys, fpr| {
        let plan = CuckooFilter::builder(keys, fpr).prefer(prefer).plan().ok()?;
        Some((plan.layout, planned(plan)))
    });
    Row::koel(name, found)
}

/// The filter that `koel build --grow` makes, where growth leaves it emptiest.
fn growing_row(question: Question) -> Row {
    let found = answer(question, |keys, fpr| {
        let plan = sizing::growing(CuckooFilter::builder(sizing::GROW_TO, fpr)).plan().ok()?;
        let bucket = f64::from(plan.layout.bucket_bits()) / 8.0;
        let header = plan.size_in_bytes as f64 - plan.buckets as f64 * bucket;
        let grown = keys as f64 / EMPTIEST_LOAD / 4.0 * bucket + header;
        let memory = (plan.size_in_bytes as u64).max(to_u64(grown.ceil()));
        let bits_per_key = memory as f64 * 8.0 / keys as f64;
        Some((plan.layout, Answer { keys, fpr, memory, bits_per_key }))
    });
    Row::koel("Koel, growing", found)
}

impl Row {
    fn koel(name: &str, found: Option<(Layout, Answer)>) -> Self {
        Self {
            name: found.map_or(name.to_owned(), |(layout, _)| format!("{name} ({layout})")),
            inserts: true,
            forgets: true,
            grows: found.is_none_or(|(layout, _)| layout.can_grow()),
            answer: found.map(|(_, answer)| answer),
        }
    }
}

/// The answer of those that `plan` makes for keys and an error rate.
fn answer(
    question: Question,
    plan: impl Fn(u64, f64) -> Option<(Layout, Answer)>,
) -> Option<(Layout, Answer)> {
    let fits = |keys: u64, fpr: f64, memory: u64| {
        plan(keys, fpr).filter(|(_, answer)| answer.memory <= memory)
    };
    match question {
        Question::Memory { keys, fpr } => plan(keys, fpr),
        Question::Rate { keys, memory } => {
            smallest(-64.0, -0.01, |exponent| fits(keys, exponent.exp2(), memory).is_some())
                .and_then(|exponent| fits(keys, exponent.exp2(), memory))
        }
        // The search runs over the negative, because fewer keys fit more easily.
        Question::Keys { fpr, memory } => {
            let keys = |exponent: f64| to_u64((-exponent).exp2().floor());
            smallest(-60.0, 0.0, |exponent| fits(keys(exponent), fpr, memory).is_some())
                .and_then(|exponent| fits(keys(exponent), fpr, memory))
        }
    }
}

fn planned(plan: Plan) -> Answer {
    Answer {
        keys: plan.capacity,
        fpr: plan.false_positive_rate,
        memory: plan.size_in_bytes as u64,
        bits_per_key: plan.bits_per_key,
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
            let bits_per_key = memory as f64 * 8.0 / keys as f64;
            family.rate(bits_per_key).map(|fpr| Answer { keys, fpr, memory, bits_per_key })
        }
        Question::Keys { fpr, memory } => family.bits_per_key(fpr).map(|bits_per_key| Answer {
            keys: to_u64((memory as f64 * 8.0 / bits_per_key).floor()),
            fpr,
            memory,
            bits_per_key,
        }),
    };
    Row {
        name: family.name().to_owned(),
        inserts: family.inserts(),
        forgets: false,
        grows: false,
        answer,
    }
}

/// The smallest value between `low` and `high` that is good, where all above a good one are; nothing if `high` is not.
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
            (format!("{}, error rate {}", counted(keys, "key"), quantity::rate(fpr)), "memory")
        }
        Question::Rate { keys, memory } => {
            (format!("{} in {}", counted(keys, "key"), bytes(memory)), "error rate")
        }
        Question::Keys { fpr, memory } => {
            (format!("error rate {} in {}", quantity::rate(fpr), bytes(memory)), "keys")
        }
    };
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    let mut text = format!(
        "{title}\n\n{:width$}  {:>8}  {column:>15}  add  delete  count  grow\n",
        "filter", "bits/key"
    );
    for row in rows {
        let (bits, value) = match (row.answer, question) {
            (None, _) => ("-".to_owned(), "not possible".to_owned()),
            (Some(answer), Question::Memory { .. }) => (bits(answer), bytes(answer.memory)),
            (Some(answer), Question::Rate { .. }) => (bits(answer), quantity::rate(answer.fpr)),
            (Some(answer), Question::Keys { .. }) => (bits(answer), grouped(answer.keys)),
        };
        let (add, forget, grow) = (yes(row.inserts), yes(row.forgets), yes(row.grows));
        text += &format!(
            "{:width$}  {bits:>8}  {value:>15}  {add:3}  {forget:6}  {forget:5}  {grow}\n",
            row.name
        );
    }
    text += "\nKoel: the whole file, as `koel build` makes it; growing: as `koel build --grow` does, at most, when it has grown to so many keys.\n\
         `koel grow` lets a Koel filter grow later on, where the last column says so. Others: by formula, without headers.\n";
    if let Some(small) = rows[0].answer {
        text += &format!(
            "\n  koel build INPUT --keys {} --fpr {} -o OUT\n",
            small.keys,
            to_ask(question, small)
        );
    }
    text
}

/// The rate to ask `koel build` for: as it was asked here, or the one found, rounded up so that the same layout is chosen.
fn to_ask(question: Question, found: Answer) -> String {
    match question {
        Question::Memory { fpr, .. } | Question::Keys { fpr, .. } => fpr.to_string(),
        Question::Rate { .. } => format!("{:.2e}", found.fpr * 1.005),
    }
}

fn bits(answer: Answer) -> String {
    format!("{:.2}", answer.bits_per_key)
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
            "can_add": row.inserts,
            "can_delete": row.forgets,
            "can_count": row.forgets,
            "can_grow": row.grows,
        })
    });
    Value::Array(filters.collect())
}
