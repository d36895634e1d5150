//! A folder whose n-th call fails.
//!
//! Calls are counted from 0 over the folder and all its files, in the order in which they arrive;
//! [`FaultyFolder::calls`] of a run without a fault is the number of calls that can fail. A failed
//! call may have taken partial effect, as POSIX allows: a failed write has written half of its
//! bytes.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::hooked::{Call, Hook, Hooked, Verdict};

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The device fails: the first failing write writes half of its bytes, and all other calls have
    /// no effect. A lasting failure is a power failure.
    Eio,
    /// The disk is full: calls that need space fail, the first failing write after half of its
    /// bytes. Reading, truncating and removing work.
    Enospc,
    /// A read or write stops half way, without an error; other calls succeed.
    Short,
}

/// Which calls fail, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The first call that fails.
    pub at: u64,
    /// Whether all later ones fail too.
    pub lasting: bool,
    /// How they fail.
    pub failure: Failure,
}

/// A wrapper around another folder.
pub type FaultyFolder<F> = Hooked<F, Counter>;

/// Counts calls, and lets some fail.
#[derive(Debug, Default)]
pub struct Counter(Mutex<Counted>);

#[derive(Debug, Default)]
struct Counted {
    calls: u64,
    fault: Option<Fault>,
    struck: Option<Call>,
    trace: Option<Vec<Call>>,
}

impl<F> FaultyFolder<F> {
    /// Wraps a folder. Without a fault, calls are only counted.
    pub fn new(inner: F, fault: Option<Fault>) -> Self {
        Self::with(inner, Counter(Mutex::new(Counted { fault, ..Counted::default() })))
    }

    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.hook().get()
    }

    /// Returns the number of calls so far.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.counted().calls
    }

    /// Returns the first call that failed.
    #[must_use]
    pub fn struck(&self) -> Option<Call> {
        self.counted().struck.clone()
    }

    /// Makes all calls succeed from now on.
    pub fn heal(&self) {
        self.counted().fault = None;
    }

    /// Records every call from now on.
    pub fn record(&self) {
        self.counted().trace = Some(Vec::new());
    }

    /// Returns the calls since [`record`](Self::record).
    #[must_use]
    pub fn trace(&self) -> Vec<Call> {
        self.counted().trace.clone().unwrap_or_default()
    }
}

impl Counter {
    fn get(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hook for Counter {
    fn before(&self, call: &Call) -> Verdict {
        match call.verb {
            "opened" | "closed" => return Verdict::Pass,
            // Holes are not looked for, so that every byte is read.
            "next" => return Verdict::Wrong(call.offset),
            _ => {}
        }
        let mut counted = self.get();
        let number = counted.calls;
        counted.calls += 1;
        if let Some(trace) = &mut counted.trace {
            trace.push(call.clone());
        }
        let Some(Fault { at, lasting, failure }) = counted.fault else { return Verdict::Pass };
        let needs_room = ["create", "link", "rename", "write", "grow", "sync"].contains(&call.verb);
        let strikes = if lasting { at <= number } else { at == number };
        if !strikes || failure == Failure::Enospc && !needs_room {
            return Verdict::Pass;
        }
        let is_first = counted.struck.is_none();
        counted.struck.get_or_insert_with(|| call.clone());
        let error = match failure {
            Failure::Short => return Verdict::Half(None),
            Failure::Eio => io::Error::other("injected: input/output error"),
            Failure::Enospc => io::ErrorKind::StorageFull.into(),
        };
        if is_first && call.verb == "write" {
            Verdict::Half(Some(error))
        } else {
            Verdict::Fail(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use koel_store::files::Folder;

    use crate::storage::MemoryFolder;

    /// Ten calls of every kind, up to the first that fails.
    fn program(folder: &dyn Folder) -> io::Result<()> {
        let file = folder.create("a")?;
        let mut bytes: &[u8] = b"abcdefgh";
        let mut end = 0;
        while !bytes.is_empty() {
            let written = file.write_at(bytes, end)?;
            bytes = &bytes[written..];
            end += written as u64;
        }
        file.sync()?;
        folder.sync()?;
        folder.link("a", &FaultyFolder::new(MemoryFolder::new(), None))?;
        file.set_len(4)?;
        folder.rename("a", "b")?;
        let file = folder.open("b")?;
        file.read_at(&mut [0; 4], 0)?;
        folder.remove("b")
    }

    fn with(at: u64, lasting: bool, failure: Failure) -> FaultyFolder<MemoryFolder> {
        FaultyFolder::new(MemoryFolder::new(), Some(Fault { at, lasting, failure }))
    }

    #[test]
    fn every_call_of_a_program_can_fail_once() {
        let counted = FaultyFolder::new(MemoryFolder::new(), None);
        counted.record();
        program(&counted).unwrap();
        assert_eq!((counted.calls(), counted.trace().len()), (10, 10));
        for (at, call) in (0..).zip(counted.trace()) {
            let folder = with(at, false, Failure::Eio);
            assert!(program(&folder).is_err());
            assert_eq!(folder.struck(), Some(call));
            assert_eq!(folder.calls(), at + 1);
        }
    }

    #[test]
    fn a_full_disk_fails_only_calls_that_need_space() {
        let failing = (0..10).filter(|&at| program(&with(at, false, Failure::Enospc)).is_err());
        assert_eq!(failing.collect::<Vec<_>>(), [0, 1, 2, 3, 4, 6]);
        let folder = with(1, true, Failure::Enospc);
        assert_eq!(program(&folder).unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert!(folder.remove("a").is_ok() && folder.create("c").is_err());
        folder.heal();
        assert!(folder.create("c").is_ok());
    }

    #[test]
    fn short_and_failed_writes_write_half_and_a_short_one_is_no_error() {
        let folder = with(1, false, Failure::Short);
        program(&folder).unwrap();
        assert_eq!(folder.calls(), 11, "the other half took a call of its own");
        let folder = with(1, false, Failure::Eio);
        assert!(program(&folder).is_err());
        assert_eq!(folder.inner().contents()["a"], b"abcd");
    }

    #[test]
    fn after_a_power_failure_nothing_is_written() {
        let folder = with(1, true, Failure::Eio);
        assert!(program(&folder).is_err());
        let file = MemoryFolder::open(folder.inner(), "a").unwrap();
        assert_eq!(file.len().unwrap(), 4);
        assert!(folder.open("a").is_err() && folder.sync().is_err());
        assert_eq!(folder.inner().contents()["a"], b"abcd");
    }
}
