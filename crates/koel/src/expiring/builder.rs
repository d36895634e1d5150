//! How an `ExpiringFilter` is built: as a maplet whose values are stamps, with room for the keys of
//! a window and one step.

use super::{ExpiringFilter, WhenFull};
use crate::builder::{Builder, Grows, Settings};
use crate::error::BuildError;
use crate::image::clock::Steps;
use crate::image::{Clock, sizing};
use crate::maplet::Maplet;
use crate::state::Body;

impl Grows for ExpiringFilter {
    const LEAST: u64 = Maplet::LEAST;
}

impl ExpiringFilter {
    /// Settings for a filter of `capacity` distinct keys in each window, which reports at most
    /// `false_positive_rate` of the absent keys as present. Give it a
    /// [`window`](Builder::window).
    ///
    /// ```
    /// use koel::ExpiringFilter;
    ///
    /// let seen = ExpiringFilter::builder(1_000_000, 0.001).window(600).build()?;
    /// assert_eq!((seen.steps(), seen.step_ticks(), seen.window()), (24, 25, 600));
    /// assert!(seen.bits_per_key() <= 20.5);
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn builder(capacity: u64, false_positive_rate: f64) -> Builder<Self> {
        Builder::new(capacity, false_positive_rate, 0)
    }
}

impl Builder<ExpiringFilter> {
    /// Builds the empty filter, at tick 0. It has the narrowest fingerprint that keeps the rate and
    /// makes a slot of an even number of bits.
    ///
    /// # Errors
    /// [`BuildError`] where no window was given or it has too many steps, where the false-positive
    /// rate is not between 0 and 1, or is smaller than a 64-bit hash allows at this capacity, or
    /// where the system has no memory for the table.
    pub fn build(&self) -> Result<ExpiringFilter, BuildError> {
        empty(&self.settings)
    }
}

/// The empty filter of these settings.
pub(super) fn empty(settings: &Settings) -> Result<ExpiringFilter, BuildError> {
    let Settings { capacity, rate, window, steps, when_full, grow_from, .. } = *settings;
    let steps = Steps::of(window, steps).ok_or(BuildError::Window { window, steps })?;
    // The keys of the step that is only half over come on top of those of the window.
    let entries = |keys: u64| keys.saturating_add(keys.div_ceil(steps.count));
    let layouts = sizing::maplet_layouts(steps.stamp_bits)?;
    let shape = match grow_from {
        None => sizing::choose_maplet(layouts, entries(capacity), rate)?,
        Some(keys) => {
            let first = keys.max(ExpiringFilter::LEAST);
            sizing::choose_marked(layouts, entries(first), entries(capacity.max(first)), rate)?
        }
    };
    let clock = Clock::new(steps, when_full == WhenFull::EvictOldest);
    let body = Body::expiring(shape, settings.profile(0), clock);
    Ok(ExpiringFilter { body: body.ok_or(BuildError::NoMemory)? })
}
