//! `tsmttsm_fitted`, `gram_fitted`: as many tiles of TM x TN sums as C has, a thread each, and stages whose rows lie as in memory.
//!
//! # Idea
//! A block's threads are dealt to C and not C to the block: 33 x 31 is 3 x 3 tiles of 11 x 11, so fourteen groups of 9 threads and 2 that have nothing to do,
//! where a tile of 48 x 32 multiplies half as much again. Of a Gram matrix a group has the tiles that are not above the diagonal: 36 of 64.
//!
//! Rows of a stage lie one behind the other, WIDTH elements apart. Packed rows are one run of 16-byte pieces then, whatever their width, which go by
//! adding alone: what copies elements of an odd width one by one takes longer for that than for their products.
//! # Thread mapping
//! Thread t has tile t mod TILES, of group t / TILES. Which lines are a tile's, and which rows of a stage a group's, so that few lanes meet in a bank, is
//! `model::launch::fit`'s.
//!
//! Tiles are dealt alike to rows and columns, so that of tiles (i, j) and (j, i) of a symmetric matrix one has all sums that the other has: those above
//! the diagonal are stored where they are below.
//! # Order of the multiply-adds
//! There and back along a tile's rows: the next one has an operand of this one's, which a register hands out once. Of 8 x 8 sums 13 to 19% meet in
//! banks of registers, in one direction 18 to 25, down columns 39 (by the listings). The loop stays one row: of four, as the assembler would have it, 45 to 58%
//! meet.
//! # Tails
//! Rows past k's part are zeros. What is read past a row is the next row, or zeros behind the last, and what comes of it is not stored.
//! # Determinism
//! A sum runs over a group's rows in ascending order; a thread adds an element's groups in theirs, some rows of the tiles at a time: all of 11 x 11 sums
//! at once would take more memory than the stages, and leave an SM two blocks for three, which took 1.07 to 1.12 times as long from 25 columns on (H200s on
//! 2026-11-30, fitted.csv, runs 5 and 6).
//! # Cost
//! Of 33 x 33 in f32 a row is 264 bytes, 15 cycles of an SM's share of the memory on an H200, and 9 tiles of 121 multiply-adds, 8.5 cycles of its vector units;
//! loads take 6.2 of the lanes' path to shared memory. On an H200 on 2026-11-30, m = n, 256 MiB of rows of each matrix, 512 of Gram matrices
//! (benches/results/trials/fitted.csv: run 4's tiles of even sides, whose lines are apart, and run 6): f32 of 17, 33, 41 and 53
//! columns 185, 199, 248 and 289 us -> 142, 162, 191 and 225, Gram matrices of 17, 25, 33 and 64 213, 247, 280 and 281 -> 160, 185, 215 and 241;
//! c64 of 9, 25 and 33 157, 290 and 277 -> 134, 230 and 276, Gram matrices 233, 332 and 369 -> 156, 245 and 348. Before these kernels there were tiles of
//! `tsmttsm_staged`, which took up to 2.7 times as long (run 1).
//! # Source
//! Ours.

use super::Reduced;
use super::finish;
use super::stages::{Place, Source, copy};
use core::marker::PhantomData;
use cuda_std::prelude::*;
use model::launch::fit::{self, Fit, STAGES};
use model::launch::reduced::shared_len;

/// A block of THREADS threads with TM x TN sums each, and stages of STEPS rows a thread where C is one tile.
pub struct Fitted<T, const THREADS: usize, const TM: usize, const TN: usize, const STEPS: usize, const GRAM: bool>(
    PhantomData<T>,
);

/// A thread's sums.
struct Sums<T, const TM: usize, const TN: usize> {
    rc: [[T; TN]; TM], // (TM, TN)
    fit: Fit,
    /// Which of its group's tiles is this thread's.
    index: u32,
    /// Where that is: among tiles of rows, and of columns.
    tile: (u32, u32),
    /// Its group.
    group: u32,
}

