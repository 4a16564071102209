//! Each opponent of the CPU computes what its call says; small integers, so that sums are exact.

use super::*;
use std::ffi::CStr;

/// An element of a product: a real number, or the parts of a complex one.
trait Number: Copy + PartialEq + std::fmt::Debug + 'static {
    /// As `Call` has it.
    const DTYPE: u32;
    fn of(real: i32, imaginary: i32) -> Self;
}

impl Number for f32 {
    const DTYPE: u32 = 0;
    fn of(real: i32, _: i32) -> Self {
        real as f32
    }
}

impl Number for f64 {
    const DTYPE: u32 = 1;
    fn of(real: i32, _: i32) -> Self {
        f64::from(real)
    }
}

impl Number for [f32; 2] {
    const DTYPE: u32 = 2;
    fn of(real: i32, imaginary: i32) -> Self {
        [real as f32, imaginary as f32]
    }
}

impl Number for [f64; 2] {
    const DTYPE: u32 = 3;
    fn of(real: i32, imaginary: i32) -> Self {
        [f64::from(real), f64::from(imaginary)]
    }
}

const M: u64 = 5;
const N: u64 = 3;
const K: u64 = 7;
const BATCH: u64 = 4;
/// From a member of a batch to the next one.
const STEP: u64 = 60;

/// Real and imaginary part of element (member, i, j) of an operand; real numbers have no second.
fn element<T: Number>(operand: u64, (member, i, j): (u64, u64, u64)) -> (i32, i32) {
    let mixed = |by: u64| ((operand * 11 + member * 5 + i * 7 + j * by) % 5) as i32 - 2;
    (mixed(3), if T::DTYPE < 2 { 0 } else { mixed(2) })
}

/// By columns, or by rows, in lines of eight.
fn strides(by_rows: bool) -> (u64, u64) {
    if by_rows { (8, 1) } else { (1, 8) }
}

/// All members of an operand, with something else in the gaps.
fn stored<T: Number>(operand: u64, (rows, cols): (u64, u64), (row, col): (u64, u64)) -> Vec<T> {
    let mut elements = vec![T::of(77, 77); usize::try_from(BATCH * STEP).expect("a length")];
    for (member, i, j) in places(rows, cols) {
        let (real, imaginary) = element::<T>(operand, (member, i, j));
        elements[place(member, i, j, (row, col))] = T::of(real, imaginary);
    }
    elements
}

fn places(rows: u64, cols: u64) -> impl Iterator<Item = (u64, u64, u64)> {
    (0..BATCH).flat_map(move |member| (0..rows).flat_map(move |i| (0..cols).map(move |j| (member, i, j))))
}

fn place(member: u64, i: u64, j: u64, (row, col): (u64, u64)) -> usize {
    usize::try_from(member * STEP + i * row + j * col).expect("an index")
}

/// What an opponent makes of C = 2 A B + beta C, for so many members; its own C, and the one that is right.
fn run<T: Number>(index: u32, by_rows: [bool; 3], beta: i32, batch: u64) -> (c_int, Vec<T>, Vec<T>) {
    let [a_strides, b_strides, c_strides] = by_rows.map(strides);
    let (a, b) = (stored::<T>(0, (M, K), a_strides), stored::<T>(1, (K, N), b_strides));
    let mut c = stored::<T>(2, (M, N), c_strides);
    let mut right = c.clone();
    for (member, i, j) in places(M, N).filter(|(member, ..)| *member < batch) {
        let (mut real, mut imaginary) = (0, 0);
        for l in 0..K {
            let (x, y) = (element::<T>(0, (member, i, l)), element::<T>(1, (member, l, j)));
            real += x.0 * y.0 - x.1 * y.1;
            imaginary += x.0 * y.1 + x.1 * y.0;
        }
        let old = element::<T>(2, (member, i, j));
        right[place(member, i, j, c_strides)] = T::of(2 * real + beta * old.0, 2 * imaginary + beta * old.1);
    }
    let address = |elements: *const T| elements.expose_provenance() as u64;
    let call = Call {
        dtype: T::DTYPE,
        cuda: 0,
        m: M,
        n: N,
        k: K,
        a: address(a.as_ptr()),
        a_row: a_strides.0,
        a_col: a_strides.1,
        b: address(b.as_ptr()),
        b_row: b_strides.0,
        b_col: b_strides.1,
        c: address(c.as_mut_ptr()),
        c_row: c_strides.0,
        c_col: c_strides.1,
        alpha: 2.0,
        beta: f64::from(beta),
        batch,
        a_step: STEP,
        b_step: STEP,
        c_step: STEP,
        stream: std::ptr::null_mut(),
    };
    // SAFETY: the operands are what the call says, and outlive it.
    let code = unsafe { lanky_opponents_run(index, &raw const call) };
    (code, c, right)
}

fn name(cuda: u32, index: u32) -> Option<String> {
    let text = lanky_opponents_name(cuda, index);
    // SAFETY: not null, it is a text that ends with a zero and is never freed.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

fn computes<T: Number>() {
    for index in 0..u32::try_from(CPU.len()).expect("few") {
        for layout in 0..8 {
            let by_rows = [layout & 1 != 0, layout & 2 != 0, layout & 4 != 0];
            for (beta, batch) in [(0, 1), (1, 1), (0, BATCH), (1, BATCH), (3, 1)] {
                let (code, found, right) = run::<T>(index, by_rows, beta, batch);
                let name = name(0, index);
                // Its products replace what is there, or are added to it.
                if name.as_deref() == Some("faer") && beta == 3 {
                    assert_eq!(code, NOT_MINE);
                    continue;
                }
                assert_eq!(code, 0, "{name:?}");
                assert!(found == right, "{name:?} {by_rows:?} beta {beta} x{batch}: {found:?}, not {right:?}");
            }
        }
    }
}

#[test]
fn every_layout_and_type_is_computed_and_no_gap_is_written() {
    computes::<f32>();
    computes::<f64>();
    computes::<[f32; 2]>();
    computes::<[f64; 2]>();
}

#[test]
fn opponents_have_names_until_there_are_no_more() {
    let names = |cuda| (0..).map_while(|index| name(cuda, index)).collect::<Vec<_>>();
    assert_eq!(names(0), ["gemm", "faer", "matrixmultiply"]);
    assert_eq!(names(1), ["oxicuda-blas"]);
    assert_eq!(lanky_opponents_version(), VERSION);
}

#[test]
fn what_is_not_there_is_not_computed() {
    let (code, found, _) = run::<f64>(3, [false; 3], 0, 1);
    assert_eq!((code, found), (NOT_MINE, stored(2, (M, N), strides(false))));
}
