//! Chunks compressed with zstd.
//!
//! A compressed chunk is stored under the hash of its plain bytes, with another key. Its value is
//! its plain length (u32) and a zstd frame. The length is limited before memory is taken.

use zstd::bulk::{Compressor, decompress};

/// The longest chunk.
const MAX_CHUNK: usize = 16 << 20;

/// Returns the value for a chunk, or `None` if it would not save an eighth.
pub(super) fn pack(compressor: &mut Compressor<'_>, chunk: &[u8]) -> Option<Vec<u8>> {
    let length = u32::try_from(chunk.len()).ok()?;
    let frame = compressor.compress(chunk).ok()?;
    let is_smaller = frame.len() + 4 <= chunk.len() - chunk.len() / 8;
    is_smaller.then(|| [&length.to_le_bytes()[..], &frame].concat())
}

/// Returns the chunk in a value, or `None` if it is not valid.
pub(super) fn unpack(value: &[u8]) -> Option<Vec<u8>> {
    let (length, frame) = value.split_first_chunk()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    if length > MAX_CHUNK {
        return None;
    }
    decompress(frame, length).ok().filter(|chunk| chunk.len() == length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_unpacked_as_they_were_and_noise_is_not_packed() {
        let mut compressor = Compressor::new(3).unwrap();
        for length in [16, 17, 1000, 16 << 10, MAX_CHUNK] {
            let chunk = vec![7; length];
            if let Some(packed) = pack(&mut compressor, &chunk) {
                assert!(packed.len() < length && unpack(&packed).as_deref() == Some(&chunk[..]));
            }
        }
        let mut noise = vec![0; 16 << 10];
        blake3::Hasher::new().finalize_xof().fill(&mut noise);
        assert_eq!(pack(&mut compressor, &noise), None);
        assert_eq!(pack(&mut compressor, b""), None);
    }

    #[test]
    fn values_of_unknown_origin_are_refused_without_taking_memory() {
        let packed = pack(&mut Compressor::new(3).unwrap(), &[7; 10_000]).unwrap();
        for end in 0..packed.len() {
            assert_eq!(unpack(&packed[..end]), None, "{end}");
        }
        for length in [0_u32, 9_999, 10_001, u32::MAX] {
            let wrong = [&length.to_le_bytes()[..], &packed[4..]].concat();
            assert_eq!(unpack(&wrong), None, "{length}");
        }
    }
}
