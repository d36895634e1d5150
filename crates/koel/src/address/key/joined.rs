//! Keys of several parts: tuples, arrays of integers, and what a type gives to a hasher.
//!
//! * The bytes of a tuple are those of its elements, each after its length in eight little-endian
//!   bytes. So two tuples with different elements have different bytes: `("ab", "c")` is not
//!   `("a", "bc")`. A ready hash in a tuple counts as its eight little-endian bytes.
//! * The bytes of an array of integers are those of its elements, little-endian. They need no
//!   lengths, since the type fixes them.
//!
//! Up to [`SHORT`] bytes are copied to the stack and hashed at once. Longer keys are hashed part by
//! part, so no key allocates.
//!
//! Cost: one copy of a short key. A long key is read twice, and each nested tuple once more.

use core::fmt;
use core::hash::{Hash, Hasher};

use super::{Key, KeyData};

/// The most bytes that are joined on the stack.
const SHORT: usize = 128;

/// A loop over the parts of a key, which calls its argument with each.
type ForEachPart<'a> = dyn Fn(&mut dyn FnMut(&[u8])) + 'a;

/// The bytes of a long key, part by part.
#[derive(Clone, Copy)]
pub struct KeyParts<'a> {
    len: usize,
    for_each: &'a ForEachPart<'a>,
}

impl KeyParts<'_> {
    /// Number of bytes of all parts.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "short keys have one part, so none is empty")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Calls `read` with each part, in order. Only their bytes matter, not where a part ends.
    pub fn for_each(&self, mut read: impl FnMut(&[u8])) {
        (self.for_each)(&mut read);
    }
}

impl fmt::Debug for KeyParts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyParts").field("len", &self.len).finish_non_exhaustive()
    }
}

/// The bytes of a key of several parts, up to [`SHORT`] of them, and their number.
struct Joined {
    bytes: [u8; SHORT],
    len: usize,
}

impl Joined {
    #[inline]
    fn new() -> Self {
        Self { bytes: [0; SHORT], len: 0 }
    }

    #[inline]
    fn push(&mut self, part: &[u8]) {
        let end = self.len.saturating_add(part.len());
        if let Some(room) = self.bytes.get_mut(self.len..end) {
            room.copy_from_slice(part);
        }
        self.len = end;
    }

    #[inline]
    fn is_complete(&self) -> bool {
        self.len <= SHORT
    }

    /// The first bytes: all of them, if they are complete.
    #[inline]
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len.min(SHORT)]
    }
}

/// Calls `read` with the length of an element of a tuple, then with its bytes.
#[inline]
fn read_element<K: Key>(element: &K, mut read: impl FnMut(&[u8])) {
    element.with(|data| match data {
        KeyData::Bytes(bytes) => {
            read(&(bytes.len() as u64).to_le_bytes());
            read(bytes);
        }
        KeyData::Parts(parts) => {
            read(&(parts.len() as u64).to_le_bytes());
            parts.for_each(read);
        }
        KeyData::Hash(hash) => {
            read(&8_u64.to_le_bytes());
            read(&hash.get().to_le_bytes());
        }
    });
}

