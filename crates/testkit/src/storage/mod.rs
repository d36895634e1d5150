//! Shared by the tests of stores: folders that fail, random programs, and the history of what must
//! survive.
//!
//! | file | content |
//! |---|---|
//! | `memory.rs` | an in-memory folder that simulates power failures |
//! | `faulty.rs` | a folder whose n-th call fails |
//! | `hooked.rs` | a wrapper whose hook says what becomes of each call |
//! | `program.rs` | operations, random ones determined by a seed |
//! | `history.rs` | the contents that a reopened store may have |
//! | `random.rs` | the random numbers behind all of them |

mod faulty;
mod history;
mod hooked;
mod memory;
mod program;
mod random;

pub use faulty::{Counter, Failure, Fault, FaultyFolder};
pub use history::{History, State, Write};
pub use hooked::{Call, Hook, Hooked, Verdict};
pub use memory::MemoryFolder;
pub use program::{Op, Program};
pub use random::Random;
