//! Chunks of keys, and what is done with each.
//!
//! A chunk goes to the filter while other threads run Python, and afterwards Python handles its
//! signals: Ctrl-C stops a batch between two chunks. Objects are hashed while this thread holds the
//! GIL, so that no other thread can free them.
//!
//! **What a failed batch has done**: the keys before the one that failed, and no other. Keys of a
//! collection are checked before the first change.
//!
//! Cost: 8 bytes of memory for each key of a collection of objects, and for each of a chunk of
//! others.

use koel::KeyHash;
use pyo3::prelude::*;

use crate::error::reserve;
use crate::key::{Hashing, Width};

/// Keys that go to the filter at once.
pub(crate) const CHUNK: usize = 1 << 18;

/// Keys of a chunk.
#[derive(Clone, Copy)]
pub(crate) enum Chunk<'a> {
    /// Integers of 64 bits, hashed by the filter.
    Words(&'a [u64]),
    /// Ready hashes.
    Hashes(&'a [KeyHash]),
}

impl Chunk<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Words(words) => words.len(),
            Self::Hashes(hashes) => hashes.len(),
        }
    }
}

/// Runs an expression with the keys of a chunk, whatever their type.
macro_rules! with_keys {
    ($chunk:expr, $keys:ident => $work:expr) => {
        match $chunk {
            $crate::batch::Chunk::Words($keys) => $work,
            $crate::batch::Chunk::Hashes($keys) => $work,
        }
    };
}
pub(crate) use with_keys;

/// What is called with each chunk of keys.
pub(crate) type Work<'w> = dyn FnMut(Python<'_>, Chunk<'_>) -> PyResult<()> + 'w;

/// Reads keys of one kind after the other, and passes them on in chunks.
pub(crate) struct Batch<'w> {
    pub(crate) hashing: Hashing,
    pub(crate) work: &'w mut Work<'w>,
}

impl Batch<'_> {
    /// Integers of 64 bits.
    pub(crate) fn read_words(&mut self, py: Python<'_>, words: &[u64]) -> PyResult<()> {
        if self.hashing.width == Width::W64 {
            return words.chunks(CHUNK).try_for_each(|words| self.pass(py, Chunk::Words(words)));
        }
        let mut hashes = Vec::new();
        for words in words.chunks(CHUNK) {
            hashes.clear();
            reserve(&mut hashes, words.len())?;
            hashes.extend(words.iter().map(|&word| self.hashing.hash_word(word)));
            self.pass(py, Chunk::Hashes(&hashes))?;
        }
        Ok(())
    }

    /// One chunk.
    pub(crate) fn pass(&mut self, py: Python<'_>, chunk: Chunk<'_>) -> PyResult<()> {
        (self.work)(py, chunk)?;
        py.check_signals()
    }

    /// Any iterable of keys. Those of a collection are all hashed first, so that one that is not a
    /// key is found before the first change. Those of an iterator are passed on as they come, up to
    /// the one that fails.
    pub(crate) fn read_objects(&mut self, keys: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut hashes = Vec::new();
        if keys.len().is_ok() {
            self.hash_each(keys, &mut hashes)?;
            return self.pass_all(keys.py(), &hashes);
        }
        let py = keys.py();
        let mut failed = Ok(());
        for key in keys.try_iter()? {
            failed = key.and_then(|key| push_hash(&mut hashes, self.hashing.hash(&key)?));
            if failed.is_err() {
                break;
            }
            if hashes.len() == CHUNK {
                self.pass(py, Chunk::Hashes(&hashes))?;
                hashes.clear();
            }
        }
        self.pass(py, Chunk::Hashes(&hashes))?;
        failed
    }

    /// Appends the hash of each key.
    pub(crate) fn hash_each(
        &self,
        keys: &Bound<'_, PyAny>,
        hashes: &mut Vec<KeyHash>,
    ) -> PyResult<()> {
        for key in keys.try_iter()? {
            push_hash(hashes, self.hashing.hash(&key?)?)?;
            if hashes.len().is_multiple_of(CHUNK) {
                keys.py().check_signals()?;
            }
        }
        Ok(())
    }

    /// All hashes, in chunks.
    pub(crate) fn pass_all(&mut self, py: Python<'_>, hashes: &[KeyHash]) -> PyResult<()> {
        hashes.chunks(CHUNK).try_for_each(|hashes| self.pass(py, Chunk::Hashes(hashes)))
    }
}

fn push_hash(hashes: &mut Vec<KeyHash>, hash: KeyHash) -> PyResult<()> {
    if hashes.len() == hashes.capacity() {
        let room = hashes.len().max(64);
        reserve(hashes, room)?;
    }
    hashes.push(hash);
    Ok(())
}

/// Adds `len` default answers, and returns them.
pub(crate) fn more<T: Clone + Default>(answers: &mut Vec<T>, len: usize) -> PyResult<&mut [T]> {
    let start = answers.len();
    reserve(answers, len)?;
    answers.resize(start + len, T::default());
    Ok(&mut answers[start..])
}
