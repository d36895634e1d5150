//! What is measured: a filter, its name, and the mode of each of its operations.
//!
//! Every filter gets `u64` keys and hashes them in its own way, so every time includes a hash. The
//! loops over the keys are here or in the filter's own file, never behind one virtual call per key.

use std::hint::black_box;

use crate::Failure;

/// How keys are passed to a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// One call per key.
    Single,
    /// One call per slice of keys.
    Batch,
    /// One call for all keys, to an empty filter.
    Bulk,
}

/// The operations that are timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// Inserts into an empty filter, until all keys are in.
    Insert,
    /// Lookups of present keys.
    Hit,
    /// Lookups of absent keys.
    Miss,
    /// Lookups of present and absent keys in random order, which no branch predictor can guess.
    Mix,
    /// Deletes of present keys, from a filter that is full at first.
    Delete,
}

impl Mode {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Batch => "batch",
            Self::Bulk => "bulk",
        }
    }
}

impl Op {
    pub(crate) const ALL: [Self; 5] =
        [Self::Insert, Self::Hit, Self::Miss, Self::Mix, Self::Delete];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Hit => "hit",
            Self::Miss => "miss",
            Self::Mix => "mix",
            Self::Delete => "delete",
        }
    }
}

/// Those of `all` with these names, or all of them if no name is given.
pub(crate) fn chosen<T>(
    all: &'static [T],
    name: fn(&T) -> &'static str,
    names: &[String],
) -> Result<Vec<&'static T>, Failure> {
    if let Some(unknown) = names.iter().find(|wanted| !all.iter().any(|it| name(it) == **wanted)) {
        let mut list: Vec<_> = all.iter().map(name).collect();
        list.dedup();
        return Err(format!("nothing is named `{unknown}`; there are: {}", list.join(", ")).into());
    }
    let wanted = |it: &&T| names.is_empty() || names.iter().any(|wanted| wanted == name(it));
    Ok(all.iter().filter(wanted).collect())
}

/// A filter, used in one way.
pub(crate) struct Subject {
    /// The name of the crate, for a rival; `+mix` if it got the cheap hasher of `subjects/mix.rs`
    /// instead of its default.
    pub(crate) name: &'static str,
    /// The modes of insert, hit, miss and delete; `None` for an operation that is not measured or
    /// does not exist.
    pub(crate) modes: [Option<Mode>; 4],
    /// Builds the empty filter for this many keys at this false-positive rate.
    pub(crate) build: fn(usize, f64) -> Box<dyn Filter>,
    /// A remark on a filter that is not exactly the requested one.
    pub(crate) note: &'static str,
}

impl Subject {
    /// Whether keys are looked up singly, as in every filter.
    pub(crate) fn is_single(&self) -> bool {
        self.mode(Op::Miss) == Some(Mode::Single)
    }

    /// Whether only a bulk build is measured.
    pub(crate) fn is_built_at_once(&self) -> bool {
        self.mode(Op::Hit).is_none()
    }

    /// The name, with the mode unless it is the usual one.
    pub(crate) fn label(&self) -> String {
        let mode = self.modes.iter().flatten().next().map_or("", |mode| mode.name());
        if self.is_single() { self.name.into() } else { format!("{}, {mode}", self.name) }
    }

    pub(crate) fn mode(&self, op: Op) -> Option<Mode> {
        let [insert, hit, miss, delete] = self.modes;
        match op {
            Op::Insert => insert,
            Op::Hit => hit,
            Op::Miss => miss,
            Op::Mix => hit.and(miss),
            Op::Delete => delete,
        }
    }
}

/// A filter under measurement. Each file of `subjects/` implements it once, and `subjects/koel.rs`
/// once per mode.
pub(crate) trait Filter {
    /// Inserts keys in order until one is refused, and returns how many were accepted.
    fn insert(&mut self, keys: &[u64]) -> usize;

    /// Returns how many of the keys are reported present.
    fn find(&self, keys: &[u64]) -> usize;

    /// The same by the batched call, for a filter that has one as well.
    fn find_many(&self, _keys: &[u64]) -> Option<usize> {
        None
    }

    /// Removes keys and returns how many were present. Never called if [`Subject::modes`] has no
    /// delete.
    fn delete(&mut self, _keys: &[u64]) -> usize {
        0
    }

    /// Memory for the keys, as the crate reports it or computed from its public parameters.
    fn bytes(&self) -> usize;

    /// The number of slots, for a filter that can be full; a key takes one.
    fn slots(&self) -> Option<usize> {
        None
    }

    /// As [`insert`](Self::insert), but also stops where the filter would grow.
    fn fill(&mut self, keys: &[u64]) -> usize {
        self.insert(keys)
    }
}

/// Inserts keys until one is refused, and returns how many were accepted.
#[inline(always)]
pub(crate) fn until_refused(keys: &[u64], mut accept: impl FnMut(u64) -> bool) -> usize {
    let keys = black_box(keys);
    keys.iter().position(|&key| !accept(key)).unwrap_or(keys.len())
}

/// Returns how many of the keys `found` reports present.
#[inline(always)]
pub(crate) fn tally(keys: &[u64], mut found: impl FnMut(u64) -> bool) -> usize {
    black_box(keys).iter().filter(|&&key| found(key)).count()
}
