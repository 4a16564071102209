//! Barriers and warp operations: what goes wrong with them, and what they compute.

// Wrong kernels are what is tested: the emulator stops them.
#![allow(clippy::undocumented_unsafe_blocks, clippy::missing_safety_doc)]

mod common;

use common::{expect, fine, launch};
use cuda_std::prelude::*;
use lanky_simt::FaultKind::{BarrierDiverged, BarrierMissed, WrongLane};
use lanky_simt::{Handles, Memory};

fn line(marker: &str) -> String {
    format!("tests/warps.rs:{}:", common::line(include_str!("warps.rs"), marker))
}

/// Returns early where there is nothing to do, before a barrier.
#[kernel]
pub unsafe fn early_return(n: u32, c: Global<f32>) {
    let t = thread::thread_idx_x();
    if t >= n {
        return;
    }
    unsafe { c.store(u64::from(t), 1.0) }; // last thing done
    thread::sync_threads(); // not for all
}

#[test]
fn a_barrier_that_some_threads_never_reach() {
    let mut memory = Memory::new();
    let c = memory.output::<f32>("C", 64);
    let run = |n: u32| move |m: &Handles| unsafe { early_return(n, m.global(c)) };
    expect(
        launch("early_return", 1, 64, 0).run(&mut memory, run(63)),
        BarrierMissed,
        &[
            "kernel: early_return",
            "thread 0 (warp 0, lane 0)",
            &line("not for all"),
            "other: block (0, 0, 0), thread 63 (warp 1, lane 31)",
        ],
    );
    fine(launch("early_return", 1, 64, 0).run(&mut memory, run(64)));
}

#[test]
fn a_barrier_that_threads_reach_at_different_places() {
    let run = |at: u32| {
        move |_: &Handles| {
            if thread::thread_idx_x() < at {
                thread::sync_threads(); // some here
            } else {
                thread::sync_threads(); // others there
            }
        }
    };
    expect(
        launch("two_places", 1, 64, 0).run(&mut Memory::new(), run(40)),
        BarrierDiverged,
        &[
            "thread 0 (warp 0, lane 0)",
            &line("some here"),
            "other: block (0, 0, 0), thread 40 (warp 1, lane 8)",
            &line("others there"),
        ],
    );
    assert_eq!(fine(launch("one_place", 1, 64, 0).run(&mut Memory::new(), run(64))).barriers, 1);
}

#[test]
fn barriers_compute() {
    let run = |_: &Handles| {
        let t = thread::thread_idx_x();
        assert_eq!(thread::sync_threads_count(u32::from(t % 3 == 0)), 32);
        assert_eq!(thread::sync_threads_and(u32::from(t < 96)), 1);
        assert_eq!(thread::sync_threads_and(u32::from(t < 95)), 0);
        assert_eq!(thread::sync_threads_or(u32::from(t == 95)), 1);
        assert_eq!(thread::sync_threads_or(u32::from(t == 96)), 0);
    };
    let counters = fine(launch("computing", 2, 96, 0).run(&mut Memory::new(), run));
    assert_eq!(counters.barriers, 2 * 5);
}

#[test]
fn a_shuffle_whose_lanes_have_gone() {
    let run = |n: u32| {
        move |_: &Handles| unsafe {
            if warp::lane_id() < n {
                warp::warp_shuffle_xor(u32::MAX, 1u32, 1, 32); // alone
            }
        }
    };
    expect(
        launch("gone", 1, 32, 0).run(&mut Memory::new(), run(31)),
        WrongLane,
        &["kernel: gone", &line("alone"), "waits for lane 31 of its mask 0xffffffff, which has ended", "thread 0 "],
    );
    fine(launch("gone", 1, 32, 0).run(&mut Memory::new(), run(32)));
    expect(
        launch("small", 1, 20, 0).run(&mut Memory::new(), run(32)),
        WrongLane,
        &["lane 20", "is not there", "thread 0 "],
    );
}

#[test]
fn a_vote_while_a_lane_waits_at_a_barrier() {
    let run = |n: u32| {
        move |_: &Handles| unsafe {
            if warp::lane_id() < n {
                warp::warp_vote_any(u32::MAX, true); // vote
            }
            thread::sync_threads(); // barrier
        }
    };
    expect(
        launch("waiting", 1, 32, 0).run(&mut Memory::new(), run(9)),
        WrongLane,
        &[
            "waits for lane 9 ",
            "which waits at a barrier",
            &line("vote"),
            &line("barrier"),
            "other: block (0, 0, 0), thread 9 ",
        ],
    );
    fine(launch("waiting", 1, 32, 0).run(&mut Memory::new(), run(32)));
}

