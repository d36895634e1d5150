//! A progress bar on standard error: bytes read, rate, time left.
//!
//! Shown only where someone can see it and it disturbs nobody: standard error is a terminal (indicatif checks that), and the verb does
//! not print lines to the same terminal. Cost: one atomic addition per read of 256 KiB, drawn at most 20 times a second.
#![forbid(unsafe_code)]

use std::io::{self, IsTerminal, Read};

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

    /// A reader that moves this bar.
    pub(crate) fn meter<R: Read>(&self, reader: R) -> Metered<R> {
        Metered { reader, bar: self.bar.clone() }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Moves a bar by every byte read through it.
pub(crate) struct Metered<R> {
    reader: R,
    bar: ProgressBar,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.reader.read(buffer)?;
        self.bar.inc(got as u64);
        Ok(got)
    }
}
