//! Loads, stores and atomic updates of the block's shared memory.

use crate::counters::SharedTraffic;
use crate::fault::{Fault, FaultKind};
use crate::global::{copy, update};
use crate::shadow::{Clash, Word, Write};
use crate::sm::{Group, Run, Sm};
use crate::sync::Lanes;
use cuda_std::hooks::Space;

/// Bytes that the longest accesses are aligned to.
pub(crate) const WIDEST: usize = 16;

/// Banks, each 4 bytes wide.
const BANKS: usize = 32;

/// Wavefronts of an instruction of 16 bytes a lane at least, even where all lanes read the same: so an H200 counts.
const WIDE_WAVEFRONTS: u64 = 2;

/// Which banks one warp instruction needs.
struct Banks {
    words: [u8; BANKS],
    distinct: u64,
    wide: bool,
}

impl Banks {
    fn new() -> Self {
        Banks { words: [0; BANKS], distinct: 0, wide: false }
    }

    /// Counts the words of an access, unless this instruction touched them before.
    fn add(&mut self, words: &mut [Word], first: usize, number: u32) {
        self.wide |= words.len() == 4;
        for (at, word) in words.iter_mut().enumerate() {
            if word.first_seen(number) {
                self.words[(first + at) % BANKS] += 1;
                self.distinct += 1;
            }
        }
    }

    fn close(&self, traffic: &mut SharedTraffic) {
        if self.distinct == 0 {
            return;
        }
        let least = if self.wide { WIDE_WAVEFRONTS } else { 1 };
        let fewest = self.distinct.div_ceil(BANKS as u64).max(least);
        let wavefronts = u64::from(self.words.iter().copied().max().unwrap_or(0)).max(least);
        traffic.instructions += 1;
        traffic.wavefronts += wavefronts;
        traffic.bank_conflicts += wavefronts - fewest;
    }
}

impl Sm<'_> {
    /// `ld.shared`, for all lanes of the group.
    pub(crate) fn load_shared(&mut self, group: &Group) -> Result<(), Box<Fault>> {
        let mut banks = Banks::new();
        let number = self.number;
        for run in group.runs() {
            let at = self.check_shared(group, run.access.address, &run)?;
            self.with_words(group, at, &run, false, |word, now| word.read(now, run.lanes, now.block_first, false))?;
            let numbers = at / 4..(at + run.bytes as usize) / 4;
            if !self.bulk.mbarriers.is_empty() {
                let (epoch, stamp) = (self.clock.epoch, group.warp.sync.stamp);
                self.readers.note(numbers.clone(), (group.warp.first / 32) as u8, epoch, stamp);
            }
            banks.add(&mut self.words[numbers], at / 4, number);
            let from = self.shared[at..at + run.bytes as usize].as_ptr();
            for lane in Lanes(run.lanes) {
                let data = group.warp.request(group.slots, lane).data;
                // SAFETY: `data` leads to `bytes` bytes on the suspended thread's stack, `from` to as many here.
                unsafe { copy(from, data, run.bytes) };
            }
        }
        banks.close(&mut self.counters.shared.loads);
        Ok(())
    }

    /// `st.shared`, for all lanes of the group.
    pub(crate) fn store_shared(&mut self, group: &Group) -> Result<(), Box<Fault>> {
        let mut banks = Banks::new();
        let number = self.number;
        for run in group.runs() {
            let at = self.check_shared(group, run.access.address, &run)?;
            for lane in Lanes(run.lanes) {
                let run = Run { lanes: 1 << lane, ..run };
                self.with_words(group, at, &run, true, |word, now| word.write(now, lane, Write::Plain))?;
                self.readers.clear(at / 4..(at + run.bytes as usize) / 4);
                let data = group.warp.request(group.slots, lane).data;
                let into = self.shared[at..at + run.bytes as usize].as_mut_ptr();
                // SAFETY: `data` leads to `bytes` bytes on the suspended thread's stack, `into` to as many here.
                unsafe { copy(data, into, run.bytes) };
            }
            banks.add(&mut self.words[at / 4..(at + run.bytes as usize) / 4], at / 4, number);
        }
        banks.close(&mut self.counters.shared.stores);
        Ok(())
    }

    /// Atomic updates of shared memory, one lane after another.
    pub(crate) fn atomic_shared(&mut self, group: &Group) -> Result<(), Box<Fault>> {
        for run in group.runs() {
            let at = self.check_shared(group, run.access.address, &run)?;
            for lane in Lanes(run.lanes) {
                let run = Run { lanes: 1 << lane, ..run };
                self.with_words(group, at, &run, true, |word, now| {
                    if !word.is_written_since(now.block_first) {
                        return Err(Clash::Uninitialised);
                    }
                    word.write(now, lane, Write::Atomic)
                })?;
                let into = self.shared[at..at + run.bytes as usize].as_mut_ptr();
                // SAFETY: the slice holds `bytes` bytes.
                unsafe { update(group, lane, into, run.bytes as usize) };
            }
        }
        Ok(())
    }

    /// Where in shared memory an access lies, if all of it does.
    pub(crate) fn check_shared(&self, group: &Group, address: u64, run: &Run) -> Result<usize, Box<Fault>> {
        let (len, bytes) = (self.shared.len(), run.bytes as usize);
        let at = usize::try_from(address).unwrap_or(usize::MAX);
        if at > len || len - at < bytes {
            let message = format!("an access of {bytes} bytes from byte {at} on of {len} bytes of shared memory");
            return Err(self.access_fault(FaultKind::OutOfBounds, group, run, message));
        }
        if at % bytes.min(WIDEST) != 0 {
            let of = if bytes > WIDEST { "16" } else { "them" };
            let message = format!("an access of {bytes} bytes at byte {at} of shared memory, no multiple of {of}");
            return Err(self.access_fault(FaultKind::Misaligned, group, run, message));
        }
        Ok(at)
    }

    /// Checks and notes an access, word by word.
    pub(crate) fn with_words(
        &mut self,
        group: &Group,
        at: usize,
        run: &Run,
        writes: bool,
        mut check: impl FnMut(&mut Word, &crate::shadow::Now) -> Result<(), Clash>,
    ) -> Result<(), Box<Fault>> {
        let now = self.clock.now(Space::Shared, group);
        let numbers = at / 4..(at + run.bytes as usize) / 4;
        let are_kept = !self.bulk.mbarriers.is_empty();
        let touched = self.words[numbers.clone()].iter_mut().zip(numbers);
        let clash = touched.enumerate().find_map(|(at, (word, number))| {
            let now = crate::shadow::Now { readers: are_kept.then_some((&self.readers, number)), ..now };
            Some((at, check(word, &now).err()?))
        });
        match clash {
            Some((word, clash)) => Err(self.clash(clash, group, run, word as u32 * 4, writes)),
            None => Ok(()),
        }
    }
}
