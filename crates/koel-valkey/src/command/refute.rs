//! `REFUTE key item..`: items that were not added are not reported from now on.
//!
//! Each item that is reported gets a correction, which adding the item takes back. Only filters of
//! ours without a window have corrections: nothing of RedisBloom's layout could store one, and
//! those of a window would have to expire with the items that they hide.
//!
//! A command whose items are reported more often than chance explains is refused: some of them were
//! added, and would be hidden. Any word may be an item, so no word of the command forces it: one
//! item, or a handful, is never refused, and pipelines are cheap. Replicas and the file of commands
//! get what the primary accepted, and refuse nothing.

use super::items::as_keys;
use super::reply::Reply;
use crate::error::Error;
use crate::filter::header::Origin;
use crate::filter::{Cuckoo, Filter};
use crate::keys::{Event, Keys};

pub(super) fn refute(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    let is_settled = keys.origin() == Origin::DataSet;
    let filter = keys.write(1).or(Error::NotFound)?;
    filter.complete()?;
    let filter = match filter {
        Filter::Native(filter) => filter,
        Filter::Expiring(_) => return Err(Error::RefuteWindow),
        _ => return Err(Error::RefuteCompat),
    };
    let form = filter.key_form()?;
    let corrected = as_keys(form, &arguments[2..], |keys| filter.refute(keys, is_settled))??;
    if corrected.contains(&true) {
        keys.changed(1, Event::Refute);
    }
    Ok(Reply::Bools(corrected))
}
