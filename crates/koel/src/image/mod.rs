//! From a capacity and a false-positive rate to a layout, and from a layout to bytes.
//!
//! ```text
//!     | header, 192 bytes | buckets (table/) | counters | stash | corrections | sweeps |
//!                         '------------ body, guarded by its own checksum ------------'
//!
//!     A counter has 16 bytes, a pair of the stash 24, a correction 8 (side.rs), and a sweep of an
//!     expiring filter 2 (state/stamps.rs).
//! ```
//!
//! * `shape`: the layout and the number of buckets of a table, and its settings.
//! * `sizing`: computes the shape from capacity and rate.
//! * `clock`: the time of an expiring filter.
//! * `header`: the first 192 bytes, as a table of fields. `fields` makes of it what reads, writes
//!   and checks them, `format` has the constants.
//! * `frame`: what messages between programs begin with.

pub(crate) mod clock;
mod fields;
mod format;
pub(crate) mod frame;
mod header;
pub(crate) mod shape;
pub(crate) mod sizing;

pub(crate) use clock::Clock;
pub(crate) use format::{HEADER_BYTES, Kind, MOST_STEPS, SECTIONS, VERSION};
pub(crate) use header::Header;
pub(crate) use shape::bits_per_key;
