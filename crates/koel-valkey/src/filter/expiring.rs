//! A filter whose items expire: a `koel::ExpiringFilter` and what commands remember beside it.
//!
//! **Growth.** As a filter without a window, it grows unless it was reserved with EXPANSION 0. It
//! is built for the error rate after `GROWS`-fold growth, and starts with room for its capacity.
//! Items that have expired make room: beyond its memory limit it takes items as long as it need not
//! grow for them.
//!
//! **Time.** A tick is a millisecond since 1970. A command that writes first [advances] the filter
//! to its own time, which replicas get with it. So they have the same bytes. A command that reads
//! changes nothing: it looks at the filter as it will be at the time of the command.
//!
//! [advances]: Cuckoo::advance
//!
//! **Cost.** As `koel::ExpiringFilter`: a new step of the window costs nothing.

use std::ptr;

use koel::{Builder, ExpiringFilter, FullError, ImageError};
use koel_lines::KeyForm;

use crate::error::{Error, Full};
use crate::filter::header::{NativeHeader, Origin};
use crate::filter::native::{BATCH, Key, Settings, Window};
use crate::filter::{Added, Cuckoo, Info, Measure, Options};
use crate::totals::EXPIRED;

/// Ticks of a second.
const SECOND: u64 = 1000;
/// How many times its capacity a filter may take before its error rate exceeds the one asked for.
const GROWS: u64 = 1 << 10;
/// The most items for which [`GROWS`] counts: bucket numbers end at some four times as many.
const MOST: u64 = 1 << 32;
/// The share of slots that are in use before the table grows, a little less than in the library.
const LOAD: f64 = 0.85;

/// A filter whose items expire.
#[derive(Debug)]
pub struct Expiring {
    filter: ExpiringFilter,
    capacity: u64,
    error: f64,
    deleted: u64,
    expired: u64,
    options: Options,
}

impl Expiring {
    /// An empty filter.
    ///
    /// # Errors
    /// [`Error::Build`] or [`Error::NoMemoryToCreate`].
    pub fn create(
        settings: Settings,
        window: Window,
        secret: Option<Key>,
        now: u64,
    ) -> Result<Self, Error> {
        let Settings { capacity, error, options, .. } = settings;
        let builder = builder(&settings, window);
        let builder = if let Some(key) = secret { builder.sip_key(key) } else { builder };
        let mut filter = builder.build()?;
        filter.advance(now);
        Ok(Self { filter, capacity, error, deleted: 0, expired: 0, options })
    }

    /// Bytes of the filter that [`create`](Self::create) makes.
    ///
    /// # Errors
    /// [`Error::Build`].
    pub fn planned_bytes(settings: &Settings, window: Window) -> Result<u64, Error> {
        Ok(builder(settings, window).size_in_bytes()? as u64)
    }

    /// The filter of a header and its complete body, which came from somewhere. `room` is memory
    /// for its table, or less.
    ///
    /// # Errors
    /// [`ImageError`] if the body is no sound image.
    pub fn load(
        header: NativeHeader,
        expired: u64,
        image: &[u8],
        of: Origin,
        room: Vec<u64>,
    ) -> Result<Self, ImageError> {
        let NativeHeader { error, capacity, deleted, options, .. } = header;
        let filter = match of {
            Origin::Anywhere => ExpiringFilter::from_bytes(image)?,
            Origin::DataSet => ExpiringFilter::from_trusted_bytes(image, room)?,
        };
        Ok(Self { filter, capacity, error, deleted, expired, options })
    }

    /// A copy in its own memory.
    ///
    /// # Errors
    /// [`Error::NoMemory`].
    pub fn try_clone(&self) -> Result<Self, Error> {
        let filter = self.filter.try_clone().map_err(|_| Error::NoMemory)?;
        Ok(Self { filter, ..*self })
    }

    /// Bytes that it has allocated, with those of its own value.
    pub(super) fn allocated_bytes(&self, measure: Measure<'_>) -> usize {
        let table = |bytes: &[u8]| measure(bytes.as_ptr(), bytes.len());
        measure(ptr::from_ref(self).cast(), size_of::<Self>()) + self.filter.allocated_bytes(table)
    }

    pub(super) fn header(&self) -> NativeHeader {
        NativeHeader {
            image_len: self.filter.size_in_bytes() as u64,
            error: self.error,
            capacity: self.capacity,
            deleted: self.deleted,
            options: self.options,
        }
    }

    pub(super) fn expired(&self) -> u64 {
        self.expired
    }

    pub(super) fn image(&self) -> &ExpiringFilter {
        &self.filter
    }

    /// The age of the oldest items that are within the window at `now`. `None` if there are none.
    fn oldest(&self, now: u64) -> Option<u64> {
        let filter = &self.filter;
        let later = now.saturating_sub(filter.step_began()) / filter.step_ticks();
        filter.steps().checked_sub(later)
    }

    /// Calls `found` with the number of each item that is within the window at `now`.
    fn each_live(&self, items: &[&[u8]], now: u64, mut found: impl FnMut(usize)) {
        let Some(oldest) = self.oldest(now) else { return };
        for (batch, start) in items.chunks(BATCH).zip((0..).step_by(BATCH)) {
            let mut ages = [None; BATCH];
            let ages = &mut ages[..batch.len()];
            self.filter.age_many(batch, ages);
            for (number, age) in (start..).zip(ages) {
                if age.is_some_and(|age| age <= oldest) {
                    found(number);
                }
            }
        }
    }

