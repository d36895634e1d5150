//! What is reported of a file that was not kept, or not restored.

/// Something that was not kept by an import, or not restored by an export.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The name of the file, from the name that was imported.
    pub name: Vec<u8>,
    /// What is wrong.
    pub what: String,
}

impl Problem {
    /// Returns a problem with this file.
    #[must_use]
    pub fn new(name: impl Into<Vec<u8>>, what: impl Into<String>) -> Self {
        Self { name: name.into(), what: what.into() }
    }
}