/// One of the matrices on its way into the stages, `width` columns.
#[derive(Clone, Copy)]
struct Rows<T> {
    source: Source<T>,
    width: u32,
    /// Whether rows lie behind each other, from a multiple of 16 bytes on.
    run: bool,
}

/// Where a thread's elements of a row of a stage are.
struct Lines<T, const TM: usize, const TN: usize> {
    a: [Shared<T>; TM],
    b: [Shared<T>; TN],
}

impl<T: Scalar, const THREADS: usize, const TM: usize, const TN: usize, const STEPS: usize, const GRAM: bool>
    Fitted<T, THREADS, TM, TN, STEPS, GRAM>
{
    const OK: () = {
        assert!(!GRAM || TM == TN, "rows and columns of C are dealt alike");
        assert!(THREADS <= 256, "a fit's code has 8 bits for groups");
        assert!(Self::LEN as usize % T::WIDTH == 0, "stages begin at multiples of 16 bytes");
        assert!(THREADS as u32 >= fit::slack(Self::TILE), "a thread for each element behind a stage");
    };
    /// Elements of a stage.
    const LEN: u32 = fit::len(THREADS as u32, Self::TILE, STEPS as u32, GRAM);
    const TILE: (u32, u32) = (TM as u32, TN as u32);
    /// Rows of their tiles of which groups' sums are added at once.
    const AT_ONCE: usize = fit::rows_at_once(THREADS as u32, Self::TILE, STEPS as u32, GRAM) as usize;

    /// # Safety
    /// Launched with THREADS threads a block, `model::launch::tiling`'s shared memory, and operands that span their elements; C has no
    /// more tiles than the block threads, and `finish` has `model::launch::fit::code` of this entry and C.
    #[inline(always)]
    pub unsafe fn body(x: Reduced<T>) {
        const { Self::OK };
        let p = &x.p;
        let a = Rows::new(p.a, (p.a_row, p.a_col), p.m);
        let b = if GRAM { a } else { Rows::new(p.b, (p.b_col, p.b_row), p.n) };
        // SAFETY: what this is promised is what `run` asks for.
        unsafe {
            // Of tiles that are no whole pieces the compiler sees that there is one way.
            if fit::are_pieces(Self::TILE, (a.width, b.width), T::WIDTH as u32) {
                Self::run::<true>(&x, &a, &b);
            } else {
                Self::run::<false>(&x, &a, &b);
            }
        }
    }

    /// With rows of whole PIECES of 16 bytes, or of any width.
    ///
    /// # Safety
    /// As for [`Fitted::body`].
    #[inline(always)]
    unsafe fn run<const PIECES: bool>(x: &Reduced<T>, a: &Rows<T>, b: &Rows<T>) {
        let p = &x.p;
        let fit = Fit::told(x.finish, Self::TILE, (a.width, b.width), GRAM);
        let mut sums = Sums::<T, TM, TN>::new::<GRAM>(fit);
        let (start, end) = p.part(fit.steps);
        let stages = (end - start).div_ceil(fit.steps.max(1));
        let part = |index: u32| (start + index * fit.steps, end);
        // SAFETY: `end` <= k, which three stages more do not take past 32 bits (`model::choose::LARGEST_DIMENSION`), and parts begin at whole stages. A
        // stage is filled behind a barrier after which nobody reads it, and read behind the barrier after everyone's copies have come; what is
        // behind it is zeroed in front of the first barrier, and copied by nobody. All threads take the same turns.
        unsafe {
            Self::end_stages(fit.steps * if GRAM { a.width } else { a.width + b.width });
            for ahead in 0..ptx::opaque(STAGES - 1) {
                Self::fill::<PIECES>(a, b, fit.steps, ahead, part(ahead));
            }
            for at in 0..stages {
                ptx::cp_async_wait_group::<{ STAGES - 2 }>();
                thread::sync_threads();
                let ahead = at + STAGES - 1;
                Self::fill::<PIECES>(a, b, fit.steps, ahead % STAGES, part(ahead));
                let sa = Self::stage(at % STAGES);
                let sb = if GRAM { sa } else { sa.starting_at(fit.steps * a.width) };
                sums.multiply::<PIECES>((sa, a.width), (sb, b.width), p.signs());
            }
            ptx::cp_async_wait_group::<0>();
            thread::sync_threads(); // the stages' memory is the sums' now
            let (rows, cols) = (fit.down * TM as u32, fit.along * TN as u32);
            let behind = shared_len(rows, cols, THREADS as u32);
            sums.join::<PIECES, GRAM>(Self::AT_ONCE, (behind, rows), p.conj_b());
            finish::tile::<T, GRAM>(x, (rows, cols, THREADS as u32));
        }
    }

    #[inline(always)]
    fn stage(index: u32) -> Shared<T> {
        Shared::at(index * Self::LEN)
    }

    /// Zeros what tiles read behind a stage's last row, which is `used` elements in.
    ///
    /// # Safety
    /// All threads are here, and nobody uses the stages.
    #[inline(always)]
    unsafe fn end_stages(used: u32) {
        let t = thread::thread_idx_x();
        if t < fit::slack(Self::TILE) {
            for index in 0..STAGES {
                // SAFETY: so many elements are behind the rows of a stage; nobody uses them, as the caller promised.
                unsafe { Self::stage(index).store(used + t, T::ZERO) };
            }
        }
    }

    /// Starts filling a stage with `steps` rows from l on, as far as there are some before `end`, and zeros.
    ///
    /// # Safety
    /// As for [`Rows::fill`], of both matrices.
    #[inline(always)]
    unsafe fn fill<const PIECES: bool>(a: &Rows<T>, b: &Rows<T>, steps: u32, stage: u32, (l, end): (u32, u32)) {
        let stage = Self::stage(stage);
        if l < end {
            // SAFETY: what the caller promised; A's rows are in front of B's.
            unsafe {
                a.fill::<PIECES>(stage, (steps, Self::LEN), THREADS as u32, (l, end));
                if !GRAM {
                    b.fill::<PIECES>(stage.starting_at(steps * a.width), (steps, Self::LEN), THREADS as u32, (l, end));
                }
            }
        }
        ptx::cp_async_commit_group();
    }
}

