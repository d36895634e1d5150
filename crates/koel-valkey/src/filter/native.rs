//! A filter of ours: a `koel::CuckooFilter` and what commands remember beside it.
//!
//! A filter that grows reaches 1.35 times the error rate that its table was built for, so that its
//! table is built for the rate divided by that. It then keeps the rate that was asked for, and
//! takes 0.43 bits a key more.
//!
//! Same commands, same bytes: nothing here depends on a clock, a random number or the server. So
//! replicas that receive the same commands are equal byte by byte.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::ops::Range;
use std::{fmt, ptr};

use koel::{
    BuildError, Builder, CuckooFilter, FullError, ImageError, Merge, Prefer, RefuteError, WhenFull,
};
use koel_lines::KeyForm;

use crate::error::{Error, Full};
use crate::filter::header::{NativeHeader, Origin};
use crate::filter::journal::{Change, Journal, Run};
use crate::filter::{Added, Cuckoo, Info, Mark, Measure, Options};

/// The error rate if none is given.
pub const DEFAULT_ERROR: f64 = 0.001;
/// How far growth may raise the error rate (`koel::Builder::growable`).
const GROWTH: f64 = 1.35;
/// Items that are added at once. Well below the 4096 from which the library makes room ahead, so
/// that no command waits for that.
pub(super) const BATCH: usize = 512;

/// The longest window: a hundred years.
pub const MOST_SECONDS: u64 = 100 * 365 * 24 * 3600;

/// A key of SipHash.
pub type Key = [u8; 16];

/// Whether chance explains that so many of `asked` items are reported.
fn check_refutation(filter: &CuckooFilter, asked: u64, reported: u64) -> Result<(), Error> {
    let checked = filter.check_refutation(asked, reported);
    checked.map_err(|error| match error {
        RefuteError::Members { asked, reported, expected } => {
            Error::Members { asked, reported, expected }
        }
        _ => Error::Corrections { limit: filter.slots() },
    })
}

/// How long items stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Seconds, from 1 to [`MOST_SECONDS`].
    pub seconds: u64,
    /// What happens when an item finds no room.
    pub when_full: WhenFull,
}

/// Which secret hashes items, so that nobody can choose items that look alike.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Secret {
    /// That of the server, if it has one.
    Server,
    /// None: XXH3-64 with the seed that everybody knows.
    No,
    /// This one, for SipHash-1-3.
    Key(Key),
}

/// Hides the secret.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// What a filter is reserved with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Distinct items.
    pub capacity: u64,
    /// The error rate to keep.
    pub error: f64,
    /// Fewest bits, or fewest instructions.
    pub prefer: Prefer,
    /// How long items stay, if they expire.
    pub window: Option<Window>,
    /// What hashes items.
    pub secret: Secret,
    /// RedisBloom's options.
    pub options: Options,
}

/// A filter of ours.
#[derive(Debug)]
pub struct Native {
    filter: CuckooFilter,
    capacity: u64,
    error: f64,
    deleted: u64,
    options: Options,
    /// Changes since a copy was made, if that is to follow. It is not saved.
    journal: Option<Box<Journal>>,
}

impl Native {
    /// An empty filter.
    ///
    /// # Errors
    /// [`Error::Build`] or [`Error::NoMemoryToCreate`].
    pub fn create(settings: Settings, secret: Option<Key>) -> Result<Self, Error> {
        let Settings { capacity, error, options, .. } = settings;
        let builder = builder(&settings);
        let builder = if let Some(key) = secret { builder.sip_key(key) } else { builder };
        let filter = builder.build().map_err(|problem| asked(problem, &settings))?;
        Ok(Self { filter, capacity, error, deleted: 0, options, journal: None })
    }

    /// Bytes of the filter that [`create`](Self::create) makes.
    ///
    /// # Errors
    /// [`Error::Build`].
    pub fn planned_bytes(settings: &Settings) -> Result<u64, Error> {
        let plan = builder(settings).plan().map_err(|problem| asked(problem, settings))?;
        Ok(plan.size_in_bytes as u64)
    }

