//! The inputs of a verb: files or standard input (`-`), plain, gzip or zstd; and what they may not
//! be.
//!
//! Keys are read in groups: once, or more often.
//!
//! A fixed filter needs the number of keys before it is built. [`Inputs::count`] reads files, one
//! of them perhaps standard input, once to count them. An ad-block list is read twice too, and a
//! pipe of one copied to an unnamed temporary file in `TMPDIR`, still compressed.
//!
//! Cost: counting runs at the speed of a vectorised search. Memory is that of `Keys`, whatever the
//! size of the input.

use std::fs::{self, File};
use std::io::{self, IsTerminal, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use koel::ImageError;
use koel_lines::{ApplicationBytes, Format, Likeness, Recipe, Separator, TakenOut};

use crate::failure::{self, Failure, Refused};
use crate::filter::file::FilterFile;
use crate::identity::Identity;
use crate::lines::{self, LineEnd, Lines, decode};
use crate::lists::keys::{Given, Group, Keys, Rules};
use crate::lists::options::{self, LineArgs};
use crate::lists::secret::Secret;
use crate::lists::skipped::Skipped;
use crate::progress::{Progress, Stdout};
use crate::streams::{self, Warnings};

/// The arguments of every verb that reads keys.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct InputArgs {
    /// Files of keys, one per line; plain text, gzip or zstd; standard input if `-` or none
    #[arg(value_name = "INPUT")]
    inputs: Vec<PathBuf>,

    #[command(flatten)]
    lines: LineArgs,
}

/// Inputs that exist.
#[derive(Debug)]
pub(crate) struct Inputs {
    sources: Vec<Source>,
    rules: Rules,
    /// Whether the first lines are looked at: they may be a list of another kind.
    looks: bool,
    /// What is said about them after they were read.
    warnings: Warnings,
}

impl InputArgs {
    /// A failure to open the filter of a verb, which may have changed places with an input.
    pub(crate) fn or_swapped(&self, failure: Failure) -> Failure {
        let Failure::Image { path, error: ImageError::NotAFilter } = &failure else {
            return failure;
        };
        let is_filter = |input: &&PathBuf| {
            input.is_file() && FilterFile::open(input).is_ok_and(|file| file.view().is_ok())
        };
        let Some(filter) = self.inputs.iter().find(is_filter) else { return failure };
        let sentence = format!("is not a Koel filter, but {} is: name it first", filter.display());
        Failure::about(path, sentence)
    }

    /// Looks at every input before any work is done, so that a wrong name fails at once.
    pub(crate) fn open(&self) -> Result<Inputs, Failure> {
        let rules = self.lines.rules()?;
        let refused = |sentence: &str| Err(Failure::Usage(sentence.to_owned()));
        if self.inputs.is_empty() && io::stdin().is_terminal() {
            return refused("no input; name a file, pipe keys in, or give `-` to type them");
        }
        if self.inputs.iter().filter(|input| is_stdin(input)).count() > 1 {
            return refused("standard input can be read only once; name `-` once");
        }
        let stdin = [PathBuf::from("-")];
        let named = if self.inputs.is_empty() { &stdin[..] } else { &self.inputs };
        let sources = named.iter().map(|path| Source::inspect(path)).collect::<Result<_, _>>()?;
        Ok(Inputs { sources, rules, looks: false, warnings: Warnings::default() })
    }

    /// The same, for a verb that has no filter to say how lines are read.
    pub(crate) fn open_first(&self) -> Result<Inputs, Failure> {
        let mut inputs = self.open()?;
        inputs.find_taken_out()?;
        Ok(inputs)
    }

    /// The arguments of other files, whose lines are read as these.
    pub(crate) fn beside(&self, files: &[PathBuf]) -> Result<Self, Failure> {
        let reads_stdin = self.inputs.is_empty() || self.inputs.iter().any(|it| is_stdin(it));
        if reads_stdin && files.iter().any(|it| is_stdin(it)) {
            return Err(Failure::Usage(
                "standard input can be read only once; name a file instead of `-`".to_owned(),
            ));
        }
        Ok(Self { inputs: files.to_vec(), lines: self.lines.clone() })
    }
}

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// The name of an input in messages.
pub(crate) fn name_of(path: &Path) -> &Path {
    if is_stdin(path) { Path::new("standard input") } else { path }
}

/// Opens a file, or standard input for `-`, for a verb that reads it once. Returns its length, too,
/// if it is a regular file.
pub(crate) fn open_stream(path: &Path) -> Result<(Box<dyn Read>, Option<u64>), Failure> {
    if is_stdin(path) {
        return Ok((Box::new(streams::stdin()?.lock()), None));
    }
    let file = File::open(path).map_err(|error| Failure::read(path, error))?;
    let length = file.metadata().ok().filter(|it| it.is_file()).map(|it| it.len());
    Ok((Box::new(file), length))
}

