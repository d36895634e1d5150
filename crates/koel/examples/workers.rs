//! Several processes build one filter: each writes a filter of its share of the keys to a file, and
//! the files are merged.
//!
//! Each filter has the capacity for all keys, so that the union fits.
//!
//! `cargo run -p koel --example workers`

use std::error::Error;
use std::ops::Range;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use koel::{CuckooFilter, FilterView, Merge};

const KEYS: u64 = 100_000;
const WORKERS: u64 = 4;

fn share(worker: u64) -> Range<u64> {
    KEYS * worker / WORKERS..KEYS * (worker + 1) / WORKERS
}

/// Writes a filter of a worker's keys to a file, in the worker's process.
fn work(worker: u64, file: &Path) -> Result<(), Box<dyn Error>> {
    let keys: Vec<u64> = share(worker).collect();
    let filter = CuckooFilter::builder(KEYS, 0.001).build_from(&keys)?;
    Ok(fs::write(file, filter.to_bytes())?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [worker, file] = &arguments[..] {
        return work(worker.parse()?, Path::new(file));
    }
    let folder = env::temp_dir();
    let file_of = |worker| folder.join(format!("koel-worker-{}-{worker}.koel", std::process::id()));
    let start = |worker| {
        let mut command = Command::new(env::current_exe()?);
        command.arg(u64::to_string(&worker)).arg(file_of(worker)).spawn()
    };
    let workers = (0..WORKERS).map(start).collect::<Result<Vec<_>, _>>()?;

    let mut whole = CuckooFilter::builder(KEYS, 0.001).build()?;
    for (mut process, worker) in workers.into_iter().zip(0..) {
        assert!(process.wait()?.success());
        let bytes = fs::read(file_of(worker))?;
        fs::remove_file(file_of(worker))?;
        whole.merge(&FilterView::open(&bytes)?, Merge::Sum)?;
    }
    assert!((0..KEYS).all(|key| whole.contains(&key)));
    assert_eq!(whole.len(), KEYS);
    println!("{WORKERS} processes, {} keys, {} bytes", whole.len(), whole.size_in_bytes());
    Ok(())
}
