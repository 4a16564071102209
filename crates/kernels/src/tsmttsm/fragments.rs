//! What a lane has of fragments of two tall matrices, and of a square of C that they give: the types that the matrix units of sm_90
//! multiply, and f64. c128 is in [`super::complex`].
//!
//! # Thread mapping
//! A square is 16 x 16 of C, of 16 rows of the tall matrices: two `mma.m16n8k16`, or, from a stage, as many `mma.m16n8k8` for each half of the rows. Lane (g, q) = (lane / 4, lane % 4) has rows 2q,
//! 2q + 1, 2q + 8, 2q + 9, of each 16 columns
//!
//! | unit stride | columns | by |
//! |---|---|---|
//! | along m and n | 2g, 2g + 1 | 16 bytes: a warp's load is 4 rows of 128 bytes |
//! | along k | g, g + 8 | 16 bytes: 8 columns of 64 bytes |
//! | any | g, g + 8 | elements |
//!
//! The rows are the same everywhere, so that sums have the same bits however A and B lie. From a stage in shared memory it has
//! columns 2g, 2g + 1 of rows q, q + 4, q + 8, q + 12, from one of lines what it has along k.
//! A's two columns are rows g and g + 8 of a fragment; B's two belong to two fragments of 8 columns.

use cuda_std::prelude::*;

/// Any strides, element by element, and rows that end; in f64 columns g and g + 8.
pub(super) const ANY: u32 = 0;
/// The same; columns 2g and 2g + 1.
pub(super) const PAIRED: u32 = 1;
/// 16 bytes along m and n.
pub(super) const ACROSS: u32 = 2;
/// 16 bytes along k, of whole steps.
pub(super) const DOWN: u32 = 3;

/// A lane's part of fragments of a tall matrix.
pub trait Fragments: Scalar {
    /// Lines and rows of a fragment: those of a square of C and of a step.
    const SIDE: u32;
    /// A lane's part of one.
    type Fragment: Copy;

    /// Those of `COUNT` times SIDE lines from `first` on, of the SIDE rows from l on: `across` from line to line, `down` from row
    /// to row.
    ///
    /// # Safety
    /// All lanes of the warp are here. The matrix has `lines` lines and spans its elements, which nobody writes; by `ANY` and `PAIRED` its rows end at `end`,
    /// by `ACROSS` and `DOWN` rows l .. l + SIDE are there, and 16 bytes are aligned, inside or outside.
    unsafe fn straight<const PATH: u32, const COUNT: usize>(
        of: Global<Self>,
        strides: (u64, u64),
        lines: (u32, u32),
        rows: (u32, u32),
    ) -> [Self::Fragment; COUNT];

    /// One of at most half of SIDE lines: those from half of SIDE on are the first again, SIDE rows further down.
    ///
    /// # Safety
    /// As for [`Fragments::straight`], of twice as many rows.
    unsafe fn folded<const PATH: u32>(
        of: Global<Self>,
        strides: (u64, u64),
        lines: u32,
        rows: (u32, u32),
    ) -> Self::Fragment;

    /// A lane's part of one half of a fragment's rows: the first, or the last.
    type Half: Copy;

    /// Halves of `COUNT` times SIDE lines from `line` on, of the SIDE rows from l on of a stage, `pitch` elements apart.
    ///
    /// # Safety
    /// They are in the stage, whose rows are aligned to 16 bytes.
    unsafe fn staged<const COUNT: usize>(
        stage: Shared<Self>,
        pitch: u32,
        l: u32,
        line: u32,
        half: u32,
    ) -> [Self::Half; COUNT];

    /// The same of a stage of lines, `pitch` elements apart, as by `DOWN`.
    ///
    /// # Safety
    /// They are in the stage, whose lines are aligned to 16 bytes.
    unsafe fn of_lines<const COUNT: usize>(
        stage: Shared<Self>,
        pitch: u32,
        l: u32,
        line: u32,
        half: u32,
    ) -> [Self::Half; COUNT];
}

/// A lane's part of squares of C.
pub trait Squares: Fragments {
    /// Its sums of one.
    type Sums: Copy;
    /// They are 0.
    const NONE: Self::Sums;
    /// How many there are.
    const SUMS: usize;
    /// Parts of a square that are products of the matrix units, each with four numbers of its sums.
    const PARTS: usize;

    /// Adds the product of two fragments, or that with the conjugates of B's.
    ///
    /// # Safety
    /// All lanes of the warp are here.
    unsafe fn multiply(a: Self::Fragment, b: Self::Fragment, sums: Self::Sums, conj_b: bool) -> Self::Sums;

