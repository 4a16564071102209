//! Launches: orders, seeds, ends, panics, several at once, and none at all.

#![allow(clippy::undocumented_unsafe_blocks, clippy::missing_safety_doc)]

mod common;

use common::{expect, fine, launch};
use cuda_std::prelude::*;
use lanky_simt::FaultKind::{BadLaunch, OutOfBounds, Panicked, StepLimit};
use lanky_simt::{Handles, Launch, Memory};
use std::cell::{Cell, RefCell};
use std::process::Command;

fn line(marker: &str) -> String {
    format!("tests/launches.rs:{}:", common::line(include_str!("launches.rs"), marker))
}

/// The order in which blocks and, at one place, their warps run.
fn order(seed: Option<u64>) -> Vec<(u32, u32)> {
    let order = RefCell::new(Vec::new());
    let run = |_: &Handles| {
        if warp::lane_id() == 0 {
            order.borrow_mut().push((thread::block_idx_x(), thread::thread_idx_x()));
        }
    };
    fine(Launch { seed, ..launch("order", 16, 128, 0) }.run(&mut Memory::new(), run));
    order.into_inner()
}

#[test]
fn a_seed_fixes_the_order_of_blocks_and_warps() {
    let straight: Vec<_> = (0..16).flat_map(|block| (0..4).map(move |warp| (block, 32 * warp))).collect();
    assert_eq!(order(Some(0)), straight);
    assert_eq!(order(Some(5)), order(Some(5)));
    assert_ne!(order(Some(5)), order(Some(6)));
    let (five, mut sorted) = (order(Some(5)), order(Some(5)));
    sorted.sort_unstable();
    assert_eq!(sorted, straight);
    assert_ne!(five.iter().map(|o| o.0).collect::<Vec<_>>(), straight.iter().map(|o| o.0).collect::<Vec<_>>());
    assert_ne!(five.iter().map(|o| o.1).collect::<Vec<_>>(), straight.iter().map(|o| o.1).collect::<Vec<_>>());
}

#[test]
fn a_right_kernel_gives_the_same_for_every_seed() {
    let mut memory = Memory::new();
    let x = memory.input("x", &(0..640).map(f64::from).collect::<Vec<_>>());
    let y = memory.output::<f64>("y", 640);
    let mirror = |m: &Handles| unsafe {
        let (tile, t) = (Shared::<f64>::at(0), thread::thread_idx_x());
        let first = u64::from(thread::block_idx_x() * 64);
        tile.store(t, m.global(x).load_if(true, first + u64::from(t)));
        thread::sync_threads();
        m.global(y).store(first + u64::from(t), tile.load(63 - t));
    };
    let mut run = |seed| {
        let counters = fine(Launch { seed: Some(seed), ..launch("mirror", 10, 64, 512) }.run(&mut memory, mirror));
        (counters, memory.read(y))
    };
    let first = run(0);
    assert_eq!(first.1[..2], [63.0, 62.0]);
    (1..20).for_each(|seed| assert_eq!(run(seed), first));
}

#[test]
fn the_same_seed_gives_the_same_fault() {
    let fault = |seed| {
        let mut memory = Memory::new();
        let c = memory.output::<f64>("C", 1);
        let all = |m: &Handles| unsafe { m.global(c).store(0, 1.0) };
        let launch = Launch { seed: Some(seed), ..launch("all", 50, 64, 0) };
        launch.run(&mut memory, all).expect_err("a race").to_string()
    };
    assert_eq!(fault(11), fault(11));
    assert_ne!(fault(11), fault(12));
}

