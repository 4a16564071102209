//! Vectors of real numbers: one type for each element type and each set of instructions.

use std::ops::{Add, Mul, Neg};

mod portable;
pub(crate) use portable::Portable;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::Avx2;
#[cfg(all(target_arch = "x86_64", has_avx512))]
mod avx512;
#[cfg(all(target_arch = "x86_64", has_avx512))]
pub(crate) use avx512::Avx512;

/// f32 or f64.
pub trait Real:
    Copy + PartialEq + Send + Sync + Add<Output = Self> + Mul<Output = Self> + Neg<Output = Self> + 'static
{
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// self · b + c, rounded once where the CPU does that, else twice.
    fn mul_add_as_vectors(self, b: Self, c: Self) -> Self;
}

macro_rules! reals {
    ($($real:ty)*) => {$(
        impl Real for $real {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            #[inline(always)]
            fn mul_add_as_vectors(self, b: Self, c: Self) -> Self {
                if FUSES { self.mul_add(b, c) } else { self * b + c }
            }
        }
    )*};
}
reals!(f32 f64);

/// Whether every CPU of the target multiplies and adds with one rounding; the portable vectors do what it does.
const FUSES: bool = cfg!(any(target_arch = "aarch64", target_feature = "fma"));

/// What is to run with a set of instructions; its `run` is inlined into the function that has them.
pub trait Work {
    /// Does it.
    ///
    /// # Safety
    /// The CPU has the instructions of the work's vectors, and the matrices that it was made for are there.
    unsafe fn run(self);
}

/// A vector of `LANES` real numbers.
///
/// # Safety
/// Of every function: the CPU has the instructions. Pointers are good for what is read or written: `LANES` elements, or
/// `count`, which is from 1 to `LANES`. [`Simd::vectorize`] asks for what [`Work::run`] does.
pub trait Simd: Copy + Send + Sync + 'static {
    /// An element.
    type Real: Real;
    /// The vector.
    type Vector: Copy;
    /// Which lane goes where.
    type Order: Copy;
    /// Vectors for small matrices, of which less is wasted; the CPU has both or neither.
    type Narrow: Simd<Real = Self::Real>;
    /// Vectors of four elements, for columns that are no longer.
    type Half: Simd<Real = Self::Real>;
    /// Elements of a vector, at most [`MOST_LANES`].
    const LANES: usize;
    /// Vectors that the CPU holds.
    const REGISTERS: usize;
    /// Whether [`Simd::stream`] goes past the caches.
    const STREAMS: bool = false;
    /// Most columns of C that are computed at once.
    const MOST_COLUMNS: usize = 8;

    /// Runs `work`, compiled with the instructions, as a function of its own.
    unsafe fn vectorize<W: Work>(work: W);
    /// All lanes x.
    unsafe fn splat(x: Self::Real) -> Self::Vector;
    /// `LANES` elements.
    unsafe fn load(p: *const Self::Real) -> Self::Vector;
    /// The first `count` elements, anything behind them.
    unsafe fn load_first(p: *const Self::Real, count: usize) -> Self::Vector;
    /// `LANES` elements.
    unsafe fn store(p: *mut Self::Real, v: Self::Vector);
    /// The same past the caches, where [`Simd::STREAMS`] says so and `p` is a multiple of 16 bytes.
    #[inline(always)]
    unsafe fn stream(p: *mut Self::Real, v: Self::Vector) {
        // SAFETY: `store` asks for no more than `stream`: p is good for LANES elements, as the caller promised.
        unsafe { Self::store(p, v) }
    }
    /// The first `count` elements.
    unsafe fn store_first(p: *mut Self::Real, count: usize, v: Self::Vector);
    /// a · b.
    unsafe fn mul(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// a · b + c.
    unsafe fn mul_add(a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
    /// Lanes 0 and 1 exchanged, 2 and 3, and so on.
    unsafe fn swap_pairs(v: Self::Vector) -> Self::Vector;
    /// Lane i of what [`Simd::permute`] gives is lane `lanes[i]`, which is below `LANES`.
    unsafe fn order(lanes: &[usize; MOST_LANES]) -> Self::Order;
    /// The lanes in another order.
    unsafe fn permute(v: Self::Vector, order: Self::Order) -> Self::Vector;
    /// Blocks of D lanes of two vectors exchanged, D being a power of 2 below `LANES`: the second, fourth, .. of `a` for the first, third, ..
    /// of `b`.
    unsafe fn exchange<const D: usize>(a: Self::Vector, b: Self::Vector) -> [Self::Vector; 2];
    /// Asks for the line of an address, which may be anything: into the first-level cache if it is to be `NEAR`, else past it.
    #[inline(always)]
    fn prefetch<const NEAR: bool>(p: *const Self::Real) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: every CPU of the target has the instruction, and an address to prefetch may be anything.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
            if NEAR { _mm_prefetch::<_MM_HINT_T0>(p.cast()) } else { _mm_prefetch::<_MM_HINT_T1>(p.cast()) }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = p;
    }
}

/// Lanes of the longest vector: 64 bytes of f32.
pub const MOST_LANES: usize = 16;

/// Of both vectors that [`Simd::exchange`] gives, where each lane comes from: those of `b` are behind those of `a`.
#[cfg(all(target_arch = "x86_64", has_avx512))]
const fn exchanged<const LANES: usize>(d: usize) -> [[usize; LANES]; 2] {
    let (mut lanes, mut lane) = ([[0; LANES]; 2], 0);
    while lane < LANES {
        let is_first = lane & d == 0;
        lanes[0][lane] = if is_first { lane } else { LANES + lane - d };
        lanes[1][lane] = if is_first { lane + d } else { LANES + lane };
        lane += 1;
    }
    lanes
}

/// Stamps functions of one instruction each, and [`Simd::vectorize`] by the module's `vectorized`.
macro_rules! instructions {
    ($(fn $name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)? = $body:expr;)*) => {$(
        #[inline(always)]
        #[allow(unused_unsafe)] // of compilers to come
        unsafe fn $name($($arg: $type),*) $(-> $result)? {
            // SAFETY: the CPU has the instructions, and p is good for what is loaded or stored: what `Simd` asks its
            // callers for.
            unsafe { $body }
        }
    )*
        #[inline(always)]
        unsafe fn vectorize<W: Work>(work: W) {
            /// As a function of its own: of one with instructions of its own Rust (1.95) leaves `inline(never)` out where the caller
            /// does not have them, and the work of all sizes would be one function, in which registers are short.
            #[inline(never)]
            unsafe fn apart<W: Work>(work: W) {
                // SAFETY: as below.
                unsafe { vectorized(work) }
            }
            // SAFETY: the CPU has the instructions, and the work is given what its `run` asks for, as `Simd` asks its
            // callers.
            unsafe { apart(work) }
        }
    };
}
use instructions;
