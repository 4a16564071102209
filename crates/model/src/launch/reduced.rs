//! What kernels whose blocks finish C, those of two tall matrices and of products of any shape, and their launches agree on.

use super::{Tiling, fit};
use crate::Variant;

/// Tickets: each counts the blocks of its tiles that have written their slots, tile t's that of t mod this many; of a ring whose blocks join parts of
/// k ([`is_joined`]) there are no more tiles. They are 0 before a launch and after it.
///
/// Few would cost: with 64 of them f64 of 10000 x 10000 transposed, 1250 tiles in two parts of k, took 18 us longer on an H200 on 2026-11-29, for the last blocks
/// added one tile after the other.
pub const TICKETS: u32 = 1024;
/// Bytes before the first slot in the workspace: the tickets, each the first word of an element of up to 16 bytes.
pub const WORK_HEAD_BYTES: u32 = TICKETS * 16;

/// Most parts of k that blocks of TSM2R's rings join: the last block of a tile waits for one part after the other. On H100s on 2026-11-28 2 to 6 parts took
/// 2.3 us less than with another launch in the middle of 89 comparisons, 9 to 13 as long in that of 33 (benches/results/h100/trials.csv).
const MOST_JOINED: u32 = 12;
/// The same of two tall matrices, of which a block has little of C: 32 x 32 of 5000 rows in f64 took 8.8, 8.1 and 7.9 us in 16, 24 and 32 parts (an H200 on 2026-11-29,
/// benches/results/trials/two-tall.csv).
const MOST_JOINED_OF_TWO_TALL: u32 = 32;

/// Whether k may be cut: where none but blocks could join the parts of their tile, each tile has a ticket.
pub const fn has_tickets(variant: &Variant, tiles: &Tiling) -> bool {
    !matches!(variant.kernel, crate::Kernel::GemmRing) || tiles.of_c() <= TICKETS as u64
}

/// Whether it is the ring of the smallest tiles, one of which has all rows of C: two tall matrices, or a few rows of one.
pub(crate) const fn has_all_rows(variant: &Variant, tiles: &Tiling) -> bool {
    variant.is_small_ring() && tiles.x == 1
}

/// Most parts of k that the last block of each tile joins; 1 where another launch adds them.
pub(crate) const fn most_joined(variant: &Variant, tiles: &Tiling) -> u32 {
    match variant.kernel {
        _ if tiles.of_c() > TICKETS as u64 => 1,
        crate::Kernel::GemmRing => u32::MAX,
        crate::Kernel::Ring if has_all_rows(variant, tiles) => MOST_JOINED_OF_TWO_TALL,
        crate::Kernel::Ring => MOST_JOINED,
        _ => 1,
    }
}

/// Whether the last block of each tile joins so many parts of k, and no other launch adds them.
pub const fn is_joined(variant: &Variant, tiles: &Tiling, splits: u32) -> bool {
    splits > 1 && splits <= most_joined(variant, tiles)
}

/// How the sums of the blocks become C, of any product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Finish {
    /// k is not cut: each block writes its part of C.
    Direct,
    /// Each block writes a slot, and another launch adds them.
    SecondLaunch,
    /// Each block writes a slot, and the last one of a tile, or of a ticket's tiles, to do so adds them, in the slots' order.
    LastBlock,
}

impl Finish {
    /// As kernels are told.
    pub const fn code(self) -> u32 {
        match self {
            Finish::Direct => 0,
            Finish::SecondLaunch => 1,
            Finish::LastBlock => 2,
        }
    }
}

/// Which elements of a symmetric C are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Triangle {
    /// All.
    #[default]
    Full,
    /// Those on and below the diagonal.
    Lower,
    /// Those on and above the diagonal.
    Upper,
}

impl Triangle {
    /// As kernels are told, beside a [`Finish::code`].
    pub const fn code(self) -> u32 {
        match self {
            Triangle::Full => 0,
            Triangle::Lower => 1 << 4,
            Triangle::Upper => 2 << 4,
        }
    }
}

/// What an entry is told of an m x n C: how it is finished, which elements are written, and of a fitted one how its threads share it.
pub fn codes(variant: &Variant, finish: Finish, triangle: Triangle, m: u64, n: u64) -> u32 {
    finish.code() | triangle.code() | fit::code(variant, m, n)
}

/// Threads that add one element's slots in the launch that does nothing else.
pub const REDUCE_PARTS: u32 = 8;
/// Elements of C a block of that launch.
pub const REDUCE_ELEMENTS: u32 = crate::variants::SUM_SLOTS_THREADS / REDUCE_PARTS;

