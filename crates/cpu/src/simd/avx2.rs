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

/// Stores by mask take some processors twenty cycles, and whatever is loaded near them waits: ordinary ones are enough.
///
/// # Safety
/// As [`Simd::store_first`], of all three.
#[inline(always)]
unsafe fn first_of_f64(p: *mut f64, count: usize, v: __m256d) {
    // SAFETY: by the caller's promise.
    unsafe {
        let low = _mm256_castpd256_pd128(v);
        match count {
            1 => _mm_store_sd(p, low),
            2 => _mm_storeu_pd(p, low),
            3 => {
                _mm_storeu_pd(p, low);
                _mm_store_sd(p.add(2), _mm256_extractf128_pd::<1>(v));
            }
            _ => _mm256_storeu_pd(p, v),
        }
    }
}

#[inline(always)]
unsafe fn first_of_f32(p: *mut f32, count: usize, v: __m256) {
    // SAFETY: by the caller's promise.
    unsafe {
        let low = _mm256_castps256_ps128(v);
        match count {
            8 => _mm256_storeu_ps(p, v),
            4.. => {
                _mm_storeu_ps(p, low);
                first_of_half(p.add(4), count - 4, _mm256_extractf128_ps::<1>(v));
            }
            _ => first_of_half(p, count, low),
        }
    }
}

#[inline(always)]
unsafe fn first_of_half(p: *mut f32, count: usize, v: __m128) {
    // SAFETY: by the caller's promise.
    unsafe {
        match count {
            0 => {}
            1 => _mm_store_ss(p, v),
            2 => _mm_store_sd(p.cast(), _mm_castps_pd(v)),
            3 => {
                _mm_store_sd(p.cast(), _mm_castps_pd(v));
                _mm_store_ss(p.add(2), _mm_movehl_ps(v, v));
            }
            _ => _mm_storeu_ps(p, v),
        }
    }
}

impl Simd for Avx2<f64> {
    type Real = f64;
    type Vector = __m256d;
    type Mask = __m256i;
    type Order = __m256i;
    type Narrow = Self;
    type Half = Self;
    const LANES: usize = 4;
    const REGISTERS: usize = 16;
    const STORES_PARTS: bool = true;
    const STREAMS: bool = true;

    instructions! {
        fn splat(x: f64) -> __m256d = _mm256_set1_pd(x);
        fn load(p: *const f64) -> __m256d = _mm256_loadu_pd(p);
        fn load_masked(p: *const f64, mask: __m256i) -> __m256d = _mm256_maskload_pd(p, mask);
        fn store(p: *mut f64, v: __m256d) = _mm256_storeu_pd(p, v);
        fn stream(p: *mut f64, v: __m256d) = {
            _mm_stream_pd(p, _mm256_castpd256_pd128(v));
            _mm_stream_pd(p.add(2), _mm256_extractf128_pd::<1>(v))
        };
        fn store_first(p: *mut f64, count: usize, v: __m256d) = first_of_f64(p, count, v);
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
    type Half = Avx2Half<f32>;
    const LANES: usize = 8;
    const REGISTERS: usize = 16;
    const STORES_PARTS: bool = true;
    const STREAMS: bool = true;

    instructions! {
        fn splat(x: f32) -> __m256 = _mm256_set1_ps(x);
        fn load(p: *const f32) -> __m256 = _mm256_loadu_ps(p);
        fn load_masked(p: *const f32, mask: __m256i) -> __m256 = _mm256_maskload_ps(p, mask);
        fn store(p: *mut f32, v: __m256) = _mm256_storeu_ps(p, v);
        fn stream(p: *mut f32, v: __m256) = {
            _mm_stream_ps(p, _mm256_castps256_ps128(v));
            _mm_stream_ps(p.add(4), _mm256_extractf128_ps::<1>(v))
        };
        fn store_first(p: *mut f32, count: usize, v: __m256) = first_of_f32(p, count, v);
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

/// A vector of 16 bytes, for columns of that length.
#[derive(Clone, Copy)]
pub struct Avx2Half<R>(PhantomData<R>);

impl Simd for Avx2Half<f32> {
    type Real = f32;
    type Vector = __m128;
    type Mask = __m128i;
    type Order = __m128i;
    type Narrow = Self;
    type Half = Self;
    const LANES: usize = 4;
    const REGISTERS: usize = 16;
    const STORES_PARTS: bool = true;
    const STREAMS: bool = true;

    instructions! {
        fn splat(x: f32) -> __m128 = _mm_set1_ps(x);
        fn load(p: *const f32) -> __m128 = _mm_loadu_ps(p);
        fn load_masked(p: *const f32, mask: __m128i) -> __m128 = _mm_maskload_ps(p, mask);
        fn store(p: *mut f32, v: __m128) = _mm_storeu_ps(p, v);
        fn stream(p: *mut f32, v: __m128) = _mm_stream_ps(p, v);
        fn store_first(p: *mut f32, count: usize, v: __m128) = first_of_half(p, count, v);
        fn mask(count: usize) -> __m128i = _mm_loadu_si128(ONES_AND_ZEROS_32.as_ptr().add(8 - count).cast());
        fn mul(a: __m128, b: __m128) -> __m128 = _mm_mul_ps(a, b);
        fn mul_add(a: __m128, b: __m128, c: __m128) -> __m128 = _mm_fmadd_ps(a, b, c);
        fn swap_pairs(v: __m128) -> __m128 = _mm_permute_ps::<0b10_11_00_01>(v);
        fn order(lanes: &[usize; MOST_LANES]) -> __m128i = {
            let lanes: [i32; 4] = std::array::from_fn(|lane| lanes[lane] as i32);
            _mm_loadu_si128(lanes.as_ptr().cast())
        };
        fn permute(v: __m128, order: __m128i) -> __m128 = _mm_permutevar_ps(v, order);
    }
}