#[test]
fn the_environment_gives_the_seed_where_the_launch_has_none() {
    const CHILD: &str = "LANKY_SIMT_TEST_CHILD";
    if std::env::var_os(CHILD).is_some() {
        println!("order {:?}", order(None));
        return;
    }
    let run = |seed: &str| {
        let this = std::env::current_exe().expect("the test's own path");
        let test = "the_environment_gives_the_seed_where_the_launch_has_none";
        let output =
            Command::new(this).args([test, "--exact", "--nocapture"]).env(CHILD, "1").env("SIMT_SEED", seed).output();
        let output = output.expect("the test runs");
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    };
    assert!(run("9").contains(&format!("order {:?}", order(Some(9)))));
    assert!(run("0").contains(&format!("order {:?}", order(Some(0)))));
    assert!(run("nine").contains(r#"SIMT_SEED is "nine", not a number"#));
}

#[test]
fn a_kernel_that_never_ends() {
    let mut memory = Memory::new();
    let flag = memory.inout("flag", &[0.0f32]);
    let spin = |m: &Handles| unsafe {
        while m.global(flag).load(0) == 0.0 {} // spin
    };
    let limited = |kernel| Launch { step_limit: 1000, ..launch(kernel, 1, 32, 0) };
    expect(limited("spin").run(&mut memory, spin), StepLimit, &["kernel: spin", &line("spin"), "thread 0 "]);
    let compute = |_: &Handles| {
        let mut x = 1.0f64;
        while x > 0.0 {
            x = x.fma(0.5, 1.0);
        }
    };
    expect(limited("compute").run(&mut memory, compute), StepLimit, &["kernel: compute", "thread 0 "]);
    let ask = |_: &Handles| while thread::block_dim_x() > 0 {};
    expect(limited("ask").run(&mut memory, ask), StepLimit, &["kernel: ask"]);
    let ends = |m: &Handles| unsafe { while m.global(flag).load(0) != 0.0 {} };
    fine(limited("ends").run(&mut memory, ends));
}

#[test]
fn a_lane_that_spins_lets_the_others_of_its_warp_go_on() {
    let mut memory = Memory::new();
    let flag = memory.inout("flag", &[0.0f32]);
    let run = |m: &Handles| unsafe {
        let flag = m.global(flag).address(0);
        if warp::lane_id() == 0 {
            while ptx::atom_add_u32(flag, 0) == 0 {}
        } else if warp::lane_id() == 31 {
            ptx::atom_add_u32(flag, 1);
        }
    };
    fine(launch("handover", 1, 32, 0).run(&mut memory, run));
}

#[test]
fn a_panic_keeps_its_message_and_the_emulator_goes_on() {
    let mut memory = Memory::new();
    let x = memory.input("x", &[1.0f32; 32]);
    let run = |at: usize| {
        move |m: &Handles| unsafe {
            let table = [1, 2, 3];
            m.global(x).load(u64::from(warp::lane_id())); // before the panic
            assert!(warp::lane_id() < 5 || table[at % 4] > 0, "never");
        }
    };
    let outcome = launch("table", 1, 32, 0).run(&mut memory, run(3));
    let parts = [
        "index out of bounds: the len is 3 but the index is 3",
        "kernel: table",
        "thread 5 ",
        &line("before the panic"),
    ];
    expect(outcome, Panicked, &parts);
    fine(launch("table", 1, 32, 0).run(&mut memory, run(2)));
    let dropped = Cell::new(0);
    struct Count<'a>(&'a Cell<u32>);
    impl Drop for Count<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }
    let held = |m: &Handles| unsafe {
        let _count = Count(&dropped);
        m.global(x).load(u64::from(thread::thread_idx_x()));
    };
    expect(launch("held", 1, 64, 0).run(&mut memory, held), OutOfBounds, &["element 32"]);
    assert_eq!(dropped.get(), 64, "threads that a fault stops are unwound");
}

#[test]
fn launches_in_several_threads_at_once() {
    let work = |add: u32| {
        let mut memory = Memory::new();
        let x = memory.inout("x", &[0.0f32; 256]);
        let run = |m: &Handles| unsafe {
            let (x, i) = (m.global(x), u64::from(thread::index_1d()));
            for _ in 0..100 {
                x.store(i, x.load(i) + add as f32);
                thread::sync_threads();
            }
        };
        fine(launch("add", 4, 64, 0).run(&mut memory, run));
        assert_eq!(memory.read(x), [100.0 * add as f32; 256]);
    };
    std::thread::scope(|scope| (1..5).for_each(|add| drop(scope.spawn(move || work(add)))));
}

