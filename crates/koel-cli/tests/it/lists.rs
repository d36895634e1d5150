//! Lists as they come: line ends, marks, encodings, fields, letters, long lines.

use std::io::Write;

use crate::support::{Ran, Shell, gzip};

/// The bytes of a text in UTF-16, without a mark.
fn utf_16(text: &str, big_endian: bool) -> Vec<u8> {
    let order = |unit: u16| if big_endian { unit.swap_bytes() } else { unit };
    text.encode_utf16().flat_map(|unit| order(unit).to_le_bytes()).collect()
}

/// A filter of the keys that `input` gives with these options.
pub(crate) fn filter_of(input: impl AsRef<[u8]>, options: &str) -> Shell {
    let shell = Shell::new();
    shell.ok_with(&format!("build - --fpr 1e-6 -o set {options}"), input.as_ref());
    shell
}

impl Shell {
    pub(crate) fn check(&self, options: &str, input: impl AsRef<[u8]>) -> Ran {
        self.run_with(&format!("check set {options}"), input.as_ref())
    }
}

/// `text` in every form that an editor may save it in.
fn forms(text: &str) -> Vec<(&'static str, Vec<u8>)> {
    let crlf = text.replace('\n', "\r\n");
    let marked = |text: &str| format!("\u{feff}{text}");
    vec![
        ("LF", text.into()),
        ("CRLF", crlf.clone().into()),
        ("mark", marked(text).into()),
        ("mark, CRLF", marked(&crlf).into()),
        ("UTF-16 LE", utf_16(&marked(text), false)),
        ("UTF-16 BE, CRLF", utf_16(&marked(&crlf), true)),
        ("UTF-16 LE, CRLF, no mark", utf_16(&crlf, false)),
        ("UTF-16 BE, no mark", utf_16(text, true)),
    ]
}

#[test]
fn a_list_has_the_same_keys_in_every_form_that_editors_save() {
    let text = "first.example\n\u{dc}ber.example\nlast\n";
    for (form, list) in forms(text) {
        let shell = filter_of(&list, "");
        assert_eq!(shell.ok("info --json set").json()["keys"], 3, "{form}");
        for (asked, lines) in forms(text) {
            for lines in [zstd::encode_all(&lines[..], 1).unwrap(), lines] {
                let ran = shell.check("-c", &lines);
                assert_eq!(ran.text(), "3\n", "{form}, asked in {asked}: {}", ran.err);
            }
        }
        for line in text.lines() {
            assert_eq!(shell.check("-q", line).code, 0, "{form}: {line}");
            assert_eq!(shell.check("-q", format!("x{line}")).code, 1, "{form}: {line}");
        }
    }
}

#[test]
fn a_line_is_printed_as_it_came_whatever_its_key_is() {
    let shell = filter_of("a\nb\n", "--trim --ignore-case");
    let lines = "A\r\n  b \n c\nB\n";
    assert_eq!(shell.check("", lines).text(), "A\r\n  b \nB\n");
    assert_eq!(shell.check("-v", lines).text(), " c\n");
    assert_eq!(
        shell.run_with("count set", lines.as_bytes()).text(),
        "1\tA\r\n1\t  b \n0\t c\n1\tB\n"
    );
    let ran = shell.run_with("dedup --trim --ignore-case", lines.as_bytes());
    assert_eq!(ran.text(), "A\r\n  b \n c\n");
    assert_eq!(shell.run_with("dedup", b"a\r\na\nb\n").text(), "a\r\nb\n");
}

#[test]
fn with_nul_lines_are_exact_bytes() {
    let keys: [&[u8]; 7] =
        [b"a", b"a\r", b" a", b"\xef\xbb\xbfa", b"\xff\xfea", b"a\nb", b"caf\xe9\n"];
    let all = keys.join(&0);
    let ran = Shell::new().run_with("dedup -0", &all);
    assert_eq!(ran.out, [&all[..], b"\0"].concat());
}

