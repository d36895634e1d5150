//! A skip list in an arena: entries in order, which readers search while a writer adds more.
//!
//! A node is some words of the arena:
//!
//! | words | what |
//! |---|---|
//! | 1 | the first 8 bytes of the key |
//! | 1 | the sequence number |
//! | 1 | lengths of key and value, and the number of links |
//! | 1 to 16 | links: the addresses of the next node on this level, 0 for none |
//! | | the rest of the key, then the value, each from a new word on |
//!
//! The first word decides nearly every comparison; it is in the cache line of the lowest links. A
//! node with many links is on many levels, each of which skips three quarters of the level below.
//! The head, at the first address, has links only.
//!
//! A link is stored after everything in its node, and read before it: with `Release` and `Acquire`.
//! Nothing else of a node that has a link to it changes, but its own links.
//!
//! Source: W. Pugh, *Skip lists: a probabilistic alternative to balanced trees*, 1990.

use std::cmp::Ordering;
use std::sync::atomic::{self, AtomicU64};

use super::super::entry::word_at;
use super::arena::{Address, Arena, WORD, pack, unpack, words_of};
use crate::Error;
use crate::kernel::bytes::usize_of;

const PREFIX: usize = 0;
const SEQUENCE: usize = 1;
const LENGTHS: usize = 2;
const LINKS: usize = 3;
/// Links of the head. A level has a quarter of the nodes of the level below.
const LEVELS: usize = 16;
const HEAD: Address = Address::FIRST;

#[derive(Debug, Default)]
pub(super) struct List {
    arena: Arena,
}

/// An entry in the arena that no read finds before it is linked.
#[derive(Debug)]
#[must_use]
pub(in crate::lsm) struct Written(Address);

/// A node; of the head, only the links mean something.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node<'a>(&'a [AtomicU64]);

/// What nodes are sorted and found by.
#[derive(Debug)]
pub(super) struct Place<'a> {
    prefix: u64,
    rest: Rest<'a>,
    key_len: usize,
    sequence: u64,
}

