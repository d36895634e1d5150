//! `koel info`, for intact and damaged files.

use crate::support::{Shell, keys};

#[test]
fn the_figures_match_the_file() {
    let shell = Shell::new();
    shell.build(
        "set",
        &[keys("key", 5_000), keys("key", 3)].concat(),
        "--fpr 0.01 --keys 6k --seed 9",
    );
    let info = shell.ok("info --json set").json();
    assert_eq!(info["keys"], 5_003);
    assert_eq!(info["capacity"], 6_000);
    assert_eq!(info["size_in_bytes"], shell.read("set").len());
    assert_eq!(info["fpr_requested"], 0.01);
    assert_eq!(info["hash"], "xxh3-64 seed 9");
    assert_eq!(info["intact"], true);
    let number = |field: &str| info[field].as_f64().unwrap();
    assert!(number("fpr_expected") > 0.0 && number("fpr_expected") < 0.01);
    assert!((number("load_factor") - number("slots_in_use") / number("slots")).abs() < 1e-12);
    assert!((number("bits_per_key") - number("size_in_bytes") * 8.0 / 6_000.0).abs() < 1e-9);
    assert!(info["layout"].is_string());
    let occupancy: Vec<u64> =
        info["occupancy"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
    assert_eq!(occupancy.iter().sum::<u64>(), info["buckets"].as_u64().unwrap());
    let entries: u64 = occupancy.iter().zip(0..).map(|(buckets, each)| buckets * each).sum();
    assert_eq!(entries, info["slots_in_use"].as_u64().unwrap());
}

#[test]
fn damage_to_the_table_is_reported_with_the_header_and_exit_code_2() {
    let shell = Shell::with_filter("set", &keys("key", 1_000), "");
    let intact = shell.read("set");
    let mut damaged = intact.clone();
    damaged[intact.len() - 100] ^= 4;
    shell.write("damaged", &damaged);
    let ran = shell.run("info damaged");
    assert_eq!(ran.code, 2);
    assert!(ran.text().contains("1,000") && ran.text().contains("DAMAGED"), "{}", ran.text());
    assert!(ran.err.contains("damaged") && ran.err.lines().count() == 1, "{}", ran.err);
    let ran = shell.run("info --json damaged");
    assert_eq!((ran.code, &ran.json()["intact"]), (2, &false.into()));
}

#[test]
fn the_histogram_has_a_bar_per_number_of_entries() {
    let shell = Shell::with_filter("set", &keys("key", 10_000), "");
    let ran = shell.ok("info set");
    let bars: Vec<usize> = ran
        .text()
        .lines()
        .skip_while(|line| !line.starts_with("entries"))
        .skip(1)
        .map(|line| line.matches('#').count())
        .collect();
    assert_eq!(bars.len(), 5);
    assert!(bars[4] > bars[0] && bars.iter().all(|&bar| bar <= 40), "{bars:?}");
}
