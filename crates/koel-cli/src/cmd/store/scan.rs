//! `koel store scan`: prints the records of an ordered store in the order of their keys.

use std::ffi::OsString;
use std::ops::Bound;

use koel_store::content::Archive;
use koel_store::{Error, LsmOptions};

use super::database::{Access, Database};
use super::key::KeyForm;
use crate::failure::{Failure, Outcome};
use crate::output::Lines;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel store scan --db events                              everything
  koel store scan --prefix user/ --db users
  koel store scan --from 2026-11-01 --to 2026-12-01 --db events
  koel store scan --reverse --db events | head             the last keys first

Prints key, tab, value on a line each. What is not printable in a key or a value is escaped, as by
koel store get. With -0, keys and values are printed byte for byte, each with a zero byte at its
end. Keys are compared byte by byte.

Where the store is damaged, scan goes on behind the damage, and ends with the first such error.")]
pub(crate) struct Args {
    #[command(flatten)]
    database: Database,

    /// Only keys that start with this
    #[arg(long)]
    prefix: Option<OsString>,

    /// Only this key and later ones
    #[arg(long, value_name = "KEY")]
    from: Option<OsString>,

    /// Only keys before this one
    #[arg(long, value_name = "KEY")]
    to: Option<OsString>,

    /// Start with the last key
    #[arg(long)]
    reverse: bool,

    #[command(flatten)]
    form: KeyForm,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let (db, form) = (&args.database, args.form);
    let key = |text: &Option<OsString>| {
        text.as_ref().map(|text| form.key(text.as_encoded_bytes())).transpose()
    };
    let (prefix, from, to) = (key(&args.prefix)?, key(&args.from)?, key(&args.to)?);
    let store = db.ordered(Access::Read, LsmOptions::default())?;
    let (from, to) = bounds(prefix.as_deref().unwrap_or_default(), from, to);
    let (mut out, mut damage) = (Lines::new(), None);
    let mut print = |entry: Result<(Vec<u8>, Vec<u8>), Error>| -> Result<(), Failure> {
        let (key, value) = match entry {
            Err(error @ Error::Damaged { .. }) => {
                damage.get_or_insert(error);
                return Ok(());
            }
            entry => entry.map_err(|error| db.failure(error))?,
        };
        if Archive::is_reserved(&key) {
            return Ok(());
        }
        form.print_record(&key, &value[..], db, &mut out)
    };
    let mut range = store.range((from, to)).map_err(|error| db.failure(error))?;
    if args.reverse {
        range.rev().try_for_each(&mut print)?;
    } else {
        range.try_for_each(&mut print)?;
    }
    out.finish()?;
    damage.map_or(Ok(Outcome::Done), |error| Err(db.failure(error)))
}

/// The bounds of the keys that start with `prefix`, are at least `from`, and are less than `to`.
fn bounds(
    prefix: &[u8],
    from: Option<Vec<u8>>,
    to: Option<Vec<u8>>,
) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
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
