//! The bytes of a filter of its own: zeroed, and in huge pages where that pays.
//!
//! A lookup in a large table misses the cache of address translations as well as the cache of data:
//! with pages of 2 MiB instead of 4 KiB it misses only the second (docs/BENCHMARKS.md, The machine,
//! has the figures). With the feature `huge-pages`, a table of at least `LARGE` bytes is an
//! anonymous memory map, for which the system is asked for huge pages; Linux aligns maps of that
//! size to them. Where there are none, or no map can be had, nothing is lost: the bytes are
//! ordinary memory. Where there is no memory for so many bytes, there is no buffer, and whoever
//! asked says so.
//!
//! A table that grows has, from `GROWN` bytes on, a map of `RESERVED` times its length: addresses,
//! not memory, since Linux gives a page when it is first touched. So it grows in its place, and no
//! insert waits for a copy of it. The pages that it grows into are small ones: a huge page is
//! zeroed in one go when it is first touched, and the insert that touched it waited for 5.5 ms
//! (docs/decisions/0008-growth.md).

use alloc::vec::Vec;
use core::{fmt, hint, mem};

#[cfg(feature = "huge-pages")]
use memmap2::{MmapMut, MmapOptions};

/// From here on the system is asked whether there is so much memory before it is taken, since a
/// vector of zeros ends the process where there is not.
const ASKED: usize = 64 << 20;
/// From here on a table gets a map of its own.
#[cfg(feature = "huge-pages")]
const LARGE: usize = 4 << 20;
#[cfg(feature = "huge-pages")]
const HUGE_PAGE: usize = 2 << 20;
/// From here on a table that grows gets a map to grow in: its copy into that takes a tenth of a
/// millisecond.
#[cfg(feature = "huge-pages")]
const GROWN: usize = 256 << 10;
/// How many times its length such a map has in addresses: once more is it copied, at 256 MiB. Only
/// Linux gives addresses for nothing.
#[cfg(feature = "huge-pages")]
const RESERVED: usize = if cfg!(target_os = "linux") { 1024 } else { 0 };

/// Bytes that can be changed.
pub struct Buffer(Memory);

enum Memory {
    Heap(Vec<u8>),
    /// The first `len` bytes of a map; the others are zeros.
    #[cfg(feature = "huge-pages")]
    Mapped {
        map: MmapMut,
        len: usize,
    },
}

impl Memory {
    fn into_heap(self) -> Vec<u8> {
        match self {
            Self::Heap(bytes) => bytes,
            #[cfg(feature = "huge-pages")]
            Self::Mapped { map, len } => map[..len].to_vec(),
        }
    }
}

impl Buffer {
    /// So many zeros, in memory that can mostly [`grow`](Self::grow) without a copy if it `grows`;
    /// `None` where the memory cannot be had.
    pub(crate) fn zeroed(len: usize, grows: bool) -> Option<Self> {
        if !can_be_had(len) {
            return None;
        }
        let map = grows.then(|| Self::reserved(len)).flatten().or_else(|| Self::mapped(len));
        Some(map.unwrap_or_else(|| Self(Memory::Heap(alloc::vec![0; len]))))
    }

    /// Adds zeros to make it `len` bytes long; false, and nothing changed, where the memory cannot
    /// be had. Ordinary memory gets room for some more, so that it seldom moves; glibc then moves
    /// pages, not bytes.
    pub(crate) fn grow(&mut self, len: usize) -> bool {
        match &mut self.0 {
            Memory::Heap(bytes) if len <= bytes.capacity() => {
                bytes.resize(len, 0);
                true
            }
            #[cfg(feature = "huge-pages")]
            Memory::Mapped { map, len: before } if len <= map.len() => {
                *before = len;
                true
            }
            // What leaves a map is copied, while ordinary memory may grow where it is.
            #[cfg(feature = "huge-pages")]
            Memory::Mapped { .. } if !can_be_had(len) => false,
            _ => self.grow_elsewhere(len),
        }
    }

    /// The same where there is no room: in a map to grow in, or in ordinary memory.
    fn grow_elsewhere(&mut self, len: usize) -> bool {
        if let Some(mut grown) = Self::reserved(len) {
            let bytes = self.as_ref();
            grown.as_mut()[..bytes.len()].copy_from_slice(bytes);
            *self = grown;
            return true;
        }
        let mut bytes = mem::take(self).0.into_heap();
        let has_room = bytes.try_reserve_exact(len + len / 32 - bytes.len()).is_ok();
        if has_room {
            bytes.resize(len, 0);
        }
        self.0 = Memory::Heap(bytes);
        has_room
    }