/// Shared memory of a block of that launch: an element a thread.
pub const fn reduce_bytes(elem_bytes: u64) -> u32 {
    crate::variants::SUM_SLOTS_THREADS * elem_bytes as u32
}

/// The same by an entry's name; 0 for every other entry.
pub(super) fn reduce_shared(entry: &str) -> u32 {
    let found = crate::Dtype::ALL.into_iter().find(|dtype| crate::variants::reduce_slots(*dtype) == entry);
    found.map_or(0, |dtype| reduce_bytes(dtype.bytes()))
}

/// As that launch is told of slots that have the lower triangle alone, of which a triangle is asked for; what is above the
/// diagonal is the same, or of a Hermitian matrix the conjugate.
pub const fn lower_code(triangle: Triangle, is_hermitian: bool) -> u32 {
    triangle.code() | 1 << 8 | (is_hermitian as u32) << 9
}

/// Most bytes of slots that a last block adds on its own, ahead of what another launch costs: [`last_block_s`] is then as long
/// as that on an H200.
const LAST_BLOCK_BYTES: u64 = 96 << 10;

/// Bytes of all tickets' slots for each byte that the last block of one of them reads.
fn shares(tiles: &Tiling) -> u64 {
    tiles.of_c().clamp(1, TICKETS.into())
}

/// How an m x n product in `splits` parts of k, tiled so, is finished: by last blocks where each has little to add, since one
/// SM alone reads it.
pub fn finish(tiles: &Tiling, m: u64, n: u64, splits: u32, elem_bytes: u64) -> Finish {
    let slot_bytes = m.saturating_mul(n).saturating_mul(elem_bytes);
    if splits <= 1 {
        Finish::Direct
    } else if splits <= most_last_block_splits(tiles, slot_bytes) {
        Finish::LastBlock
    } else {
        Finish::SecondLaunch
    }
}

/// Most parts of k whose slots last blocks add.
pub(crate) fn most_last_block_splits(tiles: &Tiling, slot_bytes: u64) -> u32 {
    u32::try_from(LAST_BLOCK_BYTES * shares(tiles) / slot_bytes.max(1)).unwrap_or(u32::MAX)
}

/// Time in which a last block adds the slots of its tiles, s: `splits` of them.
///
/// A slot is stored, a ticket taken, the slots are read and C is written, each a latency of the memory, once for each tile of the ticket; and what the SM reads,
/// it reads at its share of the bandwidth. On an H200 on 2026-11-22 a GEMV of a megabyte took 1.5 to 2.5 us more where k was
/// in parts, one of 16 MB, which read 105 KB, 5 us.
pub(crate) fn last_block_s(machine: &crate::Machine, tiles: &Tiling, slot_bytes: f64, splits: u32) -> f64 {
    const LATENCIES: f64 = 4.0;
    let bytes = slot_bytes * f64::from(splits) / shares(tiles) as f64;
    let tiles_a_ticket = tiles.of_c().div_ceil(TICKETS.into()) as f64;
    LATENCIES * machine.memory_latency_s * tiles_a_ticket + bytes * f64::from(machine.sms) / machine.read_bytes_per_s
}

/// Share of the memory's time that slots take to be written and read which blocks join a moment later: most of it in the cache.
pub(crate) const JOINED: f64 = 0.75;

/// Time in which the last block of a tile joins `splits` parts of it ([`crate::Variant::joins`]), s: as [`last_block_s`], from the cache.
///
/// From squares of 63 to 2049 in the four types, TSM2R's rings not among them, by each of their entries in 1 to 8 parts, on an H200 on 2026-11-27: with these, and [`JOINED`], the choice
/// takes 1.005 (f64) to 1.04 (c128) times as long as the fastest.
pub(crate) fn joined_s(machine: &crate::Machine, variant: &Variant, splits: u32) -> f64 {
    const LATENCIES: f64 = 3.0;
    const CACHED: f64 = 0.5;
    let bytes = f64::from(variant.rows * variant.t2 * splits) * variant.dtype.bytes() as f64;
    LATENCIES * machine.memory_latency_s + CACHED * bytes * f64::from(machine.sms) / machine.read_bytes_per_s
}

/// Parts in which `threads` threads add the slots of `len` elements: a power of two, a thread a part and element, 1 where
/// there are more elements than threads.
pub const fn slot_parts(len: u64, threads: u32) -> u32 {
    let mut parts = 1;
    while parts < 32 && 2 * parts as u64 * len <= threads as u64 {
        parts *= 2;
    }
    parts
}

