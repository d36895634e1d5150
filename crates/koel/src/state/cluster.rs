//! Pairs the entries of a cluster: those of two filters that begin with one shortest entry.
//!
//! Two entries may be of one key if one is a prefix of the other. So the cluster is a binary tree,
//! and an entry pairs with one of the other filter above or below it. From the longest prefixes up,
//! entries that are still alone are alike for all entries above them, so pairing them greedily
//! makes the most pairs.
//!
//! **Halves.** A split puts a void entry into both halves of its bucket. Where two halves meet in
//! the tree, they are one entry again ([`Alone::join`]):
//! * both are alone: one entry that is alone;
//! * one is alone, and the other is *tied*, paired with an entry that is longer than void: the
//!   entry of that one key.
//!
//! Where the other one is paired with a void entry, both filters grew alike. Then one of them had a
//! key that the other lacks, and the half stays alone.

use crate::table::Prefix;

/// An entry of both filters, with the number of its copies in each; 0 if it is not there.
#[derive(Clone, Copy)]
pub(super) struct Node {
    pub(super) prefix: Prefix,
    pub(super) copies: [u64; 2],
    /// Whether it has no bit beyond those of one of its buckets.
    pub(super) is_void: [bool; 2],
    /// Whether it has fewer bits than a new entry would have.
    pub(super) is_short: [bool; 2],
}

impl Node {
    pub(super) fn new(prefix: Prefix, copies: [u64; 2]) -> Self {
        Self { prefix, copies, is_void: [false; 2], is_short: [false; 2] }
    }
}

/// How many entries of two filters have a partner.
#[derive(Clone, Copy, Default)]
pub(super) struct Pairs {
    pairs: u64,
    /// Pairs of void entries, and pairs of equal entries that are shorter than new ones.
    void: u64,
    short: u64,
    sides: [Side; 2],
}

/// The entries of one filter.
#[derive(Clone, Copy, Default)]
struct Side {
    void: u64,
    /// Halves that are the same entry as another one.
    explained: u64,
    /// Entries without a partner: void ones, and others.
    alone_void: u64,
    alone_long: u64,
}

/// The keys of two filters, as their entries tell.
#[derive(Clone, Copy)]
pub(crate) struct Found {
    /// Keys of each filter alone.
    pub(crate) alone: [u64; 2],
    pub(crate) common: u64,
}

impl Side {
    fn alone(&self) -> u64 {
        self.alone_void.saturating_add(self.alone_long)
    }
}

impl Pairs {
    /// Adds pairs.
    pub(super) fn add(&mut self, pairs: u64, are_void: bool, are_short: bool) {
        let count = |total: &mut u64, counts: bool| {
            *total = total.saturating_add(if counts { pairs } else { 0 });
        };
        count(&mut self.pairs, true);
        count(&mut self.void, are_void);
        count(&mut self.short, are_short);
    }

    /// How many entries of each filter belong to none of its `len` keys.
    fn leftovers(&self, len: [u64; 2]) -> [u64; 2] {
        [0, 1].map(|i| self.all(i).saturating_sub(len[i]))
    }

    /// All entries of a filter.
    fn all(&self, side: usize) -> u64 {
        let Side { explained, .. } = self.sides[side];
        self.pairs.saturating_add(explained).saturating_add(self.sides[side].alone())
    }

    pub(super) fn count(&self) -> u64 {
        self.pairs
    }

    /// The entries of a filter without a partner.
    pub(super) fn alone(&self, side: usize) -> u64 {
        self.sides[side].alone()
    }

    /// Adds entries without a partner, which are not void.
    pub(super) fn add_alone(&mut self, side: usize, copies: u64) {
        let alone = &mut self.sides[side].alone_long;
        *alone = alone.saturating_add(copies);
    }

    /// Takes out entries without a partner that have one after all.
    pub(super) fn take_alone(&mut self, side: usize, copies: u64) {
        let Side { alone_long, alone_void, .. } = &mut self.sides[side];
        *alone_void -= copies.saturating_sub(*alone_long).min(*alone_void);
        *alone_long = alone_long.saturating_sub(copies);
    }

    /// The keys of filters with so many copies of them.
    pub(super) fn keys(&self, len: [u64; 2]) -> Found {
        let leftovers = self.leftovers(len);
        let is_hidden = |i: usize| leftovers[i] > self.sides[i].void;
        let are_hidden = is_hidden(0) || is_hidden(1);
        let unexplained = [0, 1].map(|i| leftovers[i].saturating_sub(self.sides[i].explained));
        let alike = if are_hidden { self.short } else { self.void };
        let paired = unexplained[0].min(unexplained[1]).min(alike);
        let alone = [0, 1].map(|i| {
            let rest = self.sides[i].alone().saturating_sub(unexplained[i] - paired);
            // Void entries alone can be leftovers.
            if are_hidden { rest } else { rest.max(self.sides[i].alone_long) }
        });
        Found { alone, common: self.pairs - paired.min(self.pairs) }
    }
}

