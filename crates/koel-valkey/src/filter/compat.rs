//! A filter in RedisBloom's layout, so that a filter that it dumped answers here as it did there.
//!
//! **Layout.** A list of tables, each `expansion` times as large as the one before. A table is
//! buckets of `bucket_size` slots of one byte; 0 is an empty slot. The number of buckets is a power
//! of two. An item has the hash `h` (MurmurHash64A, seed 0), the fingerprint `h % 255 + 1`, and in
//! each table the buckets `h` and `h ^ fingerprint * 0x5bd1e995`, modulo the number of buckets. All
//! tables are in one vector, one after the other, as dumps have them.
//!
//! **Limits**, which the layout has and this code cannot lift: the error rate grows with each
//! table, and a repeated item fills tables. New filters are therefore [`Native`](super::native).
//!
//! **Cost.** A lookup reads two buckets of each table.

use crate::error::{Error, Full};
use crate::filter::header::{Header, Shape, Totals};
use crate::filter::{Added, Cuckoo, Info, Measure, Options, try_copy};

/// Tables that a filter may get here (`cf-max-expansions` of the reference).
const MOST_TABLES: u64 = 32;
const SPREAD: u64 = 0x5bd1_e995;

/// Where the tables of a shape are. `None` if no filter has this shape, or if there is no memory.
pub(super) fn tables(shape: &Shape) -> Option<Vec<Table>> {
    shape.len()?;
    let mut tables = Vec::new();
    tables.try_reserve(usize::try_from(shape.tables).ok()?).ok()?;
    let bucket_size = usize::from(shape.options.bucket_size);
    let (mut start, mut buckets) = (0, usize::try_from(shape.buckets).ok()?);
    for _ in 0..shape.tables {
        let table = Table { start, buckets, bucket_size };
        // Both fit where another table follows, because the length of all tables does.
        start = start.wrapping_add(table.len());
        buckets = buckets.wrapping_mul(usize::from(shape.options.expansion));
        tables.push(table);
    }
    Some(tables)
}

/// A table in the vector of slots.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table {
    start: usize,
    buckets: usize,
    bucket_size: usize,
}

impl Table {
    fn len(&self) -> usize {
        self.buckets * self.bucket_size
    }

    /// Where the slots of bucket `index` modulo the number of buckets are.
    fn bucket(&self, index: u64) -> std::ops::Range<usize> {
        // Below the number of buckets, which is a `usize`.
        let bucket = usize::try_from(index & (self.buckets as u64 - 1)).unwrap_or(0);
        let start = self.start + bucket * self.bucket_size;
        start..start + self.bucket_size
    }
}

/// The hash and the fingerprint of an item.
#[derive(Clone, Copy)]
struct Place {
    hash: u64,
    fingerprint: u8,
}

impl Place {
    fn of(item: &[u8]) -> Self {
        let hash = murmur64a(item);
        // Below 255, so that it is a byte above 0.
        let fingerprint = u8::try_from(hash % 255).unwrap_or(0) + 1;
        Self { hash, fingerprint }
    }

    /// The slots of its two buckets. They may be the same bucket, which comes once.
    fn slots(self, table: Table) -> impl Iterator<Item = usize> {
        let (home, other) = (table.bucket(self.hash), table.bucket(self.alternate()));
        let other = if other == home { 0..0 } else { other };
        home.chain(other)
    }

    fn alternate(self) -> u64 {
        self.hash ^ (u64::from(self.fingerprint) * SPREAD)
    }
}

/// A filter in RedisBloom's layout.
#[derive(Debug)]
pub struct Compat {
    options: Options,
    totals: Totals,
    slots: Vec<u8>,
    tables: Vec<Table>,
}

impl Compat {
    /// The filter of some tables and all their slots. Every byte is a possible slot.
    pub(super) fn load(
        options: Options,
        totals: Totals,
        tables: Vec<Table>,
        slots: Vec<u8>,
    ) -> Self {
        Self { options, totals, slots, tables }
    }

    pub(super) fn header(&self) -> Header {
        Header::Compat(self.shape(), self.totals)
    }

    fn shape(&self) -> Shape {
        let buckets = self.tables.first().map_or(0, |table| table.buckets as u64);
        Shape { buckets, tables: self.tables.len() as u64, options: self.options }
    }

