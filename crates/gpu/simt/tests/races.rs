//! Races in shared and in global memory, asynchronous copies among them.

// Wrong kernels are what is tested: the emulator stops them.
#![allow(clippy::undocumented_unsafe_blocks, clippy::missing_safety_doc)]

mod common;

use common::{expect, fine, launch};
use cuda_std::prelude::*;
use lanky_simt::FaultKind::{AsyncInFlight, GlobalRace, SharedRace, Uninitialised};
use lanky_simt::{Handles, Memory};

fn line(marker: &str) -> String {
    format!("tests/races.rs:{}:", common::line(include_str!("races.rs"), marker))
}

/// Reverses 64 elements through shared memory, with or without the barrier.
#[kernel]
pub unsafe fn reverse(barrier: u32, x: Global<f32>) {
    let (tile, t) = (Shared::<f32>::at(0), thread::thread_idx_x());
    unsafe { tile.store(t, x.load(u64::from(t))) }; // tile filled
    if barrier != 0 {
        thread::sync_threads();
    }
    unsafe { x.store(u64::from(t), tile.load(63 - t)) }; // tile used
}

#[test]
fn a_missing_barrier_between_warps() {
    let mut memory = Memory::new();
    let x = memory.inout("x", &(0..64).map(|i| i as f32).collect::<Vec<_>>());
    let run = |barrier: u32| move |m: &Handles| unsafe { reverse(barrier, m.global(x)) };
    let launch = launch("reverse", 1, 64, 256);
    // Whichever warp goes first finds nothing where the other is to write.
    let parts =
        ["kernel: reverse", &line("tile used"), "lane 0)", "shared memory, element ", "of its block has written yet"];
    for seed in 0..4 {
        expect(with_seed(launch, seed).run(&mut memory, run(0)), Uninitialised, &parts);
    }
    fine(launch.run(&mut memory, run(1)));
    assert_eq!(memory.read(x)[..3], [63.0, 62.0, 61.0]);
}

#[test]
fn a_missing_barrier_behind_a_second_write() {
    let mut memory = Memory::new();
    let filled = |barrier: bool| {
        move |_: &Handles| unsafe {
            let (tile, t) = (Shared::<f32>::at(0), thread::thread_idx_x());
            tile.store(t, 0.0);
            thread::sync_threads();
            tile.store(t, 1.0); // second write
            if barrier {
                thread::sync_threads();
            }
            tile.load((t + 32) % 64); // read across
        }
    };
    let launch = launch("filled", 1, 64, 256);
    expect(
        launch.run(&mut memory, filled(false)),
        SharedRace,
        &[
            "kernel: filled",
            "block (0, 0, 0), thread ",
            "other: block (0, 0, 0), thread ",
            "shared memory, element ",
            "no barrier lies between",
        ],
    );
    fine(launch.run(&mut memory, filled(true)));
}

