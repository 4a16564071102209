//! The entries of batches of small products.

use super::elem;
use crate::{Dtype, Machine};

/// How an entry computes a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// Ours: tiles of several problems through a ring of stages.
    Tile,
    /// Ours: warps load and store the fragments of the matrix units themselves.
    Fragments,
    /// Ours: a warp a product, through shared memory of its own.
    Warps,
    /// Ours: warps copy whole matrices as they lie, those without gaps, into shared memory of their own and back.
    Flat,
    /// Ours: blocks take several problems that lie one behind the other by bulk copies, threads parts of them.
    Bulk,
    /// Ours: the same in one stage a block, where C lies over A and B.
    Over,
    /// MAGMA's: one product a block, a thread an element.
    Single,
    /// Several products a block.
    Aggregated,
    /// Blocks take products in turn, the next one's elements in registers.
    Prefetch,
    /// One product a block in four parts, a thread four elements.
    Blocked,
}

impl Design {
    /// Whether it is chosen where nobody names one: the paper's are there to be named.
    pub const fn is_ours(self) -> bool {
        matches!(self, Design::Tile | Design::Fragments | Design::Warps | Design::Flat | Design::Bulk | Design::Over)
    }

    /// Whether blocks take several problems, which lie one behind the other, by bulk copies.
    pub const fn is_by_runs(self) -> bool {
        matches!(self, Design::Bulk | Design::Over)
    }

    /// Whether warps have problems of their own, of at most [`Batched::tm`] rows and columns and [`Batched::tn`] steps.
    pub const fn is_by_warps(self) -> bool {
        matches!(self, Design::Fragments | Design::Warps | Design::Flat)
    }
}

/// One entry of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batched {
    /// The idea: `batched_packed`.
    pub name: &'static str,
    /// The symbol in the PTX: `dbatched_packed_2x2_t128`.
    pub entry: &'static str,
    /// Element type.
    pub dtype: Dtype,
    /// Rows of C a thread; where it is [by warps](Design::is_by_warps) the most that m and n may be.
    pub tm: u32,
    /// Columns of C a thread; where it is by warps the most that k may be.
    pub tn: u32,
    /// Warps a product of [`Design::Fragments`] and [`Design::Flat`]; 1 of the others.
    pub parts: u32,
    /// Of these the warps beside each other, which have the same rows and other columns.
    pub across: u32,
    /// Threads a block, where it is [by runs](Design::is_by_runs) at most.
    pub threads: u32,
    /// Blocks an SM for which registers are allotted.
    pub min_blocks: u32,
}

impl Batched {
    /// Whether it takes packed batches alone.
    pub const fn is_packed(&self) -> bool {
        matches!(self.name.as_bytes(), b"batched_packed" | b"batched_bulk" | b"batched_over")
    }

    /// 32-bit registers a thread, as the assembler allotted them for the nearest architecture, or as launch bounds allow.
    pub fn registers(&self, machine: &Machine) -> u32 {
        let most = (machine.registers_per_sm / (self.threads * self.min_blocks.max(1)) / 8 * 8).min(255);
        crate::occupancy::registers_of(self.entry, machine).unwrap_or(most)
    }

    /// Which of the designs it is.
    pub const fn design(&self) -> Design {
        match self.name.as_bytes() {
            b"batched_fragments" => Design::Fragments,
            b"batched_warps" => Design::Warps,
            b"batched_flat" => Design::Flat,
            b"batched_bulk" => Design::Bulk,
            b"batched_over" => Design::Over,
            b"batched_single" => Design::Single,
            b"batched_aggregated" => Design::Aggregated,
            b"batched_prefetch" => Design::Prefetch,
            b"batched_blocked" => Design::Blocked,
            _ => Design::Tile,
        }
    }

    /// The oldest compute capability that has its instructions.
    pub const fn since(&self) -> (u32, u32) {
        match self.design() {
            Design::Fragments | Design::Flat | Design::Bulk | Design::Over => (9, 0),
            _ => SINCE,
        }
    }

    /// The threads that compute one product: of m x n sums, of [`Design::Blocked`] a square of half of the longest side, of
    /// [`Design::Fragments`] one or two warps, of [`Design::Warps`] one, of [`Design::Flat`] some.
    pub fn owners(&self, m: u32, n: u32, k: u32) -> u32 {
        match self.design() {
            Design::Fragments | Design::Warps | Design::Flat => 32 * self.parts,
            Design::Blocked => m.max(n).max(k).div_ceil(2).pow(2),
            _ => m.div_ceil(self.tm) * n.div_ceil(self.tn),
        }
    }

