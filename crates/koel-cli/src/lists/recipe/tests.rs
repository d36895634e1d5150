//! Recipes against the vectors of docs/vectors.json, and all combinations there and back.

use super::*;
use crate::lists::keys::Keys;
use crate::lists::keys::tests::lines as rules;

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
    let page = include_str!("../../../../../docs/vectors.json");
    let page: serde_json::Value = serde_json::from_str(page).unwrap();
    let rows = page["lines"].as_array().unwrap();
    assert!(rows.len() > 30);
    for row in rows {
        let stored: Bytes = bytes_of(&row["application"]).try_into().unwrap();
        let recipe = Recipe::from_bytes(stored).unwrap();
        // A filter that lacks an option refuses it, so that the rules have none of their own.
        let mut rules = rules();
        recipe.complete(&mut rules, Path::new("x")).unwrap();
        let input = bytes_of(&row["input"]);
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

#[test]
fn every_recipe_is_read_back_and_no_other_bytes_are() {
    let columns =
        [Column::Number(1), Column::Number(u32::MAX), Column::Hashed(fields::hash(b"mail"))];
    let separators = [
        Separator::Delimiter(Delimiter::Text("\t".to_owned())),
        Separator::Delimiter(Delimiter::WhiteSpace),
        Separator::Csv(b';'),
    ];
    let mut fields = vec![StoredField::None, StoredField::LongDelimiter];
    for (column, separator) in columns.iter().flat_map(|it| separators.iter().map(move |s| (it, s)))
    {
        for has_header in [false, true] {
            let (column, separator) = (column.clone(), separator.clone());
            fields.push(StoredField::Field(Field { column, separator, has_header }));
        }
    }
    for field in fields {
        for format in FORMATS {
            for options in (0..8).filter_map(LineOptions::from_bits) {
                let recipe = Recipe { options, format, field: field.clone() };
                assert_eq!(Recipe::from_bytes(recipe.to_bytes()), Some(recipe));
            }
        }
    }
    let unknown: [Bytes; 9] = [
        [8, 0, 0, 0, 0, 0, 0, 0],
        [0, 1, 0, 0, 0, 0, 0, 0],
        [0, 0, 1, 0, 0, 0, 0, 0],
        [0, 1, 3, 0, 0, 0, 0, 0],
        [0, 0, 5 << 2, 0, 1, 0, 0, 0],
        [0, 0, 1 << 7, 0, 0, 0, 0, 0],
        [0, 0, 0, b',', 0, 0, 0, 0],
        [0, 0, 1 << 2, b',', 0, 0, 0, 0],
        [0, 0, 1 << 2, 0xff, 1, 0, 0, 0],
    ];
    for bytes in unknown {
        assert_eq!(Recipe::from_bytes(bytes), None, "{bytes:?}");
        assert!(Recipe::of_filter(Path::new("x"), bytes).is_err());
    }
}

#[test]
fn what_is_given_for_an_input_goes_before_what_the_filter_stores() {
    let stored = Recipe { format: Format::Hosts, ..Recipe::of(&rules()) };
    let mut given = rules();
    given.given.format = true;
    stored.clone().complete(&mut given, Path::new("x")).unwrap();
    assert_eq!(given.format, Format::Lines);
    let mut left_out = rules();
    stored.complete(&mut left_out, Path::new("x")).unwrap();
    assert_eq!(left_out.format, Format::Hosts);
    let long = Recipe { field: StoredField::LongDelimiter, ..Recipe::of(&rules()) };
    assert!(long.clone().complete(&mut rules(), Path::new("x")).is_err());
    let mut given = rules();
    given.given.field = true;
    long.complete(&mut given, Path::new("x")).unwrap();
    assert_eq!(given.field, None);
}
