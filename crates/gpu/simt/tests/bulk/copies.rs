//! Single copies and mbarriers: what is wrong with each, and what is not.

use crate::common::{self, expect, fine, launch};
use crate::{ALL, numbers};
use cuda_std::prelude::*;
use lanky_simt::FaultKind::{
    AsyncInFlight, BarrierMissed, GlobalRace, MbarrierMisused, Misaligned, OutOfBounds, ProxyUnfenced, ReadOnlyWritten,
    SharedRace, Uninitialised,
};
use lanky_simt::{Counters, Fault, Handles, Memory, Traffic};

fn line(marker: &str) -> String {
    format!("tests/bulk/copies.rs:{}:", common::line(include_str!("copies.rs"), marker))
}

/// The mbarrier of the kernels below: at byte 1024 of shared memory.
fn mbarrier() -> ptx::SharedAddress {
    Shared::<f64>::at(128).address(0)
}

/// Lane 0 of the block makes the mbarrier; all threads may use it.
unsafe fn start() {
    if thread::thread_idx_x() == 0 {
        unsafe { ptx::mbarrier_init(mbarrier(), 1) }; // made
        ptx::fence_proxy_async();
    }
    thread::sync_threads();
}

/// Lane 0 of the block loads 32 elements from x, said to be of `expected` bytes.
unsafe fn load(expected: u32, x: Global<f64>) {
    if thread::thread_idx_x() == 0 {
        unsafe {
            ptx::mbarrier_expect(mbarrier(), expected); // expected
            ptx::bulk_load(Shared::<f64>::at(0).address(0), x.address(0), 256, mbarrier()); // loaded
        }
    }
}

/// What warps of a block do with 64 elements of x, and with y of as many.
fn run(warps: u32, kernel: impl Fn(Global<f64>, Global<f64>)) -> Result<Counters, Box<Fault>> {
    let mut memory = Memory::new();
    let (x, y) = (memory.input("x", &numbers(64)), memory.output::<f64>("y", 64));
    launch("bulk", 1, 32 * warps, 1040).run(&mut memory, |m| kernel(m.global(x), m.global(y)))
}

#[test]
fn a_copy_lies_within_its_operands_and_in_whole_pieces_of_16_bytes() {
    let load = |from: u64, into: u32, bytes: u32| {
        run(1, move |x, _| unsafe {
            start();
            if warp::lane_id() == 0 {
                ptx::mbarrier_expect(mbarrier(), bytes);
                ptx::bulk_load(Shared::<f64>::at(0).address(into), x.address(from), bytes, mbarrier()); // moved
                ptx::mbarrier_wait(mbarrier(), 0);
            }
        })
    };
    fine(load(32, 96, 256));
    expect(load(34, 0, 256), OutOfBounds, &[&line("moved"), "operand: x, element 34", "32 elements from element 34"]);
    expect(load(0, 98, 256), MbarrierMisused, &[&line("moved"), "writes an mbarrier"]);
    expect(load(0, 114, 256), OutOfBounds, &["shared memory, element 114", "256 bytes from byte 912 on of 1040"]);
    expect(load(1, 0, 256), Misaligned, &[&line("moved"), "operand: x", "no multiple of 16"]);
    expect(load(0, 1, 256), Misaligned, &[&line("moved"), "operand: shared memory", "no multiple of 16"]);
    expect(load(0, 0, 24), Misaligned, &[&line("moved"), "24 bytes, no multiple of 16"]);
    expect(load(0, 0, 0), Misaligned, &["0 bytes"]);

    let store = |into: u64, from: u32, to_input: bool| {
        run(1, move |x, y| unsafe {
            for i in 0..4 {
                Shared::<f64>::at(0).store(32 * i + warp::lane_id(), 1.0);
            }
            ptx::fence_proxy_async();
            warp::sync_warp(ALL);
            if warp::lane_id() == 0 {
                let target = if to_input { x } else { y };
                ptx::bulk_store(target.address(into), Shared::<f64>::at(0).address(from), 256); // moved back
                ptx::bulk_commit_group();
                ptx::bulk_wait_group::<0>();
            }
        })
    };
    fine(store(32, 96, false));
    expect(store(34, 0, false), OutOfBounds, &[&line("moved back"), "operand: y, element 34"]);
    expect(store(0, 0, true), ReadOnlyWritten, &[&line("moved back"), "operand: x"]);
    expect(store(0, 98, false), Uninitialised, &[&line("moved back"), "operand: shared memory, element 128"]);
    expect(store(1, 0, false), Misaligned, &["operand: y"]);
    expect(store(0, 1, false), Misaligned, &["operand: shared memory"]);
}

