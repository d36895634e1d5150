//! What the server shows and enforces: notifications, memory, access, transactions, settings.

use koel_valkey::command::COMMANDS;
use koel_valkey::command::syntax::arguments;
use redis::{Connection, Value};

use crate::server::{
    Server, await_replica, bytes, items, module, number, numbers, ok, on_each, programs, reference,
    run, until,
};
use crate::values::{append_only, has, info, total, used_memory};

/// A field of `COMMAND INFO` or of a map, whatever the protocol makes of it.
fn shown(value: &Value) -> String {
    format!("{value:?}").to_lowercase()
}

#[test]
#[ignore = "needs servers: scripts/valkey"]
fn replies_have_the_types_of_the_protocol() {
    on_each(|_, connection| {
        let is_resp3 = matches!(ok(connection, "CF.ADD f a"), Value::Boolean(true));
        let yes = |yes: bool| if is_resp3 { Value::Boolean(yes) } else { Value::Int(yes.into()) };
        let list = |all: &[bool]| Value::Array(all.iter().copied().map(yes).collect());
        assert_eq!(ok(connection, "CF.ADDNX f a"), yes(false));
        assert_eq!(ok(connection, "CF.EXISTS f a"), yes(true));
        assert_eq!(ok(connection, "CF.MEXISTS f a b"), list(&[true, false]));
        assert_eq!(ok(connection, "CF.INSERT f ITEMS a b"), list(&[true, true]));
        let integers = Value::Array(vec![Value::Int(0), Value::Int(1)]);
        assert_eq!(ok(connection, "CF.INSERTNX f ITEMS a c"), integers);
        assert_eq!(ok(connection, "CF.COUNT f a"), Value::Int(2));
        let counts = Value::Array(vec![Value::Int(2), Value::Int(0)]);
        assert_eq!(ok(connection, "CF.MCOUNT f a z"), counts);
        assert_eq!(ok(connection, "CF.DEL f a"), yes(true));
        assert_eq!(ok(connection, "CF.MDEL f a z"), list(&[true, false]));
        match ok(connection, "CF.INFO f") {
            Value::Map(entries) => assert!(is_resp3 && entries.len() == 8),
            Value::Array(entries) => assert!(!is_resp3 && entries.len() == 16),
            other => panic!("{other:?}"),
        }
        match ok(connection, "CF.INFO f ERROR") {
            Value::Double(error) => assert!(is_resp3 && error == 0.001),
            other => assert_eq!(bytes(other), b"0.001"),
        }
        ok(connection, "CF.RESERVE full 100 EXPANSION 0");
        let answers =
            numbers(&ok(connection, &format!("CF.INSERT full ITEMS {}", items("i", 0..900))));
        let full = if is_resp3 { 0 } else { -1 };
        assert!(answers[..100].iter().all(|&added| added == 1) && answers.contains(&full));
        assert!(answers.iter().all(|&added| added == 1 || added == full));
    });
}

