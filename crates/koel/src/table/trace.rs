//! The places where a log of the table was written. Nothing asks for it any more: [`note!`] is
//! nothing, and [`logged!`] makes the edit.

/// Says what is written to a table.
macro_rules! note {
    ($log:expr, $($step:tt)+) => {};
}
pub(crate) use note;

/// Makes an edit of at most one slot of a pair of buckets of a table.
macro_rules! logged {
    ($table:expr, $pair:expr, $edit:expr) => {
        $edit
    };
}
pub(crate) use logged;
