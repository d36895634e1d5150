//! What `koel dedup --window` has seen: an expiring filter, and counts for the report.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use koel::{ExpiringFilter, FullError, InsertError};

use super::line_time::{self, Times};
use super::signals::{self, Taken, Totals, totals_line};
use crate::failure::Failure;
use crate::filter::sizing::wrongly_dropped;
use crate::lists::keys::Group;
use crate::output;
use crate::quantity::{counted, grouped};

/// What was seen, and how much.
pub(super) struct Seen {
    pub(super) filter: ExpiringFilter,
    pub(super) counts: Counts,
    refresh: bool,
    /// Where the time of a line is; `None` if it is that of arrival.
    times: Option<Times>,
    /// The latest time that was accepted.
    latest: u64,
    /// Milliseconds that one line alone may set the time forward.
    max_jump: u64,
    /// The time and the key of the last line, if that was too far ahead.
    ahead: Option<(u64, Vec<u8>)>,
}

/// So many lines without a time are enough to see that they are looked for in the wrong place.
const MOST_WITHOUT_TIME: u64 = 1000;

#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) read: u64,
    printed: u64,
    /// Lines older than the window, and lines too far ahead, which are printed.
    late: u64,
    ahead: u64,
    without_time: u64,
    expired: u64,
    wrong: f64,
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

impl Seen {
    /// Nothing seen yet but what the filter holds.
    pub(super) fn new(
        filter: ExpiringFilter,
        refresh: bool,
        times: Option<Times>,
        max_jump: u64,
    ) -> Self {
        let (latest, counts) = (filter.step_began(), Counts::default());
        Self { filter, counts, refresh, times, latest, max_jump, ahead: None }
    }

    /// Sets the clock of a state that was saved at a later time than now.
    pub(super) fn follow_the_clock(&mut self) -> Result<(), Failure> {
        let (now, began) = (now(), self.filter.step_began());
        if self.times.is_none() && began > now.saturating_add(self.filter.window()) {
            self.filter.rebase(now);
            output::print_to_stderr(
                "koel: the clock was set back since the state was saved; \
                 lines keep their ages\n",
            )?;
        }
        Ok(())
    }

    /// Takes lines that have just come.
    fn take_now(&mut self, group: &Group<'_>, new: &mut [bool]) -> Result<(), FullError> {
        self.advance(now());
        let keys = group.keys();
        let before = self.filter.false_positive_rate();
        let done = if self.refresh {
            self.filter.insert_many(keys, new)
        } else {
            self.filter.insert_unique_many(keys, new)
        };
        let read = match done {
            Ok(()) => new.len(),
            Err(_) => new.iter().rposition(|&new| new).map_or(0, |last| last + 1),
        };
        self.note(read, new.iter().filter(|&&new| new).count(), before);
        done
    }

    /// Takes lines with the time that is in them.
    fn take_at(
        &mut self,
        group: &Group<'_>,
        times: &Times,
        new: &mut [bool],
    ) -> Result<(), FullError> {
        for (number, (key, line)) in group.keys().iter().zip(&group.lines).enumerate() {
            let before = self.filter.false_positive_rate();
            new[number] = self.take_line(key, times.of(line))?;
            self.note(1, usize::from(new[number]), before);
        }
        Ok(())
    }

    /// Whether a line is printed. A line that comes after younger ones is seen as of its own time;
    /// one older than the window is printed and not kept.
    fn take_line(&mut self, key: &[u8], time: Option<u64>) -> Result<bool, FullError> {
        self.counts.without_time += u64::from(time.is_none());
        let time = time.unwrap_or(self.latest);
        if self.is_too_far_ahead(time, key)? {
            self.counts.ahead += 1;
            return Ok(true);
        }
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

    /// Whether a time is so far after all before that it may be wrong. The next line decides: if it
    /// is not earlier, time does go on there, and the line is seen after all. Without any time
    /// before, that of this machine is taken.
    fn is_too_far_ahead(&mut self, time: u64, key: &[u8]) -> Result<bool, FullError> {
        let last = self.ahead.take();
        if let Some((ahead, key)) = last
            && time.saturating_add(self.max_jump) >= ahead
            && self.is_ahead(time)
        {
            self.counts.ahead -= 1;
            self.latest = ahead;
            self.advance(ahead);
            self.filter.insert(&key[..])?;
        }
        let is_ahead = self.is_ahead(time);
        self.ahead = is_ahead.then(|| (time, key.to_vec()));
        Ok(is_ahead)
    }

    fn is_ahead(&self, time: u64) -> bool {
        let before = if self.latest == 0 { now() } else { self.latest };
        time.saturating_sub(before) > self.max_jump
    }

    /// An error if no line had a time: at the end, or after many lines.
    pub(super) fn refuse_without_times(&self, at_end: bool) -> Result<(), Failure> {
        let Some(times) = &self.times else { return Ok(()) };
        let Counts { read, without_time, .. } = self.counts;
        if read == 0 || without_time < read || !at_end && read < MOST_WITHOUT_TIME {
            return Ok(());
        }
        Err(Failure::Usage(format!(
            "none of {} has a time in {}, so no window was kept; the forms are {}",
            counted(read, "line"),
            times.place(),
            line_time::FORMS
        )))
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
        let advice = match full {
            FullError::NoMemory => "free some memory, or limit it with --keys",
            _ => "use a larger --keys, or --when-full evict",
        };
        let remedy = format!("the first {read} were processed; {advice}");
        Failure::Full { full, keys: self.filter.len(), remedy }
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
        let Counts { read, printed, late, ahead, without_time, expired, wrong } = self.counts;
        let mut report = signals::totals(read, printed, wrong);
        report
            .json("in_window", self.filter.len())
            .json("expired", expired)
            .json("evicted", self.filter.evicted())
            .json("kept_at_least_ms", self.kept())
            .json("late", late)
            .json("ahead", ahead)
            .json("without_time", without_time)
            .warning(self.warning());
        report.text(true)
    }

    fn text_report(&self) -> String {
        let Counts { read, printed, late, ahead, without_time, expired, wrong } = self.counts;
        let mut report = format!(
            "{}koel: {} in the window, {} expired, {} evicted\n",
            totals_line(read, printed, wrong),
            grouped(self.filter.len()),
            grouped(expired),
            grouped(self.filter.evicted()),
        );
        if let Some(warning) = self.warning() {
            report += &format!("koel: warning: {warning}\n");
        }
        if late > 0 {
            let late = counted(late, "line");
            report += &format!("koel: {late} older than the window: printed, not remembered\n");
        }
        if ahead > 0 {
            report += &format!(
                "koel: {} more than {} ahead of all before: printed, and the time not set \
                 (--max-jump)\n",
                counted(ahead, "line"),
                time(self.max_jump)
            );
        }
        if without_time > 0 {
            let lines = counted(without_time, "line");
            report += &format!("koel: {lines} without a time: taken to have the latest time\n");
        }
        report
    }
}

impl Totals for Seen {
    fn take(&mut self, group: &Group<'_>, _: Option<f64>) -> Taken {
        let (mut new, times) = (vec![false; group.lines.len()], self.times.take());
        let done = match &times {
            None => self.take_now(group, &mut new),
            Some(times) => self.take_at(group, times, &mut new),
        };
        self.times = times;
        let done = done.map_err(|full| self.too_small(full));
        (new, done.and_then(|()| self.refuse_without_times(false)))
    }

    fn report(&mut self, as_json: bool) -> String {
        if self.times.is_none() {
            self.advance(now());
        }
        if as_json { self.json_report() } else { self.text_report() }
    }
}
