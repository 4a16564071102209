//! A product in place is the product, and nothing else of A changes.

mod common;

use common::{Buffer, Storage, Watched, right};
use lanky_host::{Complex, Device, Error, MatMut, MatRef, Matrix, Operand, Result, Rule, Stream, gemm, tsmm_in_place};
use watched::compare::equal_parts;
use watched::numbers::integer;

/// The devices of this machine.
fn streams() -> Result<Vec<Stream>> {
    let mut streams = vec![Device::cpu().stream()?];
    if let Some(device) = common::gpu("the_first_columns_become_the_product, on a GPU") {
        streams.push(device.stream()?);
    }
    Ok(streams)
}

/// A by rows or by columns, n of whose k columns become the product.
fn check<T: Watched>(
    of: fn(f32) -> T,
    stream: &Stream,
    [m, n, k]: [usize; 3],
    by_rows: bool,
    pad: usize,
) -> Result<()> {
    println!("m = {m}, n = {n}, k = {k}, by rows {by_rows}, gap {pad}"); // shown if what follows fails
    let element = |seed, i, j| of(integer(seed, i, j, 3) as f32);
    let mut a = Buffer::new(m, k, Storage::new(by_rows, pad, 0), |i, l| element(1, i, l));
    let b = Matrix::from_fn(k, n, |l, j| element(2, l, j))?;
    let alpha = of(-2.0);
    let mut expected = Matrix::<T>::zeros(m, n)?;
    let cpu = Device::cpu().stream()?;
    gemm(&cpu, alpha, a.view()?, b.view(), of(0.0), expected.view_mut())?;
    let wanted = |e: usize| expected.get(e % m, e / m).unwrap_or_else(|| a.image.get(e % m, e / m)).two();
    let wanted: Vec<[f64; 2]> = (0..m * k).map(wanted).collect();
    if stream.device().is_cuda() {
        // What lies around it and between the lines travels too: the memory as one column.
        let mut there = stream.device().upload(stream, MatRef::column_major(&a.all, a.all.len(), 1)?)?;
        let b = stream.device().upload(stream, b.view())?;
        let address = there.view_mut().as_raw() + (a.image.at(0, 0) * size_of::<T>()) as u64;
        let (row, col) = a.image.strides();
        // SAFETY: the span is inside of `there`, which nobody else uses meanwhile.
        let view = unsafe { MatMut::from_raw(stream.device(), address, m, k, row, col)? };
        tsmm_in_place(stream, alpha, view, b.view())?;
        a.all.copy_from_slice(there.download(stream)?.as_slice().expect("a column is packed"));
    } else {
        tsmm_in_place(stream, alpha, a.view_mut()?, b.view())?;
    }
    right(equal_parts(&a.result(), &wanted, m));
    Ok(())
}

#[test]
fn the_first_columns_become_the_product() -> Result<()> {
    for stream in streams()? {
        for (m, n, k) in [(1, 1, 1), (5, 3, 4), (3, 7, 8), (1000, 16, 16), (4097, 5, 17), (2003, 64, 64), (2000, 1, 64)]
        {
            for (by_rows, gap) in [(true, 0), (true, 3), (false, 0), (false, 1)] {
                check::<f32>(f32::from, &stream, [m, n, k], by_rows, gap)?;
                check::<f64>(f64::from, &stream, [m, n, k], by_rows, gap)?;
                check(|x| Complex::new(x, 2.0 * x), &stream, [m, n, k], by_rows, gap)?;
                check(|x| Complex::new(f64::from(x), -2.0 * f64::from(x)), &stream, [m, n, k], by_rows, gap)?;
            }
        }
    }
    Ok(())
}

#[test]
fn alpha_zero_writes_zeros_and_empty_does_nothing() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let mut a = [f64::NAN, f64::NAN, 3.0, f64::NAN, f64::NAN, 6.0];
    let b = [f64::NAN; 6];
    tsmm_in_place(&stream, 0.0, MatMut::row_major(&mut a, 2, 3)?, MatRef::row_major(&b, 3, 2)?)?;
    assert_eq!(a, [0.0, 0.0, 3.0, 0.0, 0.0, 6.0]);
    let mut a = [1.0, 2.0];
    tsmm_in_place(&stream, 1.0, MatMut::row_major(&mut a, 1, 2)?, MatRef::row_major(&[], 2, 0)?)?;
    assert_eq!(a, [1.0, 2.0]);
    tsmm_in_place(&stream, 1.0, MatMut::row_major(&mut [], 0, 2)?, MatRef::row_major(&b, 2, 2)?)
}

#[test]
fn what_is_not_legal_is_refused() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let (mut a, b) = ([1.0; 300], [1.0; 8000]);
    let mut refused = |rows, cols, (k, n)| match tsmm_in_place(
        &stream,
        1.0,
        MatMut::row_major(&mut a, rows, cols)?,
        MatRef::row_major(&b, k, n)?,
    ) {
        Err(error) => Ok::<Error, Error>(error),
        Ok(()) => panic!("{rows} x {cols} times {k} x {n} is not refused"),
    };
    let rule = |error| match error {
        Error::Shape(error) => Some((error.operand, error.rule, error.required, error.actual)),
        _ => None,
    };
    // More columns than A has would be written into other rows.
    assert_eq!(rule(refused(10, 3, (3, 4))?), Some((Operand::B, Rule::Cols, 3, 4)));
    assert_eq!(rule(refused(10, 3, (4, 3))?).map(|found| (found.0, found.1)), Some((Operand::B, Rule::Rows)));
    let error = refused(3, 65, (65, 2))?;
    assert!(matches!(&error, Error::Unsupported { what } if what.contains("k = 65") && what.contains("64")), "{error}");
    Ok(())
}
