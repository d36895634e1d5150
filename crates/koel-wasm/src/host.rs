//! The filters behind the handles, the buffers between JavaScript and Rust, and what asks. `change`
//! has the rest.
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

#[cfg(feature = "full")]
mod change;

#[cfg(feature = "full")]
pub use change::Settings;

use alloc::vec::Vec;

use koel::{CuckooFilter, KeyHash, KeyHasher};
use koel_lines::{KeyForm, NoHost};

use crate::failure::{Code, Failure};

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
    filters: Vec<Option<CuckooFilter>>,
    input: Vec<u8>,
    output: Vec<u8>,
    #[cfg(feature = "full")]
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
            filters: Vec::new(),
            input: Vec::new(),
            output: Vec::new(),
            #[cfg(feature = "full")]
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

    /// Opens the file image in the first `len` bytes of the input buffer, and returns the handle of
    /// the filter.
    ///
    /// # Errors
    /// If the bytes are not a sound filter.
    pub fn open(&mut self, len: usize) -> Result<u32, Failure> {
        let filter = CuckooFilter::from_bytes(first(&self.input, len)?)?;
        self.keep(filter)
    }

    pub(crate) fn keep(&mut self, filter: CuckooFilter) -> Result<u32, Failure> {
        let free = self.filters.iter().position(Option::is_none);
        let index = free.unwrap_or(self.filters.len());
        let handle = u32::try_from(index).map_err(|_| Failure::no_memory())?;
        if free.is_none() {
            self.filters.try_reserve(1).map_err(|_| Failure::no_memory())?;
            self.filters.push(None);
        }
        self.filters[index] = Some(filter);
        Ok(handle)
    }

    /// Frees a filter. Its handle may be used again.
    pub fn free(&mut self, handle: u32) {
        if let Some(filter) = self.filters.get_mut(handle as usize) {
            *filter = None;
        }
    }

    /// The filter of a handle.
    ///
    /// # Errors
    /// If there is none.
    pub fn filter(&self, handle: u32) -> Result<&CuckooFilter, Failure> {
        let filter = self.filters.get(handle as usize).and_then(Option::as_ref);
        filter.ok_or_else(|| Failure::internal("this filter was freed"))
    }

    /// Whether such a key is in.
    ///
    /// # Errors
    /// None that the library has.
    pub fn has(&self, handle: u32, len: usize) -> Result<bool, Failure> {
        let filter = self.filter(handle)?;
        Ok(filter.contains(&hash(filter, &self.input, len)?))
    }

    /// Whether the host of such a URL or one of its parent domains is in, or, where keys are texts,
    /// the text itself.
    ///
    /// # Errors
    /// If the text has no host, and is not in itself.
    pub fn has_url(&self, handle: u32, len: usize) -> Result<bool, Failure> {
        let filter = self.filter(handle)?;
        let hasher = filter.hasher();
        let contains = |key: &[u8]| filter.contains(&hasher.hash(key));
        let text = first(&self.input, len)?;
        form(filter)?.finds_url(text, contains).map_err(no_host)
    }

    /// Outputs the options of the command without which a text is another key of this filter.
    ///
    /// # Errors
    /// If this version does not know them.
    pub fn line_options(&mut self, handle: u32) -> Result<bool, Failure> {
        let form = form(self.filter(handle)?)?;
        self.output = form.words().into_bytes();
        Ok(form.is_exact())
    }

    /// How often such a key was added.
    ///
    /// # Errors
    /// None that the library has.
    pub fn count(&self, handle: u32, len: usize) -> Result<u64, Failure> {
        let filter = self.filter(handle)?;
        Ok(filter.count(&hash(filter, &self.input, len)?))
    }

    /// The handle of the filter that the patch in the first `len` bytes of the input buffer makes
    /// of this one, which stays as it is.
    ///
    /// # Errors
    /// If the bytes are not a sound patch of this filter.
    pub fn patched(&mut self, handle: u32, len: usize) -> Result<u32, Failure> {
        let patched = self.filter(handle)?.patched(first(&self.input, len)?)?;
        self.keep(patched)
    }

    /// Outputs a byte for each key of a batch: whether it is in.
    ///
    /// # Errors
    /// If there is no memory for the answers.
    pub fn has_many(&mut self, handle: u32, keys: Keys) -> Result<(), Failure> {
        let filter = self.filter(handle)?;
        let mut found = zeroed(keys.len())?;
        let hashes = hashes(filter, &self.input, keys)?;
        if cfg!(feature = "full") {
            filter.contains_many(&hashes, &mut found);
        } else {
            let each = found.iter_mut().zip(&hashes);
            each.for_each(|(found, hash)| *found = filter.contains(hash));
        }
        self.reserve_output(found.len())?;
        self.output_flags(&found);
        Ok(())
    }

    /// Outputs the count of each key of a batch, eight bytes each.
    ///
    /// # Errors
    /// If there is no memory for the answers.
    pub fn count_many(&mut self, handle: u32, keys: Keys) -> Result<(), Failure> {
        let filter = self.filter(handle)?;
        let mut counts = zeroed(keys.len())?;
        let hashes = hashes(filter, &self.input, keys)?;
        if cfg!(feature = "full") {
            filter.count_many(&hashes, &mut counts);
        } else {
            let each = counts.iter_mut().zip(&hashes);
            each.for_each(|(count, hash)| *count = filter.count(hash));
        }
        self.reserve_output(counts.len().saturating_mul(8))?;
        self.output.extend(counts.iter().flat_map(|count| count.to_le_bytes()));
        Ok(())
    }

    /// Outputs the file image of a filter.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn image(&mut self, handle: u32) -> Result<(), Failure> {
        self.output = self.filter(handle)?.try_to_bytes()?;
        Ok(())
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

