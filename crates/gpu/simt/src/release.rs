//! Order between blocks: fence then atomic on one side, atomic then fence on the other.
//!
//! A write is *released* once its thread went through a device fence and then it, or after a barrier any thread of its
//! block, made an atomic update; so is everything before the last barrier before that fence. A block has *acquired* what
//! was released before once one of its threads made an atomic update and then went through a device fence; the other
//! threads of the block, from the next barrier on. Which address the atomic updates go to is not looked at: two that have
//! nothing to do with each other count as a pair.

/// What a thread of an earlier block released.
struct Release {
    block_first: u32,
    thread: u16,
    epoch: u32,
    stamp: u32,
}

/// A fence that a thread of the running block went through: (epoch, stamp); epoch 0 for none.
type Fenced = (u32, u32);

/// The blocks of a launch so far.
pub(crate) struct Releases {
    /// First epoch and index of each block, in the order in which they ran.
    blocks: Vec<(u32, [u32; 3])>,
    released: Vec<Release>,
    fenced: Vec<Fenced>,
    any_fenced: bool,
    /// Epoch of each thread's first atomic update in the running block; 0 for none.
    atomic: Vec<u32>,
    first_atomic: u32,
    acquired: Vec<bool>,
    acquired_from: u32,
}

impl Releases {
    pub(crate) fn new(threads: usize) -> Self {
        Releases {
            blocks: Vec::new(),
            released: Vec::new(),
            fenced: vec![(0, 0); threads],
            any_fenced: false,
            atomic: vec![0; threads],
            first_atomic: 0,
            acquired: vec![false; threads],
            acquired_from: u32::MAX,
        }
    }

    /// The next block starts.
    pub(crate) fn start_block(&mut self, first_epoch: u32, block: [u32; 3]) {
        self.blocks.push((first_epoch, block));
        if self.any_fenced || self.first_atomic != 0 {
            self.fenced.fill((0, 0));
            self.atomic.fill(0);
            self.acquired.fill(false);
        }
        (self.any_fenced, self.first_atomic, self.acquired_from) = (false, 0, u32::MAX);
    }

    /// The block that ran in an epoch.
    pub(crate) fn block_of(&self, epoch: u32) -> Option<(u32, [u32; 3])> {
        let after = self.blocks.partition_point(|&(first, _)| first <= epoch);
        after.checked_sub(1).map(|at| self.blocks[at])
    }

    /// A thread goes through a device fence; the stamp is that of what it does next.
    pub(crate) fn fence(&mut self, thread: usize, epoch: u32, stamp: u32) {
        self.fenced[thread] = (epoch, stamp);
        self.any_fenced = true;
        if self.atomic[thread] != 0 || (self.first_atomic != 0 && self.first_atomic < epoch) {
            self.acquired[thread] = true;
            self.acquired_from = self.acquired_from.min(epoch + 1);
        }
    }

    /// A thread makes an atomic update.
    pub(crate) fn atomic(&mut self, thread: usize, epoch: u32) {
        if self.atomic[thread] == 0 {
            self.atomic[thread] = epoch;
        }
        if self.first_atomic == 0 {
            self.first_atomic = epoch;
        }
        if self.any_fenced {
            self.release(thread, epoch);
        }
    }

    fn release(&mut self, thread: usize, now: u32) {
        let Some(&(block_first, _)) = self.blocks.last() else { return };
        for (other, fenced) in self.fenced.iter_mut().enumerate() {
            let (epoch, stamp) = *fenced;
            if epoch != 0 && (other == thread || epoch < now) {
                self.released.push(Release { block_first, thread: other as u16, epoch, stamp });
                *fenced = (0, 0);
            }
        }
    }

    /// Whether an earlier block released this access of it.
    pub(crate) fn released(&self, epoch: u32, thread: u16, stamp: u32) -> bool {
        let Some((first, _)) = self.block_of(epoch) else { return false };
        let start = self.released.partition_point(|release| release.block_first < first);
        self.released[start..].iter().take_while(|release| release.block_first == first).any(|release| {
            epoch < release.epoch || (release.thread == thread && epoch == release.epoch && stamp < release.stamp)
        })
    }

    /// Whether a thread of the running block sees, in this epoch, what was released.
    pub(crate) fn acquired(&self, thread: u16, epoch: u32) -> bool {
        epoch >= self.acquired_from || self.acquired[usize::from(thread)]
    }
}
