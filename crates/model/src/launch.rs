//! What a kernel and its launch must agree on: tiles, parts of k, grids, shared memory and scratch.

use crate::paper::tsm2x::tcf;
use crate::variants::batched::BATCHED;
use crate::variants::bulk::slot_turns;
use crate::variants::lines::{line_pitch, lines_steps};
use crate::variants::tsmm::{WIDEST, staged_b_len, tile_len};
use crate::variants::{GEMM_BK, GEMM_SIDE, Layout, entries, launch_bounds};
use crate::{Dtype, Kernel, VARIANTS, Variant};

pub mod batched;
pub mod dealt;
pub mod eights;
pub mod fit;
pub mod reduced;

/// Most blocks along y and z of a grid.
pub const GRID_YZ: u32 = 65_535;
/// Most blocks along x of a grid.
pub const GRID_X: u64 = (1 << 31) - 1;

/// Rows of B's tile in shared memory, which are also the steps that k is cut at: the most of `threads` that t3 divides,
/// ⌊T1 / T3⌋ · T3.
///
/// # Source
/// TSM2X, Algorithm 3: a tile has T1 rows. That T3 must divide them is the loops', and ours.
pub const fn tsm2r_bk(threads: u32, t3: u32) -> u32 {
    threads / t3 * t3
}

/// Elements of padding behind a row of a staged tile of [`Kernel::Gemm`]: a quarter of the banks, so that a transposing
/// store touches all of them, and 16 bytes, so that wide loads stay aligned.
pub const fn gemm_pitch(rows: u32, elem_bytes: u32) -> u32 {
    rows + 16 / elem_bytes
}

/// Elements before a step of k in a stage of [`Kernel::GemmRing`], of `len` rows or columns: 32 bytes behind each step, or behind every second
/// one where the matrix units' fragments are of every second one, so that copies are of whole sectors, and neither fragments nor the
/// elements of a few lines that a warp copies along k lie in the same banks.
pub const fn gemm_ring_step(len: u32, step: u32, elem_bytes: u32, mma: bool) -> u32 {
    step * len + (if mma { step / 2 } else { step }) * (32 / elem_bytes)
}

/// Elements from line to line of a stage of [`Kernel::GemmRing`] that keeps `steps` steps of k of each line together: 32 bytes behind each, so
/// that copies are of whole sectors, and the lines of a fragment of the matrix units, every second one, lie in different banks; 16 bytes for the
/// vector units, whose lanes have neighbouring lines: copies of every other line straddle sectors then (32 was not tried).
pub const fn gemm_ring_line(steps: u32, elem_bytes: u32, mma: bool) -> u32 {
    steps + (if mma { 32 } else { 16 }) / elem_bytes
}

/// Elements of an operand's part of a stage of [`Kernel::GemmRing`], by steps or, where `lines`, the longer of both ways. Of `mma` the gaps are those of
/// fragments of every second step.
pub const fn gemm_ring_len(side: u32, steps: u32, elem_bytes: u32, mma: bool, lines: bool) -> u32 {
    let by_steps = gemm_ring_step(side, steps, elem_bytes, mma);
    let by_lines = side * gemm_ring_line(steps, elem_bytes, mma);
    if lines && by_lines > by_steps { by_lines } else { by_steps }
}

/// Columns of tiles that the blocks of [`Kernel::GemmRing`] take together, row by row: as many blocks as an H200 runs at a
/// time then have a nearly square part of C, and share what they read.
pub const GEMM_BAND: u32 = 8;

/// Whether lines along k of a stage of [`Kernel::Ring`] are turned by [`ring_turn`], and lie without gaps: by rows of A, where each fills all banks once or more often.
pub const fn ring_turns(a_by_rows: bool, steps: u32, elem_bytes: u32) -> bool {
    a_by_rows && steps * elem_bytes % 128 == 0
}

/// By how many bytes a line of [`ring_turns`] is turned: what lies at byte b of it is stored at b ^ this.
///
/// Four neighbouring lines have their sectors in different banks, two of them their 64 bytes, which a row's four lanes take for the matrix units. Sectors stay whole:
/// a copy whose sector straddles two in shared memory fetches it twice.
pub const fn ring_turn(line: u32) -> u32 {
    line % 2 * 64 + line / 2 % 2 * 32
}

