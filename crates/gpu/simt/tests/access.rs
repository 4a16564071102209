//! Accesses that are wrong by themselves: out of bounds, misaligned, uninitialised, of read-only memory.

// Wrong kernels are what is tested: the emulator stops them.
#![allow(clippy::undocumented_unsafe_blocks, clippy::missing_safety_doc)]

mod common;

use common::{expect, fine, launch};
use cuda_std::prelude::*;
use lanky_simt::{FaultKind, Handles, Memory, null};

fn line(marker: &str) -> String {
    format!("tests/access.rs:{}:", common::line(include_str!("access.rs"), marker))
}

/// y ← 2 x, without a look at n.
#[kernel]
pub unsafe fn double_all(x: Global<f32>, y: Global<f32>) {
    let i = u64::from(thread::index_1d());
    // SAFETY: that is the question.
    unsafe { y.store(i, 2.0 * x.load_if(true, i)) }; // double_all
}

/// y ← 2 x.
#[kernel]
pub unsafe fn double(n: u64, x: Global<f32>, y: Global<f32>) {
    let i = u64::from(thread::index_1d());
    if i < n {
        // SAFETY: i < n.
        unsafe { y.store(i, 2.0 * x.load_if(true, i)) };
    }
}

#[test]
fn out_of_bounds_of_an_operand() {
    let mut memory = Memory::new();
    let (x, y) = (memory.input("x", &[1.0f32; 40]), memory.output::<f32>("y", 64));
    let run = |m: &Handles| unsafe { double_all(m.global(x), m.global(y)) };
    let fault = expect(
        launch("double_all", 2, 32, 0).run(&mut memory, run),
        FaultKind::OutOfBounds,
        &[
            "kernel: double_all",
            "block (1, 0, 0), thread 8 (warp 0, lane 8)",
            &line("double_all"),
            "operand: x, element 40",
            "of 40",
        ],
    );
    assert_eq!(
        (fault.block(), fault.thread(), fault.operand, fault.index),
        (Some([1, 0, 0]), Some(8), Some("x"), Some(40))
    );
    assert!(memory.guards_intact());

    let run = |m: &Handles| unsafe { double(40, m.global(x), m.global(y)) };
    fine(launch("double", 2, 32, 0).run(&mut memory, run));
    assert_eq!(memory.read(y)[..40], [2.0; 40]);
    assert!(memory.written(y)[..40].iter().all(|&w| w) && !memory.written(y)[40..].iter().any(|&w| w));
}

#[test]
fn an_index_that_wraps_around_is_out_of_bounds() {
    let mut memory = Memory::new();
    let x = memory.input("x", &[1.0f32; 64]);
    let run = |m: &Handles| unsafe {
        m.global(x).load((-1i64) as u64);
    };
    expect(
        launch("wrapping", 1, 1, 0).run(&mut memory, run),
        FaultKind::OutOfBounds,
        &["element 18446744073709551615"],
    );
}

#[test]
fn of_pieces_that_are_far_apart_each_has_its_elements_and_nothing_is_between_them() {
    let far = (1 << 32) + 64;
    let mut memory = Memory::new();
    memory.pieces(Some((4, far)));
    let (x, y) = (
        memory.input("x", &[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 0.0, 0.0, 0.0]),
        memory.output::<f32>("y", 12),
    );
    let run = |m: &Handles| unsafe {
        let (x, y) = (m.global(x), m.global(y));
        y.store(2 * far as u64 + 1, x.load(far as u64 + 3) + x.load(2));
    };
    fine(launch("far", 1, 1, 0).run(&mut memory, run));
    assert_eq!(memory.read(y)[9], 11.0);
    assert_eq!(memory.written(y).iter().filter(|&&written| written).count(), 1);
    // The last is behind what the low 32 bits of an offset say; a piece's end, and the operand's, are ends.
    for index in [4, 64, far as u64 - 1, 2 * far as u64 - 1] {
        let run = |m: &Handles| unsafe {
            m.global(x).load(index);
        };
        let says = format!("element {index}, between two pieces");
        expect(launch("between", 1, 1, 0).run(&mut memory, run), FaultKind::OutOfBounds, &["operand: x", &says]);
    }
}

