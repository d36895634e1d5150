//! Power failures at any call: during a write, a flush, a merge, an ingestion, or the recovery from
//! an earlier failure. The trial of `crate::crash`.

use koel_store::LsmStore;

use crate::crash::{Programs, crash};
use crate::trial::count;

#[test]
fn what_a_power_failure_leaves_is_a_prefix_that_includes_everything_durable() {
    let programs =
        Programs { keys: &[1, 8, 40, 200], longest: 3_000, calls: 600, leave_files: true };
    crash::<LsmStore>(count(3_000, 100_000), &programs);
}