#[test]
fn a_lane_that_its_own_mask_does_not_name() {
    let run = |mask: u32| {
        move |_: &Handles| unsafe {
            if warp::lane_id() < 4 {
                warp::sync_warp(mask); // outside
            }
        }
    };
    expect(
        launch("outside", 1, 32, 0).run(&mut Memory::new(), run(0b0111)),
        WrongLane,
        &[&line("outside"), "mask 0x00000007 does not name it", "thread 3 (warp 0, lane 3)"],
    );
    fine(launch("outside", 1, 32, 0).run(&mut Memory::new(), run(0b1111)));
}

#[test]
fn a_shuffle_from_a_lane_outside_its_mask() {
    let run = |by: u32| {
        move |_: &Handles| unsafe {
            if warp::lane_id() < 16 {
                warp::warp_shuffle_down(0xffff, 1u32, by, 32); // too far
            }
        }
    };
    expect(
        launch("far", 1, 32, 0).run(&mut Memory::new(), run(1)),
        WrongLane,
        &[&line("too far"), "from lane 16, which the mask 0x0000ffff does not name", "thread 15 "],
    );
    fine(launch("far", 1, 32, 0).run(&mut Memory::new(), run(0)));
}

#[test]
fn a_matrix_product_without_all_lanes() {
    let run = |n: u32| {
        move |_: &Handles| unsafe {
            if warp::lane_id() < n {
                ptx::mma_m16n8k16_f64([1.0; 8], [1.0; 4], [0.0; 4]); // mma
            }
        }
    };
    expect(launch("mma", 1, 32, 0).run(&mut Memory::new(), run(16)), WrongLane, &[&line("mma"), "lane 16"]);
    assert_eq!(fine(launch("mma", 3, 64, 0).run(&mut Memory::new(), run(32))).mma, 6);
}

#[test]
fn shuffles_and_votes_give_what_the_lanes_hold() {
    let run = |_: &Handles| unsafe {
        let lane = warp::lane_id();
        let value = 1000 + lane;
        let all = u32::MAX;
        assert_eq!(warp::warp_shuffle_idx(all, value, 7, 32), (1007, true));
        assert_eq!(warp::warp_shuffle_idx(all, value, 3, 8), (1000 + lane / 8 * 8 + 3, true));
        assert_eq!(warp::warp_shuffle_xor(all, value, 5, 32), (1000 + (lane ^ 5), true));
        let up = if lane >= 4 { (value - 4, true) } else { (value, false) };
        assert_eq!(warp::warp_shuffle_up(all, value, 4, 32), up);
        let down = if lane % 16 < 9 { (value + 7, true) } else { (value, false) };
        assert_eq!(warp::warp_shuffle_down(all, value, 7, 16), down);
        assert_eq!(warp::warp_shuffle_down(all, f64::from(lane), 7, 16).0.fract(), 0.0);
        assert_eq!(warp::warp_vote_ballot(all, lane % 3 == 0), 0x4924_9249);
        assert!(warp::warp_vote_all(all, lane < 32) && !warp::warp_vote_all(all, lane < 31));
        assert!(warp::warp_vote_any(all, lane == 31) && !warp::warp_vote_any(all, lane == 32));
        let half = if lane < 16 { 0xffff } else { 0xffff_0000 };
        assert_eq!(warp::warp_vote_ballot(half, true), half);
    };
    fine(launch("exchange", 2, 64, 0).run(&mut Memory::new(), run));
}

#[test]
fn a_sum_by_shuffles() {
    let mut memory = Memory::new();
    let x = memory.input("x", &(0..64).map(f64::from).collect::<Vec<_>>());
    let sums = memory.output::<f64>("sums", 2);
    let run = |m: &Handles| unsafe {
        let i = thread::index_1d();
        let mut sum: f64 = m.global(x).load(u64::from(i));
        for by in [16, 8, 4, 2, 1] {
            sum += warp::warp_shuffle_down(u32::MAX, sum, by, 32).0;
        }
        if warp::lane_id() == 0 {
            m.global(sums).store(u64::from(i / 32), sum);
        }
    };
    fine(launch("sum", 1, 64, 0).run(&mut memory, run));
    assert_eq!(memory.read(sums), [(0..32).sum::<i32>().into(), (32..64).sum::<i32>().into()]);
}

/// A number without a short binary expansion, so that the order of roundings shows.
fn number(seed: u64) -> f64 {
    let bits = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (seed << 7);
    (bits >> 11) as f64 / (1u64 << 53) as f64 - 0.5
}

