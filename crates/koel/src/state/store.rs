//! Where the bytes of a filter are: in its own memory, or in borrowed memory.
//!
//! Both hold the bytes of a file (docs/FORMAT.md). So a view of a memory-mapped file and an owned
//! filter share every line of code that reads.

use crate::mem::buffer::Buffer;

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

/// The type behind a [`Store`]. This trait cannot be named outside the crate, which seals `Store`.
pub trait Memory {
    /// The bytes of the buckets, and of what is behind them in a file.
    type Bytes: AsRef<[u8]> + Sync;
}

impl Memory for Owned {
    type Bytes = Buffer;
}

impl<'a> Memory for Borrowed<'a> {
    type Bytes = &'a [u8];
}
