//! Reads keys from files or standard input (`-`), plain, gzip or zstd.
//!
//! `decode.rs` makes text of the bytes, `keys.rs` makes keys of its lines.
//!
//! A fixed filter needs the number of keys before it is built. [`Inputs::count`] reads files, one
//! of them perhaps standard input, once to count them. An ad-block list is read twice too, and a
//! pipe of one copied to an unnamed temporary file in `TMPDIR`, still compressed.
//!
//! Cost: counting runs at the speed of a vectorised search. Memory is that of [`Keys`], whatever
//! the size of the input.
#![forbid(unsafe_code)]

mod again;
mod source;

use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Refused};
use crate::identity::Identity;
use crate::lines::decode;
use crate::lines::fields::Separator;
use crate::lines::{self, LineEnd, Lines};
use crate::lists::Format;
use crate::lists::adblock::{self, Disabled};
use crate::lists::keys::{Given, Group, Keys, Rules, Skipped};
use crate::lists::line_args::LineArgs;
use crate::lists::recipe::{self, Recipe};
use crate::lists::secret::Secret;
use crate::progress::{Progress, Stdout};
use crate::warning::Warnings;
use source::Source;

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
}

impl InputArgs {
    /// Looks at every input before any work is done, so that a wrong name fails at once.
    pub(crate) fn open(&self) -> Result<Inputs, Failure> {
        let rules = self.lines.rules()?;
        if self.inputs.is_empty() && io::stdin().is_terminal() {
            return Err(Failure::Usage(
                "no input; name a file, pipe keys in, or give `-` to type them".to_owned(),
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
        let sources = named.iter().map(|path| Source::inspect(path)).collect::<Result<_, _>>()?;
        Ok(Inputs { sources, rules })
    }

    /// The same, for a verb that has no filter to say how lines are read.
    pub(crate) fn open_first(&self) -> Result<Inputs, Failure> {
        let mut inputs = self.open()?;
        inputs.find_disabled()?;
        Ok(inputs)
    }
}

impl Inputs {
    /// The byte that ends each key, in the input and in the output.
    pub(crate) fn terminator(&self) -> u8 {
        self.rules.end
    }

    /// What separates the fields of a line, if one is read.
    pub(crate) fn separator(&self) -> Option<&Separator> {
        self.rules.field.as_ref().map(|field| &field.separator)
    }

    /// How keys are made of lines, which a new filter stores.
    pub(crate) fn recipe(&self) -> Recipe {
        Recipe::of(&self.rules)
    }

    /// Makes keys as the filter at `path` stores it. Returns the kind of list that it stores.
    pub(crate) fn use_recipe_of(
        &mut self,
        path: &Path,
        stored: recipe::Bytes,
    ) -> Result<Format, Failure> {
        let recipe = Recipe::of_filter(path, stored)?;
        let format = recipe.format;
        recipe.complete(&mut self.rules, path)?;
        self.find_disabled()?;
        Ok(format)
    }

    /// Finds the rules of ad-block lists that others switch off, which may come later. So the lists
    /// are read once more before.
    fn find_disabled(&mut self) -> Result<(), Failure> {
        if self.rules.format != Format::Adblock {
            return Ok(());
        }
        for source in &mut self.sources {
            source.make_rereadable()?;
        }
        let progress = Progress::start("reading", self.bytes(), Stdout::Silent);
        let mut disabled = Disabled::new();
        let name = memchr::memmem::Finder::new("badfilter");
        for source in &self.sources {
            let reader = self.reader(source, &progress, &Warnings::default())?;
            let end = LineEnd::Byte(self.rules.end);
            let mut lines = Lines::new(reader, end, self.rules.longest, true);
            loop {
                let group = lines.next_group().map_err(|error| source.failure(error))?;
                if group.is_empty() {
                    break;
                }
                for line in group.into_iter().map(|line| &lines.bytes()[line]) {
                    if name.find(line).is_some() {
                        adblock::note_disabled(line, &mut disabled)
                            .map_err(|error| source.failure(Refused::error(error)))?;
                    }
                }
            }
        }
        self.rules.disabled = disabled;
        Ok(())
    }

    /// Reads lines, or the field that was given, as URLs, whatever the filter was built from.
    pub(crate) fn read_urls(&mut self) {
        self.rules.given = Given { field: true, format: true };
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

    /// Counts the keys of files, copies included.
    pub(crate) fn count(&self) -> Result<u64, Failure> {
        let mut keys = 0;
        if !self.rules.is_plain() {
            self.groups(("counting", Stdout::Silent), &Warnings::default(), |group, _| {
                keys += group.keys().len() as u64;
                Ok(false)
            })?;
            return Ok(keys);
        }
        let progress = Progress::start("counting", self.bytes(), Stdout::Silent);
        for source in &self.sources {
            let reader = self.reader(source, &progress, &Warnings::default())?;
            keys += lines::count_lines(reader, self.rules.end)
                .map_err(|error| source.failure(error))?;
        }
        Ok(keys)
    }

    /// Passes every key to `take`, in groups. Returns what had no key, for the report.
    pub(crate) fn each(
        &self,
        label: &'static str,
        stdout: Stdout,
        mut take: impl FnMut(&[&[u8]]) -> Result<(), Failure>,
    ) -> Result<Skipped, Failure> {
        self.each_until(label, stdout, |keys, _| take(keys).map(|()| false))
    }

    /// Passes groups of keys to `take` until it returns true.
    ///
    /// With each group goes the share of all bytes read so far, if the total is known.
    pub(crate) fn each_until(
        &self,
        label: &'static str,
        stdout: Stdout,
        mut take: impl FnMut(&[&[u8]], Option<f64>) -> Result<bool, Failure>,
    ) -> Result<Skipped, Failure> {
        self.each_line(label, stdout, |group, share| take(group.keys(), share))
    }

    /// [`each_until`](Self::each_until) with the lines of the keys, for verbs that print them.
    pub(crate) fn each_line(
        &self,
        label: &'static str,
        stdout: Stdout,
        take: impl FnMut(&Group<'_>, Option<f64>) -> Result<bool, Failure>,
    ) -> Result<Skipped, Failure> {
        let warnings = Warnings::default();
        let skipped = self.groups((label, stdout), &warnings, take)?;
        warnings.print();
        Ok(skipped)
    }

    fn groups(
        &self,
        (label, stdout): (&'static str, Stdout),
        warnings: &Warnings,
        mut take: impl FnMut(&Group<'_>, Option<f64>) -> Result<bool, Failure>,
    ) -> Result<Skipped, Failure> {
        let progress = Progress::start(label, self.bytes(), stdout);
        let (mut skipped, mut has_header, mut has_keys) = (Skipped::default(), false, false);
        'inputs: for source in &self.sources {
            let mut keys = Keys::new(self.reader(source, &progress, warnings)?, &self.rules);
            let header = keys.read_header().map_err(|error| source.failure(error))?;
            // One is enough for the output.
            if let Some(header) = header.filter(|_| !std::mem::replace(&mut has_header, true))
                && take(&Group::header(header), progress.share())?
            {
                break;
            }
            while let Some(group) = keys.next_group().map_err(|error| source.failure(error))? {
                has_keys = true;
                if take(&group, progress.share())? {
                    break 'inputs;
                }
            }
            skipped.add(&keys.skipped());
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
        let reasons = skipped.sentence().unwrap_or_default();
        let remedy = match self.rules.format {
            Format::Lines => "see --field, --delimiter and --csv; --field 0 is the whole line",
            Format::Hosts => "they were read as --format hosts; give another --format, or --field",
            Format::Adblock => {
                "they were read as --format adblock; give --format hosts for hosts and URLs"
            }
        };
        Failure::Usage(format!("no key in {input}: {reasons}; {remedy}"))
    }

    /// A reader of the text of a source, from its start.
    fn reader(
        &self,
        source: &Source,
        progress: &Progress,
        warnings: &Warnings,
    ) -> Result<Box<dyn Read>, Failure> {
        let content = self.rules.content();
        let raw = source.raw().map_err(|error| source.failure(error))?;
        decode::decoded(progress.meter(raw), content, source.path(), warnings)
            .map_err(|error| source.failure(error))
    }

    /// The raw size of all inputs, unless one is a stream.
    fn bytes(&self) -> Option<u64> {
        self.sources.iter().map(Source::bytes).sum()
    }
}
