//! `tsmttsm_eights`, `gram_eights`: packed rows by bulk copies, as [`super::packed`] has them, whose columns are multiplied by eights; f64 and c128, by the
//! matrix units of sm_90.
//!
//! # Idea
//! A fragment of B is eight columns of rows, and one of A twice that in f64, so that squares of 16 multiply 1024 elements for a row of 3 x 17, whose 160
//! bytes the memory gives in 9 cycles of an SM: 8 cycles of its matrix units. But what a lane has of eight columns of A, or of B, is the same two
//! numbers, and any two eights are a fragment of A. Of a Gram matrix two that need not be neighbours: of 24 columns 6 pairs of eights
//! are to be multiplied, which are 3 products, in place of 6 of squares. Each warp has all of C, and rows of its own.
//!
//! | columns | products of `mma.m16n8k8` for 8 rows | cycles a row | of the memory |
//! |---|---|---|---|
//! | 16 x 8 of f64 | 1 | 1 | 10.8 |
//! | 16 x 16 | 2 | 2 | 14.4 |
//! | 24 x 8 | 2 | 2 | 14.4 |
//! | Gram matrices of 4, 8, 16, 24, 32 | ½, 1, 2, 3, 5 | ½, 1, 2, 3, 5 | 1.8, 3.6, 7.2, 10.8, 14.4 |
//! | 24 x 8 of c128 | 6 | 6 | 28.8 |
//! | Gram matrices of 16, 32 | 6, 20 | 6, 20 | 14.4, 28.8 |
//!
//! Of no more than four columns an eight has two pieces of k: its second four are the same columns, further down.
//! # Thread mapping
//! KG warps take STEPS steps of a stage each. Lane (g, q) = (lane / 4, lane % 4) has column g of each eight, of rows that are `spacing` apart from lane to lane,
//! so that half a warp in f64, eight lanes in c128, meet in no bank but where [`spacing`] and [`spacing_c128`] say so.
//! # Cost
//! The table's. Measured on H200s on 2026-11-30, of the bound, of 10⁷ rows and more: f64 3 x 17 98%, squares of 9 to 24 columns 100, Gram matrices of 3 and of 9 to 32 columns 93 to 100; c128 24 x 8 99%, Gram matrices
//! of 9 to 16, 17 to 24 and 25 to 32 columns 92 to 99, 90 to 98 and 84 to 96 (benches/results/h200/tsmttsm.csv, gram.csv; of 48 columns registers spill).
//! # Source
//! Ours.

use super::Reduced;
use super::finish;
use super::fragments::{Fragments, lane};
use super::runs::{Runs, Staged};
use crate::complex_fragments;
use core::marker::PhantomData;
use cuda_std::prelude::*;
use model::launch::eights::{EIGHT, MOST, Product, eights, pieces, products};
use model::launch::reduced::{STAGES, second_half, second_row, spacing, spacing_c128};

/// What a lane has of eight columns, and of products of them.
pub trait Eights: Fragments {
    /// Whether a product has two eights of A.
    const PAIRED: bool;
    /// Of half of a step's rows.
    type Part: Copy;
    /// Numbers of C that a product gives a lane.
    const SUMS: usize;

    /// Rows from lane to lane of matrices of so many columns; from a lane's first to its second; and to those of the second half.
    fn rows(a: u32, b: u32) -> (u32, u32, u32);

    /// What lies here, and `near` elements further on.
    ///
    /// # Safety
    /// The stage has it.
    unsafe fn part(from: Shared<Self>, near: u32) -> Self::Part;

    /// Adds the product of one eight or two of A and one of B, or of B's conjugates.
    ///
    /// # Safety
    /// All lanes of the warp are here.
    unsafe fn product(a: Self::Part, second: Self::Part, b: Self::Part, sums: [f64; 4], conj_b: bool) -> [f64; 4];

    /// Whether sum `e` is of the second eight; its line of that eight and of B's, and its value.
    fn sum(sums: [f64; 4], e: usize) -> (bool, u32, u32, Self);
}

