//! How a `Maplet` is built, and the table of a `CountingFilter`, whose values are counts.

use super::Maplet;
use crate::builder::{Builder, Grows, Settings};
use crate::error::BuildError;
use crate::image::{Kind, sizing};
use crate::mem::buffer::Buffer;
use crate::state::Body;

impl Grows for Maplet {
    /// Keys whose two buckets are one can go nowhere else, and the fewer buckets a table begins
    /// with, the more keys share one: docs/decisions/0008-growth.md, Keys that find no room.
    const LEAST: u64 = 8192;
}

impl Maplet {
    /// Settings for a maplet of `capacity` entries of distinct keys and values of `value_bits`
    /// bits, 1 to 40. When it is full, [`get`](Self::get) returns at most `false_positive_rate`
    /// wrong values for an absent key on average.
    ///
    /// ```
    /// use koel::Maplet;
    ///
    /// let runs = Maplet::builder(1_000_000, 0.004, 5).build()?;
    /// assert_eq!(runs.layout().to_string(), "plain 4x11+5");
    /// assert!(runs.bits_per_entry() <= 17.0);
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn builder(capacity: u64, false_positive_rate: f64, value_bits: u32) -> Builder<Self> {
        Builder::new(capacity, false_positive_rate, value_bits)
    }
}

impl Builder<Maplet> {
    /// Builds the empty maplet. It has the narrowest fingerprint that keeps the rate and makes a
    /// slot of an even number of bits, up to 32. Wider slots have 64 bits, and the fingerprint gets
    /// up to 32 of those that the value leaves.
    ///
    /// # Errors
    /// [`BuildError`] where the false-positive rate is not between 0 and 1, or is smaller than a
    /// 64-bit hash allows at this capacity, where values would have no or more than 40 bits, or
    /// where the system has no memory for the table.
    pub fn build(&self) -> Result<Maplet, BuildError> {
        empty_body(&self.settings, Kind::Maplet, self.settings.counter_limit())
            .map(|body| Maplet { body })
    }
}

/// The empty table of a maplet or of a counting filter.
pub(crate) fn empty_body(
    settings: &Settings,
    kind: Kind,
    counter_limit: u64,
) -> Result<Body<Buffer>, BuildError> {
    let Settings { capacity, rate, .. } = *settings;
    let layouts = sizing::maplet_layouts(settings.value_bits)?;
    let shape = sizing::with_true_limit(capacity, |capacity| match settings.grow_from {
        None => sizing::choose_maplet(layouts.clone(), capacity, rate),
        Some(keys) => {
            let first = keys.max(Maplet::LEAST);
            sizing::choose_marked(layouts.clone(), first, capacity.max(first), rate)
        }
    })?;
    Body::empty(kind, shape, settings.profile(counter_limit)).ok_or(BuildError::NoMemory)
}
