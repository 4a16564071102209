//! A range of a batch, one product after the other, on one thread.

use crate::MOST;
use crate::ahead::Ahead;
use crate::combine::combine;
use crate::epilogue::Epilogue;
use crate::job::{Job, Source};
use crate::simd::{Simd, Work};
use crate::stage::{Buffer, LINE_BYTES, Lines, Stage, end_of_stream};
use crate::tile::{Cuts, Large, Left, Operands, Out, Right, Sizes, Stores, large, product, square};
use std::mem::MaybeUninit;
use std::ops::Range;

/// One product, of operands that suit the kernels.
pub trait Kernel<S: Simd>: Copy {
    /// Whether a product sends the lines of the one before.
    const SENDS: bool = false;

    /// C from A and B; `between` is called after each block, for what memory can do meanwhile, unless the kernel sends.
    ///
    /// # Safety
    /// The CPU has the instructions of S; A, B and C are good for the sizes of the job, C for what
    /// `stores` says; `lines` as [`Lines::send_one`] asks.
    unsafe fn product(
        &self,
        abc: Operands<S::Real>,
        stores: Stores,
        epilogue: &Epilogue<S>,
        ahead: &mut Ahead<S::Real>,
        lines: Lines,
        between: impl FnMut(),
    );

    /// How often `between` is called.
    fn steps(&self) -> usize;
}

/// Of any sizes and strides.
#[derive(Clone, Copy)]
pub struct AnySize<const PARTS: usize> {
    pub sizes: Sizes,
    pub cuts: Cuts,
}

impl<S: Simd, const PARTS: usize> Kernel<S> for AnySize<PARTS> {
    #[inline(always)]
    unsafe fn product(
        &self,
        abc: Operands<S::Real>,
        stores: Stores,
        epilogue: &Epilogue<S>,
        ahead: &mut Ahead<S::Real>,
        _: Lines,
        between: impl FnMut(),
    ) {
        // SAFETY: what this is promised is what `product` asks for: `sizes` are the job's (`any_size`).
        unsafe { product::<S, PARTS>(self.sizes, &self.cuts, abc, stores, epilogue, ahead, between) }
    }

    fn steps(&self) -> usize {
        self.cuts.blocks()
    }
}

/// Of N x N matrices by columns without gaps.
#[derive(Clone, Copy)]
pub struct Square<const PARTS: usize, const N: usize>;

impl<S: Simd, const PARTS: usize, const N: usize> Kernel<S> for Square<PARTS, N> {
    #[inline(always)]
    unsafe fn product(
        &self,
        abc: Operands<S::Real>,
        stores: Stores,
        epilogue: &Epilogue<S>,
        ahead: &mut Ahead<S::Real>,
        _: Lines,
        mut between: impl FnMut(),
    ) {
        // SAFETY: what this is promised is what `square` asks for: N is the job's size, without gaps, and its steps are
        // enough (`has_square`).
        unsafe { square::<S, PARTS, N>(abc, stores, epilogue) }
        ahead.block::<S>();
        between();
    }

    fn steps(&self) -> usize {
        1
    }
}

/// Of larger matrices by columns without gaps: a function for each size.
#[derive(Clone, Copy)]
pub struct LargeSquare<S: Simd>(unsafe fn(&Large<S>));

impl<S: Simd> LargeSquare<S> {
    /// Of N x N matrices.
    pub fn of_size<const PARTS: usize, const N: usize>() -> Self {
        LargeSquare(large::<S, PARTS, N>)
    }
}

impl<S: Simd> Kernel<S> for LargeSquare<S> {
    const SENDS: bool = true;

