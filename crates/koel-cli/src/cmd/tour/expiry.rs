//! The chapter of the tour on a filter whose entries expire.
#![forbid(unsafe_code)]

use koel::{ExpiringFilter, FullError};

use super::rate::{PROMISED_RATE, is_within};
use super::story::Story;
use crate::failure::Failure;
use crate::filter::sizing::build_failure;
use crate::quantity::grouped;

/// Ticks of the window; two windows pass while the list comes.
const WINDOW: u64 = 24;

/// Inserts the list in two windows of time.
pub(super) fn expire(story: &mut Story, list: &[String]) -> Result<(), Failure> {
    story.chapter(
        "Forgetting on time",
        "A filter may also forget each key after a time: \"was it seen within the last ten \
         minutes?\" The list comes as a stream that lasts for two windows.",
    )?;
    let keys = list.len() as u64;
    let builder = ExpiringFilter::builder(keys / 2, PROMISED_RATE).window(WINDOW);
    let mut seen = builder.build().map_err(|error| build_failure(&error))?;
    let tick = |number: usize| number as u64 * 2 * WINDOW / keys;
    let room = list.iter().enumerate().try_for_each(|(number, name)| {
        seen.advance(tick(number));
        seen.insert(name).map(|_| ())
    });
    story.promise(
        room == Ok::<(), FullError>(()),
        "a filter for n keys in a window takes n keys in every window",
    )?;
    let now = tick(list.len().saturating_sub(1));
    let (mut young, mut kept, mut old, mut left) = (0, 0, 0, 0);
    for (number, name) in list.iter().enumerate() {
        let (is_young, is_in) = (now - tick(number) <= WINDOW, seen.contains(name));
        young += usize::from(is_young);
        kept += usize::from(is_young && is_in);
        old += usize::from(!is_young);
        left += usize::from(!is_young && is_in);
    }
    story.say(&format!(
        "Of {} domains of the last window, {} are in; of {} older ones, {} (false positives). That \
         takes {:.1} bits per key of a window.",
        grouped(young as u64),
        grouped(kept as u64),
        grouped(old as u64),
        grouped(left as u64),
        seen.bits_per_key()
    ))?;
    story.promise(kept == young, "a key is in for its whole window")?;
    story.promise(is_within(left, old), "then it is forgotten")
}
