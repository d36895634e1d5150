//! What commands take and refuse. The texts are those of RedisBloom 2.8.2 wherever it has one.

use koel_valkey::command::COMMANDS;
use koel_valkey::command::reply::Reply;
use koel_valkey::command::syntax::{Argument, arguments};
use koel_valkey::error::{Error, Full};

use crate::support::{Database, items};

const FOREIGN: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";
const ARITY: &str = "ERR wrong number of arguments";
const SMALL: &str = "Capacity must be at least (BucketSize * 2)";

/// A database with a filter `old`, and a key `other` of another type.
fn database() -> Database {
    let mut database = Database::new();
    database.run("RESERVE old 100 EXPANSION 3 BUCKETSIZE 4 MAXITERATIONS 7").unwrap();
    database.0.values.insert(b"other".to_vec(), None);
    database
}

/// Each line fails with the text after the arrow, and changes nothing.
#[track_caller]
fn refused(lines: &[(&str, &str)]) {
    for (line, text) in lines {
        let mut database = database();
        let (outcome, events) = database.with_events(line);
        assert_eq!(outcome.unwrap_err().to_string(), *text, "{line}");
        assert!(events.is_empty() && database.0.values.len() == 2, "{line}");
    }
}

#[test]
fn reserve_refuses_what_the_reference_refuses() {
    refused(&[
        ("RESERVE a", ARITY),
        ("RESERVE a 100 BUCKETSIZE", ARITY),
        ("RESERVE a 0", SMALL),
        ("RESERVE a -1", SMALL),
        ("RESERVE a 3", SMALL),
        ("RESERVE a 100 BUCKETSIZE 60", SMALL),
        ("RESERVE a x", "Bad capacity"),
        ("RESERVE a 12.5", "Bad capacity"),
        ("RESERVE a +12", "Bad capacity"),
        ("RESERVE a 0500", "Bad capacity"),
        ("RESERVE a -0", "Bad capacity"),
        ("RESERVE a 100 BUCKETSIZE 02", "Couldn't parse BUCKETSIZE"),
        ("RESERVE a 9223372036854775808", "Bad capacity"),
        ("RESERVE a x BUCKETSIZE 0", "Bad capacity"),
        ("RESERVE a 1 BUCKETSIZE x", "Couldn't parse BUCKETSIZE"),
        ("RESERVE a 1 EXPANSION x MAXITERATIONS x", "Couldn't parse MAXITERATIONS"),
        (
            "RESERVE a 100 bucketsize 256",
            "BUCKETSIZE: value must be an integer between 1 and 255, inclusive.",
        ),
        (
            "RESERVE a 100 MAXITERATIONS 0",
            "MAXITERATIONS: value must be an integer between 1 and 65535, inclusive.",
        ),
        (
            "RESERVE a 100 EXPANSION -1",
            "EXPANSION: value must be an integer between 0 and 32768, inclusive.",
        ),
        ("RESERVE old 100", "ERR item exists"),
        ("RESERVE other 100", FOREIGN),
        ("RESERVE other 1", SMALL),
        ("RESERVE a 100 EROR 0.1", "Unknown argument received"),
        ("RESERVE a 100 ERROR 0", "ERR ERROR must be a number above 0 and below 1, such as 0.001"),
        (
            "RESERVE a 100 ERROR nan",
            "ERR ERROR must be a number above 0 and below 1, such as 0.001",
        ),
        ("RESERVE a 100 PREFER BIG", "ERR PREFER must be SMALL or FAST"),
    ]);
}

