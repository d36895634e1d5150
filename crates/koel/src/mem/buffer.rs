//! The bytes that a filter owns: zeros at first, and in huge pages where that pays.
//!
//! * **Huge pages.** A lookup in a large table misses the cache of address translations and the
//!   cache of data. With pages of 2 MiB instead of 4 KiB it misses only the second
//!   (docs/BENCHMARKS.md, The machine, has the figures). With the feature `huge-pages`, a table of
//!   at least `LARGE` bytes is an anonymous memory map, and the system is advised to use huge pages
//!   for it. Where the system refuses either, the table is in ordinary memory.
//! * **Growth in place.** A table that grows gets, from `GROWN` bytes on, a map of `RESERVED` times
//!   its length. That takes addresses, not memory, since Linux gives a page when it is first
//!   touched. So no insert waits for a copy of the table. The pages that the table grows into are
//!   small ones: a huge page is zeroed as a whole when it is first touched, and the insert that
//!   touched it waited for 5.5 ms (docs/decisions/0008-growth.md).
//! * **Words.** Ordinary memory is a vector of 64-bit words, which a `ConcurrentFilter` can take
//!   over and give back without a copy. Every length is a multiple of 8 bytes.
//! * **No panic.** Where the system has no memory, there is no buffer, and the caller returns an
//!   error.

use alloc::vec::Vec;
use core::{alloc::Layout, fmt, hint};

use bytemuck::allocation::try_zeroed_vec;
use bytemuck::{must_cast_slice, must_cast_slice_mut};
#[cfg(feature = "huge-pages")]
use memmap2::{MmapMut, MmapOptions};

/// From here on a table gets a map of its own.
#[cfg(feature = "huge-pages")]
const LARGE: usize = 4 << 20;
#[cfg(feature = "huge-pages")]
const HUGE_PAGE: usize = 2 << 20;
/// From here on a table that grows gets a map to grow in. Its copy into that takes a tenth of a
/// millisecond.
#[cfg(feature = "huge-pages")]
const GROWN: usize = 256 << 10;
/// Addresses of such a map for each byte in use. A table is copied once more when it has used them
/// up, at 256 MiB. Only Linux gives addresses for nothing.
#[cfg(feature = "huge-pages")]
const RESERVED: usize = if cfg!(target_os = "linux") { 1024 } else { 0 };

/// Bytes that can be changed. Their number is a multiple of 8.
pub struct Buffer(Memory);

enum Memory {
    Heap(Vec<u64>),
    /// The first `len` bytes of a map; the others are zeros.
    #[cfg(feature = "huge-pages")]
    Mapped {
        map: MmapMut,
        len: usize,
    },
}

impl Buffer {
    /// `len` zeros. If it `grows`, they are in memory that can mostly [`grow`](Self::grow) without
    /// a copy. `None` where the system has no memory for them.
    pub(crate) fn zeroed(len: usize, grows: bool) -> Option<Self> {
        let map = Self::mapped(len, grows).or_else(|| Self::mapped(len, false));
        map.or_else(|| try_zeroed_vec(words(len)).ok().map(Self::from_words))
    }

    /// A copy, in memory with room to grow if it `grows`. `None` where the system has no memory for
    /// it.
    pub(crate) fn copy_of(bytes: &[u8], grows: bool) -> Option<Self> {
        let mut copy = Self::zeroed(bytes.len(), grows)?;
        copy.as_mut().copy_from_slice(bytes);
        Some(copy)
    }

    /// A copy in these words, whatever they are. `None` if they are too few, or none.
    pub(crate) fn copy_in(bytes: &[u8], mut memory: Vec<u64>) -> Option<Self> {
        let words = words(bytes.len());
        if memory.is_empty() || memory.len() < words {
            return None;
        }
        memory.truncate(words);
        let mut copy = Self::from_words(memory);
        copy.as_mut().copy_from_slice(bytes);
        Some(copy)
    }

    /// A copy in memory of the same kind. `None` where the system has no memory for it.
    pub(crate) fn try_clone(&self) -> Option<Self> {
        Self::copy_of(self.as_ref(), self.has_addresses_to_grow())
    }

