//! The entries of batches of small products.

use super::elem;
use crate::{Dtype, Machine};

/// How an entry computes a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// Ours: tiles of several problems through a ring of stages.
    Tile,
    /// MAGMA's: one product a block, a thread an element.
    Single,
    /// Several products a block.
    Aggregated,
    /// Blocks take products in turn, the next one's elements in registers.
    Prefetch,
    /// One product a block in four parts, a thread four elements.
    Blocked,
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
    /// Rows of C a thread.
    pub tm: u32,
    /// Columns of C a thread.
    pub tn: u32,
    /// Threads a block.
    pub threads: u32,
    /// Blocks an SM for which registers are allotted.
    pub min_blocks: u32,
}

impl Batched {
    /// Whether it takes packed batches alone.
    pub const fn is_packed(&self) -> bool {
        matches!(self.name.as_bytes(), b"batched_packed")
    }

    /// 32-bit registers a thread, as the assembler allotted them for the nearest architecture, or as launch bounds allow.
    pub fn registers(&self, machine: &Machine) -> u32 {
        let most = (machine.registers_per_sm / (self.threads * self.min_blocks.max(1)) / 8 * 8).min(255);
        crate::occupancy::registers_of(self.entry, machine).unwrap_or(most)
    }

    /// Which of the designs it is.
    pub const fn design(&self) -> Design {
        match self.name.as_bytes() {
            b"batched_single" => Design::Single,
            b"batched_aggregated" => Design::Aggregated,
            b"batched_prefetch" => Design::Prefetch,
            b"batched_blocked" => Design::Blocked,
            _ => Design::Tile,
        }
    }

    /// The threads that compute one product: of m x n sums, or of [`Design::Blocked`] a square of half of the longest side.
    pub fn owners(&self, m: u32, n: u32, k: u32) -> u32 {
        match self.design() {
            Design::Blocked => m.max(n).max(k).div_ceil(2).pow(2),
            _ => m.div_ceil(self.tm) * n.div_ceil(self.tn),
        }
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
            tm: $tm, tn: $tn, threads: $threads, min_blocks: $blocks,
        }),*];
    };
}
batched_tile_variants!(tile_rows);

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
            tm: 1, tn: 1, threads: $threads, min_blocks: 1,
        }),*];
    };
}
batched_paper_variants!(paper_rows);

/// Every entry of a batch.
pub const BATCHED: &[Batched] = &{
    let mut all = [TILE[0]; TILE.len() + PAPER.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = if at < TILE.len() { TILE[at] } else { PAPER[at - TILE.len()] };
        at += 1;
    }
    all
};

/// The oldest compute capability that has their instructions.
pub const SINCE: (u32, u32) = (8, 0);
