//! Tests of lines, fields and keys against the standard library and against a writer of CSV.
//! Reads come in pieces of any size, because the buffer hides where a piece ends.

use super::*;
use crate::lines::count_lines;
use crate::lines::tests::Drip;
use koel_lines::{Column, Delimiter, Field, Separator};
use proptest::collection::vec;
use proptest::prelude::*;

/// Rules without options.
pub(crate) fn lines() -> Rules {
    let (longest, skips_long, may_have_nul) = (1 << 22, false, false);
    let (reading, given) = (Reading::default(), Given::default());
    let (numbers, large_groups) = (false, false);
    let end = b'\n';
    Rules { end, longest, reading, given, skips_long, may_have_nul, numbers, large_groups }
}

fn field(number: u32, separator: Separator) -> Field {
    Field { columns: vec![Column::Number(number)], separator, has_header: false }
}

fn of_field(field: Field) -> Rules {
    Rules { reading: Reading { field: Some(field), ..Reading::default() }, ..lines() }
}

fn csv(number: u32, delimiter: u8) -> Rules {
    of_field(field(number, Separator::Csv(delimiter)))
}

/// The lines and their keys, of reads of `step` bytes.
fn read(rules: &Rules, bytes: &[u8], step: usize) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut keys = Keys::new(Drip::new(bytes, step), rules);
    let mut all = Vec::new();
    while let Some(group) = keys.next_group()? {
        assert!(!group.lines.is_empty() && group.lines.len() == group.keys().len());
        let pairs = group.lines.iter().zip(group.keys());
        all.extend(pairs.map(|(line, key)| (line.to_vec(), key.to_vec())));
    }
    Ok(all)
}

/// The lines between line ends, with the standard library.
fn split(bytes: &[u8], end: u8) -> Vec<Vec<u8>> {
    let mut lines: Vec<_> = bytes.split(|&byte| byte == end).map(<[u8]>::to_vec).collect();
    lines.pop_if(|last| last.is_empty());
    lines
}

#[test]
fn lines_are_the_bytes_between_line_ends_whatever_the_size_of_reads() {
    let long = [vec![b'x'; 800_000], b"\ny".to_vec()].concat();
    let many = b"k\n".repeat(3_073);
    let inputs: [&[u8]; 10] =
        [b"", b"\n", b"\n\n", b"a", b"a\n", b"a\r\n\nb\0c\xff", b"\nab\n\ncd", b"\r", &long, &many];
    for (input, end) in inputs.into_iter().flat_map(|input| [(input, b'\n'), (input, 0)]) {
        for step in [1, 2, 3, 262_143, usize::MAX] {
            let got = read(&Rules { end, ..lines() }, input, step).unwrap();
            let expected = split(input, end);
            assert!(got.iter().map(|(line, _)| line).eq(&expected), "{} bytes", input.len());
            for (line, key) in &got {
                let drops = end == b'\n' && line.last() == Some(&b'\r');
                assert!(key[..] == line[..line.len() - usize::from(drops)]);
            }
            let counted = count_lines(Drip::new(input, step), end).unwrap();
            assert_eq!(counted, got.len() as u64);
        }
    }
}

#[test]
fn a_line_may_be_exactly_as_long_as_the_limit() {
    for longest in [1, 2, 100, 262_143, 262_144, 300_000] {
        let rules = Rules { longest, ..lines() };
        for (length, end) in
            [longest - 1, longest, longest + 1].into_iter().flat_map(|n| [(n, "\n"), (n, "")])
        {
            let input = ["x\n".as_bytes(), &vec![b'y'; length], end.as_bytes()].concat();
            for step in [997, usize::MAX] {
                match read(&rules, &input, step) {
                    Ok(lines) => {
                        assert!(length <= longest, "{length} of {longest}");
                        assert_eq!(lines.len(), if length + end.len() > 0 { 2 } else { 1 });
                    }
                    Err(error) => {
                        assert!(length > longest, "{length} of {longest}");
                        let sentence = error.to_string();
                        assert!(sentence.starts_with("line 2 is longer than"), "{sentence}");
                        assert!(sentence.contains("--max-line"), "{sentence}");
                    }
                }
            }
        }
    }
}

