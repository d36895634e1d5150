//! Commands on a thread: they wait for one another, lose nothing that is written meanwhile, and
//! never make a server look as if it had failed. `paused` has what may happen to the server.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use koel_valkey::command;
use koel_valkey::keys::{Memory, MemoryKeys};
use redis::{Connection, Value, cmd};

use crate::cluster::{info_has, join, start_nodes_with};
use crate::paused::Pair;
use crate::server::{
    NODE, Server, await_equal, await_replica, bytes, items, load, module, number, numbers, ok,
    programs, run, until,
};
use crate::values::{append_only, await_rewrite, has, total};

/// Values beside their keys.
fn beside(connection: &mut Connection) -> Vec<String> {
    let Value::Array(keys) = ok(connection, "KEYS *.koel.*") else { panic!("no list") };
    keys.into_iter().map(|key| String::from_utf8(bytes(key)).unwrap()).collect()
}

/// Runs commands on the thread at once, each sent when the server has those before it. The first
/// takes longer than to send the others.
pub(crate) fn at_once(server: &Server, lines: &[&str]) {
    let mut watch = server.connect("resp2");
    let mut begun = total(&mut watch, "commands_on_a_thread");
    scope(|scope| {
        for line in lines {
            scope.spawn(move || ok(&mut server.connect("resp2"), line));
            begun += 1;
            until("a command", || {
                (total(&mut watch, "commands_on_a_thread") == begun).then_some(())
            });
        }
    });
}

/// The second of two merges ran on the server's own thread.
#[test]
#[ignore = "needs servers: scripts/valkey"]
fn merges_wait_for_one_another_in_the_order_in_which_they_came() {
    for program in programs() {
        let pair = Pair::start(&program);
        let mut connection = pair.primary.connect("resp2");
        for key in ["a", "b", "p", "q"] {
            ok(&mut connection, &format!("CF.RESERVE {key} 300000"));
            ok(&mut connection, &format!("CF.INSERT {key} ITEMS shared {key}"));
        }
        let before = total(&mut connection, "commands_on_a_thread");
        at_once(
            &pair.primary,
            &["CF.MERGE z x y", "CF.MERGE p a", "CF.MERGE p b", "CF.MERGE q p p", "CF.COMPACT q"],
        );
        assert_eq!(total(&mut connection, "commands_on_a_thread"), before + 5);
        assert_eq!(numbers(&ok(&mut connection, "CF.MCOUNT p shared a b")), [3, 1, 1]);
        assert_eq!(numbers(&ok(&mut connection, "CF.MCOUNT q shared a b q")), [4, 1, 1, 1]);
        // A client that goes away before its turn. Until that was before its turn.
        until("a client that goes away", || {
            let outcome = pair.beside("CF.MERGE z x y", |other| {
                let mut gone = pair.primary.connect("resp2");
                let line = cmd("CF.MERGE").arg("gone").arg("x").get_packed_command();
                gone.send_packed_command(&line).unwrap();
                until("it waits", || {
                    let is_late = has(other, "clients", "blocked_clients:0\r");
                    is_late.or_else(|| has(other, "clients", "blocked_clients:2\r"))
                });
            });
            assert_eq!(outcome, Ok(Value::Okay));
            ok(&mut connection, "CF.MERGE last a b");
            (number(&ok(&mut connection, "DEL gone")) == 0).then_some(())
        });
        assert_eq!(beside(&mut connection), [""; 0]);
        pair.is_equal();
    }
}

