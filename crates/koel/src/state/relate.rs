//! What the entries of two filters tell of their keys.
//!
//! An entry stands for all keys that begin with its prefix. So a key of both filters has an entry
//! in each, and one of the two is a prefix of the other. Entries without such a partner tell of a
//! key of one filter alone.
//!
//! * **Clusters.** The entries of both filters that begin with one shortest entry are a cluster. No
//!   partner is outside, and most clusters are one entry of each filter. `cluster.rs` pairs them.
//!   Growth puts void entries into both halves of a bucket, so the clusters that begin with a void
//!   entry are one cluster if those entries can be parts of one.
//! * **Leftovers.** Growth puts both halves of a void entry into the table, and a removal of their
//!   key leaves one behind. A filter counts its keys, so the number of entries that belong to no
//!   key is known. They are among its void entries, or after it was shrunk, among those with fewer
//!   bits than new entries have. Those that `cluster.rs` does not explain are subtracted from the
//!   entries that have no partner, but for as many as two filters that grew alike have in common.
//!
//! **Cost.** O(buckets) of both filters, and memory for one cluster.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::Body;
use super::cluster::{Found, Node, Pairs, pair_up};
use crate::error::MemoryError;
use crate::table::{Entry, Prefix};

/// A void entry is looked for in so many times two halves at most: a cluster then has entries of 64
/// buckets, or of twice as many.
const MOST_HALVES: u32 = 6;

/// The number of entries of each length.
pub(crate) type Lengths = [u64; 64];

/// What is known of the entries of two filters.
pub(crate) struct Overlap {
    /// Lengths of the distinct entries of each.
    pub(crate) lengths: [Lengths; 2],
    /// The pairs where each copy of an entry counts.
    copies: Pairs,
    /// The pairs where copies of an entry count once.
    distinct: Pairs,
}

/// Compares the entries of two filters.
///
/// # Errors
/// [`MemoryError`] if there is no memory for a cluster.
pub(crate) fn relate<B: AsRef<[u8]>, O: AsRef<[u8]>>(
    first: &Body<B>,
    second: &Body<O>,
) -> Result<Overlap, MemoryError> {
    let (copies, distinct) = (Pairs::default(), Pairs::default());
    let mut found = Overlap { lengths: [[0; 64]; 2], copies, distinct };
    if !first.table.grows() && !second.table.grows() {
        found.note_equals(0, first, second);
        found.note_equals(1, second, first);
    } else {
        found.note_clusters(first, second)?;
    }
    found.note_stash(0, first, second);
    found.note_stash(1, second, first);
    Ok(found)
}

impl Overlap {
    /// Adds the entries of filters of which one has grown.
    fn note_clusters<B: AsRef<[u8]>, O: AsRef<[u8]>>(
        &mut self,
        first: &Body<B>,
        second: &Body<O>,
    ) -> Result<(), MemoryError> {
        let (mut cluster, shared) = (Vec::new(), shared_length(first).max(shared_length(second)));
        // The entries of both that may belong to a key of a prefix.
        let gather = |cluster: &mut Vec<Node>, prefix: Prefix| {
            cluster.clear();
            first.add_relatives(0, prefix, cluster)?;
            second.add_relatives(1, prefix, cluster)?;
            cluster.sort_unstable_by_key(|node| (node.bits, node.length));
            cluster.dedup_by(|next, node| node.absorb(next));
            Ok::<(), MemoryError>(())
        };
        let mut note = |side: usize, prefix: Prefix| {
            self.lengths[side][prefix.length as usize % 64] += 1;
            let begins = |cluster: &[Node]| {
                let is_it =
                    |node: &&Node| node.bits == bits_of(prefix) && node.length == prefix.length;
                let first = cluster.first().filter(is_it);
                first.is_some_and(|node| side == 0 || node.copies[0] == 0)
            };
            let mut length = prefix.length;
            gather(&mut cluster, prefix)?;
            if begins(&cluster) && length > shared && cluster[0].is_void.contains(&true) {
                length = shared;
                gather(&mut cluster, Prefix { length, ..prefix })?;
                keep_void(&mut cluster);
            }
            if begins(&cluster) {
                self.note_cluster(&mut cluster, length);
            }
            Ok(())
        };
        first.table.distinct_entries().try_for_each(|entry| note(0, entry.prefix))?;
        second.table.distinct_entries().try_for_each(|entry| note(1, entry.prefix))
    }

    /// Adds the keys in the stash of a filter. Where the other filter has one in its table, its
    /// entry had no partner.
    fn note_stash<B: AsRef<[u8]>, O: AsRef<[u8]>>(
        &mut self,
        side: usize,
        own: &Body<B>,
        other: &Body<O>,
    ) {
        for (address, copies) in own.state.side.stashed_keys() {
            let theirs = other.state.side.stashed(address);
            let [ours_in, theirs_in] = [own.count_key(address), other.count_key(address)];
            let in_table = theirs_in.saturating_sub(ours_in);
            let all = [copies, theirs, in_table];
            for (pairs, [copies, theirs, in_table]) in
                [(&mut self.copies, all), (&mut self.distinct, all.map(|count| count.min(1)))]
            {
                let stashed = copies.min(theirs);
                let with_entry = (copies - stashed).min(in_table);
                // The first filter has every pair of two stashes.
                pairs.add(if side == 0 { stashed } else { 0 } + with_entry, false, false);
                pairs.add_alone(side, copies - stashed - with_entry);
                pairs.take_alone(1 - side, with_entry);
            }
        }
    }
}

