//! Applies a patch: changes a copy of the filter, and checks what comes of it.

use alloc::vec::Vec;

use super::changes::Changes;
use super::error::PatchError;
use super::message::{Content, Digest, End, Message};
use super::numbers::Numbers;
use crate::error::FullError;
use crate::image::SECTIONS;
use crate::mem::buffer::Buffer;
use crate::side::{Counters, MOST_ANSWERS};
use crate::state::Body;
use crate::state::runs::each_run;
use crate::table::table_bytes;

/// The body that the patch makes of this one.
pub(super) fn apply<B: AsRef<[u8]> + Sync>(
    body: &Body<B>,
    patch: Message<'_>,
) -> Result<Body<Buffer>, PatchError> {
    body.require_sound()?;
    if patch.settings != body.settings() {
        return Err(PatchError::OtherSettings);
    }
    let found = End { digest: digest(body), keys: body.state.len };
    if found != patch.old {
        let wrong = PatchError::WrongBase { expected: patch.old.keys, found: found.keys };
        return Err(if found == patch.new { PatchError::Applied } else { wrong });
    }
    let numbers = Numbers::of(body, patch.buckets).ok_or(PatchError::Forged)?;
    // What a patch made may grow where the filter that it was made for does not.
    let grows = body.table.grows() || patch.buckets > 0;
    let buckets = patch.buckets.max(body.table.base().buckets());
    if grows {
        check_room(body, buckets, &patch)?;
    }
    let [mut entries, mut stash, mut corrections] = patch.changes;
    let mut patched = if grows {
        let mut patched = body.grown_to(buckets).ok_or(PatchError::NoMemory)?;
        build(body, &mut patched, numbers, &mut entries)?;
        patched
    } else {
        let mut patched = body.copy()?;
        change_entries(body, &mut patched, numbers, &mut entries)?;
        patched
    };
    change_exact(body, &mut patched, patch.room, [&mut stash, &mut corrections])?;
    let held = u64::try_from(patched.held()).map_err(|_| PatchError::Full(FullError::Overflow))?;
    // Growth leaves copies that belong to no key.
    patched.state.len = if grows { held.min(patch.new.keys) } else { held };
    let are_done = [&entries, &stash, &corrections].into_iter().all(Changes::are_done);
    let made = End { digest: digest(&patched), keys: patched.state.len };
    if are_done && made == patch.new { Ok(patched) } else { Err(PatchError::Forged) }
}

/// The digest of a filter.
fn digest<B: AsRef<[u8]> + Sync>(of: &Body<B>) -> Digest {
    let (mut digest, side) = (Digest::default(), &of.state.side);
    let addresses = of.table.addresses();
    for segment in 0..1 << addresses.base().segment_bits() {
        of.table.each_order(segment, 0, |orders, _| {
            orders.iter().for_each(|&order| digest.add(Content::Entries, (order, 1)));
        });
    }
    for (name, beyond) in side.counters.iter() {
        let order = addresses.named(name).map_or(0, |prefix| addresses.order(&prefix));
        digest.add(Content::Entries, (order, beyond));
    }
    side.stashed_keys().for_each(|key| digest.add(Content::Stash, key));
    side.corrections.iter().for_each(|key| digest.add(Content::Corrections, key));
    digest
}

/// Takes entries out and adds others, a cut at a time: a cut has room for what is new once what is
/// gone has left it.
fn change_entries<B: AsRef<[u8]> + Sync>(
    base: &Body<B>,
    patched: &mut Body<Buffer>,
    numbers: Numbers,
    changes: &mut Changes<'_>,
) -> Result<(), PatchError> {
    let most = usize::try_from(base.slots()).unwrap_or(usize::MAX);
    let mut added: Vec<(u64, u64)> = Vec::new();
    each_entry(base, numbers, changes, |change| {
        let Some((order, [before, after])) = change else {
            for (order, copies) in added.drain(..) {
                if !patched.put_entry(order, copies)? {
                    return Err(PatchError::Forged);
                }
            }
            return Ok(());
        };
        if before != after && before > 0 {
            patched.take_entry(order);
        }
        if before != after && after > 0 {
            // More entries than slots cannot be in any filter.
            if added.len() == most {
                return Err(PatchError::Forged);
            }
            added.try_reserve(1).map_err(|_| PatchError::NoMemory)?;
            added.push((order, after));
        }
        Ok(())
    })
}