    /// Adds zeros to make it `len` bytes long. False, and nothing changed, where the system has no
    /// memory for them.
    pub(crate) fn grow(&mut self, len: usize) -> bool {
        let has_room = self.reserve(len);
        if has_room {
            self.set_len(len);
        }
        has_room
    }

    /// Gets memory for `len` bytes, so that [`grow`](Self::grow) will not fail. False, and nothing
    /// changed, where the system has none. Ordinary memory gets room for some more, so that it
    /// seldom moves; glibc then moves pages, not bytes.
    pub(crate) fn reserve(&mut self, len: usize) -> bool {
        let has_room = match &self.0 {
            Memory::Heap(heap) => words(len) <= heap.capacity(),
            #[cfg(feature = "huge-pages")]
            Memory::Mapped { map, .. } => len <= map.len(),
        };
        has_room || self.reserve_elsewhere(len).is_some()
    }

    /// Makes it `len` bytes long, for which there is room. New ones are zeros.
    fn set_len(&mut self, len: usize) {
        match &mut self.0 {
            Memory::Heap(heap) => heap.resize(words(len), 0),
            #[cfg(feature = "huge-pages")]
            Memory::Mapped { len: before, .. } => *before = len,
        }
    }

    /// [`reserve`](Self::reserve) in new memory: a map with addresses to grow, or ordinary memory.
    fn reserve_elsewhere(&mut self, len: usize) -> Option<()> {
        let (wanted, present) = (words(len + len / 32), self.as_ref().len());
        let mut larger = match (Self::mapped(len, true), &mut self.0) {
            (Some(map), _) => map,
            // It may grow where it is.
            (None, Memory::Heap(heap)) => {
                return heap.try_reserve_exact(wanted - heap.len()).ok();
            }
            #[cfg(feature = "huge-pages")]
            (None, Memory::Mapped { .. }) => {
                let mut heap = Vec::new();
                heap.try_reserve_exact(wanted).ok()?;
                Self::from_words(heap)
            }
        };
        larger.set_len(present);
        larger.as_mut().copy_from_slice(self.as_ref());
        *self = larger;
        Some(())
    }

    /// The buffer of these words, each in the machine's byte order.
    pub(crate) const fn from_words(words: Vec<u64>) -> Self {
        Self(Memory::Heap(words))
    }

    /// The words of the buffer, without a copy unless it is a map. The buffer itself where the
    /// system has no memory for that.
    #[cfg(all(feature = "std", target_has_atomic = "64"))]
    pub(crate) fn into_words(self) -> Result<Vec<u64>, Self> {
        match self.0 {
            Memory::Heap(words) => Ok(words),
            #[cfg(feature = "huge-pages")]
            Memory::Mapped { .. } => {
                let Ok(copy) = try_zeroed_vec(words(self.as_ref().len())) else {
                    return Err(self);
                };
                let mut copy = Self::from_words(copy);
                copy.as_mut().copy_from_slice(self.as_ref());
                copy.into_words()
            }
        }
    }

    /// `len` zeros in a map of their own, with addresses to grow into if it `grows`. `None` where
    /// they are few, or where the system refuses.
    #[cfg(feature = "huge-pages")]
    fn mapped(len: usize, grows: bool) -> Option<Self> {
        let (least, addresses) = if grows {
            // A multiple of a huge page, so that the map beside it begins with one too.
            (GROWN, len.checked_mul(RESERVED)?.checked_next_multiple_of(HUGE_PAGE)?)
        } else {
            (LARGE, len)
        };
        if len < least || addresses == 0 {
            return None;
        }
        let mut options = MmapOptions::new();
        options.len(addresses);
        if grows {
            options.no_reserve_swap();
        }
        let map = options.map_anon().ok()?;
        if len >= LARGE {
            advise_huge_pages(&map, len);
        }
        Some(Self(Memory::Mapped { map, len }))
    }

    #[cfg(not(feature = "huge-pages"))]
    fn mapped(_len: usize, _grows: bool) -> Option<Self> {
        None
    }

    /// Whether this is a map to grow in.
    fn has_addresses_to_grow(&self) -> bool {
        match &self.0 {
            Memory::Heap(_) => false,
            #[cfg(feature = "huge-pages")]
            Memory::Mapped { map, len } => map.len() > *len,
        }
    }
}

/// The number of words that `len` bytes need.
fn words(len: usize) -> usize {
    len.div_ceil(size_of::<u64>())
}

