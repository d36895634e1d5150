//! What every method for many keys does: read the keys, work on each chunk, return the answers.
//!
//! The work is done without the GIL, and gets the filter, a chunk of keys, and a default answer for
//! each key, which it overwrites. [`answers`] returns all of them in the shape of the keys,
//! [`count`] counts those that are true, and [`each_chunk`] passes them on.
//!
//! Cost: the memory of the answers; of one chunk of them if they are only counted.

use pyo3::prelude::*;

use crate::answer::{Answer, Shape};
use crate::batch::{Batch, Chunk, more};
use crate::body::Body;
use crate::key::Hashing;
use crate::shared::Shared;
use crate::source;

impl<O: Send + Sync, M: Send + Sync> Shared<Body<O, M>> {
    /// Work that only reads.
    pub(crate) fn lookup<A: Send>(
        &self,
        work: impl Fn(&Body<O, M>, Chunk<'_>, &mut [A]) + Sync,
    ) -> impl Fn(Python<'_>, Chunk<'_>, &mut [A]) -> PyResult<()> {
        move |py, chunk, answers| {
            self.read_detached(py, |contents| work(contents, chunk, answers));
            Ok(())
        }
    }

    /// Work that changes the filter. Fails if that reads a memory-mapped file.
    pub(crate) fn change<A: Send>(
        &self,
        work: impl Fn(&mut O, Chunk<'_>, &mut [A]) -> PyResult<()> + Sync,
    ) -> impl Fn(Python<'_>, Chunk<'_>, &mut [A]) -> PyResult<()> {
        move |py, chunk, answers| {
            self.write_detached(py, |contents| work(contents.owned()?, chunk, answers))
        }
    }
}

/// Does the work for all keys. After each chunk, `take` gets the answers, and may remove them.
fn run<A: Clone + Default>(
    keys: &Bound<'_, PyAny>,
    hashing: Hashing,
    work: impl Fn(Python<'_>, Chunk<'_>, &mut [A]) -> PyResult<()>,
    mut take: impl FnMut(&mut Vec<A>) -> PyResult<()>,
) -> PyResult<(Vec<A>, Shape)> {
    let mut answers = Vec::new();
    let mut work = |py: Python<'_>, chunk: Chunk<'_>| {
        work(py, chunk, more(&mut answers, chunk.len())?)?;
        take(&mut answers)
    };
    let shape = source::read(&mut Batch { hashing, work: &mut work }, keys)?;
    Ok((answers, shape))
}

/// The answer for each key, as an array in the shape of the keys.
pub(crate) fn answers<'py, A: Answer>(
    keys: &Bound<'py, PyAny>,
    hashing: Hashing,
    work: impl Fn(Python<'_>, Chunk<'_>, &mut [A]) -> PyResult<()>,
) -> PyResult<Bound<'py, PyAny>> {
    let (answers, shape) = run(keys, hashing, work, |_| Ok(()))?;
    shape.give(keys.py(), answers)
}

/// The number of keys whose answer is true.
pub(crate) fn count(
    keys: &Bound<'_, PyAny>,
    hashing: Hashing,
    work: impl Fn(Python<'_>, Chunk<'_>, &mut [bool]) -> PyResult<()>,
) -> PyResult<usize> {
    let mut count = 0;
    run(keys, hashing, work, |answers| {
        count += answers.drain(..).filter(|&answer| answer).count();
        Ok(())
    })?;
    Ok(count)
}

/// Passes on the answers of one chunk after the other. No key may be missing.
pub(crate) fn each_chunk<A: Clone + Default>(
    keys: &Bound<'_, PyAny>,
    hashing: Hashing,
    work: impl Fn(Python<'_>, Chunk<'_>, &mut [A]) -> PyResult<()>,
    mut take: impl FnMut(&mut [A]) -> PyResult<()>,
) -> PyResult<()> {
    let (_, shape) = run(keys, hashing, work, |answers| {
        take(answers)?;
        answers.clear();
        Ok(())
    })?;
    shape.refuse_nulls()
}
