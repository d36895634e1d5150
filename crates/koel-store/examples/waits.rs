//! What an ordered store makes its callers wait for, what it writes, and the space that it takes:
//! the longest puts and gets of a load, bytes written, bytes on disk, reads of a store that was
//! just opened, before it has a guide, and the memory of a compaction.
//!
//! `cargo run --release -p koel-store --example waits -- FOLDER ENTRIES OVERWRITES`: entries of 116
//! bytes that do not compress, and puts that overwrite random ones of them. Behind these stand, if
//! they are to differ, `VALUE_BYTES POLICY RATIO EXTRA_PERCENT`: by default 100, `lazy` (or
//! `levelled`, `tiered`), 5, and `none` for no bound of the space. Without arguments it takes
//! 50,000 entries and 10,000 overwrites, in a folder that is removed afterwards.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use koel_store::{CompactionPolicy, Compression, Durability, LsmOptions, LsmStats, LsmStore};

/// How often the folder is looked at while overwrites go on.
const LOOKS: u64 = 200;

/// What is put, and where.
struct Load<'a> {
    folder: &'a Path,
    entries: u64,
    value_bytes: usize,
}

impl Load<'_> {
    /// Bytes of all files for each byte of live keys and values. A file may go meanwhile.
    fn space(&self) -> std::io::Result<f64> {
        let mut bytes = 0;
        for file in std::fs::read_dir(self.folder)? {
            bytes += file?.metadata().map_or(0, |file| file.len());
        }
        Ok(bytes as f64 / (self.entries * (16 + self.value_bytes as u64)) as f64)
    }
}

/// What the slowest calls took, the slowest first.
struct Slowest(Vec<(Duration, u64)>);

impl Slowest {
    /// Runs a call, and keeps its time if it is among the slowest.
    fn time<R>(&mut self, number: u64, call: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let result = call();
        let taken = start.elapsed();
        if taken > self.0.get(4).map_or(Duration::ZERO, |slowest| slowest.0) {
            self.0.push((taken, number));
            self.0.sort_unstable_by(|one, other| other.cmp(one));
            self.0.truncate(5);
        }
        result
    }

    fn print(&self, what: &str) {
        let ms = |(taken, number): &(Duration, u64)| {
            format!("{:.1} ms at {number}", taken.as_secs_f64() * 1000.0)
        };
        println!("{what}: {}", self.0.iter().map(ms).collect::<Vec<_>>().join(", "));
    }
}

/// A random number for each number (splitmix64).
fn random(number: u64) -> u64 {
    let mut bits = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

fn key(number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&random(number).to_le_bytes());
    key[8..].copy_from_slice(&number.to_le_bytes());
    key
}

fn fill(value: &mut [u8], number: u64) {
    for (part, bytes) in (0..).zip(value.chunks_mut(8)) {
        bytes.copy_from_slice(&random(number << 8 | part).to_le_bytes()[..bytes.len()]);
    }
}

/// Bytes written for each byte put between two moments.
fn written(before: &LsmStats, after: &LsmStats) -> f64 {
    let all = |stats: &LsmStats| stats.logged_bytes + stats.flushed_bytes + stats.merged_bytes;
    (all(after) - all(before)) as f64 / (after.user_bytes - before.user_bytes) as f64
}

