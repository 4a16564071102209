//! What users do, as programs whose every driver call can be made to fail. Each gives what is still to be dropped.

use super::*;
use lanky_host::{
    BatchMut, BatchRef, Error, Layout, MatMut, MatRef, Plan, Shape, Stream, gemm, gemm_batched, gemv, gram, model,
    tsmm_in_place,
};
use std::any::Any;

mod others;

/// What is dropped at the end.
pub type Left = Box<dyn Any>;

/// A program; whether it lets go of something before its end: a failure of that is nobody's error; and of its calls every
/// how many-th is to fail.
pub struct Program {
    pub name: &'static str,
    pub run: fn() -> Result<Left>,
    pub lets_go: bool,
    pub step: usize,
    /// The calls of lanky that its failures name.
    pub calls: &'static [&'static str],
}

pub const ALL: [Program; 17] = [
    Program {
        lets_go: false,
        ..program(
            "opens a device",
            opens,
            &[
                "Device::cuda",
                "Device::count",
                "Device::memory",
                "Device::stream",
                "Stream::synchronize",
                "Device::entered",
            ],
        )
    },
    program(
        "plans a product and downloads it",
        plans,
        &[OPENS, STREAMS, UPLOADS, ZEROS, "Plan::warm_up", "Plan::run", DOWNLOADS],
    ),
    program("multiplies without a plan, with slots", multiplies, &[OPENS, STREAMS, ZEROS, "gemm", WAITS]),
    program(
        "records a graph",
        records,
        &[OPENS, STREAMS, ZEROS, WARMS, "Stream::record", "Plan::run", "Graph::launch", WAITS],
    ),
    program("makes Gram matrices", grams, &[OPENS, STREAMS, ZEROS, "gram", WARMS, "Plan::run_gram", WAITS]),
    program("multiplies vectors", vectors, &[OPENS, STREAMS, ZEROS, "gemv", WARMS, "Plan::run_gemv", WAITS]),
    program("multiplies batches", batches, &[OPENS, STREAMS, ZEROS, "gemm_batched", WAITS]),
    program(
        "multiplies other shapes and types",
        others::shapes,
        &[OPENS, STREAMS, ZEROS, "gemm", "gram", WARMS, "Plan::run", WAITS],
    ),
    program("follows a database", follows, &[OPENS, STREAMS, WARMS]),
    program("multiplies in place", in_place, &[OPENS, STREAMS, ZEROS, "tsmm_in_place", DOWNLOADS]),
    program("multiplies matrices of the host", host_matrices, &[OPENS, "Device::matmul", STREAMS, UPLOADS]),
    program("takes times", times, &[OPENS, STREAMS, "Stream::mark", "Stream::timed", "Mark::seconds_since"]),
    program("moves pieces", moves, &[OPENS, STREAMS, "Device::upload_with", UPLOADS, DOWNLOADS]),
    program("borrows a stream", borrows, &[OPENS, STREAMS, ZEROS, "gemm", WAITS]),
    program("drops in another order", drops, &[OPENS, STREAMS, ZEROS, "Plan::run", "Stream::mark"]),
    program(
        "goes other ways",
        others::ways,
        &[
            OPENS,
            "Device::entered",
            "Device::from_current_context",
            STREAMS,
            "Device::upload_with",
            ZEROS,
            "Plan::warm_up",
            WARMS,
            "gemm_batched_by",
            "gemm_batched",
            "Stream::record",
            "Plan::run_gemv",
            "Plan::run_gram",
            "Graph::launch",
            "Matrix::download_with",
            WAITS,
        ],
    ),
    // Thousands of calls, most of them the same again and again.
    Program { step: 61, ..program("calibrates", calibrates, &[OPENS, STREAMS, "Device::ceilings"]) },
];

const OPENS: &str = "Device::cuda";
const STREAMS: &str = "Device::stream";
const ZEROS: &str = "Device::zeros";
const UPLOADS: &str = "Device::upload";
const DOWNLOADS: &str = "Device::download";
const WARMS: &str = "Plan::warm_up_on";
const WAITS: &str = "Stream::synchronize";

