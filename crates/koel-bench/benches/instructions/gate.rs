//! The gate of the instruction counts. It fails if a hot path takes more than 3 % more instructions
//! than recorded, or if it branches on unpredictable data.
//!
//! `scripts/instructions` runs the benches beside this file under Callgrind and pipes the
//! summaries, one JSON object per line, into this program. It compares them with counts.txt, which
//! has the compiler in its first line, then one name and count per line. The file is in git, so
//! that a change of the counts is reviewed with the code that caused it.
//!
//! Gungraun itself compares with the last run on the same machine, which is in no commit, or with
//! limits in the code of each bench, which a program cannot update.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use serde_json::Value;

/// How far a count may be from the recorded one, in percent.
const TOLERANCE: u64 = 3;

/// The branches that may be mispredicted in a bench of 4096 lookups with unpredictable answers: one
/// in fifty. A branch on the answer would be mispredicted in every other lookup.
const GUESSED_WRONG: u64 = 80;

const ACCEPT: &str = "scripts/instructions --accept";

type Failure = Box<dyn std::error::Error>;

#[derive(Parser)]
#[command(about = "Compares instruction counts with the recorded ones")]
struct Args {
    /// The file of recorded counts
    record: PathBuf,
    /// The compiler of the counts on standard input, as `rustc --version` prints it
    #[arg(long)]
    compiler: String,
    /// Record the counts instead of comparing them
    #[arg(long)]
    accept: bool,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("\ninstructions: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), Failure> {
    let benches = summaries(&io::read_to_string(io::stdin())?)?;
    let measured = Counts::measured(&args.compiler, &benches)?;
    answers_are_not_branched_upon(&benches)?;
    if args.accept {
        std::fs::write(&args.record, measured.to_string())?;
        println!("{} counts are recorded in {}", measured.of.len(), args.record.display());
        return Ok(());
    }
    let recorded = std::fs::read_to_string(&args.record)
        .map_err(|error| format!("{}: {error}; run `{ACCEPT}`", args.record.display()))?;
    let (table, verdict) = compare(&Counts::recorded(&recorded)?, &measured);
    print!("{table}");
    println!("{}", verdict?);
    Ok(())
}

/// Parses the JSON that Gungraun prints, one line per bench.
fn summaries(lines: &str) -> Result<Vec<Value>, Failure> {
    let benches: Vec<Value> = lines.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    if benches.is_empty() {
        return Err("no bench was run, so there is nothing to compare".into());
    }
    Ok(benches)
}

fn name(bench: &Value) -> Result<String, Failure> {
    let name = bench["function_name"].as_str().zip(bench["id"].as_str());
    let (function, id) =
        name.ok_or_else(|| format!("no name in the summary of a bench: {bench}"))?;
    Ok(format!("{function}/{id}"))
}

fn metric(bench: &Value, metric: &str) -> Option<u64> {
    bench["profiles"][0]["data"]["total"]["metrics"][metric]["values"]["new"].as_u64()
}

/// Fails if a bench that counts mispredicted conditional branches (`Bcm`) has too many, or if no
/// bench counts them.
fn answers_are_not_branched_upon(benches: &[Value]) -> Result<(), Failure> {
    let (mut counted, mut wrong) = (0, Vec::new());
    for bench in benches {
        let Some(count) = metric(bench, "Bcm") else { continue };
        counted += 1;
        if count > GUESSED_WRONG {
            wrong.push(format!("{} ({count})", name(bench)?));
        }
    }
    if counted == 0 {
        return Err("no bench counted mispredicted branches".into());
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(format!(
        "More than {GUESSED_WRONG} mispredicted branches: {}. The compiler turned an answer into a branch. `callgrind_annotate --show=Bcm` on the files in target/gungraun \
         shows where.",
        wrong.join(", ")
    )
    .into())
}

/// Instructions by name of the bench, and the compiler of the benches.
#[derive(Clone, Debug, PartialEq)]
struct Counts {
    compiler: String,
    of: BTreeMap<String, u64>,
}

impl Counts {
    fn measured(compiler: &str, benches: &[Value]) -> Result<Self, Failure> {
        let mut of = BTreeMap::new();
        for bench in benches {
            let name = name(bench)?;
            let count = metric(bench, "Ir").ok_or_else(|| format!("{name} has no count"))?;
            of.insert(name, count);
        }
        Ok(Self { compiler: compiler.into(), of })
    }

    /// Parses what `Display` wrote.
    fn recorded(file: &str) -> Result<Self, Failure> {
        let mut lines = file.lines();
        let compiler = lines.next().unwrap_or_default().into();
        let count = |line: &str| {
            let (name, count) = line.split_once(' ')?;
            Some((name.to_string(), count.trim().parse().ok()?))
        };
        let mut of = BTreeMap::new();
        for line in lines {
            let (name, count) = count(line)
                .ok_or_else(|| format!("`{line}` is not a name and a count; run `{ACCEPT}`"))?;
            of.insert(name, count);
        }
        Ok(Self { compiler, of })
    }
}

/// The file: the compiler, then one line per bench.
impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.compiler)?;
        self.of.iter().try_for_each(|(name, count)| writeln!(f, "{name:<34} {count:>10}"))
    }
}

