//! Filters in the memory of the module: opened from a file image, asked, and patched.

use koel::CuckooFilter;

use super::{Host, Keys, Reading, first, no_host, zeroed};
use crate::failure::Failure;

/// How the keys of a filter are made.
pub(super) fn reading(filter: &CuckooFilter) -> Result<Reading, Failure> {
    Reading::new(filter.hasher(), filter.application())
}

impl Host {
    /// Opens the file image in the first `len` bytes of the input buffer, and returns the handle of
    /// the filter.
    ///
    /// # Errors
    /// If the bytes are not a sound filter.
    pub fn open(&mut self, len: usize) -> Result<u32, Failure> {
        let filter = CuckooFilter::from_bytes(first(&self.input, len)?)?;
        self.keep(filter)
    }

    /// Keeps a filter, and returns its handle.
    pub(crate) fn keep(&mut self, filter: CuckooFilter) -> Result<u32, Failure> {
        self.filters.keep(filter)
    }

    /// Frees a filter. Its handle may be used again.
    pub fn free(&mut self, handle: u32) {
        self.filters.free(handle);
    }

    /// The filter of a handle.
    ///
    /// # Errors
    /// If there is none.
    pub fn filter(&self, handle: u32) -> Result<&CuckooFilter, Failure> {
        self.filters.get(handle)
    }

    /// Whether such a key is in.
    ///
    /// # Errors
    /// None that the library has.
    pub fn has(&self, handle: u32, len: usize) -> Result<bool, Failure> {
        let filter = self.filter(handle)?;
        Ok(filter.contains(&reading(filter)?.hash(first(&self.input, len)?)?))
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
        reading(filter)?.form.finds_url(text, contains).map_err(no_host)
    }

    /// Outputs the options of the command without which a text is another key of this filter.
    ///
    /// # Errors
    /// If this version does not know them.
    pub fn line_options(&mut self, handle: u32) -> Result<bool, Failure> {
        let form = reading(self.filter(handle)?)?.form;
        self.output = form.words().into_bytes();
        Ok(form.is_exact())
    }

    /// How often such a key was added.
    ///
    /// # Errors
    /// None that the library has.
    pub fn count(&self, handle: u32, len: usize) -> Result<u64, Failure> {
        let filter = self.filter(handle)?;
        Ok(filter.count(&reading(filter)?.hash(first(&self.input, len)?)?))
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
        let hashes = reading(filter)?.hashes(&self.input, keys)?;
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
        let hashes = reading(filter)?.hashes(&self.input, keys)?;
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
}
