//! A folder that stays open, and the regular files in it.
//!
//! On Unix, names are looked up in the open folder and not by its path. So a store that has the
//! folder locked writes into this folder alone, even after someone has moved it and put another one
//! in its place.
//!
//! Only regular files are opened. A symbolic link would lead out of the folder, a FIFO would block
//! and a device has no end.

#[cfg(not(unix))]
pub(super) use portable::OpenFolder;
#[cfg(unix)]
pub(super) use unix::OpenFolder;

fn not_a_regular_file(name: &str) -> std::io::Error {
    let what = format!("{name} is not a regular file");
    std::io::Error::new(std::io::ErrorKind::InvalidInput, what)
}

#[cfg(unix)]
mod unix {
    use std::fs::File;
    use std::io;
    use std::path::Path;
    use std::sync::Arc;

    use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, Stat};

    use super::not_a_regular_file;
    use crate::kernel::store_files::MANIFEST;

    #[derive(Clone, Debug)]
    pub(crate) struct OpenFolder(Arc<File>);

    impl OpenFolder {
        pub(crate) fn open(path: &Path) -> io::Result<Self> {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            Ok(Self(Arc::new(fs::open(path, flags, Mode::empty())?.into())))
        }

        pub(crate) fn open_file(&self, name: &str, writable: bool) -> io::Result<File> {
            let access = if writable { OFlags::RDWR } else { OFlags::RDONLY };
            if FileType::from_raw_mode(self.stat(name)?.st_mode) != FileType::RegularFile {
                return Err(not_a_regular_file(name));
            }
            // Neither follows nor blocks, should the file have been replaced since.
            let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            Ok(fs::openat(&*self.0, name, flags, Mode::empty())?.into())
        }

        pub(crate) fn create_file(&self, name: &str) -> io::Result<File> {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            Ok(fs::openat(&*self.0, name, flags, self.mode_of_new_files()?)?.into())
        }

        /// Returns the permissions of new files, before the umask: nobody may read a file who may
        /// not read the folder and the manifest.
        fn mode_of_new_files(&self) -> io::Result<Mode> {
            let folder = Mode::from_raw_mode(fs::fstat(&*self.0)?.st_mode);
            let manifest = self.stat(MANIFEST);
            let manifest = manifest.map_or(folder, |stat| Mode::from_raw_mode(stat.st_mode));
            let all = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP | Mode::ROTH | Mode::WOTH;
            Ok(all & folder & manifest | Mode::RUSR | Mode::WUSR)
        }

        fn stat(&self, name: &str) -> io::Result<Stat> {
            Ok(fs::statat(&*self.0, name, AtFlags::SYMLINK_NOFOLLOW)?)
        }

        pub(crate) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
            Ok(fs::renameat(&*self.0, from, &*self.0, to)?)
        }

        pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
            Ok(fs::unlinkat(&*self.0, name, AtFlags::empty())?)
        }

        pub(crate) fn link(&self, name: &str, to: &Self) -> io::Result<()> {
            Ok(fs::linkat(&*self.0, name, &*to.0, name, AtFlags::empty())?)
        }

        /// Returns the names that are UTF-8: those of a store are.
        pub(crate) fn list(&self) -> io::Result<Vec<String>> {
            let mut names = Vec::new();
            for entry in fs::Dir::read_from(&*self.0)? {
                names.extend(entry?.file_name().to_str().ok().map(str::to_owned));
            }
            Ok(names)
        }

        pub(crate) fn sync(&self) -> io::Result<()> {
            self.0.sync_all()
        }

        /// Locks the folder itself, whose lock nobody can remove. Returns what holds the lock.
        pub(crate) fn lock(&self, shared: bool) -> io::Result<File> {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let folder = File::from(fs::openat(&*self.0, ".", flags, Mode::empty())?);
            if shared {
                folder.try_lock_shared()?
            } else {
                folder.try_lock()?
            }
            Ok(folder)
        }
    }
}

#[cfg(not(unix))]
mod portable {
    use std::fs::{self, File, OpenOptions};
    use std::io;
    use std::path::{Path, PathBuf};

    use super::not_a_regular_file;

    #[derive(Clone, Debug)]
    pub(crate) struct OpenFolder(PathBuf);

    impl OpenFolder {
        pub(crate) fn open(path: &Path) -> io::Result<Self> {
            fs::read_dir(path).map(|_| Self(path.to_owned()))
        }

        pub(crate) fn open_file(&self, name: &str, writable: bool) -> io::Result<File> {
            let path = self.0.join(name);
            if !fs::symlink_metadata(&path)?.is_file() {
                return Err(not_a_regular_file(name));
            }
            OpenOptions::new().read(true).write(writable).open(path)
        }

        pub(crate) fn create_file(&self, name: &str) -> io::Result<File> {
            OpenOptions::new().read(true).write(true).create_new(true).open(self.0.join(name))
        }

        pub(crate) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
            fs::rename(self.0.join(from), self.0.join(to))
        }

        pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
            fs::remove_file(self.0.join(name))
        }

        pub(crate) fn link(&self, name: &str, to: &Self) -> io::Result<()> {
            fs::hard_link(self.0.join(name), to.0.join(name))
        }

        pub(crate) fn list(&self) -> io::Result<Vec<String>> {
            let mut names = Vec::new();
            for entry in fs::read_dir(&self.0)? {
                names.extend(entry?.file_name().into_string().ok());
            }
            Ok(names)
        }

        /// Windows has no such call and writes names through.
        pub(crate) fn sync(&self) -> io::Result<()> {
            Ok(())
        }

        /// Only the file LOCK can be locked.
        pub(crate) fn lock(&self, _shared: bool) -> io::Result<()> {
            Ok(())
        }
    }
}