/// The entries of one filter below a prefix that are alone.
#[derive(Clone, Copy, Default)]
struct Alone {
    /// Void entries of this prefix.
    here: u64,
    /// Void entries of this prefix that are tied.
    tied: u64,
    /// Other void entries.
    void: u64,
    /// Entries that are not void.
    long: u64,
}

impl Alone {
    fn total(&self) -> u64 {
        self.here.saturating_add(self.void).saturating_add(self.long)
    }

    /// The entries of a prefix, from those of its two halves. Counts the explained ones.
    fn join([one, other]: [Self; 2], explained: &mut u64) -> Self {
        let here = one.here.min(other.here);
        let left = [one.here - here, other.here - here];
        let tied = left[0].min(other.tied).saturating_add(left[1].min(one.tied));
        *explained = explained.saturating_add(here).saturating_add(tied);
        let apart = left[0].saturating_add(left[1]) - tied;
        let void = one.void.saturating_add(other.void).saturating_add(apart);
        Self { here, tied, void, long: one.long.saturating_add(other.long) }
    }

    /// The entries of a prefix that has only these, which are longer.
    fn of_half(self) -> Self {
        Self { here: 0, tied: 0, void: self.void.saturating_add(self.here), ..self }
    }

    /// Takes `count` of these, of which there are as many, for partners above. Returns how many of
    /// them were not void.
    fn take(&mut self, count: u64) -> u64 {
        let long = count.min(self.long);
        let here = (count - long).min(self.here);
        self.long -= long;
        self.here -= here;
        self.void -= count - long - here;
        long
    }
}

/// Pairs entries, and adds what it finds to `pairs`. They come in the order of their
/// [runs](super::runs). Void entries that share fewer than `shared` bits are not halves of one.
pub(super) fn pair_up(nodes: &[Node], shared: u32, pairs: &mut Pairs) {
    let Some(length) = in_common(nodes) else { return };
    let (halves, here) = split(nodes, length);
    if length < shared && here.is_none() {
        return halves.into_iter().for_each(|half| pair_up(half, shared, pairs));
    }
    let alone = pair_below(nodes, length, pairs);
    for (side, Alone { here, void, long, .. }) in pairs.sides.iter_mut().zip(alone) {
        side.alone_void = side.alone_void.saturating_add(here).saturating_add(void);
        side.alone_long = side.alone_long.saturating_add(long);
    }
}

/// How many first bits all entries share. `None` if there is no entry.
fn in_common(nodes: &[Node]) -> Option<u32> {
    let (first, last) = nodes.first().zip(nodes.last())?;
    first.prefix.in_common(&last.prefix)
}

/// What continues a prefix of this length with a 0 and with a 1, and the entry between them, which
/// is that prefix.
fn split(nodes: &[Node], length: u32) -> ([&[Node]; 2], Option<&Node>) {
    let zeros = |it: &Node| it.prefix.length > length && it.prefix.string >> length & 1 == 0;
    let (zeros, rest) = nodes.split_at(nodes.partition_point(zeros));
    match rest.split_first() {
        Some((here, ones)) if here.prefix.length == length => ([zeros, ones], Some(here)),
        _ => ([zeros, rest], None),
    }
}

/// Pairs the entries that share so many first bits. Recurs at most once a bit, so at most 64 deep.
fn pair_below(nodes: &[Node], length: u32, pairs: &mut Pairs) -> [Alone; 2] {
    let mut alone = <[Alone; 2]>::default();
    let Some(common) = in_common(nodes) else { return alone };
    if let [node] = nodes {
        pair_here(node, &mut alone, pairs);
        return if common > length { alone.map(Alone::of_half) } else { alone };
    }
    if common > length {
        return pair_below(nodes, common, pairs).map(Alone::of_half);
    }
    let (halves, here) = split(nodes, length);
    let [zero, one] = halves.map(|half| pair_below(half, length + 1, pairs));
    let join = |side: usize| Alone::join([zero[side], one[side]], &mut pairs.sides[side].explained);
    alone = [0, 1].map(join);
    if let Some(node) = here {
        pair_here(node, &mut alone, pairs);
    }
    alone
}

