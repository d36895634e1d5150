//! What INFO counts, since the server was started.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::command::reply::Reply;
use crate::error::Error;

/// A number that any thread may change.
pub(super) struct Total(AtomicU64);

/// Filters that exist.
pub(super) static FILTERS: Total = Total::new();
/// Bytes that the module has from the server.
pub(super) static BYTES: Total = Total::new();
/// Items that found no room.
pub(super) static REFUSED: Total = Total::new();
/// Commands that ran beside others.
pub(super) static BESIDE: Total = Total::new();
/// Panics that were caught.
pub(super) static PANICS: Total = Total::new();

impl Total {
    const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    #[inline]
    pub(super) fn add(&self, number: u64) {
        self.0.fetch_add(number, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn subtract(&self, number: u64) {
        self.0.fetch_sub(number, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counts the items that a command refused.
pub(super) fn count(outcome: &Result<Reply, Error>) {
    let refused = match outcome {
        Err(Error::Full(_)) => 1,
        Ok(Reply::Added(added)) => added.iter().filter(|&&added| !added).count(),
        Ok(Reply::Array(answers)) => {
            answers.iter().filter(|&answer| *answer == Reply::Integer(-1)).count()
        }
        _ => 0,
    };
    if refused > 0 {
        REFUSED.add(refused as u64);
    }
}