#[test]
#[ignore = "needs servers: scripts/valkey"]
fn the_server_describes_the_commands() {
    on_each(|server, connection| {
        let command = shown(&ok(connection, "COMMAND INFO CF.ADD"));
        for word in ["denyoom", "write", "fast"] {
            assert!(command.contains(word), "{command}");
        }
        let docs = shown(&ok(connection, "COMMAND DOCS CF.MERGE"));
        assert!(docs.contains("adds the items of filters to another"), "{docs}");
        assert!(docs.contains("merged with itself, a filter has each twice"), "{docs}");
        for command in COMMANDS {
            let docs = shown(&ok(connection, &format!("COMMAND DOCS CF.{}", command.name)));
            let named = arguments(command.syntax);
            for argument in named.iter().flat_map(|it| it.parts.iter().chain([it])) {
                let words = [Some(argument.name.as_str()), argument.token];
                for word in words.into_iter().flatten() {
                    assert!(docs.contains(&word.to_lowercase()), "{word}: {docs}");
                }
            }
            let words = ["arguments", "type", "key", "key_spec_index"];
            assert!(words.iter().all(|word| docs.contains(word)), "{docs}");
        }
        let keys = shown(&ok(connection, "COMMAND GETKEYS CF.MERGE to from1 from2"));
        let Value::Array(list) = ok(connection, "COMMAND GETKEYS CF.MERGE to from1 from2") else {
            panic!("{keys}")
        };
        assert_eq!(list.len(), 3);
        // Redis 7.0 has no categories of modules.
        if has(connection, "server", "redis_version:7.0").is_some() {
            return;
        }
        assert!(shown(&ok(connection, "COMMAND INFO CF.EXISTS")).contains("@read"));
        ok(connection, "ACL SETUSER reader on nopass ~* -@all +@cuckoo -@write");
        ok(connection, "CF.ADD f a");
        ok(connection, "AUTH reader none");
        ok(connection, "CF.EXISTS f a");
        // Nor the secret of all filters, nor filters of anybody's making.
        for line in ["CF.ADD f b", "CF.SCANDUMP f 0", "CF.LOADCHUNK g 1 x", "CF.AT 1 ADD f b"] {
            let refused = run(connection, line).unwrap_err();
            assert!(refused.starts_with("NOPERM"), "{refused}");
        }
        let mut other = server.connect("resp2");
        let dangerous = shown(&ok(&mut other, "ACL CAT dangerous"));
        for name in ["cf.scandump", "cf.loadchunk", "cf.at"] {
            assert!(dangerous.contains(name), "{dangerous}");
        }
        ok(&mut other, "ACL SETUSER all on nopass ~* +@all -@dangerous");
        ok(&mut other, "AUTH all none");
        assert!(run(&mut other, "CF.SCANDUMP f 0").unwrap_err().starts_with("NOPERM"));
        ok(&mut other, "CF.ADD f c");
    });
}

#[test]
#[ignore = "needs servers: scripts/valkey"]
fn memory_is_counted_and_limited() {
    on_each(|_, connection| {
        let before = used_memory(connection);
        ok(connection, "CF.RESERVE big 10000000");
        let taken = used_memory(connection) - before;
        assert!((13_000_000..18_000_000).contains(&taken), "{taken}");
        ok(connection, "CF.ADD big a");
        ok(connection, "CONFIG SET maxmemory 1mb");
        for line in
            ["CF.ADD big b", "CF.RESERVE other 9", "CF.INSERT big ITEMS b", "CF.MERGE a big"]
        {
            assert!(run(connection, line).unwrap_err().starts_with("OOM"), "{line}");
        }
        assert_eq!(number(&ok(connection, "CF.DEL big a")), 1);
        assert_eq!(number(&ok(connection, "CF.EXISTS big a")), 0);
        ok(connection, "UNLINK big");
        ok(connection, "CONFIG SET maxmemory 0");
        assert_eq!(total(connection, "panics"), 0);
    });
}

/// `scripts/valkey` builds the module with a command that panics.
#[test]
#[ignore = "needs servers: scripts/valkey"]
fn a_panic_ends_a_command_and_not_the_server() {
    on_each(|server, connection| {
        ok(connection, "CF.ADD f a");
        for panics in 1..=3 {
            let refused = run(connection, "CF.FAULT f").unwrap_err();
            assert!(refused.contains("koel has a defect, please report it: a fault"), "{refused}");
            assert_eq!(total(connection, "panics"), panics);
        }
        ok(connection, "CF.ADD f b");
        assert_eq!(numbers(&ok(connection, "CF.MCOUNT f a b c")), [1, 1, 0]);
        assert!(server.log().contains("koel: a panic at"));
    });
}

/// The server took a file for a good one in which a filter was missing.
#[test]
#[ignore = "needs servers: scripts/valkey"]
fn a_panic_while_a_filter_is_saved_fails_the_file() {
    on_each(|_, connection| {
        ok(connection, "CF.ADD f a");
        for (command, status) in [("PING", "ok"), ("CF.FAULT f SAVE", "err")] {
            ok(connection, command);
            ok(connection, "BGSAVE");
            until("a file", || has(connection, "persistence", "rdb_bgsave_in_progress:0\r"));
            let line = format!("rdb_last_bgsave_status:{status}\r");
            assert!(has(connection, "persistence", &line).is_some(), "{command}");
        }
    });
}

