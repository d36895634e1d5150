//! Whether standard input or output was closed when the process started (`koel .. <&- >&-`).
//!
//! The runtime of Rust opens /dev/null in its place before `main`, so that all output would be lost
//! without an error, and an input that is not there would look empty. A function that the loader
//! calls before it looks at the descriptors. This needs an attribute that counts as `unsafe`:
//! nothing else runs so early.

use std::io::{Error, ErrorKind, Result, Stdin};
use std::path::Path;
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
