//! Every call of a program fails once, in each way: the error is returned, the store stays
//! readable, and it has a prefix of the writes when it is opened again.

use std::sync::Arc;

use koel_store::{Batch, Durability, Error, LogStore, Options};
use testkit::storage::{Failure, Fault, FaultyFolder, History, MemoryFolder, Op, Program, Random};

use crate::subject::{Programmed, read_all};
use crate::trial::{Trial, count, first_seed, report, small};

const OPERATIONS: usize = 2_000;
const KEYS: usize = 30;

struct Run {
    options: Options,
    folder: FaultyFolder<MemoryFolder>,
    trial: Option<Trial>,
    /// The operation that failed, and its error.
    failed: Option<(Op, Error)>,
}

fn program(seed: u64) -> Program {
    Program::new(seed, KEYS, 10_000)
}

/// Runs the program of a seed until an operation fails.
fn run(seed: u64, options: &Options, fault: Option<Fault>) -> Run {
    let (options, folder) = (options.clone(), FaultyFolder::new(MemoryFolder::new(), fault));
    let mut program = program(seed);
    let opened = Trial::open(Arc::new(folder.clone()), &options, &program, History::new());
    let Ok(mut trial) = opened else { return Run { options, folder, trial: None, failed: None } };
    for op in program.by_ref().take(OPERATIONS) {
        if let Err(error) = trial.step(op.clone()) {
            return Run { options, folder, trial: Some(trial), failed: Some((op, error)) };
        }
    }
    Run { options, folder, trial: Some(trial), failed: None }
}

/// Checks that the store is readable after the failure, that it takes no more writes after a failed
/// sync, and that it goes on after a write that could be cut off.
fn check_still_open(trial: &Trial, op: &Op, fault: Fault, struck: &str, context: &str, seed: u64) {
    let Some(store) = &trial.store else { return };
    let state = read_all(store, program(seed).keys());
    let state = state.unwrap_or_else(|error| panic!("{context}: cannot be read: {error}"));
    let mut history = trial.history.clone();
    let all = history.later() - usize::from(trial.in_doubt);
    if let Err(complaint) = history.survived(state, all) {
        panic!("{context}: still open, {complaint}");
    }
    let poisoned = store.stats().poisoned;
    if matches!(op, Op::Write { .. } | Op::Sync) && !fault.lasting {
        assert!(struck != "write" || !poisoned, "{context}: the state is known");
        assert!(struck != "sync" || poisoned || matches!(op, Op::Write { .. }), "{context}");
    }
    let again = store.write(&Batch::new(), Durability::None);
    assert_eq!(again.is_err(), poisoned, "{context}: {again:?}");
}

/// Checks that the folder opens again, also after a power failure.
pub(crate) fn check_reopened<S: Programmed>(
    folder: &FaultyFolder<MemoryFolder>,
    trial: Option<S::Trial>,
    (options, keys): (&S::Options, &[Vec<u8>]),
    seed: u64,
    context: &str,
) {
    let history = trial.as_ref().map_or_else(History::new, |trial| S::history(trial).clone());
    let in_doubt = trial.as_ref().is_some_and(S::in_doubt);
    let disk = folder.inner().clone();
    let clones = [0, 50, 100].map(|kept| disk.crash_clone(kept, seed));
    drop(trial);
    let acknowledged = history.later() - usize::from(in_doubt);
    let folders = [(disk, acknowledged)].into_iter().chain(clones.map(|clone| (clone, 0)));
    let mut after = Batch::new();
    after.put(b"0", b"after").unwrap();
    for (number, (disk, at_least)) in folders.enumerate() {
        let store = S::open_in(options, Arc::new(disk));
        let store = store.unwrap_or_else(|error| panic!("{context}, {number}: {error}"));
        let state = read_all(&store, keys);
        let state = state.unwrap_or_else(|error| panic!("{context}, {number}: {error}"));
        if let Err(complaint) = history.clone().survived(state, at_least) {
            panic!("{context}, {number}: {complaint}");
        }
        store.write(&after, Durability::Synced).expect("a healthy store takes a write");
    }
}

fn reopen(run: Run, seed: u64, context: &str) {
    let program = program(seed);
    let opening = (&run.options, program.keys());
    check_reopened::<LogStore>(&run.folder, run.trial, opening, seed, context);
}

fn strike(seed: u64, options: &Options, fault: Fault) {
    let run = run(seed, options, Some(fault));
    let context = format!("seed {seed}, {fault:?}, {:?}", run.folder.struck());
    if fault.failure == Failure::Short {
        assert!(run.trial.is_some() && run.failed.is_none(), "{context}: {:?}", run.failed);
    }
    if let (Some(trial), Some((op, _))) = (&run.trial, &run.failed) {
        let struck = run.folder.struck().map_or("", |call| call.verb);
        run.folder.heal();
        check_still_open(trial, op, fault, struck, &context, seed);
    }
    reopen(run, seed, &context);
}

#[test]
fn every_call_fails_once_in_each_way() {
    let seed = first_seed();
    let options = small(seed);
    let calls = run(seed, &options, None).folder.calls();
    // A slice takes calls at equal distances, and the last one.
    let stride = calls.div_ceil(count(150, calls)).max(1);
    let mut faults = 0_u64;
    for at in (0..calls).rev().step_by(usize::try_from(stride).unwrap()) {
        for failure in [Failure::Eio, Failure::Enospc, Failure::Short] {
            strike(seed, &options, Fault { at, lasting: false, failure });
            faults += 1;
        }
    }
    report(
        "faults",
        &format!("{OPERATIONS} operations, {calls} calls, {faults} faults: all sound"),
    );
}

/// Which call is the n-th depends on the threads.
#[test]
fn calls_fail_while_background_threads_run() {
    let programs = count(20, 1_000);
    for seed in (first_seed()..).take(usize::try_from(programs).unwrap()) {
        let options = small(seed).background_compaction(true).bytes_per_sync(1024);
        let calls = run(seed, &options, None).folder.calls();
        let at = Random::new(seed).next_u64() % calls;
        for failure in [Failure::Eio, Failure::Enospc, Failure::Short] {
            strike(seed, &options, Fault { at, lasting: false, failure });
        }
    }
    report("faults beside threads", &format!("{programs} programs, 3 faults each: all sound"));
}

#[test]
fn a_disk_that_is_full_for_a_while_loses_nothing() {
    let disks = count(40, 1_000);
    for seed in (first_seed()..).take(usize::try_from(disks).unwrap()) {
        let options = small(seed);
        let calls = run(seed, &options, None).folder.calls();
        let at = Random::new(seed).next_u64() % calls;
        let fault = Fault { at, lasting: true, failure: Failure::Enospc };
        let run = run(seed, &options, Some(fault));
        let context = format!("seed {seed}, full from call {at}");
        run.folder.heal();
        if let (Some(trial), Some((op, _))) = (&run.trial, &run.failed) {
            check_still_open(trial, op, fault, "write", &context, seed);
        }
        reopen(run, seed, &context);
    }
    report("full disk", &format!("{disks} disks: 0 lost"));
}