#[test]
fn an_mbarrier_is_made_once_and_seen_behind_a_barrier_and_a_fence() {
    let made = |times: u32, arrivals: u32, fence: bool, sync: bool| {
        run(1, move |x, _| unsafe {
            if warp::lane_id() == 0 {
                for _ in 0..times {
                    ptx::mbarrier_init(mbarrier(), arrivals); // made here
                }
                if fence {
                    ptx::fence_proxy_async();
                }
                load(256, x);
            }
            if sync {
                warp::sync_warp(ALL);
            }
            ptx::mbarrier_wait(mbarrier(), 0); // used
        })
    };
    fine(made(1, 1, true, true));
    expect(made(0, 1, true, true), MbarrierMisused, &[&line("expected"), "no thread of its block has initialised"]);
    expect(made(2, 1, true, true), MbarrierMisused, &[&line("made here"), "initialised again"]);
    expect(made(1, 0, true, true), MbarrierMisused, &[&line("made here"), "0 arrivals"]);
    expect(made(1, 1, false, true), ProxyUnfenced, &[&line("loaded"), &line("made here")]);
    expect(made(1, 1, true, false), SharedRace, &[&line("used"), &line("made here"), "no barrier and no sync_warp"]);
    expect(made(1, 2, true, true), BarrierMissed, &[&line("used"), "1 of its 2 arrivals are missing"]);

    let at = |first: u32| run(1, move |_, _| unsafe { ptx::mbarrier_init(Shared::<f32>::at(first).address(0), 1) });
    expect(at(1), Misaligned, &["8 bytes at byte 4"]);
    expect(at(260), OutOfBounds, &["8 bytes from byte 1040"]);
    let data = |write: bool| {
        run(1, move |_, _| unsafe {
            start();
            if write {
                Shared::<f64>::at(128).store(0, 0.0); // as data
            }
            Shared::<f64>::at(128).load(0);
        })
    };
    expect(data(true), MbarrierMisused, &[&line("as data"), &line("made"), "writes an mbarrier"]);
    expect(data(false), MbarrierMisused, &["reads an mbarrier"]);
}

#[test]
fn a_phase_ends_with_the_bytes_that_it_expects() {
    let waited = |expected: u32, loads: u32, parity: u32| {
        run(1, move |x, _| unsafe {
            start();
            (0..loads).for_each(|_| load(expected, x));
            ptx::mbarrier_wait(mbarrier(), parity); // waited
        })
    };
    fine(waited(256, 1, 0));
    let few = ["phase 0 of an mbarrier", "expects 272 bytes, of which bulk loads bring 256", &line("waited")];
    expect(waited(272, 1, 0), BarrierMissed, &few);
    expect(waited(240, 1, 0), MbarrierMisused, &["bring 256 bytes", "expects 240", &line("loaded")]);
    expect(waited(1 << 20, 1, 0), MbarrierMisused, &["1048576 bytes", &line("expected")]);
    expect(waited(0, 0, 0), BarrierMissed, &["1 of its 1 arrivals are missing", &line("waited"), "element 0"]);
    expect(waited(256, 1, 2), MbarrierMisused, &["a parity of 2", &line("waited")]);
    expect(waited(256, 2, 0), MbarrierMisused, &["has all its arrivals: nobody has waited", &line("expected")]);
    expect(waited(256, 1, 1), AsyncInFlight, &["a block ends while a bulk load", &line("loaded")]);
    fine(waited(256, 0, 1)); // the phase before the first counts as one that has ended
}