    /// Of [`Design::Flat`], whether a single problem's C is read while A and B are multiplied. It is where shared memory, and not registers,
    /// is what decides how many blocks an SM holds; of f64 C comes too late, and the entries are slower.
    pub fn reads_late(&self) -> bool {
        self.tm > 16 && self.dtype != Dtype::F64
    }
}

/// The entries that take tiles of several problems through a ring of stages: `entry: element, variant, TM, TN, threads,
/// blocks an SM`.
#[macro_export]
macro_rules! batched_tile_variants {
    ($emit:ident) => {
        $emit! {
            // entry                   elem  variant TM TN threads blocks
            sbatched_packed_2x2_t128:  f32,  packed, 2, 2, 128,    4;
            sbatched_packed_4x4_t64:   f32,  packed, 4, 4, 64,     4;
            sbatched_packed_8x4_t64:   f32,  packed, 8, 4, 64,     4;
            sbatched_any_2x2_t128:     f32,  any,    2, 2, 128,    2;
            sbatched_any_8x4_t64:      f32,  any,    8, 4, 64,     4;
            dbatched_packed_2x2_t128:  f64,  packed, 2, 2, 128,    4;
            dbatched_packed_4x2_t128:  f64,  packed, 4, 2, 128,    2;
            dbatched_packed_4x4_t64:   f64,  packed, 4, 4, 64,     4;
            dbatched_any_2x2_t128:     f64,  any,    2, 2, 128,    2;
            dbatched_any_4x4_t64:      f64,  any,    4, 4, 64,     4;
            cbatched_packed_2x2_t128:  c64,  packed, 2, 2, 128,    4;
            cbatched_packed_4x4_t64:   c64,  packed, 4, 4, 64,     4;
            cbatched_any_2x2_t128:     c64,  any,    2, 2, 128,    2;
            cbatched_any_4x4_t64:      c64,  any,    4, 4, 64,     4;
            zbatched_packed_2x2_t128:  c128, packed, 2, 2, 128,    3;
            zbatched_packed_4x2_t128:  c128, packed, 4, 2, 128,    2;
            zbatched_any_2x2_t128:     c128, any,    2, 2, 128,    2;
            zbatched_any_4x2_t128:     c128, any,    4, 2, 128,    2;
        }
    };
}

macro_rules! tile_rows {
    ($($entry:ident: $elem:ident, $variant:ident, $tm:literal, $tn:literal, $threads:literal, $blocks:literal;)*) => {
        const TILE: &[Batched] = &[$(Batched {
            name: concat!("batched_", stringify!($variant)), entry: stringify!($entry), dtype: elem::$elem,
            tm: $tm, tn: $tn, parts: 1, across: 1, threads: $threads, min_blocks: $blocks,
        }),*];
    };
}
batched_tile_variants!(tile_rows);

/// The entries whose warps load and store the fragments of the matrix units themselves, from sm_90 on: `entry: element, MB, NB, KS,
/// AHEAD, threads, blocks an SM`; m and n up to 8·NB, k up to 8·KS, MB = ⌈NB / 2⌉.
#[macro_export]
macro_rules! batched_fragments_variants {
    ($emit:ident) => {
        $emit! {
            // entry                            elem MB NB KS AHEAD threads blocks
            dbatched_fragments_16x16_k16_t128:  f64, 1, 2, 2, 2,    128,    5;
            dbatched_fragments_24x24_k24_t64:   f64, 2, 3, 3, 3,    64,     4;
            dbatched_fragments_32x32_k32_t64:   f64, 2, 4, 4, 2,    64,     4;
        }
    };
}

macro_rules! fragment_rows {
    ($($entry:ident: $elem:ident, $mb:literal, $nb:literal, $ks:literal, $ahead:literal, $threads:literal, $blocks:literal;)*) => {
        const FRAGMENTS: &[Batched] = &[$(Batched {
            name: "batched_fragments", entry: stringify!($entry), dtype: elem::$elem,
            tm: 8 * $nb, tn: 8 * $ks, parts: 1, across: 1, threads: $threads, min_blocks: $blocks,
        }),*];
    };
}
batched_fragments_variants!(fragment_rows);

/// The entries whose warps have a product each, through shared memory of their own: `entry: element, TM, TN, threads, blocks an SM`; m and
/// n up to 4·TN, k up to 8·TM.
#[macro_export]
macro_rules! batched_warps_variants {
    ($emit:ident) => {
        $emit! {
            // entry                elem TM TN threads blocks
            sbatched_warps_4x6_t64: f32, 4, 6, 64,     6;
            sbatched_warps_4x8_t64: f32, 4, 8, 64,     6;
            cbatched_warps_2x4_t64: c64, 2, 4, 64,     8;
            cbatched_warps_4x6_t64: c64, 4, 6, 64,     4;
            cbatched_warps_4x8_t64: c64, 4, 8, 64,     3;
        }
    };
}

