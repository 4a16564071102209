//! Errors are matched on, and each says what to do.
use lanky::prelude::*;

fn with_fallback(a: MatRef<'_, f64>, b: MatRef<'_, f64>) -> lanky::Result<Matrix<f64>> {
    match Device::cuda(0).and_then(|gpu| gpu.matmul(a, b)) {
        Err(Error::OutOfMemory { wanted, free, .. }) => {
            eprintln!("{wanted} bytes wanted, {free} free: on the CPU instead");
            Device::cpu().matmul(a, b)
        }
        Err(error) if error.is_device() => {
            eprintln!("{error}: on the CPU instead");
            Device::cpu().matmul(a, b)
        }
        other => other,
    }
}

fn main() -> lanky::Result<()> {
    let a = Matrix::from_fn(200, 299, |i, l| (i * l) as f64)?;
    let b = Matrix::from_fn(300, 4, |l, j| (l + j) as f64)?;
    let error = with_fallback(a.view(), b.view()).expect_err("the shapes do not agree");
    assert_eq!(error.to_string(), "B is 300 x 4, but A is 200 x 299: B needs 299 rows");
    assert!(matches!(&error, Error::Shape(shape) if (shape.required, shape.actual) == (299, 300)));
    println!("{error}");
    let c = with_fallback(a.view(), b.view().rows(..299)?)?;
    assert_eq!((c.nrows(), c.ncols()), (200, 4));
    Ok(())
}
