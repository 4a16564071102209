//! Vectors of 64 bytes, AVX-512's, and of 32 bytes with its masks and registers.
#![allow(clippy::incompatible_msrv, reason = "build.rs leaves this out where the compiler is older")]

use super::avx2::Avx2Half;
use super::{MOST_LANES, Simd, Work, instructions};
use std::arch::x86_64::*;
use std::marker::PhantomData;

/// A vector of AVX-512.
#[derive(Clone, Copy)]
pub struct Avx512<R>(PhantomData<R>);

/// A vector of 32 bytes with the masks and registers of AVX-512.
#[derive(Clone, Copy)]
pub struct Avx512Vl<R>(PhantomData<R>);

/// # Safety
/// The CPU has the instructions.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
unsafe fn vectorized<W: Work>(work: W) {
    work.run();
}

impl Simd for Avx512<f64> {
    type Real = f64;
    type Vector = __m512d;
    type Mask = __mmask8;
    type Order = __m512i;
    const LANES: usize = 8;
    const REGISTERS: usize = 32;
    type Narrow = Avx512Vl<f64>;
    type Half = Avx512Vl<f64>;

    instructions! {
        fn splat(x: f64) -> __m512d = _mm512_set1_pd(x);
        fn load(p: *const f64) -> __m512d = _mm512_loadu_pd(p);
        fn load_masked(p: *const f64, mask: __mmask8) -> __m512d = _mm512_maskz_loadu_pd(mask, p);
        fn store(p: *mut f64, v: __m512d) = _mm512_storeu_pd(p, v);
        fn store_first(p: *mut f64, count: usize, v: __m512d) = _mm512_mask_storeu_pd(p, Self::mask(count), v);
        fn mask(count: usize) -> __mmask8 = (0xff_u16 >> (8 - count)) as __mmask8;
        fn mul(a: __m512d, b: __m512d) -> __m512d = _mm512_mul_pd(a, b);
        fn mul_add(a: __m512d, b: __m512d, c: __m512d) -> __m512d = _mm512_fmadd_pd(a, b, c);
        fn swap_pairs(v: __m512d) -> __m512d = _mm512_permute_pd::<0b0101_0101>(v);
        fn order(lanes: &[usize; MOST_LANES]) -> __m512i = _mm512_loadu_si512(lanes.as_ptr().cast());
        fn permute(v: __m512d, order: __m512i) -> __m512d = _mm512_permutexvar_pd(order, v);
    }
}

impl Simd for Avx512<f32> {
    type Real = f32;
    type Vector = __m512;
    type Mask = __mmask16;
    type Order = __m512i;
    const LANES: usize = 16;
    const REGISTERS: usize = 32;
    type Narrow = Avx512Vl<f32>;
    type Half = Avx2Half<f32>;

    instructions! {
        fn splat(x: f32) -> __m512 = _mm512_set1_ps(x);
        fn load(p: *const f32) -> __m512 = _mm512_loadu_ps(p);
        fn load_masked(p: *const f32, mask: __mmask16) -> __m512 = _mm512_maskz_loadu_ps(mask, p);
        fn store(p: *mut f32, v: __m512) = _mm512_storeu_ps(p, v);
        fn store_first(p: *mut f32, count: usize, v: __m512) = _mm512_mask_storeu_ps(p, Self::mask(count), v);
        fn mask(count: usize) -> __mmask16 = (0xffff_u32 >> (16 - count)) as __mmask16;
        fn mul(a: __m512, b: __m512) -> __m512 = _mm512_mul_ps(a, b);
        fn mul_add(a: __m512, b: __m512, c: __m512) -> __m512 = _mm512_fmadd_ps(a, b, c);
        fn swap_pairs(v: __m512) -> __m512 = _mm512_permute_ps::<0b10_11_00_01>(v);
        fn order(lanes: &[usize; MOST_LANES]) -> __m512i = {
            let lanes: [i32; 16] = std::array::from_fn(|lane| lanes[lane] as i32);
            _mm512_loadu_si512(lanes.as_ptr().cast())
        };
        fn permute(v: __m512, order: __m512i) -> __m512 = _mm512_permutexvar_ps(order, v);
    }
}

impl Simd for Avx512Vl<f64> {
    type Real = f64;
    type Vector = __m256d;
    type Mask = __mmask8;
    type Order = __m256i;
    type Narrow = Self;
    type Half = Self;
    const LANES: usize = 4;
    const REGISTERS: usize = 32;

    instructions! {
        fn splat(x: f64) -> __m256d = _mm256_set1_pd(x);
        fn load(p: *const f64) -> __m256d = _mm256_loadu_pd(p);
        fn load_masked(p: *const f64, mask: __mmask8) -> __m256d = _mm256_maskz_loadu_pd(mask, p);
        fn store(p: *mut f64, v: __m256d) = _mm256_storeu_pd(p, v);
        fn store_first(p: *mut f64, count: usize, v: __m256d) = _mm256_mask_storeu_pd(p, Self::mask(count), v);
        fn mask(count: usize) -> __mmask8 = (0xf_u16 >> (4 - count)) as __mmask8;
        fn mul(a: __m256d, b: __m256d) -> __m256d = _mm256_mul_pd(a, b);
        fn mul_add(a: __m256d, b: __m256d, c: __m256d) -> __m256d = _mm256_fmadd_pd(a, b, c);
        fn swap_pairs(v: __m256d) -> __m256d = _mm256_permute_pd::<0b0101>(v);
        fn order(lanes: &[usize; MOST_LANES]) -> __m256i = _mm256_loadu_si256(lanes.as_ptr().cast());
        fn permute(v: __m256d, order: __m256i) -> __m256d = _mm256_permutexvar_pd(order, v);
    }
}

impl Simd for Avx512Vl<f32> {
    type Real = f32;
    type Vector = __m256;
    type Mask = __mmask8;
    type Order = __m256i;
    type Narrow = Self;
    type Half = Avx2Half<f32>;
    const LANES: usize = 8;
    const REGISTERS: usize = 32;

    instructions! {
        fn splat(x: f32) -> __m256 = _mm256_set1_ps(x);
        fn load(p: *const f32) -> __m256 = _mm256_loadu_ps(p);
        fn load_masked(p: *const f32, mask: __mmask8) -> __m256 = _mm256_maskz_loadu_ps(mask, p);
        fn store(p: *mut f32, v: __m256) = _mm256_storeu_ps(p, v);
        fn store_first(p: *mut f32, count: usize, v: __m256) = _mm256_mask_storeu_ps(p, Self::mask(count), v);
        fn mask(count: usize) -> __mmask8 = (0xff_u16 >> (8 - count)) as __mmask8;
        fn mul(a: __m256, b: __m256) -> __m256 = _mm256_mul_ps(a, b);
        fn mul_add(a: __m256, b: __m256, c: __m256) -> __m256 = _mm256_fmadd_ps(a, b, c);
        fn swap_pairs(v: __m256) -> __m256 = _mm256_permute_ps::<0b10_11_00_01>(v);
        fn order(lanes: &[usize; MOST_LANES]) -> __m256i = {
            let lanes: [i32; 8] = std::array::from_fn(|lane| lanes[lane] as i32);
            _mm256_loadu_si256(lanes.as_ptr().cast())
        };
        fn permute(v: __m256, order: __m256i) -> __m256 = _mm256_permutexvar_ps(order, v);
    }
}
