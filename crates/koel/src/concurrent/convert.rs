//! Converts a plain filter to a concurrent one and back. The bits of each bucket stay the same; the
//! width of its word in memory may change (`words.rs`).

extern crate std;

use super::ConcurrentFilter;
use super::cells::Cells;
use super::shards::Shards;
use super::sync::WriteGuard;
use crate::error::{ConvertError, Unconverted};
use crate::mem::buffer::Buffer;
use crate::side::Counters;
use crate::table::{Table, table_bytes};
use crate::{CuckooFilter, FileError};

impl ConcurrentFilter {
    /// Copies the filter as it is now into a plain one, for bytes, views, merges and exact figures.
    /// Other threads may use the filter meanwhile. O(buckets), and as much memory again.
    ///
    /// * Each key is copied as often as it was in the set at some moment of the call. That moment
    ///   may differ from key to key. A key whose insert returned before the call is in the copy,
    ///   unless another thread removed it.
    /// * Lookups, and [`insert`](Self::insert) of a new key into a free slot, do not wait. All else
    ///   waits until the buckets are copied.
    ///
    /// ```
    /// let seen = koel::ConcurrentFilter::builder(1000, 0.001).build()?;
    /// seen.insert("ada")?;
    /// let bytes = seen.snapshot()?.to_bytes();
    /// assert!(koel::FilterView::open(&bytes)?.contains("ada"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ConvertError::NoMemory`] where the system has no memory for the copy.
    pub fn snapshot(&self) -> Result<CuckooFilter, ConvertError> {
        let (geometry, layout) = (self.cells.geometry.clone(), self.cells.layout);
        let buckets = geometry.buckets();
        let bytes = table_bytes(layout, buckets)
            .and_then(|bytes| Buffer::zeroed(bytes, self.profile.growable))
            .ok_or(ConvertError::NoMemory)?;
        let mut table = Table::fixed(geometry, layout, bytes);
        // No entry leaves a bucket while these locks are held, so the copy misses none.
        let shards = self.shards.write_all();
        for bucket in 0..buckets {
            table.set_word(bucket, self.cells.load(bucket));
        }
        let counters = counters_of(&shards)?;
        drop(shards);
        Ok(CuckooFilter::from_parts(table, counters, self.profile))
    }

    /// Turns the filter into a plain one. Buckets of 64 bits stay where they are in memory; others
    /// are copied. O(buckets).
    ///
    /// # Errors
    /// [`ConvertError::NoMemory`], with the filter, where the system has no memory for a copy.
    pub fn into_filter(self) -> Result<CuckooFilter, Unconverted<Self>> {
        let (geometry, layout) = (self.cells.geometry.clone(), self.cells.layout);
        if layout.bucket_bits() != u64::BITS {
            return self.snapshot().map_err(|error| Unconverted::new(error, self));
        }
        let counters = counters_of(&self.shards.write_all());
        let counters = match counters {
            Ok(counters) => counters,
            Err(error) => return Err(Unconverted::new(error, self)),
        };
        let bytes = self.cells.into_words().into_bytes(layout).expect("words of 64 bits");
        let table = Table::fixed(geometry, layout, bytes);
        Ok(CuckooFilter::from_parts(table, counters, self.profile))
    }

    /// Removes everything. The size stays. No other thread uses the filter meanwhile. O(buckets).
    pub fn clear(&mut self) {
        self.cells.clear();
        self.shards =
            Shards::new(0, &Counters::default(), &self.cells.geometry, self.profile.counter_limit);
    }

    /// [Copies](Self::snapshot) the filter, and [saves](CuckooFilter::save) the copy to a file.
    ///
    /// # Errors
    /// As [`CuckooFilter::save`], and [`ImageError::NoMemory`](crate::ImageError::NoMemory) where
    /// the system has no memory for the copy.
    pub fn save(&self, path: impl AsRef<std::path::Path>) -> Result<(), FileError> {
        let path = path.as_ref();
        let copy = self.snapshot().map_err(|_| FileError::no_memory(path))?;
        copy.save(path)
    }
}

/// The counters of all shards.
fn counters_of(shards: &[WriteGuard<'_, Counters>]) -> Result<Counters, ConvertError> {
    if !Counters::fit(shards.iter().map(|counters| counters.len()).sum()) {
        return Err(ConvertError::NoMemory);
    }
    Ok(Counters::from_iter(shards.iter().flat_map(|counters| counters.iter())))
}

/// Calls [`ConcurrentFilter::into_filter`].
impl TryFrom<ConcurrentFilter> for CuckooFilter {
    type Error = Unconverted<ConcurrentFilter>;

    fn try_from(filter: ConcurrentFilter) -> Result<Self, Self::Error> {
        filter.into_filter()
    }
}

/// Converts a filter of any layout whose buckets have at most 64 bits, built or loaded. O(buckets).
///
/// * Buckets of 64 bits stay where they are in memory; others are copied.
/// * A bucket of 36 to 60 bits gets a word of 64. So the two layouts for a rate of about 0.1 %,
///   plain 4x12 and semi-sorted 4x13, become a third larger.
/// * A filter that has grown, whose buckets are wider, or that has keys in its
///   [stash](CuckooFilter::stashed_keys) or [corrections](CuckooFilter::corrections), is
///   refused; the error gives it back.
/// * A [growable](CuckooFilter::is_growable) filter does not grow while it is a concurrent one: an
///   insert into the full one fails. It grows again after
///   [`into_filter`](ConcurrentFilter::into_filter).
impl TryFrom<CuckooFilter> for ConcurrentFilter {
    type Error = Unconverted<CuckooFilter>;

    fn try_from(filter: CuckooFilter) -> Result<Self, Self::Error> {
        if let Err(error) = check(&filter) {
            return Err(Unconverted::new(error, filter));
        }
        let entries = filter.slots_in_use();
        let (table, counters, profile) = filter.into_parts().expect("a table of one size alone");
        match Cells::of(table) {
            Ok(cells) => Ok(Self::new(cells, entries, &counters, profile)),
            Err(table) => {
                let filter = CuckooFilter::from_parts(*table, counters, profile);
                Err(Unconverted::new(ConvertError::NoMemory, filter))
            }
        }
    }
}

/// Whether a filter can become a concurrent one, where there is memory for a copy of the buckets.
fn check(filter: &CuckooFilter) -> Result<(), ConvertError> {
    let bucket_bits = filter.layout().bucket_bits();
    if filter.has_grown() {
        return Err(ConvertError::Grown);
    }
    if filter.stashed_keys() > 0 || filter.corrections() > 0 {
        let (stashed, corrections) = (filter.stashed_keys(), filter.corrections());
        return Err(ConvertError::Exact { stashed, corrections });
    }
    if bucket_bits > u64::BITS {
        return Err(ConvertError::TooWide { bucket_bits });
    }
    // Inserts of new keys do not look at the sum.
    if filter.len() > u64::MAX - filter.slots() {
        return Err(ConvertError::Overflow);
    }
    // The shards get counters of their own.
    let fit = Counters::fit(filter.distinct_counters());
    if fit { Ok(()) } else { Err(ConvertError::NoMemory) }
}