/// D = A B + C by one `mma` over `steps` of k, all by rows, as a warp of the emulator computes it.
fn product(steps: u64, [a, b, c]: [&[f64]; 3]) -> Vec<f64> {
    let mut memory = Memory::new();
    let (ga, gb) = (memory.input("A", a), memory.input("B", b));
    let (gc, gd) = (memory.input("C", c), memory.output::<f64>("D", 16 * 8));
    let run = |m: &Handles| unsafe {
        let (g, q) = (u64::from(warp::lane_id() / 4), u64::from(warp::lane_id() % 4));
        let load_a = |i: usize| m.global(ga).load((g + 8 * (i as u64 % 2)) * steps + q + 4 * (i as u64 / 2));
        let load_b = |i: usize| m.global(gb).load((q + 4 * i as u64) * 8 + g);
        let places = [(g, 2 * q), (g, 2 * q + 1), (g + 8, 2 * q), (g + 8, 2 * q + 1)];
        let rc = places.map(|(row, col)| m.global(gc).load(row * 8 + col));
        let rd = match steps {
            4 => ptx::mma_m16n8k4_f64(std::array::from_fn(load_a), std::array::from_fn(load_b), rc),
            8 => ptx::mma_m16n8k8_f64(std::array::from_fn(load_a), std::array::from_fn(load_b), rc),
            _ => ptx::mma_m16n8k16_f64(std::array::from_fn(load_a), std::array::from_fn(load_b), rc),
        };
        for ((row, col), d) in places.into_iter().zip(rd) {
            m.global(gd).store(row * 8 + col, d);
        }
    };
    fine(launch("mma", 1, 32, 0).run(&mut memory, run));
    memory.read(gd)
}

#[test]
fn the_fragments_of_a_matrix_product_are_those_of_the_isa_and_its_sums_are_chains() {
    for steps in [4, 8, 16] {
        let numbers = |count: usize, from: u64| (0..count as u64).map(|i| number(i + from)).collect::<Vec<_>>();
        let (a, b, mut c) = (numbers(16 * steps, 1), numbers(8 * steps, 1000), numbers(16 * 8, 2000));
        c[5] = -0.0;
        let d = product(steps as u64, [&a, &b, &c]);
        for row in 0..16 {
            for col in 0..8 {
                let chain = (0..steps).fold(c[row * 8 + col], |sum, l| a[row * steps + l].mul_add(b[l * 8 + col], sum));
                assert_eq!(d[row * 8 + col].to_bits(), chain.to_bits(), "({row}, {col}), k = {steps}");
            }
        }
    }
}

/// Of f32 without their last 13 bits, rounded towards 0.
#[test]
fn a_product_of_short_numbers_drops_bits_and_rounds_towards_zero() {
    let mut memory = Memory::new();
    let d = memory.output::<f32>("D", 32 * 4);
    let dropped = f32::from_bits(((1 << 13) - 1) | 1.0f32.to_bits()); // 1, as it is looked at
    let run = |m: &Handles| unsafe {
        // 1 and -1 and three quarters of 1's last bit, 2²⁴ + 6, and 2²⁴ + 7, which has one bit too many.
        let (small, c) = (3.0 / (1u32 << 28) as f32, (1 << 24) as f32);
        let sums = ptx::mma_m16n8k8_tf32([small, dropped, small, dropped], [dropped; 2], [1.0, -1.0, c - 2.0, c - 1.0]);
        for (i, sum) in sums.into_iter().enumerate() {
            m.global(d).store(u64::from(4 * warp::lane_id()) + i as u64, sum);
        }
    };
    fine(launch("short", 1, 32, 0).run(&mut memory, run));
    let expected = [1.0, f32::EPSILON - 1.0, (1 << 24) as f32 + 6.0, (1 << 24) as f32 + 6.0];
    assert_eq!(memory.read(d), [expected; 32].concat());
}

#[test]
fn lanes_that_left_a_loop_wait_for_the_others() {
    let mut memory = Memory::new();
    let x = memory.input("x", &[1.0f32; 64]);
    let run = |m: &Handles| unsafe {
        let lane = u64::from(warp::lane_id());
        let mut sum = 0.0;
        for i in 0..lane {
            sum += m.global(x).load(i);
        }
        sum += m.global(x).load(32 + lane);
        assert_eq!(sum, 1.0 + lane as f32);
    };
    let counters = fine(launch("ragged", 1, 32, 0).run(&mut memory, run));
    assert_eq!(counters.operand("x").loads.instructions, 31 + 1, "31 rounds of the loop, then all together");
    assert_eq!(counters.operand("x").loads.elements, 31 * 32 / 2 + 32);
}
