//! What is measured: a filter, its name, and how keys are passed to each of its operations.
//!
//! Every filter gets `u64` keys and hashes them in its own way, so every time includes a hash. A
//! filter is a record of its own calls, [`Calls`]; the loops over the keys are here, compiled for
//! each filter, so that no key pays for a virtual call. The same record serves filters, filters
//! that threads share (each thread has a clone), sets that forget, and maps.

use std::hint::black_box;
use std::sync::Arc;

use crate::Failure;

/// How keys are passed to a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// One call per key.
    Single,
    /// One call per slice of keys, as in a program that reads its keys from somewhere; one call per
    /// key in a filter that has no other.
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
        ["insert", "hit", "miss", "mix", "delete"][self as usize]
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

/// Builds the empty filter for this many keys at this false-positive rate.
pub(crate) type Build = fn(usize, f64) -> Box<dyn Filter>;

/// A filter, used in one way.
pub(crate) struct Subject {
    /// The name of the crate, for a rival; `+mix` if it got the cheap hasher of `subjects/mix.rs`
    /// instead of its default.
    pub(crate) name: &'static str,
    pub(crate) insert: Mode,
    /// How it is asked and deleted from; `None` if only inserts are measured.
    pub(crate) find: Option<Mode>,
    /// Whether it has deletes.
    pub(crate) deletes: bool,
    pub(crate) build: Build,
    /// A remark on a filter that is not exactly the requested one.
    pub(crate) note: &'static str,
}

impl Subject {
    /// All operations in the same mode.
    pub(crate) const fn new(name: &'static str, mode: Mode, build: Build) -> Self {
        Self { name, insert: mode, find: Some(mode), deletes: true, build, note: "" }
    }

    /// Whether keys are looked up singly, as in every filter.
    pub(crate) fn is_single(&self) -> bool {
        self.find == Some(Mode::Single)
    }

    /// The name, with the mode unless it is the usual one.
    pub(crate) fn label(&self) -> String {
        let mode = self.insert.name();
        if self.is_single() { self.name.into() } else { format!("{}, {mode}", self.name) }
    }

    /// `None` for an operation that is not measured or does not exist.
    pub(crate) fn mode(&self, op: Op) -> Option<Mode> {
        match op {
            Op::Insert => Some(self.insert),
            Op::Hit | Op::Miss | Op::Mix => self.find,
            Op::Delete => self.find.filter(|_| self.deletes),
        }
    }
}

/// A filter under measurement.
pub(crate) trait Filter {
    /// Inserts keys in order until one is refused, and returns how many were accepted.
    fn insert(&mut self, keys: &[u64], mode: Mode) -> usize;

    /// Returns how many of the keys are reported present.
    fn find(&self, keys: &[u64], mode: Mode) -> usize;

    /// Removes keys and returns how many were present.
    fn delete(&mut self, keys: &[u64], mode: Mode) -> usize;

    /// Memory for the keys, as the crate reports it or computed from its public parameters; 0 if
    /// neither is possible.
    fn bytes(&self) -> usize;

    /// The number of slots, for a filter that can be full; a key takes one.
    fn slots(&self) -> Option<usize>;

    /// As [`insert`](Self::insert), but also stops where the filter would grow, to a few keys.
    fn fill(&mut self, keys: &[u64], mode: Mode) -> usize;

    /// Goes to the next step of a window, after which old keys are forgotten.
    fn step(&mut self);
}

/// Inserts keys that are made on the fly, slice by slice. Returns how many were accepted.
pub(crate) fn insert_all(
    filter: &mut dyn Filter,
    mut keys: impl Iterator<Item = u64>,
    mode: Mode,
) -> usize {
    let mut accepted = 0;
    loop {
        let slice: Vec<_> = keys.by_ref().take(SLICE).collect();
        if slice.is_empty() {
            return accepted;
        }
        accepted += filter.insert(&slice, mode);
    }
}

/// Keys of one call in [`Mode::Batch`].
pub(crate) const SLICE: usize = 4096;

/// A filter and its calls: those for one key are compiled into the loops over keys.
#[derive(Clone)]
pub(crate) struct Calls<F, I, C, R> {
    filter: F,
    insert: I,
    contains: C,
    remove: R,
    many: Option<Many<F>>,
    bulk: Option<Bulk<F>>,
    bytes: fn(&F) -> usize,
    slots: fn(&F) -> Option<usize>,
    step: fn(&mut F),
    grows: bool,
}

/// The calls for many keys: the number of keys that were accepted, and an answer for each key.
#[derive(Clone)]
struct Many<F> {
    insert: fn(&mut F, &[u64]) -> usize,
    contains: fn(&F, &[u64], &mut [bool]),
    remove: fn(&mut F, &[u64], &mut [bool]),
}

/// Builds a filter from all its keys.
type Bulk<F> = Arc<dyn Fn(&[u64]) -> Option<F> + Send + Sync>;