impl<T: Scalar> Rows<T> {
    #[inline(always)]
    fn new(of: Global<T>, (across, down): (u64, u64), width: u32) -> Self {
        let run = of.is_aligned(16) && (across == 1 || width == 1) && down == width as u64;
        Rows { source: Source::by_rows(of, across, down, width, 0), width, run }
    }

    /// Starts copying `steps` rows from l on, as far as there are some before `end`, and zeros, of a stage of no more than `len` elements.
    ///
    /// # Safety
    /// As for [`Source::fill`]; l < `end`. So many rows fill whole pieces, and with PIECES every row does.
    #[inline(always)]
    unsafe fn fill<const PIECES: bool>(
        &self,
        stage: Shared<T>,
        (steps, len): (u32, u32),
        threads: u32,
        (l, end): (u32, u32),
    ) {
        let (width, t, steps) = (T::WIDTH as u32, thread::thread_idx_x(), steps.max(1));
        // SAFETY: inside the matrix, or nothing is read, and in the stage, as the caller promised; both aligned.
        unsafe {
            if self.run {
                let (into, from) = (stage.starting_at(t * width), self.first(l).starting_at((t * width) as u64));
                if end - l >= steps {
                    for turn in 0..len.div_ceil(threads * width) {
                        let at = turn * threads * width;
                        if t * width + at < steps * self.width {
                            ptx::cp_async_16(into.address(at), from.address(at as u64), true);
                        }
                    }
                } else {
                    let there = (end - l) * self.width;
                    for at in (t * width..ptx::opaque(steps * self.width)).step_by((threads * width) as usize) {
                        let bytes = there.saturating_sub(at).min(width) * size_of::<T>() as u32;
                        ptx::cp_async_16_first(stage.address(at), self.first(l).address(at as u64), bytes);
                    }
                }
            } else if PIECES {
                let (pieces, Source { of, across, down, wide, .. }) = ((self.width / width).max(1), self.source);
                // Neighbouring threads copy neighbours.
                let is_along = self.source.is_along();
                for at in (t..ptx::opaque(steps * pieces)).step_by(threads as usize) {
                    let (row, line) = if is_along { (at % steps, at / steps) } else { (at / pieces, at % pieces) };
                    let (into, line, inside) = (row * self.width + line * width, (line * width) as u64, l + row < end);
                    let from = ((l + row) as u64).wrapping_mul(down).wrapping_add(line.wrapping_mul(across));
                    if wide {
                        ptx::cp_async_16(stage.address(into), of.address(from), inside);
                    } else {
                        for v in 0..ptx::opaque(width) {
                            let from = of.address(from.wrapping_add((v as u64).wrapping_mul(across)));
                            copy::<T>(stage.address(into + v), from, inside);
                        }
                    }
                }
            } else {
                let place = Place { steps, side: self.width, pitch: self.width };
                self.source.fill(stage, place, threads, (l, end));
            }
        }
    }

