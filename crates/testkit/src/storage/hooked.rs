//! A wrapper around a folder: a hook sees each call, and says what becomes of it.
//!
//! So a test counts calls, holds them, lets them fail or returns wrong results without writing a
//! folder of its own. A hook is a closure, or a type that keeps what it saw. `FaultyFolder` is one.

use std::any::Any;
use std::fmt;
use std::io;
use std::sync::Arc;

use koel_store::files::{File, Folder};

/// One call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The operation: `open`, `create`, `rename`, `remove`, `link`, `list`, `lock` and `sync` of a
    /// folder, `read`, `write`, `len`, `next` (data), `grow`, `cut` and `sync` of a file. `opened`
    /// and `closed` are not calls, but tell that there is one open file more or less.
    pub verb: &'static str,
    /// The name of the file; empty for calls of the folder.
    pub name: String,
    /// The offset at which it reads or writes, or the length it sets.
    pub offset: u64,
    /// The number of bytes it reads or writes.
    pub bytes: usize,
}

/// What becomes of a call.
#[derive(Debug)]
pub enum Verdict {
    /// It is made.
    Pass,
    /// It is made with half of its bytes, and then fails if there is an error.
    Half(Option<io::Error>),
    /// It is not made.
    Fail(io::Error),
    /// It is not made, and returns something wrong that the number chooses: a count of bytes, a
    /// length, another file, names of files that are not there.
    Wrong(u64),
}

/// Sees each call before it is made.
pub trait Hook: Send + Sync + 'static {
    /// Says what becomes of a call.
    fn before(&self, call: &Call) -> Verdict;
}

impl<F: Fn(&Call) -> Verdict + Send + Sync + 'static> Hook for F {
    fn before(&self, call: &Call) -> Verdict {
        self(call)
    }
}

/// A folder with a hook, which clones share.
pub struct Hooked<F, H> {
    inner: F,
    hook: Arc<H>,
}

struct HookedFile<H: Hook> {
    name: String,
    inner: Arc<dyn File>,
    hook: Arc<H>,
}

impl Verdict {
    /// The end of a call that moves no bytes: the number of a wrong result, if it is not made.
    fn result(self) -> io::Result<Option<u64>> {
        match self {
            Self::Pass | Self::Half(None) => Ok(None),
            Self::Half(Some(error)) | Self::Fail(error) => Err(error),
            Self::Wrong(number) => Ok(Some(number)),
        }
    }
}

impl<F, H: Hook> Hooked<F, H> {
    /// Wraps a folder.
    pub fn with(inner: F, hook: H) -> Self {
        Self { inner, hook: Arc::new(hook) }
    }

    /// Returns the wrapped folder.
    pub fn inner(&self) -> &F {
        &self.inner
    }

    /// Returns the hook.
    pub fn hook(&self) -> &H {
        &self.hook
    }

    fn ask(&self, verb: &'static str, name: &str) -> io::Result<Option<u64>> {
        let call = Call { verb, name: name.to_owned(), offset: 0, bytes: 0 };
        self.hook.before(&call).result()
    }

    fn file(&self, name: &str, inner: Arc<dyn File>) -> Arc<dyn File> {
        let file = HookedFile { name: name.to_owned(), inner, hook: self.hook.clone() };
        let _ = file.ask("opened", 0, 0);
        Arc::new(file)
    }
}

impl<F: Folder, H: Hook> Folder for Hooked<F, H> {
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let other = self.ask("open", name)?.map(|wrong| format!("{:016x}.log", wrong % 4));
        Ok(self.file(name, self.inner.open(other.as_deref().unwrap_or(name))?))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.ask("create", name)?;
        Ok(self.file(name, self.inner.create(name)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.ask("rename", from)?.map_or_else(|| self.inner.rename(from, to), |_| Ok(()))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.ask("remove", name)?.map_or_else(|| self.inner.remove(name), |_| Ok(()))
    }

    /// Is a call of this folder. The other one may be wrapped too.
    fn link(&self, name: &str, to: &(dyn Folder + 'static)) -> io::Result<()> {
        self.ask("link", name)?;
        let any: &dyn Any = to;
        let to = any.downcast_ref::<Self>().map_or(to, |wrapped| &wrapped.inner);
        self.inner.link(name, to)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let wrong = self.ask("list", "")?;
        let mut names = self.inner.list()?;
        if let Some(wrong) = wrong {
            names.extend([format!("{wrong:016x}.log"), "../\0".to_owned(), names[0].clone()]);
        }
        Ok(names)
    }

    fn sync(&self) -> io::Result<()> {
        self.ask("sync", "")?.map_or_else(|| self.inner.sync(), |_| Ok(()))
    }

    fn lock(&self) -> io::Result<Box<dyn Send + Sync>> {
        self.ask("lock", "")?.map_or_else(|| self.inner.lock(), |_| Ok(Box::new(())))
    }
}

impl<H: Hook> HookedFile<H> {
    fn ask(&self, verb: &'static str, offset: u64, bytes: usize) -> Verdict {
        self.hook.before(&Call { verb, name: self.name.clone(), offset, bytes })
    }
}

fn count(wrong: u64) -> usize {
    usize::try_from(wrong).unwrap_or(usize::MAX)
}

impl<H: Hook> File for HookedFile<H> {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let half = into.len().div_ceil(2);
        match self.ask("read", offset, into.len()) {
            Verdict::Half(None) => self.inner.read_at(&mut into[..half], offset),
            verdict => {
                verdict.result()?.map_or_else(|| self.inner.read_at(into, offset), |n| Ok(count(n)))
            }
        }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        match self.ask("write", offset, bytes.len()) {
            Verdict::Half(error) => {
                let written = self.inner.write_at(&bytes[..bytes.len().div_ceil(2)], offset)?;
                error.map_or(Ok(written), Err)
            }
            verdict => verdict
                .result()?
                .map_or_else(|| self.inner.write_at(bytes, offset), |n| Ok(count(n))),
        }
    }

    fn len(&self) -> io::Result<u64> {
        self.ask("len", 0, 0).result()?.map_or_else(|| self.inner.len(), Ok)
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<u64>> {
        let wrong = self.ask("next", offset, 0).result()?;
        wrong.map_or_else(|| self.inner.next_data(offset), |wrong| Ok(Some(wrong)))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let verb = if self.inner.len()? < len { "grow" } else { "cut" };
        self.ask(verb, len, 0).result()?.map_or_else(|| self.inner.set_len(len), |_| Ok(()))
    }

    fn sync(&self) -> io::Result<()> {
        self.ask("sync", 0, 0).result()?.map_or_else(|| self.inner.sync(), |_| Ok(()))
    }
}

impl<H: Hook> Drop for HookedFile<H> {
    fn drop(&mut self) {
        let _ = self.ask("closed", 0, 0);
    }
}

impl<F: Clone, H> Clone for Hooked<F, H> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), hook: self.hook.clone() }
    }
}

impl<F: fmt::Debug, H> fmt::Debug for Hooked<F, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hooked").field(&self.inner).finish()
    }
}

impl<H: Hook> fmt::Debug for HookedFile<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hooked").field(&self.inner).finish()
    }
}
