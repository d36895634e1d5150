//! What the tests of stores share: folders that fail, random programs, and the history that says what must survive.
//!
//! ```text
//! memory    a folder in memory whose power can fail        faulty   a folder whose n-th call fails
//! program   random operations, the same for a seed         history  what a store may hold after it opened again
//! random    the numbers behind all of them
//! ```

mod faulty;
mod history;
mod memory;
mod program;
mod random;

pub use faulty::{Call, Failure, Fault, FaultyFolder};
pub use history::{History, State, Write};
pub use memory::MemoryFolder;
pub use program::{Op, Program};
pub use random::Random;
