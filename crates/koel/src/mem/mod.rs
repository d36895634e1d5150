//! Everything near the machine: memory, prefetching, vector code and unchecked reads.
//!
//! * `buffer`: bytes that a filter owns, in huge pages where the system has them.
//! * `prefetch`: asks the memory for a cache line early.
//! * `vector`: compiles a loop for AVX2 and AVX-512, and runs the best version.
//! * `unchecked`: reads and writes whose bounds were checked before, all at once.

pub(crate) mod buffer;
pub(crate) mod prefetch;
pub(crate) mod unchecked;
pub(crate) mod vector;
