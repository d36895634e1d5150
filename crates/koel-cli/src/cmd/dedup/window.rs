//! `koel dedup --window`: prints each line that was not seen within the last ten minutes, say.
//!
//! An expiring filter in place of one that keeps every line, so memory is bounded however long the
//! stream is. A tick is a millisecond. The time of a line is its arrival, or the time that is in it.
//!
//! * Each line is written before the next group is read.
//! * A lock guards the filter and the counts: the main thread holds it from the first insert of a
//!   group until its lines are written. So whoever else holds it, to save or to report, sees a
//!   state in which every line that counts as seen has been written.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use koel::{ExpiringFilter, FullError, InsertError, WhenFull};
use serde_json::json;

use super::line_time::{TimeArgs, Times};
use super::state_file::StateFile;
use super::{Args, wrongly_dropped};
use crate::failure::{Failure, Outcome};
use crate::input::Inputs;
use crate::keys::Group;
use crate::output::{self, Lines};
use crate::progress::Stdout;
use crate::quantity::{self, counted, grouped};
use crate::sizing;

/// Distinct lines of a window that there is room for by default.
const KEYS: u64 = 1_000_000;

/// The options of a window.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct WindowArgs {
    /// Forget a line after this time, such as 10m or 1h30m
    #[arg(long, value_name = "TIME", value_parser = parse_window, help_heading = HEADING)]
    #[arg(conflicts_with = "prefer")]
    window: Option<Duration>,

    /// Count the window from the last time that a line came, not from the first
    #[arg(long, help_heading = HEADING, requires = "window")]
    refresh: bool,

    #[command(flatten)]
    time: TimeArgs,

    /// Steps of the window, 1 to 200: a line is forgotten at most a step late
    #[arg(long, value_name = "N", help_heading = HEADING, requires = "window")]
    #[arg(default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=200))]
    steps: u32,

    /// When more than --keys lines come in a window: evict old ones, or fail
    #[arg(long, value_name = "WHAT", help_heading = HEADING, requires = "window")]
    #[arg(value_enum, default_value = "evict", hide_possible_values = true)]
    when_full: Choice,

    /// Keep what was seen in FILE, saved every two seconds and at the end
    #[arg(long, value_name = "FILE", help_heading = HEADING, requires = "window")]
    state: Option<PathBuf>,
}

pub(super) const HEADING: &str = "Window";

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

impl WindowArgs {
    /// The window, if one was given.
    pub(super) fn window(&self) -> Option<Duration> {
        self.window
    }
}

/// What was seen, and how much.
pub(super) struct Seen {
    pub(super) filter: ExpiringFilter,
    pub(super) counts: Counts,
    refresh: bool,
    /// Whether time is that of arrival.
    is_live: bool,
    /// The latest time in a line.
    latest: u64,
}

#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) read: u64,
    printed: u64,
    /// Lines older than the window, which are printed.
    late: u64,
    without_time: u64,
    expired: u64,
    wrong: f64,
}

pub(super) fn run(args: &Args, window: Duration) -> Result<Outcome, Failure> {
    let mut inputs = args.input.open()?;
    let mut out = Lines::flushing(&inputs)?;
    let options = &args.window;
    let times = options.time.times(inputs.separator());
    let filter = build(args, window, &mut inputs)?;
    let mut seen = Seen {
        latest: filter.step_began(),
        filter,
        counts: Counts::default(),
        refresh: options.refresh,
        is_live: times.is_none(),
    };
    seen.follow_the_clock()?;
    let seen = Arc::new(Mutex::new(seen));
    let state = options.state.clone().map(|path| Arc::new(StateFile::new(path)));
    if let Some(state) = &state {
        state.save(&seen)?;
        super::state_file::save_regularly(state, &seen);
    }
    super::state_file::handle_signals(state.clone(), &seen, args.json)?;
    let whole = inputs.each_line("deduplicating", Stdout::Busy, |group, _| {
        let mut seen = lock(&seen);
        let (new, done) = match &times {
            None => seen.take_now(group),
            Some(times) => seen.take_at(group, times),
        };
        for (line, _) in group.lines.iter().zip(&new).filter(|(_, new)| **new) {
            out.line(line, inputs.terminator())?;
        }
        out.end_group()?;
        done.map_err(|full| seen.too_small(full))?;
        Ok(false)
    });
    out.finish()?;
    if let Some(state) = &state {
        state.save(&seen)?;
    }
    whole?;
    output::print_to_stderr(&lock(&seen).report(args.json))?;
    Ok(Outcome::Done)
}

/// The filter of the state file, or an empty one.
fn build(args: &Args, window: Duration, inputs: &mut Inputs) -> Result<ExpiringFilter, Failure> {
    let options = &args.window;
    let ticks = millis(window);
    if let Some(path) = &options.state
        && let Some(filter) = StateFile::load(path)?
    {
        let whole = filter.window();
        if !(ticks..ticks + filter.step_ticks()).contains(&whole) {
            return Err(Failure::Usage(format!(
                "{} has a window of {}; give that window, or another file",
                path.display(),
                time(whole)
            )));
        }
        inputs.use_options_of(path, filter.line_options())?;
        return Ok(filter);
    }
    let keys = args.shape.keys.unwrap_or(KEYS);
    let builder = ExpiringFilter::builder(keys, args.fpr).window(ticks).steps(options.steps);
    let builder = args.shape.hashed(builder).line_options(inputs.line_options());
    let when_full = match options.when_full {
        Choice::Evict => WhenFull::EvictOldest,
        Choice::Fail => WhenFull::Fail,
    };
    builder.when_full(when_full).build().map_err(|error| sizing::build_failure(&error))
}

