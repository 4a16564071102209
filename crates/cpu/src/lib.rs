//! Products on the CPU whose time is the memory's, C ← α op(A) op(B) + β C: many small ones at once, with m, n, k up to [`MOST`]
//! ([`gemm_batched`]), and such with a narrow side ([`gemm_tall`]).
//!
//! A batch is as fast as memory delivers it, if the kernels get out of the way: so each matrix is read and written
//! once, by vectors of the longest kind that the CPU has, on all of rayon's threads.
//!
//! | module | what is in it |
//! |---|---|
//! | `simd` | vectors: AVX-512, AVX2, and arrays of which the compiler makes SSE2 or NEON |
//! | `tile` | one product: blocks of C in registers, of sizes known when they are compiled |
//! | `packed` | products so small that a vector holds several |
//! | `ahead` | the operands of a later product are asked for |
//! | `epilogue`, `combine` | α, β, and the conjugates of complex numbers |
//! | `job` | a batch as the kernels see it: addresses, strides, factors |
//! | `stage` | C collected, and sent in whole lines, past the caches where it is large |
//! | `mode` | how a thread computes: subnormal numbers, rounding, traps |
//! | `run`, `route` | a range of a batch on one thread; which kernel, and which thread |
//! | `search` | the paper's loop orders and blockings by name, for those who search (feature `search`) |
//! | `tall` | a product with a narrow side |
//! | `threads` | whether there are others, in a process that was forked |
//!
//! The interface is of addresses, unchecked: `lanky-host` has the safe one.
//!
//! # The same bits
//! Each element of C is one chain of multiply-adds over l = 0, 1, .., k − 1, that of a complex one two of them (with the
//! real and with the imaginary part of B's element) which are then added; then come α and β. So its bits depend neither on
//! its place in the batch, nor on the number of threads, nor on strides and layouts, nor, of a product with a narrow side, on how it is cut into blocks. On x86-64 with AVX2
//! and FMA, or AVX-512, and on AArch64 a multiply-add is rounded once; elsewhere twice.

mod ahead;
mod combine;
mod epilogue;
mod job;
mod mode;
mod packed;
mod route;
mod run;
#[cfg(feature = "search")]
mod search;
mod simd;
mod stage;
mod tall;
mod threads;
mod tile;

pub use mode::as_ieee_has_it;
use num_complex::Complex;
pub use route::{Instructions, gemm_batched, gemm_batched_with};
#[cfg(feature = "search")]
pub use search::{Blocking, Dropped, Order, Searched, Trial, UnknownName, gemm_batched_by};
pub use tall::{Output, gemm_tall, gemm_tall_with};
pub use threads::threads_are_here;

/// Most rows and columns of a matrix.
pub const MOST: usize = 32;

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// An element: f32, f64, or a complex number of them. Sealed.
pub trait Element: Copy + Send + Sync + sealed::Parts {}

pub(crate) mod sealed {
    /// An element as one or two real numbers.
    pub trait Parts {
        /// Of the parts.
        #[cfg(not(feature = "search"))]
        type Part: super::route::Kernels;
        #[cfg(feature = "search")]
        type Part: super::route::Kernels + super::search::Searched;
        /// 1, or 2 of a complex number.
        const PARTS: usize;
        /// The real and the imaginary part.
        fn to_parts(self) -> [Self::Part; 2];
    }
}

macro_rules! elements {
    ($($real:ty)*) => {$(
        impl Element for $real {}
        impl sealed::Parts for $real {
            type Part = $real;
            const PARTS: usize = 1;
            fn to_parts(self) -> [$real; 2] {
                [self, 0.0]
            }
        }
        impl Element for Complex<$real> {}
        impl sealed::Parts for Complex<$real> {
            type Part = $real;
            const PARTS: usize = 2;
            fn to_parts(self) -> [$real; 2] {
                [self.re, self.im]
            }
        }
    )*};
}
elements!(f32 f64);

/// Where the matrices of an operand begin.
#[derive(Clone, Copy, Debug)]
pub enum Matrices<T> {
    /// Matrix i `i * stride` elements after the first; with a stride of 0 all are one.
    Strided {
        /// Element (0, 0) of matrix 0.
        first: *const T,
        /// From each matrix to the next, in elements.
        stride: usize,
    },
    /// An address for each.
    Listed(*const *const T),
}

/// An operand: its matrices, all of one layout.
#[derive(Clone, Copy, Debug)]
pub struct Operand<T> {
    /// Where they begin.
    pub matrices: Matrices<T>,
    /// From each row to the next, in elements.
    pub row: usize,
    /// From each column to the next, in elements.
    pub col: usize,
    /// Whether the conjugates of the elements are meant; of C nothing.
    pub conj: bool,
}

/// C_i ← α A_i B_i + β C_i for i below `count`, A_i being m x k, B_i k x n and C_i m x n. Transposition is an exchange of
/// strides.
#[derive(Clone, Copy, Debug)]
pub struct Batch<T> {
    /// Rows of A and C.
    pub m: usize,
    /// Columns of B and C.
    pub n: usize,
    /// Columns of A, rows of B.
    pub k: usize,
    /// Number of products.
    pub count: usize,
    /// α; where it is 0, neither A nor B is read.
    pub alpha: T,
    /// A.
    pub a: Operand<T>,
    /// B.
    pub b: Operand<T>,
    /// β; where it is 0, C is not read.
    pub beta: T,
    /// C, its addresses made of ones that may be written.
    pub c: Operand<T>,
}