    /// The filter of a header and its complete body, which came from somewhere. `room` is memory
    /// for its table, or less.
    ///
    /// # Errors
    /// [`ImageError`] if the body is no sound image.
    pub fn load(
        header: NativeHeader,
        image: &[u8],
        of: Origin,
        room: Vec<u64>,
    ) -> Result<Self, ImageError> {
        let NativeHeader { error, capacity, deleted, options, .. } = header;
        let filter = match of {
            Origin::Anywhere => CuckooFilter::from_bytes(image)?,
            Origin::DataSet => CuckooFilter::from_trusted_bytes(image, room)?,
        };
        Ok(Self { filter, capacity, error, deleted, options, journal: None })
    }

    /// Adds the items of another filter, as often as each is in.
    ///
    /// # Errors
    /// [`Error::Merge`] if the filters were not reserved alike, [`Error::NoMemory`]; nothing was
    /// changed then.
    pub fn merge(&mut self, other: &Self) -> Result<(), Error> {
        self.filter.merge(&other.filter, Merge::Sum)?;
        self.journal = None;
        self.deleted = self.deleted.saturating_add(other.deleted);
        Ok(())
    }

    /// Says that items were not added. Returns which of them were reported, and are no more: the
    /// first, of equal ones. Where the command `is_settled`, a primary has accepted it before, and
    /// however many items are reported, none is refused.
    ///
    /// # Errors
    /// [`Error::Members`] if more are reported than chance explains, [`Error::Corrections`] if
    /// there may be too many, [`Error::NoMemory`]; nothing was changed then.
    pub fn refute(&mut self, items: &[&[u8]], is_settled: bool) -> Result<Vec<bool>, Error> {
        let mut corrected = Vec::new();
        corrected.try_reserve_exact(items.len()).map_err(|_| Error::NoMemory)?;
        corrected.resize(items.len(), false);
        self.filter.contains_many(items, &mut corrected);
        let mut reported = BTreeSet::new();
        for (item, corrected) in items.iter().zip(&mut corrected) {
            *corrected = *corrected && reported.insert(*item);
        }
        let (asked, coming) = (items.len() as u64, reported.len() as u64);
        if !is_settled {
            check_refutation(&self.filter, asked, coming)?;
        }
        let limit = self.filter.slots();
        if self.filter.corrections().saturating_add(coming) > limit {
            return Err(Error::Corrections { limit });
        }
        for (item, corrected) in items.iter().zip(&mut corrected) {
            if *corrected {
                *corrected = self.filter.refute(*item).map_err(|_| Error::Corrections { limit })?;
            }
        }
        if corrected.contains(&true) {
            self.journal = None;
        }
        Ok(corrected)
    }

    /// Bytes that it has allocated, with those of its own value.
    pub(super) fn allocated_bytes(&self, measure: Measure<'_>) -> usize {
        let table = |bytes: &[u8]| measure(bytes.as_ptr(), bytes.len());
        measure(ptr::from_ref(self).cast(), size_of::<Self>()) + self.filter.allocated_bytes(table)
    }

    /// A copy in its own memory.
    ///
    /// # Errors
    /// [`Error::NoMemory`].
    pub fn try_clone(&self) -> Result<Self, Error> {
        let filter = self.filter.try_clone().map_err(|_| Error::NoMemory)?;
        Ok(self.with(filter))
    }

    /// A copy with the table in this memory, which is [`bytes`](Self::bytes) long or longer.
    ///
    /// # Errors
    /// [`Error::NoMemory`].
    pub fn try_clone_in(&self, memory: Vec<u64>) -> Result<Self, Error> {
        Ok(self.with(self.filter.try_clone_in(memory).map_err(|_| Error::NoMemory)?))
    }

    fn with(&self, filter: CuckooFilter) -> Self {
        let Self { capacity, error, deleted, options, .. } = *self;
        Self { filter, capacity, error, deleted, options, journal: None }
    }

    /// Begins a journal of this number, and ends any other.
    pub fn begin_journal(&mut self, number: u64) {
        self.journal = Some(Box::new(Journal::new(number)));
    }

    /// Ends the journal.
    pub fn end_journal(&mut self) {
        self.journal = None;
    }

    /// Whether it has the journal of this number, and no change since it began.
    #[must_use]
    pub fn is_unchanged_since(&self, number: u64) -> bool {
        self.journal.as_ref().is_some_and(|journal| journal.number == number && journal.is_empty())
    }

