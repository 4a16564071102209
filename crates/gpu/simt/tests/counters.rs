//! Counters against what is counted by hand.

#![allow(clippy::undocumented_unsafe_blocks, clippy::missing_safety_doc)]

mod common;

use common::{fine, launch};
use cuda_std::prelude::*;
use lanky_simt::{Counters, Handles, Launch, Memory, Pattern, SharedTraffic, Traffic};

/// Each lane of one warp loads the element of x (1024 long) that `index` says.
fn loads(index: impl Fn(u64) -> u64) -> Traffic {
    let mut memory = Memory::new();
    let x = memory.input("x", &[1.0f64; 1024]);
    let run = |m: &Handles| unsafe {
        m.global(x).load_if(true, index(u64::from(warp::lane_id())));
    };
    let counters = fine(launch("loads", 1, 32, 0).run(&mut memory, run));
    counters.operand("x").loads
}

fn traffic(instructions: u64, elements: u64, bytes_used: u64, bytes_moved: u64) -> Traffic {
    Traffic { instructions, elements, bytes_used, bytes_moved }
}

#[test]
fn sectors_of_global_loads() {
    assert_eq!(loads(|lane| lane), traffic(1, 32, 256, 256), "coalesced");
    assert_eq!(loads(|lane| 31 - lane), traffic(1, 32, 256, 256), "coalesced, the other way round");
    assert_eq!(loads(|lane| lane ^ 21), traffic(1, 32, 256, 256), "coalesced, in another order");
    assert_eq!(loads(|lane| lane + 1), traffic(1, 32, 256, 288), "one sector more");
    assert_eq!(loads(|lane| 2 * lane), traffic(1, 32, 256, 512), "every second element");
    assert_eq!(loads(|lane| 4 * lane), traffic(1, 32, 256, 1024), "an element a sector");
    assert_eq!(loads(|lane| 32 * lane), traffic(1, 32, 256, 1024), "rows far apart");
    assert_eq!(loads(|_| 5), traffic(1, 32, 8, 32), "broadcast");
    assert_eq!(loads(|lane| lane / 8), traffic(1, 32, 32, 32), "four elements of one sector");
    assert_eq!(loads(|_| 5).efficiency(), 0.25);
    assert_eq!(loads(|lane| lane).efficiency(), 1.0);
}

#[test]
fn masked_lanes_are_not_counted_and_keep_in_step() {
    let mut memory = Memory::new();
    let x = memory.input("x", &[1.0f64; 64]);
    let run = |m: &Handles| unsafe {
        let i = u64::from(thread::thread_idx_x());
        assert_eq!(m.global(x).load_if(i < 40, i), if i < 40 { 1.0 } else { 0.0 });
    };
    let counters = fine(launch("masked", 1, 96, 0).run(&mut memory, run));
    assert_eq!(counters.operand("x").loads, traffic(2, 40, 320, 320));
    assert_eq!(counters.warp_instructions, 3, "the third warp's load is executed, and moves nothing");
}

#[test]
fn wide_loads_and_stores() {
    let mut memory = Memory::new();
    let (x, y) = (memory.input("x", &[1.0f32; 128]), memory.output::<f32>("y", 64));
    let run = |m: &Handles| unsafe {
        let lane = u64::from(warp::lane_id());
        m.global(x).stream_wide(4 * lane);
        m.global(y).store(2 * lane, 1.0);
    };
    let counters = fine(launch("wide", 1, 32, 0).run(&mut memory, run));
    assert_eq!(counters.operand("x").loads, traffic(1, 128, 512, 512));
    assert_eq!(counters.operand("y").stores, traffic(1, 32, 128, 256));
    assert_eq!(counters.operand("y").loads, Traffic::default());
    assert_eq!(memory.written(y).iter().filter(|&&written| written).count(), 32);
}

/// Each lane of one warp stores, and then loads, the element of shared memory that `index` says.
fn shared<T: Scalar>(index: impl Fn(u32) -> u32) -> Counters {
    let run = |_: &Handles| unsafe {
        let at = index(warp::lane_id());
        Shared::<T>::at(0).store(at, T::ONE);
        warp::sync_warp(u32::MAX);
        Shared::<T>::at(0).load(at);
    };
    fine(launch("shared", 1, 32, 16 << 10).run(&mut Memory::new(), run))
}

#[test]
fn bank_conflicts() {
    let one = |wavefronts, bank_conflicts| SharedTraffic { instructions: 1, wavefronts, bank_conflicts };
    for ways in [1, 2, 4, 8, 16, 32] {
        let counters = shared::<f32>(|lane| ways * lane);
        assert_eq!(counters.shared.stores, one(ways.into(), u64::from(ways) - 1), "{ways}-way");
        assert_eq!(counters.shared.loads, one(ways.into(), u64::from(ways) - 1), "{ways}-way");
        assert_eq!(counters.shared.bank_conflicts(), 2 * (u64::from(ways) - 1));
        assert_eq!(counters.shared.wavefronts(), 2 * u64::from(ways));
    }
    assert_eq!(shared::<f32>(|lane| 33 * lane).shared.stores, one(1, 0), "padded");
    assert_eq!(shared::<f64>(|lane| lane).shared.stores, one(2, 0), "eight bytes a lane need two");
    assert_eq!(shared::<f64>(|lane| 4 * lane).shared.stores, one(8, 6), "rows of four f64");
    assert_eq!(shared::<f64>(|lane| 16 * lane).shared.stores, one(32, 30), "rows of sixteen f64");
}

