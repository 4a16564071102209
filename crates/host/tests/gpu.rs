//! The calls that differ on a GPU: transfers, streams, plans, workspaces. Skipped, and said so, where there is none.

mod common;

use common::{Buffer, PACKED, Real, Storage};
use lanky_host::{Device, Dtype, Error, Layout, MatRef, Matrix, Operand, Plan, Scalar, Shape, Stream, gemm, model};
use std::io;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use watched::numbers::integer;

/// Held by every test for reading, and for writing by one that records: what other threads of the process ask of the
/// driver meanwhile, memory above all, can end a recording.
static RECORDS: RwLock<()> = RwLock::new(());

/// GPU 0 and a stream of it, while nobody records.
fn gpu(test: &str) -> Option<(Device, Stream, RwLockReadGuard<'static, ()>)> {
    let others = RECORDS.read().unwrap_or_else(PoisonError::into_inner);
    open(test).map(|(device, stream)| (device, stream, others))
}

/// The same, while no other test runs.
fn gpu_alone(test: &str) -> Option<(Device, Stream, RwLockWriteGuard<'static, ()>)> {
    let alone = RECORDS.write().unwrap_or_else(PoisonError::into_inner);
    open(test).map(|(device, stream)| (device, stream, alone))
}

fn open(test: &str) -> Option<(Device, Stream)> {
    let device = common::gpu(test)?;
    let stream = device.stream().expect("a stream of a GPU");
    Some((device, stream))
}

fn same<T: Scalar>(found: &Matrix<T>, expected: MatRef<'_, T>) {
    assert_eq!((found.nrows(), found.ncols()), (expected.nrows(), expected.ncols()));
    for i in 0..expected.nrows() {
        for j in 0..expected.ncols() {
            assert_eq!(found.get(i, j), expected.get(i, j), "element ({i}, {j}) of {expected:?}");
        }
    }
}

#[test]
fn views_make_the_way_there_and_back() -> lanky_host::Result<()> {
    let Some((device, stream, _others)) = gpu("views_make_the_way_there_and_back") else { return Ok(()) };
    // The second takes each chunk of pinned memory once, and the first of them again, which is then not full.
    for (rows, cols) in [(37, 11), (3001, 2203), (0, 3), (3, 0), (1, 5), (5, 1)] {
        let host = Matrix::from_fn(rows, cols, |i, j| (i * 10_000 + j) as f64)?;
        let there = device.upload(&stream, host.view())?;
        assert!(!there.is_host() && there.get(0, 0).is_none() && there.as_slice().is_none());
        same(&there.download(&stream)?, host.view());
        same(&device.download(&stream, there.t())?, host.t());
        let turned = device.upload(&stream, host.t())?;
        same(&turned.download(&stream)?, host.t());
        if rows > 30 && cols > 10 {
            let part = |view: MatRef<'_, f64>| device.download(&stream, view.rows(3..30)?.cols(2..=7)?);
            same(&part(there.view())?, host.view().rows(3..30)?.cols(2..=7)?);
            same(
                &device.upload(&stream, host.view().rows(3..30)?.t())?.download(&stream)?,
                host.view().rows(3..30)?.t(),
            );
        }
        for layout in [Layout::ColumnMajor, Layout::RowMajor] {
            let mut elements = Vec::new();
            there.download_with(&stream, layout, &mut |piece| {
                elements.extend_from_slice(piece);
                Ok(())
            })?;
            same(&Matrix::from_vec(elements, rows, cols, layout)?, host.view());
        }
    }
    Ok(())
}

