//! A part of the keys of an ordered store, as arguments.

use std::ffi::OsString;
use std::ops::Bound;

use super::key::KeyForm;
use crate::failure::Failure;

/// From and to.
type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

#[derive(Debug, clap::Args)]
pub(super) struct KeyRangeArgs {
    /// Only keys that start with this
    #[arg(long)]
    prefix: Option<OsString>,

    /// Only this key and later ones
    #[arg(long, value_name = "KEY")]
    from: Option<OsString>,

    /// Only keys before this one
    #[arg(long, value_name = "KEY")]
    to: Option<OsString>,
}

impl KeyRangeArgs {
    /// Whether it is given.
    pub(super) fn is_given(&self) -> bool {
        self.prefix.is_some() || self.from.is_some() || self.to.is_some()
    }

    /// The bounds of the keys.
    pub(super) fn bounds(&self, form: KeyForm) -> Result<Bounds, Failure> {
        let key = |text: &Option<OsString>| {
            text.as_ref().map(|text| form.key(text.as_encoded_bytes())).transpose()
        };
        let (prefix, from, to) = (key(&self.prefix)?, key(&self.from)?, key(&self.to)?);
        Ok(bounds(prefix.as_deref().unwrap_or_default(), from, to))
    }
}

/// The bounds of the keys that start with `prefix`, are at least `from`, and are less than `to`.
fn bounds(prefix: &[u8], from: Option<Vec<u8>>, to: Option<Vec<u8>>) -> Bounds {
    let first = from.unwrap_or_default().max(prefix.to_vec());
    let end = match (after(prefix), to) {
        (Some(end), Some(to)) => Some(end.min(to)),
        (end, to) => end.or(to),
    };
    (Bound::Included(first), end.map_or(Bound::Unbounded, Bound::Excluded))
}

/// The first key after all that start with `prefix`; `None` if all later keys do.
fn after(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte < 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_hold_exactly_the_keys_that_are_asked_for() {
        let keys: Vec<Vec<u8>> =
            [&b""[..], b"a", b"ab", b"ab\xff", b"ac", b"b", b"\xff", b"\xff\xff"]
                .map(<[u8]>::to_vec)
                .to_vec();
        let options = || keys.iter().cloned().map(Some).chain([None]);
        for prefix in &keys {
            for from in options() {
                for to in options() {
                    let (first, end) = bounds(prefix, from.clone(), to.clone());
                    let found = keys.iter().filter(|&key| {
                        let after = matches!(&first, Bound::Included(first) if key >= first);
                        let before = match &end {
                            Bound::Excluded(end) => key < end,
                            _ => true,
                        };
                        after && before
                    });
                    let expected = keys.iter().filter(|&key| {
                        key.starts_with(prefix)
                            && from.as_ref().is_none_or(|from| key >= from)
                            && to.as_ref().is_none_or(|to| key < to)
                    });
                    assert!(found.eq(expected), "{prefix:?} {from:?} {to:?}");
                }
            }
        }
    }
}
