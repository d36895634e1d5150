//! `koel build --memory`: filters that are larger than the memory that they may take.

use std::fs;
use std::io::Write;

use crate::support::{Shell, copies, keys, lines};

/// Keys of 33 bits each, in segments of little more than 1 MiB: 64 MiB and a little more.
const KEYS: u64 = 16_400_000;
const MEMORY: u64 = 16 << 20;

/// The most memory that a command has had, in bytes: the kernel counts it.
#[cfg(target_os = "linux")]
fn peak(shell: &Shell, words: &str) -> u64 {
    let line = format!(
        "$K {words} >out 2>err & pid=$!; \
        while now=$(grep -s VmHWM /proc/$pid/status); do peak=$now; sleep 0.02; done; \
        wait $pid; echo $? $peak"
    );
    let ran = crate::support::bash(shell, &line);
    let words: Vec<&str> = ran.text().split_whitespace().collect();
    assert_eq!(words.first(), Some(&"0"), "{}", String::from_utf8_lossy(&shell.read("err")));
    words.get(2).unwrap().parse::<u64>().unwrap() << 10
}

/// The table is four times the memory. The system's own share of a process is measured with a
/// filter of one key.
#[cfg(target_os = "linux")]
#[test]
fn a_filter_of_four_times_the_memory_is_built_in_it() {
    let shell = Shell::new();
    let mut list = std::io::BufWriter::new(fs::File::create(shell.path("list")).unwrap());
    (0..KEYS).for_each(|key| writeln!(list, "{key:x}").unwrap());
    drop(list);
    shell.write("one", "1\n");
    let options = "--fpr 1e-9 --json";
    let own = peak(&shell, &format!("build <(cat one; sleep 0.5) -o small {options}"));
    let all = peak(&shell, &format!("build list -o set --memory {MEMORY} {options}"));
    assert!(all.saturating_sub(own) < MEMORY, "{all} bytes, of which {own} are the process's own");
    let said = String::from_utf8(shell.read("err")).unwrap();
    assert!(said.contains(": 125.1 MiB for hashes, and 6"), "{said}");
    let built: serde_json::Value = serde_json::from_slice(&shell.read("out")).unwrap();
    assert_eq!(built["keys"].as_u64(), Some(KEYS));
    assert!(built["size_in_bytes"].as_u64().unwrap() > 4 * MEMORY);
    assert_eq!(shell.run("check -vq set list").code, 1, "every key is in");
    shell.ok("info set");
}

/// Few keys go through the same files, and the answers are those of a build in memory.
#[test]
fn copies_pipes_and_options_give_the_answers_of_a_build_in_memory() {
    let shell = Shell::new();
    let distinct = keys("key", 60_000);
    let list = [&distinct[..], &copies(&distinct[..700], 4)].concat();
    shell.write("list", lines(&list));
    shell.write("key", "00112233445566778899aabbccddeeff\n");
    for options in
        ["", "--unique", "--keys 5M", "--secret=key --prefer fast", "--unique --fpr 1e-7"]
    {
        shell.ok(&format!("build list -o plain {options}"));
        let words = format!("build - -o bounded --memory 100M {options}");
        let ran = shell.ok_with(&words, &lines(&list));
        let is_bounded = ran.err.contains(": 8 bytes per key for hashes, and a copy of the filter");
        assert_eq!(is_bounded, !options.contains("--keys"), "{}", ran.err);
        let count = |name: &str| shell.ok(&format!("count {name} list")).out;
        assert!(count("bounded") == count("plain"), "{options}");
        let info = |name: &str| shell.ok(&format!("info --json {name}")).json();
        for field in ["keys", "capacity", "size_in_bytes"] {
            assert_eq!(info("bounded")[field], info("plain")[field], "{options}");
        }
        shell.ok("info bounded");
    }
    // A file that fits is built as without the option.
    let plain = shell.ok("build list -o plain");
    let fits = shell.ok("build list -o fits --memory 1G");
    assert!(shell.read("plain") == shell.read("fits") && plain.err == fits.err);
}

#[test]
fn standard_output_gets_the_filter_too() {
    let shell = Shell::new();
    let list = lines(&keys("key", 1000));
    shell.write("set", &shell.ok_with("build --memory 64M -o -", &list).out);
    shell.write("list", &list);
    shell.ok("info set");
    assert_eq!(shell.run("check -vq set list").code, 1);
}

#[test]
fn too_little_memory_is_refused_with_what_is_needed() {
    let shell = Shell::new();
    let ran = shell.run_with("build --memory 100K -o set", &lines(&keys("key", 50_000)));
    assert!(ran.code == 2 && ran.err.contains("give --memory that or more"), "{}", ran.err);
    assert!(!shell.path("set").exists());
    assert_eq!(shell.run("build --memory 1M --grow -o set /dev/null").code, 2);
}

/// Input never decides how much memory is taken: a line that repeats is one key, or an error.
#[test]
fn a_line_that_repeats_takes_no_memory() {
    let shell = Shell::new();
    let list = b"once\n".repeat(700_000);
    let ran = shell.run_with("build --memory 4M -o set", &list);
    assert!(ran.code == 2 && ran.err.contains("use --unique"), "{}", ran.err);
    assert_eq!(shell.ok_with("build --memory 4M --unique --json -o set", &list).json()["keys"], 1);
}
