//! A progress bar on standard error: bytes read or written, throughput, time left.
//!
//! It is shown only if standard error is a terminal (indicatif checks that) and the verb prints no
//! lines to that terminal. Cost: one atomic addition per read or write, and at most 20 redraws a
//! second.

use std::fmt;
use std::io::{self, IsTerminal, Read, Write};
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// Before so much time has passed, the throughput says little about the time left.
const FIRST_ESTIMATE: Duration = Duration::from_millis(500);

/// How the verb uses standard output while the bar is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stdout {
    /// It prints lines as it reads its input.
    Busy,
    /// It prints nothing until the bar is removed.
    Silent,
}

/// A bar that is removed when dropped.
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Shows a bar. Without `total` it shows the bytes so far and the throughput.
    pub(crate) fn start(label: &'static str, total: Option<u64>, stdout: Stdout) -> Self {
        let target = if stdout == Stdout::Busy && io::stdout().is_terminal() {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let bar = ProgressBar::with_draw_target(total, target).with_message(label);
        let template = if total.is_some() {
            "{msg} {wide_bar} {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}{left}"
        } else {
            "{msg} {spinner} {binary_bytes}, {binary_bytes_per_sec}, {elapsed}"
        };
        let style = ProgressStyle::with_template(template).expect("the template is a constant");
        bar.set_style(style.with_key("left", write_time_left));
        Self { bar }
    }

    /// Wraps a reader or writer so that its bytes advance this bar.
    pub(crate) fn meter<S>(&self, stream: S) -> Metered<S> {
        Metered { stream, bar: self.bar.clone() }
    }

    /// The share of all bytes that is done, if the total is known.
    pub(crate) fn share(&self) -> Option<f64> {
        self.bar.length().map(|total| self.bar.position() as f64 / total.max(1) as f64)
    }

    /// Shows a bar during `work`, which tells how much of how much is done.
    pub(crate) fn watch<T>(
        label: &'static str,
        work: impl FnOnce(&mut dyn FnMut(u64, u64)) -> T,
    ) -> T {
        let mut progress = None;
        work(&mut |done, all| {
            let start = || Self::start(label, Some(all), Stdout::Silent);
            progress.get_or_insert_with(start).set(done);
        })
    }

    /// Sets the bar to this many bytes.
    pub(crate) fn set(&self, bytes: u64) {
        self.bar.set_position(bytes);
    }

    /// Advances the bar by this many bytes.
    pub(crate) fn advance(&self, bytes: u64) {
        self.bar.inc(bytes);
    }
}

fn write_time_left(state: &ProgressState, line: &mut dyn fmt::Write) {
    line.write_str(&time_left(state.elapsed(), state.eta()))
        .expect("a string takes every character");
}

/// The time left, once it can be estimated.
fn time_left(elapsed: Duration, left: Duration) -> String {
    if elapsed < FIRST_ESTIMATE {
        return String::new();
    }
    format!(", {:#} left", HumanDuration(left))
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A reader or writer whose bytes advance a bar.
pub(crate) struct Metered<S> {
    stream: S,
    bar: ProgressBar,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.stream.read(buffer)?;
        self.bar.inc(got as u64);
        Ok(got)
    }
}

impl<W: Write> Write for Metered<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.stream.write(bytes)?;
        self.bar.inc(taken as u64);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: the first line of a job of one second said that 17 minutes were left.
    #[test]
    fn the_time_left_is_not_shown_before_half_a_second_of_measurement() {
        let left = Duration::from_secs(17 * 60);
        for millis in [0, 1, 100, 499] {
            assert_eq!(time_left(Duration::from_millis(millis), left), "");
        }
        assert_eq!(time_left(Duration::from_millis(500), left), ", 17m left");
        assert_eq!(time_left(Duration::from_secs(9), Duration::from_secs(1)), ", 1s left");
    }
}
