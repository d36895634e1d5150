//! What is known of a whole table.

/// What is known of a table without reading its entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::lsm) struct TableInfo {
    pub(in crate::lsm) number: u64,
    /// Bytes of the file.
    pub(in crate::lsm) bytes: u64,
    /// Versions of keys, deleted ones included.
    pub(in crate::lsm) entries: u64,
    /// Distinct keys.
    pub(in crate::lsm) keys: u64,
    /// Entries without a value.
    pub(in crate::lsm) tombstones: u64,
    /// Bytes of all keys and values.
    pub(in crate::lsm) entry_bytes: u64,
    /// The least sequence number, 0 if there are no entries.
    pub(in crate::lsm) first_sequence: u64,
    /// The greatest sequence number, 0 if there are no entries.
    pub(in crate::lsm) last_sequence: u64,
    /// Empty if there are no entries.
    pub(in crate::lsm) first_key: Vec<u8>,
    /// Empty if there are no entries.
    pub(in crate::lsm) last_key: Vec<u8>,
}
