//! The module in real servers, on loopback.
//!
//! `scripts/valkey` gets the servers and sets what they are:
//! * `KOEL_MODULE`: the module, an absolute path.
//! * `KOEL_MODULE_BEFORE`: another build of it, to upgrade from.
//! * `KOEL_SERVERS`: programs of servers, separated by `:`.
//! * `KOEL_REFERENCE`: RedisBloom 2.8.2, for the tests of `reference`.
//! * `KOEL`: the command `koel`. `KOEL_EXAMPLE`: the example `sharded_set`.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue should stop")]

mod beside;
mod bounds;
mod cluster;
mod conformance;
mod conventions;
mod faults;
mod limits;
mod loading;
mod paused;
mod push_pull;
mod reference;
mod server;
mod upgrade;
mod values;
mod windows;
