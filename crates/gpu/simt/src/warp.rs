//! A warp: which lanes wait for what, and which of them go next.

use crate::port::{Kind, Place, Request, Slot};
use crate::sync::{Lanes, WarpSync};

/// Instructions in a row that may leave waiting lanes behind, before those go first: a lane that spins until another
/// lane of its warp has done something gets there too.
const PATIENCE: u32 = 4096;

/// 32 threads, or the last of a block. Masks have a bit a lane.
pub(crate) struct Warp {
    /// Its first thread in the block.
    pub(crate) first: usize,
    /// Lanes that started.
    pub(crate) all: u32,
    /// Lanes that have not ended.
    pub(crate) live: u32,
    /// Lanes that can be resumed.
    pub(crate) runnable: u32,
    /// Lanes that wait for an instruction other than a barrier.
    pub(crate) waiting: u32,
    /// Lanes that wait at a barrier.
    pub(crate) barred: u32,
    /// Lanes that wait for a phase of an mbarrier.
    pub(crate) parked: u32,
    pub(crate) sync: WarpSync,
    overtaken: u32,
}

/// Why no lane of a warp can go on: a lane of a collective's mask is not at it.
pub(crate) struct Stuck {
    pub(crate) lane: u32,
    pub(crate) missing: u32,
}

/// A place in the order in which a diverged warp's lanes go: the first line first, so that lanes in a loop catch up with
/// those that left it; but stores to global memory before all, which mostly stand behind an `if` that the others skipped.
fn key(request: &Request) -> (bool, &'static str, u32, u32, Kind) {
    let other = request.kind != Kind::StoreGlobal;
    (other, request.place.file(), request.place.line(), request.place.column(), request.kind)
}

impl Warp {
    /// The warp of `threads` that starts at `first`.
    pub(crate) fn new(first: usize, threads: usize) -> Self {
        let all = if threads >= 32 { u32::MAX } else { (1 << threads) - 1 };
        let sync = WarpSync::new();
        Warp { first, all, live: all, runnable: all, waiting: 0, barred: 0, parked: 0, sync, overtaken: 0 }
    }

    /// The request of a lane.
    pub(crate) fn request(&self, slots: &[Slot], lane: u32) -> Request {
        slots[self.first + lane as usize].request()
    }

    /// The lanes that execute the next instruction together; some lane waits.
    pub(crate) fn pick(&mut self, slots: &[Slot]) -> Result<u32, Stuck> {
        let first = self.request(slots, self.waiting.trailing_zeros());
        let in_step = Lanes(self.waiting).all(|lane| first.is_like(&self.request(slots, lane)));
        let complete = || Lanes(self.waiting).all(|lane| self.request(slots, lane).mask == self.waiting);
        if in_step && (!first.kind.is_collective() || complete()) {
            self.overtaken = 0;
            return Ok(self.waiting);
        }
        self.overtaken += 1;
        let last_first = self.overtaken > PATIENCE;
        let mut rest = self.waiting;
        let mut stuck = None;
        while rest != 0 {
            let group = self.next_group(slots, rest, last_first);
            rest &= !group;
            match self.complete(slots, group) {
                Ok(lanes) => {
                    if lanes == self.waiting || last_first {
                        self.overtaken = 0;
                    }
                    return Ok(lanes);
                }
                Err(why) => stuck = stuck.or(Some(why)),
            }
        }
        Err(stuck.unwrap_or(Stuck { lane: 0, missing: 0 }))
    }

    /// Of the lanes in `rest`, those that wait at the first place, or the last one.
    fn next_group(&self, slots: &[Slot], rest: u32, last_first: bool) -> u32 {
        let by_key = |&lane: &u32| key(&self.request(slots, lane));
        let leader = if last_first { Lanes(rest).max_by_key(by_key) } else { Lanes(rest).min_by_key(by_key) };
        let leader = self.request(slots, leader.unwrap_or(0));
        let same = Lanes(rest).filter(|&lane| leader.is_like(&self.request(slots, lane)));
        same.fold(0, |group, lane| group | 1 << lane)
    }

    /// The lanes of a group that can go: all of them, or for a collective, those of a mask that is complete.
    fn complete(&self, slots: &[Slot], group: u32) -> Result<u32, Stuck> {
        let mut rest = group;
        let mut stuck = None;
        while rest != 0 {
            let lane = rest.trailing_zeros();
            let request = self.request(slots, lane);
            if !request.kind.is_collective() {
                return Ok(group);
            }
            let mask = request.mask;
            let alike = Lanes(rest).filter(|&other| self.request(slots, other).mask == mask);
            let members = alike.fold(0, |members, other| members | 1 << other);
            rest &= !members;
            if members & !mask != 0 {
                let outside = (members & !mask).trailing_zeros();
                return Err(Stuck { lane: outside, missing: outside });
            }
            if members == mask {
                return Ok(members);
            }
            stuck = stuck.or(Some(Stuck { lane, missing: (mask & !members).trailing_zeros() }));
        }
        Err(stuck.unwrap_or(Stuck { lane: 0, missing: 0 }))
    }

    /// Whether the lane that others wait for may come yet: when an mbarrier lets it go, or another that it waits for.
    pub(crate) fn may_come(&self, stuck: &Stuck) -> bool {
        let coming = (self.parked | self.waiting) & (1 << stuck.missing) != 0;
        self.parked != 0 && stuck.missing != stuck.lane && coming
    }

    /// Where a lane waits, and in which words; `None` where it waits nowhere.
    pub(crate) fn whereabouts(&self, slots: &[Slot], lane: u32) -> (&'static str, Option<Place>) {
        let bit = 1 << lane;
        if self.all & bit == 0 {
            return ("is not there: the block has no such thread", None);
        }
        let place = slots[self.first + lane as usize].place();
        if self.live & bit == 0 {
            ("has ended", place)
        } else if self.barred & bit != 0 {
            ("waits at a barrier", place)
        } else if self.parked & bit != 0 {
            ("waits for an mbarrier", place)
        } else {
            ("is elsewhere", place)
        }
    }
}