/// The parts of one void entry share at least so many bits: those of the shortest entry that a
/// filter can have, or in a table that has grown far, nearly those of its buckets.
fn shared_length<B: AsRef<[u8]>>(reader: &Body<B>) -> u32 {
    let geometry = reader.table.addresses();
    let level = (geometry.buckets() / geometry.base().buckets()).max(1).ilog2();
    geometry.base().fraction_bits().max(level.saturating_sub(MOST_HALVES))
}

/// Keeps the entries that are void, or that begin with a void one.
fn keep_void(cluster: &mut Vec<Node>) {
    let mut top: Option<Node> = None;
    cluster.retain(|node| {
        let above = top.filter(|top| top.is_start_of(node)).unwrap_or(*node);
        top = Some(above);
        above.is_void.contains(&true)
    });
}

/// The bits of a prefix, the first one highest.
fn bits_of(prefix: Prefix) -> u64 {
    let beyond = u64::MAX.checked_shl(prefix.length).unwrap_or(0);
    (prefix.string & !beyond).reverse_bits()
}

impl Overlap {
    /// The keys of filters with so many copies of them: how many copies, and how many distinct
    /// ones.
    pub(crate) fn keys(&self, len: [u64; 2]) -> [Found; 2] {
        let (all, once) = (&self.copies, &self.distinct);
        let copies = all.keys(len);
        // Leftovers have as many copies as other entries.
        let share = |part: u64, (once, all): (u64, u64)| {
            let share = u128::from(part) * u128::from(once) / u128::from(all.max(1));
            u64::try_from(share).unwrap_or(u64::MAX)
        };
        let alone = [0, 1].map(|i| share(copies.alone[i], (once.alone(i), all.alone(i))));
        let common = share(copies.common, (once.count(), all.count()));
        [copies, Found { alone, common }]
    }

    /// Adds the entries of a filter of one size. Those of both filters that are not equal are
    /// unrelated.
    fn note_equals<B: AsRef<[u8]>, O: AsRef<[u8]>>(
        &mut self,
        side: usize,
        own: &Body<B>,
        other: &Body<O>,
    ) {
        for entry in own.table.distinct_entries() {
            let counts = [own.count_of(&entry), other.count_relatives(entry.prefix)];
            let once = counts.map(|count| count.min(1));
            for (pairs, [ours, theirs]) in [(&mut self.copies, counts), (&mut self.distinct, once)]
            {
                // The first filter has every pair.
                pairs.add(if side == 0 { ours.min(theirs) } else { 0 }, false, false);
                pairs.add_alone(side, ours.saturating_sub(theirs));
            }
            self.lengths[side][entry.prefix.length as usize % 64] += 1;
        }
    }

    /// Adds a cluster, whose entries share so many bits.
    fn note_cluster(&mut self, cluster: &mut [Node], length: u32) {
        pair_up(cluster, length, &mut self.copies);
        for node in cluster.iter_mut() {
            node.copies = node.copies.map(|copies| copies.min(1));
        }
        pair_up(cluster, length, &mut self.distinct);
    }
}

impl Node {
    fn is_start_of(&self, other: &Self) -> bool {
        let beyond = u64::MAX.checked_shr(self.length).unwrap_or(0);
        self.length <= other.length && (self.bits ^ other.bits) & !beyond == 0
    }

    /// Adds the copies of `other` if it has the same prefix.
    fn absorb(&mut self, other: &Self) -> bool {
        if (self.bits, self.length) != (other.bits, other.length) {
            return false;
        }
        for i in [0, 1] {
            self.copies[i] = self.copies[i].saturating_add(other.copies[i]);
            self.is_void[i] |= other.is_void[i];
            self.is_short[i] |= other.is_short[i];
        }
        true
    }
}

impl<B: AsRef<[u8]>> Body<B> {
    /// Adds all entries that may belong to a key of `prefix` to the cluster, as those of one side.
    fn add_relatives(
        &self,
        side: usize,
        prefix: Prefix,
        cluster: &mut Vec<Node>,
    ) -> Result<(), MemoryError> {
        let (geometry, mut fit) = (self.table.addresses(), true);
        self.each_relative(prefix, |entry, copies| {
            let length = entry.prefix.length;
            let mut node = Node { bits: bits_of(entry.prefix), length, ..Node::default() };
            node.copies[side] = copies;
            let shorter = Prefix { length: length.saturating_sub(1), ..entry.prefix };
            let is_told = |base| geometry.bucket_of(base, &shorter).is_some();
            let are_told = is_told(shorter.base) && is_told(geometry.other_base(&shorter));
            node.is_void[side] = self.table.grows() && (length == 0 || !are_told);
            node.is_short[side] = length < geometry.common_length();
            fit = fit && cluster.try_reserve(1).is_ok();
            if fit {
                cluster.push(node);
            }
        });
        if fit { Ok(()) } else { Err(MemoryError { bytes: size_of_val(&cluster[..]) }) }
    }

    /// The number of copies of all entries that may belong to a key of `prefix`.
    fn count_relatives(&self, prefix: Prefix) -> u64 {
        let mut count = 0_u64;
        self.each_relative(prefix, |_, copies| count = count.saturating_add(copies));
        count
    }

    /// Calls `visit` with every entry that may belong to a key of `prefix`, and with its copies:
    /// one, and those of its counter. Entries of one name share a counter, which comes once.
    fn each_relative(&self, prefix: Prefix, mut visit: impl FnMut(Entry, u64)) {
        let mut counted = BTreeSet::new();
        self.table.each_relative(prefix, &mut |entry| {
            let beyond = self.beyond(&entry);
            let is_first = beyond > 0 && counted.insert(self.table.name(&entry));
            visit(entry, if is_first { beyond.saturating_add(1) } else { 1 });
        });
    }
}
