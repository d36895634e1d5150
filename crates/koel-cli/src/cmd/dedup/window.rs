//! `koel dedup --window`: prints each line that was not seen within the last ten minutes, say.
//!
//! An expiring filter in place of one that keeps every line: memory follows the lines of a window
//! and not those of the stream, and is fixed with `--keys`. A tick is a millisecond. The time of a
//! line is that of its arrival, or one that is in it.
//!
//! * Each line is written before the next group is read.
//! * A lock guards the filter and the counts: the main thread holds it from the first insert of a
//!   group until its lines are written. So whoever else holds it, to save or to report, sees a
//!   state in which every line that counts as seen has been written.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use koel::{ExpiringFilter, KeyHasher, WhenFull};
use koel_plan::GROW_TO;

use super::line_time::{HEADING, TimeArgs};
use super::seen::{Seen, millis, time};
use super::signals::{self, Run, Totals, lock};
use super::state_file::{self, StateFile};
use super::{Args, FPR};
use crate::failure::{Failure, Outcome};
use crate::filter::sizing;
use crate::input::Inputs;
use crate::output::{self, Lines};

/// Distinct lines of a window that a growing filter has room for at first. Starting so large, it
/// grows to a billion at a rate of 1e-6 in slots of 32 bits; from fewer lines it would need 64.
const GROW_FROM: u64 = 1_000_000;

/// Steps of a window unless other ones are given.
const STEPS: u32 = 24;

/// The options of a window.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct WindowArgs {
    /// Forget a line after this time, such as 10m or 1h30m
    #[arg(long, value_name = "TIME", value_parser = parse_window, help_heading = HEADING)]
    #[arg(conflicts_with = "prefer")]
    pub(super) window: Option<Duration>,

    /// Count the window from the last time that a line came, not from the first
    #[arg(long, help_heading = HEADING, requires = "window")]
    refresh: bool,

    #[command(flatten)]
    time: TimeArgs,

    /// Steps of the window, 1 to 200: lines may stay a step longer
    #[arg(long, value_name = "N", help_heading = HEADING, requires = "window")]
    #[arg(default_value_t = STEPS, value_parser = parse_steps)]
    steps: u32,

    /// What to do beyond --keys lines: evict old ones, or fail
    #[arg(long, value_name = "WHAT", help_heading = HEADING, requires = "window")]
    #[arg(requires = "keys")]
    #[arg(value_enum, default_value = "evict", hide_possible_values = true)]
    when_full: Choice,

    /// How far one line alone may set the time forward [default: the window]
    #[arg(long, value_name = "TIME", value_parser = parse_window, help_heading = HEADING)]
    #[arg(requires = "window")]
    max_jump: Option<Duration>,

    /// Keep what was seen in FILE, saved every two seconds and at the end
    #[arg(long, value_name = "FILE", help_heading = HEADING, requires = "window")]
    state: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Choice {
    Evict,
    Fail,
}

fn parse_window(text: &str) -> Result<Duration, String> {
    let advice = "give a time such as 90s, 10m or 1h30m";
    let window = humantime::parse_duration(text).map_err(|_| advice.to_owned())?;
    let is_possible = window.as_millis() > 0 && u64::try_from(window.as_millis()).is_ok();
    if is_possible { Ok(window) } else { Err(format!("it is too short or too long; {advice}")) }
}

fn parse_steps(text: &str) -> Result<u32, String> {
    let steps = text.parse().ok().filter(|steps| (1..=200).contains(steps));
    steps.ok_or_else(|| "give a whole number from 1 to 200".to_owned())
}

pub(super) fn run(args: &Args, mut inputs: Inputs, window: Duration) -> Result<Outcome, Failure> {
    let options = &args.window;
    let out = Lines::flushing(&inputs)?;
    let times = options.time.times(inputs.separator());
    let state = options.state.as_deref().map(StateFile::open).transpose()?.map(Arc::new);
    let filter = build(args, millis(window), &mut inputs, state.as_deref())?;
    let max_jump = options.max_jump.map_or(filter.window(), millis);
    let mut seen = Seen::new(filter, options.refresh, times, max_jump);
    seen.follow_the_clock()?;
    let run = Run::of(seen);
    if let Some(state) = &state {
        state.save(&run)?;
        state_file::save_regularly(state, &run);
    }
    let last = state.clone();
    signals::handle(&run, args.json, move |seen| {
        last.iter().for_each(|state| state.save_last(seen));
    })?;
    let whole = signals::print_new(&inputs, out, &run, false)?;
    if let Some(state) = &state {
        state.save(&run)?;
    }
    whole?.warn();
    let seen = &mut lock(&run).seen;
    output::print_to_stderr(&seen.report(args.json))?;
    seen.refuse_without_times(true)?;
    Ok(Outcome::Done)
}

/// An error if an option that was given is not that of the state: it would have no effect.
fn refuse_other_options(path: &Path, filter: &ExpiringFilter, args: &Args) -> Result<(), Failure> {
    let options = &args.window;
    let capacity = Some(filter.capacity()).filter(|_| !filter.is_growable());
    let is_other_rate =
        |rate: f64| args.fpr.total_cmp(&rate).is_ne() && args.fpr.total_cmp(&FPR).is_ne();
    let is_secret = matches!(filter.hasher(), KeyHasher::Sip13 { .. });
    let evicts = filter.when_full() == WhenFull::EvictOldest;
    let others = [
        ("--keys", args.shape.keys.is_some() && args.shape.keys != capacity),
        ("--fpr", is_other_rate(filter.requested_false_positive_rate())),
        ("--steps", options.steps != STEPS && u64::from(options.steps) != filter.steps()),
        ("--when-full", matches!(options.when_full, Choice::Fail) && evicts),
        ("--secret", args.shape.has_secret() && !is_secret),
        ("--seed", args.shape.has_other_seed(filter.hasher())),
    ];
    match others.into_iter().find(|(_, is_other)| *is_other) {
        Some((option, _)) => Err(Failure::Usage(format!(
            "{} was made with another {option}; give the options that it was made with, or another \
             file",
            path.display()
        ))),
        None => Ok(()),
    }
}

/// The filter of the state file, or an empty one.
fn build(
    args: &Args,
    ticks: u64,
    inputs: &mut Inputs,
    state: Option<&StateFile>,
) -> Result<ExpiringFilter, Failure> {
    let options = &args.window;
    if let Some(state) = state
        && let Some(filter) = state.load()?
    {
        let path = state.path();
        let whole = filter.window();
        if !(ticks..ticks + filter.step_ticks()).contains(&whole) {
            return Err(Failure::Usage(format!(
                "{} has a window of {}; give that window, or another file",
                path.display(),
                time(whole)
            )));
        }
        inputs.use_recipe_of(path, filter.application())?;
        refuse_other_options(path, &filter, args)?;
        return Ok(filter);
    }
    let when_full = match options.when_full {
        Choice::Evict => WhenFull::EvictOldest,
        Choice::Fail => WhenFull::Fail,
    };
    let builder = |keys| {
        let builder = ExpiringFilter::builder(keys, args.fpr).window(ticks).steps(options.steps);
        args.shape.hashed(builder).application(inputs.recipe().to_bytes())
    };
    let filter = match args.shape.keys {
        Some(keys) => builder(keys).when_full(when_full).build(),
        None => builder(GROW_TO).grow_from(GROW_FROM).build(),
    };
    filter.map_err(|error| sizing::build_failure(&error))
}
