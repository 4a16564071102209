//! TSM2L: A is tall, and k is as small as n.

use super::table3::{LARGEST_N, TSM2L_INTERLEAVED};
use super::{Parameters, Reasoning, b_traffic, tcf};
use crate::Dtype;
use crate::shape::{Operation, classify};

/// What a thread does with its tcf rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Algorithm 6, the first optimisation: one row after the other, each as TSM2R does it.
    Tiled,
    /// Algorithm 7, the second: all rows for each tile of B, with the next row's C on its way.
    Interleaved,
}

impl Algorithm {
    /// The number that the paper gives it.
    pub const fn number(self) -> u32 {
        match self {
            Algorithm::Tiled => 6,
            Algorithm::Interleaved => 7,
        }
    }
}

/// The steps of TSM2L for one product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tsm2l {
    /// Times that a thread fetches elements of A for a row: ⌈k / t3⌉. Few, and nothing hides the wait for the first.
    pub fetches: u64,
    /// tcf: rows a thread.
    pub tcf: u32,
    /// Threads: ⌈m / tcf⌉.
    pub threads: u64,
    /// Blocks of t1 threads.
    pub blocks: u64,
    /// Elements of B that Algorithm 6 reads: k·n for each t1 rows, as TSM2R does.
    pub tiled_b_traffic: u64,
    /// Elements of B that Algorithm 7 reads: k·n for each block, tcf times fewer.
    pub interleaved_b_traffic: u64,
    /// Times that Algorithm 7 loads and stores C: once for each tile of B, ⌈k / t1⌉. Algorithm 6: once.
    pub interleaved_c_passes: u64,
    /// Registers a thread of Algorithm 6: (1).
    pub tiled_registers: u32,
    /// Registers a thread of Algorithm 7 as printed, at n = 16; where Table 4 has none, and for more columns, (1) and t2 more
    /// elements for the next C.
    pub interleaved_registers: u32,
    /// The one that the authors' code launches.
    pub algorithm: Algorithm,
}

/// Whether a product is TSM2L's: what [`classify`] calls TSMM.
///
/// # Source
/// TSM2X says of TSM2L's products that k is as small as n, and no number: up to 64 is ours.
pub fn is_tsm2l(m: u64, n: u64, k: u64) -> bool {
    classify(m, n, k) == Operation::Tsmm
}

/// TSM2L's steps for C (m x n) = A (m x k) B (k x n), all at least 1, with the parameters and registers that `reasoning` has.
///
/// # Source
/// TSM2X, Algorithms 6 and 7, and Section 4.3 for tcf, of a V100; registers are Table 4's. Which of both is launched is from
/// the authors' code: the first in f32, the second in f64. The counts of traffic are reconstructed from the prose.
pub fn tsm2l(reasoning: &Reasoning, dtype: Dtype, [m, n, k]: [u64; 3]) -> Tsm2l {
    let Parameters { t1, t2, t3 } = reasoning.parameters;
    let tcf = tcf(dtype, m);
    let threads = m.div_ceil(u64::from(tcf));
    let blocks = threads.div_ceil(u64::from(t1.max(1)));
    let is_printed = |(of, of_t3, _): &&(Dtype, u32, u32)| (*of, *of_t3) == (dtype, t3) && n <= LARGEST_N;
    let printed = TSM2L_INTERLEAVED.iter().find(is_printed);
    let next_c = t2 * u32::try_from(dtype.bytes() / 4).unwrap_or(1);
    Tsm2l {
        fetches: k.div_ceil(u64::from(t3.max(1))),
        tcf,
        threads,
        blocks,
        tiled_b_traffic: b_traffic(m, n, k, t1),
        interleaved_b_traffic: k.saturating_mul(n).saturating_mul(blocks),
        interleaved_c_passes: k.div_ceil(u64::from(t1.max(1))),
        tiled_registers: reasoning.registers,
        interleaved_registers: printed.map_or(reasoning.registers + next_c, |(.., registers)| *registers),
        algorithm: if dtype == Dtype::F32 { Algorithm::Tiled } else { Algorithm::Interleaved },
    }
}

#[cfg(test)]
mod tests {
    use super::super::reason;
    use super::*;
    use crate::Machine;

    /// 1e7 rows in f64, k = n = 16: tcf = 4, t1 = 128, t3 = 12; 2 500 000 threads in 19 532 blocks, each of which reads B's
    /// 256 elements once instead of for each of 78 125 tiles of rows.
    #[test]
    fn a_v100s_tall_product_is_as_in_the_paper() {
        let sizes = [10_000_000, 16, 16];
        let found = tsm2l(&reason(&Machine::V100, Dtype::F64, sizes), Dtype::F64, sizes);
        assert_eq!((found.fetches, found.tcf, found.threads, found.blocks), (2, 4, 2_500_000, 19_532));
        assert_eq!((found.tiled_b_traffic, found.interleaved_b_traffic), (256 * 78_125, 256 * 19_532));
        assert_eq!((found.interleaved_c_passes, found.algorithm.number()), (1, 7));
        assert_eq!((found.tiled_registers, found.interleaved_registers), (168, 252));
        let sizes = [1_000_000, 16, 16];
        let found = tsm2l(&reason(&Machine::V100, Dtype::F32, sizes), Dtype::F32, sizes);
        assert_eq!((found.fetches, found.tcf, found.threads, found.algorithm), (1, 2, 500_000, Algorithm::Tiled));
        assert_eq!((found.tiled_registers, found.interleaved_registers), (144, 251));
    }

    /// 32 columns: 264 registers by (1), and 32 elements of the next C.
    #[test]
    fn table_4_ends_at_16_columns() {
        let sizes = [10_000_000, 32, 16];
        let found = tsm2l(&reason(&Machine::V100, Dtype::F64, sizes), Dtype::F64, sizes);
        assert_eq!((found.tiled_registers, found.interleaved_registers), (264, 264 + 64));
    }

    #[test]
    fn a_gpu_that_the_paper_has_not_gets_the_next_c_more() {
        let sizes = [100_000, 8, 8];
        let reasoning = reason(&Machine::H200, Dtype::F64, sizes);
        let found = tsm2l(&reasoning, Dtype::F64, sizes);
        assert_eq!(found.interleaved_registers, reasoning.registers + 2 * reasoning.parameters.t2);
        assert_eq!((found.tcf, found.tiled_b_traffic), (1, found.interleaved_b_traffic));
    }

    #[test]
    fn k_too_must_be_small() {
        assert!(is_tsm2l(1_000_000, 16, 16) && is_tsm2l(1_000_000, 64, 64));
        assert!(!is_tsm2l(1_000_000, 16, 65) && !is_tsm2l(20_480, 16, 20_480) && !is_tsm2l(1_000_000, 1, 16));
    }
}
