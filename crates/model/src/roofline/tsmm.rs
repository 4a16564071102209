//! What a tile of TSMM moves, multiplies and issues.
//!
//! Blocks walk over tiles, of which some are on their way in, and C's on their way out, while one is multiplied.

use super::Constants;
use super::block::SECTOR_BYTES;
use super::streamed::both_ways;
use crate::variants::lines::lines_steps;
use crate::variants::tsmm::fragment;
use crate::{Dtype, Kernel, Machine, Operation, Problem, Variant};

/// Bytes of a piece: the widest load, store or copy.
const PIECE_BYTES: f64 = 16.0;
/// Instructions that a thread spends on a copy into a stage or on a store out of it: the place, the address, the turn.
const COPY: f64 = 15.0;
/// Instructions of a load or store straight from or to memory, with its address and guard.
const LOAD: f64 = 4.0;
/// Instructions of a load from a tile: the place and the load.
const PLACED: f64 = 5.0;

/// How many times as long C's bytes take of `tsm2l_columns` with 16 columns where C is read: no register is left to read it ahead. On an H200
/// on 2026-11-22, m = 10⁷, k = 2 and 4: 2.2 times.
const LATE_C: f64 = 2.2;

/// How many times as long they take of `tsmm_row` by rows of more than a sector, an element a store of each of 32 of them. On an H200 on 2026-11-29 f64
/// 100000 x 16 x 2 took 39 us, `tsmm_staged` 7.4.
const APART_C: f64 = 9.0;

/// Whether blocks take tile after tile, so that C's bytes and A's are moved at the same time.
pub(super) fn streams(variant: &Variant) -> bool {
    matches!(variant.kernel, Kernel::Tsmm | Kernel::Tall)
}

/// Whether lanes ask for elements that are theirs alone straight from the memory, and it is the bytes beside them that make their loads [longer](detour), not what is done with a row.
pub(super) fn loads_apart(variant: &Variant, problem: &Problem) -> bool {
    let are_own = matches!(variant.name, "tsmm_element" | "tsmm_fragments" | "tsmm_packed" | "tsmm_registers");
    are_own && problem.is_short()
}

/// Time of C's bytes, written, and read where β is not 0, of a kernel that [`streams`]; of others it is an
/// [`Estimator`](super::Estimator)'s own term. s.
pub(super) fn streamed_s(variant: &Variant, problem: &Problem, machine: &Machine) -> f64 {
    if !streams(variant) {
        return 0.0;
    }
    let bytes = problem.m as f64 * problem.n as f64 * problem.dtype.bytes() as f64;
    let read_s = if problem.reads_c { bytes / machine.read_bytes_per_s } else { 0.0 };
    let waits = problem.reads_c && variant.name == "tsm2l_columns" && variant.cols >= 16;
    let is_apart = variant.name == "tsmm_row" && problem.c.row != 1 && problem.n * problem.dtype.bytes() > SECTOR_BYTES;
    let alone = if waits {
        LATE_C
    } else if is_apart {
        APART_C
    } else {
        1.0
    };
    let longer = both_ways(variant, problem).unwrap_or(alone);
    (bytes / machine.write_bytes_per_s + read_s) * longer
}

/// How many times as long C's bytes take of a kernel that does not [`streams`]: of a tall C by rows the tiles of `gemm_tiled`, whose
/// lanes run down the columns, are written by elements. Of one that lies the other way it is a guess: half of a tile is not there; by columns 64 x 8
/// took 1.3 to 3.1 times as long as was expected without, on an H200 on 2026-11-27, and this is a little more: others are faster.
///
/// # Source
/// An H200 on 2026-11-22, c128, 2 to 51 columns: 5 to 24 times as long, as a whole.
pub(super) fn scattered(variant: &Variant, problem: &Problem) -> f64 {
    let is_tall = problem.operation() == Operation::Tsmm && problem.n > 1;
    match variant.kernel {
        Kernel::Gemm if is_tall && problem.c.row != 1 => 5.0,
        Kernel::Gemm if is_tall && problem.n > problem.m => 1.5,
        Kernel::Gemm if is_tall => 3.2,
        _ => 1.0,
    }
}

