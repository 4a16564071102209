//! How many times as long the bytes of A and C take, of tall products by columns, that a kernel reads and writes at the same time.
//!
//! # Source
//! An H200 on 2026-11-27: `suite/tall.csv`, 2 to 64 columns of half a gigabyte, aligned and not, with every entry (tall.csv and
//! tall-variants.csv in benches/results/h200), against R/read + W/write.

use crate::variants::tsmm::fragment;
use crate::{Dtype, Problem, Strides, Variant};

/// The factor of a kernel's bytes. `None` of those whose reads of A alone are longer ([`super::tsmm::detour`]).
pub(super) fn factor(variant: &Variant, problem: &Problem) -> Option<f64> {
    let is_aligned = is_aligned(problem.a, problem) && is_aligned(problem.c, problem);
    let odd = |longer: f64| if is_aligned { 1.0 } else { longer };
    let read = |longer: f64| if problem.reads_c { longer } else { 1.0 };
    let (t2, dtype) = (variant.t2, variant.dtype);
    let single = |f32: f64, other: f64| if dtype == Dtype::F32 { f32 } else { other };
    // What is multiplied and is not there, as a share.
    let missing = (f64::from(t2) / problem.n as f64 - 1.0).max(0.0);
    Some(match variant.name {
        "tsmm_lines" | "tsmm_lines_mma" => lines(variant, problem, is_aligned),
        "tsm2l_columns" => {
            let (base, late) = match (dtype, variant.cols) {
                (Dtype::C64, 8) => (1.26, 1.5),
                (Dtype::C64, 16..) => (1.83, 1.4),
                (Dtype::F64, 32..) => (1.48, 1.5),
                (_, 16..) => (1.24, 1.6),
                // C read too, 10⁷ rows, an H200 on 2026-11-29: 1.07 to 1.11 times the bound (tsm2l.csv).
                (Dtype::F64, 2) if problem.k <= 8 => (1.17, 0.95),
                _ => (1.17, 1.1),
            };
            let apart = match dtype {
                Dtype::F32 => 1.45,
                Dtype::F64 | Dtype::C64 => 1.2,
                Dtype::C128 => 1.08,
            };
            base * odd(apart) * read(late) * (1.0 + 0.5 * missing)
        }
        "tsmm_staged" => {
            let base = match (dtype, t2) {
                (_, ..=4) if variant.t3 > 4 => 2.7,
                (_, ..=4) => 1.25,
                (Dtype::C128, ..=8) => 1.2,
                (_, ..=8) => 1.5,
                (Dtype::C128 | Dtype::F64, ..=16) => 1.75,
                (_, ..=16) => 2.2,
                (Dtype::F32, ..=32) => 3.2,
                (Dtype::C128, ..=32) => 2.9,
                (Dtype::F64, _) => 4.0,
                (Dtype::F32, _) => 4.8,
                (Dtype::C64 | Dtype::C128, _) => 6.0,
            };
            base * odd(if dtype == Dtype::F32 { 1.45 } else { 1.15 })
                * read(if t2 > 4 { 0.75 } else { 1.0 })
                * (1.0 + 0.5 * missing)
        }
        "tsmm_mma" => {
            let base = match t2 {
                ..=8 => 1.45,
                9..=16 => 1.4,
                17..=32 => 1.7,
                _ => 2.3,
            };
            let steps = problem.k.next_multiple_of(u64::from(fragment(dtype))) as f64 / problem.k as f64;
            base * odd(1.17) * read(0.9) * (1.0 + 0.8 * missing) * (0.9 + 0.1 * steps)
        }
        "tsmm_fragments" => {
            let (base, apart, late) = match (dtype.is_complex(), t2) {
                (_, ..=8) => (1.25, 1.7, 1.1),
                (true, ..=16) => (1.21, 1.45, 1.15),
                (true, ..=32) => (1.3, 1.35, 1.15),
                (true, _) => (1.6, 1.1, 1.3),
                (false, _) => (1.45, 1.7, 1.9),
            };
            let steps = problem.k.next_multiple_of(u64::from(fragment(dtype))) as f64 / problem.k as f64;
            base * odd(apart) * read(late) * (1.0 + 0.6 * missing) * (0.5 + 0.5 * steps)
        }
        // They load as many steps as their tiles have, and what those take does not depend on k.
        "tsm2l_tiled" | "tsm2l_interleaved" => {
            let step = match dtype {
                Dtype::F32 => 4.0,
                Dtype::F64 | Dtype::C64 => 1.5,
                Dtype::C128 => 0.6,
            };
            let late = if variant.name == "tsm2l_tiled" { 1.3 } else { 0.9 };
            1.15 * (1.0 + step * f64::from(t2) / (problem.n + problem.k) as f64) * read(late) * (1.0 + 0.3 * missing)
        }
        "tsmm_row" => {
            let base = if variant.cols > 4 { 1.8 } else { 1.14 };
            base * single(1.3, 1.0) * odd(1.2) * (1.0 + 0.2 * missing)
        }
        "tsmm_element" if problem.n > 4 => 10.0,
        "tsmm_group" => 1.8 * odd(1.8),
        // 8 x 2 in f64 of 10⁵ rows, C read, 12.7 us in graphs on an H200 on 2026-11-29, by `tsmm_staged` 8.1.
        "tsmm_registers" if dtype == Dtype::F64 && problem.k <= 4 && problem.n > 4 && problem.reads_c => {
            2.75 * odd(1.25)
        }
        "tsmm_registers" if problem.k <= 4 => single(1.4, 1.14) * odd(1.25) * read(1.25),
        "tsmm_packed" if problem.n == problem.k && problem.n == u64::from(t2) => single(1.5, 1.15) * read(1.8),
        // Element by element: of 10⁴ rows 6 to 9 times as long as the fastest, with four times the bytes in mind; more of more rows is a guess.
        _ if variant.is_bulk() => 30.0,
        _ => return None,
    })
}

