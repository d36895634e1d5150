//! The constants of the file format: docs/FORMAT.md, with test vectors.

/// Bytes of the header.
pub(crate) const HEADER_BYTES: usize = 192;
/// The one version of the format that this crate writes and reads.
pub(crate) const VERSION: u16 = 4;
/// The first bytes of every filter. The line ends and the end-of-file mark catch transfers that
/// change text.
pub(super) const MAGIC: [u8; 8] = *b"koel\r\n\x1a\n";
/// Bytes of a counter, and of a key in the stash, in a file.
pub(crate) const RECORD_BYTES: usize = 16;
/// Bytes of a correction in a file.
pub(crate) const CORRECTION_BYTES: usize = 8;
/// The most steps of the window of an expiring filter.
pub(crate) const MOST_STEPS: u32 = 200;