    /// The next changes in the journal of this number.
    ///
    /// # Errors
    /// [`Error::Changed`] if that journal has ended.
    pub fn next_run(&mut self, number: u64) -> Result<Option<Run>, Error> {
        let journal = self.journal.as_mut().filter(|journal| journal.number == number);
        Ok(journal.ok_or(Error::Changed)?.take())
    }

    /// Does what a run of another filter did. It is not noted in a journal of this one.
    ///
    /// # Errors
    /// [`Error::Full`] if an item finds no room. Those before it are in.
    pub fn replay(&mut self, run: &Run) -> Result<(), Error> {
        let (items, journal) = (run.items(), self.journal.take());
        let mut added = vec![Added::Yes; items.len()];
        match (run.change, &items[..]) {
            // As INSERT does, so that replicas have the same bytes.
            (Change::Added, [item]) => added[0] = self.add(item, false, u64::MAX),
            (Change::Added, _) => drop(self.add_many(&items, false, u64::MAX, &mut added)),
            (Change::Removed, _) => self.remove_many(&items, &mut vec![false; items.len()]),
        }
        self.journal = journal;
        added.iter().try_for_each(|added| match *added {
            Added::Full(full) => Err(Error::Full(full)),
            _ => Ok(()),
        })
    }

    fn note<'a>(&mut self, change: Change, mut items: impl Iterator<Item = &'a [u8]>) {
        if let Some(journal) = &mut self.journal
            && !items.all(|item| journal.note(change, item))
        {
            self.journal = None;
        }
    }

    /// Bytes of the filter.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.filter.size_in_bytes() as u64
    }

    /// A range of the bytes of its image, which end where they end.
    ///
    /// # Errors
    /// [`Error::NoMemory`].
    pub fn body(&self, range: Range<usize>) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(range.len()).map_err(|_| Error::NoMemory)?;
        let Ok(()) = self.filter.write_range(range, |piece| {
            bytes.extend_from_slice(piece);
            Ok::<(), Infallible>(())
        });
        Ok(bytes)
    }

    pub(super) fn header(&self) -> NativeHeader {
        NativeHeader {
            image_len: self.bytes(),
            error: self.error,
            capacity: self.capacity,
            deleted: self.deleted,
            options: self.options,
        }
    }

    pub(super) fn image(&self) -> &CuckooFilter {
        &self.filter
    }

    /// Adds a batch of items up to the first that finds no room. Returns how many it has tried.
    fn add_batch(&mut self, items: &[&[u8]], unique: bool, added: &mut [Added]) -> usize {
        if !unique {
            let before = self.filter.len();
            let Err(error) = self.filter.insert_many(items) else {
                added.fill(Added::Yes);
                return items.len();
            };
            let done = usize::try_from(self.filter.len() - before).unwrap_or(items.len());
            added[..done].fill(Added::Yes);
            added[done] = self.refusal(error);
            return done + 1;
        }
        let mut new = [false; BATCH];
        let new = &mut new[..items.len()];
        let error = self.filter.insert_unique_many(items, new).err();
        for (at, (item, &new)) in items.iter().zip(&*new).enumerate() {
            added[at] = match error {
                _ if new => Added::Yes,
                // An item that was tried and not added is in, except the one that failed.
                Some(error) if !self.filter.contains(item) => {
                    added[at] = self.refusal(error);
                    return at + 1;
                }
                _ => Added::Present,
            };
        }
        items.len()
    }

    fn note_removed(&mut self, items: &[&[u8]], removed: &[bool]) {
        let is_gone = |(item, &is_gone): (_, &bool)| is_gone.then_some(item);
        let gone = items.iter().copied().zip(removed).filter_map(is_gone);
        self.deleted = self.deleted.saturating_add(gone.clone().count() as u64);
        self.note(Change::Removed, gone);
    }

    fn refusal(&self, error: FullError) -> Added {
        Added::Full(Full::of(error, self.filter.is_growable()))
    }
}

fn builder(settings: &Settings) -> Builder<CuckooFilter> {
    let Settings { capacity, error, prefer, options, .. } = *settings;
    let grows = options.expansion > 0;
    let built_for = if grows { error / GROWTH } else { error };
    let builder = CuckooFilter::builder(capacity, built_for).prefer(prefer);
    if grows { builder.growable() } else { builder }
}

