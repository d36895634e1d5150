//! Where keys come from: files, `-` for standard input, plain or gzip or zstd, read once or twice.
//!
//! Compression is recognised by the first four bytes, so names do not matter and pipes work. A verb that must know how many keys there
//! are calls [`Inputs::count`] first (a filter that grows need not know): regular files (standard input too, when it is one) are read a second time, anything else is
//! copied to a nameless temporary file as it is, still compressed.
//!
//! Cost: counting reads the input once at the speed of a vectorised search; spooling needs the disk space of the raw input in the
//! temporary folder (`TMPDIR`). Memory is that of [`Keys`], whatever the size of the input.
#![forbid(unsafe_code)]

use std::fs::{self, File};
use std::io::{self, Cursor, IsTerminal, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use zstd::stream::read::Decoder as ZstdDecoder;

use crate::failure::{self, Failure};
use crate::lines::{self, Keys};
use crate::progress::{Progress, Stdout};

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// zstd files may open with a frame to skip: `5x 2a 4d 18`.
const ZSTD_SKIPPABLE: [u8; 3] = [0x2a, 0x4d, 0x18];

/// The arguments of every verb that reads keys.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct InputArgs {
    /// Files of keys, one on each line, plain or gzip or zstd; `-` or nothing is standard input
    #[arg(value_name = "INPUT")]
    inputs: Vec<PathBuf>,

    /// Keys end with NUL, as from `find -print0`, and so do the lines printed
    #[arg(short = '0', long)]
    null: bool,
}

/// Inputs that are known to be there.
#[derive(Debug)]
pub(crate) struct Inputs {
    sources: Vec<Source>,
    terminator: u8,
}

#[derive(Debug)]
enum Source {
    File {
        path: PathBuf,
        bytes: u64,
    },
    /// A pipe or a device, standard input or not: can be read once.
    Stream {
        path: PathBuf,
    },
    /// A file without a name: a spooled stream, or standard input that is a regular file.
    Held {
        path: PathBuf,
        file: File,
        start: u64,
        bytes: u64,
    },
}

impl InputArgs {
    /// Looks at every input before any work is done, so that a wrong name costs nothing.
    pub(crate) fn open(&self) -> Result<Inputs, Failure> {
        if self.inputs.is_empty() && io::stdin().is_terminal() {
            return Err(Failure::Usage(
                "no input: name a file, pipe keys in, or give `-` to type them".to_owned(),
            ));
        }
        let stdin = PathBuf::from("-");
        let named =
            if self.inputs.is_empty() { std::slice::from_ref(&stdin) } else { &self.inputs[..] };
        let sources = named.iter().map(|path| Source::look(path)).collect::<Result<_, _>>()?;
        Ok(Inputs { sources, terminator: if self.null { 0 } else { b'\n' } })
    }

    /// Refuses an output that is one of the inputs: it would be replaced by a filter.
    pub(crate) fn refuse_output(&self, output: &Path) -> Result<(), Failure> {
        let Ok(output) = fs::canonicalize(output) else { return Ok(()) };
        let same = |input: &PathBuf| fs::canonicalize(input).is_ok_and(|input| input == output);
        if output.is_file() && self.inputs.iter().any(same) {
            let name = output.display();
            return Err(Failure::Usage(format!(
                "{name} is an input too; write the filter elsewhere"
            )));
        }
        Ok(())
    }
}

impl Inputs {
    /// What ends a key, in the input and in lines printed.
    pub(crate) fn terminator(&self) -> u8 {
        self.terminator
    }

    /// Whether some keys can be read only once.
    pub(crate) fn has_stream(&self) -> bool {
        self.sources.iter().any(|source| matches!(source, Source::Stream { .. }))
    }

    /// How many keys there are, copies included. Afterwards every input can be read once more.
    pub(crate) fn count(&mut self) -> Result<u64, Failure> {
        for source in &mut self.sources {
            source.make_rereadable()?;
        }
        let progress = Progress::start("counting", self.bytes(), Stdout::Silent);
        let mut keys = 0;
        for source in &self.sources {
            let reader = source.open(&progress)?;
            keys += lines::count_keys(reader, self.terminator)
                .map_err(|error| source.failure(error))?;
        }
        Ok(keys)
    }

