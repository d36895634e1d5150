//! Verifies bytes of unknown origin: could this crate have written them?
//!
//! Buckets are checked one by one, and what the header says of all of them is counted again.
//! Distinct entries are counted in [runs](super::runs). That is most of the time, and all of the
//! memory. Each counter is looked up: there are few.

use super::runs::each_run;
use super::{Body, Expiry};
use crate::error::{ImageError, MemoryError, require};
use crate::image::Kind;
use crate::packing::Bucket;

impl<B: AsRef<[u8]> + Sync> Body<B> {
    /// Verifies a view. What is in memory is sound.
    ///
    /// # Errors
    /// As [`verify`](Self::verify).
    pub(crate) fn require_sound(&self) -> Result<(), ImageError> {
        if self.is_unverified() { self.verify() } else { Ok(()) }
    }

    /// Checks what [`open`](Self::open) trusts: the checksum, that this crate could have written
    /// every bucket and counter, and that their totals match the header. O(bytes).
    ///
    /// # Errors
    /// [`ImageError`]: what this crate would not have written, or no memory for a run.
    pub(crate) fn verify(&self) -> Result<(), ImageError> {
        self.check_checksum()?;
        self.verify_buckets()?;
        let weight_holds = self.table.computed_weight() == self.table.match_weight();
        require("match weight", 0, weight_holds)?;
        require("narrow buckets", 0, self.table.fits_narrow_buckets())?;
        self.verify_distinct()?;
        if let Some(Expiry { clock, sweeps, .. }) = self.state.time() {
            require("sweeps", 0, sweeps.are_sound(clock))?;
            return require("keys", self.state.len, self.state.len == self.live_entries());
        }
        self.verify_counts()
    }

    /// Checks every bucket, the padding, and the number of entries.
    fn verify_buckets(&self) -> Result<(), ImageError> {
        let (table, mut entries) = (&self.table, 0);
        for bucket in 0..table.buckets() {
            let slots = self.sound_slots(bucket);
            require("bucket", bucket, slots.is_some())?;
            entries += slots.map_or(0, |slots| slots.entries().count() as u64);
        }
        require("padding", 0, table.is_padded_with_zeros())?;
        require("entries", self.state.entries, self.state.entries == entries)
    }

    /// The slots of a bucket; `None` if this crate would not have written it. A filter may be
    /// semi-sorted, where one order of the slots is sound.
    fn sound_slots(&self, bucket: u64) -> Option<Bucket> {
        let table = &self.table;
        let slots = table.read(bucket);
        // Buckets that are still to be widened are in memory only, and have another layout.
        let has_one_form =
            self.state.kind() == Kind::Filter && table.addresses().widening().is_none();
        let is_written = !has_one_form || table.layout().is_canonical(table.word(bucket));
        let are_sound = || slots.entries().all(|slot| self.is_sound(bucket, slot));
        (is_written && are_sound()).then_some(slots)
    }

    /// Whether this crate could have written a slot in use.
    fn is_sound(&self, bucket: u64, slot: u64) -> bool {
        let layout = self.layout();
        let value = layout.value_of(slot);
        layout.is_fingerprint(layout.fingerprint_of(slot))
            && value <= layout.largest_value()
            && match (self.state.kind(), self.state.time()) {
                (Kind::Counting, _) => value > 0,
                (_, Some(Expiry { clock, sweeps, .. })) => {
                    clock.true_age(sweeps.swept(bucket), value).is_some()
                }
                _ => true,
            }
    }

    /// Checks how many distinct entries a table of one size has. Where they have counts or stamps,
    /// that is all of them: each key has one.
    fn verify_distinct(&self) -> Result<(), ImageError> {
        let state = &self.state;
        let said = match state.kind() {
            _ if self.table.grows() => return Ok(()),
            Kind::Maplet => return Ok(()),
            Kind::Filter => state.distinct(),
            Kind::Counting | Kind::Expiring => state.entries,
        };
        require("distinct entries", said, said == self.count_distinct()?)
    }

    /// Counts the distinct entries. O(buckets), and the memory of a run.
    fn count_distinct(&self) -> Result<u64, MemoryError> {
        let mut distinct = 0;
        each_run(self, |_, run| {
            distinct += run.distinct();
            Ok::<_, MemoryError>(())
        })?;
        Ok(distinct)
    }

    /// Checks that counters belong to entries, and that all counts add up to the header's.
    fn verify_counts(&self) -> Result<(), ImageError> {
        let (state, table) = (&self.state, &self.table);
        let largest = if state.kind() == Kind::Maplet { table.layout().largest_value() } else { 0 };
        state.side.verify(|name| self.names_an_entry(name), largest)?;
        let (len, held) = (u128::from(state.len), self.held());
        require("stashed copies", state.len, state.side.stash.sum() <= len)?;
        // Growth may leave counts that belong to no key.
        require("keys", state.len, len == held || self.table.grows() && len < held)
    }

    /// Whether an entry of this name is in its buckets, and may have a counter.
    fn names_an_entry(&self, name: u64) -> bool {
        let table = &self.table;
        let prefix = table.addresses().named(name);
        let at = prefix.and_then(|prefix| table.addresses().location(prefix));
        let may_be_it = |entry| table.name(&entry) == name && self.may_have_counter(&entry);
        at.is_some_and(|at| table.matches(&at).any(may_be_it))
    }
}

#[cfg(test)]
mod tests {
    use crate::CuckooFilter;

    #[test]
    fn only_present_entries_and_existing_buckets_are_named() {
        let mut filter = CuckooFilter::builder(100, 0.01).build().unwrap();
        for key in 0..100_u64 {
            filter.insert(&key).unwrap();
        }
        let (table, body) = (&filter.body.table, &filter.body);
        let (geometry, bits, buckets) =
            (table.base(), table.layout().fraction_bits(), table.buckets());
        let named = |bucket: u64| {
            let names =
                (0..64 << bits).map(|entry| geometry.name(bucket, entry >> bits, entry, bits));
            names.filter(|&name| body.names_an_entry(name)).count() as u64
        };
        let distinct = table.distinct_entries().count() as u64;
        assert_eq!((0..buckets).map(named).sum::<u64>(), distinct);
        assert_eq!([buckets, buckets + 1].map(named), [0; 2]);
    }
}
