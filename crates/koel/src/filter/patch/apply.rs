//! Applies a patch: changes a copy of the filter, and checks what comes of it.

use alloc::vec::Vec;

use super::bits::NoMemory;
use super::changes::Changes;
use super::error::PatchError;
use super::message::{Content, Digest, End, Message};
use super::names::{Names, check, last_of_segment, segments, slots_of_segment, whole};
use crate::error::FullError;
use crate::mem::buffer::Buffer;
use crate::side::{Counters, MOST_ANSWERS};
use crate::state::Body;

/// The body that the patch makes of this one.
pub(super) fn apply<B: AsRef<[u8]>>(
    body: &Body<B>,
    patch: Message<'_>,
) -> Result<Body<Buffer>, PatchError> {
    check(body)?;
    if patch.settings != body.settings() {
        return Err(PatchError::OtherSettings);
    }
    let found = End { digest: digest(body)?, keys: body.state.len };
    if found != patch.old {
        let wrong = PatchError::WrongBase { expected: patch.old.keys, found: found.keys };
        return Err(if found == patch.new { PatchError::Applied } else { wrong });
    }
    let mut patched = body.copy()?;
    let [mut names, mut stash, mut corrections] = patch.changes;
    change_names(body, &mut patched, &mut names)?;
    change_exact(body, &mut patched, [&mut stash, &mut corrections])?;
    let are_done = [&names, &stash, &corrections].into_iter().all(Changes::are_done);
    let made = End { digest: digest(&patched)?, keys: patched.state.len };
    if are_done && made == patch.new { Ok(patched) } else { Err(PatchError::Forged) }
}

/// The digest of a filter.
fn digest<B: AsRef<[u8]>>(of: &Body<B>) -> Result<Digest, NoMemory> {
    let (mut digest, mut names) = (Digest::default(), Names::new(of)?);
    for segment in segments(&of.table) {
        names.of_segment(segment).for_each(|name| digest.add(Content::Names, name));
    }
    let side = &of.state.side;
    side.stashed_keys().for_each(|key| digest.add(Content::Stash, key));
    side.corrections.iter().for_each(|key| digest.add(Content::Corrections, key));
    Ok(digest)
}

/// Takes entries out and adds others, a segment at a time: a segment has room for what is new once
/// what is gone has left it.
fn change_names<B: AsRef<[u8]>>(
    base: &Body<B>,
    patched: &mut Body<Buffer>,
    changes: &mut Changes<'_>,
) -> Result<(), PatchError> {
    let (mut names, most) = (Names::new(base)?, slots_of_segment(&base.table));
    let mut added: Vec<(u64, u64)> = Vec::new();
    for segment in segments(&base.table) {
        let last = last_of_segment(&base.table, segment);
        changes.apply(names.of_segment(segment), last, |name, [before, after]| {
            if before == after {
                return Ok(());
            }
            let name = whole(&base.table, name).ok_or(PatchError::Forged)?;
            if before > 0 {
                patched.take_entry(name);
            }
            if after > 0 {
                // More entries than slots cannot be in any filter.
                if added.len() == most {
                    return Err(PatchError::Forged);
                }
                added.try_reserve(1).map_err(|_| PatchError::NoMemory)?;
                added.push((name, after));
            }
            Ok(())
        })?;
        for (name, copies) in added.drain(..) {
            if !patched.put_entry(name, copies)? {
                return Err(PatchError::Forged);
            }
        }
    }
    Ok(())
}

/// Changes the stash and the corrections.
fn change_exact<B: AsRef<[u8]>>(
    base: &Body<B>,
    patched: &mut Body<Buffer>,
    [stash, corrections]: [&mut Changes<'_>; 2],
) -> Result<(), PatchError> {
    let (side, slots) = (&base.state.side, patched.slots());
    // No more than keys that are inserted or refuted can have: the patch does not decide.
    let most = patched.state.profile.counter_limit.max(side.stash.len()).min(MOST_ANSWERS);
    let stash = changed(stash, side.stashed_keys(), most, FullError::Counters { limit: most })?;
    let most = slots.max(side.corrections.len()).min(MOST_ANSWERS);
    let too_many = FullError::Corrections { limit: most };
    let corrections = changed(corrections, side.corrections.iter(), most, too_many)?;
    let copies = stash.iter().try_fold(0_u64, |sum, &(_, copies)| sum.checked_add(copies));
    let copies = copies.ok_or(PatchError::Full(FullError::Overflow))?;
    let new = &mut patched.state.side;
    new.stash = stash.into_iter().map(|(address, copies)| ((address, 0), copies)).collect();
    new.corrections = corrections.into_iter().collect();
    if new.corrections.iter().any(|(address, _)| new.stashed(address) > 0) {
        return Err(PatchError::Forged);
    }
    let stashed = side.stashed_keys().fold(0, |sum: u64, (_, copies)| sum.saturating_add(copies));
    let len = patched.state.len.checked_sub(stashed);
    let len = len.and_then(|in_table| in_table.checked_add(copies));
    patched.state.len = len.ok_or(PatchError::Full(FullError::Overflow))?;
    Ok(())
}

/// What the changes make of a list: at most so many records.
fn changed(
    changes: &mut Changes<'_>,
    before: impl Iterator<Item = (u64, u64)>,
    most: u64,
    too_many: FullError,
) -> Result<Vec<(u64, u64)>, PatchError> {
    let mut answers = Vec::new();
    changes.apply(before, u64::MAX, |address, [_, after]| {
        if after > 0 {
            if answers.len() as u64 >= most {
                return Err(PatchError::from(too_many));
            }
            answers.try_reserve(1).map_err(|_| PatchError::NoMemory)?;
            answers.push((address, after));
        }
        Ok(())
    })?;
    if Counters::fit(answers.len() as u64) { Ok(answers) } else { Err(PatchError::NoMemory) }
}
