//! A product in place is the product, and nothing else of A changes.

mod common;

use lanky_host::{
    Complex, Device, Error, MatMut, MatRef, Matrix, Operand, Result, Rule, Scalar, Stream, gemm, tsmm_in_place,
};

/// The devices of this machine.
fn streams() -> Result<Vec<Stream>> {
    let mut streams = vec![Device::cpu().stream()?];
    if let Some(device) = common::gpu("the_first_columns_become_the_product, on a GPU") {
        streams.push(device.stream()?);
    }
    Ok(streams)
}

fn element<T>(of: fn(f32) -> T, i: usize, j: usize, seed: usize) -> T {
    let random = (i * 7919 + j * 104_729 + seed * 31 + 5).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    of((random % 7) as f32 - 3.0)
}

/// A of strides (ld, 1) or (1, ld), n of whose k columns become the product.
fn check<T: Scalar>(of: fn(f32) -> T, stream: &Stream, [m, n, k]: [usize; 3], by_rows: bool, gap: usize) -> Result<()> {
    let ld = gap + if by_rows { k } else { m };
    let strides = if by_rows { (ld, 1) } else { (1, ld) };
    let at = |i: usize, l: usize| i * strides.0 + l * strides.1;
    // Around A's elements lies what must not change.
    let mut data = vec![of(99.0); if by_rows { m * ld } else { k * ld }];
    for i in 0..m {
        for l in 0..k {
            data[at(i, l)] = element(of, i, l, 1);
        }
    }
    let b = Matrix::from_fn(k, n, |l, j| element(of, l, j, 2))?;
    let alpha = of(-2.0);
    let mut expected = Matrix::<T>::zeros(m, n)?;
    let cpu = Device::cpu().stream()?;
    let view = MatRef::with_strides(&data, m, k, strides.0, strides.1)?;
    gemm(&cpu, alpha, view, b.view(), of(0.0), expected.view_mut())?;
    let mut found = data.clone();
    if stream.device().is_cuda() {
        // What lies between the lines travels too: the memory as one column.
        let whole = MatRef::column_major(&data, data.len(), 1)?;
        let mut there = stream.device().upload(stream, whole)?;
        let b = stream.device().upload(stream, b.view())?;
        let address = there.view_mut().as_raw();
        // SAFETY: the span is inside of `there`, which nobody else uses meanwhile.
        let a = unsafe { MatMut::from_raw(stream.device(), address, m, k, strides.0, strides.1)? };
        tsmm_in_place(stream, alpha, a, b.view())?;
        found.copy_from_slice(there.download(stream)?.as_slice().expect("a column is packed"));
    } else {
        let a = MatMut::with_strides(&mut found, m, k, strides.0, strides.1)?;
        tsmm_in_place(stream, alpha, a, b.view())?;
    }
    for i in 0..m {
        for l in 0..n {
            data[at(i, l)] = expected.get(i, l).expect("inside");
        }
    }
    assert_eq!(found, data, "m = {m}, n = {n}, k = {k}, by rows {by_rows}, gap {gap}");
    Ok(())
}

#[test]
fn the_first_columns_become_the_product() -> Result<()> {
    for stream in streams()? {
        for (m, n, k) in
            [(1, 1, 1), (5, 3, 4), (3, 7, 8), (1000, 16, 16), (4097, 5, 17), (10_007, 64, 64), (2000, 1, 64)]
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
