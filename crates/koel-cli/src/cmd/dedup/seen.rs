//! What `koel dedup --window` has seen: an expiring filter, and counts for the report.
#![forbid(unsafe_code)]

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use koel::{ExpiringFilter, FullError, InsertError};
use serde_json::json;

use super::line_time::Times;
use crate::failure::Failure;
use crate::keys::Group;
use crate::output;
use crate::quantity::{self, counted, grouped};
use crate::sizing::wrongly_dropped;

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

/// Locks what was seen. A thread that panicked held it between complete inserts.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Milliseconds, for people.
pub(super) fn time(millis: u64) -> String {
    humantime::format_duration(Duration::from_millis(millis)).to_string()
}

/// Milliseconds of Unix time.
fn now() -> u64 {
    millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// Whether each line is printed, and why the last one could not be inserted.
pub(super) type Taken = (Vec<bool>, Result<(), FullError>);

impl Seen {
    /// Nothing seen yet but what the filter holds. Time is that of arrival if `is_live`.
    pub(super) fn new(filter: ExpiringFilter, refresh: bool, is_live: bool) -> Self {
        let (latest, counts) = (filter.step_began(), Counts::default());
        Self { filter, counts, refresh, is_live, latest }
    }

    /// Sets the clock of a state that was saved at a later time than now.
    pub(super) fn follow_the_clock(&mut self) -> Result<(), Failure> {
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
    pub(super) fn take_now(&mut self, group: &Group<'_>) -> Taken {
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
    pub(super) fn take_at(&mut self, group: &Group<'_>, times: &Times) -> Taken {
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

    pub(super) fn too_small(&self, full: FullError) -> Failure {
        let read = counted(self.counts.read, "line");
        let advice = match full {
            FullError::NoMemory => "free some memory, or limit it with --keys",
            _ => "use a larger --keys, or --when-full evict",
        };
        let remedy = format!("the first {read} were processed; {advice}");
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

    /// What is wrong with the number of lines in a window.
    fn warning(&self) -> Option<String> {
        let kept = time(self.kept()?);
        let lines = counted(self.filter.capacity(), "line");
        Some(format!(
            "more than {lines} came within a window, so some were forgotten after {kept}; use a \
             larger --keys"
        ))
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
            "warning": self.warning(),
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
        if let Some(warning) = self.warning() {
            report += &format!("koel: warning: {warning}\n");
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
