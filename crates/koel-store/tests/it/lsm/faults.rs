//! Every call of a program fails once, in each way. Unless a write or a sync of the log failed, the
//! store goes on as if nothing had happened; otherwise it stays readable, and has a prefix of the
//! writes when it is opened again.

use std::sync::Arc;

use koel_store::{Durability, Error, LsmOptions, LsmStore};
use testkit::storage::{
    Failure, Fault, FaultyFolder, History, MemoryFolder, OrderedProgram, Random,
};

use super::trial::{OrderedTrial, small, threaded};
use crate::faults::check_reopened;
use crate::subject::read_all;
use crate::trial::{count, first_seed, report};

const OPERATIONS: usize = 2_000;
const KEYS: usize = 30;

struct Run {
    options: LsmOptions,
    folder: FaultyFolder<MemoryFolder>,
    trial: Option<OrderedTrial>,
    errors: Vec<Error>,
}

fn program(seed: u64) -> OrderedProgram {
    OrderedProgram::new(seed, KEYS, 3_000)
}

/// Runs the program of a seed until the store takes no more writes, or to its end.
fn run(seed: u64, options: &LsmOptions, fault: Option<Fault>) -> Run {
    let (options, folder) = (options.clone(), FaultyFolder::new(MemoryFolder::new(), fault));
    let mut program = program(seed);
    let opened = OrderedTrial::open(Arc::new(folder.clone()), &options, &program, History::new());
    let Ok(mut trial) = opened else {
        return Run { options, folder, trial: None, errors: Vec::new() };
    };
    let mut errors = Vec::new();
    for op in program.by_ref().take(OPERATIONS) {
        if let Err(error) = trial.step(op) {
            errors.push(error);
            if trial.store.as_ref().is_none_or(|store| store.stats().poisoned) {
                break;
            }
        }
    }
    Run { options, folder, trial: Some(trial), errors }
}

/// Checks that the store is readable after the failure.
fn check_still_open(trial: &mut OrderedTrial, seed: u64, context: &str) {
    let (in_doubt, history) = (trial.in_doubt, trial.history.clone());
    let Some(store) = &trial.store else { return };
    if !store.stats().poisoned {
        trial.check().unwrap_or_else(|error| panic!("{context}: {error}"));
        return;
    }
    let state = read_all(store, program(seed).keys());
    let state = state.unwrap_or_else(|error| panic!("{context}: cannot be read: {error}"));
    let all = history.later() - usize::from(in_doubt);
    if let Err(complaint) = history.clone().survived(state, all) {
        panic!("{context}: still open, {complaint}");
    }
    let again = store.put(b"0", b"", Durability::None);
    assert!(matches!(again, Err(Error::Poisoned { .. })), "{context}: {again:?}");
}

fn strike(seed: u64, options: &LsmOptions, fault: Fault) {
    let mut run = run(seed, options, Some(fault));
    let context = format!("seed {seed}, {fault:?}, {:?}", run.folder.struck());
    if fault.failure == Failure::Short {
        assert!(run.trial.is_some() && run.errors.is_empty(), "{context}: {:?}", run.errors);
    }
    // Beside threads, a program may end before the call that fails. The checks must not make it.
    run.folder.heal();
    if !fault.lasting {
        assert!(run.errors.len() <= 2, "{context}: one fault, {:?}", run.errors);
    }
    if let Some(trial) = &mut run.trial {
        check_still_open(trial, seed, &context);
    }
    let program = program(seed);
    let opening = (&run.options, program.keys());
    check_reopened::<LsmStore>(&run.folder, run.trial, opening, seed, &context);
}

#[test]
fn every_call_fails_once_in_each_way() {
    let seed = first_seed();
    let options = small(seed);
    let calls = run(seed, &options, None).folder.calls();
    // A slice takes calls at equal distances, and the last one.
    let stride = calls.div_ceil(count(100, calls)).max(1);
    let mut faults = 0_u64;
    for at in (0..calls).rev().step_by(usize::try_from(stride).unwrap()) {
        for failure in [Failure::Eio, Failure::Enospc, Failure::Short] {
            strike(seed, &options, Fault { at, lasting: false, failure });
            faults += 1;
        }
    }
    report(
        "ordered faults",
        &format!("{OPERATIONS} operations, {calls} calls, {faults} faults: all sound"),
    );
}

/// Which call is the n-th depends on the threads.
#[test]
fn calls_fail_while_background_threads_run() {
    let programs = count(15, 1_000);
    for seed in (first_seed()..).take(usize::try_from(programs).unwrap()) {
        let options = threaded(seed);
        let calls = run(seed, &options, None).folder.calls();
        let at = Random::new(seed).next_u64() % calls;
        for failure in [Failure::Eio, Failure::Enospc, Failure::Short] {
            strike(seed, &options, Fault { at, lasting: false, failure });
        }
    }
    let what = format!("{programs} programs, 3 faults each: all sound");
    report("ordered faults beside threads", &what);
}

#[test]
fn a_disk_that_is_full_for_a_while_loses_nothing() {
    let disks = count(20, 1_000);
    for seed in (first_seed()..).take(usize::try_from(disks).unwrap()) {
        let options = small(seed);
        let calls = run(seed, &options, None).folder.calls();
        let at = Random::new(seed).next_u64() % calls;
        strike(seed, &options, Fault { at, lasting: true, failure: Failure::Enospc });
    }
    report("ordered full disk", &format!("{disks} disks: 0 lost"));
}