#[test]
#[ignore = "needs servers: scripts/valkey"]
fn changes_are_announced_and_only_changes() {
    on_each(|server, connection| {
        ok(connection, "CONFIG SET notify-keyspace-events KEA");
        let mut listener = server.connect("resp2");
        let mut listener = listener.as_pubsub();
        listener.psubscribe("__keyevent@0__:cf.*").unwrap();
        listener.set_read_timeout(Some(std::time::Duration::from_secs(300))).unwrap();
        for line in ["CF.ADD f a", "CF.ADDNX f a", "CF.EXISTS f a", "CF.DEL f a", "CF.COMPACT f"] {
            ok(connection, line);
        }
        for event in ["add", "del", "compact"] {
            let message = listener.get_message().unwrap();
            assert_eq!(message.get_channel_name(), format!("__keyevent@0__:cf.{event}"));
        }
        // A transaction that watches a key goes through unless the key was changed.
        let mut other = server.connect("resp2");
        for (line, goes_through) in [("CF.ADDNX f b", false), ("CF.ADDNX f b", true)] {
            ok(connection, "WATCH f");
            ok(&mut other, line);
            ok(connection, "MULTI");
            ok(connection, "PING");
            let outcome = ok(connection, "EXEC");
            assert_eq!(outcome != Value::Nil, goes_through);
        }
    });
}

/// Beside RedisBloom in one server, under other names.
#[test]
#[ignore = "needs servers: scripts/valkey"]
fn two_modules_can_live_in_one_server() {
    for program in programs() {
        let ours = module("PREFIX kf NAME koelfilter TYPE koelfiltr MAX-KEY-BYTES 100000");
        let server = Server::start(&program, &[reference(), ours]);
        let mut connection = server.connect("resp3");
        ok(&mut connection, "KF.ADD a x");
        ok(&mut connection, "CF.ADD b x");
        assert_eq!(bytes(ok(&mut connection, "TYPE a")), b"koelfiltr");
        assert_eq!(bytes(ok(&mut connection, "TYPE b")), b"MBbloomCF");
        assert!(run(&mut connection, "KF.ADD b x").unwrap_err().starts_with("WRONGTYPE"));
        let refused = run(&mut connection, "KF.RESERVE big 1000000").unwrap_err();
        assert!(refused.contains("a key may take 100000"), "{refused}");
        ok(&mut connection, "CONFIG SET aof-use-rdb-preamble no");
        ok(&mut connection, "DEBUG RELOAD");
        assert_eq!(number(&ok(&mut connection, "KF.COUNT a x")), 1);
    }
}

#[test]
#[ignore = "needs servers: scripts/valkey"]
fn bad_settings_are_refused_with_a_reason() {
    let program = &programs()[0];
    for (arguments, reason) in [
        ("PREFIX", "the argument PREFIX has no value"),
        ("COLOUR red", "unknown argument COLOUR"),
        ("TYPE short", "short must be 9 to 9 letters"),
        ("MAX-KEY-BYTES many", "must be a number of bytes"),
        ("MAX-KEY-BYTES 0", "from 1 on, not 0"),
        ("MAX-KEY-BYTES -1", "from 1 on, not -1"),
    ] {
        let started = std::panic::catch_unwind(|| Server::start(program, &[module(arguments)]));
        let panic = started.err().expect("the server does not start");
        let text = panic.downcast_ref::<String>().expect("a text");
        assert!(text.contains(reason), "{text}");
    }
}