/// Builds the new filter from all its entries. So its bytes depend on these alone, however the old
/// one has grown. All entries have a slot before a copy gets a second one.
fn build<B: AsRef<[u8]> + Sync>(
    base: &Body<B>,
    patched: &mut Body<Buffer>,
    numbers: Numbers,
    changes: &mut Changes<'_>,
) -> Result<(), PatchError> {
    let (mut again, mut repeats) = (changes.clone(), false);
    each_entry(base, numbers, changes, |change| match change {
        Some((order, [_, after])) if after > 0 => {
            repeats |= after > 1;
            if patched.put_whole(order)? { Ok(()) } else { Err(PatchError::Forged) }
        }
        _ => Ok(()),
    })?;
    if !repeats {
        return Ok(());
    }
    each_entry(base, numbers, &mut again, |change| match change {
        Some((order, [_, after])) => Ok(patched.add_to_whole(order, after.saturating_sub(1))?),
        None => Ok(()),
    })
}

/// Refuses a filter that is larger than the old one by more than the bytes of the patch make room
/// for: nobody decides with a few bytes how much memory is taken.
fn check_room<B: AsRef<[u8]> + Sync>(
    base: &Body<B>,
    buckets: u64,
    patch: &Message<'_>,
) -> Result<(), PatchError> {
    let [gone, added, _] = patch.lens[0];
    let entries = base.state.entries.saturating_sub(gone).saturating_add(added);
    let of_base = base.table.buckets().max(base.table.base().buckets());
    let layout = base.layout_to_grow_in().ok_or(PatchError::Forged)?;
    let most = table_bytes(layout, of_base).map(|bytes| bytes.saturating_add(patch.room));
    if table_bytes(layout, buckets).is_some_and(|bytes| Some(bytes) <= most) {
        Ok(())
    } else {
        Err(PatchError::Sparse { entries, buckets })
    }
}

/// Calls `visit` with each entry of the old and of the new filter: its order, and its copies before
/// and after; and with `None` after each cut.
fn each_entry<B: AsRef<[u8]> + Sync>(
    base: &Body<B>,
    numbers: Numbers,
    changes: &mut Changes<'_>,
    mut visit: impl FnMut(Option<(u64, [u64; 2])>) -> Result<(), PatchError>,
) -> Result<(), PatchError> {
    each_run(base, |cut, run| {
        changes.apply(numbers.of_run(run), numbers.last(cut), |number, copies| {
            let order = numbers.order(number).ok_or(PatchError::Forged)?;
            visit(Some((order, copies)))
        })?;
        visit(None)
    })
}

/// Changes the stash and the corrections.
fn change_exact<B: AsRef<[u8]> + Sync>(
    base: &Body<B>,
    patched: &mut Body<Buffer>,
    room: usize,
    [stash, corrections]: [&mut Changes<'_>; 2],
) -> Result<(), PatchError> {
    let side = &base.state.side;
    // No more than keys that are inserted or refuted can have: the patch does not decide.
    let in_room = side.stash.len().saturating_add((room / SECTIONS[1]) as u64);
    let limit = patched.state.profile.counter_limit.max(side.stash.len());
    let most = limit.min(in_room).min(MOST_ANSWERS);
    let stash = changed(stash, side.stashed_keys(), most, FullError::Counters { limit: most })?;
    let most = patched.most_corrections();
    let too_many = FullError::Corrections { limit: most };
    let corrections = changed(corrections, side.corrections.iter(), most, too_many)?;
    let new = &mut patched.state.side;
    new.stash = stash.into_iter().map(|(address, copies)| ((address, 0), copies)).collect();
    new.corrections = corrections.into_iter().collect();
    if new.corrections.iter().any(|(address, _)| new.stashed(address) > 0) {
        return Err(PatchError::Forged);
    }
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