    #[inline(always)]
    unsafe fn product(
        &self,
        (a, b, c): Operands<S::Real>,
        stores: Stores,
        epilogue: &Epilogue<S>,
        ahead: &mut Ahead<S::Real>,
        lines: Lines,
        _: impl FnMut(),
    ) {
        // What is here already, where there is nothing to ask for.
        let asked = ahead.later().unwrap_or([a.first, b.first, a.first]);
        // SAFETY: what this is promised is what the function asks for: its size is the job's, without gaps (`large_squares`).
        unsafe { (self.0)(&Large { a: a.first, b: b.first, old: c.old, c: c.first, stores, epilogue, asked, lines }) }
    }

    fn steps(&self) -> usize {
        0
    }
}

/// What becomes of A on its way to the kernel, which takes its rows next to each other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Supply {
    AsItIs,
    /// Copied by columns, each matrix; one that the whole batch shares, once.
    Copied,
}

/// What becomes of C.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    InPlace,
    /// The same, past the caches.
    Streamed,
    /// Collected, and sent in whole lines past the caches.
    Staged,
    /// Computed elsewhere by columns, and copied.
    Copied,
    /// Computed elsewhere without α and β, which are not real, and combined.
    Combined,
}

/// A range of the batch.
pub struct Run<'a, S: Simd, K> {
    pub job: &'a Job<S::Real>,
    pub range: Range<usize>,
    pub kernel: K,
    pub supply: Supply,
    pub delivery: Delivery,
    pub parts: usize,
}

/// Room for a matrix, and a vector more.
#[repr(C, align(64))]
struct Room([MaybeUninit<u8>; MOST * MOST * 16 + LINE_BYTES]);

impl Room {
    const NEW: Room = Room([const { MaybeUninit::uninit() }; MOST * MOST * 16 + LINE_BYTES]);

    #[inline(always)]
    fn first<R>(&mut self) -> *mut R {
        (&raw mut self.0).cast()
    }
}

impl<S: Simd, K: Kernel<S>> Work for Run<'_, S, K> {
    #[inline(always)]
    unsafe fn run(self) {
        // SAFETY: `Simd::vectorize` runs this, whose caller promised the instructions and the matrices of the range.
        unsafe { self.products() }
    }
}

impl<S: Simd, K: Kernel<S>> Run<'_, S, K> {
    /// # Safety
    /// The CPU has the instructions of S, and the matrices of the range are there.
    #[inline(always)]
    unsafe fn products(self) {
        let Run { job, range, kernel, supply, delivery, parts } = self;
        if range.is_empty() {
            return;
        }
        let (mut a_room, mut c_room) = (Room::NEW, Room::NEW);
        // SAFETY: the caller promised the instructions and the matrices; the rooms, and the stage's, hold the largest
        // one and a vector more (`gemm_batched_with` refused those beyond MOST).
        unsafe {
            let epilogue = Epilogue::<S>::new(job);
            let c_is_cached = !matches!(delivery, Delivery::Streamed | Delivery::Staged);
            let mut ahead = Ahead::new(job, parts, range.end, kernel.steps(), c_is_cached);
            let c_bytes = job.m * job.n * parts * size_of::<S::Real>();
            let to = job.c.at(range.start).cast_mut();
            let mut buffer = Buffer::NEW;
            let mut stage = Stage::new(&mut buffer, to, c_bytes, kernel.steps());
            let b_by = (job.b.row, job.b.col);
            let has_gaps = job.c.col != job.m * parts;
            let into_c = if has_gaps { Stores::Exactly } else { Stores::OverTheBlock };
            let mut copied = false;
            for i in range {
                ahead.begin(job, i);
                let a = if supply == Supply::AsItIs {
                    Left { first: job.a.at(i), col: job.a.col }
                } else {
                    let room = a_room.first::<S::Real>();
                    if !copied || !job.a.is_shared() {
                        copy_to(room, job.a.at(i), &job.a, (job.m, job.k), parts);
                        copied = true;
                    }
                    Left { first: room.cast_const(), col: job.m * parts }
                };
                let lines = if K::SENDS && delivery == Delivery::Staged { stage.lines() } else { Lines::NONE };
                let b = Right { first: job.b.at(i), row: b_by.0, col: b_by.1 };
                let c = job.c.at(i).cast_mut();
                let in_place = Out { old: c.cast_const(), old_col: job.c.col, first: c, col: job.c.col };
                let elsewhere = |first| Out { first, col: job.m * parts, ..in_place };
                let (out, stores) = match delivery {
                    Delivery::InPlace => (in_place, into_c),
                    Delivery::Streamed => (in_place, Stores::PastCaches),
                    Delivery::Staged => (elsewhere(stage.room()), Stores::Anywhere),
                    Delivery::Combined => (elsewhere(c_room.first()), Stores::Anywhere),
                    Delivery::Copied => {
                        let first = c_room.first::<S::Real>();
                        if job.reads_c() {
                            copy_to(first, c, &job.c, (job.m, job.n), parts);
                        }
                        // What is beyond a column is the next one, which is still to be read.
                        let stores = if job.reads_c() { Stores::Exactly } else { Stores::Anywhere };
                        (Out { old: first.cast_const(), old_col: job.m * parts, ..elsewhere(first) }, stores)
                    }
                };
                let is_staged = delivery == Delivery::Staged;
                kernel.product((a, b, out), stores, &epilogue, &mut ahead, lines, || {
                    if is_staged {
                        stage.send_some();
                    }
                });
                match delivery {
                    Delivery::InPlace | Delivery::Streamed => {}
                    Delivery::Staged if K::SENDS => stage.take_for_lines(c_bytes),
                    Delivery::Staged => stage.take(c_bytes),
                    Delivery::Copied => copy_from(out.first, c, &job.c, (job.m, job.n), parts),
                    Delivery::Combined => combine(job, i, out.first, parts),
                }
            }
            match delivery {
                Delivery::Staged => stage.finish(),
                Delivery::Streamed => end_of_stream(),
                Delivery::InPlace | Delivery::Copied | Delivery::Combined => {}
            }
        }
    }
}

