//! A process that writes batches into an ordered store is killed at any moment: `crate::kill`.

use koel_store::{LsmOptions, LsmStore};

use crate::kill::Killing;
use crate::trial::count;

fn ordered() -> Killing<LsmStore> {
    let options = LsmOptions::default().memtable_bytes(64 << 10).bytes_per_sync(1 << 12);
    Killing { options, child: "lsm::kill::child", keys: 500, puts: 8 }
}

#[test]
fn child() {
    ordered().child();
}

#[test]
fn a_killed_process_loses_nothing_that_it_acknowledged() {
    ordered().run(count(30, 1_000));
}