/// Bytes behind each line of what a stage of [`Kernel::Ring`] stores in lines, so that what lanes load at once lies in different
/// banks.
///
/// None of lines that are turned. Else 16, but of short lines of A by rows, which are filled 16 bytes at a time, a whole sector, and of complex numbers for the matrix
/// units two, since a row's four lanes take 64 bytes in turn.
pub const fn ring_gap(a_by_rows: bool, mma: bool, steps: u32, elem_bytes: u32) -> u32 {
    match (a_by_rows, mma) {
        _ if ring_turns(a_by_rows, steps, elem_bytes) => 0,
        (true, _) => 32,
        (false, true) if elem_bytes != 8 => 64,
        (false, _) => 16,
    }
}

/// Whether threads of [`Kernel::Ring`] with so many rows and columns of c64 multiply from copies of B's elements (`Scalar::add_outer`), and load no step
/// ahead: where a step's multiply-adds are so many that it pays. By columns 8 x 6 sums leave an SM too few warps for that.
pub const fn ring_copies_b(rows: u32, cols: u32, a_by_rows: bool) -> bool {
    rows == 8 && (cols == 4 || a_by_rows)
}

/// [`ring_copies_b`] of an entry.
pub fn copies_b(variant: &Variant) -> bool {
    let by_rows = variant.layout == Layout::Rows;
    variant.kernel == Kernel::Ring
        && variant.dtype == Dtype::C64
        && ring_copies_b(variant.own_rows(), variant.cols, by_rows)
}

/// Whether the threads of [`Kernel::Ring`] have registers of their own for the operands of even and of odd steps. Else what was
/// loaded for a step is copied to where it is multiplied from, which takes instructions and saves registers, but where [`ring_copies_b`].
///
/// By rows two sets spill, or leave too few registers for the copies into stages; so do they where a warp of the matrix units
/// has 48 columns: on an H200 on 2026-11-21 f32 by rows took 8% to 16% longer with two sets at m = k = 20480, f64 by rows 11%, at 48
/// columns 5%.
pub const fn ring_takes_turns(a_by_rows: bool, mma: bool, cols: u32) -> bool {
    !(a_by_rows || mma && cols >= 48)
}

/// Elements of A's part of a stage of [`Kernel::Ring`], `rows` x `steps`; by rows each is followed by [`ring_gap`].
pub const fn ring_a_len(rows: u32, steps: u32, a_by_rows: bool, mma: bool, elem_bytes: u32) -> u32 {
    rows * if a_by_rows { steps + ring_gap(true, mma, steps, elem_bytes) / elem_bytes } else { steps }
}

/// Bytes behind each second column of what a stage of [`Kernel::Ring`] stores of B for the matrix units, besides [`ring_gap`].
///
/// Behind gaps of 64 bytes every second column begins in the same bank: what lies by rows in memory comes column beside column.
pub const fn ring_pair_gap(a_by_rows: bool, mma: bool, steps: u32, elem_bytes: u32) -> u32 {
    if mma && ring_gap(a_by_rows, mma, steps, elem_bytes) == 64 { 16 } else { 0 }
}

/// Elements of B's part of a stage of [`Kernel::Ring`], `steps` x `cols`: by columns for the matrix units, else by rows, each
/// followed by a gap: of columns as A's and [`ring_pair_gap`], of rows 16 bytes.
pub const fn ring_b_len(cols: u32, steps: u32, a_by_rows: bool, mma: bool, elem_bytes: u32) -> u32 {
    if mma {
        (cols * (steps * elem_bytes + ring_gap(a_by_rows, true, steps, elem_bytes))
            + cols / 2 * ring_pair_gap(a_by_rows, true, steps, elem_bytes))
            / elem_bytes
    } else {
        steps * (cols + ring_gap(false, false, steps, elem_bytes) / elem_bytes)
    }
}

