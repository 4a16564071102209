//! Exchange among the 32 lanes of a warp. Names and signatures as in rust-cuda's `cuda_std::warp`: of 0.2.2 where that
//! has them, shuffles and votes of its repository's since; values of 32 and 64 bits can be shuffled.

#[cfg(target_arch = "nvptx64")]
use core::arch::asm;

#[cfg(not(target_arch = "nvptx64"))]
use crate::hooks::{Register, Shuffle, Vote, hooks};
#[cfg(not(target_arch = "nvptx64"))]
use core::panic::Location;

/// Lanes a warp.
pub const WARP_LANES: u32 = 32;

/// `%laneid`: this thread in its warp. Any architecture.
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

/// Waits for the lanes of `mask`; what they wrote before is then seen by each of them. `bar.warp.sync`, from
/// sm_30, PTX 6.0.
///
/// # Safety
/// This lane is in `mask`, and every lane of `mask` makes the same call.
#[inline(always)]
#[track_caller]
pub unsafe fn sync_warp(mask: u32) {
    // SAFETY: this lane is in `mask`, whose lanes all make this call, as the caller promised.
    #[cfg(target_arch = "nvptx64")]
    unsafe {
        asm!("bar.warp.sync {0};", in(reg32) mask);
    }
    #[cfg(not(target_arch = "nvptx64"))]
    hooks().sync_warp(mask, Location::caller());
}

/// What lanes can exchange: numbers of one, two or four 32-bit words, each word by a shuffle of its own.
pub trait WarpShuffleValue: Copy {
    /// Exchanges each word; the flags of all are alike.
    #[doc(hidden)]
    fn by_words(self, shuffle: impl FnMut(u32) -> (u32, bool)) -> (Self, bool);
}

/// A number: how it becomes the bits of an unsigned one of `$bits` and comes back.
macro_rules! shuffled {
    ($type:ident, u32, $to:expr, $from:expr) => {
        impl WarpShuffleValue for $type {
            #[inline(always)]
            fn by_words(self, mut shuffle: impl FnMut(u32) -> (u32, bool)) -> (Self, bool) {
                let (word, inside) = shuffle($to(self));
                ($from(word), inside)
            }
        }
    };
    ($type:ident, u64, $to:expr, $from:expr) => {
        impl WarpShuffleValue for $type {
            #[inline(always)]
            fn by_words(self, mut shuffle: impl FnMut(u32) -> (u32, bool)) -> (Self, bool) {
                let bits: u64 = $to(self);
                let ((low, inside), (high, _)) = (shuffle(bits as u32), shuffle((bits >> 32) as u32));
                ($from(u64::from(high) << 32 | u64::from(low)), inside)
            }
        }
    };
}
shuffled!(u32, u32, u32::from, u32::from);
shuffled!(i32, u32, |signed| signed as u32, |bits| bits as i32);
shuffled!(f32, u32, f32::to_bits, f32::from_bits);
shuffled!(u64, u64, u64::from, u64::from);
shuffled!(i64, u64, |signed| signed as u64, |bits| bits as i64);
shuffled!(f64, u64, f64::to_bits, f64::from_bits);

impl WarpShuffleValue for [u64; 2] {
    #[inline(always)]
    fn by_words(self, mut shuffle: impl FnMut(u32) -> (u32, bool)) -> (Self, bool) {
        let ((first, inside), (second, _)) = (self[0].by_words(&mut shuffle), self[1].by_words(&mut shuffle));
        ([first, second], inside)
    }
}

