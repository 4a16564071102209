//! `tsm2r_split`: A and B through a ring of stages, f32 multiplied by the matrix units, each element in two parts. For who asks.
//!
//! # Idea
//! The matrix units take f32 whose last 13 bits they drop, and multiply them several times as fast as the vector units multiply whole ones. An element
//! x is x₁ + x₂: x₁ is x rounded to the 11 bits that they look at, x₂ what is left of it, of which they drop a bit at most. Three products then
//! are a b but for a₂ b₂ and those bits, 2⁻²¹ of it: a₁ b₂ + a₂ b₁ + a₁ b₁. They round sums towards 0, so only the sums of 16 steps, which start
//! at 0, are theirs; these are added by the vector units, rounded to the nearest: a 16th of the roundings of fused multiply-adds. Of random numbers errors were
//! 0.5 to 1.3 times cuBLAS's in the root of the mean square (benches/results/trials/split-errors.csv).
//!
//! Elements are whole in shared memory, and split by who loads them: a warp has all columns of the block, so A's are split once, B's by every warp.
//! Measured on an H200 on 2026-11-30 at m = k = 20480, 48 columns: 726 us where whole elements take 915 and cuBLAS 1219; by rows 735, 1073 and 1596
//! (benches/results/h200/split-variants.csv). What limits it is power: 700 W, at 1.7 to 1.8 GHz.
//!
//! # Not finite
//! A NaN makes NaN, as it does elsewhere. So does what is infinite, or rounds to it, from 2¹²⁸ (1 - 2⁻¹²) on: the rest of it is no number.
//!
//! # Thread mapping
//! As of [`super::mma`], with twice as many elements in 16 bytes: lane (g, q) takes steps 4q .. 4q + 3 of 16, two for each of two products. By columns of A
//! a load brings four rows of a step, 4g .. 4g + 3 of 32: two tiles' rows, two each.
//!
//! # Source
//! Ootomo and Yokota, Int. J. High Perform. Comput. Appl. 36 (2022): three products, and sums that the units do not round.

use super::ring::{Ring, Stage, Steps, Tile, tile_of_c};
use crate::gemm::epilogue::write;
use crate::product::Product;
use crate::slots::join;
use core::marker::PhantomData;
use cuda_std::prelude::*;

/// Elements in 16 bytes, which are a lane's steps of 16.
const WIDTH: usize = 4;
/// Steps of k that the matrix units add up.
const SUMMED: u32 = 16;
/// Most tiles across for whose sums of 16 steps there are registers.
const MOST: usize = 4;

/// The sums of a warp of a block of shape S: RB x NT tiles of 16 x 8.
pub struct Split<S, const RB: usize, const NT: usize> {
    rc: [[[f32; 4]; NT]; RB], // (RB, NT) tiles
    /// Where this lane's elements of the first tiles, at even and at odd steps, start in A's and B's part of a stage.
    a: [u32; 2],
    b: [u32; 2],
    shape: PhantomData<S>,
}

/// Elements, each in two: what the matrix units look at of it, and the rest.
#[derive(Clone, Copy)]
pub struct Halves<const N: usize> {
    /// To the nearest.
    pub first: [f32; N],
    /// Of which the matrix units drop a bit at most.
    pub rest: [f32; N],
}

impl<const N: usize> Halves<N> {
    /// The halves of these, whose sums they are exactly.
    #[inline(always)]
    pub fn of(whole: [f32; N]) -> Self {
        let first = core::array::from_fn(|i| rounded(whole[i]));
        Self { first, rest: core::array::from_fn(|i| whole[i] - first[i]) }
    }
}

/// x to the 11 bits that the matrix units look at, to the nearest, ties away from 0.
#[inline(always)]
fn rounded(x: f32) -> f32 {
    f32::from_bits(x.to_bits().wrapping_add(1 << 12) & !((1 << 13) - 1))
}

impl<S: Tile, const RB: usize, const NT: usize> Split<S, RB, NT> {
    const OK: () = {
        assert!(S::KT % (2 * SUMMED) == 0, "even and odd steps");
        assert!(S::BN == 8 * NT as u32, "a warp has all of the block's columns");
        assert!(S::THREADS / 32 * 16 * RB as u32 == S::BM, "the warps' sums are the block's");
        assert!(S::A_BY_ROWS || RB % 2 == 0, "a load brings rows of two tiles");
        assert!(NT % Self::TOGETHER == 0, "whole groups of tiles");
    };

    /// Tiles across whose products take turns.
    const TOGETHER: usize = if NT <= MOST { NT } else { 2 };