/// A field as CSV, in quotes where it needs them or `always`.
fn quoted(field: &str, delimiter: char, always: bool) -> String {
    let special = [delimiter, '"', '\n', '\r'];
    if always || field.contains(special) || field.starts_with('\u{feff}') {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

proptest! {
    #[test]
    fn a_field_of_csv_is_what_was_written(
        records in vec((vec("[a,;\" \r\n\t\u{e9}]{0,6}", 1..5), any::<bool>()), 1..20),
        number in 1_u32..5,
        delimiter in prop_oneof![Just(','), Just(';'), Just('\t')],
        crlf in any::<bool>(),
        step in 1_usize..40,
    ) {
        let end = if crlf { "\r\n" } else { "\n" };
        let texts: Vec<String> = records.iter().map(|(fields, always)| {
            let mut texts = fields.iter().map(|field| quoted(field, delimiter, *always));
            let first = texts.next().unwrap_or_default();
            texts.fold(first, |record, field| format!("{record}{delimiter}{field}"))
        }).collect();
        let input: String = texts.iter().map(|text| format!("{text}{end}")).collect();
        let expected: Vec<_> = records.iter().zip(&texts)
            .filter(|(_, text)| !text.is_empty())
            .filter_map(|((fields, _), text)| Some((text, fields.get(number as usize - 1)?)))
            .map(|(text, field)| {
                let line = if crlf { format!("{text}\r") } else { text.clone() };
                (line.into_bytes(), field.clone().into_bytes())
            })
            .collect();
        let rules = csv(number, u8::try_from(delimiter).unwrap());
        prop_assert_eq!(read(&rules, input.as_bytes(), step).unwrap(), expected);
    }

    /// `cut` for a text, `split_whitespace` for white space.
    #[test]
    fn a_field_is_what_splitting_gives(
        texts in vec("[ab \t,]{0,8}", 0..12),
        number in 1_u32..5,
        delimiter in prop_oneof![Just(","), Just(",,"), Just("\t"), Just("whitespace")],
    ) {
        let separator = Separator::Delimiter(Delimiter::parse(delimiter).unwrap());
        let rules = of_field(super::tests::field(number, separator));
        let field = |text: &str| -> Option<String> {
            let found = match delimiter {
                "whitespace" => text.split_whitespace().nth(number as usize - 1),
                _ => text.split(delimiter).nth(number as usize - 1).filter(|_| !text.is_empty()),
            };
            found.map(str::to_owned)
        };
        let expected: Vec<_> = texts.iter().filter_map(|text| {
            Some((text.clone().into_bytes(), field(text)?.into_bytes()))
        }).collect();
        let input: String = texts.iter().map(|text| format!("{text}\n")).collect();
        prop_assert_eq!(read(&rules, input.as_bytes(), 7).unwrap(), expected);
    }
}

#[test]
fn a_quote_that_is_not_closed_is_refused_and_one_inside_a_field_is_a_byte() {
    for (input, line) in [("a,b\n\"c,d\ne,f\n", "2"), ("\"", "1"), ("a\n\nb,\"c\"\"", "3")] {
        let error = read(&csv(1, b','), input.as_bytes(), 3).unwrap_err().to_string();
        assert!(error.contains(&format!("line {line} is not closed")), "{error}");
    }
    let pairs = read(&csv(1, b','), b"a\"b,c\n\"d\"e,f\n\"g\"", 3).unwrap();
    let keys: Vec<_> = pairs.into_iter().map(|(_, key)| String::from_utf8(key).unwrap()).collect();
    assert_eq!(keys, ["a\"b", "de", "g"]);
    // The number of a line counts the line ends inside quotes.
    let rules = Rules { longest: 20, ..csv(1, b',') };
    let error = read(&rules, b"\"a\nb\",\"\n\"\nc\nddddddddddddddddddddddddddd\n", 3).unwrap_err();
    assert!(error.to_string().starts_with("record in line 5 is longer"), "{error}");
}

#[test]
fn lines_without_the_field_are_skipped_and_counted() {
    let rules = csv(2, b',');
    let mut keys = Keys::new(Drip::new(b"a,b\nc\n\nd,e\n", 5), &rules);
    while keys.next_group().unwrap().is_some() {}
    let sentence = keys.skipped().sentence();
    assert_eq!(sentence, "1 empty line, 1 line without field 2");
}

/// `cat a.txt b.txt`, where `b.txt` begins with a mark.
#[test]
fn a_byte_order_mark_at_the_start_of_any_line_is_dropped() {
    let input = "\u{feff}a\nb\n\u{feff}c\r\nd\u{feff}\n\u{feff}\n\u{feff}\u{feff}e\n\u{feff}";
    let quoted = "a\n\u{feff}\"b\nc\",\u{feff}\"d\"\n";
    for step in [1, 2, 3, 5, usize::MAX] {
        let keys = |rules: &Rules, input: &str| -> Vec<String> {
            let pairs = read(rules, input.as_bytes(), step).unwrap();
            pairs.into_iter().map(|(_, key)| String::from_utf8(key).unwrap()).collect()
        };
        let expected = ["a", "b", "c", "d\u{feff}", "", "e"];
        assert_eq!(keys(&lines(), input), expected);
        assert_eq!(keys(&csv(1, b','), quoted), ["a", "b\nc"]);
        // Keys that end with NUL are exact bytes.
        let exact = Rules { end: 0, ..lines() };
        assert_eq!(keys(&exact, "\u{feff}a\0\u{feff}b\0"), ["\u{feff}a", "\u{feff}b"]);
    }
}

#[test]
fn a_column_is_found_by_its_name_in_each_input() {
    let named = |name: &str, separator| {
        let field =
            Field { columns: vec![Column::parse(name).unwrap()], separator, has_header: true };
        of_field(field)
    };
    let keys = |rules: &Rules, input: &str| -> Result<(Option<String>, Vec<String>)> {
        let mut keys = Keys::new(Drip::new(input.as_bytes(), 3), rules);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let header = keys.read_header()?.map(text);
        let mut all = Vec::new();
        while let Some(group) = keys.next_group()? {
            all.extend(group.keys().iter().map(|key| text(key)));
        }
        Ok((header, all))
    };
    let csv = |name: &str| named(name, Separator::Csv(b','));
    let (header, found) = keys(&csv("e \"mail\""), "id,\"e \"\"mail\"\"\"\r\n1,a@b\n").unwrap();
    assert_eq!((header.as_deref(), found), (Some("id,\"e \"\"mail\"\"\"\r"), vec!["a@b".into()]));
    let tab = |name: &str| named(name, Separator::Delimiter(Delimiter::parse("tab").unwrap()));
    assert_eq!(keys(&tab("b"), "a\tb\n1\t2\n3\n").unwrap().1, ["2"]);
    let space = named("b", Separator::Delimiter(Delimiter::WhiteSpace));
    assert_eq!(keys(&space, "  a   b\n 1 2 3\n").unwrap().1, ["2"]);
    // A number means that column, and the header is not read as a line.
    assert_eq!(keys(&csv("1"), "2,1\nx,y\n").unwrap().1, ["x"]);
    for without_header in ["", "\n\n"] {
        assert_eq!(keys(&csv("x"), without_header).unwrap(), (None, vec![]));
    }
    for (rules, header, names) in [
        (csv("Mail"), "id,mail\n", "no field Mail, but: id, mail"),
        (tab("b"), "a,b\n", "no field b, but: a,b"),
        (csv("z"), &format!("{}\n", "abc,".repeat(30)), "abc, abc, .."),
        (csv("z"), "\n,\n", "no field z, but: "),
    ] {
        let error = keys(&rules, header).unwrap_err().to_string();
        assert!(error.contains(names), "{error}");
    }
}
