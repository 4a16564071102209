//! A ring of tiles for each warp: that copies, that computes, and that does so wrongly.

use crate::common::{self, expect, fine, launch};
use crate::{ALL, numbers};
use cuda_std::prelude::*;
use lanky_simt::FaultKind::{AsyncInFlight, ProxyUnfenced, SharedRace};
use lanky_simt::{Handles, Launch, Memory};

fn line(marker: &str) -> String {
    format!("tests/bulk/ring.rs:{}:", common::line(include_str!("ring.rs"), marker))
}

/// Tiles that a warp has in shared memory.
const SLOTS: u32 = 3;
/// Elements of a tile: two a lane.
const LEN: u32 = 64;
const BYTES: u32 = 8 * LEN;

/// What is wrong with a ring.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Wrong {
    Nothing,
    NoWait,
    OneWaits,
    OtherParity,
    NoSyncBeforeRefill,
    NoReadWait,
    NoSyncBehindReadWait,
    NoFence,
    OneFence,
    FenceBeforeWrite,
    FenceBehindSync,
    NoSyncBeforeStore,
    NoWaitAtEnd,
}

/// A warp's part of shared memory.
struct Ring {
    warp: u32,
    warps: u32,
}

impl Ring {
    fn mine() -> Self {
        Ring { warp: thread::thread_idx_x() / 32, warps: thread::block_dim_x() / 32 }
    }

    fn bytes(warps: u32) -> u32 {
        warps * ((SLOTS + 2) * BYTES + 8 * SLOTS)
    }

    /// Where tile t of this warp is copied to.
    fn slot(&self, t: u32) -> Shared<f64> {
        Shared::at((self.warp * SLOTS + t % SLOTS) * LEN)
    }

    /// Where its result is put.
    fn result(&self, t: u32) -> Shared<f64> {
        Shared::at((self.warps * SLOTS + self.warp * 2 + t % 2) * LEN)
    }

    fn arrived(&self, t: u32) -> ptx::SharedAddress {
        Shared::<f64>::at(self.warps * (SLOTS + 2) * LEN).address(self.warp * SLOTS + t % SLOTS)
    }

    /// The first element of tile t.
    fn tile(&self, t: u32) -> u64 {
        let block = t * thread::grid_dim_x() + thread::block_idx_x();
        u64::from((block * self.warps + self.warp) * LEN)
    }

    unsafe fn load(&self, t: u32, x: Global<f64>) {
        let expect = |now: bool| {
            if now {
                unsafe { ptx::mbarrier_expect(self.arrived(t), BYTES) }
            }
        };
        expect(t % 2 == 0); // before or after: the phase lacks its arrival
        unsafe { ptx::bulk_load(self.slot(t).address(0), x.address(self.tile(t)), BYTES, self.arrived(t)) }; // tile loaded
        expect(t % 2 == 1);
    }

    /// Lane 0 makes the mbarriers and loads the first tiles.
    unsafe fn start(&self, tiles: u32, x: Global<f64>) {
        if warp::lane_id() == 0 {
            for t in 0..SLOTS {
                unsafe { ptx::mbarrier_init(self.arrived(t), 1) };
            }
            ptx::fence_proxy_async();
            for t in 0..SLOTS.min(tiles) {
                unsafe { self.load(t, x) };
            }
        }
        unsafe { warp::sync_warp(ALL) };
    }
}

/// y ← x by lane 0 of each warp: loads ahead, and stores of what was loaded.
unsafe fn copy(tiles: u32, x: Global<f64>, y: Global<f64>) {
    let ring = Ring::mine();
    unsafe { ring.start(tiles, x) };
    if warp::lane_id() != 0 {
        return;
    }
    for t in 0..tiles {
        unsafe {
            ptx::mbarrier_wait(ring.arrived(t), t / SLOTS % 2);
            ptx::bulk_store(y.address(ring.tile(t)), ring.slot(t).address(0), BYTES);
        }
        ptx::bulk_commit_group();
        ptx::bulk_wait_group_read::<1>();
        if t > 0 && t - 1 + SLOTS < tiles {
            unsafe { ring.load(t - 1 + SLOTS, x) };
        }
    }
    ptx::bulk_wait_group_read::<0>();
}

/// Of each tile of y: twice that of x, from its end to its beginning.
unsafe fn transform(wrong: Wrong, tiles: u32, x: Global<f64>, y: Global<f64>) {
    let (ring, lane) = (Ring::mine(), warp::lane_id());
    unsafe { ring.start(tiles, x) };
    for t in 0..tiles {
        let (slot, result) = (ring.slot(t), ring.result(t));
        if wrong != Wrong::NoWait && (wrong != Wrong::OneWaits || lane == 0) {
            let other = u32::from(wrong == Wrong::OtherParity);
            unsafe { ptx::mbarrier_wait(ring.arrived(t), (t / SLOTS + other) % 2) };
        }
        let pair = [0, 1].map(|i| 2.0 * unsafe { slot.load(LEN - 1 - 2 * lane - i) }); // tile read
        let wait = || {
            if lane == 0 && wrong != Wrong::NoReadWait {
                ptx::bulk_wait_group_read::<1>(); // reading waited for
            }
        };
        if wrong != Wrong::NoSyncBehindReadWait {
            wait();
        }
        if wrong != Wrong::NoSyncBeforeRefill {
            unsafe { warp::sync_warp(ALL) };
        }
        if wrong == Wrong::NoSyncBehindReadWait {
            wait();
        }
        if lane == 0 && t + SLOTS < tiles {
            unsafe { ring.load(t + SLOTS, x) };
        }
        if wrong == Wrong::FenceBeforeWrite {
            ptx::fence_proxy_async();
        }
        for i in 0..2 {
            unsafe { result.store(2 * lane + i, pair[i as usize]) }; // result written
        }
        match wrong {
            Wrong::NoFence | Wrong::FenceBeforeWrite | Wrong::FenceBehindSync => {}
            Wrong::OneFence if lane != 0 => {}
            _ => ptx::fence_proxy_async(),
        }
        if wrong != Wrong::NoSyncBeforeStore {
            unsafe { warp::sync_warp(ALL) };
        }
        if wrong == Wrong::FenceBehindSync {
            ptx::fence_proxy_async();
        }
        if lane == 0 {
            unsafe { ptx::bulk_store(y.address(ring.tile(t)), result.address(0), BYTES) }; // result stored
            ptx::bulk_commit_group();
        }
    }
    if lane == 0 && wrong != Wrong::NoWaitAtEnd {
        ptx::bulk_wait_group_read::<0>();
    }
}

