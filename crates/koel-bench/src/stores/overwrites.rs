//! `overwrites`: the cost of a log whose keys are overwritten again and again: how much of it is
//! dead, and how much background compaction writes.
//!
//! All keys are put once. Rounds follow, each with as many overwrites as there are keys. The first
//! three rounds, in which the log reaches its steady state, are not counted.
//! docs/decisions/0009-log-store.md has the figures and the theoretical bounds.

use std::path::Path;

use koel_store::{Durability, LogOptions, LogStats};
use serde_json::{Value, json};
use testkit::keys::splitmix64;

use super::entries::{Entries, key};
use crate::Failure;
use crate::args::OverwritesArgs;
use crate::table::{Columns, grouped, print_columns};

/// The number of rounds that are not counted.
const FIRST: u64 = 3;
/// How often the log is sampled in a round.
const LOOKS: u64 = 100;
/// One key in this many is overwritten often.
const ONE_IN: u64 = 5;

/// Which keys are overwritten: any key, and in addition `few` times in a hundred one of a few.
struct Load {
    name: &'static str,
    few: u64,
}

static LOADS: [Load; 3] = [
    Load { name: "any key", few: 0 },
    Load { name: "a fifth of the keys, by 80 %", few: 75 },
    Load { name: "a fifth of the keys, by 96 %", few: 95 },
];

/// The figures, and the headings of their columns.
const FIGURES: &Columns = &[
    ("load", "overwritten"),
    ("dead", "dead, mean"),
    ("most_dead", "dead, most"),
    ("written", "written by appended"),
];

pub(crate) fn run(args: &OverwritesArgs) -> Result<(), Failure> {
    let entries = Entries::new(args.keys, usize::try_from(args.value_bytes)?);
    let parent = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    let rows = LOADS.iter().map(|load| measure(args, &entries, load, &parent));
    let rows = rows.collect::<Result<Vec<_>, Failure>>()?;
    if !args.json {
        println!(
            "{} entries of 16 + {} bytes; {} overwrites of each on average, after {FIRST} rounds that are not counted; segments of {} bytes.\n",
            grouped(args.keys),
            args.value_bytes,
            args.rounds,
            grouped(args.segment_bytes)
        );
    }
    print_columns(&rows, FIGURES, args.json);
    Ok(())
}

fn measure(
    args: &OverwritesArgs,
    entries: &Entries,
    load: &Load,
    parent: &Path,
) -> Result<Value, Failure> {
    let folder = tempfile::tempdir_in(parent)?;
    let store = LogOptions::default().segment_bytes(args.segment_bytes).open(folder.path())?;
    let put = |number| store.put(&key(number), entries.value(number), Durability::None);
    (0..args.keys).try_for_each(put)?;
    let overwrite =
        |from: u64, to: u64| (from..to).try_for_each(|draw| put(load.key(draw, args.keys)));
    overwrite(0, FIRST * args.keys)?;
    let before = store.stats();
    let (mut dead, mut most_dead) = (0.0, 0.0_f64);
    let look = |at: u64| FIRST * args.keys + at * args.keys / LOOKS;
    for at in 0..args.rounds * LOOKS {
        overwrite(look(at), look(at + 1))?;
        let share = dead_share(&store.stats());
        dead += share;
        most_dead = most_dead.max(share);
    }
    let dead = dead / (args.rounds * LOOKS) as f64;
    let after = store.stats();
    let written = written(&before, &after);
    // If compaction failed, its cost is missing from the figures.
    if let Some(failure) = after.compaction_failed {
        return Err(failure.into());
    }
    store.close()?;
    // Shares of the log, the mean and the maximum; bytes appended and compacted by those appended.
    Ok(json!({
        "load": load.name, "keys": args.keys, "rounds": args.rounds,
        "dead": dead, "most_dead": most_dead, "written": written,
    }))
}

fn dead_share(stats: &LogStats) -> f64 {
    stats.dead_bytes as f64 / stats.log_bytes.max(1) as f64
}

fn written(before: &LogStats, after: &LogStats) -> f64 {
    let appended = after.appended_bytes - before.appended_bytes;
    let compacted = after.compacted_bytes - before.compacted_bytes;
    (appended + compacted) as f64 / appended.max(1) as f64
}

impl Load {
    /// The number of the key of one overwrite.
    fn key(&self, draw: u64, keys: u64) -> u64 {
        let (which, point) = (splitmix64(draw), splitmix64(!draw));
        let few = keys.div_ceil(ONE_IN);
        if which % 100 < self.few { point % few * ONE_IN } else { point % keys }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifth_of_the_keys_gets_the_share_of_overwrites_that_is_said() {
        let share = |load: &Load| {
            let few = (0..100_000).filter(|&draw| load.key(draw, 1000).is_multiple_of(ONE_IN));
            few.count() as f64 / 100_000.0
        };
        // Five standard deviations of a share in 100,000 draws: at most 0.0063.
        assert!((share(&LOADS[0]) - 0.2).abs() < 0.0064, "{}", share(&LOADS[0]));
        assert!((share(&LOADS[1]) - 0.8).abs() < 0.0064, "{}", share(&LOADS[1]));
        assert!((share(&LOADS[2]) - 0.96).abs() < 0.0064, "{}", share(&LOADS[2]));
        assert!((0..100_000).all(|draw| LOADS[2].key(draw, 1000) < 1000));
    }

    #[test]
    fn the_figures_are_shares_of_what_the_store_tells() {
        let mut before = LogStats::default();
        (before.appended_bytes, before.compacted_bytes) = (100, 50);
        let mut after = before.clone();
        (after.appended_bytes, after.compacted_bytes) = (300, 150);
        (after.log_bytes, after.dead_bytes) = (200, 50);
        assert!((written(&before, &after) - 1.5).abs() < 1e-9);
        assert!((dead_share(&after) - 0.25).abs() < 1e-9);
    }
}
