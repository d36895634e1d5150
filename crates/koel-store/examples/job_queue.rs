//! A queue of jobs that several threads work at: each job is done once, also after a crash.
//!
//! * `todo/NUMBER` has a job. Numbers ascend, so the first key is the oldest job.
//! * `doing/NUMBER` has a job that a worker has taken. After a crash these go back to `todo/`.
//! * `done/NUMBER` has the result.
//!
//! A transaction moves a job from one to the next. If two workers see the same first job, one of
//! them commits, and the other gets `Error::Conflict` and looks again.

use std::path::Path;
use std::thread;

use koel_store::{Durability, Error, LsmStore, Transaction};

type Job = (Vec<u8>, Vec<u8>);

/// Makes a transaction again until nobody has changed what it read.
fn transact<R>(
    store: &LsmStore,
    make: impl Fn(&mut Transaction) -> Result<R, Error>,
) -> Result<R, Error> {
    loop {
        let mut transaction = store.transaction();
        let result = make(&mut transaction)?;
        match transaction.commit(Durability::None) {
            Err(Error::Conflict) => {}
            committed => return committed.map(|()| result),
        }
    }
}

/// Moves a job to the keys that start with `to`, with a new value.
fn move_to(transaction: &mut Transaction, key: &[u8], to: &str, value: &[u8]) -> Result<(), Error> {
    let number = key.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    transaction.delete(key)?.put(&[to.as_bytes(), number].concat(), value)?;
    Ok(())
}

/// Takes the oldest job, if there is one.
fn take(store: &LsmStore) -> Result<Option<Job>, Error> {
    transact(store, |transaction| {
        let first = transaction.prefix(b"todo/")?.next().transpose()?;
        if let Some((key, job)) = &first {
            move_to(transaction, key, "doing/", job)?;
        }
        Ok(first)
    })
}

/// Does jobs until there are none. Returns how many.
fn work(store: &LsmStore) -> Result<u32, Error> {
    let mut count = 0;
    while let Some((key, job)) = take(store)? {
        let result = job.to_ascii_uppercase();
        let key = [b"doing/", key.strip_prefix(b"todo/").unwrap_or(&key)].concat();
        transact(store, |transaction| move_to(transaction, &key, "done/", &result))?;
        count += 1;
    }
    Ok(count)
}

/// Opens a queue. What workers of an earlier process had taken is to be done again.
fn open(path: &Path) -> Result<LsmStore, Error> {
    let store = LsmStore::open(path)?;
    for taken in store.prefix(b"doing/")? {
        let (key, job) = taken?;
        transact(&store, |transaction| move_to(transaction, &key, "todo/", &job))?;
    }
    Ok(store)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let queue = open(folder.path())?;
    for number in 0..1000 {
        let key = format!("todo/{number:08}");
        queue.put(key.as_bytes(), format!("job {number}").as_bytes(), Durability::None)?;
    }
    // A worker takes one and dies.
    take(&queue)?;
    queue.close()?;

    let queue = open(folder.path())?;
    let counts: Vec<u32> = thread::scope(|scope| {
        let workers = [(); 4].map(|()| scope.spawn(|| work(&queue)));
        workers.into_iter().map(|worker| worker.join().expect("a worker")).collect::<Result<_, _>>()
    })?;
    println!("jobs done by each worker: {counts:?}");
    assert_eq!((counts.iter().sum(), queue.prefix(b"done/")?.count()), (1000, 1000));
    assert_eq!(queue.get(b"done/00000007")?.as_deref(), Some(&b"JOB 7"[..]));
    Ok(())
}
