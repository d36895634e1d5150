//! Transactions that run side by side, beside a model that has every version; and in threads.

use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;
use std::thread;

use koel_store::{Durability, Error, LsmOptions, LsmStore, Transaction};
use testkit::storage::{MemoryFolder, Random};

use super::behaviour::{NONE, Outcome};

type State = BTreeMap<Vec<u8>, Vec<u8>>;
type Span = (Bound<Vec<u8>>, Bound<Vec<u8>>);

fn store() -> Result<LsmStore, Error> {
    let options = LsmOptions::default().memtable_bytes(1 << 10).guide(3, 1).seed(1);
    options.few_entries(3).background(false).open_in(Arc::new(MemoryFolder::new()))
}

/// The store as it is, and when each key was last written.
#[derive(Default)]
struct Model {
    now: State,
    written: BTreeMap<Vec<u8>, u64>,
    /// Ranges that were deleted, and when.
    deleted: Vec<(Span, u64)>,
    clock: u64,
}

impl Model {
    fn delete(&mut self, span: &Span) {
        self.clock += 1;
        let keys = within(&self.now, span);
        self.now.retain(|key, _| !keys.contains_key(key));
        self.deleted.push((span.clone(), self.clock));
    }

    /// Returns whether a key was written or deleted after a moment.
    fn is_later(&self, key: &Vec<u8>, moment: u64) -> bool {
        let is_deleted = |(span, at): &(Span, u64)| *at > moment && span.contains(key);
        self.written.get(key).is_some_and(|at| *at > moment) || self.deleted.iter().any(is_deleted)
    }

    fn write(&mut self, key: &[u8], value: Option<&[u8]>) {
        self.clock += 1;
        self.written.insert(key.to_vec(), self.clock);
        match value {
            Some(value) => drop(self.now.insert(key.to_vec(), value.to_vec())),
            None => drop(self.now.remove(key)),
        }
    }
}

/// A transaction and what it must see.
struct Running {
    transaction: Transaction,
    started: u64,
    /// The store at its start, and with its own writes.
    seen: State,
    writes: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    /// The ranges that it deletes before its writes: read, if there is little in them.
    deleted: Vec<Span>,
    /// What it has read of the store: keys and ranges, with what was there.
    keys: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    spans: Vec<(Span, State)>,
}

fn some_key(random: &mut Random) -> Vec<u8> {
    vec![b'a' + random.bytes(1)[0] % 6; 1 + random.below(2)]
}

fn some_bound(random: &mut Random) -> Bound<Vec<u8>> {
    match random.below(3) {
        0 => Bound::Included(some_key(random)),
        1 => Bound::Excluded(some_key(random)),
        _ => Bound::Unbounded,
    }
}

fn within(state: &State, span: &Span) -> State {
    let is_from = |key: &Vec<u8>| match &span.0 {
        Bound::Included(from) => key >= from,
        Bound::Excluded(from) => key > from,
        Bound::Unbounded => true,
    };
    let is_to = |key: &Vec<u8>| match &span.1 {
        Bound::Included(to) => key <= to,
        Bound::Excluded(to) => key < to,
        Bound::Unbounded => true,
    };
    let entries = state.iter().filter(|(key, _)| is_from(key) && is_to(key));
    entries.map(|(key, value)| (key.clone(), value.clone())).collect()
}

impl Running {
    fn begin(store: &LsmStore, model: &Model) -> Self {
        Self {
            transaction: store.transaction(),
            started: model.clock,
            seen: model.now.clone(),
            writes: BTreeMap::new(),
            deleted: Vec::new(),
            keys: Vec::new(),
            spans: Vec::new(),
        }
    }

    /// What it sees: the store at its start and its own writes.
    fn state(&self) -> State {
        let mut state = self.seen.clone();
        state.retain(|key, _| !self.deleted.iter().any(|span| span.contains(key)));
        for (key, value) in &self.writes {
            match value {
                Some(value) => drop(state.insert(key.clone(), value.clone())),
                None => drop(state.remove(key)),
            }
        }
        state
    }

