//! What mbarriers order between warps, and in one: what came before an arrival, before what comes behind a wait for its phase.

use crate::common::{self, expect, fine, launch};
use crate::{ALL, numbers};
use cuda_std::prelude::*;
use lanky_simt::FaultKind::{GlobalRace, ProxyUnfenced, SharedRace};
use lanky_simt::{Counters, Fault, Memory};

fn line(marker: &str) -> String {
    format!("tests/bulk/handed.rs:{}:", common::line(include_str!("handed.rs"), marker))
}

/// Two mbarriers, of so many arrivals, that all threads may use.
unsafe fn start(arrivals: [u32; 2]) {
    if thread::thread_idx_x() == 0 {
        for (at, arrivals) in arrivals.into_iter().enumerate() {
            unsafe { ptx::mbarrier_init(mbarrier(at as u32), arrivals) };
        }
        ptx::fence_proxy_async();
    }
    thread::sync_threads();
}

fn mbarrier(at: u32) -> ptx::SharedAddress {
    Shared::<f64>::at(128 + at).address(0)
}

/// What three warps do with 64 elements of x, and with y of as many.
fn run(kernel: impl Fn(Global<f64>, Global<f64>)) -> Result<Counters, Box<Fault>> {
    let mut memory = Memory::new();
    let (x, y) = (memory.input("x", &numbers(64)), memory.output::<f64>("y", 64));
    launch("handed", 1, 96, 1040).run(&mut memory, |m| kernel(m.global(x), m.global(y)))
}

fn warp() -> u32 {
    thread::thread_idx_x() / 32
}

#[test]
fn writes_are_seen_behind_a_wait() {
    #[derive(Clone, Copy, PartialEq)]
    enum Fault {
        None,
        NoWait,
        ArrivesFirst,
        AnotherArrives,
    }
    let seen = |fault: Fault| {
        run(move |_, _| unsafe {
            start([32, 1]);
            let tile = Shared::<f64>::at(0);
            if warp() == 0 && fault == Fault::ArrivesFirst {
                ptx::mbarrier_expect(mbarrier(0), 0);
            }
            if warp() == 0 {
                tile.store(warp::lane_id(), 1.0); // written
            }
            let arrives = if fault == Fault::AnotherArrives { 2 } else { 0 };
            if warp() == arrives && fault != Fault::ArrivesFirst {
                ptx::mbarrier_expect(mbarrier(0), 0);
            }
            if warp() == 1 {
                if fault != Fault::NoWait {
                    ptx::mbarrier_wait(mbarrier(0), 0);
                }
                // Another lane's.
                tile.load(31 - warp::lane_id()); // read
            }
        })
    };
    fine(seen(Fault::None));
    for fault in [Fault::ArrivesFirst, Fault::AnotherArrives] {
        // Whichever comes first, the other one finds it.
        expect(seen(fault), SharedRace, &[]);
    }
    assert!(seen(Fault::NoWait).is_err());
}

