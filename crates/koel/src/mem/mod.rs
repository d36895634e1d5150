//! The layer next to the machine: memory, prefetching, vector code and unchecked reads.
//!
//! * `buffer`: bytes that a filter owns, in huge pages where the system has them.
//! * `prefetch`: asks the memory for a cache line early.
//! * `radix`: sorts many numbers.
//! * `vector`: runs a loop compiled for the best of baseline, AVX2 and AVX-512.
//! * `unchecked`: reads and writes whose bounds were checked before, for a block at once.

pub(crate) mod buffer;
pub(crate) mod prefetch;
pub(crate) mod radix;
pub(crate) mod unchecked;
pub(crate) mod vector;
