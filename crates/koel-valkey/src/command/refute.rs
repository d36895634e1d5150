//! `REFUTE key item..`: items that were not added are not reported from now on.
//!
//! Each item that is reported gets a correction, which adding the item takes back. Only filters of
//! ours without a window have corrections: nothing of RedisBloom's layout could store one, and
//! those of a window would have to expire with the items that they hide.

use super::items::as_keys;
use super::reply::Reply;
use crate::error::Error;
use crate::filter::{Cuckoo, Filter};
use crate::keys::{Event, Keys};

pub(super) fn refute(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    let filter = keys.write(1).or(Error::NotFound)?;
    filter.complete()?;
    let filter = match filter {
        Filter::Native(filter) => filter,
        Filter::Expiring(_) => return Err(Error::RefuteWindow),
        _ => return Err(Error::RefuteCompat),
    };
    let corrected = as_keys(filter.key_form()?, &arguments[2..], |keys| filter.refute(keys))??;
    if corrected.contains(&true) {
        keys.changed(1, Event::Refute);
    }
    Ok(Reply::Bools(corrected))
}
