//! What a WebAssembly module needs that an operating system gives to other programs: memory, a
//! place for the one [`Host`], and an end for panics.
//!
//! The standard library has all of it. But its panics print a message, which no page shows, and the
//! code and the texts for that would be in every module. So the module is without the standard
//! library, and a panic is a trap. JavaScript makes an exception of it.

use crate::host::Host;

#[cfg(target_family = "wasm")]
pub(crate) use bare::with_host;

#[cfg(target_family = "wasm")]
#[expect(unsafe_code, reason = "a module without the atomics feature has one thread")]
mod bare {
    use core::cell::RefCell;

    use super::Host;

    struct OneThread(RefCell<Host>);

    // SAFETY: there is no other thread that could refer to it.
    unsafe impl Sync for OneThread {}

    static HOST: OneThread = OneThread(RefCell::new(Host::new()));

    /// Runs `work` on the host.
    pub(crate) fn with_host<T>(work: impl FnOnce(&mut Host) -> T) -> T {
        work(&mut HOST.0.borrow_mut())
    }

    #[cfg(not(feature = "page"))]
    #[global_allocator]
    static MEMORY: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

    #[cfg(not(feature = "page"))]
    #[panic_handler]
    fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
        core::arch::wasm32::unreachable()
    }
}

#[cfg(not(target_family = "wasm"))]
std::thread_local! {
    static HOST: core::cell::RefCell<Host> = core::cell::RefCell::default();
}

/// Runs `work` on the host of this thread.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn with_host<T>(work: impl FnOnce(&mut Host) -> T) -> T {
    HOST.with_borrow_mut(work)
}