#[test]
fn the_options_for_keys_may_be_repeated_survive_growth_and_are_shown() {
    for options in ["", "--ignore-case", "--trim", "--ignore-case --trim", "--keep-cr"] {
        let shell = filter_of("key\n", options);
        shell.ok("grow set");
        assert_eq!(shell.check(&format!("-c {options}"), "key\n").text(), "1\n", "{options}");
        let shown = if options.is_empty() { "none" } else { options };
        assert!(shell.ok("info set").text().contains(&format!("line options         {shown}\n")));
    }
}

#[test]
fn an_option_that_the_filter_was_built_without_is_refused() {
    let shell = filter_of("key\n", "--trim");
    let before = shell.read("set");
    for verb in ["check set", "add set", "remove set", "count set"] {
        for option in ["--ignore-case", "--keep-cr", "--trim --ignore-case"] {
            let name = option.trim_start_matches("--trim ");
            shell
                .run_with(&format!("{verb} {option}"), b"key\n")
                .fails(&format!("koel: set was built without {name}; leave the option out"));
        }
    }
    assert!(shell.read("set") == before);
}

#[test]
fn filters_with_different_options_are_neither_merged_nor_compared() {
    let shell = filter_of("key\n", "--keys 100 --trim");
    shell.build("other", &["key".into()], "--keys 100 --fpr 1e-6");
    for words in ["merge set other -o both", "similar set other", "diff set other"] {
        shell.run(words).fails("--trim");
    }
}

#[test]
fn a_field_is_read_by_every_verb_and_the_whole_line_printed() {
    let shell = filter_of("1\tann\n2\tbob\nno field\n", "--field 2");
    assert_eq!(shell.check("-c", "x\tann\nann\tx\nno field\n").text(), "1\n");
    assert_eq!(shell.check("-c --field 0", "ann\nbob\nno field\n").text(), "2\n");
    let log = "x;ann;1\ny;eve;2\nz;bob\n\n";
    let ran = shell.check("--field 2 --delimiter ;", log);
    assert_eq!(ran.text(), "x;ann;1\nz;bob\n");
    assert_eq!(ran.err, "koel: skipped 1 empty line\n");
    assert_eq!(shell.check("-v --field 2 --delimiter ;", log).text(), "y;eve;2\n");
    let ran = shell.run_with("count set --field 2 --delimiter ;", log.as_bytes());
    assert_eq!(ran.text(), "1\tx;ann;1\n0\ty;eve;2\n1\tz;bob\n");
    let ran = shell.run_with("dedup --field 1 --delimiter whitespace", b" a 1\na 2\n\tb\n");
    assert_eq!(ran.text(), " a 1\n\tb\n");
    // The next input may have other fields.
    shell.ok_with("add set --field 1", b"carl\t3\n");
    shell.ok_with("remove set --field 3 --delimiter ,", b",,carl\n");
    assert_eq!(shell.check("-q --field 0", "carl").code, 1);
    let ran = shell.check("--field 3", "a,b,c\nd,e,f\n");
    let expected = "koel: no key in standard input: 2 lines without field 3; see --field, \
                    --delimiter and --csv; --field 0 is the whole line\n";
    assert_eq!((ran.code, &*ran.err), (2, expected));
}

#[test]
fn csv_fields_may_have_quotes_delimiters_and_line_ends() {
    let shell = Shell::new();
    let list = "id,name\r\n1,\"Smith, \"\"Al\"\"\"\r\n2,\"two\r\nlines\"\r\n3,plain\r\n";
    shell.write("list.csv", list);
    // The count before the build sees the same records.
    let built = shell.ok("build list.csv --csv --field 2 --json -o set").json();
    assert_eq!((&built["keys"], &built["capacity"]), (&4.into(), &4.into()));
    for key in ["Smith, \"Al\"\0", "two\r\nlines\0", "plain\0", "name\0"] {
        assert_eq!(shell.check("-0 -q --field 0", key).code, 0, "{key:?}");
        assert_eq!(shell.check("-0 -q", key).code, 2, "{key:?}");
    }
    assert_eq!(shell.check("", list).text(), list);
    assert_eq!(shell.check("--csv --field 2", list).text(), list);
    let ran = shell.check("--csv --field 2 --delimiter ;", "x;\"two\r\nlines\";y\nz;plain\n");
    assert_eq!(ran.text(), "x;\"two\r\nlines\";y\nz;plain\n");
    shell.check("--csv --field 1", "\"never closed\nplain\n").fails("quote");
}

