//! Commands on a thread that end while the server must replicate nothing, or has become another.
//!
//! A server ends at once if a module replicates while writes are paused. So each test lets a
//! command of a large filter begin, changes the server meanwhile, and at last compares it with its
//! replica.

use std::thread;
use std::time::{Duration, Instant};

use redis::{Connection, Value};

use crate::server::{
    Server, await_equal, call, dump, items, load, number, ok, programs, run, until,
};
use crate::values::has;

/// Items of filters that take some tenths of a second: 34 MB.
const LARGE: u32 = 20_000_000;

/// A primary with large filters `x` and `y`, the chunks of one, and a replica.
pub(crate) struct Pair {
    pub(crate) primary: Server,
    replica: Server,
    chunks: Vec<(i64, Vec<u8>)>,
}

impl Pair {
    pub(crate) fn start(program: &std::path::Path) -> Self {
        println!("{}", program.display());
        let primary = Server::start(program, &[crate::server::module("")]);
        let mut connection = primary.connect("resp2");
        for key in ["x", "y"] {
            ok(&mut connection, &format!("CF.RESERVE {key} {LARGE}"));
            ok(&mut connection, &format!("CF.INSERT {key} ITEMS {}", items(key, 0..1000)));
        }
        let chunks = dump(&mut connection, "x");
        let (replica, _) = primary.replica();
        let pair = Self { primary, replica, chunks };
        pair.is_equal();
        pair
    }

    /// Sends a command that runs on a thread, and does `then` once it does. Returns the answer.
    pub(crate) fn beside(
        &self,
        line: &str,
        then: impl FnOnce(&mut Connection),
    ) -> Result<Value, String> {
        let mut other = self.primary.connect("resp2");
        let mut connection = self.primary.connect("resp2");
        let (last, others) = self.chunks.split_last().unwrap();
        if line == "CF.LOADCHUNK" {
            ok(&mut connection, "DEL half");
            load(&mut connection, "half", others);
        }
        thread::scope(|scope| {
            let waits = scope.spawn(|| {
                if line != "CF.LOADCHUNK" {
                    return run(&mut connection, line);
                }
                let iterator = last.0.to_string();
                call(&mut connection, &[b"CF.LOADCHUNK", b"half", iterator.as_bytes(), &last.1])
            });
            until("a thread", || {
                let is_done = waits.is_finished().then_some(());
                is_done.or_else(|| has(&mut other, "clients", "blocked_clients:1\r"))
            });
            then(&mut other);
            waits.join().unwrap()
        })
    }

    /// Waits until the replica has all, and compares.
    pub(crate) fn is_equal(&self) {
        await_equal(&self.primary, &self.replica);
        for server in [&self.primary, &self.replica] {
            let mut connection = server.connect("resp2");
            assert!(has(&mut connection, "everything", "koel_panics:0\r").is_some());
        }
    }
}

/// Done, or refused with nothing changed.
fn is_done_or_refused(outcome: &Result<Value, String>) -> bool {
    outcome.as_ref().map_or_else(|error| error.contains("TRYAGAIN"), |_| true)
}

#[test]
#[ignore = "needs servers: scripts/valkey"]
fn a_command_that_ends_while_clients_are_paused_waits() {
    for program in programs() {
        let pair = Pair::start(&program);
        for line in ["CF.MERGE z x y", "CF.COMPACT x", "CF.LOADCHUNK"] {
            // Until one was caught by the pause.
            until("an answer that waits", || {
                let begun = Instant::now();
                let outcome = pair.beside(line, |other| {
                    ok(other, "CLIENT PAUSE 1500 WRITE");
                });
                assert!(is_done_or_refused(&outcome), "{line}: {outcome:?}");
                pair.is_equal();
                (begun.elapsed() > Duration::from_millis(1400)).then_some(())
            });
        }
        let found = ok(&mut pair.primary.connect("resp2"), "CF.MEXISTS z x1 y1");
        assert_eq!(crate::server::numbers(&found), [1, 1]);
    }
}

