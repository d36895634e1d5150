//! Names of files that are not complete yet, and the removal of those that stay behind.
//!
//! Until it is complete, a file is called `.koel-PROCESS-SUFFIX`, its writer has locked it, and
//! only its owner can read it. A killed process leaves it. The next replacement, export or
//! restoration in the same folder removes it: a file or a link of the same user, whose process no
//! longer runs, and that nobody has locked. Where machines or containers share a folder, a process
//! of another one seems to have ended, but it has its lock. Links cannot be locked, and have such a
//! name for an instant.
//!
//! `koel::file` gives such names to replacements, and removes none: it cannot ask for processes.

#[cfg(unix)]
pub(super) use unix::{allow_usual_readers, lock, make, sweep as sweep_open};

/// Removes the temporary files in a folder that killed processes of this user have left: files that
/// nobody has locked. Does nothing on other systems than Unix.
pub fn sweep(folder: &std::path::Path) {
    #[cfg(unix)]
    std::fs::File::open(folder).into_iter().for_each(unix::sweep);
    #[cfg(not(unix))]
    let _ = folder;
}

#[cfg(unix)]
mod unix {
    use std::ffi::CStr;
    use std::fs::{File, TryLockError};
    use std::io;
    use std::os::fd::AsFd;
    use std::sync::atomic::{AtomicU64, Ordering};

    use rustix::fs::{self, AtFlags, Dir, FileType, Mode, OFlags};
    use rustix::io::Errno;
    use rustix::process::{Pid, geteuid, test_kill_process, umask};

    use crate::kernel::descriptors::with_room;

    /// The entries of a folder that are examined: reading more would delay every restoration.
    const MAX_SWEPT: usize = 100_000;

    /// Gives a file that was created for its owner only the mode that the umask gives to a new
    /// file.
    pub(in crate::content) fn allow_usual_readers(file: &File) -> io::Result<()> {
        // The mask can only be read by setting it.
        let mask = umask(Mode::RWXG | Mode::RWXO);
        umask(mask);
        Ok(fs::fchmod(file, Mode::from_raw_mode(0o666).difference(mask))?)
    }

    /// Keeps other processes from sweeping a file.
    pub(in crate::content) fn lock(file: &File) -> io::Result<()> {
        match file.lock() {
            // The file system has no locks.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(()),
            locked => locked,
        }
    }

    fn prefix() -> String {
        format!(".koel-{}-", std::process::id())
    }

    /// Calls `make` with a new name until it is not in use. Returns the name, too.
    pub(in crate::content) fn make<T>(
        mut make: impl FnMut(&[u8]) -> rustix::io::Result<T>,
    ) -> io::Result<(T, Vec<u8>)> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("{}{number}", prefix()).into_bytes();
            match with_room(|| Ok(make(&name)?)) {
                Ok(made) => return Ok((made, name)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Removes what killed processes of this user have left in a folder.
    pub(in crate::content) fn sweep(folder: impl AsFd) {
        let Ok(entries) = Dir::read_from(&folder) else { return };
        for entry in entries.flatten().take(MAX_SWEPT) {
            let name = entry.file_name();
            let is_left = process_in(name.to_bytes()).is_some_and(has_ended);
            if is_left && is_own(&folder, name) && !is_locked(&folder, name) {
                fs::unlinkat(&folder, name, AtFlags::empty()).unwrap_or_default();
            }
        }
    }

    /// Returns the process in the name of a temporary file.
    fn process_in(name: &[u8]) -> Option<Pid> {
        let rest = std::str::from_utf8(name).ok()?.strip_prefix(".koel-")?;
        let (process, suffix) = rest.split_once('-')?;
        let is_ours = !suffix.is_empty() && suffix.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let is_number = process.bytes().all(|byte| byte.is_ascii_digit());
        Pid::from_raw(process.parse().ok().filter(|_| is_ours && is_number)?)
    }

    fn has_ended(process: Pid) -> bool {
        test_kill_process(process) == Err(Errno::SRCH)
    }

    fn is_own(folder: impl AsFd, name: &CStr) -> bool {
        fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|stat| {
            let kind = FileType::from_raw_mode(stat.st_mode);
            matches!(kind, FileType::RegularFile | FileType::Symlink)
                && stat.st_uid == geteuid().as_raw()
        })
    }

    fn is_locked(folder: impl AsFd, name: &CStr) -> bool {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        fs::openat(folder, name, flags, Mode::empty())
            .is_ok_and(|file| matches!(File::from(file).try_lock(), Err(TryLockError::WouldBlock)))
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use std::fs as disk;
        use std::os::unix::fs::symlink;

        #[test]
        fn the_sweep_removes_only_files_of_processes_that_have_ended() {
            let folder = tempfile::tempdir().unwrap();
            let at = |name: &str| folder.path().join(name);
            let mut child = std::process::Command::new("true").spawn().unwrap();
            let ended = child.id();
            child.wait().unwrap();
            let own = prefix() + "1";
            let left = [format!(".koel-{ended}-1"), format!(".koel-{ended}-aB3")];
            let kept = [
                own.as_str(),
                ".koel-1-7",
                &format!(".koel-{ended}-"),
                &format!(".koel-{ended}-a.txt"),
                &format!(".koel--{ended}-1"),
                &format!(".koel-+{ended}-1"),
                &format!("koel-{ended}-1"),
                ".koel-part-1",
                ".koel-99999999999999999999-1",
                ".koel-0-1",
            ];
            for name in kept.iter().copied().chain(left.iter().map(String::as_str)) {
                disk::write(at(name), "1").unwrap();
            }
            let link = format!(".koel-{ended}-2");
            symlink(at("koel"), at(&link)).unwrap();
            disk::create_dir(at(&format!(".koel-{ended}-3"))).unwrap();
            let held = at(&format!(".koel-{ended}-held"));
            let holder = File::create(&held).unwrap();
            lock(&holder).unwrap();
            let swept = || sweep(File::open(folder.path()).unwrap());
            swept();
            assert!(held.exists());
            drop(holder);
            swept();
            assert!(!held.exists());
            assert!(kept.iter().all(|name| at(name).exists()), "{:?}", kept);
            assert!(left.iter().all(|name| !at(name).exists()) && !at(&link).is_symlink());
            assert!(at(&format!(".koel-{ended}-3")).exists());
        }
    }
}
