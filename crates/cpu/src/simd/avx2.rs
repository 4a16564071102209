//! Vectors of 32 bytes: AVX2 and FMA.

use super::{MOST_LANES, Simd, Work, instructions};
use std::arch::x86_64::*;
use std::marker::PhantomData;

/// A vector of AVX2.
#[derive(Clone, Copy)]
pub struct Avx2<R>(PhantomData<R>);

/// # Safety
/// The CPU has the instructions; the rest is as [`Work::run`] asks.
#[inline(never)]
#[target_feature(enable = "avx2,fma")]
unsafe fn vectorized<W: Work>(work: W) {
    // SAFETY: the caller promised the instructions, which this is compiled with, and the rest.
    unsafe { work.run() }
}

/// Parts of vectors move by ordinary loads and stores: by mask, a load that does not find its line in the first-level cache
/// takes some processors tens of cycles, and a store twenty, for which whatever is loaded near it waits.
///
/// # Safety
/// As [`Simd::store_first`] or [`Simd::load_first`], of all here.
#[inline(always)]
pub(super) unsafe fn store_first_of_f64(p: *mut f64, count: usize, v: __m256d) {
    // SAFETY: the CPU has AVX2, and p is good for `count` elements, as the caller promised; each arm stores as many.
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
pub(super) unsafe fn load_first_of_f64(p: *const f64, count: usize) -> __m256d {
    // SAFETY: the CPU has AVX2, and p is good for `count` elements, as the caller promised; each arm loads as many.
    unsafe {
        match count {
            1 => _mm256_zextpd128_pd256(_mm_load_sd(p)),
            2 => _mm256_zextpd128_pd256(_mm_loadu_pd(p)),
            3 => _mm256_insertf128_pd::<1>(_mm256_zextpd128_pd256(_mm_loadu_pd(p)), _mm_load_sd(p.add(2))),
            _ => _mm256_loadu_pd(p),
        }
    }
}

#[inline(always)]
pub(super) unsafe fn store_first_of_f32(p: *mut f32, count: usize, v: __m256) {
    // SAFETY: as in `store_first_of_f64`; of 5 and more, four go to p and count - 4 behind them.
    unsafe {
        let low = _mm256_castps256_ps128(v);
        match count {
            8 => _mm256_storeu_ps(p, v),
            5.. => {
                _mm_storeu_ps(p, low);
                store_first_of_half(p.add(4), count - 4, _mm256_extractf128_ps::<1>(v));
            }
            _ => store_first_of_half(p, count, low),
        }
    }
}

#[inline(always)]
pub(super) unsafe fn load_first_of_f32(p: *const f32, count: usize) -> __m256 {
    // SAFETY: as in `load_first_of_f64`; of 5 and more, four are at p and count - 4 behind them.
    unsafe {
        match count {
            8 => _mm256_loadu_ps(p),
            5.. => {
                let low = _mm256_zextps128_ps256(_mm_loadu_ps(p));
                _mm256_insertf128_ps::<1>(low, load_first_of_half(p.add(4), count - 4))
            }
            _ => _mm256_zextps128_ps256(load_first_of_half(p, count)),
        }
    }
}

#[inline(always)]
unsafe fn store_first_of_half(p: *mut f32, count: usize, v: __m128) {
    // SAFETY: p is good for `count` elements, 1 to 4, as the caller promised; each arm stores as many.
    unsafe {
        match count {
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

#[inline(always)]
unsafe fn load_first_of_half(p: *const f32, count: usize) -> __m128 {
    // SAFETY: p is good for `count` elements, 1 to 4, as the caller promised; each arm loads as many.
    unsafe {
        match count {
            1 => _mm_load_ss(p),
            2 => _mm_castpd_ps(_mm_load_sd(p.cast())),
            3 => _mm_movelh_ps(_mm_castpd_ps(_mm_load_sd(p.cast())), _mm_load_ss(p.add(2))),
            _ => _mm_loadu_ps(p),
        }
    }
}

impl Simd for Avx2<f64> {
    type Real = f64;
    type Vector = __m256d;
    type Order = __m256i;
    type Narrow = Self;
    type Half = Self;
    const LANES: usize = 4;
    const REGISTERS: usize = 16;
    const STREAMS: bool = true;

    instructions! {
        fn splat(x: f64) -> __m256d = _mm256_set1_pd(x);
        fn load(p: *const f64) -> __m256d = _mm256_loadu_pd(p);
        fn load_first(p: *const f64, count: usize) -> __m256d = load_first_of_f64(p, count);
        fn store(p: *mut f64, v: __m256d) = _mm256_storeu_pd(p, v);
        fn stream(p: *mut f64, v: __m256d) = {
            _mm_stream_pd(p, _mm256_castpd256_pd128(v));
            _mm_stream_pd(p.add(2), _mm256_extractf128_pd::<1>(v))
        };
        fn store_first(p: *mut f64, count: usize, v: __m256d) = store_first_of_f64(p, count, v);
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

    #[inline(always)]
    unsafe fn exchange<const D: usize>(a: __m256d, b: __m256d) -> [__m256d; 2] {
        // SAFETY: the CPU has the instructions, as the caller promised.
        unsafe {
            match D {
                1 => [_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b)],
                _ => [_mm256_permute2f128_pd::<0x20>(a, b), _mm256_permute2f128_pd::<0x31>(a, b)],
            }
        }
    }
}

impl Simd for Avx2<f32> {
    type Real = f32;
    type Vector = __m256;
    type Order = __m256i;
    type Narrow = Self;
    type Half = Avx2Half<f32>;
    const LANES: usize = 8;
    const REGISTERS: usize = 16;
    const STREAMS: bool = true;

    instructions! {
        fn splat(x: f32) -> __m256 = _mm256_set1_ps(x);
        fn load(p: *const f32) -> __m256 = _mm256_loadu_ps(p);
        fn load_first(p: *const f32, count: usize) -> __m256 = load_first_of_f32(p, count);
        fn store(p: *mut f32, v: __m256) = _mm256_storeu_ps(p, v);
        fn stream(p: *mut f32, v: __m256) = {
            _mm_stream_ps(p, _mm256_castps256_ps128(v));
            _mm_stream_ps(p.add(4), _mm256_extractf128_ps::<1>(v))
        };
        fn store_first(p: *mut f32, count: usize, v: __m256) = store_first_of_f32(p, count, v);
        fn mul(a: __m256, b: __m256) -> __m256 = _mm256_mul_ps(a, b);
        fn mul_add(a: __m256, b: __m256, c: __m256) -> __m256 = _mm256_fmadd_ps(a, b, c);
        fn swap_pairs(v: __m256) -> __m256 = _mm256_permute_ps::<0b10_11_00_01>(v);
        fn order(lanes: &[usize; MOST_LANES]) -> __m256i = {
            let lanes: [i32; 8] = std::array::from_fn(|lane| lanes[lane] as i32);
            _mm256_loadu_si256(lanes.as_ptr().cast())
        };
        fn permute(v: __m256, order: __m256i) -> __m256 = _mm256_permutevar8x32_ps(v, order);
    }

    #[inline(always)]
    unsafe fn exchange<const D: usize>(a: __m256, b: __m256) -> [__m256; 2] {
        // SAFETY: the CPU has the instructions, as the caller promised.
        unsafe {
            let (of_a, of_b) = (_mm256_castps_pd(a), _mm256_castps_pd(b));
            match D {
                1 => [
                    _mm256_blend_ps::<0b1010_1010>(a, _mm256_moveldup_ps(b)),
                    _mm256_blend_ps::<0b1010_1010>(_mm256_movehdup_ps(a), b),
                ],
                2 => {
                    [_mm256_castpd_ps(_mm256_unpacklo_pd(of_a, of_b)), _mm256_castpd_ps(_mm256_unpackhi_pd(of_a, of_b))]
                }
                _ => [_mm256_permute2f128_ps::<0x20>(a, b), _mm256_permute2f128_ps::<0x31>(a, b)],
            }
        }
    }
}

/// A vector of 16 bytes, for columns of that length.
#[derive(Clone, Copy)]
pub struct Avx2Half<R>(PhantomData<R>);

impl Simd for Avx2Half<f32> {
    type Real = f32;
    type Vector = __m128;
    type Order = __m128i;
    type Narrow = Self;
    type Half = Self;
    const LANES: usize = 4;
    const REGISTERS: usize = 16;
    const STREAMS: bool = true;

    instructions! {
        fn splat(x: f32) -> __m128 = _mm_set1_ps(x);
        fn load(p: *const f32) -> __m128 = _mm_loadu_ps(p);
        fn load_first(p: *const f32, count: usize) -> __m128 = load_first_of_half(p, count);
        fn store(p: *mut f32, v: __m128) = _mm_storeu_ps(p, v);
        fn stream(p: *mut f32, v: __m128) = _mm_stream_ps(p, v);
        fn store_first(p: *mut f32, count: usize, v: __m128) = store_first_of_half(p, count, v);
        fn mul(a: __m128, b: __m128) -> __m128 = _mm_mul_ps(a, b);
        fn mul_add(a: __m128, b: __m128, c: __m128) -> __m128 = _mm_fmadd_ps(a, b, c);
        fn swap_pairs(v: __m128) -> __m128 = _mm_permute_ps::<0b10_11_00_01>(v);
        fn order(lanes: &[usize; MOST_LANES]) -> __m128i = {
            let lanes: [i32; 4] = std::array::from_fn(|lane| lanes[lane] as i32);
            _mm_loadu_si128(lanes.as_ptr().cast())
        };
        fn permute(v: __m128, order: __m128i) -> __m128 = _mm_permutevar_ps(v, order);
    }

    #[inline(always)]
    unsafe fn exchange<const D: usize>(a: __m128, b: __m128) -> [__m128; 2] {
        // SAFETY: the CPU has the instructions, as the caller promised.
        unsafe {
            match D {
                1 => [_mm_blend_ps::<0b1010>(a, _mm_moveldup_ps(b)), _mm_blend_ps::<0b1010>(_mm_movehdup_ps(a), b)],
                _ => [_mm_movelh_ps(a, b), _mm_movehl_ps(b, a)],
            }
        }
    }
}
