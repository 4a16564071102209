//! What an emulated thread and an emulated access cost: `cargo run --release -p lanky-simt --example cost` prints the
//! figures of the crate's documentation.

#![allow(clippy::undocumented_unsafe_blocks, reason = "every access is within the operands, or the emulator stops it")]

use cuda_std::prelude::*;
use lanky_simt::{Fault, Handles, Launch, Memory};
use std::hint::black_box;
use std::time::Instant;

/// Nanoseconds for each of `count` things that a launch does in 256 blocks of 128 threads; the least of five.
fn measure(what: &str, count: u64, memory: &mut Memory, run: impl Fn(&Handles)) -> Result<(), Box<Fault>> {
    let launch =
        Launch { kernel: "cost", grid: [256, 1, 1], block: [128, 1, 1], shared_bytes: 4096, ..Launch::default() };
    let mut least = f64::INFINITY;
    for _ in 0..5 {
        let start = Instant::now();
        launch.run(memory, &run)?;
        least = least.min(start.elapsed().as_secs_f64() * 1e9 / (256 * 128 * count) as f64);
    }
    println!("{what}: {least:.1} ns");
    Ok(())
}

fn main() -> Result<(), Box<Fault>> {
    const ROUNDS: u32 = 200;
    let mut memory = Memory::new();
    let (x, c) = (memory.input("x", &vec![1.0f64; 256 * 128]), memory.inout("C", &vec![1.0f64; 256 * 128]));
    let index = || u64::from(thread::block_idx_x() * 128 + thread::thread_idx_x());
    measure("a thread that does nothing", 1, &mut memory, |_| ())?;
    measure("a load of an input", ROUNDS.into(), &mut memory, |m| unsafe {
        for _ in 0..ROUNDS {
            black_box(m.global(x).load_if(true, index()));
        }
    })?;
    measure("a load of an input, all lanes the same element", ROUNDS.into(), &mut memory, |m| unsafe {
        for round in 0..ROUNDS {
            black_box(m.global(x).load_if(true, round.into()));
        }
    })?;
    measure("a load from shared memory, all lanes the same element", ROUNDS.into(), &mut memory, |_| unsafe {
        let tile = Shared::<f64>::at(0);
        tile.store(thread::thread_idx_x(), 1.0);
        thread::sync_threads();
        for round in 0..ROUNDS {
            black_box(tile.load(round % 128));
        }
    })?;
    measure("a load and a store of an operand that is read and written", ROUNDS.into(), &mut memory, |m| unsafe {
        (0..ROUNDS).for_each(|_| m.global(c).store(index(), m.global(c).load(index())));
    })?;
    measure("a store to and a load from shared memory", ROUNDS.into(), &mut memory, |_| unsafe {
        let (tile, t) = (Shared::<f64>::at(0), thread::thread_idx_x());
        for _ in 0..ROUNDS {
            tile.store(t, 1.0);
            black_box(tile.load(t));
        }
    })?;
    measure("a barrier", ROUNDS.into(), &mut memory, |_| (0..ROUNDS).for_each(|_| thread::sync_threads()))?;
    measure("a shuffle", ROUNDS.into(), &mut memory, |_| unsafe {
        for _ in 0..ROUNDS {
            black_box(warp::warp_shuffle_xor(u32::MAX, 1u32, 1, 32));
        }
    })?;
    measure("a fused multiply-add", 10_000, &mut memory, |_| {
        black_box((0..10_000).fold(1.0f64, |x, _| x.fma(0.5, 1.0)));
    })
}
