//! Sørensen's matrix-vector product: how many threads a row, how many rows a thread, and the grid that follows.
//!
//! # Source
//! H. H. B. Sørensen, High-performance matrix-vector multiplication on the GPU, Euro-Par 2011 Workshops, LNCS 7155.
//! y = A x with A m x n, column-major, f32, on a Tesla C2050. Its letters are kept: its m and n are our m and k, and our
//! n is 1. Divisions of the paper's grids round down; all is printed there, nothing is reconstructed.

use crate::Machine;

/// The kernels of Fig. 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// (a): a thread a row.
    OneThreadPerRow,
    /// (b): blocks share rows and add up by atomics.
    SeveralThreadsPerRow,
    /// (c): a thread has several rows, so that x is read from shared memory less often.
    SeveralRowsPerThread,
    /// (d): both; contains the three before.
    Versatile,
    /// (e): threads of a block run along the columns, for matrices lower than a block. Its grid is not printed.
    SeveralColumns,
}

/// A launch's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// BLOCKSIZE: threads a block, and elements of x in shared memory.
    pub block: u64,
    /// WORKSIZE_m: rows a thread.
    pub rows: u64,
    /// WORKSIZE_n: chunks of BLOCKSIZE elements of a row a thread.
    pub chunks: u64,
}

/// (GRIDSIZE_m, GRIDSIZE_n) of a kernel for an m x n matrix; `None` for [`Kernel::SeveralColumns`].
///
/// GRIDSIZE_m = (m + BLOCKSIZE·WORKSIZE_m - 1) / (BLOCKSIZE·WORKSIZE_m), and so with n; a kernel without one of the
/// parameters has it at 1, and one that does not share rows has one column of blocks.
///
/// # Source
/// Sørensen, Sections 3.1 to 3.3 and 3.5.
pub const fn grid(kernel: Kernel, m: u64, n: u64, work: Work) -> Option<(u64, u64)> {
    let (rows, shares) = match kernel {
        Kernel::OneThreadPerRow => (1, false),
        Kernel::SeveralThreadsPerRow => (1, true),
        Kernel::SeveralRowsPerThread => (work.rows, false),
        Kernel::Versatile => (work.rows, true),
        Kernel::SeveralColumns => return None,
    };
    let down = m.div_ceil(work.block * rows);
    Some((down, if shares { n.div_ceil(work.block * work.chunks) } else { 1 }))
}

/// Rows that fill a GPU with a thread each: threads an SM · SMs.
///
/// # Source
/// Sørensen, Section 3.1: 1536 · 14 = 21504.
pub fn rows_for_full_occupancy(machine: &Machine) -> u64 {
    u64::from(machine.threads_per_sm) * u64::from(machine.sms)
}

/// Blocks that fill a GPU: blocks an SM · SMs.
///
/// # Source
/// Sørensen, Section 3.2: 8 · 14 = 112.
pub fn blocks_for_full_utilisation(machine: &Machine) -> u64 {
    u64::from(machine.blocks_per_sm) * u64::from(machine.sms)
}

/// Columns below which a thread a row is soon done, however few there are.
const FEW_COLUMNS: u64 = 100;
/// Rows below which threads of a block run along the columns.
const FEW_ROWS: u64 = 50;

/// The kernel that suits a shape by the paper's rules of thumb.
///
/// # Source
/// Sørensen, Sections 3.1 to 3.4. The order of the rules where several apply is ours. Tuning replaces them: over its
/// mesh, the paper found no pattern in the best parameters.
pub fn suits(m: u64, n: u64, machine: &Machine) -> Kernel {
    if m >= rows_for_full_occupancy(machine) {
        Kernel::SeveralRowsPerThread
    } else if n < FEW_COLUMNS {
        Kernel::OneThreadPerRow
    } else if m < FEW_ROWS {
        Kernel::SeveralColumns
    } else {
        Kernel::SeveralThreadsPerRow
    }
}

/// Configurations that are timed in each cell of the tuning mesh: kernels · block sizes · rows · chunks.
///
/// # Source
/// Sørensen, Section 4.1: 3 kernels, BLOCKSIZE in 32, 64 .. 256, WORKSIZE_m and WORKSIZE_n in 1 .. 8.
pub const CONFIGURATIONS: u32 = 3 * 8 * 8 * 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_c2050_is_full_of_21504_rows_and_112_blocks() {
        assert_eq!(rows_for_full_occupancy(&Machine::C2050), 21_504);
        assert_eq!(blocks_for_full_utilisation(&Machine::C2050), 112);
        assert_eq!(rows_for_full_occupancy(&Machine::H200), 270_336);
        assert_eq!(CONFIGURATIONS, 1536);
    }

    /// Fig. 2: four slices of rows; with WORKSIZE_n = 3, two columns of blocks.
    #[test]
    fn grids_are_the_figures() {
        let work = Work { block: 64, rows: 2, chunks: 3 };
        let (m, n) = (4 * 64 - 5, 64 * 3 + 1);
        assert_eq!(grid(Kernel::OneThreadPerRow, m, n, work), Some((4, 1)));
        assert_eq!(grid(Kernel::SeveralThreadsPerRow, m, n, work), Some((4, 2)));
        assert_eq!(grid(Kernel::SeveralRowsPerThread, m, n, work), Some((2, 1)));
        assert_eq!(grid(Kernel::Versatile, m, n, work), Some((2, 2)));
        assert_eq!(grid(Kernel::SeveralColumns, m, n, work), None);
    }

    #[test]
    fn the_versatile_grid_contains_the_others() {
        for (m, n) in [(1, 1), (63, 64), (64, 65), (1000, 333)] {
            let one = Work { block: 64, rows: 1, chunks: 1 };
            assert_eq!(grid(Kernel::Versatile, m, n, one), grid(Kernel::SeveralThreadsPerRow, m, n, one));
            let whole = Work { chunks: n, ..one };
            assert_eq!(grid(Kernel::Versatile, m, n, whole), grid(Kernel::OneThreadPerRow, m, n, whole));
        }
    }

    #[test]
    fn rules_of_thumb_turn_where_the_paper_says() {
        let suits = |m, n| suits(m, n, &Machine::C2050);
        assert_eq!(suits(21_504, 1000), Kernel::SeveralRowsPerThread);
        assert_eq!(suits(21_503, 1000), Kernel::SeveralThreadsPerRow);
        assert_eq!(suits(21_503, 99), Kernel::OneThreadPerRow);
        assert_eq!(suits(49, 10_000), Kernel::SeveralColumns);
        assert_eq!(suits(10, 10), Kernel::OneThreadPerRow);
    }

    /// Section 3.3: with at least 192 threads a block, 8 blocks fill an SM of a C2050.
    #[test]
    fn blocks_of_192_threads_fill_a_c2050() {
        let occupancy =
            |threads| crate::occupancy::residency(&Machine::C2050, threads, 20, threads * 4).occupancy(&Machine::C2050);
        assert_eq!(occupancy(192), 1.0);
        assert!(occupancy(160) < 1.0);
    }
}