    /// The same of halves of them.
    ///
    /// # Safety
    /// All lanes of the warp are here.
    unsafe fn multiply_halves(a: Self::Half, b: Self::Half, sums: Self::Sums, conj_b: bool) -> Self::Sums;

    /// The same of one part of the square.
    ///
    /// # Safety
    /// All lanes of the warp are here.
    unsafe fn multiply_part(a: Self::Half, b: Self::Half, part: usize, sums: [f64; 4], conj_b: bool) -> [f64; 4];

    /// Row, column and value of sum `e`, of fragments by `ACROSS`, `PAIRED` or from a stage of rows if `paired`.
    fn sum(sums: Self::Sums, e: usize, paired: bool) -> (u32, u32, Self);

    /// The same of one part.
    fn sum_of_part(sums: [f64; 4], part: usize, e: usize, paired: bool) -> (u32, u32, Self);
}

/// (g, q) of this lane.
#[inline(always)]
pub(super) fn lane() -> (u32, u32) {
    let lane = thread::thread_idx_x() % warp::WARP_LANES;
    (lane / 4, lane % 4)
}

/// Of a fragment with two pieces of k, each `side` rows: the line of a piece, and the rows before that piece.
#[inline(always)]
pub(super) fn unfolded(line: u32, side: u32) -> (u32, u32) {
    (line % (side / 2), line / (side / 2) * side)
}

/// `line`, or the first: lines past the last are loaded from there, and what comes of them is not stored.
#[inline(always)]
pub(super) fn inside(line: u32, lines: u32) -> u32 {
    if line < lines { line } else { 0 }
}

/// The i-th row of 16 that lane q of four has: as 16 bytes along k have them.
#[inline(always)]
fn row(q: u32, i: usize) -> u32 {
    2 * q + i as u32 % 2 + 8 * (i as u32 / 2)
}

impl Fragments for f64 {
    const SIDE: u32 = 16;
    /// As a fragment of A has it: element 2·i + r is row i of column r of the two.
    type Fragment = [f64; 8];

    #[inline(always)]
    unsafe fn straight<const PATH: u32, const COUNT: usize>(
        of: Global<f64>,
        (across, down): (u64, u64),
        (lines, first): (u32, u32),
        (l, end): (u32, u32),
    ) -> [[f64; 8]; COUNT] {
        let (g, q) = lane();
        let mut all = [[0.0; 8]; COUNT];
        for at in 0..COUNT {
            let line = first + 16 * at as u32;
            match PATH {
                ACROSS => {
                    let from = of.starting_at(l as u64 * down + inside(line + 2 * g, lines) as u64);
                    for i in 0..4 {
                        // SAFETY: rows are there, and the two lines or the first two.
                        let wide = unsafe { from.stream_wide(row(q, i) as u64 * down) };
                        (all[at][2 * i], all[at][2 * i + 1]) = (wide[0], wide[1]);
                    }
                }
                DOWN => {
                    for r in 0..2 {
                        let line = inside(line + g + 8 * r as u32, lines);
                        let from = of.starting_at(line as u64 * across + (l + 2 * q) as u64);
                        for half in 0..2 {
                            // SAFETY: the line is there, and so are rows l .. l + 16.
                            let wide = unsafe { from.stream_wide(8 * half as u64) };
                            (all[at][4 * half + r], all[at][4 * half + 2 + r]) = (wide[0], wide[1]);
                        }
                    }
                }
                _ => {
                    for i in 0..4 {
                        let row = l + row(q, i);
                        for r in 0..2 {
                            let line = line + if PATH == PAIRED { 2 * g + r as u32 } else { g + 8 * r as u32 };
                            let is_there = line < lines && row < end;
                            let from = row as u64 * down + line as u64 * across;
                            // SAFETY: inside the matrix wherever the load happens.
                            all[at][2 * i + r] = unsafe { of.stream_if(is_there, from) };
                        }
                    }
                }
            }
        }
        all
    }

    #[inline(always)]
    unsafe fn folded<const PATH: u32>(
        of: Global<f64>,
        (across, down): (u64, u64),
        lines: u32,
        (l, end): (u32, u32),
    ) -> [f64; 8] {
        let (g, q) = lane();
        let mut all = [0.0; 8];
        match PATH {
            ACROSS => {
                let (line, before) = unfolded(2 * g, 16);
                let from = of.starting_at((l + before) as u64 * down + inside(line, lines) as u64);
                for i in 0..4 {
                    // SAFETY: rows are there, and the two lines or the first two.
                    let wide = unsafe { from.stream_wide(row(q, i) as u64 * down) };
                    (all[2 * i], all[2 * i + 1]) = (wide[0], wide[1]);
                }
            }
            DOWN => {
                for r in 0..2 {
                    let (line, before) = unfolded(g + 8 * r as u32, 16);
                    let from = of.starting_at(inside(line, lines) as u64 * across + (l + before + 2 * q) as u64);
                    for half in 0..2 {
                        // SAFETY: the line is there, and so are its rows.
                        let wide = unsafe { from.stream_wide(8 * half as u64) };
                        (all[4 * half + r], all[4 * half + 2 + r]) = (wide[0], wide[1]);
                    }
                }
            }
            _ => {
                for r in 0..2 {
                    let (line, before) = unfolded(if PATH == PAIRED { 2 * g + r as u32 } else { g + 8 * r as u32 }, 16);
                    for i in 0..4 {
                        let row = l + before + row(q, i);
                        let from = row as u64 * down + line as u64 * across;
                        // SAFETY: inside the matrix wherever the load happens.
                        all[2 * i + r] = unsafe { of.stream_if(line < lines && row < end, from) };
                    }
                }
            }
        }
        all
    }