    /// Hands every key to `take`, in groups.
    pub(crate) fn each(
        &self,
        label: &'static str,
        stdout: Stdout,
        mut take: impl FnMut(&[&[u8]]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.each_until(label, stdout, |keys, _| take(keys).map(|()| false))
    }

    /// Hands groups of keys to `take` until it returns true, each with the share of all bytes that was read by then, where that is known.
    pub(crate) fn each_until(
        &self,
        label: &'static str,
        stdout: Stdout,
        mut take: impl FnMut(&[&[u8]], Option<f64>) -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        let progress = Progress::start(label, self.bytes(), stdout);
        for source in &self.sources {
            let mut keys = Keys::new(source.open(&progress)?, self.terminator);
            loop {
                let group = keys.next_group().map_err(|error| source.failure(error))?;
                if group.is_empty() {
                    break;
                }
                if take(&group, progress.share())? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Raw bytes of all inputs, unless one is a stream.
    fn bytes(&self) -> Option<u64> {
        self.sources.iter().map(Source::bytes).sum()
    }
}

impl Source {
    fn look(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Ok(
                held_stdin().unwrap_or_else(|| Self::Stream { path: "standard input".into() })
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

    /// The name for messages.
    fn path(&self) -> &Path {
        match self {
            Self::File { path, .. } | Self::Stream { path } | Self::Held { path, .. } => path,
        }
    }

    fn failure(&self, error: io::Error) -> Failure {
        Failure::read(self.path(), error)
    }

    fn bytes(&self) -> Option<u64> {
        match self {
            Self::File { bytes, .. } | Self::Held { bytes, .. } => Some(*bytes),
            Self::Stream { .. } => None,
        }
    }

    /// A reader of the keys' bytes, decompressed, from the start.
    fn open(&self, progress: &Progress) -> Result<Box<dyn Read>, Failure> {
        self.raw()
            .and_then(|raw| decompressed(progress.meter(raw)))
            .map_err(|error| self.failure(error))
    }

    fn raw(&self) -> io::Result<Box<dyn Read>> {
        match self {
            Self::Stream { path } if path == Path::new("standard input") => {
                Ok(Box::new(io::stdin().lock()))
            }
            Self::File { path, .. } | Self::Stream { path } => Ok(Box::new(File::open(path)?)),
            Self::Held { file, start, .. } => {
                let mut file = file.try_clone()?;
                file.seek(SeekFrom::Start(*start))?;
                Ok(Box::new(file))
            }
        }
    }

    fn make_rereadable(&mut self) -> Result<(), Failure> {
        if let Self::Stream { path } = self {
            let path = path.clone();
            let mut raw = self.raw().map_err(|error| self.failure(error))?;
            let (file, bytes) = spool(&mut raw, &path)?;
            *self = Self::Held { path, file, start: 0, bytes };
        }
        Ok(())
    }
}

/// Standard input when it is a regular file (`koel build < keys`), which can be read twice without a copy.
#[cfg(unix)]
fn held_stdin() -> Option<Source> {
    use std::os::fd::AsFd;

    let mut file = File::from(io::stdin().as_fd().try_clone_to_owned().ok()?);
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() {
        return None;
    }
    let start = file.stream_position().ok()?;
    let bytes = metadata.len().saturating_sub(start);
    Some(Source::Held { path: "standard input".into(), file, start, bytes })
}

#[cfg(not(unix))]
fn held_stdin() -> Option<Source> {
    None
}

/// Copies a stream to a temporary file that vanishes with the process.
fn spool(raw: &mut dyn Read, path: &Path) -> Result<(File, u64), Failure> {
    let spool_failure = |error: io::Error| {
        Failure::Usage(format!(
            "cannot keep a temporary copy of {} in {}: {}; set TMPDIR to a folder with room, or give --keys",
            path.display(),
            std::env::temp_dir().display(),
            failure::fact(&error)
        ))
    };
    let mut file = tempfile::tempfile().map_err(spool_failure)?;
    let progress = Progress::start("spooling", None, Stdout::Silent);
    let mut raw = progress.meter(raw);
    let mut buffer = vec![0; 256 * 1024];
    let mut bytes = 0;
    loop {
        match lines::read_some(&mut raw, &mut buffer).map_err(|error| Failure::read(path, error))? {
            0 => return Ok((file, bytes)),
            got => {
                file.write_all(&buffer[..got]).map_err(spool_failure)?;
                bytes += got as u64;
            }
        }
    }
}

fn decompressed(mut raw: impl Read + 'static) -> io::Result<Box<dyn Read>> {
    let mut first = [0; 4];
    let mut known = 0;
    while known < first.len() {
        match lines::read_some(&mut raw, &mut first[known..])? {
            0 => break,
            got => known += got,
        }
    }
    let whole = Cursor::new(first).take(known as u64).chain(raw);
    if known >= 2 && first[..2] == GZIP {
        Ok(Box::new(MultiGzDecoder::new(whole)))
    } else if first == ZSTD || (first[0] & 0xf0 == 0x50 && first[1..] == ZSTD_SKIPPABLE) {
        let mut decoder = ZstdDecoder::new(whole)?;
        // Files made with `zstd --long=31` are as welcome as any.
        decoder.window_log_max(31)?;
        Ok(Box::new(decoder))
    } else {
        Ok(Box::new(whole))
    }
}
