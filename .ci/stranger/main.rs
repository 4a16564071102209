//! A program of somebody who has lanky from its packages alone: a product on the CPU, why there is no GPU, and the PTX of
//! every variant; with the feature `views` also the same product through each crate of views.
use lanky::prelude::*;

fn main() -> lanky::Result<()> {
    let device = Device::auto();
    println!("{device}: {}", device.reason());

    let a = Matrix::from_fn(1000, 200, |i, l| ((i + 2 * l) % 7) as f64)?;
    let b = Matrix::from_fn(200, 4, |l, j| ((3 * l + j) % 5) as f64)?;
    let c = Device::cpu().matmul(a.view(), b.view())?;
    for (i, j) in [(0, 0), (10, 2), (999, 3)] {
        let by_hand: usize = (0..200).map(|l| (i + 2 * l) % 7 * ((3 * l + j) % 5)).sum();
        assert_eq!(c.get(i, j), Some(by_hand as f64), "element ({i}, {j})");
    }

    #[cfg(feature = "views")]
    views::check(&a, &b, &c)?;

    let variants = lanky::model::VARIANTS;
    for variant in variants {
        for capability in [(8, 0), (9, 0), (12, 0)] {
            let text = lanky::ptx::module(variant.entry, capability);
            assert_eq!(text.is_some(), capability >= variant.since(), "PTX of {} for {capability:?}", variant.entry);
            assert!(text.is_none_or(|text| text.contains(&format!(".visible .entry {}(", variant.entry))));
        }
    }
    assert_eq!(lanky::ptx::ORIGIN, "committed");
    println!("{} variants have PTX", variants.len());
    match Device::cuda(0) {
        Ok(gpu) => println!("a GPU: {gpu}"),
        Err(error) => println!("no GPU: {error}"),
    }
    Ok(())
}

#[cfg(feature = "views")]
mod views {
    use lanky::dlpack::Tensor;
    use lanky::faer::Mat;
    use lanky::nalgebra::{DMatrix, Dyn, MatrixView};
    use lanky::ndarray::{Array2, ArrayView2};
    use lanky::prelude::*;

    /// The crates' own matrices as A, B and C, without a copy of lanky's.
    pub fn check(a: &Matrix<f64>, b: &Matrix<f64>, c: &Matrix<f64>) -> lanky::Result<()> {
        let at = |matrix: &Matrix<f64>, i, j| matrix.get(i, j).unwrap_or(f64::NAN);
        let stream = Device::cpu().stream()?;
        let (rows, inner, cols) = (a.nrows(), a.ncols(), b.ncols());

        // By rows, as ndarray has it; each into another's C.
        let a_nd = Array2::from_shape_fn((rows, inner), |(i, l)| at(a, i, l));
        let b_na = DMatrix::from_fn(inner, cols, |l, j| at(b, l, j));
        let mut c_faer = Mat::from_fn(rows, cols, |_, _| f64::NAN);
        let (left, right) = (MatRef::try_from(a_nd.view())?, MatRef::try_from(b_na.view((0, 0), (inner, cols)))?);
        gemm(&stream, 1.0, left, right, 0.0, MatMut::try_from(c_faer.as_mut())?)?;

        let raw = Matrix::from_fn(rows, inner, |i, l| at(a, i, l))?.into_dlpack()?.into_raw();
        // SAFETY: just made, and handed to nobody else.
        let a_dl = unsafe { Tensor::from_raw(raw) }?;
        let mut c_nd = Array2::from_elem((rows, cols), f64::NAN);
        gemm(&stream, 1.0, a_dl.view()?, right, 0.0, MatMut::try_from(c_nd.view_mut())?)?;

        let back = ArrayView2::try_from(c.view())?;
        let theirs: MatrixView<'_, f64, Dyn, Dyn, Dyn, Dyn> = c.view().try_into()?;
        for i in 0..rows {
            for j in 0..cols {
                let bits = at(c, i, j).to_bits();
                let all = [c_faer[(i, j)], c_nd[(i, j)], back[(i, j)], theirs[(i, j)]];
                assert!(all.iter().all(|x| x.to_bits() == bits), "element ({i}, {j}): {all:?}");
            }
        }
        println!("ndarray, faer, nalgebra and DLPack give the same bits");
        Ok(())
    }
}