/// Pairs the entries of a prefix with each other and with those below that are alone.
fn pair_here(node: &Node, alone: &mut [Alone; 2], pairs: &mut Pairs) {
    let mut copies = node.copies;
    for (side, count) in copies.into_iter().enumerate().filter(|&(side, _)| node.is_void[side]) {
        let void = &mut pairs.sides[side].void;
        *void = void.saturating_add(count);
    }
    // Both filters have entries below that are alone: each pairs with one of the other filter here.
    let crossing = copies[0].min(copies[1]).min(alone[0].total()).min(alone[1].total());
    for side in [0, 1] {
        pair_across(node, side, crossing, alone, pairs);
        copies[side] -= crossing;
    }
    let equal = copies[0].min(copies[1]);
    pairs.add(equal, node.is_void == [true; 2], node.is_short == [true; 2]);
    for side in [0, 1] {
        if node.is_void[side] && !node.is_void[1 - side] {
            alone[side].tied += equal;
        }
        let left = copies[side] - equal;
        let across = left.min(alone[1 - side].total());
        pair_across(node, side, across, alone, pairs);
        let unpaired =
            if node.is_void[side] { &mut alone[side].here } else { &mut alone[side].long };
        *unpaired = unpaired.saturating_add(left - across);
    }
}

/// Pairs so many entries of one filter here with entries of the other filter below.
fn pair_across(node: &Node, side: usize, count: u64, alone: &mut [Alone; 2], pairs: &mut Pairs) {
    let long = alone[1 - side].take(count);
    let is_void = node.is_void[side];
    pairs.add(long, false, false);
    pairs.add(count - long, is_void, false);
    alone[side].tied += if is_void { long } else { 0 };
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use testkit::keys::splitmix64;

    /// The most pairs of entries, one of each filter, of which one is a prefix of the other: by
    /// augmenting paths.
    fn most_pairs(nodes: &[Node]) -> u64 {
        let of = |side: usize| {
            let copies =
                nodes.iter().flat_map(move |node| (0..node.copies[side]).map(move |_| node));
            copies.collect::<Vec<_>>()
        };
        let (ones, others) = (of(0), of(1));
        let is_pair = |one: &Node, other: &Node| {
            let in_common = one.prefix.in_common(&other.prefix);
            in_common == Some(one.prefix.length.min(other.prefix.length))
        };
        fn find(
            one: usize,
            seen: &mut [bool],
            partner: &mut [Option<usize>],
            fits: &dyn Fn(usize, usize) -> bool,
        ) -> bool {
            for other in 0..partner.len() {
                if !seen[other] && fits(one, other) {
                    seen[other] = true;
                    let is_free = match partner[other] {
                        None => true,
                        Some(holder) => find(holder, seen, partner, fits),
                    };
                    if is_free {
                        partner[other] = Some(one);
                        return true;
                    }
                }
            }
            false
        }
        let mut partner = alloc::vec![None; others.len()];
        let fits = |one: usize, other: usize| is_pair(ones[one], others[other]);
        let found = (0..ones.len())
            .filter(|&one| find(one, &mut alloc::vec![false; others.len()], &mut partner, &fits));
        found.count() as u64
    }

    #[test]
    fn no_other_choice_makes_more_pairs() {
        for seed in 0..3000 {
            let mut nodes: Vec<Node> = (0..1 + seed % 9)
                .map(|i| {
                    let random = splitmix64(seed << 8 | i);
                    let length = u32::try_from(random % 5).unwrap();
                    let string = (random >> 60).reverse_bits() >> 60 & !(u64::MAX << length);
                    let prefix = Prefix { core: 1, base: 0, string, length };
                    let is_void = [32, 64].map(|bit| seed % 2 == 1 && random & bit > 0);
                    let copies = [random >> 8 & 1, random >> 9 & 1];
                    Node { is_void, ..Node::new(prefix, copies) }
                })
                .collect();
            let order = |Node { prefix, .. }: &Node| {
                prefix.string.reverse_bits() | 1 << (63 - prefix.length)
            };
            nodes.sort_by_key(order);
            nodes.dedup_by_key(|node| order(node));
            let mut pairs = Pairs::default();
            pair_up(&nodes, 0, &mut pairs);
            // Halves that are one entry have one partner.
            let most = most_pairs(&nodes);
            assert!(pairs.count() == most || seed % 2 == 1 && pairs.count() < most, "{seed}");
            for side in [0, 1] {
                let all: u64 = nodes.iter().map(|node| node.copies[side]).sum();
                assert_eq!(pairs.all(side), all, "{seed}");
            }
        }
    }
}
