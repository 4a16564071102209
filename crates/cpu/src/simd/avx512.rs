//! Vectors of 64 bytes, AVX-512's, and of 32 bytes with its masks and registers.
#![allow(clippy::incompatible_msrv, reason = "build.rs leaves this out where the compiler is older")]

use super::avx2::{Avx2, Avx2Half, load_first_of_f32, load_first_of_f64, store_first_of_f32, store_first_of_f64};
use super::{MOST_LANES, Simd, Work, exchanged, instructions};
use std::arch::x86_64::*;
use std::marker::PhantomData;

/// A vector of AVX-512.
#[derive(Clone, Copy)]
pub struct Avx512<R>(PhantomData<R>);

/// A vector of 32 bytes with the masks and registers of AVX-512.
#[derive(Clone, Copy)]
pub struct Avx512Vl<R>(PhantomData<R>);

/// # Safety
/// The CPU has the instructions; the rest is as [`Work::run`] asks.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
unsafe fn vectorized<W: Work>(work: W) {
    // SAFETY: the caller promised the instructions, which this is compiled with, and the rest.
    unsafe { work.run() }
}

/// Lanes as vectors of f32 have them.
const fn lanes_of_f32(both: [[usize; 16]; 2]) -> [[i32; 16]; 2] {
    let (mut lanes, mut at) = ([[0; 16]; 2], 0);
    while at < 32 {
        lanes[at / 16][at % 16] = both[at / 16][at % 16] as i32;
        at += 1;
    }
    lanes
}

impl Simd for Avx512<f64> {
    type Real = f64;
    type Vector = __m512d;
    type Order = __m512i;
    const LANES: usize = 8;
    const REGISTERS: usize = 32;
    const STREAMS: bool = true;
    type Narrow = Avx512Vl<f64>;
    type Half = Avx512Vl<f64>;

    instructions! {
        fn splat(x: f64) -> __m512d = _mm512_set1_pd(x);
        fn load(p: *const f64) -> __m512d = _mm512_loadu_pd(p);
        fn store(p: *mut f64, v: __m512d) = _mm512_storeu_pd(p, v);
        fn stream(p: *mut f64, v: __m512d) = {
            Avx2::<f64>::stream(p, _mm512_castpd512_pd256(v));
            Avx2::<f64>::stream(p.add(4), _mm512_extractf64x4_pd::<1>(v))
        };
        fn load_first(p: *const f64, count: usize) -> __m512d = match count {
            8 => _mm512_loadu_pd(p),
            5.. => {
                let low = _mm512_zextpd256_pd512(_mm256_loadu_pd(p));
                _mm512_insertf64x4::<1>(low, load_first_of_f64(p.add(4), count - 4))
            }
            _ => _mm512_zextpd256_pd512(load_first_of_f64(p, count)),
        };
        fn store_first(p: *mut f64, count: usize, v: __m512d) = match count {
            8 => _mm512_storeu_pd(p, v),
            5.. => {
                _mm256_storeu_pd(p, _mm512_castpd512_pd256(v));
                store_first_of_f64(p.add(4), count - 4, _mm512_extractf64x4_pd::<1>(v));
            }
            _ => store_first_of_f64(p, count, _mm512_castpd512_pd256(v)),
        };
        fn mul(a: __m512d, b: __m512d) -> __m512d = _mm512_mul_pd(a, b);
        fn mul_add(a: __m512d, b: __m512d, c: __m512d) -> __m512d = _mm512_fmadd_pd(a, b, c);
        fn swap_pairs(v: __m512d) -> __m512d = _mm512_permute_pd::<0b0101_0101>(v);
        fn order(lanes: &[usize; MOST_LANES]) -> __m512i = _mm512_loadu_si512(lanes.as_ptr().cast());
        fn permute(v: __m512d, order: __m512i) -> __m512d = _mm512_permutexvar_pd(order, v);
    }

    #[inline(always)]
    unsafe fn exchange<const D: usize>(a: __m512d, b: __m512d) -> [__m512d; 2] {
        // SAFETY: the CPU has the instructions, as the caller promised.
        unsafe {
            let [low, high] = const { exchanged::<8>(D) };
            // Not by a closure, which would not be compiled with the instructions.
            let (low, high) = (_mm512_loadu_si512(low.as_ptr().cast()), _mm512_loadu_si512(high.as_ptr().cast()));
            [_mm512_permutex2var_pd(a, low, b), _mm512_permutex2var_pd(a, high, b)]
        }
    }
}

impl Simd for Avx512<f32> {
    type Real = f32;
    type Vector = __m512;
    type Order = __m512i;
    const LANES: usize = 16;
    const REGISTERS: usize = 32;
    const STREAMS: bool = true;
    type Narrow = Avx512Vl<f32>;
    type Half = Avx2Half<f32>;