macro_rules! warp_rows {
    ($($entry:ident: $elem:ident, $tm:literal, $tn:literal, $threads:literal, $blocks:literal;)*) => {
        const WARPS: &[Batched] = &[$(Batched {
            name: "batched_warps", entry: stringify!($entry), dtype: elem::$elem,
            tm: 4 * $tn, tn: 8 * $tm, parts: 1, across: 1, threads: $threads, min_blocks: $blocks,
        }),*];
    };
}
batched_warps_variants!(warp_rows);

/// Those of complex elements: `entry: element, NB, KS, AHEAD, PARTS, threads, blocks an SM`; m and n up to 8·NB·PARTS, k up to 4·KS; a
/// warp has one of PARTS parts of C's columns, at most two.
#[macro_export]
macro_rules! batched_complex_fragments_variants {
    ($emit:ident) => {
        $emit! {
            // entry                            elem  NB KS AHEAD PARTS threads blocks
            zbatched_fragments_16x16_k16_t128:  c128, 2, 4, 2,    1,    128,    4;
            zbatched_fragments_24x24_k24_t64:   c128, 3, 6, 3,    1,    64,     4;
            zbatched_fragments_32x16_k32_t64:   c128, 2, 8, 2,    2,    64,     4;
        }
    };
}

macro_rules! complex_fragment_rows {
    ($($entry:ident: $elem:ident, $nb:literal, $ks:literal, $ahead:literal, $parts:literal, $threads:literal, $blocks:literal;)*) => {
        const COMPLEX_FRAGMENTS: &[Batched] = &[$(Batched {
            name: "batched_fragments", entry: stringify!($entry), dtype: elem::$elem,
            tm: 8 * $nb * $parts, tn: 4 * $ks, parts: $parts, across: $parts, threads: $threads, min_blocks: $blocks,
        }),*];
    };
}
batched_complex_fragments_variants!(complex_fragment_rows);

/// The entries whose warps copy whole matrices, of f64: `entry: element, MB, OCTETS, NB, DOWN, ACROSS, threads, blocks an SM`; m up to
/// 8·OCTETS·DOWN, n up to 8·NB·ACROSS, which are equal, k up to 32; DOWN x ACROSS warps are a block and have a problem.
#[macro_export]
macro_rules! batched_flat_real_variants {
    ($emit:ident) => {
        $emit! {
            // entry                   elem MB OCTETS NB DOWN ACROSS threads blocks
            dbatched_flat_16x16_t32:   f64, 1, 2,     2, 1,   1,     32,     16;
            dbatched_flat_16x16_t64:   f64, 1, 2,     1, 1,   2,     64,     10;
            dbatched_flat_24x24_t96:   f64, 2, 3,     1, 1,   3,     96,     5;
            dbatched_flat_32x32_t128:  f64, 1, 2,     2, 2,   2,     128,    4;
        }
    };
}

macro_rules! flat_real_rows {
    ($($entry:ident: $elem:ident, $mb:literal, $octets:literal, $nb:literal, $down:literal, $across:literal, $threads:literal, $blocks:literal;)*) => {
        const FLAT_REAL: &[Batched] = &[$(Batched {
            name: "batched_flat", entry: stringify!($entry), dtype: elem::$elem,
            tm: 8 * $octets * $down, tn: 32, parts: $down * $across, across: $across, threads: $threads, min_blocks: $blocks,
        }),*];
    };
}
batched_flat_real_variants!(flat_real_rows);

/// Those of c128: `entry: element, OCTETS, NB, DOWN, ACROSS, threads, blocks an SM`, as of f64.
#[macro_export]
macro_rules! batched_flat_complex_variants {
    ($emit:ident) => {
        $emit! {
            // entry                   elem  OCTETS NB DOWN ACROSS threads blocks
            zbatched_flat_16x16_t64:   c128, 2,     1, 1,   2,     64,     8;
            zbatched_flat_24x24_t96:   c128, 3,     1, 1,   3,     96,     5;
            zbatched_flat_32x32_t128:  c128, 2,     2, 2,   2,     128,    3;
        }
    };
}