/// The words of a key behind the first one.
#[derive(Debug)]
enum Rest<'a> {
    OfKey(&'a [u8]),
    OfNode(&'a [AtomicU64]),
}

/// The third word of a node.
struct Lengths {
    key: usize,
    /// `None` for a deletion.
    value: Option<usize>,
    links: usize,
}

impl Lengths {
    fn pack(&self) -> u64 {
        let value = self.value.map_or(0, |len| len as u64 + 1);
        (self.links as u64) << 56 | (self.key as u64) << 32 | value
    }

    #[inline]
    fn unpack(word: u64) -> Self {
        let value = (word & 0xffff_ffff).checked_sub(1).map(usize_of);
        let key = usize_of(word >> 32 & 0xff_ffff);
        Self { key, value, links: usize_of(word >> 56) }
    }

    /// Returns the words of the key behind the first one.
    #[inline]
    fn rest_of_key(&self) -> usize {
        words_of(self.key).saturating_sub(1)
    }

    fn words_of_node(&self) -> usize {
        LINKS + self.links + self.rest_of_key() + words_of(self.value.unwrap_or(0))
    }
}

impl<'a> Place<'a> {
    #[inline]
    pub(super) fn new(key: &'a [u8], sequence: u64) -> Self {
        let (prefix, rest) = (word_at(key, 0), Rest::OfKey(key));
        Self { prefix, rest, key_len: key.len(), sequence }
    }

    /// Returns a word of the key; 0 behind its end.
    #[inline]
    fn word(&self, index: usize) -> u64 {
        match self.rest {
            Rest::OfKey(key) => word_at(key, index * WORD),
            Rest::OfNode(rest) => word(rest, index - 1),
        }
    }
}

#[inline]
fn word(words: &[AtomicU64], index: usize) -> u64 {
    words.get(index).map_or(0, |word| word.load(atomic::Ordering::Relaxed))
}

impl<'a> Node<'a> {
    #[inline]
    fn lengths(self) -> Lengths {
        Lengths::unpack(word(self.0, LENGTHS))
    }

    fn set(self, index: usize, value: u64) {
        if let Some(word) = self.0.get(index) {
            word.store(value, atomic::Ordering::Relaxed);
        }
    }

    /// Returns the address of the next node on a level, if there is one.
    #[inline]
    fn next(self, level: usize) -> Option<Address> {
        let link = self.0.get(LINKS + level)?.load(atomic::Ordering::Acquire);
        (link != HEAD.word()).then(|| Address::from_word(link))
    }

    /// Publishes a node as the next one on a level.
    fn link(self, level: usize, next: Address) {
        if let Some(link) = self.0.get(LINKS + level) {
            link.store(next.word(), atomic::Ordering::Release);
        }
    }

    #[inline]
    pub(super) fn sequence(self) -> u64 {
        word(self.0, SEQUENCE)
    }

    #[inline]
    fn rest_of_key(self, lengths: &Lengths) -> &'a [AtomicU64] {
        let start = LINKS + lengths.links;
        self.0.get(start..start + lengths.rest_of_key()).unwrap_or_default()
    }

    pub(super) fn place(self) -> Place<'a> {
        let lengths = self.lengths();
        Place {
            prefix: word(self.0, PREFIX),
            rest: Rest::OfNode(self.rest_of_key(&lengths)),
            key_len: lengths.key,
            sequence: self.sequence(),
        }
    }

    #[inline]
    pub(super) fn cmp(self, place: &Place<'_>) -> Ordering {
        self.cmp_key(place).then_with(|| place.sequence.cmp(&self.sequence()))
    }

    #[inline]
    pub(super) fn cmp_key(self, place: &Place<'_>) -> Ordering {
        word(self.0, PREFIX).cmp(&place.prefix).then_with(|| self.cmp_rest(place))
    }

    /// Keys are filled up with zeros to whole words; where that makes them equal, the longer one is
    /// greater.
    fn cmp_rest(self, place: &Place<'_>) -> Ordering {
        let lengths = self.lengths();
        let rest = self.rest_of_key(&lengths).iter().enumerate();
        let mut words = rest
            .map(|(index, word)| word.load(atomic::Ordering::Relaxed).cmp(&place.word(index + 1)));
        let by_words = words.find(|order| order.is_ne());
        by_words.unwrap_or_else(|| lengths.key.cmp(&place.key_len))
    }

    /// Replaces the contents of `into` by the key.
    pub(super) fn copy_key(self, into: &mut Vec<u8>) -> Result<(), Error> {
        let lengths = self.lengths();
        let first = self.0.get(PREFIX).into_iter();
        unpack(first.chain(self.rest_of_key(&lengths)), lengths.key, into)
    }

    pub(super) fn is_deletion(self) -> bool {
        self.lengths().value.is_none()
    }

    /// Replaces the contents of `into` by the value: by nothing if this is a deletion.
    pub(super) fn copy_value(self, into: &mut Vec<u8>) -> Result<(), Error> {
        let lengths = self.lengths();
        let (start, len) = (LINKS + lengths.links + lengths.rest_of_key(), lengths.value);
        let len = len.unwrap_or(0);
        let words = self.0.get(start..start + words_of(len)).unwrap_or_default();
        unpack(words.iter(), len, into)
    }
}

impl List {
    /// Returns an empty list for about so many bytes.
    pub(super) fn new(bytes: u64) -> Self {
        Self { arena: Arena::new(bytes) }
    }

    /// Returns how many bytes the entries take.
    pub(super) fn bytes(&self) -> u64 {
        self.arena.bytes()
    }

