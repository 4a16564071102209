//! Complex products on the matrix units of sm_90, which multiply real f64.
//!
//! # Idea
//! A complex product is a real one of twice the rows and steps:
//!
//! ```text
//! ⎡Re C⎤   ⎡Re A  -Im A⎤ ⎡Re B⎤
//! ⎣Im C⎦ = ⎣Im A   Re A⎦ ⎣Im B⎦
//! ```
//!
//! So eight rows of A by four steps by eight columns of B are an `mma.m16n8k8`, of which nothing is wasted. Which of its eight steps is which
//! part of which of the four is free: steps q and q + 4 are both parts of step q, so that what a lane gives of B is an element as it comes from
//! memory, without a shuffle or a move, and of A an element, and i times it.
//! Two of them take eight steps. One `mma.m16n8k16` for both would hold twice as many registers at a time: of as many blocks an SM it spilled.
//!
//! # Thread mapping
//! Lane (g, q) = (lane / 4, lane % 4) gives row g of A and column g of B at steps q and q + 4, and gets columns 2q and 2q + 1
//! of row g of C. Of four steps ([`multiply_four`]) it gives them at step q alone.

use cuda_std::prelude::*;

/// Rows of A and columns of B of a fragment.
pub const SIDE: u32 = 8;
/// Steps of k of a fragment.
pub const STEPS: u32 = 8;

/// Sums, and on top of them the products of a lane's row of A and column of B, or its conjugates, at step q of four.
///
/// # Safety
/// All lanes of the warp are here.
#[inline(always)]
pub unsafe fn multiply_four(a: Complex<f64>, b: Complex<f64>, conj_b: bool, sums: [f64; 4]) -> [f64; 4] {
    let [re, im] = turned(a, conj_b);
    // SAFETY: all lanes of the warp are here, as the caller promised; registers alone.
    unsafe { ptx::mma_m16n8k8_f64([a.re, a.im, re, im], [b.re, b.im], sums) }
}

/// The same of eight steps: each lane at steps q and q + 4.
///
/// # Safety
/// All lanes of the warp are here.
#[inline(always)]
pub unsafe fn multiply(
    [a0, a1]: [Complex<f64>; 2],
    [b0, b1]: [Complex<f64>; 2],
    conj_b: bool,
    sums: [f64; 4],
) -> [f64; 4] {
    let ([re0, im0], [re1, im1]) = (turned(a0, conj_b), turned(a1, conj_b));
    // SAFETY: all lanes of the warp are here, as the caller promised; registers alone.
    unsafe {
        let by_first = ptx::mma_m16n8k8_f64([a0.re, a0.im, re0, im0], [b0.re, b0.im], sums);
        ptx::mma_m16n8k8_f64([a1.re, a1.im, re1, im1], [b1.re, b1.im], by_first)
    }
}

/// Both parts of i·a, or of -i·a where B's imaginary parts have the other sign.
///
/// The signs are opaque: of one that it knows of the compiler makes a subtraction and a choice, and subtracts on the units that
/// multiply.
#[inline(always)]
fn turned(a: Complex<f64>, conj_b: bool) -> [f64; 2] {
    let sign = |is_negative: bool| u64::from(ptx::opaque(u32::from(is_negative) << 31)) << 32;
    [f64::from_bits(a.im.to_bits() ^ sign(!conj_b)), f64::from_bits(a.re.to_bits() ^ sign(conj_b))]
}

/// A lane's part of C: columns 2q and 2q + 1 of row g.
#[inline(always)]
pub fn sums([re0, re1, im0, im1]: [f64; 4]) -> [Complex<f64>; 2] {
    [Complex::new(re0, im0), Complex::new(re1, im1)]
}
