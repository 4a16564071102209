//! What is remembered of each 4-byte word of memory: who wrote it and who read it last, and what orders that before now.
//!
//! Time is told in two ways. The *epoch* counts block barriers and block starts, and never goes back within a
//! [`crate::Memory`]: an access of an earlier epoch of the same block lies behind a barrier, and one of an epoch before
//! the block's first belongs to another block. The *stamp* counts what orders the lanes of one warp; of a word that a bulk
//! load wrote, it is the number of the phase that this ended ([`Proxy`]).

use crate::port::Place;
use crate::proxy::Proxy;
use crate::readers::Readers;
use crate::release::Releases;
use crate::sync::{Lanes, WarpSync};

/// Copied into, but not yet there.
const IN_FLIGHT: u8 = 1;
/// The last write was atomic.
const ATOMIC: u8 = 2;
/// Other threads updated it atomically too, in the same epoch.
const SEVERAL: u8 = 4;
/// Read by a load that promised that nobody writes it.
const CONSTANT: u8 = 8;
/// The earlier access of another block wrote.
const EARLIER_WROTE: u8 = 16;
/// ... and was atomic.
const EARLIER_ATOMIC: u8 = 32;
/// Written by a bulk load.
const BULK: u8 = 64;
/// A bulk store is still to read it.
const SOURCE: u8 = 128;
/// Part of an mbarrier: no word is copied into and out of at the same time.
const MBARRIER: u8 = IN_FLIGHT | SOURCE;

/// One word's history. Epoch 0 stands for never.
#[derive(Clone, Copy, Default)]
pub(crate) struct Word {
    w_epoch: u32,
    w_stamp: u32,
    r_epoch: u32,
    r_stamp: u32,
    /// Lanes of warp `r_warp` that read it.
    r_lanes: u32,
    /// An access by a block before the recorded one.
    p_epoch: u32,
    p_stamp: u32,
    /// The last warp instruction that touched it: tells distinct words from repeated ones.
    seen: u32,
    w_thread: u16,
    /// A reader of the same epoch in another warp, plus one; 0 for none.
    r_other: u16,
    p_thread: u16,
    r_warp: u8,
    flags: u8,
    w_place: Option<Place>,
    r_place: Option<Place>,
    p_place: Option<Place>,
}

/// An access before this one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Earlier {
    pub(crate) epoch: u32,
    pub(crate) thread: u16,
    pub(crate) place: Option<Place>,
    pub(crate) wrote: bool,
}

/// What is wrong with an access.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Clash {
    Uninitialised,
    InFlight(Earlier),
    /// The second is the lane at fault.
    Race(Earlier, u32),
    Constant(Earlier),
    /// A bulk store is still to read it.
    Source,
    /// Written by a bulk load that the lane knows nothing of.
    Unseen(Earlier, u32),
    Unfenced(Earlier),
    Mbarrier(Earlier),
}

/// How a word is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Write {
    Plain,
    Atomic,
    /// A copy that starts, and arrives later.
    Async,
    /// A bulk load that starts, and arrives later.
    Bulk,
}

/// The warp instruction that accesses words now.
#[derive(Clone, Copy)]
pub(crate) struct Now<'a> {
    pub(crate) epoch: u32,
    pub(crate) block_first: u32,
    pub(crate) launch_first: u32,
    pub(crate) warp: u8,
    pub(crate) place: Place,
    pub(crate) sync: &'a WarpSync,
    pub(crate) releases: &'a Releases,
    pub(crate) proxy: &'a Proxy,
    /// Which warps have read the word, and its number, where that is kept.
    pub(crate) readers: Option<(&'a Readers, usize)>,
}

