//! Where threads and scheduler meet: a slot a thread, and the hooks that fill it.
//!
//! A thread that touches memory or synchronises leaves a [`Request`] in its slot and suspends itself. What the request
//! points to lives on the thread's own stack, so it stays in place until the scheduler resumes the thread.

use crate::hooks::Emulator;
use corosensei::Yielder;
use cuda_std::hooks::{Access, Barrier, Fence, Shuffle, Vote};
use std::any::Any;
use std::cell::Cell;
use std::panic::Location;
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

/// A line of a kernel.
pub(crate) type Place = &'static Location<'static>;

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Nothing,
    LoadGlobal,
    LoadShared,
    StoreGlobal,
    StoreShared,
    AtomicGlobal,
    AtomicShared,
    CopyAsync,
    CommitGroup,
    WaitGroup,
    MbarrierInit,
    MbarrierExpect,
    MbarrierWait,
    BulkLoad,
    BulkStore,
    BulkCommit,
    BulkWait,
    Fence,
    SyncWarp,
    Shuffle,
    Vote,
    Mma,
    MmaTf32,
    Barrier,
    Endless,
}

impl Kind {
    /// Whether lanes take part by a mask and wait for one another.
    pub(crate) fn is_collective(self) -> bool {
        matches!(self, Kind::SyncWarp | Kind::Shuffle | Kind::Vote | Kind::Mma | Kind::MmaTf32)
    }
}

/// What the rarer instructions need, and where their results go.
pub(crate) enum Call<'a> {
    Nothing,
    Atomic {
        update: &'a dyn Fn(u64) -> u64,
        old: u64,
    },
    CopyAsync {
        from: Access,
        valid: u32,
    },
    WaitGroup {
        pending: u32,
    },
    /// `number`: arrivals of a phase, bytes that are expected, or the parity of a phase.
    Mbarrier {
        at: Access,
        number: u32,
    },
    BulkLoad {
        into: Access,
        from: Access,
        bytes: u32,
        barrier: Access,
    },
    BulkStore {
        into: Access,
        from: Access,
        bytes: u32,
    },
    BulkWait {
        pending: u32,
        read: bool,
    },
    Fence {
        fence: Fence,
    },
    Shuffle {
        how: Shuffle,
        value: u32,
        lane: u32,
        width: u32,
        result: (u32, bool),
    },
    Vote {
        vote: Vote,
        predicate: bool,
        result: u32,
    },
    Mma {
        a: &'a [f64],
        b: &'a [f64],
        c: [f64; 4],
        result: [f64; 4],
    },
    MmaTf32 {
        a: &'a [f32],
        b: &'a [f32],
        c: [f32; 4],
        result: [f32; 4],
    },
    Barrier {
        barrier: Barrier,
        predicate: bool,
        result: u32,
    },
}

/// What a thread wants done.
#[derive(Clone, Copy)]
pub(crate) struct Request {
    pub(crate) kind: Kind,
    /// Whether the lane takes part, rather than being masked off.
    pub(crate) inside: bool,
    /// Bytes that are accessed.
    pub(crate) bytes: u32,
    /// Lanes of a collective.
    pub(crate) mask: u32,
    pub(crate) place: Place,
    /// Null where no memory is accessed.
    pub(crate) access: *const Access,
    /// Where loaded bytes go, or stored ones come from.
    pub(crate) data: *mut u8,
    pub(crate) call: *mut Call<'static>,
}

/// One thread of the running block.
pub(crate) struct Slot {
    pub(crate) request: Cell<Request>,
    pub(crate) yielder: Cell<*const Yielder<(), ()>>,
    pub(crate) index: [u32; 3],
    panic: Cell<Option<Box<dyn Any + Send>>>,
}

/// The running launch, as its threads see it.
pub(crate) struct Port {
    pub(crate) slots: Vec<Slot>,
    /// The thread that runs.
    pub(crate) current: Cell<usize>,
    pub(crate) block: Cell<[u32; 3]>,
    pub(crate) grid: [u32; 3],
    pub(crate) threads: [u32; 3],
    pub(crate) fma: Cell<u64>,
    /// Reads of special registers.
    pub(crate) reads: Cell<u64>,
    /// Fused multiply-adds, or register reads, after which a kernel is taken to be endless.
    pub(crate) limit: u64,
}

impl Port {
    pub(crate) fn new(grid: [u32; 3], threads: [u32; 3], limit: u64) -> Self {
        let [x, y, z] = threads;
        let slots = (0..x * y * z).map(|t| Slot::new([t % x, t / x % y, t / (x * y)])).collect();
        let (current, block, fma, reads) = (Cell::new(0), Cell::new([0; 3]), Cell::new(0), Cell::new(0));
        Port { slots, current, block, grid, threads, fma, reads, limit }
    }

    /// Makes this the launch of the calling OS thread until the guard is dropped.
    pub(crate) fn enter(&self) -> Entered {
        static INSTALLED: OnceLock<bool> = OnceLock::new();
        let installed = *INSTALLED.get_or_init(|| cuda_std::hooks::install(&Emulator).is_ok());
        assert!(installed, "another emulator is installed in this process");
        assert!(CURRENT.get().is_null(), "a kernel launched a kernel: the emulator has no dynamic parallelism");
        CURRENT.set(self);
        Entered
    }
}

/// While it lives, its OS thread's instructions go to a [`Port`].
pub(crate) struct Entered;

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(null());
    }
}

impl Slot {
    fn new(index: [u32; 3]) -> Self {
        let request = Cell::new(Request::new(Kind::Nothing, Location::caller()));
        Slot { request, yielder: Cell::new(null()), index, panic: Cell::new(None) }
    }

    pub(crate) fn request(&self) -> Request {
        self.request.get()
    }

    /// Forgets the last block's request.
    pub(crate) fn rest(&self) {
        self.request.set(Request::new(Kind::Nothing, Location::caller()));
    }

    /// The line of the last request; `None` before the first.
    pub(crate) fn place(&self) -> Option<Place> {
        let request = self.request.get();
        (request.kind != Kind::Nothing).then_some(request.place)
    }

    /// Whether the thread waits for the same as `other`.
    pub(crate) fn is_at(&self, other: &Request) -> bool {
        self.request.get().is_like(other)
    }

    /// Called by a starting thread: from now on it can suspend itself.
    pub(crate) fn start(&self, yielder: &Yielder<(), ()>) {
        self.yielder.set(yielder);
    }

    /// Keeps what a thread panicked with.
    pub(crate) fn panicked(&self, payload: Box<dyn Any + Send>) {
        self.panic.set(Some(payload));
    }

    /// What the thread panicked with, once.
    pub(crate) fn take_panic(&self) -> Option<Box<dyn Any + Send>> {
        self.panic.take()
    }
}

impl Request {
    /// Whether both are the same instruction. A line may have several addresses: one for each copy of its function.
    pub(crate) fn is_like(&self, other: &Request) -> bool {
        self.kind == other.kind && (std::ptr::eq(self.place, other.place) || self.place == other.place)
    }

    pub(crate) fn new(kind: Kind, place: Place) -> Self {
        Request { kind, inside: true, bytes: 0, mask: 0, place, access: null(), data: null_mut(), call: null_mut() }
    }
}

thread_local! {
    /// The launch that this OS thread runs.
    pub(crate) static CURRENT: Cell<*const Port> = const { Cell::new(null()) };
}
