//! `tsm2r_mma` of complex elements: c128, from sm_90 on.
//!
//! # Idea
//! That of `mma.rs`, with the fragments of [`crate::complex_fragments`]: an element is 16 bytes, which a lane loads at once, and
//! two rows of a fragment.
//!
//! # Thread mapping
//! A warp owns 16·RB rows and 8·NT columns; warps that share rows are neighbours. Lane (g, q) = (lane / 4, lane % 4) has row g of
//! each eight of A and column g of each eight of B at steps q and q + 4 of every 8, and holds of each 8 x 8 of C columns 2q and
//! 2q + 1 of row g.
//!
//! # Cost
//! Of 32 columns, m = k = 20480 on an H200: 6.7 GB, 1.5 ms of its memory, and 5.4e10 real multiply-adds, 1.6 ms of its matrix
//! units. Measured 3.0 ms, 0.82 of cuBLAS's speed; of 2 to 16 columns 1.53 to 1.58 ms, and 1.01 to 1.04.

use super::ring::{Ring, Stage, Steps, Tile, tile_of_c};
use crate::complex_fragments;
use crate::product::Product;
use crate::slots::join;
use core::marker::PhantomData;
use cuda_std::prelude::*;

type Elem = Complex<f64>;
/// What a lane has of a fragment.
type Fragment = [Elem; 2];

/// The sums of a warp of a block of shape S: 2·RB x NT tiles of 8 x 8.
pub struct ComplexMma<S, const RB: usize, const NT: usize> {
    rc: [[[[f64; 4]; NT]; 2]; RB],
    /// Where this lane's fragments of the first tiles, of both steps that it has of 8, start in A's and B's part of a stage.
    a: [u32; 2],
    b: [u32; 2],
    conj_b: bool,
    shape: PhantomData<S>,
}

impl<S: Tile, const RB: usize, const NT: usize> ComplexMma<S, RB, NT> {
    const OK: () = {
        assert!(S::KT % 16 == 0, "whole fragments, an even number of them");
        assert!(S::BN % (8 * NT as u32) == 0, "whole warps along the columns");
        assert!(S::THREADS / 32 / Self::COLS * 16 * RB as u32 == S::BM, "the warps' sums are the block's");
    };
    /// Warps along the columns of C.
    const COLS: u32 = S::BN / (8 * NT as u32);

    /// # Safety
    /// Launched with THREADS threads a block, `model::launch::tiling`'s shared memory, and operands that span their
    /// elements.
    #[inline(always)]
    pub unsafe fn body(x: Product<Elem>) {
        const { Self::OK };
        let (warp, lane) = (thread::thread_idx_x() / warp::WARP_LANES, thread::thread_idx_x() % warp::WARP_LANES);
        let (g, q) = (lane / 4, lane % 4);
        let (row, col) = (warp / Self::COLS * 16 * RB as u32, warp % Self::COLS * 8 * NT as u32);
        // SAFETY: the caller's promise; all lanes of the warp are here.
        unsafe {
            let mut sums = Self {
                rc: [[[[0.0; 4]; NT]; 2]; RB],
                a: Ring::<Elem, S, true>::places(|l| Ring::<Elem, S, true>::at(row + g, q + l), 4),
                b: Ring::<Elem, S, true>::places(|l| Ring::<Elem, S, true>::b_at(q + l, col + g), 4),
                conj_b: x.conj_b(),
                shape: PhantomData,
            };
            Ring::<Elem, S, true>::run(&x, &mut sums);
            let mut found = [[[[Elem::ZERO; 2]; NT]; 2]; RB];
            for i in 0..RB {
                for half in 0..2 {
                    for j in 0..NT {
                        found[i][half][j] = complex_fragments::sums(sums.rc[i][half][j]);
                    }
                }
            }
            if x.slot_len == 0 && !join(&x, S::THREADS, tile_of_c(), &mut found) {
                return;
            }
            for i in 0..RB {
                for half in 0..2 {
                    let own = thread::block_idx_x() * S::BM + row + 16 * i as u32 + 8 * half as u32 + g;
                    for j in 0..NT {
                        let first = thread::block_idx_z() * S::BN + col + 8 * j as u32 + 2 * q;
                        x.write_tile(|_| own, |s| first + s as u32, [found[i][half][j]]);
                    }
                }
            }
        }
    }
}

/// A step is 8 steps of k: two of each lane.
impl<S: Tile, const RB: usize, const NT: usize> Steps<Elem> for ComplexMma<S, RB, NT> {
    const COUNT: u32 = S::KT / 8;
    const AHEAD: bool = true;
    const TAKES_TURNS: bool = model::launch::ring_takes_turns(S::A_BY_ROWS, true, 16 * NT as u32);
    type Operands = ([[Fragment; 2]; RB], [Fragment; NT]);
    const ZEROS: Self::Operands = ([[[Elem::ZERO; 2]; 2]; RB], [[Elem::ZERO; 2]; NT]);

    #[inline(always)]
    unsafe fn load(&self, stage: Stage<Elem>, step: u32) -> Self::Operands {
        let pitch = Ring::<Elem, S, true>::PITCH;
        let (sa, sb) = (self.a.map(|a| stage.a.starting_at(a)), self.b.map(|b| stage.b.starting_at(b)));
        // What rows or steps further on add to a lane's places does not depend on the lane.
        let (down, across) = if S::A_BY_ROWS { (pitch, 1) } else { (1, S::BM) };
        let l = [8 * step, 8 * step + Ring::<Elem, S, true>::rest(4)]; // and this lane's q
        // SAFETY: the step is inside the stage, and so are the warp's rows.
        let a = |row: u32| unsafe { [0, 1].map(|i: usize| sa[i].load(row * down + l[i] * across)) };
        let ra = core::array::from_fn(|i| core::array::from_fn(|half| a(16 * i as u32 + 8 * half as u32)));
        // SAFETY: the same of the warp's columns.
        let rb = core::array::from_fn(|j| unsafe {
            [0, 1].map(|i: usize| sb[i].load(Ring::<Elem, S, true>::b_at(0, 8 * j as u32) + l[i]))
        });
        (ra, rb)
    }

    #[inline(always)]
    unsafe fn multiply(&mut self, (ra, rb): Self::Operands) {
        for i in 0..RB {
            for half in 0..2 {
                for j in 0..NT {
                    let sums = self.rc[i][half][j];
                    // SAFETY: promised by the caller.
                    let sums = unsafe { complex_fragments::multiply(ra[i][half], rb[j], self.conj_b, sums) };
                    self.rc[i][half][j] = sums;
                }
            }
        }
    }
}
