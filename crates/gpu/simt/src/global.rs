//! Loads, stores and atomic updates of device memory.

use crate::counters::{Footprint, OperandCounters, Traffic};
use crate::fault::{Fault, FaultKind};
use crate::memory::{Operand, Role};
use crate::port::Call;
use crate::shadow::{Clash, Write};
use crate::shared::WIDEST;
use crate::sm::{Group, Run, Sm};
use crate::sync::Lanes;
use cuda_std::hooks::Space;

/// What one warp instruction moves of one operand.
pub(crate) struct Tally {
    operand: usize,
    elements: u64,
    footprint: Footprint,
}

impl Tally {
    pub(crate) fn new(operand: usize) -> Self {
        Tally { operand, elements: 0, footprint: Footprint::new() }
    }

    /// Counts an access to `operand`; where the last one was to another, that one's instruction is counted first.
    pub(crate) fn add(&mut self, sm: &mut Sm, operand: usize, run: &Run, store: bool) {
        if operand != self.operand {
            std::mem::replace(self, Tally::new(operand)).close(sm, store);
        }
        self.elements += run.elements() * u64::from(run.lanes.count_ones());
        self.footprint.add(run.access.address, run.bytes);
    }

    /// Adds the instruction to its operand's counters.
    pub(crate) fn close(self, sm: &mut Sm, store: bool) {
        if self.elements == 0 {
            return;
        }
        let (used, moved) = self.footprint.sum();
        let counters: &mut OperandCounters = &mut sm.traffic[self.operand];
        let traffic: &mut Traffic = if store { &mut counters.stores } else { &mut counters.loads };
        traffic.instructions += 1;
        traffic.elements += self.elements;
        traffic.bytes_used += used;
        traffic.bytes_moved += moved;
    }
}

