//! `koel build --memory`: builds a filter that is larger than the memory, segment by segment.
//!
//! ```text
//!     keys -> hashes, in 64 temporary files by their top bits -> segments -> a file -> OUT
//! ```
//!
//! The top bits of a key's address name its segment, whatever the size of the filter. So the number
//! of keys need not be known before they are divided. One group of segments after the other is read
//! and built (`koel::PiecePlan`), and neither all hashes nor the filter is ever in memory.
//!
//! The temporary files have no names, so the system deletes them when the process ends, even if it
//! is killed. Cost: 8 bytes of disk for each key, and twice those of the filter. Each key is hashed
//! once, written once, and read once or a few times.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::ops::Range;

use koel::{FileError, FullError, KeyHash, Part, Piece, PieceError, PiecePlan};

use super::{Args, ListRead};
use crate::failure::{self, Failure};
use crate::filter::file::FilterFile;
use crate::filter::spool::{HASH_BYTES, KeyCount, hash_each, read_hashes};
use crate::filter::target::Target;
use crate::input::Inputs;
use crate::output;
use crate::quantity::bytes;

/// Files that hashes are divided among, by the top bits of their addresses.
const FILES: u64 = 1 << 6;

/// The filter to build, and the memory that it may take.
pub(super) struct Bounded<'a> {
    args: &'a Args,
    memory: u64,
}

impl<'a> Bounded<'a> {
    /// The bounded build, if the table might exceed the memory. Counts the keys of files.
    pub(super) fn new(args: &'a Args, inputs: &mut Inputs) -> Result<Option<Self>, Failure> {
        let Some(memory) = args.memory else { return Ok(None) };
        let shape = &args.shape;
        let keys = match shape.keys {
            None if inputs.has_stream() => None,
            None => Some(inputs.count()?),
            keys => keys,
        };
        let plan = keys.map(|keys| shape.plan(keys, args.fpr)).transpose()?;
        let size = plan.map(|plan| plan.size_in_bytes as u64);
        if size.is_some_and(|size| size <= memory) {
            return Ok(None);
        }
        let folder = std::env::temp_dir();
        let of_keys = match (keys, shape.keys) {
            (Some(keys), None) => bytes(keys.saturating_mul(HASH_BYTES)),
            _ => "8 bytes per key".to_owned(),
        };
        let of_filter = size.map_or(String::new(), |size| format!("{} for ", bytes(size)));
        output::print_to_stderr(&format!(
            "koel: building through temporary files in {}: {of_keys} for hashes, and {of_filter}a \
             copy of the filter\n",
            output::escape_controls(&folder.display().to_string())
        ))?;
        Ok(Some(Self { args, memory }))
    }

    /// Builds and writes the filter. Returns its bytes, and what was read.
    pub(super) fn run(
        &self,
        inputs: &Inputs,
        target: &Target<'_>,
    ) -> Result<(FilterFile, ListRead), Failure> {
        let any = self.plan(1)?;
        let mut spill = Spill::new(any, self.memory)?;
        let mut count = KeyCount::new();
        let skipped = inputs.each("reading", |keys| {
            let hashes = hash_each(any.hasher(), keys);
            count.add(&hashes);
            spill.push(&hashes).map_err(|error| disk(&error))
        })?;
        let keys = self.args.shape.keys;
        let capacity = keys.unwrap_or(count.capacity(self.args.unique));
        let mut file = match self.build(&mut spill, capacity, count.keys()) {
            // More distinct keys than estimated, by five standard errors or by an adversary.
            Err(Failure::Full { .. } | Failure::FullSegment { .. })
                if keys.is_none() && capacity < count.keys() =>
            {
                self.build(&mut spill, count.keys(), count.keys())?
            }
            built => built?,
        };
        target.write_from(&mut file, any.hasher())?;
        let built = FilterFile::of(target.path(), &file)?;
        Ok((built, ListRead { keys: count.keys(), skipped }))
    }

    fn plan(&self, capacity: u64) -> Result<PiecePlan, Failure> {
        let plan = self.args.shape.pieces(capacity, self.args.fpr)?;
        Ok(if self.args.unique { plan.unique() } else { plan })
    }

    /// The filter in a temporary file.
    fn build(&self, spill: &mut Spill, capacity: u64, keys: u64) -> Result<File, Failure> {
        let plan = self.plan(capacity)?;
        let of_segment = keys.min(capacity).max(1).div_ceil(plan.segments()) * HASH_BYTES;
        let size = self.args.shape.plan(capacity, self.args.fpr)?.size_in_bytes as u64;
        // Its addresses twice, its table and its piece, and the buffers.
        let least = 3 * of_segment + 2 * size.div_ceil(plan.segments()) + FILES * BUFFER_LEAST;
        if self.memory < least {
            return Err(Failure::Usage(format!(
                "a segment of this filter takes {} of memory; give --memory that or more",
                bytes(least)
            )));
        }
        let room = self.memory - least;
        let most = room + of_segment + of_segment / 2 + (1 << 20);
        let mut file = tempfile::tempfile().map_err(|error| disk(&error))?;
        let pieces = Pieces {
            plan,
            spill,
            room,
            most,
            next: 0,
            parts: Vec::new().into_iter().peekable(),
            until: 0,
        };
        plan.save_to(&mut file, pieces, Some(keys))?;
        Ok(file)
    }
}

/// The least bytes that are collected for each file before they are written.
const BUFFER_LEAST: u64 = 8 << 10;

/// Hashes in files, divided by the top bits of their addresses.
struct Spill {
    plan: PiecePlan,
    files: Vec<BufWriter<File>>,
}

