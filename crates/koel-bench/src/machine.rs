//! What this machine is, and whether memory really is in huge pages, as far as /proc tells.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;

use serde_json::Value;

use crate::Failure;
use crate::table::grouped;

/// Makes glibc ask for huge pages for all its memory. glibc reads it when a process starts.
const TUNABLES: (&str, &str) = ("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1");

/// The processor and its number of cores.
pub(crate) fn description() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = info.lines().find(|line| line.starts_with(name))?;
        line.split_once(':').map(|(_, value)| value.trim().to_string())
    };
    let model = field("model name").unwrap_or_else(|| "unknown processor".into());
    let number = |name: &str| field(name).unwrap_or_else(|| "unknown".into());
    let (family, version) = (number("cpu family"), number("model"));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let cores = if cores == 1 { "1 core".to_owned() } else { format!("{cores} cores") };
    format!("{model} (family {family} model {version}), {cores}, {} GiB of memory", memory_gib())
}

/// Fails if more bytes are needed than the machine has, before an allocation aborts the process.
pub(crate) fn require_memory(bytes: u64) -> Result<(), Failure> {
    let (needed, all) = (bytes.div_ceil(1 << 30), memory_gib());
    if all > 0 && needed > all {
        let asked = grouped(needed);
        return Err(
            format!("{asked} GiB are needed and this machine has {all}; ask for less").into()
        );
    }
    Ok(())
}

/// The same for this many keys, with as many present as absent ones of 8 bytes each.
pub(crate) fn require_memory_of(keys: u64) -> Result<(), Failure> {
    require_memory(keys.saturating_mul(16))
}

/// From this many bytes on, glibc takes memory from the system and gives it back.
const FROM_THE_SYSTEM: usize = 32 << 20;

/// Touches this many bytes of memory and gives them back. A virtual machine may have returned
/// unused memory to its host, and getting it back takes up to fifty times as long as a page fault.
/// Without this, the first filter to be measured would pay for it.
pub(crate) fn touch(bytes: usize) {
    if bytes >= FROM_THE_SYSTEM {
        let mut memory = vec![0_u8; bytes];
        memory.chunks_mut(4096).for_each(|page| page[0] = 1);
        std::hint::black_box(&memory);
    }
}

/// Returns 0 if the system does not tell.
fn memory_gib() -> u64 {
    let info = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = info.lines().find_map(|line| kibibytes(line, "MemTotal:")).unwrap_or(0);
    kib.div_ceil(1 << 20)
}

/// The number in a line such as `AnonHugePages:   2048 kB`.
fn kibibytes(line: &str, name: &str) -> Option<u64> {
    line.strip_prefix(name)?.trim().trim_end_matches("kB").trim().parse().ok()
}

/// Today's date in UTC, as year-month-day.
pub(crate) fn today() -> Result<String, Failure> {
    printed(Command::new("date").args(["-u", "+%F"]))
}

/// What a program prints, which must succeed.
pub(crate) fn printed(command: &mut Command) -> Result<String, Failure> {
    let output = command.output().map_err(|error| format!("{command:?} does not run: {error}"))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?} failed: {complaint}").into());
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Measures with these arguments in a process of its own, so that its memory can be told, and reads
/// the JSON that it prints.
pub(crate) fn apart(arguments: &[&str]) -> Result<Value, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    Ok(serde_json::from_str(&printed(command.args(arguments))?)?)
}

/// The bytes of this process in huge pages.
pub(crate) fn huge_bytes() -> u64 {
    let rollup = fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
    let kib = rollup.lines().find_map(|line| kibibytes(line, "AnonHugePages:"));
    kib.unwrap_or(0) * 1024
}

/// The resident bytes of this process, mapped files included: now, and at the peak. 0 if the system
/// does not tell.
pub(crate) fn resident_bytes() -> [u64; 2] {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let of = |name: &str| status.lines().find_map(|line| kibibytes(line, name)).unwrap_or(0) * 1024;
    ["VmRSS:", "VmHWM:"].map(of)
}

/// Restarts this program with huge pages for every table, unless it already runs so.
pub(crate) fn restart_with_huge_pages() -> Result<(), Failure> {
    if std::env::var(TUNABLES.0).is_ok_and(|value| value.contains(TUNABLES.1)) {
        return Ok(());
    }
    let mut command = Command::new(std::env::current_exe()?);
    let failure = command.args(std::env::args_os().skip(1)).env(TUNABLES.0, TUNABLES.1).exec();
    Err(format!("cannot start again with huge pages: {failure}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_in_use_is_seen() {
        let [now, most] = resident_bytes();
        assert!(100_000 < now && now <= most, "{now}, {most}");
    }
}