#[test]
fn streamed_uploads_may_nest_and_fail() -> lanky_host::Result<()> {
    let Some((device, stream, _others)) = gpu("streamed_uploads_may_nest_and_fail") else { return Ok(()) };
    let mut next = 0.0;
    let mut inner = None;
    let outer = device.upload_with::<f64>(&stream, 2003, 1501, Layout::RowMajor, &mut |piece| {
        for element in piece {
            *element = next;
            next += 1.0;
        }
        // On the same stream, while its pinned memory is in use.
        let small = Matrix::from_fn(5, 7, |i, j| (i + 10 * j) as f64).and_then(|m| device.upload(&stream, m.view()));
        inner = Some(small.map_err(|error| io::Error::other(error.to_string()))?);
        Ok(())
    })?;
    let back = outer.download(&stream)?;
    assert_eq!(back.get(2002, 1500), Some(2003.0 * 1501.0 - 1.0));
    assert_eq!(back.get(1000, 3), Some(1000.0 * 1501.0 + 3.0));
    if let Some(inner) = inner {
        assert_eq!(inner.download(&stream)?.get(4, 6), Some(64.0));
    }
    let mut calls = 0;
    let result = device.upload_with::<f32>(&stream, 4096, 4096, Layout::ColumnMajor, &mut |_| {
        calls += 1;
        if calls == 3 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    });
    assert!(matches!(result, Err(Error::Io { kind: io::ErrorKind::UnexpectedEof, .. })));
    same(&device.upload(&stream, back.view())?.download(&stream)?, back.view());
    Ok(())
}

/// C ← α A B + β C on both devices from integers: equal in every bit.
fn agrees<T: Real>(
    (device, stream): (&Device, &Stream),
    size: (usize, usize, usize),
    row_major: [bool; 3],
    alpha: f64,
    beta: f64,
) -> lanky_host::Result<()> {
    let (m, n, k) = size;
    let storage = row_major.map(|row_major| Storage::new(row_major, 0, 0));
    let number = |seed, i, j| T::of(integer(seed, i, j, 3));
    let a = Buffer::<T>::new(m, k, storage[0], |i, l| number(1, i, l));
    let b = Buffer::<T>::new(k, n, storage[1], |l, j| number(2, l, j));
    let mut c = Buffer::<T>::new(m, n, storage[2], |i, j| if beta == 0.0 { T::canary() } else { number(3, i, j) });
    let (there_a, there_b) = (device.upload(stream, a.view()?)?, device.upload(stream, b.view()?)?);
    let mut there_c = device.upload(stream, c.view_mut()?.as_ref())?;
    let (alpha, beta) = (T::of(alpha), T::of(beta));
    let plan = Plan::gemm(device, there_a.shape(), there_b.shape(), there_c.shape()).build()?;
    plan.warm_up()?;
    gemm(stream, alpha, there_a.view(), there_b.view(), beta, there_c.view_mut())?;
    gemm(&Device::cpu().stream()?, alpha, a.view()?, b.view()?, beta, c.view_mut()?)?;
    same(&there_c.download(stream)?, c.view()?);
    // Once more by the plan, over what is there.
    plan.run(stream, alpha, there_a.view(), there_b.view(), T::zero(), there_c.view_mut())?;
    gemm(&Device::cpu().stream()?, alpha, a.view()?, b.view()?, T::zero(), c.view_mut()?)?;
    same(&there_c.download(stream)?, c.view()?);
    Ok(())
}

#[test]
fn products_agree_with_the_cpus() -> lanky_host::Result<()> {
    let Some((device, stream, _others)) = gpu("products_agree_with_the_cpus") else { return Ok(()) };
    let sizes =
        [(131, 7, 1031), (7, 131, 1031), (5, 3, 2), (67, 65, 71), (1, 1, 3000), (300, 1, 70), (0, 3, 5), (3, 4, 0)];
    for size in sizes {
        for layouts in 0..8 {
            let row_major = [layouts & 1 > 0, layouts & 2 > 0, layouts & 4 > 0];
            for (alpha, beta) in [(1.0, 0.0), (0.5, -1.0), (0.0, 0.5), (0.0, 0.0), (-1.0, 1.0)] {
                agrees::<f64>((&device, &stream), size, row_major, alpha, beta)?;
                agrees::<f32>((&device, &stream), size, row_major, alpha, beta)?;
            }
        }
    }
    Ok(())
}

