//! Matrices C that follow each other without a gap are collected, and leave in whole lines.
//!
//! An ordinary store first reads the line that it changes, a fourth of the traffic of C ← A B. A line that is written as a
//! whole past the caches is not read. And where the columns of C are no whole vectors, what is stored beyond one does no
//! harm here: stores of parts of a vector are slow, and loads that are near them wait.

use crate::MOST;
use std::mem::MaybeUninit;

/// Bytes of a cache line.
pub const LINE_BYTES: usize = 64;
/// Bytes that are collected before they leave: the lines that leave first were stored long before.
const FULL_BYTES: usize = 4096;
/// Bytes of the largest matrix, and of what a vector stores beyond it.
const ROOM_BYTES: usize = MOST * MOST * 16 + 2 * LINE_BYTES;

#[repr(C, align(64))]
struct Buffer([MaybeUninit<u8>; FULL_BYTES + ROOM_BYTES]);

/// Bytes on their way to consecutive addresses.
pub struct Stage {
    buffer: Buffer,
    /// Where the buffer's first line goes: a multiple of a line.
    to: *mut u8,
    /// Bytes of the first line that are not ours.
    foreign: usize,
    /// Bytes of the buffer that are taken, the foreign ones among them.
    taken: usize,
    /// Whether lines go past the caches.
    past_caches: bool,
}

impl Stage {
    /// To `to` and what follows it.
    #[inline(always)]
    pub fn new<R>(to: *mut R, past_caches: bool) -> Self {
        let foreign = to.addr() % LINE_BYTES;
        let buffer = Buffer([const { MaybeUninit::uninit() }; FULL_BYTES + ROOM_BYTES]);
        Stage { buffer, to: to.cast::<u8>().wrapping_sub(foreign), foreign, taken: foreign, past_caches }
    }

    /// Where the next matrix is to be stored, with room for a vector beyond it.
    #[inline(always)]
    pub fn room<R>(&mut self) -> *mut R {
        (&raw mut self.buffer).cast::<u8>().wrapping_add(self.taken).cast()
    }

    /// `bytes` were stored there.
    ///
    /// # Safety
    /// They were, and their places are in the memory that the stage was made for; at most 32 x 32 of the largest element.
    #[inline(always)]
    pub unsafe fn take(&mut self, bytes: usize) {
        self.taken += bytes;
        if self.taken >= FULL_BYTES {
            // SAFETY: by the caller's promise.
            unsafe { self.send_lines() }
        }
    }

    /// Sends all whole lines, and moves the rest to the front.
    ///
    /// # Safety
    /// All that is taken was stored.
    #[inline(never)]
    unsafe fn send_lines(&mut self) {
        let from = (&raw mut self.buffer).cast::<u8>();
        let (whole, rest) = (self.taken / LINE_BYTES * LINE_BYTES, self.taken % LINE_BYTES);
        let mut at = 0;
        // SAFETY: the bytes are stored, and their places in C are ours, but for the foreign ones.
        unsafe {
            if self.foreign > 0 && whole > 0 {
                at = LINE_BYTES;
                let (from, to) = (from.add(self.foreign), self.to.wrapping_add(self.foreign));
                std::ptr::copy_nonoverlapping(from, to, LINE_BYTES - self.foreign);
                self.foreign = 0;
            }
            if self.past_caches {
                while at < whole {
                    send_line(from.add(at), self.to.wrapping_add(at));
                    at += LINE_BYTES;
                }
            } else if at < whole {
                std::ptr::copy_nonoverlapping(from.add(at), self.to.wrapping_add(at), whole - at);
            }
            std::ptr::copy(from.add(whole), from, rest);
        }
        self.to = self.to.wrapping_add(whole);
        self.taken = rest;
    }

    /// Sends all that is left.
    ///
    /// # Safety
    /// As of [`Stage::take`], of all that was taken.
    #[inline(never)]
    pub unsafe fn finish(&mut self) {
        // SAFETY: by the caller's promise.
        unsafe {
            self.send_lines();
            let from = (&raw mut self.buffer).cast::<u8>().add(self.foreign);
            let (to, len) = (self.to.wrapping_add(self.foreign), self.taken - self.foreign);
            std::ptr::copy_nonoverlapping(from, to, len);
        }
        self.taken = self.foreign;
        if self.past_caches {
            end_of_stream();
        }
    }
}

/// A line past the caches.
///
/// # Safety
/// Both are good for a line, and multiples of one.
#[inline(always)]
unsafe fn send_line(from: *const u8, to: *mut u8) {
    #[cfg(target_arch = "x86_64")]
    for at in [0, 16, 32, 48] {
        use std::arch::x86_64::{_mm_load_si128, _mm_stream_si128};
        // SAFETY: by the caller's promise; every CPU of the target has the instructions.
        unsafe { _mm_stream_si128(to.add(at).cast(), _mm_load_si128(from.add(at).cast())) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: by the caller's promise; a stage is on the stack, what it sends to is not.
    unsafe {
        std::ptr::copy_nonoverlapping(from, to, LINE_BYTES)
    }
}

/// Orders what was streamed before what is stored afterwards, such as that the batch is done.
fn end_of_stream() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every CPU of the target has it.
    unsafe {
        std::arch::x86_64::_mm_sfence()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_arrives_and_no_other_changes() {
        let cases = [(0, 8, 1), (1, 7, 3), (63, 1, 1), (5, 100, 200), (64, 4096, 3), (60, 4, 2000)];
        for ((start, piece, pieces), past_caches) in cases.into_iter().flat_map(|case| [(case, true), (case, false)]) {
            let len = piece * pieces;
            let mut to = vec![0xee_u8; start + len + 200];
            let mut stage = Stage::new(to[start..].as_mut_ptr(), past_caches);
            for at in 0..pieces {
                for byte in 0..piece {
                    // SAFETY: there is room for a piece.
                    unsafe { *stage.room::<u8>().add(byte) = ((at * piece + byte) % 251) as u8 }
                }
                // SAFETY: the piece was stored, and `to` has a place for it.
                unsafe { stage.take(piece) }
            }
            // SAFETY: as above.
            unsafe { stage.finish() }
            let is_right = |(at, byte): (usize, &u8)| match at.checked_sub(start) {
                Some(at) if at < len => usize::from(*byte) == at % 251,
                _ => *byte == 0xee,
            };
            assert!(to.iter().enumerate().all(is_right), "{pieces} pieces of {piece} bytes from {start} on");
        }
    }
}