#[test]
fn what_a_load_brought_is_seen_by_those_who_waited_and_those_who_met_them() {
    // Bit w of `waits`: warp w waits; lanes of `lanes` of it, that is.
    let seen = |waits: u32, lanes: u32, sync_warp: bool, sync_block: bool| {
        run(2, move |x, _| unsafe {
            start();
            load(256, x);
            if waits >> (thread::thread_idx_x() / 32) & 1 == 1 && lanes >> warp::lane_id() & 1 == 1 {
                ptx::mbarrier_wait(mbarrier(), 0);
            }
            if sync_warp {
                warp::sync_warp(ALL);
            }
            if sync_block {
                thread::sync_threads();
            }
            assert_eq!(Shared::<f64>::at(0).load(warp::lane_id()), f64::from(warp::lane_id()) + 0.5); // seen
        })
    };
    fine(seen(3, ALL, false, false));
    fine(seen(3, 1 << 7, true, false));
    fine(seen(2, 1 << 7, false, true));
    let unseen = ["neither it nor a thread", &line("seen"), &line("loaded")];
    expect(seen(3, 1 << 7, false, false), AsyncInFlight, &unseen);
    expect(seen(1, ALL, true, false), AsyncInFlight, &unseen);
    expect(seen(0, ALL, true, true), AsyncInFlight, &["not waited for", &line("seen"), &line("loaded")]);
}

#[test]
fn a_warp_that_waits_does_not_keep_others_from_ending_the_phase() {
    let waits = |loads: bool| {
        run(2, move |x, _| unsafe {
            let meet = |lanes: u32| warp::sync_warp(lanes);
            start();
            if thread::thread_idx_x() == 63 {
                ptx::mbarrier_wait(mbarrier(), 0); // for the other warp
            }
            if thread::thread_idx_x() >= 32 {
                // Half of its lanes wait for one that waits for the one above.
                if warp::lane_id() >= 16 {
                    meet(0xffff_0000);
                }
                meet(ALL);
            } else if loads {
                load(256, x);
            }
            thread::sync_threads();
        })
    };
    fine(waits(true));
    expect(waits(false), BarrierMissed, &[&line("for the other warp"), "thread 63 ", "never ends"]);
}

#[test]
fn a_load_overwrites_what_is_fenced_and_not_in_use() {
    let over = |fence: bool, read: bool, wait: bool| {
        run(1, move |x, y| unsafe {
            let tile = Shared::<f64>::at(0);
            tile.store(warp::lane_id(), 1.0); // written before
            if fence {
                ptx::fence_proxy_async();
            }
            start();
            if warp::lane_id() == 0 {
                ptx::bulk_store(y.address(0), tile.address(0), 256); // read by a store
                ptx::bulk_commit_group();
                if read {
                    ptx::bulk_wait_group_read::<0>();
                }
            }
            warp::sync_warp(ALL);
            load(256, x);
            if wait {
                ptx::mbarrier_wait(mbarrier(), 0);
            }
            tile.store(warp::lane_id(), 2.0); // written over
            if warp::lane_id() == 0 {
                ptx::bulk_wait_group_read::<0>();
            }
        })
    };
    fine(over(true, true, true));
    expect(over(false, true, true), ProxyUnfenced, &[&line("read by a store"), &line("written before")]);
    expect(over(true, false, true), AsyncInFlight, &[&line("loaded"), &line("read by a store"), "still to read"]);
    expect(over(true, true, false), AsyncInFlight, &[&line("written over"), &line("loaded")]);

    let own = |fence: bool| {
        run(1, move |x, _| unsafe {
            start();
            if warp::lane_id() == 0 {
                Shared::<f64>::at(0).store(3, 1.0); // own write
                if fence {
                    ptx::fence_proxy_async();
                }
            }
            load(256, x);
            ptx::mbarrier_wait(mbarrier(), 0);
        })
    };
    fine(own(true));
    expect(own(false), ProxyUnfenced, &[&line("own write"), &line("loaded"), "overwrites what its thread wrote"]);
}

