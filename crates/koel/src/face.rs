//! What the faces have in common, written once: settings, sizes, bytes, copies, comparison.
//!
//! Macros rather than a trait or one generic type: the documentation of each type then lists every
//! method, and users import nothing to call it. [`face!`] is for all of them, [`lasting_face!`] for
//! those whose entries stay until they are removed, and [`counted_face!`] for the two that count.
//! Each type adds what only it has, and implements the rules nowhere: they are in `state/`.

/// Implements what every face has. The face is a struct with a field `body`.
///
/// * `$Face`, `$View`: the type, and the alias of its view.
/// * `$kind`: its name in [`Kind`](crate::image::Kind).
macro_rules! face {
    ($Face:ident, $View:ident, $kind:ident) => {
        /// Lookups, settings, sizes and bytes, of owned values and of views.
        impl<S: $crate::state::store::Store> $Face<S> {
            /// The number of distinct keys it was built for. They always fit, and then the
            /// false-positive rate is at most the requested one.
            #[must_use]
            pub fn capacity(&self) -> u64 {
                self.body.state.profile.capacity
            }

            /// The number of buckets. A bucket has four slots.
            #[must_use]
            pub fn buckets(&self) -> u64 {
                self.body.table.buckets()
            }

            /// The number of slots in all buckets.
            #[must_use]
            pub fn slots(&self) -> u64 {
                self.body.slots()
            }

            /// The number of slots that hold an entry.
            #[must_use]
            pub fn slots_in_use(&self) -> u64 {
                self.body.state.entries
            }

            /// The share of slots in use, 0 to 1.
            #[must_use]
            pub fn load_factor(&self) -> f64 {
                self.slots_in_use() as f64 / self.slots() as f64
            }

            /// Whether it grows when it is full, instead of refusing keys.
            #[must_use]
            pub fn is_growable(&self) -> bool {
                self.body.state.profile.growable
            }

            /// Whether it uses the table that grows: it has outgrown the table it was built with,
            /// or the builder's `grow_from` chose that table from the start.
            #[must_use]
            pub fn has_grown(&self) -> bool {
                self.body.table.grows()
            }

            /// The probability that [`contains`](Self::contains) is true for an absent key, as the
            /// table is now, 0 to 1. Repeated inserts of a key do not raise it, except in a maplet,
            /// where each pair takes a slot. O(1).
            #[must_use]
            pub fn false_positive_rate(&self) -> f64 {
                self.body.false_positive_rate()
            }

            /// The false-positive rate it was built for.
            #[must_use]
            pub fn requested_false_positive_rate(&self) -> f64 {
                self.body.state.profile.rate
            }

            /// The size of the file image: header, buckets and counters. In memory the buckets take
            /// as many bytes, and a counter takes about 30 bytes instead of 16.
            #[must_use]
            pub fn size_in_bytes(&self) -> usize {
                self.body.size_in_bytes()
            }

            /// The layout of the buckets: the widths of fingerprint and value, and the codec.
            #[must_use]
            pub fn layout(&self) -> $crate::Layout {
                self.body.layout()
            }

            /// The hash function and its seed or secret.
            #[must_use]
            pub fn hasher(&self) -> $crate::KeyHasher {
                self.body.state.profile.route.hasher()
            }

            /// Whether it takes [ready hashes](crate::KeyHash) as they are. The builder's
            /// `trust_hashes` decides that.
            #[must_use]
            pub fn trusts_hashes(&self) -> bool {
                self.body.state.profile.route.trusts_hashes()
            }

            /// Bytes of the application, which the builder's `application` stores.
            #[must_use]
            pub fn application(&self) -> [u8; 8] {
                self.body.state.profile.application
            }

            /// The file image (docs/FORMAT.md). [`write_to`](Self::write_to) needs no memory.
            ///
            /// # Panics
            /// If there is no memory for it: see [`try_to_bytes`](Self::try_to_bytes).
            #[must_use]
            pub fn to_bytes(&self) -> alloc::vec::Vec<u8> {
                self.try_to_bytes().expect("memory for the file image")
            }

            /// [`to_bytes`](Self::to_bytes), with an error instead of a panic.
            ///
            /// # Errors
            /// [`MemoryError`](crate::MemoryError) if there is no memory for the bytes.
            pub fn try_to_bytes(&self) -> Result<alloc::vec::Vec<u8>, $crate::MemoryError> {
                self.body.to_bytes()
            }

            /// Passes the file image to `sink`, piece by piece and in order. Copies no buckets.
            ///
            /// # Errors
            /// The first error of `sink`.
            pub fn write_to<E>(&self, sink: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
                self.body.write_range(0..self.size_in_bytes(), sink)
            }

            /// Passes the bytes `range` of the file image to `sink`, piece by piece and in order:
            /// for sending it in chunks. There are none from
            /// [`size_in_bytes`](Self::size_in_bytes) on.
            ///
            /// O(bytes of the range); a range that begins in the header, the first 192 bytes, costs
            /// O(bytes of the image) for its checksum. If the filter is changed between two ranges,
            /// they are not one image, and the checksum tells.
            ///
            /// # Errors
            /// The first error of `sink`.
            pub fn write_range<E>(
                &self,
                range: core::ops::Range<usize>,
                sink: impl FnMut(&[u8]) -> Result<(), E>,
            ) -> Result<(), E> {
                self.body.write_range(range, sink)
            }

            /// Checks what opening a view trusts: the checksum of the body, that this crate could
            /// have written every bucket and counter, and that their totals match the header.
            /// O(bytes), and as much memory as [`compare`](crate::CuckooFilter::compare) takes if
            /// the table has one size.
            ///
            /// # Errors
            /// [`ImageError`](crate::ImageError) with the first fault.
            pub fn verify(&self) -> Result<(), $crate::ImageError> {
                self.body.verify()
            }

            /// Checks only the checksum of the body: notices damage, but not forged bytes.
            /// O(bytes), in a twentieth of the time of [`verify`](Self::verify).
            ///
            /// # Errors
            /// [`ImageError::Checksum`](crate::ImageError::Checksum).
            pub fn verify_checksum(&self) -> Result<(), $crate::ImageError> {
                self.body.check_checksum()
            }
        }

        impl $Face {
            /// Copies the file image in `bytes` and verifies all of it. O(bytes).
            ///
            /// # Errors
            /// [`ImageError`](crate::ImageError) if the bytes are not a sound image of this type,
            /// or if there is no memory for the copy.
            pub fn from_bytes(bytes: &[u8]) -> Result<Self, $crate::ImageError> {
                let kind = $crate::image::Kind::$kind;
                Ok(Self { body: $crate::state::Body::from_bytes(bytes, kind)? })
            }

            /// An equal value in its own memory. O(bytes).
            ///
            /// # Errors
            /// [`MemoryError`](crate::MemoryError) if there is no memory for the copy.
            pub fn try_clone(&self) -> Result<Self, $crate::MemoryError> {
                Ok(Self { body: self.body.copy()? })
            }

            /// Removes everything. The size stays.
            pub fn clear(&mut self) {
                self.body.clear();
            }
        }

        impl<'a> $View<'a> {
            /// Opens the file image in `bytes` without a copy. Checks the header and the length
            /// only, in O(1): call [`verify`](Self::verify) if you do not trust the bytes. On any
            /// bytes, lookups are memory-safe and do not panic.
            ///
            /// # Errors
            /// [`ImageError`](crate::ImageError) if the header is not one of this type, or if the
            /// length does not match it.
            pub fn open(bytes: &'a [u8]) -> Result<Self, $crate::ImageError> {
                let kind = $crate::image::Kind::$kind;
                Ok(Self { body: $crate::state::Body::open(bytes, kind)? })
            }

            /// [Verifies](Self::verify) and copies the bytes, to change the copy. O(bytes).
            ///
            /// # Errors
            /// [`ImageError`](crate::ImageError) if the bytes are not sound, or if there is no
            /// memory for the copy.
            pub fn to_owned(&self) -> Result<$Face, $crate::ImageError> {
                self.verify()?;
                Ok($Face { body: self.body.copy()? })
            }
        }

        #[cfg(any(feature = "std", feature = "serde"))]
        impl $crate::file::FileImage for $Face {
            const KIND: $crate::image::Kind = $crate::image::Kind::$kind;

            fn of(body: $crate::state::Body<$crate::mem::buffer::Buffer>) -> Self {
                Self { body }
            }
        }

        /// [`from_bytes`](Self::from_bytes).
        impl TryFrom<&[u8]> for $Face {
            type Error = $crate::ImageError;

            fn try_from(bytes: &[u8]) -> Result<Self, $crate::ImageError> {
                Self::from_bytes(bytes)
            }
        }

        /// [`open`](Self::open).
        impl<'a> TryFrom<&'a [u8]> for $View<'a> {
            type Error = $crate::ImageError;

            fn try_from(bytes: &'a [u8]) -> Result<Self, $crate::ImageError> {
                Self::open(bytes)
            }
        }

        /// Verifies and copies the view, as its method `to_owned` does.
        impl TryFrom<$View<'_>> for $Face {
            type Error = $crate::ImageError;

            fn try_from(view: $View<'_>) -> Result<Self, $crate::ImageError> {
                view.to_owned()
            }
        }

        /// [`try_clone`](Self::try_clone). Panics if there is no memory for the copy.
        impl Clone for $Face {
            fn clone(&self) -> Self {
                self.try_clone().expect("memory for a copy")
            }
        }

        /// A second view of the same bytes. Copies none of them.
        impl Clone for $View<'_> {
            fn clone(&self) -> Self {
                Self { body: self.body.clone() }
            }
        }

        /// Compares the file images: built alike, and changed alike since.
        impl PartialEq for $Face {
            fn eq(&self, other: &Self) -> bool {
                self.body == other.body
            }
        }

        /// Every value equals itself: a false-positive rate is a number.
        impl Eq for $Face {}

        /// Sizes and settings, in one line.
        impl<S: $crate::state::store::Store> core::fmt::Debug for $Face<S> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.debug_struct(stringify!($Face))
                    .field("len", &self.len())
                    .field("capacity", &self.capacity())
                    .field("layout", &format_args!("{}", self.layout()))
                    .field("load_factor", &format_args!("{:.3}", self.load_factor()))
                    .field("size_in_bytes", &self.size_in_bytes())
                    .finish()
            }
        }
    };
}
pub(crate) use face;

