//! Vectors of 32 bytes: AVX2 and FMA.

use super::{MOST_LANES, Simd, Work, instructions};
use std::arch::x86_64::*;
use std::marker::PhantomData;

/// A vector of AVX2.
#[derive(Clone, Copy)]
pub struct Avx2<R>(PhantomData<R>);

/// # Safety
/// The CPU has the instructions.
#[inline(never)]
#[target_feature(enable = "avx2,fma")]
unsafe fn vectorized<W: Work>(work: W) {
    work.run();
}

/// All ones, then zeros: a mask of `count` lanes begins `LANES - count` words into it.
static ONES_AND_ZEROS_64: [i64; 8] = [-1, -1, -1, -1, 0, 0, 0, 0];
static ONES_AND_ZEROS_32: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

impl Simd for Avx2<f64> {
    type Real = f64;
    type Vector = __m256d;
    type Mask = __m256i;
    type Order = __m256i;
    type Narrow = Self;
    const LANES: usize = 4;
    const REGISTERS: usize = 16;

    instructions! {
        fn splat(x: f64) -> __m256d = _mm256_set1_pd(x);
        fn load(p: *const f64) -> __m256d = _mm256_loadu_pd(p);
        fn load_masked(p: *const f64, mask: __m256i) -> __m256d = _mm256_maskload_pd(p, mask);
        fn store(p: *mut f64, v: __m256d) = _mm256_storeu_pd(p, v);
        fn store_masked(p: *mut f64, mask: __m256i, v: __m256d) = _mm256_maskstore_pd(p, mask, v);
        fn mask(count: usize) -> __m256i = _mm256_loadu_si256(ONES_AND_ZEROS_64.as_ptr().add(4 - count).cast());
        fn mul(a: __m256d, b: __m256d) -> __m256d = _mm256_mul_pd(a, b);
        fn mul_add(a: __m256d, b: __m256d, c: __m256d) -> __m256d = _mm256_fmadd_pd(a, b, c);
        fn swap_pairs(v: __m256d) -> __m256d = _mm256_permute_pd::<0b0101>(v);
        fn order(lanes: &[usize; MOST_LANES]) -> __m256i = {
            // Of words of 32 bits: there is no such instruction for 64.
            let halves: [i32; 8] = std::array::from_fn(|half| (2 * lanes[half / 2] + half % 2) as i32);
            _mm256_loadu_si256(halves.as_ptr().cast())
        };
        fn permute(v: __m256d, order: __m256i) -> __m256d =
            _mm256_castps_pd(_mm256_permutevar8x32_ps(_mm256_castpd_ps(v), order));
    }
}

impl Simd for Avx2<f32> {
    type Real = f32;
    type Vector = __m256;
    type Mask = __m256i;
    type Order = __m256i;
    type Narrow = Self;
    const LANES: usize = 8;
    const REGISTERS: usize = 16;

    instructions! {
        fn splat(x: f32) -> __m256 = _mm256_set1_ps(x);
        fn load(p: *const f32) -> __m256 = _mm256_loadu_ps(p);
        fn load_masked(p: *const f32, mask: __m256i) -> __m256 = _mm256_maskload_ps(p, mask);
        fn store(p: *mut f32, v: __m256) = _mm256_storeu_ps(p, v);
        fn store_masked(p: *mut f32, mask: __m256i, v: __m256) = _mm256_maskstore_ps(p, mask, v);
        fn mask(count: usize) -> __m256i = _mm256_loadu_si256(ONES_AND_ZEROS_32.as_ptr().add(8 - count).cast());
        fn mul(a: __m256, b: __m256) -> __m256 = _mm256_mul_ps(a, b);
        fn mul_add(a: __m256, b: __m256, c: __m256) -> __m256 = _mm256_fmadd_ps(a, b, c);
        fn swap_pairs(v: __m256) -> __m256 = _mm256_permute_ps::<0b10_11_00_01>(v);
        fn order(lanes: &[usize; MOST_LANES]) -> __m256i = {
            let lanes: [i32; 8] = std::array::from_fn(|lane| lanes[lane] as i32);
            _mm256_loadu_si256(lanes.as_ptr().cast())
        };
        fn permute(v: __m256, order: __m256i) -> __m256 = _mm256_permutevar8x32_ps(v, order);
    }
}
