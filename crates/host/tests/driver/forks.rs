//! Children of a fork: told to open their own driver, whatever threads of the parent were doing.

use super::*;
use lanky_host::{
    BatchMut, BatchRef, Error, Layout, Plan, Shape, gemm, gemm_batched, gram, gram_triangle, model, tsmm_in_place,
};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn a_fork_is_told_to_open_its_own() {
    const NAME: &str = "forks::a_fork_is_told_to_open_its_own";
    with_driver(NAME, "", || {
        let device = Device::cuda(0)?;
        let stream = device.stream()?;
        let (matrix, mark) = (device.zeros::<f64>(3, 3)?, stream.mark()?);
        let graph = stream.record(|| Ok(()))?;
        let (before, mut kept) = (living(), Some((matrix, mark, graph, stream)));
        calls();
        in_a_fork(10, || {
            let refused =
                [Device::cuda(0).err(), device.stream().err(), device.zeros::<f64>(1, 1).err(), Device::count().err()];
            assert!(refused.iter().all(|error| matches!(error, Some(Error::Forked))), "{refused:?}");
            assert!(!Device::auto().is_cuda());
            drop(kept.take()); // left to the parent
            assert_eq!((calls(), living()), (vec![], before.clone()), "the child asked the driver for something");
        })
        .expect("the child is refused and ends");
        assert!(kept.is_some(), "a fork has memory of its own");
        drop(kept);
        assert_eq!(misused(), [""; 0]);
        device.stream().map(drop)
    });
}

/// Waits until so many calls of these functions are under way.
fn stalled(functions: [&str; 2], wanted: usize) {
    let (start, mut found) = (Instant::now(), 0);
    while found < wanted {
        assert!(start.elapsed() < Duration::from_secs(10), "{found} of {wanted} calls of {functions:?}");
        thread::sleep(Duration::from_millis(1));
        found += calls().iter().filter(|call| functions.contains(&call.as_str())).count();
    }
}

/// At the fork four threads are in the driver, with the locks of a plan, a stream's workspace, a stream's lists, the kernels
/// and the devices: no thread of the child would ever unlock them.
#[test]
fn a_fork_with_locks_taken_is_told_too() {
    const NAME: &str = "forks::a_fork_with_locks_taken_is_told_too";
    with_driver(NAME, "devices=2", || {
        let device = Device::cuda(0)?;
        let (planned, plain, of_batches) = (device.stream()?, device.stream()?, device.stream()?);
        let (a, b) = (device.zeros::<f64>(300, 20_000)?, device.zeros::<f64>(20_000, 4)?);
        let parts = [b.view().rows(..4)?, b.view().rows(4..8)?];
        let listed = BatchRef::listed(&parts)?;
        let shape = Shape::packed(300, 4, Layout::ColumnMajor, model::Dtype::F64);
        let plan = Plan::gemm(&device, a.shape(), b.shape(), shape).build()?;
        let run = || plan.run(&planned, 1.0, a.view(), b.view(), 0.0, device.zeros(300, 4)?.view_mut());
        let multiply = || gemm(&plain, 1.0, a.view(), b.view(), 0.0, device.zeros(300, 4)?.view_mut());
        let batch = || {
            let mut c = device.zeros(8, 4)?;
            gemm_batched(&of_batches, 1.0, listed.clone(), listed.clone(), 0.0, BatchMut::parts_below(c.view_mut(), 2)?)
        };
        run()?;
        multiply()?;
        batch()?;
        let (mut out, mut small) = (device.zeros::<f64>(300, 4)?, device.zeros::<f64>(4, 4)?);
        let (mut triangle, mut tall) = (device.zeros::<f64>(4, 4)?, device.zeros::<f64>(300, 4)?);
        let mut halves = device.zeros::<f64>(8, 4)?;
        let of_f32 = |rows, cols| Shape::packed(rows, cols, Layout::ColumnMajor, model::Dtype::F32);
        let other = Plan::gemm(&device, of_f32(9, 8), of_f32(8, 7), of_f32(9, 7)).build()?;
        let mut cold = Some(Plan::gram(&device, b.shape(), small.shape()).build()?);
        calls();
        thread::scope(|scope| {
            tell("devices=2 cuLaunchKernel=-1");
            let threads = [scope.spawn(run), scope.spawn(multiply), scope.spawn(batch)];
            stalled(["cuLaunchKernel"; 2], 3);
            tell("devices=2 cuLaunchKernel=-1 cuModuleLoadDataEx=-1 cuDevicePrimaryCtxRetain=-1");
            let loads = scope.spawn(|| other.warm_up());
            let opens = scope.spawn(|| Device::cuda(1).map(drop));
            stalled(["cuModuleLoadDataEx", "cuDevicePrimaryCtxRetain"], 2);
            let outcome = in_a_fork(20, || {
                let refused = [
                    plan.run(&planned, 1.0, a.view(), b.view(), 0.0, out.view_mut()),
                    gemm(&plain, 1.0, a.view(), b.view(), 0.0, out.view_mut()),
                    gram(&plain, 1.0, b.view(), 0.0, small.view_mut()),
                    gram_triangle(&plain, lanky_host::Triangle::Lower, 1.0, b.view(), 0.0, triangle.view_mut()),
                    tsmm_in_place(&plain, 1.0, tall.view_mut(), parts[0]),
                    BatchMut::parts_below(halves.view_mut(), 2)
                        .and_then(|c| gemm_batched(&of_batches, 1.0, listed.clone(), listed.clone(), 0.0, c)),
                    Plan::gemm(&device, a.shape(), b.shape(), shape).build().map(drop),
                    cold.as_ref().map_or(Ok(()), |plan| plan.warm_up_on(&plain)),
                    plan.warm_up(),
                    plan.warm_up_on(&planned),
                    device.matmul(parts[0], parts[1]).map(drop),
                    device.download(&plain, parts[0]).map(drop),
                    plain.record(|| Ok(())).map(drop),
                    device.set_tuned(None),
                    Device::cuda(1).map(drop),
                    device.read_ceiling(&plain).map(drop),
                ];
                for (place, result) in refused.iter().enumerate() {
                    assert!(matches!(result, Err(Error::Forked)), "{place}: {result:?}");
                }
                assert!(device.tuned().is_none() && !Device::auto().is_cuda());
                drop(cold.take());
            });
            tell("devices=2");
            for thread in threads {
                thread.join().expect("no panic")?;
            }
            loads.join().expect("no panic")?;
            opens.join().expect("no panic")?;
            assert_eq!(outcome, Ok(()));
            Ok(())
        })
    });
}

