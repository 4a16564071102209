//! How many times as long the bytes of A and C take, of tall products by rows, that a kernel reads and writes at the same time; by columns:
//! [`columns`].
//!
//! A ceiling's bytes come or go; those of a kernel that does both meet on their way, and what it does with a row takes a time of its own.
//!
//! # Source
//! H200s from 2026-11-22 to 23, packed rows, k = n from 1 to 64 with k · m of up to 4 GB, and the suite's other widths from 10⁶ rows on: times of
//! each variant there against R/read + W/write.

use super::columns;
use crate::variants::bulk::holds_both;
use crate::variants::tsmm::{WIDEST, fragment};
use crate::{Dtype, Problem, Strides, Variant};

/// How many times as long `tsmm_packed` and bulk copies take where rows are no runs, and go element by element, and `tsmm_lines` where C lies by
/// rows. Not measured.
const BY_ELEMENTS: f64 = 4.0;

/// How much longer the bytes of packed rows take of which nearly all are written: what is read between them stops the writing. Of rows of n elements that are
/// written for k that are read (n - k) / (n + k) of it, none from n = k on. One step and 64 columns take less, 16 and 64 more.
///
/// # Source
/// An H200 on 2026-11-30 (benches/results/trials/outer.csv): 8 to 64 columns and 1 to 16 steps, 1 GB, by every entry, beside what this file has of n = k.
const WRITTEN: f64 = 0.22;

/// The factor of a kernel's bytes, of rows with what [`WRITTEN`] says. `None` of kernels whose reads of A alone are longer ([`super::tsmm::detour`]), and of columns.
pub(super) fn both_ways(variant: &Variant, problem: &Problem) -> Option<f64> {
    if problem.a.row == 1 && problem.c.row == 1 && (problem.k > 1 || variant.is_lines()) {
        if let Some(factor) = columns::factor(variant, problem) {
            return Some(factor);
        }
    }
    let (n, k) = (problem.n as f64, problem.k as f64);
    let are_packed = packed(problem.a, problem.k) && packed(problem.c, problem.n);
    let is_written = are_packed && problem.n >= 8 && !problem.reads_c && !problem.is_short();
    let written = if is_written { WRITTEN * ((n - k) / (n + k)).max(0.0) } else { 0.0 };
    rows(variant, problem).map(|factor| factor + written)
}

