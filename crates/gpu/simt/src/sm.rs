//! What a block runs on: shared memory, the clock, the counters, and the way from a broken rule to its message.

use crate::bulk::Bulk;
use crate::copies::Copies;
use crate::counters::{Counters, OperandCounters, Pattern};
use crate::fault::{Fault, FaultKind, Party};
use crate::memory::Operand;
use crate::port::{Place, Slot};
use crate::proxy::{Proxy, Release};
use crate::readers::Readers;
use crate::release::Releases;
use crate::shadow::{Clash, Earlier, Now, Word};
use crate::sync::Lanes;
use crate::warp::Warp;
use cuda_std::hooks::{Access, Space};

/// A multiprocessor that runs one block after another.
pub(crate) struct Sm<'l> {
    pub(crate) kernel: &'l str,
    pub(crate) seed: u64,
    pub(crate) operands: &'l mut Vec<Operand>,
    /// The operand that was found last.
    pub(crate) last: usize,
    pub(crate) traffic: Vec<OperandCounters>,
    pub(crate) shared: Vec<u8>,
    pub(crate) words: Vec<Word>,
    pub(crate) readers: Readers,
    pub(crate) copies: Vec<Copies>,
    pub(crate) bulk: Bulk,
    pub(crate) counters: Counters,
    pub(crate) record: usize,
    pub(crate) block: [u32; 3],
    pub(crate) clock: Clock,
    /// The number of the warp instruction; never 0.
    pub(crate) number: u32,
}

/// What tells when an access was, and what orders it.
pub(crate) struct Clock {
    pub(crate) epoch: u32,
    pub(crate) block_first: u32,
    pub(crate) launch_first: u32,
    pub(crate) releases: Releases,
    pub(crate) proxy: Proxy,
}

impl Clock {
    /// The instant of a group's instruction, for accesses to `space`.
    pub(crate) fn now<'a>(&'a self, space: Space, group: &Group<'a>) -> Now<'a> {
        // What earlier blocks did to shared memory is nobody's business.
        let launch_first = if space == Space::Shared { self.block_first } else { self.launch_first };
        Now {
            epoch: self.epoch,
            block_first: self.block_first,
            launch_first,
            warp: (group.warp.first / 32) as u8,
            place: group.place,
            sync: &group.warp.sync,
            releases: &self.releases,
            proxy: &self.proxy,
            readers: None,
        }
    }
}

/// Lanes of a warp instruction, one after another, that access the same bytes.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    pub(crate) lanes: u32,
    pub(crate) access: &'a Access,
    pub(crate) bytes: u32,
}

/// The lanes that one warp instruction is executed for.
#[derive(Clone, Copy)]
pub(crate) struct Group<'a> {
    pub(crate) slots: &'a [Slot],
    pub(crate) warp: &'a Warp,
    pub(crate) lanes: u32,
    pub(crate) place: Place,
}

impl<'a> Group<'a> {
    /// The thread's number in its block.
    pub(crate) fn thread(&self, lane: u32) -> usize {
        self.warp.first + lane as usize
    }

    /// What an arrival of a lane has behind it. What it does next has another stamp.
    pub(crate) fn release(&self, lane: u32) -> Release {
        let sync = &self.warp.sync;
        Release { warp: (self.warp.first / 32) as u8, lane, from: 0, stamp: sync.stamp + 1, full: sync.full }
    }

    /// What a bulk load of a lane reads, which has a stamp of its own.
    pub(crate) fn source(&self, lane: u32) -> Release {
        Release { from: self.warp.sync.stamp, full: 0, ..self.release(lane) }
    }

    /// The lanes that take part, as runs.
    pub(crate) fn runs(self) -> impl Iterator<Item = Run<'a>> {
        let mut rest = Lanes(self.lanes);
        let mut next: Option<Run<'a>> = None;
        std::iter::from_fn(move || {
            loop {
                let Some(lane) = rest.next() else { return next.take() };
                let request = self.warp.request(self.slots, lane);
                if !request.inside {
                    continue;
                }
                // SAFETY: the access lies on the stack of the lane's thread, which is suspended while this group lives.
                let access: &'a Access = unsafe { &*request.access };
                let fresh = Run { lanes: 1 << lane, access, bytes: request.bytes };
                match &mut next {
                    Some(run) if run.is_at(&fresh) => run.lanes |= fresh.lanes,
                    Some(run) => return Some(std::mem::replace(run, fresh)),
                    None => next = Some(fresh),
                }
            }
        })
    }
}

impl Run<'_> {
    fn is_at(&self, other: &Run) -> bool {
        self.access.address == other.access.address
            && self.bytes == other.bytes
            && self.access.extent == other.access.extent
    }

    /// A lane to name in a message.
    pub(crate) fn lane(&self) -> u32 {
        self.lanes.trailing_zeros()
    }

    /// Elements that one lane accesses.
    pub(crate) fn elements(&self) -> u64 {
        u64::from(self.bytes / self.access.element_bytes.max(1)).max(1)
    }
}

