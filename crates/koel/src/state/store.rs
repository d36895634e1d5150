//! Where a filter's bytes live: its own memory, or somebody else's.
//!
//! The bytes are the same in either case, and the same as in a file (docs/FORMAT.md), so that a
//! view of a memory-mapped file and an owned filter share every line of code that reads. Sealed:
//! these two are all there are.

use crate::mem::buffer::Buffer;
use crate::state::counters::{Counters, ReadCounters, StoredCounters};

/// Bytes owned by the filter, which can be changed.
#[derive(Clone, Copy, Debug)]
pub enum Owned {}

/// Bytes borrowed for `'a`, of any alignment, read only.
#[derive(Clone, Copy, Debug)]
pub struct Borrowed<'a>(core::marker::PhantomData<&'a [u8]>);

/// Where a filter keeps its buckets and its counters. Implemented by [`Owned`] and [`Borrowed`]
/// only.
pub trait Store {
    /// The bytes of the buckets.
    type Buckets: AsRef<[u8]>;
    /// The counters of keys with more copies than the buckets hold.
    type Counters: ReadCounters;
}

impl Store for Owned {
    type Buckets = Buffer;
    type Counters = Counters;
}

impl<'a> Store for Borrowed<'a> {
    type Buckets = &'a [u8];
    type Counters = StoredCounters<'a>;
}
