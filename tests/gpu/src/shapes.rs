//! Sizes at which kernels have edges, from the table of variants: what is added there is tried here.

use model::launch::tiling;
use model::variants::{GEMM_BK, GEMM_SIDE};
use model::{Dtype, Kernel, VARIANTS};
use std::collections::BTreeSet;

/// m, n and k.
pub type Size = (usize, usize, usize);

/// T − 1, T, T + 1 for the tiles T of every entry of an element type.
pub struct Edges {
    /// Of rows (t1), and of a warp.
    pub rows: Vec<usize>,
    /// Of columns (t2).
    pub cols: Vec<usize>,
    /// Of steps of k (t3, and the rows of B's tile).
    pub steps: Vec<usize>,
    /// Of both sides of the tiles of products of any shape.
    pub sides: Vec<(usize, usize)>,
}

fn around(tiles: impl Iterator<Item = u32>) -> Vec<usize> {
    let all: BTreeSet<usize> = tiles.flat_map(|t| [t - 1, t, t + 1]).map(|t| t as usize).collect();
    all.into_iter().filter(|&t| t > 0).collect()
}

/// Around both sides of each tile.
fn pairs(tiles: impl Iterator<Item = (u32, u32)>) -> Vec<(usize, usize)> {
    let near = |t: u32| around([t].into_iter());
    let both = |(m, n)| near(m).into_iter().flat_map(move |m| near(n).into_iter().map(move |n| (m, n)));
    let all: BTreeSet<(usize, usize)> = tiles.flat_map(both).collect();
    all.into_iter().collect()
}

impl Edges {
    /// For an element type.
    pub fn of(dtype: Dtype) -> Edges {
        let entries = || VARIANTS.iter().filter(move |v| v.dtype == dtype);
        // Those of a tall A have edges of their own: `check::tsmm`.
        let tsm2r = || entries().filter(|v| matches!(v.kernel, Kernel::Tsm2r | Kernel::Ring));
        let gemm = || entries().filter(|v| v.kernel == Kernel::Gemm);
        let squares = || entries().filter(|v| matches!(v.kernel, Kernel::GemmRing | Kernel::Ladder));
        Edges {
            rows: around([32].into_iter().chain(tsm2r().map(|v| v.rows))),
            cols: around(tsm2r().map(|v| v.t2)),
            steps: around(
                tsm2r().flat_map(|v| [v.t3, tiling(v, 1, 1).k_step]).chain([GEMM_BK]).chain(squares().map(|v| v.t3)),
            ),
            sides: pairs(gemm().map(|v| (v.t3 * GEMM_SIDE, v.t2 * GEMM_SIDE)).chain(squares().map(|v| (v.rows, v.t2)))),
        }
    }

    /// Every pair of edges of two of m, n and k, with ordinary values of the third; and the same with m and n exchanged.
    pub fn sizes(&self) -> Vec<Size> {
        let mut sizes = Vec::new();
        for &m in &self.rows {
            sizes.extend(self.cols.iter().flat_map(|&n| [(m, n, 5), (m, n, 131), (n, m, 67)]));
            sizes.extend(self.steps.iter().flat_map(|&k| [(m, 3, k), (m, 11, k)]));
        }
        for &n in &self.cols {
            sizes.extend(self.steps.iter().flat_map(|&k| [(37, n, k), (130, n, k)]));
        }
        // Less than a stage of k, and more than a ring has.
        sizes.extend(self.sides.iter().flat_map(|&(m, n)| [(m, n, 19), (m, n, 131)]));
        sizes.extend(PRIMES);
        sizes
    }
}

/// Nothing divides anything.
const PRIMES: [Size; 8] =
    [(1, 1, 1), (2, 1, 3), (61, 13, 251), (127, 31, 509), (13, 61, 251), (251, 7, 1021), (1, 61, 127), (257, 1, 127)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_surround_every_tile() {
        for v in VARIANTS.iter().filter(|v| !v.is_reduced()) {
            let edges = Edges::of(v.dtype);
            let has =
                |edges: &[usize], tile: u32| (tile - 1..=tile + 1).all(|t| t == 0 || edges.contains(&(t as usize)));
            let tiled = |rows: u32, cols: u32| {
                let near = |t: u32| (t - 1..=t + 1).filter(|&t| t > 0).map(|t| t as usize);
                near(rows).all(|m| near(cols).all(|n| edges.sides.contains(&(m, n))))
            };
            match v.kernel {
                Kernel::Tsm2r => {
                    assert!(has(&edges.rows, v.threads) && has(&edges.cols, v.t2) && has(&edges.steps, v.t3));
                    assert!(has(&edges.steps, tiling(v, 1, 1).k_step), "{}", v.entry);
                }
                Kernel::Ring => {
                    assert!(
                        has(&edges.rows, v.rows) && has(&edges.cols, v.t2) && has(&edges.steps, v.t3),
                        "{}",
                        v.entry
                    )
                }
                Kernel::Tsmm | Kernel::Tall => {}
                Kernel::Gemm => assert!(tiled(v.t3 * GEMM_SIDE, v.t2 * GEMM_SIDE) && has(&edges.steps, GEMM_BK)),
                Kernel::GemmRing | Kernel::Ladder => {
                    assert!(tiled(v.rows, v.t2) && has(&edges.steps, v.t3))
                }
                Kernel::Tsmttsm | Kernel::Gram | Kernel::Gemv => {}
            }
            assert!(edges.sizes().len() < 3300, "{} sizes take too long", edges.sizes().len());
        }
    }
}