/// Stages of a ring, of entries that have one.
pub const STAGES: u32 = 4;

/// Elements from row to row of a stage of `side` lines, a multiple of 128 bytes, for the matrix units: four rows have different
/// quarters of the banks.
pub const fn pitch(side: u32, elem_bytes: u32) -> u32 {
    side + 32 / elem_bytes
}

/// Elements from line to line of a stage of `steps` steps, whole rounds of the banks: three pieces of 16 bytes more, for the vector units. The same
/// piece of eight lines, and two pieces side by side of two, have different banks.
pub const fn line_pitch(steps: u32, elem_bytes: u32) -> u32 {
    steps + 48 / elem_bytes
}

/// The same for the matrix units: four pieces more, so that two lines have different halves of the banks.
pub const fn fragment_line_pitch(steps: u32, elem_bytes: u32) -> u32 {
    steps + 64 / elem_bytes
}

/// Rows from lane to lane of a step of packed rows of A and B, so many columns, of which half a warp loads four columns of four rows at a
/// time: 4, 2 or 1, of columns that are odd, even, or multiples of 4. They meet in no bank but where columns are multiples of 8.
pub const fn spacing(m: u32, n: u32) -> u32 {
    match (m | n) % 4 {
        0 => 1,
        2 => 2,
        _ => 4,
    }
}

/// Rows from a lane's first of a step to its second, where lanes are so many apart: neighbours where they are 4 apart, and 2 apart.
pub const fn second_row(spaced: u32) -> u32 {
    if spaced == 1 { 4 } else { 1 }
}

/// Rows from a lane's first two of a step to the other two.
pub const fn second_half(spaced: u32) -> u32 {
    if spaced == 4 { 2 } else { 8 }
}

/// [`spacing`] of c128, of which eight lanes load two columns of four rows at a time: 2 rows of columns that are odd, else 1. They meet in no bank but where
/// columns are multiples of 4, or one side is odd and the other even.
pub const fn spacing_c128(m: u32, n: u32) -> u32 {
    if (m | n) % 2 == 0 { 1 } else { 2 }
}

/// Elements of shared memory of a block: its tile of C, or one a thread; and what tells it that it is the last.
pub const fn shared_len(rows: u32, cols: u32, threads: u32) -> u32 {
    let tile = rows * cols;
    if tile > threads { tile + 1 } else { threads + 1 }
}

/// Stages of a block of `gemv_lines`.
pub const LINES_STAGES: u32 = 3;
/// Elements of x in a stage: its most columns, and a line of the memory.
pub const LINES_COLS: u32 = 160;

/// Elements of A in a stage of `gemv_lines`: 32 KiB, and a line of the memory more for each of eight columns.
pub const fn lines_stage_len(elem_bytes: u32) -> u32 {
    ((32 << 10) + 8 * 128) / elem_bytes
}

/// Elements before the ring of `gemv_lines`, whole lines: a tile's sums as [`shared_len`] has them.
pub const fn lines_head(threads: u32, rows: u32, elem_bytes: u32) -> u32 {
    shared_len(rows, 1, threads).next_multiple_of(128 / elem_bytes)
}

/// Rows and columns of a square of C that the matrix units multiply, and steps of k at a time: two `mma.m16n8k16` of f64, two
/// `mma.m16n8k8` of complex elements, each of which is two rows and two steps.
pub const fn square_side(dtype: crate::Dtype) -> u32 {
    if dtype.is_complex() { 8 } else { 16 }
}

/// Pieces of k in a fragment of the matrix units: two where a tile has half its lines.
pub const fn folds(variant: &Variant) -> u32 {
    if variant.is_by_eights() {
        return super::eights::pieces(variant.rows);
    }
    let side = square_side(variant.dtype);
    if variant.mma && variant.rows < side { side / variant.rows } else { 1 }
}

/// Steps of k that a block takes at a time, but for a fitted entry's, which [`mod@fit`] gives: those of a warp of the matrix units, or of a
/// thread, of each of its groups; or Sørensen's chunks of x, an element a thread.
pub const fn k_step(variant: &Variant) -> u32 {
    if variant.is_sorensens() {
        return variant.threads;
    }
    variant.stages * variant.t3 * if variant.mma { square_side(variant.dtype) * folds(variant) } else { 1 }
}

