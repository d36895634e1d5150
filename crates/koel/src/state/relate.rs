//! Compares the entries of two filters.

use alloc::collections::BTreeSet;

use super::Reader;
use crate::state::counters::ReadCounters;
use crate::table::{Cuckoo, Prefix};

/// The number of entries of each length.
pub(crate) type Lengths = [u64; 64];

/// The entries of a filter, compared with those of another.
pub(crate) struct Surplus {
    pub(crate) distinct: u64,
    /// The number of entries that the other filter has too.
    pub(crate) common: u64,
    /// The number of copies that the other filter lacks.
    pub(crate) surplus: u64,
    pub(crate) lengths: Lengths,
}

impl Surplus {
    /// Adds an entry with its counts in both filters.
    fn note(&mut self, ours: u64, theirs: u64) {
        self.distinct += 1;
        self.common += u64::from(theirs > 0);
        self.surplus = self.surplus.saturating_add(ours.saturating_sub(theirs));
    }
}

impl<T: Cuckoo, C: ReadCounters> Reader<'_, T, C> {
    /// Compares the entries of this filter with those of another. O(buckets).
    pub(crate) fn surplus_over<U: Cuckoo, D: ReadCounters>(
        self,
        other: Reader<'_, U, D>,
    ) -> Surplus {
        let mut found = Surplus { distinct: 0, common: 0, surplus: 0, lengths: [0; 64] };
        for entry in self.table.table().distinct_entries() {
            found.note(self.count_of(&entry), other.count_relatives(entry.prefix));
            found.lengths[entry.prefix.length as usize % 64] += 1;
        }
        found
    }

    /// The number of copies of all entries that may belong to a key of `prefix`. Entries of one
    /// name share a counter, which counts once.
    fn count_relatives(self, prefix: Prefix) -> u64 {
        let (mut count, mut counted) = (0_u64, BTreeSet::new());
        self.table.table().each_relative(prefix, &mut |entry| {
            let beyond = self.beyond(&entry);
            let name = self.table.table().name(&entry);
            count = count.saturating_add(1);
            if beyond > 0 && counted.insert(name) {
                count = count.saturating_add(beyond);
            }
        });
        count
    }
}
