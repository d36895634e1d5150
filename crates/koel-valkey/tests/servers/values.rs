//! Saving, loading, copying and replicating filters of all kinds.

use redis::{Connection, Value};
use testkit::storage::Random;

use crate::server::{
    Server, await_replica, bytes, call, dump, items, load, module, number, numbers, ok, on_each,
    programs, run, until,
};

/// A filter in RedisBloom's layout, of two tables with some fingerprints.
pub(crate) fn reference_chunks() -> Vec<(i64, Vec<u8>)> {
    let numbers: [u64; 4] = [3, 4, 1, 2];
    let mut header: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    header.extend([2, 0, 20, 0, 2, 0]);
    vec![(1, header), (9, vec![7, 0, 0, 0, 8, 0, 0, 0]), (25, vec![9; 16])]
}

/// Makes filters: empty, fixed, with copies, grown, in RedisBloom's layout, with a window, and half
/// loaded.
fn fill(connection: &mut Connection) -> Vec<&'static str> {
    ok(connection, "CF.RESERVE empty 100 ERROR 0.01");
    ok(connection, "CF.RESERVE fixed 5000 EXPANSION 0 PREFER FAST");
    for start in (0..20_000).step_by(1000) {
        let line = items("item", start..start + 1000);
        ok(connection, &format!("CF.INSERT grown ITEMS {line}"));
    }
    for _ in 0..50 {
        ok(connection, &format!("CF.INSERT copies ITEMS {}", items("copy", 0..40)));
    }
    ok(connection, &format!("CF.INSERT fixed ITEMS {}", items("item", 0..4000)));
    load(connection, "compat", &reference_chunks());
    // It has grown, too.
    ok(connection, "CF.RESERVE window 1000 WINDOW 100000");
    let reserved = number(&ok(connection, "CF.INFO window SIZE"));
    for start in (0..20_000).step_by(1000) {
        ok(connection, &format!("CF.INSERT window ITEMS {}", items("x", start..start + 1000)));
    }
    assert!(number(&ok(connection, "CF.INFO window SIZE")) > 2 * reserved);
    let chunks = dump(connection, "grown");
    let half = [chunks[0].clone(), (1001, chunks[1].1[..1000].to_vec())];
    load(connection, "half", &half);
    vec!["empty", "fixed", "copies", "grown", "compat", "window", "half"]
}

pub(crate) fn digest(connection: &mut Connection, key: &str) -> Vec<u8> {
    let Value::Array(mut digests) = ok(connection, &format!("DEBUG DIGEST-VALUE {key}")) else {
        panic!("no digest")
    };
    bytes(digests.remove(0))
}

#[test]
#[ignore = "needs servers: scripts/valkey"]
fn filters_survive_files_copies_and_payloads() {
    on_each(|_, connection| {
        let keys = fill(connection);
        let before: Vec<_> = keys.iter().map(|key| digest(connection, key)).collect();
        let dumps: Vec<_> = keys.iter().map(|key| dump(connection, key)).collect();
        ok(connection, "CONFIG SET aof-use-rdb-preamble no");
        for reload in ["DEBUG RELOAD", "DEBUG LOADAOF"] {
            if reload == "DEBUG LOADAOF" {
                append_only(connection);
            }
            ok(connection, reload);
            let after: Vec<_> = keys.iter().map(|key| digest(connection, key)).collect();
            assert!(before == after, "{reload}");
        }
        for (key, dump_before) in keys.iter().zip(&dumps) {
            ok(connection, &format!("COPY {key} copy"));
            let payload = bytes(ok(connection, &format!("DUMP {key}")));
            let restored = call(connection, &[b"RESTORE", b"restored", b"0", &payload]);
            assert_eq!(restored, Ok(Value::Okay));
            load(connection, "loaded", dump_before);
            for copy in ["copy", "restored", "loaded"] {
                assert!(digest(connection, copy) == digest(connection, key), "{key}");
                assert!(dump(connection, copy) == *dump_before, "{key}");
                assert_eq!(ok(connection, &format!("TYPE {copy}")), text("MBbloomCF"));
            }
            ok(connection, "DEL copy restored loaded");
        }
        let usage = number(&ok(connection, "MEMORY USAGE grown"));
        let size = number(&ok(connection, "CF.INFO grown SIZE"));
        // The allocator rounds sizes up, by a quarter at most.
        assert!((size..size * 5 / 4 + 8192).contains(&usage), "{usage} for {size}");
        let found = numbers(&ok(connection, &format!("CF.MEXISTS grown {}", items("item", 0..99))));
        assert!(found.iter().all(|&found| found == 1));
    });
}

fn text(word: &str) -> Value {
    Value::SimpleString(word.to_owned())
}

/// From now on the server writes an append-only file.
pub(crate) fn append_only(connection: &mut Connection) {
    ok(connection, "CONFIG SET appendonly yes");
    await_rewrite(connection);
}

pub(crate) fn await_rewrite(connection: &mut Connection) {
    let idle = ["aof_rewrite_in_progress:0", "aof_rewrite_scheduled:0", "rdb_bgsave_in_progress:0"];
    until("a rewrite", || {
        let info = String::from_utf8_lossy(&info(connection, "persistence")).into_owned();
        idle.iter().all(|line| info.contains(line)).then_some(())
    });
}

/// INFO as bytes, in either protocol.
pub(crate) fn info(connection: &mut Connection, section: &str) -> Vec<u8> {
    match ok(connection, &format!("INFO {section}")) {
        Value::VerbatimString { text, .. } => text.into_bytes(),
        other => bytes(other),
    }
}

