//! What a process asks of filters that it keeps for others, such as a server: how much memory they
//! take, and a fast way to load its own files.

/// Implements it for a type of `face.rs`.
macro_rules! hosted_face {
    ($Face:ident, $View:ident) => {
        /// For processes that keep filters for others.
        impl $Face {
            /// [`from_bytes`](Self::from_bytes) of bytes that this library wrote and that nobody
            /// else could change: a file of your own. Checks the header and the checksum only, in a
            /// twentieth of the time, so damage is noticed.
            ///
            /// The buckets are copied to `memory`, as by [`try_clone_in`](Self::try_clone_in).
            ///
            /// Never for bytes of strangers, who can make a checksum: a forged filter may then
            /// answer wrongly, and its changes may panic. Memory stays safe.
            ///
            /// # Errors
            /// As [`from_bytes`](Self::from_bytes), but for forged bytes.
            pub fn from_trusted_bytes(
                bytes: &[u8],
                memory: alloc::vec::Vec<u64>,
            ) -> Result<Self, $crate::ImageError> {
                let view = $View::open(bytes)?;
                view.verify_checksum()?;
                Ok(Self { body: view.body.copy_in(memory)? })
            }

            /// [`try_clone`](Self::try_clone) with the buckets in this memory, whose content does
            /// not matter, or elsewhere if it has fewer bytes than the image. For those who copy
            /// while others wait: the system gives no page for memory that was written to before.
            ///
            /// # Errors
            /// [`MemoryError`](crate::MemoryError) if there is no memory for the copy.
            pub fn try_clone_in(
                &self,
                memory: alloc::vec::Vec<u64>,
            ) -> Result<Self, $crate::MemoryError> {
                Ok(Self { body: self.body.copy_in(memory)? })
            }

            /// The bytes of memory that it has allocated beside the value itself, about: buckets,
            /// counters, the stash and the working memory of searches. `measure` gets the buckets
            /// and says how much their allocation takes: `<[u8]>::len` if no allocator is asked.
            #[must_use]
            pub fn allocated_bytes(&self, measure: impl FnOnce(&[u8]) -> usize) -> usize {
                measure(self.body.table.bytes()) + self.body.allocated_beside()
            }
        }
    };
}
pub(crate) use hosted_face;