// How a count compares with the recorded one.
const ABOVE: &str = "ABOVE";
const BELOW: &str = "below";
const NOT_RECORDED: &str = "NOT RECORDED";
const NOT_MEASURED: &str = "NOT MEASURED";

/// One of the words above, or none if the count is within the tolerance.
fn change(recorded: Option<u64>, measured: Option<u64>) -> &'static str {
    let Some(recorded) = recorded.map(u128::from) else { return NOT_RECORDED };
    let Some(measured) = measured.map(u128::from) else { return NOT_MEASURED };
    if measured * 100 > recorded * u128::from(100 + TOLERANCE) {
        ABOVE
    } else if measured * 100 < recorded * u128::from(100 - TOLERANCE) {
        BELOW
    } else {
        ""
    }
}

/// A table of all counts, with a verdict: how to proceed if the gate fails, a summary if it passes.
fn compare(recorded: &Counts, measured: &Counts) -> (String, Result<String, Failure>) {
    let names: BTreeSet<_> = recorded.of.keys().chain(measured.of.keys()).collect();
    let mut table = format!("{:<34} {:>10} {:>10} {:>8}\n", "", "recorded", "measured", "change");
    let mut changed: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for name in names {
        let (before, now) = (recorded.of.get(name).copied(), measured.of.get(name).copied());
        let [old, new] = [before, now].map(|count| count.map_or("-".into(), |c| c.to_string()));
        let ratio = before.zip(now).map(|(before, now)| now as f64 / before as f64);
        let moved = ratio.map_or("-".into(), |ratio| format!("{:+.1} %", (ratio - 1.0) * 100.0));
        let change = change(before, now);
        let line = format!("{name:<34} {old:>10} {new:>10} {moved:>8}  {change}");
        table += &format!("{}\n", line.trim_end());
        changed.entry(change).or_default().push(name);
    }
    (table, verdict(&changed, &recorded.compiler, &measured.compiler))
}