macro_rules! tuple_keys {
    ($(($($element:ident $index:tt)+))*) => {$(
        impl<$($element: Key),+> Key for ($($element,)+) {
            #[inline]
            fn with<R>(&self, read: impl FnOnce(KeyData<'_>) -> R) -> R {
                let mut joined = Joined::new();
                $(read_element(&self.$index, |part| joined.push(part));)+
                if joined.is_complete() {
                    return read(KeyData::Bytes(joined.bytes()));
                }
                read(KeyData::Parts(KeyParts {
                    len: joined.len,
                    for_each: &|read| { $(read_element(&self.$index, &mut *read);)+ },
                }))
            }
        }
    )*};
}

tuple_keys! {
    (A 0)
    (A 0 B 1)
    (A 0 B 1 C 2)
    (A 0 B 1 C 2 D 3)
    (A 0 B 1 C 2 D 3 E 4)
    (A 0 B 1 C 2 D 3 E 4 F 5)
}

macro_rules! array_keys {
    ($($integer:ty)*) => {$(
        impl<const N: usize> Key for [$integer; N] {
            #[inline]
            fn with<R>(&self, read: impl FnOnce(KeyData<'_>) -> R) -> R {
                self.as_slice().with(read)
            }
        }

        impl Key for [$integer] {
            #[inline]
            fn with<R>(&self, read: impl FnOnce(KeyData<'_>) -> R) -> R {
                let join = |integers: &[$integer]| {
                    let mut joined = Joined::new();
                    integers.iter().for_each(|integer| joined.push(&integer.to_le_bytes()));
                    joined
                };
                let mut parts = self.chunks(SHORT / size_of::<$integer>());
                if parts.len() <= 1 {
                    let joined = join(parts.next().unwrap_or_default());
                    return read(KeyData::Bytes(joined.bytes()));
                }
                read(KeyData::Parts(KeyParts {
                    len: size_of_val(self),
                    for_each: &|read| parts.clone().for_each(|part| read(join(part).bytes())),
                }))
            }
        }
    )*};
}

array_keys!(u16 u32 u64 u128 i8 i16 i32 i64 i128);

/// A value of any type with [`Hash`], as a key: the bytes that it gives to a hasher.
///
/// Equal values are equal keys, as in a `HashSet`, in **one build of one program**: `derive(Hash)`
/// and the standard library may give other bytes in the next version, and on another machine. Do
/// not save such a filter, or implement [`Key`] for the type.
///
/// ```
/// use koel::{CuckooFilter, HashedKey};
///
/// #[derive(Hash)]
/// enum Event { Joined { user: u64 }, Left }
///
/// let mut seen = CuckooFilter::with_capacity(100);
/// seen.insert(&HashedKey(Event::Joined { user: 7 }))?;
/// assert!(seen.contains(&HashedKey(Event::Joined { user: 7 })));
/// assert!(!seen.contains(&HashedKey(Event::Left)));
/// # Ok::<(), koel::FullError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HashedKey<T>(pub T);

impl<T: Hash> Key for HashedKey<T> {
    fn with<R>(&self, read: impl FnOnce(KeyData<'_>) -> R) -> R {
        let mut joined = Joined::new();
        self.0.hash(&mut Written(|part: &[u8]| joined.push(part)));
        if joined.is_complete() {
            return read(KeyData::Bytes(joined.bytes()));
        }
        let for_each: &ForEachPart<'_> =
            &|read| self.0.hash(&mut Written(|part: &[u8]| read(part)));
        read(KeyData::Parts(KeyParts { len: joined.len, for_each }))
    }
}

/// A hasher that passes on what is written to it.
struct Written<F>(F);

impl<F: FnMut(&[u8])> Hasher for Written<F> {
    fn write(&mut self, bytes: &[u8]) {
        (self.0)(bytes);
    }

    /// Not asked for: the filter hashes the bytes.
    fn finish(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KeyHasher;
    use alloc::vec::Vec;
    use testkit::keys::splitmix64;

    fn bytes<K: Key>(key: &K) -> Vec<u8> {
        key.with(|data| match data {
            KeyData::Bytes(bytes) => bytes.to_vec(),
            KeyData::Parts(parts) => {
                let mut bytes = Vec::new();
                parts.for_each(|part| bytes.extend_from_slice(part));
                assert!(bytes.len() == parts.len() && bytes.len() > SHORT, "{parts:?}");
                bytes
            }
            KeyData::Hash(hash) => hash.get().to_le_bytes().to_vec(),
        })
    }

    /// The key's hash must be that of `expected`, whether or not it is hashed part by part.
    fn assert_bytes<K: Key>(key: &K, expected: &[u8]) {
        assert_eq!(bytes(key), expected);
        for hasher in [KeyHasher::Xxh3 { seed: 7 }, KeyHasher::Sip13 { key: [7; 16] }] {
            assert_eq!(hasher.hash(key), hasher.hash(expected), "{} bytes", expected.len());
        }
    }

    fn with_length(part: &[u8]) -> Vec<u8> {
        [&(part.len() as u64).to_le_bytes(), part].concat()
    }

    #[test]
    fn keys_of_every_length_have_the_bytes_and_the_hash_of_their_parts() {
        let text: Vec<u8> = (0..=u8::MAX).cycle().take(2000).collect();
        for len in (0..400).chain([511, 512, 513, 1024, 1999]) {
            let (first, second) = text[..len].split_at(len / 3);
            let pair = [with_length(first), with_length(second)].concat();
            assert_bytes(&(first.to_vec(), second.to_vec()), &pair);
            let nested = [with_length(&pair), with_length(b"x")].concat();
            assert_bytes(&((first.to_vec(), second.to_vec()), "x"), &nested);
        }
    }

    #[test]
    fn arrays_of_integers_have_their_bytes_around_the_length_of_a_part() {
        fn check<const N: usize>() {
            let integers = core::array::from_fn::<u64, N, _>(|i| splitmix64(i as u64));
            assert_bytes(&integers, &integers.map(u64::to_le_bytes).concat());
            let halves = integers.map(|integer| u16::try_from(integer >> 48).unwrap());
            assert_bytes(&halves, &halves.map(u16::to_le_bytes).concat());
        }
        check::<0>();
        check::<15>();
        check::<16>();
        check::<17>();
        check::<64>();
        check::<65>();
        check::<300>();
    }
}
