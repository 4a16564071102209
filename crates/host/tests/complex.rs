//! Complex elements on the CPU: exact on integers, within their bound on anything else; views of conjugates.
#![expect(clippy::unwrap_used, reason = "a test fails by it")]

use lanky_host::{Complex, Device, Error, Layout, MatMut, MatRef, Matrix, Plan, Rule, Scalar, Shape, gemm, gram};

mod common;
use common::{Buffer, Storage, Watched, conj_if, right, watch};
use watched::numbers::{integer, unit};
use watched::{Outcome, Terms, compare, parts};

/// C ← α op(A) op(B) + β C, of a conjugate and as it is; its elements and what it was made of to `verdict`.
fn check<T: Watched>(
    (m, n, k): (usize, usize, usize),
    run: usize,
    part: impl Fn(u64, usize, usize) -> f64,
    verdict: impl Fn(&[T], &Terms<'_, T>) -> Outcome,
) {
    println!("{} {m} x {n} x {k}, run {run}", T::DTYPE); // shown if what follows fails
    let lying = |bit: usize| Storage { step: 1 + run / 3 % 2, ..Storage::new(run >> bit & 1 == 1, run % 3, 0) };
    let conj = [run & 8 == 8, run & 16 == 16];
    let element = |seed, i, j| T::of_two(part(seed, i, j), part(seed + 10, i, j));
    let (zero, factor) = (T::zero(), |at| element(9, run, at));
    let (alpha, beta) = match run % 5 {
        0 => (T::one(), zero),
        1 => (T::one(), T::one()),
        2 => (zero, factor(0)),
        _ => (factor(0), factor(1)),
    };
    let (a, b) =
        (Buffer::new(m, k, lying(0), |i, l| element(1, i, l)), Buffer::new(k, n, lying(1), |l, j| element(2, l, j)));
    let c = Buffer::new(m, n, lying(2), |i, j| if beta == zero { T::canary() } else { element(3, i, j) });
    let mut operands = [a, b, c];
    let found = watch(&mut operands, |[a, b, c]| {
        let (a, b) = (conj_if(a.view()?, conj[0]), conj_if(b.view()?, conj[1]));
        gemm(&Device::cpu().stream()?, alpha, a, b, beta, c.view_mut()?)
    })
    .unwrap();
    let [a, b, c] = &operands;
    let terms = Terms { operands: [&a.image, &b.image, &c.image], conj, factors: [alpha.two(), beta.two()] };
    right(verdict(&found, &terms));
}

const SIZES: [(usize, usize, usize); 7] =
    [(1, 1, 1), (5, 3, 7), (67, 4, 33), (3, 67, 33), (131, 17, 64), (1, 9, 100), (300, 1, 70)];

/// Every way that operands lie, every pair of conjugates and of factors.
fn check_all<T: Watched>(part: impl Fn(u64, usize, usize) -> f64, verdict: impl Fn(&[T], &Terms<'_, T>) -> Outcome) {
    for (size, run) in SIZES.into_iter().flat_map(|size| (0..32).map(move |run| (size, run))) {
        check(size, run, &part, &verdict);
    }
}

fn exact<T: Watched>() {
    let small = |seed, i, j| integer(seed, i, j, 3);
    check_all::<T>(small, |found, terms| compare::equal_parts(found, &terms.parts(), terms.sizes().0));
}

#[test]
fn integers_are_exact() {
    exact::<Complex<f32>>();
    exact::<Complex<f64>>();
    exact::<f64>();
}

fn rounded<T: Watched>() {
    check_all::<T>(unit, |found, terms| {
        let size = terms.sizes();
        parts::within(found, &terms.near_parts(), size, size.2 as f64)
    });
}

/// √2 (γ(2k + 4) |α||A||B| + γ(4) |β||C|).
#[test]
fn errors_are_within_their_bound() {
    rounded::<Complex<f32>>();
    rounded::<Complex<f64>>();
}

#[test]
fn a_nan_reaches_its_row_and_no_other() {
    let mut a = Matrix::from_fn(70, 9, |i, l| Complex::new(i as f64, l as f64)).unwrap();
    let b = Matrix::from_fn(9, 3, |l, j| Complex::new(1.0, (l + j) as f64)).unwrap();
    assert!(a.view_mut().set(66, 4, Complex::new(0.0, f64::NAN)));
    let c = Device::cpu().matmul(a.view().conj(), b.view()).unwrap();
    for i in 0..70 {
        for j in 0..3 {
            assert_eq!(c.get(i, j).unwrap().is_nan(), i == 66, "({i}, {j})");
        }
    }
}

#[test]
fn conjugates_are_views() {
    let a = Matrix::from_fn(2, 3, |i, j| Complex::new(i as f32, j as f32 + 1.0)).unwrap();
    let h = a.h();
    assert_eq!((h.nrows(), h.ncols(), h.get(2, 1)), (3, 2, Some(Complex::new(1.0, -3.0))));
    assert_eq!(h.as_raw(), a.view().as_raw());
    assert_eq!(h.h().get(1, 2), a.get(1, 2));
    assert_eq!(h.rows(2..).unwrap().get(0, 0), Some(Complex::new(0.0, -3.0)));
    assert!(format!("{h:?}").contains("conjugated"), "{h:?}");
    // Copies hold the conjugates themselves.
    for view in [h, h.t()] {
        let copy = Matrix::to_contiguous(view).unwrap();
        assert!(!copy.shape().conj && copy.get(1, 1) == view.get(1, 1));
    }
    let real = Matrix::from_fn(2, 3, |i, j| (i * 3 + j) as f64).unwrap();
    assert_eq!((real.h().shape(), real.view().conj().shape()), (real.t().shape(), real.shape()));
}

#[test]
fn a_conjugated_result_is_refused() {
    let device = Device::cpu();
    let shape = |rows, cols| Shape::packed(rows, cols, Layout::ColumnMajor, lanky_host::Dtype::C128);
    let (a, b, c) = (shape(20, 5), shape(5, 3), shape(20, 3));
    let Err(Error::Shape(error)) = Plan::gemm(&device, a, b, c.conj()).build() else { panic!("it was planned") };
    assert_eq!((error.operand, error.rule), (lanky_host::Operand::C, Rule::Conjugate));
    let plan = Plan::gemm(&device, a.conj(), b, c).build().unwrap();
    let stream = device.stream().unwrap();
    let ones = |rows, cols| Matrix::from_fn(rows, cols, |_, _| Complex::new(1.0, 1.0)).unwrap();
    let (a, b, mut c) = (ones(20, 5), ones(5, 3), ones(20, 3));
    let one = Complex::new(1.0, 0.0);
    let Err(Error::Shape(error)) = plan.run(&stream, one, a.view(), b.view(), one, c.view_mut()) else {
        panic!("another A was taken")
    };
    assert_eq!(
        (error.operand, error.rule, error.required, error.actual),
        (lanky_host::Operand::A, Rule::Conjugate, 1, 0)
    );
    plan.run(&stream, one, a.view().conj(), b.view(), one, c.view_mut()).unwrap();
    // (1 - i)(1 + i) = 2.
    assert_eq!(c.get(19, 2), Some(Complex::new(11.0, 1.0)));
}

#[cfg(feature = "ndarray")]
#[test]
fn arrays_of_complex_numbers() {
    use lanky_host::ndarray::{Array2, ArrayView2};
    let array = Array2::from_shape_fn((4, 3), |(i, j)| Complex::new(i as f64, j as f64));
    let view = MatRef::try_from(array.view()).unwrap();
    assert_eq!(view.get(3, 2), Some(Complex::new(3.0, 2.0)));
    assert_eq!(ArrayView2::try_from(view).unwrap(), array.view());
    let Err(Error::Shape(error)) = ArrayView2::try_from(view.h()) else { panic!("conjugates became an array") };
    assert_eq!(error.rule, Rule::Conjugate);
}

#[cfg(feature = "dlpack")]
#[test]
fn tensors_of_complex_numbers() {
    let a = Matrix::from_fn(2, 3, |i, j| Complex::new(i as f32, j as f32)).unwrap();
    let tensor = a.into_dlpack().unwrap();
    assert_eq!(tensor.view::<Complex<f32>>().unwrap().get(1, 2), Some(Complex::new(1.0, 2.0)));
    assert!(tensor.view::<f64>().is_err() && tensor.view::<Complex<f64>>().is_err());
}

#[cfg(feature = "nalgebra")]
#[test]
fn matrices_of_nalgebra_of_complex_numbers() {
    let a = lanky_host::nalgebra::DMatrix::from_fn(3, 2, |i, j| Complex::new(i as f64, j as f64));
    assert_eq!(MatRef::try_from(a.rows(0, 3)).unwrap().get(2, 1), Some(Complex::new(2.0, 1.0)));
}

#[cfg(feature = "faer")]
#[test]
fn matrices_of_faer_of_complex_numbers() {
    let a = lanky_host::faer::Mat::from_fn(3, 2, |i, j| Complex::new(i as f64, j as f64));
    assert_eq!(MatRef::try_from(a.as_ref()).unwrap().get(2, 1), Some(Complex::new(2.0, 1.0)));
}

/// Aᴴ A is Hermitian to the bit with a real diagonal, Aᵀ A symmetric; both are the product of the two factors.
#[test]
fn gram_matrices_are_hermitian_or_symmetric_to_the_bit() -> lanky_host::Result<()> {
    let device = Device::cpu();
    let stream = device.stream()?;
    let alpha = Complex::new(-0.7, 0.0);
    for (k, n) in [(1, 1), (517, 5), (3, 40), (70, 70)] {
        let data: Vec<Complex<f64>> = (0..k * n).map(|at| Complex::new(unit(7, at, 0), unit(7, at, 1))).collect();
        let stored = MatRef::row_major(&data, k, n)?;
        for (a, no_conj) in [(stored, false), (stored, true), (stored.conj(), false), (stored.conj(), true)] {
            let mut c = vec![Complex::new(f64::NAN, 0.0); n * n];
            if no_conj {
                let shape = Shape::packed(n, n, Layout::RowMajor, <Complex<f64>>::DTYPE);
                let plan = Plan::gram(&device, a.shape(), shape).no_conj().build()?;
                plan.run_gram(&stream, alpha, a, Complex::new(0.0, 0.0), MatMut::row_major(&mut c, n, n)?)?;
            } else {
                gram(&stream, alpha, a, Complex::new(0.0, 0.0), MatMut::row_major(&mut c, n, n)?)?;
            }
            let mut product = vec![Complex::new(0.0, 0.0); n * n];
            let first = if no_conj { a.t() } else { a.h() };
            gemm(&stream, alpha, first, a, Complex::new(0.0, 0.0), MatMut::row_major(&mut product, n, n)?)?;
            for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
                let (x, y) = (c[i * n + j], if no_conj { c[j * n + i] } else { c[j * n + i].conj() });
                assert!(x == y && (no_conj || i != j || x.im == 0.0), "{k} {n} {i} {j}: {x} {y}");
                assert!((x - product[i * n + j]).norm() <= 1e-13 * k as f64, "{k} {n} {i} {j}");
            }
        }
    }
    Ok(())
}