impl Inputs {
    /// The byte that ends each key, in the input and in the output.
    pub(crate) fn terminator(&self) -> u8 {
        self.rules.end
    }

    /// What separates the fields of a line, if one is read.
    pub(crate) fn separator(&self) -> Option<&Separator> {
        self.rules.reading.field.as_ref().map(|field| &field.separator)
    }

    /// How keys are made of lines, which a new filter stores.
    pub(crate) fn recipe(&self) -> Recipe {
        Recipe::of(&self.rules.reading)
    }

    /// Makes keys as the filter at `path` stores it. Returns the kind of list that it stores.
    pub(crate) fn use_recipe_of(
        &mut self,
        path: &Path,
        stored: ApplicationBytes,
    ) -> Result<Format, Failure> {
        let recipe = options::recipe_of(path, stored)?;
        let format = recipe.format;
        options::complete(recipe, &mut self.rules, path)?;
        self.look_at_lines();
        self.find_taken_out()?;
        Ok(format)
    }

    /// Reads lines, or the field that was given, as URLs, whatever the filter was built from.
    pub(crate) fn read_urls(&mut self) {
        self.rules.given = Given { field: true, format: true };
    }

    /// Gives groups the numbers of their lines.
    pub(crate) fn number_lines(&mut self) {
        self.rules.numbers = true;
    }

    /// Passes on lines in groups that are as large as the reads of an input.
    pub(crate) fn in_large_groups(&mut self) {
        self.rules.large_groups = true;
    }

    /// Reads lists of what is allowed: of ad-block rules the exceptions, too.
    pub(crate) fn read_as_allowed(&mut self) {
        self.rules.reading.allows = true;
    }

    /// Says of inputs that look like a list of another kind that they do, unless the user gave the
    /// kind.
    pub(crate) fn look_at_lines(&mut self) {
        self.looks = self.rules.reading.is_plain() && !self.rules.given.format;
    }

    /// Refuses an output that is also an input: a filter would replace the keys.
    pub(crate) fn refuse_output(&self, output: &Path) -> Result<(), Failure> {
        let file = Some(output).filter(|output| output.is_file()).and_then(Identity::of);
        if self.contains_file(file) {
            let name = output.display();
            return Err(Failure::Usage(format!(
                "{name} is also an input; write the filter to another file"
            )));
        }
        Ok(())
    }

    /// Refuses an input that has the form of a secret: `--secret FILE` without the `=`.
    pub(crate) fn refuse_secrets(&self) -> Result<(), Failure> {
        let is_secret = |source: &&Source| Secret::is_in(source.path());
        self.sources.iter().find(is_secret).map_or(Ok(()), |source| {
            let name = source.path().display();
            Err(Failure::Usage(format!(
                "{name} has the form of a secret, not of keys; give --secret={name}, or `- < {name}` \
                 if it is a list"
            )))
        })
    }

    /// Refuses an input that is also the output: it would grow as it is read and never end.
    pub(crate) fn refuse_own_output(&self) -> Result<(), Failure> {
        if self.contains_file(Identity::of_stdout_file()) {
            return Err(Failure::Usage(
                "an input is also the output; redirect the output to another file".to_owned(),
            ));
        }
        Ok(())
    }

    /// Whether a file is one of the inputs.
    fn contains_file(&self, file: Option<Identity>) -> bool {
        file.is_some() && self.sources.iter().any(|source| source.identity() == file)
    }

    /// Whether some input can be read only once.
    pub(crate) fn has_stream(&self) -> bool {
        self.sources.iter().any(|source| matches!(source, Source::Stream { .. }))
    }

    /// Copies what can be read only once to unnamed temporary files.
    pub(crate) fn make_rereadable(&mut self) -> Result<(), Failure> {
        self.sources.iter_mut().try_for_each(Source::make_rereadable)
    }
}

impl Inputs {
    /// Finds the rules of ad-block lists that take out others, which may come later. So the lists
    /// are read once more before.
    pub(crate) fn find_taken_out(&mut self) -> Result<(), Failure> {
        if self.rules.reading.format != Format::Adblock {
            return Ok(());
        }
        self.make_rereadable()?;
        let progress = Progress::start("reading", self.bytes(), Stdout::Silent);
        let mut taken_out = TakenOut::default();
        for source in &self.sources {
            let end = LineEnd::Byte(self.rules.end);
            let reader = self.reader(source, &progress)?;
            let mut lines = Lines::new(reader, end, self.rules.longest, true);
            while let Some(line) = lines.next_line().map_err(|error| source.failure(error))? {
                taken_out
                    .note(&lines.bytes()[line])
                    .map_err(|error| source.failure(Refused::error(error.to_string())))?;
            }
        }
        self.rules.reading.taken_out = taken_out;
        Ok(())
    }