/// `tsmm_lines` and `tsmm_lines_mma`: as long as the memory takes, or what is done with a row, in columns of A and C that would take as long.
/// C's elements cost more one by one.
fn lines(variant: &Variant, problem: &Problem, is_aligned: bool) -> f64 {
    // Of a row; of a step of it; of that for each warp beside the first that has columns of C; and of an element of C.
    let (row, step, beside, element) = match (variant.dtype, variant.t2, variant.mma) {
        // Of 10⁷ rows of 2 by 2, C read, an H200 on 2026-11-29; not aligned 3.3·10⁷ the less.
        (Dtype::F32, ..=16, _) => (if is_aligned { 5.0 } else { 3.0 }, 1.55, 0.0, 1.3),
        (Dtype::F32, ..=24, _) => (5.0, 1.8, 0.0, 1.5),
        (Dtype::F32, ..=32, _) => (6.0, 1.75, 0.65, 1.4),
        (Dtype::F32, ..=48, _) => (9.0, 1.6, 0.6, 1.4),
        (Dtype::F32, _, _) => (12.0, 1.85, 0.62, 1.5),
        (Dtype::F64, ..=32, true) => (12.0, 0.7, 0.0, 2.6),
        (Dtype::F64, _, true) => (24.0, 1.1, 0.0, 2.6),
        (Dtype::F64, ..=16, _) => (2.0, 1.55, 0.0, 1.1),
        (Dtype::F64, _, _) => (6.0, 1.7, 0.65, 1.35),
        (_, ..=16, _) => (6.0, 2.1, 0.0, 1.8),
        (_, ..=24, _) => (8.0, 3.4, 0.0, 1.5),
        (_, ..=32, _) => (10.0, 3.0, 0.9, 1.5),
        (_, ..=48, _) => (12.0, 3.6, 0.8, 1.7),
        _ => (14.0, 3.5, 1.3, 1.8),
    };
    let (n, k) = (problem.n as f64, problem.k as f64);
    let of_c = if problem.reads_c { 2.0 * n } else { n };
    // Where C is read too it is loaded so: a guess.
    let one_by_one = if problem.reads_c { element + 0.4 } else { element };
    // 1.2 of all widths; of equals the narrower one. Where C is read there is more to read than to write: f64 of 10⁷ rows and 8 columns 1.07 to 1.08 times the
    // bound on an H200 on 2026-11-29 (tsm2l.csv), 32 by 32 by the vector units 1.24.
    let is_late = problem.n < 8 || variant.t2 > 16 && !variant.mma;
    let both = if variant.dtype == Dtype::F64 && problem.reads_c && !is_late { 1.1 } else { 1.2 };
    let memory = (both + 0.0005 * f64::from(variant.t2)) * (k + of_c * if is_aligned { 1.0 } else { one_by_one });
    let warps = problem.n.div_ceil(u64::from(variant.warp_cols())) as f64;
    let multiplied = row + k * (step + beside * (warps - 1.0));
    memory.max(multiplied) / (k + of_c)
}

/// Whether columns start at multiples of 16 bytes, as far as is known here; those of c128, which always do, of whole sectors.
fn is_aligned(of: Strides, problem: &Problem) -> bool {
    let bytes = problem.dtype.bytes();
    // Of one column a stride may be any number.
    of.col.wrapping_mul(bytes) % (if bytes == 16 { 32 } else { 16 }) == 0
}
