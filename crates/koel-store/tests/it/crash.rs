//! Power failures at any call: during a write, a compaction, or the recovery from an earlier
//! failure.
//!
//! A trial has many failures. After each, three possible states of the disk are opened, with none,
//! half and all of the unsynced data. Each must be a prefix of the history that includes everything
//! durable. The program goes on with one of them, or with the disk itself, as if only the process
//! had ended.
//!
//! The ordered store has the same trial (`lsm/crash.rs`).

use std::sync::Arc;

use koel_store::{Error, LogStore, TornEnd};
use testkit::storage::{
    Failure, Fault, FaultyFolder, History, MemoryFolder, Program, Random, State,
};

use crate::subject::{Subject, Trial, read_all};
use crate::trial::{count, first_seed, report};

/// Failures before a trial starts anew, so that stores of all ages are tested.
const FAILURES: u64 = 50;
const KEPT: [u32; 3] = [0, 50, 100];

/// The programs of a trial.
pub(crate) struct Programs {
    /// The number of keys: one of these.
    pub(crate) keys: &'static [usize],
    /// The longest value.
    pub(crate) longest: usize,
    /// The calls after which the power fails at the latest.
    pub(crate) calls: usize,
    /// Whether a failure must leave files that no manifest names now and then.
    pub(crate) leave_files: bool,
}

struct Crashes<S: Subject> {
    seed: u64,
    options: S::LogOptions,
    random: Random,
    program: Program,
    /// The calls after which the power fails at the latest.
    calls: usize,
    disk: MemoryFolder,
    history: History,
    outcomes: Outcomes,
}

/// Counts the effects of the failures, to show that the trial tests something.
#[derive(Debug, Default)]
struct Outcomes {
    clones: u64,
    /// Clones that lost unsynced writes.
    forgetful: u64,
    /// Clones that kept unsynced writes.
    lucky: u64,
    /// Clones with a torn end.
    torn: u64,
    /// Clones with files that no manifest names.
    leftovers: u64,
    /// Failures before the store was open.
    opening: u64,
}

impl Outcomes {
    fn add(&mut self, other: &Self) {
        self.clones += other.clones;
        self.forgetful += other.forgetful;
        self.lucky += other.lucky;
        self.torn += other.torn;
        self.leftovers += other.leftovers;
        self.opening += other.opening;
    }
}

impl<S: Subject> Crashes<S> {
    fn new(seed: u64, &Programs { keys, longest, calls, .. }: &Programs) -> Self {
        let mut random = Random::new(seed);
        let keys = keys[random.below(keys.len())];
        let program = S::program(seed, keys, longest);
        let (disk, history) = (MemoryFolder::new(), History::new());
        let (options, outcomes) = (S::small(seed), Outcomes::default());
        Self { seed, options, random, program, calls, disk, history, outcomes }
    }

    /// Runs the program until the power fails, and continues with a survivor.
    fn fail(&mut self) {
        // Mostly soon, since few of all calls belong to an opening.
        let limit = if self.random.chance(30) { 30 } else { self.calls };
        let at = self.random.below(limit) as u64;
        let fault = Fault { at, lasting: true, failure: Failure::Eio };
        let folder = FaultyFolder::new(self.disk.clone(), Some(fault));
        let history = std::mem::take(&mut self.history);
        let before = history.clone();
        let opened = Trial::open(Arc::new(folder), &self.options, &self.program, history);
        let mut in_doubt = false;
        self.history = match opened {
            Err(_) => {
                self.outcomes.opening += 1;
                before
            }
            Ok(mut trial) => {
                while self.step(&mut trial).is_ok() {}
                in_doubt = trial.in_doubt;
                trial.history
            }
        };
        let mut survivors = KEPT.map(|kept| self.survivor(kept));
        if self.random.chance(25) {
            return self.end_process(in_doubt);
        }
        let chosen = self.random.below(KEPT.len());
        (self.disk, self.history) = std::mem::take(&mut survivors[chosen]);
    }

    fn step(&mut self, trial: &mut Trial<S>) -> Result<(), Error> {
        trial.step(self.program.next().expect("a program is endless"))
    }

