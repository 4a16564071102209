//! `tsmttsm_mma`, `gram_mma`: fragments straight from device memory, f64 and c128 multiplied by the matrix units of sm_90.
//!
//! # Idea
//! A fragment of `mma.m16n8k16` takes 16 rows of the tall matrices, and which of them is which step of k is free, as long as
//! A and B agree. So the layout of a fragment can be that of memory: no shared memory, no barrier, nothing but loads of 16
//! bytes in flight and multiplications. A Gram matrix uses what it loaded twice, and leaves out the tiles above the diagonal.
//!
//! Of matrices of no more lines than half a side, `tsmttsm_folded` and `gram_folded`, a fragment has two pieces of k in place of lines that
//! are not there: those from half a side on are the same lines, a side of rows further down. Two of the square's quarters are then sums for C, which are
//! added at the end; the others mix the pieces and are dropped. That is half the loads and products for each row.
//! # Thread mapping
//! Squares of C have a side of 16, in c128 of 8. A warp owns X x Y of them, WX x WY warps have all of the block's, and KG groups
//! of them take as many rows as a side each in turn, with DEPTH such rounds in flight. Which rows and columns of a square a lane
//! loads is in [`super::fragments`], and of c128 in [`super::complex`].
//! # Cost
//! Of c128 on an H200: of a 16 x 16 C a row is 512 bytes, 27 cycles of an SM's share of the memory, and 1024 multiply-adds of real numbers, 8
//! cycles of its matrix units; of its Gram matrix 14 and 6. Measured 98% of the memory's ceiling, and 94% of the Gram matrix; in f64 99% of both.

use super::Reduced;
use super::fragments::{ACROSS, ANY, DOWN, Fragments, PAIRED, Squares};
use super::share::{Division, Operand, Share, Work};
use core::marker::PhantomData;
use cuda_std::prelude::*;

/// The warps of a block.
pub trait Shape {
    /// Warps along BM, along BN, and groups of them along k.
    const WX: u32;
    /// As above.
    const WY: u32;
    /// As above.
    const KG: u32;
    /// Whether B is A.
    const GRAM: bool;
    /// Pieces of k in the lines of a fragment.
    const FOLD: u32 = 1;
}

/// WX x WY warps in KG groups along k, of a GRAM matrix or not.
pub struct Warps<const WX: usize, const WY: usize, const KG: usize, const GRAM: bool>;

impl<const WX: usize, const WY: usize, const KG: usize, const GRAM: bool> Shape for Warps<WX, WY, KG, GRAM> {
    const WX: u32 = WX as u32;
    const WY: u32 = WY as u32;
    const KG: u32 = KG as u32;
    const GRAM: bool = GRAM;
}

/// KG groups along k of a warp each, of a C of at most half a side, a GRAM matrix or not.
pub struct Folded<const KG: usize, const GRAM: bool>;

impl<const KG: usize, const GRAM: bool> Shape for Folded<KG, GRAM> {
    const WX: u32 = 1;
    const WY: u32 = 1;
    const KG: u32 = KG as u32;
    const GRAM: bool = GRAM;
    const FOLD: u32 = 2;
}

/// A lane's parts of A and B of a step.
type Loaded<T, const X: usize, const Y: usize> = ([<T as Fragments>::Fragment; X], [<T as Fragments>::Fragment; Y]);

/// The sums of a warp: X x Y squares.
pub struct Mma<T: Squares, S, const X: usize, const Y: usize, const DEPTH: usize> {
    rc: [[T::Sums; Y]; X],
    /// The warp's first row and column of the block's tile of C, and its group.
    row: u32,
    col: u32,
    group: u32,
    shape: PhantomData<S>,
}

impl<T: Squares, S: Shape, const X: usize, const Y: usize, const DEPTH: usize> Mma<T, S, X, Y, DEPTH> {
    const OK: () = {
        assert!(X > 0 && Y > 0 && DEPTH > 0, "empty tiles");
        assert!(!S::GRAM || (X == Y && S::WX == S::WY), "a Gram matrix is square, and so is what a warp has of it");
        assert!(S::FOLD == 1 || (X == 1 && Y == 1 && S::WX == 1 && S::WY == 1), "what is folded is one square");
    };
    const BM: u32 = T::SIDE * X as u32 * S::WX / S::FOLD;
    const BN: u32 = T::SIDE * Y as u32 * S::WY / S::FOLD;
    /// Warps a group: of a Gram matrix none is above the diagonal.
    const OWNERS: u32 = if S::GRAM { S::WX * (S::WX + 1) / 2 } else { S::WX * S::WY };
    const THREADS: u32 = 32 * Self::OWNERS * S::KG;
    /// Whether B's fragments are A's.
    const SHARED: bool = S::GRAM && S::WX == 1;
    /// Rows that the groups take at a time, a step each.
    const ROWS: u32 = Self::STEP * S::KG;
    /// Rows of a step.
    const STEP: u32 = T::SIDE * S::FOLD;

