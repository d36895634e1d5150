//! Counts the visits of each visitor without storing their names.
//!
//! `cargo run -p koel --example visits`

use koel::{CuckooFilter, Merge};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Names come from outside. The hash is keyed, so that nobody can choose names that collide.
    let day = CuckooFilter::builder(10_000, 0.000_1).sip_key(*b"sixteen secrets!");
    let (mut monday, mut tuesday) = (day.build()?, day.build()?);

    for visitor in 0..5_000_u32 {
        (0..=visitor % 4).try_for_each(|_| monday.insert(&visitor))?;
        tuesday.insert(&visitor)?;
    }
    let both_days = {
        let mut sum = monday.clone();
        sum.merge(&tuesday, Merge::Sum)?;
        sum
    };
    assert_eq!(both_days.len(), monday.len() + tuesday.len());

    let exact = (0..5_000_u32).filter(|v| both_days.count(v) == u64::from(v % 4) + 2).count();
    println!("{exact} of 5000 counts exact, the rest too high: {both_days:?}");
    assert!(exact >= 4_990);

    // Remove Tuesday again.
    let mut only_monday = both_days;
    assert!((0..5_000_u32).all(|visitor| only_monday.remove(&visitor)));
    assert!((0..5_000_u32).all(|visitor| only_monday.contains(&visitor)));
    Ok(())
}
