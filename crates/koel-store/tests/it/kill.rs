//! A process on the file system, killed at random moments and started again.
//!
//! The test runs itself as the child: [`Killing::child`] writes batches and prints a line for each
//! one that is acknowledged as durable. The parent reads a random number of lines and kills it.
//! Batch n sets its own keys and those of the batch before to n, so the contents tell exactly which
//! batches the store has: all acknowledged ones, at most two more, and none in part.

use std::env;
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use koel_store::{DiskFolder, Durability, Error, LogOptions, LogStore};
use testkit::storage::{Random, State, Write};

use crate::subject::{Subject, batch_of};
use crate::trial::{count, first_seed, report};

/// How a store is killed.
pub(crate) struct Killing<S: Subject> {
    pub(crate) options: S::LogOptions,
    /// The test that is the child.
    pub(crate) child: &'static str,
    /// The number of keys, and how many of them a batch sets.
    pub(crate) keys: u64,
    pub(crate) puts: usize,
}

/// Returns the number of the last batch in a store.
fn last(state: &State) -> u64 {
    state.get(&b"last"[..]).map_or(0, |value| u64::from_le_bytes(value[..8].try_into().unwrap()))
}

/// The variable with the folder of a child.
const FOLDER: &str = "KOEL_KILL_FOLDER";

impl<S: Subject> Killing<S> {
    /// Returns batch `number`: some keys get its number and a filler, one is deleted.
    fn batch(&self, number: u64) -> Write {
        let mut random = Random::new(number);
        let key = |random: &mut Random| (random.next_u64() % self.keys).to_le_bytes().to_vec();
        let mut changes: Vec<_> = (0..self.puts)
            .map(|_| {
                let (key, filler) = (key(&mut random), random.below(400));
                (key, Some([number.to_le_bytes().to_vec(), random.bytes(filler)].concat()))
            })
            .collect();
        changes.push((key(&mut random), None));
        changes.push((b"last".to_vec(), Some(number.to_le_bytes().to_vec())));
        changes
    }

    fn apply(&self, state: &mut State, number: u64) {
        for (key, value) in self.batch(number) {
            match value {
                Some(value) => drop(state.insert(key, value)),
                None => drop(state.remove(&key)),
            }
        }
    }

    fn open(&self, folder: &Path) -> Result<S, Error> {
        S::open_in(&self.options, Arc::new(DiskFolder::new(folder).unwrap()))
    }

    /// The child: writes batches until it is killed. Does nothing in an ordinary run.
    pub(crate) fn child(&self) {
        let Ok(folder) = env::var(FOLDER) else { return };
        let store = self.open(folder.as_ref()).expect("the store opens after a kill");
        let first = last(&store.contents().unwrap()) + 1;
        for number in first.. {
            let changes = batch_of(&self.batch(number)).unwrap();
            // Every third batch becomes durable with the next one.
            let synced = !number.is_multiple_of(3);
            let durability = if synced { Durability::Synced } else { Durability::None };
            store.write(&changes, durability).expect("a healthy store takes a write");
            if synced {
                // In one call, so that a kill leaves no half line.
                std::io::stdout().write_all(format!("\nack {number}\n").as_bytes()).unwrap();
            }
        }
    }

    fn spawn(&self, folder: &Path) -> Child {
        Command::new(env::current_exe().unwrap())
            .args(["--exact", self.child, "--nocapture", "--test-threads=1"])
            .env(FOLDER, folder)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Lets a child acknowledge some batches, and kills it. Returns the last one acknowledged.
    fn run_and_kill(&self, folder: &Path, random: &mut Random) -> u64 {
        let mut child = self.spawn(folder);
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut wanted = random.below(60);
        let mut acknowledged = 0;
        let mut killed = false;
        // To the end of the pipe: lines printed before the kill count too.
        for line in lines {
            let line = line.unwrap();
            let Some(number) = line.strip_prefix("ack ") else { continue };
            acknowledged = number.parse().unwrap();
            if wanted > 0 {
                wanted -= 1;
            } else if !killed {
                child.kill().unwrap();
                killed = true;
            }
        }
        let status = child.wait().unwrap();
        assert!(killed && !status.success(), "the child ended by itself: {status}");
        acknowledged
    }

    /// Kills a child again and again.
    pub(crate) fn run(&self, cycles: u64) {
        let folder = tempfile::tempdir().unwrap();
        let mut random = Random::new(first_seed());
        let (mut state, mut written, mut acknowledged) = (State::new(), 0, 0);
        for cycle in 0..cycles {
            let context = format!("seed {}, cycle {cycle}", first_seed());
            acknowledged = self.run_and_kill(folder.path(), &mut random).max(acknowledged);
            let found = self.open(folder.path()).and_then(|store| store.contents());
            let found = found.unwrap_or_else(|error| panic!("{context}: {error}"));
            let last = last(&found);
            // The interrupted batch, and the one before it that was to become durable with it.
            assert!(
                last >= acknowledged && last <= acknowledged + 2,
                "{context}: {last}, {acknowledged}"
            );
            (written + 1..=last).for_each(|number| self.apply(&mut state, number));
            written = last;
            assert!(found == state, "{context}: not the state after batch {last}");
        }
        let name = format!("{}kill", S::PREFIX);
        report(&name, &format!("{cycles} kills, {acknowledged} batches: 0 lost"));
    }
}

fn log() -> Killing<LogStore> {
    let options = LogOptions::default().segment_bytes(1 << 16).background_compaction(true);
    let options = options.bytes_per_sync(1 << 12);
    Killing { options, child: "kill::child", keys: 50, puts: 4 }
}

#[test]
fn child() {
    log().child();
}

#[test]
fn a_killed_process_loses_nothing_that_it_acknowledged() {
    log().run(count(60, 2_000));
}
