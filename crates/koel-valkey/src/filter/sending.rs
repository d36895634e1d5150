//! A complete filter that is being sent to replicas in chunks.
//!
//! For everybody else it is what replicas have of it: its first bytes, as if it were loading. So a
//! server and its replicas are equal at every moment, also when one of them takes over.

use std::mem;

use crate::error::Error;
use crate::filter::Filter;
use crate::filter::loading::Loading;
use crate::filter::native::Native;

/// A filter, and how many bytes of its body were sent.
#[derive(Debug)]
pub struct Sending {
    pub(super) filter: Box<Native>,
    pub(super) sent: usize,
}

impl Sending {
    /// Begins to send a filter.
    #[must_use]
    pub fn new(filter: Box<Native>) -> Self {
        Self { filter, sent: 0 }
    }

    /// The filter, and the offset of the next chunk.
    #[must_use]
    pub fn next(&self) -> (&Native, usize) {
        (&self.filter, self.sent)
    }

    pub(super) fn incomplete(&self) -> Error {
        Error::Incomplete { loaded: self.sent as u64, total: self.filter.bytes() }
    }
}

impl Filter {
    /// Notes that so many bytes more were sent. With the last ones it is the complete filter.
    ///
    /// # Errors
    /// [`Error::Lost`] if it is not being sent.
    pub fn note_sent(&mut self, bytes: usize) -> Result<(), Error> {
        let header = self.header();
        let Self::Sending(sending) = self else { return Err(Error::Lost) };
        sending.sent += bytes;
        if sending.sent as u64 >= sending.filter.bytes()
            && let Self::Sending(all) = mem::replace(self, Self::Loading(Loading::begin(header)?))
        {
            *self = Self::Native(all.filter);
        }
        Ok(())
    }
}
