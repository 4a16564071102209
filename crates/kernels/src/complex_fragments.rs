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
//! So a `mma.m16n8k16` is eight rows of A by eight steps by eight columns of B, of which nothing is wasted, and what a lane
//! gives are two numbers of each factor, as they come from memory: no shuffles.
//!
//! # Thread mapping
//! Lane (g, q) = (lane / 4, lane % 4) gives row g of A and column g of B at steps q and q + 4, and gets columns 2q and 2q + 1
//! of row g of C.

use cuda_std::prelude::*;

/// Rows of A and columns of B of a fragment.
pub const SIDE: u32 = 8;
/// Steps of k of a fragment.
pub const STEPS: u32 = 8;

/// A lane's part of A: its row at steps q and q + 4, to be multiplied with B or, where `conj_b`, with its conjugate. That changes the signs
/// of the columns which meet the imaginary parts of B: by `xor`, since by a branch compilers keep both in registers.
#[inline(always)]
pub fn left([first, second]: [Complex<f64>; 2], conj_b: bool) -> [f64; 8] {
    let signed = |x: f64, is_less: bool| f64::from_bits(x.to_bits() ^ (is_less as u64) << 63);
    let turned = |x: Complex<f64>| [signed(x.im, !conj_b), signed(x.re, conj_b)];
    let ([low0, high0], [low1, high1]) = (turned(first), turned(second));
    [first.re, first.im, low0, high0, second.re, second.im, low1, high1]
}

/// A lane's part of B: its column at the same steps.
#[inline(always)]
pub fn right([first, second]: [Complex<f64>; 2]) -> [f64; 4] {
    [first.re, first.im, second.re, second.im]
}

/// A lane's part of C: columns 2q and 2q + 1 of row g.
#[inline(always)]
pub fn sums([re0, re1, im0, im1]: [f64; 4]) -> [Complex<f64>; 2] {
    [Complex::new(re0, im0), Complex::new(re1, im1)]
}