impl Now<'_> {
    pub(crate) fn thread(&self, lane: u32) -> u16 {
        u16::from(self.warp) * 32 + lane as u16
    }

    /// The first of `lanes` that nothing orders behind an access by a thread of this block in this epoch.
    fn unordered(&self, thread: u16, stamp: u32, lanes: u32) -> Option<u32> {
        Lanes(lanes).find(|&lane| thread != self.thread(lane) && !self.orders(thread, lane, stamp))
    }

    /// Whether an access by another thread of this block in this epoch is ordered before the lane's next.
    fn orders(&self, thread: u16, lane: u32, stamp: u32) -> bool {
        let (warp, earlier) = ((thread / 32) as u8, u32::from(thread % 32));
        warp == self.warp && self.sync.orders(earlier, lane, stamp)
            || self.proxy.handed(self, lane, warp, Some(earlier), stamp)
    }

    /// The first of `lanes` that nothing orders behind an access of another block of this launch.
    fn unordered_block(&self, epoch: u32, thread: u16, stamp: u32, lanes: u32) -> Option<u32> {
        if !self.releases.released(epoch, thread, stamp) {
            return Some(lanes.trailing_zeros());
        }
        Lanes(lanes).find(|&lane| !self.releases.acquired(self.thread(lane), self.epoch))
    }

    /// Whether the epoch belongs to another block of this launch.
    fn is_other_block(&self, epoch: u32) -> bool {
        epoch >= self.launch_first && epoch < self.block_first
    }
}

impl Word {
    /// Whether any launch wrote it.
    pub(crate) fn is_written(&self) -> bool {
        self.w_epoch != 0
    }

    /// Whether it was written in this epoch or one since.
    pub(crate) fn is_written_since(&self, epoch: u32) -> bool {
        self.w_epoch >= epoch
    }

    /// Whether this is the first time that warp instruction `number` touches the word.
    pub(crate) fn first_seen(&mut self, number: u32) -> bool {
        let first = self.seen != number;
        self.seen = number;
        first
    }

    /// `lanes` read the word; `written_since` is the epoch from which on a write counts as one, 0 if it was always
    /// initialised; `constant` promises that nobody writes it in this launch.
    pub(crate) fn read(&mut self, now: &Now, lanes: u32, written_since: u32, constant: bool) -> Result<(), Clash> {
        self.check_free(IN_FLIGHT)?;
        if self.w_epoch < written_since {
            return Err(Clash::Uninitialised);
        }
        if constant && self.w_epoch >= now.launch_first && self.w_epoch != 0 {
            return Err(Clash::Constant(self.writer()));
        }
        self.check_writer(now, lanes, false)?;
        if self.flags & EARLIER_WROTE != 0 {
            self.check_earlier(now, lanes)?;
        }
        self.note_read(now, lanes, constant);
        Ok(())
    }

    /// A lane writes the word.
    pub(crate) fn write(&mut self, now: &Now, lane: u32, how: Write) -> Result<(), Clash> {
        self.check_free(IN_FLIGHT | SOURCE)?;
        if self.flags & CONSTANT != 0 && self.r_epoch >= now.launch_first {
            return Err(Clash::Constant(self.reader()));
        }
        let lanes = 1 << lane;
        self.check_writer(now, lanes, how == Write::Atomic)?;
        self.check_readers(now, lane)?;
        if how == Write::Bulk {
            self.check_fenced(now, lane)?;
        }
        if self.p_epoch != 0 && !(how == Write::Atomic && self.flags & EARLIER_ATOMIC != 0) {
            self.check_earlier(now, lanes)?;
        }
        self.note_write(now, now.thread(lane), how);
        Ok(())
    }

    /// A copy arrives: the thread that waited for it has now written the word. Of a bulk load, the stamp is its phase.
    pub(crate) fn arrive(&mut self, epoch: u32, stamp: u32) {
        self.flags &= !IN_FLIGHT;
        self.w_epoch = epoch;
        self.w_stamp = stamp;
    }

    /// A lane starts a bulk store of the word, which is read from now on.
    pub(crate) fn start_reading(&mut self, now: &Now, lane: u32) -> Result<(), Clash> {
        self.check_free(IN_FLIGHT)?;
        if self.w_epoch < now.block_first {
            return Err(Clash::Uninitialised);
        }
        self.check_writer(now, 1 << lane, false)?;
        self.check_fenced(now, lane)?;
        self.keep_reading();
        Ok(())
    }

    /// A bulk store is still to read the word.
    pub(crate) fn keep_reading(&mut self) {
        self.flags |= SOURCE;
    }

    /// A lane has waited until the word was read.
    pub(crate) fn stop_reading(&mut self, now: &Now, lane: u32) {
        self.flags &= !SOURCE;
        self.note_read(now, 1 << lane, false);
    }

    /// The word, which was just written, is part of an mbarrier from now on.
    pub(crate) fn become_mbarrier(&mut self) {
        self.flags |= MBARRIER;
    }

