//! Batches of small products: what the views take and refuse, and what the call computes. Sizes, layouts and instructions
//! are tested in lanky-cpu.

mod common;

use common::{Buffer, PACKED, Watched};
use lanky_host::{
    BatchMut, BatchRef, Complex, Device, Error, MatMut, MatRef, Operand, Rule, ShapeError, gemm, gemm_batched,
    gemm_batched_by,
};
use watched::numbers::integer;

type Tested = lanky_host::Result<()>;

/// Small integers, with which arithmetic is exact.
fn made<T: Watched>(len: usize, seed: u64) -> Vec<T> {
    (0..len).map(|at| T::of_two(integer(seed, at, 0, 2), integer(seed, at, 1, 2))).collect()
}

/// A batch in every way that the views have, against the products one by one.
fn ways<T: Watched>(m: usize, n: usize, k: usize, count: usize) -> Tested {
    // A matrix behind the other, guards around all: a column each.
    let laid = |len: usize, seed| {
        let values = made::<T>(len * count, seed);
        Buffer::new(len, count, PACKED, |at, p| values[p * len + at])
    };
    let (of_a, of_b, old) = (laid(m * k, 1), laid(n * k, 2), laid(m * n, 3));
    let stream = Device::cpu().stream()?;
    let b_views: Vec<_> =
        (0..count).rev().map(|i| MatRef::column_major(&of_b.data()[i * n * k..], n, k)).collect::<Result<_, _>>()?;
    let first = MatRef::row_major(of_a.data(), m, k)?;
    let b = BatchRef::listed(&b_views)?;
    let two = T::one() + T::one();
    for (shared, (alpha, beta)) in [(true, (two, -T::one())), (false, (two, T::zero())), (true, (T::zero(), two))] {
        let a = if shared { BatchRef::shared(first, count) } else { BatchRef::row_major(of_a.data(), count, m, k)? };
        let fresh = || laid_over(&old, beta == T::zero());
        let (mut c, mut expected) = (fresh(), fresh());
        let out = BatchMut::row_major(c.data_mut(), count, n, m)?.t();
        gemm_batched(&stream, alpha, a.clone(), b.clone().h(), beta, out)?;
        for i in 0..count {
            let (Some(a), Some(b)) = (a.get(i), b.get(i)) else { panic!("matrix {i} of {count}") };
            let out = MatMut::column_major(&mut expected.data_mut()[i * m * n..], m, n)?;
            gemm(&stream, alpha, a, b.h(), beta, out)?;
        }
        assert!(c.data() == expected.data(), "{} {m} x {n} x {k}, {count} matrices, A shared: {shared}", T::DTYPE);
        c.result();
        of_a.unchanged();
        of_b.unchanged();
    }
    assert!(b.get(count).is_none());
    // α = 0 reads neither.
    let nothing = vec![T::canary(); (m * k + k * n) * count];
    let (a, b) = (BatchRef::row_major(&nothing, count, m, k)?, BatchRef::row_major(&nothing, count, k, n)?);
    let mut c = laid_over(&old, false);
    gemm_batched(&stream, T::zero(), a, b, two, BatchMut::row_major(c.data_mut(), count, m, n)?)?;
    c.result();
    assert!(c.data().iter().zip(old.data()).all(|(new, old)| *new == two * *old));
    Ok(())
}

/// A copy, or its canaries alone.
fn laid_over<T: Watched>(of: &Buffer<T>, is_nan: bool) -> Buffer<T> {
    Buffer::new(of.image.rows, of.image.cols, PACKED, |at, p| if is_nan { T::canary() } else { of.get(at, p) })
}

#[test]
fn all_ways_give_the_products_one_by_one() -> Tested {
    for (m, n, k, count) in [(1, 1, 1, 5), (2, 3, 4, 7), (8, 8, 8, 3), (32, 31, 30, 4), (33, 5, 4, 3), (4, 5, 70, 2)] {
        ways::<f32>(m, n, k, count)?;
        ways::<f64>(m, n, k, count)?;
        ways::<Complex<f32>>(m, n, k, count)?;
        ways::<Complex<f64>>(m, n, k, count)?;
    }
    Ok(())
}

