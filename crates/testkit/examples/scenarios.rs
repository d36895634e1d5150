//! Prints the scenarios of docs/conformance that a door runs, for runners in other languages: one
//! JSON text, with the keys as bytes. `cargo run -p testkit --example scenarios DOOR`.
//!
//! Without a door it prints the table of all doors.

use testkit::conformance;

fn main() {
    match std::env::args().nth(1) {
        Some(door) => println!("{}", conformance::for_other_languages(&door)),
        None => println!("{}", conformance::table()),
    }
}