/// Replicas, files, and a replica that comes while a union is sent have all that was written.
#[test]
#[ignore = "needs servers: scripts/valkey"]
fn a_destination_that_is_written_during_a_merge_loses_nothing() {
    for program in programs() {
        let pair = Pair::start(&program);
        let mut connection = pair.primary.connect("resp2");
        append_only(&mut connection);
        // Nothing is deleted that was not added: on a fast machine there are more rounds than x had
        // items, and a single one may be reported before it is added.
        let of_x = |round| if round < 1000 { format!("x{round}") } else { String::new() };
        for (turn, line) in (0..).zip(["CF.MERGE x y", "CF.COMPACT x"]) {
            let (mut second, mut rounds) = (None, 0);
            let outcome = pair.beside(line, |other| {
                while has(other, "clients", "blocked_clients:1\r").is_some() {
                    let all = items("round", rounds * 20..rounds * 20 + 20);
                    ok(other, &format!("CF.INSERT x ITEMS {all}"));
                    ok(other, &format!("CF.MDEL x round{} {}", rounds * 20, of_x(rounds)));
                    ok(other, &format!("CF.ADDNX x single{turn}-{rounds}"));
                    rounds += 1;
                    if rounds == 20 {
                        ok(other, "BGREWRITEAOF");
                        second = Some(pair.primary.replica().0);
                    }
                }
            });
            assert_eq!(outcome, Ok(Value::Okay), "{line}");
            assert!(rounds > 20, "{rounds}");
            // Some of thousands of items may share an entry by chance.
            let mut surplus = 0;
            for round in 0..rounds {
                let all = items("round", round * 20..round * 20 + 20);
                let line = format!("CF.MCOUNT x {all} single{turn}-{round}");
                let counts = numbers(&ok(&mut connection, &line));
                assert!(counts[1..].iter().all(|&count| count > 0), "{round}: {counts:?}");
                surplus += counts.iter().sum::<i64>() - 20;
            }
            assert!(surplus < 10, "{surplus} too many after {rounds} rounds");
            pair.is_equal();
            await_equal(&pair.primary, &second.expect("a second replica"));
            await_rewrite(&mut connection);
            let before = ok(&mut connection, "DEBUG DIGEST");
            ok(&mut connection, "DEBUG LOADAOF");
            assert_eq!(ok(&mut connection, "DEBUG DIGEST"), before, "{line}");
            // The same numbers again.
            for round in 0..rounds {
                let all = items("round", round * 20 + 1..round * 20 + 20);
                ok(&mut connection, &format!("CF.MDEL x {all}"));
                if round < 1000 {
                    ok(&mut connection, &format!("CF.ADD x x{round}"));
                }
            }
        }
        assert_eq!(numbers(&ok(&mut connection, "CF.MCOUNT x x999 y999")), [1, 1]);
    }
}

/// A key that is replaced again and again, and a value that is deleted, evicted or flushed.
#[test]
#[ignore = "needs servers: scripts/valkey"]
fn a_merge_that_cannot_follow_changes_nothing() {
    for program in programs() {
        let pair = Pair::start(&program);
        let mut connection = pair.primary.connect("resp2");
        let replaced = pair.beside("CF.MERGE x y", |other| {
            while has(other, "clients", "blocked_clients:1\r").is_some() {
                ok(other, "COPY y x REPLACE");
                sleep(Duration::from_millis(50));
            }
        });
        assert!(replaced.as_ref().unwrap_err().contains("changes faster"), "{replaced:?}");
        assert_eq!(numbers(&ok(&mut connection, "CF.MCOUNT x x1 y1")), [0, 1]);
        // Once is no harm.
        let replaced = pair.beside("CF.MERGE x y", |other| {
            sleep(Duration::from_millis(100));
            ok(other, "COPY y x REPLACE");
        });
        assert_eq!(replaced, Ok(Value::Okay));
        assert_eq!(numbers(&ok(&mut connection, "CF.MCOUNT x x1 y1")), [0, 2]);
        for how in ["DEL", "COPY", "FLUSHALL"] {
            let lost = pair.beside("CF.MERGE x y", |other| {
                let key = until("a value", || beside(other).pop());
                let line = match how {
                    "COPY" => format!("COPY y {key} REPLACE"),
                    "DEL" => format!("DEL {key}"),
                    _ => how.to_owned(),
                };
                ok(other, &line);
            });
            assert!(lost.as_ref().unwrap_err().contains("TRYAGAIN"), "{how}: {lost:?}");
            assert_eq!(beside(&mut connection), [""; 0]);
            pair.is_equal();
        }
    }
}

/// A value beside its key that a failed primary leaves does not stay for ever, and a slot that
/// goes away takes its merge along.
#[test]
#[ignore = "needs servers: scripts/valkey"]
fn a_merge_ends_with_the_slot_of_its_key() {
    for program in programs() {
        let server = Server::start_with(&program, &[module("")], &NODE);
        let mut connection = server.connect("resp2");
        ok(&mut connection, "CLUSTER ADDSLOTSRANGE 0 16383");
        until("a cluster", || info_has(&server, "CLUSTER INFO", "cluster_state:ok"));
        // Names beside these keys are in their slots; there is none beside the last.
        for (key, on_threads) in [("plain", 1), ("{tag}more", 1), ("{}odd", 0), ("a{tag}{x}", 1)] {
            ok(&mut connection, &format!("CF.RESERVE {key} 20000000"));
            let before = total(&mut connection, "commands_on_a_thread");
            ok(&mut connection, &format!("CF.COMPACT {key}"));
            let threads = total(&mut connection, "commands_on_a_thread") - before;
            assert_eq!(threads, on_threads, "{key}");
        }
        ok(&mut connection, "CF.RESERVE {s}a 20000000");
        let slot = number(&ok(&mut connection, "CLUSTER KEYSLOT {s}a"));
        let mut other = server.connect("resp2");
        let outcome = scope(|scope| {
            let merge = scope.spawn(|| run(&mut connection, "CF.MERGE {s}a {s}a"));
            let key = until("a value", || beside(&mut other).pop());
            let lives = number(&ok(&mut other, &format!("PTTL {key}")));
            assert!((3_500_000..=3_600_000).contains(&lives), "{lives}");
            ok(&mut other, &format!("CLUSTER DELSLOTS {slot}"));
            merge.join().unwrap()
        });
        // The server may tell the client before the thread does.
        let refused = outcome.unwrap_err();
        assert!(["the slot", "CLUSTERDOWN"].iter().any(|it| refused.contains(it)), "{refused}");
    }
}