#[test]
fn broadcasts_and_wide_loads_from_shared_memory() {
    let run = |_: &Handles| unsafe {
        let (tile, lane) = (Shared::<f64>::at(0), warp::lane_id());
        tile.store(2 * lane, 1.0);
        tile.store(2 * lane + 1, 1.0);
        warp::sync_warp(u32::MAX);
        tile.load(7);
        tile.load_wide(8);
        tile.load_wide(2 * lane);
        tile.load_wide(lane / 8 * 2);
    };
    let counters = fine(launch("wide", 1, 32, 512).run(&mut Memory::new(), run));
    let expected = SharedTraffic { instructions: 4, wavefronts: 1 + 2 + 4 + 2, bank_conflicts: 0 };
    assert_eq!(counters.shared.loads, expected);
    assert_eq!(counters.shared.stores.bank_conflicts, 2 * 2, "each store touches every second pair of banks");
}

#[test]
fn arithmetic_and_barriers() {
    let run = |_: &Handles| {
        let mut sum = 1.0f32;
        for _ in 0..thread::thread_idx_x() {
            sum = sum.fma(0.5, 1.0);
        }
        std::hint::black_box(ptx::fma_f64(2.0, 3.0, f64::from(sum)));
        thread::sync_threads();
        thread::sync_threads();
    };
    let counters = fine(launch("arithmetic", 3, 64, 0).run(&mut Memory::new(), run));
    assert_eq!(counters.fma, 3 * (63 * 64 / 2 + 64));
    assert_eq!(counters.barriers, 3 * 2);
    assert_eq!(counters.warp_instructions, 3 * 2 * 2, "two warps a block at two barriers");
}

/// What stands behind an `if` within a loop does not part the lanes for good.
#[test]
fn lanes_meet_again_behind_a_guarded_store() {
    let mut memory = Memory::new();
    let (x, y) = (memory.input("x", &[1.0f64; 40]), memory.output::<f64>("y", 32));
    let run = |m: &Handles| unsafe {
        let lane = u64::from(warp::lane_id());
        for round in 0..10 {
            let mut sum = 0.0;
            for l in 0..4 {
                sum += m.global(x).load_if(true, 4 * round + l);
            }
            if lane < 13 {
                m.global(y).store(lane, sum);
            }
        }
    };
    let counters = fine(launch("guarded", 1, 32, 0).run(&mut memory, run));
    assert_eq!(counters.operand("x").loads, traffic(40, 40 * 32, 40 * 8, 40 * 32));
    assert_eq!(counters.operand("y").stores.instructions, 10);
}

#[test]
fn operands_are_counted_apart_and_launches_from_zero() {
    let mut memory = Memory::new();
    let (a, b) = (memory.input("A", &[1.0f64; 32]), memory.input("B", &[1.0f64; 32]));
    let run = |m: &Handles| unsafe {
        let lane = warp::lane_id();
        // One instruction, two operands.
        let operand = if lane % 2 == 0 { m.global(a) } else { m.global(b) };
        operand.load(lane.into());
    };
    for _ in 0..2 {
        let counters = fine(launch("two", 1, 32, 0).run(&mut memory, run));
        assert_eq!(counters.operand("A").loads.elements, 16);
        assert_eq!(counters.operand("B").loads.elements, 16);
        assert_eq!(counters.operand("C").loads.elements, 0);
        assert_eq!(counters.operands.iter().map(|o| o.name).collect::<Vec<_>>(), ["A", "B"]);
    }
}

#[test]
fn the_first_accesses_of_the_first_warp_are_recorded() {
    let mut memory = Memory::new();
    let x = memory.input("x", &[1.0f64; 128]);
    let run = |m: &Handles| unsafe {
        let t = thread::thread_idx_x();
        m.global(x).load_if(t != 3, u64::from(64 * thread::block_idx_x() + t));
        Shared::<f64>::at(1).store(t, 1.0);
        thread::sync_threads();
        Shared::<f64>::at(1).load(t);
    };
    let launch = Launch { record: 2, ..launch("recorded", 2, 64, 1024) };
    let patterns = fine(launch.run(&mut memory, run)).patterns;
    let offsets = |first: u64| std::array::from_fn(|lane| Some(first + 8 * lane as u64));
    let mut masked: [Option<u64>; 32] = offsets(0);
    masked[3] = None;
    let expected = [("x", false, masked), ("shared memory", true, offsets(8))];
    for (Pattern { operand, store, offsets, bytes, .. }, expected) in patterns.iter().zip(expected) {
        assert_eq!((*operand, *store, *offsets), expected);
        assert_eq!(*bytes, 8);
    }
    assert_eq!(patterns.len(), 2);
}
