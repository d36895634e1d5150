//! Every call of a program fails once, in each way. Unless a write or a sync of the log failed, the
//! store goes on as if nothing had happened; otherwise it stays readable, and has a prefix of the
//! writes when it is opened again.

use std::sync::Arc;

use koel_store::{Batch, Durability, Error, LogStore};
use testkit::storage::{Failure, Fault, FaultyFolder, History, MemoryFolder, Op, Program, Random};

use crate::subject::{Subject, Trial, read_all};
use crate::trial::{count, first_seed, report};

const OPERATIONS: usize = 2_000;
const KEYS: usize = 30;

/// The programs of a store whose calls fail.
pub(crate) struct Faults<S: Subject> {
    seed: u64,
    options: S::LogOptions,
    longest: usize,
}

struct Run<S: Subject> {
    folder: FaultyFolder<MemoryFolder>,
    trial: Option<Trial<S>>,
    /// The operations that failed.
    failed: Vec<(Op, Error)>,
}

impl<S: Subject> Faults<S> {
    fn program(&self) -> Program {
        S::program(self.seed, KEYS, self.longest)
    }

    /// Runs the program until the store takes no more writes, or to its end.
    fn run(&self, fault: Option<Fault>) -> Run<S> {
        let folder = FaultyFolder::new(MemoryFolder::new(), fault);
        let (mut program, mut failed) = (self.program(), Vec::new());
        let shared = Arc::new(folder.clone());
        let mut trial = Trial::open(shared, &self.options, &program, History::new()).ok();
        if let Some(trial) = &mut trial {
            for op in program.by_ref().take(OPERATIONS) {
                if let Err(error) = trial.step(op.clone()) {
                    failed.push((op, error));
                    if trial.store.as_ref().is_none_or(S::is_poisoned) {
                        break;
                    }
                }
            }
        }
        Run { folder, trial, failed }
    }

    /// Checks that the store is readable after the failure, and goes on unless it is poisoned.
    fn check_still_open(&self, trial: &mut Trial<S>, context: &str) {
        let Some(store) = &trial.store else { return };
        if !store.is_poisoned() {
            trial.check().unwrap_or_else(|error| panic!("{context}: {error}"));
            trial.store().write(&Batch::new(), Durability::None).expect("it takes writes");
            return;
        }
        let state = read_all(store, &trial.keys);
        let state = state.unwrap_or_else(|error| panic!("{context}: cannot be read: {error}"));
        let all = trial.history.later() - usize::from(trial.in_doubt);
        if let Err(complaint) = trial.history.clone().survived(state, all) {
            panic!("{context}: still open, {complaint}");
        }
        let again = store.put(b"0", b"", Durability::None);
        assert!(matches!(again, Err(Error::Poisoned { .. })), "{context}: {again:?}");
    }

    /// Checks that the folder opens again, also after a power failure.
    fn check_reopened(&self, run: Run<S>, context: &str) {
        let (disk, program) = (run.folder.inner().clone(), self.program());
        let clones = [0, 50, 100].map(|kept| disk.crash_clone(kept, self.seed));
        // The store is closed here.
        let (history, in_doubt) =
            run.trial.map_or_else(Default::default, |trial| (trial.history, trial.in_doubt));
        let acknowledged = history.later() - usize::from(in_doubt);
        let folders = [(disk, acknowledged)].into_iter().chain(clones.map(|clone| (clone, 0)));
        for (number, (disk, at_least)) in folders.enumerate() {
            let store = S::open_in(&self.options, Arc::new(disk));
            let store = store.unwrap_or_else(|error| panic!("{context}, {number}: {error}"));
            let state = read_all(&store, program.keys());
            let state = state.unwrap_or_else(|error| panic!("{context}, {number}: {error}"));
            if let Err(complaint) = history.clone().survived(state, at_least) {
                panic!("{context}, {number}: {complaint}");
            }
            let after = store.put(b"0", b"after", Durability::Synced);
            after.expect("a healthy store takes a write");
        }
    }

