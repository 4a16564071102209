//! c128 in fragments of two tall matrices: how many of what lie where, and who loads it.
//!
//! # Idea
//! That of [`crate::complex_fragments`]: a square is 8 x 8 of C, of 8 rows of the tall matrices, and two `mma.m16n8k8`. An element is 16
//! bytes, so that it is loaded at once however A and B lie.
//! # Thread mapping
//! Lane (g, q) = (lane / 4, lane % 4) has column g of each 8 at rows q and q + 4. A warp's load is 4 rows of 128 bytes, or 8 columns of 64; from
//! a stage whose rows are two elements more than whole rounds of the banks apart, eight lanes, two columns of four
//! rows, meet in none; of one of lines, four elements more, four rows of two columns.

use super::fragments::{ANY, Fragments, Squares, inside, lane, unfolded};
use crate::complex_fragments::{self, STEPS};
use cuda_std::prelude::*;

type Elem = Complex<f64>;

const _: () = assert!(complex_fragments::SIDE == STEPS, "lines and rows of a fragment are as many");

impl Fragments for Elem {
    const SIDE: u32 = complex_fragments::SIDE;
    type Fragment = [Elem; 2];

    #[inline(always)]
    unsafe fn straight<const PATH: u32, const COUNT: usize>(
        of: Global<Elem>,
        (across, down): (u64, u64),
        (lines, first): (u32, u32),
        (l, end): (u32, u32),
    ) -> [[Elem; 2]; COUNT] {
        let (g, q) = lane();
        // Where lines begin is worked out in every step: to keep it takes registers.
        // SAFETY: all lanes of the warp are here.
        let first = unsafe { ptx::pinned(first + g) };
        core::array::from_fn(|at| {
            let line = first + Self::SIDE * at as u32;
            if PATH == ANY {
                return [l + q, l + q + 4].map(|row| {
                    // SAFETY: inside the matrix wherever the load happens.
                    unsafe { of.stream_if(line < lines && row < end, row as u64 * down + line as u64 * across) }
                });
            }
            let from = of.starting_at((l + q) as u64 * down + inside(line, lines) as u64 * across);
            // SAFETY: the line is there, and so are rows l .. l + 8; elements are aligned to their 16 bytes.
            [0, 4].map(|row| unsafe { from.stream_wide(row * down)[0] })
        })
    }

    #[inline(always)]
    unsafe fn folded<const PATH: u32>(
        of: Global<Elem>,
        (across, down): (u64, u64),
        lines: u32,
        (l, end): (u32, u32),
    ) -> [Elem; 2] {
        let (g, q) = lane();
        let (line, before) = unfolded(g, Self::SIDE);
        let first = l + before + q;
        let from = of.starting_at(first as u64 * down + inside(line, lines) as u64 * across);
        [0, 4].map(|row| {
            let is_there = PATH != ANY || (line < lines && first + row < end);
            // SAFETY: the line is there, and so are the rows, or guarded; elements are aligned to their 16 bytes.
            unsafe { from.stream_if(is_there, row as u64 * down) }
        })
    }

    type Half = Elem;

    #[inline(always)]
    unsafe fn staged<const COUNT: usize>(
        stage: Shared<Elem>,
        pitch: u32,
        l: u32,
        line: u32,
        half: u32,
    ) -> [Elem; COUNT] {
        let (g, q) = lane();
        let from = stage.starting_at((l + 4 * half + q) * pitch + line + g);
        // SAFETY: the stage has rows l to l + 7 and the fragments' lines, as `staged`'s caller promised.
        core::array::from_fn(|at| unsafe { from.load(Self::SIDE * at as u32) })
    }

    #[inline(always)]
    unsafe fn of_lines<const COUNT: usize>(
        stage: Shared<Elem>,
        pitch: u32,
        l: u32,
        line: u32,
        half: u32,
    ) -> [Elem; COUNT] {
        let (g, q) = lane();
        let from = stage.starting_at((line + g) * pitch + l + 4 * half + q);
        // SAFETY: the stage has rows l to l + 7 of the fragments' lines, as `of_lines`'s caller promised.
        core::array::from_fn(|at| unsafe { from.load(Self::SIDE * at as u32 * pitch) })
    }
}

impl Squares for Elem {
    type Sums = [f64; 4];
    const NONE: [f64; 4] = [0.0; 4];
    const SUMS: usize = 2;
    const PARTS: usize = 1;

    #[inline(always)]
    unsafe fn multiply(a: [Elem; 2], b: [Elem; 2], sums: [f64; 4], conj_b: bool) -> [f64; 4] {
        // SAFETY: all lanes of the warp are here, as the caller promised; registers alone.
        unsafe { complex_fragments::multiply(a, b, conj_b, sums) }
    }

    #[inline(always)]
    unsafe fn multiply_halves(a: Elem, b: Elem, sums: [f64; 4], conj_b: bool) -> [f64; 4] {
        // SAFETY: all lanes of the warp are here, as the caller promised.
        unsafe { Self::multiply_part(a, b, 0, sums, conj_b) }
    }

    #[inline(always)]
    unsafe fn multiply_part(a: Elem, b: Elem, _: usize, sums: [f64; 4], conj_b: bool) -> [f64; 4] {
        // SAFETY: all lanes of the warp are here, as the caller promised; registers alone.
        unsafe { complex_fragments::multiply_four(a, b, conj_b, sums) }
    }

    #[inline(always)]
    fn sum(sums: [f64; 4], e: usize, paired: bool) -> (u32, u32, Elem) {
        Self::sum_of_part(sums, 0, e, paired)
    }

    #[inline(always)]
    fn sum_of_part(sums: [f64; 4], _: usize, e: usize, _: bool) -> (u32, u32, Elem) {
        let (g, q) = lane();
        (g, 2 * q + e as u32, complex_fragments::sums(sums)[e])
    }
}
