//! What a command may cost others: memory below `maxmemory`, secrets, settings at run time.

use std::ops::Range;

use redis::{Connection, Value};

use crate::server::{
    Server, await_equal, await_replica, bytes, dump, items, load, module, number, numbers, ok,
    on_each, programs, run, until,
};
use crate::values::{total, used_memory};

#[test]
#[ignore = "needs servers: scripts/valkey"]
fn a_reservation_cannot_empty_the_server() {
    on_each(|_, connection| {
        for number in 0..1000 {
            ok(connection, &format!("SET key{number} {}", "x".repeat(100)));
        }
        ok(connection, "CONFIG SET maxmemory 100mb");
        for (policy, line, fits) in [
            ("allkeys-lru", "CF.RESERVE x 5000000000", false),
            ("allkeys-lru", "CF.RESERVE x 100000000", false),
            ("allkeys-lru", "CF.INSERT x CAPACITY 100000000 ITEMS a", false),
            ("allkeys-lru", "CF.RESERVE x 10000000", true),
            ("noeviction", "CF.RESERVE y 40000000", true),
            ("noeviction", "CF.RESERVE z 40000000", false),
        ] {
            ok(connection, &format!("CONFIG SET maxmemory-policy {policy}"));
            let before = used_memory(connection);
            match run(connection, line) {
                Ok(_) => assert!(fits, "{line}"),
                Err(refused) => assert!(!fits && refused.contains("would take"), "{refused}"),
            }
            let taken = used_memory(connection) - before;
            let most = if fits { (100 << 20) - before } else { 100_000 };
            assert!(taken <= most, "{line}: {taken}");
            assert!(number(&ok(connection, "DBSIZE")) >= 1000, "{line}");
            ok(connection, "SET another 1");
        }
    });
}

/// The limit was fixed when the module was loaded, and there was none by default.
#[test]
#[ignore = "needs servers: scripts/valkey"]
fn the_limit_of_a_key_is_a_setting_of_the_server() {
    on_each(|_, connection| {
        let refused = run(connection, "CF.RESERVE x 1000000000").unwrap_err();
        assert!(refused.contains("a key may take 536870912"), "{refused}");
        ok(connection, "CONFIG SET koel.max-key-bytes 100000");
        let refused = run(connection, "CF.RESERVE x 1000000").unwrap_err();
        assert!(refused.contains("a key may take 100000"), "{refused}");
        ok(connection, "CONFIG SET koel.max-key-bytes 10mb");
        // What is accepted takes no more, but for what the allocator rounds up.
        let mut refused = 0;
        for capacity in (1..=20).map(|millions| millions * 1_000_000) {
            match run(connection, &format!("CF.RESERVE y {capacity}")) {
                Ok(_) => {
                    assert!(number(&ok(connection, "CF.INFO y SIZE")) <= 10 << 20, "{capacity}");
                    let usage = number(&ok(connection, "MEMORY USAGE y"));
                    assert!(usage <= (10 << 20) * 5 / 4, "{capacity}: {usage}");
                    ok(connection, "DEL y");
                }
                Err(_) => refused += 1,
            }
        }
        assert!((10..20).contains(&refused), "{refused}");
        ok(connection, "CF.RESERVE x 1000000 EXPANSION 0");
        ok(connection, "CF.RESERVE full 100 EXPANSION 0");
        ok(connection, &format!("CF.INSERT full ITEMS {}", items("i", 0..900)));
        let mut field = |name| total(connection, name);
        // A server may free in the background what was deleted, and until then it is counted.
        until("freeing deleted filters", || (field("filters") == 2).then_some(()));
        assert_eq!(field("max_key_bytes"), 10 << 20);
        assert!((1_500_000..2_500_000).contains(&field("bytes")), "{}", field("bytes"));
        assert!(field("refused_items") > 500);
    });
}

