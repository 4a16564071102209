//! The kernel on the CPU, thread by thread: on stable Rust, without a GPU and without rust-src.
use own_kernels::axpy;
use simt::{FaultKind, Launch, Memory};

fn launch(blocks: u32) -> Launch<'static> {
    Launch { kernel: "axpy", grid: [blocks, 1, 1], block: [128, 1, 1], ..Launch::default() }
}

#[test]
fn every_element_is_updated_once() {
    let mut memory = Memory::new();
    let (x, y) = (memory.input("x", &[1.0_f32; 300]), memory.inout("y", &[2.0_f32; 300]));
    // SAFETY: 300 elements each.
    let run = launch(3).run(&mut memory, |m| unsafe { axpy(300, 3.0, m.global(x), m.global(y)) });
    let counters = run.unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(memory.read(y), [5.0; 300]);
    println!("efficiency of the loads of x: {}", counters.operand("x").loads.efficiency());
}

#[test]
fn an_operand_that_is_too_short_is_found() {
    let mut memory = Memory::new();
    let (x, y) = (memory.input("x", &[1.0_f32; 299]), memory.inout("y", &[2.0_f32; 300]));
    // SAFETY: the emulator checks every access.
    let run = launch(3).run(&mut memory, |m| unsafe { axpy(300, 3.0, m.global(x), m.global(y)) });
    assert_eq!(run.map(drop).map_err(|fault| fault.kind), Err(FaultKind::OutOfBounds));
}
