//! An operand of a batch on its way between device memory and shared memory, a tile of several matrices at a time.
//!
//! # Idea
//! What is one run of bytes on both sides moves by 16-byte pieces, wherever it starts: the copy in shared memory starts as
//! far past a piece as the tile does in device memory. Matrices that are spaced in shared memory move by their runs, and
//! what has no unit stride, or no alignment, by elements. A thread's copies are a fixed distance apart: it goes from one
//! to the next by additions.

use cuda_std::prelude::*;
use cuda_std::{Word, ptx::Hint};
use model::launch::batched::{Code, SharedSide};

/// How a thread goes through the copies of a tile.
#[derive(Clone, Copy)]
struct Walk {
    /// Copies a run.
    pieces: u32,
    along: u32,
    run: u32,
    group: u32,
    from: u64,
    into: u32,
    along_on: u32,
    run_on: u32,
    group_on: u32,
    from_on: u64,
    into_on: u32,
}

/// One of a thread's copies.
#[derive(Clone, Copy)]
struct Copy {
    /// This one and those after it, of all threads; none if it is not positive.
    left: i32,
    /// Where it lies in shared memory, and in device memory: elements from the tile's first, or from its listed matrix's.
    into: u32,
    from: u64,
    along: u32,
    run: u32,
    group: u32,
}

/// An operand of a batch.
pub(super) struct Side<T> {
    base: Global<T>,
    /// Where its matrices start, in elements from the base, if they are listed: 64-bit words.
    list: Global<f64>,
    stride: u64,
    code: Code,
    pub(super) shared: SharedSide,
    /// Whether a tile is a single run on both sides.
    whole: bool,
    /// Whether a tile is a single run in device memory, of whole pieces.
    packed: bool,
    runs: u32,
    /// Between the starts of runs, in device memory and in shared memory.
    ld: u64,
    pitch: u32,
    /// Between the elements of a run in device memory.
    step: u64,
    run_len: u32,
    /// Elements that are copied together, and copies a run.
    unit: u32,
    copies: u32,
    threads: u32,
    walk: Walk,
    /// In shared memory, from a row or a column to the next.
    pub(super) down: u32,
    pub(super) across: u32,
}

/// What the launch says of an operand.
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct Operand<T> {
    pub base: Global<T>,
    pub list: Global<f64>,
    pub stride: u64,
    pub row: u64,
    pub col: u64,
}

impl<T: Scalar> Side<T> {
    const WIDTH: u32 = T::WIDTH as u32;

    /// `owners` threads of the block's `threads` compute a product. `PACKED` entries are told of nothing else: no lists, no
    /// shared matrices, no gaps in device memory.
    #[inline(always)]
    pub(super) fn new<const PACKED: bool>(
        of: Operand<T>,
        (rows, cols): (u32, u32),
        code: u32,
        owners: u32,
        threads: u32,
    ) -> Self {
        let code = Code::unpack(code);
        let code =
            Code { listed: !PACKED && code.listed, single: !PACKED && code.single, wide: PACKED || code.wide, ..code };
        let shared = SharedSide::new(rows, cols, code, Self::WIDTH, owners);
        let (step, line_ld) = match (PACKED, code.by_columns) {
            (true, _) => (1, shared.len as u64),
            (_, true) => (of.row, of.col),
            (_, false) => (of.col, of.row),
        };
        let (down, across) = if code.by_columns { (1, shared.pitch) } else { (shared.pitch, 1) };
        // Of a product of no steps nothing of A and B is there.
        let (runs, run_len) = if rows == 0 || cols == 0 { (0, 0) } else { shared.runs(line_ld, step) };
        let is_even = !code.listed && !code.single;
        let matrix = (shared.len * shared.lines) as u64;
        let whole = is_even && shared.is_whole(line_ld, step, if PACKED { matrix } else { of.stride });
        let packed = PACKED || is_even && code.wide && line_ld == shared.len as u64 && of.stride == matrix;
        let (unit, copies) = if code.wide { (Self::WIDTH, run_len / Self::WIDTH) } else { (1, run_len) };
        let pitch = if runs == 1 { shared.each } else { shared.pitch };
        let (base, list) = (of.base, of.list);
        let stride = if PACKED {
            matrix
        } else if is_even {
            of.stride
        } else {
            0
        };
        let ld = if runs == 1 { 0 } else { line_ld };
        let walk = Walk::new(thread::thread_idx_x(), threads, copies.max(1), runs.max(1));
        let mut side = Side {
            base,
            list,
            stride,
            code,
            shared,
            whole,
            packed,
            runs,
            ld,
            pitch,
            step,
            run_len,
            unit,
            copies,
            threads,
            walk,
            down,
            across,
        };
        side.walk.from = side.far(walk.along, walk.run, walk.group);
        side.walk.into = side.near(walk.along, walk.run, walk.group);
        side.walk.from_on = side.far(walk.along_on, walk.run_on, walk.group_on);
        side.walk.into_on = side.near(walk.along_on, walk.run_on, walk.group_on);
        side
    }

