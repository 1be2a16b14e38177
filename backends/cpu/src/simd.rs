//! The one idiom for vector code: loops are written plainly, marked `#[inline(always)]`, and compiled twice,
//! for the baseline and for AVX2; which one runs is decided when the program does.
//!
//! Rust never fuses a multiplication with an addition by itself, so both give the same bits.

/// A loop to be compiled for each level. `run` must be `#[inline(always)]`, and so must what it calls.
pub(crate) trait Kernel {
    /// What it gives.
    type Output;
    /// The loop.
    fn run(self) -> Self::Output;
}

/// What the processor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// What every processor of the architecture has.
    Baseline,
    /// AVX2, FMA and F16C.
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

impl Level {
    /// For people.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Level::Baseline => "sse2",
            #[cfg(target_arch = "aarch64")]
            Level::Baseline => "neon",
            #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
            Level::Baseline => "baseline",
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => "avx2",
        }
    }
}

/// The level of this processor; a few loads after the first call.
#[inline]
pub(crate) fn level() -> Level {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c")
    {
        return Level::Avx2;
    }
    Level::Baseline
}

/// Runs the kernel as compiled for this processor.
#[inline]
pub(crate) fn run<K: Kernel>(kernel: K) -> K::Output {
    match level() {
        Level::Baseline => kernel.run(),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor has these features, as just found.
        Level::Avx2 => unsafe { run_avx2(kernel) },
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn run_avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run()
}