    /// # Safety
    /// Launched with THREADS threads a block, `model::launch::tiling`'s shared memory, and operands that span their elements.
    #[inline(always)]
    pub unsafe fn body(mut x: Reduced<T>) {
        if S::GRAM {
            (x.p.b, x.p.b_row, x.p.b_col) = (x.p.a, x.p.a_col, x.p.a_row);
        }
        // SAFETY: all lanes are here.
        let mut sums = unsafe { Self::new() };
        let (start, end) = x.p.part(Self::ROWS * DEPTH as u32);
        let round = Self::ROWS * DEPTH as u32;
        let whole = start + (end - start) / round * round;
        // SAFETY: `end` <= k; wide loads are aligned and inside where the conditions hold, in whole rounds.
        let paired = unsafe {
            if is_across(&x) {
                sums.run::<ACROSS>(&x, start, whole);
                sums.run::<PAIRED>(&x, whole, end);
                true
            } else {
                let down = is_down(&x);
                if down {
                    sums.run::<DOWN>(&x, start, whole);
                }
                sums.run::<ANY>(&x, if down { whole } else { start }, end);
                false
            }
        };
        // SAFETY: all threads of the block are here.
        unsafe {
            sums.store(paired);
            <Self as Division<T>>::finish(&x);
        }
    }

    /// Of this thread's warp, all 0.
    ///
    /// # Safety
    /// All lanes of the warp are here.
    #[inline(always)]
    unsafe fn new() -> Self {
        const { Self::OK };
        let warp = thread::thread_idx_x() / warp::WARP_LANES;
        let (owner, group) = (warp % Self::OWNERS, warp / Self::OWNERS);
        // Of a Gram matrix (0, 0), (1, 0), (1, 1), (2, 0), ..
        let before = |down: u32| down * (down + 1) / 2;
        let (down, along) = if S::GRAM {
            let down = (1..S::WX).map(|down| (owner >= before(down)) as u32).sum();
            (down, owner - before(down))
        } else {
            (owner / S::WY, owner % S::WY)
        };
        let (row, col) = (down * T::SIDE * X as u32, along * T::SIDE * Y as u32);
        // SAFETY: all lanes of the warp are here, as the caller promised; registers alone.
        let (row, col) = unsafe { (ptx::pinned(row), ptx::pinned(col)) };
        Self { rc: [[T::NONE; Y]; X], row, col, group, shape: PhantomData }
    }

    /// Multiplies rows `start .. end`, which by 16 bytes are whole rounds of DEPTH steps a group.
    ///
    /// # Safety
    /// `end` <= k; PATH's condition holds; all lanes of the warp are here.
    #[inline(always)]
    unsafe fn run<const PATH: u32>(&mut self, x: &Reduced<T>, start: u32, end: u32) {
        if start >= end {
            return;
        }
        let round = Self::ROWS * DEPTH as u32;
        let first = start + self.group * Self::STEP;
        // What is ahead of the end is loaded again, and not multiplied.
        let last = start + (end - start - 1) / round * round + self.group * Self::STEP;
        let step = |l: u32, d: usize| l + d as u32 * Self::ROWS;
        // SAFETY: from `first` to `last` on there are rows, by 16 bytes whole rounds; elements are loaded where they are.
        unsafe {
            let mut ready: [Loaded<T, X, Y>; DEPTH] =
                core::array::from_fn(|d| self.load::<PATH>(x, step(first, d), end));
            let mut l = first;
            while l <= last {
                let ahead = if l < last { l + round } else { last };
                for d in 0..DEPTH {
                    self.multiply_step(&ready[d], x.p.conj_b());
                    ready[d] = self.load::<PATH>(x, step(ahead, d), end);
                }
                l += round;
            }
        }
    }

    /// This lane's fragments of the rows of a step from l on.
    ///
    /// # Safety
    /// As for [`Mma::run`].
    #[inline(always)]
    unsafe fn load<const PATH: u32>(&self, x: &Reduced<T>, l: u32, end: u32) -> Loaded<T, X, Y> {
        let p = &x.p;
        let (row, col) = (thread::block_idx_x() * Self::BM + self.row, thread::block_idx_z() * Self::BN + self.col);
        // SAFETY: the rows from l on are as `run` gave them: there, or looked for before `end` <= k; PATH's condition
        // holds.
        unsafe {
            if S::FOLD > 1 {
                let ra = T::folded::<PATH>(p.a, (p.a_row, p.a_col), p.m, (l, end));
                let rb = if Self::SHARED { ra } else { T::folded::<PATH>(p.b, (p.b_col, p.b_row), p.n, (l, end)) };
                return ([ra; X], [rb; Y]);
            }
            let ra = T::straight::<PATH, X>(p.a, (p.a_row, p.a_col), (p.m, row), (l, end));
            if Self::SHARED {
                return (ra, core::array::from_fn(|y| ra[y % X]));
            }
            (ra, T::straight::<PATH, Y>(p.b, (p.b_col, p.b_row), (p.n, col), (l, end)))
        }
    }