    fn strike(&self, fault: Fault) {
        let mut run = self.run(Some(fault));
        let struck = run.folder.struck();
        let context = format!("seed {}, {fault:?}, {struck:?}", self.seed);
        // Beside threads, a program may end before the call that fails. The checks must not make
        // it.
        run.folder.heal();
        if fault.failure == Failure::Short {
            assert!(run.trial.is_some() && run.failed.is_empty(), "{context}: {:?}", run.failed);
        }
        if !fault.lasting {
            assert!(run.failed.len() <= 2, "{context}: one fault, {:?}", run.failed);
        }
        if let Some(trial) = &mut run.trial {
            if let [(op, _)] = &run.failed[..]
                && let Some(call) = struck.filter(|call| call.name.ends_with(".log"))
                && let Some(store) = trial.store.as_ref().filter(|_| !fault.lasting)
            {
                let poisoned = store.is_poisoned();
                let is_sync = matches!(op, Op::Sync) && call.verb == "sync";
                let is_write = matches!(op, Op::Sync | Op::Write { .. }) && call.verb == "write";
                assert!(!is_write || !poisoned, "{context}: the state is known");
                assert!(!is_sync || poisoned, "{context}: what is durable is not known");
            }
            self.check_still_open(trial, &context);
        }
        self.check_reopened(run, &context);
    }
}

/// Lets every call of a program fail once, or as many at equal distances as `calls` says of all.
pub(crate) fn every_call<S: Subject>(longest: usize, calls: impl Fn(u64) -> u64) {
    let seed = first_seed();
    let faults = Faults::<S> { seed, options: S::small(seed), longest };
    let all = faults.run(None).folder.calls();
    // The last one is among them.
    let stride = all.div_ceil(calls(all)).max(1);
    let mut struck = 0_u64;
    for at in (0..all).rev().step_by(usize::try_from(stride).unwrap()) {
        for failure in [Failure::Eio, Failure::Enospc, Failure::Short] {
            faults.strike(Fault { at, lasting: false, failure });
            struck += 1;
        }
    }
    report(
        &format!("{}faults", S::PREFIX),
        &format!("{OPERATIONS} operations, {all} calls, {struck} faults: all sound"),
    );
}

/// Runs programs with the options of their seeds, and lets a random call of each fail.
fn random_calls<S: Subject>(
    (options, longest, programs): (fn(u64) -> S::LogOptions, usize, u64),
    fail: impl Fn(&Faults<S>, u64),
) {
    for seed in (first_seed()..).take(usize::try_from(programs).unwrap()) {
        let faults = Faults::<S> { seed, options: options(seed), longest };
        let calls = faults.run(None).folder.calls();
        fail(&faults, Random::new(seed).next_u64() % calls);
    }
}

/// Which call is the n-th depends on the threads.
pub(crate) fn beside_threads<S: Subject>(longest: usize, programs: u64) {
    random_calls((S::threaded, longest, programs), |faults: &Faults<S>, at| {
        for failure in [Failure::Eio, Failure::Enospc, Failure::Short] {
            faults.strike(Fault { at, lasting: false, failure });
        }
    });
    let what = format!("{programs} programs, 3 faults each: all sound");
    report(&format!("{}faults beside threads", S::PREFIX), &what);
}

/// Fills disks from some call on.
pub(crate) fn full_disk<S: Subject>(longest: usize, disks: u64) {
    random_calls((S::small, longest, disks), |faults: &Faults<S>, at| {
        faults.strike(Fault { at, lasting: true, failure: Failure::Enospc });
    });
    report(&format!("{}full disk", S::PREFIX), &format!("{disks} disks: 0 lost"));
}

#[test]
fn every_call_fails_once_in_each_way() {
    every_call::<LogStore>(10_000, |calls| count(150, calls));
}

#[test]
fn calls_fail_while_background_threads_run() {
    beside_threads::<LogStore>(10_000, count(20, 1_000));
}

#[test]
fn a_disk_that_is_full_for_a_while_loses_nothing() {
    full_disk::<LogStore>(10_000, count(40, 1_000));
}