impl Sm<'_> {
    /// The next block starts: shared memory is as if fresh.
    pub(crate) fn start_block(&mut self, block: [u32; 3]) {
        self.block = block;
        let clock = &mut self.clock;
        clock.epoch += 1;
        clock.block_first = clock.epoch;
        clock.releases.start_block(clock.epoch, block);
        clock.proxy.start_block();
    }

    /// A thread of the running block.
    pub(crate) fn party(&self, thread: usize, location: Option<Place>) -> Party {
        Party { block: self.block, thread: thread as u32, location }
    }

    /// A fault of one lane of a group.
    pub(crate) fn fault(&self, kind: FaultKind, group: &Group, lane: u32, message: String) -> Box<Fault> {
        self.fault_of(kind, self.party(group.thread(lane), Some(group.place)), message)
    }

    /// A fault of a thread.
    pub(crate) fn fault_of(&self, kind: FaultKind, party: Party, message: String) -> Box<Fault> {
        let (kernel, seed) = (self.kernel.to_string(), self.seed);
        Box::new(Fault { kind, kernel, party: Some(party), operand: None, index: None, other: None, message, seed })
    }

    /// A fault of an access.
    #[cold]
    pub(crate) fn access_fault(&self, kind: FaultKind, group: &Group, run: &Run, message: String) -> Box<Fault> {
        let mut fault = self.fault(kind, group, run.lane(), message);
        fault.operand = Some(run.access.name);
        fault.index = Some(run.access.index);
        fault
    }

    /// An access that its word's history forbids; `byte` is the word's offset from where the access begins.
    #[cold]
    pub(crate) fn clash(&self, clash: Clash, group: &Group, run: &Run, byte: u32, writes: bool) -> Box<Fault> {
        let space = if run.access.space == Space::Shared { FaultKind::SharedRace } else { FaultKind::GlobalRace };
        let does = if writes { "writes" } else { "reads" };
        let (kind, earlier, message) = match clash {
            Clash::Uninitialised => {
                let who = if run.access.space == Space::Shared { " of its block" } else { "" };
                (FaultKind::Uninitialised, None, format!("a thread reads what no thread{who} has written yet"))
            }
            Clash::InFlight(earlier) => {
                let message = format!("a thread {does} what an asynchronous copy, not waited for, is still to write");
                (FaultKind::AsyncInFlight, Some(earlier), message)
            }
            Clash::Constant(earlier) => (FaultKind::ReadOnlyWritten, Some(earlier), constant(writes)),
            Clash::Source => {
                let message = "a thread writes what a bulk store, whose reading was not waited for, is still to read";
                (FaultKind::AsyncInFlight, None, message.to_string())
            }
            Clash::Unseen(earlier, _) => {
                let message = format!(
                    "a thread {does} what a bulk load wrote, and neither it nor a thread that it synchronised with waited for its phase"
                );
                (FaultKind::AsyncInFlight, Some(earlier), message)
            }
            Clash::Unfenced(earlier) => {
                (FaultKind::ProxyUnfenced, Some(earlier), unfenced(writes, group.thread(run.lane()), &earlier))
            }
            Clash::Mbarrier(earlier) => {
                let message = format!("a thread {does} an mbarrier as if it were data");
                (FaultKind::MbarrierMisused, Some(earlier), message)
            }
            Clash::Race(earlier, lane) => (space, Some(earlier), self.race(group, lane, &earlier, does)),
        };
        let lane = if let Clash::Race(_, lane) | Clash::Unseen(_, lane) = clash { lane } else { run.lane() };
        let mut fault = self.access_fault(kind, group, &Run { lanes: 1 << lane, ..*run }, message);
        fault.index = Some(run.access.index + u64::from(byte / run.access.element_bytes.max(1)));
        fault.other = earlier.map(|earlier| {
            let block = self.clock.releases.block_of(earlier.epoch).map_or(self.block, |(_, block)| block);
            Party { block, thread: u32::from(earlier.thread), location: earlier.place }
        });
        if matches!(clash, Clash::Source) {
            fault.other = self.bulk_reader((run.access.address + u64::from(byte)) as usize);
        }
        fault
    }

    fn race(&self, group: &Group, lane: u32, earlier: &Earlier, does: &str) -> String {
        let did = if earlier.wrote { "wrote" } else { "read" };
        let thread = usize::from(earlier.thread);
        let missing = if earlier.epoch < self.clock.block_first {
            "no fence and atomic order the two blocks"
        } else if thread == group.thread(lane) {
            "other threads did so too, atomically, and no barrier lies between"
        } else if thread / 32 == group.warp.first / 32 {
            "no barrier and no sync_warp lies between"
        } else {
            "no barrier lies between"
        };
        format!("a thread {does} what another {did}, and {missing}")
    }

    /// Records an access of the first warp, as long as it was asked for.
    pub(crate) fn record(&mut self, group: &Group, store: bool) {
        let wanted = self.counters.patterns.len() < self.record && group.warp.first == 0 && self.block == [0; 3];
        if !wanted {
            return;
        }
        let mut offsets = [None; 32];
        let mut first = None;
        for run in group.runs() {
            let access = run.access;
            let base = match access.space {
                Space::Global => access.address.wrapping_sub(access.index * u64::from(access.element_bytes)),
                Space::Shared => 0,
            };
            Lanes(run.lanes).for_each(|lane| offsets[lane as usize] = Some(access.address.wrapping_sub(base)));
            first = first.or(Some((access.name, run.bytes)));
        }
        if let Some((operand, bytes)) = first {
            self.counters.patterns.push(Pattern { operand, store, location: group.place, bytes, offsets });
        }
    }
}

fn unfenced(writes: bool, thread: usize, earlier: &Earlier) -> String {
    let does = if writes { "overwrites" } else { "reads" };
    if usize::from(earlier.thread) == thread {
        format!("a bulk copy {does} what its thread wrote, and no fence_proxy_async lies between")
    } else {
        format!(
            "a bulk copy {does} what another thread wrote, and no fence_proxy_async of that thread, with a barrier behind it, lies between"
        )
    }
}

fn constant(writes: bool) -> String {
    if writes {
        "a thread writes what a read-only load of this launch (`ld.global.nc`) reads".to_string()
    } else {
        "a read-only load (`ld.global.nc`) reads what this launch writes".to_string()
    }
}