    /// With the conjugates of B where `conj_b`.
    ///
    /// # Safety
    /// All lanes of the warp are here.
    #[inline(always)]
    unsafe fn multiply_step(&mut self, (ra, rb): &Loaded<T, X, Y>, conj_b: bool) {
        for i in 0..X {
            for j in 0..Y {
                if Self::SHARED && j > i {
                    continue; // above the diagonal
                }
                // SAFETY: all lanes of the warp are here, as the caller promised; registers alone.
                self.rc[i][j] = unsafe { T::multiply(ra[i], rb[j], self.rc[i][j], conj_b) };
            }
        }
    }

    /// Adds the groups' sums in shared memory, in order.
    ///
    /// # Safety
    /// All threads of the block are here, and nobody uses the memory otherwise.
    #[inline(always)]
    unsafe fn store(&self, paired: bool) {
        let sc = Shared::<T>::at(0); // (BM, BN) by columns
        // Of a group a piece of k after the other.
        for turn in 0..ptx::opaque(S::KG * S::FOLD) {
            if turn / S::FOLD == self.group {
                for i in 0..X {
                    for j in 0..Y {
                        if Self::SHARED && j > i {
                            continue;
                        }
                        for e in 0..T::SUMS {
                            let (row, col, sum) = T::sum(self.rc[i][j], e, paired);
                            if S::FOLD > 1 && (row / Self::BM, col / Self::BN) != (turn % S::FOLD, turn % S::FOLD) {
                                continue;
                            }
                            let (row, col) = (self.row + T::SIDE * i as u32 + row, self.col + T::SIDE * j as u32 + col);
                            let at = col % Self::BN * Self::BM + row % Self::BM;
                            // SAFETY: inside the tile; each element is one lane's in each turn, between barriers.
                            unsafe { sc.store(at, if turn == 0 { sum } else { sc.load(at).add(sum) }) };
                        }
                    }
                }
            }
            thread::sync_threads();
        }
    }
}

impl<T: Squares, S: Shape, const X: usize, const Y: usize, const DEPTH: usize> Division<T> for Mma<T, S, X, Y, DEPTH> {
    const BM: u32 = Self::BM;
    const BN: u32 = Self::BN;
    const THREADS: u32 = Self::THREADS;
    const KG: u32 = S::KG;
    const GRAM: bool = S::GRAM;

    #[inline(always)]
    unsafe fn run(work: impl Work<T>, paired: bool) {
        // SAFETY: what the caller promised.
        unsafe {
            let mut sums = Self::new();
            work.go(&mut sums);
            sums.store(paired);
        }
    }
}

impl<T: Squares, S: Shape, const X: usize, const Y: usize, const DEPTH: usize> Share<T> for Mma<T, S, X, Y, DEPTH> {
    type Loaded = ([T::Half; X], [T::Half; Y]);

    #[inline(always)]
    fn group(&self) -> u32 {
        self.group
    }

    #[inline(always)]
    unsafe fn load(&self, a: &impl Operand<T>, b: &impl Operand<T>, half: u32) -> Self::Loaded {
        // SAFETY: what the caller promised; the warp's lines are the block's.
        unsafe {
            let ra = a.load::<X>(self.row, half);
            (ra, if Self::SHARED { core::array::from_fn(|y| ra[y % X]) } else { b.load::<Y>(self.col, half) })
        }
    }

    #[inline(always)]
    unsafe fn multiply(&mut self, (ra, rb): Self::Loaded, conj_b: bool) {
        for i in 0..X {
            for j in 0..Y {
                if Self::SHARED && j > i {
                    continue; // above the diagonal
                }
                // SAFETY: all lanes of the warp are here, as the caller promised.
                self.rc[i][j] = unsafe { T::multiply_halves(ra[i], rb[j], self.rc[i][j], conj_b) };
            }
        }
    }
}

/// Whether 16 bytes of a row are several elements, inside A and B, or outside, and aligned.
#[inline(always)]
fn is_across<T: Scalar>(x: &Reduced<T>) -> bool {
    let p = &x.p;
    let even = (p.m as u64 | p.n as u64 | p.a_col | p.b_row) % 2 == 0;
    T::WIDTH == 2 && p.a_row == 1 && p.b_col == 1 && even && p.a.is_aligned(16) && p.b.is_aligned(16)
}

/// Whether 16 bytes along k are contiguous in A and B, and aligned: those of an element are.
#[inline(always)]
fn is_down<T: Scalar>(x: &Reduced<T>) -> bool {
    if T::WIDTH == 1 {
        return true;
    }
    let p = &x.p;
    let is_line = |stride: u64, lines: u32| stride % 2 == 0 || lines == 1;
    p.a_col == 1
        && p.b_row == 1
        && is_line(p.a_row, p.m)
        && is_line(p.b_col, p.n)
        && p.a.is_aligned(16)
        && p.b.is_aligned(16)
}