/// An empty buffer.
impl Default for Buffer {
    fn default() -> Self {
        Self::from_words(Vec::new())
    }
}

impl AsRef<[u8]> for Buffer {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        match &self.0 {
            Memory::Heap(words) => must_cast_slice(words),
            #[cfg(feature = "huge-pages")]
            // Not a range that might panic: callers that only want the address of the first byte
            // pay nothing for it.
            Memory::Mapped { map, len } => map.get(..*len).unwrap_or(map),
        }
    }
}

impl AsMut<[u8]> for Buffer {
    #[inline]
    fn as_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Memory::Heap(words) => must_cast_slice_mut(words),
            #[cfg(feature = "huge-pages")]
            Memory::Mapped { map, len } => {
                let len = (*len).min(map.len());
                &mut map[..len]
            }
        }
    }
}

/// Ends the process where the system has no memory for a copy, as the collections of std do.
/// [`try_clone`](Buffer::try_clone) does not.
impl Clone for Buffer {
    fn clone(&self) -> Self {
        self.try_clone()
            .unwrap_or_else(|| alloc::alloc::handle_alloc_error(Layout::for_value(self.as_ref())))
    }
}

impl PartialEq for Buffer {
    fn eq(&self, other: &Self) -> bool {
        self.as_ref() == other.as_ref()
    }
}

/// Shows the length, not the bytes.
impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.as_ref().len())
    }
}

/// Whether the system can allocate `len` bytes, as far as it says so before they are used.
pub(crate) fn is_available(len: usize) -> bool {
    let mut probe = Vec::<u8>::new();
    let is_there = probe.try_reserve_exact(len).is_ok();
    // Otherwise the compiler leaves out the allocation, which nothing uses.
    hint::black_box(&probe);
    is_there
}

/// Advises the system to use huge pages for the first `len` bytes. A system without them refuses,
/// and small pages remain.
#[cfg(feature = "huge-pages")]
fn advise_huge_pages(map: &MmapMut, len: usize) {
    #[cfg(target_os = "linux")]
    let _refused = map.advise_range(memmap2::Advice::HugePage, 0, len).err();
    #[cfg(not(target_os = "linux"))]
    let _ = (map, len);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_every_size_start_as_zeros_and_can_be_copied() {
        for len in [0, 8, 4096, (4 << 20) - 8, 4 << 20, (6 << 20) + 40] {
            let mut buffer = Buffer::zeroed(len, false).unwrap();
            assert_eq!(buffer.as_ref().len(), len);
            assert!(buffer.as_ref().iter().all(|&byte| byte == 0));
            if let Some(last) = buffer.as_mut().last_mut() {
                *last = 7;
            }
            let copy = buffer.clone();
            assert!(Some(&copy) == buffer.try_clone().as_ref());
            assert!(copy == buffer);
            assert_eq!(copy.as_ref().last(), (len > 0).then_some(&7));
        }
    }

    /// Grows from the heap into a mapping, within it, and out of it.
    #[test]
    fn growing_keeps_the_bytes_and_appends_zeros() {
        for (start, grows) in [(1000, true), (1000, false), (5 << 20, true), (5 << 20, false)] {
            let mut buffer = Buffer::zeroed(start, grows).unwrap();
            let mut written = buffer.as_ref().to_vec();
            for len in [3000, 260_000, 270_000, 4 << 20, 9 << 20, 300 << 20] {
                let len = len.max(written.len() + 8);
                *written.last_mut().expect("some bytes") = 7;
                *buffer.as_mut().last_mut().expect("some bytes") = 7;
                assert!(buffer.reserve(len) && buffer.as_ref() == written);
                assert!(buffer.grow(len));
                written.resize(len, 0);
                assert!(buffer.as_ref() == written, "{len}");
            }
        }
    }

    #[test]
    fn a_failed_allocation_changes_nothing() {
        assert!([false, true].iter().all(|&grows| Buffer::zeroed(1 << 60, grows).is_none()));
        let mut buffer = Buffer::zeroed(1000, true).unwrap();
        buffer.as_mut().fill(7);
        assert!(!buffer.grow(1 << 60) && !buffer.reserve(1 << 60));
        assert!(buffer.as_ref() == [7; 1000]);
    }
}