#[test]
fn what_is_read_is_written_over_when_all_readers_have_arrived() {
    #[derive(Clone, Copy, PartialEq)]
    enum By {
        All,
        /// One lane of each warp, behind a synchronisation of it or not.
        One {
            met: bool,
        },
        FirstWarp,
    }
    let over = |by: By, waits: bool, bulk: bool| {
        run(move |x, _| unsafe {
            start([
                if by == By::All {
                    64
                } else if by == By::FirstWarp {
                    32
                } else {
                    2
                },
                1,
            ]);
            let tile = Shared::<f64>::at(0);
            if thread::thread_idx_x() == 0 {
                for at in 0..32 {
                    tile.store(at, 0.5);
                }
                ptx::fence_proxy_async();
            }
            thread::sync_threads();
            if warp() > 0 {
                tile.load(warp::lane_id() ^ 1); // read by two
                match by {
                    By::All => ptx::mbarrier_expect(mbarrier(0), 0),
                    By::FirstWarp if warp() == 1 => ptx::mbarrier_expect(mbarrier(0), 0),
                    By::FirstWarp => {}
                    By::One { met } => {
                        if met {
                            warp::sync_warp(ALL);
                        }
                        if warp::lane_id() == 0 {
                            ptx::mbarrier_expect(mbarrier(0), 0);
                        }
                    }
                }
                return;
            }
            if waits {
                ptx::mbarrier_wait(mbarrier(0), 0);
            } else {
                // The others come first.
                for _ in 0..64 {
                    warp::sync_warp(ALL);
                }
            }
            if !bulk {
                tile.store(warp::lane_id(), 1.0); // written over
            } else if warp::lane_id() == 0 {
                ptx::mbarrier_expect(mbarrier(1), 256);
                ptx::bulk_load(tile.address(0), x.address(0), 256, mbarrier(1)); // loaded over
            }
            if bulk {
                ptx::mbarrier_wait(mbarrier(1), 0);
            }
        })
    };
    for bulk in [false, true] {
        fine(over(By::All, true, bulk));
        fine(over(By::One { met: true }, true, bulk));
        let written = line(if bulk { "loaded over" } else { "written over" });
        for (by, waits) in [(By::One { met: false }, true), (By::FirstWarp, true), (By::All, false)] {
            let found = over(by, waits, bulk);
            let Err(fault) = found else { panic!("nothing is wrong") };
            let message = fault.to_string();
            assert!(fault.kind == SharedRace && message.contains(&line("read by two")), "{message}");
            assert!(message.contains(&written), "{message}");
        }
    }
}

/// A barrier of warps that have code of their own: what lanes of one warp did is ordered among them, too.
#[test]
fn lanes_of_a_warp_are_ordered_by_a_phase_that_all_arrive_at() {
    #[derive(Clone, Copy, PartialEq)]
    enum Fault {
        None,
        /// One lane arrives for all.
        One,
        NoWait,
    }
    let through = |fault: Fault, over: bool| {
        run(move |_, _| unsafe {
            start([if fault == Fault::One { 3 } else { 96 }, 1]);
            let (tile, lane) = (Shared::<f64>::at(0), warp::lane_id());
            let own = 32 * warp();
            tile.store(own + lane, 1.0); // written
            if over {
                warp::sync_warp(ALL);
                tile.load(own + (lane ^ 1)); // read
            }
            if fault != Fault::One || lane == 0 {
                ptx::mbarrier_expect(mbarrier(0), 0);
            }
            if fault != Fault::NoWait {
                ptx::mbarrier_wait(mbarrier(0), 0);
            }
            if over {
                tile.store(own + lane, 2.0); // written over
            } else {
                tile.load(own + (lane ^ 1)); // read
            }
        })
    };
    for over in [false, true] {
        fine(through(Fault::None, over));
        for fault in [Fault::One, Fault::NoWait] {
            expect(through(fault, over), SharedRace, &[]);
        }
    }
}

/// Where several warps read a word, the one that overwrites it among them, the reads of its own lanes count as the others' do.
#[test]
fn what_warps_read_together_one_of_them_overwrites_behind_a_phase() {
    let over = |own_lanes_arrive: bool| {
        run(move |_, _| unsafe {
            start([if own_lanes_arrive { 96 } else { 65 }, 1]);
            let (tile, lane) = (Shared::<f64>::at(0), warp::lane_id());
            if warp() == 0 {
                tile.store(lane, 0.5);
            }
            thread::sync_threads();
            tile.load(lane ^ 1); // read by three
            if warp() > 0 || own_lanes_arrive || lane == 0 {
                ptx::mbarrier_expect(mbarrier(0), 0);
            }
            if warp() == 0 {
                ptx::mbarrier_wait(mbarrier(0), 0);
                tile.store(lane, 1.0); // written by one
            }
        })
    };
    fine(over(true));
    expect(over(false), SharedRace, &[&line("read by three"), &line("written by one")]);
}