    /// Elements from the tile's first to a copy's, in device memory; of listed matrices from their matrix's.
    #[inline(always)]
    fn far(&self, along: u32, run: u32, group: u32) -> u64 {
        group as u64 * self.stride + run as u64 * self.ld + (along * self.unit) as u64 * self.step
    }

    /// The same in shared memory.
    #[inline(always)]
    fn near(&self, along: u32, run: u32, group: u32) -> u32 {
        group * self.shared.each + run * self.pitch + along * self.unit
    }

    #[inline(always)]
    pub(super) fn is_single(&self) -> bool {
        self.code.single
    }

    /// Elements by which the tile from problem `first` on starts past a piece, in both memories.
    #[inline(always)]
    pub(super) fn skew(&self, first: u32) -> u32 {
        let past = first.wrapping_mul(self.stride as u32).wrapping_add(self.code.skew);
        if self.whole { past % Self::WIDTH } else { 0 }
    }

    /// This thread's first copy of a tile of `problems` problems.
    #[inline(always)]
    fn first(&self, problems: u32) -> Copy {
        let Walk { along, run, group, from, into, .. } = self.walk;
        let left = (problems * self.runs * self.copies).saturating_sub(thread::thread_idx_x());
        Copy { left: left as i32, into, from, along, run, group }
    }

    /// And the next one.
    #[inline(always)]
    fn next(&self, mut at: Copy) -> Copy {
        let w = &self.walk;
        at.left -= self.threads as i32;
        at.into = at.into.wrapping_add(w.into_on);
        at.from = at.from.wrapping_add(w.from_on);
        at.along += w.along_on;
        if !self.packed {
            at.run += w.run_on;
            at.group += w.group_on;
        }
        if at.along >= w.pieces {
            at.along -= w.pieces;
            at.into = at.into.wrapping_add(self.pitch.wrapping_sub(self.run_len));
            if !self.packed {
                at.run += 1;
                at.from = at.from.wrapping_add(self.ld.wrapping_sub(self.run_len as u64 * self.step));
            }
        }
        if !self.packed && at.run >= self.runs {
            at.run -= self.runs;
            at.group += 1;
            at.into = at.into.wrapping_add(self.shared.each.wrapping_sub(self.runs * self.pitch));
            at.from = at.from.wrapping_add(self.stride.wrapping_sub(self.runs as u64 * self.ld));
        }
        at
    }

    /// The ends of a tile that is a single run, in elements from the piece in which it starts.
    #[inline(always)]
    fn ends(&self, first: u32, problems: u32) -> (u32, u32) {
        let skew = self.skew(first);
        (skew, skew + problems * self.run_len)
    }

    /// Where problem `first`'s matrix starts; of listed ones the base.
    #[inline(always)]
    fn origin(&self, first: u32) -> Global<T> {
        self.base.starting_at(first as u64 * self.stride)
    }

    /// Where the listed matrix of a problem starts, in elements.
    ///
    /// # Safety
    /// The list has the problem.
    #[inline(always)]
    unsafe fn listed(&self, problem: u32) -> u64 {
        // SAFETY: the list has the problem, as the caller promised; nobody writes the list.
        unsafe { u64::ld_global(self.list.address(problem as u64), Hint::ReadOnly) }
    }

    /// Starts copying `problems` matrices from problem `first` on into shared memory.
    ///
    /// # Safety
    /// There are so many; they span their elements; nobody accesses their place before the copies were waited for.
    #[inline(always)]
    pub(super) unsafe fn fill(&self, into: Shared<T>, first: u32, problems: u32) {
        let from = self.origin(first);
        // SAFETY: elements of the operand; pieces are aligned, as the launch says, or found here.
        unsafe {
            if self.whole {
                let (skew, end) = self.ends(first, problems);
                let (into, from) = (into.starting_at(skew), from);
                let mut x = thread::thread_idx_x() * Self::WIDTH;
                while x < end {
                    let at = x.wrapping_sub(skew);
                    if x >= skew && x + Self::WIDTH <= end {
                        ptx::cp_async_16(into.address(at), from.address(at as u64), true);
                    } else {
                        for i in 0..Self::WIDTH {
                            if x + i >= skew && x + i < end {
                                let at = at.wrapping_add(i);
                                copy::<T>(into.address(at), from.address(at as u64));
                            }
                        }
                    }
                    x += self.threads * Self::WIDTH;
                }
            } else {
                let problems = if self.code.single { problems.min(1) } else { problems };
                let mut at = self.first(problems);
                while at.left > 0 {
                    let listed = if self.code.listed { self.listed(first + at.group) } else { 0 };
                    self.copy_unit(into.address(at.into), from.address(listed.wrapping_add(at.from)));
                    at = self.next(at);
                }
            }
        }
    }

