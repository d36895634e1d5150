//! What commands take at most, in bytes: docs/SECURITY.md, "Commands of the module".
//!
//! The allocator of the module counts. The bytes of a server for arguments, replies and files are
//! not among them.

use redis::{Connection, Value};

use crate::beside::at_once;
use crate::server::{
    Server, await_equal, bytes, call, dump, items, load, module, number, numbers, ok, programs, run,
};

/// What is taken beside filters: what the library works with, a chunk, and small things.
const BESIDE: i64 = (21 << 20) + (2 << 20);

/// Items of a command.
const ASKED: usize = 5000;

/// The most bytes that the module has more during `work`.
fn most(server: &Server, work: impl FnOnce()) -> i64 {
    let connection = &mut server.connect("resp2");
    let mut ask = || number(&ok(connection, "CF.FAULT key BYTES"));
    ask();
    let before = ask();
    work();
    ask() - before
}

/// Runs `test` on every server once.
fn once_on_each(test: impl Fn(&Server, &mut Connection)) {
    for program in programs() {
        println!("{}", program.display());
        let server = Server::start(&program, &[module("")]);
        test(&server, &mut server.connect("resp2"));
    }
}

/// Filters for 20 million items: more than `BESIDE`. Returns the bytes of each.
fn reserve(connection: &mut Connection, keys: &[&str]) -> i64 {
    for key in keys {
        ok(connection, &format!("CF.RESERVE {key} 20000000"));
        ok(connection, &format!("CF.INSERT {key} ITEMS {}", items(key, 0..1000)));
    }
    number(&ok(connection, &format!("CF.INFO {} SIZE", keys[0])))
}

/// On the primary and on its replica, which gets the result in chunks.
#[test]
#[ignore = "needs servers: scripts/valkey"]
fn merges_take_three_filters_and_compactions_two_however_many_wait() {
    once_on_each(|primary, connection| {
        let filter = reserve(connection, &["a", "b", "c"]);
        let (replica, _) = primary.replica();
        await_equal(primary, &replica);
        for (lines, filters, made) in [
            (&["CF.MERGE a b c"][..], 3, 0),
            (&["CF.MERGE new a b c"], 3, 1),
            (&["CF.COMPACT a"], 2, 0),
            (&["CF.COMPACT a", "CF.COMPACT b", "CF.COMPACT c", "CF.COMPACT a"], 2, 0),
            (&["CF.MERGE a b", "CF.MERGE b c", "CF.MERGE c a"], 3, 0),
        ] {
            let on_replica = most(&replica, || {
                let taken = most(primary, || at_once(primary, lines));
                assert!(taken <= filters * filter + BESIDE, "{lines:?}: {taken}");
                await_equal(primary, &replica);
            });
            // It gets the result in chunks, while it has the old one.
            assert!(on_replica <= 2 * filter + BESIDE, "{lines:?}: {on_replica}");
            assert!(made == 0 || number(&ok(connection, "DEL new")) == made);
            await_equal(primary, &replica);
        }
        let script = "return redis.call('CF.MERGE', KEYS[1], KEYS[2])";
        let taken = most(primary, || {
            call(connection, &[b"EVAL", script.as_bytes(), b"2", b"a", b"b"]).unwrap();
        });
        assert!(taken <= 2 * filter + BESIDE, "{taken}");
    });
}

/// Of a client, of a replica, and of a file.
#[test]
#[ignore = "needs servers: scripts/valkey"]
fn what_is_loaded_takes_its_own_size_twice() {
    once_on_each(|primary, connection| {
        let filter = reserve(connection, &["a"]);
        let (replica, _) = primary.replica();
        await_equal(primary, &replica);
        let check = |what: &str, taken: i64| {
            assert!(taken <= 2 * filter + BESIDE, "{what}: {taken}");
        };
        let (first, others) = {
            let mut chunks = dump(connection, "a");
            (chunks.remove(0), chunks)
        };
        let taken = most(primary, || load(connection, "b", &[first]));
        assert!(taken < 100_000, "a header: {taken}");
        let on_replica = most(&replica, || {
            check("chunks", most(primary, || load(connection, "b", &others)));
            await_equal(primary, &replica);
        });
        check("chunks on the replica", on_replica);
        let payload = bytes(ok(connection, "DUMP a"));
        ok(connection, "DEL b");
        let on_replica = most(&replica, || {
            check(
                "a payload",
                most(primary, || {
                    assert_eq!(
                        call(connection, &[b"RESTORE", b"b", b"0", &payload]),
                        Ok(Value::Okay)
                    );
                }),
            );
            await_equal(primary, &replica);
        });
        check("a payload on the replica", on_replica);
        ok(connection, "DEL b");
        // The old filter goes before.
        check("a file", most(primary, || drop(ok(connection, "DEBUG RELOAD"))) + filter);
    });
}

/// As many corrections as slots, of eight bytes each in the file.
#[test]
#[ignore = "needs servers: scripts/valkey"]
fn refuted_items_take_some_bytes_each_and_end_at_the_slots() {
    once_on_each(|primary, connection| {
        ok(connection, "CF.RESERVE f 2000 ERROR 0.3 EXPANSION 0");
        ok(connection, &format!("CF.INSERT f ITEMS {}", items("in", 0..2000)));
        let mut refused = None;
        for round in 0..40 {
            let range = round * ASKED..(round + 1) * ASKED;
            let line = format!("CF.REFUTE f {}", items("out", range));
            let (mut outcome, mut corrected) = (Ok(Value::Nil), 0);
            let taken = most(primary, || outcome = run(connection, &line));
            match outcome {
                Ok(answers) => corrected = numbers(&answers).iter().sum::<i64>(),
                Err(error) => refused = Some(error),
            }
            // For each item its place among the arguments and an answer, and for each that is
            // reported what tells it from others and its correction.
            let most = 20 * i64::try_from(ASKED).unwrap() + 60 * corrected + 4096;
            assert!(taken <= most, "{taken} for {corrected} that were reported");
        }
        let refused = refused.expect("a limit");
        let limit = refused.split("more corrections than the ").nth(1).expect("a limit");
        let limit: i64 = limit.split(' ').next().unwrap().parse().unwrap();
        let corrections = number(&ok(connection, "CF.INFO f CORRECTIONS"));
        assert!(corrections <= limit && limit < 4000, "{corrections} of {limit}");
    });
}
