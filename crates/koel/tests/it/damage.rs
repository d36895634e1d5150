//! Damaged files of every type: one harness for filters, counting and expiring filters, and
//! maplets. The files are small, so that *every* flip, cut and extension can be tried.

use koel::ImageError;
use testkit::image;

/// Reads the bytes of any file of a type, makes so many changes to what they hold, and checks that
/// type's promises: `arbitrary_bytes` in testkit.
pub(crate) type Read = fn(&[u8], u32) -> Result<(), ImageError>;

/// The bytes with one bit changed.
pub(crate) fn flipped(bytes: &[u8], bit: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[bit / 8] ^= 1 << (bit % 8);
    bytes
}

/// A flipped bit is detected; with valid checksums it is refused or harmless. Both outcomes must
/// occur: fields such as the seed may have any value, others may not.
pub(crate) fn assert_flips_are_refused_or_harmless(
    files: &[Vec<u8>],
    read: Read,
    operations: u32,
    least_accepted: usize,
) {
    let (mut accepted, mut refused) = (0, 0);
    for bytes in files {
        for bit in 0..8 * bytes.len() {
            let mut changed = flipped(bytes, bit);
            assert!(read(&changed, 0).is_err(), "bit {bit} is not detected");
            image::reseal(&mut changed);
            match read(&changed, operations) {
                Ok(()) => accepted += 1,
                Err(ImageError::Checksum { .. }) => panic!("bit {bit}: not sealed"),
                Err(_) => refused += 1,
            }
        }
    }
    let enough = accepted > least_accepted && refused > 1000;
    assert!(enough, "{accepted} accepted, {refused} refused");
}

/// Every file that is cut short is refused, as is one with a byte more.
pub(crate) fn assert_other_lengths_are_refused(files: &[Vec<u8>], read: Read) {
    for bytes in files {
        for end in 0..bytes.len() {
            let expected = match end {
                0 => ImageError::NotAFilter,
                1..image::HEADER_BYTES => {
                    ImageError::Length { expected: image::HEADER_BYTES as u64, got: end as u64 }
                }
                _ => ImageError::Length { expected: bytes.len() as u64, got: end as u64 },
            };
            assert_eq!(read(&bytes[..end], 0), Err(expected), "{end} bytes");
        }
        let expected = bytes.len() as u64;
        let error = ImageError::Length { expected, got: expected + 1 };
        for byte in 0..=u8::MAX {
            assert_eq!(read(&[&bytes[..], &[byte]].concat(), 0), Err(error));
        }
    }
}

/// A file of one type is refused by the others, and the error names both types.
pub(crate) fn assert_kind(refused: ImageError, asked: &'static str, found: &'static str) {
    assert_eq!(refused, ImageError::Kind { asked, found });
    let sentence = refused.to_string();
    assert!(sentence.contains(asked) && sentence.contains(found), "{sentence}");
}
