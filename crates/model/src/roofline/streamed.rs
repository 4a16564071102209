//! How many times as long the bytes of A and C take, of tall products by rows, that a kernel reads and writes at the same time; by columns:
//! [`columns`].
//!
//! A ceiling's bytes come or go; those of a kernel that does both meet on their way, and what it does with a row takes a time of its own.
//!
//! # Source
//! H200s from 2026-11-22 to 23, packed rows, k = n from 1 to 64 with k · m of up to 4 GB, and the suite's other widths from 10⁶ rows on: times of
//! each variant there against R/read + W/write.

use super::columns;
use crate::variants::tsmm::{WIDEST, fragment, holds_both};
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
        "tsmm_fragments" if is_complex && !is_narrow => fragments_complex(variant, problem),
        "tsmm_fragments" => {
            let base = if is_wide { 1.3 } else { 1.12 };
            let odd = match (is_complex, problem.n % 2) {
                (false, _) if by_elements => 1.5,
                (true, 1) => 1.2,
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
        "tsmm_staged" if is_double && variant.t2 > 32 && variant.t3 <= 4 => 1.02 * (1.0 + 1.5 * missing),
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
    let of_c = if problem.reads_c { 2.0 } else { 1.0 } * problem.n as f64;
    base.max(columns / (of_c + problem.k as f64))
}

/// Of bulk copies with C behind A in the next slot, since one has no room for both: fewer tiles are on their way.
fn crowded(variant: &Variant, problem: &Problem) -> f64 {
    let holds = |cols: u32| holds_both(variant.slot_len(), cols, variant.bulk_fragment());
    let is_held = u32::try_from(problem.n + problem.k).is_ok_and(|cols| cols <= 2 * WIDEST && holds(cols));
    if problem.reads_c && !is_held { 1.03 } else { 1.0 }
}

/// `tsmm_bulk` of f64.
///
/// # Source
/// Of more than 16 columns H200s on 2026-11-28: tall-rows.csv and its variants in benches/results/h200, and benches/results/trials/bring.csv.
fn bulk(variant: &Variant, problem: &Problem) -> f64 {
    let (tiles, k) = (f64::from(variant.t2 / 8), problem.k as f64);
    let base = match (variant.t2, variant.t3) {
        (..=16, _) => 1.03,
        (17..=24, ..=32) => 1.0,
        (25..=32, ..=32) => 1.01,
        (33..=40, ..=48) | (17..=32, _) => 1.03,
        (33..=40, _) => 1.04,
        (41..=48, _) => 1.07,
        (49..=56, _) => 1.08,
        _ => 1.1,
    };
    let columns = match (variant.t2, variant.t3) {
        // Of up to 16 steps a slot has twice as many rows.
        (..=16, ..=16) => 0.68 * (4.0 + 7.4 * tiles + k * (0.9 + 0.06 * tiles)),
        (..=16, _) => 4.0 + 7.4 * tiles + k * (0.9 + 0.06 * tiles),
        _ => 4.0 + 6.2 * tiles + k * (0.65 + 0.06 * tiles),
    };
    row(problem, base * crowded(variant, problem), columns)
}

/// `tsmm_bulk` of c128; as of f64.
fn bulk_complex(variant: &Variant, problem: &Problem) -> f64 {
    let tiles = f64::from(variant.t2 / 8);
    let base = match (variant.t2, variant.t3) {
        (..=16, ..=16) => 1.03,
        (..=16, _) => 1.06,
        (25..=32, ..=32) if variant.threads <= 128 => 1.05,
        (17..=32, ..=32) => 1.02,
        (17..=32, _) => 1.1,
        (33..=40, _) if problem.reads_c => 1.23,
        _ if problem.reads_c => 1.28,
        _ => 1.14,
    };
    let steps = problem.k.div_ceil(u64::from(fragment(variant.dtype))) as f64;
    let (fixed, each) = match (variant.t2, variant.t3) {
        (..=16, ..=16) => (0.42 * (8.0 + 1.5 * tiles), 0.42 * (8.5 + 2.2 * tiles)),
        (..=16, _) => (0.7 * (8.0 + 1.5 * tiles), 0.7 * (8.5 + 2.2 * tiles)),
        (17..=24, ..=32) => (19.0, 6.2),
        (17..=24, _) => (30.0, 10.8),
        // Two blocks of 8 warps, and of 4.
        (25..=32, ..=32) if variant.threads > 128 => (21.0, 8.8),
        (25..=32, ..=32) => (20.0, 10.0),
        (25..=32, _) => (40.0, 11.5),
        (33..=40, _) => (30.0, 13.5),
        (41..=48, _) => (52.0, 12.5),
        _ => (60.0, 18.4),
    };
    row(problem, base * crowded(variant, problem), fixed + each * steps)
}

/// `tsmm_fragments` of c128 and more than 16 columns; as of f64. Odd rows are no whole sectors; of more than 32 columns C is asked for as it
/// is wanted.
fn fragments_complex(variant: &Variant, problem: &Problem) -> f64 {
    let base = match (variant.t2, variant.t3) {
        (..=40, 41..) => 1.25,
        (..=32, _) => 1.12,
        (..=40, _) => 1.17,
        (..=48, _) => 1.22,
        (..=56, _) => 1.3,
        (_, ..=16) => 1.1,
        _ => 1.4,
    };
    let missing = if variant.t2 <= 40 && variant.t3 > 40 { 0.0 } else { missing(variant, problem) };
    let odd = if problem.n % 2 == 1 && variant.t2 <= 32 { 1.2 } else { 1.0 };
    let read = match (problem.reads_c, variant.t2) {
        (false, _) => 1.0,
        (true, ..=32) => 1.15,
        (true, _) => 1.42,
    };
    // All steps are multiplied, however few there are.
    let columns = 0.85 * base * f64::from(variant.t2 + variant.t3);
    row(problem, base * odd * (1.0 + 0.6 * missing), columns) * read
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
