//! Between threads and the async proxy, by which bulk copies see shared memory: whose writes were fenced for it, and who
//! has waited for what it wrote. And between threads that mbarriers order: what came before an arrival at a phase, and what its bulk
//! loads read, is ordered before what comes behind a wait for it.

use crate::shadow::Now;
use crate::sync::Lanes;

/// Lanes of a warp that did something at one instant.
struct Moment {
    warp: u8,
    lanes: u32,
    epoch: u32,
    stamp: u32,
}

/// What an arrival at a phase has behind it, or what a bulk load of it reads.
#[derive(Clone, Copy)]
pub(crate) struct Release {
    pub(crate) warp: u8,
    pub(crate) lane: u32,
    /// The lane's accesses with a stamp from one to below another; and those of all lanes of its warp below a third.
    pub(crate) from: u32,
    pub(crate) stamp: u32,
    pub(crate) full: u32,
}

/// An ended phase of an mbarrier.
struct Phase {
    releases: Vec<Release>,
    /// Who has waited for it.
    waits: Vec<Moment>,
}

/// The fences and the ended phases of the running block.
pub(crate) struct Proxy {
    /// By warp, in the order in which they were.
    fences: Vec<Vec<Moment>>,
    /// By the number of the phase, counted over all mbarriers.
    phases: Vec<Phase>,
}

impl Proxy {
    pub(crate) fn new(threads: usize) -> Self {
        Proxy { fences: (0..threads.div_ceil(32)).map(|_| Vec::new()).collect(), phases: Vec::new() }
    }

    /// The next block starts.
    pub(crate) fn start_block(&mut self) {
        self.fences.iter_mut().for_each(Vec::clear);
        self.phases.clear();
    }

    /// A thread goes through a fence of the async proxy; the stamp is that of what it does next.
    pub(crate) fn fence(&mut self, thread: usize, epoch: u32, stamp: u32) {
        note(&mut self.fences[thread / 32], thread, epoch, stamp);
    }

    /// Whether `writer` went through a fence behind its access with this stamp, and that is ordered before the lane's next.
    pub(crate) fn fenced(&self, now: &Now, lane: u32, writer: u16, stamp: u32) -> bool {
        let (warp, of_warp) = (usize::from(writer / 32), u32::from(writer % 32));
        let fences = &self.fences[warp];
        let behind = &fences[fences.partition_point(|fence| fence.stamp <= stamp)..];
        // What orders a later one orders the first.
        let Some(fence) = behind.iter().find(|fence| fence.lanes & (1 << of_warp) != 0) else { return false };
        let same_warp = warp == usize::from(now.warp);
        writer == now.thread(lane)
            || fence.epoch < now.epoch
            || same_warp && now.sync.orders(of_warp, lane, fence.stamp)
            || self.handed(now, lane, (writer / 32) as u8, Some(of_warp), fence.stamp)
    }

    /// A phase ends that nobody has waited for yet: its number.
    pub(crate) fn end_phase(&mut self, releases: Vec<Release>) -> u32 {
        self.phases.push(Phase { releases, waits: Vec::new() });
        self.phases.len() as u32 - 1
    }

    /// A thread has waited for a phase.
    pub(crate) fn wait(&mut self, phase: u32, thread: usize, epoch: u32, stamp: u32) {
        note(&mut self.phases[phase as usize].waits, thread, epoch, stamp);
    }

    /// The first of `lanes` that neither waited for a phase nor met a lane that had.
    pub(crate) fn unseen(&self, now: &Now, lanes: u32, phase: u32) -> Option<u32> {
        Lanes(lanes).find(|&lane| !self.phases[phase as usize].is_known(now, lane))
    }

    /// Whether the accesses of a warp with this stamp, by one lane or by all, came before arrivals at phases that the lane knows of.
    /// Hands that it went through between are not followed.
    pub(crate) fn handed(&self, now: &Now, lane: u32, warp: u8, by: Option<u32>, stamp: u32) -> bool {
        let wanted = by.map_or(u32::MAX, |by| 1 << by);
        let mut lanes = 0;
        for phase in self.phases.iter().rev() {
            let of_it = |release: &&Release| release.warp == warp && (release.from..release.stamp).contains(&stamp);
            let releases = || phase.releases.iter().filter(of_it);
            if releases().next().is_some() && phase.is_known(now, lane) {
                for release in releases() {
                    lanes |= if stamp < release.full { u32::MAX } else { 1 << release.lane };
                }
                if lanes & wanted == wanted {
                    return true;
                }
            }
        }
        false
    }
}

impl Phase {
    /// Whether the lane has waited for it, or met a lane that had.
    fn is_known(&self, now: &Now, lane: u32) -> bool {
        let ours = || self.waits.iter().filter(|wait| wait.warp == now.warp);
        ours().any(|wait| wait.lanes & (1 << lane) != 0)
            || ours().any(|wait| Lanes(wait.lanes).any(|other| now.sync.orders(other, lane, wait.stamp)))
    }
}

/// Adds a thread to the last moment, or begins a new one.
fn note(moments: &mut Vec<Moment>, thread: usize, epoch: u32, stamp: u32) {
    let (warp, lane) = ((thread / 32) as u8, 1 << (thread % 32));
    match moments.last_mut() {
        Some(last) if (last.warp, last.epoch, last.stamp) == (warp, epoch, stamp) => last.lanes |= lane,
        _ => moments.push(Moment { warp, lanes: lane, epoch, stamp }),
    }
}
