//! A matrix times a vector on the CPU, and what its calls refuse.

mod common;

use common::{Buffer, Watched, conj_if, watch};
use lanky_host::{Complex, Device, Dtype, Error, Layout, MatMut, MatRef, Matrix, Operand, Plan, Rule, Shape};
use lanky_host::{Strides, gemm, gemv};
use watched::numbers::integer;

/// Small integers, of complex numbers in both parts.
fn element<T: Watched>(seed: u64, i: usize, j: usize) -> T {
    T::of_two(integer(seed, i, j, 2), integer(seed + 17, i, j, 2))
}

/// Any strides of A, x and y, NaN in all gaps: y is the sum, and nothing beside its elements is written.
fn strided<T: Watched>() -> lanky_host::Result<()> {
    let (stream, two) = (Device::cpu().stream()?, T::one() + T::one());
    for (m, k) in [(1, 1), (1, 700), (700, 1), (37, 53), (70, 700), (700, 70), (5, 9001)] {
        for (index, strides) in [(1, m + 3), (k + 1, 1), (2, 2 * m + 1)].into_iter().enumerate() {
            let a = Buffer::strided((m, k), strides, |i, l| element(1, i, l));
            let x = Buffer::strided((k, 1), (1 + index, 1), |l, _| element(2, l, 0));
            let y = Buffer::strided((m, 1), (3 - index, 1), |_, _| T::canary());
            let mut operands = [a, x, y];
            watch(&mut operands, |[a, x, y]| {
                let (x, y) = (MatRef::vector(x.data(), k, 1 + index)?, MatMut::vector(y.data_mut(), m, 3 - index)?);
                gemv(&stream, two, conj_if(a.view()?, index % 2 == 1), x, T::zero(), y)
            })?;
            let [a, x, y] = &operands;
            let a = conj_if(a.view()?, index % 2 == 1);
            for i in 0..m {
                let sum = (0..k).fold(T::zero(), |sum, l| sum + a.get(i, l).unwrap_or(T::canary()) * x.get(l, 0));
                assert!(y.get(i, 0) == two * sum, "{m} {k} {index}: row {i}");
            }
        }
    }
    Ok(())
}

#[test]
fn any_strides_of_every_type() -> lanky_host::Result<()> {
    strided::<f32>()?;
    strided::<f64>()?;
    strided::<Complex<f32>>()?;
    strided::<Complex<f64>>()
}

#[test]
fn factors_mean_what_blas_says() -> lanky_host::Result<()> {
    let stream = Device::cpu().stream()?;
    let a = MatRef::row_major(&[1.0, 2.0, 3.0, 4.0], 2, 2)?;
    let (x, nothing) = (MatRef::vector(&[1.0, 10.0], 2, 1)?, [f64::NAN; 4]);
    for (alpha, beta, expected) in [(1.0, 2.0, [31.0, 63.0]), (0.0, 2.0, [10.0, 20.0]), (-1.0, 0.0, [-21.0, -43.0])] {
        let mut y = [5.0, 10.0];
        // α = 0 reads neither.
        let a = if alpha == 0.0 { MatRef::row_major(&nothing, 2, 2)? } else { a };
        gemv(&stream, alpha, a, x, beta, MatMut::vector(&mut y, 2, 1)?)?;
        assert_eq!(y, expected);
    }
    // A vector may lie as a row; β = 0 reads nothing.
    let (x, mut y) = ([1.0, 10.0], [f64::NAN; 2]);
    gemv(&stream, 1.0, a.t(), MatRef::row_major(&x, 1, 2)?, 0.0, MatMut::row_major(&mut y, 1, 2)?)?;
    assert_eq!(y, [31.0, 42.0]);
    // No columns: y is scaled.
    gemv(&stream, 1.0, MatRef::row_major(&[], 2, 0)?, MatRef::vector(&[], 0, 1)?, 2.0, MatMut::vector(&mut y, 2, 1)?)?;
    assert_eq!(y, [62.0, 84.0]);
    Ok(())
}

