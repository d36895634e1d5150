//! Runs loops compiled for the best instruction set of the processor, chosen at run time.
//!
//! A loop over columns of numbers is written once, in plain Rust without branches. Inlined into a
//! function that is compiled for AVX2 or AVX-512, it becomes vector code. The baseline version
//! always exists. Tests compare every version with the functions for single keys.

#[cfg(target_arch = "x86_64")]
cpufeatures::new!(has_avx2, "avx2");
#[cfg(target_arch = "x86_64")]
cpufeatures::new!(has_avx512, "avx512f", "avx512bw", "avx512dq", "avx512vl");

/// Keys of a block: enough to keep the memory busy, few enough for the first cache.
pub(crate) const BLOCK: usize = 64;
/// A number for each key of a block.
pub(crate) type Column = [u64; BLOCK];

/// An instruction set that this processor has; a value of this type proves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InstructionSet(Set);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Set {
    Baseline,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl InstructionSet {
    /// All sets of this processor, the best one last.
    fn available() -> impl Iterator<Item = Self> {
        let sets = [
            Some(Set::Baseline),
            #[cfg(target_arch = "x86_64")]
            has_avx2::get().then_some(Set::Avx2),
            #[cfg(target_arch = "x86_64")]
            has_avx512::get().then_some(Set::Avx512),
        ];
        sets.into_iter().flatten().map(Self)
    }

    /// The best set of this processor.
    #[inline]
    pub(crate) fn best() -> Self {
        Self::available().last().unwrap_or(Self(Set::Baseline))
    }

    /// Runs `work` in a function compiled for this set. `work` must be `#[inline(always)]` to be
    /// compiled as part of it.
    #[inline]
    #[cfg_attr(
        target_arch = "x86_64",
        expect(unsafe_code, reason = "calls functions compiled for more than the baseline")
    )]
    pub(crate) fn run(self, work: impl FnOnce()) {
        match self.0 {
            Set::Baseline => work(),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the processor has AVX2, as `available` checked.
            Set::Avx2 => unsafe { run_avx2(work) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the processor has the four parts of AVX-512, as `available` checked.
            Set::Avx512 => unsafe { run_avx512(work) },
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn run_avx2(work: impl FnOnce()) {
    work();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn run_avx512(work: impl FnOnce()) {
    work();
}

/// Calls `check` with every set of this processor.
#[cfg(test)]
pub(crate) fn each_set(check: impl FnMut(InstructionSet)) {
    InstructionSet::available().for_each(check);
}
