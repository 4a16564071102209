//! Off the GPU: the table that every instruction goes through, and who may fill it.

use core::panic::Location;
use std::sync::OnceLock;

/// A special register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Register {
    /// `%tid`, axis 0 to 2.
    ThreadIdx(u8),
    /// `%ctaid`, axis 0 to 2.
    BlockIdx(u8),
    /// `%ntid`, axis 0 to 2.
    BlockDim(u8),
    /// `%nctaid`, axis 0 to 2.
    GridDim(u8),
    /// `%laneid`.
    LaneId,
}

/// A memory that kernels reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Device memory; addresses are the host's.
    Global,
    /// A block's dynamic shared memory; addresses count bytes from its start.
    Shared,
}

/// One access to memory, as the emulator sees it.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// Which memory.
    pub space: Space,
    /// First byte.
    pub address: u64,
    /// The operand's name, empty where it has none.
    pub name: &'static str,
    /// First element of the access in its operand.
    pub index: u64,
    /// Elements of the operand; `None` where nobody said.
    pub extent: Option<u64>,
    /// Bytes an element.
    pub element_bytes: u32,
    /// Whether the instruction promises that nobody writes this memory while the kernel runs (`ld.global.nc`).
    pub read_only: bool,
    /// The line of the kernel.
    pub location: &'static Location<'static>,
}

/// A barrier of the whole block, with what it computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Barrier {
    /// `barrier.sync`.
    Sync,
    /// `barrier.red.popc`: how many threads said yes.
    Count,
    /// `barrier.red.and`: whether all did.
    And,
    /// `barrier.red.or`: whether any did.
    Or,
}

/// How a shuffle finds its source lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shuffle {
    /// A lane by number.
    Idx,
    /// A lower lane.
    Up,
    /// A higher lane.
    Down,
    /// The lane whose number differs in these bits.
    Xor,
}

/// A vote among the lanes of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vote {
    /// Whether all said yes: 1 or 0.
    All,
    /// Whether any did: 1 or 0.
    Any,
    /// Who did: one bit a lane.
    Ballot,
}

/// Whose writes a fence orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fence {
    /// Among the threads of a block.
    Block,
    /// Among all threads of the GPU, in one order for all of them.
    Device,
    /// Among the GPU and the host.
    System,
    /// Of this thread's accesses to shared memory and bulk copies.
    AsyncProxy,
}

