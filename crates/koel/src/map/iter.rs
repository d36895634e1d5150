//! Going through a map: by reference, by value, and emptying it.
//!
//! All walk over the slots in order, then over the overflow: O(slots), however few are in use. The
//! order is that of the hashes' buckets and says nothing about the keys.

use alloc::vec;
use core::iter::FusedIterator;
use core::{fmt, mem, slice};

use super::CuckooMap;
use super::buckets::{Buckets, Stored};

type Slot<K, V> = Option<Stored<K, V>>;

/// The entries of a map: [`CuckooMap::iter`] gives it.
pub struct Iter<'a, K, V> {
    slots: slice::Iter<'a, Slot<K, V>>,
    left: usize,
}

/// The entries of a map, their values to be changed: [`CuckooMap::iter_mut`] gives it.
pub struct IterMut<'a, K, V> {
    slots: slice::IterMut<'a, Slot<K, V>>,
    left: usize,
}

/// The entries of a map that is no more.
pub struct IntoIter<K, V> {
    slots: vec::IntoIter<Slot<K, V>>,
    left: usize,
}

/// The entries of a map that is empty from now on and keeps its memory: [`CuckooMap::drain`] gives
/// it.
///
/// Entries that were not asked for are dropped with it. Should it be leaked, they and the memory of
/// the map are too.
pub struct Drain<'a, K, V, const HASHES: usize = 2, const SLOTS: usize = 4> {
    map: &'a mut Buckets<K, V, HASHES, SLOTS>,
    /// All that was in the map, which has nothing meanwhile.
    taken: Buckets<K, V, HASHES, SLOTS>,
    next: usize,
    left: usize,
}

impl<'a, K, V, const HASHES: usize, const SLOTS: usize> Drain<'a, K, V, HASHES, SLOTS> {
    pub(super) fn new(map: &'a mut Buckets<K, V, HASHES, SLOTS>) -> Self {
        let taken = mem::take(map);
        let left = taken.len();
        Self { map, taken, next: 0, left }
    }
}

impl<K, V, const HASHES: usize, const SLOTS: usize> Drop for Drain<'_, K, V, HASHES, SLOTS> {
    fn drop(&mut self) {
        self.taken.clear();
        *self.map = mem::take(&mut self.taken);
    }
}

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let stored = self.slots.find_map(Option::as_ref)?;
        self.left -= 1;
        Some((&stored.key, &stored.value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<'a, K, V> Iterator for IterMut<'a, K, V> {
    type Item = (&'a K, &'a mut V);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let stored = self.slots.find_map(Option::as_mut)?;
        self.left -= 1;
        Some((&stored.key, &mut stored.value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<K, V> Iterator for IntoIter<K, V> {
    type Item = (K, V);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let stored = self.slots.find_map(|slot| slot)?;
        self.left -= 1;
        Some((stored.key, stored.value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<K, V, const HASHES: usize, const SLOTS: usize> Iterator for Drain<'_, K, V, HASHES, SLOTS> {
    type Item = (K, V);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let slots = self.taken.stored_mut()[self.next..].iter_mut();
        let (passed, stored) = (1..).zip(slots).find_map(|(n, slot)| Some((n, slot.take()?)))?;
        self.next += passed;
        self.left -= 1;
        Some((stored.key, stored.value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<K, V> Clone for Iter<'_, K, V> {
    fn clone(&self) -> Self {
        Self { slots: self.slots.clone(), left: self.left }
    }
}

/// What all four have: an exact length, nothing after the end, and a `Debug` that shows the length.
macro_rules! exact {
    ($name:ident<$($parameter:tt),*>, $($generics:tt)*) => {
        impl<$($generics)*> ExactSizeIterator for $name<$($parameter),*> {}

        impl<$($generics)*> FusedIterator for $name<$($parameter),*> {}

        impl<$($generics)*> fmt::Debug for $name<$($parameter),*> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).field("left", &self.left).finish_non_exhaustive()
            }
        }
    };
}

exact!(Iter<'_, K, V>, K, V);
exact!(IterMut<'_, K, V>, K, V);
exact!(IntoIter<K, V>, K, V);
exact!(Drain<'_, K, V, H, N>, K, V, const H: usize, const N: usize);

impl<'a, K, V, S, const HASHES: usize, const SLOTS: usize> IntoIterator
    for &'a CuckooMap<K, V, S, HASHES, SLOTS>
{
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Iter<'a, K, V> {
        Iter { slots: self.buckets.stored().iter(), left: self.len() }
    }
}

impl<'a, K, V, S, const HASHES: usize, const SLOTS: usize> IntoIterator
    for &'a mut CuckooMap<K, V, S, HASHES, SLOTS>
{
    type Item = (&'a K, &'a mut V);
    type IntoIter = IterMut<'a, K, V>;

    fn into_iter(self) -> IterMut<'a, K, V> {
        let left = self.len();
        IterMut { slots: self.buckets.stored_mut().iter_mut(), left }
    }
}

impl<K, V, S, const HASHES: usize, const SLOTS: usize> IntoIterator
    for CuckooMap<K, V, S, HASHES, SLOTS>
{
    type Item = (K, V);
    type IntoIter = IntoIter<K, V>;

    fn into_iter(self) -> IntoIter<K, V> {
        let left = self.len();
        IntoIter { slots: self.buckets.into_stored().into_iter(), left }
    }
}
