//! Filters that are asked where they lie: JavaScript fetches the ranges that are output here.
//!
//! A batch is kept between the question and the answer, because JavaScript waits in between.
//! Filters and batches have numbers of their own.

use alloc::vec::Vec;

use koel::{Batch, KeyHash, Remote, RemoteOptions};

use super::{Host, Kept, Keys, Reading, first, malformed, no_host, zeroed};
use crate::failure::Failure;

/// The filters elsewhere, and what was asked of them.
#[derive(Debug)]
pub(super) struct Remotes {
    filters: Kept<Remote>,
    batches: Kept<Batch>,
}

impl Remotes {
    pub(super) const NONE: Self = Self { filters: Kept::NONE, batches: Kept::NONE };
}

/// How the keys of a filter elsewhere are made.
fn reading(remote: &Remote) -> Result<Reading, Failure> {
    Reading::new(remote.hasher(), remote.application())
}

impl Host {
    /// Outputs the range of the exact answers of the file whose header is in the first `len` bytes
    /// of the input buffer.
    ///
    /// # Errors
    /// If it is not the header of a filter.
    pub fn remote_tail(&mut self, len: usize) -> Result<(), Failure> {
        let range = Remote::tail(first(&self.input, len)?)?;
        self.output = [range.start, range.end].iter().flat_map(|end| end.to_le_bytes()).collect();
        Ok(())
    }

    /// Opens the filter whose header and exact answers are in the first `len` bytes of the input
    /// buffer, and returns its number.
    ///
    /// # Errors
    /// If they are not sound.
    pub fn remote_open(&mut self, len: usize) -> Result<u32, Failure> {
        let bytes = first(&self.input, len)?;
        let header = usize::try_from(Remote::HEADER.end).unwrap_or(usize::MAX);
        let (header, tail) = bytes.split_at_checked(header).ok_or_else(malformed)?;
        self.remotes.filters.keep(Remote::open(header, tail)?)
    }

    /// Asks for a batch. Outputs its ranges, two numbers of eight bytes each, and returns its
    /// number.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn remote_ask(&mut self, remote: u32, keys: Keys, page: u64) -> Result<u32, Failure> {
        let hashes = reading(self.remotes.filters.get(remote)?)?.hashes(&self.input, keys)?;
        self.ask_for(remote, &hashes, page)
    }

    /// Asks for the host and the parent domains of the URL in the first `len` bytes of the input
    /// buffer, or, where keys are texts, for the text too.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn remote_ask_url(&mut self, remote: u32, len: usize, page: u64) -> Result<u32, Failure> {
        let reading = reading(self.remotes.filters.get(remote)?)?;
        let keys = reading.form.keys_of_url(first(&self.input, len)?);
        let hashes: Vec<_> = keys.iter().map(|key| reading.hasher.hash(&**key)).collect();
        self.ask_for(remote, &hashes, page)
    }

    /// Fails if nothing can be said about that URL, none of whose keys is in.
    ///
    /// # Errors
    /// If it has no host.
    pub fn remote_check_url(&self, remote: u32, len: usize) -> Result<(), Failure> {
        let reading = reading(self.remotes.filters.get(remote)?)?;
        let text = first(&self.input, len)?;
        reading.form.finds_url(text, |_| false).map(|_| ()).map_err(no_host)
    }

    fn ask_for(&mut self, remote: u32, hashes: &[KeyHash], page: u64) -> Result<u32, Failure> {
        let options = RemoteOptions { page, ..RemoteOptions::default() };
        let remote = self.remotes.filters.get(remote)?;
        let batch = remote.ask(hashes, options)?;
        self.reserve_output(batch.ranges().len().saturating_mul(16))?;
        let ends = batch.ranges().iter().flat_map(|range| [range.start, range.end]);
        self.output.extend(ends.flat_map(u64::to_le_bytes));
        self.remotes.batches.keep(batch)
    }

    /// Outputs a byte for each key of a batch: whether it is in, by the bytes of its ranges in the
    /// first `len` bytes of the input buffer. Returns how many keys they are.
    ///
    /// # Errors
    /// If they are not the bytes of these ranges.
    pub fn remote_answer(&mut self, remote: u32, batch: u32, len: usize) -> Result<u32, Failure> {
        let (remote, batch) = (self.remotes.filters.get(remote)?, self.remotes.batches.get(batch)?);
        let (mut rest, mut fetched) = (first(&self.input, len)?, Vec::new());
        fetched.try_reserve_exact(batch.ranges().len()).map_err(|_| Failure::no_memory())?;
        for range in batch.ranges() {
            let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
            let (bytes, behind) = rest.split_at_checked(len).ok_or_else(malformed)?;
            fetched.push(bytes);
            rest = behind;
        }
        let mut found = zeroed(batch.len())?;
        remote.answer(batch, &fetched, &mut found)?;
        self.reserve_output(found.len())?;
        self.output_flags(&found);
        u32::try_from(found.len()).map_err(|_| Failure::no_memory())
    }

    /// Forgets a batch, answered or not.
    pub fn remote_forget(&mut self, batch: u32) {
        self.remotes.batches.free(batch);
    }

    /// Frees a filter elsewhere.
    pub fn remote_free(&mut self, remote: u32) {
        self.remotes.filters.free(remote);
    }

    /// A filter elsewhere.
    ///
    /// # Errors
    /// If it was freed.
    pub fn remote(&self, remote: u32) -> Result<&Remote, Failure> {
        self.remotes.filters.get(remote)
    }

    /// Outputs the options of lines that such a filter was built with. True if each text is its own
    /// key.
    ///
    /// # Errors
    /// If this version does not know them.
    pub fn remote_line_options(&mut self, remote: u32) -> Result<bool, Failure> {
        let form = reading(self.remotes.filters.get(remote)?)?.form;
        self.output = form.words().into_bytes();
        Ok(form.is_exact())
    }
}
