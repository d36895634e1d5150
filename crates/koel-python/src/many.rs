//! What every method for many keys does: read the keys, work on each chunk, return the answers.
//!
//! The work is done without the GIL, and gets the filter, a chunk of keys, and a default answer for
//! each key, which it overwrites. [`answers`] returns all of them in the shape of the keys,
//! [`count`] counts those that are true, [`each_chunk`] passes them on, and [`collect`] those that
//! there are.
//!
//! **A batch that fails** has done the keys before the one that failed. Its exception has two
//! attributes: `done` is the number of these keys, missing ones included, and `answers` is what the
//! call would have returned for them.
//!
//! Cost: the memory of the answers; of one chunk of them if they are only counted.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::answer::{Answer, Shape};
use crate::batch::{Batch, Chunk, more};
use crate::body::Body;
use crate::error::IntoException;
use crate::key::Hashing;
use crate::shared::Shared;
use crate::source;

/// Why a chunk was not finished, and how many of its keys are done.
pub(crate) struct Stopped {
    pub(crate) done: usize,
    pub(crate) error: PyErr,
}

impl Stopped {
    /// A chunk of inserts that raised the number of keys from `before` to `now`.
    pub(crate) fn after(before: u64, now: u64, error: impl IntoException) -> Self {
        let done = usize::try_from(now.saturating_sub(before)).unwrap_or(usize::MAX);
        Self { done, error: error.into_exception() }
    }

    /// A chunk of keys that are added unless they are in: the first one failed that was not added
    /// and is not in.
    pub(crate) fn first_absent(
        added: &[bool],
        is_in: impl Fn(usize) -> bool,
        error: impl IntoException,
    ) -> Self {
        let failed = (0..added.len()).find(|&key| !added[key] && !is_in(key));
        Self { done: failed.unwrap_or(added.len()), error: error.into_exception() }
    }
}

impl From<PyErr> for Stopped {
    fn from(error: PyErr) -> Self {
        Self { done: 0, error }
    }
}

/// The exception of a batch of which so many keys are done.
pub(crate) fn attach<'py>(
    py: Python<'py>,
    error: PyErr,
    done: usize,
    answers: impl IntoPyObject<'py>,
) -> PyErr {
    let exception = error.value(py);
    let attached = exception.setattr("done", done);
    match attached.and_then(|()| exception.setattr("answers", answers)) {
        Ok(()) => error,
        Err(error) => error,
    }
}