/// One shuffle: `shfl.sync.MODE.b32` a word, with the segment bits that `width` asks for.
macro_rules! shuffle {
    ($(#[$doc:meta])* $name:ident($lane:ident), $mode:literal, $how:expr, $clamp:literal) => {
        $(#[$doc])*
        ///
        /// From sm_30, PTX 6.0; one instruction for each 32 bits of the value. The second result tells whether the
        /// source lane is within reach; where it is not, the first is this lane's own value.
        ///
        /// # Safety
        /// This lane is in `mask`, and every lane of `mask` makes the same call; the source lane is in `mask`, or the
        /// first result is anything. `width` is a power of two up to 32.
        #[inline(always)]
        #[track_caller]
        pub unsafe fn $name<T: WarpShuffleValue>(mask: u32, value: T, $lane: u32, width: u32) -> (T, bool) {
            #[cfg(target_arch = "nvptx64")]
            return value.by_words(
                #[inline(always)]
                |value| {
                    let (shuffled, inside): (u32, u32);
                    let segment = ((WARP_LANES - width) << 8) | $clamp;
                    // SAFETY: this lane is in `mask`, whose lanes all make this call, as the caller promised; `width`
                    // is a power of two up to 32, so `segment` is one.
                    unsafe {
                        asm!(concat!("{{ .reg .pred p; shfl.sync.", $mode, ".b32 {0}|p, {2}, {3}, {4}, {5}; selp.u32 {1}, 1, 0, p; }}"),
                            out(reg32) shuffled, out(reg32) inside, in(reg32) value, in(reg32) $lane, in(reg32) segment, in(reg32) mask);
                    }
                    (shuffled, inside != 0)
                },
            );
            #[cfg(not(target_arch = "nvptx64"))]
            {
                let location = Location::caller();
                value.by_words(|value| hooks().shuffle($how, mask, value, $lane, width, location))
            }
        }
    };
}

shuffle!(/** The value of lane `idx`, counted within this lane's segment of `width` lanes, modulo `width`; always within
    reach. `shfl.sync.idx.b32`. */
    warp_shuffle_idx(idx), "idx", Shuffle::Idx, 31);
shuffle!(/** The value of the lane `delta` below, within reach if in the same segment of `width` lanes.
    `shfl.sync.up.b32`. */
    warp_shuffle_up(delta), "up", Shuffle::Up, 0);
shuffle!(/** The value of the lane `delta` above, within reach if in the same segment of `width` lanes.
    `shfl.sync.down.b32`. */
    warp_shuffle_down(delta), "down", Shuffle::Down, 31);
shuffle!(/** The value of the lane whose number differs in the bits of `lane_mask`, within reach if in the same segment of
    `width` lanes or in a lower one. `shfl.sync.bfly.b32`. */
    warp_shuffle_xor(lane_mask), "bfly", Shuffle::Xor, 31);

/// One vote: an instruction on the GPU, a hook elsewhere; `$answer` is what the word that it gives means.
macro_rules! vote {
    ($(#[$doc:meta])* $name:ident -> $result:ident, $instructions:literal, $vote:expr, $answer:expr) => {
        $(#[$doc])*
        /// From sm_30, PTX 6.0.
        ///
        /// # Safety
        /// This lane is in `mask`, and every lane of `mask` makes the same call.
        #[inline(always)]
        #[track_caller]
        pub unsafe fn $name(mask: u32, predicate: bool) -> $result {
            #[cfg(target_arch = "nvptx64")]
            {
                let word: u32;
                // SAFETY: this lane is in `mask`, whose lanes all make this call, as the caller promised.
                unsafe { asm!($instructions, out(reg32) word, in(reg32) predicate as u32, in(reg32) mask) };
                $answer(word)
            }
            #[cfg(not(target_arch = "nvptx64"))]
            $answer(hooks().vote($vote, mask, predicate, Location::caller()))
        }
    };
}

/// A word as an answer.
#[inline(always)]
fn yes(word: u32) -> bool {
    word != 0
}

vote!(/** Whether the predicate holds in all lanes of `mask`. `vote.sync.all.pred`. */
    warp_vote_all -> bool, "{{ .reg .pred p, q; setp.ne.u32 p, {1}, 0; vote.sync.all.pred q, p, {2}; selp.u32 {0}, 1, 0, q; }}", Vote::All, yes);
vote!(/** Whether the predicate holds in any lane of `mask`. `vote.sync.any.pred`. */
    warp_vote_any -> bool, "{{ .reg .pred p, q; setp.ne.u32 p, {1}, 0; vote.sync.any.pred q, p, {2}; selp.u32 {0}, 1, 0, q; }}", Vote::Any, yes);
vote!(/** The lanes of `mask` in which the predicate holds, one bit each. `vote.sync.ballot.b32`. */
    warp_vote_ballot -> u32, "{{ .reg .pred p; setp.ne.u32 p, {1}, 0; vote.sync.ballot.b32 {0}, p, {2}; }}", Vote::Ballot, u32::from);
