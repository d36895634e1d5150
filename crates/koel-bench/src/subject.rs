//! What is measured: a filter, its name, and which of its operations have which mode.
//!
//! Every filter gets `u64` keys and hashes them in its own way, so everyone's time has a hash in it. The loops over the keys are here
//! or in the filter's own file, never behind a virtual call per key.

use std::hint::black_box;

use crate::Failure;

/// How keys are handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// One call a key.
    Single,
    /// One call for a slice of keys.
    Batch,
    /// One call for all keys, of an empty filter.
    Bulk,
}

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// Keys into an empty filter, until all are in.
    Insert,
    /// Lookups of keys that are in.
    Hit,
    /// Lookups of keys that are not.
    Miss,
    /// Lookups of keys of which a coin says whether they are: no processor can guess the answers.
    Mix,
    /// Deletes of keys that are in, of a filter that is full at first.
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

/// Those of `all` with these names; all of them if there is none.
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

/// Something that is measured: a filter in one way of using it.
pub(crate) struct Subject {
    /// The crate's name where it is a crate; `+mix` where it got the cheap hasher of `subjects/mix.rs` instead of its default.
    pub(crate) name: &'static str,
    /// The mode of insert, hit, miss and delete; `None`: not measured, or there is no such thing.
    pub(crate) modes: [Option<Mode>; 4],
    /// The empty filter for so many keys at this error rate.
    pub(crate) build: fn(usize, f64) -> Box<dyn Filter>,
    /// Where the filter is not what was asked for, or its figures need a word.
    pub(crate) note: &'static str,
}

impl Subject {
    /// Whether keys are looked up one a call, as in every filter.
    pub(crate) fn is_single(&self) -> bool {
        self.mode(Op::Miss) == Some(Mode::Single)
    }

    /// Whether it is built from all its keys, and that is all that is measured of it.
    pub(crate) fn is_built_at_once(&self) -> bool {
        self.mode(Op::Hit).is_none()
    }

    /// The name, and the mode where it is not the usual one.
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

/// A filter under measurement. Implemented once in each file of `subjects/`, for the rival or baseline of that file, and in
/// `subjects/koel.rs` for Koel in each mode.
pub(crate) trait Filter {
    /// Puts in keys, in order, until one is refused; how many were accepted.
    fn insert(&mut self, keys: &[u64]) -> usize;

    /// How many of the keys are reported present.
    fn find(&self, keys: &[u64]) -> usize;

    /// The same by the call for many keys at once, where it has one besides.
    fn find_many(&self, _keys: &[u64]) -> Option<usize> {
        None
    }

    /// Takes keys out; how many were there. Never called where [`Subject::modes`] has no delete.
    fn delete(&mut self, _keys: &[u64]) -> usize {
        0
    }

    /// Memory for the keys, as the crate reports it or computed from its public parameters.
    fn bytes(&self) -> usize;

    /// Slots that a key takes one of, where the filter is full one day.
    fn slots(&self) -> Option<usize> {
        None
    }

    /// [`insert`](Self::insert), but stopping also where the filter grows instead of refusing.
    fn fill(&mut self, keys: &[u64]) -> usize {
        self.insert(keys)
    }
}

/// Hands over keys until one is refused; how many were accepted.
#[inline(always)]
pub(crate) fn until_refused(keys: &[u64], mut accept: impl FnMut(u64) -> bool) -> usize {
    let keys = black_box(keys);
    keys.iter().position(|&key| !accept(key)).unwrap_or(keys.len())
}

/// How many of the keys `found` says yes to.
#[inline(always)]
pub(crate) fn tally(keys: &[u64], mut found: impl FnMut(u64) -> bool) -> usize {
    black_box(keys).iter().filter(|&&key| found(key)).count()
}
