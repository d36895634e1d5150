//! Keys of several parts: tuples, and arrays of integers.
//!
//! * The bytes of a tuple are those of its elements, each after its length in eight little-endian
//!   bytes. So two tuples with different elements have different bytes: `("ab", "c")` is not
//!   `("a", "bc")`. A ready hash in a tuple counts as its eight little-endian bytes.
//! * The bytes of an array of integers are those of its elements, little-endian. They need no
//!   lengths, since the type fixes them.
//!
//! Cost: one copy of the bytes, on the stack up to [`SHORT`] bytes, and on the heap beyond.

use alloc::vec::Vec;

use super::{Key, KeyData};

/// The most bytes that are joined without an allocation.
const SHORT: usize = 128;

/// The bytes of a key of several parts.
struct Joined {
    short: [u8; SHORT],
    len: usize,
    /// All bytes, if there are more than [`SHORT`].
    long: Vec<u8>,
}

impl Joined {
    #[inline]
    fn new() -> Self {
        Self { short: [0; SHORT], len: 0, long: Vec::new() }
    }

    #[inline]
    fn push(&mut self, bytes: &[u8]) {
        let end = self.len.saturating_add(bytes.len());
        match self.short.get_mut(self.len..end) {
            Some(room) => room.copy_from_slice(bytes),
            None => self.push_long(bytes),
        }
        self.len = end;
    }

    #[cold]
    fn push_long(&mut self, bytes: &[u8]) {
        if self.long.is_empty() {
            self.long.extend_from_slice(&self.short[..self.len]);
        }
        self.long.extend_from_slice(bytes);
    }

    /// Adds the length of an element of a tuple, then its bytes.
    #[inline]
    fn push_element<K: Key>(&mut self, element: &K) {
        element.with(|data| match data {
            KeyData::Bytes(bytes) => {
                self.push(&(bytes.len() as u64).to_le_bytes());
                self.push(bytes);
            }
            KeyData::Hash(hash) => {
                self.push(&8_u64.to_le_bytes());
                self.push(&hash.get().to_le_bytes());
            }
        });
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        if self.len > SHORT { &self.long } else { &self.short[..self.len] }
    }
}

macro_rules! tuple_keys {
    ($(($($element:ident $index:tt)+))*) => {$(
        impl<$($element: Key),+> Key for ($($element,)+) {
            #[inline]
            fn with<R>(&self, read: impl FnOnce(KeyData<'_>) -> R) -> R {
                let mut joined = Joined::new();
                $(joined.push_element(&self.$index);)+
                read(KeyData::Bytes(joined.bytes()))
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
                let mut joined = Joined::new();
                self.iter().for_each(|integer| joined.push(&integer.to_le_bytes()));
                read(KeyData::Bytes(joined.bytes()))
            }
        }
    )*};
}

array_keys!(u16 u32 u64 u128 i8 i16 i32 i64 i128);

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn bytes<K: Key>(key: &K) -> Vec<u8> {
        key.with(|data| match data {
            KeyData::Bytes(bytes) => bytes.to_vec(),
            KeyData::Hash(_) => Vec::new(),
        })
    }

    #[test]
    fn keys_around_the_length_that_needs_an_allocation_are_complete() {
        for len in SHORT - 20..SHORT + 20 {
            let (first, second) = (vec![1_u8; len / 2], vec![2_u8; len - len / 2]);
            let length = |part: &Vec<u8>| (part.len() as u64).to_le_bytes().to_vec();
            let expected =
                [length(&first), first.clone(), length(&second), second.clone()].concat();
            assert_eq!(bytes(&(first, second)), expected, "{len}");
        }
        let expected: Vec<u8> = (0..100_u64).flat_map(u64::to_le_bytes).collect();
        assert_eq!(bytes(&core::array::from_fn::<u64, 100, _>(|i| i as u64)), expected);
    }
}