    /// A run's row l.
    #[inline(always)]
    fn first(&self, l: u32) -> Global<T> {
        self.source.of.starting_at(l as u64 * self.width as u64)
    }
}

impl<T: Scalar, const TM: usize, const TN: usize> Sums<T, TM, TN> {
    /// No sums yet.
    #[inline(always)]
    fn new<const GRAM: bool>(fit: Fit) -> Self {
        let t = thread::thread_idx_x();
        let (index, group) = (t % fit.tiles.max(1), t / fit.tiles.max(1));
        let tile = if GRAM { below_diagonal(index) } else { (index / fit.along.max(1), index % fit.along.max(1)) };
        Self { rc: [[T::ZERO; TN]; TM], fit, index, tile, group }
    }

    /// The `index`-th line of a side's tile of so many lines, of so many tiles.
    #[inline(always)]
    fn line<const PIECES: bool>((tile, lines): (u32, usize), tiles: u32, index: usize) -> u32 {
        let (index, width, lines) = (index as u32, T::WIDTH as u32, lines as u32);
        match (PIECES, fit::are_apart(lines, width)) {
            (true, _) => (index / width * tiles + tile) * width + index % width,
            (false, true) => index * tiles + tile,
            (false, false) => tile * lines + index,
        }
    }

    /// This thread's i-th row and j-th column of C.
    #[inline(always)]
    fn row<const PIECES: bool>(&self, i: usize) -> u32 {
        Self::line::<PIECES>((self.tile.0, TM), self.fit.down, i)
    }

    #[inline(always)]
    fn col<const PIECES: bool>(&self, j: usize) -> u32 {
        Self::line::<PIECES>((self.tile.1, TN), self.fit.along, j)
    }

    /// Multiplies this group's rows of a stage, A's `m` and B's `n` elements apart.
    ///
    /// # Safety
    /// The stage is whole, behind a barrier, and behind its last row are zeros.
    #[inline(always)]
    unsafe fn multiply<const PIECES: bool>(
        &mut self,
        (sa, m): (Shared<T>, u32),
        (sb, n): (Shared<T>, u32),
        signs: Signs,
    ) {
        if self.group >= self.fit.groups {
            return; // threads that are no whole group
        }
        let l = self.group * self.fit.rows;
        let mut lines = Lines::<T, TM, TN> {
            a: core::array::from_fn(|i| sa.starting_at(l * m + self.row::<PIECES>(i)).opaque()),
            b: core::array::from_fn(|j| sb.starting_at(l * n + self.col::<PIECES>(j)).opaque()),
        };
        for _ in 0..ptx::opaque(self.fit.rows) {
            ptx::nounroll();
            // SAFETY: the row is in the stage, and what is read behind it.
            let (ra, rb) = unsafe { lines.load::<PIECES>() };
            T::add_outer(&mut self.rc, ra, rb, signs);
            lines.go_on(m, n);
        }
    }

