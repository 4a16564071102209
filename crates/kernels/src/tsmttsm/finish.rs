//! From the tiles of C in the blocks' shared memory to C.
//!
//! # Idea
//! Where k is in one part, a block writes its tile. Where it is not, each block writes its tile of a slot. The last of the
//! blocks that share a ticket, those of a tile, or of several where tiles outnumber tickets, adds their slots, as long as they
//! are few bytes: that saves a launch. Many are added by a launch of their own, `reduce_slots`, over the whole GPU. Either way an
//! element's slots are cut into parts by shape and entry alone; a thread adds a part in the slots' order, and the parts are
//! added in theirs: who is last does not matter.

use super::{Duty, Reduced};
use crate::product::scaled;
use cuda_std::prelude::*;
use model::launch::reduced::{
    Finish, REDUCE_ELEMENTS, REDUCE_PARTS, TICKETS, Triangle, WORK_HEAD_BYTES, shared_len, slot_parts,
};

/// Slots whose loads are in flight together.
const UNROLL: usize = 8;

/// Floats that the memory can add.
pub trait Atomic: Scalar {
    /// Adds to element `index`. `red.global.add`.
    ///
    /// # Safety
    /// The element lies within the operand and is only updated atomically while the kernel runs.
    unsafe fn red_add(into: Global<Self>, index: u64, value: Self);
}

impl Atomic for f32 {
    #[inline(always)]
    unsafe fn red_add(into: Global<f32>, index: u64, value: f32) {
        // SAFETY: the element lies within the operand and is only updated atomically, as `Atomic::red_add` asks.
        unsafe { ptx::red_add_f32(into.address(index), value) }
    }
}

impl Atomic for f64 {
    #[inline(always)]
    unsafe fn red_add(into: Global<f64>, index: u64, value: f64) {
        // SAFETY: the element lies within the operand and is only updated atomically, as `Atomic::red_add` asks.
        unsafe { ptx::red_add_f64(into.address(index), value) }
    }
}

impl<T: Scalar> Reduced<T> {
    /// The first slot.
    #[inline(always)]
    fn slots(&self) -> Global<T> {
        self.p.work.starting_at((WORK_HEAD_BYTES as usize / size_of::<T>()) as u64)
    }

    /// Whether element (i, j) of C is written.
    #[inline(always)]
    fn is_asked_for(&self, i: u32, j: u32) -> bool {
        let triangle = self.finish >> 4 & 15;
        !(triangle == Triangle::Lower.code() >> 4 && i < j || triangle == Triangle::Upper.code() >> 4 && i > j)
    }

    /// Whether (j, i) of a matrix by itself is the conjugate of (i, j), and not the same: one of its factors is conjugated.
    #[inline(always)]
    fn is_hermitian(&self) -> bool {
        self.p.conj_b()
    }

    /// C(i, j) ← α · sum + β · C(i, j), where it is asked for.
    ///
    /// # Safety
    /// (i, j) lies in C, which spans its elements, and this thread alone writes it.
    #[inline(always)]
    #[track_caller]
    unsafe fn put(&self, i: u32, j: u32, sum: T) {
        if self.is_asked_for(i, j) {
            let at = i as u64 * self.p.c_row + j as u64 * self.p.c_col;
            // SAFETY: (i, j) lies in C, and this thread alone writes it, as the caller promised.
            unsafe { self.p.c.store(at, scaled(self.p.alpha, sum, self.p.beta, self.p.c, at)) };
        }
    }

    /// [`Reduced::put`] of element (i, j), of a GRAM matrix, whose i ≥ j, also of (j, i).
    ///
    /// # Safety
    /// As of that, of both.
    #[inline(always)]
    unsafe fn put_mirrored<const GRAM: bool>(&self, i: u32, j: u32, sum: T) {
        let is_hermitian = GRAM && self.is_hermitian();
        // SAFETY: (i, j) and, of GRAM, (j, i) lie in C, and this thread alone writes them, as the caller promised.
        unsafe {
            self.put(i, j, sum.real_if(is_hermitian && i == j));
            if GRAM && i > j {
                self.put(j, i, sum.conj_if(is_hermitian));
            }
        }
    }

