//! The secret that hashes items: of the server, of a filter, or none.

use koel_valkey::command::reply::Reply;
use koel_valkey::filter::native::Key;

use crate::support::Database;

const DIGITS: &str = "00112233445566778899aAbBcCdDeEfF";

fn database(secret: Option<Key>) -> Database {
    let mut database = Database::new();
    database.0.secret = secret;
    database
}

fn body(database: &mut Database, line: &str) -> Vec<u8> {
    database.run(line).unwrap();
    database.dump("f").into_iter().skip(1).flat_map(|(_, chunk)| chunk).collect()
}

/// However a filter is created, items lie where only the secret tells.
#[test]
fn a_filter_has_the_secret_of_the_server_unless_it_is_reserved_with_another() {
    for line in [
        "RESERVE f 100",
        "RESERVE f 100 EXPANSION 0",
        "RESERVE f 100 WINDOW 60",
        "ADD f x",
        "INSERT f ITEMS x",
        "INSERTNX f CAPACITY 500 ITEMS x",
    ] {
        let [none, one, other] =
            [None, Some([1; 16]), Some([2; 16])].map(|secret| body(&mut database(secret), line));
        assert!(none != one && one != other, "{line}");
        let given = format!("{line} SECRET {DIGITS}");
        if line.starts_with("RESERVE") {
            let same = [None, Some([1; 16])].map(|secret| body(&mut database(secret), &given));
            assert!(same[0] == same[1] && same[0] != none && same[0] != one, "{line}");
            let without = body(&mut database(Some([1; 16])), &format!("{line} SECRET NO"));
            assert!(without == none, "{line}");
        }
    }
    for value in ["", "YES", &DIGITS[1..], "+0112233445566778899aAbBcCdDeEfF"] {
        let words = [&b"RESERVE"[..], b"f", b"100", b"SECRET", value.as_bytes()];
        let refused = database(None).call(&words).unwrap_err().to_string();
        assert_eq!(refused, "ERR SECRET must be NO or 32 hexadecimal digits", "{value}");
    }
}

/// What AT replays has its secret with it, or none: a replica has another one.
#[test]
fn a_command_that_is_replayed_takes_no_secret_of_the_server() {
    let mut bodies = [None, Some([1; 16])].map(|secret| {
        let mut database = database(secret);
        body(&mut database, &format!("AT 5 RESERVE f 100 WINDOW 60 SECRET {DIGITS}"))
    });
    assert!(bodies[0] == bodies[1]);
    bodies = [None, Some([1; 16])].map(|secret| body(&mut database(secret), "AT 5 ADD f x"));
    assert!(bodies[0] == bodies[1]);
}

#[test]
fn filters_of_one_secret_merge_and_others_say_what_differs() {
    let mut database = database(Some([1; 16]));
    database.run("RESERVE a 5000").unwrap();
    database.run("INSERT a ITEMS x").unwrap();
    database.0.secret = Some([2; 16]);
    database.run("RESERVE b 5000").unwrap();
    let refused = database.run("MERGE a b").unwrap_err().to_string();
    assert!(refused.contains("differ in hash"), "{refused}");
    database.0.secret = Some([1; 16]);
    database.run("RESERVE c 5000").unwrap();
    database.run("INSERT c ITEMS y").unwrap();
    assert_eq!(database.run("MERGE a c"), Ok(Reply::Ok));
    assert_eq!(database.numbers("MCOUNT a x y z"), [1, 1, 0]);
    // A copy in chunks has the secret of its source.
    let chunks = database.dump("a");
    database.load_all("copy", &chunks);
    assert_eq!(database.run("MERGE copy c"), Ok(Reply::Ok));
}