/// The `index`-th of `parts` nearly equal parts of `0 .. k`, cut at multiples of `tile`: (start, end).
///
/// The cuts depend on k, tile and parts alone, so a plan's sums are the same on every device.
pub const fn part_of_k(k: u32, tile: u32, parts: u32, index: u32) -> (u32, u32) {
    (cut_of_k(k, tile, parts, index), cut_of_k(k, tile, parts, index + 1))
}

const fn cut_of_k(k: u32, tile: u32, parts: u32, index: u32) -> u32 {
    // No part of none: device code has no panic to fall into.
    let parts = if parts == 0 { 1 } else { parts as u64 };
    let tiles = k.div_ceil(tile) as u64;
    let cut = tiles * index as u64 / parts * tile as u64;
    if cut < k as u64 { cut as u32 } else { k }
}

/// Grid and shared memory of a product without its split: what [`crate::choose()`] multiplies and launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiling {
    /// Blocks along x: tiles of C's rows (all tiles of C for [`Kernel::Gemm`] and [`Kernel::GemmRing`]).
    pub x: u64,
    /// Blocks along z: groups of C's columns.
    pub z: u64,
    /// Dynamic shared memory a block, bytes.
    pub shared_bytes: u32,
    /// k is cut into parts at multiples of this.
    pub k_step: u32,
    /// Times that A is read.
    pub a_reads: u64,
    /// Times that B is read, mostly from cache.
    pub b_reads: u64,
}

impl Tiling {
    /// Tiles of C, each with a block for every part of k.
    pub const fn of_c(&self) -> u64 {
        self.x.saturating_mul(self.z)
    }
}