impl<O: Send + Sync, M: Send + Sync> Shared<Body<O, M>> {
    /// Work that only reads.
    pub(crate) fn lookup<A: Send>(
        &self,
        work: impl Fn(&Body<O, M>, Chunk<'_>, &mut [A]) + Sync,
    ) -> impl Fn(Python<'_>, Chunk<'_>, &mut [A]) -> Result<(), Stopped> {
        move |py, chunk, answers| {
            self.read_detached(py, |contents| work(contents, chunk, answers));
            Ok(())
        }
    }

    /// Work that changes the filter. Fails if that reads a memory-mapped file.
    pub(crate) fn change<A: Send>(
        &self,
        work: impl Fn(&mut O, Chunk<'_>, &mut [A]) -> Result<(), Stopped> + Sync,
    ) -> impl Fn(Python<'_>, Chunk<'_>, &mut [A]) -> Result<(), Stopped> {
        move |py, chunk, answers| {
            self.write_detached(py, |contents| work(contents.owned()?, chunk, answers))
        }
    }
}

/// What a batch has done so far.
struct Progress<A> {
    /// Answers that nobody has taken.
    answers: Vec<A>,
    /// The number of keys that are done, without missing ones.
    done: usize,
    shape: Shape,
}

/// Does the work for all keys, or until it fails. After each chunk, `take` gets the answers, and
/// may remove them.
fn run<A: Clone + Default>(
    keys: &Bound<'_, PyAny>,
    hashing: Hashing,
    work: impl Fn(Python<'_>, Chunk<'_>, &mut [A]) -> Result<(), Stopped>,
    mut take: impl FnMut(&mut Vec<A>) -> PyResult<()>,
) -> (Progress<A>, PyResult<()>) {
    let (mut answers, mut done, mut shape) = (Vec::new(), 0, Shape::flat());
    let mut chunks = 0_usize;
    let mut each = |py: Python<'_>, chunk: Chunk<'_>| {
        chunks += 1;
        let start = answers.len();
        let worked = work(py, chunk, more(&mut answers, chunk.len())?);
        let finished = worked.as_ref().map_or_else(|stopped| stopped.done, |()| chunk.len());
        answers.truncate(start + finished);
        done += finished;
        take(&mut answers)?;
        worked.map_err(|stopped| stopped.error)
    };
    let mut read = source::read(&mut Batch { hashing, work: &mut each }, keys, &mut shape);
    if chunks == 0 && read.is_ok() {
        // There are no keys. The work may set the time, or refuse to change a memory map.
        let worked = work(keys.py(), Chunk::Words(&[]), &mut []);
        read = worked.map_err(|stopped| stopped.error);
    }
    (Progress { answers, done, shape }, read)
}

/// The answer for each key, as an array in the shape of the keys.
pub(crate) fn answers<'py, A: Answer>(
    keys: &Bound<'py, PyAny>,
    hashing: Hashing,
    work: impl Fn(Python<'_>, Chunk<'_>, &mut [A]) -> Result<(), Stopped>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = keys.py();
    let (Progress { answers, done, shape }, read) = run(keys, hashing, work, |_| Ok(()));
    let Err(error) = read else { return shape.give(py, answers) };
    let rows = shape.rows_of(done);
    Err(attach(py, error, rows, shape.give_first(py, answers)?))
}

/// The number of keys of some batches, one after the other, whose answer is true.
pub(crate) fn count(
    batches: &Bound<'_, PyTuple>,
    hashing: Hashing,
    work: impl Fn(Python<'_>, Chunk<'_>, &mut [bool]) -> Result<(), Stopped>,
) -> PyResult<usize> {
    let (mut count, mut done) = (0, 0);
    // Without any, the work is still to set the time, or to refuse to change a memory map.
    let none = batches.is_empty().then(|| batches.clone().into_any());
    for keys in batches.iter().chain(none) {
        let (progress, read) = run(&keys, hashing, &work, |answers| {
            count += answers.drain(..).filter(|&answer| answer).count();
            Ok(())
        });
        done += progress.shape.rows_of(progress.done);
        read.map_err(|error| attach(keys.py(), error, done, count))?;
    }
    Ok(count)
}

/// Passes on what the work finds in each chunk. Returns the number of keys. A key that fails leaves
/// nothing done.
pub(crate) fn collect<A: Clone>(
    keys: &Bound<'_, PyAny>,
    hashing: Hashing,
    work: impl Fn(Python<'_>, Chunk<'_>, &mut [Option<A>]) -> Result<(), Stopped>,
    mut take: impl FnMut(Vec<A>) -> PyResult<()>,
) -> PyResult<usize> {
    let (progress, read) =
        run(keys, hashing, work, |answers| take(answers.drain(..).flatten().collect()));
    read.map(|()| progress.done).map_err(|error| attach(keys.py(), error, 0, 0))
}

/// Passes on the answers of one chunk after the other. No key may be missing. Returns the shape of
/// the keys.
pub(crate) fn each_chunk<A: Clone + Default>(
    keys: &Bound<'_, PyAny>,
    hashing: Hashing,
    work: impl Fn(Python<'_>, Chunk<'_>, &mut [A]) -> Result<(), Stopped>,
    mut take: impl FnMut(&mut [A]) -> PyResult<()>,
) -> PyResult<Shape> {
    let (progress, read) = run(keys, hashing, work, |answers| {
        take(answers)?;
        answers.clear();
        Ok(())
    });
    read?;
    progress.shape.refuse_nulls()?;
    Ok(progress.shape)
}
