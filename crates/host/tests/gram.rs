//! Gram matrices on the CPU, and what their plans refuse.

mod common;

use common::{Buffer, Storage};
use lanky_host::{Device, Error, Layout, MatMut, MatRef, Matrix, Plan, Triangle, gram, gram_triangle};

fn tall(k: usize, n: usize) -> lanky_host::Result<Matrix<f64>> {
    Matrix::from_fn(k, n, |l, j| ((l * 7 + j * 5) % 11) as f64 * 0.1 - 0.3)
}

#[test]
fn a_gram_matrix_is_symmetric_to_the_bit() -> lanky_host::Result<()> {
    let stream = Device::cpu().stream()?;
    for (run, (k, n)) in [(1, 1), (1000, 7), (3, 70), (517, 33), (67, 150), (9001, 66)].into_iter().enumerate() {
        let values = tall(k, n)?;
        for gaps in [0, 3] {
            let lying = |bit: usize| Storage { step: 1 + gaps % 2, ..Storage::new(run >> bit & 1 == 0, gaps, 0) };
            let a = Buffer::new(k, n, lying(0), |l, j| values.get(l, j).unwrap_or(f64::NAN));
            let mut c = Buffer::new(n, n, lying(1), |_, _| f64::NAN);
            gram(&stream, 0.7, a.view()?, 0.0, c.view_mut()?)?;
            a.unchanged();
            c.result();
            for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
                assert_eq!(c.get(i, j).to_bits(), c.get(j, i).to_bits(), "{k} {n} {i} {j}");
                let sum: f64 = (0..k).map(|l| a.get(l, i) * a.get(l, j)).sum();
                assert!((c.get(i, j) - 0.7 * sum).abs() <= 1e-12 * k as f64, "{k} {n} {i} {j}");
            }
        }
    }
    Ok(())
}

#[test]
fn a_triangle_leaves_the_rest_alone() -> lanky_host::Result<()> {
    let stream = Device::cpu().stream()?;
    let data = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let a = MatRef::column_major(&data, 2, 3)?;
    // 5 11 17; 11 25 39; 17 39 61, which are the same by rows and by columns.
    let full = [5.0, 11.0, 17.0, 11.0, 25.0, 39.0, 17.0, 39.0, 61.0];
    for (triangle, beta) in [(Triangle::Lower, 0.0), (Triangle::Upper, 2.0), (Triangle::Full, -1.0)] {
        let before: [f64; 9] = std::array::from_fn(|at| at as f64 - 4.0);
        let mut c = before;
        gram_triangle(&stream, triangle, 3.0, a, beta, MatMut::row_major(&mut c, 3, 3)?)?;
        for at in 0..9 {
            let (i, j) = (at / 3, at % 3);
            let asked = triangle == Triangle::Full || if triangle == Triangle::Lower { i >= j } else { i <= j };
            let new = 3.0 * full[at] + beta * before[at];
            assert_eq!(c[at], if asked { new } else { before[at] }, "{triangle:?} {i} {j}");
        }
    }
    // alpha = 0 and k = 0 scale what is asked for.
    let mut c = [1.0, 2.0, 3.0, 4.0];
    gram_triangle(
        &stream,
        Triangle::Upper,
        0.0,
        MatRef::row_major(&[f64::NAN; 2], 1, 2)?,
        2.0,
        MatMut::row_major(&mut c, 2, 2)?,
    )?;
    assert_eq!(c, [2.0, 4.0, 3.0, 8.0]);
    // With β = 0 what is there is not looked at.
    for (alpha, a) in [(1.0, MatRef::row_major(&[], 0, 2)?), (0.0, MatRef::row_major(&[f64::NAN; 2], 1, 2)?)] {
        let mut c = [f64::NAN; 4];
        gram(&stream, alpha, a, 0.0, MatMut::row_major(&mut c, 2, 2)?)?;
        assert_eq!(c, [0.0; 4]);
    }
    Ok(())
}

#[test]
fn plans_say_what_they_are_of() -> lanky_host::Result<()> {
    let device = Device::cpu();
    let stream = device.stream()?;
    let a = tall(300, 4)?;
    let mut c = device.zeros::<f64>(4, 4)?;
    let plan = Plan::gram(&device, a.shape(), c.shape()).triangle(Triangle::Lower).build()?;
    assert_eq!((plan.operation(), plan.variant()), ("gram", "cpu"));
    plan.run_gram(&stream, 1.0, a.view(), 0.0, c.view_mut())?;
    assert!(c.get(3, 0).is_some_and(|x| x != 0.0) && c.get(0, 3) == Some(0.0));
    // Of other factors, and of another product.
    let other = tall(300, 4)?;
    let refused = plan.run(&stream, 1.0, other.view().t(), a.view(), 0.0, c.view_mut());
    assert!(
        matches!(&refused, Err(Error::Unsupported { what }) if what.contains("make one by Plan::gemm")),
        "{refused:?}"
    );
    let product = Plan::gemm(&device, a.shape().t(), a.shape(), c.shape()).build()?;
    let refused = product.run_gram(&stream, 1.0, a.view(), 0.0, c.view_mut());
    assert!(
        matches!(&refused, Err(Error::Unsupported { what }) if what.contains("make one by Plan::gram")),
        "{refused:?}"
    );
    let wrong =
        Plan::gram(&device, a.shape(), lanky_host::Shape::packed(4, 5, Layout::ColumnMajor, lanky_host::Dtype::F64));
    assert!(matches!(wrong.build(), Err(Error::Shape(_))));
    Ok(())
}

#[test]
fn wrong_operands_are_named() -> lanky_host::Result<()> {
    let stream = Device::cpu().stream()?;
    let a = tall(10, 3)?;
    let mut c = [0.0; 12];
    let refused = gram(&stream, 1.0, a.view(), 0.0, MatMut::row_major(&mut c, 3, 4)?);
    assert!(matches!(&refused, Err(Error::Shape(error)) if error.to_string().contains("C is 3 x 4")), "{refused:?}");
    assert_eq!(c, [0.0; 12]);
    Ok(())
}