/// Whether INFO has a line.
pub(crate) fn has(connection: &mut Connection, section: &str, line: &str) -> Option<()> {
    let text = String::from_utf8(info(connection, section)).unwrap();
    text.contains(line).then_some(())
}

/// A number of the server in INFO.
pub(crate) fn used_memory(connection: &mut Connection) -> i64 {
    let text = String::from_utf8(info(connection, "memory")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("used_memory:"));
    line.unwrap().parse().unwrap()
}

/// A number of the module in INFO.
pub(crate) fn total(connection: &mut Connection, name: &str) -> u64 {
    let text = String::from_utf8(info(connection, "everything")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("koel_{name}:")));
    line.unwrap_or_else(|| panic!("{name}: {text}")).parse().unwrap()
}

#[test]
#[ignore = "needs servers: scripts/valkey"]
fn a_replica_is_equal_byte_by_byte() {
    on_each(|primary, connection| {
        // Half of it comes with the file, the other half as commands.
        let keys = fill(connection);
        let (_replica, mut other) = primary.replica();
        await_replica(connection);
        let mut random = Random::new(3);
        for _ in 0..300 {
            let (key, item) = (["empty", "copies", "new"][random.below(3)], random.below(500));
            let line = match random.below(5) {
                0 => format!("CF.ADD {key} {item}"),
                1 => format!("CF.INSERTNX {key} ITEMS {}", items("x", item..item + 50)),
                2 => format!("CF.INSERT {key} CAPACITY 5000 ITEMS {}", items("x", item..item + 50)),
                3 => format!("CF.MDEL {key} {}", items("x", item..item + 3)),
                _ => format!("CF.ADD compat {item}"),
            };
            drop(run(connection, &line));
        }
        ok(connection, "CF.COMPACT copies");
        ok(connection, "CF.MERGE sum new new");
        await_replica(connection);
        for key in keys.into_iter().chain(["new", "sum"]) {
            assert!(digest(connection, key) == digest(&mut other, key), "{key}");
        }
        assert_eq!(ok(connection, "DEBUG DIGEST"), ok(&mut other, "DEBUG DIGEST"));
    });
}

/// A primary with a limit adds some items of a command and refuses others. Its replica and its
/// append-only file have no limit, and get only those that were added.
#[test]
#[ignore = "needs servers: scripts/valkey"]
fn items_that_the_limit_of_a_primary_refuses_do_not_get_to_replicas() {
    for program in programs() {
        let primary = Server::start(&program, &[module("MAX-KEY-BYTES 100")]);
        let replica = Server::start(&program, &[module("")]);
        let (mut connection, mut other) = (primary.connect("resp2"), replica.connect("resp2"));
        let connection = &mut connection;
        ok(&mut other, &format!("REPLICAOF 127.0.0.1 {}", primary.port()));
        append_only(connection);
        for key in ["f", "g", "h"] {
            load(connection, key, &reference_chunks());
        }
        // The first table has 6 free slots and the third one gets 32. The fourth one is refused.
        for line in ["INSERT f ITEMS", "INSERTNX g NOCREATE ITEMS", "AT 5 INSERT h ITEMS"] {
            let added = numbers(&ok(connection, &format!("CF.{line} {}", items("i", 0..60))));
            let count = added.iter().filter(|&&added| added == 1).count();
            assert!((20..=38).contains(&count) && added.contains(&-1), "{line}: {added:?}");
        }
        let refused = run(connection, "CF.ADD f another").unwrap_err();
        assert!(refused.contains("a key may take 100"), "{refused}");
        await_replica(connection);
        let before = ok(connection, "DEBUG DIGEST");
        assert_eq!(before, ok(&mut other, "DEBUG DIGEST"));
        ok(connection, "DEBUG LOADAOF");
        assert_eq!(before, ok(connection, "DEBUG DIGEST"));
    }
}

/// Payloads whose bytes were changed are refused, or load as a filter that works.
#[test]
#[ignore = "needs servers: scripts/valkey"]
fn hostile_payloads_do_no_harm() {
    on_each(|server, connection| {
        fill(connection);
        ok(connection, "DEBUG SET-SKIP-CHECKSUM-VALIDATION 1");
        let mut random = Random::new(8);
        let mut refused = 0;
        for round in 0..1500 {
            let key = ["empty", "compat", "copies", "half"][round % 4];
            let mut payload = bytes(ok(connection, &format!("DUMP {key}")));
            // The last ten bytes are the version and the checksum of the server.
            let end = payload.len() - 10;
            for _ in 0..=random.below(3) {
                // Mostly in the fields at the beginning.
                let limit = if random.chance(70) { end.min(90) } else { end };
                payload[random.below(limit)] = random.next_u64().to_le_bytes()[0];
            }
            if random.chance(10) {
                payload.drain(random.below(end)..end);
            }
            match call(connection, &[b"RESTORE", b"r", b"0", &payload, b"REPLACE"]) {
                Ok(_) => {
                    for line in ["CF.INSERT r ITEMS 1 2", "CF.MEXISTS r 1 2", "CF.INFO r"] {
                        drop(run(connection, line));
                    }
                }
                Err(_) => refused += 1,
            }
        }
        assert!(refused > 500, "{refused} payloads were refused");
        assert_eq!(ok(connection, "PING"), text("PONG"));
        assert!(!server.log().contains("crashed"));
    });
}
