//! `koel build --like`: builds a filter with the settings of another one, so that a patch makes one
//! of the other.
#![forbid(unsafe_code)]

use std::path::Path;

use koel::CuckooFilter;

use crate::failure::Failure;
use crate::filter::file::FilterFile;
use crate::input::Inputs;

/// An empty filter like the one at `path`: of its size, rate, hash and secret. The inputs are read
/// as it says.
pub(super) fn empty(path: &Path, inputs: &mut Inputs) -> Result<CuckooFilter, Failure> {
    let mut filter = FilterFile::open(path)?.load()?;
    if filter.has_grown() {
        return Err(Failure::Usage(format!(
            "{} has grown, so no other filter is like it; build one with --keys first",
            path.display()
        )));
    }
    inputs.use_recipe_of(path, filter.application())?;
    filter.clear();
    Ok(filter)
}
