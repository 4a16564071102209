//! Many threads, one device: plans, streams and matrices are made, used and dropped on all of them.

use super::flight::is_done;
use super::*;
use lanky_host::{Layout, Plan, Shape, model};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

const THREADS: usize = 64;

/// No call waits for all of the GPU, allocates, loads or is on the null stream in a warm plan's run, whoever runs it.
#[test]
fn threads_run_plans_side_by_side() {
    const NAME: &str = "threads::threads_run_plans_side_by_side";
    with_driver(NAME, "", || {
        let device = Device::cuda(0)?;
        let shape = |rows, cols| Shape::packed(rows, cols, Layout::ColumnMajor, model::Dtype::F64);
        let (a, b) = (device.zeros::<f64>(300, 20_000)?, device.zeros::<f64>(20_000, 4)?);
        let one = Plan::gemm(&device, shape(300, 20_000), shape(20_000, 4), shape(300, 4));
        let one = one.variant("gemm_tiled").parts(3).build()?;
        assert!(one.choice().is_some_and(|choice| choice.splits == 3), "each stream needs a workspace: {one}");
        let shared = device.stream()?;
        one.warm_up_on(&shared)?;
        let work = || -> Result<()> {
            let (own, mut c) = (device.stream()?, device.zeros::<f64>(300, 4)?);
            let plan = Plan::gemm(&device, a.shape(), b.shape(), c.shape()).variant("tsm2r_mma").parts(3).build()?;
            assert!(plan.choice().is_some_and(|choice| choice.splits > 1), "each stream needs a workspace: {plan}");
            for _ in 0..20 {
                one.run(&own, 1.0, a.view(), b.view(), 0.0, c.view_mut())?;
                one.run(&shared, 1.0, a.view(), b.view(), 1.0, c.view_mut())?;
                plan.run(&own, 1.0, a.view(), b.view(), 1.0, c.view_mut())?;
            }
            own.synchronize()?;
            shared.synchronize()
        };
        let round = || -> Result<()> {
            thread::scope(|scope| {
                let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
                threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
            })
        };
        round()?;
        let before = living();
        launches();
        round()?;
        assert_eq!(launches().len(), THREADS * 20 * (2 * 2 + 1), "`one` is two launches, a ring's product is one");
        assert_eq!((misused(), freed_in_use()), (vec![], vec![]));
        drop(one);
        // Streams of calls that take none are kept; what a plan had for each of them is gone.
        let memory = |living: &[String]| living.iter().find(|kind| kind.starts_with("memory=")).cloned();
        assert_eq!(memory(&living()).as_deref(), Some("memory=2"), "A and B; before {before:?}");
        Ok(())
    });
}

/// Parts of k on two streams at once would be each other's.
#[test]
fn each_stream_has_a_workspace_of_its_own() {
    const NAME: &str = "threads::each_stream_has_a_workspace_of_its_own";
    with_driver(NAME, "", || {
        let device = Device::cuda(0)?;
        let (a, b) = (device.zeros::<f64>(300, 20_000)?, device.zeros::<f64>(20_000, 4)?);
        let mut c = device.zeros::<f64>(300, 4)?;
        let plan = Plan::gemm(&device, a.shape(), b.shape(), c.shape()).build()?;
        let streams = (0..THREADS).map(|_| device.stream()).collect::<Result<Vec<_>>>()?;
        for (stream, taken) in streams.iter().zip(4..) {
            for beta in [0.0, 1.0] {
                plan.run(stream, 1.0, a.view(), b.view(), beta, c.view_mut())?;
                assert!(
                    living().contains(&format!("memory={taken}")),
                    "A, B, C, and one of each stream: {:?}",
                    living()
                );
            }
        }
        Ok(())
    });
}

/// A device, a stream, a plan, a matrix, a mark, a graph whose work is under way: dropped in every order, each time on another thread.
#[test]
fn every_order_of_drops_leaves_nothing() {
    const NAME: &str = "threads::every_order_of_drops_leaves_nothing";
    with_driver(NAME, "", || {
        let kept = Device::cuda(0)?;
        let (a, b) = (kept.zeros::<f64>(300, 20_000)?, kept.zeros::<f64>(20_000, 4)?);
        let mut before = None;
        for order in orders(6) {
            let (device, mut c) = (Device::cuda(0)?, kept.zeros::<f64>(300, 4)?);
            let stream = device.stream()?;
            let plan = Plan::gemm(&device, a.shape(), b.shape(), c.shape()).build()?;
            plan.run(&stream, 1.0, a.view(), b.view(), 0.0, c.view_mut())?;
            let mark = stream.mark()?;
            let mut graph = stream.record(|| plan.run(&stream, 1.0, a.view(), b.view(), 0.0, c.view_mut()))?;
            // SAFETY: what the work uses is freed after it, which is what is tested, and the fake looks at no memory.
            unsafe { graph.launch(&stream) }?;
            let mut things: Vec<Option<Box<dyn Send>>> = vec![
                Some(Box::new(device)),
                Some(Box::new(stream)),
                Some(Box::new(plan)),
                Some(Box::new(c)),
                Some(Box::new(mark)),
                Some(Box::new(graph)),
            ];
            for place in &order {
                let thing = things[*place].take();
                thread::spawn(move || drop(thing)).join().expect("a drop does not panic");
            }
            let now = living();
            assert_eq!(before.get_or_insert(now.clone()), &now, "order {order:?}");
            assert_eq!((misused(), freed_in_use()), (vec![], vec![]), "order {order:?}");
        }
        Ok(())
    });
}

