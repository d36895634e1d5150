//! Iterators over a map: by reference, by value, and emptying it.
//!
//! All walk over the slots, then over the overflow: O(slots), however few are in use. The order
//! follows from the hashes and means nothing for the keys.

use alloc::vec;
use core::iter::{Chain, FusedIterator};
use core::{fmt, mem, slice};

use super::CuckooMap;
use super::buckets::{Buckets, Slot};

/// What all iterators have in common: an exact length, nothing after the end, and a `Debug` that
/// shows the length.
macro_rules! exact {
    ($name:ident<$($parameter:tt),*>, $($generics:tt)*) => {
        impl<$($generics)*> ExactSizeIterator for $name<$($parameter),*> {}

        impl<$($generics)*> FusedIterator for $name<$($parameter),*> {}

        impl<$($generics)*> fmt::Debug for $name<$($parameter),*> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let left = self.size_hint().0;
                f.debug_struct(stringify!($name)).field("left", &left).finish_non_exhaustive()
            }
        }
    };
}

/// Defines an iterator over slots and overflow: `$read` takes the entry of a slot, `$item` makes an
/// item of it.
macro_rules! iterators {
    ($(
        $(#[$attribute:meta])*
        $name:ident<$($life:lifetime)?> over $slots:ty,
        $read:expr, |$stored:ident| $item:expr => $type:ty;
    )*) => {$(
        $(#[$attribute])*
        pub struct $name<$($life,)? K, V> {
            slots: Chain<$slots, $slots>,
            left: usize,
        }

        impl<$($life,)? K, V> Iterator for $name<$($life,)? K, V> {
            type Item = $type;

            #[inline]
            fn next(&mut self) -> Option<Self::Item> {
                let $stored = self.slots.find_map($read)?;
                self.left -= 1;
                Some($item)
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                (self.left, Some(self.left))
            }
        }

        exact!($name<$($life,)? K, V>, $($life,)? K, V);
    )*};
}

iterators! {
    /// The entries of a map: [`CuckooMap::iter`] returns it.
    Iter<'a> over slice::Iter<'a, Slot<K, V>>,
        Option::as_ref, |stored| (&stored.key, &stored.value) => (&'a K, &'a V);
    /// The entries of a map, with mutable values: [`CuckooMap::iter_mut`] returns it.
    IterMut<'a> over slice::IterMut<'a, Slot<K, V>>,
        Option::as_mut, |stored| (&stored.key, &mut stored.value) => (&'a K, &'a mut V);
    /// The entries of a map, by value.
    IntoIter<> over vec::IntoIter<Slot<K, V>>,
        |slot| slot, |stored| (stored.key, stored.value) => (K, V);
}

/// The entries that leave a map, which keeps its memory: [`CuckooMap::drain`] returns it.
///
/// Dropping it drops the entries that are left. Leaking it leaks them and the memory of the map,
/// which is empty then.
pub struct Drain<'a, K, V, const HASHES: usize = 2, const SLOTS: usize = 4> {
    map: &'a mut Buckets<K, V, HASHES, SLOTS>,
    /// The table of the map, which has none meanwhile.
    taken: Buckets<K, V, HASHES, SLOTS>,
    /// The positions of the entries that are left are below this.
    end: usize,
}

impl<'a, K, V, const HASHES: usize, const SLOTS: usize> Drain<'a, K, V, HASHES, SLOTS> {
    pub(super) fn new(map: &'a mut Buckets<K, V, HASHES, SLOTS>) -> Self {
        let taken = mem::take(map);
        let end = taken.positions();
        Self { map, taken, end }
    }
}

impl<K, V, const HASHES: usize, const SLOTS: usize> Iterator for Drain<'_, K, V, HASHES, SLOTS> {
    type Item = (K, V);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (position, stored) = (0..self.end)
            .rev()
            .find_map(|position| Some((position, self.taken.take(position)?)))?;
        self.end = position;
        Some((stored.key, stored.value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.taken.len, Some(self.taken.len))
    }
}

impl<K, V, const HASHES: usize, const SLOTS: usize> Drop for Drain<'_, K, V, HASHES, SLOTS> {
    fn drop(&mut self) {
        self.taken.clear();
        *self.map = mem::take(&mut self.taken);
    }
}

exact!(Drain<'_, K, V, H, N>, K, V, const H: usize, const N: usize);

impl<K, V> Clone for Iter<'_, K, V> {
    fn clone(&self) -> Self {
        Self { slots: self.slots.clone(), left: self.left }
    }
}

impl<'a, K, V, S, const HASHES: usize, const SLOTS: usize> IntoIterator
    for &'a CuckooMap<K, V, S, HASHES, SLOTS>
{
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Iter<'a, K, V> {
        let Buckets { stored, overflow, len, .. } = &self.buckets;
        Iter { slots: stored.iter().chain(overflow), left: *len }
    }
}

impl<'a, K, V, S, const HASHES: usize, const SLOTS: usize> IntoIterator
    for &'a mut CuckooMap<K, V, S, HASHES, SLOTS>
{
    type Item = (&'a K, &'a mut V);
    type IntoIter = IterMut<'a, K, V>;

    fn into_iter(self) -> IterMut<'a, K, V> {
        let Buckets { stored, overflow, len, .. } = &mut self.buckets;
        IterMut { slots: stored.iter_mut().chain(overflow), left: *len }
    }
}

impl<K, V, S, const HASHES: usize, const SLOTS: usize> IntoIterator
    for CuckooMap<K, V, S, HASHES, SLOTS>
{
    type Item = (K, V);
    type IntoIter = IntoIter<K, V>;

    fn into_iter(self) -> IntoIter<K, V> {
        let Buckets { stored, overflow, len, .. } = self.buckets;
        IntoIter { slots: stored.into_iter().chain(overflow), left: len }
    }
}