impl<F, I, C, R> Calls<F, I, C, R>
where
    I: Fn(&mut F, u64) -> bool,
    C: Fn(&F, u64) -> bool,
    R: Fn(&mut F, u64) -> bool,
{
    /// A filter with its calls for one key: whether it was accepted, is present, was present.
    pub(crate) fn new(filter: F, insert: I, contains: C, remove: R) -> Self {
        let (many, bulk, grows) = (None, None, false);
        let (bytes, slots, step) = (|_: &F| 0, |_: &F| None, |_: &mut F| ());
        Self { filter, insert, contains, remove, many, bulk, bytes, slots, step, grows }
    }

    pub(crate) fn many(
        mut self,
        insert: fn(&mut F, &[u64]) -> usize,
        contains: fn(&F, &[u64], &mut [bool]),
        remove: fn(&mut F, &[u64], &mut [bool]),
    ) -> Self {
        self.many = Some(Many { insert, contains, remove });
        self
    }

    pub(crate) fn bulk(
        mut self,
        build: impl Fn(&[u64]) -> Option<F> + Send + Sync + 'static,
    ) -> Self {
        self.bulk = Some(Arc::new(build));
        self
    }

    pub(crate) fn with_bytes(self, bytes: fn(&F) -> usize) -> Self {
        Self { bytes, ..self }
    }

    pub(crate) fn with_slots(self, slots: fn(&F) -> Option<usize>) -> Self {
        Self { slots, ..self }
    }

    /// A filter that adds at least half as many slots as it has instead of refusing a key.
    pub(crate) fn grows(self) -> Self {
        Self { grows: true, ..self }
    }

    pub(crate) fn with_step(self, step: fn(&mut F)) -> Self {
        Self { step, ..self }
    }
}

/// Counts the keys that `answer` finds true, slice by slice.
#[inline(always)]
fn tally_slices(keys: &[u64], mut answer: impl FnMut(&[u64], &mut [bool])) -> usize {
    let mut answers = [false; SLICE];
    let mut yeses = 0;
    for slice in black_box(keys).chunks(SLICE) {
        let answers = &mut answers[..slice.len()];
        answer(slice, answers);
        yeses += answers.iter().filter(|&&yes| yes).count();
    }
    yeses
}

impl<F, I, C, R> Filter for Calls<F, I, C, R>
where
    I: Fn(&mut F, u64) -> bool,
    C: Fn(&F, u64) -> bool,
    R: Fn(&mut F, u64) -> bool,
{
    fn insert(&mut self, keys: &[u64], mode: Mode) -> usize {
        let keys = black_box(keys);
        match (mode, &self.many, &self.bulk) {
            (Mode::Batch, Some(many), _) => {
                let mut accepted = 0;
                for slice in keys.chunks(SLICE) {
                    let new = (many.insert)(&mut self.filter, slice);
                    accepted += new;
                    if new < slice.len() {
                        break;
                    }
                }
                accepted
            }
            (Mode::Bulk, _, Some(build)) => build(keys).map_or(0, |filter| {
                self.filter = filter;
                keys.len()
            }),
            _ => {
                let refused = |&key: &u64| !(self.insert)(&mut self.filter, key);
                keys.iter().position(refused).unwrap_or(keys.len())
            }
        }
    }

    fn find(&self, keys: &[u64], mode: Mode) -> usize {
        match self.many.as_ref().filter(|_| mode == Mode::Batch) {
            Some(many) => {
                tally_slices(keys, |keys, found| (many.contains)(&self.filter, keys, found))
            }
            None => {
                let found = |&&key: &&u64| (self.contains)(&self.filter, key);
                black_box(keys).iter().filter(found).count()
            }
        }
    }

    fn delete(&mut self, keys: &[u64], mode: Mode) -> usize {
        match self.many.as_ref().filter(|_| mode == Mode::Batch) {
            Some(many) => {
                tally_slices(keys, |keys, gone| (many.remove)(&mut self.filter, keys, gone))
            }
            None => {
                let gone = |&&key: &&u64| (self.remove)(&mut self.filter, key);
                black_box(keys).iter().filter(gone).count()
            }
        }
    }

    fn bytes(&self) -> usize {
        (self.bytes)(&self.filter)
    }

    fn slots(&self) -> Option<usize> {
        (self.slots)(&self.filter)
    }

    fn fill(&mut self, keys: &[u64], mode: Mode) -> usize {
        if !self.grows {
            return self.insert(keys, mode);
        }
        let before = self.slots();
        let is_as_before = |filter: &Self| {
            filter.slots().zip(before).is_some_and(|(now, before)| now < before * 3 / 2)
        };
        let mut accepted = 0;
        for slice in keys.chunks(64) {
            self.insert(slice, mode);
            if !is_as_before(self) {
                break;
            }
            accepted += slice.len();
        }
        accepted
    }

    fn step(&mut self) {
        (self.step)(&mut self.filter);
    }
}