/// What runs instructions in place of a GPU. Every method stands for the calling GPU thread: an emulator knows which
/// that is, suspends it where it must wait, and panics, or never resumes it, where it broke a rule.
pub trait Hooks: Sync {
    /// Reads a special register.
    fn register(&self, register: Register) -> u32;
    /// Waits for the block; returns what the barrier computes of the predicates.
    fn barrier(&self, barrier: Barrier, predicate: bool, location: &'static Location<'static>) -> u32;
    /// Waits for the lanes of `mask`.
    fn sync_warp(&self, mask: u32, location: &'static Location<'static>);
    /// Orders memory accesses.
    fn fence(&self, fence: Fence, location: &'static Location<'static>);
    /// Counts a fused multiply-add. Not an error outside of a launch: arithmetic needs no GPU thread.
    fn fma(&self);
    /// Reads `into.len()` bytes; where `inside` is false, touches neither memory nor `into`: the lane is masked off, but
    /// takes part in the instruction.
    fn load(&self, access: Access, into: &mut [u8], inside: bool);
    /// Writes the bytes.
    fn store(&self, access: Access, bytes: &[u8]);
    /// Replaces the word by `update` of it, as one step; returns the old one. Words of 4 bytes use the low half.
    fn atomic(&self, access: Access, bytes: u32, update: &dyn Fn(u64) -> u64) -> u64;
    /// Exchanges a word between lanes: the source lane's value, and whether that lane is within reach, which is the
    /// segment of `width` lanes and, for [`Shuffle::Xor`], those below it too.
    fn shuffle(
        &self,
        how: Shuffle,
        mask: u32,
        value: u32,
        lane: u32,
        width: u32,
        location: &'static Location<'static>,
    ) -> (u32, bool);
    /// Counts predicates among lanes.
    fn vote(&self, vote: Vote, mask: u32, predicate: bool, location: &'static Location<'static>) -> u32;
    /// Starts a copy of 4, 8 or 16 bytes into shared memory: `valid` bytes of global memory, and zeros for the rest.
    fn copy_async(&self, into: Access, from: Access, bytes: u32, valid: u32);
    /// Closes the group of copies started since the last one.
    fn commit_group(&self, location: &'static Location<'static>);
    /// Waits until at most `pending` groups are in flight.
    fn wait_group(&self, pending: u32, location: &'static Location<'static>);
    /// Makes 8 bytes of shared memory an mbarrier whose phases take `arrivals` arrivals.
    fn mbarrier_init(&self, at: Access, arrivals: u32, location: &'static Location<'static>);
    /// Arrives at an mbarrier, whose phase is to get `bytes` bytes more.
    fn mbarrier_expect(&self, at: Access, bytes: u32, location: &'static Location<'static>);
    /// Waits for the end of the phase of this parity.
    fn mbarrier_wait(&self, at: Access, parity: u32, location: &'static Location<'static>);
    /// Starts a bulk copy into shared memory, which completes on an mbarrier.
    fn bulk_load(&self, into: Access, from: Access, bytes: u32, barrier: Access, location: &'static Location<'static>);
    /// Starts a bulk copy from shared into global memory.
    fn bulk_store(&self, into: Access, from: Access, bytes: u32, location: &'static Location<'static>);
    /// Closes the group of bulk stores started since the last one.
    fn bulk_commit_group(&self, location: &'static Location<'static>);
    /// Waits until at most `pending` groups of bulk stores are under way, or where `read`, still read their sources.
    fn bulk_wait_group(&self, pending: u32, read: bool, location: &'static Location<'static>);
    /// `mma.m16n8k8` or `.m16n8k16` in f64 over the warp: this lane's fragments in, of 4 and 2 or of 8 and 4 numbers,
    /// its sums out.
    fn mma_f64(&self, a: &[f64], b: &[f64], c: [f64; 4], location: &'static Location<'static>) -> [f64; 4];
    /// `mma.m16n8k8` of f32 without their last 13 bits over the warp, likewise.
    fn mma_tf32(&self, a: &[f32], b: &[f32], c: [f32; 4], location: &'static Location<'static>) -> [f32; 4];
}

static HOOKS: OnceLock<&'static dyn Hooks> = OnceLock::new();

/// Makes `hooks` run the instructions of this process, on all of its threads, from now on.
///
/// # Errors
/// Gives them back where others are installed already: a process has one emulator.
pub fn install(hooks: &'static dyn Hooks) -> Result<(), &'static dyn Hooks> {
    HOOKS.set(hooks)
}

/// Counts a fused multiply-add where there is someone to count.
#[inline]
pub(crate) fn count_fma() {
    if let Some(hooks) = HOOKS.get() {
        hooks.fma();
    }
}

/// The installed hooks.
///
/// # Panics
/// Where there are none: a kernel was called on the host as if it were an ordinary function.
#[track_caller]
pub(crate) fn hooks() -> &'static dyn Hooks {
    match HOOKS.get() {
        Some(hooks) => *hooks,
        None => panic!(
            "a GPU instruction ran on the host, where no emulator is installed: launch the kernel on a GPU, or give \
             cuda_std::hooks::install an emulator"
        ),
    }
}

#[cfg(test)]
mod tests {
    use crate::{Global, thread};
    use std::panic::catch_unwind;
    use std::string::String;

    #[test]
    fn an_instruction_on_the_host_panics_and_says_why() {
        let read_register: fn() = || {
            thread::thread_idx_x();
        };
        // SAFETY: nothing is read: without hooks the load panics first.
        let load: fn() = || unsafe {
            Global::<f32>::on_host("x", core::ptr::null_mut(), 0).load(0);
        };
        for instruction in [read_register, thread::sync_threads, load] {
            let Err(panic) = catch_unwind(instruction) else { panic!("it returned") };
            let text = panic.downcast_ref::<&str>().map(|s| String::from(*s)).unwrap_or_default();
            assert!(text.contains("no emulator is installed"), "{text}");
        }
    }
}
