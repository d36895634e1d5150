//! How an `ExpiringFilter` is built: as a maplet whose values are stamps, with room for the keys of
//! a window and one step.

use super::{ExpiringFilter, WhenFull};
use crate::builder::{Builder, Grows, Settings};
use crate::error::BuildError;
use crate::image::clock::{Steps, groups};
use crate::image::shape::Shape;
use crate::image::{Clock, HEADER_BYTES, SECTIONS, sizing};
use crate::maplet::Maplet;
use crate::state::Body;
use crate::table::table_bytes;

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
        let (shape, steps) = shape(&self.settings)?;
        let clock = Clock::new(steps, self.settings.when_full == WhenFull::EvictOldest);
        let body = Body::expiring(shape, self.settings.profile(0), clock);
        Ok(ExpiringFilter { body: body.ok_or(BuildError::NoMemory)? })
    }

    /// Bytes of the empty filter, in memory and as a file. Allocates nothing.
    ///
    /// # Errors
    /// As [`build`](Self::build), without the one for memory.
    pub fn size_in_bytes(&self) -> Result<usize, BuildError> {
        let (shape, _) = shape(&self.settings)?;
        let table = table_bytes(shape.layout, shape.buckets()).unwrap_or(usize::MAX);
        let sweeps = usize::try_from(groups(shape.buckets())).unwrap_or(usize::MAX);
        let sweeps = sweeps.saturating_mul(SECTIONS[3]);
        Ok(table.saturating_add(sweeps).saturating_add(HEADER_BYTES))
    }
}

/// The shape of its table, and the steps of its window.
fn shape(settings: &Settings) -> Result<(Shape, Steps), BuildError> {
    let Settings { capacity, rate, window, steps, grow_from, .. } = *settings;
    let steps = Steps::of(window, steps).ok_or(BuildError::Window { window, steps })?;
    // The keys of the step that is only half over come on top of those of the window.
    let entries = |keys: u64| keys.saturating_add(keys.div_ceil(steps.count));
    let layouts = sizing::maplet_layouts(steps.stamp_bits)?;
    let shape = sizing::with_true_limit(capacity, |capacity| match grow_from {
        None => sizing::choose_maplet(layouts.clone(), entries(capacity), rate),
        Some(keys) => {
            let (first, layouts) = (keys.max(ExpiringFilter::LEAST), layouts.clone());
            sizing::choose_marked(layouts, entries(first), entries(capacity.max(first)), rate)
        }
    })?;
    Ok((shape, steps))
}