    /// Adds the groups' sums, those of `at_once` rows of the tiles together, each in a place of its own `behind` the tile of C, and leaves them there: `rows` rows by
    /// columns, of a GRAM matrix, HERMITIAN or not, what is not above the diagonal.
    ///
    /// # Safety
    /// All threads of the block are here, and nobody uses the stages.
    #[inline(always)]
    unsafe fn join<const PIECES: bool, const GRAM: bool>(
        &self,
        at_once: usize,
        (behind, rows): (u32, u32),
        hermitian: bool,
    ) {
        let Fit { tiles, groups, .. } = self.fit;
        let (sc, all) = (Shared::<T>::at(0), Shared::<T>::at(behind));
        for first in (0..TM).step_by(at_once) {
            let here = at_once.min(TM - first);
            let place = |group: u32, e: usize| (group * (here * TN) as u32 + e as u32) * tiles + self.index;
            // SAFETY: each place is one thread's in front of a barrier and behind it; no element of C is two threads'.
            unsafe {
                if self.group < groups {
                    for i in 0..TM {
                        for j in 0..TN {
                            if (first..first + here).contains(&i) {
                                all.store(place(self.group, (i - first) * TN + j), self.rc[i][j]);
                            }
                        }
                    }
                }
                thread::sync_threads();
                if self.group < groups {
                    for e in (self.group as usize..here * TN).step_by(groups.max(1) as usize) {
                        let mut sum = T::ZERO;
                        for group in 0..groups {
                            sum = sum.add(all.load(place(group, e)));
                        }
                        let (row, col) = (self.row::<PIECES>(first + e / TN), self.col::<PIECES>(e % TN));
                        if !GRAM || row >= col {
                            sc.store(col * rows + row, sum);
                        } else if self.tile.0 != self.tile.1 {
                            sc.store(row * rows + col, sum.conj_if(hermitian));
                        }
                    }
                }
            }
            thread::sync_threads(); // sums are added, and may be overwritten
        }
    }
}

impl<T: Scalar, const TM: usize, const TN: usize> Lines<T, TM, TN> {
    /// A thread's elements of a row.
    ///
    /// # Safety
    /// They are in the stage, or in what is behind its last row; with PIECES 16 bytes of them are neighbours and aligned.
    #[inline(always)]
    unsafe fn load<const PIECES: bool>(&self) -> ([T; TM], [T; TN]) {
        // SAFETY: what the caller promised.
        unsafe { (load::<T, TM, PIECES>(&self.a), load::<T, TN, PIECES>(&self.b)) }
    }

    /// The next row's.
    #[inline(always)]
    fn go_on(&mut self, m: u32, n: u32) {
        self.a = self.a.map(|line| line.starting_at(m).opaque());
        self.b = self.b.map(|line| line.starting_at(n).opaque());
    }
}

/// # Safety
/// As for [`Lines::load`].
#[inline(always)]
unsafe fn load<T: Scalar, const SIDE: usize, const PIECES: bool>(lines: &[Shared<T>; SIDE]) -> [T; SIDE] {
    let mut all = [T::ZERO; SIDE];
    for i in (0..SIDE).step_by(if PIECES { T::WIDTH } else { 1 }) {
        // SAFETY: what the caller promised.
        unsafe {
            if PIECES {
                let wide = lines[i].load_wide(0);
                for v in 0..T::WIDTH {
                    all[i + v] = wide[v];
                }
            } else {
                let is_apart = fit::are_apart(SIDE as u32, T::WIDTH as u32);
                all[i] = if is_apart { lines[i].load(0) } else { lines[0].load(i as u32) };
            }
        }
    }
    all
}

/// The `index`-th tile, row by row, of those that are not above the diagonal.
#[inline(always)]
fn below_diagonal(index: u32) -> (u32, u32) {
    let (mut row, mut first) = (0, 0);
    while index > first + row {
        first += row + 1;
        row += 1;
    }
    (row, index - first)
}
