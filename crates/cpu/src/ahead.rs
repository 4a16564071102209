//! While a product is computed, the operands of a later one are asked for.
//!
//! Where memory brings a product in about the time of its multiply-adds, neither may wait for the other: then a line of
//! each operand is asked for now and then, so that memory is busy throughout. All at once would be more than a processor keeps in flight. Of
//! shorter products a few lines are asked for after each block: that is not too many, and costs no step of a sum anything.

use crate::job::{Job, Source};
use crate::simd::{Real, Simd};
use crate::stage::{LINE_BYTES, Lines};

/// How far ahead of the products their operands are asked for: about what memory delivers while a load is under way.
const AHEAD_BYTES: usize = 4096;
/// Shorter matrices that follow each other without a gap the CPU asks for by itself.
const LEAST_ASKED_BYTES: usize = 1024;
/// Lines of A, B and C from which on they are asked for in the steps of the sums.
const LEAST_SPREAD_LINES: usize = 88;

/// What is asked for, and where it goes on.
pub struct Ahead<R> {
    /// Whether C is asked for as well.
    c_is_cached: bool,
    /// The product that is asked for is so many later, and before the end.
    products: usize,
    end: usize,
    /// Lines of A, of B, and of C, after each block; 0 where nothing needs to be asked for.
    burst: [usize; 3],
    /// After each block they go on here. The last time may go beyond a matrix, which does no harm.
    next: [*const R; 3],
    pub pace: Pace<R>,
    /// Whether anything is asked for, and there is a later product.
    asks: bool,
    /// Whether that is after blocks.
    bursts: bool,
}

/// What is done for memory in each step of a sum.
pub trait Meanwhile<S: Simd> {
    /// A step of a sum.
    fn step(&mut self);
}

/// Nothing.
#[derive(Clone, Copy)]
pub struct Nothing;

impl<S: Simd> Meanwhile<S> for Nothing {
    #[inline(always)]
    fn step(&mut self) {}
}

/// One line of each in every so many steps of a sum.
#[derive(Clone, Copy)]
pub struct Pace<R> {
    every: usize,
    /// Steps until then.
    left: usize,
    next: [*const R; 3],
    /// Elements from each place to the next one; 0 where nothing needs to be asked for.
    by: [usize; 3],
}

impl<R: Real> Pace<R> {
    /// Nothing is asked for.
    pub const NEVER: Pace<R> = Pace { every: usize::MAX, left: usize::MAX, next: [std::ptr::null(); 3], by: [0; 3] };
}

impl<S: Simd> Meanwhile<S> for Pace<S::Real> {
    #[inline(always)]
    fn step(&mut self) {
        self.left -= 1;
        if self.left == 0 {
            self.left = self.every;
            let mut operand = 0;
            while operand < 3 {
                S::prefetch::<true>(self.next[operand]);
                self.next[operand] = self.next[operand].wrapping_add(self.by[operand]);
                operand += 1;
            }
        }
    }
}

/// In every step so many elements of each operand are asked for, and a line is sent that was collected.
#[derive(Clone, Copy)]
pub struct Evenly<R> {
    asked: [*const R; 3],
    /// Elements that were asked for of each, and of a step.
    at: usize,
    by: usize,
    lines: Lines,
}

impl<R> Evenly<R> {
    /// # Safety
    /// As of [`Lines::send_one`], until [`Evenly::end`], of this and of every copy.
    #[inline(always)]
    pub unsafe fn new(asked: [*const R; 3], by: usize, lines: Lines) -> Self {
        Evenly { asked, at: 0, by, lines }
    }

    /// After the last step: what is left.
    #[inline(always)]
    pub fn end(self) {
        // SAFETY: what the caller of `new` promised.
        unsafe { self.lines.send_rest() }
    }
}

impl<S: Simd> Meanwhile<S> for Evenly<S::Real> {
    #[inline(always)]
    fn step(&mut self) {
        let mut operand = 0;
        while operand < 3 {
            S::prefetch::<true>(self.asked[operand].wrapping_add(self.at));
            operand += 1;
        }
        self.at += self.by;
        // SAFETY: what the caller of `new` promised.
        unsafe { self.lines.send_one() }
    }
}