    /// Adds part `part` of `parts` of element `at`'s slots, in order.
    ///
    /// # Safety
    /// Every slot is written, and seen by this thread.
    #[inline(always)]
    unsafe fn add_part(&self, len: u64, at: u64, count: u32, (part, parts): (u32, u32)) -> T {
        let cut = |part: u32| (count as u64 * part as u64 / parts.max(1) as u64) as u32;
        let (start, end, slots) = (cut(part), cut(part + 1), self.slots());
        let mut sum = T::ZERO;
        let mut first = start;
        while first < end {
            let next: [T; UNROLL] = core::array::from_fn(|u| {
                let slot = first + u as u32;
                // Past the end the last slot once more: a load without a branch.
                let slot = if slot < end { slot } else { end - 1 };
                // SAFETY: `slot < end`, at most `count`, and `at < len`: inside a slot; other blocks wrote it before
                // the ticket, or before this launch.
                unsafe { slots.load(slot as u64 * len + at) }
            });
            for u in 0..UNROLL {
                if first + (u as u32) < end {
                    sum = sum.add(next[u]);
                }
            }
            first += UNROLL as u32;
        }
        sum
    }
}

/// Element (i, j) from `sum`, which is (i, j) or (j, i), whichever is not above the diagonal. On the diagonal of a Hermitian
/// matrix the imaginary part is 0, which rounding may have left of it.
#[inline(always)]
fn mirrored<T: Scalar>(is_hermitian: bool, i: u32, j: u32, sum: T) -> T {
    sum.conj_if(is_hermitian && i < j).real_if(is_hermitian && i == j)
}

/// Element (i, j) of a symmetric matrix whose lower triangle alone is there.
#[inline(always)]
const fn lower<const GRAM: bool>(i: u32, j: u32) -> (u32, u32) {
    if GRAM && j > i { (j, i) } else { (i, j) }
}

/// Hands in the block's tile of C, which is in shared memory: BM x BN by columns, of a GRAM matrix the lower triangle.
///
/// # Safety
/// All threads of the block are here; the tile is whole, behind a barrier; `model::launch::reduced::shared_len` elements of
/// shared memory; C, and the workspace where it is used, span their elements.
#[inline(always)]
pub unsafe fn tile<T: Scalar, const GRAM: bool>(x: &Reduced<T>, shape: (u32, u32, u32)) {
    // SAFETY: the caller's promise.
    unsafe { tile_at::<T, GRAM>(x, Duty::tiles_first(), shape) }
}

/// The same of a block that knows its duty.
///
/// # Safety
/// As for [`tile`]; each tile and part is one block's.
#[inline(always)]
pub unsafe fn tile_at<T: Scalar, const GRAM: bool>(x: &Reduced<T>, duty: Duty, (bm, bn, threads): (u32, u32, u32)) {
    let t = thread::thread_idx_x();
    let (row, col) = (duty.down * bm, duty.along * bn);
    let sc = Shared::<T>::at(0); // (BM, BN) by columns
    let len = x.p.m as u64 * x.p.n as u64;
    let direct = x.finish & 15 == Finish::Direct.code();
    let slot = x.slots().starting_at(duty.part as u64 * len);
    for e in (t..bm * bn).step_by(threads as usize) {
        let (i, j) = (row + e % bm, col + e / bm);
        // Of a Gram matrix the lower triangle is computed; what is above it is what is below.
        if i < x.p.m && j < x.p.n && (!GRAM || i >= j) {
            // SAFETY: inside the tile and inside C; each element is one thread's.
            unsafe {
                let sum = sc.load(e).conj_if(x.p.conj_sum());
                if direct {
                    x.put_mirrored::<GRAM>(i, j, sum);
                } else {
                    slot.store(j as u64 * x.p.m as u64 + i as u64, sum);
                }
            }
        }
    }
    if x.finish & 15 == Finish::LastBlock.code() {
        // SAFETY: all threads are here with the operands that the caller promised; this block's slot is written.
        unsafe { last_block::<T, GRAM>(x, duty, (bm, bn, threads)) };
    }
}