fn with_seed(launch: lanky_simt::Launch<'_>, seed: u64) -> lanky_simt::Launch<'_> {
    lanky_simt::Launch { seed: Some(seed), ..launch }
}

#[test]
fn a_write_names_the_reader_that_it_overtakes() {
    let run = |barrier: bool| {
        move |_: &Handles| unsafe {
            let (tile, t) = (Shared::<f32>::at(0), thread::thread_idx_x());
            for round in 0..2 {
                if t < 32 {
                    tile.store(t, round as f32); // refilled
                }
                thread::sync_threads();
                if t >= 32 {
                    tile.load(t - 32); // still read
                }
                if barrier {
                    thread::sync_threads();
                }
            }
        }
    };
    let launch = launch("refill", 1, 64, 128);
    for seed in 0..8 {
        let fault = expect(
            with_seed(launch, seed).run(&mut Memory::new(), run(false)),
            SharedRace,
            &[
                "kernel: refill",
                "shared memory, element 0",
                &line("refilled"),
                &line("still read"),
                "thread 0 (warp 0, lane 0)",
                "thread 32 (warp 1, lane 0)",
                &format!("SIMT_SEED={seed}"),
            ],
        );
        assert!(fault.message.starts_with("a thread "), "{}", fault.message);
    }
    fine(launch.run(&mut Memory::new(), run(true)));
}

#[test]
fn lanes_of_a_warp_need_a_warp_barrier() {
    let run = |sync: bool| {
        move |_: &Handles| unsafe {
            let (tile, lane) = (Shared::<f32>::at(0), warp::lane_id());
            tile.store(lane, 1.0); // lane writes
            if sync {
                warp::sync_warp(u32::MAX);
            }
            tile.load(lane ^ 1); // lane reads
        }
    };
    let launch = launch("pairs", 1, 32, 128);
    expect(
        launch.run(&mut Memory::new(), run(false)),
        SharedRace,
        &[
            &line("lane reads"),
            &line("lane writes"),
            "thread 0 (warp 0, lane 0)",
            "other: block (0, 0, 0), thread 1 ",
            "element 1",
            "no barrier and no sync_warp",
        ],
    );
    fine(launch.run(&mut Memory::new(), run(true)));
}

#[test]
fn a_warp_barrier_orders_the_lanes_of_its_mask() {
    let run = |apart: u32| {
        move |_: &Handles| unsafe {
            let (tile, lane) = (Shared::<f32>::at(0), warp::lane_id());
            tile.store(lane, 1.0);
            warp::sync_warp(if lane < 16 { 0xffff } else { 0xffff_0000 });
            tile.load(lane ^ apart);
        }
    };
    fine(launch("halves", 1, 32, 128).run(&mut Memory::new(), run(8)));
    expect(launch("halves", 1, 32, 128).run(&mut Memory::new(), run(16)), SharedRace, &["thread 0 ", "thread 16 "]);
}

#[test]
fn of_lanes_that_read_together_the_one_at_fault_is_named() {
    let run = |sync: bool| {
        move |_: &Handles| unsafe {
            let tile = Shared::<f32>::at(0);
            if warp::lane_id() == 0 {
                tile.store(0, 1.0);
            }
            if sync {
                warp::sync_warp(u32::MAX);
            }
            tile.load(0);
        }
    };
    let launch = launch("first", 1, 32, 4);
    let parts = ["thread 1 (warp 0, lane 1)", "other: block (0, 0, 0), thread 0 ", "no barrier and no sync_warp"];
    expect(launch.run(&mut Memory::new(), run(false)), SharedRace, &parts);
    fine(launch.run(&mut Memory::new(), run(true)));
}

#[test]
fn two_lanes_of_one_instruction_write_one_word() {
    let run = |lanes: u32| move |_: &Handles| unsafe { Shared::<f32>::at(0).store(warp::lane_id() % lanes, 1.0) }; // both
    expect(
        launch("crowd", 1, 32, 128).run(&mut Memory::new(), run(31)),
        SharedRace,
        &[
            &line("both"),
            "thread 31 (warp 0, lane 31)",
            "other: block (0, 0, 0), thread 0 ",
            "element 0",
            "writes what another wrote",
        ],
    );
    fine(launch("crowd", 1, 32, 128).run(&mut Memory::new(), run(32)));
}

#[test]
fn many_may_read_and_one_may_then_write_behind_a_barrier() {
    let run = |_: &Handles| unsafe {
        let (tile, t) = (Shared::<f64>::at(0), thread::thread_idx_x());
        for _ in 0..3 {
            if t == 77 {
                tile.store(0, 1.0);
            }
            thread::sync_threads();
            tile.load(0);
            tile.load(0);
            thread::sync_threads();
        }
    };
    fine(launch("broadcast", 1, 96, 8).run(&mut Memory::new(), run));
}

/// All blocks write the same element, or each its own.
#[kernel]
pub unsafe fn write_block(apart: u32, c: Global<f64>) {
    if thread::thread_idx_x() == 7 {
        unsafe { c.store(u64::from(apart * thread::block_idx_x()), 1.0) }; // one for all
    }
}

#[test]
fn two_blocks_write_one_element() {
    let mut memory = Memory::new();
    let c = memory.output::<f64>("C", 4);
    let run = |apart: u32| move |m: &Handles| unsafe { write_block(apart, m.global(c)) };
    expect(
        launch("write_block", 4, 32, 0).run(&mut memory, run(0)),
        GlobalRace,
        &[
            "kernel: write_block",
            &line("one for all"),
            "block (1, 0, 0), thread 7 ",
            "operand: C, element 0",
            "other: block (0, 0, 0), thread 7 ",
            "no fence and atomic",
        ],
    );
    fine(launch("write_block", 4, 32, 0).run(&mut memory, run(1)));
    fine(launch("write_block", 4, 32, 0).run(&mut memory, run(1))); // a new launch may write again
}

#[test]
fn a_block_reads_what_another_writes() {
    let mut memory = Memory::new();
    let x = memory.inout("x", &[1.0f64; 128]);
    let shift = |by: u64| {
        move |m: &Handles| unsafe {
            let (x, i) = (m.global(x), u64::from(thread::index_1d()));
            let next = x.load((i + by) % 128); // neighbour
            x.store(i, next); // in place
        }
    };
    for seed in 0..4 {
        let launch = with_seed(launch("shift", 2, 64, 0), seed);
        let fault = expect(
            launch.run(&mut memory, shift(64)),
            GlobalRace,
            &["operand: x", &line("neighbour"), &line("in place")],
        );
        assert_ne!(fault.block(), fault.other.map(|other| other.block));
    }
    fine(launch("shift", 2, 64, 0).run(&mut memory, shift(0)));
}

#[test]
fn threads_of_a_block_race_in_global_memory_too() {
    let mut memory = Memory::new();
    let x = memory.output::<f32>("x", 64);
    let run = |barrier: bool| {
        move |m: &Handles| unsafe {
            let (x, t) = (m.global(x), u64::from(thread::thread_idx_x()));
            x.store(t, 1.0);
            if barrier {
                thread::sync_threads();
            }
            x.load(t ^ 1);
        }
    };
    expect(launch("pairs", 1, 64, 0).run(&mut memory, run(false)), GlobalRace, &["operand: x, element 1", "thread 0 "]);
    fine(launch("pairs", 1, 64, 0).run(&mut memory, run(true)));
}

#[test]
fn sums_need_atomics() {
    let mut memory = Memory::new();
    let sum = memory.inout("sum", &[0.0f64]);
    let plain = |m: &Handles| unsafe { m.global(sum).store(0, 1.0 + m.global(sum).load(0)) };
    expect(launch("plain", 4, 1, 0).run(&mut memory, plain), GlobalRace, &["operand: sum, element 0"]);
    let sum = memory.inout("sum", &[0.0f64]);
    let red = |m: &Handles| unsafe { ptx::red_add_f64(m.global(sum).address(0), 1.0) };
    let counters = fine(launch("red", 4, 64, 0).run(&mut memory, red));
    assert_eq!((memory.read(sum), counters.atomics(), counters.operand("sum").atomics), (vec![256.0], 256, 256));

    let mixed = |m: &Handles| unsafe {
        ptx::red_add_f64(m.global(sum).address(0), 1.0); // atomic
        m.global(sum).load(0); // and plain
    };
    expect(launch("mixed", 2, 1, 0).run(&mut memory, mixed), GlobalRace, &[&line("atomic"), &line("and plain")]);
    expect(launch("mixed", 1, 2, 0).run(&mut memory, mixed), GlobalRace, &[&line("atomic"), &line("and plain")]);
}

/// The last block to finish adds what all blocks wrote; bit 0 of `fences`: before the count, bit 1: after it.
#[kernel]
pub unsafe fn sum_by_last_block(fences: u32, parts: Global<f32>, count: Global<f32>, sum: Global<f32>) {
    let (block, blocks) = (u64::from(thread::block_idx_x()), u64::from(thread::grid_dim_x()));
    let last = Shared::<f32>::at(0);
    if thread::thread_idx_x() == 0 {
        unsafe { parts.store(block, 1.0 + block as f32) }; // part
        if fences & 1 != 0 {
            thread::device_fence();
        }
        let before = unsafe { ptx::atom_add_u32(count.address(0), 1) };
        if fences & 2 != 0 {
            thread::device_fence();
        }
        unsafe { last.store(0, if u64::from(before) + 1 == blocks { 1.0 } else { 0.0 }) };
    }
    thread::sync_threads();
    if unsafe { last.load(0) } == 1.0 && thread::thread_idx_x() == 33 {
        let mut total = 0.0;
        for part in 0..blocks {
            total += unsafe { parts.load(part) }; // gathered
        }
        unsafe { sum.store(0, total) };
    }
}

#[test]
fn the_last_block_sees_the_others_through_fences_and_atomics() {
    for seed in [0, 1, 2] {
        for fences in 0..4 {
            let mut memory = Memory::new();
            let (parts, sum) = (memory.output("parts", 5), memory.output("sum", 1));
            let count = memory.inout("count", &[0.0f32]);
            let launch = with_seed(launch("sum_by_last_block", 5, 64, 4), seed);
            let outcome = launch.run(&mut memory, |m| unsafe {
                sum_by_last_block(fences, m.global(parts), m.global(count), m.global(sum))
            });
            if fences == 3 {
                fine(outcome);
                assert_eq!(memory.read(sum), [15.0]);
            } else {
                expect(outcome, GlobalRace, &[&line("gathered"), &line("part"), "operand: parts", "thread 33 "]);
            }
        }
    }
}

/// Copies 32 elements by cp.async and reads them: with the wait, with the barrier.
#[kernel]
pub unsafe fn copied(wait: u32, barrier: u32, x: Global<f64>, y: Global<f64>) {
    let (tile, t) = (Shared::<f64>::at(0), thread::thread_idx_x());
    unsafe { ptx::cp_async_8(tile.address(t), x.address(u64::from(t)), t < 48) }; // copy starts
    ptx::cp_async_commit_group();
    if wait != 0 {
        ptx::cp_async_wait_group::<0>();
    }
    if barrier != 0 {
        thread::sync_threads();
    }
    unsafe { y.store(u64::from(t), tile.load(63 - t)) }; // copy read
}

#[test]
fn asynchronous_copies_are_waited_for_and_then_behind_a_barrier() {
    let mut memory = Memory::new();
    let x = memory.input("x", &(0..48).map(f64::from).collect::<Vec<_>>());
    let y = memory.output::<f64>("y", 64);
    let run = |wait, barrier| move |m: &Handles| unsafe { copied(wait, barrier, m.global(x), m.global(y)) };
    let launch = launch("copied", 1, 64, 512);
    for barrier in [0, 1] {
        expect(
            launch.run(&mut memory, run(0, barrier)),
            if barrier == 0 { Uninitialised } else { AsyncInFlight },
            &["kernel: copied", &line("copy read"), "shared memory, element 63", "thread 0 "],
        );
    }
    let fault = expect(
        launch.run(&mut memory, run(0, 1)),
        AsyncInFlight,
        &[&line("copy starts"), "other: block (0, 0, 0), thread 63 "],
    );
    assert_eq!(fault.index, Some(63));
    let outcome = with_seed(launch, 1).run(&mut memory, run(1, 0));
    assert!(outcome.is_err(), "a barrier is missing");
    let counters = fine(launch.run(&mut memory, run(1, 1)));
    let expected: Vec<f64> = (0..64).rev().map(|i| if i < 48 { f64::from(i) } else { 0.0 }).collect();
    assert_eq!(memory.read(y), expected);
    assert_eq!((counters.cp_async, counters.operand("x").loads.elements), (2, 48));
}

#[test]
fn a_copy_arrives_when_its_group_is_waited_for_and_not_before() {
    let mut memory = Memory::new();
    let (x, y) = (memory.inout("x", &[1.0f32, 2.0, 3.0]), memory.output::<f32>("y", 3));
    let run = |early: bool| {
        move |m: &Handles| unsafe {
            let (tile, x, y) = (Shared::<f32>::at(0), m.global(x), m.global(y));
            for i in 0..3 {
                ptx::cp_async_4(tile.address(i), x.address(u64::from(i)), true);
                ptx::cp_async_commit_group();
                x.store(u64::from(i), -1.0); // the copy has its data
            }
            ptx::cp_async_wait_group::<2>();
            y.store(0, tile.load(0));
            if early {
                tile.load(1); // second group
            }
            ptx::cp_async_wait_group::<1>();
            y.store(1, tile.load(1));
            ptx::cp_async_wait_group::<0>();
            y.store(2, tile.load(2));
        }
    };
    let fault = launch("groups", 1, 1, 12).run(&mut memory, run(true));
    expect(fault, AsyncInFlight, &[&line("second group"), "shared memory, element 1"]);
    let (x, y) = (memory.inout("x", &[1.0f32, 2.0, 3.0]), memory.output::<f32>("y", 3));
    let right = |m: &Handles| unsafe {
        let (tile, x, y) = (Shared::<f32>::at(0), m.global(x), m.global(y));
        for i in 0..3 {
            ptx::cp_async_4(tile.address(i), x.address(u64::from(i)), true);
            ptx::cp_async_commit_group();
        }
        ptx::cp_async_wait_group::<1>();
        (0..2).for_each(|i| y.store(u64::from(i), tile.load(i)));
        ptx::cp_async_wait_group::<0>();
        y.store(2, tile.load(2));
    };
    fine(launch("groups", 1, 1, 12).run(&mut memory, right));
    assert_eq!(memory.read(y), [1.0, 2.0, 3.0]);
}

#[test]
fn nobody_writes_where_a_copy_is_under_way() {
    let mut memory = Memory::new();
    let x = memory.input("x", &[1.0f64; 2]);
    let run = |at: u32| {
        move |m: &Handles| unsafe {
            let tile = Shared::<f64>::at(0);
            ptx::cp_async_16(tile.address(0), m.global(x).address(0), true);
            tile.store(at, 0.0); // overwritten
        }
    };
    expect(launch("over", 1, 1, 32).run(&mut memory, run(1)), AsyncInFlight, &[&line("overwritten"), "element 1"]);
    fine(launch("over", 1, 1, 32).run(&mut memory, run(2)));
}

#[test]
fn a_copy_does_not_overtake_a_reader() {
    let mut memory = Memory::new();
    let x = memory.input("x", &[1.0f64; 64]);
    let run = |barrier: bool| {
        move |m: &Handles| unsafe {
            let (tile, t) = (Shared::<f64>::at(0), thread::thread_idx_x());
            tile.store(t, 0.0);
            thread::sync_threads();
            tile.load((t + 32) % 64); // still needed
            if barrier {
                thread::sync_threads();
            }
            ptx::cp_async_8(tile.address(t), m.global(x).address(u64::from(t)), true); // refilled by copy
        }
    };
    expect(
        launch("ring", 1, 64, 512).run(&mut memory, run(false)),
        SharedRace,
        &[&line("still needed"), &line("refilled by copy")],
    );
    fine(launch("ring", 1, 64, 512).run(&mut memory, run(true)));
}