#[test]
fn a_store_reads_until_its_thread_waited_for_that_and_writes_until_it_waited_for_all() {
    #[derive(Clone, Copy, PartialEq)]
    enum End {
        Whole,
        NeverClosed,
        NeverWaited,
        SourceEarly,
        SourceOfBoth,
        TargetEarly,
        TargetTwice,
    }
    let stored = |end: End| {
        run(1, move |_, y| unsafe {
            let tile = Shared::<f64>::at(0);
            tile.store(warp::lane_id(), 1.0);
            ptx::fence_proxy_async();
            warp::sync_warp(ALL);
            if warp::lane_id() != 0 {
                return;
            }
            let store = |at: u64| ptx::bulk_store(y.address(at), tile.address(0), 256); // stored
            store(0);
            if end == End::NeverClosed {
                return;
            }
            ptx::bulk_commit_group();
            if end == End::TargetTwice {
                store(0);
            }
            store(32);
            ptx::bulk_commit_group();
            match end {
                End::NeverWaited => return,
                End::SourceEarly => tile.store(0, 2.0), // too early
                End::SourceOfBoth => {
                    ptx::bulk_wait_group_read::<1>();
                    tile.store(0, 2.0); // read once
                }
                _ => ptx::bulk_wait_group_read::<0>(),
            }
            tile.store(0, 2.0);
            if end != End::TargetEarly {
                ptx::bulk_wait_group::<1>();
            }
            assert_eq!(y.load(0), 1.0); // target read
            ptx::bulk_wait_group::<0>();
            y.store(32, y.load(32) + 1.0);
        })
    };
    let counters = fine(stored(End::Whole));
    let stores = counters.operand("y").stores;
    assert_eq!((counters.bulk_stores, stores.instructions, stores.bytes_moved), (2, 3, 512 + 32));
    expect(stored(End::NeverClosed), AsyncInFlight, &["in a group never closed", &line("stored"), "thread 0 "]);
    expect(stored(End::NeverWaited), AsyncInFlight, &["ends without a wait for the reading", &line("stored")]);
    expect(stored(End::SourceEarly), AsyncInFlight, &[&line("too early"), &line("stored"), "still to read"]);
    expect(stored(End::SourceOfBoth), AsyncInFlight, &[&line("read once"), &line("stored"), "still to read"]);
    expect(stored(End::TargetEarly), AsyncInFlight, &[&line("target read"), &line("stored"), "operand: y"]);
    expect(stored(End::TargetTwice), AsyncInFlight, &[&line("stored"), "operand: y, element 0"]);
}

#[test]
fn a_store_takes_what_a_load_brought_once_it_is_there() {
    let passed = |wait: bool, touch: bool| {
        run(1, move |x, y| unsafe {
            start();
            load(256, x);
            if warp::lane_id() == 0 {
                if wait {
                    ptx::mbarrier_wait(mbarrier(), 0);
                }
                if touch {
                    Shared::<f64>::at(0).store(5, 0.0); // touched
                }
                ptx::bulk_store(y.address(0), Shared::<f64>::at(0).address(0), 256); // passed on
                ptx::bulk_commit_group();
                ptx::bulk_wait_group_read::<0>();
            }
        })
    };
    let counters = fine(passed(true, false));
    let traffic = Traffic { instructions: 1, elements: 32, bytes_used: 256, bytes_moved: 256 };
    assert_eq!((counters.operand("x").loads, counters.operand("y").stores), (traffic, traffic));
    expect(passed(false, false), AsyncInFlight, &[&line("passed on"), &line("loaded"), "not waited for"]);
    expect(passed(true, true), ProxyUnfenced, &[&line("passed on"), &line("touched"), "element 5"]);
}

#[test]
fn two_blocks_store_to_one_place() {
    let mut memory = Memory::new();
    let y = memory.output::<f64>("y", 4);
    let run = |apart: u32| {
        move |m: &Handles| unsafe {
            Shared::<f64>::at(0).store(0, 1.0);
            Shared::<f64>::at(0).store(1, 1.0);
            ptx::fence_proxy_async();
            let to = u64::from(apart * thread::block_idx_x());
            ptx::bulk_store(m.global(y).address(to), Shared::<f64>::at(0).address(0), 16); // by both
            ptx::bulk_commit_group();
            ptx::bulk_wait_group_read::<0>();
        }
    };
    expect(launch("both", 2, 1, 16).run(&mut memory, run(0)), GlobalRace, &[&line("by both"), "no fence and atomic"]);
    fine(launch("both", 2, 1, 16).run(&mut memory, run(2)));
}