/// Within a product's row, by kernels for small products and for others.
#[test]
fn a_nan_reaches_its_row_and_no_other() -> Tested {
    let stream = Device::cpu().stream()?;
    for (m, n, k) in [(8, 7, 5), (33, 5, 4), (4, 5, 70)] {
        let (mut a, b) = (made::<f64>(3 * m * k, 1), made::<f64>(3 * k * n, 2));
        a[m * k + (m - 1) * k + 2] = f64::NAN;
        let mut c = vec![f64::NAN; 3 * m * n];
        let (a, b) = (BatchRef::row_major(&a, 3, m, k)?, BatchRef::row_major(&b, 3, k, n)?);
        gemm_batched(&stream, 1.0, a, b, 0.0, BatchMut::row_major(&mut c, 3, m, n)?)?;
        for (at, value) in c.iter().enumerate() {
            assert_eq!(value.is_nan(), at / n == m + m - 1, "{m} x {n} x {k}: element {at}");
        }
    }
    Ok(())
}

#[test]
fn results_may_be_listed() -> Tested {
    let stream = Device::cpu().stream()?;
    let (a, b) = (made::<f64>(3 * 6, 1), made::<f64>(3 * 8, 2));
    let mut data = [[f64::NAN; 12], [f64::NAN; 12], [f64::NAN; 12]];
    let [first, second, third] = &mut data;
    // The order of the addresses is not that of the batch.
    let mut c = [MatMut::row_major(third, 3, 4)?, MatMut::row_major(first, 3, 4)?, MatMut::row_major(second, 3, 4)?];
    let (a, b) = (BatchRef::row_major(&a, 3, 3, 2)?, BatchRef::column_major(&b, 3, 2, 4)?);
    gemm_batched(&stream, 1.0, a.clone(), b.clone(), 0.0, BatchMut::listed(&mut c)?)?;
    for (index, spot) in [2, 0, 1].into_iter().enumerate() {
        let (Some(a), Some(b)) = (a.get(index), b.get(index)) else { panic!("matrix {index}") };
        for (i, j) in (0..3).flat_map(|i| (0..4).map(move |j| (i, j))) {
            let sum: f64 = (0..2).filter_map(|l| Some(a.get(i, l)? * b.get(l, j)?)).sum();
            assert_eq!(data[spot][i * 4 + j], sum, "matrix {index} ({i}, {j})");
        }
    }
    Ok(())
}

#[test]
fn empty_batches_and_matrices_change_nothing_but_c() -> Tested {
    let stream = Device::cpu().stream()?;
    let none: [f64; 0] = [];
    let mut c = [3.0; 4];
    let nothing = || BatchRef::row_major(&none, 0, 2, 2);
    gemm_batched(&stream, 1.0, nothing()?, nothing()?, 0.0, BatchMut::row_major(&mut c, 0, 2, 2)?)?;
    assert_eq!(c, [3.0; 4]);
    gemm_batched(&stream, 1.0, BatchRef::listed(&[])?, BatchRef::listed(&[])?, 0.0, BatchMut::<f64>::listed(&mut [])?)?;
    let (a, b) = (BatchRef::row_major(&none, 2, 2, 0)?, BatchRef::row_major(&none, 2, 0, 1)?);
    gemm_batched(&stream, 1.0, a, b, 2.0, BatchMut::row_major(&mut c, 2, 2, 1)?)?;
    assert_eq!(c, [6.0; 4]);
    Ok(())
}

