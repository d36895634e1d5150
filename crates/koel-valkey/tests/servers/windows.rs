//! Filters whose items expire: on replicas, in files, and as time goes by. Copies of them, and one
//! that has grown, are in `values.rs`.

use std::thread::sleep;
use std::time::Duration;

use redis::{Connection, Value};

use crate::server::{await_replica, bytes, items, number, numbers, ok, on_each, run};
use crate::values::{append_only, await_rewrite, digest, has};

/// A window of two seconds, and one that does not end.
const SHORT: &str = "CF.RESERVE short 1000 WINDOW 2";
const LONG: &str = "CF.RESERVE long 1000 WINDOW 100000";

fn found(connection: &mut Connection, key: &str) -> Vec<i64> {
    numbers(&ok(connection, &format!("CF.MEXISTS {key} {}", items("i", 0..300))))
}

/// Writes for longer than the short window.
fn write(connection: &mut Connection) {
    for round in 0..30 {
        for key in ["short", "long"] {
            let range = round * 10..round * 10 + 20;
            ok(connection, &format!("CF.INSERT {key} ITEMS {}", items("i", range.clone())));
            ok(connection, &format!("CF.INSERTNX {key} ITEMS {}", items("i", range)));
            ok(connection, &format!("CF.MDEL {key} i{round} none"));
            ok(connection, &format!("CF.ADDNX {key} i{}", round * 7));
        }
        sleep(Duration::from_millis(80));
    }
}

#[test]
#[ignore = "needs servers: scripts/valkey"]
fn windows_are_equal_on_replicas_and_in_files() {
    on_each(|primary, connection| {
        let (_replica, mut other) = primary.replica();
        ok(connection, SHORT);
        ok(connection, LONG);
        append_only(connection);
        write(connection);
        ok(connection, "MULTI");
        ok(connection, "CF.ADD short last");
        ok(connection, "CF.DEL short last");
        ok(connection, "EXEC");
        await_replica(connection);
        let kept = ["short", "long"].map(|key| digest(connection, key));
        assert!(kept == ["short", "long"].map(|key| digest(&mut other, key)));
        assert_eq!(ok(connection, "DEBUG DIGEST"), ok(&mut other, "DEBUG DIGEST"));
        // From the commands of the file, which have their time.
        ok(connection, "DEBUG LOADAOF");
        assert!(kept == ["short", "long"].map(|key| digest(connection, key)));
        ok(connection, "CONFIG SET aof-use-rdb-preamble no");
        ok(connection, "BGREWRITEAOF");
        await_rewrite(connection);
        for reload in ["DEBUG LOADAOF", "DEBUG RELOAD"] {
            ok(connection, reload);
            assert!(kept == ["short", "long"].map(|key| digest(connection, key)), "{reload}");
        }
        // Nothing is written any more. The replica sees items expire by itself.
        sleep(Duration::from_millis(2200));
        for connection in [connection, &mut other] {
            assert_eq!(found(connection, "short"), vec![0; 300]);
            // All but i1 to i29, which were deleted and not added again.
            assert_eq!(found(connection, "long").iter().sum::<i64>(), 271);
            let field = |connection: &mut Connection, field: &str| {
                number(&ok(connection, &format!("CF.INFO short {field}")))
            };
            assert_eq!(field(connection, "ITEMS"), 0);
            assert!(field(connection, "EXPIRED") > 200);
            assert_eq!(field(connection, "WINDOW"), 2);
        }
    });
}

#[test]
#[ignore = "needs servers: scripts/valkey"]
fn replaying_is_for_administrators() {
    on_each(|_, connection| {
        ok(connection, "CF.AT 1000000 RESERVE f 100 WINDOW 10");
        ok(connection, "CF.AT 1000000 ADD f a");
        let at = |time: u32| format!("CF.AT {time} EXISTS f a");
        for (time, is_in) in [(1_000_000, 1), (1_010_000, 1), (1_010_900, 0)] {
            assert_eq!(number(&ok(connection, &at(time))), is_in, "{time}");
        }
        assert_eq!(number(&ok(connection, "CF.EXISTS f a")), 0);
        let Value::Array(keys) = ok(connection, "COMMAND GETKEYS CF.AT 5 ADD f a") else {
            panic!("no keys")
        };
        assert_eq!(keys.into_iter().map(bytes).collect::<Vec<_>>(), [b"f"]);
        // Redis 7.0 has no categories of modules.
        if has(connection, "server", "redis_version:7.0").is_some() {
            return;
        }
        ok(connection, "ACL SETUSER writer on nopass ~* +@all -@admin");
        ok(connection, "AUTH writer none");
        ok(connection, "CF.ADD f a");
        let refused = run(connection, "CF.AT 5 ADD f a").unwrap_err();
        assert!(refused.starts_with("NOPERM"), "{refused}");
    });
}