#[test]
#[ignore = "needs servers: scripts/valkey"]
fn expired_items_are_counted_by_the_server() {
    on_each(|_, connection| {
        let expired = |connection: &mut Connection| total(connection, "expired_items");
        for key in ["one", "other"] {
            ok(connection, &format!("CF.AT 1000000 RESERVE {key} 100 WINDOW 10"));
            ok(connection, &format!("CF.AT 1000000 INSERT {key} ITEMS a b c"));
        }
        assert_eq!(expired(connection), 0);
        ok(connection, "CF.AT 1020000 ADD one d");
        assert_eq!(expired(connection), 3);
        ok(connection, "CF.AT 1020000 ADD other d");
        assert_eq!(expired(connection), 6);
    });
}

/// A filter that had lost all of its items could not be made smaller where memory was short.
#[test]
#[ignore = "needs servers: scripts/valkey"]
fn a_filter_is_compacted_where_there_is_no_memory_left() {
    on_each(|_, connection| {
        for (key, options) in [("f", ""), ("w", "WINDOW 60")] {
            ok(connection, &format!("CF.RESERVE {key} 1024 {options}"));
            let insert = |of: &str, start| format!("{of} {}", items("i", start..start + 1000));
            for start in (0..300_000).step_by(1000) {
                ok(connection, &insert(&format!("CF.INSERT {key} ITEMS"), start));
            }
            for start in (0..300_000).step_by(1000) {
                ok(connection, &insert(&format!("CF.MDEL {key}"), start));
            }
            let before = used_memory(connection);
            ok(connection, &format!("CONFIG SET maxmemory {}", before - 100_000));
            assert!(run(connection, "CF.ADD other x").unwrap_err().starts_with("OOM"));
            ok(connection, &format!("CF.COMPACT {key}"));
            let freed = before - used_memory(connection);
            assert!(freed > 500_000, "{key}: {freed}");
            ok(connection, "CF.ADD other x");
            ok(connection, "CONFIG SET maxmemory 0");
        }
    });
}

/// Of each filter 1.65 KB were not reported: the value itself beside its table.
#[test]
#[ignore = "needs servers: scripts/valkey"]
fn memory_usage_is_what_filters_take() {
    on_each(|_, connection| {
        for (key, options, filters) in [
            ("small", "1024", 10_000),
            ("fixed", "5000 EXPANSION 0", 1000),
            ("window", "1000 WINDOW 60", 1000),
        ] {
            let before = used_memory(connection);
            for name in 0..filters {
                ok(connection, &format!("CF.RESERVE {key}{name} {options}"));
                ok(connection, &format!("CF.INSERT {key}{name} ITEMS a b b b"));
            }
            let taken = used_memory(connection) - before;
            let usage =
                number(&ok(connection, &format!("MEMORY USAGE {key}7 SAMPLES 0"))) * filters;
            let difference = (usage - taken).abs();
            assert!(difference * 20 < taken, "{key}: {usage} reported, {taken} taken");
        }
    });
}

/// Corrections are in files and on replicas.
#[test]
#[ignore = "needs servers: scripts/valkey"]
fn refuted_items_are_refuted_everywhere() {
    on_each(|primary, connection| {
        let (replica, mut other) = primary.replica();
        ok(connection, "CF.RESERVE f 2500 ERROR 0.03 EXPANSION 0");
        ok(connection, &format!("CF.INSERT f ITEMS {}", items("in", 0..2000)));
        let absent = items("out", 0..3000);
        let corrected = numbers(&ok(connection, &format!("CF.REFUTE f {absent}")));
        assert!(corrected.iter().sum::<i64>() > 20);
        await_equal(primary, &replica);
        ok(connection, "DEBUG RELOAD");
        for connection in [connection, &mut other] {
            let found = numbers(&ok(connection, &format!("CF.MEXISTS f {absent}")));
            assert_eq!(found.iter().sum::<i64>(), 0);
        }
    });
}