/// A panic with work under way, on this thread and on another, drops all that there is, and leaves nothing.
#[test]
fn what_a_panic_drops_is_freed_after_its_work() {
    const NAME: &str = "threads::what_a_panic_drops_is_freed_after_its_work";
    const WORDS: &str = "a panic of the caller's own";
    with_driver(NAME, "", || {
        let kept = Device::cuda(0)?;
        let round = |panics: bool| -> Result<()> {
            let device = Device::cuda(0)?;
            let stream = device.stream()?;
            let (a, b) = (device.upload(&stream, hosts()?.0.view())?, device.upload(&stream, hosts()?.1.view())?);
            let mut c = device.zeros::<f64>(300, 4)?;
            let plan = Plan::gemm(&device, a.shape(), b.shape(), c.shape()).build()?;
            plan.run(&stream, 1.0, a.view(), b.view(), 0.0, c.view_mut())?;
            let _mark = stream.mark()?;
            let mut graph = stream.record(|| plan.run(&stream, 1.0, a.view(), b.view(), 1.0, c.view_mut()))?;
            // SAFETY: as above.
            unsafe { graph.launch(&stream) }?;
            assert!(!is_done(&device, &stream)?, "the work must be in flight");
            assert!(!panics, "{WORDS}");
            Ok(())
        };
        round(false)?;
        let there = living();
        let panics = || catch_unwind(AssertUnwindSafe(|| round(true)));
        for ended in
            [panics(), thread::scope(|scope| scope.spawn(panics).join().expect("it is caught there")), panics()]
        {
            let words = ended.expect_err("it panics").downcast::<String>().expect("text");
            assert_eq!(*words, WORDS);
        }
        assert_eq!((living(), misused(), freed_in_use()), (there, vec![], vec![]));
        // The device goes on.
        round(false)?;
        kept.zeros::<f64>(3, 3).map(drop)
    });
}

/// The permutations of 0..n.
fn orders(n: usize) -> Vec<Vec<usize>> {
    let Some(last) = n.checked_sub(1) else { return vec![vec![]] };
    let insert = |order: Vec<usize>| (0..n).map(move |at| [&order[..at], &[last], &order[at..]].concat());
    orders(last).into_iter().flat_map(insert).collect()
}

/// What is let go of while a graph is recorded, by whatever thread, neither spoils it nor stays behind.
#[test]
fn what_is_dropped_during_a_recording_is_freed_after_it() {
    const NAME: &str = "threads::what_is_dropped_during_a_recording_is_freed_after_it";
    with_driver(NAME, "", || {
        let device = Device::cuda(0)?;
        let stream = device.stream()?;
        let (a, b) = (device.zeros::<f64>(300, 20_000)?, device.zeros::<f64>(20_000, 4)?);
        let mut c = device.zeros::<f64>(300, 4)?;
        let plan = Plan::gemm(&device, a.shape(), b.shape(), c.shape()).build()?;
        plan.warm_up_on(&stream)?;
        let others = || -> Result<_> {
            let other = device.stream()?;
            let sent = device.upload(&other, hosts()?.0.view())?;
            let cold = Plan::gemm(&device, a.shape(), b.shape(), c.shape()).build()?;
            cold.warm_up()?;
            Ok((device.zeros::<f64>(9, 9)?, stream.mark()?, stream.record(|| Ok(()))?, cold, sent, other))
        };
        drop(others()?); // the streams of calls that take none are there from now on
        let before = living();
        let (mine, theirs) = (others()?, others()?);
        let mut recorded = stream.record(|| {
            calls();
            drop(mine);
            thread::scope(|scope| drop(scope.spawn(move || drop(theirs))));
            let waits =
                |call: &String| call.contains("Synchronize") || call.contains("Free") || call.contains("Destroy");
            let calls = calls();
            assert!(!calls.iter().any(waits), "{calls:?}");
            plan.run(&stream, 1.0, a.view(), b.view(), 0.0, c.view_mut())
        })?;
        // SAFETY: all of it lives until the stream is synchronised.
        unsafe { recorded.launch(&stream) }?;
        stream.synchronize()?;
        drop(recorded);
        assert_eq!(living(), before);
        assert_eq!((misused(), freed_in_use()), (vec![], vec![]));
        Ok(())
    });
}
