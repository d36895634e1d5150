//! `koel plan`: computes memory, false-positive rate or number of keys from the other two.
//!
//! The crate `koel-plan` computes, for Koel and for other filters. This file prints.

use koel::CuckooFilter;
use koel_plan::{Answer, Question, Row, compare};
use serde_json::{Value, json};

use crate::failure::{Failure, Outcome};
use crate::filter::sizing;
use crate::output;
use crate::quantity::{self, bytes, counted, grouped};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel plan --keys 10M --fpr 0.1%               how much memory?
  koel plan --keys 10M --memory 16MiB           what false-positive rate?
  koel plan --fpr 1e-6 --memory 1.5GiB          how many keys?

Give two of the three options; the table shows the third figure. Without --fpr, one of the others is
enough: the rate is then 0.1%, as that of koel build.")]
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

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let usual = args.fpr.unwrap_or(quantity::USUAL_RATE);
    let question = match (args.keys, args.fpr, args.memory) {
        (Some(keys), _, None) => Question::Memory { keys, fpr: usual },
        (Some(keys), None, Some(memory)) => Question::Rate { keys, memory },
        (None, _, Some(memory)) => Question::Keys { fpr: usual, memory },
        _ => {
            return Err(Failure::Usage(
                "give --keys or --memory, or two of --keys, --fpr and --memory, such as `koel plan \
                 --keys 10M --fpr 0.1%`"
                    .to_owned(),
            ));
        }
    };
    let rows = compare(question).map_err(|error| match question {
        Question::Memory { fpr, .. } => {
            let plan = |keys, fpr| CuckooFilter::builder(keys, fpr).plan();
            sizing::size_failure(fpr, &error, plan)
        }
        _ => sizing::build_failure(&error),
    })?;
    let report = if args.json {
        format!("{:#}\n", json_report(&rows))
    } else {
        text_report(question, &rows)
    };
    output::print(&report)?;
    Ok(Outcome::Done)
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
            koel_plan::rate_to_build(question, &small)
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
    match koel_plan::least(question) {
        Ok((memory, keys)) => {
            format!("Koel needs at least {} for {}.", bytes(memory), counted(keys, "key"))
        }
        Err(error) => format!("Koel: {error}."),
    }
}

const NOTES: &str = "
Koel rows have the size of the whole file. The growable row is a filter built with
`koel build --grow` that has grown to this many keys. Where the last column says yes, a filter can
also be made growable later with `koel grow`. Other rows are computed by formulas, without headers.
";

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
