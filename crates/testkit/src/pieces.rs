//! Parts and pieces of unknown bytes: a fuzzer's input becomes the content of a message of a small
//! plan, with the right frame and checksums. What is accepted is joined to a filter, which has
//! every key of the part and takes whatever is done to it.
//!
//! Plans of several segments are for millions of keys: `filter/pieces/tests.rs` of the library has
//! small ones.

use koel::{CuckooFilter, FilterView, PieceError, PiecePlan};
use xxhash_rust::xxh3::xxh3_64;

use crate::exercise::{arbitrary_bytes, is_one_line};
use crate::keys::{self, at};
use crate::{image, seeds};

/// Bytes of the frame, of the number of keys in it, and of what comes before the checksum.
const FRAME: usize = 48;
const KEYS_AT: usize = 32;
const CHECKSUM_AT: usize = 40;

/// Tries bytes from a fuzzer as a message, and as the content of one. The first byte chooses the
/// plan and the kind of message, the next eight are the number of keys that the message says.
///
/// # Panics
/// If a message that is not sound is accepted, or what is joined misbehaves.
pub(crate) fn fuzzed_bytes(bytes: &[u8]) {
    let Some((&[first, ref keys @ ..], content)) = bytes.split_first_chunk::<9>() else { return };
    let plan = plan(first & 1 == 1);
    assert!(plan.build(0, [bytes]).is_err() && plan.join([bytes], None).is_err());
    if first & 2 == 0 { any_part(&plan, *keys, content) } else { any_piece(&plan, *keys, content) }
}

fn plan(unique: bool) -> PiecePlan {
    let builder = CuckooFilter::builder(20, 0.01).counter_limit(9);
    let plan = builder.pieces().expect("settings that can be built");
    if unique { plan.unique() } else { plan }
}

/// Addresses are those of the keys. A part is refused if one is cut short, or there are more than
/// it says.
fn any_part(plan: &PiecePlan, keys: [u8; 8], content: &[u8]) {
    let (addresses, rest) = content.as_chunks();
    let is_sound = rest.is_empty() && addresses.len() as u64 <= u64::from_le_bytes(keys);
    match plan.build(0, [part(plan, keys, content)]) {
        Ok(piece) => {
            let filter = joined(plan, piece.as_ref(), keys).expect("a piece that was built");
            let mut addresses = addresses.iter().map(|&address| at(u64::from_le_bytes(address)));
            assert!(is_sound && addresses.all(|key| filter.contains(&key)), "a member is lost");
        }
        Err(PieceError::Full { .. }) => assert!(is_sound && addresses.len() > 8),
        Err(error) => assert!(!is_sound && is_one_line(&error.to_string())),
    }
}

/// The content of a piece is the image of its segment.
fn any_piece(plan: &PiecePlan, keys: [u8; 8], content: &[u8]) {
    let mut content = content.to_vec();
    image::reseal(&mut content);
    let frame = plan.build(0, [] as [&[u8]; 0]).expect("an empty segment");
    match joined(plan, &sealed(frame.as_ref(), keys, &content), keys) {
        Ok(filter) => {
            let segment = FilterView::open(&content).expect("an image that was accepted");
            assert_eq!(
                [filter.len(), filter.slots_in_use()],
                [segment.len(), segment.slots_in_use()]
            );
            assert_eq!(filter.distinct_counters(), segment.distinct_counters());
        }
        Err(error) => assert!(is_one_line(&error.to_string())),
    }
}

/// The filter of a piece, which takes whatever is done to it.
fn joined(plan: &PiecePlan, piece: &[u8], keys: [u8; 8]) -> Result<CuckooFilter, PieceError> {
    let keys = u64::from_le_bytes(keys);
    let filter = plan.join([piece, piece], Some(keys))?;
    assert!(plan.join([piece], Some(keys ^ 1)).is_err());
    assert_eq!(arbitrary_bytes::<CuckooFilter>(&filter.to_bytes(), 12), Ok(()));
    Ok(filter)
}

/// A part of the only segment.
fn part(plan: &PiecePlan, keys: [u8; 8], content: &[u8]) -> Vec<u8> {
    let parts = plan.split(&[1_u64]).expect("memory for a key");
    sealed(parts[0].as_ref(), keys, content)
}

/// A message with the frame of another, which says so many keys.
fn sealed(frame: &[u8], keys: [u8; 8], content: &[u8]) -> Vec<u8> {
    let mut message = frame[..FRAME].to_vec();
    message[KEYS_AT..CHECKSUM_AT].copy_from_slice(&keys);
    message.extend_from_slice(content);
    let sum = xxh3_64(&[&message[..CHECKSUM_AT], content].concat());
    message[CHECKSUM_AT..FRAME].copy_from_slice(&sum.to_le_bytes());
    message
}

/// The inputs that fuzzing starts from: parts of few keys and of many, and pieces, some of which
/// have fields and records at their bounds.
#[must_use]
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let mut inputs = Vec::new();
    let mut pieces = Vec::new();
    for (first, count) in [(0, 0), (1, 3), (0, 12), (1, 40)] {
        let plan = plan(first == 1);
        // Every third address is there three times.
        let addresses = keys::hashes(8, count)
            .flat_map(|hash| [hash; 3].into_iter().take(if hash % 3 == 0 { 3 } else { 1 }));
        let content: Vec<u8> = addresses.flat_map(u64::to_le_bytes).collect();
        let keys = (content.len() as u64 / 8).to_le_bytes();
        inputs.push([&[first], &keys[..], &content].concat());
        let built = plan.build(0, [part(&plan, keys, &content)]);
        pieces.extend(built.map(|piece| piece.as_ref()[FRAME..].to_vec()));
    }
    pieces.extend(seeds::at_bounds::<CuckooFilter>(&pieces));
    let keys = u64::MAX.to_le_bytes();
    inputs.extend(pieces.iter().map(|piece| [&[2], &keys[..], piece].concat()));
    inputs
}
