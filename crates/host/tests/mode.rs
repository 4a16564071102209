//! What a caller has told its threads about subnormal numbers and rounding changes no product on the CPU.
#![cfg(target_arch = "x86_64")]

use lanky_host::{
    BatchMut, BatchRef, Complex, Device, MatMut, MatRef, Matrix, Scalar, gemm, gemm_batched, gemv, gram, tsmm_in_place,
};
use std::arch::asm;

/// MXCSR with subnormal operands and results taken for 0, and rounding towards zero.
const OTHER: u32 = IEEE | 0x8040 | 0x6000;
const IEEE: u32 = 0x1f80;
/// Not the flags of what happened.
const SETTINGS: u32 = 0xffc0;

fn setting() -> u32 {
    let mut mxcsr = 0_u32;
    // SAFETY: SSE is part of x86-64; a place for 32 bits.
    unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut mxcsr, options(nostack)) };
    mxcsr
}

fn set(mxcsr: u32) {
    // SAFETY: SSE is part of x86-64; no trap is unmasked.
    unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const mxcsr, options(nostack)) };
}

/// Numbers that round, and subnormal ones among them and their products; the same whatever the setting.
fn numbers<T: Scalar>() -> Vec<T> {
    let own = setting();
    set(IEEE);
    let numbers = (0..4096).map(|at| made::<T>(at / 64, at % 64)).collect();
    set(own);
    numbers
}

#[inline(never)]
fn made<T: Scalar>(i: usize, j: usize) -> T {
    let least = if T::DTYPE.bytes() / if T::DTYPE.is_complex() { 2 } else { 1 } == 4 { -140 } else { -1060 };
    let mantissa = ((i * 7919 + j * 104_729) % 1_000_003) as f64 / 1_000_003.0 - 0.5;
    let scale = [1.0, 2_f64.powi(least / 2), 2_f64.powi(least), 0.0][(i + 2 * j) % 4];
    let part = |value: f64| num_traits::cast::<f64, T::Real>(value).unwrap_or_else(num_traits::Zero::zero);
    T::of_parts(part(mantissa * scale), part((mantissa + 0.25) * scale))
}

type Bits = Vec<Vec<u8>>;

/// The bits of what each call computes, in one block and in several, and in parts of k.
fn products<T: Scalar>() -> lanky_host::Result<Bits> {
    let stream = Device::cpu().stream()?;
    let numbers = numbers::<T>();
    let number = |i: usize, j: usize| numbers[(64 * i + j + i / 64) % 4096];
    let (alpha, beta) = (number(4, 0), number(12, 0)); // neither is small
    assert!(alpha != T::zero() && beta != T::zero());
    let mut found = Bits::new();
    let mut keep = |data: &[T]| found.push(bytemuck::cast_slice::<T, u8>(data).to_vec());
    let filled = |rows, cols| Matrix::from_fn(rows, cols, number);
    for (m, n, k) in [(9, 5, 7), (2000, 8, 300), (3, 2, 90_000), (40, 1, 50)] {
        let (a, b, mut c) = (filled(m, k)?, filled(k, n)?, filled(m, n)?);
        gemm(&stream, alpha, a.view(), b.view(), beta, c.view_mut())?;
        keep(c.as_slice().unwrap_or_default());
        gemm(&stream, T::zero(), a.view(), b.view(), beta, c.view_mut())?;
        keep(c.as_slice().unwrap_or_default());
        if n == 1 {
            gemv(&stream, alpha, a.view(), b.view(), beta, c.view_mut())?;
            keep(c.as_slice().unwrap_or_default());
        }
    }
    let (mut tall, mut square) = (filled(1000, 6)?, filled(6, 6)?);
    gram(&stream, alpha, tall.view(), beta, square.view_mut())?;
    keep(square.as_slice().unwrap_or_default());
    tsmm_in_place(&stream, alpha, tall.view_mut(), square.view())?;
    keep(tall.as_slice().unwrap_or_default());
    for side in [4, 33] {
        let data: Vec<T> = (0..side * side * 300).map(|at| number(at, 1)).collect();
        let mut c = data.clone();
        let factor = BatchRef::row_major(&data, 300, side, side)?;
        gemm_batched(&stream, alpha, factor.clone(), factor, beta, BatchMut::row_major(&mut c, 300, side, side)?)?;
        keep(&c);
    }
    Ok(found)
}

/// In threads that have what the caller has, and by the caller, for whom threads of that kind compute.
fn check<T: Scalar>() -> lanky_host::Result<()> {
    let pool = || rayon::ThreadPoolBuilder::new().num_threads(3).build().expect("threads start");
    let expected = pool().install(products::<T>)?;
    let before = setting();
    set(OTHER);
    // As a product on the calling thread sees it: it is not what the test computes with.
    let flushed = std::hint::black_box(2_f64.powi(-1060)) * 0.5 == 0.0;
    let (in_threads, own, after) = (pool().install(products::<T>), products::<T>(), setting());
    set(before);
    assert!(flushed, "the setting does what it should");
    assert_eq!(after & SETTINGS, OTHER & SETTINGS, "and is there afterwards");
    for (place, (found, own)) in in_threads?.into_iter().zip(own?).enumerate() {
        assert!(found == expected[place], "{}: product {place} in threads of the caller's", T::DTYPE);
        assert!(own == expected[place], "{}: product {place} on the caller's own", T::DTYPE);
    }
    Ok(())
}

#[test]
fn a_callers_setting_changes_no_bits() -> lanky_host::Result<()> {
    let before = setting();
    set(OTHER);
    // They begin with what the thread has that asks for them first.
    let begun = rayon::ThreadPoolBuilder::new().num_threads(2).build_global();
    let theirs = rayon::broadcast(|_| setting() & SETTINGS);
    set(before);
    assert!(begun.is_ok() && theirs == [OTHER & SETTINGS; 2], "{theirs:x?}");
    check::<f32>()?;
    check::<f64>()?;
    check::<Complex<f32>>()?;
    check::<Complex<f64>>()?;
    subnormal_numbers_are_kept()
}

/// The least positive numbers are what they were.
fn subnormal_numbers_are_kept() -> lanky_host::Result<()> {
    let before = setting();
    set(OTHER);
    let (least, one, mut c) = ([f64::from_bits(1), f64::from_bits(7)], [1.0], [0.0; 2]);
    let product = Device::cpu().stream().and_then(|stream| {
        let (a, b) = (MatRef::column_major(&least, 2, 1)?, MatRef::column_major(&one, 1, 1)?);
        gemm(&stream, 1.0, a, b, 0.0, MatMut::column_major(&mut c, 2, 1)?)
    });
    set(before);
    product?;
    assert_eq!(c.map(f64::to_bits), [1, 7]);
    Ok(())
}