#[test]
fn a_null_operand_may_not_be_touched_but_masked_loads_of_it_may_be_executed() {
    let mut memory = Memory::new();
    let y = memory.output::<f32>("y", 32);
    let run = |m: &Handles| unsafe { double_all(null("x"), m.global(y)) };
    expect(
        launch("double_all", 1, 32, 0).run(&mut memory, run),
        FaultKind::OutOfBounds,
        &["a null pointer", "operand: x, element 0", "thread 0 "],
    );
    let masked = |_: &Handles| unsafe {
        let i = u64::from(thread::thread_idx_x());
        assert_eq!(null::<f64>("x").load_if(false, i), 0.0);
        assert_eq!(null::<f64>("x").stream_if(false, i), 0.0);
    };
    let counters = fine(launch("masked", 1, 32, 0).run(&mut memory, masked));
    assert!(counters.operands.is_empty(), "{:?}", counters.operands);
}

#[test]
fn out_of_bounds_of_shared_memory() {
    let run = |elements: u32| {
        move |_: &Handles| unsafe { Shared::<f64>::at(4).store(elements * thread::thread_idx_x(), 1.0) } // shared bound
    };
    let launch = launch("tile", 1, 32, 36 * 8);
    expect(
        launch.run(&mut Memory::new(), run(2)),
        FaultKind::OutOfBounds,
        &[
            "kernel: tile",
            "thread 16 (warp 0, lane 16)",
            &line("shared bound"),
            "shared memory, element 32",
            "8 bytes from byte 288 on of 288",
        ],
    );
    fine(launch.run(&mut Memory::new(), run(1)));
}

#[test]
fn misaligned_accesses() {
    let mut memory = Memory::new();
    let x = memory.input("x", &[1.0f64; 66]);
    let wide = |first: u64| {
        move |m: &Handles| unsafe {
            m.global(x).stream_wide(first + 2 * u64::from(warp::lane_id())); // wide
        }
    };
    expect(
        launch("wide", 1, 32, 0).run(&mut memory, wide(1)),
        FaultKind::Misaligned,
        &[&line("wide"), "operand: x, element 1", "16 bytes", "thread 0 "],
    );
    fine(launch("wide", 1, 32, 0).run(&mut memory, wide(2)));

    let shared = |first: u32| {
        move |_: &Handles| unsafe {
            let tile = Shared::<f32>::at(0);
            (0..8).for_each(|i| tile.store(8 * warp::lane_id() + i, 0.0));
            tile.load_wide(8 * warp::lane_id() + first); // shared wide
        }
    };
    expect(
        launch("tile", 1, 32, 1024).run(&mut Memory::new(), shared(2)),
        FaultKind::Misaligned,
        &[&line("shared wide"), "shared memory, element 2", "at byte 8 "],
    );
    fine(launch("tile", 1, 32, 1024).run(&mut Memory::new(), shared(4)));

    let copy = |first: u32| {
        move |m: &Handles| unsafe {
            ptx::cp_async_16(Shared::<f64>::at(0).address(first), m.global(x).address(0), true); // copy
        }
    };
    expect(
        launch("copy", 1, 1, 64).run(&mut memory, copy(1)),
        FaultKind::Misaligned,
        &[&line("copy"), "shared memory"],
    );
    fine(launch("copy", 1, 1, 64).run(&mut memory, copy(2)));
}

#[test]
fn a_buffer_that_starts_inside_an_allocation() {
    let mut memory = Memory::new();
    memory.offset(1);
    let x = memory.input("x", &[1.0f64; 64]);
    let wide = |m: &Handles| unsafe {
        m.global(x).stream_wide(0);
    };
    expect(launch("wide", 1, 1, 0).run(&mut memory, wide), FaultKind::Misaligned, &["operand: x, element 0"]);
    let narrow = |m: &Handles| unsafe {
        m.global(x).load_if(true, u64::from(warp::lane_id()));
    };
    let counters = fine(launch("narrow", 1, 32, 0).run(&mut memory, narrow));
    assert_eq!((counters.operand("x").loads.bytes_used, counters.operand("x").loads.bytes_moved), (256, 288));
}

#[test]
fn uninitialised_shared_memory() {
    let run = |filled: u32| {
        move |_: &Handles| unsafe {
            let (tile, t) = (Shared::<f64>::at(0), thread::thread_idx_x());
            if t < filled {
                tile.store(t, 1.0);
            }
            thread::sync_threads();
            tile.load(63 - t); // uninitialised
        }
    };
    expect(
        launch("tile", 1, 64, 512).run(&mut Memory::new(), run(60)),
        FaultKind::Uninitialised,
        &["kernel: tile", &line("uninitialised"), "thread 0 ", "shared memory, element 63"],
    );
    fine(launch("tile", 1, 64, 512).run(&mut Memory::new(), run(64)));
}

