//! Events of a store, for programs that collect them with `tracing`: what its threads do, what a
//! write waits for, and what fails. Their target is `koel_store`.
//!
//! Without the feature `tracing` nothing of them is compiled. No event is for a single read or
//! write, so they cost nothing that can be measured.

#[cfg(feature = "tracing")]
macro_rules! tell {
    ($level:ident, $($event:tt)+) => {
        tracing::$level!(target: "koel_store", $($event)+)
    };
}

#[cfg(not(feature = "tracing"))]
macro_rules! tell {
    ($level:ident, $($event:tt)+) => {};
}

pub(crate) use tell;
