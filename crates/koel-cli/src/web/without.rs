//! What stands for `http` where the command is built without the feature of that name.

use std::fmt::Display;
use std::ops::Range;
use std::path::Path;

use crate::failure::Failure;

/// No file on a web server can be opened.
#[derive(Debug)]
pub(super) enum Source {}

impl Source {
    pub(super) fn open(
        name: &Path,
        _: &Range<u64>,
    ) -> Result<(Self, Vec<u8>, Option<u64>), Failure> {
        let sentence = "cannot be asked: this koel was built without the feature http; fetch the \
                        file and name it";
        Err(Failure::about(name, sentence))
    }

    pub(super) fn fetch(&self, _: &[Range<u64>]) -> Result<Vec<Vec<u8>>, Failure> {
        match *self {}
    }

    pub(super) fn has_tag(&self) -> bool {
        match *self {}
    }

    pub(super) fn was_replaced(&self) -> Failure {
        match *self {}
    }

    pub(super) fn failure(&self, _: &dyn Display) -> Failure {
        match *self {}
    }

    pub(super) fn traffic(&self) -> (u64, u64) {
        match *self {}
    }
}
