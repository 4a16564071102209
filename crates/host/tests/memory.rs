//! Memory that runs out in the middle of a call, on the CPU: an error, and nothing is half done.

use lanky_host::{BatchMut, BatchRef, Device, Error, MatMut, MatRef, Result, gemm_batched, tsmm_in_place};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Bytes from which an allocation is one of those that are counted.
const LARGE: usize = 1 << 18;

thread_local! {
    /// How many more of them succeed on this thread, which is the one that calls ask for memory on.
    static LEFT: Cell<usize> = const { Cell::new(usize::MAX) };
}

struct Counted;

#[global_allocator]
static ALLOCATOR: Counted = Counted;

fn may(layout: Layout) -> bool {
    layout.size() < LARGE || LEFT.get().checked_sub(1).inspect(|&left| LEFT.set(left)).is_some()
}

// SAFETY: the system's, or null.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: what the caller promised is what the system's asks for.
        if may(layout) { unsafe { System.alloc(layout) } } else { std::ptr::null_mut() }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        if may(layout) { unsafe { System.alloc_zeroed(layout) } } else { std::ptr::null_mut() }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above; all of it is the system's.
        unsafe { System.dealloc(at, layout) }
    }
}

/// What `work` gives where so many large allocations succeed.
fn with<R>(left: usize, work: impl FnOnce() -> R) -> R {
    LEFT.set(left);
    let result = work();
    LEFT.set(usize::MAX);
    result
}

#[test]
fn a_product_in_place_is_done_or_not_begun() -> Result<()> {
    let stream = Device::cpu().stream()?;
    // Several times the rows that are copied at once: 4096 of 8 are 2^18 bytes.
    let (m, n, k) = (3 * 4096 + 5, 4, 8);
    let first: Vec<f64> = (0..m * k).map(|e| (e % 7) as f64).collect();
    let b: Vec<f64> = (0..k * n).map(|e| (e % 5) as f64).collect();
    for by_rows in [true, false] {
        let run = |left| {
            let mut a = first.clone();
            let view = if by_rows { MatMut::row_major(&mut a, m, k) } else { MatMut::column_major(&mut a, m, k) };
            let result = with(left, || tsmm_in_place(&stream, 1.0, view?, MatRef::row_major(&b, k, n)?));
            (result, a)
        };
        // Rayon's threads ask for memory of their own when they are first needed.
        run(usize::MAX).0?;
        let (refused, left) = run(0);
        assert!(matches!(refused, Err(Error::OutOfMemory { wanted: 262_144, .. })), "{refused:?}");
        assert_eq!(left, first, "nothing was written");
        let (done, left) = run(1);
        done?;
        let at = |data: &[f64], i: usize, l: usize| if by_rows { data[i * k + l] } else { data[i + l * m] };
        for (i, j) in [(0, 0), (4095, 3), (4096, 0), (m - 1, 2)] {
            let expected: f64 = (0..k).map(|l| at(&first, i, l) * b[l * n + j]).sum();
            assert_eq!(at(&left, i, j), expected, "({i}, {j})");
        }
    }
    Ok(())
}

/// A list of 2^15 addresses is 2^18 bytes; one of ranges, twice as much.
#[test]
fn lists_for_which_there_is_no_memory_are_errors() -> Result<()> {
    let (data, mut out) = (vec![1.0_f64; 1 << 15], vec![0.0_f64; 1 << 15]);
    let is = |result: Result<()>, bytes: u64| match result {
        Err(Error::OutOfMemory { wanted, free: 0, total: 0, .. }) => assert_eq!(wanted, bytes),
        other => panic!("{other:?}"),
    };
    let read: Vec<_> =
        data.iter().map(|e| MatRef::column_major(std::slice::from_ref(e), 1, 1)).collect::<Result<_>>()?;
    is(with(0, || BatchRef::listed(&read).map(drop)), 1 << 18);
    let each = |e| MatMut::column_major(std::slice::from_mut(e), 1, 1);
    let mut written: Vec<_> = out.iter_mut().map(each).collect::<Result<_>>()?;
    is(with(0, || BatchMut::listed(&mut written).map(drop)), 1 << 18);

    // Every other element is written, and those between are read: only lists in order tell that none is both.
    let mut both = vec![1.0_f64; 1 << 16];
    let (mut read, mut written) = (Vec::new(), Vec::new());
    for pair in both.chunks_exact_mut(2) {
        let (one, other) = pair.split_at_mut(1);
        read.push(MatRef::column_major(&*one, 1, 1)?);
        written.push(MatMut::column_major(other, 1, 1)?);
    }
    let stream = Device::cpu().stream()?;
    for (left, fits) in [(0, false), (1, false), (usize::MAX, true)] {
        let (a, b) = (BatchRef::listed(&read)?, BatchRef::shared(read[0], read.len()));
        let c = BatchMut::listed(&mut written)?;
        let result = with(left, || gemm_batched(&stream, 2.0, a, b, 0.0, c));
        if fits { result? } else { is(result, 1 << 19) }
    }
    assert!(written.iter().all(|c| c.get(0, 0) == Some(2.0)));
    Ok(())
}