impl Sm<'_> {
    /// `ld.global`, for all lanes of the group.
    pub(crate) fn load_global(&mut self, group: &Group) -> Result<(), Box<Fault>> {
        let mut tally = Tally::new(self.last);
        for run in group.runs() {
            let (operand, offset) = self.read_global(group, &run)?;
            tally.add(self, operand, &run, false);
            let from = self.operands[operand].base.wrapping_add(offset as usize);
            for lane in Lanes(run.lanes) {
                let data = group.warp.request(group.slots, lane).data;
                // SAFETY: `locate` found `bytes` bytes from `offset` on in the operand; `data` leads to as many on the
                // suspended thread's stack.
                unsafe { copy(from, data, run.bytes) };
            }
        }
        tally.close(self, false);
        Ok(())
    }

    /// `st.global`, for all lanes of the group.
    pub(crate) fn store_global(&mut self, group: &Group) -> Result<(), Box<Fault>> {
        let mut tally = Tally::new(self.last);
        for run in group.runs() {
            let (operand, offset) = self.locate(group, &run)?;
            for lane in Lanes(run.lanes) {
                self.write_words(group, &Run { lanes: 1 << lane, ..run }, operand, offset, Write::Plain)?;
                let data = group.warp.request(group.slots, lane).data;
                let into = self.operands[operand].base.wrapping_add(offset as usize);
                // SAFETY: `data` leads to `bytes` bytes on the suspended thread's stack, `locate` found as many from
                // `offset` on in the operand, and `write_words` that they may be written.
                unsafe { copy(data, into, run.bytes) };
            }
            tally.add(self, operand, &run, true);
        }
        tally.close(self, true);
        Ok(())
    }

    /// `red.global` and `atom.global`, one lane after another.
    pub(crate) fn atomic_global(&mut self, group: &Group) -> Result<(), Box<Fault>> {
        for run in group.runs() {
            let (operand, offset) = self.locate(group, &run)?;
            for lane in Lanes(run.lanes) {
                let run = Run { lanes: 1 << lane, ..run };
                self.check_written(group, &run, operand, offset)?;
                self.write_words(group, &run, operand, offset, Write::Atomic)?;
                let at = self.operands[operand].base.wrapping_add(offset as usize);
                // SAFETY: `locate` found the word in the operand, and `write_words` that it may be written.
                unsafe { update(group, lane, at, run.bytes as usize) };
                self.clock.releases.atomic(group.thread(lane), self.clock.epoch);
            }
            self.traffic[operand].atomics += u64::from(run.lanes.count_ones());
        }
        Ok(())
    }

    /// Checks a read and notes it: the operand and the offset in it.
    pub(crate) fn read_global(&mut self, group: &Group, run: &Run) -> Result<(usize, u64), Box<Fault>> {
        let (operand, offset) = self.locate(group, run)?;
        if self.operands[operand].words.is_empty() {
            return Ok((operand, offset));
        }
        let written_since = u32::from(self.operands[operand].role == Role::Output);
        let now = self.clock.now(Space::Global, group);
        let words = &mut self.operands[operand].words[(offset / 4) as usize..];
        let mut clash = None;
        for (at, word) in words.iter_mut().take((run.bytes / 4) as usize).enumerate() {
            if let Err(wrong) = word.read(&now, run.lanes, written_since, run.access.read_only) {
                clash = Some((wrong, at as u32 * 4));
                break;
            }
        }
        match clash {
            Some((wrong, byte)) => Err(self.clash(wrong, group, run, byte, false)),
            None => Ok((operand, offset)),
        }
    }

    /// Checks a write by the run's only lane, and notes it.
    pub(crate) fn write_words(
        &mut self,
        group: &Group,
        run: &Run,
        operand: usize,
        offset: u64,
        how: Write,
    ) -> Result<(), Box<Fault>> {
        if self.operands[operand].role == Role::Input {
            let message = "a thread writes an operand that the launch declared as input".to_string();
            return Err(self.access_fault(FaultKind::ReadOnlyWritten, group, run, message));
        }
        let now = self.clock.now(Space::Global, group);
        let words = &mut self.operands[operand].words[(offset / 4) as usize..];
        let mut clash = None;
        for (at, word) in words.iter_mut().take((run.bytes / 4) as usize).enumerate() {
            if let Err(wrong) = word.write(&now, run.lane(), how) {
                clash = Some((wrong, at as u32 * 4));
                break;
            }
        }
        match clash {
            Some((wrong, byte)) => Err(self.clash(wrong, group, run, byte, true)),
            None => Ok(()),
        }
    }

    /// An atomic update reads too.
    fn check_written(&self, group: &Group, run: &Run, operand: usize, offset: u64) -> Result<(), Box<Fault>> {
        let Operand { role, words, .. } = &self.operands[operand];
        let at = (offset / 4) as usize;
        if *role == Role::Output && !words[at..at + (run.bytes / 4) as usize].iter().all(|word| word.is_written()) {
            return Err(self.clash(Clash::Uninitialised, group, run, 0, false));
        }
        Ok(())
    }

    /// The operand that the run's bytes lie in, and their offset in it.
    pub(crate) fn locate(&mut self, group: &Group, run: &Run) -> Result<(usize, u64), Box<Fault>> {
        let access = run.access;
        let elements = run.elements();
        let is_outside = |extent: u64| access.index >= extent || extent - access.index < elements;
        if let Some(extent) = access.extent.filter(|&extent| is_outside(extent)) {
            let first = access.index.wrapping_mul(u64::from(access.element_bytes));
            let null = if access.address == first { ", a null pointer" } else { "" };
            let count = if elements == 1 { String::new() } else { format!("{elements} elements from ") };
            let message = format!("an access of {count}element {} of an operand of {extent}{null}", access.index);
            return Err(self.access_fault(FaultKind::OutOfBounds, group, run, message));
        }
        // What is 16 bytes but for its end was checked when its copy began.
        if access.address % (1 << run.bytes.trailing_zeros()).min(WIDEST as u64) != 0 {
            let of = if run.bytes as usize > WIDEST { "16" } else { "them" };
            let message = format!("an access of {} bytes at an address that is no multiple of {of}", run.bytes);
            return Err(self.access_fault(FaultKind::Misaligned, group, run, message));
        }
        let is_in = |operand: &Operand| operand.offset(access.address, run.bytes);
        if let Some(offset) = self.operands.get(self.last).and_then(is_in) {
            return Ok((self.last, offset));
        }
        let found = self.operands.iter().enumerate().find_map(|(at, operand)| Some((at, is_in(operand)?)));
        let (operand, offset) = match found {
            Some(found) => found,
            None => self.adopt(group, run)?,
        };
        self.last = operand;
        Ok((operand, offset))
    }

    /// Takes in the operand of a handle that no [`crate::Memory`] made.
    #[cold]
    fn adopt(&mut self, group: &Group, run: &Run) -> Result<(usize, u64), Box<Fault>> {
        let access = run.access;
        if self.operands.iter().any(|operand| operand.has_between_pieces(access.address)) {
            let message = format!("an access of element {}, between two pieces or past the end of one", access.index);
            return Err(self.access_fault(FaultKind::OutOfBounds, group, run, message));
        }
        let offset = access.index.wrapping_mul(u64::from(access.element_bytes));
        let Some(bytes) = access.extent.and_then(|extent| extent.checked_mul(u64::from(access.element_bytes))) else {
            let message = "an address outside of every operand".to_string();
            return Err(self.access_fault(FaultKind::OutOfBounds, group, run, message));
        };
        let base = std::ptr::with_exposed_provenance_mut(access.address.wrapping_sub(offset) as usize);
        self.operands.push(Operand::foreign(access.name, base, bytes, access.element_bytes as usize));
        self.traffic.push(OperandCounters { name: access.name, ..OperandCounters::default() });
        Ok((self.operands.len() - 1, offset))
    }
}

/// Copies an access's bytes: 4, 8 or 16, by one move each.
///
/// # Safety
/// Both lead to `bytes` bytes, and do not overlap.
pub(crate) unsafe fn copy(from: *const u8, into: *mut u8, bytes: u32) {
    // SAFETY: both lead to `bytes` bytes and do not overlap, as the caller promised.
    unsafe {
        match bytes {
            4 => into.copy_from_nonoverlapping(from, 4),
            8 => into.copy_from_nonoverlapping(from, 8),
            16 => into.copy_from_nonoverlapping(from, 16),
            _ => into.copy_from_nonoverlapping(from, bytes as usize),
        }
    }
}

/// Replaces the word at `at` by the lane's update of it.
///
/// # Safety
/// `at` leads to `bytes` bytes, 4 or 8, that may be written; the lane waits with a [`Call::Atomic`].
pub(crate) unsafe fn update(group: &Group, lane: u32, at: *mut u8, bytes: usize) {
    let mut word = [0; 8];
    // SAFETY: `at` leads to `bytes` bytes, as the caller promised, and `word` has 8.
    unsafe { word.as_mut_ptr().copy_from_nonoverlapping(at, bytes.min(8)) };
    // SAFETY: the call lies on the suspended thread's stack, and nothing else refers to it.
    if let Call::Atomic { update, old } = unsafe { &mut *group.warp.request(group.slots, lane).call } {
        *old = u64::from_le_bytes(word);
        word = update(*old).to_le_bytes();
    }
    // SAFETY: `at` leads to `bytes` bytes that may be written, as the caller promised, and `word` has 8.
    unsafe { at.copy_from_nonoverlapping(word.as_ptr(), bytes.min(8)) };
}