    /// As a fragment of A has it, of two rows.
    type Half = [f64; 4];

    #[inline(always)]
    unsafe fn staged<const COUNT: usize>(
        stage: Shared<f64>,
        pitch: u32,
        l: u32,
        line: u32,
        half: u32,
    ) -> [[f64; 4]; COUNT] {
        let (g, q) = lane();
        let from = stage.starting_at((l + 8 * half + q) * pitch + line + 2 * g);
        core::array::from_fn(|at| {
            // SAFETY: the stage has rows l to l + 15 and the fragments' lines, as `staged`'s caller promised; two
            // lines are 16 bytes, aligned.
            let [a, b] = [0, 4].map(|row| unsafe { from.load_wide(row * pitch + 16 * at as u32) });
            [a[0], a[1], b[0], b[1]]
        })
    }

    #[inline(always)]
    unsafe fn of_lines<const COUNT: usize>(
        stage: Shared<f64>,
        pitch: u32,
        l: u32,
        line: u32,
        half: u32,
    ) -> [[f64; 4]; COUNT] {
        let (g, q) = lane();
        let from = stage.starting_at((line + g) * pitch + l + 8 * half + 2 * q);
        core::array::from_fn(|at| {
            // SAFETY: the stage has rows l to l + 15 of the fragments' lines, as `of_lines`'s caller promised; two rows
            // are 16 bytes, aligned.
            let [a, b] = [0, 8].map(|line| unsafe { from.load_wide((16 * at as u32 + line) * pitch) });
            [a[0], b[0], a[1], b[1]]
        })
    }
}

impl Squares for f64 {
    /// The even and the odd columns, or the first and the last 8, apart.
    type Sums = [[f64; 4]; 2];
    const NONE: [[f64; 4]; 2] = [[0.0; 4]; 2];
    const SUMS: usize = 8;
    const PARTS: usize = 2;

    #[inline(always)]
    unsafe fn multiply(a: [f64; 8], b: [f64; 8], mut sums: [[f64; 4]; 2], _: bool) -> [[f64; 4]; 2] {
        for h in 0..2 {
            let b = [b[h], b[2 + h], b[4 + h], b[6 + h]];
            // SAFETY: all lanes of the warp are here, as the caller promised; registers alone.
            sums[h] = unsafe { ptx::mma_m16n8k16_f64(a, b, sums[h]) };
        }
        sums
    }

    #[inline(always)]
    unsafe fn multiply_halves(a: [f64; 4], b: [f64; 4], sums: [[f64; 4]; 2], conj_b: bool) -> [[f64; 4]; 2] {
        // SAFETY: all lanes of the warp are here, as the caller promised.
        core::array::from_fn(|part| unsafe { Self::multiply_part(a, b, part, sums[part], conj_b) })
    }

    #[inline(always)]
    unsafe fn multiply_part(a: [f64; 4], b: [f64; 4], part: usize, sums: [f64; 4], _: bool) -> [f64; 4] {
        // SAFETY: all lanes of the warp are here, as the caller promised; registers alone.
        unsafe { ptx::mma_m16n8k8_f64(a, [b[part], b[2 + part]], sums) }
    }

    #[inline(always)]
    fn sum(sums: [[f64; 4]; 2], e: usize, paired: bool) -> (u32, u32, f64) {
        Self::sum_of_part(sums[e / 4], e / 4, e % 4, paired)
    }

    #[inline(always)]
    fn sum_of_part(sums: [f64; 4], part: usize, e: usize, paired: bool) -> (u32, u32, f64) {
        let (g, q) = lane();
        // Column of the 16 that is first or last of a fragment's two, for its lines i.
        let place = |i: u32, second: u32| if paired { 2 * i + second } else { i + 8 * second };
        (place(g, e as u32 / 2), place(2 * q + e as u32 % 2, part as u32), sums[e])
    }
}
