//! C, or the lower triangle of a Gram matrix, dealt to four warps.
//!
//! # Idea
//! Each of an SM's four schedulers has matrix units of its own, and a block waits for whoever has most to multiply. Squares of squares,
//! one a warp, leave some warps half of theirs above the diagonal, and where C has 5 or 7 squares a side multiply 6 or 8. Here the unit is what one
//! instruction multiplies, half a square of 16 x 16 in f64, a square of 8 x 8 in c128, and warps differ by one at most.
//!
//! | lines | of the triangle | most a warp | of C | most a warp | as squares of four warps |
//! |---|---|---|---|---|---|
//! | 64, f64 | 20 | 5 | | | |
//! | 32, c128 | 10 | 3 | | | |
//! | 40 | 15 | 4 | 25 | 7 | 9, as of 48 |
//! | 48 | 21 | 6 | | | |
//! | 56 | 28 | 7 | 49 | 13 | 16, as of 64 |
//! | 64 | 36 | 9 | | | |
//!
//! # Thread mapping
//! The products are a list, [`model::launch::dealt::list`], and warp w has those from w fourths of it on. Which they are, and so which lines it loads, is known when
//! it is compiled: each warp has code of its own.

use super::fragments::Squares;
use super::share::{Division, Operand, Share, Work};
use core::marker::PhantomData;
use cuda_std::prelude::*;
use model::launch::dealt::{MOST, Product, WARPS, list, most, products};

/// SIDES squares a side, of a GRAM matrix or not, of which a warp has EACH products at most.
pub struct Dealt<T, const SIDES: usize, const EACH: usize, const GRAM: bool>(PhantomData<T>);

/// The sums of warp W.
struct Hand<T, const SIDES: usize, const EACH: usize, const GRAM: bool, const W: usize> {
    rc: [[f64; 4]; EACH],
    elem: PhantomData<T>,
}

impl<T: Squares, const SIDES: usize, const EACH: usize, const GRAM: bool> Dealt<T, SIDES, EACH, GRAM> {
    const OK: () = {
        assert!(Self::COUNT <= MOST, "the list has all products");
        assert!(EACH == most(SIDES, T::PARTS, GRAM), "a fourth of them, and what is left over");
    };
    const COUNT: usize = products(SIDES, T::PARTS, GRAM);
    const LIST: [Product; MOST] = list(SIDES, T::PARTS, GRAM);

    /// Product `at` of a warp.
    #[inline(always)]
    fn product(warp: usize, at: usize) -> Option<Product> {
        let product = (Self::COUNT * warp).div_ceil(WARPS) + at;
        if product < (Self::COUNT * (warp + 1)).div_ceil(WARPS) { Some(Self::LIST[product]) } else { None }
    }

    /// Has warp W do `work`, and stores its sums.
    ///
    /// # Safety
    /// As for [`Division::run`].
    #[inline(always)]
    unsafe fn hand<const W: usize>(work: impl Work<T>, paired: bool) {
        let mut hand = Hand::<T, SIDES, EACH, GRAM, W> { rc: [[0.0; 4]; EACH], elem: PhantomData };
        let sc = Shared::<T>::at(0); // (BM, BN) by columns
        // SAFETY: what the caller promised.
        unsafe { work.go(&mut hand) };
        for at in 0..EACH {
            let Some((i, j, part)) = Self::product(W, at) else { continue };
            for e in 0..T::SUMS / T::PARTS {
                let (row, col, sum) = T::sum_of_part(hand.rc[at], part, e, paired);
                let (row, col) = (T::SIDE * i as u32 + row, T::SIDE * j as u32 + col);
                // SAFETY: inside the tile, nobody uses the stages, and each element is one lane's.
                unsafe { sc.store(col * Self::BM + row, sum) };
            }
        }
    }
}

impl<T: Squares, const SIDES: usize, const EACH: usize, const GRAM: bool> Division<T> for Dealt<T, SIDES, EACH, GRAM> {
    const BM: u32 = T::SIDE * SIDES as u32;
    const BN: u32 = Self::BM;
    const THREADS: u32 = WARPS as u32 * warp::WARP_LANES;
    const KG: u32 = 1;
    const GRAM: bool = GRAM;

    #[inline(always)]
    unsafe fn run(work: impl Work<T>, paired: bool) {
        const { Self::OK };
        // SAFETY: what the caller promised; a warp's lanes go the same way.
        unsafe {
            match thread::thread_idx_x() / warp::WARP_LANES {
                0 => Self::hand::<0>(work, paired),
                1 => Self::hand::<1>(work, paired),
                2 => Self::hand::<2>(work, paired),
                _ => Self::hand::<3>(work, paired),
            }
        }
        thread::sync_threads();
    }
}

impl<T: Squares, const SIDES: usize, const EACH: usize, const GRAM: bool, const W: usize>
    Hand<T, SIDES, EACH, GRAM, W>
{
    /// Whether line `line` of A's squares is multiplied here, and of B's; a Gram matrix's are A's.
    #[inline(always)]
    fn needs(line: usize) -> (bool, bool) {
        let any = |of: fn(Product) -> usize| {
            (0..EACH).any(|at| Dealt::<T, SIDES, EACH, GRAM>::product(W, at).is_some_and(|product| of(product) == line))
        };
        let (row, col) = (any(|product| product.0), any(|product| product.1));
        (row || GRAM && col, !GRAM && col)
    }
}

impl<T: Squares, const SIDES: usize, const EACH: usize, const GRAM: bool, const W: usize> Share<T>
    for Hand<T, SIDES, EACH, GRAM, W>
{
    type Loaded = ([Option<T::Half>; SIDES], [Option<T::Half>; SIDES]);

    #[inline(always)]
    fn group(&self) -> u32 {
        0
    }

    #[inline(always)]
    unsafe fn load(&self, a: &impl Operand<T>, b: &impl Operand<T>, half: u32) -> Self::Loaded {
        let (mut ra, mut rb) = ([None; SIDES], [None; SIDES]);
        for line in 0..SIDES {
            let (of_a, of_b) = Self::needs(line);
            let first = T::SIDE * line as u32;
            // SAFETY: what the caller promised; the tile has SIDES squares a side.
            unsafe {
                if of_a {
                    ra[line] = Some(a.load::<1>(first, half)[0]);
                }
                if of_b {
                    rb[line] = Some(b.load::<1>(first, half)[0]);
                }
            }
        }
        (ra, if GRAM { ra } else { rb })
    }

    #[inline(always)]
    unsafe fn multiply(&mut self, (ra, rb): Self::Loaded, conj_b: bool) {
        // Row by row: what a row of complex numbers becomes takes registers.
        for line in 0..SIDES {
            for at in 0..EACH {
                let Some((row, col, part)) = Dealt::<T, SIDES, EACH, GRAM>::product(W, at) else { continue };
                if let (true, Some(a), Some(b)) = (row == line, ra[row], rb[col]) {
                    // SAFETY: all lanes of the warp are here, as the caller promised.
                    self.rc[at] = unsafe { T::multiply_part(a, b, part, self.rc[at], conj_b) };
                }
            }
        }
    }
}
