//! Inputs that are read more than once, and others that are read in the same way.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use super::source::Source;
use super::{InputArgs, Inputs};
use crate::failure::Failure;
use crate::progress::Stdout;
use crate::warning::Warnings;

impl InputArgs {
    /// The arguments of other files, whose lines are read as these.
    pub(crate) fn beside(&self, files: &[PathBuf]) -> Result<Self, Failure> {
        let is_stdin = |path: &PathBuf| *path == Path::new("-");
        let reads_stdin = self.inputs.is_empty() || self.inputs.iter().any(is_stdin);
        if reads_stdin && files.iter().any(is_stdin) {
            return Err(Failure::Usage(
                "standard input can be read only once; name a file instead of `-`".to_owned(),
            ));
        }
        Ok(Self { inputs: files.to_vec(), lines: self.lines.clone() })
    }
}

impl Inputs {
    /// Copies what can be read only once to unnamed temporary files.
    pub(crate) fn make_rereadable(&mut self) -> Result<(), Failure> {
        self.sources.iter_mut().try_for_each(Source::make_rereadable)
    }

    /// Passes every key to `take` once more, without the warnings of the first time.
    pub(crate) fn each_again(
        &self,
        label: &'static str,
        mut take: impl FnMut(&[&[u8]]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let unseen = Warnings::default();
        let take = |group: &super::Group<'_>, _| take(group.keys()).map(|()| false);
        self.groups((label, Stdout::Silent), &unseen, take).map(drop)
    }
}
