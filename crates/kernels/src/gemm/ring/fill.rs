//! Filling a stage: which thread copies what of an operand, and into which place.
//!
//! A line is a row of A or a column of B.
//!
//! | the operand's unit stride runs | copies     | a warp's                          |
//! |--------------------------------|------------|-----------------------------------|
//! | along k, into a part by lines  | 16 bytes   | steps of a stage, of a few lines  |
//! | the same                       | an element | the same                          |
//! | across the lines               | 16 bytes   | neighbours of a step              |
//! | the same, or nowhere           | an element | neighbours of a step              |
//! | along k, into a part by steps  | an element | 8 steps of 4 lines: whole sectors |
//!
//! Copies are of 16 bytes where these are aligned, and inside or outside as a whole. The last is where a
//! stage is transposed: into different banks, of f32 into half of them. A branch is the same for all threads; the stage is the same, and
//! so are the sums. `cp.async` writes zeros without touching memory where there are no such elements.

use super::Tile;
use core::marker::PhantomData;
use cuda_std::prelude::*;
use model::launch::{gemm_ring_line, gemm_ring_step};

/// Steps of k that a warp copies of a line where the operand's unit stride runs along k, and lines.
pub(super) const STEPS: u32 = 8;
const LINES: u32 = 4;

/// How an operand is copied, and lies in a stage.
pub trait Way {
    /// With k as the fast index of its part of a stage.
    const BY_LINES: bool = false;
    /// Whether by 16 bytes; none where that is looked at.
    const WIDE: Option<bool>;
    /// Whether it is looked at along which stride neighbours are copied.
    const LOOKS: bool = false;
}

/// Along k, by 16 bytes or by elements.
pub struct ByLines<const WIDE: bool>;

impl<const WIDE: bool> Way for ByLines<WIDE> {
    const BY_LINES: bool = true;
    const WIDE: Option<bool> = Some(WIDE);
}

/// Across the lines, by 16 bytes or by elements.
pub struct BySteps<const WIDE: bool>;

impl<const WIDE: bool> Way for BySteps<WIDE> {
    const WIDE: Option<bool> = Some(WIDE);
}

/// Along k, by 16 bytes where that can be, else by elements.
pub struct Along;

impl Way for Along {
    const BY_LINES: bool = true;
    const WIDE: Option<bool> = None;
}

/// By elements, across the lines or along k.
pub struct Elements;

impl Way for Elements {
    const WIDE: Option<bool> = Some(false);
    const LOOKS: bool = true;
}

/// By 16 bytes across the lines where that can be, else by elements.
pub struct Either;

impl Way for Either {
    const WIDE: Option<bool> = None;
    const LOOKS: bool = true;
}

/// Whether 16 bytes along k of an operand are inside or outside, aligned, and all of a line.
#[inline(always)]
pub fn lies_by_lines<T: Scalar>(operand: Global<T>, (across, along): (u64, u64), k: u32) -> bool {
    along == 1 && across != 1 && (across | k as u64) % T::WIDTH as u64 == 0 && operand.is_aligned(16)
}

/// The same across the lines, of which there are `all`.
#[inline(always)]
pub fn lies_by_steps<T: Scalar>(operand: Global<T>, (across, along): (u64, u64), all: u32) -> bool {
    across == 1 && (along | all as u64) % T::WIDTH as u64 == 0 && operand.is_aligned(16)
}

/// Where this thread's copies of an operand come from and go to.
pub(super) struct Copies<T, W> {
    /// The first element of the next copy.
    from: Global<T>,
    /// Elements from one copy to the next, and from behind the last copy of a stage to the first of the next stage.
    further: u64,
    next: u64,
    /// The first one's place in the operand's part of a stage, and how much further on that of the next one is.
    into: u32,
    onward: u32,
    /// The step of the first copy, which is beyond all where its line is, and how many more that of the next one is.
    step: u32,
    steps: u32,
    /// How many copies are of lines that are there.
    inside: u32,
    /// Copies are of 16 bytes.
    wide: bool,
    way: PhantomData<W>,
}

impl<T: Scalar, W: Way> Copies<T, W> {
    const BYTES: u32 = size_of::<T>() as u32;

