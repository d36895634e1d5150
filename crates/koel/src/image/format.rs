//! The constants of the file format, and what a file can hold: docs/FORMAT.md, with test vectors.

/// Bytes of the header.
pub(crate) const HEADER_BYTES: usize = 192;
/// The one version of the format that this crate writes and reads.
pub(crate) const VERSION: u16 = 5;
/// The first bytes of every filter. The line ends and the end-of-file mark catch transfers that
/// change text.
pub(super) const MAGIC: [u8; 8] = *b"koel\r\n\x1a\n";
/// Bytes of a record of each section behind the buckets: a counter, a key in the stash, a
/// correction, a sweep.
pub(crate) const SECTIONS: [usize; 4] = [16, 24, 8, 2];
/// The most steps of the window of an expiring filter.
pub(crate) const MOST_STEPS: u32 = 200;

/// The type that the bytes hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Fingerprints, and counters for copies.
    #[default]
    Filter,
    /// Fingerprints with values.
    Maplet,
    /// Fingerprints with counts, and counters for counts that do not fit there.
    Counting,
    /// Fingerprints with the time at which they were inserted.
    Expiring,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Filter => "filter",
            Self::Maplet => "maplet",
            Self::Counting => "counting filter",
            Self::Expiring => "expiring filter",
        }
    }
}
