//! Bulk copies: `cp.async.bulk` into shared memory, which completes on an mbarrier, and out of it, in groups of a thread.
//!
//! What is copied is read when the copy starts. What a load brings is there when its phase was waited for; of a store, the
//! source may be written when its thread waited for the reading, and the target touched when it waited for the writing.

use crate::fault::{Fault, FaultKind, Party};
use crate::global::Tally;
use crate::mbarrier::{Load, Mbarrier, call};
use crate::port::{Call, Place};
use crate::shadow::Write;
use crate::sm::{Group, Run, Sm};
use crate::sync::Lanes;
use cuda_std::hooks::{Access, Space};
use std::collections::{BTreeMap, VecDeque};

/// What a bulk store is still to read.
struct Source {
    group: u32,
    at: usize,
    bytes: usize,
    place: Place,
}

/// What a bulk store is still to write.
struct Target {
    group: u32,
    operand: usize,
    offset: u64,
    bytes: u32,
}

/// The bulk stores of one thread, in the order in which it started them.
#[derive(Default)]
struct Stores {
    /// Groups that were closed; the number of the open one.
    closed: u32,
    sources: VecDeque<Source>,
    targets: VecDeque<Target>,
}

/// The bulk copies of the running block.
pub(crate) struct Bulk {
    /// By their first byte in shared memory.
    pub(crate) mbarriers: BTreeMap<usize, Mbarrier>,
    /// By thread.
    stores: Vec<Stores>,
}

impl Bulk {
    pub(crate) fn new(threads: usize) -> Self {
        Bulk { mbarriers: BTreeMap::new(), stores: (0..threads).map(|_| Stores::default()).collect() }
    }
}

