//! Vectors of 16 bytes as arrays, of which the compiler makes what every CPU of the target has: SSE2, NEON.

use super::{MOST_LANES, Real, Simd, Work};
use std::marker::PhantomData;

/// `[R; LANES]`.
#[derive(Clone, Copy)]
pub struct Portable<R, const LANES: usize>(PhantomData<R>);

#[inline(always)]
fn each<R, const LANES: usize>(lane: impl FnMut(usize) -> R) -> [R; LANES] {
    std::array::from_fn(lane)
}

impl<R: Real, const LANES: usize> Simd for Portable<R, LANES> {
    type Real = R;
    type Vector = [R; LANES];
    type Order = [usize; LANES];
    type Narrow = Self;
    type Half = Self;
    const LANES: usize = LANES;
    const REGISTERS: usize = 16;
    const MOST_COLUMNS: usize = if cfg!(target_arch = "x86_64") { 2 } else { 4 };

    #[inline(never)] // as its description says
    unsafe fn vectorize<W: Work>(work: W) {
        // SAFETY: every CPU of the target has what this is compiled with; the rest the caller promised.
        unsafe { work.run() }
    }
    #[inline(always)]
    unsafe fn splat(x: R) -> [R; LANES] {
        [x; LANES]
    }
    #[inline(always)]
    unsafe fn load(p: *const R) -> [R; LANES] {
        // SAFETY: good for LANES elements, by the caller's promise; arrays are aligned as their elements.
        unsafe { *p.cast() }
    }
    #[inline(always)]
    unsafe fn load_first(p: *const R, count: usize) -> [R; LANES] {
        // SAFETY: good for as many elements, by the caller's promise.
        each(|lane| if lane < count { unsafe { *p.add(lane) } } else { R::ZERO })
    }
    #[inline(always)]
    unsafe fn store(p: *mut R, v: [R; LANES]) {
        // SAFETY: good for LANES elements, by the caller's promise.
        unsafe { *p.cast() = v }
    }
    #[inline(always)]
    unsafe fn store_first(p: *mut R, count: usize, v: [R; LANES]) {
        for (lane, x) in v.into_iter().enumerate().take(count) {
            // SAFETY: good for as many elements, by the caller's promise.
            unsafe { *p.add(lane) = x }
        }
    }
    #[inline(always)]
    unsafe fn mul(a: [R; LANES], b: [R; LANES]) -> [R; LANES] {
        each(|lane| a[lane] * b[lane])
    }
    #[inline(always)]
    unsafe fn mul_add(a: [R; LANES], b: [R; LANES], c: [R; LANES]) -> [R; LANES] {
        each(|lane| a[lane].mul_add_as_vectors(b[lane], c[lane]))
    }
    #[inline(always)]
    unsafe fn swap_pairs(v: [R; LANES]) -> [R; LANES] {
        each(|lane| v[lane ^ 1])
    }
    #[inline(always)]
    unsafe fn order(lanes: &[usize; MOST_LANES]) -> [usize; LANES] {
        each(|lane| lanes[lane] % LANES)
    }
    #[inline(always)]
    unsafe fn permute(v: [R; LANES], order: [usize; LANES]) -> [R; LANES] {
        each(|lane| v[order[lane]])
    }
    #[inline(always)]
    unsafe fn exchange<const D: usize>(a: [R; LANES], b: [R; LANES]) -> [[R; LANES]; 2] {
        [
            each(|lane| if lane & D == 0 { a[lane] } else { b[lane - D] }),
            each(|lane| if lane & D == 0 { a[lane + D] } else { b[lane] }),
        ]
    }
    #[inline(always)]
    fn prefetch<const NEAR: bool>(_p: *const R) {}
}