    /// Counts the keys of files, copies included.
    pub(crate) fn count(&self) -> Result<u64, Failure> {
        let mut keys = 0;
        if !self.rules.reading.is_plain() {
            self.each_again("counting", |group| {
                keys += group.len() as u64;
                Ok(())
            })?;
            return Ok(keys);
        }
        let progress = Progress::start("counting", self.bytes(), Stdout::Silent);
        for source in &self.sources {
            let reader = self.reader(source, &progress)?;
            keys += lines::count_lines(reader, self.rules.end)
                .map_err(|error| source.failure(error))?;
        }
        Ok(keys)
    }

    /// Passes every key to `take`, in groups. Returns what had no key, for the report.
    pub(crate) fn each(
        &self,
        label: &'static str,
        take: impl FnMut(&[&[u8]]) -> Result<(), Failure>,
    ) -> Result<Skipped, Failure> {
        let skipped = self.each_again(label, take)?;
        self.warnings.print();
        Ok(skipped)
    }

    /// The same, without the warnings, which are for another time.
    pub(crate) fn each_again(
        &self,
        label: &'static str,
        mut take: impl FnMut(&[&[u8]]) -> Result<(), Failure>,
    ) -> Result<Skipped, Failure> {
        self.groups(label, Stdout::Silent, |group, _| take(group.keys()).map(|()| false))
    }

    /// Passes groups of lines with their keys to `take` until it returns true.
    ///
    /// With each group goes the share of all bytes read so far, if the total is known.
    pub(crate) fn each_line(
        &self,
        label: &'static str,
        stdout: Stdout,
        take: impl FnMut(&Group<'_>, Option<f64>) -> Result<bool, Failure>,
    ) -> Result<Skipped, Failure> {
        let skipped = self.groups(label, stdout, take)?;
        self.warnings.print();
        Ok(skipped)
    }

    fn groups(
        &self,
        label: &'static str,
        stdout: Stdout,
        mut take: impl FnMut(&Group<'_>, Option<f64>) -> Result<bool, Failure>,
    ) -> Result<Skipped, Failure> {
        let progress = Progress::start(label, self.bytes(), stdout);
        let (mut skipped, mut has_header, mut has_keys) = (Skipped::default(), false, false);
        'inputs: for source in &self.sources {
            let mut keys = Keys::new(self.reader(source, &progress)?, &self.rules);
            let header = keys.read_header().map_err(|error| source.failure(error))?;
            // One is enough for the output.
            if let Some(header) = header.filter(|_| !std::mem::replace(&mut has_header, true))
                && take(&Group::header(header), progress.share())?
            {
                break;
            }
            let mut likeness = self.looks.then(Likeness::default);
            while let Some(mut group) = keys.next_group().map_err(|error| source.failure(error))? {
                group.input = source.path();
                has_keys = true;
                if let Some(likeness) = &mut likeness {
                    likeness.look_at(group.lines.iter().copied());
                }
                if take(&group, progress.share())? {
                    break 'inputs;
                }
            }
            skipped.add(&keys.skipped());
            if let Some(sentence) = likeness.as_ref().and_then(hint) {
                self.warnings.about(source.path(), &sentence);
            }
        }
        if !has_keys && skipped.is_misread() {
            return Err(self.no_keys(&skipped));
        }
        Ok(skipped)
    }

    /// Lines that were not understood: "none was found" would be no answer.
    fn no_keys(&self, skipped: &Skipped) -> Failure {
        let input = match &self.sources[..] {
            [source] => source.path().display().to_string(),
            _ => "the inputs".to_owned(),
        };
        let reasons = skipped.sentence();
        let remedy = match self.rules.reading.format {
            Format::Lines => "see --field, --delimiter and --csv; --field 0 is the whole line",
            Format::Hosts => "they were read as --format hosts; give another --format, or --field",
            Format::Adblock => {
                "they were read as --format adblock; give --format hosts for hosts and URLs"
            }
        };
        Failure::Usage(format!("no key in {input}: {reasons}; {remedy}"))
    }

    /// A reader of the text of a source, from its start.
    fn reader(&self, source: &Source, progress: &Progress) -> Result<Box<dyn Read>, Failure> {
        let content = self.rules.content();
        let decode =
            |raw| decode::decoded(progress.meter(raw), content, source.path(), &self.warnings);
        source.raw().and_then(decode).map_err(|error| source.failure(error))
    }

    /// The raw size of all inputs, unless one is a stream.
    fn bytes(&self) -> Option<u64> {
        self.sources.iter().map(Source::bytes).sum()
    }
}

/// What to tell the user of a list that is likely of another kind.
fn hint(likeness: &Likeness) -> Option<String> {
    let (format, what) = likeness.format()?;
    let format = format.name();
    Some(format!(
        "looks like {what}, but whole lines are read as keys; give --format {format} to read the \
         hosts, or --format lines if this is meant"
    ))
}

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
            streams::stdin()?;
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
