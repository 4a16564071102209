//! Matrices C that follow each other without a gap are collected, and leave in whole lines, past the caches.
//!
//! An ordinary store first reads the line that it changes, a fourth of the traffic of C ← A B. A line that is written as a
//! whole past the caches is not read. And where the columns of C are no whole vectors, what is stored beyond one does no
//! harm here: stores of parts of a vector are slow, and loads that are near them wait.

use crate::MOST;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// Bytes of a cache line.
pub const LINE_BYTES: usize = 64;
/// Bytes that stay for a while: to load what was just stored, by stores of other lengths, takes long.
const LATEST_BYTES: usize = 512;
/// Bytes that leave at once, at least: the processor's own buffer of stores is about as long.
const LEAST_BURST_BYTES: usize = 512;
/// Bytes of the buffer that are used, unless two matrices are more: with A and B it stays in the first-level cache.
const LEAST_USED_BYTES: usize = 4096;
/// Bytes of the largest matrix, and of what a vector stores beyond it.
const ROOM_BYTES: usize = MOST * MOST * 16 + 2 * LINE_BYTES;
/// Bytes of the buffer.
const BUFFER_BYTES: usize = 3 * ROOM_BYTES;

// Two of the largest matrices and three lines that were not sent yet, one that is being stored, and a vector beyond it.
const _: () = assert!(3 * MOST * MOST * 16 + 4 * LINE_BYTES <= BUFFER_BYTES);

/// Where bytes stay on their way.
#[repr(C, align(64))]
pub struct Buffer([MaybeUninit<u8>; BUFFER_BYTES]);

impl Buffer {
    /// With nothing in it.
    pub const NEW: Buffer = Buffer([const { MaybeUninit::uninit() }; BUFFER_BYTES]);
}

/// Bytes on their way to consecutive addresses. What [`Stage::room`] gives may be written while lines are sent: the buffer is
/// reached by its address alone.
pub struct Stage<'b> {
    buffer: *mut u8,
    lends: PhantomData<&'b mut Buffer>,
    /// Where the buffer's first line goes: a multiple of a line.
    to: *mut u8,
    /// Bytes of the buffer that have left, or are not ours; a multiple of a line but for the first.
    sent: usize,
    /// Bytes of the buffer that are taken, the sent ones among them.
    taken: usize,
    /// Bytes that leave at once, and bytes of the buffer that are used before what is left moves to the front.
    burst: usize,
    used: usize,
}

impl<'b> Stage<'b> {
    /// To `to` and what follows it, by matrices of so many bytes, with so many calls of [`Stage::send_some`] for each.
    #[inline(always)]
    pub fn new<R>(buffer: &'b mut Buffer, to: *mut R, matrix_bytes: usize, calls: usize) -> Self {
        let foreign = to.addr() % LINE_BYTES;
        let buffer = buffer.0.as_mut_ptr().cast::<u8>();
        let to = to.cast::<u8>().wrapping_sub(foreign);
        let burst = matrix_bytes.div_ceil(calls.max(1)).next_multiple_of(LINE_BYTES).max(LEAST_BURST_BYTES);
        let used = (2 * matrix_bytes + 3 * LINE_BYTES).max(LEAST_USED_BYTES);
        Stage { buffer, lends: PhantomData, to, sent: foreign, taken: foreign, burst, used }
    }

    /// Where the next matrix is to be stored, with room for a vector beyond it.
    #[inline(always)]
    pub fn room<R>(&mut self) -> *mut R {
        self.buffer.wrapping_add(self.taken).cast()
    }

    /// `bytes` were stored there.
    ///
    /// # Safety
    /// They were, and their places are in the memory that the stage was made for; at most 32 x 32 of the largest element.
    #[inline(always)]
    pub unsafe fn take(&mut self, bytes: usize) {
        self.taken += bytes;
        if self.taken > self.used {
            // SAFETY: the bytes are stored and their places ours, as the caller promised now and before, of all that
            // was taken.
            unsafe { self.start_over() }
        }
    }

    /// The same, where [`Stage::lines`] sees to what is sent.
    ///
    /// # Safety
    /// As of [`Stage::take`]; the bytes are as many as the stage was made for.
    #[inline(always)]
    pub unsafe fn take_for_lines(&mut self, bytes: usize) {
        self.taken += bytes;
    }

    /// Sends some lines, if enough were taken and not sent yet.
    ///
    /// # Safety
    /// As of [`Stage::take`], of all that was taken.
    #[inline(always)]
    pub unsafe fn send_some(&mut self) {
        if self.taken >= self.sent + LATEST_BYTES + self.burst {
            // SAFETY: all of `taken` is stored, as the caller promised, and LATEST_BYTES more than this sends.
            unsafe { self.send(self.sent + self.burst) }
        }
    }

