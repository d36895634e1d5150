//! The same commands to RedisBloom 2.8.2 and to us: equal replies but for the listed differences.
//!
//! Items are few, and filters of RedisBloom large, so that its false positives do not matter.

use redis::{Connection, Value};
use testkit::storage::Random;

use crate::server::{
    Server, await_replica, bytes, call, dump, items, load, module, number, numbers, ok, programs,
    reference, run,
};
use crate::values::await_rewrite;

/// A pair of connections to the same program with either module.
fn on_each_pair(test: impl Fn(&mut Connection, &mut Connection)) {
    for program in programs() {
        let theirs = Server::start(&program, &[reference()]);
        let ours = Server::start(&program, &[module("")]);
        for protocol in ["resp2", "resp3"] {
            println!("{} {protocol}", program.display());
            let (mut theirs, mut ours) = (theirs.connect(protocol), ours.connect(protocol));
            ok(&mut theirs, "FLUSHALL");
            ok(&mut ours, "FLUSHALL");
            test(&mut theirs, &mut ours);
        }
    }
}

/// A command with random, often wrong, arguments. `s` is a string, and `e` does not exist.
fn line(random: &mut Random) -> String {
    let keys = ["a", "b", "c", "s", "e"];
    let key = keys[random.below(keys.len())];
    let mut word = |words: &[&str]| words[random.below(words.len())].to_owned();
    let number = word(&["0", "-1", "1", "2", "3", "10000", "20000", "x", "1.5", "", "99999"]);
    let option = word(&["BUCKETSIZE", "maxiterations", "EXPANSION", "BUCKETSIZE"]);
    let value = word(&["0", "1", "2", "3", "4", "300", "70000", "-1", "x", "32768"]);
    let head = word(&["", "NOCREATE", "CAPACITY 9000", "c 1", "CAPACITY x", "FOO", "n C 9999"]);
    let tail = word(&["ITEMS", "i", "", "ITEM"]);
    let command = word(&["INSERT", "INSERTNX"]);
    let count = random.below(4);
    let some = (0..count).map(|_| format!("i{}", random.below(20))).collect::<Vec<_>>().join(" ");
    let one = format!("i{}", random.below(20));
    match random.below(18) {
        0 => format!("CF.RESERVE {key} {number}"),
        1 => format!("CF.RESERVE {key} 10000 {option} {value}"),
        2 => format!("CF.RESERVE {key} {number} {option} {value} EXPANSION {number}"),
        3 => format!("CF.ADD {key} {one}"),
        4 => format!("CF.ADDNX {key} {one}"),
        5..=7 => format!("CF.{command} {key} {head} {tail} {some}"),
        8 => format!("CF.EXISTS {key} {one}"),
        9 => format!("CF.MEXISTS {key} {some}"),
        10 | 11 => format!("CF.DEL {key} {one}"),
        12 => format!("CF.COUNT {key} {one}"),
        13 => format!("CF.COMPACT {key}"),
        14 => format!("CF.INFO {key}"),
        15 => format!("CF.DEBUG {key}"),
        16 => format!("CF.{} {key}", ["ADD", "DEL", "EXISTS", "RESERVE"][count]),
        // No key, or an argument too many.
        _ => format!("CF.{}", ["COMPACT", "DEBUG", "COMPACT a b", "DEBUG a b"][count]),
    }
}

/// The reply without what differs: sizes and buckets in INFO, and buckets in DEBUG.
fn comparable(line: &str, reply: Result<Value, String>) -> Result<Value, String> {
    let differs = |name: &Value| {
        ["Size", "Number of buckets"].iter().any(|&word| *name == Value::SimpleString(word.into()))
    };
    match reply {
        Ok(Value::Map(entries)) => {
            let kept = entries.into_iter().filter(|(name, _)| !differs(name)).collect();
            Ok(Value::Map(kept))
        }
        Ok(Value::Array(entries)) if line.starts_with("CF.INFO") => {
            let pairs = entries.chunks(2).filter(|pair| !differs(&pair[0]));
            Ok(Value::Array(pairs.flatten().cloned().collect()))
        }
        Ok(Value::BulkString(text)) if line.starts_with("CF.DEBUG") => {
            let text = String::from_utf8(text).unwrap();
            let kept: Vec<&str> =
                text.split(' ').filter(|word| !word.starts_with("buckets:")).collect();
            assert_eq!(kept.len(), 6, "{text}");
            Ok(Value::SimpleString(kept.join(" ")))
        }
        other => other,
    }
}

