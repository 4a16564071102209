//! `tsmm_staged`: tiles of A through a ring of stages, multiplied by the vector units; C through shared memory.
//!
//! # Idea
//! The product is a stream: memory must always have enough in flight, in both directions, whatever the widths and layouts
//! are. A block walks over tiles of rows; those of the next STAGES - 1 turns are on their way into shared memory while
//! one is multiplied (`tile.rs`). Where β is not 0 C's tile comes the same way, ahead of the multiplication. C's tile is
//! gathered in shared memory and leaves as it lies in device memory, in whole sectors.
//!
//! # Thread mapping
//! Blocks take tiles of BM rows in turn, as many blocks as the GPU holds. Thread t owns rows t mod (BM / TM), and each BM / TM
//! further on, of TM, and columns TN · (t / (BM / TM)) and on, of TN: a warp shares its columns of B, and reads of A neighbouring rows.
//!
//! # In place
//! All rows of a tile are in shared memory before the first of them is written, and no tile reads another's rows: C may
//! be A's first n columns.

use super::bring::{Place, bring};
use super::tile::{Rows, place};
use crate::product::Product;
use cuda_std::prelude::*;
use model::variants::tsmm::{staged_b_len, tile_len};

/// The shape of a block.
pub trait Shape {
    /// Threads a block.
    const THREADS: u32;
    /// Rows a tile.
    const BM: u32;
    /// Most columns of C.
    const BN: u32;
    /// Most columns of A.
    const BK: u32;
    /// Stages.
    const STAGES: u32;
}

/// A block of THREADS threads for tiles of BM rows of up to BK columns of A and BN of C.
pub struct Block<const THREADS: usize, const BM: usize, const BN: usize, const BK: usize, const STAGES: usize>;

impl<const THREADS: usize, const BM: usize, const BN: usize, const BK: usize, const STAGES: usize> Shape
    for Block<THREADS, BM, BN, BK, STAGES>
{
    const THREADS: u32 = THREADS as u32;
    const BM: u32 = BM as u32;
    const BN: u32 = BN as u32;
    const BK: u32 = BK as u32;
    const STAGES: u32 = STAGES as u32;
}

/// How the threads of a block multiply a tile.
pub trait Multiply<T: Scalar>: Sized {
    /// Brings B into shared memory, with zeros for what it does not have.
    ///
    /// # Safety
    /// B spans its elements; a barrier follows.
    unsafe fn begin(x: &Product<T>, sb: Shared<T>) -> Self;

    /// Multiplies a tile of A with B and hands `out` the sums.
    ///
    /// # Safety
    /// A's tile and B are in shared memory, and all threads of the block are here.
    unsafe fn tile(&self, tile: &Tile<'_, T>, out: &Out<'_, T>);
}

/// A's tile in shared memory.
pub struct Tile<'a, T> {
    a: &'a Rows<T>,
    sa: Shared<T>,
    /// Its rows that exist, at least 1.
    rows: u32,
    k: u32,
}

impl<T: Scalar> Tile<'_, T> {
    /// The element; of rows that do not exist some other.
    ///
    /// # Safety
    /// l < k.
    #[inline(always)]
    pub(super) unsafe fn load(&self, row: u32, l: u32) -> T {
        let row = row.min(self.rows - 1);
        // SAFETY: inside of the tile's rows.
        unsafe { self.sa.load(place::<T>(row * self.a.down + l * self.a.across)) }
    }

    /// The 16 bytes from step `l` on, where [`Rows::is_wide`].
    ///
    /// # Safety
    /// l < k, at the start of a piece.
    #[inline(always)]
    pub(super) unsafe fn load_wide(&self, row: u32, l: u32) -> T::Wide {
        let row = row.min(self.rows - 1);
        // SAFETY: inside of the tile's rows, which are whole pieces.
        unsafe { self.sa.load_wide(place::<T>(row * self.k + l)) }
    }

    #[inline(always)]
    pub(super) fn k(&self) -> u32 {
        self.k
    }

    #[inline(always)]
    pub(super) fn is_wide(&self) -> bool {
        self.a.is_wide()
    }
}

/// C's tile in shared memory, which holds C where β is not 0.
pub struct Out<'a, T> {
    c: &'a Rows<T>,
    sc: Shared<T>,
    rows: u32,
    n: u32,
    alpha: T,
    beta: T,
    /// Whether sums are conjugated.
    conj: bool,
}

