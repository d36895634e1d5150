//! Makes a patch: finds what changed between two filters.
//!
//! Cost: O(buckets) of both filters; memory for the names of a segment of each, and 8 bytes for
//! each change.

use alloc::vec::Vec;

use super::bits::NoMemory;
use super::changes::Diff;
use super::error::PatchError;
use super::message::{self, Content, Digest, End};
use super::names::{Names, segments};
use crate::error::MergeError;
use crate::state::Body;

/// Refuses filters whose entries have different names, or whose settings differ otherwise.
pub(super) fn check_alike<B: AsRef<[u8]>, O: AsRef<[u8]>>(
    old: &Body<B>,
    new: &Body<O>,
) -> Result<(), PatchError> {
    if old.table.grows() || new.table.grows() {
        return Err(PatchError::Grown);
    }
    let [one, other] = [old.state.profile, new.state.profile];
    if one.capacity != other.capacity {
        return Err(PatchError::Sizes { old: one.capacity, new: other.capacity });
    }
    old.check_alike(new)?;
    MergeError::unless_alike([
        ("rate", one.rate.to_bits() == other.rate.to_bits()),
        ("counter limit", one.counter_limit == other.counter_limit),
        ("growth", one.growable == other.growable),
        ("application bytes", one.application == other.application),
        ("settings", old.settings() == new.settings()),
    ])?;
    Ok(())
}

/// The patch that makes `new` of `old`.
pub(super) fn make<B: AsRef<[u8]>, O: AsRef<[u8]>>(
    old: &Body<B>,
    new: &Body<O>,
    settings: u64,
) -> Result<Vec<u8>, NoMemory> {
    let (mut diffs, mut digests) = (<[Diff; 3]>::default(), <[Digest; 2]>::default());
    let ([names, stash, corrections], [one, other]) = (&mut diffs, &mut digests);
    let (mut old_names, mut new_names) = (Names::new(old)?, Names::new(new)?);
    for segment in segments(&old.table) {
        let note = Content::Names;
        names.read(
            old_names.of_segment(segment).inspect(|it| one.add(note, *it)),
            new_names.of_segment(segment).inspect(|it| other.add(note, *it)),
        )?;
    }
    let (ours, theirs) = (&old.state.side, &new.state.side);
    stash.read(
        ours.stashed_keys().inspect(|it| one.add(Content::Stash, *it)),
        theirs.stashed_keys().inspect(|it| other.add(Content::Stash, *it)),
    )?;
    corrections.read(
        ours.corrections.iter().inspect(|it| one.add(Content::Corrections, *it)),
        theirs.corrections.iter().inspect(|it| other.add(Content::Corrections, *it)),
    )?;
    let [old, new] = [old.state.len, new.state.len];
    let [one, other] = digests;
    message::write(
        settings,
        [End { digest: one, keys: old }, End { digest: other, keys: new }],
        &diffs,
    )
}
