//! `FAULT key [SAVE|BYTES]`: panics while the filter of the key is borrowed; or whenever a filter
//! is saved from then on; or returns the most bytes that the module had since this was asked last.
//! Only with the feature `faults`, for the tests that a panic ends one command and not the server,
//! that no file without a filter is taken for a good one, and of what commands take.

use std::sync::atomic::{AtomicBool, Ordering};

use super::arguments::is;
use super::reply::Reply;
use crate::error::Error;
use crate::keys::Keys;
use crate::totals::most_bytes;

static FAILS_TO_SAVE: AtomicBool = AtomicBool::new(false);

pub(super) fn fault(keys: &mut dyn Keys, arguments: &[&[u8]]) -> Result<Reply, Error> {
    if arguments.get(2).is_some_and(|word| is(word, "BYTES")) {
        return Ok(Reply::count(most_bytes()));
    }
    let filter = keys.write(1).or(Error::NotFound)?;
    if arguments.len() > 2 {
        FAILS_TO_SAVE.store(true, Ordering::Relaxed);
        return Ok(Reply::Ok);
    }
    panic!("a fault on purpose, in a filter of {} bytes", filter.bytes());
}

/// Panics if a filter shall not be saved.
pub(crate) fn before_save() {
    assert!(!FAILS_TO_SAVE.load(Ordering::Relaxed), "a fault on purpose, while a filter is saved");
}
