//! Compressed input, recognised by its first bytes.

use crate::support::{Shell, gzip, keys, lines};

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

#[test]
fn gzip_and_zstd_read_like_plain_text_from_files_and_pipes_in_one_part_or_several() {
    let shell = Shell::new();
    let plain = lines(&keys("key", 20_000));
    let (front, back) = plain.split_at(100_001);
    shell.write("plain", &plain);
    shell.ok("build plain --keys 20k -o expected");
    let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 9, 9, 9][..], &zstd(&plain)].concat();
    for (name, bytes) in [
        ("gzip", gzip(&plain)),
        ("gzip-twice", [gzip(front), gzip(back)].concat()),
        ("zstd", zstd(&plain)),
        ("zstd-twice", [zstd(front), zstd(back)].concat()),
        ("zstd-skippable", skippable),
    ] {
        shell.write(name, &bytes);
        shell.ok(&format!("build {name} --keys 20k -o by-file"));
        assert!(shell.read("by-file") == shell.read("expected"), "{name} by file");
        for size in ["", "--keys 20k"] {
            shell.ok_with(&format!("build {size} -o by-pipe"), &bytes);
            assert!(shell.read("by-pipe") == shell.read("expected"), "{name} {size} by pipe");
        }
    }
}

#[test]
fn zeros_after_the_end_of_a_gzip_file_are_padding() {
    let shell = Shell::new();
    let plain = lines(&keys("key", 20_000));
    let (front, back) = plain.split_at(100_001);
    for zeros in [1, 2, 511, 100_000] {
        let padding = vec![0; zeros];
        for padded in [
            [gzip(&plain), padding.clone()].concat(),
            [gzip(front), padding.clone(), gzip(back), padding.clone()].concat(),
        ] {
            shell.write("padded", &padded);
            assert!(shell.ok("dedup padded").out == plain, "{zeros} by file");
            assert!(shell.run_with("dedup", &padded).out == plain, "{zeros} by pipe");
        }
    }
}

/// As gzip(1) does.
#[test]
fn other_bytes_after_the_end_of_a_gzip_file_are_ignored_with_a_warning() {
    let shell = Shell::new();
    let plain = lines(&keys("key", 20_000));
    let warning = "ignored the bytes after the end of the gzip data\n";
    for rest in [&b"more"[..], b"\0\0more", b"\x1f", b"\x1fmore", b"\x1f\0", &[0xff; 100_000]] {
        let padded = [gzip(&plain), gzip(b"last\n"), rest.to_vec()].concat();
        shell.write("more", &padded);
        let ran = shell.ok("dedup more");
        let expected = [&plain[..], b"last\n"].concat();
        assert!(ran.out == expected, "{rest:?}");
        ran.says(&format!("koel: more: {warning}"));
        assert_eq!(shell.ok("build more -o set").err, format!("koel: more: {warning}"));
        assert!(shell.run_with("dedup", &padded).out == expected, "{rest:?}");
    }
    // What begins as another member is one.
    shell.write("more", [gzip(&plain), vec![0x1f, 0x8b]].concat());
    assert_eq!(shell.run("dedup more").code, 2);
    shell.write("more", [gzip(&plain), gzip(&plain)[..20].to_vec()].concat());
    assert_eq!(shell.run("dedup more").code, 2);
}

#[test]
fn damage_in_the_middle_is_reported_for_every_compression() {
    let shell = Shell::new();
    let plain = lines(&keys("key", 20_000));
    for mut packed in [gzip(&plain), zstd(&plain)] {
        let middle = packed.len() / 2;
        packed[middle..middle + 100].fill(0x55);
        shell.write("damaged", &packed);
        shell.run("dedup damaged").fails_late("it may be damaged or truncated; get a new copy");
    }
}

#[test]
fn truncated_compressed_input_is_refused_and_the_target_stays_unchanged() {
    let shell = Shell::new();
    let plain = lines(&keys("key", 20_000));
    shell.build("set", &keys("old", 10), "--keys 30k");
    let before = shell.read("set");
    for whole in [gzip(&plain), zstd(&plain)] {
        shell.write("cut", &whole[..whole.len() / 2]);
        for words in ["build cut -o set", "add set cut", "build cut --keys 1M -o set"] {
            shell.run(words).fails("cut: ").says("truncated");
            assert!(shell.read("set") == before, "{words}");
        }
    }
}

#[test]
fn filters_and_other_compressions_are_refused_as_input() {
    let shell = Shell::with_filter("set", &keys("key", 100), "");
    for (name, start, what) in [
        ("list.xz", &[0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x04][..], "by xz"),
        ("list.bz2", b"BZh91AY&SY\x12\x34", "by bzip2"),
        ("small.bz2", b"BZh11AY&SY\x12\x34", "by bzip2"),
        ("list.lz4", &[0x04, 0x22, 0x4d, 0x18, 0x64, 0x40], "by lz4"),
        ("list.zip", b"PK\x03\x04\x14\0\0\0", "a zip archive"),
        ("list.7z", b"7z\xbc\xaf\x27\x1c\0\x04", "a 7z archive"),
        ("list.Z", &[0x1f, 0x9d, 0x90, 0x31, 0x14], "by compress"),
        ("list.lz", b"LZIP\x01\x0c\0", "by lzip"),
        ("list.lzma", &[0x5d, 0, 0, 0x80, 0, 0xff], "NUL bytes"),
        ("list.sqlite", b"SQLite format 3\0\x10\0", "NUL bytes"),
        ("list.tar", b"list\0\0\0\0\0\x30\x31", "NUL bytes"),
        ("list.parquet", b"PAR1\x15\x04\x15\x10\0", "NUL bytes"),
        ("other", &shell.read("set"), "koel merge"),
    ] {
        shell.write(name, start);
        for words in ["build -o new", "add set", "check set", "dedup"] {
            shell.run(&format!("{words} {name}")).fails(what);
        }
        assert!(!shell.path("new").exists());
    }
}

#[test]
fn text_that_resembles_the_first_bytes_of_other_formats_is_text() {
    let shell = Shell::new();
    let texts =
        ["", "a", "B", "BZ", "BZh", "BZh9", "BZh91AY", "BZh91AY&SX", "koel", "koel\r\n", "P*M"];
    let texts = texts.map(str::as_bytes).into_iter();
    for text in texts.chain([&b"Q*M"[..], b"\x1f", b"\x28\xb5\x2f", b"ab\n"]) {
        let end = if text.is_empty() || text.ends_with(b"\n") { "" } else { "\n" };
        let printed = shell.run_with("dedup", text).out;
        assert_eq!(printed, [text, end.as_bytes()].concat(), "{text:?}");
    }
}
