//! What is wrong with a kernel, and how it is said.

use crate::port::Place;
use std::fmt;

/// What rule a kernel broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FaultKind {
    /// An access outside of its operand, or outside of the block's shared memory.
    OutOfBounds,
    /// An address that is no multiple of the access's bytes.
    Misaligned,
    /// A read of shared memory, or of an output, that nothing wrote.
    Uninitialised,
    /// Two threads of a block touch the same word of shared memory, one writes it, and nothing orders them.
    SharedRace,
    /// Two threads touch the same word of global memory, one writes it, and nothing orders them.
    GlobalRace,
    /// Threads wait at a barrier that others never reach, or for a phase of an mbarrier that never ends.
    BarrierMissed,
    /// Threads of a block wait at different barriers.
    BarrierDiverged,
    /// A warp operation with a lane that is not there, or that the mask does not name.
    WrongLane,
    /// A write to an operand that the launch, or a load of it, promised not to write.
    ReadOnlyWritten,
    /// Memory touched while an asynchronous copy into it is under way, or written while a bulk store reads it; a thread or
    /// a block that ends before.
    AsyncInFlight,
    /// A bulk copy of, or over, what threads wrote to shared memory without a fence of the async proxy.
    ProxyUnfenced,
    /// An mbarrier that is not initialised, or again; arrivals or bytes that its phase does not take; one used as data.
    MbarrierMisused,
    /// The kernel did not end within [`crate::Launch::step_limit`].
    StepLimit,
    /// The kernel panicked.
    Panicked,
    /// The launch itself is impossible: no threads, or too many, or too much shared memory.
    BadLaunch,
}

impl FaultKind {
    /// The rule in two or three words.
    pub const fn name(self) -> &'static str {
        match self {
            FaultKind::OutOfBounds => "out of bounds",
            FaultKind::Misaligned => "misaligned access",
            FaultKind::Uninitialised => "uninitialised read",
            FaultKind::SharedRace => "race in shared memory",
            FaultKind::GlobalRace => "race in global memory",
            FaultKind::BarrierMissed => "barrier missed",
            FaultKind::BarrierDiverged => "barrier diverged",
            FaultKind::WrongLane => "wrong lane",
            FaultKind::ReadOnlyWritten => "read-only memory written",
            FaultKind::AsyncInFlight => "asynchronous copy in flight",
            FaultKind::ProxyUnfenced => "missing proxy fence",
            FaultKind::MbarrierMisused => "mbarrier misused",
            FaultKind::StepLimit => "step limit",
            FaultKind::Panicked => "panic",
            FaultKind::BadLaunch => "impossible launch",
        }
    }
}

/// A thread of the grid, and a line of the kernel where it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Party {
    /// `%ctaid`.
    pub block: [u32; 3],
    /// The thread in its block, counted along x, then y, then z.
    pub thread: u32,
    /// The line, where it is known.
    pub location: Option<Place>,
}

impl Party {
    /// The warp in its block.
    pub const fn warp(&self) -> u32 {
        self.thread / 32
    }

    /// The lane in its warp.
    pub const fn lane(&self) -> u32 {
        self.thread % 32
    }
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.block;
        write!(f, "block ({x}, {y}, {z}), thread {} (warp {}, lane {})", self.thread, self.warp(), self.lane())?;
        match self.location {
            Some(location) => write!(f, ", at {location}"),
            None => Ok(()),
        }
    }
}

/// A rule that a kernel broke: who, where, of what, and the other party. Its `Display` is the whole message.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Fault {
    /// The rule.
    pub kind: FaultKind,
    /// The kernel's name, as the launch gave it.
    pub kernel: String,
    /// The thread that broke it; `None` if the launch did.
    pub party: Option<Party>,
    /// The operand, or `shared memory`.
    pub operand: Option<&'static str>,
    /// The element of the operand; of shared memory, counted in the elements of the access.
    pub index: Option<u64>,
    /// The thread that it broke the rule against.
    pub other: Option<Party>,
    /// What happened, in words.
    pub message: String,
    /// The seed that makes it happen again.
    pub seed: u64,
}

impl Fault {
    /// `%ctaid` of the thread at fault.
    pub fn block(&self) -> Option<[u32; 3]> {
        self.party.map(|party| party.block)
    }

    /// The thread at fault, in its block.
    pub fn thread(&self) -> Option<u32> {
        self.party.map(|party| party.thread)
    }

    /// The line of the kernel.
    pub fn location(&self) -> Option<Place> {
        self.party.and_then(|party| party.location)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}\n  kernel: {}", self.kind.name(), self.message, self.kernel)?;
        if let Some(party) = &self.party {
            write!(f, "\n  thread: {party}")?;
        }
        if let Some(operand) = self.operand {
            write!(f, "\n  operand: {operand}")?;
            if let Some(index) = self.index {
                write!(f, ", element {index}")?;
            }
        }
        if let Some(other) = &self.other {
            write!(f, "\n  other: {other}")?;
        }
        write!(f, "\n  replay: SIMT_SEED={}", self.seed)
    }
}

impl std::error::Error for Fault {}