#[test]
fn inserts_refuse_what_the_reference_refuses() {
    refused(&[
        ("ADD a", ARITY),
        ("ADD a 1 2", ARITY),
        ("ADD other 1", FOREIGN),
        ("ADDNX other 1", FOREIGN),
        ("INSERT a ITEMS", ARITY),
        ("INSERT a NOCREATE ITEMS", ARITY),
        ("INSERT a CAPACITY 100", ARITY),
        ("INSERT a c 1 n", SMALL),
        ("INSERT a CAPACITY 1 CAPACITY 100 ITEMS 1", SMALL),
        ("INSERT a CAPACITY 1 FOO ITEMS 1", SMALL),
        ("INSERT a x y", "Unknown argument received"),
        ("INSERT a CAPACITY x ITEMS 1", "Bad capacity"),
        ("INSERT a CAPACITY 0500 ITEMS 1", "Bad capacity"),
        ("INSERT a CAPACITY ITEMS 1", "Bad capacity"),
        ("INSERT old CAPACITY 1 ITEMS 1", SMALL),
        ("INSERT other CAPACITY 1 ITEMS 1", SMALL),
        ("INSERT other FOO CAPACITY x ITEMS 1", "Unknown argument received"),
        ("INSERT other NOCREATE ITEMS 1", FOREIGN),
        ("INSERTNX a NOCREATE ITEMS 1", "ERR not found"),
    ]);
}

#[test]
fn the_other_commands_refuse_what_the_reference_refuses() {
    refused(&[
        ("EXISTS a", ARITY),
        ("MEXISTS a", ARITY),
        ("DEL a 1", "Not found"),
        ("DEL other 1", "Not found"),
        ("MDEL a 1", "Not found"),
        ("INFO a", "ERR not found"),
        ("INFO other", FOREIGN),
        ("DEBUG a", "ERR not found"),
        ("DEBUG other", FOREIGN),
        ("COMPACT a", "Cuckoo filter was not found"),
        ("COMPACT other", "Cuckoo filter was not found"),
        ("SCANDUMP a x", "Invalid position"),
        ("SCANDUMP old -1", "Invalid position"),
        ("SCANDUMP a 0", "ERR not found"),
        ("SCANDUMP other 0", FOREIGN),
        ("LOADCHUNK a 0 x", "Invalid position"),
        ("LOADCHUNK a x x", "Invalid position"),
        ("LOADCHUNK a 1 x", "Invalid header"),
        ("LOADCHUNK a 2 x", "ERR not found"),
        ("LOADCHUNK a -1 x", "ERR not found"),
        ("LOADCHUNK old 1 x", "ERR item exists"),
        ("LOADCHUNK old 4 abc", "Couldn't load chunk!"),
        ("LOADCHUNK other 1 x", FOREIGN),
        ("MERGE a b", "ERR not found"),
        ("MERGE old other", FOREIGN),
        ("MERGE other old", FOREIGN),
        ("MCOUNT other a b", FOREIGN),
        ("REFUTE other a", FOREIGN),
    ]);
}

#[test]
fn missing_keys_and_other_types_are_empty_for_lookups() {
    let mut database = database();
    for key in ["missing", "other"] {
        assert_eq!(database.run(&format!("EXISTS {key} 1")), Ok(Reply::Bool(false)));
        assert_eq!(database.run(&format!("MEXISTS {key} 1 2")), Ok(Reply::Bools(vec![false; 2])));
        assert_eq!(database.run(&format!("COUNT {key} 1")), Ok(Reply::Integer(0)));
    }
    assert_eq!(database.numbers("MCOUNT missing a"), [0]);
}

#[test]
fn the_first_letter_of_an_option_of_insert_is_enough_and_the_last_capacity_counts() {
    let mut database = database();
    let added = Ok(Reply::Added(vec![true, true]));
    assert_eq!(database.run("INSERT a c 100 CAP 5000 i x y"), added);
    assert_eq!(database.run("INFO a CAPACITY"), Ok(Reply::Integer(5000)));
    assert_eq!(database.run("INSERT a n i x i"), added);
    assert_eq!(database.run("COUNT a x"), Ok(Reply::Integer(2)));
}

#[test]
fn debug_and_info_name_the_options() {
    let mut database = database();
    database.run("INSERT old ITEMS 1 2 3").unwrap();
    database.run("DEL old 1").unwrap();
    let Ok(Reply::Bytes(text)) = database.run("DEBUG old") else { panic!("no text") };
    let text = String::from_utf8(text).unwrap();
    let end = "items:2 deletes:1 filters:1 max_iterations:7 expansion:4";
    assert!(text.starts_with("bktsize:4 buckets:") && text.ends_with(end), "{text}");
    let fields = [
        ("CAPACITY", Reply::Integer(100)),
        ("items", Reply::Integer(2)),
        ("DELETED", Reply::Integer(1)),
        ("BUCKETSIZE", Reply::Integer(4)),
        ("ERROR", Reply::Double(0.001)),
        ("FORMAT", Reply::Text("koel")),
    ];
    for (name, value) in fields {
        assert_eq!(database.run(&format!("INFO old {name}")), Ok(value), "{name}");
    }
    assert!(database.run("INFO old COLOUR").unwrap_err().to_string().contains("unknown field"));
}

