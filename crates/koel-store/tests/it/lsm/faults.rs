//! Failing calls of an ordered store: `crate::faults`.

use koel_store::LsmStore;

use crate::faults::{beside_threads, every_call, full_disk};
use crate::trial::count;

#[test]
fn every_call_fails_once_in_each_way() {
    every_call::<LsmStore>(3_000, |calls| count(100, calls));
}

#[test]
fn calls_fail_while_background_threads_run() {
    beside_threads::<LsmStore>(3_000, count(15, 1_000));
}

#[test]
fn a_disk_that_is_full_for_a_while_loses_nothing() {
    full_disk::<LsmStore>(3_000, count(20, 1_000));
}