#[test]
fn every_variant_agrees_with_the_cpu() -> lanky_host::Result<()> {
    let Some((device, stream, _others)) = gpu("every_variant_agrees_with_the_cpu") else { return Ok(()) };
    let of_a = |i: usize, l: usize| ((i * 3 + l * 5) % 7) as f64 - 3.0;
    let (a, turned) = (Matrix::from_fn(203, 517, of_a)?, Matrix::from_fn(517, 203, |l, i| of_a(i, l))?);
    let b = Matrix::from_fn(517, 11, |l, j| ((l + j * 2) % 5) as f64 - 2.0)?;
    let expected = Device::cpu().matmul(a.view(), b.view())?;
    let (a, turned) = (device.upload(&stream, a.view())?, device.upload(&stream, turned.view())?);
    let b = device.upload(&stream, b.view())?;
    // What serves no such width, or no such k, has tests of its own.
    let serves = |v: &&model::Variant| {
        let is_narrow =
            model::variants::tsmm::widest(v).is_some() || v.multiples().is_some() || v.most_columns().is_some();
        !matches!(v.kernel, model::Kernel::Gram | model::Kernel::Gemv) && !is_narrow
    };
    for variant in model::VARIANTS.iter().filter(|v| v.dtype == Dtype::F64).filter(serves) {
        let wants_rows = variant.layout == model::variants::Layout::Rows;
        let a = if wants_rows { turned.view().t() } else { a.view() };
        let mut c = device.zeros::<f64>(203, 11)?;
        let plan = Plan::gemm(&device, a.shape(), b.shape(), c.shape()).variant(variant.entry).build()?;
        assert_eq!((plan.variant(), plan.entry()), (variant.name, Some(variant.entry)));
        plan.run(&stream, 1.0, a, b.view(), 0.0, c.view_mut())?;
        same(&c.download(&stream)?, expected.view());
    }
    Ok(())
}

#[test]
fn one_plan_runs_on_many_streams_at_once() -> lanky_host::Result<()> {
    let Some((device, stream, _others)) = gpu("one_plan_runs_on_many_streams_at_once") else { return Ok(()) };
    let host = |rows, cols, seed| Matrix::from_fn(rows, cols, |i, j| ((i * 7 + j * 3 + seed) % 5) as f64);
    let (a, b) = (host(150, 4001, 1)?, host(4001, 6, 2)?);
    let expected = Device::cpu().matmul(a.view(), b.view())?;
    let (a, b) = (device.upload(&stream, a.view())?, device.upload(&stream, b.view())?);
    stream.synchronize()?;
    let shape = device.zeros::<f64>(150, 6)?.shape();
    let plan = Plan::gemm(&device, a.shape(), b.shape(), shape).build()?;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| -> lanky_host::Result<()> {
                    let stream = device.stream()?;
                    plan.warm_up_on(&stream)?;
                    let mut c = device.zeros::<f64>(150, 6)?;
                    for _ in 0..20 {
                        plan.run(&stream, 1.0, a.view(), b.view(), 0.0, c.view_mut())?;
                        same(&c.download(&stream)?, expected.view());
                    }
                    Ok(())
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })
}

