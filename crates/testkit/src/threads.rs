//! Threads of a test that run until another one is done.

use std::sync::atomic::{AtomicBool, Ordering};

/// Sets a flag when it is dropped, also by a panic. Threads that run until the flag is set end
/// then, so that a test fails instead of waiting for them for ever.
#[derive(Debug)]
pub struct SetOnDrop<'a>(pub &'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