/// The tiling of an m x n product by an entry. With BM rows and BN columns of C a block: ⌈m / BM⌉ tiles of rows, ⌈n / BN⌉
/// groups of columns; A is read once for each group, B once for each tile of rows.
///
/// | kernel | BM | BN | shared memory, elements |
/// |---|---|---|---|
/// | [`Kernel::Tsm2r`] | T1 | T2 | [`tsm2r_bk`] · T2, or none; `tsm2r_inner` takes all columns and reads A for each |
/// | [`Kernel::Ring`] | [`Variant::rows`] | T2 | stages · ([`ring_a_len`] + [`ring_b_len`]) |
/// | [`Kernel::Gemm`] | 16 · TM | 16 · TN | K step · (BM + BN, each with [`gemm_pitch`]'s padding) |
/// | [`Kernel::Tsmm`] | [`Variant::rows`] | all | [`staged_b_len`] + stages · [`tile_len`] of A's and of C's tile; `tsmm_fragments` B; `tsmm_outer` A's tile; `tsmm_bulk` B, slots · [`Variant::rows`] · the most columns of A or C, and 8 bytes a slot |
/// | [`Kernel::Ladder`] | [`Variant::rows`] | T2 | tiles · K step · (BM + BN) |
/// | [`Kernel::GemmRing`] | [`Variant::rows`] | T2 | stages · [`gemm_ring_len`] of BM and of BN |
/// | [`Kernel::Tall`] | [`Variant::rows`]; `tsmm_element` T1 / n | all | B, or none |
/// | [`Kernel::Tsmttsm`], [`Kernel::Gram`] | [`Variant::rows`] | T2 | [`reduced::shared_len`], or a ring's stages |
/// | [`Kernel::Gemv`] | [`Variant::rows`] | [`Variant::t2`] vectors | [`reduced::shared_len`], or a sum of each row and vector a thread |
///
/// Those of [`Kernel::Tsmm`] and [`Kernel::Tall`] are tiles that fewer blocks may take in turn: [`blocks_along_x`].
///
/// # Source
/// TSM2X, Sections 3.1.3 to 3.1.7, for the first; the others are ours.
pub fn tiling(variant: &Variant, m: u64, n: u64) -> Tiling {
    let elem_bytes = match variant.dtype.bytes() {
        16 => 16,
        8 => 8,
        _ => 4,
    };
    match variant.kernel {
        Kernel::Tsm2r => {
            let bk = tsm2r_bk(variant.threads, variant.t3);
            let rows = m.div_ceil(u64::from(variant.threads));
            // Algorithm 1 walks over all columns in each thread and reads A for each of them.
            let inner = variant.name == "tsm2r_inner";
            let groups = if inner { 1 } else { n.div_ceil(u64::from(variant.t2)) };
            let tile_bytes = if variant.wide_shared { bk * variant.t2 * elem_bytes } else { 0 };
            let a_reads = if inner { n } else { groups };
            Tiling { x: rows, z: groups, shared_bytes: tile_bytes, k_step: bk, a_reads, b_reads: rows }
        }
        Kernel::Ring => {
            let (steps, groups) = (variant.t3, n.div_ceil(u64::from(variant.t2)));
            let rows = m.div_ceil(u64::from(variant.rows));
            let by_rows = variant.layout == Layout::Rows;
            let stage_len = ring_a_len(variant.rows, steps, by_rows, variant.mma, elem_bytes)
                + ring_b_len(variant.t2, steps, by_rows, variant.mma, elem_bytes);
            let shared_bytes = variant.stages * stage_len * elem_bytes;
            Tiling { x: rows, z: groups, shared_bytes, k_step: steps, a_reads: groups, b_reads: rows }
        }
        Kernel::Gemm | Kernel::Ladder | Kernel::GemmRing => squares(variant, m, n, elem_bytes),
        Kernel::Tsmttsm | Kernel::Gram | Kernel::Gemv => reduced::tiling(variant, m, n),
        Kernel::Tsmm if variant.is_fragments() => {
            tall(m.div_ceil(u64::from(variant.rows)), variant.t3 * variant.t2 * elem_bytes, variant)
        }
        Kernel::Tsmm if variant.is_outer() => {
            let tile_len = tile_len(variant.rows * variant.t3, elem_bytes);
            tall(m.div_ceil(u64::from(variant.rows)), tile_len * elem_bytes, variant)
        }
        Kernel::Tsmm if variant.is_bulk() => {
            let slots = variant.stages * variant.threads / 32 * (variant.slot_len() * elem_bytes + MBARRIER_BYTES);
            tall(m.div_ceil(u64::from(variant.rows)), variant.t3 * variant.t2 * elem_bytes + slots, variant)
        }
        Kernel::Tsmm if variant.is_lines() => {
            let stage =
                lines_steps(variant.rows, elem_bytes, variant.mma) * line_pitch(variant.rows, elem_bytes) * elem_bytes;
            let shared_bytes = variant.t3 * variant.t2 * elem_bytes + variant.stages * (stage + 2 * MBARRIER_BYTES);
            tall(m.div_ceil(u64::from(variant.rows)), shared_bytes, variant)
        }
        Kernel::Tsmm => {
            let tiles =
                tile_len(variant.rows * variant.t3, elem_bytes) + tile_len(variant.rows * variant.t2, elem_bytes);
            let b_len = staged_b_len(variant.t3, variant.t2, elem_bytes);
            tall(m.div_ceil(u64::from(variant.rows)), (b_len + variant.stages * tiles) * elem_bytes, variant)
        }
        Kernel::Tall => {
            // The papers' tiles of B have T1 rows; the others have no more than there are.
            let steps = if variant.name.starts_with("tsm2l_") && variant.name != "tsm2l_columns" {
                tsm2r_bk(variant.threads, variant.t3)
            } else {
                WIDEST
            };
            let tiles = match variant.name {
                "tsmm_element" => m.saturating_mul(n).div_ceil(u64::from(variant.threads)),
                _ => m.div_ceil(u64::from(variant.rows)),
            };
            tall(tiles, variant.stages * steps * variant.t2 * elem_bytes, variant)
        }
    }
}

/// Bytes of what says that a slot of `tsmm_bulk`, or a stage of `tsmm_lines`, is filled.
const MBARRIER_BYTES: u32 = 8;