macro_rules! flat_complex_rows {
    ($($entry:ident: $elem:ident, $octets:literal, $nb:literal, $down:literal, $across:literal, $threads:literal, $blocks:literal;)*) => {
        const FLAT_COMPLEX: &[Batched] = &[$(Batched {
            name: "batched_flat", entry: stringify!($entry), dtype: elem::$elem,
            tm: 8 * $octets * $down, tn: 32, parts: $down * $across, across: $across, threads: $threads, min_blocks: $blocks,
        }),*];
    };
}
batched_flat_complex_variants!(flat_complex_rows);

/// Those of f32 and c64, on the vector units: `entry: element, TM, TN, ACROSS, STEPS, threads, blocks an SM`; m and n up to
/// 8·TM = 4·TN·ACROSS, k up to 32; ACROSS warps are a block and have a problem; A and B of STEPS steps are in registers at a time, one or
/// two. For the GPUs that the others are for: they were measured on no older one.
#[macro_export]
macro_rules! batched_flat_lanes_variants {
    ($emit:ident) => {
        $emit! {
            // entry                   elem TM TN ACROSS STEPS threads blocks
            sbatched_flat_16x16_t32:   f32, 2, 4, 1,     1,     32,     24;
            sbatched_flat_24x24_t32:   f32, 3, 6, 1,     1,     32,     16;
            sbatched_flat_32x32_t32:   f32, 4, 8, 1,     2,     32,     12;
            sbatched_flat_32x32_t64:   f32, 4, 4, 2,     2,     64,     8;
            cbatched_flat_16x16_t32:   c64, 2, 4, 1,     1,     32,     16;
            cbatched_flat_24x24_t64:   c64, 3, 3, 2,     1,     64,     8;
            cbatched_flat_32x32_t64:   c64, 4, 4, 2,     2,     64,     6;
        }
    };
}

macro_rules! flat_lanes_rows {
    ($($entry:ident: $elem:ident, $tm:literal, $tn:literal, $across:literal, $steps:literal, $threads:literal, $blocks:literal;)*) => {
        const FLAT_LANES: &[Batched] = &[$(Batched {
            name: "batched_flat", entry: stringify!($entry), dtype: elem::$elem,
            tm: 8 * $tm, tn: 32, parts: $across, across: $across, threads: $threads, min_blocks: $blocks,
        }),*];
    };
}
batched_flat_lanes_variants!(flat_lanes_rows);

/// The entries that take problems that lie one behind the other by bulk copies: `entry: element, TM, TN, threads at most, blocks an SM`.
#[macro_export]
macro_rules! batched_bulk_variants {
    ($emit:ident) => {
        $emit! {
            // entry                   elem  TM  TN  threads blocks
            sbatched_bulk_1x2_t256:    f32,  1,  2,  256,    4;
            sbatched_bulk_3x3_t256:    f32,  3,  3,  256,    4;
            sbatched_bulk_3x4_t256:    f32,  3,  4,  256,    4;
            sbatched_bulk_4x4_t256:    f32,  4,  4,  256,    4;
            sbatched_bulk_5x4_t256:    f32,  5,  4,  256,    4;
            sbatched_bulk_7x4_t256:    f32,  7,  4,  256,    3;
            dbatched_bulk_1x2_t256:    f64,  1,  2,  256,    4;
            dbatched_bulk_2x2_t256:    f64,  2,  2,  256,    4;
            dbatched_bulk_3x3_t256:    f64,  3,  3,  256,    4;
            dbatched_bulk_3x4_t256:    f64,  3,  4,  256,    3;
            dbatched_bulk_5x4_t128:    f64,  5,  4,  128,    4;
            cbatched_bulk_2x2_t256:    c64,  2,  2,  256,    4;
            cbatched_bulk_2x4_t256:    c64,  2,  4,  256,    4;
            cbatched_bulk_3x3_t128:    c64,  3,  3,  128,    7;
            cbatched_bulk_3x4_t128:    c64,  3,  4,  128,    5;
            cbatched_bulk_5x4_t128:    c64,  5,  4,  128,    3;
            zbatched_bulk_1x2_t256:    c128, 1,  2,  256,    4;
            zbatched_bulk_3x2_t128:    c128, 3,  2,  128,    5;
        }
    };
}

macro_rules! bulk_rows {
    ($($entry:ident: $elem:ident, $tm:literal, $tn:literal, $threads:literal, $blocks:literal;)*) => {
        const BULK: &[Batched] = &[$(Batched {
            name: "batched_bulk", entry: stringify!($entry), dtype: elem::$elem,
            tm: $tm, tn: $tn, parts: 1, across: 1, threads: $threads, min_blocks: $blocks,
        }),*];
    };
}
batched_bulk_variants!(bulk_rows);

