//! Memory whose size depends on stored bytes or on arguments: running out of it is an error.
//!
//! Small and fixed allocations, and those inside of other crates, are not asked for in this way:
//! without memory for them the process aborts, as std does.

use std::collections::TryReserveError;

use crate::Error;

/// Copies `bytes`.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub(crate) fn copy_of(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(bytes.len()).map_err(out_of_memory(bytes.len() as u64))?;
    copy.extend_from_slice(bytes);
    Ok(copy)
}

/// Replaces the contents of `into` by `bytes`.
///
/// # Errors
/// [`Error::OutOfMemory`].
#[inline]
pub(crate) fn copy_into(into: &mut Vec<u8>, bytes: &[u8]) -> Result<(), Error> {
    into.clear();
    reserve(into, bytes.len())?;
    into.extend_from_slice(bytes);
    Ok(())
}

/// Appends `bytes` to `into`.
///
/// # Errors
/// [`Error::OutOfMemory`].
#[inline]
pub(crate) fn append(into: &mut Vec<u8>, bytes: &[u8]) -> Result<(), Error> {
    reserve(into, bytes.len())?;
    into.extend_from_slice(bytes);
    Ok(())
}

/// Makes room for `more` items beyond those in `items`.
///
/// # Errors
/// [`Error::OutOfMemory`].
pub(crate) fn reserve<T>(items: &mut Vec<T>, more: usize) -> Result<(), Error> {
    let bytes = (items.len() as u64 + more as u64).saturating_mul(size_of::<T>() as u64);
    items.try_reserve(more).map_err(out_of_memory(bytes))
}

/// Adds `item` to `items`.
///
/// # Errors
/// [`Error::OutOfMemory`].
#[inline]
pub(crate) fn push<T>(items: &mut Vec<T>, item: T) -> Result<(), Error> {
    if items.len() == items.capacity() {
        reserve(items, 1)?;
    }
    items.push(item);
    Ok(())
}

/// Makes `bytes` at least `len` bytes long; the new ones are 0.
///
/// # Errors
/// [`Error::OutOfMemory`].
#[inline]
pub(crate) fn grow_to(bytes: &mut Vec<u8>, len: usize) -> Result<(), Error> {
    if let Some(more) = len.checked_sub(bytes.len()) {
        reserve(bytes, more)?;
        bytes.resize(len, 0);
    }
    Ok(())
}

fn out_of_memory(bytes: u64) -> impl FnOnce(TryReserveError) -> Error {
    move |_| Error::OutOfMemory { bytes }
}