    #[inline]
    pub(super) fn node(&self, address: Address) -> Node<'_> {
        Node(self.arena.at(address))
    }

    /// Writes a key and the parts of its value, or that the key is deleted. `random` chooses the
    /// levels. One thread at a time calls this and [`link`](Self::link).
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(super) fn write<'a>(
        &self,
        key: &[u8],
        value: Option<(u64, impl Iterator<Item = &'a [u8]>)>,
        random: u64,
    ) -> Result<Written, Error> {
        if self.arena.bytes() == 0 {
            self.arena.take(LINKS + LEVELS)?;
        }
        let value_len = value.as_ref().map(|&(len, _)| usize_of(len));
        let links = (1 + random.trailing_zeros() as usize / 2).min(LEVELS);
        let lengths = Lengths { key: key.len(), value: value_len, links };
        let address = self.arena.take(lengths.words_of_node())?;
        let node = self.node(address);
        node.set(PREFIX, word_at(key, 0));
        node.set(LENGTHS, lengths.pack());
        let rest = node.rest_of_key(&lengths);
        pack(rest, key.get(WORD..).into_iter());
        if let Some((_, parts)) = value {
            let start = LINKS + links + rest.len();
            pack(node.0.get(start..).unwrap_or_default(), parts);
        }
        Ok(Written(address))
    }

    /// Makes an entry one that reads find.
    pub(super) fn link(&self, entry: Written, sequence: u64) {
        let Written(address) = entry;
        let node = self.node(address);
        node.set(SEQUENCE, sequence);
        let place = node.place();
        let mut before = [HEAD; LEVELS];
        self.search(|other| other.cmp(&place).is_lt(), |level, at| before[level] = at);
        // From below, so that a node that is found on a level is on those below.
        for (level, &before) in before.iter().enumerate().take(node.lengths().links) {
            let before = self.node(before);
            if let Some(next) = before.next(level) {
                node.link(level, next);
            }
            before.link(level, address);
        }
    }

    /// Returns the last node for which `is_before` says so, or the head, and the first node for
    /// which it does not. Tells `passed` of the last such node on each level, from the top.
    ///
    /// The link from one to the other must not be read again: meanwhile a writer may have put a
    /// node in between, for which `is_before` was not asked.
    fn search(
        &self,
        is_before: impl Fn(Node<'_>) -> bool,
        mut passed: impl FnMut(usize, Address),
    ) -> (Address, Option<Address>) {
        let (mut at, mut beyond) = (HEAD, None);
        for level in (0..LEVELS).rev() {
            loop {
                let next = self.node(at).next(level);
                match next {
                    Some(next) if Some(next) != beyond && is_before(self.node(next)) => at = next,
                    _ => {
                        beyond = next;
                        break;
                    }
                }
            }
            passed(level, at);
        }
        (at, beyond)
    }

    /// Returns the address of the last node before a place, if there is one.
    pub(super) fn last_before(&self, place: &Place<'_>) -> Option<Address> {
        let (at, _) = self.search(|node| node.cmp(place).is_lt(), |_, _| ());
        (at != HEAD).then_some(at)
    }

    /// Returns the address of the first node at or behind a place, if there is one.
    pub(super) fn first_from(&self, place: &Place<'_>) -> Option<Address> {
        self.search(|node| node.cmp(place).is_lt(), |_, _| ()).1
    }

    pub(super) fn first(&self) -> Option<Address> {
        self.node(HEAD).next(0)
    }

    pub(super) fn last(&self) -> Option<Address> {
        let (at, _) = self.search(|_| true, |_, _| ());
        (at != HEAD).then_some(at)
    }

    pub(super) fn next(&self, address: Address) -> Option<Address> {
        self.node(address).next(0)
    }
}

#[cfg(test)]
impl List {
    /// Returns how many nodes a search for a place looks at.
    pub(super) fn steps_to(&self, place: &Place<'_>) -> usize {
        let steps = std::cell::Cell::new(0);
        let is_before = |node: Node<'_>| {
            steps.set(steps.get() + 1);
            node.cmp(place).is_lt()
        };
        self.search(is_before, |_, _| ());
        steps.get()
    }
}