    /// The end of the table that has the slot at `offset`.
    pub(super) fn table_end(&self, offset: usize) -> usize {
        let mut ends = self.tables.iter().map(|table| table.start + table.len());
        ends.find(|&end| end > offset).unwrap_or(self.slots.len())
    }

    /// Bytes that it has allocated.
    pub(super) fn allocated_bytes(&self, measure: Measure<'_>) -> usize {
        measure(self.slots.as_ptr(), self.slots.capacity())
            + self.tables.capacity() * size_of::<Table>()
    }

    pub(super) fn body(&self) -> &[u8] {
        &self.slots
    }

    pub(super) fn try_clone(&self) -> Result<Self, Error> {
        let mut tables = Vec::new();
        tables.try_reserve(self.tables.len()).map_err(|_| Error::NoMemory)?;
        tables.extend_from_slice(&self.tables);
        Ok(Self { slots: try_copy(&self.slots)?, tables, ..*self })
    }

    /// The slots that hold the fingerprint of a place, from the newest table to the oldest.
    fn matches(&self, place: Place) -> impl Iterator<Item = usize> {
        let slots = self.tables.iter().rev().flat_map(move |&table| place.slots(table));
        slots.filter(move |&slot| self.slots[slot] == place.fingerprint)
    }

    fn has(&self, place: Place) -> bool {
        self.matches(place).next().is_some()
    }

    fn add_at(&mut self, place: Place, limit: u64) -> Result<(), Full> {
        let empty = self.empty_slot(place).map(|slot| self.slots[slot] = place.fingerprint);
        if empty.is_none() && !self.evict(place) {
            self.grow(limit)?;
            // The new table is empty.
            let slot = self.empty_slot(place).ok_or(Full::Largest)?;
            self.slots[slot] = place.fingerprint;
        }
        self.totals.items = self.totals.items.saturating_add(1);
        Ok(())
    }

    fn empty_slot(&self, place: Place) -> Option<usize> {
        let mut slots = self.tables.iter().rev().flat_map(|&table| place.slots(table));
        slots.find(|&slot| self.slots[slot] == 0)
    }

    /// Moves fingerprints of the newest table to their other buckets until one finds an empty
    /// slot. The victims' slots go round the bucket. Without success nothing is changed.
    fn evict(&mut self, place: Place) -> bool {
        let Some(&table) = self.tables.last() else { return false };
        let mut moved = Vec::new();
        let (mut index, mut fingerprint) = (place.hash, place.fingerprint);
        for turn in 0..usize::from(self.options.max_iterations) {
            let slot = table.bucket(index).start + turn % table.bucket_size;
            let victim = std::mem::replace(&mut self.slots[slot], fingerprint);
            moved.push((slot, victim));
            fingerprint = victim;
            index ^= u64::from(fingerprint) * SPREAD;
            if let Some(free) = table.bucket(index).find(|&slot| self.slots[slot] == 0) {
                self.slots[free] = fingerprint;
                return true;
            }
        }
        for (slot, victim) in moved.into_iter().rev() {
            self.slots[slot] = victim;
        }
        false
    }

    /// Adds an empty table.
    fn grow(&mut self, limit: u64) -> Result<(), Full> {
        let Some(&last) = self.tables.last() else { return Err(Full::Largest) };
        if self.options.expansion == 0 {
            return Err(Full::Fixed);
        }
        let tables = self.tables.len() as u64;
        if tables >= MOST_TABLES || !self.shape().may_have(tables + 1) {
            return Err(Full::Largest);
        }
        let buckets = last.buckets.checked_mul(usize::from(self.options.expansion));
        let table = Table { buckets: buckets.ok_or(Full::NoMemory)?, ..last };
        let table = Table { start: self.slots.len(), ..table };
        let len = table.buckets.checked_mul(table.bucket_size).ok_or(Full::NoMemory)?;
        let bytes = (self.slots.len() as u64).saturating_add(len as u64);
        if bytes > limit {
            return Err(Full::Limit { bytes: self.slots.len() as u64, limit });
        }
        self.tables.try_reserve(1).map_err(|_| Full::NoMemory)?;
        self.slots.try_reserve_exact(len).map_err(|_| Full::NoMemory)?;
        self.slots.resize(self.slots.len() + len, 0);
        self.tables.push(table);
        Ok(())
    }

