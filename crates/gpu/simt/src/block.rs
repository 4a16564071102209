//! Runs a block: its warps in turn, each an instruction at a time, until all threads have ended.

use crate::fault::{Fault, FaultKind};
use crate::order::Order;
use crate::port::{Call, Kind, Port};
use crate::sm::{Group, Sm};
use crate::stack::{Pool, ThreadStack};
use crate::sync::Lanes;
use crate::warp::{Stuck, Warp};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use cuda_std::hooks::{Barrier, Fence};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Fewest instructions that a warp executes before the next one's turn, and how many more the seed may add.
const TURN: u64 = 64;

type Thread = Coroutine<(), (), (), ThreadStack>;

/// The scheduler of a launch.
pub(crate) struct Scheduler<'l> {
    pub(crate) port: &'l Port,
    pub(crate) body: &'l dyn Fn(),
    pub(crate) sm: Sm<'l>,
    pub(crate) pool: Pool,
    pub(crate) order: Order,
    pub(crate) steps_left: u64,
    pub(crate) threads: Vec<Thread>,
    pub(crate) warps: Vec<Warp>,
}

impl Scheduler<'_> {
    /// Runs one block from start to end.
    pub(crate) fn run_block(&mut self, block: [u32; 3]) -> Result<(), Box<Fault>> {
        self.port.block.set(block);
        self.sm.start_block(block);
        self.start_threads()?;
        while self.warps.iter().any(|warp| warp.live != 0) {
            let mut ran = false;
            let (first, len) = (self.order.below(self.warps.len() as u64) as usize, self.warps.len());
            for at in 0..len {
                ran |= self.run_warp((first + at) % len)?;
            }
            if !ran {
                self.pass_barrier()?;
            }
        }
        self.stop_threads();
        self.sm.end_mbarriers()
    }

    /// Ends all threads, wherever they are, and keeps their stacks.
    pub(crate) fn stop_threads(&mut self) {
        for mut thread in self.threads.drain(..) {
            thread.force_unwind();
            self.pool.give(thread.into_stack());
        }
    }

    fn start_threads(&mut self) -> Result<(), Box<Fault>> {
        let (port, body) = (self.port, self.body);
        for slot in &port.slots {
            let Ok(stack) = self.pool.take() else {
                let party = self.sm.party(self.threads.len(), None);
                return Err(self.sm.fault_of(FaultKind::BadLaunch, party, "no memory for the thread's stack".into()));
            };
            slot.rest();
            let thread = move |yielder: &Yielder<(), ()>, ()| {
                slot.start(yielder);
                // A thread that is stopped unwinds too; nobody asks what it panicked with.
                if let Err(payload) = catch_unwind(AssertUnwindSafe(body)) {
                    slot.panicked(payload);
                }
            };
            // SAFETY: what the thread borrows, port and body, outlives it: `Launch::run` ends all threads before it returns,
            // and on a panic of its own drops them first.
            let thread = unsafe { Coroutine::with_stack_unchecked(stack, thread) };
            self.threads.push(thread);
        }
        let len = port.slots.len();
        self.warps.clear();
        self.warps.extend((0..len).step_by(32).map(|first| Warp::new(first, len - first)));
        Ok(())
    }

    /// A warp's turn. Whether it did anything.
    fn run_warp(&mut self, at: usize) -> Result<bool, Box<Fault>> {
        self.unpark(at);
        if self.warps[at].runnable | self.warps[at].waiting == 0 {
            return Ok(false);
        }
        let mut ran = false;
        for _ in 0..TURN + self.order.below(TURN) {
            ran |= self.warps[at].runnable != 0;
            self.resume(at)?;
            self.unpark(at);
            let warp = &mut self.warps[at];
            if warp.waiting == 0 {
                break;
            }
            let lanes = match warp.pick(&self.port.slots) {
                Ok(lanes) => lanes,
                Err(stuck) if warp.may_come(&stuck) => break,
                Err(stuck) => return Err(self.stuck(at, &stuck)),
            };
            ran = true;
            self.perform(at, lanes)?;
            let warp = &mut self.warps[at];
            warp.waiting &= !lanes;
            warp.runnable = lanes & !warp.parked;
        }
        Ok(ran)
    }

    /// Lanes whose mbarrier lets them go wait for their turn only.
    fn unpark(&mut self, at: usize) {
        let warp = &mut self.warps[at];
        if warp.parked != 0 {
            let ready = self.sm.passing(&self.port.slots, warp);
            warp.parked &= !ready;
            warp.waiting |= ready;
        }
    }

    /// Lets the lanes that can go on do so, up to their next instructions.
    fn resume(&mut self, at: usize) -> Result<(), Box<Fault>> {
        let warp = &mut self.warps[at];
        for lane in Lanes(std::mem::take(&mut warp.runnable)) {
            let thread = warp.first + lane as usize;
            self.port.current.set(thread);
            let slot = &self.port.slots[thread];
            if let CoroutineResult::Yield(()) = self.threads[thread].resume(()) {
                match slot.request().kind {
                    Kind::Barrier => warp.barred |= 1 << lane,
                    Kind::MbarrierWait => warp.parked |= 1 << lane,
                    Kind::Endless => {
                        let message = "the kernel computes on and on: no end within the step limit".to_string();
                        return Err(self.sm.fault_of(FaultKind::StepLimit, self.sm.party(thread, None), message));
                    }
                    _ => warp.waiting |= 1 << lane,
                }
                continue;
            }
            warp.live &= !(1 << lane);
            self.sm.end_copies(thread, warp.sync.stamp);
            if let Some(payload) = slot.take_panic() {
                let party = self.sm.party(thread, slot.place());
                let message = format!("{} (the place is that of the last instruction before)", text_of(&*payload));
                return Err(self.sm.fault_of(FaultKind::Panicked, party, message));
            }
            self.sm.end_stores(thread, warp.sync.stamp)?;
        }
        Ok(())
    }

    /// Executes an instruction for some lanes of a warp.
    fn perform(&mut self, at: usize, lanes: u32) -> Result<(), Box<Fault>> {
        let slots = &self.port.slots;
        let request = self.warps[at].request(slots, lanes.trailing_zeros());
        self.sm.number = self.sm.number.wrapping_add(1).max(1);
        self.sm.counters.warp_instructions += 1;
        match request.kind {
            Kind::SyncWarp => {
                let warp = &mut self.warps[at];
                warp.sync.meet(lanes, warp.all);
            }
            Kind::Fence => self.fence(at, lanes),
            Kind::BulkLoad => self.warps[at].sync.stamp += 1, // what it reads has a stamp of its own
            _ => {}
        }
        let group = Group { slots, warp: &self.warps[at], lanes, place: request.place };
        let sm = &mut self.sm;
        if self.steps_left == 0 {
            let message = "no end within the step limit of warp instructions".to_string();
            return Err(sm.fault(FaultKind::StepLimit, &group, lanes.trailing_zeros(), message));
        }
        self.steps_left -= 1;
        if sm.counters.patterns.len() < sm.record && !request.access.is_null() {
            sm.record(&group, matches!(request.kind, Kind::StoreGlobal | Kind::StoreShared));
        }
        execute(sm, &group, request.kind)?;
        if request.kind == Kind::MbarrierWait {
            let left = sm.mbarrier_wait(&group)?;
            self.warps[at].parked |= left;
        }
        if matches!(request.kind, Kind::MbarrierExpect | Kind::BulkLoad) {
            self.warps[at].sync.stamp += 1; // what follows is not released by it
        }
        Ok(())
    }

    /// A fence of the lanes: what they do next has another stamp than what they did.
    fn fence(&mut self, at: usize, lanes: u32) {
        let warp = &mut self.warps[at];
        warp.sync.stamp += 1;
        for lane in Lanes(lanes) {
            let thread = warp.first + lane as usize;
            // SAFETY: the call lies on the stack of the lane's suspended thread.
            let call = unsafe { &*self.port.slots[thread].request().call };
            let clock = &mut self.sm.clock;
            match call {
                Call::Fence { fence: Fence::Device | Fence::System } => {
                    clock.releases.fence(thread, clock.epoch, warp.sync.stamp);
                }
                Call::Fence { fence: Fence::AsyncProxy } => clock.proxy.fence(thread, clock.epoch, warp.sync.stamp),
                _ => {}
            }
        }
    }

    /// All threads that have not ended wait at barriers: they go on, if it is the same one and none has ended.
    fn pass_barrier(&mut self) -> Result<(), Box<Fault>> {
        let slots = &self.port.slots;
        if let Some(warp) = self.warps.iter().find(|warp| warp.parked != 0) {
            return Err(self.sm.waits_for_ever(slots, warp));
        }
        let is_barred = |thread: usize| self.warps[thread / 32].barred & (1 << (thread % 32)) != 0;
        let first = (0..slots.len()).find(|&thread| is_barred(thread)).unwrap_or(0);
        let leader = slots[first].request();
        let waits = self.sm.party(first, Some(leader.place));
        if let Some(ended) = (0..slots.len()).find(|&thread| !is_barred(thread)) {
            let message = "a thread waits at a barrier that another, which has ended, never reached".to_string();
            let mut fault = self.sm.fault_of(FaultKind::BarrierMissed, waits, message);
            fault.other = Some(self.sm.party(ended, slots[ended].place()));
            return Err(fault);
        }
        if let Some(elsewhere) = (0..slots.len()).find(|&thread| !slots[thread].is_at(&leader)) {
            let message = "a thread waits at one barrier, and another at a different one".to_string();
            let mut fault = self.sm.fault_of(FaultKind::BarrierDiverged, waits, message);
            fault.other = Some(self.sm.party(elsewhere, slots[elsewhere].place()));
            return Err(fault);
        }
        self.answer_barrier();
        self.sm.clock.epoch += 1;
        self.sm.counters.barriers += 1;
        self.sm.counters.warp_instructions += self.warps.len() as u64;
        for warp in &mut self.warps {
            warp.runnable = std::mem::take(&mut warp.barred);
        }
        Ok(())
    }

    /// Gives every thread what the barrier computes of all predicates.
    fn answer_barrier(&self) {
        let calls = || {
            self.port.slots.iter().map(|slot| {
                // SAFETY: every thread waits at a barrier, so its call is a barrier's, on its suspended stack; nothing
                // else refers to it.
                unsafe { &mut *slot.request().call }
            })
        };
        let yes = calls().filter(|call| matches!(call, Call::Barrier { predicate: true, .. })).count();
        for call in calls() {
            if let Call::Barrier { barrier, result, .. } = call {
                *result = match barrier {
                    Barrier::Sync | Barrier::Count => yes as u32,
                    Barrier::And => u32::from(yes == self.port.slots.len()),
                    Barrier::Or => u32::from(yes > 0),
                };
            }
        }
    }

    fn stuck(&self, at: usize, stuck: &Stuck) -> Box<Fault> {
        let (slots, warp) = (&self.port.slots, &self.warps[at]);
        let request = warp.request(slots, stuck.lane);
        let group = Group { slots, warp, lanes: 1 << stuck.lane, place: request.place };
        let mask = request.mask;
        if stuck.missing == stuck.lane {
            let message = format!("a lane takes part in a warp operation whose mask {mask:#010x} does not name it");
            return self.sm.fault(FaultKind::WrongLane, &group, stuck.lane, message);
        }
        let (state, place) = warp.whereabouts(slots, stuck.missing);
        let message =
            format!("a warp operation waits for lane {} of its mask {mask:#010x}, which {state}", stuck.missing);
        let mut fault = self.sm.fault(FaultKind::WrongLane, &group, stuck.lane, message);
        fault.other = place.map(|place| self.sm.party(warp.first + stuck.missing as usize, Some(place)));
        fault
    }
}