fn put_all(
    store: &LsmStore,
    load: &Load<'_>,
    count: u64,
    number: impl Fn(u64) -> u64,
) -> Result<(), Box<dyn Error>> {
    let step = (count / LOOKS).max(1);
    let (mut value, mut space) = (vec![0; load.value_bytes], Vec::new());
    let [mut puts, mut hits, mut misses] = [(); 3].map(|()| Slowest(Vec::new()));
    let (before, start) = (store.stats(), Instant::now());
    for count in 0..count {
        let number = number(count);
        fill(&mut value, count);
        puts.time(count, || store.put(&key(number), &value, Durability::None))?;
        if count % 16 == 0 {
            let there = random(count) % (number + 1).min(count + 1);
            let found = hits.time(count, || store.get(&key(there)))?;
            assert!(found.is_some(), "entry {there} is lost");
            let found = misses.time(count, || store.get(&key(u64::MAX - count)))?;
            assert!(found.is_none(), "an absent key has a value");
        }
        if count % step == 0 {
            space.push(load.space()?);
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    puts.print("put");
    hits.print("get, present");
    misses.print("get, absent");
    let stats = store.stats();
    let written = written(&before, &stats);
    let stalled = stats.stalled_micros / 1000;
    println!("{seconds:.1} s, {written:.2} bytes written a byte, stalled {stalled} ms");
    let (mean, most) = (space.iter().sum::<f64>() / space.len() as f64, space.iter().copied());
    let most = most.fold(0.0, f64::max);
    println!("on disk: {mean:.2} bytes a live byte on average, {most:.2} at most");
    Ok(())
}

/// Asks a store for absent keys until it has a guide, and as often with it.
fn ask(store: &LsmStore) -> Result<(), Box<dyn Error>> {
    let runs = store.stats().runs.len();
    if runs < 2 {
        // One run needs no guide.
        return Ok(());
    }
    for is_guided in [false, true] {
        let (mut times, start) = (Vec::new(), Instant::now());
        while times.len() < 100_000 && store.stats().has_guide == is_guided {
            for _ in 0..64 {
                let absent = key(u64::MAX - times.len() as u64);
                let start = Instant::now();
                assert!(store.get(&absent)?.is_none(), "an absent key has a value");
                times.push(start.elapsed());
            }
        }
        times.sort_unstable();
        let (seconds, count) = (start.elapsed().as_secs_f64(), times.len());
        let median = times.get(count / 2).map_or(0.0, |time| time.as_secs_f64() * 1e6);
        println!(
            "guide: {is_guided}, {runs} runs: {count} misses in {seconds:.2} s, p50 {median:.2} us"
        );
        while !store.stats().has_guide {
            std::thread::yield_now();
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let options = LsmOptions::default().compression(Compression::None);
    let (folder, counts, rest) = match &arguments[..] {
        [] => (None, (50_000, 10_000), &[][..]),
        [folder, entries, overwrites, rest @ ..] => {
            (Some(Path::new(folder)), (entries.parse()?, overwrites.parse()?), rest)
        }
        _ => return Err("give a folder, a number of entries and a number of overwrites".into()),
    };
    let (value_bytes, options) = match rest {
        [] => (100, options),
        [value_bytes, policy, ratio, percent] => {
            let options = options.policy(policy_of(policy)?).ratio(ratio.parse()?);
            let percent = if *percent == "none" { u32::MAX } else { percent.parse()? };
            (value_bytes.parse()?, options.extra_space_percent(percent))
        }
        _ => return Err("give all of VALUE_BYTES POLICY RATIO EXTRA_PERCENT, or none".into()),
    };
    let temporary = tempfile::tempdir()?;
    let folder = folder.unwrap_or(temporary.path());
    measure(&options, &Load { folder, entries: counts.0, value_bytes }, counts.1)
}

fn policy_of(name: &str) -> Result<CompactionPolicy, String> {
    match name {
        "lazy" => Ok(CompactionPolicy::LazyLevelled),
        "levelled" => Ok(CompactionPolicy::Levelled),
        "tiered" => Ok(CompactionPolicy::Tiered),
        _ => Err(format!("there is no policy {name}: lazy, levelled or tiered")),
    }
}

fn measure(options: &LsmOptions, load: &Load<'_>, overwrites: u64) -> Result<(), Box<dyn Error>> {
    let open = || options.clone().open(load.folder);
    let (store, entries) = (open()?, load.entries);
    println!("{entries} entries");
    put_all(&store, load, entries, |number| number)?;
    if overwrites > 0 {
        println!("{overwrites} overwrites");
        put_all(&store, load, overwrites, |number| random(!number) % entries)?;
    }
    let start = Instant::now();
    store.close()?;
    println!("closed in {:.2} s", start.elapsed().as_secs_f64());
    let start = Instant::now();
    let store = open()?;
    println!("opened in {:.2} s", start.elapsed().as_secs_f64());
    println!("on disk after closing: {:.2} bytes a live byte", load.space()?);
    ask(&store)?;
    let (before, start) = (most_memory(), Instant::now());
    store.compact()?;
    let (mib, seconds) = (store.stats().table_bytes() >> 20, start.elapsed().as_secs_f64());
    println!(
        "compacted to {mib} MiB in {seconds:.1} s, most memory {before}, then {}",
        most_memory()
    );
    Ok(())
}

/// Returns the most memory that the process had since this was last asked, where Linux says so.
fn most_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    // From now on it counts anew.
    drop(std::fs::write("/proc/self/clear_refs", "5"));
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or_else(|| "unknown".to_owned(), |line| line.trim().to_owned())
}