/// An insert that found no memory had made room, of which replicas did not hear; and replicas of a
/// window got the items that the primary had refused. Only in Redis: its allocator keeps enough for
/// the server itself, and those of the other builds end it as soon as the memory ends.
#[test]
#[ignore = "needs servers: scripts/valkey"]
fn a_replica_stays_equal_while_the_primary_has_no_memory() {
    let primary = Server::start(&programs()[0], &[module("")]);
    let (replica, _) = primary.replica();
    let mut connection = primary.connect("resp2");
    ok(&mut connection, "CF.RESERVE f 1000");
    ok(&mut connection, "CF.RESERVE w 1000 WINDOW 100000");
    let insert = |connection: &mut Connection, key: &str, numbers: Range<usize>| {
        let line = format!("CF.INSERT {key} ITEMS {}", items("item", numbers));
        refused_in(&ok(connection, &line))
    };
    let mut next = 0;
    while next < 200_000 {
        for key in ["f", "w"] {
            assert_eq!(insert(&mut connection, key, next..next + 1000), 0);
        }
        next += 1000;
    }
    await_replica(&mut connection);
    primary.limit_memory(Some(2 << 20));
    for key in ["f", "w"] {
        let (mut refused, mut next) = (0, 200_000);
        while refused < 200 && next < 4_000_000 {
            refused += insert(&mut connection, key, next..next + 100);
            next += 100;
        }
        assert!(refused >= 200, "{key}: {next} items found room");
        // Single items too, which are refused with an error.
        let mut add =
            |number| run(&mut connection, &format!("CF.ADD {key} single{number}")).is_err();
        assert!((0..2000).filter(|&number| add(number)).count() > 0, "{key}");
    }
    primary.limit_memory(None);
    for key in ["f", "w"] {
        assert_eq!(insert(&mut connection, key, 5_000_000..5_001_000), 0);
    }
    await_replica(&mut connection);
    await_equal(&primary, &replica);
}

/// How many items of an insert found no room.
fn refused_in(answers: &Value) -> usize {
    numbers(answers).into_iter().filter(|&answer| answer == -1).count()
}

fn body(connection: &mut Connection, key: &str) -> Vec<u8> {
    dump(connection, key).into_iter().skip(1).flat_map(|(_, chunk)| chunk).collect()
}

/// Whoever knows the hash finds items that are in, or that remove others. So each deployment has a
/// secret, which its replicas and its files have too.
#[test]
#[ignore = "needs servers: scripts/valkey"]
fn filters_have_the_secret_of_their_deployment() {
    for program in programs() {
        println!("{}", program.display());
        let (primary, stranger) =
            (Server::start(&program, &[module("")]), Server::start(&program, &[module("")]));
        let mut connection = primary.connect("resp2");
        ok(&mut connection, "CF.ADD before x");
        let (replica, mut promoted) = primary.replica();
        await_equal(&primary, &replica);
        for line in [
            "CF.RESERVE fixed 100 EXPANSION 0",
            "CF.RESERVE window 100 WINDOW 1000",
            "CF.RESERVE open 100 SECRET NO",
            "CF.ADD added x",
            "CF.ADDNX new x",
            "CF.INSERT many CAPACITY 300 ITEMS x y",
            "CF.INSERTNX others ITEMS x y",
        ] {
            ok(&mut connection, line);
        }
        ok(&mut connection, "MULTI");
        ok(&mut connection, "CF.ADD inside x");
        ok(&mut connection, "EXEC");
        await_equal(&primary, &replica);
        let mut other = stranger.connect("resp2");
        ok(&mut other, "CF.ADD added x");
        ok(&mut other, "CF.RESERVE open 100 SECRET NO");
        assert!(body(&mut connection, "added") != body(&mut other, "added"));
        assert!(body(&mut connection, "open") == body(&mut other, "open"));
        // A filter that moved elsewhere keeps its own.
        let chunks = dump(&mut other, "added");
        load(&mut connection, "moved", &chunks);
        let refused = run(&mut connection, "CF.MERGE added moved").unwrap_err();
        assert!(refused.contains("differ in hash"), "{refused}");
        // A replica that takes over goes on with the secret, and so does a server that is
        // restarted.
        ok(&mut promoted, "REPLICAOF NO ONE");
        ok(&mut promoted, "CF.ADD later y");
        ok(&mut promoted, "CF.MERGE added later");
        assert_eq!(numbers(&ok(&mut promoted, "CF.MEXISTS added x y z")), [1, 1, 0]);
        ok(&mut connection, "SAVE");
        let restarted = primary.then_with(&[module("")], &[]);
        let mut connection = restarted.connect("resp2");
        ok(&mut connection, "CF.ADD later y");
        ok(&mut connection, "CF.MERGE added later");
        assert_eq!(numbers(&ok(&mut connection, "CF.MEXISTS added x y z")), [1, 1, 0]);
    }
}

