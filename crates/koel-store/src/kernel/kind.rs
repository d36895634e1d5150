//! The kinds of stores, and the first bytes of their manifests.

use std::fmt;

/// The first bytes of the manifest of a log store.
pub(crate) const LOG_MAGIC: [u8; 8] = *b"koelman\n";
/// The first bytes of the manifest of an ordered store.
pub(crate) const LSM_MAGIC: [u8; 8] = *b"koellsm\n";

/// A kind of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreKind {
    /// A [`LogStore`](crate::LogStore).
    Log,
    /// An [`LsmStore`](crate::LsmStore).
    Lsm,
}

impl StoreKind {
    /// Returns the kind of the store whose manifest starts with these bytes.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let kinds = [(LOG_MAGIC, Self::Log), (LSM_MAGIC, Self::Lsm)];
        kinds.into_iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, kind)| kind)
    }
}

impl fmt::Display for StoreKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Log => "log store",
            Self::Lsm => "ordered store",
        })
    }
}
