//! Shuffles and votes.

use crate::{get, put};
use cuda_std::prelude::*;

const ALL: u32 = u32::MAX;

#[kernel]
pub unsafe fn lane_id(_input: Global<f32>, out: Global<f32>) {
    unsafe { put(out, thread::thread_idx_x(), warp::lane_id()) };
}

/// Neighbours exchange numbers through shared memory.
#[kernel]
pub unsafe fn sync_warp(input: Global<f32>, out: Global<f32>) {
    let (t, shared) = (thread::thread_idx_x(), Shared::<f32>::at(8));
    unsafe {
        shared.store(t, input.load(u64::from(t)));
        warp::sync_warp(ALL);
        out.store(u64::from(t), shared.load(t ^ 1));
    }
}

/// One shuffle of whole numbers over the warp and one within segments of 8 lanes: value and flag of each.
macro_rules! shuffle {
    ($name:ident, $lane:literal) => {
        #[kernel]
        pub unsafe fn $name(input: Global<f32>, out: Global<f32>) {
            let t = thread::thread_idx_x();
            unsafe {
                let value = get(input, t);
                let (whole, whole_inside) = warp::$name(ALL, value, $lane, warp::WARP_LANES);
                let (part, part_inside) = warp::$name(ALL, value, $lane, 8);
                put(out, 4 * t, whole);
                put(out, 4 * t + 1, u32::from(whole_inside));
                put(out, 4 * t + 2, part);
                put(out, 4 * t + 3, u32::from(part_inside));
            }
        }
    };
}
shuffle!(warp_shuffle_idx, 11);
shuffle!(warp_shuffle_up, 3);
shuffle!(warp_shuffle_down, 5);
shuffle!(warp_shuffle_xor, 9);

/// 64 bits are two words.
#[kernel]
pub unsafe fn shuffle_of_f64(input: Global<f64>, out: Global<f64>) {
    let t = thread::thread_idx_x();
    unsafe {
        let (value, _) = warp::warp_shuffle_xor(ALL, input.load(u64::from(t)), 16, warp::WARP_LANES);
        out.store(u64::from(t), value);
    }
}

/// One vote of the warp that some refuse, one that none refuses, one that all refuse, and one of the upper half.
macro_rules! vote {
    ($name:ident) => {
        #[kernel]
        pub unsafe fn $name(input: Global<f32>, out: Global<f32>) {
            let t = thread::thread_idx_x();
            unsafe {
                let value = get(input, t);
                put(out, 4 * t, u32::from(warp::$name(ALL, value % 3 == 0)));
                put(out, 4 * t + 1, u32::from(warp::$name(ALL, value < 1000)));
                put(out, 4 * t + 2, u32::from(warp::$name(ALL, value > 1000)));
                if t >= 16 {
                    put(out, 4 * t + 3, u32::from(warp::$name(0xffff_0000, value > 17)));
                }
            }
        }
    };
}
vote!(warp_vote_all);
vote!(warp_vote_any);
vote!(warp_vote_ballot);
