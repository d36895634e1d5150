//! What a compaction takes in memory. A process of its own compacts, and asks Linux for its peak:
//! the test runs itself as that process.

use std::env;
use std::fs::read_to_string;
use std::path::Path;
use std::process::Command;

use koel_store::{Compression, Durability, LsmOptions};

type Outcome = Result<(), Box<dyn std::error::Error>>;

const MIB: u64 = 1 << 20;
/// The variable with the folder of the process that compacts.
const FOLDER: &str = "KOEL_COMPACT_FOLDER";

fn options() -> LsmOptions {
    let options = LsmOptions::default().memtable_bytes(MIB).cache_bytes(MIB).background(false);
    options.compression(Compression::None).seed(1)
}

/// Fills a store with `count` entries of a KiB, each of them put twice.
fn fill(folder: &Path, count: u64) -> Outcome {
    let store = options().open(folder)?;
    for number in (0..count).chain(0..count) {
        // An order in which all memtables overlap.
        let key = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes();
        store.put(&key, &[7; 1016], Durability::None)?;
    }
    store.close()?;
    Ok(())
}

/// The process that compacts. Does nothing in an ordinary run.
#[test]
fn compacting_process() -> Outcome {
    let Ok(folder) = env::var(FOLDER) else { return Ok(()) };
    let store = options().open(folder)?;
    assert!(store.stats().runs.len() > 1, "there is something to merge");
    store.compact()?;
    assert_eq!(store.stats().runs.len(), 1);
    let status = read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    println!("\npeak {}", peak.ok_or("no peak of memory")?);
    Ok(())
}

/// Compacts the store in a process of its own. Returns the most memory that it had, in bytes.
fn peak_of_compaction(folder: &Path) -> Result<u64, Box<dyn std::error::Error>> {
    let mut child = Command::new(env::current_exe()?);
    child.args(["--exact", "lsm::memory::compacting_process", "--nocapture"]);
    let output = String::from_utf8(child.env(FOLDER, folder).output()?.stdout)?;
    let line = output.lines().find_map(|line| line.strip_prefix("peak"));
    let words = line.and_then(|line| line.trim().strip_suffix(" kB"));
    Ok(words.ok_or(output.clone())?.parse::<u64>()? << 10)
}

/// It once took twice the bytes of the store.
#[test]
fn a_compaction_takes_the_same_memory_whatever_the_store_has() -> Outcome {
    let mut peaks = Vec::new();
    for entries in [8 << 10, 32 << 10] {
        let folder = tempfile::tempdir()?;
        fill(folder.path(), entries)?;
        peaks.push(peak_of_compaction(folder.path())?);
    }
    assert!(peaks[1] < peaks[0] + 6 * MIB, "stores of 8 and 32 MiB: {peaks:?}");
    assert!(peaks[1] < 16 * MIB, "half of the store: {peaks:?}");
    Ok(())
}

#[test]
fn a_guide_takes_two_to_three_bytes_a_key() -> Outcome {
    let folder = tempfile::tempdir()?;
    let store = options().guide(5, 1).open(folder.path())?;
    for part in 1..=8_u64 {
        for key in (part - 1) * 25_000..part * 25_000 {
            store.put(&key.to_le_bytes(), b"", Durability::None)?;
        }
        store.flush()?;
        let stats = store.stats();
        let bytes = stats.guide_bytes as f64 / (part * 25_000) as f64;
        assert!(stats.has_guide && (2.0..3.0).contains(&bytes), "{bytes} bytes a key: {stats:?}");
    }
    Ok(())
}
