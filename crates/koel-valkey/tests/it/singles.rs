//! Commands of one item beside those of many: the same answers and the same bytes.

use koel_valkey::command::reply::Reply;
use testkit::storage::Random;

use crate::support::{Database, compat_header};

/// Items of a command of many.
const MANY: usize = 7;

/// A database with a filter of each kind.
fn database() -> Database {
    let mut database = Database::new();
    for line in [
        "RESERVE growing 100",
        "RESERVE fixed 900 EXPANSION 0",
        "RESERVE fast 1000 PREFER FAST",
        "RESERVE window 2000 WINDOW 100",
        "RESERVE full 150 WINDOW 100 WHENFULL FAIL",
    ] {
        database.run(line).unwrap();
    }
    let header = compat_header([0, 512, 0, 1], [2, 20, 1]);
    database.load_all("compat", &[(1, header), (1025, vec![0; 1024])]);
    database
}

/// A reply of a command of one item as that of a command of many.
fn as_many(reply: Result<Reply, koel_valkey::error::Error>) -> i64 {
    match reply {
        Ok(Reply::Bool(yes)) => yes.into(),
        Ok(Reply::Integer(count)) => count,
        Err(koel_valkey::error::Error::Full(_)) => -1,
        other => panic!("{other:?}"),
    }
}

#[test]
fn commands_of_one_item_answer_and_change_as_those_of_many() {
    for key in ["growing", "fixed", "fast", "window", "full", "compat"] {
        let (mut one, mut many, mut random) = (database(), database(), Random::new(7));
        for _ in 0..600 {
            let items: Vec<_> = (0..MANY).map(|_| format!("i{}", random.below(1200))).collect();
            let (single, plural) = [
                ("ADD", "INSERT"),
                ("ADDNX", "INSERTNX"),
                ("EXISTS", "MEXISTS"),
                ("COUNT", "MCOUNT"),
                ("DEL", "MDEL"),
            ][random.below(5)];
            let all = if plural.starts_with('I') { "ITEMS " } else { "" };
            let line = format!("{plural} {key} {all}{}", items.join(" "));
            let expected = many.numbers(&line);
            let answers = items.iter().map(|item| one.run(&format!("{single} {key} {item}")));
            let answers: Vec<i64> = answers.map(as_many).collect();
            // A list of INSERT has booleans, and only the server writes -1 for no.
            let expected: Vec<i64> = if single == "ADD" {
                expected.iter().map(|&added| if added == 1 { 1 } else { -1 }).collect()
            } else {
                expected
            };
            assert_eq!(answers, expected, "{single} {key} {items:?}");
        }
        assert!(one.dump(key) == many.dump(key), "{key}");
    }
}