/// Large filters are merged on a thread: others are served meanwhile, and nothing of theirs is
/// lost.
#[test]
#[ignore = "needs servers: scripts/valkey"]
fn large_filters_are_merged_beside_other_commands() {
    on_each(|primary, connection| {
        let (_replica, mut copy) = primary.replica();
        append_only(connection);
        for key in ["a", "b", "c"] {
            ok(connection, &format!("CF.RESERVE {key} 300000"));
            for start in (0..60_000).step_by(1000) {
                let line = items(key, start..start + 1000);
                ok(connection, &format!("CF.INSERT {key} ITEMS shared {line}"));
            }
        }
        let mut others = primary.connect("resp2");
        for (line, change) in [
            ("CF.MERGE new a b", "PING"),
            ("CF.MERGE a b c", "CF.ADD b late"),
            ("CF.MERGE a b", "CF.ADD a kept"),
            ("CF.MERGE a b", "DEL a"),
            ("CF.MERGE a missing", "PING"),
        ] {
            let (outcome, _) = std::thread::scope(|scope| {
                let merge = scope.spawn(|| run(connection, line));
                let change = run(&mut others, change);
                (merge.join().unwrap(), change)
            });
            assert_eq!(outcome.is_ok(), !line.contains("missing"), "{line}");
        }
        let count = |connection: &mut Connection, line: &str| {
            numbers(&ok(connection, &format!("CF.MCOUNT {line}")))
        };
        assert_eq!(count(connection, "new shared a1 b1 c1"), [120, 1, 1, 0]);
        // A transaction cannot wait for a thread.
        ok(connection, "MULTI");
        ok(connection, "CF.MERGE three a b c");
        ok(connection, "CF.ADD three last");
        ok(connection, "EXEC");
        assert_eq!(count(connection, "three c1 last"), [1, 1]);
        await_replica(connection);
        assert_eq!(ok(connection, "DEBUG DIGEST"), ok(&mut copy, "DEBUG DIGEST"));
        let before = ok(connection, "DEBUG DIGEST");
        ok(connection, "DEBUG LOADAOF");
        assert_eq!(ok(connection, "DEBUG DIGEST"), before);
        assert_eq!(total(connection, "panics"), 0);
    });
}

/// A merge on its thread was in no statistics of the server.
#[test]
#[ignore = "needs servers: scripts/valkey"]
fn commands_on_a_thread_are_counted_and_timed() {
    on_each(|_, connection| {
        for key in ["a", "b"] {
            ok(connection, &format!("CF.RESERVE {key} 3000000"));
        }
        let mut all = 0;
        for number in 1..=3 {
            ok(connection, "CF.MERGE a b");
            assert_eq!(total(connection, "commands_on_a_thread"), number);
            let micros = total(connection, "microseconds_on_a_thread");
            let longest = total(connection, "longest_microseconds_on_a_thread");
            assert!(micros > all && longest <= micros && longest * number >= micros);
            all = micros;
        }
        let text = String::from_utf8(info(connection, "commandstats")).unwrap();
        let line = text.lines().find(|line| line.starts_with("cmdstat_cf.merge:")).unwrap();
        let of = |name: &str| -> u64 {
            let field = line.split([':', ',']).find_map(|field| field.strip_prefix(name));
            field.unwrap().parse().unwrap()
        };
        assert_eq!(of("calls="), 3);
        assert!(of("usec=") * 2 > all, "{line}, {all} in all");
    });
}

/// MERGE changes the filter of a key, and not how long the key lives: at once, on a thread, on a
/// replica, and in an append-only file.
#[test]
#[ignore = "needs servers: scripts/valkey"]
fn a_merge_keeps_the_time_to_live_of_its_destination() {
    on_each(|primary, connection| {
        let (_replica, mut copy) = primary.replica();
        append_only(connection);
        // From 128 KiB on, filters are merged on a thread.
        for (capacity, at) in [(1000, 4_000_000_000_123_i64), (300_000, 4_000_000_000_456)] {
            for name in ["a", "b"] {
                let key = format!("{name}{capacity}");
                ok(connection, &format!("CF.RESERVE {key} {capacity}"));
                ok(connection, &format!("CF.ADD {key} {name}"));
            }
            ok(connection, &format!("PEXPIREAT a{capacity} {at}"));
            ok(connection, &format!("CF.MERGE a{capacity} b{capacity}"));
            ok(connection, &format!("CF.MERGE new{capacity} a{capacity}"));
            await_replica(connection);
            for side in [&mut *connection, &mut copy] {
                let lives = |side: &mut Connection, key: &str| {
                    number(&ok(side, &format!("PEXPIRETIME {key}{capacity}")))
                };
                assert_eq!((lives(side, "a"), lives(side, "new")), (at, -1), "{capacity}");
            }
        }
        ok(connection, "DEBUG LOADAOF");
        for (key, at) in [("a1000", 4_000_000_000_123), ("a300000", 4_000_000_000_456)] {
            assert_eq!(number(&ok(connection, &format!("PEXPIRETIME {key}"))), at);
            assert_eq!(numbers(&ok(connection, &format!("CF.MCOUNT {key} a b"))), [1, 1]);
        }
        assert_eq!(ok(connection, "DEBUG DIGEST"), ok(&mut copy, "DEBUG DIGEST"));
    });
}
