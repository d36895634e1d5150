//! The writes that a store must hold: all that were made durable, and a prefix of the later ones.
//!
//! The test records each write in [`History`] before the store returns its result, and each moment
//! up to which everything is durable. After a crash [`History::survived`] compares the store with
//! every state it may be in: the durable one, that with the first later write, with the first two,
//! and so on. A batch is one write, so half a batch is no such state. Neither is a lost write, a
//! deleted key that is back, or a write that survives without an earlier one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The keys and values of a store.
pub type State = BTreeMap<Vec<u8>, Vec<u8>>;

/// One atomic write: keys with their new values, or with none to delete them.
pub type Write = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// The writes of a store, in order.
#[derive(Clone, Debug, Default)]
pub struct History {
    durable: State,
    later: VecDeque<Write>,
    now: State,
}

impl History {
    /// Returns the history of an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a write that the store is about to do.
    pub fn write(&mut self, changes: Write) {
        apply(&mut self.now, &changes);
        self.later.push_back(changes);
    }

    /// Notes that all writes so far are durable.
    pub fn synced(&mut self) {
        self.later.clear();
        self.durable.clone_from(&self.now);
    }

    /// Returns the state after all writes.
    #[must_use]
    pub fn now(&self) -> &State {
        &self.now
    }

    /// Returns the number of writes after the durable ones.
    #[must_use]
    pub fn later(&self) -> usize {
        self.later.len()
    }

    /// Makes `found` the new durable state if it has all durable writes and a prefix of the later
    /// ones, with at least the first `acknowledged`. Returns the length of that prefix.
    ///
    /// # Errors
    /// A description of the difference if it is not such a state.
    pub fn survived(&mut self, found: State, acknowledged: usize) -> Result<usize, String> {
        let count = self.prefix(&found, acknowledged)?;
        *self = Self { durable: found.clone(), later: VecDeque::new(), now: found };
        Ok(count)
    }

    /// Like [`survived`](Self::survived), but after the end of a process only, which makes nothing
    /// durable.
    ///
    /// # Errors
    /// As for [`survived`](Self::survived).
    pub fn outlived(&mut self, found: State, acknowledged: usize) -> Result<usize, String> {
        let count = self.prefix(&found, acknowledged)?;
        self.later.truncate(count);
        self.now = found;
        Ok(count)
    }

    /// Returns how many of the later writes are in `found`.
    fn prefix(&self, found: &State, acknowledged: usize) -> Result<usize, String> {
        let mut state = self.durable.clone();
        let mut count = 0;
        while count < acknowledged || state != *found {
            let Some(write) = self.later.get(count) else { return Err(self.complaint(found)) };
            apply(&mut state, write);
            count += 1;
        }
        Ok(count)
    }

    /// Names the keys with values that they never had since the durable state. If there are none,
    /// the values never existed together.
    fn complaint(&self, found: &State) -> String {
        let was = |key: &Vec<u8>| {
            let value = found.get(key);
            let mut later = self.later.iter().flatten();
            self.durable.get(key) == value || later.any(|(k, v)| k == key && v.as_ref() == value)
        };
        let all: BTreeSet<_> = found.keys().chain(self.durable.keys()).collect();
        let wrong: Vec<_> = all.into_iter().filter(|key| !was(key)).collect();
        let later = self.later.len();
        format!("a state that never was, {later} later writes; keys with other values: {wrong:?}")
    }
}

/// Applies the changes to a state.
fn apply(state: &mut State, changes: &Write) {
    for (key, value) in changes {
        match value {
            Some(value) => drop(state.insert(key.clone(), value.clone())),
            None => drop(state.remove(key)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(pairs: &[(&str, &str)]) -> State {
        pairs.iter().map(|(key, value)| (key.as_bytes().into(), value.as_bytes().into())).collect()
    }

    fn put(key: &str, value: &str) -> (Vec<u8>, Option<Vec<u8>>) {
        (key.into(), Some(value.into()))
    }

    /// a = 1 durable; then a and b in one batch, then b deleted.
    fn history() -> History {
        let mut history = History::new();
        history.write(vec![put("a", "1")]);
        history.synced();
        history.write(vec![put("a", "2"), put("b", "2")]);
        history.write(vec![("b".into(), None)]);
        history
    }

    #[test]
    fn each_prefix_is_accepted_and_becomes_the_new_beginning() {
        let prefixes = [
            (state(&[("a", "1")]), 0),
            (state(&[("a", "2"), ("b", "2")]), 1),
            (state(&[("a", "2")]), 2),
        ];
        assert_eq!(*history().now(), prefixes[2].0);
        for (prefix, count) in prefixes {
            let mut history = history();
            assert_eq!(history.survived(prefix.clone(), 0), Ok(count));
            assert_eq!((history.now(), history.later()), (&prefix, 0));
        }
    }

    #[test]
    fn a_lost_write_half_a_batch_a_hole_and_a_revived_key_are_refused() {
        for wrong in [
            state(&[]),
            state(&[("a", "2"), ("b", "1")]),
            state(&[("a", "1"), ("b", "2")]),
            state(&[("a", "2"), ("c", "2")]),
        ] {
            assert!(history().survived(wrong, 0).is_err());
        }
        let mut history = history();
        history.synced();
        let revived = state(&[("a", "2"), ("b", "2")]);
        let complaint = history.survived(revived, 0).unwrap_err();
        assert!(complaint.ends_with("other values: [[98]]"), "{complaint}");
    }

    #[test]
    fn writes_that_survive_the_end_of_a_process_are_not_durable_yet() {
        let mut history = history();
        assert_eq!(history.outlived(state(&[("a", "2"), ("b", "2")]), 0), Ok(1));
        assert_eq!((history.now(), history.later()), (&state(&[("a", "2"), ("b", "2")]), 1));
        assert_eq!(history.clone().survived(state(&[("a", "1")]), 0), Ok(0));
        assert!(history.survived(state(&[("a", "2")]), 0).is_err(), "that write is gone for good");
    }

    #[test]
    fn acknowledged_writes_can_be_required() {
        assert!(history().survived(state(&[("a", "1")]), 1).is_err());
        assert_eq!(history().survived(state(&[("a", "2")]), 2), Ok(2));
    }
}
