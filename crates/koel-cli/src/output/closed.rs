//! Whether standard output was closed when the process started (`koel .. >&-`).
//!
//! The runtime of Rust opens /dev/null in its place before `main`, so that all output would be lost
//! without an error. A function that the loader calls before it looks at the descriptor. This needs
//! an attribute that counts as `unsafe`: nothing else runs so early.

use std::io::{Error, ErrorKind, Result};
use std::sync::atomic::{AtomicBool, Ordering};

static IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// An error if standard output was closed.
pub(crate) fn require_stdout() -> Result<()> {
    if IS_CLOSED.load(Ordering::Relaxed) {
        return Err(Error::new(ErrorKind::NotConnected, "it is closed"));
    }
    Ok(())
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
mod before_main {
    use super::{IS_CLOSED, Ordering};

    // Sound: a function of the C interface without arguments, as the loader calls it. It makes one
    // system call and stores an atomic, which need nothing of the runtime.
    #[used]
    #[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
    #[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
    static LOOK: extern "C" fn() = look;

    extern "C" fn look() {
        if rustix::io::fcntl_getfd(rustix::stdio::stdout()).is_err() {
            IS_CLOSED.store(true, Ordering::Relaxed);
        }
    }
}
