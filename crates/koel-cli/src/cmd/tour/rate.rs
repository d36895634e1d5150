//! The false-positive rate that the tour promises, and the check that it is kept.
//!
//! A measured rate may exceed the promise by four standard deviations: a filter whose true rate is
//! exactly the promised one fails the check once in 30,000 runs.
#![forbid(unsafe_code)]

/// At this rate a sign-up form asks one honest user in a thousand to write to support.
pub(super) const PROMISED_RATE: f64 = 0.001;

/// Whether a number of false positives is consistent with the promised rate.
pub(super) fn is_within(wrong: usize, lookups: usize) -> bool {
    let expected = PROMISED_RATE * lookups as f64;
    wrong as f64 <= expected + 4.0 * expected.sqrt()
}