/// The bits of products that are large enough for all threads, in every way that work is handed to them.
fn of_all_threads() -> Result<Vec<Vec<u64>>> {
    let cpu = Device::cpu();
    let stream = cpu.stream()?;
    let filled = |rows, cols| Matrix::from_fn(rows, cols, |i, j| 1.0 / (1 + i * 7 + j * 3) as f64);
    let mut found = Vec::new();
    let mut keep = |c: &Matrix<f64>| found.push(c.as_slice().unwrap_or_default().iter().map(|x| x.to_bits()).collect());
    for (m, n, k) in [(3000, 8, 300), (3, 2, 90_000)] {
        keep(&cpu.matmul(filled(m, k)?.view(), filled(k, n)?.view())?);
    }
    for (side, count) in [(8, 3000), (40, 50)] {
        let (a, b, mut c) = (filled(side * count, side)?, filled(side, side)?, filled(side * count, side)?);
        let b = BatchRef::shared(b.view(), count);
        let into = BatchMut::parts_below(c.view_mut(), count)?;
        gemm_batched(&stream, 1.0, BatchRef::parts_below(a.view(), count)?, b, 1.0, into)?;
        keep(&c);
    }
    keep(&Matrix::to_contiguous(filled(700, 300)?.view().t())?);
    Ok(found)
}

/// Whether its parent had multiplied before or not, and the bits are the same.
#[test]
fn a_fork_multiplies_on_the_cpu() {
    const NAME: &str = "forks::a_fork_multiplies_on_the_cpu";
    with_driver(NAME, "", || {
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("forked-{}", std::process::id()));
        let of_a_fork = || {
            in_a_fork(60, || {
                let bits = of_all_threads().expect("products on the CPU");
                std::fs::write(&place, bytemuck::cast_slice::<u64, u8>(&bits.concat())).expect("a file");
            })
            .expect("the child multiplies and ends");
            std::fs::read(&place).expect("what it wrote")
        };
        let first = of_a_fork();
        let bits = of_all_threads()?.concat();
        let then = of_a_fork();
        let _ = std::fs::remove_file(&place);
        assert!(first == bytemuck::cast_slice::<u64, u8>(&bits), "before its parent: other bits");
        assert!(then == first, "after its parent: other bits");
        in_a_fork(60, || {
            let ceilings = Device::cpu().ceilings(&Device::cpu().stream().expect("a stream"));
            assert!(matches!(ceilings, Err(Error::Unsupported { .. })), "{ceilings:?}");
        })
        .expect("the child is refused and ends");
        Ok(())
    });
}
