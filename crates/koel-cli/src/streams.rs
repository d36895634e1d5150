//! Whether standard input or output was closed when the process started (`koel .. <&- >&-`).
//!
//! The runtime of Rust opens /dev/null in its place before `main`, so that all output would be lost
//! without an error, and an input that is not there would look empty. A function that the loader
//! calls before it looks at the descriptors. This needs an attribute that counts as `unsafe`:
//! nothing else runs so early.
//!
//! And warnings: what a verb says on standard error without failing, after its work is done. They
//! are collected while a progress bar may be on the screen, and printed once it is removed.

use std::cell::RefCell;
use std::io::{self, Error, ErrorKind, Result, Stdin, Write};
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::Failure;

static HAS_NO_INPUT: AtomicBool = AtomicBool::new(false);
static HAS_NO_OUTPUT: AtomicBool = AtomicBool::new(false);

/// Standard input, or a failure if it was closed.
pub(crate) fn stdin() -> std::result::Result<Stdin, Failure> {
    let closed = |error| Failure::read(Path::new("standard input"), error);
    refuse_if(&HAS_NO_INPUT).map(|()| std::io::stdin()).map_err(closed)
}

/// An error if standard output was closed.
pub(crate) fn require_stdout() -> Result<()> {
    refuse_if(&HAS_NO_OUTPUT)
}

fn refuse_if(is_closed: &AtomicBool) -> Result<()> {
    if is_closed.load(Ordering::Relaxed) {
        return Err(Error::new(ErrorKind::NotConnected, "it is closed"));
    }
    Ok(())
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
#[expect(unsafe_code, reason = "an attribute: see the top of the file")]
mod before_main {
    use rustix::io::fcntl_getfd;

    use super::{HAS_NO_INPUT, HAS_NO_OUTPUT, Ordering};

    // Sound: a function of the C interface without arguments, as the loader calls it. It makes two
    // system calls and stores atomics, which need nothing of the runtime.
    #[used]
    #[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
    #[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
    static LOOK: extern "C" fn() = look;

    extern "C" fn look() {
        let is_closed = [
            (fcntl_getfd(rustix::stdio::stdin()).is_err(), &HAS_NO_INPUT),
            (fcntl_getfd(rustix::stdio::stdout()).is_err(), &HAS_NO_OUTPUT),
        ];
        is_closed.into_iter().for_each(|(is_closed, of)| of.store(is_closed, Ordering::Relaxed));
    }
}

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
