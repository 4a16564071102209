//! The context that a resource belongs to, so that it can be freed on any thread and in any order.

use crate::context::Primary;
use crate::sys::{self, CUcontext, Status};
use std::ptr;
use std::sync::Arc;

/// The context in which a stream, an event, a module or memory was made; null for what is borrowed.
#[derive(Debug)]
pub(crate) struct Owner {
    context: CUcontext,
    /// Where the context is one that [`crate::context::Context`] retains, it stays until its last resource is freed.
    _retained: Option<Arc<Primary>>,
}

// SAFETY: a context is the driver's, which lets any thread use it, and `Primary` is Send and Sync.
unsafe impl Send for Owner {}
// SAFETY: a shared Owner only gives its context's handle, to be pushed; `Primary` is Sync.
unsafe impl Sync for Owner {}

impl Owner {
    /// The thread's current context; none if it has none.
    pub(crate) fn current() -> Owner {
        let context = current();
        Owner { context, _retained: Primary::retained(context) }
    }

    pub(crate) const fn none() -> Owner {
        Owner { context: ptr::null_mut(), _retained: None }
    }

    /// Frees something of this context, which is current meanwhile; the caller's is as before afterwards.
    pub(crate) fn free(&self, free: impl FnOnce() -> Status) -> Status {
        // Where it is current already there is no push that could fail.
        if self.context.is_null() || self.context == current() {
            return free();
        }
        // SAFETY: it was current when the resource was made, and is retained where that is in our hands.
        let pushed = unsafe { sys::cuCtxPushCurrent_v2(self.context) };
        if !pushed.is_ok() {
            return pushed;
        }
        let status = free();
        pop();
        status
    }
}

/// The thread's current context; null if there is none, or the driver does not say.
fn current() -> CUcontext {
    let mut context = ptr::null_mut();
    // SAFETY: `context` is a place for the answer.
    let status = unsafe { sys::cuCtxGetCurrent(&raw mut context) };
    if status.is_ok() { context } else { ptr::null_mut() }
}

/// Takes the topmost context off this thread's stack.
pub(crate) fn pop() {
    let mut popped = ptr::null_mut();
    // SAFETY: `popped` is a place for the answer, which is the context that the caller pushed.
    let _ = unsafe { sys::cuCtxPopCurrent_v2(&raw mut popped) };
}
