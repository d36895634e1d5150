//! Lookups of keys in a body, of single keys and of many.

use core::ops::{ControlFlow, Range};

use super::Body;
use crate::Key;
use crate::table::blocks::{Hashed, Hashes, contains_each, each_address};

impl<B: AsRef<[u8]>> Body<B> {
    /// The address of `key`.
    #[inline(always)]
    pub(crate) fn address<K: Key + ?Sized>(&self, key: &K) -> u64 {
        self.state.profile.route.address(key)
    }

    /// The keys, to be turned into addresses a block at a time.
    pub(crate) fn hashed<'k, K: Key>(&self, keys: &'k [K]) -> Hashed<'k, K> {
        Hashed(self.state.profile.route, keys)
    }

    /// Whether an entry matches `key`.
    // Always inlined: as a call, a lookup of a ready hash takes a quarter more instructions.
    #[inline(always)]
    pub(crate) fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        match self.state.profile.route.xxh3_only(key) {
            Some(address) if !self.state.side.has_answers() => self.table.contains(address),
            _ => self.contains_other(key),
        }
    }

    /// Kept out of line, so that no loop over lookups saves its registers for a call.
    #[cold]
    #[inline(never)]
    fn contains_other<K: Key + ?Sized>(&self, key: &K) -> bool {
        let address = self.address(key);
        self.state.side.settle(address, self.table.contains(address))
    }

    /// Writes to `found` whether an entry matches each key.
    pub(crate) fn contains_many(&self, hashes: impl Hashes, found: &mut [bool]) {
        assert_eq!(hashes.len(), found.len(), "one answer for each key");
        contains_each(&self.table, hashes, found);
        if self.state.side.has_answers() {
            self.settle_many(hashes, found);
        }
    }

    /// Gives each key its exact answer. Without a stash only a yes may change.
    #[cold]
    #[inline(never)]
    fn settle_many(&self, hashes: impl Hashes, found: &mut [bool]) {
        if self.state.side.stash.len() > 0 {
            self.each_exact(hashes, 0..found.len(), |key, copies| found[key] = copies > 0);
            return;
        }
        let mut from = 0;
        while let Some(skipped) = found[from..].iter().position(|&is_found| is_found) {
            let start = from + skipped;
            let more = found[start..].iter().position(|&is_found| !is_found);
            from = more.map_or(found.len(), |more| start + more);
            self.each_exact(hashes, start..from, |key, copies| found[key] = copies > 0);
        }
    }

    /// How often the key with this address is in.
    pub(crate) fn count(&self, address: u64) -> u64 {
        if self.state.side.has_answers() {
            return self.count_settled(address);
        }
        self.count_key(address)
    }

    #[cold]
    #[inline(never)]
    fn count_settled(&self, address: u64) -> u64 {
        match self.state.side.answer(address) {
            Some(0) => 0,
            stashed => {
                let count = self.count_key(address);
                count.saturating_add(stashed.unwrap_or(0))
            }
        }
    }

    /// Writes to `counts` how often each key is in.
    pub(crate) fn count_many(&self, hashes: impl Hashes, counts: &mut [u64]) {
        assert_eq!(hashes.len(), counts.len(), "one answer for each key");
        self.count_each(hashes, counts);
        self.each_exact(hashes, 0..counts.len(), |key, copies| {
            counts[key] = if copies > 0 { counts[key].saturating_add(copies) } else { 0 };
        });
    }

    /// Calls `found` with the number of each of these keys that has an exact answer, and its copies
    /// beside the table.
    fn each_exact(
        &self,
        hashes: impl Hashes,
        keys: Range<usize>,
        mut found: impl FnMut(usize, u64),
    ) {
        if !self.state.side.has_answers() {
            return;
        }
        let all = each_address(hashes, keys, |key, address| {
            self.state.side.answer(address).into_iter().for_each(|copies| found(key, copies));
            ControlFlow::<()>::Continue(())
        });
        debug_assert!(all.is_continue());
    }
}
