//! Things behind numbers, which JavaScript has instead of them.

use alloc::vec::Vec;

use crate::failure::Failure;

/// Things of one type. A number may be used again after what it stood for was freed.
#[derive(Debug)]
pub(crate) struct Kept<T>(Vec<Option<T>>);

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self::NONE
    }
}

impl<T> Kept<T> {
    pub(crate) const NONE: Self = Self(Vec::new());

    /// Keeps a thing, and returns its number.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub(crate) fn keep(&mut self, it: T) -> Result<u32, Failure> {
        let free = self.0.iter().position(Option::is_none);
        let index = free.unwrap_or(self.0.len());
        let number = u32::try_from(index).map_err(|_| Failure::no_memory())?;
        if free.is_none() {
            self.0.try_reserve(1).map_err(|_| Failure::no_memory())?;
            self.0.push(None);
        }
        self.0[index] = Some(it);
        Ok(number)
    }

    /// The thing of a number.
    ///
    /// # Errors
    /// If it was freed.
    pub(crate) fn get(&self, number: u32) -> Result<&T, Failure> {
        let it = self.0.get(number as usize).and_then(Option::as_ref);
        it.ok_or_else(|| Failure::internal("this filter was freed"))
    }

    /// The same, to change it.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub(crate) fn get_mut(&mut self, number: u32) -> Result<&mut T, Failure> {
        let it = self.0.get_mut(number as usize).and_then(Option::as_mut);
        it.ok_or_else(|| Failure::internal("this filter was freed"))
    }

    /// Frees a thing.
    pub(crate) fn free(&mut self, number: u32) {
        if let Some(it) = self.0.get_mut(number as usize) {
            *it = None;
        }
    }
}