/// Implements what types have besides [`face!`] whose entries stay until they are removed.
macro_rules! lasting_face {
    ($Face:ident) => {
        /// Lookups and the number of entries, of owned values and of views.
        impl<S: $crate::state::store::Store> $Face<S> {
            /// Whether `key` is in. Never false for a key that is in. True for an absent key with
            /// probability [`false_positive_rate`](Self::false_positive_rate). O(1): reads two
            /// buckets. An integer of another type is [another key](crate::Key).
            #[inline(always)]
            #[must_use]
            pub fn contains<K: $crate::Key + ?Sized>(&self, key: &K) -> bool {
                self.body.contains(key)
            }

            /// [`contains`](Self::contains) for each of `keys`. Writes the answer to `keys[i]` to
            /// `found[i]`.
            ///
            /// # Panics
            /// If the slices differ in length.
            pub fn contains_many<K: $crate::Key>(&self, keys: &[K], found: &mut [bool]) {
                self.body.contains_many(self.body.hashed(keys), found);
            }

            /// What was inserted and not removed, counting repeated inserts.
            #[must_use]
            pub fn len(&self) -> u64 {
                self.body.state.len
            }

            /// Whether [`len`](Self::len) is 0.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }
        }

        impl $Face {
            /// Moves the entries to the smallest table that holds them, but to none smaller than
            /// the one it was built with. An entry that growth has split in many keeps a slot for
            /// each, so a filter that has doubled often may need a larger table than its keys do.
            /// O(buckets), and needs the memory of both tables until it returns. Changes nothing if
            /// there is no memory for the smaller table.
            pub fn shrink_to_fit(&mut self) {
                self.body.shrink_to_fit();
            }
        }
    };
}
pub(crate) use lasting_face;