impl<T: Scalar> Out<'_, T> {
    /// Writes the sums of a row's columns `col ..`, of which those that C has not are left out.
    ///
    /// # Safety
    /// Only this thread writes them; `col` starts a piece where TN is whole pieces.
    #[inline(always)]
    pub(super) unsafe fn write<const TN: usize>(&self, row: u32, col: u32, sums: [T; TN]) {
        if row >= self.rows {
            return;
        }
        // SAFETY: inside of the tile.
        unsafe {
            if TN % T::WIDTH == 0 && self.c.is_wide() {
                for j in (0..TN).step_by(T::WIDTH) {
                    if col + (j as u32) < self.n {
                        let at = place::<T>(row * self.n + col + j as u32);
                        let old = if self.beta.is_zero() { T::ZEROS } else { self.sc.load_wide(at) };
                        self.sc.store_wide(at, |i| self.scaled(sums[j + i], old[i]));
                    }
                }
            } else {
                for j in 0..TN {
                    if col + (j as u32) < self.n {
                        let at = place::<T>(row * self.c.down + (col + j as u32) * self.c.across);
                        let old = if self.beta.is_zero() { T::ZERO } else { self.sc.load(at) };
                        self.sc.store(at, self.scaled(sums[j], old));
                    }
                }
            }
        }
    }

    /// α · sum + β · old.
    #[inline(always)]
    fn scaled(&self, sum: T, old: T) -> T {
        let sum = sum.conj_if(self.conj);
        if self.beta.is_zero() { self.alpha.scale(sum) } else { self.alpha.scale_onto(sum, self.beta.scale(old)) }
    }
}

/// # Safety
/// Launched with THREADS threads a block, `model::launch::tiling`'s shared memory and at most as many blocks as there are
/// tiles; k <= BK, n <= BN, and operands that span their elements.
#[inline(always)]
pub unsafe fn body<T: Scalar, S: Shape, M: Multiply<T>>(x: Product<T>) {
    const { assert!(S::STAGES >= 2 && S::STAGES <= 4, "a ring has 2 to 4 stages") };
    const { assert!(S::BM % 16 == 0, "tiles start at multiples of 16 bytes") };
    const { assert!(S::THREADS % 64 == 0, "a thread's pieces of a run are equally far apart") };
    let bytes = size_of::<T>() as u32;
    let (a_len, c_len) = (tile_len(S::BM * S::BK, bytes), tile_len(S::BM * S::BN, bytes));
    let stages = Shared::<T>::at(staged_b_len(S::BK, S::BN, bytes));
    let a = Rows::new(x.a, (x.a_row, x.a_col), (x.m, x.k), S::BM, S::THREADS);
    let c = Rows::new(x.c, (x.c_row, x.c_col), (x.m, x.n), S::BM, S::THREADS);
    let stage = |index: u32| {
        let sa = stages.starting_at(index * (a_len + c_len));
        (sa, sa.starting_at(a_len)) // (BM, k), (BM, n)
    };
    let (tiles, turn) = (x.m.div_ceil(S::BM), thread::grid_dim_x());
    // SAFETY: the tile exists, and its stage is free.
    let fill = |index: u32, tile: u32| unsafe {
        if tile < tiles {
            let (sa, sc) = stage(index);
            a.fill(sa, tile * S::BM);
            if !x.beta.is_zero() {
                c.fill(sc, tile * S::BM);
            }
        }
        ptx::cp_async_commit_group();
    };
    // SAFETY: operands and shared memory are as the launch promised; tiles are below `tiles`, stages below STAGES;
    // barriers lie between filling, multiplying and storing.
    unsafe {
        let sums = M::begin(&x, Shared::at(0));
        let mut tile = thread::block_idx_x();
        for index in 0..S::STAGES - 1 {
            fill(index, tile + index * turn);
        }
        let mut now = 0;
        while tile < tiles {
            match S::STAGES {
                2 => ptx::cp_async_wait_group::<0>(),
                3 => ptx::cp_async_wait_group::<1>(),
                _ => ptx::cp_async_wait_group::<2>(),
            }
            thread::sync_threads(); // this stage is whole, and the last one's tile of C is stored
            fill(if now == 0 { S::STAGES - 1 } else { now - 1 }, tile + (S::STAGES - 1) * turn);
            let (first, (sa, sc)) = (tile * S::BM, stage(now));
            let rows = a.rows_from(first);
            let out = Out { c: &c, sc, rows, n: x.n, alpha: x.alpha, beta: x.beta, conj: x.conj_sum() };
            sums.tile(&Tile { a: &a, sa, rows, k: x.k }, &out);
            thread::sync_threads(); // C's tile is whole
            c.drain(sc, first);
            tile += turn;
            now = if now + 1 == S::STAGES { 0 } else { now + 1 };
        }
    }
}