impl Spill {
    fn new(plan: PiecePlan, memory: u64) -> Result<Self, Failure> {
        let buffer = (memory / 16 / FILES).clamp(BUFFER_LEAST, 1 << 20);
        let buffer = usize::try_from(buffer).expect("at most 1 MiB");
        let file = |_| Ok(BufWriter::with_capacity(buffer, tempfile::tempfile()?));
        let files = (0..FILES).map(file).collect::<io::Result<_>>();
        Ok(Self { plan, files: files.map_err(|error| disk(&error))? })
    }

    fn push(&mut self, hashes: &[KeyHash]) -> io::Result<()> {
        for hash in hashes {
            let file = self.plan.address(hash) >> (u64::BITS - FILES.trailing_zeros());
            let file = usize::try_from(file).expect("fewer files than a word counts");
            self.files[file].write_all(&hash.get().to_le_bytes())?;
        }
        Ok(())
    }

    /// Writes what is still in memory.
    fn flush(&mut self) -> io::Result<()> {
        self.files.iter_mut().try_for_each(Write::flush)
    }

    /// The files that have the hashes of these segments, of so many.
    fn files_of(segments: Range<u64>, all: u64) -> Range<usize> {
        let index = |number| usize::try_from(number).expect("fewer files than a word counts");
        if all <= FILES {
            let each = FILES / all;
            index(segments.start * each)..index(segments.end * each)
        } else {
            let each = all / FILES;
            index(segments.start / each)..index(segments.end.div_ceil(each))
        }
    }

    /// Bytes of hashes in these files.
    fn bytes_in(&self, files: Range<usize>) -> io::Result<u64> {
        self.files[files].iter().map(|file| Ok(file.get_ref().metadata()?.len())).sum()
    }

    /// The parts of these segments. Fails if they take more than `most` bytes.
    fn parts(
        &mut self,
        plan: &PiecePlan,
        segments: Range<u64>,
        most: u64,
    ) -> Result<Vec<Part>, Failure> {
        let (mut parts, mut size) = (Vec::new(), 0);
        for file in Self::files_of(segments.clone(), plan.segments()) {
            let mut file = self.files[file].get_ref();
            file.seek(SeekFrom::Start(0)).map_err(|error| disk(&error))?;
            loop {
                let hashes = read_hashes(&mut file).map_err(|error| disk(&error))?;
                if hashes.is_empty() {
                    break;
                }
                let here = |hash: &KeyHash| segments.contains(&plan.segment_of(hash));
                let hashes: Vec<KeyHash> = hashes.into_iter().filter(here).collect();
                let more = plan.split(&hashes).map_err(of_pieces)?;
                size += more.iter().map(|part| part.as_ref().len() as u64).sum::<u64>();
                if size > most {
                    return Err(Failure::Usage(
                        "some keys repeat so often that they exceed --memory; use --unique, or \
                         give more"
                            .to_owned(),
                    ));
                }
                parts.extend(more);
            }
        }
        // Stable, so that the parts of a segment stay in a row.
        parts.sort_by_key(Part::segment);
        Ok(parts)
    }
}

/// The pieces of all segments in order. As many segments as there is room for are read at once.
struct Pieces<'s> {
    plan: PiecePlan,
    spill: &'s mut Spill,
    /// Bytes for the parts of some segments, and the most that they may take.
    room: u64,
    most: u64,
    /// The next segment to build, and the end of those whose parts were read.
    next: u64,
    until: u64,
    parts: std::iter::Peekable<std::vec::IntoIter<Part>>,
}

impl Pieces<'_> {
    /// Reads the parts of the next segments.
    fn read(&mut self) -> Result<(), Failure> {
        let all = self.plan.segments();
        let file = Spill::files_of(self.next..self.next + 1, all);
        self.spill.flush().map_err(|error| disk(&error))?;
        let held = self.spill.bytes_in(file).map_err(|error| disk(&error))?;
        // Segments of one file are read in as few passes as the room allows.
        let in_file = (all / FILES).max(1);
        let passes = held.div_ceil(self.room.max(1)).clamp(1, in_file).next_power_of_two();
        self.until = self.next + (in_file / passes).max(1);
        let parts = self.spill.parts(&self.plan, self.next..self.until, self.most)?;
        self.parts = parts.into_iter().peekable();
        Ok(())
    }

    fn build(&mut self) -> Result<Piece, Failure> {
        if self.next == self.until {
            self.read()?;
        }
        let segment = self.next;
        self.next += 1;
        let parts = std::iter::from_fn(|| self.parts.next_if(|part| part.segment() == segment));
        self.plan.build(segment, parts).map_err(of_pieces)
    }
}

impl Iterator for Pieces<'_> {
    type Item = Result<Piece, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        (self.next < self.plan.segments()).then(|| self.build())
    }
}

fn of_pieces(error: PieceError) -> Failure {
    match error {
        PieceError::Full { full: FullError::Slots { .. }, segment, keys } => {
            Failure::FullSegment { segment, keys }
        }
        PieceError::Full { full, keys, .. } => {
            let remedy = "nothing was written; use --unique or a larger --keys".to_owned();
            Failure::Full { full, keys, remedy }
        }
        error => Failure::Usage(error.to_string()),
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Io { error, .. } => disk(&error),
            FileError::Piece(error) => of_pieces(error),
            error => Self::Usage(error.to_string()),
        }
    }
}

fn disk(error: &io::Error) -> Failure {
    Failure::Usage(format!(
        "cannot build through temporary files in {}: {}; set TMPDIR to a folder with room for 8 \
         bytes per key and for the filter",
        std::env::temp_dir().display(),
        failure::describe(error)
    ))
}