#[test]
fn a_line_above_the_limit_is_refused_with_its_number_whatever_the_file_is() {
    let shell = Shell::new();
    let long = [&b"short\n"[..], &vec![b'x'; 5 << 20], b"\n"].concat();
    shell.write("plain", &long);
    shell.write("gzip", gzip(&long));
    shell.write("zstd", zstd::encode_all(&long[..], 1).unwrap());
    let text = std::str::from_utf8(&long).unwrap();
    shell.write("utf-16", utf_16(&format!("\u{feff}{text}"), false));
    for name in ["plain", "gzip", "zstd", "utf-16"] {
        for words in ["build -o new", "build --grow -o new", "dedup"] {
            let ran = shell.run(&format!("{words} {name}"));
            assert_eq!(ran.code, 2, "{words} {name}");
            let expected = format!("koel: cannot read {name}: line 2 is longer than 4.0 MiB; ");
            assert!(ran.err.starts_with(&expected), "{}", ran.err);
            assert!(ran.err.lines().count() == 1 && ran.err.contains("--max-line"), "{}", ran.err);
        }
        assert_eq!(shell.ok(&format!("dedup --max-line 6M {name}")).out, long, "{name}");
    }
    assert!(!shell.path("new").exists());
    let ran = shell.run_with("dedup --max-line 10", b"0123456789\n01234567890\n");
    assert_eq!((ran.code, ran.text()), (2, "0123456789\n"));
}

#[test]
fn a_line_above_the_limit_can_be_skipped_and_is_counted() {
    let shell = Shell::new();
    let lines =
        [&b"a\n"[..], &vec![b'x'; 600_000], b"\nb\n", &vec![b'y'; 300_000], b"\na"].concat();
    for words in ["dedup", "dedup --ignore-case"] {
        let ran = shell.run_with(&format!("{words} --max-line 200k --skip-long"), &lines);
        assert_eq!((ran.code, ran.text()), (0, "a\nb\n"));
        assert!(ran.err.starts_with("koel: skipped 2 lines above --max-line\n"), "{}", ran.err);
    }
    shell.write("list", &lines);
    let built = shell.ok("build list -o set --max-line 200k --skip-long --json").json();
    assert_eq!((&built["keys"], &built["skipped"]["too_long"]), (&3.into(), &2.into()));
    for limit in ["1", "2"] {
        let ran =
            shell.run_with(&format!("dedup --skip-long --max-line {limit}"), b"ab\nc\nabc\nd");
        let expected = if limit == "1" { "c\nd\n" } else { "ab\nc\nd\n" };
        assert_eq!(ran.text(), expected);
    }
    shell.run("dedup list --max-line 200k --skip-long --csv --field 1").fails("--csv");
}

/// Regression: 34 KB of zstd took 2.1 GB of memory.
#[cfg(target_os = "linux")]
#[test]
fn a_bomb_of_one_line_takes_little_memory() {
    use crate::support::bash;

    let shell = Shell::new();
    let mut packed = zstd::Encoder::new(Vec::new(), 1).unwrap();
    (0..1024).for_each(|_| packed.write_all(&vec![b'x'; 1 << 20]).unwrap());
    shell.write("bomb", packed.finish().unwrap());
    for verb in ["build -o new bomb", "dedup bomb", "dedup --csv --field 1 bomb"] {
        bash(&shell, &format!("ulimit -v 400000; exec $K {verb}")).fails("--max-line");
    }
}

