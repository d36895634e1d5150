//! What the process has used so far, all threads included, and the size of a folder on disk, as far
//! as /proc tells.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use cpu_time::ProcessTime;

use crate::Failure;
use crate::machine::printed;

/// A store that uses less than a tenth of a core over this time has finished its background work.
const LOOK: Duration = Duration::from_millis(250);
/// The longest wait for a store.
const PATIENCE: Duration = Duration::from_secs(180);

/// The bytes written so far.
#[derive(Clone, Copy)]
pub(super) struct Written {
    /// Passed to the system in write calls.
    pub(super) calls: u64,
    /// In pages written to the disk, including those of mapped files.
    pub(super) pages: u64,
}

impl Written {
    pub(super) fn now() -> Self {
        let text = fs::read_to_string("/proc/self/io").unwrap_or_default();
        let field = |name| number_of(&text, name).unwrap_or(0);
        Self { calls: field("wchar:"), pages: field("write_bytes:") }
    }

    pub(super) fn since(self, earlier: Self) -> Self {
        Self { calls: self.calls - earlier.calls, pages: self.pages - earlier.pages }
    }
}

/// The number in a line such as `wchar: 2048`.
fn number_of(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Waits until the threads of a store are idle.
pub(super) fn wait_for_rest() {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        let before = ProcessTime::now();
        sleep(LOOK);
        if before.elapsed() < LOOK / 10 {
            return;
        }
    }
}

/// The bytes on disk of all files below a folder, without holes.
#[cfg(unix)]
pub(super) fn disk_bytes(folder: &Path) -> Result<u64, Failure> {
    use std::os::unix::fs::MetadataExt;

    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes +=
            if metadata.is_dir() { disk_bytes(&entry.path())? } else { metadata.blocks() * 512 };
    }
    Ok(bytes)
}

/// Copies what is in a folder.
pub(super) fn copy_folder(from: &Path, to: &Path) -> Result<(), Failure> {
    printed(Command::new("cp").arg("-R").arg(from.join(".")).arg(to))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_seen() {
        let before = Written::now();
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("inner")).expect("a folder");
        fs::write(folder.path().join("inner/file"), vec![7; 100_000]).expect("a file");
        assert!(Written::now().since(before).calls >= 100_000);
        assert!(disk_bytes(folder.path()).expect("sizes") >= 100_000);
    }
}