    /// Ends only the process: every acknowledged write is there, and at most one more.
    fn end_process(&mut self, in_doubt: bool) {
        let store = S::open_in(&self.options, Arc::new(self.disk.crash_clone(100, 0)));
        let state = store.and_then(|store| read_all(&store, self.program.keys()));
        let state = state.unwrap_or_else(|error| panic!("seed {}: {error}", self.seed));
        let acknowledged = self.history.later() - usize::from(in_doubt);
        if let Err(complaint) = self.history.outlived(state, acknowledged) {
            panic!("seed {}, after the end of a process: {complaint}", self.seed);
        }
    }

    /// Returns the contents of a disk as a read-only store, if it opens. It must change nothing.
    fn read_only_state(&self, disk: &MemoryFolder) -> Option<(State, Option<TornEnd>)> {
        let files = disk.contents();
        files.get("MANIFEST")?;
        let store = S::open_in(&S::read_only(&self.options), Arc::new(disk.clone())).unwrap();
        let found = (read_all(&store, self.program.keys()).unwrap(), store.torn());
        for refused in store.change() {
            assert!(matches!(refused, Err(Error::ReadOnly)), "{refused:?}");
        }
        store.sync().unwrap();
        assert_eq!(store.damages().unwrap(), []);
        store.close().unwrap();
        assert!(disk.contents() == files, "seed {}: a read-only store has written", self.seed);
        Some(found)
    }

    /// Returns a disk after the failure, and its history.
    fn survivor(&mut self, kept: u32) -> (MemoryFolder, History) {
        let clone_seed = self.random.next_u64();
        let disk = self.disk.crash_clone(kept, clone_seed);
        let context = format!("seed {}, {kept} % of the unsynced kept", self.seed);
        let mut history = self.history.clone();
        // Another copy, so that the next failure may hit the recovery.
        let copy = disk.crash_clone(100, 0);
        let alone = if clone_seed.is_multiple_of(8) { self.read_only_state(&copy) } else { None };
        let store = S::open_in(&self.options, Arc::new(copy));
        let store = store.unwrap_or_else(|error| panic!("{context}: does not open: {error}"));
        let state = read_all(&store, self.program.keys());
        let state = state.unwrap_or_else(|error| panic!("{context}: cannot be read: {error}"));
        if let Some(alone) = alone {
            assert!(alone == (state.clone(), store.torn()), "{context}: read alone");
        }
        let later = history.later();
        let survived = history.survived(state, 0);
        let survived = survived.unwrap_or_else(|complaint| panic!("{context}: {complaint}"));
        self.outcomes.clones += 1;
        self.outcomes.forgetful += u64::from(survived < later);
        self.outcomes.lucky += u64::from(survived > 0);
        self.outcomes.torn += u64::from(store.torn().is_some());
        self.outcomes.leftovers += u64::from(store.has_removed());
        (disk, history)
    }
}

/// Lets the power fail until there are so many clones.
pub(crate) fn crash<S: Subject>(clones: u64, programs: &Programs) {
    let mut total = Outcomes::default();
    let mut seed = first_seed();
    while total.clones < clones {
        println!("seed {seed}");
        let mut crashes = Crashes::<S>::new(seed, programs);
        (0..FAILURES).for_each(|_| crashes.fail());
        total.add(&crashes.outcomes);
        seed += 1;
    }
    let Outcomes { clones, forgetful, lucky, torn, leftovers, opening } = total;
    let left = if programs.leave_files { leftovers } else { clones };
    assert!(
        [forgetful, lucky, torn, left, opening].iter().all(|&rare| rare > clones / 1_000),
        "{total:?}"
    );
    report(
        &format!("{}crash", S::PREFIX),
        &format!(
            "{clones} crash clones ({opening} failures while opening; {lucky} clones with and \
             {forgetful} without some of what was not durable, {torn} with a torn end, {leftovers} \
             with unfinished files): 0 lost, 0 revived, all prefixes"
        ),
    );
}

#[test]
fn what_a_power_failure_leaves_is_a_prefix_that_includes_everything_durable() {
    let programs = Programs { keys: &[1, 8, 40], longest: 10_000, calls: 400, leave_files: true };
    crash::<LogStore>(count(6_000, 200_000), &programs);
}
