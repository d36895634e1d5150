//! What the entries of two filters tell of their keys.
//!
//! An entry stands for all keys that begin with its prefix. So a key of both filters has an entry
//! in each, and one of the two is a prefix of the other. Entries without such a partner tell of a
//! key of one filter alone.
//!
//! * **Clusters.** The entries of both filters that begin with one shortest entry are a cluster. No
//!   partner is outside, and most clusters are one entry of each filter. In the order of
//!   [`runs`](super::runs) they are in a row. `cluster.rs` pairs them. Growth puts void entries
//!   into both halves of a bucket, so the clusters that begin with a void entry are one cluster if
//!   those entries can be parts of one.
//! * **Leftovers.** Growth puts both halves of a void entry into the table, and a removal of their
//!   key leaves one behind. A filter counts its keys, so the number of entries that belong to no
//!   key is known. They are among its void entries, or after it was shrunk, among those with fewer
//!   bits than new entries have. Those that `cluster.rs` does not explain are subtracted from the
//!   entries that have no partner, but for as many as two filters that grew alike have in common.
//!
//! **Cost.** That of a join of two [`runs`](super::runs).

use alloc::vec::Vec;

use super::Body;
use super::cluster::{Found, Node, Pairs, pair_up};
use super::runs::{each_pair, join, next_group};
use crate::error::MemoryError;
use crate::table::Prefix;

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
/// [`MemoryError`] if there is no memory for the entries of a cut.
pub(crate) fn relate<B: AsRef<[u8]> + Sync, O: AsRef<[u8]> + Sync>(
    first: &Body<B>,
    second: &Body<O>,
) -> Result<Overlap, MemoryError> {
    let (copies, distinct) = (Pairs::default(), Pairs::default());
    let mut found = Overlap { lengths: [[0; 64]; 2], copies, distinct };
    let has_grown = first.table.grows() || second.table.grows();
    let (addresses, shared) = (first.table.addresses(), shared_length(first, second));
    let (mut group, mut nodes): (_, Vec<Node>) = Default::default();
    each_pair(first, second, |_, runs| {
        let mut joined = join(runs);
        if !has_grown {
            joined.for_each(|(_, copies)| found.note_equals(copies, false));
            return Ok(());
        }
        while next_group(&mut joined, addresses.base(), &mut group)? {
            nodes.clear();
            nodes
                .try_reserve(group.len())
                .map_err(|_| MemoryError { bytes: size_of_val(&group[..]) })?;
            nodes.extend(group.iter().map(|&(order, copies)| {
                let mut node = Node::new(addresses.ordered(order), copies);
                node.note(0, first);
                node.note(1, second);
                node
            }));
            found.note_group(&mut nodes, shared);
        }
        Ok::<_, MemoryError>(())
    })?;
    found.note_stash(0, first, second);
    found.note_stash(1, second, first);
    Ok(found)
}

/// Whether two filters with the same addresses have the same entries, copies and exact answers.
///
/// # Errors
/// [`MemoryError`] if there is no memory for the entries of a cut.
pub(crate) fn are_same<B: AsRef<[u8]> + Sync, O: AsRef<[u8]> + Sync>(
    first: &Body<B>,
    second: &Body<O>,
) -> Result<bool, MemoryError> {
    let (ours, theirs) = (&first.state.side, &second.state.side);
    if !ours.stashed_keys().eq(theirs.stashed_keys())
        || !ours.corrections.iter().eq(theirs.corrections.iter())
        || first.state.len != second.state.len
    {
        return Ok(false);
    }
    // No error, where an entry differs.
    let all = each_pair(first, second, |_, runs| {
        let same = join(runs).all(|(_, [ours, theirs])| ours == theirs);
        if same { Ok(()) } else { Err(None) }
    });
    all.map_or_else(|error: Option<_>| error.map_or(Ok(false), Err), |()| Ok(true))
}

impl Overlap {
    /// Adds the keys in the stash of a filter. Where the other filter has one in its table, its
    /// entry had no partner.
    fn note_stash<B: AsRef<[u8]> + Sync, O: AsRef<[u8]> + Sync>(
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
fn shared_length<B: AsRef<[u8]> + Sync, O: AsRef<[u8]> + Sync>(
    first: &Body<B>,
    second: &Body<O>,
) -> u32 {
    let base = first.table.base();
    let level = first.table.addresses().level().max(second.table.addresses().level());
    base.fraction_bits().max(level.saturating_sub(MOST_HALVES))
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

    /// Adds an entry that is related to no other one.
    fn note_equals(&mut self, copies: [u64; 2], are_short: bool) {
        let once = copies.map(|count| count.min(1));
        for (pairs, copies) in [(&mut self.copies, copies), (&mut self.distinct, once)] {
            let equal = copies[0].min(copies[1]);
            pairs.add(equal, false, are_short);
            [0, 1].into_iter().for_each(|side| pairs.add_alone(side, copies[side] - equal));
        }
    }

    /// Adds entries that may be of the same keys, and makes each of them one copy. Most are not.
    fn note_group(&mut self, nodes: &mut [Node], shared: u32) {
        for node in &*nodes {
            for (lengths, count) in self.lengths.iter_mut().zip(node.copies) {
                lengths[node.prefix.length as usize % 64] += count.min(1);
            }
        }
        if are_unrelated(nodes) {
            let are_short = |node: &Node| node.is_short == [true; 2];
            return nodes.iter().for_each(|it| self.note_equals(it.copies, are_short(it)));
        }
        pair_up(nodes, shared, &mut self.copies);
        nodes.iter_mut().for_each(|it| it.copies = it.copies.map(|copies| copies.min(1)));
        pair_up(nodes, shared, &mut self.distinct);
    }
}

/// Whether none of these is void, and none a prefix of another one: that would be next to it.
fn are_unrelated(nodes: &[Node]) -> bool {
    let is_related = |pair: &[Node]| {
        let [one, other] = [pair[0].prefix, pair[1].prefix];
        one.in_common(&other) == Some(one.length.min(other.length))
    };
    nodes.iter().all(|node| node.is_void == [false; 2]) && !nodes.windows(2).any(is_related)
}

impl Node {
    /// Notes what an entry is in one of the filters.
    fn note<B: AsRef<[u8]> + Sync>(&mut self, side: usize, of: &Body<B>) {
        let (addresses, prefix) = (of.table.addresses(), self.prefix);
        if self.copies[side] == 0 {
            return;
        }
        let shorter = Prefix { length: prefix.length.saturating_sub(1), ..prefix };
        let is_told = |base| addresses.bucket_of(base, &shorter).is_some();
        let are_told = || is_told(prefix.base) && is_told(addresses.other_base(&prefix));
        let may_be_void = addresses.grows() && prefix.length <= addresses.level() + 1;
        self.is_void[side] = may_be_void && (prefix.length == 0 || !are_told());
        self.is_short[side] = prefix.length < addresses.common_length();
    }
}
