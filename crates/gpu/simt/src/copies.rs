//! `cp.async`: what is copied is read when the copy starts, and there when it is waited for.

use crate::fault::{Fault, FaultKind};
use crate::global::Tally;
use crate::port::Call;
use crate::shadow::Write;
use crate::sm::{Group, Run, Sm};
use crate::sync::Lanes;
use std::collections::VecDeque;

/// A copy under way.
struct Copy {
    at: usize,
    bytes: usize,
    data: [u8; 16],
}

/// The copies of one thread, in the order in which it started them.
#[derive(Default)]
pub(crate) struct Copies {
    under_way: VecDeque<Copy>,
    /// How many copies each closed group has.
    groups: VecDeque<usize>,
    /// Copies since the last group was closed.
    open: usize,
}

impl Sm<'_> {
    /// `cp.async`, for all lanes of the group, masked ones too: those write zeros.
    pub(crate) fn copy_async(&mut self, group: &Group) -> Result<(), Box<Fault>> {
        let mut tally = Tally::new(self.last);
        for lane in Lanes(group.lanes) {
            let request = group.warp.request(group.slots, lane);
            // SAFETY: both accesses lie on the stack of the lane's suspended thread.
            let (into, call) = unsafe { (&*request.access, &*request.call) };
            let Call::CopyAsync { from, valid } = call else { continue };
            let run = Run { lanes: 1 << lane, access: into, bytes: request.bytes };
            let at = self.check_shared(group, into.address, &run)?;
            let mut data = [0; 16];
            if request.inside {
                if from.address % u64::from(request.bytes) != 0 {
                    let message =
                        format!("a copy of {} bytes from an address that is no multiple of them", request.bytes);
                    let whole = Run { access: from, ..run };
                    return Err(self.access_fault(FaultKind::Misaligned, group, &whole, message));
                }
                let source = Run { access: from, bytes: *valid, ..run };
                let (operand, offset) = self.read_global(group, &source)?;
                tally.add(self, operand, &source, false);
                let start = self.operands[operand].base.wrapping_add(offset as usize);
                // SAFETY: `read_global` found `valid` bytes, at most 16, from `offset` on in the operand.
                unsafe { data.as_mut_ptr().copy_from_nonoverlapping(start, (*valid as usize).min(16)) };
            }
            self.with_words(group, at, &run, true, |word, now| word.write(now, lane, Write::Async))?;
            self.readers.clear(at / 4..(at + run.bytes as usize) / 4);
            let copies = &mut self.copies[group.thread(lane)];
            copies.under_way.push_back(Copy { at, bytes: request.bytes as usize, data });
            copies.open += 1;
        }
        tally.close(self, false);
        self.counters.cp_async += 1;
        Ok(())
    }

    /// `cp.async.commit_group`.
    pub(crate) fn commit_group(&mut self, group: &Group) {
        for lane in Lanes(group.lanes) {
            let copies = &mut self.copies[group.thread(lane)];
            copies.groups.push_back(std::mem::take(&mut copies.open));
        }
    }

    /// `cp.async.wait_group`.
    pub(crate) fn wait_group(&mut self, group: &Group) {
        for lane in Lanes(group.lanes) {
            // SAFETY: the call lies on the stack of the lane's suspended thread.
            let call = unsafe { &*group.warp.request(group.slots, lane).call };
            let Call::WaitGroup { pending } = call else { continue };
            let thread = group.thread(lane);
            while self.copies[thread].groups.len() > *pending as usize {
                let arrived = self.copies[thread].groups.pop_front().unwrap_or(0);
                self.arrive(thread, arrived, group.warp.sync.stamp);
            }
        }
    }

    /// A thread ends: all its copies arrive.
    pub(crate) fn end_copies(&mut self, thread: usize, stamp: u32) {
        let all = self.copies[thread].under_way.len();
        if all > 0 {
            self.arrive(thread, all, stamp);
        }
        let copies = &mut self.copies[thread];
        copies.groups.clear();
        copies.open = 0;
    }

    /// The first `count` copies of a thread arrive.
    fn arrive(&mut self, thread: usize, count: usize, stamp: u32) {
        for copy in self.copies[thread].under_way.drain(..count) {
            self.shared[copy.at..copy.at + copy.bytes].copy_from_slice(&copy.data[..copy.bytes]);
            for word in &mut self.words[copy.at / 4..(copy.at + copy.bytes) / 4] {
                word.arrive(self.clock.epoch, stamp);
            }
        }
    }
}
