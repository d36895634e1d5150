//! What INFO counts, since the server was started.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that any thread may change.
pub(crate) struct Total(AtomicU64);

/// Filters that exist.
pub(crate) static FILTERS: Total = Total::new();
/// Bytes that the module has from the server.
pub(crate) static BYTES: Total = Total::new();
/// The most of them since [`most_bytes`] was asked.
#[cfg(feature = "faults")]
static MOST_BYTES: Total = Total::new();
/// Items that found no room.
pub(crate) static REFUSED: Total = Total::new();
/// Items that were forgotten because their window was over.
pub(crate) static EXPIRED: Total = Total::new();
/// Commands that ran beside others.
pub(crate) static BESIDE: Total = Total::new();
/// What these took, in microseconds, in all and at most, without the wait for their turn.
pub(crate) static BESIDE_MICROS: Total = Total::new();
pub(crate) static LONGEST_BESIDE: Total = Total::new();
/// Panics that were caught.
pub(crate) static PANICS: Total = Total::new();

/// Notes that there are so many bytes beside [`BYTES`] for a moment, for tests of what commands
/// take. Without the feature `faults` it does nothing.
#[inline]
pub(crate) fn note_bytes(_beside: u64) {
    #[cfg(feature = "faults")]
    MOST_BYTES.raise(BYTES.get().saturating_add(_beside));
}

/// The most bytes that the module had since this was asked last.
#[cfg(feature = "faults")]
pub(crate) fn most_bytes() -> u64 {
    MOST_BYTES.0.swap(BYTES.get(), Ordering::Relaxed)
}

impl Total {
    const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    #[inline]
    pub(crate) fn add(&self, number: u64) {
        self.0.fetch_add(number, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn subtract(&self, number: u64) {
        self.0.fetch_sub(number, Ordering::Relaxed);
    }

    /// Raises it to `number`, if it is less.
    pub(crate) fn raise(&self, number: u64) {
        self.0.fetch_max(number, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
