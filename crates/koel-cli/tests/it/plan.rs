//! `koel plan`, compared with the filters that are then built.

use crate::support::{Shell, keys, lines};

#[test]
fn the_planned_size_is_the_size_of_the_built_file() {
    let shell = Shell::new();
    for (row, prefer) in ["small", "fast"].iter().enumerate() {
        for (count, fpr) in [(1_000, "0.01"), (20_000, "0.001"), (5_000, "1e-6")] {
            let plan = shell.ok(&format!("plan --keys {count} --fpr {fpr} --json")).json();
            let options = format!("--keys {count} --fpr {fpr} --prefer {prefer}");
            shell.build("set", &keys("key", count), &options);
            assert_eq!(
                plan[row]["memory_in_bytes"],
                shell.read("set").len(),
                "{prefer} {count} {fpr}"
            );
        }
    }
}

#[test]
fn any_two_figures_give_the_third() {
    let shell = Shell::new();
    let memory = shell.ok("plan --keys 1M --fpr 0.1% --json").json();
    for row in [0, 1] {
        let size = &memory[row]["memory_in_bytes"];
        let rate = shell.ok(&format!("plan --keys 1M --memory {size} --json")).json();
        assert!(rate[row]["memory_in_bytes"].as_u64() <= size.as_u64());
        assert!(rate[row]["fpr"].as_f64().unwrap() <= 0.001 * 1.001);
        let count = shell.ok(&format!("plan --fpr 0.1% --memory {size} --json")).json();
        assert!(count[row]["keys"].as_u64().unwrap() >= 1_000_000);
        assert!(count[row]["memory_in_bytes"].as_u64() <= size.as_u64());
    }
}

#[test]
fn the_printed_command_builds_the_planned_filter() {
    let shell = Shell::new();
    let input = "plan --keys 20k --memory 32KiB";
    let ran = shell.ok(input);
    let command =
        ran.text().lines().last().unwrap().trim().strip_prefix("koel ").unwrap().to_owned();
    shell.ok(&command.replace("INPUT", "").replace("OUT", "set"));
    let table = shell.ok(&format!("{input} --json")).json();
    assert_eq!(table[0]["memory_in_bytes"], shell.read("set").len());
}

#[test]
fn one_key_is_printed_in_the_singular() {
    let shell = Shell::new();
    let title = "1 key, false-positive rate 0.1 %\n";
    assert!(shell.ok("plan --keys 1 --fpr 0.1%").text().starts_with(title));
    assert!(shell.ok("plan --keys 1 --memory 1M").text().starts_with("1 key in 1.0 MiB\n"));
}

#[test]
fn only_koel_can_remove_and_count() {
    let shell = Shell::new();
    let plan = shell.ok("plan --keys 1M --memory 2MiB --json").json();
    for row in plan.as_array().unwrap() {
        let koel = row["filter"].as_str().unwrap().starts_with("Koel");
        assert_eq!(row["can_remove"], koel, "{row}");
        assert_eq!(row["can_count"], koel, "{row}");
    }
}

#[test]
fn too_little_memory_is_shown_in_the_table() {
    let shell = Shell::new();
    let ran = shell.ok("plan --keys 1G --memory 1k");
    assert!(ran.text().contains("not possible"), "{}", ran.text());
    // A Bloom filter of a millionth of a bit per key once had a row.
    let plan = shell.ok("plan --keys 1G --memory 1k --json").json();
    assert!(plan.as_array().unwrap().iter().all(|row| row["keys"].is_null()), "{plan}");
    let advice = ran.text().lines().last().unwrap().to_owned();
    assert!(
        advice.starts_with("Koel needs at least ") && advice.ends_with(" for 1,000,000,000 keys.")
    );
    assert!(shell.ok("plan --fpr 0.1% --memory 9").text().contains("Koel needs at least"));
    assert!(shell.ok("plan --fpr 1e-30 --memory 1G").text().contains("ask for"));
}