    /// The whole lines that were taken and not sent: the caller sends them while the next matrix is stored, before it is taken.
    ///
    /// # Safety
    /// As of [`Stage::take`], of all that was taken, each time by [`Stage::take_for_lines`]; the lines given before were sent.
    #[inline(always)]
    pub unsafe fn lines(&mut self) -> Lines {
        let whole = self.taken / LINE_BYTES * LINE_BYTES;
        if self.sent >= whole {
            return Lines::NONE;
        }
        // SAFETY: all of `taken` is stored, as the caller promised. The rest of a line, which goes to the front, the matrix that is
        // stored behind it and a vector beyond that are less than a matrix and two lines: they end before the lines of the last matrix
        // begin, since more than two matrices and three lines were taken.
        unsafe {
            if self.sent % LINE_BYTES > 0 {
                self.send(self.sent.next_multiple_of(LINE_BYTES));
            }
            let (from, to) = (self.buffer.wrapping_add(self.sent), self.to.wrapping_add(self.sent));
            let lines = Lines { from, to, left: (whole - self.sent) / LINE_BYTES };
            self.sent = whole;
            if self.taken > self.used {
                self.taken -= whole;
                std::ptr::copy_nonoverlapping(self.buffer.wrapping_add(whole), self.buffer, self.taken);
                (self.to, self.sent) = (self.to.wrapping_add(whole), 0);
            }
            lines
        }
    }

    /// Sends the whole lines before `end`, of which all was taken.
    ///
    /// # Safety
    /// As of [`Stage::take`], of all that was taken.
    #[inline(never)]
    unsafe fn send(&mut self, end: usize) {
        let (from, end) = (self.buffer, end / LINE_BYTES * LINE_BYTES);
        // SAFETY: all before `end` is stored and its places are ours, as the caller promised; lines begin at a multiple
        // of 64 in the buffer and in `to`.
        unsafe {
            let foreign = self.sent % LINE_BYTES;
            if foreign > 0 && end > self.sent {
                let len = LINE_BYTES - foreign;
                std::ptr::copy_nonoverlapping(from.add(self.sent), self.to.wrapping_add(self.sent), len);
                self.sent += len;
            }
            while self.sent < end {
                send_line(from.add(self.sent), self.to.wrapping_add(self.sent));
                self.sent += LINE_BYTES;
            }
        }
    }

    /// Sends all whole lines, and moves the rest to the front.
    ///
    /// # Safety
    /// As of [`Stage::take`], of all that was taken.
    #[inline(never)]
    unsafe fn start_over(&mut self) {
        // SAFETY: all of `taken` is stored, as the caller promised. More than a line was taken, so that the rest begins
        // a line.
        unsafe {
            self.send(self.taken);
            let from = self.buffer;
            std::ptr::copy(from.add(self.sent), from, self.taken - self.sent);
        }
        self.to = self.to.wrapping_add(self.sent);
        self.taken -= self.sent;
        self.sent = 0;
    }

    /// Sends all that is left.
    ///
    /// # Safety
    /// As of [`Stage::take`], of all that was taken.
    #[inline(never)]
    pub unsafe fn finish(&mut self) {
        // SAFETY: all of `taken` is stored, as the caller promised; what is less than a line is left, in the buffer and
        // in `to`.
        unsafe {
            self.send(self.taken);
            let from = self.buffer.add(self.sent);
            std::ptr::copy_nonoverlapping(from, self.to.wrapping_add(self.sent), self.taken - self.sent);
        }
        self.sent = self.taken;
        end_of_stream();
    }
}

/// Lines that are sent one after the other.
#[derive(Clone, Copy)]
pub struct Lines {
    from: *const u8,
    to: *mut u8,
    left: usize,
}

impl Lines {
    /// None.
    pub const NONE: Lines = Lines { from: std::ptr::null(), to: std::ptr::null_mut(), left: 0 };

    /// Sends one, if there is one left.
    ///
    /// # Safety
    /// It is one of [`Stage::lines`], no matrix was taken since, and the buffer is still there.
    #[inline(always)]
    pub unsafe fn send_one(&mut self) {
        if self.left > 0 {
            // SAFETY: a line that was stored and whose place is ours, as the caller promised.
            unsafe { send_line(self.from, self.to) }
            (self.from, self.to) = (self.from.wrapping_add(LINE_BYTES), self.to.wrapping_add(LINE_BYTES));
            self.left -= 1;
        }
    }

