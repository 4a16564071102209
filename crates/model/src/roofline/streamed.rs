//! How many times as long the bytes of A and C take, of tall products by rows, that a kernel reads and writes at the same time; by columns:
//! [`columns`].
//!
//! A ceiling's bytes come or go; those of a kernel that does both meet on their way, and what it does with a row takes a time of its own.
//!
//! # Source
//! H200s from 2026-11-22 to 23, packed rows, k = n from 1 to 64 with k · m of up to 4 GB, and the suite's other widths from 10⁶ rows on: times of
//! each variant there against R/read + W/write. What was chosen is in results/h200/tsmm.csv.

use super::columns;
use crate::variants::tsmm::fragment;
use crate::{Dtype, Problem, Strides, Variant};

/// How many times as long `tsmm_packed` and bulk copies take where rows are no runs, and go element by element, and `tsmm_lines` where C lies by
/// rows. Not measured.
const BY_ELEMENTS: f64 = 4.0;

/// The factor of a kernel's bytes. `None` of kernels whose reads of A alone are longer ([`super::tsmm::detour`]), and of columns.
pub(super) fn both_ways(variant: &Variant, problem: &Problem) -> Option<f64> {
    if problem.a.row == 1 && problem.c.row == 1 && (problem.k > 1 || variant.is_lines()) {
        if let Some(factor) = columns::factor(variant, problem) {
            return Some(factor);
        }
    }
    let is_complex = variant.dtype.is_complex();
    let is_double = variant.dtype.real() == Dtype::F64;
    let missing = missing(variant, problem);
    let rows = |strides: Strides, columns: u64| strides.row != 1 && columns * problem.dtype.bytes() % 16 != 0;
    let by_elements = rows(problem.a, problem.k) || rows(problem.c, problem.n);
    let by_rows = problem.c.row != 1;
    let are_packed = packed(problem.a, problem.k) && packed(problem.c, problem.n);
    let is_wide = variant.t2 > 32 && variant.t3 > 32;
    let is_narrow = variant.t2 <= 16;
    Some(match variant.name {
        name if (name == "tsmm_packed" || variant.is_bulk()) && !are_packed => BY_ELEMENTS,
        _ if variant.is_lines() => BY_ELEMENTS,
        "tsmm_packed" if problem.n.max(problem.k) < u64::from(variant.t2) => 2.0,
        "tsmm_packed" => 1.01,
        "tsmm_bulk" if is_complex => bulk_complex(variant, problem),
        "tsmm_bulk" => bulk(variant, problem),
        "tsmm_bulk_registers" => registers(variant, problem),
        "tsmm_bulk_shared" => shared(variant, problem),
        _ if problem.a.row == 1 && problem.k > 1 => return None,
        // 2 by 2 in c128 of 1.3·10⁸ rows on an H200 on 2026-11-28: 3040 and 3250 us, by `tsmm_staged` 2210 and 2300.
        "tsmm_element" | "tsmm_registers" if is_double && is_complex && problem.n.max(problem.k) == 2 => 1.55,
        "tsmm_element" | "tsmm_registers" if is_double && problem.n.max(problem.k) <= 2 => 1.13,
        "tsmm_element" if by_rows && problem.k > 4 => 8.0,
        "tsmm_element" if by_rows && problem.n > 2 => {
            if is_double && is_complex {
                1.5
            } else {
                4.5
            }
        }
        "tsmm_group" if problem.k > 2 => 2.5,
        "tsmm_group" if by_rows && problem.n > 2 => 2.0,
        name if by_rows && name.starts_with("tsm2l_") && problem.n > 2 => 8.0,
        "tsmm_fragments" => {
            let base = match (is_complex, is_wide) {
                (true, true) if variant.t2 > 48 => 1.63,
                (_, true) => 1.3,
                (true, false) if variant.t2 > 16 && variant.t3 > 16 => 1.3,
                (_, false) => 1.12,
            };
            let odd = match (is_complex, problem.n % 2) {
                (false, _) if by_elements => 1.5,
                (true, 1) if is_narrow => 1.2,
                _ => 1.0,
            };
            base * odd * (1.0 + 0.6 * missing)
        }
        "tsmm_mma" if by_elements => {
            let base = if is_narrow { 1.2 } else { 1.5 };
            base * (1.0 + 0.8 * (f64::from(variant.t2) / problem.n as f64 - 1.0))
        }
        "tsmm_mma" => {
            let base = match (is_wide, is_narrow) {
                (true, _) => 1.41,
                (_, true) => 1.15,
                _ => 1.22,
            };
            base * (1.0 + 0.6 * missing)
        }
        "tsmm_staged" if is_double && is_complex && variant.t2 > 4 => 1.6 * (1.0 + 1.2 * missing),
        "tsmm_staged" if is_double && !by_elements => 1.13 * (1.0 + missing),
        "tsmm_staged" if is_double && variant.t2 <= 8 => 1.25,
        "tsmm_staged" if is_double => 1.55,
        "tsmm_staged" if are_packed => staged_single(variant, problem),
        _ => return None,
    })
}

/// Whether rows lie behind each other, so that those of a tile are one run: kernels look at the base too.
pub(super) fn packed(strides: Strides, columns: u64) -> bool {
    (strides.col == 1 || columns == 1) && strides.row == columns
}