impl Eights for f64 {
    const PAIRED: bool = true;
    type Part = [f64; 2];
    const SUMS: usize = 4;

    #[inline(always)]
    fn rows(a: u32, b: u32) -> (u32, u32, u32) {
        let spaced = spacing(a, b);
        (spaced, second_row(spaced), second_half(spaced))
    }

    #[inline(always)]
    unsafe fn part(from: Shared<f64>, near: u32) -> [f64; 2] {
        // SAFETY: the stage has both, as the caller promised.
        unsafe { [from.load(0), from.load(near)] }
    }

    #[inline(always)]
    unsafe fn product(a: [f64; 2], second: [f64; 2], b: [f64; 2], sums: [f64; 4], _: bool) -> [f64; 4] {
        // SAFETY: all lanes of the warp are here, as the caller promised; registers alone.
        unsafe { ptx::mma_m16n8k8_f64([a[0], second[0], a[1], second[1]], b, sums) }
    }

    #[inline(always)]
    fn sum(sums: [f64; 4], e: usize) -> (bool, u32, u32, f64) {
        let (g, q) = lane();
        (e >= 2, g, 2 * q + e as u32 % 2, sums[e])
    }
}

impl Eights for Complex<f64> {
    const PAIRED: bool = false;
    type Part = Complex<f64>;
    const SUMS: usize = 2;

    #[inline(always)]
    fn rows(a: u32, b: u32) -> (u32, u32, u32) {
        let spaced = spacing_c128(a, b);
        (spaced, 0, if spaced == 2 { 1 } else { 4 })
    }

    #[inline(always)]
    unsafe fn part(from: Shared<Complex<f64>>, _: u32) -> Complex<f64> {
        // SAFETY: the stage has it, as the caller promised.
        unsafe { from.load(0) }
    }

    #[inline(always)]
    unsafe fn product(a: Complex<f64>, _: Complex<f64>, b: Complex<f64>, sums: [f64; 4], conj_b: bool) -> [f64; 4] {
        // SAFETY: all lanes of the warp are here, as the caller promised.
        unsafe { complex_fragments::multiply_four(a, b, conj_b, sums) }
    }

    #[inline(always)]
    fn sum(sums: [f64; 4], e: usize) -> (bool, u32, u32, Complex<f64>) {
        let (g, q) = lane();
        (false, g, 2 * q + e as u32, complex_fragments::sums(sums)[e])
    }
}

/// The most eights of a side.
const MOST_EIGHTS: usize = 4;

/// A lane's parts of eights of A and of B.
type Loaded<T> = ([<T as Eights>::Part; MOST_EIGHTS], [<T as Eights>::Part; MOST_EIGHTS]);

/// A block of KG warps with all of a C of BM x BN each, a GRAM matrix or not; STEPS steps of a stage a warp.
pub struct ByEights<T, const BM: usize, const BN: usize, const KG: usize, const STEPS: usize, const GRAM: bool>(
    PhantomData<T>,
);

impl<T: Eights, const BM: usize, const BN: usize, const KG: usize, const STEPS: usize, const GRAM: bool> Staged
    for ByEights<T, BM, BN, KG, STEPS, GRAM>
{
    type Elem = T;
    const ROWS: u32 = KG as u32 * Self::WARP_ROWS;
    const SIDES: (u32, u32) = (BM as u32, BN as u32);
    const THREADS: u32 = KG as u32 * warp::WARP_LANES;
    const GRAM: bool = GRAM;
    const LENS: (u32, u32) = (Self::ROWS * BM as u32, if GRAM { 0 } else { Self::ROWS * BN as u32 });
    /// Behind the last stage.
    const MBARRIERS: u32 = STAGES * (Self::LENS.0 + Self::LENS.1);
}