/// What a call refuses, C being as it was.
fn refused(call: impl FnOnce(&mut [f64]) -> Tested) -> (ShapeError, String) {
    let mut c = [7.0; 64];
    let result = call(&mut c);
    assert_eq!(c, [7.0; 64]);
    match result {
        Err(Error::Shape(error)) => {
            let text = error.to_string();
            (error, text)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_does_not_fit_is_refused() -> Tested {
    let stream = Device::cpu().stream()?;
    let data = [1.0; 64];
    let square = |count| BatchRef::row_major(&data, count, 4, 4);

    let (error, text) =
        refused(|c| gemm_batched(&stream, 1.0, square(2)?, square(3)?, 0.0, BatchMut::row_major(c, 3, 4, 4)?));
    assert_eq!((error.operand, error.rule, error.required, error.actual), (Operand::A, Rule::Count, 3, 2));
    assert_eq!(text, "A has 2 matrices, but C has 3: A needs as many");
    let (error, _) =
        refused(|c| gemm_batched(&stream, 1.0, square(3)?, square(4)?, 0.0, BatchMut::row_major(c, 3, 4, 4)?));
    assert_eq!((error.operand, error.rule, error.required, error.actual), (Operand::B, Rule::Count, 3, 4));

    let wide = BatchRef::row_major(&data, 3, 4, 5)?;
    let (error, _) = refused(|c| gemm_batched(&stream, 1.0, wide, square(3)?, 0.0, BatchMut::row_major(c, 3, 4, 4)?));
    assert_eq!((error.operand, error.rule, error.required, error.actual), (Operand::B, Rule::Rows, 5, 4));
    let (error, _) =
        refused(|c| gemm_batched(&stream, 1.0, square(3)?, square(3)?, 0.0, BatchMut::row_major(c, 3, 3, 4)?));
    assert_eq!((error.operand, error.rule, error.required, error.actual), (Operand::C, Rule::Rows, 4, 3));
    let (error, _) =
        refused(|c| gemm_batched(&stream, 1.0, square(3)?, square(3)?, 0.0, BatchMut::row_major(c, 3, 4, 3)?));
    assert_eq!((error.operand, error.rule, error.required, error.actual), (Operand::C, Rule::Cols, 4, 3));

    let (error, text) = refused(|_| BatchRef::with_strides(&data, 5, 13, (4, 4), (4, 1)).map(|_| ()));
    assert_eq!((error.operand, error.rule, error.required, error.actual), (Operand::View, Rule::Span, 68, 64));
    assert!(text.ends_with("it spans 68 elements, but the buffer has 64"), "{text}");
    assert_eq!(BatchRef::with_strides(&data, 4, 16, (4, 4), (4, 1))?.count(), 4);
    let far = refused(|_| BatchRef::with_strides(&data, 5, usize::MAX, (4, 4), (4, 1)).map(|_| ())).0;
    assert_eq!(far.rule, Rule::Span);
    Ok(())
}

#[test]
fn results_that_overlap_are_refused() -> Tested {
    // Nearer than a matrix is long; one matrix for all; equal strides; and what only looks like it.
    for (batch_stride, strides, required, actual) in
        [(15, (4, 1), 16, 15), (0, (4, 1), 1, 0), (4, (4, 1), 12, 4), (1, (4, 1), 3, 1)]
    {
        let (error, _) = refused(|c| BatchMut::with_strides(c, 3, batch_stride, (4, 4), strides).map(|_| ()));
        assert_eq!((error.rule, error.required, error.actual), (Rule::Strides, required, actual), "{batch_stride}");
    }
    let mut data = [0.0; 64];
    assert_eq!(BatchMut::with_strides(&mut data, 3, 1, (4, 4), (3, 12))?.count(), 3); // batch last
    assert_eq!(BatchMut::with_strides(&mut data, 1, 0, (4, 4), (4, 1))?.count(), 1);

    let address = (&raw mut data).cast::<f64>().expose_provenance() as u64;
    // SAFETY: both views are of `data`, which outlives them, and nothing is written.
    let twice = || unsafe { MatMut::<f64>::from_raw(&Device::cpu(), address, 4, 4, 4, 1) };
    let (error, text) = refused(|_| BatchMut::listed(&mut [twice()?, twice()?]).map(|_| ()));
    assert_eq!((error.rule, error.required), (Rule::Overlap, 0));
    assert_eq!(text, "matrices 0 and 1 of the batch are written, but overlap: they share 128 bytes");

    // SAFETY: the view is of `data`, and nothing is written.
    let a = unsafe { MatRef::<f64>::from_raw(&Device::cpu(), address + 48 * 8, 4, 4, 4, 1)? };
    let stream = Device::cpu().stream()?;
    let b = [1.0; 64];
    let (error, text) = refused(|_| {
        let b = BatchRef::row_major(&b, 4, 4, 4)?;
        gemm_batched(&stream, 1.0, BatchRef::shared(a, 4), b, 0.0, BatchMut::row_major(&mut data, 4, 4, 4)?)
    });
    assert_eq!((error.operand, error.rule, error.actual), (Operand::A, Rule::Overlap, 128));
    assert!(text.starts_with("C overlaps A"), "{text}");
    Ok(())
}

/// Whether two listed matrices of 3 x 4 at these places, in elements, may be written.
fn may_be_listed((row, col): (usize, usize), spots: [u64; 3]) -> Result<(), Error> {
    let data = [0.0_f64; 64];
    let address = (&raw const data).expose_provenance() as u64;
    // SAFETY: the views are of `data`, which outlives them, and nothing is written.
    let view = |spot: u64| unsafe { MatMut::<f64>::from_raw(&Device::cpu(), address + 8 * spot, 3, 4, row, col) };
    BatchMut::listed(&mut spots.map(|spot| view(spot).expect("a matrix"))).map(drop)
}

/// By rows and by columns, with a step between the elements and without: matrices that share an element are found, and those that
/// lie between each other's lines are taken.
#[test]
fn listed_results_share_no_element() {
    let elements = |strides: (usize, usize), spot: u64| -> Vec<u64> {
        (0..12).map(|at| spot + (at / 4 * strides.0 + at % 4 * strides.1) as u64).collect()
    };
    for strides in [(4, 1), (1, 3), (12, 1), (1, 9), (15, 2), (3, 10), (2, 7)] {
        for second in 0..20 {
            for third in [0, 5, 8, 19] {
                let spots = [third, 20, second];
                let mut all: Vec<u64> = spots.iter().flat_map(|&spot| elements(strides, spot)).collect();
                all.sort_unstable();
                let share = all.windows(2).any(|pair| pair[0] == pair[1]);
                let found = may_be_listed(strides, spots);
                assert_eq!(found.is_err(), share, "strides {strides:?} at {spots:?}: {found:?}");
            }
        }
    }
}

#[test]
fn listed_matrices_are_of_one_shape() -> Tested {
    let data = [Complex::new(1.0, 2.0); 64];
    let view = |rows, cols| MatRef::row_major(&data, rows, cols);
    for (other, rule) in [
        (view(3, 4)?, Rule::Rows),
        (view(4, 3)?, Rule::Cols),
        (view(4, 4)?.t(), Rule::Strides),
        (view(4, 4)?.conj(), Rule::Conjugate),
    ] {
        let (error, text) = refused(|_| BatchRef::listed(&[view(4, 4)?, view(4, 4)?, other]).map(|_| ()));
        assert_eq!(error.rule, rule);
        assert!(text.starts_with("matrix 2 of the batch has "), "{text}");
    }
    Ok(())
}

/// Against the CPU: strided, shared and listed, transposed, of sizes with kernels of their own and beyond; the host's memory is
/// refused.
#[test]
fn a_gpu_gives_what_the_cpu_does() -> Tested {
    let Some(device) = common::gpu("a_gpu_gives_what_the_cpu_does") else { return Ok(()) };
    let (stream, cpu) = (device.stream()?, Device::cpu().stream()?);
    for (m, n, k, count) in [(3, 2, 5, 1000), (8, 8, 8, 300), (31, 17, 30, 40), (33, 5, 4, 3)] {
        let (a, b) = (made::<f64>(m * k * count, 1), made::<f64>(k * n * count, 2));
        let mut expected = made::<f64>(m * n * count, 3);
        let on = |data: &[f64], rows| device.upload(&stream, MatRef::column_major(data, rows, data.len() / rows)?);
        let (there_a, there_b, mut there_c) = (on(&a, m)?, on(&b, k)?, on(&expected, m)?);
        let listed: Vec<_> =
            (0..count).map(|p| there_b.view().cols(n * p..n * (p + 1))).collect::<Result<Vec<_>, _>>()?;
        let of_a = BatchRef::parts_beside(there_a.view(), count)?;
        let c = BatchMut::parts_beside(there_c.view_mut(), count)?;
        gemm_batched(&stream, 2.0, of_a, BatchRef::listed(&listed)?, -1.0, c)?;
        let c = BatchMut::column_major(&mut expected, count, m, n)?;
        let (of_a, of_b) = (BatchRef::column_major(&a, count, m, k)?, BatchRef::column_major(&b, count, k, n)?);
        gemm_batched(&cpu, 2.0, of_a, of_b, -1.0, c)?;
        let found = device.download(&stream, there_c.view())?;
        assert_eq!(found.as_slice(), Some(expected.as_slice()), "{m} x {n} x {k}");
    }
    let (a, mut c) = ([1.0; 4], [7.0; 4]);
    let view = || BatchRef::row_major(&a, 1, 2, 2);
    let result = gemm_batched(&stream, 1.0, view()?, view()?, 0.0, BatchMut::row_major(&mut c, 1, 2, 2)?);
    assert!(matches!(&result, Err(Error::WrongDevice { operand: Operand::A, .. })), "{result:?}");
    assert_eq!(c, [7.0; 4]);
    Ok(())
}

/// Parts of one matrix, beside or below each other, and addresses: the batches that they say, of a device's memory too.
#[test]
fn parts_of_a_matrix_are_a_batch() -> Tested {
    let (device, data) = (Device::cpu(), made::<f64>(2 * 9, 1));
    let stream = device.stream()?;
    let (below, beside) = (MatRef::row_major(&data, 6, 3)?, MatRef::column_major(&data, 3, 6)?);
    let (rows, cols) = (BatchRef::parts_below(below, 2)?, BatchRef::parts_beside(beside, 2)?);
    for (p, i, j) in (0..18).map(|at| (at / 9, at / 3 % 3, at % 3)) {
        assert_eq!(rows.get(p).and_then(|matrix| matrix.get(i, j)), Some(data[9 * p + 3 * i + j]));
        assert_eq!(cols.get(p).and_then(|matrix| matrix.get(i, j)), Some(data[9 * p + i + 3 * j]));
    }
    let (mut c, mut expected) = (vec![0.0; 18], vec![0.0; 18]);
    gemm_batched(&stream, 1.0, rows.clone(), cols.clone(), 0.0, BatchMut::row_major(&mut expected, 2, 3, 3)?)?;
    let out = MatMut::row_major(&mut c, 6, 3)?;
    gemm_batched(&stream, 1.0, rows.clone(), cols.clone(), 0.0, BatchMut::parts_below(out, 2)?)?;
    assert_eq!(c, expected);
    c.fill(0.0);
    let out = MatMut::row_major(&mut c, 6, 3)?.t();
    gemm_batched(&stream, 1.0, cols.clone().t(), rows.clone().t(), 0.0, BatchMut::parts_beside(out, 2)?)?;
    assert_eq!(c, expected);
    c.fill(0.0);
    let address = c.as_mut_ptr().expose_provenance() as u64;
    // SAFETY: 18 elements from there on, which nothing else uses till the call returns.
    let out = unsafe { BatchMut::from_raw(&device, address, 2, 9, (3, 3), (3, 1))? };
    gemm_batched(&stream, 1.0, rows, cols, 0.0, out)?;
    assert_eq!(c, expected);

    let (error, text) = refused(|_| BatchRef::parts_below(below, 4).map(|_| ()));
    assert_eq!((error.rule, text.as_str()), (Rule::Rows, "a matrix of 6 rows has no 4 equal parts"));
    let (error, _) = refused(|_| BatchRef::parts_beside(beside, 0).map(|_| ()));
    assert_eq!((error.rule, error.required, error.actual), (Rule::Cols, 0, 6));
    // The same of a batch that is written; the other side is not what counts.
    for (count, rows, cols) in [(4, 6, 8), (0, 6, 8), (7, 6, 7), (usize::MAX, 6, 8)] {
        let text = format!("has no {count} equal parts");
        let below = refused(|c| BatchMut::parts_below(MatMut::row_major(c, rows, cols)?, count).map(|_| ()));
        assert!(below.0.rule == Rule::Rows && below.0.actual == 6 && below.1.ends_with(&text), "{}", below.1);
        let beside = refused(|c| BatchMut::parts_beside(MatMut::row_major(c, cols, rows)?, count).map(|_| ()));
        assert!(beside.0.rule == Rule::Cols && beside.0.actual == 6 && beside.1.ends_with(&text), "{}", beside.1);
    }
    // SAFETY: refused before anything is looked at.
    let (error, _) = refused(|_| unsafe { BatchMut::<f64>::from_raw(&device, 8, 3, 8, (3, 3), (3, 1)) }.map(|_| ()));
    assert_eq!((error.rule, error.required, error.actual), (Rule::Strides, 9, 8));
    Ok(())
}

#[test]
fn variants_are_for_gpus() -> Tested {
    let (a, mut c) = ([1.0; 8], [7.0; 8]);
    let square = BatchRef::row_major(&a, 2, 2, 2)?;
    let out = BatchMut::row_major(&mut c, 2, 2, 2)?;
    let call = gemm_batched_by(&Device::cpu().stream()?, "batched_any", 1.0, square.clone(), square, 0.0, out);
    assert!(matches!(call, Err(Error::Unsupported { what }) if what.contains("batched_any")));
    assert_eq!(c, [7.0; 8]);
    Ok(())
}
