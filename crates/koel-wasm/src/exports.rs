//! The functions that module.js and the classes call. Each passes its arguments to [`Host`].
//!
//! A result is a number: from 0 on it is the answer, below it is a [`Code`], and then the output
//! buffer has the sentence of the error.

#[cfg(feature = "local")]
mod ask;
#[cfg(feature = "full")]
mod change;
#[cfg(feature = "page")]
mod page;
#[cfg(feature = "remote")]
mod remote;

use alloc::borrow::ToOwned;

#[cfg(feature = "local")]
pub use ask::*;
#[cfg(feature = "full")]
pub use change::*;
#[cfg(feature = "page")]
pub use page::*;
#[cfg(feature = "remote")]
pub use remote::*;

use crate::failure::{Code, Failure};
use crate::host::{Host, Keys};
use crate::program::with_host;

/// Runs `work` on the host, and makes a number of its result.
fn answer(work: impl FnOnce(&mut Host) -> Result<i32, Failure>) -> i32 {
    with_host(|host| {
        work(host).unwrap_or_else(|failure| {
            let code = failure.code;
            host.put_error(failure);
            code as i32
        })
    })
}

/// Runs `work`, whose result is a handle.
fn handle(work: impl FnOnce(&mut Host) -> Result<u32, Failure>) -> i32 {
    answer(|host| {
        let full = || Failure { code: Code::Memory, message: "too many filters".to_owned() };
        i32::try_from(work(host)?).map_err(|_| full())
    })
}

/// Runs `work`, whose result may be beyond 32 bits or have a fraction.
fn figure(work: impl FnOnce(&Host) -> Result<f64, Failure>) -> f64 {
    let mut figure = 0.0;
    let code = answer(|host| {
        figure = work(host)?;
        Ok(0)
    });
    if code < 0 { f64::from(code) } else { figure }
}

/// The keys of a batch: 0 for texts, 1 for integers.
fn keys(kind: u32, count: u32) -> Keys {
    let count = count as usize;
    if kind == 0 { Keys::Texts(count) } else { Keys::Integers(count) }
}

/// The address of an input buffer of at least so many bytes; 0 if there is no memory for it.
#[unsafe(no_mangle)]
pub extern "C" fn koel_input(len: usize) -> usize {
    with_host(|host| host.input(len).map_or(0, |input| input.as_ptr().addr()))
}

/// The address of the output.
#[unsafe(no_mangle)]
pub extern "C" fn koel_output() -> usize {
    with_host(|host| host.output().as_ptr().addr())
}

/// The number of bytes of the output.
#[unsafe(no_mangle)]
pub extern "C" fn koel_output_len() -> usize {
    with_host(|host| host.output().len())
}

/// Frees the input buffer and the output.
#[unsafe(no_mangle)]
pub extern "C" fn koel_clear_buffers() {
    with_host(Host::clear_buffers);
}
