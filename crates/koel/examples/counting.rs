//! Counts the calls of each address. Most addresses call once and a few call all the time: small
//! counts are in the slots of the filter, and larger ones in counters.
//!
//! `cargo run -p koel --example counting`

use koel::CountingFilter;

/// The most calls per minute of one address. Further calls are refused.
const LIMIT: u64 = 1000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Addresses come from outside. The hash is keyed, so that nobody can choose ones that collide.
    let builder = CountingFilter::builder(100_000, 0.000_1).sip_key(*b"sixteen secrets!");
    let mut calls = builder.build()?;

    // The n-th address calls 50,000 / n times.
    let mut refused = 0;
    for address in 1..=50_000_u32 {
        for _ in 0..50_000 / address {
            refused += u32::from(calls.insert(&address)? > LIMIT);
        }
    }
    println!("{calls:?}");
    println!("{refused} of {} calls refused", calls.len());

    let exact = (1..=50_000_u32).filter(|n| calls.count(n) == u64::from(50_000 / n)).count();
    println!("{exact} of 50000 counts exact, the rest too high");
    assert!(exact >= 49_980);

    // The distribution of counts needs no keys.
    let often = calls.counts().filter(|&count| count > 100).count();
    println!("{often} addresses called more than 100 times");

    // A minute later the calls of that minute are removed, here for one address.
    assert!((0..25_000).all(|_| calls.remove(&2_u32)));
    assert_eq!(calls.count(&2_u32), 0);
    Ok(())
}