/// Clients of RedisBloom fail on names that they do not know.
#[test]
fn info_has_the_eight_names_of_the_reference_unless_more_are_asked_for() {
    let mut database = database();
    database.run("RESERVE w 100 WINDOW 60").unwrap();
    database.run("RESERVE c 100 EXPANSION 0 ERROR 0.3").unwrap();
    database.run(&format!("INSERT c ITEMS {}", items("in", 0..100))).unwrap();
    // Some of them are reported by chance.
    for number in 0..100 {
        database.run(&format!("REFUTE c absent{number}")).unwrap();
    }
    assert!(database.number("INFO c CORRECTIONS") > 0);
    for key in ["old", "w", "c"] {
        let mut names = |line: String| match database.run(&line) {
            Ok(Reply::Map(all)) => all,
            other => panic!("{other:?}"),
        };
        let (eight, all) = (names(format!("INFO {key}")), names(format!("INFO {key} full")));
        assert_eq!((eight.len(), all.len()), (8, 17), "{key}");
        assert!(eight.last().unwrap().0 == "Max iterations" && all.starts_with(&eight), "{key}");
    }
    assert_eq!(database.run("INFO w FULL FULL").unwrap_err().to_string(), ARITY);
}

/// The syntax of a command is a row of the page, and what it needs is what the server checks.
#[test]
fn the_page_has_the_syntax_of_each_command_and_its_number_of_arguments() {
    let page = include_str!("../../../../docs/VALKEY.md").replace("\\|", "|");
    for command in COMMANDS.iter().filter(|command| command.name != "FAULT") {
        let row = format!("| `CF.{} {}` |", command.name, command.syntax);
        assert!(page.contains(&row), "{row}");
        let arguments = arguments(command.syntax);
        let needed = arguments.iter().filter(|it| !it.is_optional);
        let words: i32 = needed.map(|it| 1 + i32::from(it.token.is_some())).sum();
        assert_eq!(command.arity.abs(), 1 + words, "{row}");
        let is_open = |it: &Argument| it.is_optional || it.is_multiple;
        assert_eq!(command.arity < 0, arguments.iter().any(is_open), "{row}");
    }
}

/// The page says what to do after each error of a full filter.
#[test]
fn the_page_has_the_errors_of_full_filters() {
    let page = include_str!("../../../../docs/VALKEY.md");
    let (live, capacity, bytes, limit) = (7, 7, 7, 7);
    for full in [
        Full::Fixed,
        Full::Window { live, capacity },
        Full::Largest,
        Full::NoMemory,
        Full::Limit { bytes, limit },
    ] {
        let text = full.to_string().replace('7', "..");
        let text = text.split([',', ';']).next().unwrap();
        assert!(page.contains(&format!("| `{text}")), "{text}");
    }
}

#[test]
fn a_line_of_syntax_is_read_as_it_is_meant() {
    fn shown(argument: &Argument) -> String {
        let Argument { name, kind, token, is_optional, is_multiple, parts } = argument;
        let parts: Vec<_> = parts.iter().map(shown).collect();
        let signs = [("?", is_optional), ("+", is_multiple)];
        let signs: String = signs.iter().filter(|(_, set)| **set).map(|(sign, _)| *sign).collect();
        format!("{name}:{kind:?}:{}{signs}({})", token.unwrap_or(""), parts.join(" "))
    }
    for (line, expected) in [
        ("key item..", "key:Key:() item:Text:+()"),
        (
            "[CAPACITY n] [NOCREATE] ITEMS item..",
            "capacity:Integer:CAPACITY?() nocreate:Token:NOCREATE?() item:Text:ITEMS+()",
        ),
        ("[PREFER SMALL|FAST]", "prefer:OneOf:PREFER?(small:Token:SMALL() fast:Token:FAST())"),
        ("key [FULL|field]", "key:Key:() full-or-field:OneOf:?(full:Token:FULL() field:Text:())"),
        (
            "[WINDOW seconds [WHENFULL FAIL|EVICT]]",
            "seconds:Block:?(seconds:Integer:WINDOW() \
          whenfull:OneOf:WHENFULL?(fail:Token:FAIL() evict:Token:EVICT()))",
        ),
    ] {
        let all: Vec<_> = arguments(line).iter().map(shown).collect();
        assert_eq!(all.join(" "), expected);
    }
}