impl Sm<'_> {
    /// `cp.async.bulk` into shared memory, for each lane of the group.
    pub(crate) fn bulk_load(&mut self, group: &Group) -> Result<(), Box<Fault>> {
        let mut tally = Tally::new(self.last);
        for lane in Lanes(group.lanes) {
            let Call::BulkLoad { into, from, bytes, barrier } = call(group.slots, group.warp, lane) else { continue };
            let (source, target) = self.bulk_runs(group, lane, [from, into], *bytes)?;
            let (operand, offset) = self.read_global(group, &source)?;
            let at = self.check_shared(group, into.address, &target)?;
            tally.add(self, operand, &source, false);
            let mut data = vec![0; *bytes as usize];
            let start = self.operands[operand].base.wrapping_add(offset as usize);
            // SAFETY: `read_global` found as many bytes from `offset` on in the operand.
            unsafe { data.as_mut_ptr().copy_from_nonoverlapping(start, data.len()) };
            self.with_words(group, at, &target, true, |word, now| word.write(now, lane, Write::Bulk))?;
            self.readers.clear(at / 4..(at + *bytes as usize) / 4);
            let load = Load { at, data, thread: group.thread(lane), place: group.place };
            self.with_mbarrier(group, lane, barrier, true, |mbarrier| mbarrier.start(load, group.source(lane)))?;
            self.counters.bulk_loads += 1;
        }
        tally.close(self, false);
        Ok(())
    }

    /// `cp.async.bulk` out of shared memory, for each lane of the group.
    pub(crate) fn bulk_store(&mut self, group: &Group) -> Result<(), Box<Fault>> {
        let mut tally = Tally::new(self.last);
        for lane in Lanes(group.lanes) {
            let Call::BulkStore { into, from, bytes } = call(group.slots, group.warp, lane) else { continue };
            let (source, target) = self.bulk_runs(group, lane, [from, into], *bytes)?;
            let at = self.check_shared(group, from.address, &source)?;
            self.with_words(group, at, &source, false, |word, now| word.start_reading(now, lane))?;
            let (operand, offset) = self.locate(group, &target)?;
            self.write_words(group, &target, operand, offset, Write::Async)?;
            tally.add(self, operand, &target, true);
            let from = self.shared[at..at + *bytes as usize].as_ptr();
            let into = self.operands[operand].base.wrapping_add(offset as usize);
            // SAFETY: `locate` found as many bytes from `offset` on in the operand, and `write_words` that they may be
            // written; the slice holds as many.
            unsafe { into.copy_from_nonoverlapping(from, *bytes as usize) };
            let stores = &mut self.bulk.stores[group.thread(lane)];
            let number = stores.closed;
            stores.sources.push_back(Source { group: number, at, bytes: *bytes as usize, place: group.place });
            stores.targets.push_back(Target { group: number, operand, offset, bytes: *bytes });
            self.counters.bulk_stores += 1;
        }
        tally.close(self, true);
        Ok(())
    }

    /// `cp.async.bulk.commit_group`.
    pub(crate) fn bulk_commit(&mut self, group: &Group) {
        for lane in Lanes(group.lanes) {
            self.bulk.stores[group.thread(lane)].closed += 1;
        }
    }

    /// `cp.async.bulk.wait_group`, with or without `.read`.
    pub(crate) fn bulk_wait(&mut self, group: &Group) {
        for lane in Lanes(group.lanes) {
            let Call::BulkWait { pending, read } = call(group.slots, group.warp, lane) else { continue };
            let thread = group.thread(lane);
            let below = self.bulk.stores[thread].closed.saturating_sub(*pending);
            self.finish_sources(group, lane, below);
            if !read {
                self.finish_targets(thread, below, group.warp.sync.stamp);
            }
        }
    }

    /// A thread ends: its stores must have read their sources; what they write is there from now on.
    pub(crate) fn end_stores(&mut self, thread: usize, stamp: u32) -> Result<(), Box<Fault>> {
        if let Some(source) = self.bulk.stores[thread].sources.front() {
            let party = self.party(thread, Some(source.place));
            let committed =
                if source.group < self.bulk.stores[thread].closed { "" } else { ", in a group never closed" };
            let message = format!("a thread ends without a wait for the reading of its bulk store{committed}");
            return Err(self.fault_of(FaultKind::AsyncInFlight, party, message));
        }
        self.finish_targets(thread, u32::MAX, stamp);
        Ok(())
    }

    /// The launch has ended, well or not: nothing is under way any more.
    pub(crate) fn settle_stores(&mut self) {
        for thread in 0..self.bulk.stores.len() {
            self.finish_targets(thread, u32::MAX, 0);
        }
    }

    /// The thread whose bulk store is still to read this byte of shared memory.
    pub(crate) fn bulk_reader(&self, byte: usize) -> Option<Party> {
        let reads = |source: &&Source| (source.at..source.at + source.bytes).contains(&byte);
        let of_thread = |(thread, stores): (usize, &Stores)| Some((thread, stores.sources.iter().find(reads)?.place));
        let (thread, place) = self.bulk.stores.iter().enumerate().find_map(of_thread)?;
        Some(self.party(thread, Some(place)))
    }

    /// The runs of a copy's source and target; refuses what is no whole number of 16 bytes.
    fn bulk_runs<'a>(
        &self,
        group: &Group,
        lane: u32,
        [from, into]: [&'a Access; 2],
        bytes: u32,
    ) -> Result<(Run<'a>, Run<'a>), Box<Fault>> {
        let run = |access| Run { lanes: 1 << lane, access, bytes };
        if bytes == 0 || bytes % 16 != 0 {
            let message = format!("a bulk copy of {bytes} bytes, no multiple of 16");
            return Err(self.access_fault(FaultKind::Misaligned, group, &run(from), message));
        }
        Ok((run(from), run(into)))
    }

    /// A lane has waited until its groups below a number have read their sources.
    fn finish_sources(&mut self, group: &Group, lane: u32, below: u32) {
        let thread = group.thread(lane);
        let sources = &mut self.bulk.stores[thread].sources;
        let done: Vec<Source> = sources.drain(..sources.partition_point(|source| source.group < below)).collect();
        for source in &done {
            let mut now = self.clock.now(Space::Shared, group);
            now.place = source.place;
            for word in &mut self.words[source.at / 4..(source.at + source.bytes) / 4] {
                word.stop_reading(&now, lane);
            }
            let (warp, stamp) = ((group.warp.first / 32) as u8, group.warp.sync.stamp);
            self.readers.note(source.at / 4..(source.at + source.bytes) / 4, warp, self.clock.epoch, stamp);
        }
        // Others may be reading some of it.
        for source in self.bulk.stores.iter().flat_map(|stores| &stores.sources).take_while(|_| !done.is_empty()) {
            for word in &mut self.words[source.at / 4..(source.at + source.bytes) / 4] {
                word.keep_reading();
            }
        }
    }

    /// What a thread's groups below a number write is there.
    fn finish_targets(&mut self, thread: usize, below: u32, stamp: u32) {
        while self.bulk.stores[thread].targets.front().is_some_and(|target| target.group < below) {
            let Some(target) = self.bulk.stores[thread].targets.pop_front() else { return };
            let words = &mut self.operands[target.operand].words[(target.offset / 4) as usize..];
            for word in &mut words[..target.bytes as usize / 4] {
                word.arrive(self.clock.epoch, stamp);
            }
        }
    }
}
