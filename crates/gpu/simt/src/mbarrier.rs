//! Mbarriers: phases that end when all arrivals and all bytes of bulk loads are there.
//!
//! What loads bring is there as late as can be: when the first thread waits for the phase. Until then the mbarrier takes
//! neither arrivals nor bytes, as nobody can know that the phase has ended.

use crate::fault::{Fault, FaultKind};
use crate::port::{Call, Place, Slot};
use crate::proxy::Release;
use crate::shadow::Write;
use crate::sm::{Group, Run, Sm};
use crate::sync::Lanes;
use crate::warp::Warp;
use cuda_std::hooks::Access;

/// Bytes of an mbarrier.
const BYTES: u32 = 8;
/// Arrivals that a phase can take, and bytes that it can expect.
const MOST: u32 = (1 << 20) - 1;

/// A bulk load under way.
pub(crate) struct Load {
    pub(crate) at: usize,
    pub(crate) data: Vec<u8>,
    pub(crate) thread: usize,
    pub(crate) place: Place,
}

/// An mbarrier, and its current phase.
pub(crate) struct Mbarrier {
    arrivals: u32,
    missing: u32,
    /// Bytes that arrivals said were to come.
    expected: u64,
    /// Bytes of the loads that were started.
    started: u64,
    loads: Vec<Load>,
    /// What its arrivals and loads have behind them.
    releases: Vec<Release>,
    /// Phases that have ended.
    phase: u32,
    /// The number of the last of them in [`crate::proxy::Proxy`].
    ended: Option<u32>,
}

impl Mbarrier {
    fn new(arrivals: u32) -> Self {
        Mbarrier {
            arrivals,
            missing: arrivals,
            expected: 0,
            started: 0,
            loads: Vec::new(),
            releases: Vec::new(),
            phase: 0,
            ended: None,
        }
    }

    /// Whether the phase of this parity is the one before the current one.
    fn is_over(&self, parity: u32) -> bool {
        self.phase % 2 != parity
    }

    /// Whether the current phase ends as soon as somebody waits for it.
    fn is_due(&self) -> bool {
        self.missing == 0 && self.started == self.expected
    }

    /// An arrival, with bytes to come. The error says why that is wrong.
    fn arrive(&mut self, bytes: u32, release: Release) -> Result<(), String> {
        if self.missing == 0 {
            let why = if self.is_due() { "nobody has waited for it" } else { "bytes are missing" };
            return Err(format!("a thread arrives at an mbarrier whose phase has all its arrivals: {why}"));
        }
        self.missing -= 1;
        self.releases.push(release);
        self.expected += u64::from(bytes);
        if self.expected > u64::from(MOST) {
            return Err(format!("an mbarrier expects {} bytes in a phase, more than {MOST}", self.expected));
        }
        self.check_bytes()
    }

    /// A bulk load that completes on the current phase.
    pub(crate) fn start(&mut self, load: Load, release: Release) -> Result<(), String> {
        self.releases.push(release);
        self.started += load.data.len() as u64;
        self.loads.push(load);
        self.check_bytes()
    }

    fn check_bytes(&self) -> Result<(), String> {
        if self.missing == 0 && self.started > self.expected {
            let (started, expected) = (self.started, self.expected);
            return Err(format!("bulk loads bring {started} bytes to a phase of an mbarrier that expects {expected}"));
        }
        Ok(())
    }

    /// Why the current phase does not end.
    fn lacks(&self) -> String {
        if self.missing > 0 {
            return format!("{} of its {} arrivals are missing", self.missing, self.arrivals);
        }
        format!("it expects {} bytes, of which bulk loads bring {}", self.expected, self.started)
    }
}

