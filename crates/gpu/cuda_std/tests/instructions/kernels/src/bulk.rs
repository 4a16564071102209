//! Bulk copies: lane 0 starts them, all lanes read or write what they move.

use cuda_std::prelude::*;

/// Elements of a piece: one a lane.
const LEN: u32 = 32;
/// Bytes of a piece.
const BYTES: u32 = 4 * LEN;

/// An mbarrier of one arrival, which all lanes may use, in the last bytes of shared memory.
#[inline(always)]
unsafe fn barrier() -> ptx::SharedAddress {
    let at = Shared::<f64>::at(0).address(511);
    if warp::lane_id() == 0 {
        unsafe { ptx::mbarrier_init(at, 1) };
        ptx::fence_proxy_async();
    }
    thread::sync_threads();
    at
}

#[kernel]
pub unsafe fn bulk_load(input: Global<f32>, out: Global<f32>) {
    let (lane, piece) = (warp::lane_id(), Shared::<f32>::at(4));
    unsafe {
        let barrier = barrier();
        if lane == 0 {
            ptx::mbarrier_expect(barrier, BYTES);
            ptx::bulk_load(piece.address(0), input.address(4), BYTES, barrier);
        }
        ptx::mbarrier_wait(barrier, 0);
        out.store(u64::from(lane), piece.load(31 - lane));
    }
}

/// Three pieces, one after another by way of the same place: of the second, halves that arrive apart.
#[kernel]
pub unsafe fn bulk_phases(input: Global<f32>, out: Global<f32>) {
    let (lane, piece) = (warp::lane_id(), Shared::<f32>::at(0));
    unsafe {
        let barrier = barrier();
        for turn in 0..3 {
            let loads = if turn == 1 { 2 } else { 1 };
            if lane == 0 {
                for part in 0..loads {
                    let at = part * LEN / loads;
                    let from = input.address(u64::from(turn * LEN + at));
                    ptx::bulk_load(piece.address(at), from, BYTES / loads, barrier);
                }
                ptx::mbarrier_expect(barrier, BYTES);
            }
            ptx::mbarrier_wait(barrier, turn % 2);
            out.store(u64::from(turn * LEN + lane), piece.load(lane ^ 1));
            warp::sync_warp(u32::MAX);
        }
    }
}

/// What was stored is overwritten once it was read, and found in global memory once it was written.
#[kernel]
pub unsafe fn bulk_store(input: Global<f32>, out: Global<f32>) {
    let (lane, piece) = (warp::lane_id(), Shared::<f32>::at(0));
    unsafe {
        piece.store(31 - lane, input.load(u64::from(lane)));
        ptx::fence_proxy_async();
        warp::sync_warp(u32::MAX);
        if lane == 0 {
            ptx::bulk_store(out.address(0), piece.address(0), BYTES);
            ptx::bulk_commit_group();
            ptx::bulk_wait_group_read::<0>();
            piece.store(0, -1.0);
            ptx::bulk_wait_group::<0>();
            out.store(LEN.into(), out.load(0) + 1.0);
        }
    }
}

/// Two groups: of the first alone the source is overwritten while the other may be read.
#[kernel]
pub unsafe fn bulk_groups(input: Global<f32>, out: Global<f32>) {
    let (lane, piece) = (warp::lane_id(), Shared::<f32>::at(0));
    unsafe {
        for half in 0..2 {
            piece.store(half * LEN + lane, input.load(u64::from(half * LEN + lane)));
        }
        ptx::fence_proxy_async();
        warp::sync_warp(u32::MAX);
        if lane == 0 {
            for half in 0..2 {
                ptx::bulk_store(out.address(u64::from(half * LEN)), piece.address(half * LEN), BYTES);
                ptx::bulk_commit_group();
            }
            ptx::bulk_wait_group_read::<1>();
        }
        warp::sync_warp(u32::MAX);
        piece.store(lane, -1.0);
        ptx::bulk_wait_group_read::<0>();
    }
}