#[test]
fn a_zstd_window_above_the_limit_is_refused_and_the_way_around_named() {
    let shell = Shell::new();
    let mut packed = zstd::Encoder::new(Vec::new(), 1).unwrap();
    packed.window_log(28).unwrap();
    packed.write_all(&b"key\n".repeat(100)).unwrap();
    shell.write("large", packed.finish().unwrap());
    shell.run("dedup large").fails("zstd -dc --long=31");
}

#[test]
fn text_in_utf_16_that_is_damaged_is_refused_and_other_text_read_with_a_warning() {
    let shell = Shell::new();
    shell.run_with("build -o new", b"\xff\xfea\0\n\0\0").fails("UTF-16");
    let ran = shell.run_with("dedup", &utf_16("a\nb\n", false));
    assert_eq!(ran.text(), "a\nb\n");
    ran.says("read as UTF-16").says("-0");
}

#[test]
fn wrong_options_for_lines_give_their_remedy() {
    let shell = Shell::with("list", "a,b\n");
    for (options, remedy) in [
        ("--field -1", "the number of a field, or its name"),
        ("--field x", "list: its header has no field x, but: a,b"),
        ("--csv --field c", "list: its header has no field c, but: a, b"),
        ("--header", "--field"),
        ("--delimiter ,", "--field"),
        ("--csv", "--field"),
        ("--csv --field 1 -0", "--csv"),
        ("--csv --field 1 --delimiter ::", "one ASCII character"),
        ("--csv --field 1 --delimiter whitespace", "one ASCII character"),
        ("--format csv", "hosts"),
        ("--max-line many", "such as 64M"),
    ] {
        shell.run(&format!("build list -o new {options}")).fails(remedy);
    }
}

#[test]
fn a_column_is_taken_by_its_name_and_the_header_printed_once() {
    let shell = Shell::with("list.csv", "\u{feff}id,\"mail\"\r\n1,ann@a\r\n2,bob@b\r\n");
    let built = shell.ok("build list.csv --csv --field mail --json -o set").json();
    assert_eq!((&built["keys"], &built["capacity"]), (&2.into(), &2.into()));
    // The columns of another input may be in another order.
    shell.write("new.csv", "mail,id\neve@e,3\nann@a,4\n");
    let ran = shell.ok("check --csv --field mail set list.csv new.csv");
    assert_eq!(ran.text(), "id,\"mail\"\r\n1,ann@a\r\n2,bob@b\r\nann@a,4\n");
    assert_eq!(shell.ok("check -c --csv --field mail set new.csv").text(), "1\n");
    assert_eq!(shell.run("check -q --csv --field id set new.csv").code, 1);
    let ran = shell.ok("dedup --field mail --delimiter , new.csv new.csv");
    assert_eq!(ran.text(), "mail,id\neve@e,3\nann@a,4\n");
    ran.says("4 lines read, 2 printed");
    let ran = shell.ok("count set --csv --header --field 1 new.csv");
    assert_eq!(ran.text(), "0\teve@e,3\n1\tann@a,4\n");
    let ran = shell.run("check -q --csv --field Mail set new.csv");
    let expected = "koel: cannot read new.csv: its header has no field Mail, but: mail, id; ";
    assert!(ran.err.starts_with(expected), "{}", ran.err);
    // The filter knows the name, and finds it in another input.
    assert_eq!(shell.ok("check -c set new.csv").text(), "1\n");
    let ran = shell.run_with("check -q set", b"ann@a\n");
    assert_eq!(ran.code, 2);
    let expected = "its header has no field with the name that the filter was built with, but: \
                    ann@a; give another --field, or --field 0 if each key is a whole line\n";
    assert!(ran.err.ends_with(expected), "{}", ran.err);
}

