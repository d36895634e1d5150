//! Events of a store, for programs that collect them with `tracing`: what its threads do, what a
//! write waits for, and what fails. Their target is `koel_store`.
//!
//! Without the feature `tracing` nothing of them is left. No event is for a single read or write,
//! so they cost nothing that can be measured.

/// `tell!(warn, "a merge failed", runs = 2, reason)`: a level of `tracing`, what happened, and
/// numbers, flags and texts that tell more.
macro_rules! tell {
    ($level:ident, $what:literal $(, $name:ident = $value:expr)* $(,)?) => {
        #[cfg(feature = "tracing")]
        tracing::$level!(target: "koel_store", $($name = $value,)* $what);
        // The values are used without the feature, too.
        #[cfg(not(feature = "tracing"))]
        if false {
            $(let _ = &$value;)*
        }
    };
}

pub(crate) use tell;
