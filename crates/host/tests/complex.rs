//! Complex elements on the CPU: exact on integers, within their bound on anything else; views of conjugates.
#![expect(clippy::unwrap_used, reason = "a test fails by it")]

use lanky_host::{Complex, Device, Error, Layout, MatMut, MatRef, Matrix, Plan, Rule, Scalar, Shape, gemm, gram};

mod common;
use common::{Buffer, Random, Storage, Watched, conj_if, watch};

/// C ← α op(A) op(B) + β C, of a conjugate and as it is, against a sum by hand.
fn check<T: Watched>(
    (m, n, k): (usize, usize, usize),
    run: usize,
    part: &mut impl FnMut() -> T::Real,
    compare: impl Fn(&T, &T, T, (T, T)),
) {
    let lying = |bit: usize| Storage { row_major: run >> bit & 1 == 1, step: 1 + run / 3 % 2, pad: run % 3 };
    let conj = [run & 8 == 8, run & 16 == 16];
    let mut element = |_: usize, _: usize| T::of_parts(part(), part());
    let (a, b) = (Buffer::new(m, k, lying(0), &mut element), Buffer::new(k, n, lying(1), &mut element));
    let before = Buffer::new(m, n, lying(2), &mut element);
    let zero = T::zero();
    let (alpha, beta) = match run % 5 {
        0 => (T::one(), zero),
        1 => (T::one(), T::one()),
        2 => (zero, element(0, 0)),
        _ => (element(0, 0), element(0, 0)),
    };
    let c = Buffer::new(m, n, lying(2), |i, j| if beta == zero { T::canary() } else { before.get(i, j) });
    let mut operands = [a, b, c];
    watch(&mut operands, |[a, b, c]| {
        let (a, b) = (conj_if(a.view()?, conj[0]), conj_if(b.view()?, conj[1]));
        gemm(&Device::cpu().stream()?, alpha, a, b, beta, c.view_mut()?)
    })
    .unwrap();
    let [a, b, c] = &operands;
    let (va, vb) = (conj_if(a.view().unwrap(), conj[0]), conj_if(b.view().unwrap(), conj[1]));
    for i in 0..m {
        for j in 0..n {
            let mut sum = zero;
            let mut sizes = zero;
            for l in 0..k {
                let (x, y) = (va.get(i, l).unwrap(), vb.get(l, j).unwrap());
                sum += x * y;
                sizes += size(x) * size(y);
            }
            let old = if beta == zero { zero } else { beta * before.get(i, j) };
            let bound = size(alpha) * sizes;
            compare(&c.get(i, j), &(alpha * sum + old), bound, (size(beta), size(old)));
        }
    }
}

/// |x|, as an element.
fn size<T: Scalar>(x: T) -> T {
    let (re, im) = x.parts();
    T::of_parts(num_traits::Float::hypot(re, im), num_traits::Zero::zero())
}

const SIZES: [(usize, usize, usize); 7] =
    [(1, 1, 1), (5, 3, 7), (67, 4, 33), (3, 67, 33), (131, 17, 64), (1, 9, 100), (300, 1, 70)];

fn exact<T: Watched>(of: impl Fn(f64) -> T::Real) {
    let mut random = Random(7);
    for size in SIZES {
        for run in 0..32 {
            check::<T>(size, run, &mut || of(random.integer(3)), |found, wanted, _, _| {
                assert_eq!(found, wanted, "{size:?}, run {run}");
            });
        }
    }
}

#[test]
fn integers_are_exact() {
    exact::<Complex<f32>>(|x| x as f32);
    exact::<Complex<f64>>(|x| x);
    exact::<f64>(|x| x);
}

/// √2 (γ(2k + 4) |α||A||B| + γ(4) |β||C|); the reference, in the same precision, has no more.
#[test]
fn errors_are_within_their_bound() {
    let mut random = Random(9);
    for (m, n, k) in SIZES {
        for run in 0..32 {
            let unit = f64::EPSILON / 2.0;
            let gamma = |k: usize| k as f64 * unit / (1.0 - k as f64 * unit);
            check::<Complex<f64>>((m, n, k), run, &mut || random.unit(), |found, wanted, sizes, (_, old)| {
                let bound = 2.0 * 2.0_f64.sqrt() * (gamma(2 * k + 4) * sizes.re + gamma(4) * old.re);
                let error = (found - wanted).norm();
                assert!(error <= bound, "{m} x {n} x {k}, run {run}: {error:e}, not {bound:e}");
            });
        }
    }
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
    let mut random = Random(7);
    let alpha = Complex::new(-0.7, 0.0);
    for (k, n) in [(1, 1), (517, 5), (3, 40)] {
        let data: Vec<Complex<f64>> = (0..k * n).map(|_| Complex::new(random.unit(), random.unit())).collect();
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