/// A destination counts beside its sources, so that a filter can be doubled.
#[test]
fn a_filter_that_is_merged_with_itself_has_each_item_twice() {
    for line in ["MERGE f f", "MERGE f f f", "MERGE f g f"] {
        let mut database = Database::new();
        for key in ["f", "g"] {
            database.run(&format!("RESERVE {key} 100")).unwrap();
        }
        database.run("INSERT f ITEMS a b b").unwrap();
        let mut in_parts = Database::new();
        for key in ["f", "g"] {
            let chunks = database.dump(key);
            in_parts.load_all(key, &chunks);
        }
        database.run(line).unwrap();
        in_parts.parts(line).finish().unwrap();
        for database in [&mut database, &mut in_parts] {
            assert_eq!(database.numbers("MCOUNT f a b"), [2, 4], "{line}");
            assert_eq!(database.number("INFO f ITEMS"), 6, "{line}");
        }
    }
}

#[test]
fn a_key_takes_no_more_memory_than_it_may() {
    let mut database = Database::new();
    database.0.limit = 20_000;
    let refused = database.run("RESERVE a 100000").unwrap_err().to_string();
    assert!(refused.contains("a key may take 20000"), "{refused}");
    database.run("RESERVE a 1000").unwrap();
    let mut number = 0;
    let refused = loop {
        match database.run(&format!("ADD a {number}")) {
            Ok(_) => number += 1,
            Err(error) => break error.to_string(),
        }
    };
    assert!(refused.contains("a key may take 20000"), "{refused}");
    assert!(database.filter("a").bytes() < 30_000 && number > 5000, "{number}");
    // What is in can still be asked for, added if absent, and deleted.
    assert_eq!(database.run("ADDNX a 7"), Ok(Reply::Bool(false)));
    assert_eq!(database.run("DEL a 7"), Ok(Reply::Bool(true)));
    let full = Ok(Reply::Array(vec![Reply::Integer(0), Reply::Integer(-1)]));
    assert_eq!(database.run("INSERTNX a ITEMS 8 absent"), full);
}

/// The number after these words of a message.
fn number_after(text: &str, words: &str) -> String {
    let start = text.find(words).unwrap_or_else(|| panic!("{text}")) + words.len();
    text[start..].chars().take_while(|c| !" ;,".contains(*c)).collect()
}

/// The message named "at most 0" keys, or a rate that was refused as well.
#[test]
fn what_a_refused_reservation_names_would_do() {
    for further in ["", " EXPANSION 0", " PREFER FAST"] {
        let mut database = Database::new();
        let refused = database.run(&format!("RESERVE a 100000000000000{further}")).unwrap_err();
        let most: u64 = number_after(&refused.to_string(), "at most ").parse().unwrap();
        assert!(most > 1_000_000_000, "{most}");
        database.0.limit = 0;
        for (capacity, is_possible) in [(most, true), (most + most / 8, false)] {
            let refused = database.run(&format!("RESERVE a {capacity}{further}")).unwrap_err();
            let is_large = matches!(refused, Error::Limit { .. });
            assert_eq!(is_large, is_possible, "{capacity}{further}: {refused}");
        }
        for capacity in [1000, 1_000_000] {
            let mut database = Database::new();
            let line = format!("RESERVE a {capacity}{further} ERROR");
            let refused = database.run(&format!("{line} 1e-17")).unwrap_err();
            let rate = number_after(&refused.to_string(), "ask for ");
            assert_eq!(database.run(&format!("{line} {rate}")), Ok(Reply::Ok), "{refused}");
        }
    }
}