#[test]
#[ignore = "needs servers: scripts/valkey"]
fn random_commands_get_equal_replies() {
    on_each_pair(|theirs, ours| {
        let mut random = Random::new(4);
        for round in 0..4000 {
            if round % 200 == 0 {
                for connection in [&mut *theirs, &mut *ours] {
                    ok(connection, "FLUSHALL");
                    ok(connection, "SET s text");
                    ok(connection, "CF.RESERVE a 20000");
                }
            }
            let line = line(&mut random);
            let (theirs, ours) = (run(theirs, &line), run(ours, &line));
            assert_eq!(comparable(&line, ours), comparable(&line, theirs), "{line}");
        }
    });
}

/// Reserves, fills and partly empties a filter of RedisBloom.
fn fill(theirs: &mut Connection, reserve: &str, count: usize) {
    ok(theirs, &format!("CF.RESERVE f {reserve}"));
    for start in (0..count).step_by(500) {
        let line = items("in", start..count.min(start + 500));
        let added = numbers(&ok(theirs, &format!("CF.INSERT f ITEMS {line}")));
        assert!(added.iter().all(|&added| added == 1), "{reserve}");
    }
    for removed in 0..count / 10 {
        ok(theirs, &format!("CF.DEL f in{}", removed * 3));
    }
}

/// EXISTS for items that were and were not added: equal one by one.
fn assert_equal_answers(theirs: &mut Connection, ours: &mut Connection, what: &str) {
    for line in [items("in", 0..3000), items("out", 0..3000)] {
        let line = format!("CF.MEXISTS f {line}");
        assert!(ok(theirs, &line) == ok(ours, &line), "{what}");
    }
}

#[test]
#[ignore = "needs servers: scripts/valkey"]
fn dumped_filters_answer_as_they_did_and_go_back() {
    on_each_pair(|theirs, ours| {
        for (reserve, count) in [
            ("5000", 3000),
            ("1000 BUCKETSIZE 1 EXPANSION 2", 900),
            ("500 EXPANSION 2", 3000),
            ("1000 BUCKETSIZE 4 EXPANSION 4 MAXITERATIONS 100", 3000),
            ("3000 BUCKETSIZE 8 EXPANSION 0 MAXITERATIONS 500", 3000),
            ("64 BUCKETSIZE 7 EXPANSION 2", 2500),
        ] {
            fill(theirs, reserve, count);
            let chunks = dump(theirs, "f");
            // DUMP of the reference is a value that RESTORE takes: the type has the same name.
            let payload = bytes(ok(theirs, "DUMP f"));
            assert_eq!(
                call(ours, &[b"RESTORE", b"r", b"0", &payload, b"REPLACE"]),
                Ok(Value::Okay)
            );
            load(ours, "f", &chunks);
            assert!(dump(ours, "f") == chunks && dump(ours, "r") == chunks, "{reserve}");
            assert_eq!(ok(ours, "CF.DEBUG f"), ok(theirs, "CF.DEBUG f"));
            assert_eq!(ok(ours, "CF.INFO f"), ok(theirs, "CF.INFO f"));
            assert_equal_answers(theirs, ours, reserve);
            // Changed here, it goes back, and the reference reads it.
            ok(ours, "CF.DEL f in1");
            let more = items("more", 0..200);
            let added = numbers(&ok(ours, &format!("CF.INSERT f ITEMS {more}")));
            ok(theirs, "DEL f");
            load(theirs, "f", &dump(ours, "f"));
            assert_equal_answers(theirs, ours, reserve);
            let found = numbers(&ok(theirs, &format!("CF.MEXISTS f {more}")));
            assert!(added.iter().zip(&found).all(|(&added, &found)| added < 1 || found == 1));
            // Deleted from both, one copy each: equal answers, as long as it has not compacted.
            for number in 1000..1050 {
                let line = format!("CF.DEL f in{number}");
                assert_eq!(ok(ours, &line), ok(theirs, &line), "{reserve} {line}");
            }
            assert!(number(&ok(theirs, "CF.EXISTS f in2")) == number(&ok(ours, "CF.EXISTS f in2")));
            for connection in [&mut *theirs, &mut *ours] {
                ok(connection, "DEL f");
            }
        }
    });
}

