//! Warnings: what a verb says on standard error without failing, after its work is done.
//!
//! They are collected while a progress bar may be on the screen, and printed once it is removed.

use std::cell::RefCell;
use std::io::{self, Write};
use std::path::Path;
use std::rc::Rc;

/// Sentences to print later. A clone adds to the same list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Warnings(Rc<RefCell<Vec<String>>>);

impl Warnings {
    /// Adds a sentence about an input.
    pub(crate) fn about(&self, input: &Path, sentence: &str) {
        self.add(format!("{}: {sentence}", input.display()));
    }

    /// Adds a sentence, unless it was added before: an input may be read several times.
    pub(crate) fn add(&self, sentence: String) {
        let mut sentences = self.0.borrow_mut();
        if !sentences.contains(&sentence) {
            sentences.push(sentence);
        }
    }

    /// Prints all of them, each on its line. If standard error is closed, nobody reads them.
    pub(crate) fn print(&self) {
        for sentence in self.0.borrow().iter() {
            drop(writeln!(io::stderr(), "koel: {}", escape_controls(sentence)));
        }
    }
}

/// Escapes control characters, so that a name can neither end the line nor control the terminal.
pub(crate) fn escape_controls(text: &str) -> String {
    let escaped = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.into() };
    text.chars().map(escaped).collect()
}
