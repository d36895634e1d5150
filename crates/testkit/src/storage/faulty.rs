//! A folder whose n-th call fails.
//!
//! Calls are counted from 0 over the folder and all its files, in the order in which they arrive;
//! [`FaultyFolder::calls`] of a run without a fault is the number of calls that can fail. A failed
//! call may have taken partial effect, as POSIX allows: a failed write has written half of its
//! bytes.

use std::any::Any;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use koel_store::files::{File, Folder};

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

/// One call, for a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The operation: `open`, `write`, ..
    pub verb: &'static str,
    /// The name of the file; empty for calls of the folder.
    pub name: String,
    /// The offset at which it reads or writes, or the length it sets.
    pub offset: u64,
    /// The number of bytes it reads or writes.
    pub bytes: usize,
}

/// A wrapper around another folder.
#[derive(Clone, Debug)]
pub struct FaultyFolder<F> {
    inner: F,
    counter: Counter,
}

#[derive(Clone, Debug, Default)]
struct Counter(Arc<Mutex<Counted>>);

#[derive(Debug, Default)]
struct Counted {
    calls: u64,
    fault: Option<Fault>,
    struck: Option<Call>,
    failed: u64,
    trace: Option<Vec<Call>>,
}

#[derive(Debug)]
struct FaultyFile {
    name: String,
    inner: Arc<dyn File>,
    counter: Counter,
}

impl<F> FaultyFolder<F> {
    /// Wraps a folder. Without a fault, calls are only counted.
    pub fn new(inner: F, fault: Option<Fault>) -> Self {
        let counted = Counted { fault, ..Counted::default() };
        Self { inner, counter: Counter(Arc::new(Mutex::new(counted))) }
    }

    /// Returns the wrapped folder.
    pub fn inner(&self) -> &F {
        &self.inner
    }

    /// Returns the number of calls so far.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.counter.get().calls
    }

    /// Returns the first call that failed.
    #[must_use]
    pub fn struck(&self) -> Option<Call> {
        self.counter.get().struck.clone()
    }

    /// Makes all calls succeed from now on.
    pub fn heal(&self) {
        self.counter.get().fault = None;
    }

    /// Records every call from now on.
    pub fn record(&self) {
        self.counter.get().trace = Some(Vec::new());
    }

    /// Returns the calls since [`record`](Self::record).
    #[must_use]
    pub fn trace(&self) -> Vec<Call> {
        self.counter.get().trace.clone().unwrap_or_default()
    }

    fn file(&self, name: &str, inner: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(FaultyFile { name: name.to_owned(), inner, counter: self.counter.clone() })
    }

    fn call(&self, verb: &'static str, name: &str) -> io::Result<()> {
        let call = Call { verb, name: name.to_owned(), offset: 0, bytes: 0 };
        self.counter.count(call).map_or(Ok(()), Failure::refuse)
    }
}

impl Failure {
    fn error(self) -> io::Error {
        match self {
            Self::Eio => io::Error::other("injected: input/output error"),
            Self::Enospc | Self::Short => io::ErrorKind::StorageFull.into(),
        }
    }

    /// The end of a call that moves no bytes.
    fn refuse(self) -> io::Result<()> {
        if self == Self::Short { Ok(()) } else { Err(self.error()) }
    }
}

impl Counter {
    fn get(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call. Returns how it fails, if it does.
    fn count(&self, call: Call) -> Option<Failure> {
        let mut counted = self.get();
        let number = counted.calls;
        counted.calls += 1;
        if let Some(trace) = &mut counted.trace {
            trace.push(call.clone());
        }
        let Fault { at, lasting, failure } = counted.fault?;
        let needs_room = ["create", "link", "rename", "write", "grow", "sync"].contains(&call.verb);
        let strikes = if lasting { at <= number } else { at == number };
        if !strikes || failure == Failure::Enospc && !needs_room {
            return None;
        }
        counted.struck.get_or_insert(call);
        counted.failed += 1;
        Some(failure)
    }

    /// Returns whether only one call failed so far.
    fn first(&self) -> bool {
        self.get().failed == 1
    }
}

impl<F: Folder> Folder for FaultyFolder<F> {
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.call("open", name)?;
        Ok(self.file(name, self.inner.open(name)?))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.call("create", name)?;
        Ok(self.file(name, self.inner.create(name)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.call("rename", from)?;
        self.inner.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.call("remove", name)?;
        self.inner.remove(name)
    }

    /// Counts as a call of this folder. The other one may be wrapped too.
    fn link(&self, name: &str, to: &(dyn Folder + 'static)) -> io::Result<()> {
        self.call("link", name)?;
        let any: &dyn Any = to;
        match any.downcast_ref::<Self>() {
            Some(wrapped) => self.inner.link(name, &wrapped.inner),
            None => self.inner.link(name, to),
        }
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.call("list", "")?;
        self.inner.list()
    }

    fn sync(&self) -> io::Result<()> {
        self.call("sync", "")?;
        self.inner.sync()
    }

    fn lock(&self) -> io::Result<Box<dyn Send + Sync>> {
        self.call("lock", "")?;
        self.inner.lock()
    }
}

impl FaultyFile {
    fn count(&self, verb: &'static str, offset: u64, bytes: usize) -> Option<Failure> {
        self.counter.count(Call { verb, name: self.name.clone(), offset, bytes })
    }
}

impl File for FaultyFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let half = into.len().div_ceil(2);
        match self.count("read", offset, into.len()) {
            None => self.inner.read_at(into, offset),
            Some(Failure::Short) => self.inner.read_at(&mut into[..half], offset),
            Some(failure) => Err(failure.error()),
        }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let half = &bytes[..bytes.len().div_ceil(2)];
        match self.count("write", offset, bytes.len()) {
            None => self.inner.write_at(bytes, offset),
            Some(Failure::Short) => self.inner.write_at(half, offset),
            Some(failure) => {
                if self.counter.first() {
                    self.inner.write_at(half, offset)?;
                }
                Err(failure.error())
            }
        }
    }

    fn len(&self) -> io::Result<u64> {
        self.count("len", 0, 0).map_or(Ok(()), Failure::refuse)?;
        self.inner.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let grows = self.inner.len()? < len;
        let verb = if grows { "grow" } else { "cut" };
        self.count(verb, len, 0).map_or(Ok(()), Failure::refuse)?;
        self.inner.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.count("sync", 0, 0).map_or(Ok(()), Failure::refuse)?;
        self.inner.sync()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
