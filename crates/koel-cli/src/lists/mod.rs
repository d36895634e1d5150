//! From the lines of an input to keys, with the crate `koel-lines`: the options of verbs and what a
//! filter stores of them, groups of keys, what was skipped; and secrets.

pub(crate) mod keys;
pub(crate) mod options;
pub(crate) mod secret;
pub(crate) mod skipped;
#[cfg(test)]
mod vectors;