    /// # Safety
    /// Launched with THREADS threads a block, `model::launch::tiling`'s shared memory, and operands that span their
    /// elements.
    #[inline(always)]
    pub unsafe fn body(x: Product<f32>) {
        const { Self::OK };
        let (warp, lane) = (thread::thread_idx_x() / warp::WARP_LANES, thread::thread_idx_x() % warp::WARP_LANES);
        let (g, q) = (lane / 4, lane % 4);
        let row = warp * 16 * RB as u32;
        let own = if S::A_BY_ROWS { g } else { 4 * g };
        // SAFETY: the caller's promise; all lanes of the warp are here.
        unsafe {
            let mut sums = Self {
                rc: [[[0.0; 4]; NT]; RB],
                a: Ring::<f32, S, true>::places(|l| Ring::<f32, S, true>::at(row + own, 4 * q + l), SUMMED),
                b: Ring::<f32, S, true>::places(|l| Ring::<f32, S, true>::b_at(4 * q + l, g), SUMMED),
                shape: PhantomData,
            };
            Ring::<f32, S, true>::run(&x, &mut sums);
            let mut rc = [sums.rc];
            if x.slot_len == 0 && !join(&x, S::THREADS, tile_of_c(), &mut rc) {
                return;
            }
            let [rc] = rc;
            let (start, first) = (thread::block_idx_x() * S::BM + row, thread::block_idx_z() * S::BN + 2 * q);
            for j in 0..NT {
                let col = |s| first + 8 * j as u32 + s as u32;
                if S::A_BY_ROWS {
                    for i in 0..RB {
                        let [c00, c01, c10, c11] = rc[i][j];
                        x.write_tile(|r| start + 16 * i as u32 + g + 8 * r as u32, col, [[c00, c01], [c10, c11]]);
                    }
                } else {
                    // Two tiles have four rows that lie side by side.
                    for i in (0..RB).step_by(2) {
                        let [[c00, c01, c10, c11], [c20, c21, c30, c31]] = [rc[i][j], rc[i + 1][j]];
                        let sums = [[c00, c01], [c10, c11], [c20, c21], [c30, c31]];
                        write(&x, |r| start + 16 * i as u32 + 4 * g + r as u32, col, sums);
                    }
                }
            }
        }
    }
}

/// A step is 16 steps of k: four of each lane's. A's elements are rows of a step, or steps of a row, by what 16 bytes hold.
impl<S: Tile, const RB: usize, const NT: usize> Steps<f32> for Split<S, RB, NT> {
    const COUNT: u32 = S::KT / SUMMED;
    const AHEAD: bool = true;
    const TAKES_TURNS: bool = true;
    type Operands = ([[[f32; WIDTH]; 2]; RB], [[f32; WIDTH]; NT]);
    const ZEROS: Self::Operands = ([[[0.0; WIDTH]; 2]; RB], [[0.0; WIDTH]; NT]);

    #[inline(always)]
    unsafe fn load(&self, stage: Stage<f32>, step: u32) -> Self::Operands {
        let pitch = Ring::<f32, S, true>::PITCH;
        let half = step % 2;
        let (sa, sb) = (stage.a.starting_at(self.a[half as usize]), stage.b.starting_at(self.b[half as usize]));
        let l = step / 2 * 2 * SUMMED + Ring::<f32, S, true>::rest(half * SUMMED); // and this lane's 4 · q
        // By columns two tiles share their four loads, two steps each.
        let load = |i: u32, v: u32| {
            // SAFETY: the step is inside the stage, and so are the warp's rows.
            unsafe {
                if S::A_BY_ROWS {
                    sa.load_wide((16 * i + 8 * v) * pitch + l)
                } else {
                    sa.load_wide((l + i % 2 * 2 + v) * S::BM + i / 2 * 32)
                }
            }
        };
        let ra = core::array::from_fn(|i| core::array::from_fn(|v| load(i as u32, v as u32)));
        // SAFETY: the same of the warp's columns.
        let rb = core::array::from_fn(|j| unsafe { sb.load_wide(Ring::<f32, S, true>::b_at(0, 8 * j as u32) + l) });
        (ra, rb)
    }

    #[inline(always)]
    unsafe fn multiply(&mut self, (ra, rb_whole): Self::Operands) {
        // Tile i's fragments of both products: rows g and g + 8 of a step, then of the next.
        let fragment = |i: usize, half: usize| {
            Halves::of(if S::A_BY_ROWS {
                let [a, b] = ra[i];
                [a[2 * half], b[2 * half], a[2 * half + 1], b[2 * half + 1]]
            } else {
                let [a, b] = ra[i / 2 * 2 + half];
                let own = i % 2 * 2;
                [a[own], a[own + 1], b[own], b[own + 1]]
            })
        };
        let ra: [[Halves<4>; 2]; RB] = core::array::from_fn(|i| core::array::from_fn(|half| fragment(i, half)));
        for first in (0..NT).step_by(Self::TOGETHER) {
            let (mut rb, mut sums) = ([[Halves::<2>::of([0.0; 2]); 2]; MOST], [[[0.0; 4]; MOST]; RB]);
            for j in 0..Self::TOGETHER {
                for half in 0..2 {
                    rb[j][half] = Halves::of([rb_whole[first + j][2 * half], rb_whole[first + j][2 * half + 1]]);
                }
            }
            // The small products first. A tile's wait for each other: tiles take turns.
            for product in 0..6 {
                let half = product % 2;
                for j in 0..Self::TOGETHER {
                    for i in 0..RB {
                        let (a, b) = (ra[i][half], rb[j][half]);
                        let (a, b) = match product / 2 {
                            0 => (a.rest, b.first),
                            1 => (a.first, b.rest),
                            _ => (a.first, b.first),
                        };
                        // SAFETY: promised by the caller.
                        sums[i][j] = unsafe { ptx::mma_m16n8k8_tf32(a, b, sums[i][j]) };
                    }
                }
            }
            for j in 0..Self::TOGETHER {
                for i in 0..RB {
                    for e in 0..4 {
                        self.rc[i][first + j][e] += sums[i][j][e];
                    }
                }
            }
        }
    }
}
