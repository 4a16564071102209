//! Exchange among the 32 lanes of a warp. Names and signatures as in rust-cuda's `cuda_std::warp`.

#[cfg(target_arch = "nvptx64")]
use core::arch::asm;

#[cfg(not(target_arch = "nvptx64"))]
use crate::hooks::{Register, Shuffle, Vote, hooks};
#[cfg(not(target_arch = "nvptx64"))]
use core::panic::Location;

/// Lanes a warp.
pub const WARP_LANES: u32 = 32;

/// `%laneid`: this thread in its warp.
#[inline(always)]
#[track_caller]
pub fn lane_id() -> u32 {
    #[cfg(target_arch = "nvptx64")]
    {
        let lane: u32;
        // SAFETY: reading a special register has no requirements.
        unsafe { asm!("mov.u32 {0}, %laneid;", out(reg32) lane, options(pure, nomem, nostack)) };
        lane
    }
    #[cfg(not(target_arch = "nvptx64"))]
    hooks().register(Register::LaneId)
}

/// Waits for the lanes of `mask`; what they wrote before is then seen by each of them. `bar.warp.sync`.
///
/// # Safety
/// This lane is in `mask`, and every lane of `mask` makes the same call.
#[inline(always)]
#[track_caller]
pub unsafe fn sync_warp(mask: u32) {
    // SAFETY: promised by the caller.
    #[cfg(target_arch = "nvptx64")]
    unsafe {
        asm!("bar.warp.sync {0};", in(reg32) mask);
    }
    #[cfg(not(target_arch = "nvptx64"))]
    hooks().sync_warp(mask, Location::caller());
}

/// One shuffle: `shfl.sync.MODE.b32`, with the segment bits that `width` asks for.
macro_rules! shuffle {
    ($(#[$doc:meta])* $name:ident, $mode:literal, $how:expr, $clamp:literal) => {
        $(#[$doc])*
        ///
        /// The second value tells whether the source lane lies in the same segment of `width` lanes (a power of two up
        /// to 32); where it does not, the first is this lane's own value.
        ///
        /// # Safety
        /// This lane is in `mask`, and every lane of `mask` makes the same call.
        #[inline(always)]
        #[track_caller]
        pub unsafe fn $name(mask: u32, value: u32, lane: u32, width: u32) -> (u32, bool) {
            #[cfg(target_arch = "nvptx64")]
            {
                let (shuffled, inside): (u32, u32);
                let segment = ((WARP_LANES - width) << 8) | $clamp;
                // SAFETY: promised by the caller.
                unsafe {
                    asm!(concat!("{{ .reg .pred p; shfl.sync.", $mode, ".b32 {0}|p, {2}, {3}, {4}, {5}; selp.u32 {1}, 1, 0, p; }}"),
                        out(reg32) shuffled, out(reg32) inside, in(reg32) value, in(reg32) lane, in(reg32) segment, in(reg32) mask);
                }
                (shuffled, inside != 0)
            }
            #[cfg(not(target_arch = "nvptx64"))]
            hooks().shuffle($how, mask, value, lane, width, Location::caller())
        }
    };
}

shuffle!(/** The value of lane `lane` of the segment. `shfl.sync.idx.b32`. */
    warp_shuffle_idx, "idx", Shuffle::Idx, 31);
shuffle!(/** The value of the lane `lane` below. `shfl.sync.up.b32`. */
    warp_shuffle_up, "up", Shuffle::Up, 0);
shuffle!(/** The value of the lane `lane` above. `shfl.sync.down.b32`. */
    warp_shuffle_down, "down", Shuffle::Down, 31);
shuffle!(/** The value of the lane whose number differs in the bits of `lane`. `shfl.sync.bfly.b32`. */
    warp_shuffle_xor, "bfly", Shuffle::Xor, 31);

/// One vote: an instruction on the GPU, a hook elsewhere.
macro_rules! vote {
    ($(#[$doc:meta])* $name:ident, $instructions:literal, $vote:expr) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// This lane is in `mask`, and every lane of `mask` makes the same call.
        #[inline(always)]
        #[track_caller]
        pub unsafe fn $name(mask: u32, predicate: bool) -> u32 {
            #[cfg(target_arch = "nvptx64")]
            {
                let result: u32;
                // SAFETY: promised by the caller.
                unsafe { asm!($instructions, out(reg32) result, in(reg32) predicate as u32, in(reg32) mask) };
                result
            }
            #[cfg(not(target_arch = "nvptx64"))]
            hooks().vote($vote, mask, predicate, Location::caller())
        }
    };
}

vote!(/** 1 if the predicate holds in all lanes of `mask`, else 0. `vote.sync.all.pred`. */
    warp_vote_all, "{{ .reg .pred p, q; setp.ne.u32 p, {1}, 0; vote.sync.all.pred q, p, {2}; selp.u32 {0}, 1, 0, q; }}", Vote::All);
vote!(/** 1 if the predicate holds in any lane of `mask`, else 0. `vote.sync.any.pred`. */
    warp_vote_any, "{{ .reg .pred p, q; setp.ne.u32 p, {1}, 0; vote.sync.any.pred q, p, {2}; selp.u32 {0}, 1, 0, q; }}", Vote::Any);
vote!(/** The lanes of `mask` in which the predicate holds, one bit each. `vote.sync.ballot.b32`. */
    warp_vote_ballot, "{{ .reg .pred p; setp.ne.u32 p, {1}, 0; vote.sync.ballot.b32 {0}, p, {2}; }}", Vote::Ballot);