/// What a filter of the reference answers.
fn answers(connection: &mut Connection) -> Vec<Value> {
    let asked = [items("in", 0..3000), items("out", 0..3000), items("more", 0..50)];
    let mut answers: Vec<Value> =
        asked.iter().map(|items| ok(connection, &format!("CF.MEXISTS f {items}"))).collect();
    answers.extend(["CF.DEBUG f", "CF.COUNT f in4", "CF.COUNT f more7"].map(|l| ok(connection, l)));
    answers
}

/// Writes that go to replicas and to the end of an append-only file.
fn write_more(theirs: &mut Connection) {
    ok(theirs, &format!("CF.INSERT f ITEMS {}", items("more", 0..50)));
    for line in ["CF.ADD f more7", "CF.ADDNX f more7", "CF.DEL f in4", "CF.INSERTNX f ITEMS in5 z"]
    {
        ok(theirs, line);
    }
}

const AOF: [&str; 6] =
    ["--appendonly", "yes", "--aof-use-rdb-preamble", "no", "--appendfsync", "always"];

/// RDB and append-only files that the reference wrote are loaded by the same server with us.
#[test]
#[ignore = "needs servers: scripts/valkey"]
fn files_of_the_reference_are_loaded() {
    for program in programs() {
        for reserve in ["5000", "500 EXPANSION 2", "64 BUCKETSIZE 7 EXPANSION 2"] {
            let theirs = Server::start_with(&program, &[reference()], &AOF);
            let mut connection = theirs.connect("resp2");
            fill(&mut connection, reserve, 2000);
            ok(&mut connection, "BGREWRITEAOF");
            await_rewrite(&mut connection);
            write_more(&mut connection);
            ok(&mut connection, "SAVE");
            let expected = answers(&mut connection);
            let from_aof = theirs.then_with(&[module("")], &AOF);
            assert!(answers(&mut from_aof.connect("resp2")) == expected, "{reserve}, AOF");
            let from_rdb = from_aof.then_with(&[module("")], &[]);
            assert!(answers(&mut from_rdb.connect("resp2")) == expected, "{reserve}, RDB");
        }
    }
}

/// A replica with our module follows a primary with the reference, and takes over.
#[test]
#[ignore = "needs servers: scripts/valkey"]
fn a_replica_of_the_reference_takes_over() {
    for program in programs() {
        let theirs = Server::start(&program, &[reference()]);
        let ours = Server::start(&program, &[module("")]);
        let (mut primary, mut replica) = (theirs.connect("resp2"), ours.connect("resp2"));
        fill(&mut primary, "500 EXPANSION 2", 2000);
        ok(&mut replica, &format!("REPLICAOF 127.0.0.1 {}", theirs.port()));
        await_replica(&mut primary);
        write_more(&mut primary);
        await_replica(&mut primary);
        let expected = answers(&mut primary);
        drop(theirs);
        ok(&mut replica, "REPLICAOF NO ONE");
        assert!(answers(&mut replica) == expected, "{}", program.display());
        ok(&mut replica, "CF.ADD f after");
        assert_eq!(number(&ok(&mut replica, "CF.EXISTS f after")), 1);
    }
}