/// The factor beside that.
fn rows(variant: &Variant, problem: &Problem) -> Option<f64> {
    let is_complex = variant.dtype.is_complex();
    let is_double = variant.dtype.real() == Dtype::F64;
    let missing = missing(variant, problem);
    let by_parts = |strides: Strides, columns: u64| strides.row != 1 && columns * problem.dtype.bytes() % 16 != 0;
    let by_elements = by_parts(problem.a, problem.k) || by_parts(problem.c, problem.n);
    let by_rows = problem.c.row != 1;
    let are_packed = packed(problem.a, problem.k) && packed(problem.c, problem.n);
    let is_wide = variant.t2 > 32 && variant.t3 > 32;
    let is_narrow = variant.t2 <= 16;
    Some(match variant.name {
        name if (name == "tsmm_packed" || variant.is_bulk()) && !are_packed => BY_ELEMENTS,
        _ if variant.is_lines() => BY_ELEMENTS,
        "tsmm_packed" if problem.n.max(problem.k) < u64::from(variant.t2) => 2.0,
        // 4 x 4 of f32, half a gigabyte, that day: 89% of the bound.
        "tsmm_packed" if variant.dtype == Dtype::F32 && problem.n.max(problem.k) > 2 => 1.12,
        "tsmm_packed" => 1.01,
        "tsmm_outer" => outer(variant, problem),
        "tsmm_bulk" if is_complex => bulk_complex(variant, problem),
        "tsmm_bulk" => bulk(variant, problem),
        "tsmm_bulk_registers" => registers(variant, problem),
        "tsmm_bulk_shared" => shared(variant, problem),
        "tsmm_bulk_rows" => lane_rows(variant, problem),
        _ if problem.a.row == 1 && problem.k > 1 && problem.is_short() => return None,
        name if by_rows && name.starts_with("tsm2l_") && problem.n > 2 => 8.0,
        _ if problem.a.row == 1 && problem.k > 1 => return None,
        // 2 by 2 in c128 of 1.3·10⁸ rows on an H200 on 2026-11-28: 3040 and 3250 us, by `tsmm_staged` 2210 and 2300.
        "tsmm_element" | "tsmm_registers" if is_double && is_complex && problem.n.max(problem.k) == 2 => 1.55,
        "tsmm_element" | "tsmm_registers" if is_double && problem.n.max(problem.k) <= 2 => 1.13,
        // The same day, half a gigabyte: f32 2 x 2, 3 x 3 and 4 x 4 53, 55 and 39% of the bound, 10⁷ x 2 x 4 72, c64 2 x 2 82.
        "tsmm_element" | "tsmm_registers" if by_rows && !is_double && problem.n.max(problem.k) == 2 => {
            if is_complex {
                1.2
            } else {
                1.9
            }
        }
        "tsmm_registers" if by_rows && !is_double && problem.n.max(problem.k) <= 4 => {
            0.6 + 0.125 * (problem.n * problem.k) as f64
        }
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
        "tsmm_fragments" if is_complex && !is_narrow => fragments_complex(variant, problem),
        "tsmm_fragments" => {
            let base = if is_wide { 1.3 } else { 1.12 };
            let odd = match (is_complex, problem.n % 2) {
                (false, _) if by_elements => 1.5,
                (true, 1) => 1.2,
                _ => 1.0,
            };
            // 64 x 8, 10⁶ rows, an H200 on 2026-11-30 (results/trials/outer.csv): 1.8 times the bound.
            let late = if problem.reads_c && variant.t2 > 32 && !problem.is_short() { 1.5 } else { 1.0 };
            base * odd * late * (1.0 + 0.6 * missing)
        }
        "tsmm_mma" if by_elements => {
            let base = if is_narrow { 1.2 } else { 1.5 };
            base * (1.0 + 0.8 * (f64::from(variant.t2) / problem.n as f64 - 1.0))
        }
        "tsmm_mma" => {
            let base = match (is_wide, is_narrow) {
                // Rows with gaps, the same day: `dtsmm_mma_16x24_n48` 1.6 to 2.5 times the bound.
                (true, _) if !are_packed => 1.8,
                (true, _) => 1.41,
                (_, true) => 1.15,
                _ => 1.22,
            };
            base * (1.0 + 0.6 * missing)
        }
        "tsmm_staged" if is_double && variant.t2 > 32 && variant.t3 <= 4 => 1.02 * (1.0 + 1.5 * missing),
        "tsmm_staged" if is_double && is_complex && variant.t2 > 4 => 1.6 * (1.0 + 1.2 * missing),
        // Rows with gaps, 17 to 64 columns of 10⁶ rows and more, 20 to 64 steps, H200s on 2026-11-28 (results/trials/gaps.csv): 2.0 to 6.3
        // times as long as the bound, `tsmm_fragments` 1.4 to 2.0.
        "tsmm_staged" if is_double && !is_complex && by_rows && !are_packed && variant.t2 > 16 => 2.5 * (1.0 + missing),
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

/// `tsmm_outer`.
///
/// # Source
/// As of [`WRITTEN`].
fn outer(variant: &Variant, problem: &Problem) -> f64 {
    // What a thread does for its columns of a row, and a block before its first row.
    let columns = match (variant.dtype, variant.t3) {
        (Dtype::F32, ..=4) => 28.0,
        (Dtype::F32, _) => 62.0,
        (Dtype::F64, ..=4) => 12.0,
        (Dtype::F64, _) => 15.0,
        (Dtype::C64, _) => 23.0 + 2.0 * problem.k as f64,
        (Dtype::C128, ..=1) => 40.0,
        (Dtype::C128, _) => 10.0,
    };
    let bytes = problem.dtype.bytes();
    let are_pieces = problem.c.col == 1 && problem.c.row * bytes % 16 == 0 && problem.n * bytes % 16 == 0;
    // By elements. Where C lies by columns it is a guess.
    let apart = match (are_pieces, problem.c.row, bytes) {
        (true, ..) => 1.0,
        (_, 1, _) => 4.0,
        (.., 4) => 2.0,
        _ => 1.25,
    };
    // A block of one step has little to bring.
    let base = if variant.t3 == 1 { 0.98 } else { 1.0 };
    row(problem, base, columns) * apart
}

/// Whether rows of A and of C are whole pieces of 16 bytes.
fn of_pieces(problem: &Problem) -> bool {
    problem.k * problem.dtype.bytes() % 16 == 0 && problem.n * problem.dtype.bytes() % 16 == 0
}

/// `tsmm_bulk_registers`.
fn registers(variant: &Variant, problem: &Problem) -> f64 {
    let is_whole = problem.k * problem.dtype.bytes() % 16 == 0;
    let (fixed, each) = match (variant.dtype.is_complex(), variant.t2) {
        (true, ..=8) => (8.0, 1.2),
        (true, _) => (58.0, 6.3),
        (false, _) => (32.0, 0.87),
    };
    let odd = if is_whole { 1.0 } else { 1.2 };
    row(problem, 1.06, odd * (fixed + each * problem.k as f64))
}

/// `tsmm_bulk_shared`.
///
/// # Source
/// H200s on 2026-11-28: tall-widths.csv and its variants in benches/results/h200, and benches/results/trials/lanes.csv; c64 on 2026-11-29, every
/// entry of tall-widths-variants.csv and of results/trials/rectangles.csv, 0.01 to 0.08 in the root of the mean square.
fn shared(variant: &Variant, problem: &Problem) -> f64 {
    let are_pieces = of_pieces(problem);
    let by_pieces = |pieces: (f64, f64), odd: (f64, f64)| if are_pieces { pieces } else { odd };
    let (fixed, each) = match (variant.dtype.is_complex(), variant.t2, variant.t3) {
        (true, ..=16, ..=16) => by_pieces((6.0, 2.2), (14.0, 1.75)),
        (true, ..=16, ..=32) => by_pieces((12.0, 2.2), (18.0, 2.05)),
        (true, ..=16, ..) => by_pieces((20.0, 2.5), (18.0, 2.95)),
        (true, ..=24, ..=24) => by_pieces((24.0, 2.3), (18.0, 2.95)),
        (true, ..=24, ..) => by_pieces((22.0, 3.5), (22.0, 3.55)),
        (true, ..=32, ..=32) => by_pieces((26.0, 2.95), (24.0, 3.2)),
        (true, ..=32, ..) => by_pieces((26.0, 3.45), (24.0, 3.65)),
        (true, ..=40, ..) => by_pieces((40.0, 3.8), (38.0, 4.2)),
        (true, ..=48, ..) => by_pieces((36.0, 4.65), (42.0, 4.8)),
        (true, ..) => by_pieces((56.0, 5.7), (28.0, 6.65)),
        (false, ..=8, ..) => by_pieces((12.0, 0.95), (3.0, 1.45)),
        (false, ..=16, ..=32) => by_pieces((6.0, 1.28), (11.0, 1.45)),
        (false, ..=16, ..) => by_pieces((8.0, 1.47), (15.0, 1.6)),
        (false, ..=24, ..=24) => by_pieces((20.0, 1.5), (22.0, 1.6)),
        (false, ..=24, ..) => by_pieces((22.0, 1.55), (24.0, 1.65)),
        (false, ..=32, ..=32) => by_pieces((18.0, 1.65), (31.0, 1.7)),
        (false, ..=32, ..) => by_pieces((18.0, 1.75), (32.0, 2.0)),
        (false, ..=40, ..) => by_pieces((20.0, 2.2), (40.0, 2.2)),
        (false, ..=48, ..) => by_pieces((48.0, 2.5), (55.0, 2.55)),
        (false, ..) => by_pieces((40.0, 2.75), (72.0, 2.65)),
    };
    // Groups of lanes that take a row's pieces in orders of their own meet in the banks of B.
    let meet = match (variant.dtype.is_complex(), variant.t2, variant.t3) {
        (false, ..=8, _) if are_pieces && problem.k % 32 == 0 => 1.28,
        (false, 17..=24, 33..) if are_pieces && problem.k % 32 == 0 => 2.0,
        (false, 17..=24, 33..) if are_pieces && problem.k % 16 == 0 => 1.25,
        _ => 1.0,
    };
    let base = match variant.t2 {
        33.. => 1.1,
        _ if are_pieces => 1.05,
        _ => 1.15,
    };
    // An old C is read and scaled, and where it lies in the next slot no tile is ahead; of c64 that, too, is no more than this.
    let old = match problem.reads_c {
        true if variant.dtype.is_complex() => 0.45 * problem.n as f64,
        true if crowded(variant, problem) > 1.0 => 1.3 * problem.n as f64,
        true => 0.95 * problem.n as f64,
        false => 0.0,
    };
    row(problem, base, meet * (fixed + each * problem.k as f64) + old)
}

/// `tsmm_bulk_rows`.
///
/// # Source
/// As of `tsmm_bulk_shared`.
fn lane_rows(variant: &Variant, problem: &Problem) -> f64 {
    let (n, k, are_pieces) = (problem.n as f64, problem.k as f64, of_pieces(problem));
    let multiplied = problem.n.next_multiple_of(4) as f64 * k;
    let (base, columns) = match (variant.dtype, variant.t2) {
        (Dtype::F32, ..=8) => (1.05, 6.0),
        (Dtype::F32, ..=16) if problem.n < 16 => (1.05, 7.5),
        (Dtype::F32, ..=16) => (1.09, 7.5),
        (Dtype::F32, ..=24) => (1.12, 7.0),
        // Rows that begin in the same banks.
        (Dtype::F32, _) if problem.n % 8 == 0 => (1.6, 7.0),
        (Dtype::F32, _) => (1.18, 7.0),
        (Dtype::F64, ..=8) => (1.04, 6.0),
        (Dtype::F64, _) => (1.16, 6.0),
        (Dtype::C64, ..=8) => (1.06, 6.0),
        (Dtype::C64, _) if problem.n % 16 == 0 || problem.k % 16 == 0 => (1.1, 1.4 * (4.0 + 0.165 * multiplied)),
        (Dtype::C64, _) if are_pieces => (1.1, 4.0 + 0.165 * multiplied),
        (Dtype::C64, _) => (1.1, 12.0 + 0.115 * multiplied + 0.2 * n),
        (Dtype::C128, _) => (1.04, 4.0),
    };
    row(problem, base, columns)
}

/// `tsmm_staged` of packed rows of f32 and c64.
fn staged_single(variant: &Variant, problem: &Problem) -> f64 {
    let base = match (variant.dtype.is_complex(), variant.t2, variant.t3) {
        (true, ..=8, _) => 1.15,
        (true, ..=16, _) => 1.64,
        (true, ..=32, _) => 2.9,
        // 40 to 64 columns, tall-widths-variants.csv: 1160 to 1550 us, where `tsmm_bulk_shared` takes 594 to 939.
        (true, ..) => 4.5,
        (false, ..=4, 32) => 1.58 - 0.0125 * problem.k as f64,
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
        (_, ..=4) if variant.t3 > 16 && problem.k * problem.dtype.bytes() % 16 != 0 => 1.45,
        (true, _) | (_, ..=4) => 1.0,
        (false, ..=8) => 1.2,
        (false, _) => 1.4,
    };
    base * odd * (1.0 + more * missing(variant, problem))
}