/// Rows of C that a block has at a time.
fn rows(variant: &Variant, problem: &Problem) -> f64 {
    match variant.name {
        "tsmm_element" => f64::from(variant.threads) / problem.n as f64,
        _ if variant.is_bulk() => variant.bulk_rows(problem.n.max(problem.k)) as f64,
        _ => f64::from(variant.rows),
    }
}

/// Columns of C that are multiplied for each row, whether C has them or not.
fn columns(variant: &Variant, problem: &Problem) -> f64 {
    if variant.name == "tsmm_element" { problem.n as f64 } else { f64::from(variant.t2) }
}

/// Steps of k that are multiplied: whole fragments, chunks or pieces.
fn steps(variant: &Variant, problem: &Problem) -> f64 {
    let together = match (variant.kernel, variant.mma) {
        (_, true) => u64::from(fragment(variant.dtype)),
        (Kernel::Tall, _) => u64::from(variant.t3),
        _ => 1,
    };
    problem.k.next_multiple_of(together) as f64
}

/// Of a tile: multiply-adds, elements that shared memory or cache hands the lanes for each of them, independent sums, and
/// elements of A in flight.
pub(super) fn work(variant: &Variant, problem: &Problem) -> (f64, f64, f64, f64) {
    let (rows, columns, k) = (rows(variant, problem), columns(variant, problem), problem.k as f64);
    let fmas = match variant.is_bulk() || variant.is_lines() || variant.is_outer() {
        // What is multiplied and is not there is in the time of a row: [`both_ways`].
        true => rows * problem.n as f64 * k,
        false => rows * columns * steps(variant, problem),
    };
    let cols = f64::from(variant.cols);
    let (delivered, loads) = match (variant.kernel, variant.name) {
        // What shared memory hands their lanes is in the time of a row: [`both_ways`].
        (_, "tsmm_bulk_registers" | "tsmm_bulk_shared" | "tsmm_bulk_rows") => {
            (0.0, f64::from(variant.stages - 1) * rows * k)
        }
        // What shared memory hands a thread of A, for its columns.
        (_, "tsmm_outer") => (1.0 / cols, rows * k),
        (_, "tsmm_lines" | "tsmm_lines_mma") => (0.0, f64::from(variant.stages - 1) * lines_in_flight(variant)),
        (Kernel::Tsmm, _) => {
            let own = f64::from(variant.own_rows());
            ((own + cols) / (own * cols), f64::from(variant.stages - 1) * rows * k)
        }
        // B alone, for the rows of a load.
        (_, "tsm2l_columns") => {
            let own = f64::from(variant.rows / variant.threads);
            (1.0 / own, rows * f64::from(variant.t3).min(k))
        }
        (_, "tsmm_registers") => (1.0 / cols, f64::from(variant.threads) * f64::from(variant.t3).min(k)),
        _ => (1.0, f64::from(variant.threads) * f64::from(variant.t3).min(k)),
    };
    (fmas, delivered, rows * columns, loads)
}

/// Elements of a stage of `tsmm_lines`.
fn lines_in_flight(variant: &Variant) -> f64 {
    let bytes = variant.dtype.bytes() as u32;
    f64::from(variant.rows * lines_steps(variant.rows, bytes, variant.mma))
}