#[test]
fn the_bits_are_those_of_the_product() -> lanky_host::Result<()> {
    let stream = Device::cpu().stream()?;
    let a = Matrix::from_fn(1234, 567, |i, l| ((i * 3 + l * 5) % 17) as f64 * 0.1)?;
    let x = Matrix::from_fn(567, 1, |l, _| (l % 13) as f64 * 0.3)?;
    let (mut y, mut c) = (vec![0.0; 1234], vec![0.0; 1234]);
    gemv(&stream, 0.7, a.view(), x.view(), 0.0, MatMut::vector(&mut y, 1234, 1)?)?;
    gemm(&stream, 0.7, a.view(), x.view(), 0.0, MatMut::column_major(&mut c, 1234, 1)?)?;
    assert_eq!(y, c);
    let plan =
        Plan::gemv(stream.device(), a.shape(), x.shape().t(), Shape::packed(1, 1234, Layout::RowMajor, Dtype::F64));
    let plan = plan.build()?;
    assert_eq!(plan.operation(), "gemv");
    let mut y = vec![0.0; 1234];
    plan.run_gemv(&stream, 0.7, a.view(), x.view(), 0.0, MatMut::vector(&mut y, 1234, 1)?)?;
    assert_eq!(y, c);
    Ok(())
}

/// Few rows and a long k, which is cut into parts: exact, the same bits again, and the plan says so. β = 0 reads no NaN.
#[test]
fn a_long_k_is_shared_out() -> lanky_host::Result<()> {
    let stream = Device::cpu().stream()?;
    for (m, k) in [(1, 1_000_003), (7, 300_001)] {
        let a = Matrix::from_fn(m, k, |i, l| ((i + l) % 5) as f64 - 2.0)?;
        let x = Matrix::from_fn(k, 1, |l, _| (l % 3) as f64 - 1.0)?;
        let sum = |i: usize| (0..k).map(|l| (((i + l) % 5) as f64 - 2.0) * ((l % 3) as f64 - 1.0)).sum::<f64>();
        for (beta, old) in [(0.0, f64::NAN), (-0.5, 6.0)] {
            let mut y = vec![old; m];
            gemv(&stream, 3.0, a.view(), x.view(), beta, MatMut::vector(&mut y, m, 1)?)?;
            let expected: Vec<f64> =
                (0..m).map(|i| 3.0 * sum(i) + if beta == 0.0 { 0.0 } else { beta * old }).collect();
            assert_eq!(y, expected, "{m} {k}");
        }
        // As a row times a matrix it is the same product.
        let mut y = vec![0.0; m];
        gemm(&stream, 3.0, x.view().t(), a.view().t(), 0.0, MatMut::row_major(&mut y, 1, m)?)?;
        assert_eq!(y, (0..m).map(|i| 3.0 * sum(i)).collect::<Vec<_>>());
        let plan = Plan::gemv(stream.device(), a.shape(), x.shape(), Matrix::<f64>::from_fn(m, 1, |_, _| 0.0)?.shape());
        assert!(plan.build()?.to_string().contains("parts of"), "{m} {k}");
    }
    let third = Matrix::from_fn(1, 600_001, |_, l| 1.0 / (l + 1) as f64)?;
    let mut found = [0.0; 3];
    for (threads, y) in (1..).zip(&mut found) {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        let y = MatMut::vector(std::slice::from_mut(y), 1, 1)?;
        pool.install(|| gemv(&stream, 1.0, third.view(), third.view(), 0.0, y))?;
    }
    assert!(found.iter().all(|y| y.to_bits() == found[0].to_bits()), "{found:?}");
    Ok(())
}

/// What the error names, what it asks for and what it was given.
fn refusal(result: lanky_host::Result<()>) -> Option<(Operand, Rule, u64, u64)> {
    match result {
        Err(Error::Shape(e)) => Some((e.operand, e.rule, e.required, e.actual)),
        _ => None,
    }
}