/// Tiles of rows by columns, of the kernels for products that are neither tall nor skinny.
fn squares(variant: &Variant, m: u64, n: u64, elem_bytes: u32) -> Tiling {
    let (bm, bn, k_step) = match variant.kernel {
        Kernel::Gemm => (GEMM_SIDE * variant.t3, GEMM_SIDE * variant.t2, GEMM_BK),
        _ => (variant.rows, variant.t2, variant.t3),
    };
    let (rows, cols) = (m.div_ceil(u64::from(bm)), n.div_ceil(u64::from(bn)));
    let (stages_len, a_reads) = match variant.kernel {
        Kernel::Gemm => ((gemm_pitch(bm, elem_bytes) + gemm_pitch(bn, elem_bytes)) * k_step, cols),
        Kernel::Ladder => (variant.stages * (bm + bn) * k_step, cols),
        _ => {
            // Of complex numbers a fragment is of every step.
            let mma = variant.mma && !variant.dtype.is_complex();
            let part = |side: u32| gemm_ring_len(side, k_step, elem_bytes, mma, mma || variant.is_along_k());
            // Of a band's rows each is read once for all of its columns.
            (variant.stages * (part(bm) + part(bn)), cols.div_ceil(u64::from(GEMM_BAND)))
        }
    };
    Tiling { x: rows * cols, z: 1, shared_bytes: stages_len * elem_bytes, k_step, a_reads, b_reads: rows }
}

/// Tiles of rows that have all of k and all columns.
fn tall(tiles: u64, shared_bytes: u32, variant: &Variant) -> Tiling {
    Tiling { x: tiles, z: 1, shared_bytes, k_step: variant.t3 * WIDEST, a_reads: 1, b_reads: tiles }
}

/// Blocks along x for the tiles of an (m, n, k) product on a machine with room for `places` blocks at a time: of [`Kernel::Tsmm`] and
/// [`Kernel::Tall`] no more than there are places, each of which takes tiles in turn; the papers' TSM2L has tcf tiles a block
/// ([`tcf`]), `tsmm_bulk` as many as [`slot_turns`] says or, of few, one round or two of all places. Of all others one a tile.
pub fn blocks_along_x(variant: &Variant, tiles: &Tiling, (m, n, k): (u64, u64, u64), places: u64) -> u64 {
    match (variant.kernel, variant.name) {
        (Kernel::Tall, "tsm2l_tiled" | "tsm2l_interleaved") => tiles.x.div_ceil(u64::from(tcf(variant.dtype, m))),
        (Kernel::Tall, "tsmm_packed") => tiles.x,
        (Kernel::Tsmm, _) if variant.is_outer() => tiles.x,
        (Kernel::Tsmm, _) if variant.is_bulk() => {
            let cols = n.max(k);
            let tiles = m.div_ceil(variant.bulk_rows(cols));
            let (places, blocks) =
                (places.max(1), tiles.div_ceil(slot_turns(variant.mma, variant.dtype.is_complex(), n, k)));
            match blocks {
                _ if blocks <= places => tiles.min(places),
                // A second round in which few would be busy.
                _ if blocks < 2 * places => tiles.min(2 * places),
                _ => blocks,
            }
        }
        (Kernel::Tsmm | Kernel::Tall, _) => tiles.x.min(places.max(1)),
        _ => tiles.x,
    }
}

/// Elements of scratch that `splits` parts of k need, a slot each: m · n, or where blocks join the parts of their tile ([`reduced::is_joined`]) that of
/// whole tiles; none where there is one part.
pub const fn slots_len(variant: &Variant, tiles: &Tiling, m: u64, n: u64, splits: u32) -> u64 {
    let tile_len = (variant.rows * variant.t2) as u64;
    let slot = if reduced::is_joined(variant, tiles, splits) { tiles.of_c().saturating_mul(tile_len) } else { m * n };
    if splits <= 1 { 0 } else { slot.saturating_mul(splits as u64) }
}

/// The block of an entry's launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockShape {
    /// The entry.
    pub entry: &'static str,
    /// Threads.
    pub threads: u32,
    /// Dynamic shared memory, bytes.
    pub shared_bytes: u32,
}

