//! `koel plan`, compared with the filters that are then built.

use crate::support::{Shell, keys};

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
}
