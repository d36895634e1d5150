//! Where a key of a table may live, and what the hot paths do there.
//!
//! [`Place`] has two implementations: [`Location`](crate::address::geometry::Location) in a table
//! of one size (`fixed.rs`), where all entries that match a key are equal, and [`GrowingLocation`]
//! in a table that grows (`growing.rs`), where they may differ in length. The paths that a lookup,
//! an insert and a removal take are compiled for both ([`at_place!`]). All other code is compiled
//! once, with [`GrowingLocation`]: a table of one size is one that has not grown yet.

use super::{GrowingLocation, LinearHashing, Prefix, Table};
use crate::address::geometry::Locations;
use crate::mem::buffer::Buffer;
use crate::packing::{Layout, Put, SLOTS, Taken};

/// No entry has a counter, or none is to be lowered.
pub(crate) const NOT_COUNTED: Option<fn(u64) -> bool> = None;

/// The two buckets of a key, and what its entries are compared with.
pub(crate) trait Place: Copy {
    /// Whether the entries that match a key may differ in length.
    const GROWS: bool;

    /// Where the key with this address may live.
    fn locate(addresses: &LinearHashing, address: u64) -> Self;

    /// Where key `i` of a block may live now. The table may have grown since the block was located.
    fn in_block(addresses: &LinearHashing, locations: &Locations, i: usize) -> Self;

    /// The same in the form that all tables have.
    fn general(&self, addresses: &LinearHashing) -> GrowingLocation;

    /// The same place after the table has grown.
    fn relocated(&self, addresses: &LinearHashing) -> Self;

    /// Both buckets.
    fn pair(&self) -> (u64, u64);

    /// The fingerprint in each of the two buckets.
    fn fingerprints(&self, addresses: &LinearHashing) -> [u64; 2];

    /// What a fingerprint stands for in a bucket.
    fn prefix(addresses: &LinearHashing, bucket: u64, fingerprint: u64) -> Prefix;

    /// Whether an entry whose fingerprint matches has no bit more than the key.
    fn is_match(&self, prefix: &Prefix) -> bool;

    /// The other bucket of each slot of a full bucket, in the segment that starts at `base`. A slot
    /// that does not tell its other bucket gets `bucket`.
    fn other_buckets(
        addresses: &LinearHashing,
        layout: Layout,
        base: u64,
        bucket: u64,
        slots: [u64; SLOTS],
    ) -> [u64; SLOTS];

    /// Where the key with this address may live, and whether an entry there matches it.
    fn look_up<B: AsRef<[u8]>>(table: &Table<B>, address: u64) -> (Self, bool);

    /// Adds an entry to an empty slot, if at most `most` entries match.
    fn put(&self, table: &mut Table<Buffer>, value: u64, most: u64) -> Put;

    /// Takes out the longest entry with this value that matches. `None` if `is_counted`, of a
    /// filter with counters, took one from the counter of this name instead.
    fn take(
        &self,
        table: &mut Table<Buffer>,
        value: u64,
        is_counted: Option<impl FnOnce(u64) -> bool>,
    ) -> Option<Taken>;

    /// Changes the value of the longest entry with value `old` that matches. False if there is
    /// none.
    fn revalue(&self, table: &mut Table<Buffer>, old: u64, new: u64) -> bool;
}

/// Evaluates an expression with the [`Place`] of a table as a type.
macro_rules! at_place {
    ($table:expr, $Place:ident => $work:expr) => {
        if cfg!(not(feature = "fast")) || $table.grows() {
            type $Place = $crate::table::GrowingLocation;
            $work
        } else {
            type $Place = $crate::address::geometry::Location;
            $work
        }
    };
}
pub(crate) use at_place;
