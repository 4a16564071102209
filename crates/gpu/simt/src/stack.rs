//! Stacks of GPU threads: taken from a pool, given back when the thread ends.

use corosensei::stack::DefaultStack;
#[cfg(not(windows))]
use corosensei::stack::{Stack, StackPointer};
use std::io;

/// Address space of a stack, guard page included; only the pages that a kernel touches take memory. A `println!` needs
/// 10 KiB, the backtrace of a panic in a debug build more than 100 KiB.
const STACK_BYTES: usize = 256 << 10;
/// Neighbouring stacks start this much further down, in turn. Tops of stacks are alike modulo a page: without this, all
/// threads' innermost frames would compete for the same few sets of the caches.
#[cfg(not(windows))]
const COLOUR_BYTES: usize = 640;
/// Starting points in use: their offsets stay below two pages.
#[cfg(not(windows))]
const COLOURS: usize = 12;

/// A stack whose usable part starts a little below its top.
#[cfg(not(windows))]
pub(crate) struct ThreadStack {
    stack: DefaultStack,
    base: StackPointer,
}

// SAFETY: the guard page is that of the wrapped stack, which stays mapped as long as this does; `base` lies less than
// COLOURS * COLOUR_BYTES below its base, at a multiple of 64, so more than MIN_STACK_SIZE bytes remain.
#[cfg(not(windows))]
unsafe impl Stack for ThreadStack {
    fn base(&self) -> StackPointer {
        self.base
    }

    fn limit(&self) -> StackPointer {
        self.stack.limit()
    }
}

/// On Windows the operating system keeps account of stacks: they are used as they are.
#[cfg(windows)]
pub(crate) type ThreadStack = DefaultStack;

/// Stacks that no thread uses at the moment.
#[derive(Default)]
pub(crate) struct Pool {
    free: Vec<ThreadStack>,
    #[cfg(not(windows))]
    made: usize,
}

impl Pool {
    /// No stacks yet.
    pub(crate) const fn new() -> Self {
        Pool {
            free: Vec::new(),
            #[cfg(not(windows))]
            made: 0,
        }
    }

    /// A stack from the pool, or a fresh one.
    pub(crate) fn take(&mut self) -> io::Result<ThreadStack> {
        match self.free.pop() {
            Some(stack) => Ok(stack),
            None => self.make(),
        }
    }

    /// Keeps a stack for the next thread.
    pub(crate) fn give(&mut self, stack: ThreadStack) {
        self.free.push(stack);
    }

    #[cfg(not(windows))]
    fn make(&mut self) -> io::Result<ThreadStack> {
        let stack = DefaultStack::new(STACK_BYTES)?;
        let offset = self.made % COLOURS * COLOUR_BYTES;
        self.made += 1;
        let base = StackPointer::new(stack.base().get() - offset).unwrap_or(stack.base());
        Ok(ThreadStack { stack, base })
    }

    #[cfg(windows)]
    fn make(&mut self) -> io::Result<ThreadStack> {
        DefaultStack::new(STACK_BYTES)
    }
}
