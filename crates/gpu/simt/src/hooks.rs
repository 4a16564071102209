//! The hooks of `cuda_std`: each instruction of a thread becomes a request, and waits.

use crate::port::{CURRENT, Call, Kind, Place, Port, Request};
use cuda_std::hooks::{Access, Barrier, Fence, Hooks, Register, Shuffle, Space, Vote};
use std::cell::Cell;
use std::panic::Location;

/// The hooks: they find the launch of the calling OS thread.
pub(crate) struct Emulator;

#[inline]
fn port() -> &'static Port {
    let port = CURRENT.get();
    assert!(!port.is_null(), "a GPU instruction ran outside of a launch: call the kernel from simt::launch");
    // SAFETY: `Port::enter` set it, and its guard, which lives shorter than the port, clears it. The reference does not
    // outlive the hook that asked for it.
    unsafe { &*port }
}

/// Hands a request to the scheduler and returns when it is done.
#[inline]
fn submit(request: Request) {
    let port = port();
    let slot = &port.slots[port.current.get()];
    slot.request.set(request);
    // SAFETY: the current thread is a coroutine that called `Slot::start` first; its yielder lives on its own stack.
    unsafe { (*slot.yielder.get()).suspend(()) };
}

/// Submits a request with a call attached.
fn submit_call(mut request: Request, call: &mut Call<'_>) {
    // The lifetime is that of this frame, which stays until the request is done.
    request.call = std::ptr::from_mut(call).cast();
    submit(request);
}

/// One more of something that only an endless kernel does so often.
fn tick(counter: &Cell<u64>, limit: u64) {
    counter.set(counter.get() + 1);
    if counter.get() > limit {
        submit(Request::new(Kind::Endless, Location::caller()));
    }
}

fn kind_of(space: Space, global: Kind, shared: Kind) -> Kind {
    if space == Space::Global { global } else { shared }
}

impl Hooks for Emulator {
    fn register(&self, register: Register) -> u32 {
        let port = port();
        tick(&port.reads, port.limit);
        let thread = port.current.get();
        match register {
            Register::ThreadIdx(axis) => port.slots[thread].index[usize::from(axis)],
            Register::BlockIdx(axis) => port.block.get()[usize::from(axis)],
            Register::BlockDim(axis) => port.threads[usize::from(axis)],
            Register::GridDim(axis) => port.grid[usize::from(axis)],
            Register::LaneId => thread as u32 % 32,
        }
    }

    fn fma(&self) {
        let port = CURRENT.get();
        if !port.is_null() {
            // SAFETY: as in `port()`.
            let port = unsafe { &*port };
            tick(&port.fma, port.limit);
        }
    }

    fn barrier(&self, barrier: Barrier, predicate: bool, location: Place) -> u32 {
        let mut call = Call::Barrier { barrier, predicate, result: 0 };
        submit_call(Request::new(Kind::Barrier, location), &mut call);
        if let Call::Barrier { result, .. } = call { result } else { 0 }
    }

    fn sync_warp(&self, mask: u32, location: Place) {
        submit(Request { mask, ..Request::new(Kind::SyncWarp, location) });
    }

    fn fence(&self, fence: Fence, location: Place) {
        submit_call(Request::new(Kind::Fence, location), &mut Call::Fence { fence });
    }

    fn load(&self, access: Access, into: &mut [u8], inside: bool) {
        let kind = kind_of(access.space, Kind::LoadGlobal, Kind::LoadShared);
        let (bytes, data) = (into.len() as u32, into.as_mut_ptr());
        submit(Request { inside, bytes, data, access: &access, ..Request::new(kind, access.location) });
    }

    fn store(&self, access: Access, bytes: &[u8]) {
        let kind = kind_of(access.space, Kind::StoreGlobal, Kind::StoreShared);
        let data = bytes.as_ptr().cast_mut(); // only read from
        let bytes = bytes.len() as u32;
        submit(Request { bytes, data, access: &access, ..Request::new(kind, access.location) });
    }