fn verdict(
    changed: &BTreeMap<&str, Vec<&str>>,
    before: &str,
    now: &str,
) -> Result<String, Failure> {
    let names = |change: &str| changed.get(change).map(|names| names.join(", "));
    let mut wrong = Vec::new();
    for (change, what) in
        [(NOT_RECORDED, "Measured but not recorded"), (NOT_MEASURED, "Recorded but not measured")]
    {
        if let Some(names) = names(change) {
            wrong.push(format!("{what}: {names}. If that is intended, run `{ACCEPT}`."));
        }
    }
    if let Some(above) = names(ABOVE) {
        wrong.push(format!(
            "More than {TOLERANCE} % above the recorded counts: {above}. `callgrind_annotate` on the files in target/gungraun shows where the \
             instructions are. If the change is worth it, run `{ACCEPT}` and commit the file."
        ));
        if before != now {
            let version = before.split(' ').nth(1).unwrap_or(before);
            wrong.push(format!(
                "The recorded counts are of {before}, the measured ones of {now}. If `rustup run --install {version} scripts/instructions` passes, the \
                 compiler is the cause, not the code."
            ));
        }
    }
    match names(BELOW) {
        _ if !wrong.is_empty() => Err(wrong.join("\n").into()),
        Some(below) => Ok(format!(
            "More than {TOLERANCE} % below the recorded counts: {below}. Run `{ACCEPT}` to record them, so that they stay there."
        )),
        None => Ok(format!("All counts are within {TOLERANCE} % of the recorded ones.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(compiler: &str, of: &[(&str, u64)]) -> Counts {
        let of = of.iter().map(|&(name, count)| (name.into(), count)).collect();
        Counts { compiler: compiler.into(), of }
    }

    /// The verdict on a count of `measured` if the recorded one is 1000.
    fn verdict_on(measured: u64) -> Result<String, String> {
        let [before, now] = [1000, measured].map(|count| counts("rustc 1.0.0", &[("a/b", count)]));
        compare(&before, &now).1.map_err(|failure| failure.to_string())
    }

    #[test]
    fn the_gate_is_shut_above_three_per_cent_and_open_up_to_there() {
        for passes in [971, 1000, 1029, 1030] {
            let sentence = verdict_on(passes).unwrap();
            assert_eq!(sentence, "All counts are within 3 % of the recorded ones.", "{passes}");
        }
        for fails in [1031, 1040, u64::MAX] {
            let sentence = verdict_on(fails).unwrap_err();
            assert!(
                sentence.starts_with("More than 3 % above the recorded counts: a/b."),
                "{sentence}"
            );
            assert!(sentence.contains(ACCEPT) && !sentence.contains("rustc"), "{sentence}");
        }
    }

    #[test]
    fn an_improvement_passes_and_asks_to_be_recorded() {
        for improved in [0, 969] {
            let sentence = verdict_on(improved).unwrap();
            assert!(
                sentence.contains("below the recorded counts: a/b.") && sentence.contains(ACCEPT),
                "{sentence}"
            );
        }
    }

    #[test]
    fn one_regression_is_not_made_up_for_by_improvements() {
        let before = counts("r", &[("a/b", 1000), ("c/d", 1000), ("e/f", 1000)]);
        let now = counts("r", &[("a/b", 10), ("c/d", 1031), ("e/f", 10)]);
        let (table, verdict) = compare(&before, &now);
        assert!(verdict.unwrap_err().to_string().contains("counts: c/d. "));
        assert!(table.contains("+3.1 %  ABOVE\n") && table.contains("-99.0 %  below\n"), "{table}");
    }

    #[test]
    fn missing_and_new_names_shut_the_gate() {
        let (one, two) = (counts("r", &[("a/b", 7)]), counts("r", &[("a/b", 7), ("c/d", 7)]));
        for (before, now, words, start) in [
            (&one, &two, "NOT RECORDED", "Measured but not recorded: c/d."),
            (&two, &one, "NOT MEASURED", "Recorded but not measured: c/d."),
        ] {
            let (table, verdict) = compare(before, now);
            let line = table.lines().find(|line| line.starts_with("c/d")).unwrap();
            assert!(line.ends_with(words), "{line}");
            let sentence = verdict.unwrap_err().to_string();
            assert!(sentence.starts_with(start) && sentence.contains(ACCEPT), "{sentence}");
        }
    }

    #[test]
    fn another_compiler_is_named_where_a_count_went_up_and_excuses_nothing() {
        let before = counts("rustc 1.95.0 (59807616e 2026-04-14)", &[("a/b", 1000)]);
        let now = |count| counts("rustc 1.96.0 (0123456 2026-05-28)", &[("a/b", count)]);
        assert!(compare(&before, &now(1030)).1.is_ok());
        let sentence = compare(&before, &now(1031)).1.unwrap_err().to_string();
        assert!(
            sentence.contains("rustup run --install 1.95.0 scripts/instructions"),
            "{sentence}"
        );
        assert!(sentence.contains("rustc 1.96.0 (0123456 2026-05-28)"), "{sentence}");
    }

    #[test]
    fn what_is_recorded_is_read_back_and_what_is_not_a_record_is_refused() {
        let written =
            counts("rustc 1.95.0 (59807616e 2026-04-14)", &[("a/b", 1), ("c/d", 9 << 40)]);
        assert_eq!(Counts::recorded(&written.to_string()).unwrap(), written);
        for broken in ["rustc\na/b", "rustc\na/b x", "rustc\na/b -1", "rustc\n\n"] {
            let sentence = Counts::recorded(broken).unwrap_err().to_string();
            assert!(sentence.contains(ACCEPT), "{sentence}");
        }
    }

    /// What the harness prints for a bench.
    fn line(function: &str, metrics: &str) -> String {
        let metrics = format!(r#"{{"Dr":{{"values":{{"new":3}}}},{metrics}}}"#);
        format!(
            r#"{{"function_name":"{function}","id":"fast","profiles":[{{"data":{{"total":{{"metrics":{metrics}}}}}}}]}}"#
        )
    }

    #[test]
    fn counts_are_read_from_the_summaries_of_the_harness() {
        let measured = |lines: &str| Counts::measured("r", &summaries(lines)?);
        let lines = [
            line("hit", r#""Ir":{"values":{"new":5}}"#),
            line("miss", r#""Ir":{"values":{"new":6,"old":9}}"#),
        ];
        let counted = measured(&lines.join("\n")).unwrap();
        assert_eq!(counted, counts("r", &[("hit/fast", 5), ("miss/fast", 6)]));
        for broken in ["", "{}", "no JSON", &line("hit", r#""Ir":{"values":{"old":5}}"#)] {
            assert!(measured(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn a_branch_on_the_answer_shuts_the_gate() {
        let verdict = |wrong: u64| {
            let lines = [
                line("hit", r#""Ir":{"values":{"new":5}}"#),
                line("coin", &format!(r#""Bcm":{{"values":{{"new":{wrong}}}}}"#)),
            ];
            answers_are_not_branched_upon(&summaries(&lines.join("\n")).unwrap())
        };
        assert!(verdict(0).is_ok() && verdict(80).is_ok());
        let sentence = verdict(81).unwrap_err().to_string();
        assert!(sentence.contains("coin/fast (81)") && !sentence.contains("hit"), "{sentence}");
        let uncounted = summaries(&line("hit", r#""Ir":{"values":{"new":5}}"#)).unwrap();
        assert!(answers_are_not_branched_upon(&uncounted).is_err());
    }
}
