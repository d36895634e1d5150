//! Where keys come from: files, `-` for standard input, plain or gzip or zstd, read once or twice.
//!
//! Compression is recognised by the first bytes, so names do not matter and pipes work; what is no text for another reason that these tell, a filter among others, is refused. A verb that must know how many keys there
//! are calls [`Inputs::count`] first (a filter that grows need not know): regular files (standard input too, when it is one) are read a second time, anything else is
//! copied to a nameless temporary file as it is, still compressed.
//!
//! Cost: counting reads the input once at the speed of a vectorised search; spooling needs the disk space of the raw input in the
//! temporary folder (`TMPDIR`). Memory is that of [`Keys`], whatever the size of the input.
#![forbid(unsafe_code)]

use std::fs::{self, File};
use std::io::{self, BufReader, Cursor, IsTerminal, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use zstd::stream::read::Decoder as ZstdDecoder;

use crate::failure::{self, Failure};
use crate::gzip::Members;
use crate::identity::Identity;
use crate::lines::{self, Keys};
use crate::progress::{Progress, Stdout};

/// What begins like this is no plain text. Some have a byte of which only the high half is always the same: its number.
const KINDS: [(&[u8], Option<usize>, Kind); 7] = [
    (&[0x1f, 0x8b], None, Kind::Gzip),
    (&[0x28, 0xb5, 0x2f, 0xfd], None, Kind::Zstd),
    // A frame to skip, with which files of zstd may open.
    (&[0x50, 0x2a, 0x4d, 0x18], Some(0), Kind::Zstd),
    (&[0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00], None, Kind::Other("compressed by xz")),
    (b"BZh91AY&SY", Some(3), Kind::Other("compressed by bzip2")),
    (&[0x04, 0x22, 0x4d, 0x18], None, Kind::Other("compressed by lz4")),
    (b"koel\r\n\x1a\n", None, Kind::Other("a filter, which goes into another with `koel merge`")),
];
/// The longest of these.
const LONGEST: usize = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Gzip,
    Zstd,
    /// Not to be read, and why.
    Other(&'static str),
}

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
        if self.inputs.iter().filter(|&input| *input == stdin).count() > 1 {
            return Err(Failure::Usage(
                "standard input can be read only once; name `-` once".to_owned(),
            ));
        }
        let named =
            if self.inputs.is_empty() { std::slice::from_ref(&stdin) } else { &self.inputs[..] };
        let sources = named.iter().map(|path| Source::look(path)).collect::<Result<_, _>>()?;
        Ok(Inputs { sources, terminator: if self.null { 0 } else { b'\n' } })
    }
}

impl Inputs {
    /// What ends a key, in the input and in lines printed.
    pub(crate) fn terminator(&self) -> u8 {
        self.terminator
    }

    /// Refuses an output that is one of the inputs: it would be replaced by a filter.
    pub(crate) fn refuse_output(&self, output: &Path) -> Result<(), Failure> {
        let file = Some(output).filter(|output| output.is_file()).and_then(Identity::of);
        if self.has(file) {
            let name = output.display();
            return Err(Failure::Usage(format!(
                "{name} is an input too; write the filter elsewhere"
            )));
        }
        Ok(())
    }

    /// Refuses an input that standard output is appended to: it would never end.
    pub(crate) fn refuse_own_output(&self) -> Result<(), Failure> {
        if self.has(Identity::of_stdout_file()) {
            return Err(Failure::Usage(
                "an input is the output too; send the lines elsewhere".to_owned(),
            ));
        }
        Ok(())
    }

    /// Whether a file is one of the inputs.
    fn has(&self, file: Option<Identity>) -> bool {
        file.is_some() && self.sources.iter().any(|source| source.identity() == file)
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

    /// Of a regular file.
    fn identity(&self) -> Option<Identity> {
        match self {
            Self::File { path, .. } => Identity::of(path),
            Self::Held { file, .. } => Identity::in_metadata(&file.metadata().ok()?),
            Self::Stream { .. } => None,
        }
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
    let mut first = Vec::with_capacity(LONGEST);
    let kind = kind(&mut raw, &mut first)?;
    let whole = Cursor::new(first).chain(raw);
    match kind {
        None => Ok(Box::new(whole)),
        Some(Kind::Gzip) => Ok(Box::new(Members::new(BufReader::new(whole)))),
        Some(Kind::Zstd) => {
            let mut decoder = ZstdDecoder::new(whole)?;
            // Files made with `zstd --long=31` are as welcome as any.
            decoder.window_log_max(31)?;
            Ok(Box::new(decoder))
        }
        Some(Kind::Other(what)) => {
            Err(io::Error::new(io::ErrorKind::Unsupported, format!("it is {what}")))
        }
    }
}

/// What the input is, if not plain text. Reads into `first` only while that may be something else, so that a line that someone types is not kept waiting for the next one.
fn kind(raw: &mut impl Read, first: &mut Vec<u8>) -> io::Result<Option<Kind>> {
    loop {
        let mut may_be =
            KINDS.iter().filter(|(magic, half, _)| begins_alike(magic, first, *half)).peekable();
        if may_be.peek().is_none() {
            return Ok(None);
        }
        if let Some((_, _, kind)) = may_be.find(|(magic, ..)| magic.len() <= first.len()) {
            return Ok(Some(*kind));
        }
        let mut buffer = [0; LONGEST];
        match lines::read_some(raw, &mut buffer[first.len()..])? {
            0 => return Ok(None),
            got => first.extend_from_slice(&buffer[first.len()..][..got]),
        }
    }
}

/// Whether these are the same, as far as both go, but for the low half of one byte.
fn begins_alike(magic: &[u8], first: &[u8], half: Option<usize>) -> bool {
    let mut pairs = magic.iter().zip(first).enumerate();
    pairs.all(|(i, (a, b))| a == b || (Some(i) == half && a >> 4 == b >> 4))
}
