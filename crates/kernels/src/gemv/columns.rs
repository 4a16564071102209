//! `gemv_columns`: A's unit stride runs down its columns.
//!
//! # Idea
//! A warp's load of A is 512 bytes of a column in one piece, and STEPS columns are in flight a thread while those before them
//! are multiplied: 32 KiB a block. x needs an element a column and thread, which a warp's lanes share and the first-level
//! cache holds; NB vectors need NB times as many, for one A. Where rows are few, groups of a block's threads have columns of their own, and blocks parts of k.
//!
//! # Thread mapping
//! LANES = BM / TM threads along the rows, THREADS / LANES groups along k; group g takes columns g, g + GROUPS .. of each
//! GROUPS·STEPS. By 16 bytes a lane has TM neighbouring rows, by elements every 32nd of its warp's 32·TM: where columns start
//! anywhere neighbouring loads share a sector, and only a warp's own come close enough together to fetch it once.

use crate::tsmttsm::{Duty, Reduced};
use cuda_std::prelude::*;
use cuda_std::warp::WARP_LANES;

/// # Safety
/// Launched with THREADS threads a block, `model::launch::tiling`'s shared memory, and operands that span their elements.
#[inline(always)]
pub unsafe fn body<
    T: Scalar,
    const THREADS: usize,
    const BM: usize,
    const TM: usize,
    const NB: usize,
    const STEPS: usize,
>(
    x: Reduced<T>,
) {
    // SAFETY: the caller's promise.
    unsafe { product::<T, THREADS, BM, TM, NB, STEPS, true>(x) }
}

/// The same, whether the next columns are loaded ahead of the products of those before them or behind: [`super::tall`].
///
/// # Safety
/// As for [`body`].
#[inline(always)]
pub(super) unsafe fn product<
    T: Scalar,
    const THREADS: usize,
    const BM: usize,
    const TM: usize,
    const NB: usize,
    const STEPS: usize,
    const AHEAD: bool,
>(
    x: Reduced<T>,
) {
    const {
        assert!(
            TM == T::WIDTH && BM % (32 * TM) == 0 && THREADS % (BM / TM) == 0,
            "16 bytes a lane, whole groups of whole warps"
        )
    };
    let lanes = const { (BM / TM) as u32 };
    let groups = const { (THREADS * TM / BM) as u32 };
    let t = thread::thread_idx_x();
    let (lane, group) = (t % lanes, t / lanes);
    let (p, tile) = (&x.p, thread::block_idx_x() * BM as u32);
    let (start, end) = p.part(groups * STEPS as u32);
    // All 16 bytes of a lane's rows are inside A or outside of it, and aligned.
    let width = TM as u32;
    let by_16_bytes = p.a.is_aligned(16)
        && (p.k <= 1 || p.a_col % width as u64 == 0)
        && (p.m % width == 0 || tile + BM as u32 <= p.m);
    let by_elements = |lane: u32, i: usize| (lane / WARP_LANES * width + i as u32) * WARP_LANES + lane % WARP_LANES;
    let mut sums = [[T::ZERO; TM]; NB];
    let run = Columns { x: &x, parts: (start, end), group: (group, groups) };

    if by_16_bytes {
        let row = tile + lane * width;
        // SAFETY: columns before `end` <= k; 16 bytes of a column from a row inside on, aligned.
        let load = |at: Global<T>, inside: bool| unsafe { at.stream_wide_if(row < p.m && inside, row as u64) };
        // SAFETY: `end` <= k.
        unsafe { run.add::<T::Wide, TM, NB, STEPS, AHEAD>(&mut sums, load, T::ZEROS) };
    } else {
        let row = |i: usize| tile + by_elements(lane, i);
        let load = |at: Global<T>, inside: bool| {
            // SAFETY: columns before `end` <= k; rows inside.
            core::array::from_fn(|i| unsafe { at.stream_if(row(i) < p.m && inside, row(i) as u64) })
        };
        // SAFETY: `end` <= k.
        unsafe { run.add::<[T; TM], TM, NB, STEPS, AHEAD>(&mut sums, load, [T::ZERO; TM]) };
    }

    let sc = Shared::<T>::at(0); // (BM, NB, groups) by columns
    for i in 0..TM {
        let row = if by_16_bytes { lane * width + i as u32 } else { by_elements(lane, i) };
        for j in 0..NB {
            // SAFETY: an element of each thread's own.
            unsafe { sc.store((group * NB as u32 + j as u32) * BM as u32 + row, sums[j][i]) };
        }
    }
    // SAFETY: shared memory and operands are as the launch promised; all sums are stored, and all threads here.
    unsafe {
        super::hand_in(&x, Duty::tiles_first(), (BM as u32, NB as u32), THREADS as u32, ((BM * NB) as u32, groups))
    };
}

/// The columns of a group.
struct Columns<'a, T> {
    x: &'a Reduced<T>,
    /// Its block's part of k: from, to.
    parts: (u32, u32),
    /// Which of how many groups.
    group: (u32, u32),
}

impl<T: Scalar> Columns<'_, T> {
    /// Adds what `load` has of this group's columns times x, STEPS at a time; if AHEAD the next are on their way while these are
    /// multiplied, which also keeps the assembler from loading one by one.
    ///
    /// # Safety
    /// The part ends at k at most, and the vectors span their elements.
    #[inline(always)]
    unsafe fn add<
        L: Copy + core::ops::Index<usize, Output = T>,
        const TM: usize,
        const NB: usize,
        const STEPS: usize,
        const AHEAD: bool,
    >(
        &self,
        sums: &mut [[T; TM]; NB],
        load: impl Fn(Global<T>, bool) -> L,
        zeros: L,
    ) {
        let (p, (start, end), (group, groups)) = (&self.x.p, self.parts, self.group);
        let (across, along) = (groups as u64 * p.a_col, groups as u64 * p.b_row);
        let next = |first: u32| {
            let mut ra = [zeros; STEPS]; // (STEPS, TM)
            let mut at = p.a.starting_at((first + group) as u64 * p.a_col);
            for s in 0..STEPS {
                ra[s] = load(at, first + s as u32 * groups + group < end);
                at = at.starting_at(across);
            }
            ra
        };
        let conj_b = p.conj_b();
        let mut now = if AHEAD { next(start) } else { [zeros; STEPS] };
        let step = STEPS as u32 * groups;
        for first in (start..end).step_by(step as usize) {
            let ra = if AHEAD { now } else { next(first) };
            if AHEAD {
                now = next(first + step); // past the end nothing is loaded
            }
            let mut at = p.b.starting_at((first + group) as u64 * p.b_row);
            for s in 0..STEPS {
                let inside = first + s as u32 * groups + group < end;
                for j in 0..NB {
                    // Of one vector there is no column to look for.
                    let there = inside && (NB == 1 || (j as u32) < p.n);
                    // SAFETY: an element of column j before `end` <= k.
                    let rx = unsafe { at.load_if(there, j as u64 * p.b_col) }.conj_if(conj_b);
                    for i in 0..TM {
                        sums[j][i] = ra[s][i].fma(rx, sums[j][i]);
                    }
                }
                at = at.starting_at(along);
            }
        }
    }
}
