//! Power failures at any call: during a write, a flush, a merge, an ingestion, or the recovery from
//! an earlier failure. As `crate::crash`, for the ordered store.

use std::sync::Arc;

use koel_store::{Durability, Error, LsmOptions, TornEnd};
use testkit::storage::{
    Failure, Fault, FaultyFolder, History, MemoryFolder, OrderedProgram, Random, State,
};

use super::trial::{OrderedTrial, read_all, small};
use crate::trial::{count, first_seed, report};

/// Failures before a trial starts anew, so that stores of all ages are tested.
const FAILURES: u64 = 50;
const KEPT: [u32; 3] = [0, 50, 100];

struct Crashes {
    seed: u64,
    options: LsmOptions,
    random: Random,
    program: OrderedProgram,
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

impl Crashes {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let keys = [1, 8, 40, 200][random.below(4)];
        let program = OrderedProgram::new(seed, keys, 3_000);
        let (disk, history) = (MemoryFolder::new(), History::new());
        let (options, outcomes) = (small(seed), Outcomes::default());
        Self { seed, options, random, program, disk, history, outcomes }
    }

    /// Runs the program until the power fails, and continues with a survivor.
    fn fail(&mut self) {
        // Mostly soon, since few of all calls belong to an opening.
        let limit = if self.random.chance(30) { 30 } else { 600 };
        let at = self.random.below(limit) as u64;
        let fault = Fault { at, lasting: true, failure: Failure::Eio };
        let folder = FaultyFolder::new(self.disk.clone(), Some(fault));
        let history = std::mem::take(&mut self.history);
        let before = history.clone();
        let opened = OrderedTrial::open(Arc::new(folder), &self.options, &self.program, history);
        let mut in_doubt = false;
        self.history = match opened {
            Err(_) => {
                self.outcomes.opening += 1;
                before
            }
            Ok(mut trial) => {
                while trial.step(self.program.next().expect("a program is endless")).is_ok() {}
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

    /// Ends only the process: every acknowledged write is there, and at most one more.
    fn end_process(&mut self, in_doubt: bool) {
        let store = self.options.clone().open_in(Arc::new(self.disk.crash_clone(100, 0)));
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
        let options = self.options.clone().background(true).read_only(true);
        let store = options.open_in(Arc::new(disk.clone())).unwrap();
        let found =
            (read_all(&store, self.program.keys()).unwrap(), store.open_report().torn.clone());
        for refused in [
            store.put(b"key", b"value", Durability::Synced),
            store.delete(b"key", Durability::None),
            store.ingest([(b"key", b"value")]).map(drop),
            store.flush(),
            store.compact(),
        ] {
            assert!(matches!(refused, Err(Error::ReadOnly)), "{refused:?}");
        }
        store.sync().unwrap();
        assert_eq!(store.verify(|_, _| ()).unwrap().damages, []);
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
        let store = self.options.clone().open_in(Arc::new(copy));
        let store = store.unwrap_or_else(|error| panic!("{context}: does not open: {error}"));
        let state = read_all(&store, self.program.keys());
        let state = state.unwrap_or_else(|error| panic!("{context}: cannot be read: {error}"));
        let found = store.open_report();
        if let Some(alone) = alone {
            assert!(alone == (state.clone(), found.torn.clone()), "{context}: read alone");
        }
        let later = history.later();
        let survived = history.survived(state, 0);
        let survived = survived.unwrap_or_else(|complaint| panic!("{context}: {complaint}"));
        self.outcomes.clones += 1;
        self.outcomes.forgetful += u64::from(survived < later);
        self.outcomes.lucky += u64::from(survived > 0);
        self.outcomes.torn += u64::from(found.torn.is_some());
        self.outcomes.leftovers += u64::from(!found.removed.is_empty());
        (disk, history)
    }
}

#[test]
fn what_a_power_failure_leaves_is_a_prefix_that_includes_everything_durable() {
    let clones = count(3_000, 100_000);
    let mut total = Outcomes::default();
    let mut seed = first_seed();
    while total.clones < clones {
        println!("seed {seed}");
        let mut crashes = Crashes::new(seed);
        (0..FAILURES).for_each(|_| crashes.fail());
        total.add(&crashes.outcomes);
        seed += 1;
    }
    let Outcomes { clones, forgetful, lucky, torn, leftovers, opening } = total;
    assert!(
        [forgetful, lucky, torn, leftovers, opening].iter().all(|&rare| rare > clones / 1_000),
        "{total:?}"
    );
    report(
        "ordered crash",
        &format!(
            "{clones} crash clones ({opening} failures while opening; {lucky} clones with and {forgetful} without some of what was \
             not durable, {torn} with a torn end, {leftovers} with unfinished files): 0 lost, 0 revived, all prefixes"
        ),
    );
}
