//! The items of a command as keys of its filter.
//!
//! A filter that `koel push` sent may have been built from lines: then an item becomes a key as a
//! line did (`koel_lines::KeyForm`), so that the server finds what `koel check` finds. Items of
//! other filters are keys as they are, at no cost.

use koel_lines::KeyForm;

use crate::error::Error;

/// Calls `work` with the keys of these items, in a filter of this form.
pub(super) fn as_keys<R>(
    form: KeyForm,
    items: &[&[u8]],
    work: impl FnOnce(&[&[u8]]) -> R,
) -> Result<R, Error> {
    if form.is_exact() {
        return Ok(work(items));
    }
    let keys = items.iter().map(|item| form.key(item).map_err(|_| Error::NoHost));
    let keys = keys.collect::<Result<Vec<_>, _>>()?;
    let keys: Vec<&[u8]> = keys.iter().map(|key| &**key).collect();
    Ok(work(&keys))
}