    /// A lane uses the mbarrier that the word is part of, or where `bulk`, lets a bulk load complete on it.
    pub(crate) fn use_mbarrier(&self, now: &Now, lane: u32, bulk: bool) -> Result<(), Clash> {
        self.check_writer(now, 1 << lane, false)?;
        if bulk { self.check_fenced(now, lane) } else { Ok(()) }
    }

    /// Whether the word is in none of the states of `busy`.
    fn check_free(&self, busy: u8) -> Result<(), Clash> {
        if self.flags & busy == 0 {
            return Ok(());
        }
        Err(match self.flags & MBARRIER {
            MBARRIER => Clash::Mbarrier(self.writer()),
            SOURCE => Clash::Source,
            _ => Clash::InFlight(self.writer()),
        })
    }

    /// A bulk copy touches what a thread of this block wrote: behind a fence of that thread.
    fn check_fenced(&self, now: &Now, lane: u32) -> Result<(), Clash> {
        let generic = self.flags & BULK == 0 && self.w_epoch >= now.block_first;
        if generic && !now.proxy.fenced(now, lane, self.w_thread, self.w_stamp) {
            return Err(Clash::Unfenced(self.writer()));
        }
        Ok(())
    }

    fn writer(&self) -> Earlier {
        Earlier { epoch: self.w_epoch, thread: self.w_thread, place: self.w_place, wrote: true }
    }

    fn reader(&self) -> Earlier {
        Earlier { epoch: self.r_epoch, thread: self.a_reader(u32::MAX), place: self.r_place, wrote: false }
    }

    /// One of the readers in warp `r_warp`, of `lanes` where any of them reads.
    fn a_reader(&self, lanes: u32) -> u16 {
        let among = if self.r_lanes & lanes != 0 { self.r_lanes & lanes } else { self.r_lanes };
        u16::from(self.r_warp) * 32 + (among.trailing_zeros() % 32) as u16
    }

    fn check_writer(&self, now: &Now, lanes: u32, atomic: bool) -> Result<(), Clash> {
        let both_atomic = atomic && self.flags & ATOMIC != 0;
        if self.w_epoch < now.launch_first || both_atomic {
            return Ok(());
        }
        if self.w_epoch == now.epoch && self.flags & BULK != 0 {
            let unseen = now.proxy.unseen(now, lanes, self.w_stamp);
            return unseen.map_or(Ok(()), |lane| Err(Clash::Unseen(self.writer(), lane)));
        }
        let unordered = if self.w_epoch == now.epoch {
            let several = (self.flags & SEVERAL != 0).then_some(lanes.trailing_zeros());
            several.or_else(|| now.unordered(self.w_thread, self.w_stamp, lanes))
        } else if now.is_other_block(self.w_epoch) {
            now.unordered_block(self.w_epoch, self.w_thread, self.w_stamp, lanes)
        } else {
            None
        };
        unordered.map_or(Ok(()), |lane| Err(Clash::Race(self.writer(), lane)))
    }

    fn check_readers(&self, now: &Now, lane: u32) -> Result<(), Clash> {
        let race = |thread| Err(Clash::Race(Earlier { thread, ..self.reader() }, lane));
        if self.r_epoch == now.epoch {
            if self.r_warp != now.warp || self.r_other != 0 {
                return match self.an_unordered_reader(now, lane) {
                    Some(reader) => race(reader),
                    None => Ok(()),
                };
            }
            let others = self.r_lanes & !(1 << lane);
            return match Lanes(others).find(|&other| !now.orders(now.thread(other), lane, self.r_stamp)) {
                Some(other) => race(self.a_reader(1 << other)),
                None => Ok(()),
            };
        }
        let reader = self.a_reader(u32::MAX);
        if now.is_other_block(self.r_epoch)
            && now.unordered_block(self.r_epoch, reader, self.r_stamp, 1 << lane).is_some()
        {
            return race(reader);
        }
        Ok(())
    }