/// Columns that are multiplied and are not there, as a share.
fn missing(variant: &Variant, problem: &Problem) -> f64 {
    (1.0 - problem.n as f64 / f64::from(variant.t2)).max(0.0)
}

/// A row takes what its bytes take, `base` times, or as long as so many columns' bytes: what is done with it, however narrow it is.
fn row(problem: &Problem, base: f64, columns: f64) -> f64 {
    base.max(columns / (problem.n + problem.k) as f64)
}

/// `tsmm_bulk` of f64.
fn bulk(variant: &Variant, problem: &Problem) -> f64 {
    let tiles = f64::from(variant.t2 / 8);
    let base = match (variant.t2, variant.t3) {
        (..=16, _) => 1.04,
        (17..=24, _) => 1.08,
        (25..=32, ..=32) => 1.12,
        (25..=32, _) => 1.08,
        (33..=48, _) => 1.09,
        (49..=56, _) => 1.13,
        _ => 1.1,
    };
    let columns = 4.0 + 7.4 * tiles + problem.k as f64 * (0.9 + 0.06 * tiles);
    // Of up to 16 steps a slot has twice as many rows.
    let share = match (variant.t2, variant.t3) {
        (_, ..=16) => 0.68,
        (25..=32, ..=32) => 0.97,
        _ => 1.0,
    };
    row(problem, base, share * columns)
}

/// `tsmm_bulk` of c128.
fn bulk_complex(variant: &Variant, problem: &Problem) -> f64 {
    let tiles = f64::from(variant.t2 / 8);
    let base = match (variant.t2, variant.t3) {
        (..=16, ..=16) | (25..=32, ..=32) => 1.04,
        (..=16, _) => 1.08,
        (17..=32, _) => 1.1,
        (33..=40, _) => 1.2,
        _ => 1.14,
    };
    let steps = problem.k.div_ceil(u64::from(fragment(variant.dtype))) as f64;
    let share = match (variant.t2, variant.t3) {
        (..=16, ..=16) => 0.42,
        (..=16, _) => 0.7,
        (25..=32, ..=32) if steps <= 3.0 => 0.87,
        (25..=32, ..=32) => 1.03,
        _ => 1.0,
    };
    row(problem, base, share * (8.0 + 1.5 * tiles + steps * (8.5 + 2.2 * tiles)))
}

/// Whether rows of A and of C are whole pieces of 16 bytes.
fn of_pieces(problem: &Problem) -> bool {
    problem.k * problem.dtype.bytes() % 16 == 0 && problem.n * problem.dtype.bytes() % 16 == 0
}

/// `tsmm_bulk_registers`.
fn registers(variant: &Variant, problem: &Problem) -> f64 {
    let is_whole = problem.k * problem.dtype.bytes() % 16 == 0;
    let (fixed, each) = match (variant.dtype.is_complex(), variant.t2, variant.t3) {
        (true, ..=8, _) => (8.0, 1.2),
        (true, ..=16, _) => (14.0, 2.1),
        (true, ..) => (58.0, 6.3),
        (false, ..=8, ..=16) => (14.0, 0.55),
        (false, ..=8, ..=32) => (15.0, 1.1),
        (false, ..=8, _) => (27.0, 0.85),
        (false, ..=16, _) => (20.0, 0.85),
        (false, ..=24, _) => (28.0, 1.1),
        (false, ..) if is_whole => (40.0, 3.9),
        (false, ..) => (42.0, 2.25),
    };
    let odd = if is_whole { 1.0 } else { 1.2 };
    row(problem, 1.06, odd * (fixed + each * problem.k as f64))
}

/// `tsmm_bulk_shared`.
fn shared(variant: &Variant, problem: &Problem) -> f64 {
    let (fixed, each) = match (variant.dtype.is_complex(), variant.t2, of_pieces(problem)) {
        (true, _, true) => (10.0, 4.0),
        (true, _, false) => (22.0, 5.0),
        (false, ..=32, true) => (12.0, 1.75),
        (false, ..=32, false) => (38.0, 2.0),
        (false, _, true) => (16.0, 2.7),
        (false, _, false) => (60.0, 3.4),
    };
    row(problem, if variant.t2 > 32 { 1.1 } else { 1.04 }, fixed + each * problem.k as f64)
}

/// `tsmm_staged` of packed rows of f32 and c64.
fn staged_single(variant: &Variant, problem: &Problem) -> f64 {
    let base = match (variant.dtype.is_complex(), variant.t2, variant.t3) {
        (true, ..=8, _) => 1.15,
        (true, ..=16, _) => 1.64,
        (true, ..) => 2.9,
        (false, ..=8, _) => 1.18,
        (false, ..=16, ..=16) => 1.14,
        (false, ..=16, _) => 1.3,
        (false, ..=32, _) => 1.59,
        (false, _, ..=4) => 1.05,
        (false, _, ..=16) => 1.25,
        (false, ..) => 2.3,
    };
    let more = match (variant.t2, variant.dtype.is_complex()) {
        (..=4, _) => 0.0,
        (_, true) => 0.3,
        (_, false) => 0.7,
    };
    let odd = match (of_pieces(problem), variant.t2) {
        (true, _) | (_, ..=4) => 1.0,
        (false, ..=8) => 1.2,
        (false, _) => 1.4,
    };
    base * odd * (1.0 + more * missing(variant, problem))
}