impl<T: Eights, const BM: usize, const BN: usize, const KG: usize, const STEPS: usize, const GRAM: bool>
    ByEights<T, BM, BN, KG, STEPS, GRAM>
{
    const OK: () = {
        assert!(BM % EIGHT as usize == 0 || BM == 4, "whole eights, or half of one");
        assert!(Self::X <= MOST_EIGHTS && Self::Y <= MOST_EIGHTS, "a lane has all eights");
        assert!(!GRAM || BM == BN, "a Gram matrix is square");
        assert!(GRAM || BM >= EIGHT as usize && BN >= EIGHT as usize, "of two matrices nothing is folded");
    };
    /// Pieces of k in an eight.
    const PIECES: u32 = pieces(BM as u32);
    /// Rows of a step.
    const STEP_ROWS: u32 = T::SIDE * Self::PIECES;
    /// A warp's rows of a stage.
    const WARP_ROWS: u32 = STEPS as u32 * Self::STEP_ROWS;
    /// Eights of A.
    const X: usize = eights(BM as u32);
    /// Eights of B.
    const Y: usize = eights(BN as u32);
    const LIST: [Product; MOST] = products(BM as u32, BN as u32, T::PAIRED, GRAM).0;
    const COUNT: usize = products(BM as u32, BN as u32, T::PAIRED, GRAM).1;

    /// # Safety
    /// Launched with THREADS threads a block, `model::launch::tiling`'s shared memory, and operands that span their elements; m <= BM,
    /// n <= BN.
    #[inline(always)]
    pub unsafe fn body(x: Reduced<T>) {
        const { Self::OK };
        let runs = Runs::<Self>::new(&x);
        let group = thread::thread_idx_x() / warp::WARP_LANES;
        let mut sums = [[0.0; 4]; MOST];
        // SAFETY: all threads are here, and take the same turns. A stage is filled behind a barrier that all have met when they had loaded what it
        // was, and loaded behind its mbarrier, or the barrier that all meet when their copies of it have come.
        unsafe {
            runs.begin();
            thread::sync_threads(); // the mbarriers are there
            Self::multiply_all(&runs, group, x.p.conj_b(), &mut sums);
            Self::store(&sums, group);
            let shape = (BM as u32, BN as u32, Self::THREADS);
            finish::tile::<T, GRAM>(&x, shape);
        }
    }

    /// Adds the products of all of the warp's rows.
    ///
    /// # Safety
    /// All threads are here, behind [`Runs::begin`] and a barrier.
    #[inline(always)]
    unsafe fn multiply_all(runs: &Runs<Self>, group: u32, conj_b: bool, sums: &mut [[f64; 4]; MOST]) {
        let (a, b) = runs.widths();
        let rows = T::rows(a, b);
        let lanes = (
            Lanes::<T>::new::<BM>(a, rows, group * Self::WARP_ROWS),
            Lanes::<T>::new::<BN>(b, rows, group * Self::WARP_ROWS),
        );
        let stages = runs.stages();
        // SAFETY: as `body` says.
        unsafe {
            for ahead in 0..STAGES {
                runs.fill(ahead);
            }
            if stages > 0 {
                runs.wait::<{ STAGES - 1 }>(0);
                let mut loaded = Self::load(&lanes, 0, 0);
                for at in 0..stages {
                    for half in 1..2 * STEPS as u32 {
                        let next = Self::load(&lanes, at, half);
                        Self::multiply(&loaded, conj_b, sums);
                        loaded = next;
                    }
                    runs.wait::<{ STAGES - 2 }>(at + 1);
                    let next = if at + 1 < stages { Self::load(&lanes, at + 1, 0) } else { loaded };
                    runs.fill(at + STAGES);
                    Self::multiply(&loaded, conj_b, sums);
                    loaded = next;
                }
            }
            ptx::cp_async_wait_group::<0>();
            thread::sync_threads(); // the stages' memory is the sums' now
        }
    }

    /// This lane's parts of A's eights and of B's, of half of a step of a stage. Behind the last eight there is the first again, and nobody asks for it.
    ///
    /// # Safety
    /// The stage is whole.
    #[inline(always)]
    unsafe fn load((a, b): &(Lanes<T>, Lanes<T>), index: u32, half: u32) -> Loaded<T> {
        let (sa, sb) = Runs::<Self>::stage(index);
        let (step, half) = (half / 2 * Self::STEP_ROWS, half % 2);
        // SAFETY: the stage has the step's rows, as the caller promised, and behind the last the zeros that `begin` stored.
        unsafe {
            let ra = a.parts(sa, step, half, Self::X);
            (ra, if GRAM { ra } else { b.parts(sb, step, half, Self::Y) })
        }
    }

    /// # Safety
    /// All lanes of the warp are here.
    #[inline(always)]
    unsafe fn multiply((ra, rb): &Loaded<T>, conj_b: bool, sums: &mut [[f64; 4]; MOST]) {
        for at in 0..Self::COUNT {
            let (row, second, col) = Self::LIST[at];
            // SAFETY: all lanes of the warp are here, as the caller promised.
            sums[at] = unsafe { T::product(ra[row], ra[second], rb[col], sums[at], conj_b) };
        }
    }

    /// Adds the groups' sums in shared memory, in order, and of each a piece of k after the other.
    ///
    /// # Safety
    /// All threads of the block are here, and nobody uses the memory otherwise.
    #[inline(always)]
    unsafe fn store(sums: &[[f64; 4]; MOST], group: u32) {
        let sc = Shared::<T>::at(0); // (BM, BN) by columns
        for turn in 0..ptx::opaque(KG as u32 * Self::PIECES) {
            if turn / Self::PIECES == group {
                for at in 0..Self::COUNT {
                    let (first, second, col) = Self::LIST[at];
                    for e in 0..T::SUMS {
                        let (is_second, i, j, sum) = T::sum(sums[at], e);
                        let row = if is_second { second } else { first };
                        if is_second && second == first {
                            continue;
                        }
                        let piece = turn % Self::PIECES;
                        if Self::PIECES > 1 && (i / BM as u32, j / BN as u32) != (piece, piece) {
                            continue;
                        }
                        let (i, j) = (EIGHT * row as u32 + i % BM as u32, EIGHT * col as u32 + j % BN as u32);
                        // Of a Gram matrix what is above the diagonal is what is below.
                        let (i, j) = if GRAM && row < col { (j, i) } else { (i, j) };
                        let at = j * BM as u32 + i;
                        // SAFETY: inside the tile; each element is one lane's in each turn, between barriers.
                        unsafe { sc.store(at, if turn == 0 { sum } else { sc.load(at).add(sum) }) };
                    }
                }
            }
            thread::sync_threads();
        }
    }
}