fn ring_launch(kernel: &str, blocks: u32, warps: u32, seed: u64) -> Launch<'_> {
    Launch { seed: Some(seed), ..launch(kernel, blocks, 32 * warps, Ring::bytes(warps)) }
}

#[test]
fn a_ring_copies_in_any_order() {
    for seed in 0..12 {
        for (blocks, warps, tiles) in [(1, 1, 0), (1, 1, 1), (2, 3, 2), (3, 2, SLOTS), (2, 4, 4 * SLOTS + 1)] {
            let x = numbers(blocks * warps * tiles * LEN);
            let mut memory = Memory::new();
            let (gx, gy) = (memory.input("x", &x), memory.output::<f64>("y", x.len()));
            let run = |m: &Handles| unsafe { copy(tiles, m.global(gx), m.global(gy)) };
            let counters = fine(ring_launch("copy", blocks, warps, seed).run(&mut memory, run));
            assert_eq!(memory.read(gy), x);
            let copies = u64::from(blocks * warps * tiles);
            assert_eq!((counters.bulk_loads, counters.bulk_stores), (copies, copies));
            assert_eq!(memory.written(gy), vec![true; x.len()]);
        }
    }
}

#[test]
fn a_ring_computes_in_any_order_and_again_in_the_next_launch() {
    for seed in 0..12 {
        for (blocks, warps, tiles) in [(1, 1, 1), (2, 3, 2), (1, 1, 7), (2, 4, 4 * SLOTS + 1)] {
            let x = numbers(blocks * warps * tiles * LEN);
            let mut memory = Memory::new();
            let (gx, gy) = (memory.input("x", &x), memory.output::<f64>("y", x.len()));
            let run = |m: &Handles| unsafe { transform(Wrong::Nothing, tiles, m.global(gx), m.global(gy)) };
            for _ in 0..2 {
                fine(ring_launch("transform", blocks, warps, seed).run(&mut memory, run));
            }
            let twice = |tile: &[f64]| tile.iter().rev().map(|x| 2.0 * x).collect::<Vec<_>>();
            assert_eq!(memory.read(gy), x.chunks(LEN as usize).flat_map(twice).collect::<Vec<_>>());
        }
    }
}

#[test]
fn each_fault_of_a_ring_is_found() {
    let (tiles, warps) = (2 * SLOTS + 1, 2);
    let x = numbers(warps * tiles * LEN);
    for (wrong, kind, parts) in [
        (Wrong::NoWait, AsyncInFlight, vec!["tile read", "tile loaded"]),
        (Wrong::OneWaits, AsyncInFlight, vec!["tile read", "tile loaded"]),
        (Wrong::OtherParity, AsyncInFlight, vec!["tile read", "tile loaded"]),
        (Wrong::NoSyncBeforeRefill, SharedRace, vec!["tile loaded", "tile read"]),
        (Wrong::NoReadWait, AsyncInFlight, vec!["result written", "result stored"]),
        (Wrong::NoSyncBehindReadWait, SharedRace, vec!["result written", "result stored"]),
        (Wrong::NoFence, ProxyUnfenced, vec!["result stored", "result written"]),
        (Wrong::OneFence, ProxyUnfenced, vec!["result stored", "result written"]),
        (Wrong::FenceBeforeWrite, ProxyUnfenced, vec!["result stored", "result written"]),
        (Wrong::FenceBehindSync, ProxyUnfenced, vec!["result stored", "result written"]),
        (Wrong::NoSyncBeforeStore, SharedRace, vec!["result stored", "result written"]),
        (Wrong::NoWaitAtEnd, AsyncInFlight, vec!["result stored"]),
    ] {
        for seed in 0..6 {
            let mut memory = Memory::new();
            let (gx, gy) = (memory.input("x", &x), memory.output::<f64>("y", x.len()));
            let run = |m: &Handles| unsafe { transform(wrong, tiles, m.global(gx), m.global(gy)) };
            let outcome = ring_launch("transform", 1, warps, seed).run(&mut memory, run);
            println!("{wrong:?}, seed {seed}:");
            let lines: Vec<_> = parts.iter().map(|part| line(part)).collect();
            expect(outcome, kind, &lines.iter().map(String::as_str).collect::<Vec<_>>());
            // Nothing stays under way for the next launch.
            let right = |m: &Handles| unsafe { transform(Wrong::Nothing, tiles, m.global(gx), m.global(gy)) };
            fine(ring_launch("transform", 1, warps, seed).run(&mut memory, right));
        }
    }
}