impl Sm<'_> {
    /// `mbarrier.init`.
    pub(crate) fn mbarrier_init(&mut self, group: &Group) -> Result<(), Box<Fault>> {
        for lane in Lanes(group.lanes) {
            let Call::Mbarrier { at, number: arrivals } = call(group.slots, group.warp, lane) else { continue };
            let run = Run { lanes: 1 << lane, access: at, bytes: BYTES };
            let first = self.check_shared(group, at.address, &run)?;
            if self.bulk.mbarriers.contains_key(&first) {
                return Err(self.misused(group, &run, "an mbarrier is initialised again".to_string()));
            }
            if !(1..=MOST).contains(arrivals) {
                let message = format!("an mbarrier of {arrivals} arrivals; they are 1 to {MOST}");
                return Err(self.misused(group, &run, message));
            }
            self.with_words(group, first, &run, true, |word, now| {
                word.write(now, lane, Write::Plain)?;
                word.become_mbarrier();
                Ok(())
            })?;
            self.bulk.mbarriers.insert(first, Mbarrier::new(*arrivals));
        }
        Ok(())
    }

    /// `mbarrier.arrive.expect_tx`.
    pub(crate) fn mbarrier_expect(&mut self, group: &Group) -> Result<(), Box<Fault>> {
        for lane in Lanes(group.lanes) {
            let Call::Mbarrier { at, number: bytes } = call(group.slots, group.warp, lane) else { continue };
            self.with_mbarrier(group, lane, at, false, |mbarrier| mbarrier.arrive(*bytes, group.release(lane)))?;
        }
        Ok(())
    }

    /// `mbarrier.try_wait.parity` until it succeeds: the lanes that must wait on.
    pub(crate) fn mbarrier_wait(&mut self, group: &Group) -> Result<u32, Box<Fault>> {
        let mut left = 0;
        for lane in Lanes(group.lanes) {
            let Call::Mbarrier { at, number: parity } = call(group.slots, group.warp, lane) else { continue };
            let first = self.with_mbarrier(group, lane, at, false, |_| match parity {
                0 | 1 => Ok(()),
                _ => Err(format!("a parity of {parity}; it is 0 or 1")),
            })?;
            if self.bulk.mbarriers[&first].is_due() && !self.bulk.mbarriers[&first].is_over(*parity) {
                self.end_phase(first);
            }
            match &self.bulk.mbarriers[&first] {
                mbarrier if !mbarrier.is_over(*parity) => left |= 1 << lane,
                Mbarrier { ended: Some(phase), .. } => {
                    let (epoch, stamp) = (self.clock.epoch, group.warp.sync.stamp);
                    self.clock.proxy.wait(*phase, group.thread(lane), epoch, stamp);
                }
                _ => {}
            }
        }
        Ok(left)
    }

    /// The parked lanes of a warp that need not wait on, or have a fault to be told.
    pub(crate) fn passing(&self, slots: &[Slot], warp: &Warp) -> u32 {
        let passes = |&lane: &u32| {
            let Call::Mbarrier { at, number: parity } = call(slots, warp, lane) else { return true };
            let mbarrier = usize::try_from(at.address).ok().and_then(|first| self.bulk.mbarriers.get(&first));
            mbarrier.is_none_or(|mbarrier| *parity > 1 || mbarrier.is_over(*parity) || mbarrier.is_due())
        };
        Lanes(warp.parked).filter(passes).fold(0, |lanes, lane| lanes | 1 << lane)
    }

    /// No thread can go on, and lanes of this warp wait for a phase.
    pub(crate) fn waits_for_ever(&self, slots: &[Slot], warp: &Warp) -> Box<Fault> {
        let lane = warp.parked.trailing_zeros();
        let group = Group { slots, warp, lanes: 1 << lane, place: warp.request(slots, lane).place };
        let Call::Mbarrier { at, .. } = call(slots, warp, lane) else {
            return self.fault(FaultKind::BarrierMissed, &group, lane, "a thread waits for ever".to_string());
        };
        let run = Run { lanes: group.lanes, access: at, bytes: BYTES };
        let mbarrier = usize::try_from(at.address).ok().and_then(|first| self.bulk.mbarriers.get(&first));
        let (phase, lacks) = mbarrier.map_or((0, String::new()), |mbarrier| (mbarrier.phase, mbarrier.lacks()));
        let message = format!("a thread waits for phase {phase} of an mbarrier, which never ends: {lacks}");
        self.access_fault(FaultKind::BarrierMissed, &group, &run, message)
    }

    /// The block has ended: its mbarriers are no more.
    pub(crate) fn end_mbarriers(&mut self) -> Result<(), Box<Fault>> {
        for (first, mbarrier) in std::mem::take(&mut self.bulk.mbarriers) {
            if let Some(load) = mbarrier.loads.first() {
                let message = "a block ends while a bulk load, whose phase nobody waited for, is under way".to_string();
                return Err(self.fault_of(
                    FaultKind::AsyncInFlight,
                    self.party(load.thread, Some(load.place)),
                    message,
                ));
            }
            self.words[first / 4..][..BYTES as usize / 4].fill_with(Default::default);
        }
        Ok(())
    }

    /// Does something to the mbarrier that a lane names, for a bulk load where `bulk`: where it is. The error of `act` is a
    /// message.
    pub(crate) fn with_mbarrier(
        &mut self,
        group: &Group,
        lane: u32,
        at: &Access,
        bulk: bool,
        act: impl FnOnce(&mut Mbarrier) -> Result<(), String>,
    ) -> Result<usize, Box<Fault>> {
        let run = Run { lanes: 1 << lane, access: at, bytes: BYTES };
        let first = self.check_shared(group, at.address, &run)?;
        if !self.bulk.mbarriers.contains_key(&first) {
            let message = "an mbarrier is used that no thread of its block has initialised yet".to_string();
            return Err(self.misused(group, &run, message));
        }
        self.with_words(group, first, &run, false, |word, now| word.use_mbarrier(now, lane, bulk))?;
        match self.bulk.mbarriers.get_mut(&first).map_or(Ok(()), act) {
            Ok(()) => Ok(first),
            Err(message) => Err(self.misused(group, &run, message)),
        }
    }

    /// The current phase ends, and what its loads brought is there.
    fn end_phase(&mut self, first: usize) {
        let Some(mbarrier) = self.bulk.mbarriers.get_mut(&first) else { return };
        let phase = self.clock.proxy.end_phase(std::mem::take(&mut mbarrier.releases));
        for Load { at, data, .. } in mbarrier.loads.drain(..) {
            self.shared[at..at + data.len()].copy_from_slice(&data);
            for word in &mut self.words[at / 4..(at + data.len()) / 4] {
                word.arrive(self.clock.epoch, phase);
            }
        }
        (mbarrier.missing, mbarrier.expected, mbarrier.started) = (mbarrier.arrivals, 0, 0);
        (mbarrier.phase, mbarrier.ended) = (mbarrier.phase + 1, Some(phase));
    }

    fn misused(&self, group: &Group, run: &Run, message: String) -> Box<Fault> {
        self.access_fault(FaultKind::MbarrierMisused, group, run, message)
    }
}

/// The call that a lane waits with.
pub(crate) fn call<'a>(slots: &'a [Slot], warp: &'a Warp, lane: u32) -> &'a Call<'static> {
    // SAFETY: it lies on the stack of the lane's suspended thread, and nothing changes it meanwhile.
    unsafe { &*warp.request(slots, lane).call }
}
