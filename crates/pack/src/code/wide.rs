//! Plain loops over many bytes, each compiled in several versions for different generations of processors,
//! one of which is chosen at run time. A program that is compiled once for every x86-64 may use no vector of
//! more than 16 bytes and no instruction that counts bits.
//!
//! ```text
//! widened! { pub fn count_ones(bytes: &[u8]) -> u64 = portable }     portable    what every processor runs
//!                                                                   avx2        the same, 32 bytes at a time
//! ```
//!
//! The loops themselves are portable and safe: they are written in shapes that the compiler turns into vector
//! instructions. The only unsafe thing is to call a version on a processor that cannot run it, so the
//! processor is checked at each call (one load, because the standard library keeps the answer).

/// Defines a function that is the best version of `$portable`, which must be `#[inline(always)]`.
macro_rules! widened {
    ($(#[$doc:meta])* $vis:vis fn $name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)? = $portable:path) => {
        $(#[$doc])*
        $vis fn $name($($arg: $type),*) $(-> $result)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
                fn avx2($($arg: $type),*) $(-> $result)? {
                    $portable($($arg),*)
                }
                if $crate::code::wide::has_avx2() {
                    // SAFETY: the processor was just asked for all that this version is compiled for.
                    return unsafe { avx2($($arg),*) };
                }
            }
            $portable($($arg),*)
        }
    };
}
pub(crate) use widened;

/// Whether loops that are compiled for vectors of 32 bytes may run.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn has_avx2() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx2") && has!("bmi1") && has!("bmi2") && has!("popcnt")
}

/// Whether the processor counts the bits of whole vectors.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn has_vector_popcnt() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx512vpopcntdq") && has!("avx512vl")
}
