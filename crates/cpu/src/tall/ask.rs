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
    /// For nothing.
    pub const NOTHING: Asks<R> = Asks { of: [Ask::NOTHING; 2], turn: 0 };

    /// The first's turn first.
    #[inline(always)]
    pub fn new(first: Ask<R>, second: Ask<R>) -> Self {
        Asks { of: [first, second], turn: 0 }
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
    /// Whether they are to come into the first-level cache.
    near: bool,
}

impl<R: Real> Ask<R> {
    /// Nothing.
    pub const NOTHING: Ask<R> = Ask {
        run: std::ptr::null(),
        next: std::ptr::null(),
        by: 0,
        lines: 0,
        left: 0,
        all: 0,
        steps: 1,
        due: 0,
        near: true,
    };

    /// So many runs of `len` elements, `by` from each other, over so many steps.
    #[inline(always)]
    pub fn runs(run: *const R, (runs, by): (usize, usize), len: usize, steps: usize) -> Self {
        let (runs, len) = if by == len { (runs.min(1), runs * len) } else { (runs, len) };
        let lines = (len * size_of::<R>()).div_ceil(LINE_BYTES);
        Ask { run, next: run, by, lines, left: lines, all: runs * lines, steps: steps.max(1), due: 0, near: true }
    }

    /// Past the first-level cache, if there is more than it holds beside what is used.
    pub fn past_first(self, far: bool) -> Self {
        Ask { near: !far, ..self }
    }

    /// So many steps of a sum.
    #[inline(always)]
    pub fn steps<S: Simd<Real = R>>(&mut self, count: usize) {
        self.due += self.all * count;
        while self.due >= self.steps {
            self.due -= self.steps;
            match self.near {
                true => S::prefetch::<true>(self.next),
                false => S::prefetch::<false>(self.next),
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