#[test]
fn shared_memory_does_not_keep_what_the_block_before_wrote() {
    let run = |_: &Handles| unsafe {
        let tile = Shared::<f32>::at(0);
        if thread::block_idx_x() == 0 {
            tile.store(thread::thread_idx_x(), 1.0);
        }
        tile.load(thread::thread_idx_x());
    };
    expect(launch("tile", 2, 32, 128).run(&mut Memory::new(), run), FaultKind::Uninitialised, &["block (1, 0, 0)"]);
}

#[test]
fn outputs_are_read_only_where_they_were_written() {
    let mut memory = Memory::new();
    let (c, d) = (memory.output::<f64>("C", 32), memory.inout("D", &[3.0f64; 32]));
    let update = |buffer| {
        move |m: &Handles| unsafe {
            let (c, i) = (m.global::<f64>(buffer), u64::from(warp::lane_id()));
            c.store(i, 1.0 + c.load(i)); // read first
        }
    };
    expect(
        launch("update", 1, 32, 0).run(&mut memory, update(c)),
        FaultKind::Uninitialised,
        &[&line("read first"), "operand: C, element 0", "thread 0 "],
    );
    fine(launch("update", 1, 32, 0).run(&mut memory, update(d)));
    assert_eq!(memory.read(d), [4.0; 32]);

    let write = |m: &Handles| unsafe { m.global(c).store(u64::from(warp::lane_id()), 1.0) };
    fine(launch("write", 1, 32, 0).run(&mut memory, write));
    fine(launch("update", 1, 32, 0).run(&mut memory, update(c)));
    assert_eq!(memory.read(c), [2.0; 32]);

    let sum = memory.output::<f64>("sum", 1);
    let red = |m: &Handles| unsafe { ptx::red_add_f64(m.global(sum).address(0), 1.0) };
    expect(launch("red", 1, 32, 0).run(&mut memory, red), FaultKind::Uninitialised, &["operand: sum, element 0"]);
}

#[test]
fn inputs_are_not_written() {
    let mut memory = Memory::new();
    let (x, y) = (memory.input("x", &[1.0f32; 32]), memory.output::<f32>("y", 32));
    let swapped = |m: &Handles| unsafe { double_all(m.global(y), m.global(x)) };
    let store = |m: &Handles| unsafe { m.global(x).store(5, 1.0) }; // write x
    expect(
        launch("store", 1, 1, 0).run(&mut memory, store),
        FaultKind::ReadOnlyWritten,
        &["kernel: store", &line("write x"), "operand: x, element 5", "thread 0 "],
    );
    assert!(launch("swapped", 1, 32, 0).run(&mut memory, swapped).is_err());
    assert_eq!(memory.read(x), [1.0; 32]);
    let right = |m: &Handles| unsafe { double_all(m.global(x), m.global(y)) };
    fine(launch("right", 1, 32, 0).run(&mut memory, right));
}

#[test]
fn what_a_read_only_load_reads_is_not_written_in_the_same_launch() {
    let mut memory = Memory::new();
    let x = memory.inout("x", &[1.0f64; 64]);
    let run = |write_first: bool, apart: u64| {
        move |m: &Handles| unsafe {
            let (x, t) = (m.global(x), u64::from(warp::lane_id()));
            if write_first {
                x.store(t, 2.0); // written early
            }
            x.load_if(true, t + apart); // constant
            if !write_first {
                x.store(t, 2.0); // written late
            }
        }
    };
    let launch = launch("constant", 1, 32, 0);
    let early = expect(
        launch.run(&mut memory, run(true, 0)),
        FaultKind::ReadOnlyWritten,
        &[
            &line("constant"),
            "operand: x, element 0",
            "other: block (0, 0, 0), thread 0 (warp 0, lane 0), at crates/gpu/simt/tests/access.rs",
        ],
    );
    assert!(early.to_string().contains(&line("written early")));
    expect(
        launch.run(&mut memory, run(false, 0)),
        FaultKind::ReadOnlyWritten,
        &[&line("written late"), "operand: x, element 0", &line("constant")],
    );
    fine(launch.run(&mut memory, run(true, 32)));
    fine(launch.run(&mut memory, run(false, 32)));
}