#[test]
fn the_header_is_the_first_line_that_is_not_empty() {
    let shell = Shell::new();
    for options in ["--csv --field mail", "--field mail --delimiter ,"] {
        shell.write("list", "\u{feff}\r\n\nid,mail\r\n1,ann@a\r\n\r\n2,bob@b\r\n");
        let built = shell.ok(&format!("build list {options} --json -o set")).json();
        assert_eq!((&built["keys"], &built["skipped"]["empty"]), (&2.into(), &3.into()));
        // The header is printed, the empty lines are not: they have no key.
        let ran = shell.ok(&format!("check {options} set list"));
        assert_eq!(ran.text(), "id,mail\r\n1,ann@a\r\n2,bob@b\r\n", "{options}");
        let ran = shell.run(&format!("build list {} -o new", options.replace("mail", "Mail")));
        let expected = "koel: cannot read list: its header has no field Mail, but: id, mail; ";
        assert!(ran.code == 2 && ran.err.replace("id,mail", "id, mail").starts_with(expected));
        for blank in ["", "\n", "\r\n\n"] {
            shell.write("blank", blank);
            let built = shell.ok(&format!("build blank {options} --json -o none")).json();
            assert_eq!(built["keys"], 0, "{blank:?}");
        }
    }
}

#[test]
fn check_prints_where_a_line_is() {
    let shell = filter_of("b\nd\n", "");
    shell.write("one", "a\nb\n\nd\n");
    shell.write("two", "d");
    let ran = shell.run("check -nH set one two");
    assert_eq!(ran.text(), "one:2:b\none:4:d\ntwo:1:d\n");
    assert_eq!(shell.run("check -n -v set one").text(), "1:a\n3:\n");
    assert_eq!(shell.run("check -H set - < one").code, 2);
    assert_eq!(shell.check("-H", "b\n").text(), "standard input:b\n");
    // A record of CSV has the number of its first line, and each host of a list that of its line.
    let ran = shell.check("-n --csv --field x", "x,y\n\n\"d\",\"1\n2\"\nb,3\n");
    assert_eq!(ran.text(), "x,y\n3:\"d\",\"1\n2\"\n5:b,3\n");
    let hosts = filter_of("a.example\nb.example\n", "--format hosts");
    assert_eq!(
        hosts.check("-n", "# x\n::1 b.example a.example\n").text(),
        "2:b.example\n2:a.example\n"
    );
    let long = format!("{}\nb\n", "x".repeat(100));
    assert_eq!(shell.check("-n --max-line 50 --skip-long", &long).text(), "2:b\n");
    shell.run("check -n -c set one").fails("cannot be used with");
    // Names of a header between commas are no field of tabs.
    shell.check("--field mail", "id,mail\n1,b\n").fails("or --csv if commas separate fields");
}

#[test]
fn several_fields_are_one_key() {
    let shell = Shell::new();
    let people = "id,first,last\n1,Ann,Lee\n2,ann,lee\n3,Ann,Bo\n4,AnnL,ee\n5,,\n6\n";
    let ran = shell.run_with("dedup --csv --field first,last --ignore-case", people.as_bytes());
    assert_eq!(ran.text(), "id,first,last\n1,Ann,Lee\n3,Ann,Bo\n4,AnnL,ee\n5,,\n");
    ran.says("1 line without field");
    let tabs = "a b\tc\na\tb c\na b\tc\n";
    let ran = shell.run_with("dedup --field 1 --field 2", tabs.as_bytes());
    assert_eq!(ran.text(), "a b\tc\na\tb c\n");
    // A filter cannot store them, and says so instead of asking for lines.
    let shell = filter_of(people, "--csv --field first,last");
    shell.check("-q", people).fails("several fields");
    assert_eq!(shell.check("--csv --field first,last -c", people).text(), "5\n");
    assert_eq!(shell.check("--csv --field last,first -c", "last,first\nLee,Ann\n").text(), "0\n");
    for words in ["--field 0,1", "--field 1,2 --format hosts", "--field 1,", "--field ,"] {
        let ran = shell.run_with(&format!("build -o new {words}"), b"a\tb\n");
        assert_eq!((ran.code, ran.text()), (2, ""), "{words}");
    }
    let hosts = filter_of("a.example\n", "--format hosts");
    hosts.check("--field 1,2", "a.example\tb\n").fails("which is no host");
}
