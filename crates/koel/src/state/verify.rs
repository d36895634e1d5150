//! Whether bytes of unknown origin could have been written by this crate.

use super::{Body, Reader, reading};
use crate::error::{ImageError, require};
use crate::image::Kind;
use crate::packing::Bucket;
use crate::state::counters::ReadCounters;
use crate::table::{Addressing, Cuckoo, grows};

impl<B: AsRef<[u8]>, C: ReadCounters> Body<B, C> {
    /// Checks everything that [`open`](Self::open) took on trust: the checksum, that every bucket
    /// and counter could have been written by this crate, and that they add up to what the header
    /// says. O(bytes).
    pub(crate) fn verify(&self) -> Result<(), ImageError> {
        if let Some(whole) = self.widened() {
            return whole.verify();
        }
        self.check_checksum()?;
        reading!(self, reader => reader.verify_buckets())?;
        let weight_holds = self
            .buckets
            .growing()
            .is_none_or(|growing| growing.computed_weight() == growing.match_weight());
        require("match weight", 0, weight_holds)?;
        reading!(self, reader => reader.verify_counts())
    }
}

impl<T: Cuckoo, C: ReadCounters> Reader<'_, T, C> {
    /// Whether every bucket could have been written by this crate, and all of them hold as many
    /// entries as they should.
    fn verify_buckets(self) -> Result<(), ImageError> {
        let (table, mut entries) = (self.table.table(), 0);
        for bucket in 0..table.geometry().buckets() {
            let slots = self.sound_slots(bucket);
            require("bucket", bucket, slots.is_some())?;
            entries += slots.map_or(0, |slots| slots.entries().count() as u64);
        }
        require("padding", 0, table.is_padded_with_zeros())?;
        require("entries", self.state.entries, self.state.entries == entries)
    }

    /// The slots of a bucket; `None` where this crate would not have written it. Those of a filter
    /// may be semi-sorted, where only one order of them is sound.
    fn sound_slots(self, bucket: u64) -> Option<Bucket> {
        let (table, layout) = (self.table.table(), self.table.table().layout());
        let slots = if self.state.kind == Kind::Filter {
            let word = table.word(bucket);
            layout.is_canonical(word).then(|| layout.decode(word))?
        } else {
            table.read(bucket)
        };
        slots.entries().all(|slot| self.is_sound(bucket, slot)).then_some(slots)
    }

    /// Whether a slot in use holds what this crate writes. Each key of a counting filter has one
    /// entry, where its table has not grown.
    fn is_sound(self, bucket: u64, slot: u64) -> bool {
        let (table, layout) = (self.table.table(), self.table.table().layout());
        let value = layout.value_of(slot);
        let is_written =
            layout.is_fingerprint(layout.fingerprint_of(slot)) && value <= layout.largest_value();
        let is_alone = || {
            let at = table.geometry().location(table.entry(bucket, slot).prefix);
            grows::<T>() || at.is_some_and(|at| table.matches(&at).count() == 1)
        };
        is_written && (self.state.kind != Kind::Counting || value > 0 && is_alone())
    }

    /// Whether the counters belong to entries, and all add up to what the header says.
    fn verify_counts(self) -> Result<(), ImageError> {
        let (state, table) = (self.state, self.table.table());
        if state.kind == Kind::Maplet {
            return Ok(());
        }
        if state.kind == Kind::Filter && !grows::<T>() {
            let (said, found) = (state.distinct(), table.distinct_entries().count() as u64);
            require("distinct entries", said, said == found)?;
        }
        let counted = state.counters.verify(|name| self.names_an_entry(name))?;
        let in_slots: u128 = table.entries().map(|entry| u128::from(self.in_slot(&entry))).sum();
        let (len, sum) = (u128::from(state.len), in_slots + counted);
        // Growth may leave counts behind that are nobody's.
        require("keys", state.len, len == sum || grows::<T>() && len < sum)
    }

    /// Whether an entry of this name, which may have a counter, is in its buckets.
    fn names_an_entry(self, name: u64) -> bool {
        let table = self.table.table();
        let prefix = table.geometry().named(name);
        let at = prefix.and_then(|prefix| table.geometry().location(prefix));
        let may_be_it = |entry| table.name(&entry) == name && self.may_have_counter(&entry);
        at.is_some_and(|at| table.matches(&at).any(may_be_it))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CuckooFilter;

    #[test]
    fn a_name_is_of_an_entry_that_is_there_and_of_a_bucket_that_is() {
        let mut filter = CuckooFilter::builder(100, 0.01).build().unwrap();
        for key in 0..100_u64 {
            filter.insert(&key).unwrap();
        }
        let table = filter.body.buckets.fixed().unwrap();
        let reader = Reader { table, state: &filter.body.state };
        let (bits, buckets) = (table.layout().fingerprint_bits(), table.geometry().buckets());
        let named = |bucket: u64| {
            let names = (0..1_u64 << bits).map(move |fingerprint| bucket << bits | fingerprint);
            names.filter(|&name| reader.names_an_entry(name)).count() as u64
        };
        let distinct = table.distinct_entries().count() as u64;
        assert_eq!((0..buckets).map(named).sum::<u64>(), distinct);
        assert_eq!([buckets, buckets + 1, u64::MAX >> bits].map(named), [0; 3]);
    }
}
