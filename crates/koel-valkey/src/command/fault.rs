//! `FAULT key`: panics while the filter of the key is borrowed. Only with the feature `faults`, for
//! the test that a panic ends one command and not the server.

use super::reply::Reply;
use crate::error::Error;
use crate::keys::Keys;

pub(super) fn fault(keys: &mut dyn Keys, _: &[&[u8]]) -> Result<Reply, Error> {
    let filter = keys.write(1).or(Error::NotFound)?;
    panic!("a fault on purpose, in a filter of {} bytes", filter.bytes());
}
