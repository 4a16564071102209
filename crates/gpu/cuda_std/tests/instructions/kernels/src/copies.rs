//! Asynchronous copies.

use cuda_std::Scalar;
use cuda_std::prelude::*;

/// Each thread copies `elements` elements to the mirrored place; every fourth thread is outside and copies zeros over
/// what was there.
#[inline(always)]
unsafe fn mirrored<T: Scalar>(
    elements: u32,
    input: Global<T>,
    out: Global<T>,
    copy: impl Fn(ptx::SharedAddress, ptx::GlobalAddress, bool),
) {
    let (t, piece) = (thread::thread_idx_x(), Shared::<T>::at(0));
    for i in 0..elements {
        unsafe { piece.store(t * elements + i, T::ONE) };
    }
    thread::sync_threads();
    copy(piece.address((31 - t) * elements), input.address(u64::from(t * elements)), t % 4 != 0);
    ptx::cp_async_commit_group();
    ptx::cp_async_wait_group::<0>();
    thread::sync_threads();
    for i in 0..elements {
        let place = t * elements + i;
        unsafe { out.store(u64::from(place), piece.load(place)) };
    }
}

#[kernel]
pub unsafe fn cp_async_16(input: Global<f32>, out: Global<f32>) {
    unsafe { mirrored(4, input, out, |into, from, inside| ptx::cp_async_16(into, from, inside)) }
}

/// As [`cp_async_16`], but of each piece the first 0 to 3 elements; and whether the operands are aligned.
#[kernel]
pub unsafe fn cp_async_16_first(input: Global<f32>, out: Global<f32>) {
    let bytes = thread::thread_idx_x() % 4 * 4 + u32::from(!input.is_aligned(16));
    unsafe { mirrored(4, input, out, |into, from, _| ptx::cp_async_16_first(into, from, bytes)) }
}

#[kernel]
pub unsafe fn cp_async_8(input: Global<f64>, out: Global<f64>) {
    unsafe { mirrored(1, input, out, |into, from, inside| ptx::cp_async_8(into, from, inside)) }
}

#[kernel]
pub unsafe fn cp_async_4(input: Global<f32>, out: Global<f32>) {
    unsafe { mirrored(1, input, out, |into, from, inside| ptx::cp_async_4(into, from, inside)) }
}

/// Two groups in flight: the first has arrived when one may be pending, both when none may.
#[kernel]
pub unsafe fn cp_async_groups(input: Global<f64>, out: Global<f64>) {
    let (t, first, second) = (thread::thread_idx_x(), Shared::<f64>::at(0), Shared::<f64>::at(32));
    let at = u64::from(t);
    unsafe {
        ptx::cp_async_8(first.address(t), input.address(at), true);
        ptx::cp_async_commit_group();
        ptx::cp_async_8(second.address(t), input.address(32 + at), true);
        ptx::cp_async_commit_group();
        ptx::cp_async_wait_group::<1>();
        thread::sync_threads();
        out.store(at, first.load(t ^ 1));
        ptx::cp_async_wait_group::<0>();
        thread::sync_threads();
        out.store(32 + at, second.load(t ^ 1));
    }
}