/// Where this lane finds its elements of one of the matrices.
struct Lanes<T> {
    width: u32,
    /// From the stage's first element to this lane's first of the warp's rows; from its first row to its second, and to those of the second half.
    first: u32,
    near: u32,
    far: u32,
    elem: PhantomData<T>,
}

impl<T: Eights> Lanes<T> {
    /// Of rows of so many elements of a tile of `SIDE` columns, from row `before` on.
    #[inline(always)]
    fn new<const SIDE: usize>(width: u32, (spaced, near, far): (u32, u32, u32), before: u32) -> Self {
        let (g, q) = lane();
        let side = SIDE as u32;
        // Of the second piece of k the same columns.
        let (column, before) = if side < EIGHT { (g % side, before + g / side * T::SIDE) } else { (g, before) };
        let first = (before + q * spaced) * width + column;
        Lanes { width, first, near: near * width, far: far * width, elem: PhantomData }
    }

    /// Its parts of so many eights, of half of the rows of a step that begins at row `step` of the warp's.
    ///
    /// # Safety
    /// The stage has them.
    #[inline(always)]
    unsafe fn parts(&self, stage: Shared<T>, step: u32, half: u32, eights: usize) -> [T::Part; MOST_EIGHTS] {
        let from = stage.starting_at(self.first + step * self.width + half * self.far);
        // SAFETY: the stage has them, as the caller promised.
        unsafe {
            let mut all = [T::part(from, self.near); MOST_EIGHTS];
            for eight in 1..eights {
                all[eight] = T::part(from.starting_at(EIGHT * eight as u32), self.near);
            }
            all
        }
    }
}
