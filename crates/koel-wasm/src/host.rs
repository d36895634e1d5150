//! The filters behind the handles, and the buffers between JavaScript and Rust. `ask` has what asks
//! filters here, `change` what changes them, and `remote` what asks filters elsewhere.
//!
//! A key is bytes: JavaScript encodes text as UTF-8 and an integer as eight little-endian bytes,
//! which is how the library hashes them too. A batch in the input buffer is
//!
//! ```text
//!     | length of key 0, u32 | ... | length of key n-1, u32 | bytes of key 0 | ... |    texts
//!     | key 0, u64 | ... | key n-1, u64 |                                              integers
//! ```
//!
//! with little-endian numbers. Where the application bytes say that keys were made of lines, a text
//! becomes a key as it did there, and JavaScript passes no integers. It cuts long batches, and
//! frees the buffers after it has passed a file, so they stay small.
//!
//! An operation that fails leaves the sentence of its error in the output buffer. The failure is a
//! number there: see [`Failure`].

mod ask;
mod change;
mod kept;
mod reading;
mod remote;

pub use change::Settings;

use alloc::vec::Vec;

use koel::CuckooFilter;

use crate::failure::Failure;
use kept::Kept;
use reading::{Reading, no_host};
use remote::Remotes;

/// How the keys of a batch lie in the input buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// So many lengths, then the bytes of each key.
    Texts(usize),
    /// So many integers of eight bytes.
    Integers(usize),
}

/// All filters of a program, and the buffers.
#[derive(Debug)]
pub struct Host {
    filters: Kept<CuckooFilter>,
    remotes: Remotes,
    input: Vec<u8>,
    output: Vec<u8>,
    batch: change::Added,
}

impl Default for Host {
    fn default() -> Self {
        Self::new()
    }
}

impl Host {
    /// Without filters.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            filters: Kept::NONE,
            remotes: Remotes::NONE,
            input: Vec::new(),
            output: Vec::new(),
            batch: change::Added::NONE,
        }
    }

    /// The input buffer, with at least so many bytes.
    ///
    /// # Errors
    /// If there is no memory for them.
    pub fn input(&mut self, len: usize) -> Result<&mut [u8], Failure> {
        let more = len.saturating_sub(self.input.len());
        self.input.try_reserve_exact(more).map_err(|_| Failure::no_memory())?;
        self.input.resize(self.input.len() + more, 0);
        Ok(&mut self.input)
    }

    /// The first `len` bytes of the input buffer.
    #[cfg(feature = "page")]
    pub(crate) fn given(&self, len: usize) -> Result<&[u8], Failure> {
        first(&self.input, len)
    }

    /// Frees the input buffer and the output.
    pub fn clear_buffers(&mut self) {
        (self.input, self.output) = (Vec::new(), Vec::new());
    }

    /// The output of the last operation.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        &self.output
    }

    /// Makes an error the output.
    pub(crate) fn put_error(&mut self, failure: Failure) {
        self.output = failure.message.into_bytes();
    }

    #[cfg(feature = "page")]
    pub(crate) fn put_text(&mut self, output: String) {
        self.output = output.into_bytes();
    }

    fn reserve_output(&mut self, bytes: usize) -> Result<(), Failure> {
        self.output.clear();
        self.output.try_reserve(bytes).map_err(|_| Failure::no_memory())
    }

    /// The caller has reserved the memory.
    fn output_flags(&mut self, flags: &[bool]) {
        self.output.extend(flags.iter().map(|&flag| u8::from(flag)));
    }
}

impl Keys {
    fn len(self) -> usize {
        match self {
            Self::Texts(count) | Self::Integers(count) => count,
        }
    }
}

fn first(input: &[u8], len: usize) -> Result<&[u8], Failure> {
    input.get(..len).ok_or_else(malformed)
}

fn malformed() -> Failure {
    Failure::internal("the input is malformed")
}

fn zeroed<T: Clone + Default>(len: usize) -> Result<Vec<T>, Failure> {
    let mut values = Vec::new();
    values.try_reserve_exact(len).map_err(|_| Failure::no_memory())?;
    values.resize(len, T::default());
    Ok(values)
}