/// The vector units: TM x TN sums a thread.
pub struct Vector<S, const TM: usize, const TN: usize> {
    sb: u32,
    row: u32,
    col: u32,
    shape: core::marker::PhantomData<S>,
}

impl<S: Shape, const TM: usize, const TN: usize> Vector<S, TM, TN> {
    const OK: () = {
        assert!(S::BN % TN as u32 == 0 && S::THREADS % (S::BN / TN as u32) == 0, "whole groups of columns");
        assert!(Self::APART * TM as u32 == S::BM, "the threads' sums are the block's");
    };
    /// Threads along the rows, and rows between those of a thread.
    const APART: u32 = S::THREADS / (S::BN / TN as u32);

    /// This thread's columns of step `l` of B.
    ///
    /// # Safety
    /// l < k.
    #[inline(always)]
    unsafe fn b<T: Scalar>(&self, l: u32) -> [T; TN] {
        let sb = Shared::<T>::at(0).starting_at(self.sb + l * S::BN);
        let mut rb = [T::ZERO; TN];
        // SAFETY: inside of B, whose rows are whole pieces where TN is.
        unsafe {
            if TN % T::WIDTH == 0 {
                for j in (0..TN).step_by(T::WIDTH) {
                    let wide = sb.load_wide(j as u32);
                    for v in 0..T::WIDTH {
                        rb[j + v] = wide[v];
                    }
                }
            } else {
                for j in 0..TN {
                    rb[j] = sb.load(j as u32);
                }
            }
        }
        rb
    }
}

impl<T: Scalar, S: Shape, const TM: usize, const TN: usize> Multiply<T> for Vector<S, TM, TN> {
    #[inline(always)]
    unsafe fn begin(x: &Product<T>, sb: Shared<T>) -> Self {
        const { Self::OK };
        let own = thread::thread_idx_x();
        let of_b = |at: u32| Place { to: at, l: at / S::BN, col: at % S::BN };
        // SAFETY: B spans its elements, and a barrier follows, as `Multiply::begin` asks; B's part has so many.
        unsafe { bring(x, sb, x.k * S::BN, S::THREADS, of_b) };
        let (row, col) = (own % Self::APART, own / Self::APART * TN as u32);
        Vector { sb: col, row, col, shape: core::marker::PhantomData }
    }

    #[inline(always)]
    unsafe fn tile(&self, tile: &Tile<'_, T>, out: &Out<'_, T>) {
        let mut rc = [[T::ZERO; TN]; TM]; // (TM, TN)
        let row = |i: usize| self.row + i as u32 * Self::APART;
        // SAFETY: steps below k, rows and columns of this thread.
        unsafe {
            if tile.is_wide() {
                for l in (0..tile.k()).step_by(T::WIDTH) {
                    let ra: [T::Wide; TM] = core::array::from_fn(|i| tile.load_wide(row(i), l));
                    for v in 0..T::WIDTH {
                        let rb = self.b::<T>(l + v as u32);
                        for i in 0..TM {
                            for j in 0..TN {
                                rc[i][j] = ra[i][v].fma(rb[j], rc[i][j]);
                            }
                        }
                    }
                }
            } else {
                for l in 0..tile.k() {
                    let ra: [T; TM] = core::array::from_fn(|i| tile.load(row(i), l));
                    let rb = self.b::<T>(l);
                    for i in 0..TM {
                        for j in 0..TN {
                            rc[i][j] = ra[i].fma(rb[j], rc[i][j]);
                        }
                    }
                }
            }
            for i in 0..TM {
                out.write(row(i), self.col, rc[i]);
            }
        }
    }
}