/// The last of the blocks that share a ticket, those whose tiles leave the same remainder by [`TICKETS`], adds the slots of
/// these tiles.
///
/// # Safety
/// As for [`tile`], this block's slot being written.
#[inline(always)]
unsafe fn last_block<T: Scalar, const GRAM: bool>(x: &Reduced<T>, duty: Duty, (bm, bn, threads): (u32, u32, u32)) {
    let (t, down) = (thread::thread_idx_x(), thread::grid_dim_x());
    let tiles = down * thread::grid_dim_z();
    let first = (duty.down + duty.along * down) % TICKETS;
    let blocks = (tiles - first).div_ceil(TICKETS) * thread::grid_dim_y();
    let ticket = x.p.work.address(first as u64);
    let is_last = Shared::<T>::at(shared_len(bm, bn, threads) - 1);
    thread::device_fence(); // this thread's part of the slot, ahead of the ticket
    thread::sync_threads();
    if t == 0 {
        // SAFETY: a ticket is the first word of an element of the workspace's head, and updated atomically alone.
        let before = unsafe { ptx::atom_add_u32(ticket, 1) };
        // SAFETY: one element, which the barrier orders.
        unsafe { is_last.store(0, if before + 1 == blocks { T::ONE } else { T::ZERO }) };
    }
    thread::sync_threads();
    // SAFETY: behind the barrier.
    if unsafe { is_last.load(0).is_zero() } {
        return;
    }
    thread::device_fence(); // what the others wrote ahead of theirs
    if t == 0 {
        // SAFETY: nobody draws any more: the next launch finds 0.
        unsafe { ptx::atom_add_u32(ticket, 0u32.wrapping_sub(blocks)) };
    }
    for tile in (first..tiles).step_by(TICKETS as usize) {
        // SAFETY: all slots of the tile are written; all threads of the block are here.
        unsafe { add_slots::<T, GRAM>(x, (tile % down * bm, tile / down * bn), (bm, bn, threads)) };
    }
}

/// Adds the slots of the tile that begins at element (row, col), by several threads an element where it has fewer than the
/// block has threads.
///
/// # Safety
/// All slots of the tile are written, and seen by this block, all threads of which are here.
#[inline(always)]
unsafe fn add_slots<T: Scalar, const GRAM: bool>(
    x: &Reduced<T>,
    (row, col): (u32, u32),
    (bm, bn, threads): (u32, u32, u32),
) {
    let (t, count) = (thread::thread_idx_x(), thread::grid_dim_y());
    let least = |a: u32, b: u32| if a < b { a } else { b };
    let rows = least(bm, x.p.m.saturating_sub(row)).max(1);
    let tile_len = rows * least(bn, x.p.n.saturating_sub(col));
    let (len, parts) = (x.p.m as u64 * x.p.n as u64, slot_parts(tile_len as u64, threads));
    let sums = Shared::<T>::at(0);
    let place = |e: u32| (row + e % rows, col + e / rows);
    let is_computed = |i: u32, j: u32| !GRAM || i >= j;
    let slot_at = |i: u32, j: u32| j as u64 * x.p.m as u64 + i as u64;
    if parts == 1 {
        for e in (t..tile_len).step_by(threads as usize) {
            let (i, j) = place(e);
            if is_computed(i, j) {
                // SAFETY: all slots are written; (i, j) lies in C and is this thread's.
                unsafe { x.put_mirrored::<GRAM>(i, j, x.add_part(len, slot_at(i, j), count, (0, 1))) };
            }
        }
        return;
    }
    let (e, part) = (t % tile_len.max(1), t / tile_len.max(1));
    let (i, j) = place(e);
    thread::sync_threads(); // the sums of the tile before are read
    if part < parts && is_computed(i, j) {
        // SAFETY: all slots are written and (i, j) lies in C; an element of shared memory a thread.
        unsafe { sums.store(t, x.add_part(len, slot_at(i, j), count, (part, parts))) };
    }
    thread::sync_threads();
    if t < tile_len && is_computed(i, j) {
        let mut sum = T::ZERO;
        for part in 0..parts {
            // SAFETY: behind the barrier.
            sum = sum.add(unsafe { sums.load(part * tile_len + t) });
        }
        // SAFETY: (i, j) lies in C and is this thread's.
        unsafe { x.put_mirrored::<GRAM>(i, j, sum) };
    }
}