    instructions! {
        fn splat(x: f32) -> __m512 = _mm512_set1_ps(x);
        fn load(p: *const f32) -> __m512 = _mm512_loadu_ps(p);
        fn store(p: *mut f32, v: __m512) = _mm512_storeu_ps(p, v);
        fn stream(p: *mut f32, v: __m512) = {
            Avx2::<f32>::stream(p, _mm512_castps512_ps256(v));
            Avx2::<f32>::stream(p.add(8), _mm512_extractf32x8_ps::<1>(v))
        };
        fn load_first(p: *const f32, count: usize) -> __m512 = match count {
            16 => _mm512_loadu_ps(p),
            9.. => {
                let low = _mm512_zextps256_ps512(_mm256_loadu_ps(p));
                _mm512_insertf32x8::<1>(low, load_first_of_f32(p.add(8), count - 8))
            }
            _ => _mm512_zextps256_ps512(load_first_of_f32(p, count)),
        };
        fn store_first(p: *mut f32, count: usize, v: __m512) = match count {
            16 => _mm512_storeu_ps(p, v),
            9.. => {
                _mm256_storeu_ps(p, _mm512_castps512_ps256(v));
                store_first_of_f32(p.add(8), count - 8, _mm512_extractf32x8_ps::<1>(v));
            }
            _ => store_first_of_f32(p, count, _mm512_castps512_ps256(v)),
        };
        fn mul(a: __m512, b: __m512) -> __m512 = _mm512_mul_ps(a, b);
        fn mul_add(a: __m512, b: __m512, c: __m512) -> __m512 = _mm512_fmadd_ps(a, b, c);
        fn swap_pairs(v: __m512) -> __m512 = _mm512_permute_ps::<0b10_11_00_01>(v);
        fn order(lanes: &[usize; MOST_LANES]) -> __m512i = {
            let lanes: [i32; 16] = std::array::from_fn(|lane| lanes[lane] as i32);
            _mm512_loadu_si512(lanes.as_ptr().cast())
        };
        fn permute(v: __m512, order: __m512i) -> __m512 = _mm512_permutexvar_ps(order, v);
    }

    #[inline(always)]
    unsafe fn exchange<const D: usize>(a: __m512, b: __m512) -> [__m512; 2] {
        // SAFETY: the CPU has the instructions, as the caller promised.
        unsafe {
            let [low, high] = const { lanes_of_f32(exchanged::<16>(D)) };
            let (low, high) = (_mm512_loadu_si512(low.as_ptr().cast()), _mm512_loadu_si512(high.as_ptr().cast()));
            [_mm512_permutex2var_ps(a, low, b), _mm512_permutex2var_ps(a, high, b)]
        }
    }
}

impl Simd for Avx512Vl<f64> {
    type Real = f64;
    type Vector = __m256d;
    type Order = __m256i;
    type Narrow = Self;
    type Half = Self;
    const LANES: usize = 4;
    const REGISTERS: usize = 32;
    const STREAMS: bool = true;

    instructions! {
        fn splat(x: f64) -> __m256d = _mm256_set1_pd(x);
        fn load(p: *const f64) -> __m256d = _mm256_loadu_pd(p);
        fn store(p: *mut f64, v: __m256d) = _mm256_storeu_pd(p, v);
        fn stream(p: *mut f64, v: __m256d) = Avx2::<f64>::stream(p, v);
        fn load_first(p: *const f64, count: usize) -> __m256d = load_first_of_f64(p, count);
        fn store_first(p: *mut f64, count: usize, v: __m256d) = store_first_of_f64(p, count, v);
        fn mul(a: __m256d, b: __m256d) -> __m256d = _mm256_mul_pd(a, b);
        fn mul_add(a: __m256d, b: __m256d, c: __m256d) -> __m256d = _mm256_fmadd_pd(a, b, c);
        fn swap_pairs(v: __m256d) -> __m256d = _mm256_permute_pd::<0b0101>(v);
        fn order(lanes: &[usize; MOST_LANES]) -> __m256i = _mm256_loadu_si256(lanes.as_ptr().cast());
        fn permute(v: __m256d, order: __m256i) -> __m256d = _mm256_permutexvar_pd(order, v);
    }

    #[inline(always)]
    unsafe fn exchange<const D: usize>(a: __m256d, b: __m256d) -> [__m256d; 2] {
        // SAFETY: the CPU has the instructions, as the caller promised.
        unsafe { Avx2::<f64>::exchange::<D>(a, b) }
    }
}

impl Simd for Avx512Vl<f32> {
    type Real = f32;
    type Vector = __m256;
    type Order = __m256i;
    type Narrow = Self;
    type Half = Avx2Half<f32>;
    const LANES: usize = 8;
    const REGISTERS: usize = 32;
    const STREAMS: bool = true;

    instructions! {
        fn splat(x: f32) -> __m256 = _mm256_set1_ps(x);
        fn load(p: *const f32) -> __m256 = _mm256_loadu_ps(p);
        fn store(p: *mut f32, v: __m256) = _mm256_storeu_ps(p, v);
        fn stream(p: *mut f32, v: __m256) = Avx2::<f32>::stream(p, v);
        fn load_first(p: *const f32, count: usize) -> __m256 = load_first_of_f32(p, count);
        fn store_first(p: *mut f32, count: usize, v: __m256) = store_first_of_f32(p, count, v);
        fn mul(a: __m256, b: __m256) -> __m256 = _mm256_mul_ps(a, b);
        fn mul_add(a: __m256, b: __m256, c: __m256) -> __m256 = _mm256_fmadd_ps(a, b, c);
        fn swap_pairs(v: __m256) -> __m256 = _mm256_permute_ps::<0b10_11_00_01>(v);
        fn order(lanes: &[usize; MOST_LANES]) -> __m256i = {
            let lanes: [i32; 8] = std::array::from_fn(|lane| lanes[lane] as i32);
            _mm256_loadu_si256(lanes.as_ptr().cast())
        };
        fn permute(v: __m256, order: __m256i) -> __m256 = _mm256_permutexvar_ps(order, v);
    }

    #[inline(always)]
    unsafe fn exchange<const D: usize>(a: __m256, b: __m256) -> [__m256; 2] {
        // SAFETY: the CPU has the instructions, as the caller promised.
        unsafe { Avx2::<f32>::exchange::<D>(a, b) }
    }
}
