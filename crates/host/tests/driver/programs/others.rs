//! Programs of what the others leave out: other element types and shapes, other ways to the same, graphs of other operations.

use super::*;
use lanky_host::{Complex, Determinism, Triangle, gemm_batched_by, gram_triangle};

/// Complex elements, TSMM, two tall matrices, a triangle; and a plan that is the same on every GPU.
pub fn shapes() -> Result<Left> {
    let device = Device::cuda(0)?;
    let stream = device.stream()?;
    let (zero, one) = (Complex::new(0.0, 0.0), Complex::new(1.0, 0.0));
    let (tall, small) = (device.zeros::<Complex<f64>>(3_000, 6)?, device.zeros::<Complex<f64>>(6, 4)?);
    let (mut out, mut inner) = (device.zeros(3_000, 4)?, device.zeros(6, 4)?);
    gemm(&stream, one, tall.view(), small.view(), zero, out.view_mut())?;
    gemm(&stream, one, tall.view().h(), out.view(), one, inner.view_mut())?;
    let mut square = device.zeros(6, 6)?;
    gram_triangle(&stream, Triangle::Lower, one, tall.view(), zero, square.view_mut())?;
    let (a, b, mut c) = (device.zeros::<f32>(70, 2_400)?, device.zeros::<f32>(2_400, 4)?, device.zeros(70, 4)?);
    let plan = Plan::gemm(&device, a.shape(), b.shape(), c.shape()).determinism(Determinism::AcrossGpus).build()?;
    plan.warm_up_on(&stream)?;
    plan.run(&stream, 1.0, a.view(), b.view(), 0.0, c.view_mut())?;
    let of = |a: Shape, b: Shape, c: Shape| Plan::gemm(&device, a, b, c).build().map(|plan| plan.operation());
    let operations =
        [of(tall.shape(), small.shape(), out.shape())?, of(tall.view().h().shape(), out.shape(), inner.shape())?];
    assert_eq!(operations, ["tsmm", "tsmttsm"]);
    stream.synchronize()?;
    Ok(Box::new((stream, tall, small, out, inner, square, (plan, a, b, c))))
}

/// Somebody's context, a file of measurements, lists of matrices, pieces both ways; and a graph of three operations.
pub fn ways() -> Result<Left> {
    let device = Device::cuda(0)?.entered(Device::from_current_context)??;
    let stream = device.stream()?;
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("driver-{}.tuned", std::process::id()));
    let tuned = crate::tuned::database(device.machine().expect("a GPU"), 132);
    std::fs::write(&file, tuned.to_string()).expect("the target folder can be written");
    let loaded = device.load_tuned(&file).and_then(|()| device.set_tuned(None));
    std::fs::remove_file(&file).expect("it is there");
    loaded?;

    let a = device.upload_with(&stream, 300, 8, Layout::ColumnMajor, &mut |piece: &mut [f64]| {
        piece.fill(3.0);
        Ok(())
    })?;
    let (x, mut y, mut square) = (device.zeros::<f64>(8, 1)?, device.zeros::<f64>(300, 1)?, device.zeros::<f64>(8, 8)?);
    let products = Plan::gemv(&device, a.shape(), x.shape(), y.shape()).build()?;
    let grams = Plan::gram(&device, a.shape(), square.shape()).build()?;
    device.warm_up(&[&products, &grams])?;
    grams.warm_up_on(&stream)?;

    let (factors, mut results) = (device.zeros::<f64>(40, 4)?, device.zeros::<f64>(40, 4)?);
    let parts = || BatchRef::parts_below(factors.view(), 10);
    gemm_batched_by(
        &stream,
        "batched_any",
        1.0,
        parts()?,
        parts()?,
        0.0,
        BatchMut::parts_below(results.view_mut(), 10)?,
    )?;
    let (mut first, mut second) = (device.zeros::<f64>(4, 4)?, device.zeros::<f64>(4, 4)?);
    let two = BatchRef::parts_below(factors.view().rows(..8)?, 2)?;
    gemm_batched(&stream, 1.0, two.clone(), two, 0.0, BatchMut::listed(&mut [first.view_mut(), second.view_mut()])?)?;
    let mut graph = stream.record(|| {
        products.run_gemv(&stream, 1.0, a.view(), x.view(), 0.0, y.view_mut())?;
        grams.run_gram(&stream, 1.0, a.view(), 0.0, square.view_mut())?;
        gemm_batched_by(
            &stream,
            "batched_any",
            1.0,
            parts()?,
            parts()?,
            0.0,
            BatchMut::parts_below(results.view_mut(), 10)?,
        )
    })?;
    // SAFETY: all of it lives until the stream is synchronised.
    unsafe { graph.launch(&stream) }?;
    let mut sum = 0.0;
    a.download_with(&stream, Layout::RowMajor, &mut |piece: &[f64]| {
        sum += piece.iter().sum::<f64>();
        Ok(())
    })?;
    assert_eq!(sum, 7_200.0);
    stream.synchronize()?;
    Ok(Box::new((graph, products, grams, (a, x, y, square), (factors, results, first, second), stream)))
}