const fn program(name: &'static str, run: fn() -> Result<Left>, calls: &'static [&'static str]) -> Program {
    Program { name, run, lets_go: true, step: 1, calls }
}

/// A 100 x 50 matrix and a 50 x 4 one.
fn small() -> Result<(Matrix<f64>, Matrix<f64>)> {
    Ok((Matrix::from_fn(100, 50, |i, l| ((i + l) % 3) as f64)?, Matrix::from_fn(50, 4, |l, j| ((l + j) % 5) as f64)?))
}

fn opens() -> Result<Left> {
    let device = Device::cuda(0)?;
    let (count, memory, stream) = (Device::count()?, device.memory()?, device.stream()?);
    assert!(count == 1 && memory.0 > 0 && memory.0 <= memory.1);
    stream.synchronize()?;
    device.entered(|| ())?;
    Ok(Box::new((device, stream)))
}

fn plans() -> Result<Left> {
    let device = Device::cuda(0)?;
    let (stream, (a, b)) = (device.stream()?, small()?);
    let (there_a, there_b) = (device.upload(&stream, a.view())?, device.upload(&stream, b.view())?);
    let mut c = device.zeros::<f64>(100, 4)?;
    let plan = Plan::gemm(&device, there_a.shape(), there_b.shape(), c.shape()).build()?;
    plan.warm_up()?;
    plan.run(&stream, 1.0, there_a.view(), there_b.view(), 0.0, c.view_mut())?;
    plan.run(&stream, 0.0, there_a.view(), there_b.view(), 2.0, c.view_mut())?;
    assert_eq!((c.download(&stream)?.nrows(), there_a.download(&stream)?.as_slice()), (100, a.as_slice()));
    Ok(Box::new((plan, c, there_b, there_a, stream, device)))
}

fn multiplies() -> Result<Left> {
    let device = Device::cuda(0)?;
    let stream = device.stream()?;
    let (a, b, mut c) = (device.zeros::<f64>(70, 2400)?, device.zeros::<f64>(2400, 4)?, device.zeros::<f64>(70, 4)?);
    gemm(&stream, 1.0, a.view().cols(..1200)?, b.view().rows(..1200)?, 1.0, c.view_mut())?;
    gemm(&stream, 1.0, a.view(), b.view(), 1.0, c.view_mut())?; // a larger workspace
    stream.synchronize()?;
    Ok(Box::new((stream, c, a, b)))
}

fn records() -> Result<Left> {
    let device = Device::cuda(0)?;
    let stream = device.stream()?;
    let (a, b, mut c) = (device.zeros::<f64>(70, 2400)?, device.zeros::<f64>(2400, 4)?, device.zeros::<f64>(70, 4)?);
    let plan = Plan::gemm(&device, a.shape(), b.shape(), c.shape()).build()?;
    assert!(plan.choice().is_some_and(|choice| choice.slots_len > 0), "it needs a workspace: {plan}");
    plan.warm_up_on(&stream)?;
    let mut graph = stream.record(|| plan.run(&stream, 1.0, a.view(), b.view(), 0.0, c.view_mut()))?;
    // SAFETY: all of it lives until the stream is synchronised.
    unsafe { graph.launch(&stream) }?;
    stream.synchronize()?;
    Ok(Box::new((plan, a, b, c, graph, stream)))
}

fn grams() -> Result<Left> {
    let device = Device::cuda(0)?;
    let stream = device.stream()?;
    let a = device.zeros::<f32>(3_000, 8)?;
    let mut c = device.zeros::<f32>(8, 8)?;
    gram(&stream, 1.0, a.view(), 0.0, c.view_mut())?;
    let plan = Plan::gram(&device, a.shape(), c.shape()).build()?;
    plan.warm_up_on(&stream)?;
    plan.run_gram(&stream, 1.0, a.view(), 1.0, c.view_mut())?;
    plan.run_gram(&stream, 0.0, a.view(), 2.0, c.view_mut())?;
    stream.synchronize()?;
    Ok(Box::new((a, plan, stream, c)))
}

fn vectors() -> Result<Left> {
    let device = Device::cuda(0)?;
    let stream = device.stream()?;
    let (a, x) = (device.zeros::<f64>(200, 3_000)?, device.zeros::<f64>(3_000, 1)?);
    let mut y = device.zeros::<f64>(200, 1)?;
    gemv(&stream, 1.0, a.view(), x.view(), 0.0, y.view_mut())?;
    gemv(&stream, 1.0, a.view().t(), y.view(), 0.0, device.zeros::<f64>(1, 3_000)?.view_mut())?; // and drops its result
    let plan = Plan::gemv(&device, a.shape(), x.shape(), y.shape()).build()?;
    plan.warm_up_on(&stream)?;
    plan.run_gemv(&stream, 1.0, a.view(), x.view(), 1.0, y.view_mut())?;
    plan.run_gemv(&stream, 0.0, a.view(), x.view(), 2.0, y.view_mut())?;
    stream.synchronize()?;
    Ok(Box::new((y, plan, x, stream, a)))
}

/// At equal distances, by addresses, a matrix for all, and one product after the other.
fn batches() -> Result<Left> {
    let device = Device::cuda(0)?;
    let stream = device.stream()?;
    let (a, b, mut c) = (device.zeros::<f32>(40, 5)?, device.zeros::<f32>(50, 3)?, device.zeros::<f32>(40, 3)?);
    let parts = |matrix| BatchRef::parts_below(matrix, 10);
    gemm_batched(&stream, 1.0, parts(a.view())?, parts(b.view())?, 0.0, BatchMut::parts_below(c.view_mut(), 10)?)?;
    let listed: Vec<_> = (0..10).map(|at| a.view().rows(4 * at..4 * at + 4)).collect::<Result<_>>()?;
    let shared = BatchRef::shared(b.view().rows(..5)?, 10);
    let out = BatchMut::parts_below(c.view_mut(), 10)?;
    gemm_batched(&stream, 1.0, BatchRef::listed(&listed)?, shared, 1.0, out)?;
    let large = device.zeros::<f32>(80, 40)?;
    let mut products = device.zeros::<f32>(80, 40)?;
    let halves = BatchRef::parts_below(large.view(), 2)?;
    gemm_batched(&stream, 1.0, halves.clone(), halves, 0.0, BatchMut::parts_below(products.view_mut(), 2)?)?;
    stream.synchronize()?;
    Ok(Box::new((c, stream, a, products, b, large)))
}

/// What was measured is planned, and then the model decides again.
fn follows() -> Result<Left> {
    let device = Device::cuda(0)?;
    let stream = device.stream()?;
    let tuned = super::tuned::database(device.machine().expect("a GPU"), 132);
    device.set_tuned(Some(tuned))?;
    let (m, n, k) = super::tuned::LENGTHS;
    let shape = |rows, cols| Shape::packed(rows, cols, Layout::ColumnMajor, model::Dtype::F64);
    let plan = Plan::gemm(&device, shape(m, k), shape(k, n), shape(m, n)).build();
    device.set_tuned(None)?;
    let plan = plan?;
    plan.warm_up_on(&stream)?;
    Ok(Box::new((plan, stream)))
}

fn in_place() -> Result<Left> {
    let device = Device::cuda(0)?;
    let stream = device.stream()?;
    let (mut a, b) = (device.zeros::<f32>(500, 6)?, device.zeros::<f32>(6, 3)?);
    tsmm_in_place(&stream, 1.0, a.view_mut(), b.view())?;
    assert_eq!(a.download(&stream)?.nrows(), 500);
    Ok(Box::new((a, b, stream)))
}

fn host_matrices() -> Result<Left> {
    let (device, (a, b)) = (Device::cuda(0)?, small()?);
    assert_eq!(device.matmul(a.view(), b.view())?.nrows(), 100);
    let stream = device.stream()?;
    let there = device.upload(&stream, a.view())?;
    Ok(Box::new((device.matmul(there.view(), b.view())?, there, stream)))
}

fn times() -> Result<Left> {
    let device = Device::cuda(0)?;
    let stream = device.stream()?;
    let first = stream.mark()?;
    let seconds = stream.timed(|| Ok(()))?;
    let last = stream.mark()?;
    assert!(seconds > 0.0 && last.seconds_since(&first)? > 0.0);
    Ok(Box::new((first, last, stream)))
}

fn moves() -> Result<Left> {
    let device = Device::cuda(0)?;
    let (stream, (a, _)) = (device.stream()?, small()?);
    let mut next = 0.0;
    let sent = device.upload_with(&stream, 50, 100, Layout::RowMajor, &mut |piece: &mut [f64]| {
        piece.iter_mut().for_each(|element| (*element, next) = (next, next + 1.0));
        Ok(())
    })?;
    let strided = device.download(&stream, sent.view().rows(3..7)?.cols(10..12)?)?;
    assert_eq!(strided.get(1, 1), Some(411.0));
    let there = device.upload(&stream, a.view().rows(..20)?)?;
    assert_eq!(there.download(&stream)?.get(19, 49), a.get(19, 49));
    Ok(Box::new((there, stream, sent)))
}

fn borrows() -> Result<Left> {
    let device = Device::cuda(0)?;
    let owner = device.stream()?;
    let (a, b, mut c) = (device.zeros::<f64>(70, 800)?, device.zeros::<f64>(800, 4)?, device.zeros::<f64>(70, 4)?);
    {
        // SAFETY: the stream outlives its borrower.
        let stream = unsafe { Stream::from_raw(&device, owner.as_raw().expect("a GPU's")) };
        // SAFETY: the matrix outlives its view, and nothing writes it.
        let view = unsafe { MatRef::from_raw(&device, a.view().as_raw(), 70, 800, 1, 70) }?;
        // SAFETY: as above; nothing else uses it.
        let out = unsafe { MatMut::from_raw(&device, c.view().as_raw(), 70, 4, 1, 70) }?;
        gemm(&stream, 1.0, view, b.view(), 0.0, out)?;
        gemm(&stream, 1.0, a.view(), b.view(), 0.0, c.view_mut())?;
    }
    owner.synchronize()?;
    Ok(Box::new((a, b, c, owner)))
}

/// The device first, the plan after it, the stream before what it worked on; all of it with work in flight.
fn drops() -> Result<Left> {
    let device = Device::cuda(0)?;
    let (stream, other) = (device.stream()?, device.stream()?);
    let (a, b, mut c) = (device.zeros::<f64>(70, 800)?, device.zeros::<f64>(800, 4)?, device.zeros::<f64>(70, 4)?);
    let shape = Shape::packed(70, 4, Layout::ColumnMajor, model::Dtype::F64);
    let plan = Plan::gemm(&device, a.shape(), b.shape(), shape).build()?;
    drop(device);
    plan.run(&stream, 1.0, a.view(), b.view(), 0.0, c.view_mut())?;
    plan.run(&other, 1.0, a.view(), b.view(), 0.0, c.view_mut())?;
    drop(a);
    drop(stream);
    let mark = other.mark()?;
    Ok(Box::new((other, mark, c, plan, b)))
}

/// The fake's kernels leave what the ceilings look for.
fn calibrates() -> Result<Left> {
    let device = Device::cuda(0)?;
    let stream = device.stream()?;
    let ceilings = device.ceilings(&stream)?;
    match device.calibrate(&ceilings) {
        // Where something stayed behind there is less memory to measure with.
        Err(Error::Unsupported { what }) if what.starts_with("a second calibration") => {}
        result => result?,
    }
    Ok(Box::new(stream))
}
