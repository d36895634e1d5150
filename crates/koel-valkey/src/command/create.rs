//! `RESERVE key capacity [ERROR rate] [PREFER SMALL|FAST] [BUCKETSIZE n] [MAXITERATIONS n]
//! [EXPANSION n] [WINDOW seconds [WHENFULL FAIL|EVICT]] [SECRET NO|digits]`
//!
//! A filter has the secret of the server, unless it is reserved with another or none.

use super::arguments;
use super::reply::Reply;
use crate::error::Error;
use crate::filter::Filter;
use crate::filter::native::{Secret, Settings};
use crate::keys::{Event, Keys, Value};

/// A filter takes fewer bytes than so many for each item and beside them. To plan one takes as long
/// as to create a small one.
const MOST_BYTES_EACH: u64 = 32;
const MOST_BYTES_BESIDE: u64 = 128 << 10;

pub(super) fn reserve(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    let settings = arguments::settings(&arguments[2..])?;
    match keys.write(1) {
        Value::Missing => {}
        Value::Foreign => return Err(Error::WrongType),
        Value::Filter(_) => return Err(Error::Exists),
    }
    create(keys, settings)?;
    keys.changed(1, Event::Reserve);
    Ok(Reply::Ok)
}

/// Puts a new filter under the first key of a command.
pub(super) fn create(keys: &mut dyn Keys, settings: Settings) -> Result<(), Error> {
    let secret = match settings.secret {
        Secret::Server => keys.secret(),
        Secret::No => None,
        Secret::Key(key) => Some(key),
    };
    let most = settings.capacity.saturating_mul(MOST_BYTES_EACH).saturating_add(MOST_BYTES_BESIDE);
    if keys.admit(most).is_err() {
        keys.admit(Filter::planned_bytes(&settings)?)?;
    }
    let now = keys.now();
    keys.put(1, Filter::create(settings, secret, now)?);
    if let (Secret::Server, Some(secret)) = (settings.secret, secret) {
        keys.created(settings.capacity, secret);
    }
    Ok(())
}