#[test]
fn wrong_vectors_are_named() -> lanky_host::Result<()> {
    let stream = Device::cpu().stream()?;
    let (data, mut out) = ([1.0; 12], [7.0; 12]);
    let a = MatRef::column_major(&data, 3, 4)?;
    let vector = |len| MatRef::vector(&data, len, 1);
    let mut run = |x: MatRef<'_, f64>, rows: usize, cols: usize| {
        refusal(gemv(&stream, 1.0, a, x, 0.0, MatMut::column_major(&mut out, rows, cols)?))
            .ok_or(Error::Unsupported { what: "no refusal".into() })
    };
    assert_eq!(run(vector(3)?, 3, 1)?, (Operand::X, Rule::Rows, 4, 3));
    assert_eq!(run(vector(4)?, 4, 1)?, (Operand::Y, Rule::Rows, 3, 4));
    assert_eq!(run(MatRef::column_major(&data, 4, 2)?, 3, 1)?, (Operand::X, Rule::Cols, 1, 2));
    assert_eq!(run(vector(4)?, 3, 2)?, (Operand::Y, Rule::Cols, 1, 2));
    let text = gemv(&stream, 1.0, a, vector(3)?, 0.0, MatMut::vector(&mut out, 3, 1)?).map_err(|e| e.to_string());
    assert_eq!(text, Err("x has 3 elements, but A is 3 x 4: as many as columns, 4 elements".into()));
    assert_eq!(out, [7.0; 12]);
    // Two elements of y at one place.
    assert!(MatMut::vector(&mut out, 3, 0).is_err());
    assert!(MatRef::vector(&data, 4, 4).is_err() && MatRef::vector(&data, 3, 5).is_ok());
    Ok(())
}

#[test]
fn overlap_is_refused() -> lanky_host::Result<()> {
    let stream = Device::cpu().stream()?;
    let mut data = [1.0; 12];
    let address = data.as_mut_ptr().expose_provenance() as u64;
    let device = stream.device();
    let a = [2.0; 12];
    // SAFETY: the memory lives, and nothing else uses it; the call is to refuse.
    let (x, y) = unsafe {
        (MatRef::<f64>::from_raw(device, address, 4, 1, 1, 4)?, MatMut::<f64>::from_raw(device, address, 3, 1, 4, 12)?)
    };
    let refused = gemv(&stream, 1.0, MatRef::column_major(&a, 3, 4)?, x, 0.0, y);
    assert!(refused.as_ref().is_err_and(|e| e.to_string().starts_with("y overlaps x: ")), "{refused:?}");
    assert_eq!(refusal(refused), Some((Operand::X, Rule::Overlap, 0, 32)));
    Ok(())
}

/// A plan for another vector names it as the product does.
#[test]
fn plans_are_for_their_shapes() -> lanky_host::Result<()> {
    let stream = Device::cpu().stream()?;
    let shape = |rows, cols| Shape::packed(rows, cols, Layout::ColumnMajor, Dtype::F64);
    let plan = Plan::gemv(stream.device(), shape(3, 4), shape(4, 1), shape(3, 1)).build()?;
    let (a, mut y) = ([1.0; 12], [0.0; 3]);
    let a = MatRef::column_major(&a, 3, 4)?;
    let x = [1.0; 8];
    let strided = plan.run_gemv(&stream, 1.0, a, MatRef::vector(&x, 4, 2)?, 0.0, MatMut::vector(&mut y, 3, 1)?);
    assert_eq!(refusal(strided), Some((Operand::X, Rule::Strides, 1, 2)));
    let x_shape = Shape::with_strides(4, 1, Strides { row: 2, col: 8 }, Dtype::F64);
    let plan = Plan::gemv(stream.device(), shape(3, 4), x_shape, shape(3, 1)).build()?;
    plan.run_gemv(&stream, 1.0, a, MatRef::vector(&x, 4, 2)?, 0.0, MatMut::vector(&mut y, 3, 1)?)?;
    assert_eq!(y, [4.0; 3]);
    Ok(())
}