    /// Of stages of `len` lines from `first` of `all` on, from step `start` of `k` on; strides across the lines and along k.
    #[inline(always)]
    pub(super) fn new<S: Tile>(
        operand: Global<T>,
        (across, along): (u64, u64),
        (first, all): (u32, u32),
        len: u32,
        (start, k): (u32, u32),
    ) -> Self {
        let t = thread::thread_idx_x() % S::THREADS; // there are no more, which the compiler cannot know
        let (warp, lane) = (t / warp::WARP_LANES, t % warp::WARP_LANES);
        let aligned = operand.is_aligned(16) && along * Self::BYTES as u64 % 16 == 0;
        // A block that hangs over the last line has 16 bytes of lines only where they end together.
        let whole = across == 1 && aligned && (first + len <= all || all % T::WIDTH as u32 == 0);
        let wide = W::WIDE.unwrap_or(if W::BY_LINES { lies_by_lines(operand, (across, along), k) } else { whole });
        let piece = if wide { T::WIDTH as u32 } else { 1 };
        let ((line, step), (lines, steps)) = if W::BY_LINES {
            let pieces = S::KT / piece;
            ((t / pieces, t % pieces * piece), (S::THREADS / pieces, 0))
        } else if W::LOOKS && !wide && along == 1 && across != 1 {
            let parts = S::KT / STEPS;
            let (line, step) = (lane / LINES % LINES, lane % LINES + lane / 16 * LINES);
            ((warp / parts * LINES + line, warp % parts * STEPS + step), (S::THREADS / 32 / parts * LINES, 0))
        } else {
            let pieces = len / piece;
            ((t % pieces * piece, t / pieces), (0, S::THREADS / pieces))
        };
        let place = |line, step| {
            if W::BY_LINES {
                line * gemm_ring_line(S::KT, Self::BYTES, S::PAIRS) + step
            } else {
                gemm_ring_step(len, step, Self::BYTES, S::PAIRS) + line
            }
        };
        let left = all.saturating_sub(first + line);
        let copies = (S::KT * len / piece / S::THREADS) as u64;
        let further = lines as u64 * across + steps as u64 * along;
        Copies {
            from: operand.starting_at((first + line) as u64 * across + (start + step) as u64 * along),
            further,
            next: (S::KT as u64 * along).wrapping_sub(copies * further),
            into: place(line, step),
            onward: place(lines, steps),
            step: if left == 0 { u32::MAX } else { step },
            steps,
            inside: below(left.max(1), lines),
            wide,
            way: PhantomData,
        }
    }

    /// Starts this thread's copies of a part of a stage, of whose steps `count` are there, and after the last part, since all are taken in
    /// turn, goes on to the next stage. What has to be looked at is copied with the first.
    ///
    /// # Safety
    /// The operand has the steps and spans its elements; nobody reads the stage; all threads of the block are here.
    #[inline(always)]
    pub(super) unsafe fn fill<S: Tile>(&mut self, stage: Shared<T>, len: u32, count: u32, (part, parts): (u32, u32)) {
        let width = T::WIDTH as u32;
        // SAFETY: as the caller promised.
        unsafe {
            match W::WIDE {
                Some(true) => self.copy::<S>(stage, len, count, width, (part, parts)),
                Some(false) => self.copy::<S>(stage, len, count, 1, (part, parts)),
                None if part > 0 => {}
                None if self.wide => self.copy::<S>(stage, len, count, width, (0, 1)),
                None => self.copy::<S>(stage, len, count, 1, (0, 1)),
            }
        }
        if part + 1 == parts {
            self.from = self.from.starting_at(self.next);
        }
    }

    /// Those of a part, of so many elements each.
    ///
    /// # Safety
    /// As for [`Copies::fill`]; they are inside or outside as a whole.
    #[inline(always)]
    unsafe fn copy<S: Tile>(&mut self, stage: Shared<T>, len: u32, count: u32, piece: u32, (part, parts): (u32, u32)) {
        let copies = S::KT * len / piece / S::THREADS;
        let first = if piece == 1 && W::LOOKS {
            // The compiler would keep all the places that it adds up.
            // SAFETY: all threads of the block are here.
            unsafe { ptx::pinned(self.into) }
        } else {
            self.into
        };
        let into = stage.starting_at(first);
        let inside = below(count.saturating_sub(self.step), self.steps).min(self.inside);
        for i in part * copies / parts..(part + 1) * copies / parts {
            // What the compiler can work out need not be kept.
            let behind = if W::BY_LINES {
                i * (S::THREADS / (S::KT / piece)) * gemm_ring_line(S::KT, Self::BYTES, S::PAIRS)
            } else if S::PAIRS && piece == 1 && W::LOOKS && S::THREADS / len % 2 == 1 && self.steps != 0 {
                // A turn is of one step (`Ring::OK`), and a gap lies behind every second one: places are no multiples of the first one's.
                gemm_ring_step(len, i * (S::THREADS / len), Self::BYTES, S::PAIRS)
            } else if piece == 1 && W::LOOKS {
                i * self.onward
            } else {
                gemm_ring_step(len, i * (S::THREADS / (len / piece)), Self::BYTES, S::PAIRS)
            };
            // SAFETY: the elements lie within the operand where they are copied, as the caller promised.
            unsafe { copy(into.address(behind), self.from.address(0), piece * Self::BYTES, i < inside) };
            self.from = self.from.starting_at(self.further);
        }
    }
}

/// How many of the numbers 0, `apart`, 2 · `apart`, .. are below `end`, or `u32::MAX` if all; `apart` is a power of two, or 0.
#[inline(always)]
fn below(end: u32, apart: u32) -> u32 {
    if end == 0 {
        0
    } else if apart == 0 {
        u32::MAX
    } else {
        ((end - 1) >> apart.trailing_zeros()) + 1
    }
}

/// Starts copying 4, 8 or 16 bytes, or zeros.
///
/// # Safety
/// Where `inside`, the source lies within its operand; both addresses are aligned to the bytes; nobody reads the copy
/// before it was waited for.
#[inline(always)]
unsafe fn copy(into: ptx::SharedAddress, from: ptx::GlobalAddress, bytes: u32, inside: bool) {
    // SAFETY: where `inside` the source is there, both are aligned to the bytes, and nobody reads the copy yet: as the
    // caller promised.
    unsafe {
        match bytes {
            16 => ptx::cp_async_16(into, from, inside),
            8 => ptx::cp_async_8(into, from, inside),
            _ => ptx::cp_async_4(into, from, inside),
        }
    }
}
