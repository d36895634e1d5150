//! The index of a small log: where the records of a key may start, in 8 bytes per record.
//!
//! `cargo run -p koel --example maplet`

use koel::Maplet;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let records = [("ada", "1815"), ("grace", "1906"), ("mary", "1780"), ("grace", "1992")];

    let mut log = String::new();
    let mut index = Maplet::builder(10_000, 1e-5, 40).build()?;
    for (key, value) in records {
        index.insert(key, log.len() as u64)?;
        log.push_str(&format!("{key}={value}\n"));
    }

    // A location is a candidate: only the record there has the key itself.
    let find = |key: &str| -> Vec<&str> {
        let lines = index.get(key).filter_map(|start| log.get(usize::try_from(start).ok()?..));
        let records = lines.filter_map(|rest| rest.lines().next()?.split_once('='));
        records.filter(|&(found, _)| found == key).map(|(_, value)| value).collect()
    };
    assert_eq!(find("ada"), ["1815"]);
    assert_eq!(find("grace").len(), 2);
    assert_eq!(find("john"), [""; 0]);

    println!("{index:?}");
    println!("{:.1} bytes per record when full", index.bits_per_entry() / 8.0);
    assert!(index.bits_per_entry() <= 9.0 * 8.0);
    Ok(())
}