/// The error in terms of the rate that was asked for, and with a capacity that would do.
fn asked(problem: BuildError, settings: &Settings) -> Error {
    let grows = settings.options.expansion > 0;
    match problem {
        BuildError::TooPrecise { smallest, .. } if grows => {
            BuildError::TooPrecise { rate: settings.error, smallest: smallest * GROWTH }.into()
        }
        BuildError::TooLarge { capacity, largest } => {
            let largest = largest_below(settings, largest);
            BuildError::TooLarge { capacity, largest }.into()
        }
        other => other.into(),
    }
}

/// A capacity that a filter with these settings can be built for: `named` if that would do.
fn largest_below(settings: &Settings, named: u64) -> u64 {
    let fits = |capacity| builder(&Settings { capacity, ..*settings }).plan().is_ok();
    if named > 0 && fits(named) {
        return named;
    }
    let (mut most, mut too_many) = (0, settings.capacity);
    while too_many - most > 1 {
        let middle = most + (too_many - most) / 2;
        *(if fits(middle) { &mut most } else { &mut too_many }) = middle;
    }
    most
}

impl Cuckoo for Native {
    fn key_form(&self) -> Result<KeyForm, Error> {
        KeyForm::of(self.filter.application()).map_err(Error::Lines)
    }

    fn mark(&self) -> Mark {
        let filter = &self.filter;
        Mark(filter.size_in_bytes() as u64, filter.buckets(), filter.slots_in_use(), filter.len())
    }

    fn contains(&self, item: &[u8], _now: u64) -> bool {
        self.filter.contains(item)
    }

    fn contains_many(&self, items: &[&[u8]], _now: u64, found: &mut [bool]) {
        self.filter.contains_many(items, found);
    }

    fn count(&self, item: &[u8], _now: u64) -> u64 {
        self.filter.count(item)
    }

    fn count_many(&self, items: &[&[u8]], _now: u64, counts: &mut [u64]) {
        self.filter.count_many(items, counts);
    }

    fn beyond(&self, _items: usize, _now: u64, limit: u64) -> Option<Full> {
        let bytes = self.bytes();
        (bytes > limit).then_some(Full::Limit { bytes, limit })
    }

    fn add(&mut self, item: &[u8], unique: bool, _limit: u64) -> Added {
        let added = if unique {
            self.filter.insert_unique(item)
        } else {
            self.filter.insert(item).map(|()| true)
        };
        match added {
            Ok(true) => {
                self.note(Change::Added, std::iter::once(item));
                Added::Yes
            }
            Ok(false) => Added::Present,
            Err(error) => self.refusal(error),
        }
    }

    fn add_many(
        &mut self,
        items: &[&[u8]],
        unique: bool,
        _limit: u64,
        added: &mut [Added],
    ) -> usize {
        let mut tried = 0;
        for batch in items.chunks(BATCH) {
            let end = tried + batch.len();
            tried += self.add_batch(batch, unique, &mut added[tried..end]);
            if tried < end || added[tried - 1].is_refused() {
                break;
            }
        }
        let is_new = |(item, added): (_, &Added)| (*added == Added::Yes).then_some(item);
        self.note(Change::Added, items.iter().copied().zip(&added[..tried]).filter_map(is_new));
        tried
    }

    fn remove(&mut self, item: &[u8]) -> bool {
        let is_removed = self.filter.remove(item);
        self.note_removed(&[item], &[is_removed]);
        is_removed
    }

    fn remove_many(&mut self, items: &[&[u8]], removed: &mut [bool]) {
        self.filter.remove_many(items, removed);
        self.note_removed(items, removed);
    }

    fn compact(&mut self) {
        self.journal = None;
        self.filter.shrink_to_fit();
        self.deleted = 0;
    }

    fn options(&self) -> Options {
        self.options
    }

    fn info(&self, _now: u64) -> Info {
        let (filter, rate) = (&self.filter, self.filter.false_positive_rate());
        let info = self.header().info(filter.len(), filter.buckets(), rate, filter.load_factor());
        Info { corrections: filter.corrections(), ..info }
    }
}
