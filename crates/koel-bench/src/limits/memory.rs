//! A table of cache lines in pages of a chosen size. All pages are touched before use.

use memmap2::{Advice, MmapMut};

use crate::{Failure, machine};

const HUGE_PAGE: usize = 2 << 20;
pub(crate) const LINE: usize = 64;

/// The pages that hold the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pages {
    /// 4 KiB pages only.
    Small,
    /// 2 MiB pages.
    Huge,
}

impl Pages {
    pub(crate) const ALL: [Self; 2] = [Self::Small, Self::Huge];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Small => "4k",
            Self::Huge => "huge",
        }
    }
}

/// The table. It starts at a huge page boundary, whatever its own page size.
pub(crate) struct Memory {
    map: MmapMut,
    start: usize,
    bytes: usize,
}

impl Memory {
    pub(crate) fn new(bytes: usize, pages: Pages) -> Result<Self, Failure> {
        if bytes < LINE {
            return Err(format!("a table needs {LINE} bytes or more").into());
        }
        // Whole huge pages, plus one for the alignment.
        let mut map = MmapMut::map_anon(bytes.next_multiple_of(HUGE_PAGE) + HUGE_PAGE)?;
        map.advise(match pages {
            Pages::Small => Advice::NoHugePage,
            Pages::Huge => Advice::HugePage,
        })?;
        let start = map.as_ptr().align_offset(HUGE_PAGE);
        map[start..].iter_mut().step_by(LINE).for_each(|byte| *byte = 1);
        Ok(Self { map, start, bytes })
    }

    pub(crate) fn lines(&self) -> &[[u8; LINE]] {
        self.map[self.start..][..self.bytes].as_chunks().0
    }

    /// The bytes of the mapping in huge pages, as the system reports them.
    pub(super) fn huge_bytes(&self) -> u64 {
        machine::huge_bytes_at(self.map.as_ptr().addr() + self.start)
    }
}