    fn step(&mut self, random: &mut Random) -> Result<(), Error> {
        let key = some_key(random);
        match random.below(14) {
            12 | 13 => {
                let span = (some_bound(random), some_bound(random));
                self.transaction.delete_range::<Vec<u8>>(span.clone())?;
                self.writes.retain(|key, _| !span.contains(key));
                self.deleted.push(span);
            }
            0 | 6 => {
                let value = random.bytes(3);
                self.transaction.put(&key, &value)?;
                self.writes.insert(key, Some(value));
            }
            1 | 7 => {
                self.transaction.delete(&key)?;
                self.writes.insert(key, None);
            }
            2 | 3 | 8 | 9 => {
                let found = if random.chance(50) {
                    self.transaction.get(&key)?
                } else {
                    let is_there = self.transaction.contains(&key)?;
                    self.state().get(&key).filter(|_| is_there).cloned()
                };
                assert_eq!(found, self.state().get(&key).cloned());
                let is_deleted = self.deleted.iter().any(|span| span.contains(&key));
                if !self.writes.contains_key(&key) && !is_deleted {
                    self.keys.push((key, found));
                }
            }
            _ => self.read_range(random)?,
        }
        Ok(())
    }

    fn read_range(&mut self, random: &mut Random) -> Result<(), Error> {
        let (mut span, most) = ((some_bound(random), some_bound(random)), random.below(5));
        let all = within(&self.state(), &span);
        let range = self.transaction.range::<Vec<u8>>(span.clone())?;
        let found: State = range.take(most).collect::<Result<_, _>>()?;
        assert_eq!(found, all.iter().take(most).map(|(k, v)| (k.clone(), v.clone())).collect());
        match found.last_key_value() {
            // It was not asked for more than it had.
            Some((last, _)) if found.len() == most => span.1 = Bound::Included(last.clone()),
            _ if most == 0 => return Ok(()),
            _ => {}
        }
        let there = within(&self.seen, &span);
        self.spans.push((span, there));
        Ok(())
    }

    /// Commits it. Returns whether it conflicts.
    fn commit(mut self, model: &mut Model) -> Result<bool, Error> {
        if self.writes.is_empty() && !self.deleted.is_empty() {
            // If it found nothing to delete, it would have no writes either.
            self.transaction.put(b"z", b"")?;
            self.writes.insert(b"z".to_vec(), Some(Vec::new()));
        }
        let is_later = |key: &Vec<u8>| model.is_later(key, self.started);
        let touches = |span: &Span| {
            let written = model.written.keys().map(|key| (key.clone(), Vec::new())).collect();
            within(&written, span).keys().any(is_later)
        };
        // A range may conflict with any that was deleted.
        let was_deleted = model.deleted.iter().any(|(_, at)| *at > self.started);
        let may_conflict = self.deleted.iter().any(touches)
            || was_deleted && !(self.spans.is_empty() && self.deleted.is_empty());
        let has_conflict = self.keys.iter().any(|(key, _)| is_later(key))
            || self.spans.iter().any(|(span, _)| touches(span));
        // A key that came and went may have left nothing.
        let is_same = self.keys.iter().all(|(key, value)| model.now.get(key) == value.as_ref())
            && self.spans.iter().all(|(span, state)| within(&model.now, span) == *state);
        match self.transaction.commit(NONE) {
            // Without writes it is as of its start.
            Ok(()) if self.writes.is_empty() => {}
            Ok(()) => assert!(!has_conflict || is_same, "it read what has changed"),
            Err(Error::Conflict) => {
                let has_changed = has_conflict || may_conflict;
                assert!(has_changed && !self.writes.is_empty(), "nothing that it read has changed");
                return Ok(true);
            }
            Err(error) => return Err(error),
        }
        self.deleted.iter().for_each(|span| model.delete(span));
        for (key, value) in &self.writes {
            model.write(key, value.as_deref());
        }
        Ok(false)
    }
}

