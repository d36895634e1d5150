//! From a plain filter to a concurrent one and back. The buckets are the same; only the gaps
//! between them differ.

use super::ConcurrentFilter;
use super::cells::Cells;
use crate::CuckooFilter;
use crate::error::ConvertError;
use crate::mem::buffer::Buffer;
use crate::packing::low_word;
use crate::state::counters::{Counters, ReadCounters};
use crate::table::{Table, table_bytes};

impl ConcurrentFilter {
    /// The filter as it is now, as a plain one: for bytes, views, merges and exact figures. Other
    /// threads may go on meanwhile.
    ///
    /// Every key is in it as often as it was in the set at one moment while this ran; the moments
    /// of different keys may differ. So a key whose insert had returned before, and that nobody
    /// removed, is in. Removes, counts, repeated inserts and inserts for which entries must make
    /// way wait until the buckets are copied, at the speed of memory; lookups and other inserts do
    /// not. O(buckets), and as much memory again.
    ///
    /// ```
    /// let seen = koel::ConcurrentFilter::builder(1000, 0.001).build()?;
    /// seen.insert("ada")?;
    /// let bytes = seen.snapshot().to_bytes();
    /// assert!(koel::FilterView::open(&bytes)?.contains("ada"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    /// Where the memory cannot be had, as `Vec::with_capacity` does.
    #[must_use]
    pub fn snapshot(&self) -> CuckooFilter {
        let (geometry, layout) = (self.cells.geometry.clone(), self.cells.layout);
        let buckets = geometry.buckets();
        let bytes = table_bytes(layout, buckets).expect("no more than the words take");
        let bytes = Buffer::zeroed(bytes, self.profile.growable).expect("memory for a snapshot");
        let mut table = Table::new(geometry, layout, bytes);
        // No entry leaves a bucket while these are held, so none can slip past.
        let shards = self.shards.write_all();
        for bucket in 0..buckets {
            table.set_word(bucket, self.cells.load(bucket));
        }
        let counters = Counters::from_iter(shards.iter().flat_map(|counters| counters.iter()));
        drop(shards);
        CuckooFilter::from_parts(table, counters, self.profile)
    }

    /// The same filter for one thread at a time. O(buckets).
    #[must_use]
    pub fn into_filter(self) -> CuckooFilter {
        self.snapshot()
    }
}

/// Takes filters of any layout whose buckets have at most 64 bits, those of files as well. A bucket
/// of 36 to 60 bits takes a word of 64: the two layouts of about 0.1 %, plain 4x12 and semi-sorted
/// 4x13, become a third larger. O(buckets).
impl TryFrom<CuckooFilter> for ConcurrentFilter {
    type Error = ConvertError;

    fn try_from(filter: CuckooFilter) -> Result<Self, ConvertError> {
        let (len, slots, entries) = (filter.len(), filter.slots(), filter.slots_in_use());
        let (table, counters, profile) = filter.into_parts().ok_or(ConvertError::Grown)?;
        let bucket_bits = table.layout().bucket_bits();
        if bucket_bits > u64::BITS {
            return Err(ConvertError::TooWide { bucket_bits });
        }
        // Inserts of new keys do not look at the sum.
        if len > u64::MAX - slots {
            return Err(ConvertError::Overflow);
        }
        let word = |bucket| low_word(table.word(bucket));
        let cells = Cells::new(table.geometry().clone(), table.layout(), word);
        Ok(Self::new(cells, entries, &counters, profile))
    }
}