/// The blocks in which entries are launched: one for each, whatever the product, since neither its threads nor its shared
/// memory follow from m, n or k. Those of batches, of which both do, are [`crate::batched::block_shapes`].
pub fn block_shapes() -> impl Iterator<Item = BlockShape> {
    entries().filter(|entry| BATCHED.iter().all(|v| v.entry != *entry)).map(|entry| {
        let product = VARIANTS.iter().find(|v| v.entry == entry);
        BlockShape {
            entry,
            threads: launch_bounds(entry).map_or(0, |bounds| bounds.threads),
            shared_bytes: product.map_or_else(|| reduced::reduce_shared(entry), |v| tiling(v, 1, 1).shared_bytes),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By columns of C and steps: f64 and c128 by the matrix units, then f32 by the vector units.
    #[test]
    fn turns_of_bulk_copies_are_few_where_b_is_little() {
        const ALL: u64 = u64::MAX;
        let cases = [
            ((8, 8), [4, 4, 4]),
            ((17, 3), [8, 8, 8]),
            ((8, 24), [4, 8, 8]),
            ((32, 2), [4, 8, 8]),
            ((32, 32), [4, 8, 8]),
            ((17, 31), [4, 8, ALL]),
            ((33, 33), [8, 16, ALL]),
            ((20, 60), [8, ALL, ALL]),
            ((48, 16), [16, 16, ALL]),
            ((48, 60), [ALL, ALL, ALL]),
            ((64, 64), [ALL, ALL, ALL]),
        ];
        for ((n, k), turns) in cases {
            let found = [slot_turns(true, false, n, k), slot_turns(true, true, n, k), slot_turns(false, false, n, k)];
            assert_eq!(found, turns, "{n} x {k}");
            assert_eq!(slot_turns(false, true, n, k), if n.max(k) > 16 { ALL } else { 4 }, "c64, {n} x {k}");
        }
    }

    /// 250 000 rows are 489 blocks of 8 tiles a warp, and 396 are there at a time.
    #[test]
    fn a_second_round_of_bulk_copies_has_all_places() {
        let entry = "dtsmm_bulk_16x40_n40_k48_s3_t128";
        let v = VARIANTS.iter().find(|v| v.entry == entry).expect("an entry");
        let blocks = |m, places| blocks_along_x(v, &tiling(v, m, 33), (m, 33, 31), places);
        assert_eq!(blocks(250_000, 396), 792);
        let (tiles, warps) = (250_000_u64.div_ceil(16), 4);
        let own = tiles.div_ceil(792 * warps);
        assert!(tiles.div_ceil(own * warps) >= 780, "{own} tiles a warp leave places empty");
        assert_eq!(blocks(250_000, 489), 489);
        assert_eq!(blocks(250_000, 244), 489);
        assert_eq!(blocks(1000, 396), 16);
        assert_eq!(blocks(2_500_000, 396), 4883);
    }

    #[test]
    fn parts_tile_k_without_gap_or_overlap() {
        for k in [0, 1, 127, 128, 129, 1000, u32::MAX] {
            for parts in [1, 2, 3, 7, 64] {
                let mut at = 0;
                for index in 0..parts {
                    let (start, end) = part_of_k(k, 120, parts, index);
                    assert!(start == at && end >= start, "{k} {parts} {index}");
                    assert!(end == k || end % 120 == 0);
                    at = end;
                }
                assert_eq!(at, k);
            }
        }
    }

    /// Of whole tiles where blocks join them, of C where they do not; none where k is whole.
    #[test]
    fn a_slot_is_of_what_its_blocks_own() {
        let of = |entry: &str, (m, n), splits| {
            let v = VARIANTS.iter().find(|v| v.entry == entry).expect("an entry");
            slots_len(v, &tiling(v, m, n), m, n, splits)
        };
        let len = |entry: &str, splits| of(entry, (100, 70), splits);
        assert_eq!([1, 2, 3].map(|splits| len("dgemm_mma_32x32_m64_n64_k32_s3_t128", splits)), [0, 32768, 49152]);
        let ring = [1, 2, 12, 13].map(|splits| of("dtsm2r_mma_16x48_n48_k16_s3_t256", (200, 70), splits));
        assert_eq!(ring, [0, 2 * 24576, 12 * 24576, 13 * 14000]);
        // Of two tall matrices more are joined.
        let two_tall = [1, 32, 33].map(|splits| of("dtsm2r_mma_16x8_n8_k32_s3_t128", (64, 20), splits));
        assert_eq!(two_tall, [0, 32 * 64 * 24, 33 * 64 * 20]);
        assert_eq!([1, 2, 3].map(|splits| len("dgemm_tiled_4x4_t256", splits)), [0, 14000, 21000]);
    }

    /// Sectors of 32 bytes change places within 128 bytes, whole; those of four neighbouring lines lie in four places.
    #[test]
    fn lines_are_turned_by_sectors() {
        for first in (0..256).step_by(32) {
            let places = [0, 1, 2, 3].map(|line| (first ^ ring_turn(line)) % 128);
            assert!((0..4).all(|place| places.contains(&(32 * place))), "{first}: {places:?}");
        }
        assert!((0..64).all(|line| ring_turn(line) == ring_turn(line % 4) && ring_turn(line) % 32 == 0));
        assert_eq!([0, 1, 2, 3].map(ring_turn), [0, 64, 32, 96]);
    }

    /// Of f64: lines of 32 steps lie close, of 8 steps, 64 bytes, behind gaps of a sector; by columns of A, as many bytes, B's do.
    #[test]
    fn lines_that_are_turned_have_no_gaps() {
        for (a_by_rows, mma, steps, gap) in [
            (true, true, 32, 0),
            (true, false, 16, 0),
            (true, false, 8, 32),
            (true, true, 24, 32),
            (false, true, 32, 16),
            (false, false, 32, 16),
        ] {
            assert_eq!(ring_gap(a_by_rows, mma, steps, 8), gap, "{a_by_rows} {mma} {steps}");
            assert_eq!(ring_turns(a_by_rows, steps, 8), gap == 0);
        }
        assert_eq!((ring_gap(false, true, 16, 16), ring_pair_gap(false, true, 16, 16)), (64, 16));
        assert_eq!((ring_a_len(64, 32, true, true, 8), ring_b_len(8, 32, true, true, 8)), (64 * 32, 8 * 32));
        assert_eq!(ring_a_len(64, 16, true, false, 4), 64 * (16 + 8));
    }

    #[test]
    fn tiles_fit_into_shared_memory() {
        for v in VARIANTS {
            let t = tiling(v, 20480, 64);
            // A ring takes what a block may opt in to: of compute capability 8.0, or of 9.0 where it needs that anyhow.
            let most = if matches!(v.kernel, Kernel::Ring | Kernel::GemmRing | Kernel::Tsmm)
                || v.is_staged()
                || v.is_gemv_lines()
            {
                if v.mma || v.is_bulk() { 227 << 10 } else { 163 << 10 }
            } else {
                48 << 10
            };
            assert!(t.shared_bytes <= most, "{}: {} bytes", v.entry, t.shared_bytes);
            assert!(t.k_step > 0 && (v.kernel == Kernel::Gemm || v.is_fitted() || t.k_step % v.t3 == 0));
        }
    }

    #[test]
    fn an_entry_has_one_block_shape() {
        for v in VARIANTS {
            let shapes = || block_shapes().filter(|shape| shape.entry == v.entry);
            assert_eq!(shapes().count(), 1, "{}", v.entry);
            for (m, n) in [(1, 1), (31, 64), (20_480, 16), (1_000_000, 1_000_000)] {
                let (threads, shared_bytes) = (v.threads, tiling(v, m, n).shared_bytes);
                let wanted = BlockShape { entry: v.entry, threads, shared_bytes };
                assert_eq!(shapes().next(), Some(wanted), "m = {m}, n = {n}");
            }
        }
        assert_eq!(block_shapes().count() + BATCHED.len(), entries().count());
        assert!(block_shapes().all(|shape| shape.threads > 0));
    }

    #[test]
    fn a_tile_of_b_is_the_papers_512n_and_1024n_bytes() {
        for v in VARIANTS.iter().filter(|v| v.name == "tsm2r_prefetch" && v.threads == 128 && v.t3 != 12) {
            assert_eq!(
                u64::from(tiling(v, 1000, 64).shared_bytes),
                128 * u64::from(v.t2) * v.dtype.bytes(),
                "{}",
                v.entry
            );
        }
    }
}
