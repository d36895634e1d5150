//! Filters as the verbs need them: sized and built from arguments, opened, and written.

pub(crate) mod asked;
pub(crate) mod compare;
pub(crate) mod file;
pub(crate) mod reported;
pub(crate) mod room;
pub(crate) mod sizing;
pub(crate) mod spool;
pub(crate) mod target;
