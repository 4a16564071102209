//! Registers, barriers, fences.

use crate::put;
use cuda_std::prelude::*;

/// All registers of each thread, twelve words in the order of threads in the grid.
#[kernel]
pub unsafe fn registers(_input: Global<f32>, out: Global<f32>) {
    let thread = [thread::thread_idx_x(), thread::thread_idx_y(), thread::thread_idx_z()];
    let block = [thread::block_idx_x(), thread::block_idx_y(), thread::block_idx_z()];
    let threads = [thread::block_dim_x(), thread::block_dim_y(), thread::block_dim_z()];
    let blocks = [thread::grid_dim_x(), thread::grid_dim_y(), thread::grid_dim_z()];
    let within = |at: [u32; 3], of: [u32; 3]| at[0] + of[0] * (at[1] + of[1] * at[2]);
    let mut place = 12 * (within(block, blocks) * threads[0] * threads[1] * threads[2] + within(thread, threads));
    for triple in [thread, block, threads, blocks] {
        for value in triple {
            unsafe { put(out, place, value) };
            place += 1;
        }
    }
}

#[kernel]
pub unsafe fn index_1d(_input: Global<f32>, out: Global<f32>) {
    let value = 1000 * thread::block_idx_x() + thread::thread_idx_x();
    unsafe { put(out, thread::index_1d(), value) };
}

/// Two warps exchange numbers.
#[kernel]
pub unsafe fn sync_threads(input: Global<f32>, out: Global<f32>) {
    let (t, shared) = (thread::thread_idx_x(), Shared::<f32>::at(0));
    unsafe {
        shared.store(t, input.load(u64::from(t)));
        thread::sync_threads();
        out.store(u64::from(t), shared.load(63 - t));
    }
}

/// How many of two warps see a number below 40.
#[kernel]
pub unsafe fn sync_threads_count(_input: Global<f32>, out: Global<f32>) {
    let t = thread::thread_idx_x();
    let yes = if t < 40 { t + 2 } else { 0 };
    unsafe { put(out, t, thread::sync_threads_count(yes)) };
}

/// All but one of two warps, and all.
#[kernel]
pub unsafe fn sync_threads_and(_input: Global<f32>, out: Global<f32>) {
    let t = thread::thread_idx_x();
    let (all_but_one, all) = (thread::sync_threads_and(63 - t), thread::sync_threads_and(t + 2));
    unsafe {
        put(out, 2 * t, all_but_one);
        put(out, 2 * t + 1, all);
    }
}

/// One of two warps, and none.
#[kernel]
pub unsafe fn sync_threads_or(input: Global<f32>, out: Global<f32>) {
    let t = thread::thread_idx_x();
    let zero = unsafe { crate::get(input, 0) };
    let (one, none) = (thread::sync_threads_or(if t == 50 { 4 } else { 0 }), thread::sync_threads_or(zero));
    unsafe {
        put(out, 2 * t, one);
        put(out, 2 * t + 1, none);
    }
}

#[kernel]
pub unsafe fn device_fence(_input: Global<f32>, out: Global<f32>) {
    let t = thread::thread_idx_x();
    unsafe {
        put(out, t, t + 1);
        thread::device_fence();
        put(out, 32 + t, t + 2);
    }
}