impl<R: Real> Ahead<R> {
    /// Of a range of products that ends before `end`, each computed in so many blocks, whose sums have as many steps as k. C is asked
    /// for where it is in the caches: read, or written through them.
    #[inline(never)] // once a range, and the same for all kernels
    pub fn new(job: &Job<R>, parts: usize, end: usize, blocks: usize, c_is_cached: bool) -> Self {
        let (bursts, lines, one) = Ahead::lines(job, parts, end, blocks, c_is_cached);
        let (most, steps) = (lines.into_iter().max().unwrap_or(0), blocks * job.k);
        if one < LEAST_SPREAD_LINES * LINE_BYTES || most == 0 || most > steps {
            return bursts;
        }
        let every = steps / most;
        let by = lines.map(|lines| (lines * LINE_BYTES / size_of::<R>()).div_ceil(steps / every));
        Ahead { burst: [0; 3], bursts: false, pace: Pace { every, left: every, by, ..Pace::NEVER }, ..bursts }
    }

    /// The same, all after the blocks.
    #[cfg(feature = "search")]
    pub fn by_blocks(job: &Job<R>, parts: usize, end: usize, blocks: usize) -> Self {
        Ahead::lines(job, parts, end, blocks, true).0
    }

    /// What is asked for after each block; lines of A, B and C; bytes of them all.
    fn lines(job: &Job<R>, parts: usize, end: usize, blocks: usize, c_is_cached: bool) -> (Self, [usize; 3], usize) {
        let bytes = |len: usize| len * parts * size_of::<R>();
        let of = |source: &Source<R>, rows: usize, cols: usize| {
            let by_itself = source.is_packed(rows, cols, parts) && bytes(rows * cols) < LEAST_ASKED_BYTES;
            if source.is_shared() || by_itself { 0 } else { bytes(rows * cols).div_ceil(LINE_BYTES) }
        };
        let c = if c_is_cached { of(&job.c, job.m, job.n) } else { 0 };
        let lines = [of(&job.a, job.m, job.k), of(&job.b, job.k, job.n), c];
        let one = bytes(job.m * job.k + job.k * job.n + job.m * job.n).max(1);
        let burst = lines.map(|lines| lines.div_ceil(blocks.max(1)));
        let (products, next, asks) = (AHEAD_BYTES.div_ceil(one), [std::ptr::null(); 3], lines != [0; 3]);
        let pace = Pace::NEVER;
        let ahead = Ahead { c_is_cached, products, end, burst, next, pace, asks, bursts: asks };
        (ahead, lines, one)
    }

    /// While product i is computed, a later one is asked for.
    ///
    /// # Safety
    /// Product i is in the batch.
    #[inline(always)]
    pub unsafe fn begin(&mut self, job: &Job<R>, i: usize) {
        if !self.asks {
            return;
        }
        let later = i + self.products;
        if later >= self.end {
            (self.pace, self.asks, self.bursts) = (Pace::NEVER, false, false);
            return;
        }
        // SAFETY: `later < end`, where the range ends that the caller's i is in, so it is in the batch too.
        let (a, b, c) = unsafe { (job.a.at(later), job.b.at(later), job.c.at(later)) };
        // Not of C where what the caches hold of it would be written past.
        let c = if self.c_is_cached { c } else { a };
        // Each from its register: what was just stored piece by piece is slow to load as one.
        self.next = [a, b, c];
        if !self.bursts {
            (self.pace.left, self.pace.next) = (self.pace.every, [a, b, c]);
        }
    }

    /// Where the operands of the later product begin, if there is one, and they are to be asked for.
    #[inline(always)]
    pub fn later(&self) -> Option<[*const R; 3]> {
        self.asks.then_some(self.next)
    }

    /// A block was computed.
    #[inline(always)]
    pub fn block<S: Simd<Real = R>>(&mut self) {
        if !self.bursts {
            return;
        }
        for (next, burst) in self.next.iter_mut().zip(self.burst) {
            for _ in 0..burst {
                S::prefetch::<true>(*next);
                *next = next.wrapping_add(LINE_BYTES / size_of::<R>());
            }
        }
    }
}
