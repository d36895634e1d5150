//! How often did each address call? A few call all the time, most of them once: counts in slots,
//! and a counter for those that do not fit there.
//!
//! `cargo run -p koel --example counting`

use koel::CountingFilter;

/// Calls of an address per minute beyond which it is turned away.
const LIMIT: u64 = 1000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Addresses come from outside, so the hash is keyed: nobody can prepare some that collide.
    let builder = CountingFilter::builder(100_000, 0.000_1).sip_key(*b"sixteen secrets!");
    let mut calls = builder.build()?;

    // The n-th address calls 50,000 / n times.
    let mut turned_away = 0;
    for address in 1..=50_000_u32 {
        for _ in 0..50_000 / address {
            turned_away += u32::from(calls.insert(&address)? > LIMIT);
        }
    }
    println!("{calls:?}");
    println!("{turned_away} of {} calls turned away", calls.len());

    let exact = (1..=50_000_u32).filter(|n| calls.count(n) == u64::from(50_000 / n)).count();
    println!("{exact} of 50000 counts exact, the rest too high");
    assert!(exact >= 49_980);

    // What no key is needed for: how many addresses called how often.
    let often = calls.counts().filter(|&count| count > 100).count();
    println!("{often} addresses called more than 100 times");

    // A minute later: what was counted then is taken back, here for one address.
    assert!((0..25_000).all(|_| calls.remove(&2_u32)));
    assert_eq!(calls.count(&2_u32), 0);
    Ok(())
}
