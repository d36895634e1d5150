//! A progress bar on standard error: bytes read or written, rate, time left.
//!
//! Shown only where someone can see it and it disturbs nobody: standard error is a terminal (indicatif checks that), and the verb does
//! not print lines to the same terminal. Cost: one atomic addition per read or write, drawn at most 20 times a second.
#![forbid(unsafe_code)]

use std::io::{self, IsTerminal, Read, Write};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// What the verb does with standard output while the bar runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stdout {
    /// Lines are printed as they are read.
    Busy,
    /// Nothing is printed until the bar is gone.
    Silent,
}

/// A bar that goes away when dropped.
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Starts a bar; without `total` it shows what was read so far and at what rate.
    pub(crate) fn start(label: &'static str, total: Option<u64>, stdout: Stdout) -> Self {
        let target = if stdout == Stdout::Busy && io::stdout().is_terminal() {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let bar = ProgressBar::with_draw_target(total, target).with_message(label);
        let template = if total.is_some() {
            "{msg} {wide_bar} {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, {eta} left"
        } else {
            "{msg} {spinner} {binary_bytes}, {binary_bytes_per_sec}, {elapsed}"
        };
        bar.set_style(ProgressStyle::with_template(template).expect("the template is a constant"));
        Self { bar }
    }

    /// A reader or writer that moves this bar.
    pub(crate) fn meter<S>(&self, stream: S) -> Metered<S> {
        Metered { stream, bar: self.bar.clone() }
    }

    /// The share of all bytes that are done, where it is known how many there are.
    pub(crate) fn share(&self) -> Option<f64> {
        self.bar.length().map(|total| self.bar.position() as f64 / total.max(1) as f64)
    }

    /// Moves the bar by so many bytes.
    pub(crate) fn advance(&self, bytes: u64) {
        self.bar.inc(bytes);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Moves a bar by every byte that goes through it.
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
