//! Applies a patch: changes a copy of the filter, and checks what comes of it.

use alloc::vec::Vec;

use super::bits::NoMemory;
use super::changes::Changes;
use super::error::PatchError;
use super::message::{Content, Digest, End, Message};
use super::names::{Fixed, Names, fixed, last_of_segment, segments, slots_of_segment};
use crate::error::FullError;
use crate::mem::buffer::Buffer;
use crate::state::counters::{Counters, ReadCounters};
use crate::state::exact::{Exact, MOST, ReadExact};
use crate::state::{Body, Writer};

/// The body that the patch makes of this one.
pub(super) fn apply<B: AsRef<[u8]>, C: ReadCounters<Owned = Counters>>(
    body: &Body<B, C>,
    patch: Message<'_>,
) -> Result<Body<Buffer, Counters>, PatchError> {
    let base = fixed(body)?;
    if patch.settings != body.settings() {
        return Err(PatchError::OtherSettings);
    }
    let found = End { digest: digest(base)?, keys: body.state.len };
    if found != patch.old {
        let wrong = PatchError::WrongBase { expected: patch.old.keys, found: found.keys };
        return Err(if found == patch.new { PatchError::Applied } else { wrong });
    }
    let mut patched = body.copy()?;
    let [mut names, mut stash, mut corrections] = patch.changes;
    change_names(base, &mut patched, &mut names)?;
    change_exact(base, &mut patched, [&mut stash, &mut corrections])?;
    let are_done = [&names, &stash, &corrections].into_iter().all(Changes::are_done);
    let made = End { digest: digest(fixed(&patched)?)?, keys: patched.state.len };
    if are_done && made == patch.new { Ok(patched) } else { Err(PatchError::Forged) }
}

/// The digest of a filter.
fn digest<B: AsRef<[u8]>, C: ReadCounters>(of: Fixed<'_, B, C>) -> Result<Digest, NoMemory> {
    let (mut digest, mut names) = (Digest::default(), Names::new(of)?);
    for segment in segments(of.table) {
        names.of_segment(segment).for_each(|name| digest.add(Content::Names, name));
    }
    let exact = &of.state.exact;
    exact.stash().for_each(|key| digest.add(Content::Stash, key));
    exact.corrections().for_each(|address| digest.add(Content::Corrections, (address, 1)));
    Ok(digest)
}

/// Takes entries out and adds others, a segment at a time: a segment has room for what is new once
/// what is gone has left it.
fn change_names<B: AsRef<[u8]>, C: ReadCounters>(
    base: Fixed<'_, B, C>,
    patched: &mut Body<Buffer, Counters>,
    changes: &mut Changes<'_>,
) -> Result<(), PatchError> {
    let (mut names, most) = (Names::new(base)?, slots_of_segment(base.table));
    let table = patched.buckets.fixed_mut().ok_or(PatchError::Grown)?;
    let mut writer = Writer { table, state: &mut patched.state };
    let mut added: Vec<(u64, u64)> = Vec::new();
    for segment in segments(base.table) {
        let last = last_of_segment(base.table, segment);
        changes.apply(names.of_segment(segment), last, |name, [before, after]| {
            if before == after {
                return Ok(());
            }
            if before > 0 {
                writer.take_entry(name);
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
            if !writer.put_entry(name, copies)? {
                return Err(PatchError::Forged);
            }
        }
    }
    Ok(())
}

/// Changes the stash and the corrections.
fn change_exact<B: AsRef<[u8]>, C: ReadCounters>(
    base: Fixed<'_, B, C>,
    patched: &mut Body<Buffer, Counters>,
    [stash, corrections]: [&mut Changes<'_>; 2],
) -> Result<(), PatchError> {
    let (exact, slots) = (&base.state.exact, patched.slots());
    let counters = patched.state.profile.counter_limit;
    // No more than keys that are inserted or refuted can have: the patch does not decide.
    let most = counters.max(exact.lens()[0]).min(MOST);
    let too_many = FullError::Counters { limit: most };
    let mut answers = changed(stash, exact.stash(), most, too_many, Vec::new())?;
    let copies = answers.iter().try_fold(0_u64, |sum, (_, copies)| sum.checked_add(*copies));
    let copies = copies.ok_or(PatchError::Full(FullError::Overflow))?;
    let first = answers.len();
    let before = exact.corrections().map(|address| (address, 1));
    let most = slots.max(exact.lens()[1]).min(MOST);
    let too_many = FullError::Corrections { limit: most };
    answers = changed(corrections, before, most, too_many, answers)?;
    answers[first..].iter_mut().for_each(|(_, copies)| *copies = 0);
    patched.state.exact = Exact::of(answers).ok_or(PatchError::NoMemory)?;
    let stashed = exact.stash().fold(0, |sum: u64, (_, copies)| sum.saturating_add(copies));
    let len = patched.state.len.checked_sub(stashed);
    let len = len.and_then(|in_table| in_table.checked_add(copies));
    patched.state.len = len.ok_or(PatchError::Full(FullError::Overflow))?;
    Ok(())
}

/// Appends what the changes make of a list to `answers`: at most so many keys.
fn changed(
    changes: &mut Changes<'_>,
    before: impl Iterator<Item = (u64, u64)>,
    most: u64,
    too_many: FullError,
    mut answers: Vec<(u64, u64)>,
) -> Result<Vec<(u64, u64)>, PatchError> {
    let first = answers.len();
    changes.apply(before, u64::MAX, |address, [_, after]| {
        if after > 0 {
            if (answers.len() - first) as u64 >= most {
                return Err(PatchError::from(too_many));
            }
            answers.try_reserve(1).map_err(|_| PatchError::NoMemory)?;
            answers.push((address, after));
        }
        Ok(())
    })?;
    Ok(answers)
}
