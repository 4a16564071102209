//! `tsmm_fragments`: A and C between device memory and the registers of the matrix units: f64, from sm_90 on.
//!
//! # Idea
//! A fragment of `mma.m16n8k16` is 16 rows of A by 16 steps of k, of which a lane holds two rows at steps q, q + 4, q + 8 and q +
//! 12: what the lanes of a warp load at once are whole sectors of eight rows, or of four columns, wherever they start. So A needs no way
//! through shared memory, and warps need no barriers: each streams tiles of its own. A fragment of the next tile is asked for
//! as soon as the one in its registers is multiplied. B is in shared memory in the order in which lanes want it.
//!
//! # Thread mapping
//! A warp owns 16 rows and all columns of a tile; warps take tiles in turn. Lane (g, q) = (lane / 4, lane % 4) holds rows g
//! and g + 8 of A, and of each 16 x 8 tile of C columns 2q and 2q + 1 of these rows.

use crate::product::Product;
use cuda_std::prelude::*;

/// Rows of a warp's tile.
const ROWS: u32 = 16;
/// Columns of C of a fragment.
const COLS: u32 = 8;
/// Steps of k of a fragment.
const STEPS: u32 = 16;
/// Elements of B of a fragment.
const B_LEN: u32 = STEPS * COLS;
/// Fragments of C whose old values are asked for together.
const TOGETHER: usize = 2;

/// # Safety
/// Launched with 32·WARPS threads a block, `model::launch::tiling`'s shared memory and at most as many blocks as there are
/// tiles; k <= 16·KS, n <= 8·NT, and operands that span their elements.
#[inline(always)]
pub unsafe fn body<const WARPS: usize, const NT: usize, const KS: usize>(x: Product<f64>) {
    let (own, threads) = (thread::thread_idx_x(), 32 * WARPS as u32);
    let sb = Shared::<f64>::at(0); // (KS, NT, 2 halves, 32 lanes, 2 steps)
    for at in (own..KS as u32 * NT as u32 * B_LEN).step_by(threads as usize) {
        let (fragment, step, lane) = (at / B_LEN, at / 64 % 2 * 2 + at % 2, at / 2 % 32);
        let (l, col) = (fragment / NT as u32 * STEPS + lane % 4 + 4 * step, fragment % NT as u32 * COLS + lane / 4);
        // SAFETY: `x.b` guards; inside of B's part of the memory.
        unsafe { sb.store(at, x.b(l, col, x.k)) };
    }
    thread::sync_threads(); // B is whole
    let warp = Warp { x: &x, g: own % 32 / 4, q: own % 4, sb: sb.starting_at(own % 32 * 2) };
    let (tiles, turn) = (x.m.div_ceil(ROWS), thread::grid_dim_x() * WARPS as u32);
    let mut tile = thread::block_idx_x() * WARPS as u32 + own / 32;
    // SAFETY: fragments guard; all lanes of the warp are here.
    unsafe {
        let mut ahead = warp.lanes(tile);
        let mut ra: [[f64; 8]; KS] = core::array::from_fn(|_| ahead.fragment());
        while tile < tiles {
            let mut rc = [[0.0; 4]; NT];
            ahead = warp.lanes(tile + turn);
            for s in 0..KS {
                let now = ra[s];
                ra[s] = ahead.fragment();
                for j in 0..NT {
                    rc[j] = ptx::mma_m16n8k16_f64(now, warp.b((s * NT + j) as u32), rc[j]);
                }
            }
            warp.write(tile, rc);
            tile += turn;
        }
    }
}

/// A warp's part of a product.
struct Warp<'a> {
    x: &'a Product<f64>,
    g: u32,
    q: u32,
    /// This lane's part of the first fragment of B.
    sb: Shared<f64>,
}

