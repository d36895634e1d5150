//! Counts requests by address in a `CuckooMap`, and drops the addresses with few. Every request
//! reads two buckets at most.
//!
//! `cargo run -p koel-map --example map`

use koel_map::CuckooMap;

fn main() {
    let requests = ["10.0.0.7", "10.0.0.8", "10.0.0.7", "10.0.0.9", "10.0.0.7", "10.0.0.8"];

    let mut by_address = CuckooMap::with_capacity(10_000);
    for address in requests {
        *by_address.entry(address).or_insert(0) += 1;
    }
    by_address.retain(|_, requests| *requests > 1);

    let mut busiest: Vec<_> = by_address.iter().collect();
    busiest.sort_by_key(|&(_, requests)| std::cmp::Reverse(requests));
    for (address, requests) in &busiest {
        println!("{address}: {requests} requests");
    }
    assert_eq!(busiest, [(&"10.0.0.7", &3), (&"10.0.0.8", &2)]);

    assert_eq!(by_address.get("10.0.0.9"), None);
    assert_eq!(by_address.overflow_len(), 0);
    println!("{} slots for 10000 addresses", by_address.slots());
    assert!(by_address.slots() < 10_600);
}
