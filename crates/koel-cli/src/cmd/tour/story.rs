//! Prints a tour: numbered chapters, short paragraphs, and a mark for every promise.
#![forbid(unsafe_code)]

use std::time::Instant;

use crate::failure::{Failure, Outcome};
use crate::output;
use crate::quantity::three_digits;

const WIDTH: usize = 88;

/// The state of a tour: its chapters, and the promises kept and broken so far.
#[derive(Debug, Default)]
pub(crate) struct Story {
    chapters: u32,
    kept: u32,
    broken: Vec<String>,
}

impl Story {
    pub(crate) fn chapter(&mut self, title: &str, text: &str) -> Result<(), Failure> {
        self.chapters += 1;
        let space = if self.chapters > 1 { "\n" } else { "" };
        output::print(&format!("{space}{}. {title}\n", self.chapters))?;
        self.say(text)
    }

    pub(crate) fn say(&mut self, text: &str) -> Result<(), Failure> {
        output::print(&wrapped(text))
    }

    /// Prints lines as they are.
    pub(crate) fn lines(&mut self, text: &str) -> Result<(), Failure> {
        output::print(text)
    }

    /// Prints and records whether a promise was kept.
    pub(crate) fn promise(&mut self, held: bool, promise: &str) -> Result<(), Failure> {
        if held {
            self.kept += 1;
        } else {
            self.broken.push(promise.to_owned());
        }
        let mark = if held { "kept" } else { "BROKEN" };
        output::print(&format!("   [{mark}] {promise}\n"))
    }

    /// Ends the tour. `next` says what to try after a tour without a broken promise.
    pub(crate) fn end(self, next: &str) -> Result<Outcome, Failure> {
        if self.broken.is_empty() {
            output::print(&format!("\nAll {} promises were kept. {next}\n", self.kept))?;
            return Ok(Outcome::Done);
        }
        let broken = self.broken.join("; ");
        Err(Failure::Broken(format!(
            "these promises of the tour were broken: {broken}; please report this output"
        )))
    }
}

/// The time since `started`, in us, ms or s.
pub(crate) fn time(started: Instant) -> String {
    let seconds = started.elapsed().as_secs_f64();
    match seconds {
        _ if seconds < 1e-3 => format!("{} us", three_digits(seconds * 1e6)),
        _ if seconds < 1.0 => format!("{} ms", three_digits(seconds * 1e3)),
        _ => format!("{} s", three_digits(seconds)),
    }
}

fn wrapped(text: &str) -> String {
    let mut lines = String::new();
    let mut width = WIDTH;
    for word in text.split_whitespace() {
        if width + 1 + word.len() > WIDTH {
            let start = if lines.is_empty() { "   " } else { "\n   " };
            lines.push_str(start);
            width = 3;
        } else {
            lines.push(' ');
            width += 1;
        }
        lines.push_str(word);
        width += word.len();
    }
    lines + "\n"
}