/// Executes an instruction that needs no more than the SM.
fn execute(sm: &mut Sm, group: &Group, kind: Kind) -> Result<(), Box<Fault>> {
    match kind {
        Kind::LoadGlobal => sm.load_global(group)?,
        Kind::LoadShared => sm.load_shared(group)?,
        Kind::StoreGlobal => sm.store_global(group)?,
        Kind::StoreShared => sm.store_shared(group)?,
        Kind::AtomicGlobal => sm.atomic_global(group)?,
        Kind::AtomicShared => sm.atomic_shared(group)?,
        Kind::CopyAsync => sm.copy_async(group)?,
        Kind::CommitGroup => sm.commit_group(group),
        Kind::WaitGroup => sm.wait_group(group),
        Kind::MbarrierInit => sm.mbarrier_init(group)?,
        Kind::MbarrierExpect => sm.mbarrier_expect(group)?,
        Kind::BulkLoad => sm.bulk_load(group)?,
        Kind::BulkStore => sm.bulk_store(group)?,
        Kind::BulkCommit => sm.bulk_commit(group),
        Kind::BulkWait => sm.bulk_wait(group),
        Kind::Shuffle => sm.shuffle(group)?,
        Kind::Vote => sm.vote(group),
        Kind::Mma => sm.mma(group),
        Kind::MmaTf32 => sm.mma_tf32(group),
        Kind::MbarrierWait | Kind::SyncWarp | Kind::Fence | Kind::Nothing | Kind::Barrier | Kind::Endless => {}
    }
    Ok(())
}

/// What a panic said.
fn text_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| text.to_string());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "the kernel panicked".to_string())
}
