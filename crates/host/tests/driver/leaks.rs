//! Nothing of the host's stays behind, neither memory nor threads nor open files: after many rounds of what users do, and after
//! rounds in each of which another call of the driver fails. The bytes that are counted are the library's own; the C library counts
//! the fake's with them.

use super::every::RELEASES;
use super::programs::{ALL, Program};
use super::*;
use std::alloc::{GlobalAlloc, System};
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// All but the one that does the same thousands of times.
const PROGRAMS: &[Program] = ALL.split_at(ALL.len() - 1).0;
/// Bytes a round: a table may grow.
const LEAST: i64 = 16;
/// Bytes a round of all that the process has: the fake notes each thread that waited.
const LEAST_OF_ALL: i64 = 256;

/// Counts the bytes that are allocated.
struct Counting;

static LIVE: AtomicI64 = AtomicI64::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn size(layout: std::alloc::Layout) -> i64 {
    layout.size() as i64
}

// SAFETY: all is done by the system's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: std::alloc::Layout) -> *mut u8 {
        LIVE.fetch_add(size(layout), Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: std::alloc::Layout) -> *mut u8 {
        LIVE.fetch_add(size(layout), Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: std::alloc::Layout) {
        LIVE.fetch_sub(size(layout), Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: std::alloc::Layout, new: usize) -> *mut u8 {
        LIVE.fetch_add(new as i64 - size(layout), Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(at, layout, new) }
    }
}

/// What the C library knows of its heaps: sizes and counts, in its order.
#[repr(C)]
struct Heaps {
    from_the_system: usize,
    counts: [usize; 3],
    mapped: usize,
    unused: [usize; 2],
    in_use: usize,
    free: [usize; 2],
}

unsafe extern "C" {
    fn mallinfo2() -> Heaps;
}

/// What this process has.
#[derive(Debug)]
struct Has {
    /// The library's and the tests'.
    bytes: i64,
    /// The same with the fake's and the C library's own. Not the process's pages: heaps have holes, which come and go.
    of_all: i64,
    threads: usize,
    files: usize,
}

impl Has {
    fn now() -> Has {
        forget_what_was_asked();
        // SAFETY: it reads what the allocator has counted.
        let heaps = unsafe { mallinfo2() };
        let of_all = (heaps.in_use + heaps.mapped) as i64;
        let count = |of: &str| std::fs::read_dir(of).expect("a folder of Linux").count();
        Has { bytes: LIVE.load(Relaxed), of_all, threads: count("/proc/self/task"), files: count("/proc/self/fd") }
    }

    /// Panics if there was less of it so many rounds ago.
    fn is_as(&self, before: &Has, rounds: i64) {
        let (grown, of_all) = (self.bytes - before.bytes, self.of_all - before.of_all);
        assert!(grown < rounds * LEAST, "{grown} bytes in {rounds} rounds: {before:?}, {self:?}");
        assert!(of_all < rounds * LEAST_OF_ALL, "{of_all} bytes in {rounds} rounds: {before:?}, {self:?}");
        assert_eq!((self.threads, self.files), (before.threads, before.files), "in {rounds} rounds");
    }
}

/// The fake keeps what nobody asks for.
fn forget_what_was_asked() {
    drop((calls(), launches(), asked(8)));
}

#[test]
fn a_thousand_rounds_leave_nothing() {
    const NAME: &str = "leaks::a_thousand_rounds_leave_nothing";
    const ROUNDS: i64 = 1000;
    with_driver(NAME, "", || {
        let round = || PROGRAMS.iter().try_for_each(|program| (program.run)().map(drop));
        for _ in 0..20 {
            round()?;
        }
        let (before, there) = (Has::now(), living());
        for _ in 0..ROUNDS {
            round()?;
            forget_what_was_asked();
        }
        Has::now().is_as(&before, ROUNDS);
        assert_eq!(living(), there);
        Ok(())
    });
}

/// INVALID_VALUE, OUT_OF_MEMORY, NOT_READY, and one that no table has: the process lives on after them.
const CODES: [i32; 4] = [1, 2, 600, 12_345];

/// What the driver itself refuses to free would stay with it.
fn each_call_fails(programs: &[(&Program, Vec<String>)]) -> i64 {
    let mut rounds = 0;
    for (program, functions) in programs {
        for (at, _) in functions.iter().enumerate().filter(|(_, name)| !RELEASES.contains(&name.as_str())) {
            tell(&format!("call={}:{}", at + 1, CODES[at % CODES.len()]));
            drop((program.run)());
            // What could not be freed at once is freed now.
            tell("");
            drop((program.run)().expect("the driver is well"));
            rounds += 1;
        }
        forget_what_was_asked();
    }
    rounds
}

#[test]
fn rounds_that_fail_leave_nothing() {
    const NAME: &str = "leaks::rounds_that_fail_leave_nothing";
    with_driver(NAME, "", || {
        let mut programs = Vec::new();
        for program in PROGRAMS {
            drop((program.run)()?);
            calls();
            drop((program.run)()?);
            programs.push((program, calls()));
        }
        each_call_fails(&programs);
        let (before, there) = (Has::now(), living());
        let rounds = each_call_fails(&programs);
        assert!(rounds > 1000, "{rounds} calls");
        Has::now().is_as(&before, rounds);
        assert_eq!(living(), there);
        assert_eq!((misused(), freed_in_use()), (vec![], vec![]));
        Ok(())
    });
}