    /// Whether nothing is to be added, so that nothing changes: adding also sweeps.
    fn are_all_in(&self, batch: &[&[u8]]) -> bool {
        let mut found = [false; BATCH];
        let found = &mut found[..batch.len()];
        self.filter.contains_many(batch, found);
        !found.contains(&false)
    }

    fn refusal(&self, error: FullError) -> Full {
        match error {
            FullError::Window { live, .. } if !self.filter.is_growable() => {
                Full::Window { live, capacity: self.capacity }
            }
            _ => Full::of(error, true),
        }
    }
}

fn builder(settings: &Settings, window: Window) -> Builder<ExpiringFilter> {
    let Settings { capacity, error, options, .. } = *settings;
    let grows = options.expansion > 0;
    let most =
        if grows { capacity.saturating_mul(GROWS).min(MOST).max(capacity) } else { capacity };
    let builder = ExpiringFilter::builder(most, error).when_full(window.when_full);
    let builder = if grows { builder.grow_from(capacity) } else { builder };
    builder.window(window.seconds.saturating_mul(SECOND))
}

impl Cuckoo for Expiring {
    fn key_form(&self) -> Result<KeyForm, Error> {
        KeyForm::of(self.filter.application()).map_err(Error::Lines)
    }

    fn advance(&mut self, now: u64) -> bool {
        let before = self.filter.step_began();
        let expired = self.filter.advance(now);
        EXPIRED.add(expired);
        self.expired = self.expired.saturating_add(expired);
        self.filter.step_began() != before
    }

    fn contains(&self, item: &[u8], now: u64) -> bool {
        let oldest = self.oldest(now);
        oldest.is_some_and(|oldest| self.filter.age(item).is_some_and(|age| age <= oldest))
    }

    fn contains_many(&self, items: &[&[u8]], now: u64, found: &mut [bool]) {
        found.fill(false);
        self.each_live(items, now, |number| found[number] = true);
    }

    fn count(&self, item: &[u8], now: u64) -> u64 {
        u64::from(self.contains(item, now))
    }

    fn count_many(&self, items: &[&[u8]], now: u64, counts: &mut [u64]) {
        counts.fill(0);
        self.each_live(items, now, |number| counts[number] = 1);
    }

    fn beyond(&self, items: usize, now: u64, limit: u64) -> Option<Full> {
        let bytes = self.filter.size_in_bytes() as u64;
        let live = self.filter.len_at(now).saturating_add(items as u64);
        let must_grow = live as f64 > LOAD * self.filter.slots() as f64;
        (bytes > limit && must_grow).then_some(Full::Limit { bytes, limit })
    }

    fn add(&mut self, item: &[u8], unique: bool, _limit: u64) -> Added {
        // Adding also sweeps, so nothing is added where nothing has to be.
        if unique && self.filter.contains(item) {
            return Added::Present;
        }
        let added = if unique { self.filter.insert_unique(item) } else { self.filter.insert(item) };
        match added {
            Ok(is_new) if is_new || !unique => Added::Yes,
            Ok(_) => Added::Present,
            Err(error) => Added::Full(self.refusal(error)),
        }
    }

    fn add_many(
        &mut self,
        items: &[&[u8]],
        unique: bool,
        limit: u64,
        added: &mut [Added],
    ) -> usize {
        for (batch, start) in items.chunks(BATCH).zip((0..).step_by(BATCH)) {
            if unique && self.are_all_in(batch) {
                added[start..start + batch.len()].fill(Added::Present);
                continue;
            }
            let mut new = [false; BATCH];
            let new = &mut new[..batch.len()];
            let outcome = if unique {
                self.filter.insert_unique_many(batch, new)
            } else {
                self.filter.insert_many(batch, new)
            };
            for (at, (&item, &new)) in (start..).zip(batch.iter().zip(&*new)) {
                added[at] = match outcome {
                    _ if new => Added::Yes,
                    Ok(()) if unique => Added::Present,
                    Ok(()) => Added::Yes,
                    // One of them found no room. Those before it are in, and stay as they are.
                    Err(_) => self.add(item, unique, limit),
                };
                if added[at].is_refused() {
                    return at + 1;
                }
            }
        }
        items.len()
    }

    fn remove(&mut self, item: &[u8]) -> bool {
        let is_removed = self.filter.remove(item);
        self.deleted = self.deleted.saturating_add(is_removed.into());
        is_removed
    }

    fn remove_many(&mut self, items: &[&[u8]], removed: &mut [bool]) {
        self.filter.remove_many(items, removed);
        let count = removed.iter().filter(|&&removed| removed).count() as u64;
        self.deleted = self.deleted.saturating_add(count);
    }

    /// To no smaller table than the one it was reserved with.
    fn compact(&mut self) {
        if self.filter.has_grown() {
            self.filter.shrink_to_fit();
        }
        self.deleted = 0;
    }

    fn options(&self) -> Options {
        self.options
    }

    fn info(&self, now: u64) -> Info {
        let (filter, rate) = (&self.filter, self.filter.false_positive_rate());
        let items = filter.len_at(now);
        Info {
            window: filter.window() / SECOND,
            expired: self.expired.saturating_add(filter.len() - items),
            evicted: filter.evicted(),
            ..self.header().info(items, filter.buckets(), rate, filter.load_factor())
        }
    }
}