/// The tiling of an m x n product: tiles of BM x BN, both matrices read once for each.
pub(super) fn tiling(variant: &Variant, m: u64, n: u64) -> Tiling {
    let elem_bytes = variant.dtype.bytes() as u32;
    if variant.is_fitted() {
        return fit::tiling(variant, m, n);
    }
    let (x, z) = (m.div_ceil(u64::from(variant.rows)), n.div_ceil(u64::from(variant.t2)));
    let steps = k_step(variant);
    let stage = |side: u32| match (variant.is_by_lines(), variant.mma) {
        (true, true) => side * fragment_line_pitch(steps, elem_bytes),
        (true, false) => side * line_pitch(steps, elem_bytes),
        (false, true) if variant.is_by_eights() => steps * side,
        (false, true) => steps * pitch(side, elem_bytes),
        (false, false) => steps * side,
    };
    let is_gram = variant.kernel == crate::Kernel::Gram;
    let both = stage(variant.rows) + if is_gram { 0 } else { stage(variant.t2) };
    // Of columns by eights mbarriers lie behind the stages.
    let behind = if variant.is_by_eights() { 1 } else { 0 };
    let ring = if variant.is_staged() { STAGES * (both + behind) } else { 0 };
    // A sum of each of its rows for each thread, or group of lanes that have added theirs, before they are added.
    let sums = match (variant.kernel, variant.layout) {
        (crate::Kernel::Gemv, crate::Layout::Rows) => variant.rows * variant.t2 * (variant.stages / 32),
        (crate::Kernel::Gemv, _) => variant.threads * variant.own_rows() * variant.t2,
        _ => 0,
    };
    let shared_bytes = if variant.is_gemv_lines() {
        let stage = LINES_COLS + lines_stage_len(elem_bytes);
        let head = lines_head(variant.threads, variant.rows, elem_bytes);
        (head + LINES_STAGES * stage) * elem_bytes + 2 * LINES_STAGES * super::MBARRIER_BYTES
    } else {
        ring.max(sums).max(shared_len(variant.rows, variant.t2, variant.threads)) * elem_bytes
    };
    Tiling { x, z, shared_bytes, k_step: k_step(variant), a_reads: z, b_reads: x }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VARIANTS;

    fn tiles(x: u64, z: u64) -> Tiling {
        Tiling { x, z, shared_bytes: 0, k_step: 1, a_reads: 1, b_reads: 1 }
    }

    #[test]
    fn a_result_that_one_sm_would_read_for_long_takes_another_launch() {
        let one = tiles(1, 1);
        assert_eq!(finish(&one, 64, 64, 1, 8), Finish::Direct);
        assert_eq!(finish(&one, 16, 16, 48, 8), Finish::LastBlock);
        assert_eq!(finish(&one, 16, 16, 49, 8), Finish::SecondLaunch);
        assert_eq!(finish(&one, 16, 16, 49, 4), Finish::LastBlock);
        assert_eq!(finish(&one, u64::MAX, 2, 2, 8), Finish::SecondLaunch);
        // Two tickets, and as many as there are.
        assert_eq!(
            [96, 97].map(|splits| finish(&tiles(2, 1), 16, 16, splits, 8)),
            [Finish::LastBlock, Finish::SecondLaunch]
        );
        for grid in [tiles(32, 32), tiles(10_000, 1)] {
            assert_eq!(
                [12, 13].map(|splits| finish(&grid, 1 << 20, 1, splits, 8)),
                [Finish::LastBlock, Finish::SecondLaunch]
            );
        }
    }

    /// Three latencies, and four parts of 64 x 64 elements at twice a 132nd part of the bandwidth.
    #[test]
    fn a_tiles_last_block_reads_from_the_cache() {
        let h200 = crate::Machine::H200;
        let variant = VARIANTS.iter().find(|v| v.entry == "dgemm_mma_32x32_m64_n64_k32_s3_t128").expect("an entry");
        let wanted = 3.0 * h200.memory_latency_s + 4.0 * 32768.0 * 132.0 / 2.0 / h200.read_bytes_per_s;
        assert!((joined_s(&h200, variant, 4) / wanted - 1.0).abs() <= 1e-12);
    }

    /// Four latencies of 580 ns, and 128 slots of 2 KiB at 132nd parts of the bandwidth; of 64 tiles a 64th of that, and of 1025 four latencies for each of two.
    #[test]
    fn a_last_block_takes_as_long_as_it_reads() {
        let h200 = crate::Machine::H200;
        let read_s = 128.0 * 2048.0 * 132.0 / h200.read_bytes_per_s;
        for (grid, share, rounds) in [(tiles(1, 1), 1.0, 1.0), (tiles(64, 1), 64.0, 1.0), (tiles(1025, 1), 1024.0, 2.0)]
        {
            let found = last_block_s(&h200, &grid, 2048.0, 128);
            let wanted = 4.0 * h200.memory_latency_s * rounds + read_s / share;
            assert!((found / wanted - 1.0).abs() <= 1e-12, "{found}");
        }
    }

    /// Of 32 banks of 4 bytes a quarter is 32 bytes.
    #[test]
    fn four_rows_of_a_stage_begin_at_different_quarters_of_the_banks() {
        for v in VARIANTS.iter().filter(|v| v.mma && v.is_staged() && !v.is_by_lines() && !v.is_by_eights()) {
            let bytes = v.dtype.bytes() as u32;
            for side in [v.rows, v.t2] {
                assert_eq!((side * bytes % 128, pitch(side, bytes) * bytes % 128), (0, 32), "{}", v.entry);
            }
        }
    }

    /// Eight lanes load 16 bytes each, all banks together: a piece of up to eight lines, or two of two; of fragments
    /// four of two.
    #[test]
    fn pieces_of_lines_meet_in_no_bank() {
        for v in VARIANTS.iter().filter(|v| v.is_by_lines()) {
            let bytes = v.dtype.bytes() as u32;
            let of = if v.mma { fragment_line_pitch } else { line_pitch };
            let pitch = of(k_step(v), bytes) * bytes / 16;
            let together: &[(u32, u32)] = if v.mma { &[(2, 4)] } else { &[(8, 1), (2, 2)] };
            for &(lines, pieces) in together {
                let mut quarters = [false; 8];
                for (line, piece) in (0..lines).flat_map(|line| (0..pieces).map(move |piece| (line, piece))) {
                    let quarter = (line * pitch + piece) as usize % 8;
                    assert!(!quarters[quarter], "{}: line {line}, piece {piece}", v.entry);
                    quarters[quarter] = true;
                }
            }
        }
    }

    /// Of f64 half a warp loads four columns of four rows: 16 elements of 8 bytes, of 32 banks of 4. Of a step of 16 rows each is one lane's.
    #[test]
    fn packed_rows_meet_in_no_bank_but_of_multiples_of_8() {
        for width in (1..=64).filter(|width| width % 8 != 0) {
            let apart = spacing(width, width);
            let mut banks = [false; 16];
            for (row, column) in (0..4).flat_map(|row| (0..4).map(move |column| (row * apart, column))) {
                let bank = (row * width + column) as usize % 16;
                assert!(!banks[bank], "{width}: row {row}");
                banks[bank] = true;
            }
        }
        assert_eq!([(33, 48), (34, 48), (36, 48), (34, 33)].map(|(m, n)| spacing(m, n)), [4, 2, 1, 4]);
    }

    #[test]
    fn parts_are_whole_and_fit_the_threads() {
        assert_eq!([1, 8, 9, 16, 17, 128, 129, 4096].map(|len| slot_parts(len, 256)), [32, 32, 16, 16, 8, 2, 1, 1]);
        for len in 1..=5000 {
            let parts = slot_parts(len, 256);
            assert!(parts == 1 || u64::from(parts) * len <= 256);
        }
    }

    #[test]
    fn codes_do_not_overlap() {
        for finish in [Finish::Direct, Finish::SecondLaunch, Finish::LastBlock] {
            for triangle in [Triangle::Full, Triangle::Lower, Triangle::Upper] {
                let code = finish.code() | triangle.code();
                assert_eq!((code & 15, code >> 4), (finish.code(), triangle.code() >> 4));
            }
        }
    }

    /// A whole number of steps, and of each group as many.
    #[test]
    fn groups_have_equal_steps() {
        for v in VARIANTS.iter().filter(|v| v.is_reduced() && !v.is_fitted()) {
            assert!(v.stages > 0 && v.own_rows() * v.cols > 0, "{}", v.entry);
            // The last warp of `gemv_lines` brings what the others multiply.
            let threads = if v.is_gemv_lines() { v.threads - 32 } else { v.threads };
            let owners = if v.mma { threads / 32 } else { threads };
            let (down, along) = (v.rows / v.own_rows(), v.t2 / v.cols);
            // By the matrix units a Gram matrix has none above the diagonal.
            let is_triangle = v.mma && v.kernel == crate::Kernel::Gram;
            let tiles = match (v.is_dealt(), is_triangle) {
                (true, _) => crate::launch::dealt::WARPS as u32,
                (false, true) => down * (down + 1) / 2,
                (false, false) => down * along,
            };
            assert_eq!(tiles * v.stages, owners, "{}", v.entry);
        }
    }
}