/// What a warp issues a tile.
pub(super) fn instructions(variant: &Variant, problem: &Problem, constants: &Constants) -> f64 {
    let (n, k) = (problem.n as f64, problem.k as f64);
    let width = PIECE_BYTES / problem.dtype.bytes() as f64;
    let (rows, cols, threads) = (rows(variant, problem), f64::from(variant.cols), f64::from(variant.threads));
    let steps = steps(variant, problem);
    // Of a product of two elements.
    let fmas = f64::from(variant.dtype.fmas());
    match (variant.kernel, variant.name) {
        // Of a fragment's steps eight loads of A and, a fragment of C, a product and two loads of B; then C's elements. Of
        // complex numbers two loads, and six moves: parts with another sign, and those that are there twice.
        (_, "tsmm_fragments") => {
            let (a, c) = if variant.dtype.is_complex() { (2.0 * LOAD + 6.0, 2.0) } else { (8.0 * LOAD, 4.0) };
            steps / f64::from(fragment(variant.dtype)) * (a + 4.0 * cols / 8.0) + cols / 8.0 * c * LOAD
        }
        // Of a lane's rows the products; the rest is in the time of a row.
        (_, "tsmm_lines" | "tsmm_lines_mma") => constants.stage_slots,
        (_, "tsmm_bulk_registers" | "tsmm_bulk_shared" | "tsmm_bulk_rows") => {
            let fragments = rows / (threads / 32.0) / f64::from(variant.bulk_fragment());
            let sums = f64::from(variant.bulk_lane_rows() * variant.bulk_lane_columns());
            fragments * steps * sums * fmas + constants.stage_slots
        }
        // Of each fragment of rows what its steps load of A, by 16 bytes or by elements, and of B, and multiply; then C's elements.
        (_, "tsmm_bulk") => {
            let (side, tiles) = (f64::from(fragment(variant.dtype)), cols / 8.0);
            let pieces = if problem.k % (width as u64) == 0 { 1.0 } else { width };
            let (a, products) =
                if variant.dtype.is_complex() { (2.0 * PLACED + 6.0, 2.0) } else { (4.0 * pieces * PLACED, 1.0) };
            let fragments = rows / (threads / 32.0) / side;
            fragments * (steps / side * (a + (products + 2.0) * tiles) + 2.0 * tiles * PLACED) + constants.stage_slots
        }
        // Of a thread's columns of each of its rows the products, what they load of A, and a store.
        (_, "tsmm_outer") => {
            let own = rows * n / cols / threads;
            own * (k * (cols * fmas + PLACED / width) + COPY) + constants.stage_slots
        }
        (Kernel::Tsmm, _) => {
            let own = f64::from(variant.own_rows());
            let pieces = |columns: f64, strides| rows * columns / if in_pieces(problem, strides) { width } else { 1.0 };
            let c_times = if problem.reads_c { 2.0 } else { 1.0 };
            let copies = pieces(k, problem.a) + c_times * pieces(n, problem.c);
            let multiplied = if variant.mma {
                let tiles = cols / 8.0;
                steps / 16.0 * (3.0 * tiles + 4.0 * PLACED) + 2.0 * tiles * PLACED
            } else {
                steps * (fmas * own * cols + (own * PLACED + cols) / width) + own * cols / width * PLACED
            };
            multiplied + copies / threads * COPY + constants.stage_slots
        }
        (_, "tsm2l_columns") => {
            let own = rows / threads;
            steps * (fmas * own * cols + cols / width + 3.0) + own * cols * 3.0 + constants.stage_slots
        }
        // A thread's loads of B, and a multiply-add each; then C's elements.
        _ => {
            let b = if variant.wide_shared { 1.0 / width } else { 2.0 };
            steps * (cols * (fmas + b) + constants.step_slots) + cols * 6.0
        }
    }
}

/// Whether tiles of these strides are copied by pieces: [`Kernel::Tsmm`] looks at the base too, which is not known here.
fn in_pieces(problem: &Problem, strides: crate::Strides) -> bool {
    let width = 16 / problem.dtype.bytes();
    let (ld, packed) = match strides {
        crate::Strides { row: 1, col } => (col, false),
        crate::Strides { row, col: 1 } => (row, row == problem.k || row == problem.n),
        _ => return false,
    };
    packed || ld % width == 0
}

