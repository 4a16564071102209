//! What an emulated thread and an emulated access cost: `cargo test --release -p lanky-simt --test cost -- --ignored
//! --nocapture` prints the figures of the crate's documentation.

#![allow(clippy::undocumented_unsafe_blocks, clippy::missing_safety_doc)]

mod common;

use common::{fine, launch};
use cuda_std::prelude::*;
use lanky_simt::{Handles, Memory};
use std::hint::black_box;
use std::time::Instant;

/// Nanoseconds for each of `count` things that a launch does in 256 blocks of 128 threads; the least of five.
fn measure(what: &str, count: u64, memory: &mut Memory, run: impl Fn(&Handles)) {
    let times = (0..5).map(|_| {
        let start = Instant::now();
        fine(launch("cost", 256, 128, 4096).run(memory, &run));
        start.elapsed().as_secs_f64() * 1e9 / (256 * 128 * count) as f64
    });
    println!("{what}: {:.1} ns", times.fold(f64::INFINITY, f64::min));
}

#[test]
#[ignore = "measures, and asserts nothing"]
fn costs() {
    const ROUNDS: u32 = 200;
    let mut memory = Memory::new();
    let (x, c) = (memory.input("x", &vec![1.0f64; 256 * 128]), memory.inout("C", &vec![1.0f64; 256 * 128]));
    let index = || u64::from(thread::block_idx_x() * 128 + thread::thread_idx_x());
    measure("a thread that does nothing", 1, &mut memory, |_| ());
    measure("a load of an input", ROUNDS.into(), &mut memory, |m| unsafe {
        for _ in 0..ROUNDS {
            black_box(m.global(x).load_if(true, index()));
        }
    });
    measure("a load of an input, all lanes the same element", ROUNDS.into(), &mut memory, |m| unsafe {
        for round in 0..ROUNDS {
            black_box(m.global(x).load_if(true, round.into()));
        }
    });
    measure("a load from shared memory, all lanes the same element", ROUNDS.into(), &mut memory, |_| unsafe {
        let tile = Shared::<f64>::at(0);
        tile.store(thread::thread_idx_x(), 1.0);
        thread::sync_threads();
        for round in 0..ROUNDS {
            black_box(tile.load(round % 128));
        }
    });
    measure("a load and a store of an operand that is read and written", ROUNDS.into(), &mut memory, |m| unsafe {
        (0..ROUNDS).for_each(|_| m.global(c).store(index(), m.global(c).load(index())));
    });
    measure("a store to and a load from shared memory", ROUNDS.into(), &mut memory, |_| unsafe {
        let (tile, t) = (Shared::<f64>::at(0), thread::thread_idx_x());
        for _ in 0..ROUNDS {
            tile.store(t, 1.0);
            black_box(tile.load(t));
        }
    });
    measure("a barrier", ROUNDS.into(), &mut memory, |_| (0..ROUNDS).for_each(|_| thread::sync_threads()));
    measure("a shuffle", ROUNDS.into(), &mut memory, |_| unsafe {
        for _ in 0..ROUNDS {
            black_box(warp::warp_shuffle_xor(u32::MAX, 1u32, 1, 32));
        }
    });
    measure("a fused multiply-add", 10_000, &mut memory, |_| {
        black_box((0..10_000).fold(1.0f64, |x, _| x.fma(0.5, 1.0)));
    });
}