/// The hashes of a batch, which are keys themselves. So the library's code for batches is compiled
/// for one type of key: that saves 9 % of the package.
fn hashes(filter: &CuckooFilter, input: &[u8], keys: Keys) -> Result<Vec<KeyHash>, Failure> {
    let hasher = filter.hasher();
    let mut hashes = Vec::new();
    hashes.try_reserve_exact(keys.len()).map_err(|_| Failure::no_memory())?;
    let form = form(filter)?;
    match keys {
        Keys::Texts(count) => {
            let head = count.checked_mul(4).ok_or_else(malformed)?;
            let (lengths, mut bytes) = input.split_at_checked(head).ok_or_else(malformed)?;
            for &length in lengths.as_chunks().0 {
                let length = u32::from_le_bytes(length) as usize;
                let (key, rest) = bytes.split_at_checked(length).ok_or_else(malformed)?;
                hashes.push(hash_of(hasher, form, key)?);
                bytes = rest;
            }
        }
        Keys::Integers(count) => {
            let keys: &[[u8; 8]] = input.as_chunks().0.get(..count).ok_or_else(malformed)?;
            hashes.extend(keys.iter().map(|key| hasher.hash(key)));
        }
    }
    Ok(hashes)
}

/// The hash of the key in the first `len` bytes of the input.
fn hash(filter: &CuckooFilter, input: &[u8], len: usize) -> Result<KeyHash, Failure> {
    hash_of(filter.hasher(), form(filter)?, first(input, len)?)
}

fn hash_of(hasher: KeyHasher, form: KeyForm, text: &[u8]) -> Result<KeyHash, Failure> {
    if form.is_exact() {
        return Ok(hasher.hash(text));
    }
    let key = form.key(text).map_err(no_host)?;
    Ok(hasher.hash(&*key))
}

/// How texts become keys of a filter.
fn form(filter: &CuckooFilter) -> Result<KeyForm, Failure> {
    KeyForm::of(filter.application()).map_err(|unknown| {
        Failure::new(Code::Lines, format_args!("{unknown}; use a later version"))
    })
}

fn no_host(error: NoHost<'_>) -> Failure {
    Failure::new(Code::Lines, error)
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