impl Warp<'_> {
    /// This lane's rows of a tile.
    #[inline(always)]
    fn rows(&self, tile: u32) -> [u32; 2] {
        [tile * ROWS + self.g, tile * ROWS + self.g + 8]
    }

    /// Where this lane's part of a tile of A begins.
    #[inline(always)]
    fn lanes(&self, tile: u32) -> Lane {
        let x = self.x;
        let at = |row: u32| x.a.starting_at(row as u64 * x.a_row + self.q as u64 * x.a_col);
        let rows = self.rows(tile).map(|row| (if row < x.m { x.k } else { 0 }, at(row)));
        Lane { rows, l: self.q, four_on: 4 * x.a_col }
    }

    /// This lane's part of a fragment of B.
    ///
    /// # Safety
    /// It is one of B's, and stored.
    #[inline(always)]
    unsafe fn b(&self, fragment: u32) -> [f64; 4] {
        // SAFETY: promised by the caller.
        let ([b0, b1], [b2, b3]) =
            unsafe { (self.sb.load_wide(fragment * B_LEN), self.sb.load_wide(fragment * B_LEN + B_LEN / 2)) };
        [b0, b1, b2, b3]
    }

    /// C ← α · sums + β · C, for a tile.
    ///
    /// # Safety
    /// C spans its elements; the tile is this warp's.
    #[inline(always)]
    unsafe fn write<const NT: usize>(&self, tile: u32, sums: [[f64; 4]; NT]) {
        let (x, rows) = (self.x, self.rows(tile));
        // Both columns of a lane are 16 bytes of a row.
        let by_16_bytes = x.c.is_aligned(16) && x.c_col == 1 && x.c_row % 2 == 0 && x.n % 2 == 0;
        let starts = rows.map(|row| row as u64 * x.c_row);
        let is_read = !x.beta.is_zero();
        for first in (0..NT).step_by(TOGETHER) {
            let col = |j: usize| (first + j) as u32 * COLS + 2 * self.q;
            let place = |j: usize, e: usize| (starts[e / 2], col(j) + e as u32 % 2);
            let inside = |j: usize, e: usize| rows[e / 2] < x.m && place(j, e).1 < x.n;
            let mut old = [[0.0; 4]; TOGETHER];
            if is_read {
                for j in 0..TOGETHER.min(NT - first) {
                    for e in 0..4 {
                        if inside(j, e) {
                            let (start, col) = place(j, e);
                            // SAFETY: an element of C.
                            old[j][e] = x.beta * unsafe { x.c.load(start + col as u64 * x.c_col) };
                        }
                    }
                }
            }
            for j in 0..TOGETHER.min(NT - first) {
                let scaled = |e: usize| {
                    let sum = sums[first + j][e];
                    if is_read { x.alpha.fma(sum, old[j][e]) } else { x.alpha * sum }
                };
                for e in [0, 2] {
                    let (start, col) = place(j, e);
                    // SAFETY: elements of C, this lane's.
                    unsafe {
                        if by_16_bytes {
                            if inside(j, e) {
                                x.c.store_wide(start + col as u64, |v| scaled(e + v));
                            }
                        } else {
                            for v in 0..2 {
                                if inside(j, e + v) {
                                    x.c.store(start + (col + v as u32) as u64 * x.c_col, scaled(e + v));
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A lane's part of a tile of A, from some step on.
struct Lane {
    /// Its rows: the steps that they have, none of rows outside of A, and from where on.
    rows: [(u32, Global<f64>); 2],
    /// The step.
    l: u32,
    /// Elements from a step to the fourth after it.
    four_on: u64,
}

impl Lane {
    /// Its part of the next fragment, zeros for what A does not have.
    ///
    /// # Safety
    /// A spans its elements.
    #[inline(always)]
    unsafe fn fragment(&mut self) -> [f64; 8] {
        let mut ra = [0.0; 8];
        for i in 0..4 {
            for e in 0..2 {
                let (steps, from) = self.rows[e];
                // SAFETY: a row and a step of A.
                ra[2 * i + e] = unsafe { from.stream_if(self.l < steps, 0) };
                self.rows[e].1 = from.starting_at(self.four_on);
            }
            self.l += 4;
        }
        ra
    }
}
