//! The keys of lines against the vectors of docs/vectors.json.

use std::path::Path;

use crate::lists::keys::Keys;
use crate::lists::keys::tests::lines as rules;
use crate::lists::options;

fn bytes_of(hex: &serde_json::Value) -> Vec<u8> {
    let hex = hex.as_str().unwrap();
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16))
        .collect::<Result<_, _>>()
        .unwrap()
}

#[test]
fn the_keys_of_lines_match_the_vectors() {
    let page = include_str!("../../../../docs/vectors.json");
    let page: serde_json::Value = serde_json::from_str(page).unwrap();
    let rows = page["lines"].as_array().unwrap();
    assert!(rows.len() > 30);
    for row in rows {
        let stored = bytes_of(&row["application"]).try_into().unwrap();
        let recipe = options::recipe_of(Path::new("x"), stored).unwrap();
        // A filter that lacks an option refuses it, so that the rules have none of their own.
        let mut rules = rules();
        options::complete(recipe, &mut rules, Path::new("x")).unwrap();
        let input = bytes_of(&row["input"]);
        input
            .split(|&byte| byte == b'\n')
            .for_each(|line| rules.reading.taken_out.note(line).unwrap());
        let mut lines = Keys::new(&input[..], &rules);
        lines.read_header().unwrap();
        let mut keys = Vec::new();
        while let Some(group) = lines.next_group().unwrap() {
            keys.extend(group.keys().iter().map(|key| key.to_vec()));
        }
        let expected: Vec<_> = row["keys"].as_array().unwrap().iter().map(bytes_of).collect();
        assert_eq!(keys, expected, "{row}");
    }
}