/// The advice was to divide the keys, which multiplies the rate.
#[test]
fn too_many_keys_for_a_rate_are_answered_with_the_lowest_one() {
    let shell = Shell::with("list", "a\n");
    for words in ["plan --keys 1e9 --fpr 1e-9", "build --keys 1e9 --fpr 1e-9 list -o new"] {
        let ran = shell.run(words);
        ran.fails("");
        let lowest = ran.err.split("for so many is ").nth(1).unwrap().split(',').next().unwrap();
        shell.ok(&format!("plan --keys 1e9 --fpr {lowest}"));
        let rate: f64 = lowest.parse().unwrap();
        assert_eq!(shell.run(&format!("plan --keys 1e9 --fpr {}", rate * 0.97)).code, 2);
        assert!(!ran.err.contains("divide"), "{}", ran.err);
    }
}

#[test]
fn the_columns_of_a_plan_are_aligned_and_its_figures_possible_for_any_memory() {
    let shell = Shell::new();
    for question in [
        "--keys 10M --memory 1K",
        "--keys 10M --memory 100T",
        "--keys 1 --memory 1000000T",
        "--keys 100T --memory 1",
        "--fpr 0.001 --memory 1000000T",
        "--fpr 0.99 --memory 7P",
        "--fpr 1e-300 --memory 1",
        "--keys 100G --fpr 0.001",
        "--keys 1 --fpr 0.99",
        "--keys 1 --fpr 1e-300",
    ] {
        let ran = shell.run(&format!("plan {question}"));
        if ran.code == 2 {
            assert!(ran.err.contains("ask for"), "{question}: {}", ran.err);
            continue;
        }
        let lines: Vec<_> = ran.text().lines().skip(2).take(8).collect();
        let add = lines[0].find("  add  remove").unwrap();
        for line in &lines[1..] {
            let value = &line[..add];
            assert!(value.ends_with(|c: char| !c.is_whitespace()), "{question}:\n{}", ran.text());
            assert!(line[add..].starts_with("  yes") || line[add..].starts_with("  no "), "{line}");
            assert!(!value.ends_with(" 0 %") && !value.ends_with("100 %"), "{line}");
        }
        let plan = shell.ok(&format!("plan {question} --json")).json();
        for row in plan.as_array().unwrap() {
            let rate = row["fpr"].as_f64().unwrap_or(0.5);
            assert!(rate < 1.0 && (rate > 5e-20 || question.contains("1e-300")), "{row}");
        }
    }
}

#[test]
fn plan_promises_no_growth_that_a_filter_cannot_do() {
    let shell = Shell::new();
    let growable = |question: &str| shell.ok(&format!("plan {question} --json")).json()[2].clone();
    let most = growable("--fpr 0.001 --memory 1000000T")["keys"].as_u64().unwrap();
    assert!((1 << 32..1 << 34).contains(&most), "{most}");
    assert!(growable(&format!("--keys {most} --fpr 0.001"))["keys"].is_u64());
    assert!(growable("--keys 100G --fpr 0.001")["keys"].is_null());
    assert!(growable("--keys 100G --memory 1T")["keys"].is_null());
    // The fixed filter of so many keys cannot be made growable either.
    let plan = shell.ok("plan --keys 100G --fpr 0.001 --json").json();
    assert_eq!(plan[0]["can_grow"], false);
    // Nor can a filter that is not possible.
    let plan = shell.ok("plan --keys 1M --fpr 1e-9 --json").json();
    assert!(plan[2]["keys"].is_null() && plan[2]["can_grow"] == false, "{plan}");
    shell.write("list", lines(&keys("key", 9)));
    shell.run("build list --grow --keys 20G -o new").fails("20000000000 keys are too many");
}

#[test]
fn without_a_rate_the_plan_is_that_of_a_build_without_one() {
    let shell = Shell::new();
    assert_eq!(shell.ok("plan --keys 1M").text(), shell.ok("plan --keys 1M --fpr 0.1%").text());
    assert_eq!(shell.ok("plan --memory 1M").text(), shell.ok("plan --fpr 1e-3 --memory 1M").text());
    shell.run("plan --fpr 1e-3").fails("give --keys or --memory");
    shell.run("plan").fails("give --keys or --memory");
}