/// From a matrix of any strides to one by columns without gaps.
///
/// # Safety
/// Both are good for rows x cols elements of `parts` numbers.
#[inline(never)] // the same for all kernels
unsafe fn copy_to<R: Copy>(to: *mut R, from: *const R, by: &Source<R>, sizes: (usize, usize), parts: usize) {
    // SAFETY: both are good for the elements, as the caller promised; a complex one's two parts are next to each other,
    // so R twice.
    unsafe {
        match parts {
            1 => copy(to, (1, sizes.0), from, (by.row, by.col), sizes),
            _ => copy::<[R; 2]>(to.cast(), (1, sizes.0), from.cast(), (by.row / 2, by.col / 2), sizes),
        }
    }
}

/// From a matrix by columns without gaps to one of any strides.
///
/// # Safety
/// As [`copy_to`].
#[inline(never)] // the same for all kernels
unsafe fn copy_from<R: Copy>(from: *const R, to: *mut R, by: &Source<R>, sizes: (usize, usize), parts: usize) {
    // SAFETY: as in `copy_to`.
    unsafe {
        match parts {
            1 => copy(to, (by.row, by.col), from, (1, sizes.0), sizes),
            _ => copy::<[R; 2]>(to.cast(), (by.row / 2, by.col / 2), from.cast(), (1, sizes.0), sizes),
        }
    }
}

/// Element by element, strides being (row, column).
///
/// # Safety
/// Both are good for rows x cols elements.
#[inline(always)]
unsafe fn copy<E: Copy>(
    to: *mut E,
    to_by: (usize, usize),
    from: *const E,
    from_by: (usize, usize),
    (rows, cols): (usize, usize),
) {
    for j in 0..cols {
        let (to, from) = (to.wrapping_add(j * to_by.1), from.wrapping_add(j * from_by.1));
        for i in 0..rows {
            // SAFETY: `i < rows` and `j < cols`, for which the caller promised both.
            unsafe { *to.add(i * to_by.0) = *from.add(i * from_by.0) }
        }
    }
}
