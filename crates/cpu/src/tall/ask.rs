//! While tiles are computed, lines of what comes later are asked for, evenly over their steps: all at once would be more than a processor
//! keeps in flight, and none until they are needed would leave the memory idle.

use crate::simd::{Real, Simd};

const LINE_BYTES: usize = 64;

/// What tiles ask for by turns: of the first, and of the second if it is something.
pub struct Asks<R> {
    of: [Ask<R>; 2],
    turn: usize,
}

impl<R: Real> Asks<R> {
    /// The first's turn first.
    #[inline(always)]
    pub fn new(of: [Ask<R>; 2]) -> Self {
        Asks { of, turn: 0 }
    }

    /// What the next tile asks for.
    #[inline(always)]
    pub fn next(&mut self) -> &mut Ask<R> {
        let turn = self.turn & 1;
        self.turn = usize::from(turn == 0 && self.of[1].all > 0);
        &mut self.of[turn]
    }
}

/// Runs of elements next to each other, a line of them after the other.
#[derive(Clone, Copy)]
pub struct Ask<R> {
    run: *const R,
    next: *const R,
    /// From each run to the next.
    by: usize,
    /// Lines of a run, and what is left of this one.
    lines: usize,
    left: usize,
    /// Lines of all, each time so many steps have gone by.
    all: usize,
    steps: usize,
    /// Lines due, times the steps.
    due: usize,
}

impl<R: Real> Ask<R> {
    /// Nothing.
    pub const NOTHING: Ask<R> =
        Ask { run: std::ptr::null(), next: std::ptr::null(), by: 0, lines: 0, left: 0, all: 0, steps: 1, due: 0 };

    /// So many runs of `len` elements, `by` from each other, over so many steps.
    #[inline(always)]
    pub fn runs(run: *const R, (runs, by): (usize, usize), len: usize, steps: usize) -> Self {
        let (runs, len) = if by == len { (runs.min(1), runs * len) } else { (runs, len) };
        let lines = (len * size_of::<R>()).div_ceil(LINE_BYTES);
        Ask { run, next: run, by, lines, left: lines, all: runs * lines, steps: steps.max(1), due: 0 }
    }

    /// A step of a sum. What is `NEAR` comes into the first-level cache; what the CPU asks for by itself would drive out of there what is used.
    #[inline(always)]
    pub fn step<S: Simd<Real = R>, const NEAR: bool>(&mut self) {
        self.due += self.all;
        while self.due >= self.steps {
            self.due -= self.steps;
            if NEAR {
                S::prefetch(self.next)
            } else {
                S::prefetch_to_second(self.next)
            }
            self.next = self.next.wrapping_add(LINE_BYTES / size_of::<R>());
            self.left -= 1;
            if self.left == 0 {
                self.run = self.run.wrapping_add(self.by);
                (self.next, self.left) = (self.run, self.lines);
            }
        }
    }
}