/// How many times as long as a read kernel's reads of A take: where the lanes of a warp are a row apart and rows are not
/// neighbours.
pub(super) fn detour(variant: &Variant, problem: &Problem, constants: &Constants) -> f64 {
    if let Some(longer) = both_ways(variant, problem) {
        return longer;
    }
    if problem.dtype != Dtype::F32
        && problem.n > 1
        && problem.n.max(problem.k) > 2
        && matches!(variant.name, "tsmm_registers" | "tsmm_element")
    {
        return A_ROWS_ELEMENTS;
    }
    let is_wide = variant.t2 >= 48 && variant.t3 >= 48;
    let apart = match variant.name {
        // Of columns, on an H200 on 2026-11-22.
        "tsmm_fragments" => return if is_wide { 1.55 } else { 1.2 },
        "tsmm_mma" => return if is_wide { 1.9 } else { 1.35 },
        "tsmm_staged" if problem.dtype.real() == Dtype::F64 => return 1.25,
        // Lanes down a column; a group's along a row.
        "tsm2l_tiled" | "tsm2l_interleaved" | "tsm2l_columns" | "tsmm_row" => problem.a.row != 1,
        "tsmm_group" | "tsmm_element" | "tsmm_registers" => problem.a.col != 1 && problem.k > 1,
        _ => return constants.ring_reads,
    };
    match (apart && problem.m > 1, variant.dtype) {
        (false, _) => 1.0,
        (true, Dtype::F32) => constants.by_rows_f32,
        (true, Dtype::F64 | Dtype::C64 | Dtype::C128) => constants.by_rows_f64,
    }
}

/// How many times as long reads of A take where the lanes of a group have an element of a row each, or all of them the same. On an H200
/// on 2026-11-22, f64, 4 and 5 columns: 37% and 29% of the bound, 2 columns of 32 steps 8.6 times as long; c128 of those 5 times.
const A_ROWS_ELEMENTS: f64 = 6.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Strides, choose};

    /// C of 2 to 64 columns by k from 2 to 64, all by rows or all by columns.
    fn products(dtype: Dtype, m: u64) -> impl Iterator<Item = Problem> {
        let widths = [2, 3, 5, 8, 17, 31, 48, 64];
        widths.into_iter().flat_map(move |n| widths.map(|k| (n, k))).flat_map(move |(n, k)| {
            let columns = Problem::column_major(dtype, m, n, k);
            let rows = Strides::row_major;
            [columns, Problem { a: rows(k), b: rows(n), c: rows(n), ..columns }]
        })
    }

    #[test]
    fn few_rows_go_to_rings_and_many_to_kernels_of_tall_products() {
        let is_ring = |variant: &Variant| matches!(variant.kernel, Kernel::Ring | Kernel::GemmRing);
        for dtype in Dtype::ALL {
            for m in [100, 1000, 3333] {
                for problem in products(dtype, m).filter(|p| p.n.min(p.k) >= 48) {
                    let chosen = choose(&problem, &Machine::H200, None).unwrap();
                    // More blocks, of a column or two a thread: 333 x 64 x 64 in f32 by columns 4.5 us, by `gemm_staged` 4.8.
                    let has_columns =
                        dtype == Dtype::F32 && problem.a.row == 1 && chosen.variant.kernel == Kernel::Tsm2r;
                    assert!(is_ring(chosen.variant) || has_columns, "{problem:?}: {}", chosen.variant.entry);
                }
            }
            for m in [100, 3333, 100_000, 10_000_000] {
                let is_tiny = |p: &Problem| p.n.max(p.k) <= 3 && dtype != Dtype::C128;
                for problem in products(dtype, m).filter(|p| is_tiny(p) || m > 10_000) {
                    let chosen = choose(&problem, &Machine::H200, None).unwrap();
                    assert!(!is_ring(chosen.variant), "{problem:?}: {}", chosen.variant.entry);
                }
            }
        }
    }
}
