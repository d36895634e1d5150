//! `koel check --url`.

use crate::support::Shell;

/// The host and its parents are looked up one by one.
#[test]
fn the_rate_of_urls_is_the_one_that_info_states() {
    let shell = Shell::new();
    let hosts = |name: &str, count: u32| -> String {
        (0..count).map(|number| format!("{name}{number}.example\n")).collect()
    };
    shell.write("list", hosts("a", 20_000));
    shell.ok("build --format hosts --fpr 1% list -o set");
    let info = shell.ok("info --json set").json();
    let stated = info["url_fpr_of_3_labels"].as_f64().unwrap();
    assert!((2.5..3.0).contains(&(stated / info["fpr_expected"].as_f64().unwrap())), "{info}");
    let urls: String = (0..50_000).map(|it| format!("http://www.b{it}.x{it}/\n")).collect();
    let ran = shell.run_with("check --url -c set", urls.as_bytes());
    let found: f64 = ran.text().trim().parse().unwrap();
    let deviations = (found - 50_000.0 * stated) / (50_000.0 * stated).sqrt();
    assert!(deviations.abs() < 4.5, "{found} found, rate {stated}");
    assert!(shell.ok("info set").text().contains("of URLs"));
    shell.write("plain", "a.example\n");
    shell.ok("build plain -o lines");
    assert!(shell.ok("info --json lines").json()["url_fpr_of_3_labels"].is_null());
}
