//! Filters in RedisBloom's layout, among them one that RedisBloom 2.8.2 dumped.

use koel_valkey::command::reply::Reply;
use koel_valkey::filter::Filter;
use testkit::storage::Random;

use crate::support::{Database, compat_header, items};

/// `RESERVE a 8 BUCKETSIZE 1 EXPANSION 2 MAXITERATIONS 5`, then `item:0` to `item:39` added, and
/// `item:0` to `item:5` deleted. It has three tables.
const HEADER: &str = "2200000000000000080000000000000002000000000000000300000000000000010005000200";
const TABLES: [&str; 3] = [
    "ae2d473800e5e500",
    "f4de568397493e5d0c07cb239c328808",
    "0000000000000000000000005f002a420000b8790014720000c11900745e3a00",
];

fn bytes(hex: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(byte).collect()
}

/// The chunks that RedisBloom dumped.
fn dumped() -> Vec<(i64, Vec<u8>)> {
    let mut chunks = vec![(1, bytes(HEADER))];
    for table in TABLES {
        let (table, next) = (bytes(table), chunks[chunks.len() - 1].0);
        chunks.push((next + table.len() as i64, table));
    }
    chunks
}

fn database() -> Database {
    let mut database = Database::new();
    database.load_all("a", &dumped());
    database
}

#[test]
fn a_dumped_filter_answers_as_it_did() {
    let mut database = database();
    assert!(matches!(database.filter("a"), Filter::Compat(_)));
    let found = database.numbers(&format!("MEXISTS a {}", items("item:", 0..60)));
    assert!((0..60).map(|number| i64::from((6..40).contains(&number))).eq(found));
    // Both buckets of item:19 are the same one in a table. RedisBloom counts it twice, and says 2.
    for number in 6..40 {
        assert_eq!(database.run(&format!("COUNT a item:{number}")), Ok(Reply::Integer(1)));
    }
    let text = "bktsize:1 buckets:8 items:34 deletes:2 filters:3 max_iterations:5 expansion:2";
    assert_eq!(database.run("DEBUG a"), Ok(Reply::Bytes(text.into())));
    assert_eq!(database.run("INFO a FORMAT"), Ok(Reply::Text("redisbloom")));
    assert_eq!(database.run("INFO a SIZE"), Ok(Reply::Integer(56 + 3 * 16 + 40)));
    assert!(database.dump("a") == dumped());
}

#[test]
fn a_dumped_filter_can_be_changed() {
    let mut database = database();
    assert_eq!(database.numbers(&format!("MDEL a {}", items("item:", 6..40))), [1; 34]);
    assert_eq!(database.number("INFO a ITEMS"), 0);
    assert!(database.dump("a")[1..].iter().all(|(_, slots)| slots.iter().all(|&slot| slot == 0)));
    database.run("COMPACT a").unwrap();
    assert_eq!(database.number("INFO a FILTERS"), 1);
    let all = items("item:", 0..3000);
    for words in ["INSERT a ITEMS", "MEXISTS a"] {
        assert_eq!(database.numbers(&format!("{words} {all}")), [1; 3000]);
    }
    assert_eq!(database.run("ADDNX a item:7"), Ok(Reply::Bool(false)));
}

#[test]
fn compacting_loses_nothing_and_frees_tables() {
    let mut random = Random::new(5);
    let mut database = database();
    database.run(&format!("INSERT a ITEMS {}", items("item:", 40..2000))).unwrap();
    let before = database.number("INFO a FILTERS");
    let kept: Vec<usize> = (6..2000).filter(|_| random.chance(10)).collect();
    for number in (6..2000).filter(|number| !kept.contains(number)) {
        assert_eq!(database.run(&format!("DEL a item:{number}")), Ok(Reply::Bool(true)));
    }
    database.run("COMPACT a").unwrap();
    let after = database.number("INFO a FILTERS");
    assert!(after < before, "{before} tables, then {after}");
    for number in kept {
        assert_eq!(database.run(&format!("EXISTS a item:{number}")), Ok(Reply::Bool(true)));
    }
}

/// The layout has no counters: copies fill tables until there are 32 of them.
#[test]
fn copies_fill_the_tables_and_a_full_filter_is_unchanged() {
    let mut database = Database::new();
    // One table, and an expansion of 1.
    let header = compat_header([0, 8, 0, 1], [1, 5, 1]);
    database.load_all("a", &[(1, header), (9, vec![0; 8])]);
    let added = (0..).find(|_| database.run("ADD a x").is_err()).unwrap();
    let dump = database.dump("a");
    let refused = database.run("ADD a x").unwrap_err();
    assert_eq!(refused.to_string(), "Maximum expansions reached");
    assert!(database.dump("a") == dump);
    assert_eq!((0..).find(|_| database.number("DEL a x") == 0), Some(added));
    assert!((32..=64).contains(&added), "{added}");
}

#[test]
fn headers_of_no_filter_are_refused_without_taking_memory() {
    let tries: [(usize, u8); 7] = [(8, 7), (8, 0), (24, 0), (31, 255), (32, 0), (34, 0), (36, 3)];
    for (at, value) in tries {
        let mut header = bytes(HEADER);
        header[at] = value;
        let text = Database::new().load("a", &(1, header)).unwrap_err().to_string();
        assert_eq!(text, "Couldn't create filter!", "byte {at}");
    }
    // As large as memory can be: only the chunks that arrive take any.
    let mut header = bytes(HEADER);
    header[8..16].copy_from_slice(&(1_u64 << 59).to_le_bytes());
    let mut database = Database::new();
    database.load_all("a", &[(1, header)]);
    assert!(database.filter("a").bytes() < 1000);
}