    /// Moves fingerprints of the newest table to older ones. Returns whether it is empty then.
    ///
    /// Older tables are not larger: the bucket in the newest one has all the bits that they need.
    fn empty_newest(&mut self) -> bool {
        let Some((&newest, older)) = self.tables.split_last() else { return false };
        let mut is_empty = true;
        for bucket in 0..newest.buckets as u64 {
            for slot in newest.bucket(bucket) {
                let place = Place { hash: bucket, fingerprint: self.slots[slot] };
                if place.fingerprint == 0 {
                    continue;
                }
                let mut slots = older.iter().flat_map(|&table| place.slots(table));
                match slots.find(|&slot| self.slots[slot] == 0) {
                    Some(free) => {
                        self.slots[free] = place.fingerprint;
                        self.slots[slot] = 0;
                    }
                    None => is_empty = false,
                }
            }
        }
        is_empty
    }
}

impl Cuckoo for Compat {
    fn contains(&self, item: &[u8], _now: u64) -> bool {
        self.has(Place::of(item))
    }

    fn count(&self, item: &[u8], _now: u64) -> u64 {
        self.matches(Place::of(item)).count() as u64
    }

    fn add(&mut self, item: &[u8], unique: bool, limit: u64) -> Added {
        let place = Place::of(item);
        if unique && self.has(place) {
            return Added::Present;
        }
        self.add_at(place, limit).map_or_else(Added::Full, |()| Added::Yes)
    }

    fn remove(&mut self, item: &[u8]) -> bool {
        let Some(slot) = self.matches(Place::of(item)).next() else { return false };
        self.slots[slot] = 0;
        self.totals.items = self.totals.items.saturating_sub(1);
        self.totals.deleted = self.totals.deleted.saturating_add(1);
        true
    }

    fn compact(&mut self) {
        while self.tables.len() > 1 && self.empty_newest() {
            let newest = self.tables.pop();
            self.slots.truncate(newest.map_or(0, |table| table.start));
        }
        self.slots.shrink_to_fit();
        self.totals.deleted = 0;
    }

    fn options(&self) -> Options {
        self.options
    }

    fn info(&self, _now: u64) -> Info {
        let slots = self.slots.len() as u64;
        let bucket_size = f64::from(self.options.bucket_size);
        let buckets = self.tables.first().map_or(0, |table| table.buckets as u64);
        let load = self.totals.items as f64 / slots as f64;
        // Each slot of the two buckets in each table matches an absent item once in 255 times.
        let compared = 2.0 * bucket_size * self.tables.len() as f64 * load;
        Info {
            // As the reference counts them.
            bytes: slots + 16 * self.tables.len() as u64 + 40,
            buckets,
            tables: self.tables.len() as u64,
            items: self.totals.items,
            deleted: self.totals.deleted,
            capacity: buckets * u64::from(self.options.bucket_size),
            error: (2.0 * bucket_size / 255.0).min(1.0),
            rate: 1.0 - (-compared / 255.0).exp(),
            load,
            format: "redisbloom",
            window: 0,
            expired: 0,
            evicted: 0,
            corrections: 0,
        }
    }
}

/// MurmurHash64A with seed 0. Source: A. Appleby, MurmurHash2 (public domain).
fn murmur64a(item: &[u8]) -> u64 {
    const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;
    let mut hash = (item.len() as u64).wrapping_mul(MULTIPLIER);
    let (words, tail) = item.as_chunks();
    for word in words {
        let word = u64::from_le_bytes(*word).wrapping_mul(MULTIPLIER);
        let mixed = (word ^ (word >> 47)).wrapping_mul(MULTIPLIER);
        hash = (hash ^ mixed).wrapping_mul(MULTIPLIER);
    }
    if !tail.is_empty() {
        let mut word = [0; 8];
        word[..tail.len()].copy_from_slice(tail);
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(MULTIPLIER);
    }
    hash = (hash ^ (hash >> 47)).wrapping_mul(MULTIPLIER);
    hash ^ (hash >> 47)
}
