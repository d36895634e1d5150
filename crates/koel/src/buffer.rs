//! The bytes of a filter of its own: zeroed, and in huge pages where that pays.
//!
//! A lookup in a large table misses the cache of address translations as well as the cache of data: with pages of 2 MiB instead of 4 KiB it misses
//! only the second (docs/decisions/0006-speed.md has the figures). With the feature `huge-pages`, a table of at least
//! `LARGE` bytes is an anonymous memory map, for which the system is asked for huge pages; Linux aligns maps of that size to them. Where
//! there are none, or no map can be had, nothing is lost: the bytes are ordinary memory.

use alloc::vec::Vec;
use core::fmt;

#[cfg(feature = "huge-pages")]
use memmap2::MmapMut;

/// From here on a table gets a map of its own.
#[cfg(feature = "huge-pages")]
const LARGE: usize = 4 << 20;

/// Bytes that can be changed.
pub struct Buffer(Memory);

enum Memory {
    Heap(Vec<u8>),
    #[cfg(feature = "huge-pages")]
    Mapped(MmapMut),
}

impl Buffer {
    /// So many zeros.
    ///
    /// # Panics
    /// Where the memory cannot be had, as `Vec::with_capacity` does.
    pub(crate) fn zeroed(len: usize) -> Self {
        #[cfg(feature = "huge-pages")]
        if let Some(map) = (len >= LARGE).then(|| mapped(len)).flatten() {
            return Self(Memory::Mapped(map));
        }
        Self(Memory::Heap(alloc::vec![0; len]))
    }

    /// So many zeros in memory that can [`grow`](Self::grow) without a copy where the allocator knows how: glibc moves pages, not bytes.
    pub(crate) fn growing(len: usize) -> Self {
        Self(Memory::Heap(alloc::vec![0; len]))
    }

    /// Adds zeros to make it `len` bytes long, with room for some more, so that this is seldom.
    pub(crate) fn grow(&mut self, len: usize) {
        #[cfg(feature = "huge-pages")]
        if let Memory::Mapped(map) = &self.0 {
            self.0 = Memory::Heap(map.to_vec());
        }
        match &mut self.0 {
            Memory::Heap(bytes) => {
                if len > bytes.capacity() {
                    bytes.reserve_exact(len + len / 32 - bytes.len());
                }
                bytes.resize(len, 0);
            }
            #[cfg(feature = "huge-pages")]
            Memory::Mapped(_) => {}
        }
    }

    /// A copy.
    pub(crate) fn copy_of(bytes: &[u8]) -> Self {
        let mut copy = Self::zeroed(bytes.len());
        copy.as_mut().copy_from_slice(bytes);
        copy
    }
}

/// No bytes.
impl Default for Buffer {
    fn default() -> Self {
        Self(Memory::Heap(Vec::new()))
    }
}

impl AsRef<[u8]> for Buffer {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        match &self.0 {
            Memory::Heap(bytes) => bytes,
            #[cfg(feature = "huge-pages")]
            Memory::Mapped(map) => map,
        }
    }
}

impl AsMut<[u8]> for Buffer {
    #[inline]
    fn as_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Memory::Heap(bytes) => bytes,
            #[cfg(feature = "huge-pages")]
            Memory::Mapped(map) => map,
        }
    }
}

impl Clone for Buffer {
    fn clone(&self) -> Self {
        Self::copy_of(self.as_ref())
    }
}

impl PartialEq for Buffer {
    fn eq(&self, other: &Self) -> bool {
        self.as_ref() == other.as_ref()
    }
}

/// Never the bytes.
impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.as_ref().len())
    }
}

/// So many zeros in a memory map; `None` where the system has none to give.
#[cfg(feature = "huge-pages")]
fn mapped(len: usize) -> Option<MmapMut> {
    let map = MmapMut::map_anon(len).ok()?;
    // Advice: a system without huge pages says so, and gives small ones.
    #[cfg(target_os = "linux")]
    let _refused = map.advise(memmap2::Advice::HugePage).err();
    Some(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_every_size_start_as_zeros_and_can_be_copied() {
        for len in [0, 1, 4096, (4 << 20) - 1, 4 << 20, (6 << 20) + 5] {
            let mut buffer = Buffer::zeroed(len);
            assert_eq!(buffer.as_ref().len(), len);
            assert!(buffer.as_ref().iter().all(|&byte| byte == 0));
            if let Some(last) = buffer.as_mut().last_mut() {
                *last = 7;
            }
            let copy = buffer.clone();
            assert!(copy == buffer);
            assert_eq!(copy.as_ref().last(), (len > 0).then_some(&7));
        }
    }
}
