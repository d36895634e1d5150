//! Filters that `koel build` made of lines: the server finds what `koel check` finds.

use koel::CuckooFilter;
use koel_lines::{Format, LineOptions, Recipe};
use koel_valkey::command::reply::Reply;

use crate::support::{Database, integers};

/// A database with the filter `f` of these keys, with these application bytes.
fn database(application: [u8; 8], keys: &[&str]) -> Database {
    let mut database = Database::new();
    database.run("RESERVE empty 1000 EXPANSION 0").unwrap();
    let mut filter = CuckooFilter::builder(1000, 0.001).application(application).build().unwrap();
    keys.iter().for_each(|key| filter.insert(*key).unwrap());
    let mut chunks = database.dump("empty");
    let mut image = filter.to_bytes();
    for (_, chunk) in &mut chunks[1..] {
        let rest = image.split_off(chunk.len());
        *chunk = std::mem::replace(&mut image, rest);
    }
    assert!(image.is_empty());
    database.load_all("f", &chunks);
    database
}

fn recipe(format: Format, ignores_case: bool) -> [u8; 8] {
    let options = LineOptions { ignores_case, ..LineOptions::default() };
    Recipe { options, format, ..Recipe::default() }.to_bytes()
}

#[test]
fn items_become_keys_as_the_lines_of_the_filter_did() {
    let mut database = database(recipe(Format::Lines, true), &["ada", "mary"]);
    for (line, numbers) in [
        ("MEXISTS f ADA Mary eve", &[1, 1, 0][..]),
        ("EXISTS f MARY", &[1]),
        ("MCOUNT f ADA ada", &[1, 1]),
        ("COUNT f ADA", &[1]),
        ("ADDNX f ADA", &[0]),
        ("ADD f ADA", &[1]),
        ("INSERTNX f ITEMS Eve EVE", &[1, 0]),
        ("COUNT f ada", &[2]),
        ("DEL f Ada", &[1]),
        ("MDEL f ADA ada MARY", &[1, 0, 1]),
        ("MEXISTS f ada mary eve", &[0, 0, 1]),
    ] {
        let answers = match database.run(line).unwrap() {
            Reply::Bool(answer) => vec![i64::from(answer)],
            Reply::Integer(answer) => vec![answer],
            answers => integers(answers),
        };
        assert_eq!(answers, numbers, "{line}");
    }
}

#[test]
fn a_host_is_found_in_every_form_and_what_is_none_is_refused() {
    let mut database = database(recipe(Format::Hosts, false), &["ads.example"]);
    let found = "MEXISTS f ads.example https://ADS.example:8080/x a@ads.example. www.ads.example";
    assert_eq!(database.numbers(found), [1, 1, 1, 0]);
    let before = database.dump("f");
    for line in [
        "EXISTS f x:y/z",
        "MEXISTS f ads.example .",
        "COUNT f .",
        "ADD f .",
        "DEL f .",
        "MDEL f ads.example .",
        "INSERT f ITEMS new.example .",
        "REFUTE f .",
    ] {
        let line = line.replace("x:y/z", "data:x");
        let refused = database.run(&line).unwrap_err().to_string();
        assert!(refused.starts_with("ERR the keys of this filter are hosts"), "{line}: {refused}");
    }
    assert_eq!(database.dump("f"), before);
}

#[test]
fn options_that_are_not_known_are_refused_and_other_programs_bytes_are_not_read() {
    let mut later = database([8, 0, 0, 0, 0, 0, 0, 0], &["Ada"]);
    let refused = later.run("EXISTS f Ada").unwrap_err().to_string();
    assert!(refused.ends_with("use a later version of the module"), "{refused}");
    let mut own = database([0x80, 7, 0, 0, 0, 0, 0, 0], &["Ada"]);
    assert_eq!(own.run("EXISTS f Ada"), Ok(Reply::Bool(true)));
    assert_eq!(own.run("EXISTS f ada"), Ok(Reply::Bool(false)));
}