#[test]
fn transactions_commit_exactly_if_nothing_that_they_read_has_changed() -> Outcome {
    let (mut commits, mut conflicts) = (0, 0);
    for seed in 0..30 {
        let (store, mut model, mut random) = (store()?, Model::default(), Random::new(seed));
        let mut running = Vec::new();
        for _ in 0..400 {
            match random.below(12) {
                0 => store.flush()?,
                1 if random.chance(20) => store.compact()?,
                2 | 3 => running.push(Running::begin(&store, &model)),
                4 | 5 if !running.is_empty() => {
                    let done: Running = running.swap_remove(random.below(running.len()));
                    let has_conflict = done.commit(&mut model)?;
                    *(if has_conflict { &mut conflicts } else { &mut commits }) += 1;
                }
                6 => {
                    let (key, value) = (some_key(&mut random), random.bytes(30));
                    store.put(&key, &value, NONE)?;
                    model.write(&key, Some(&value));
                }
                7 => {
                    let key = some_key(&mut random);
                    store.delete(&key, NONE)?;
                    model.write(&key, None);
                }
                8 if random.chance(10) => {
                    let span = (some_bound(&mut random), some_bound(&mut random));
                    store.delete_range::<Vec<u8>>(span.clone(), NONE)?;
                    model.delete(&span);
                }
                _ if running.is_empty() => {}
                _ => {
                    let at = random.below(running.len());
                    running[at].step(&mut random)?;
                }
            }
        }
        let found: State = store.iter()?.collect::<Result<_, _>>()?;
        assert_eq!(found, model.now);
        assert_eq!(store.stats().snapshots > 0, !running.is_empty());
    }
    assert!(commits > 300 && conflicts > 300, "{commits} commits, {conflicts} conflicts");
    Ok(())
}

/// Repeats a transaction until it has no conflict.
fn retry<R>(
    store: &LsmStore,
    mut make: impl FnMut(&mut Transaction) -> Result<R, Error>,
) -> Result<R, Error> {
    loop {
        let mut transaction = store.transaction();
        let made = make(&mut transaction)?;
        match transaction.commit(NONE) {
            Err(Error::Conflict) => {}
            committed => return committed.map(|()| made),
        }
    }
}

#[test]
fn workers_take_each_job_of_a_queue_once_while_others_add_jobs() -> Outcome {
    const JOBS: u32 = 600;
    let options = LsmOptions::default().memtable_bytes(4 << 10).seed(1);
    let store = options.open_in(Arc::new(MemoryFolder::new()))?;
    let add = || {
        for job in 0..JOBS {
            store.put(format!("job/{job:05}").as_bytes(), b"to do", NONE)?;
        }
        Ok::<_, Error>(())
    };
    let work = || {
        let mut taken = 0;
        while taken < JOBS / 3 {
            let job = retry(&store, |transaction| {
                let first = transaction.prefix(b"job/")?.next().transpose()?;
                if let Some((key, _)) = &first {
                    transaction.delete(key)?;
                    transaction.put(&[b"done/", &key[4..]].concat(), b"")?;
                }
                Ok(first)
            })?;
            taken += u32::from(job.is_some());
        }
        Ok::<_, Error>(())
    };
    thread::scope(|scope| {
        let workers = [scope.spawn(work), scope.spawn(work), scope.spawn(work)];
        add()?;
        workers.into_iter().try_for_each(|worker| worker.join().expect("a worker"))
    })?;
    assert_eq!(store.prefix(b"job/")?.count(), 0);
    assert_eq!(store.prefix(b"done/")?.count(), JOBS as usize);
    Ok(())
}

/// Each of two transactions reads what the other writes: one of them must fail.
#[test]
fn of_two_transactions_that_read_what_the_other_writes_one_conflicts() -> Outcome {
    let store = store()?;
    for reads_absent in [false, true] {
        if !reads_absent {
            store.put(b"a", b"on duty", NONE)?;
            store.put(b"b", b"on duty", NONE)?;
        }
        let (mut one, mut other) = (store.transaction(), store.transaction());
        assert_eq!(one.contains(b"b")?, !reads_absent);
        assert_eq!(other.contains(b"a")?, !reads_absent);
        one.delete(b"a")?;
        other.delete(b"b")?;
        one.commit(Durability::Synced)?;
        assert!(matches!(other.commit(NONE), Err(Error::Conflict)));
        store.delete(b"b", NONE)?;
    }
    Ok(())
}