/// A failover waits for a replica that is behind, and gives up. Then it does not wait.
#[test]
#[ignore = "needs servers: scripts/valkey"]
fn a_command_that_ends_during_a_failover_is_done_before_or_after_or_not_at_all() {
    for program in programs() {
        let pair = Pair::start(&program);
        let to = format!("127.0.0.1 {}", pair.replica.port());
        let planned = pair.beside("CF.MERGE z x y", |other| {
            pair.replica.stop();
            ok(other, "CF.ADD y behind");
            ok(other, &format!("FAILOVER TO {to} TIMEOUT 1500"));
        });
        pair.replica.go_on();
        assert!(is_done_or_refused(&planned), "{planned:?}");
        pair.is_equal();
        let forced = pair.beside("CF.MERGE z x y", |other| {
            pair.replica.stop();
            ok(other, "CF.ADD y late");
            ok(other, &format!("FAILOVER TO {to} FORCE TIMEOUT 500"));
            thread::sleep(Duration::from_millis(1000));
            pair.replica.go_on();
        });
        // The server became a replica.
        let refused = forced.unwrap_err();
        assert!(["UNBLOCKED", "READONLY"].iter().any(|it| refused.contains(it)), "{refused}");
        let mut now = pair.replica.connect("resp2");
        until("a new primary", || has(&mut now, "replication", "role:master\r"));
        pair.is_equal();
    }
}

/// A server that shuts down waits for its replicas.
#[test]
#[ignore = "needs servers: scripts/valkey"]
fn a_command_that_ends_during_a_shutdown_does_not_kill_the_server() {
    for program in programs() {
        let mut pair = Pair::start(&program);
        let outcome = pair.beside("CF.MERGE z x y", |other| {
            pair.replica.stop();
            ok(other, "CF.ADD y behind");
            thread::scope(|scope| {
                scope.spawn(|| run(other, "SHUTDOWN"));
                thread::sleep(Duration::from_millis(2000));
                pair.replica.go_on();
            });
        });
        assert!(outcome.is_err(), "{outcome:?}");
        let log = pair.primary.log();
        assert!(pair.primary.ends_well(), "{log}");
    }
}

/// The server becomes the replica of another, loads its own files, or runs a script for long.
#[test]
#[ignore = "needs servers: scripts/valkey"]
fn a_command_that_ends_on_a_server_that_has_changed_is_refused_or_run_again() {
    for program in programs() {
        let pair = Pair::start(&program);
        let outcome = pair.beside("CF.MERGE z x y", |other| {
            ok(other, "DEBUG RELOAD");
        });
        assert!(is_done_or_refused(&outcome), "{outcome:?}");
        pair.is_equal();
        let outcome = pair.beside("CF.MERGE z x y", |other| {
            ok(other, "CONFIG SET lua-time-limit 50");
            let script = "redis.call('CF.ADD', KEYS[1], 'script'); \
                          local till = redis.call('TIME')[1] + 2; \
                          while redis.call('TIME')[1] + 0 < till do end";
            call(other, &[b"EVAL", script.as_bytes(), b"1", b"y"]).unwrap();
        });
        assert_eq!(outcome, Ok(Value::Okay));
        pair.is_equal();
        let outcome = pair.beside("CF.MERGE z x y", |other| {
            ok(&mut pair.replica.connect("resp2"), "REPLICAOF NO ONE");
            ok(other, &format!("REPLICAOF 127.0.0.1 {}", pair.replica.port()));
        });
        let refused = outcome.unwrap_err();
        assert!(["UNBLOCKED", "READONLY"].iter().any(|it| refused.contains(it)), "{refused}");
        let mut new = pair.replica.connect("resp2");
        assert_eq!(number(&ok(&mut new, "CF.EXISTS z script")), 1);
        pair.is_equal();
    }
}