    /// A reader of this epoch, of several or another warp, that nothing orders before the lane's write.
    fn an_unordered_reader(&self, now: &Now, lane: u32) -> Option<u16> {
        let known = |readers: &Readers, word| {
            let knows = |thread: u16| readers.know(now.epoch, word, (thread / 32) as u8);
            knows(u16::from(self.r_warp) * 32) && (self.r_other == 0 || knows(self.r_other - 1))
        };
        if let Some((readers, word)) = now.readers.filter(|(readers, word)| known(readers, *word)) {
            let warp = readers.unordered(now, word, lane)?;
            return Some(if warp == self.r_warp { self.a_reader(u32::MAX) } else { u16::from(warp) * 32 });
        }
        if self.r_other != 0 {
            return Some(self.r_other - 1);
        }
        let of_warp = |reader: u32| u16::from(self.r_warp) * 32 + reader as u16;
        let unordered = Lanes(self.r_lanes).find(|&reader| !now.orders(of_warp(reader), lane, self.r_stamp));
        unordered.map(|reader| self.a_reader(1 << reader))
    }

    /// The access of a block before the recorded one.
    fn check_earlier(&self, now: &Now, lanes: u32) -> Result<(), Clash> {
        if !now.is_other_block(self.p_epoch) {
            return Ok(());
        }
        let wrote = self.flags & EARLIER_WROTE != 0;
        let earlier = Earlier { epoch: self.p_epoch, thread: self.p_thread, place: self.p_place, wrote };
        let unordered = now.unordered_block(self.p_epoch, self.p_thread, self.p_stamp, lanes);
        unordered.map_or(Ok(()), |lane| Err(Clash::Race(earlier, lane)))
    }

    fn keep_earlier(&mut self, earlier: Earlier, stamp: u32, flags: u8) {
        (self.p_epoch, self.p_stamp) = (earlier.epoch, stamp);
        (self.p_thread, self.p_place) = (earlier.thread, earlier.place);
        self.flags = self.flags & !(EARLIER_WROTE | EARLIER_ATOMIC) | flags;
    }

    fn note_read(&mut self, now: &Now, lanes: u32, constant: bool) {
        if self.r_epoch != now.epoch {
            if now.is_other_block(self.r_epoch)
                && !(self.flags & EARLIER_WROTE != 0 && now.is_other_block(self.p_epoch))
            {
                let reader = self.reader();
                self.keep_earlier(reader, self.r_stamp, 0);
            }
            if self.r_epoch < now.launch_first {
                self.flags &= !CONSTANT;
            }
            (self.r_epoch, self.r_warp, self.r_other, self.r_lanes) = (now.epoch, now.warp, 0, lanes);
        } else if self.r_warp != now.warp {
            self.r_other = self.a_reader(u32::MAX) + 1;
            (self.r_warp, self.r_lanes) = (now.warp, lanes);
        } else if self.r_stamp < now.sync.full {
            self.r_lanes = lanes; // what was read before is ordered before all lanes
        } else {
            self.r_lanes |= lanes;
        }
        self.r_stamp = now.sync.stamp;
        self.r_place = Some(now.place);
        if constant {
            self.flags |= CONSTANT;
        }
    }

    fn note_write(&mut self, now: &Now, thread: u16, how: Write) {
        let atomic = how == Write::Atomic;
        if atomic && self.flags & ATOMIC != 0 {
            if self.w_epoch == now.epoch && self.w_thread != thread {
                self.flags |= SEVERAL;
                return; // the first one stands for all
            }
            if now.is_other_block(self.w_epoch) {
                let writer = self.writer();
                self.keep_earlier(writer, self.w_stamp, EARLIER_WROTE | EARLIER_ATOMIC);
            }
        }
        if !atomic {
            self.p_epoch = 0; // everything before is ordered before this write
            self.flags &= !(EARLIER_WROTE | EARLIER_ATOMIC);
            if self.r_epoch == now.epoch {
                self.r_epoch = 0;
            }
        }
        self.flags &= !(ATOMIC | SEVERAL | BULK);
        self.flags |= match how {
            Write::Plain => 0,
            Write::Atomic => ATOMIC,
            Write::Async => IN_FLIGHT,
            Write::Bulk => IN_FLIGHT | BULK,
        };
        (self.w_epoch, self.w_stamp) = (now.epoch, now.sync.stamp);
        (self.w_thread, self.w_place) = (thread, Some(now.place));
    }
}

#[cfg(test)]
mod tests {
    use super::Word;

    #[test]
    fn a_word_fills_a_cache_line() {
        assert_eq!(size_of::<Word>(), 64);
    }
}