/// Where element (i, j) lies in a slot.
#[inline(always)]
fn slot_at<const GRAM: bool>(m: u32, i: u32, j: u32) -> u64 {
    let (i, j) = lower::<GRAM>(i, j);
    j as u64 * m as u64 + i as u64
}

/// C ← α (S₀ + S₁ + ...) + β C by `REDUCE_PARTS` threads an element; or C ← β C where there are none. Bit 8 of `finish`
/// says that slots have their lower triangle alone, bit 9 that what is above it is the conjugate.
///
/// # Safety
/// Launched with blocks of `SUM_SLOTS_THREADS` threads, one for each 32 elements of C; `SUM_SLOTS_THREADS` elements of shared
/// memory; slots and C span their elements.
#[inline(always)]
unsafe fn reduce_slots<T: Scalar>(x: Reduced<T>, count: u32) {
    const LANES: u32 = REDUCE_ELEMENTS;
    let t = thread::thread_idx_x();
    let (lane, part) = (t % LANES, t / LANES);
    let at = thread::block_idx_x() as u64 * LANES as u64 + lane as u64;
    let (m, len) = (x.p.m.max(1), x.p.m as u64 * x.p.n as u64);
    let (i, j) = ((at % m as u64) as u32, (at / m as u64) as u32);
    let is_hermitian = x.finish >> 9 & 1 == 1;
    let from = if x.finish >> 8 & 1 == 1 { slot_at::<true>(m, i, j) } else { slot_at::<false>(m, i, j) };
    let sums = Shared::<T>::at(0);
    // SAFETY: all slots are written; an element of shared memory a thread.
    unsafe { sums.store(t, if at < len { x.add_part(len, from, count, (part, REDUCE_PARTS)) } else { T::ZERO }) };
    thread::sync_threads();
    if part == 0 && at < len {
        let mut sum = T::ZERO;
        for part in 0..REDUCE_PARTS {
            // SAFETY: behind the barrier.
            sum = sum.add(unsafe { sums.load(part * LANES + lane) });
        }
        // SAFETY: (i, j) lies in C and is this thread's. Of no slots nothing is added, not even 0 · α, which may be NaN.
        unsafe {
            if count > 0 {
                x.put(i, j, mirrored(is_hermitian, i, j, sum));
            } else if x.is_asked_for(i, j) {
                let to = i as u64 * x.p.c_row + j as u64 * x.p.c_col;
                x.p.c.store(to, if x.p.beta.is_zero() { T::ZERO } else { x.p.beta.scale(x.p.c.load(to)) });
            }
        }
    }
}

macro_rules! entry {
    ($entry:ident, $elem:ty) => {
        #[kernel]
        #[allow(missing_docs, clippy::missing_safety_doc, clippy::too_many_arguments)]
        pub unsafe fn $entry(
            m: u32,
            n: u32,
            count: u32,
            alpha: $elem,
            beta: $elem,
            c: Global<$elem>,
            c_row: u64,
            c_col: u64,
            work: Global<$elem>,
            finish: u32,
        ) {
            let (k, a, a_row, a_col, slot_len) = (0, c, 0, 0, 0);
            let (b, b_row, b_col) = (a, a_row, a_col);
            let p = crate::product::Product {
                m,
                n,
                k,
                a,
                a_row,
                a_col,
                b,
                b_row,
                b_col,
                alpha,
                beta,
                c,
                c_row,
                c_col,
                slot_len,
                conj: 0,
                work,
            };
            // SAFETY: the launch covers C, and the operands span their elements.
            unsafe { reduce_slots(Reduced { p, finish }, count) }
        }
    };
}
entry!(sreduce_slots_t256, f32);
entry!(dreduce_slots_t256, f64);
entry!(creduce_slots_t256, Complex<f32>);
entry!(zreduce_slots_t256, Complex<f64>);