#[test]
fn impossible_launches() {
    let run = |launch: Launch| launch.run(&mut Memory::new(), |_| ());
    let plain = Launch { seed: Some(0), ..Launch::default() };
    fine(run(plain));
    expect(run(Launch { block: [32, 33, 1], ..plain }), BadLaunch, &["kernel: kernel", "[32, 33, 1]"]);
    expect(run(Launch { block: [0, 1, 1], ..plain }), BadLaunch, &["threads"]);
    expect(run(Launch { grid: [1, 0, 1], ..plain }), BadLaunch, &["blocks"]);
    expect(run(Launch { grid: [1, 65536, 1], ..plain }), BadLaunch, &["65536"]);
    expect(run(Launch { shared_bytes: 228 << 10, ..plain }), BadLaunch, &["shared memory"]);
}

#[test]
fn indices_along_three_axes() {
    let seen = RefCell::new(Vec::new());
    let run = |_: &Handles| {
        assert_eq!((thread::grid_dim_x(), thread::grid_dim_y(), thread::grid_dim_z()), (2, 3, 1));
        assert_eq!((thread::block_dim_x(), thread::block_dim_y(), thread::block_dim_z()), (2, 1, 2));
        let block = [thread::block_idx_x(), thread::block_idx_y(), thread::block_idx_z()];
        let thread = [thread::thread_idx_x(), thread::thread_idx_y(), thread::thread_idx_z()];
        seen.borrow_mut().push((block, thread, warp::lane_id()));
    };
    let launch = Launch { grid: [2, 3, 1], block: [2, 1, 2], seed: Some(0), ..Launch::default() };
    fine(launch.run(&mut Memory::new(), run));
    let seen = seen.into_inner();
    assert_eq!(seen.len(), 24);
    assert_eq!(seen[..4].iter().map(|s| s.1).collect::<Vec<_>>(), [[0, 0, 0], [1, 0, 0], [0, 0, 1], [1, 0, 1]]);
    assert_eq!(seen[..4].iter().map(|s| s.2).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!((seen[4].0, seen[8].0), ([1, 0, 0], [0, 1, 0]));
}

#[test]
fn a_kernel_on_memory_of_someone_elses() {
    let mut data = vec![1.0f32; 100];
    let x = Global::on_host("x", data.as_mut_ptr(), 100);
    let scale = |n: u64| {
        move || unsafe {
            let i = u64::from(thread::index_1d());
            if i < n {
                x.store(i, 3.0 * x.load(i));
            }
        }
    };
    let counters = fine(lanky_simt::launch([4, 1, 1], [32, 1, 1], 0, scale(100)));
    assert_eq!(counters.operand("x").stores.elements, 100);
    expect(lanky_simt::launch([4, 1, 1], [32, 1, 1], 0, scale(101)), OutOfBounds, &["operand: x, element 100"]);
    let race = || unsafe { x.store(0, 1.0) };
    expect(lanky_simt::launch([1; 3], [2, 1, 1], 0, race), lanky_simt::FaultKind::GlobalRace, &["operand: x"]);
    assert_eq!((&data[1..96], &data[96..]), (&[9.0; 95][..], &[3.0; 4][..]), "the last warp loads before it stores");
}

#[test]
fn an_instruction_outside_of_a_launch_says_so() {
    fine(Launch::default().run(&mut Memory::new(), |_| ()));
    let panic = std::panic::catch_unwind(thread::thread_idx_x).expect_err("no panic");
    let text = panic.downcast_ref::<String>().cloned().or(panic.downcast_ref::<&str>().map(|s| s.to_string()));
    assert!(text.is_some_and(|text| text.contains("outside of a launch")));
    assert_eq!(2.0f64.fma(3.0, 1.0), 7.0, "arithmetic is no instruction of a GPU thread");
}

#[test]
fn a_kernel_may_print() {
    let run =
        |_: &Handles| println!("thread {} of block {}: {:?}", thread::thread_idx_x(), thread::block_idx_x(), [1.5; 4]);
    fine(launch("printing", 2, 2, 0).run(&mut Memory::new(), run));
}
