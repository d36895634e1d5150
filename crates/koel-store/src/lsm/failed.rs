//! Which runs are being merged, and which are left alone because a merge failed because of them.
//!
//! A table that is damaged or unreadable ends each merge that meets it. Tried again and again, such
//! merges would read and write in vain, and keep others from being made. So its run is left alone
//! for a minute, and for twice as long after each further failure, up to an hour. Meanwhile the
//! runs on either side of it are merged for themselves. `compact` does not wait.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use crate::Error;
use crate::kernel::store_files::TABLE;

const FIRST_WAIT: Duration = Duration::from_secs(60);
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// The runs that merges leave alone, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    /// Runs that are being merged.
    running: HashSet<u64>,
    failed: HashMap<u64, Failure>,
}

/// How merges of a run failed.
#[derive(Debug)]
struct Failure {
    reason: String,
    wait: Duration,
    retry_at: Instant,
}

impl Jobs {
    /// Adds runs that are being merged.
    pub(super) fn start(&mut self, runs: &[u64]) {
        self.running.extend(runs);
    }

    /// Removes runs that are no longer being merged.
    pub(super) fn end(&mut self, runs: &[u64]) {
        self.running.retain(|run| !runs.contains(run));
    }

    pub(super) fn is_running(&self, run: u64) -> bool {
        self.running.contains(&run)
    }

    /// Notes how a merge of these runs ended.
    pub(super) fn note(&mut self, runs: &[u64], merged: &Result<(), Error>, now: Instant) {
        match merged {
            Ok(()) => self.failed.retain(|run, _| !runs.contains(run)),
            Err(error) => {
                for run in culprits(runs, error) {
                    self.note_failure(run, error, now);
                }
            }
        }
    }

    fn note_failure(&mut self, run: u64, error: &Error, now: Instant) {
        let wait = self.failed.get(&run).map_or(FIRST_WAIT, |last| 2 * last.wait);
        let wait = wait.min(LONGEST_WAIT);
        let failure = Failure { reason: error.reason(), wait, retry_at: now + wait };
        self.failed.insert(run, failure);
    }

    /// Returns whether the run is left alone because of an earlier failure.
    pub(super) fn is_avoided(&self, run: u64, now: Instant) -> bool {
        self.failed.get(&run).is_some_and(|failure| now < failure.retry_at)
    }

    /// Returns why the last merge of the run failed, if it did because of the run.
    pub(super) fn failure(&self, run: u64) -> Option<&str> {
        self.failed.get(&run).map(|failure| &failure.reason[..])
    }
}

/// Returns the runs because of which a merge of `runs` failed: the one that the error names, or all
/// if damage was found only in their merged entries.
fn culprits(runs: &[u64], error: &Error) -> Vec<u64> {
    let (Error::Damaged { file, .. } | Error::Io { action: "read" | "open", file, .. }) = error
    else {
        return Vec::new();
    };
    let named = runs.iter().copied().find(|&run| TABLE.name(run) == *file);
    match named {
        Some(run) => vec![run],
        None if matches!(error, Error::Damaged { .. }) => runs.to_vec(),
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn the_run_that_an_error_names_is_avoided_for_longer_each_time() {
        let (mut jobs, start) = (Jobs::default(), Instant::now());
        let damaged = || Err(Error::damaged(&TABLE.name(2), 99, "it is damaged"));
        let mut now = start;
        for minutes in [1, 2, 4, 8, 16, 32, 60, 60] {
            jobs.note(&[1, 2], &damaged(), now);
            let wait = Duration::from_secs(60 * minutes);
            assert!(jobs.is_avoided(2, now + wait - Duration::from_nanos(1)), "{minutes}");
            now += wait;
            assert!(!jobs.is_avoided(2, now) && !jobs.is_avoided(1, start), "{minutes}");
        }
        assert!(jobs.failure(2).is_some_and(|reason| reason.contains("byte 99")));
        assert_eq!(jobs.failure(1), None);
        jobs.note(&[1, 2], &Ok(()), now);
        assert_eq!(jobs.failure(2), None);
    }

    #[test]
    fn damage_that_names_no_input_is_that_of_all_and_a_full_disk_that_of_none() {
        let io =
            |action, run| Error::io(action, &TABLE.name(run))(io::ErrorKind::StorageFull.into());
        assert_eq!(culprits(&[4, 5], &Error::damaged("other", 0, "")), [4, 5]);
        assert_eq!(culprits(&[4, 5], &io("read", 5)), [5]);
        assert!(culprits(&[4, 5], &io("write", 6)).is_empty());
        assert!(culprits(&[4, 5], &io("read", 6)).is_empty());
    }
}
