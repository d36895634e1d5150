//! Words of memory in a few large blocks, which are freed at once.
//!
//! Entries with an allocation each would have to be freed one by one, half a million at a time. The
//! allocator is locked for much of that, and a write that allocates meanwhile waits for up to a
//! second. So entries are cut from blocks of up to a megabyte.
//!
//! A word is atomic: one thread writes words while others read words beside them. Relaxed reads and
//! writes of it cost what plain ones do. Who publishes the address of words, with
//! [`Ordering::Release`], publishes what was written there before.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Error;
use crate::kernel::bytes::usize_of;
use crate::kernel::memory;
use crate::kernel::threads::Counter;

/// Bytes of a word.
pub(super) const WORD: usize = 8;
/// Blocks of one size; the next ones are twice as large.
const ALIKE: usize = 64;
/// More than the largest batch fills.
const MOST_BLOCKS: usize = 16 * ALIKE;
/// Words of a first block, at least and at most.
const FIRST_WORDS: [u64; 2] = [512, 128 << 10];

/// Where words are: the number of a block in the upper half, and an index in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address(u64);

#[derive(Debug, Default)]
pub(super) struct Arena {
    blocks: Box<[OnceLock<Box<[AtomicU64]>>]>,
    /// Words of a first block.
    first: usize,
    /// The block that is being filled, and how many of its words are taken.
    block: Counter,
    taken: Counter,
    /// Bytes that were taken, and those that were left at the end of a block.
    bytes: Counter,
}

impl Address {
    /// The first words that are taken.
    pub(super) const FIRST: Self = Self(0);

    fn new(block: usize, index: usize) -> Self {
        Self((block as u64) << 32 | index as u64)
    }

    pub(super) fn from_word(word: u64) -> Self {
        Self(word)
    }

    pub(super) fn word(self) -> u64 {
        self.0
    }
}

impl Arena {
    /// Returns an arena without blocks, for about so many bytes.
    pub(super) fn new(bytes: u64) -> Self {
        let [least, most] = FIRST_WORDS;
        let first = usize_of((bytes / (WORD * ALIKE) as u64).clamp(least, most));
        let blocks = (0..MOST_BLOCKS).map(|_| OnceLock::new()).collect();
        Self { blocks, first, ..Self::default() }
    }

    /// Returns how many bytes are taken.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    /// Takes so many adjacent words, which are 0. One thread at a time calls this.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(super) fn take(&self, words: usize) -> Result<Address, Error> {
        let block = usize_of(self.block.get());
        let taken = usize_of(self.taken.get());
        let block_len = self.block(block).map_or(0, <[_]>::len);
        let (address, used) = if words <= block_len - taken {
            self.taken.set((taken + words) as u64);
            (Address::new(block, taken), words)
        } else {
            let next = if block_len == 0 { block } else { block + 1 };
            self.start(next, words)?;
            (Address::new(next, 0), block_len - taken + words)
        };
        self.bytes.add_exclusive((used * WORD) as u64);
        Ok(address)
    }

    /// Starts a block, and takes its first words.
    fn start(&self, number: usize, words: usize) -> Result<(), Error> {
        let len = words.max(self.first << (number / ALIKE));
        let out_of_memory = || Error::OutOfMemory { bytes: (len * WORD) as u64 };
        let place = self.blocks.get(number).ok_or_else(out_of_memory)?;
        let block = bytemuck::try_zeroed_slice_box(len).map_err(|()| out_of_memory())?;
        place.get_or_init(|| block);
        self.block.set(number as u64);
        self.taken.set(words as u64);
        Ok(())
    }

    /// Returns the words from an address to the end of its block: none if there is no such block.
    #[inline]
    pub(super) fn at(&self, address: Address) -> &[AtomicU64] {
        let (block, index) = (usize_of(address.0 >> 32), usize_of(address.0 & 0xffff_ffff));
        self.block(block).and_then(|words| words.get(index..)).unwrap_or_default()
    }

    #[inline]
    fn block(&self, number: usize) -> Option<&[AtomicU64]> {
        self.blocks.get(number)?.get().map(|words| &**words)
    }
}

/// Returns how many words so many bytes take.
pub(super) fn words_of(bytes: usize) -> usize {
    bytes.div_ceil(WORD)
}

/// Copies bytes into words. Words compare as their bytes do.
#[expect(clippy::big_endian_bytes, reason = "the first byte decides a comparison")]
pub(super) fn pack<'a>(words: &[AtomicU64], parts: impl Iterator<Item = &'a [u8]>) {
    let mut words = words.iter();
    let mut store = |bytes| {
        if let Some(word) = words.next() {
            word.store(u64::from_be_bytes(bytes), Ordering::Relaxed);
        }
    };
    // The bytes of a word that is not complete.
    let (mut rest, mut len) = ([0; WORD], 0);
    for part in parts {
        let (start, part) = part.split_at(part.len().min((WORD - len) % WORD));
        rest[len..len + start.len()].copy_from_slice(start);
        len += start.len();
        if len == WORD {
            store(rest);
            (rest, len) = ([0; WORD], 0);
        }
        let (whole, end) = part.as_chunks();
        whole.iter().copied().for_each(&mut store);
        if !end.is_empty() {
            rest[..end.len()].copy_from_slice(end);
            len = end.len();
        }
    }
    if len > 0 {
        store(rest);
    }
}

/// Replaces the contents of `into` by the first `len` bytes of words.
#[expect(clippy::big_endian_bytes, reason = "as `pack` stores them")]
pub(super) fn unpack<'a>(
    words: impl Iterator<Item = &'a AtomicU64>,
    len: usize,
    into: &mut Vec<u8>,
) -> Result<(), Error> {
    into.clear();
    memory::reserve(into, len.next_multiple_of(WORD))?;
    for word in words {
        into.extend_from_slice(&word.load(Ordering::Relaxed).to_be_bytes());
    }
    into.truncate(len);
    Ok(())
}
