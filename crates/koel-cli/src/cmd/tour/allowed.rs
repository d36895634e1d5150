//! The chapter of the tour on known mistakes: a million allowed names beside the list.
#![forbid(unsafe_code)]

use koel::CuckooFilter;

use super::story::Story;
use crate::failure::Failure;
use crate::quantity::{bytes, counted, grouped};

pub(super) fn refute(
    story: &mut Story,
    mut filter: CuckooFilter,
    list: &[String],
    absent: &[String],
) -> Result<(), Failure> {
    story.chapter(
        "Known mistakes",
        "The million absent names are names that must never be reported. The filter is told so: \
         those that it reports get a correction each (koel build --never, koel refute).",
    )?;
    let size = filter.size_in_bytes();
    let wrong = absent.iter().filter(|name| filter.contains(name.as_str())).count() as u64;
    let refuted = filter.refute_many(absent);
    let more = filter.size_in_bytes() - size;
    story.say(&format!(
        "{} names need {}, which take {}.",
        grouped(absent.len() as u64),
        counted(filter.corrections(), "correction"),
        bytes(more as u64)
    ))?;
    let reported = absent.iter().filter(|name| filter.contains(name.as_str())).count();
    let missed = list.iter().filter(|name| !filter.contains(name.as_str())).count();
    let is_exact = refuted == Ok(wrong) && more as u64 == 8 * wrong;
    story.promise(
        is_exact && reported == 0 && missed == 0,
        "none of them is reported any more, no member is missed, and each takes 8 bytes",
    )
}
