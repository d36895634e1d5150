//! One input: a file, a pipe or an open file, and how it is read once or more often.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::closed;
use crate::failure::{self, Failure};
use crate::identity::Identity;
use crate::lines;
use crate::progress::{Progress, Stdout};

#[derive(Debug)]
pub(super) enum Source {
    File {
        path: PathBuf,
        bytes: u64,
    },
    /// A pipe or a device, which may be standard input: can be read once.
    Stream {
        path: PathBuf,
    },
    /// An open file: a copied stream, or standard input that is a regular file.
    OpenFile {
        path: PathBuf,
        file: File,
        start: u64,
        bytes: u64,
    },
}

impl Source {
    pub(super) fn inspect(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            closed::stdin()?;
            return Ok(
                stdin_as_file().unwrap_or_else(|| Self::Stream { path: "standard input".into() })
            );
        }
        let metadata = fs::metadata(path).map_err(|error| Failure::read(path, error))?;
        if metadata.is_dir() {
            return Err(Failure::read(path, io::ErrorKind::IsADirectory.into()));
        }
        let path = path.to_owned();
        if metadata.is_file() {
            Ok(Self::File { path, bytes: metadata.len() })
        } else {
            Ok(Self::Stream { path })
        }
    }

    /// The name in messages.
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::File { path, .. } | Self::Stream { path } | Self::OpenFile { path, .. } => path,
        }
    }

    pub(super) fn failure(&self, error: io::Error) -> Failure {
        Failure::read(self.path(), error)
    }

    /// The identity of a regular file.
    pub(super) fn identity(&self) -> Option<Identity> {
        match self {
            Self::File { path, .. } => Identity::of(path),
            Self::OpenFile { file, .. } => Identity::from_metadata(&file.metadata().ok()?),
            Self::Stream { .. } => None,
        }
    }

    pub(super) fn bytes(&self) -> Option<u64> {
        match self {
            Self::File { bytes, .. } | Self::OpenFile { bytes, .. } => Some(*bytes),
            Self::Stream { .. } => None,
        }
    }

    pub(super) fn raw(&self) -> io::Result<Box<dyn Read>> {
        match self {
            Self::Stream { path } if path == Path::new("standard input") => {
                Ok(Box::new(io::stdin().lock()))
            }
            Self::File { path, .. } | Self::Stream { path } => Ok(Box::new(File::open(path)?)),
            Self::OpenFile { file, start, .. } => {
                let mut file = file.try_clone()?;
                file.seek(SeekFrom::Start(*start))?;
                Ok(Box::new(file))
            }
        }
    }

    pub(super) fn make_rereadable(&mut self) -> Result<(), Failure> {
        if let Self::Stream { path } = self {
            let path = path.clone();
            let mut raw = self.raw().map_err(|error| self.failure(error))?;
            let (file, bytes) = copy_to_temporary_file(&mut raw, &path)?;
            *self = Self::OpenFile { path, file, start: 0, bytes };
        }
        Ok(())
    }
}

/// Standard input if it is a regular file (`koel build < keys`): it can be read twice.
#[cfg(unix)]
fn stdin_as_file() -> Option<Source> {
    use std::os::fd::AsFd;

    let mut file = File::from(io::stdin().as_fd().try_clone_to_owned().ok()?);
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() {
        return None;
    }
    let start = file.stream_position().ok()?;
    let bytes = metadata.len().saturating_sub(start);
    Some(Source::OpenFile { path: "standard input".into(), file, start, bytes })
}

#[cfg(not(unix))]
fn stdin_as_file() -> Option<Source> {
    None
}

/// Copies a stream to a temporary file, which the system deletes when the process ends.
fn copy_to_temporary_file(raw: &mut dyn Read, path: &Path) -> Result<(File, u64), Failure> {
    let copy_failure = |error: io::Error| {
        Failure::Usage(format!(
            "cannot copy {} to a temporary file in {}: {}; set TMPDIR to a folder with free space, \
             or name a file",
            path.display(),
            std::env::temp_dir().display(),
            failure::describe(&error)
        ))
    };
    let mut file = tempfile::tempfile().map_err(copy_failure)?;
    let progress = Progress::start("copying to a temporary file", None, Stdout::Silent);
    let mut raw = progress.meter(raw);
    let mut buffer = vec![0; 256 * 1024];
    let mut bytes = 0;
    loop {
        match lines::read_some(&mut raw, &mut buffer).map_err(|error| Failure::read(path, error))? {
            0 => return Ok((file, bytes)),
            got => {
                file.write_all(&buffer[..got]).map_err(copy_failure)?;
                bytes += got as u64;
            }
        }
    }
}