    /// Sends all that are left.
    ///
    /// # Safety
    /// As of [`Lines::send_one`].
    #[inline(always)]
    pub unsafe fn send_rest(mut self) {
        while self.left > 0 {
            // SAFETY: what the caller promised.
            unsafe { self.send_one() }
        }
    }
}

/// A line past the caches.
///
/// # Safety
/// Both are good for a line, and multiples of one.
#[inline(always)]
unsafe fn send_line(from: *const u8, to: *mut u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    for at in [0, 16, 32, 48] {
        use std::arch::x86_64::{_mm_load_si128, _mm_stream_si128};
        // SAFETY: both are good for a line and multiples of 64, as the caller promised; every CPU of the target has the
        // instructions.
        unsafe { _mm_stream_si128(to.add(at).cast(), _mm_load_si128(from.add(at).cast())) }
    }
    #[cfg(any(miri, not(target_arch = "x86_64")))]
    // SAFETY: both are good for a line, as the caller promised; a stage is on the stack, what it sends to is not.
    unsafe {
        std::ptr::copy_nonoverlapping(from, to, LINE_BYTES)
    }
}

/// Orders what was streamed before what is stored afterwards, such as that the batch is done.
pub fn end_of_stream() {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: every CPU of the target has it.
    unsafe {
        std::arch::x86_64::_mm_sfence()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether pieces arrive that are taken and sent by `one`, and nothing else changes.
    fn assert_arrive((start, piece, pieces): (usize, usize, usize), one: impl Fn(&mut Stage, &dyn Fn(*mut u8))) {
        let len = piece * pieces;
        let mut to = vec![0xee_u8; start + len + 200];
        // From the beginning of a line on.
        let start = start + to.as_ptr().align_offset(LINE_BYTES);
        let mut buffer = Buffer::NEW;
        let mut stage = Stage::new(&mut buffer, to[start..].as_mut_ptr(), piece, 2);
        for at in 0..pieces {
            one(&mut stage, &|room| {
                for byte in 0..piece {
                    // SAFETY: there is room for a piece.
                    unsafe { *room.add(byte) = ((at * piece + byte) % 251) as u8 }
                }
            });
        }
        // SAFETY: all pieces were stored, and `to` has places for them.
        unsafe { stage.finish() }
        let is_right = |(at, byte): (usize, &u8)| match at.checked_sub(start) {
            Some(at) if at < len => usize::from(*byte) == at % 251,
            _ => *byte == 0xee,
        };
        assert!(to.iter().enumerate().all(is_right), "{pieces} pieces of {piece} bytes from {start} on");
    }

    #[test]
    fn every_byte_arrives_and_no_other_changes() {
        let cases = [(0, 8, 1), (1, 7, 3), (63, 1, 1), (5, 100, 200), (64, 4096, 3), (60, 4, 2000)];
        // The last one alone takes miri half a minute.
        for case in cases.into_iter().filter(|case| !cfg!(miri) || case.2 < 2000) {
            assert_arrive(case, |stage, store| {
                store(stage.room());
                // SAFETY: the piece was stored, and there is a place for it.
                unsafe {
                    stage.take(case.1);
                    stage.send_some();
                }
            });
        }
    }

    /// Lines leave while the next piece is stored: the first ones before it, some in the middle, the others behind it. What a vector
    /// stores beyond a piece does no harm.
    #[test]
    fn lines_arrive_that_are_sent_meanwhile() {
        let largest = MOST * MOST * 16;
        let some = [(0, 8, 40), (3, 8, 1200), (1, 648, 30), (40, 4097, 8), (56, largest, 5)];
        let all_places = (0..LINE_BYTES).flat_map(|start| [(start, 2048, 9), (start, 4608, 7)]);
        for case in some.into_iter().chain(all_places).filter(|case| !cfg!(miri) || case.1 < 2048) {
            for at_once in [0, 1, 5, usize::MAX] {
                assert_arrive(case, |stage, store| {
                    // SAFETY: all that was taken was stored, and no piece is taken before the lines are sent.
                    let mut lines = unsafe { stage.lines() };
                    let send = |lines: &mut Lines| {
                        for _ in 0..at_once.min(lines.left) {
                            // SAFETY: as above.
                            unsafe { lines.send_one() }
                        }
                    };
                    send(&mut lines);
                    let room = stage.room::<u8>();
                    store(room);
                    // SAFETY: there is room for a vector beyond a piece.
                    unsafe { room.add(case.1).write_bytes(0xdd, LINE_BYTES - 4) }
                    send(&mut lines);
                    // SAFETY: as above; the piece was stored, and there is a place for it.
                    unsafe {
                        lines.send_rest();
                        stage.take_for_lines(case.1);
                    }
                });
            }
        }
    }
}