/// Locks what was seen. A thread that panicked held it between complete inserts.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Milliseconds, for people.
fn time(millis: u64) -> String {
    humantime::format_duration(Duration::from_millis(millis)).to_string()
}

/// Milliseconds of Unix time.
fn now() -> u64 {
    millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// Whether each line is printed, and why the last one could not be inserted.
type Taken = (Vec<bool>, Result<(), FullError>);

impl Seen {
    /// Sets the clock of a state that was saved at a later time than now.
    fn follow_the_clock(&mut self) -> Result<(), Failure> {
        let (now, began) = (now(), self.filter.step_began());
        if self.is_live && began > now.saturating_add(self.filter.window()) {
            self.filter.rebase(now);
            output::print_to_stderr(
                "koel: the clock was set back since the state was saved; \
                 lines keep their ages\n",
            )?;
        }
        Ok(())
    }

    /// Takes lines that have just come.
    fn take_now(&mut self, group: &Group<'_>) -> Taken {
        self.advance(now());
        let (keys, mut new) = (group.keys(), vec![false; group.lines.len()]);
        let before = self.filter.false_positive_rate();
        let done = if self.refresh {
            self.filter.insert_many(keys, &mut new)
        } else {
            self.filter.insert_unique_many(keys, &mut new)
        };
        let read = match done {
            Ok(()) => new.len(),
            Err(_) => new.iter().rposition(|&new| new).map_or(0, |last| last + 1),
        };
        self.note(read, new.iter().filter(|&&new| new).count(), before);
        (new, done)
    }

    /// Takes lines with the time that is in them.
    fn take_at(&mut self, group: &Group<'_>, times: &Times) -> Taken {
        let mut new = vec![false; group.lines.len()];
        for (number, (key, line)) in group.keys().iter().zip(&group.lines).enumerate() {
            let before = self.filter.false_positive_rate();
            match self.take_line(key, times.of(line)) {
                Ok(is_new) => new[number] = is_new,
                Err(full) => return (new, Err(full)),
            }
            self.note(1, usize::from(new[number]), before);
        }
        (new, Ok(()))
    }

    /// Whether a line is printed. A line that comes after younger ones is seen as of its own time;
    /// one older than the window is printed and not kept.
    fn take_line(&mut self, key: &[u8], time: Option<u64>) -> Result<bool, FullError> {
        self.counts.without_time += u64::from(time.is_none());
        let time = time.unwrap_or(self.latest);
        let behind = self.latest.saturating_sub(time);
        if behind == 0 {
            self.latest = time;
            self.advance(time);
            return if self.refresh {
                self.filter.insert(key)
            } else {
                self.filter.insert_unique(key)
            };
        }
        let Some(ttl) = self.filter.window().checked_sub(behind) else {
            self.counts.late += 1;
            return Ok(true);
        };
        if !self.refresh && self.filter.contains(key) {
            return Ok(false);
        }
        match self.filter.insert_with_ttl(key, ttl) {
            Ok(is_new) => Ok(is_new),
            Err(InsertError::Full(full)) => Err(full),
            Err(error) => unreachable!("a time to live within the window: {error}"),
        }
    }

    fn advance(&mut self, now: u64) {
        self.counts.expired += self.filter.advance(now);
    }

    fn note(&mut self, read: usize, printed: usize, before: f64) {
        self.counts.read += read as u64;
        self.counts.printed += printed as u64;
        self.counts.wrong += wrongly_dropped(printed, [before, self.filter.false_positive_rate()]);
    }

    fn too_small(&self, full: FullError) -> Failure {
        let read = counted(self.counts.read, "line");
        let remedy =
            format!("the first {read} were processed; use a larger --keys, or --when-full evict");
        Failure::Full { full, keys: self.filter.len(), remedy }
    }

    /// The report on all that was read so far.
    pub(super) fn report(&mut self, as_json: bool) -> String {
        if self.is_live {
            self.advance(now());
        }
        if as_json { self.json_report() } else { self.text_report() }
    }

    /// Every line was kept for this time at least, in milliseconds; `None` if none was evicted.
    fn kept(&self) -> Option<u64> {
        let age = self.filter.youngest_evicted()?;
        Some(age.saturating_sub(1).saturating_mul(self.filter.step_ticks()))
    }

    fn json_report(&self) -> String {
        let Counts { read, printed, late, without_time, expired, wrong } = self.counts;
        output::json(&json!({
            "read": read,
            "printed": printed,
            "dropped": read - printed,
            "expected_wrongly_dropped": wrong,
            "in_window": self.filter.len(),
            "expired": expired,
            "evicted": self.filter.evicted(),
            "kept_at_least_ms": self.kept(),
            "late": late,
            "without_time": without_time,
        }))
    }

    fn text_report(&self) -> String {
        let Counts { read, printed, late, without_time, expired, wrong } = self.counts;
        let mut report = format!(
            "koel: {} read, {} printed, {} dropped (about {} of them wrongly)\n\
             koel: {} in the window, {} expired, {} evicted\n",
            counted(read, "line"),
            grouped(printed),
            grouped(read - printed),
            quantity::three_digits(wrong),
            grouped(self.filter.len()),
            grouped(expired),
            grouped(self.filter.evicted()),
        );
        if let Some(kept) = self.kept() {
            report += &format!(
                "koel: warning: more than {} came within a window, so some were forgotten after \
                 {}; use a larger --keys\n",
                counted(self.filter.capacity(), "line"),
                time(kept),
            );
        }
        if late > 0 {
            let late = counted(late, "line");
            report += &format!("koel: {late} came later than the window, and all were printed\n");
        }
        if without_time > 0 {
            let lines = counted(without_time, "line");
            report += &format!("koel: {lines} without a time: taken to have the latest time\n");
        }
        report
    }
}