/// The entries that take these in one stage a block, over which C lies: `entry: element, TM, TN, steps before places are moved on, threads at most,
/// blocks an SM`. The tiles that were faster than all else of some size (benches/results/trials/by-runs.csv).
#[macro_export]
macro_rules! batched_over_variants {
    ($emit:ident) => {
        $emit! {
            // entry                   elem  TM  TN  steps threads blocks
            sbatched_over_7x7_t128:    f32,  7,  7,  1,    128,    4;
            sbatched_over_9x4_t128:    f32,  9,  4,  1,    128,    4;
            dbatched_over_3x5_t128:    f64,  3,  5,  1,    128,    4;
            dbatched_over_7x4_t128:    f64,  7,  4,  1,    128,    4;
            dbatched_over_15x2_t128:   f64,  15, 2,  4,    128,    4;
            cbatched_over_5x3_t128:    c64,  5,  3,  1,    128,    4;
            cbatched_over_5x5_t128:    c64,  5,  5,  1,    128,    4;
            cbatched_over_6x3_t128:    c64,  6,  3,  4,    128,    4;
            cbatched_over_7x3_t128:    c64,  7,  3,  4,    128,    4;
            cbatched_over_7x4_t128:    c64,  7,  4,  1,    128,    3;
            cbatched_over_8x4_t128:    c64,  8,  4,  4,    128,    4;
            cbatched_over_9x4_t128:    c64,  9,  4,  1,    128,    4;
            cbatched_over_11x3_t128:   c64,  11, 3,  1,    128,    4;
            cbatched_over_13x3_t128:   c64,  13, 3,  1,    128,    3;
            cbatched_over_15x2_t128:   c64,  15, 2,  4,    128,    3;
            zbatched_over_3x4_t128:    c128, 3,  4,  1,    128,    3;
            zbatched_over_5x3_t128:    c128, 5,  3,  1,    128,    3;
            zbatched_over_5x4_t128:    c128, 5,  4,  1,    128,    3;
        }
    };
}

macro_rules! over_rows {
    ($($entry:ident: $elem:ident, $tm:literal, $tn:literal, $steps:literal, $threads:literal, $blocks:literal;)*) => {
        const OVER: &[Batched] = &[$(Batched {
            name: "batched_over", entry: stringify!($entry), dtype: elem::$elem,
            tm: $tm, tn: $tn, parts: 1, across: 1, threads: $threads, min_blocks: $blocks,
        }),*];
    };
}
batched_over_variants!(over_rows);

/// The entries of MAGMA's paper: `entry: element, variant, threads at most`. In f32 and f64: the paper shows f64.
#[macro_export]
macro_rules! batched_paper_variants {
    ($emit:ident) => {
        $emit! {
            // entry                     elem  variant     threads
            sbatched_single_t1024:       f32,  single,     1024;
            sbatched_aggregated_t256:    f32,  aggregated, 256;
            sbatched_prefetch_t1024:     f32,  prefetch,   1024;
            sbatched_blocked_t256:       f32,  blocked,    256;
            dbatched_single_t1024:       f64,  single,     1024;
            dbatched_aggregated_t256:    f64,  aggregated, 256;
            dbatched_prefetch_t1024:     f64,  prefetch,   1024;
            dbatched_blocked_t256:       f64,  blocked,    256;
        }
    };
}

macro_rules! paper_rows {
    ($($entry:ident: $elem:ident, $variant:ident, $threads:literal;)*) => {
        const PAPER: &[Batched] = &[$(Batched {
            name: concat!("batched_", stringify!($variant)), entry: stringify!($entry), dtype: elem::$elem,
            tm: 1, tn: 1, parts: 1, across: 1, threads: $threads, min_blocks: 1,
        }),*];
    };
}
batched_paper_variants!(paper_rows);

/// Every entry of a batch.
pub const BATCHED: &[Batched] = &{
    const TABLES: [&[Batched]; 10] =
        [TILE, FRAGMENTS, COMPLEX_FRAGMENTS, FLAT_REAL, FLAT_COMPLEX, FLAT_LANES, BULK, OVER, WARPS, PAPER];
    const LEN: usize = {
        let (mut len, mut table) = (0, 0);
        while table < TABLES.len() {
            len += TABLES[table].len();
            table += 1;
        }
        len
    };
    let mut all = [TILE[0]; LEN];
    let (mut table, mut row, mut at) = (0, 0, 0);
    while at < all.len() {
        if row == TABLES[table].len() {
            (table, row) = (table + 1, 0);
        } else {
            all[at] = TABLES[table][row];
            (row, at) = (row + 1, at + 1);
        }
    }
    all
};

/// The oldest compute capability that has the instructions of the others.
pub const SINCE: (u32, u32) = (8, 0);
