//! Which warps have read a word of shared memory since it was written: a word itself remembers the last, and one other.
//!
//! Kept for blocks with mbarriers, which order warps one by one; a barrier orders all.

use crate::shadow::Now;

/// By word and warp, an epoch and a stamp of the last read; epoch 0 stands for none.
pub(crate) struct Readers {
    warps: usize,
    last: Vec<(u32, u32)>,
    words: usize,
}

impl Readers {
    pub(crate) fn new(words: usize, threads: usize) -> Self {
        Readers { warps: threads.div_ceil(32), last: Vec::new(), words }
    }

    /// A warp has read words.
    pub(crate) fn note(&mut self, words: std::ops::Range<usize>, warp: u8, epoch: u32, stamp: u32) {
        if self.last.is_empty() {
            self.last = vec![(0, 0); self.words * self.warps];
        }
        for word in words {
            self.last[word * self.warps + usize::from(warp)] = (epoch, stamp);
        }
    }

    /// Words were written, behind all that was read of them.
    pub(crate) fn clear(&mut self, words: std::ops::Range<usize>) {
        if !self.last.is_empty() {
            self.last[words.start * self.warps..words.end * self.warps].fill((0, 0));
        }
    }

    /// Whether a warp's last read of a word, in this epoch, is known.
    pub(crate) fn know(&self, epoch: u32, word: usize, warp: u8) -> bool {
        self.last.get(word * self.warps + usize::from(warp)).is_some_and(|(last, _)| *last == epoch)
    }

    /// The first warp whose read of a word in this epoch nothing orders before the lane's next access.
    pub(crate) fn unordered(&self, now: &Now, word: usize, lane: u32) -> Option<u8> {
        let last = self.last.get(word * self.warps..(word + 1) * self.warps)?;
        let is_ordered = |warp: u8, stamp: u32| {
            warp == now.warp && stamp < now.sync.full || now.proxy.handed(now, lane, warp, None, stamp)
        };
        let reads = (0_u8..).zip(last).filter(|(_, (epoch, _))| *epoch == now.epoch);
        reads
            .map(|(warp, (_, stamp))| (warp, *stamp))
            .find(|&(warp, stamp)| !is_ordered(warp, stamp))
            .map(|(warp, _)| warp)
    }
}