/// The secret of an argument is that of a file, so that both can be merged.
#[test]
#[ignore = "needs servers: scripts/valkey"]
fn a_secret_can_be_given_or_left_out() {
    let digits = "000102030405060708090a0b0c0d0e0f";
    for program in programs() {
        let given = |secret: &str| Server::start(&program, &[module(&format!("SECRET {secret}"))]);
        let mut bodies = Vec::new();
        for secret in [digits, digits, "NO", "no"] {
            let server = given(secret);
            let mut connection = server.connect("resp2");
            ok(&mut connection, "CF.ADD f x");
            bodies.push(body(&mut connection, "f"));
        }
        assert!(bodies[0] == bodies[1] && bodies[2] == bodies[3] && bodies[0] != bodies[2]);
    }
}

/// The places that docs/VALKEY-OPERATING.md names.
#[test]
#[ignore = "needs servers: scripts/valkey"]
fn a_secret_shows_where_the_page_says() {
    let digits = "000102030405060708090a0b0c0d0e0f";
    for program in programs() {
        let primary = Server::start(&program, &[module(&format!("SECRET {digits}"))]);
        let (mut connection, (_replica, mut other)) = (primary.connect("resp2"), primary.replica());
        // What comes now comes as a command, and not with the data set.
        ok(&mut connection, "SET is online");
        await_replica(&mut connection);
        for connection in [&mut connection, &mut other] {
            ok(connection, "CONFIG SET slowlog-log-slower-than 0");
            ok(connection, "ACL SETUSER none on nopass ~* -@all");
        }
        ok(&mut connection, "CF.ADD f x");
        await_replica(&mut connection);
        let mut shows = |on_replica: bool, line: &str| {
            let connection = if on_replica { &mut other } else { &mut connection };
            format!("{:?}", ok(connection, line)).contains(digits)
        };
        assert!(shows(false, "MODULE LIST") && !shows(true, "MODULE LIST"));
        // The client did not send it.
        assert!(shows(true, "SLOWLOG GET 100") && !shows(false, "SLOWLOG GET 100"));
        assert!(!shows(false, "CF.INFO f FULL") && !shows(false, "CF.DEBUG f"));
        let mut nobody = primary.connect("resp2");
        ok(&mut nobody, "AUTH none none");
        assert!(run(&mut nobody, &format!("CF.RESERVE g 100 SECRET {digits}")).is_err());
        assert!(!shows(false, "ACL LOG"));
    }
}

/// The primary refused an item, and yet had made room for it: the replica has to do the same.
#[test]
#[ignore = "needs servers: scripts/valkey"]
fn a_refused_command_does_not_trouble_a_replica() {
    on_each(|primary, connection| {
        let (replica, mut other) = primary.replica();
        ok(connection, "CF.RESERVE f 100 WINDOW 1000 EXPANSION 0");
        for number in 0..400 {
            drop(run(connection, &format!("CF.ADD f i{number}")));
        }
        await_equal(primary, &replica);
        assert_eq!(bytes(ok(&mut other, "CF.DEBUG f")), bytes(ok(connection, "CF.DEBUG f")));
        assert!(!replica.log().contains("CRITICAL"), "{}", replica.log());
    });
}