#[test]
fn a_load_overwrites_what_a_fenced_thread_of_either_warp_handed_on() {
    let over = |writer: u32, fence: bool| {
        run(move |x, _| unsafe {
            start([32, 1]);
            let tile = Shared::<f64>::at(0);
            if warp() == writer {
                tile.store(warp::lane_id(), 1.0); // written before
                if fence {
                    ptx::fence_proxy_async();
                }
                ptx::mbarrier_expect(mbarrier(0), 0);
            }
            if warp() == 0 {
                ptx::mbarrier_wait(mbarrier(0), 0);
                if warp::lane_id() == 0 {
                    ptx::mbarrier_expect(mbarrier(1), 256);
                    ptx::bulk_load(tile.address(0), x.address(0), 256, mbarrier(1));
                }
                ptx::mbarrier_wait(mbarrier(1), 0);
            }
        })
    };
    for writer in [0, 1] {
        fine(over(writer, true));
        expect(over(writer, false), ProxyUnfenced, &[&line("written before")]);
    }
}

#[test]
fn the_source_of_a_load_is_written_behind_its_phase() {
    let over = |waits: bool| {
        run(move |_, y| unsafe {
            start([1, 1]);
            if warp() == 0 {
                y.store(warp::lane_id() as u64, 1.0);
            }
            thread::sync_threads();
            if thread::thread_idx_x() == 0 {
                ptx::mbarrier_expect(mbarrier(0), 256);
                ptx::bulk_load(Shared::<f64>::at(0).address(0), y.address(0), 256, mbarrier(0)); // loaded from
            }
            if warp() == 0 || waits {
                ptx::mbarrier_wait(mbarrier(0), 0);
            } else {
                for _ in 0..64 {
                    warp::sync_warp(ALL);
                }
            }
            if warp() == 1 {
                y.store(warp::lane_id() as u64, 2.0); // the source
            }
        })
    };
    fine(over(true));
    expect(over(false), GlobalRace, &[&line("the source")]);
}

#[test]
fn a_load_hands_on_what_it_reads_and_nothing_else() {
    // What is written between the arrival and the load is neither's.
    let seen = |first: bool| {
        run(move |x, _| unsafe {
            start([1, 1]);
            let tile = Shared::<f64>::at(64);
            if warp() == 0 {
                if !first && warp::lane_id() == 0 {
                    ptx::mbarrier_expect(mbarrier(0), 256);
                }
                tile.store(warp::lane_id(), 1.0); // written between
                warp::sync_warp(ALL);
                if warp::lane_id() == 0 {
                    if first {
                        ptx::mbarrier_expect(mbarrier(0), 256);
                    }
                    ptx::bulk_load(Shared::<f64>::at(0).address(0), x.address(0), 256, mbarrier(0));
                }
            }
            ptx::mbarrier_wait(mbarrier(0), 0);
            if warp() == 1 {
                tile.load(warp::lane_id()); // read behind
            }
        })
    };
    fine(seen(true));
    expect(seen(false), SharedRace, &[&line("read behind"), &line("written between")]);
}

#[test]
fn readers_that_no_phase_knows_of_count() {
    // A read in the epoch in which the first mbarrier is made.
    let made = run(|_, _| unsafe {
        let tile = Shared::<f64>::at(0);
        tile.store(thread::thread_idx_x(), 0.5);
        thread::sync_threads();
        if warp() == 1 {
            tile.load(warp::lane_id()); // before there was one
        }
        if warp() == 0 {
            for _ in 0..64 {
                warp::sync_warp(ALL);
            }
            if warp::lane_id() == 0 {
                ptx::mbarrier_init(mbarrier(0), 1);
            }
            tile.store(warp::lane_id(), 1.0); // while one read
        }
    });
    expect(made, SharedRace, &[&line("before there was one")]);
    // A bulk store's source, whose thread has waited for it.
    let stored = run(|_, y| unsafe {
        start([1, 1]);
        let tile = Shared::<f64>::at(0);
        if warp() == 0 {
            tile.store(warp::lane_id(), 0.5);
            ptx::fence_proxy_async();
        }
        thread::sync_threads();
        if thread::thread_idx_x() == 0 {
            ptx::bulk_store(y.address(0), tile.address(0), 256);
            ptx::bulk_commit_group();
            ptx::bulk_wait_group_read::<0>();
        }
        if warp() == 1 {
            for _ in 0..64 {
                warp::sync_warp(ALL);
            }
            tile.store(warp::lane_id(), 1.0); // over the source
        }
    });
    expect(stored, SharedRace, &[&line("over the source")]);
}
