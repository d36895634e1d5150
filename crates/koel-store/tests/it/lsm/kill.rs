//! A process that writes batches into an ordered store is killed at any moment. Everything that it
//! acknowledged as durable is there, and so are all batches before the last one.

use std::env;
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use koel_store::{Batch, Durability, LsmOptions};
use testkit::storage::{Random, State};

use super::trial::collect;
use crate::trial::{count, first_seed, report};

const FOLDER: &str = "KOEL_KILL_ORDERED_FOLDER";
const KEYS: u64 = 500;

fn options() -> LsmOptions {
    LsmOptions::default().memtable_bytes(64 << 10).bytes_per_sync(1 << 12)
}

/// Returns batch `number`: some keys get its number and a filler, one is deleted.
fn batch(number: u64) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
    let mut random = Random::new(number);
    let key = |random: &mut Random| (random.next_u64() % KEYS).to_le_bytes().to_vec();
    let mut changes: Vec<_> = (0..8)
        .map(|_| {
            let key = key(&mut random);
            let filler = random.below(400);
            (key, Some([number.to_le_bytes().to_vec(), random.bytes(filler)].concat()))
        })
        .collect();
    changes.push((key(&mut random), None));
    changes.push((b"last".to_vec(), Some(number.to_le_bytes().to_vec())));
    changes
}

fn apply(state: &mut State, number: u64) {
    for (key, value) in batch(number) {
        match value {
            Some(value) => drop(state.insert(key, value)),
            None => drop(state.remove(&key)),
        }
    }
}

/// Returns the number of the last batch in a store.
fn last(state: &State) -> u64 {
    state.get(&b"last"[..]).map_or(0, |value| u64::from_le_bytes(value[..8].try_into().unwrap()))
}

/// The child: writes batches until it is killed. Does nothing in an ordinary run.
#[test]
fn child() {
    let Ok(folder) = env::var(FOLDER) else { return };
    let store = options().open(folder).expect("the store opens after a kill");
    let first = last(&collect(store.iter().unwrap()).unwrap()) + 1;
    for number in first.. {
        let mut changes = Batch::new();
        for (key, value) in batch(number) {
            match value {
                Some(value) => changes.put(&key, &value).unwrap(),
                None => changes.delete(&key).unwrap(),
            };
        }
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

fn spawn(folder: &Path) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", "lsm::kill::child", "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Lets a child acknowledge some batches, kills it, and returns the last one that it acknowledged.
fn run_and_kill(folder: &Path, random: &mut Random) -> u64 {
    let mut child = spawn(folder);
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

#[test]
fn a_killed_process_loses_nothing_that_it_acknowledged() {
    let cycles = count(30, 1_000);
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random::new(first_seed());
    let (mut state, mut written, mut acknowledged) = (State::new(), 0, 0);
    for cycle in 0..cycles {
        let context = format!("seed {}, cycle {cycle}", first_seed());
        acknowledged = run_and_kill(folder.path(), &mut random).max(acknowledged);
        let store =
            options().open(folder.path()).unwrap_or_else(|error| panic!("{context}: {error}"));
        let found = store.iter().and_then(collect);
        let found = found.unwrap_or_else(|error| panic!("{context}: {error}"));
        let last = last(&found);
        // The interrupted batch, and the one before it that was to become durable with it.
        assert!(
            last >= acknowledged && last <= acknowledged + 2,
            "{context}: {last}, {acknowledged}"
        );
        (written + 1..=last).for_each(|number| apply(&mut state, number));
        written = last;
        assert!(found == state, "{context}: not the state after batch {last}");
    }
    report("ordered kill", &format!("{cycles} kills, {acknowledged} batches: 0 lost"));
}