    /// So many zeros with addresses to grow into; `None` where they are few, or cannot be had.
    #[cfg(feature = "huge-pages")]
    fn reserved(len: usize) -> Option<Self> {
        // A multiple of a huge page, so that the map beside it begins with one too.
        let most = len.checked_mul(RESERVED)?.checked_next_multiple_of(HUGE_PAGE)?;
        if len < GROWN || most == 0 {
            return None;
        }
        let map = MmapOptions::new().len(most).no_reserve_swap().map_anon().ok()?;
        if len >= LARGE {
            ask_for_huge_pages(&map, len);
        }
        Some(Self(Memory::Mapped { map, len }))
    }

    /// So many zeros in a map of their own; `None` where they are few, or the system has none to
    /// give.
    #[cfg(feature = "huge-pages")]
    fn mapped(len: usize) -> Option<Self> {
        if len < LARGE {
            return None;
        }
        let map = MmapMut::map_anon(len).ok()?;
        ask_for_huge_pages(&map, len);
        Some(Self(Memory::Mapped { map, len }))
    }

    #[cfg(not(feature = "huge-pages"))]
    fn reserved(_len: usize) -> Option<Self> {
        None
    }

    #[cfg(not(feature = "huge-pages"))]
    fn mapped(_len: usize) -> Option<Self> {
        None
    }

    /// A copy, in memory to grow in if it `grows`.
    ///
    /// # Panics
    /// Where the memory cannot be had, as `Vec::with_capacity` does.
    pub(crate) fn copy_of(bytes: &[u8], grows: bool) -> Self {
        let mut copy = Self::zeroed(bytes.len(), grows).expect("memory for a copy");
        copy.as_mut().copy_from_slice(bytes);
        copy
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
            // Not a range that might panic: who asks only where the bytes begin pays nothing for
            // it.
            Memory::Mapped { map, len } => map.get(..*len).unwrap_or(map),
        }
    }
}

impl AsMut<[u8]> for Buffer {
    #[inline]
    fn as_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Memory::Heap(bytes) => bytes,
            #[cfg(feature = "huge-pages")]
            Memory::Mapped { map, len } => {
                let len = (*len).min(map.len());
                &mut map[..len]
            }
        }
    }
}

impl Clone for Buffer {
    fn clone(&self) -> Self {
        Self::copy_of(self.as_ref(), self.has_addresses_to_grow())
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

/// Whether the system has so much memory to give, as far as it says so before it is used.
pub(crate) fn can_be_had(len: usize) -> bool {
    let mut probe = Vec::<u8>::new();
    let had = len < ASKED || probe.try_reserve_exact(len).is_ok();
    // What nobody looks at would not be asked for.
    hint::black_box(&probe);
    had
}

/// Advice for the first `len` bytes: a system without huge pages says so, and gives small ones.
#[cfg(feature = "huge-pages")]
fn ask_for_huge_pages(map: &MmapMut, len: usize) {
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
        for len in [0, 1, 4096, (4 << 20) - 1, 4 << 20, (6 << 20) + 5] {
            let mut buffer = Buffer::zeroed(len, false).unwrap();
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

    /// From the heap into a map, within it, and out of it.
    #[test]
    fn bytes_that_grow_keep_what_they_were_and_end_in_zeros() {
        for (start, grows) in [(1000, true), (1000, false), (5 << 20, true), (5 << 20, false)] {
            let mut buffer = Buffer::zeroed(start, grows).unwrap();
            let mut written = buffer.as_ref().to_vec();
            for len in [3000, 260_000, 270_000, 4 << 20, 9 << 20, 300 << 20] {
                let len = len.max(written.len() + 1);
                *written.last_mut().expect("some bytes") = 7;
                *buffer.as_mut().last_mut().expect("some bytes") = 7;
                assert!(buffer.grow(len));
                written.resize(len, 0);
                assert!(buffer.as_ref() == written, "{len}");
            }
        }
    }

    #[test]
    fn what_no_machine_has_is_refused_and_changes_nothing() {
        assert!([false, true].iter().all(|&grows| Buffer::zeroed(1 << 60, grows).is_none()));
        let mut buffer = Buffer::zeroed(1000, true).unwrap();
        buffer.as_mut().fill(7);
        assert!(!buffer.grow(1 << 60));
        assert!(buffer.as_ref() == [7; 1000]);
    }
}