/// Implements what filters and counting filters have besides [`face!`].
macro_rules! counted_face {
    ($Face:ident) => {
        /// Counts and estimates, of owned values and of views.
        impl<S: $crate::state::store::Store> $Face<S> {
            /// How often `key` was inserted and not removed. Never too low. Too high with
            /// probability [`false_positive_rate`](Self::false_positive_rate), by the count of
            /// another key with the same fingerprint and bucket. O(log
            /// [`distinct_counters`](Self::distinct_counters)), and O(1) for a key without a
            /// counter.
            #[inline]
            #[must_use]
            pub fn count<K: $crate::Key + ?Sized>(&self, key: &K) -> u64 {
                self.body.count(self.body.address(key))
            }

            /// [`count`](Self::count) for each of `keys`. Writes the answer to `keys[i]` to
            /// `counts[i]`.
            ///
            /// # Panics
            /// If the slices differ in length.
            pub fn count_many<K: $crate::Key>(&self, keys: &[K], counts: &mut [u64]) {
                self.body.count_many(self.body.hashed(keys), counts);
            }

            /// Whether both hold the same: the same entries as often, and the same exact answers,
            /// such as corrections. Filters of the same keys do, in whatever order they came, but
            /// not if one [has grown](Self::has_grown): then it may have fewer bits of a key than
            /// the other has. `==` asks for the same bytes. O(buckets), and memory for the entries
            /// of a segment of 2 MiB, or an eighth of a filter that has grown.
            ///
            /// Filters of different keys hold the same only if each key shares its entry with one
            /// of the other filter by chance.
            ///
            /// ```
            #[doc = concat!("use koel::", stringify!($Face), ";")]
            ///
            #[doc = concat!("let builder = ", stringify!($Face), "::builder(9000, 0.001);")]
            /// let (mut up, mut down) = (builder.build()?, builder.build()?);
            /// up.insert_many(&(0_u64..8000).collect::<Vec<_>>())?;
            /// down.insert_many(&(0_u64..8000).rev().collect::<Vec<_>>())?;
            /// assert!(up.holds_the_same(&down)? && up != down);
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            ///
            /// # Errors
            /// [`MergeError::Incompatible`](crate::MergeError::Incompatible) and
            /// [`MergeError::Sizes`](crate::MergeError::Sizes) if the filters differ in layout,
            /// size, hash, route or the first two application bytes, and
            /// [`MergeError::NoMemory`](crate::MergeError::NoMemory).
            pub fn holds_the_same<T: $crate::state::store::Store>(
                &self,
                other: &$Face<T>,
            ) -> Result<bool, $crate::MergeError> {
                self.body.check_alike(&other.body)?;
                Ok($crate::state::are_same(&self.body, &other.body)?)
            }

            /// An estimate of the number of distinct keys, at most [`len`](Self::len). O(1).
            ///
            /// With `d` distinct entries of the `U` that keys can have, the standard error is about
            /// `d / sqrt(2 U)`: 22 for a million keys at a rate of 0.1 %. `U` is half of the number
            /// of buckets times the number of fingerprints. Once it [has grown](Self::has_grown),
            /// the estimate is some percent too high, more at rates above 1 %, because growth
            /// doubles entries that have no bits left.
            #[must_use]
            pub fn distinct_estimate(&self) -> f64 {
                self.body.distinct_estimate()
            }

            /// Bits of [`size_in_bytes`](Self::size_in_bytes) per key of the
            /// [`capacity`](Self::capacity). Once it [has grown](Self::has_grown), the size follows
            /// the keys: then per key of [`distinct_estimate`](Self::distinct_estimate).
            #[must_use]
            pub fn bits_per_key(&self) -> f64 {
                let grown = self.has_grown();
                let keys = if grown { self.distinct_estimate() } else { self.capacity() as f64 };
                $crate::image::bits_per_key(self.size_in_bytes(), keys)
            }

            /// The number of keys with a counter, for what their slots cannot count.
            #[must_use]
            pub fn distinct_counters(&self) -> u64 {
                self.body.state.side.counters.len()
            }

            /// The number of distinct keys in the stash, beside the table: their buckets were full,
            /// and no eviction path led to an empty slot. Each takes 24 bytes of the file image and
            /// about 40 in memory, and is never reported by mistake.
            /// There are a few in millions, unless somebody chose keys that have the same buckets.
            #[must_use]
            pub fn stashed_keys(&self) -> u64 {
                self.body.state.side.stash.len()
            }

            /// The most keys that may have a counter.
            #[must_use]
            pub fn counter_limit(&self) -> u64 {
                self.body.state.profile.counter_limit
            }
        }

        impl $Face {
            /// Inserts every key of `keys`, in order.
            ///
            /// # Errors
            /// [`FullError`](crate::FullError) at the first key that finds no room. Those before it
            /// are in: [`len`](Self::len) says how many.
            pub fn try_extend<K: $crate::Key>(
                &mut self,
                keys: impl IntoIterator<Item = K>,
            ) -> Result<(), $crate::FullError> {
                keys.into_iter().try_for_each(|key| self.insert(&key).map(|_| ()))
            }

            /// Adds the keys of `other`, which may be a view, and combines the counts as `counts`
            /// says. Afterwards every key of both is in. A view is [verified](Self::verify) first.
            ///
            /// If it is [growable](Self::is_growable), it grows where the union does not fit, and
            /// the two may have grown differently. O(buckets). The union is built beside it, which
            /// takes twice the memory until it returns.
            ///
            /// **Rates add up**: the false-positive rate of the union is up to the sum of both. Of
            /// filters that each have room for the union, it stays within the rate they were built
            /// for. Of filters that were small and have grown, it does not: 64 of them with 0.1 %
            /// give up to 6.4 %. To build one filter on many machines, use
            /// [`PiecePlan`](crate::PiecePlan): it merges nothing.
            ///
            /// # Errors
            /// [`MergeError`](crate::MergeError), and then nothing has changed: if the two differ
            /// in layout, hash or the size they were built with, if the union does not fit and it
            /// cannot grow, if one absent key in ten would be reported present, if there is no
            /// memory for the union, or if a view is not sound.
            pub fn merge<S: $crate::state::store::Store>(
                &mut self,
                other: &$Face<S>,
                counts: $crate::Merge,
            ) -> Result<(), $crate::MergeError> {
                self.body.merge(&other.body, counts)
            }
        }

        /// For what [grows](Self::is_growable). Otherwise use
        /// [`try_extend`](Self::try_extend): this panics if a key finds no room.
        impl<K: $crate::Key> Extend<K> for $Face {
            fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
                self.try_extend(keys).expect("room for every key");
            }
        }
    };
}
pub(crate) use counted_face;
