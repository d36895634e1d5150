//! A webhook receiver that refuses replays: a message that was captured and sent again.
//!
//! Each request has a time, an identifier and a signature of both (checked before; not shown here).
//! A request older than the window is refused by its time. A younger one is refused if its
//! identifier is in the filter. So the filter must hold every identifier for the whole window:
//!
//! * The hash has a secret key. Otherwise an attacker could choose identifiers that fill two
//!   buckets, or that are taken for others.
//! * When the filter is full, requests are refused. A filter that evicts would let old ones in.
//! * One request in ten million is refused wrongly; its sender tries again with a new identifier.
//!
//! `cargo run --release -p koel --example replay`

use koel::{ExpiringFilter, FullError, JumpError, WhenFull};

/// Milliseconds.
const WINDOW: u64 = 5 * 60 * 1000;

/// Why a request is refused.
#[derive(Debug, PartialEq)]
enum Refused {
    TooOld,
    FromTheFuture,
    Replayed,
    Busy(FullError),
    Clock(JumpError),
}

struct Receiver {
    seen: ExpiringFilter,
}

impl Receiver {
    fn accept(&mut self, now: u64, sent: u64, id: &str) -> Result<(), Refused> {
        // A clock that jumps by more than a window would let in what was seen.
        self.seen.advance_within(now, WINDOW).map_err(Refused::Clock)?;
        if sent > now {
            return Err(Refused::FromTheFuture);
        }
        if now - sent > WINDOW {
            return Err(Refused::TooOld);
        }
        match self.seen.insert_unique(id) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Refused::Replayed),
            Err(full) => Err(Refused::Busy(full)),
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A real receiver takes the key from the system's random numbers.
    let key = *b"a 128-bit secret";
    let seen = ExpiringFilter::builder(1_000_000, 1e-7)
        .window(WINDOW)
        .when_full(WhenFull::Fail)
        .sip_key(key)
        .build()?;
    println!("{} keys in 5 minutes take {} bytes", seen.capacity(), seen.size_in_bytes());
    let mut receiver = Receiver { seen };
    let sent = 1_700_000_000_000;
    receiver.seen.advance(sent); // the time at the start
    let requests = [
        ("arrives", 40, "order-1"),
        ("is sent again", 2_000, "order-1"),
        ("is sent again at the end of the window", WINDOW, "order-1"),
        ("is sent again later", WINDOW + 60_000, "order-1"),
        ("another one arrives", WINDOW, "order-2"),
    ];
    let mut answers = Vec::new();
    for (what, delay, id) in requests {
        let answer = receiver.accept(sent + delay, sent, id);
        println!("{id} {what}: {answer:?}");
        answers.push(answer);
    }
    assert!(answers[0].is_ok());
    assert_eq!(
        answers[1..4],
        [Err(Refused::Replayed), Err(Refused::Replayed), Err(Refused::TooOld)]
    );
    assert!(answers[4].is_ok());
    Ok(())
}