    /// Starts copying what is copied together.
    ///
    /// # Safety
    /// Both addresses hold it.
    #[inline(always)]
    unsafe fn copy_unit(&self, into: ptx::SharedAddress, from: ptx::GlobalAddress) {
        // SAFETY: both addresses hold a unit, as the caller promised: an element, or 16 bytes aligned where `unit` is
        // more.
        unsafe { if self.unit == 1 { copy::<T>(into, from) } else { ptx::cp_async_16(into, from, true) } }
    }

    /// Stores `problems` matrices from problem `first` on.
    ///
    /// # Safety
    /// As for [`Side::fill`]; no other block accesses them, and a barrier lies behind the tile's writing.
    #[inline(always)]
    pub(super) unsafe fn drain(&self, from: Shared<T>, first: u32, problems: u32) {
        let into = self.origin(first);
        // SAFETY: elements of the operand; pieces are aligned, as the launch says, or found here.
        unsafe {
            if self.whole {
                let (skew, end) = self.ends(first, problems);
                let from = from.starting_at(skew);
                let mut x = thread::thread_idx_x() * Self::WIDTH;
                while x < end {
                    let at = x.wrapping_sub(skew);
                    if x >= skew && x + Self::WIDTH <= end {
                        store_wide(into, at as u64, from, at);
                    } else {
                        for i in 0..Self::WIDTH {
                            if x + i >= skew && x + i < end {
                                let at = at.wrapping_add(i);
                                into.store(at as u64, from.load(at));
                            }
                        }
                    }
                    x += self.threads * Self::WIDTH;
                }
            } else {
                let mut at = self.first(problems);
                while at.left > 0 {
                    let listed = if self.code.listed { self.listed(first + at.group) } else { 0 };
                    self.store_unit(into, listed.wrapping_add(at.from), from, at.into);
                    at = self.next(at);
                }
            }
        }
    }

    /// Stores what is stored together.
    ///
    /// # Safety
    /// As for [`Side::drain`].
    #[inline(always)]
    unsafe fn store_unit(&self, into: Global<T>, at: u64, from: Shared<T>, x: u32) {
        // SAFETY: the unit lies in the tile and in the operand and is this thread's (`drain`'s walk): an element, or 16
        // bytes aligned.
        unsafe { if self.unit == 1 { into.store(at, from.load(x)) } else { store_wide(into, at, from, x) } }
    }
}

impl Walk {
    /// Of thread `own` of `threads`; where its copies lie is not said yet.
    #[inline(always)]
    fn new(own: u32, threads: u32, pieces: u32, runs: u32) -> Walk {
        let (line, on) = (own / pieces, threads / pieces);
        Walk {
            pieces,
            along: own % pieces,
            run: line % runs,
            group: line / runs,
            along_on: threads % pieces,
            run_on: on % runs,
            group_on: on / runs,
            from: 0,
            into: 0,
            from_on: 0,
            into_on: 0,
        }
    }
}

/// Stores 16 bytes.
///
/// # Safety
/// Both hold them, aligned.
#[inline(always)]
unsafe fn store_wide<T: Scalar>(into: Global<T>, at: u64, from: Shared<T>, x: u32) {
    // SAFETY: both places hold 16 bytes, aligned, as the caller promised; `drain` gives each to one thread.
    unsafe {
        let wide = from.load_wide(x);
        into.store_wide(at, |i| wide[i]);
    }
}

/// Starts copying an element.
///
/// # Safety
/// Both addresses hold one.
#[inline(always)]
pub(super) unsafe fn copy<T: Scalar>(into: ptx::SharedAddress, from: ptx::GlobalAddress) {
    // SAFETY: both addresses hold an element, as the caller promised.
    unsafe {
        match size_of::<T>() {
            16 => ptx::cp_async_16(into, from, true),
            8 => ptx::cp_async_8(into, from, true),
            _ => ptx::cp_async_4(into, from, true),
        }
    }
}