/// A filter of 10 million items in 21 million, as its chunks.
fn ten_million(name: &str) -> Vec<(i64, Vec<u8>)> {
    let mut memory = Memory { limit: u64::MAX, ..Memory::default() };
    let mut run = |words: &[&[u8]]| {
        let mut keys = MemoryKeys { memory: &mut memory, arguments: words, events: Vec::new() };
        command::run(&mut keys, words).unwrap()
    };
    run(&[b"RESERVE", b"f", b"21000000", b"SECRET", b"NO"]);
    for start in (0..10_000_000).step_by(10_000) {
        let words: Vec<String> = (start..start + 10_000).map(|it| format!("{name}{it}")).collect();
        let line = [&b"INSERT"[..], b"f", b"ITEMS"].into_iter();
        run(&line.chain(words.iter().map(String::as_bytes)).collect::<Vec<_>>());
    }
    let filter = memory.values.remove(&b"f"[..]).flatten().unwrap();
    let mut chunks = vec![(1, filter.header().encode())];
    let Ok(()) = filter.chunks(16 << 20, |chunk| {
        let next = chunks.last().map_or(1, |last: &(i64, _)| last.0);
        chunks.push((next + i64::try_from(chunk.len()).unwrap(), chunk.to_vec()));
        Ok::<(), std::convert::Infallible>(())
    });
    chunks
}

/// A replica of 6 and 3 million items answered no `PING` for 4.2 s and was marked as failed, and so
/// was a primary with two merges at once.
#[test]
#[ignore = "needs servers: scripts/valkey"]
fn nobody_is_marked_as_failed_while_two_merges_of_ten_million_run_at_once() {
    let nodes = start_nodes_with(&["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"]);
    join(&nodes);
    let owns = |node: &Server| run(&mut node.connect("resp2"), "TTL {t}u").is_ok();
    let primary = until("an owner", || nodes[..3].iter().find(|node| owns(node)));
    let mut connection = primary.connect("resp2");
    for name in ["a", "b"] {
        load(&mut connection, &format!("{{t}}{name}"), &ten_million(name));
    }
    await_replica(&mut connection);
    let stop = AtomicBool::new(false);
    scope(|scope| {
        let watchers: Vec<_> =
            nodes.iter().map(|node| scope.spawn(|| watch(node, &stop))).collect();
        at_once(primary, &["CF.MERGE {t}u {t}a {t}b", "CF.MERGE {t}v {t}b {t}a"]);
        await_replica(&mut primary.connect("resp2"));
        stop.store(true, Ordering::Relaxed);
        for (node, watcher) in watchers.into_iter().enumerate() {
            let longest = watcher.join().unwrap();
            println!("node {node}: the longest PING took {longest:?}");
            assert!(longest < Duration::from_millis(1000), "{longest:?}");
        }
    });
    for key in ["u", "v"] {
        let line = format!("CF.MCOUNT {{t}}{key} a1 b1 a9999999 b9999999");
        assert_eq!(numbers(&ok(&mut connection, &line)), [1; 4]);
    }
}

/// Sends `PING` to a node. The longest time that an answer took.
fn watch(node: &Server, stop: &AtomicBool) -> Duration {
    let (mut connection, mut longest) = (node.connect("resp2"), Duration::ZERO);
    while !stop.load(Ordering::Relaxed) {
        let sent = Instant::now();
        ok(&mut connection, "PING");
        longest = longest.max(sent.elapsed());
        let nodes = String::from_utf8(bytes(ok(&mut connection, "CLUSTER NODES"))).unwrap();
        assert!(!nodes.contains("fail"), "{nodes}");
        sleep(Duration::from_millis(5));
    }
    longest
}