    fn atomic(&self, access: Access, bytes: u32, update: &dyn Fn(u64) -> u64) -> u64 {
        let kind = kind_of(access.space, Kind::AtomicGlobal, Kind::AtomicShared);
        let mut call = Call::Atomic { update, old: 0 };
        submit_call(Request { bytes, access: &access, ..Request::new(kind, access.location) }, &mut call);
        if let Call::Atomic { old, .. } = call { old } else { 0 }
    }

    fn shuffle(&self, how: Shuffle, mask: u32, value: u32, lane: u32, width: u32, location: Place) -> (u32, bool) {
        let mut call = Call::Shuffle { how, value, lane, width, result: (value, false) };
        submit_call(Request { mask, ..Request::new(Kind::Shuffle, location) }, &mut call);
        if let Call::Shuffle { result, .. } = call { result } else { (value, false) }
    }

    fn vote(&self, vote: Vote, mask: u32, predicate: bool, location: Place) -> u32 {
        let mut call = Call::Vote { vote, predicate, result: 0 };
        submit_call(Request { mask, ..Request::new(Kind::Vote, location) }, &mut call);
        if let Call::Vote { result, .. } = call { result } else { 0 }
    }

    fn copy_async(&self, into: Access, from: Access, bytes: u32, valid: u32) {
        let request =
            Request { inside: valid > 0, bytes, access: &into, ..Request::new(Kind::CopyAsync, into.location) };
        submit_call(request, &mut Call::CopyAsync { from, valid });
    }

    fn commit_group(&self, location: Place) {
        submit_call(Request::new(Kind::CommitGroup, location), &mut Call::Nothing);
    }

    fn wait_group(&self, pending: u32, location: Place) {
        submit_call(Request::new(Kind::WaitGroup, location), &mut Call::WaitGroup { pending });
    }

    fn mbarrier_init(&self, at: Access, arrivals: u32, location: Place) {
        submit_call(Request::new(Kind::MbarrierInit, location), &mut Call::Mbarrier { at, number: arrivals });
    }

    fn mbarrier_expect(&self, at: Access, bytes: u32, location: Place) {
        submit_call(Request::new(Kind::MbarrierExpect, location), &mut Call::Mbarrier { at, number: bytes });
    }

    fn mbarrier_wait(&self, at: Access, parity: u32, location: Place) {
        submit_call(Request::new(Kind::MbarrierWait, location), &mut Call::Mbarrier { at, number: parity });
    }

    fn bulk_load(&self, into: Access, from: Access, bytes: u32, barrier: Access, location: Place) {
        submit_call(Request::new(Kind::BulkLoad, location), &mut Call::BulkLoad { into, from, bytes, barrier });
    }

    fn bulk_store(&self, into: Access, from: Access, bytes: u32, location: Place) {
        submit_call(Request::new(Kind::BulkStore, location), &mut Call::BulkStore { into, from, bytes });
    }

    fn bulk_commit_group(&self, location: Place) {
        submit(Request::new(Kind::BulkCommit, location));
    }

    fn bulk_wait_group(&self, pending: u32, read: bool, location: Place) {
        submit_call(Request::new(Kind::BulkWait, location), &mut Call::BulkWait { pending, read });
    }

    fn mma_f64(&self, a: &[f64], b: &[f64], c: [f64; 4], location: Place) -> [f64; 4] {
        let mut call = Call::Mma { a, b, c, result: c };
        submit_call(Request { mask: u32::MAX, ..Request::new(Kind::Mma, location) }, &mut call);
        if let Call::Mma { result, .. } = call { result } else { c }
    }

    fn mma_tf32(&self, a: &[f32], b: &[f32], c: [f32; 4], location: Place) -> [f32; 4] {
        let mut call = Call::MmaTf32 { a, b, c, result: c };
        submit_call(Request { mask: u32::MAX, ..Request::new(Kind::MmaTf32, location) }, &mut call);
        if let Call::MmaTf32 { result, .. } = call { result } else { c }
    }
}
