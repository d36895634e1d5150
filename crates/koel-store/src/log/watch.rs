//! Which records stopped being live since a view was made.

use std::collections::HashSet;
use std::sync::{Mutex, Weak};

use crate::kernel::lock::lock;

/// Locations that the index had when a view was made, or later, and that it has dropped since.
#[derive(Debug, Default)]
pub(super) struct Watch(Mutex<HashSet<u64>>);

impl Watch {
    pub(super) fn contains(&self, location: u64) -> bool {
        lock(&self.0).contains(&location)
    }
}

/// Tells every view that the index is about to drop a location.
pub(super) fn notify(watches: &mut Vec<Weak<Watch>>, location: u64) {
    watches.retain(|watch| {
        let watch = watch.upgrade();
        watch.is_some_and(|watch| {
            lock(&watch.0).insert(location);
            true
        })
    });
}
