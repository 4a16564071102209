//! The kernels that measure ceilings: they do what their rate is counted by.

use crate::harness::order;
use cuda_std::Global;
use lanky_kernels::ceiling::arithmetic::{FMAS_A_ROUND, MMAS_A_ROUND};
use lanky_kernels::ceiling::arithmetic::{dfma_ceiling_t256, dmma_ceiling_t256, sfma_ceiling_t256};
use lanky_kernels::ceiling::memory::{
    TILE, copy_ceiling_t256, read_ceiling_t256, update_ceiling_t256, write_ceiling_t256,
};
use model::variants::CEILING_THREADS;
use simt::{Counters, Handles, Launch, Memory};

/// Words of 16 bytes, and blocks: none, one tile, more tiles than blocks, more blocks than tiles.
const SIZES: [(u64, u32); 5] = [(0, 1), (TILE, 1), (3 * TILE, 2), (2 * TILE, 3), (TILE, 4)];

fn run(memory: &mut Memory, kernel: &str, blocks: u32, thread: impl Fn(&Handles)) -> Counters {
    println!("{kernel}, {blocks} blocks");
    let seed = order(format_args!("{kernel} {blocks}"));
    let launch = Launch { kernel, grid: [blocks, 1, 1], block: [CEILING_THREADS, 1, 1], seed, ..Launch::default() };
    launch.run(memory, thread).unwrap_or_else(|fault| panic!("{fault}"))
}

#[test]
fn reading_loads_every_byte_once_and_writes_nothing() {
    for (words, blocks) in SIZES {
        let mut memory = Memory::new();
        let data = memory.input("data", &vec![0.0f32; words as usize * 4]);
        let out = memory.output::<f32>("out", 1);
        // SAFETY: the operands hold what the kernel's contract says; the emulator checks.
        let thread = |m: &Handles| unsafe { read_ceiling_t256(words, m.global(data), m.global(out)) };
        let counters = run(&mut memory, "read_ceiling_t256", blocks, thread);
        assert_eq!(counters.operand("data").loads.bytes_moved, 16 * words);
        assert_eq!(memory.written(out), [false]);
    }
}

/// What the operand that is written begins with: no kernel leaves that, nor what another has to.
fn before(at: usize) -> f64 {
    (3 * at + 2) as f64
}

/// The test's kernels in doubles: copying, writing and updating `words` words.
fn moved(kernel: &str, words: u64, blocks: u32, run_kernel: impl Fn(Global<f64>, Global<f64>)) -> (Counters, Vec<f64>) {
    let mut memory = Memory::new();
    let values = |value: fn(usize) -> f64| -> Vec<f64> { (0..2 * words as usize).map(value).collect() };
    let (from, to) = (memory.input("from", &values(|at| at as f64)), memory.inout("to", &values(before)));
    let counters = run(&mut memory, kernel, blocks, |m| run_kernel(m.global(from), m.global(to)));
    (counters, memory.read(to))
}

#[test]
fn copying_writing_and_updating_move_every_byte_once() {
    for (words, blocks) in SIZES {
        let bytes = 16 * words;
        let traffic = |counters: &Counters| {
            let (from, to) = (counters.operand("from"), counters.operand("to"));
            [from.loads.bytes_moved, to.loads.bytes_moved, to.stores.bytes_moved]
        };
        // SAFETY: both operands hold 16 · words bytes; the emulator checks.
        let copy = |from, to| unsafe { copy_ceiling_t256(words, from, to) };
        let (counters, to) = moved("copy_ceiling_t256", words, blocks, copy);
        assert_eq!(traffic(&counters), [bytes, 0, bytes]);
        assert!(to.iter().enumerate().all(|(at, &value)| value == at as f64));

        // SAFETY: as above.
        let (counters, to) =
            moved("write_ceiling_t256", words, blocks, |_, to| unsafe { write_ceiling_t256(words, to) });
        assert_eq!(traffic(&counters), [0, 0, bytes]);
        assert!(to.iter().all(|&value| value == 1.0));

        // SAFETY: as above.
        let update = |_, to| unsafe { update_ceiling_t256(words, to) };
        let (counters, to) = moved("update_ceiling_t256", words, blocks, update);
        assert_eq!(traffic(&counters), [0, bytes, bytes]);
        assert!(to.iter().enumerate().all(|(at, &value)| value == before(at) / 2.0));
    }
}

#[test]
fn multiplying_does_what_it_is_counted_for() {
    for rounds in [0, 1, 5] {
        let threads = 2 * CEILING_THREADS as usize;
        let mut memory = Memory::new();
        let (single, double) = (memory.output::<f32>("single", threads), memory.output::<f64>("double", threads));
        let sums = memory.output::<f64>("sums", threads);
        let work = u64::from(rounds) * threads as u64;

        // SAFETY: an element a thread; the emulator checks.
        let thread = |m: &Handles| unsafe { sfma_ceiling_t256(rounds, 0.5, m.global(single)) };
        assert_eq!(run(&mut memory, "sfma_ceiling_t256", 2, thread).fma, work * FMAS_A_ROUND);
        assert!(memory.read(single).iter().all(|&value| value == 16.0));

        // SAFETY: as above.
        let thread = |m: &Handles| unsafe { dfma_ceiling_t256(rounds, 0.5, m.global(double)) };
        assert_eq!(run(&mut memory, "dfma_ceiling_t256", 2, thread).fma, work * FMAS_A_ROUND);
        assert!(memory.read(double).iter().all(|&value| value == 16.0));

        // SAFETY: as above.
        let thread = |m: &Handles| unsafe { dmma_ceiling_t256(rounds, 1.0, m.global(sums)) };
        assert_eq!(run(&mut memory, "dmma_ceiling_t256", 2, thread).mma, work / 32 * MMAS_A_ROUND);
        let expected = f64::from(rounds) * 64.0 * MMAS_A_ROUND as f64;
        assert!(memory.read(sums).iter().all(|&value| value == expected));
    }
}
