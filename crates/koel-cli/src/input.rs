//! The inputs of a verb: files or standard input (`-`), plain, gzip or zstd; and what they may not
//! be.
//!
//! `source.rs` is one input, `read.rs` reads the keys of all.
//!
//! A fixed filter needs the number of keys before it is built. [`Inputs::count`] reads files, one
//! of them perhaps standard input, once to count them. An ad-block list is read twice too, and a
//! pipe of one copied to an unnamed temporary file in `TMPDIR`, still compressed.
//!
//! Cost: counting runs at the speed of a vectorised search. Memory is that of `Keys`, whatever the
//! size of the input.

mod read;
mod source;

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use crate::closed;
use crate::failure::Failure;
use crate::identity::Identity;
use crate::lines::fields::Separator;
use crate::lists::Format;
use crate::lists::keys::{Given, Rules};
use crate::lists::line_args::LineArgs;
use crate::lists::recipe::{self, Recipe};
use crate::lists::secret::Secret;
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
    /// What is said about them after they were read.
    warnings: Warnings,
}

impl InputArgs {
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
        Ok(Inputs { sources, rules, warnings: Warnings::default() })
    }

    /// The same, for a verb that has no filter to say how lines are read.
    pub(crate) fn open_first(&self) -> Result<Inputs, Failure> {
        let mut inputs = self.open()?;
        inputs.find_disabled()?;
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
        return Ok((Box::new(closed::stdin()?.lock()), None));
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

    /// Copies what can be read only once to unnamed temporary files.
    pub(crate) fn make_rereadable(&mut self) -> Result<(), Failure> {
        self.sources.iter_mut().try_for_each(Source::make_rereadable)
    }
}
