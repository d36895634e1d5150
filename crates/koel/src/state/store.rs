//! Where the bytes of a filter are: in its own memory, or in borrowed memory.
//!
//! Both hold the bytes of a file (docs/FORMAT.md). So a view of a memory-mapped file and an owned
//! filter share every line of code that reads.

use crate::mem::buffer::Buffer;
use crate::state::counters::{Counters, ReadCounters, StoredCounters};
use crate::state::sweeps::{StoredSweeps, Sweeps};

/// The filter owns its bytes and can change them.
#[derive(Clone, Copy, Debug)]
pub enum Owned {}

/// The filter borrows its bytes for `'a`, at any alignment, and only reads them.
#[derive(Clone, Copy, Debug)]
pub struct Borrowed<'a>(core::marker::PhantomData<&'a [u8]>);

/// Where a filter keeps its bytes: [`Owned`] for a filter, [`Borrowed`] for a view. No other type
/// can implement it.
///
/// A function that is generic over it takes filters and views alike:
///
/// ```
/// use koel::{CuckooFilter, FilterView, Store};
///
/// fn report<S: Store>(filter: &CuckooFilter<S>) -> String {
///     format!("{} keys in {} bytes", filter.len(), filter.size_in_bytes())
/// }
///
/// let mut filter = CuckooFilter::builder(100, 0.001).build()?;
/// filter.insert("ada")?;
/// let bytes = filter.to_bytes();
/// assert_eq!(report(&filter), report(&FilterView::open(&bytes)?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Store: Memory {}

impl Store for Owned {}
impl Store for Borrowed<'_> {}

/// The types behind a [`Store`]. This trait cannot be named outside the crate, which seals `Store`.
pub trait Memory {
    /// The bytes of the buckets.
    type Buckets: AsRef<[u8]>;
    /// The counters of keys with more copies than the buckets hold.
    type Counters: ReadCounters<Owned = Counters>;
    /// When the groups of an expiring filter were swept.
    type Sweeps: ReadCounters;
}

impl Memory for Owned {
    type Buckets = Buffer;
    type Counters = Counters;
    type Sweeps = Sweeps;
}

impl<'a> Memory for Borrowed<'a> {
    type Buckets = &'a [u8];
    type Counters = StoredCounters<'a>;
    type Sweeps = StoredSweeps<'a>;
}