#[test]
fn plans_are_warmed_up_together() -> lanky_host::Result<()> {
    let Some((device, stream, _alone)) = gpu_alone("plans_are_warmed_up_together") else { return Ok(()) };
    let shape = |rows, cols| Shape::packed(rows, cols, Layout::ColumnMajor, Dtype::F64);
    let plan = |m, n, k| Plan::gemm(&device, shape(m, k), shape(k, n), shape(m, n)).build();
    let plans = [plan(3000, 4, 3000)?, plan(3000, 9, 3000)?, plan(128, 128, 128)?];
    device.warm_up(&plans.each_ref())?;
    let (a, b) = (device.zeros::<f64>(3000, 3000)?, device.zeros::<f64>(3000, 4)?);
    let mut c = device.zeros::<f64>(3000, 4)?;
    // While a graph is recorded nothing can be loaded or allocated: a plan that had to would be refused.
    stream.record(|| plans[0].run(&stream, 1.0, a.view(), b.view(), 0.0, c.view_mut()))?;
    let cpu = Plan::gemm(&Device::cpu(), shape(2, 2), shape(2, 2), shape(2, 2)).build()?;
    let wrong = device.warm_up(&[&plans[0], &cpu]);
    assert!(
        matches!(&wrong, Err(Error::WrongPlan { expected, actual, .. }) if expected == "cuda:0" && actual == "cpu"),
        "{wrong:?}"
    );
    Ok(())
}

#[test]
fn operands_elsewhere_are_named() -> lanky_host::Result<()> {
    let Some((device, stream, _others)) = gpu("operands_elsewhere_are_named") else { return Ok(()) };
    let host = Matrix::<f64>::zeros(4, 4)?;
    let there = device.zeros::<f64>(4, 4)?;
    let cpu = Device::cpu().stream()?;
    let mut c = device.zeros::<f64>(4, 4)?;
    let mut host_c = Matrix::<f64>::zeros(4, 4)?;
    let operand = |result| match result {
        Err(Error::WrongDevice { operand, .. }) => operand,
        other => panic!("{other:?}"),
    };
    assert_eq!(operand(gemm(&stream, 1.0, host.view(), there.view(), 0.0, c.view_mut())), Operand::A);
    assert_eq!(operand(gemm(&stream, 1.0, there.view(), host.view(), 0.0, c.view_mut())), Operand::B);
    assert_eq!(operand(gemm(&stream, 1.0, there.view(), there.view(), 0.0, host_c.view_mut())), Operand::C);
    assert_eq!(operand(gemm(&cpu, 1.0, there.view(), host.view(), 0.0, host_c.view_mut())), Operand::A);
    assert_eq!(operand(there.download(&cpu).map(drop)), Operand::View);
    assert_eq!(operand(device.upload(&stream, there.view()).map(drop)), Operand::View);
    assert!(matches!(device.upload(&cpu, host.view()), Err(Error::WrongStream { .. })));
    Ok(())
}

#[test]
fn host_in_is_host_out_and_device_in_is_device_out() -> lanky_host::Result<()> {
    let Some((device, stream, _others)) = gpu("host_in_is_host_out_and_device_in_is_device_out") else { return Ok(()) };
    let a = Matrix::from_fn(90, 70, |i, l| ((i + l) % 3) as f32)?;
    let expected = Device::cpu().matmul(a.t(), a.view())?;
    let c = device.matmul(a.t(), a.view())?;
    assert!(c.is_host());
    same(&c, expected.view());
    let there = device.upload(&stream, a.view())?;
    let c = device.matmul(a.t(), there.view())?;
    assert!(!c.is_host());
    same(&c.download(&stream)?, expected.view());
    Ok(())
}

#[test]
fn memory_that_is_not_there_is_wanted_in_bytes() -> lanky_host::Result<()> {
    let Some((device, stream, _others)) = gpu("memory_that_is_not_there_is_wanted_in_bytes") else { return Ok(()) };
    let wanted = 1_u64 << 43;
    match device.zeros::<f64>(1 << 20, 1 << 20) {
        Err(Error::OutOfMemory { wanted: found, free, total, .. }) => {
            assert!(found == wanted && free <= total && total > 0, "{found} {free} {total}");
        }
        other => panic!("{other:?}"),
    }
    same(&device.zeros::<f64>(3, 3)?.download(&stream)?, Buffer::<f64>::new(3, 3, PACKED, |_, _| 0.0).view()?);
    assert!(device.read_ceiling(&stream)? > 0.0);
    Ok(())
}
