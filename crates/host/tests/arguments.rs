//! One wrong argument a call: the error names the operand and the rule, and C is as it was.

use lanky_host::{
    BatchMut, BatchRef, Device, Dtype, Error, Graph, Layout, Mark, MatMut, MatRef, Matrix, Operand, Plan, Rule, Shape,
    Stream, Strides, gemm,
};

fn stream() -> Stream {
    Device::cpu().stream().unwrap()
}

/// The rule that a call broke, and its text.
fn broken(result: lanky_host::Result<()>) -> (Operand, Rule, u64, u64, String) {
    match result {
        Err(Error::Shape(error)) => (error.operand, error.rule, error.required, error.actual, error.to_string()),
        other => panic!("not a shape error: {other:?}"),
    }
}

#[test]
fn sizes_that_do_not_agree_are_named() {
    let data = [1.0; 64];
    let shapes = [
        // A, B, C; operand, rule, required, actual, text
        ((3, 4), (5, 2), (3, 2), Operand::B, Rule::Rows, 4, 5, "B is 5 x 2, but A is 3 x 4: B needs 4 rows"),
        ((3, 4), (4, 2), (2, 2), Operand::C, Rule::Rows, 3, 2, "C is 2 x 2, but A is 3 x 4: C needs 3 rows"),
        ((3, 4), (4, 2), (3, 1), Operand::C, Rule::Cols, 2, 1, "C is 3 x 1, but B is 4 x 2: C needs 2 columns"),
        // Two faults: the earlier is reported.
        ((3, 4), (5, 2), (9, 9), Operand::B, Rule::Rows, 4, 5, "B is 5 x 2, but A is 3 x 4: B needs 4 rows"),
        // Empty operands are held to the same rules.
        ((0, 4), (5, 0), (0, 0), Operand::B, Rule::Rows, 4, 5, "B is 5 x 0, but A is 0 x 4: B needs 4 rows"),
        ((1, 0), (1, 1), (1, 1), Operand::B, Rule::Rows, 0, 1, "B is 1 x 1, but A is 1 x 0: B needs 0 rows"),
    ];
    for (a, b, c, operand, rule, required, actual, text) in shapes {
        let mut out = [f64::NAN; 81];
        let result = gemm(
            &stream(),
            1.0,
            MatRef::column_major(&data, a.0, a.1).unwrap(),
            MatRef::row_major(&data, b.0, b.1).unwrap(),
            0.0,
            MatMut::row_major(&mut out, c.0, c.1).unwrap(),
        );
        assert_eq!(broken(result), (operand, rule, required, actual, text.to_owned()));
        assert!(out.iter().all(|value| value.is_nan()), "C was written");
    }
}

#[test]
fn exact_spans_are_accepted_and_one_element_less_is_not() {
    // 3 x 5 with a leading dimension of 7: 4 * 7 + 3 elements, no padding behind the last column.
    let mut data = [0.0; 31];
    assert!(MatRef::with_strides(&data, 3, 5, 1, 7).is_ok());
    assert!(MatMut::with_strides(&mut data, 3, 5, 1, 7).is_ok());
    assert!(MatRef::with_strides(&data, 5, 3, 7, 1).is_ok());
    let short = MatRef::with_strides(&data[..30], 3, 5, 1, 7).map(drop);
    let text = "the matrix is 3 x 5 with strides 1 and 7: it spans 31 elements, but the buffer has 30";
    assert_eq!(broken(short), (Operand::View, Rule::Span, 31, 30, text.to_owned()));
    assert!(MatRef::column_major(&data[..14], 3, 5).is_err());
    assert!(MatMut::row_major(&mut data[..14], 3, 5).is_err());
    assert!(MatRef::<f64>::column_major(&[], 0, 5).is_ok());
    assert!(MatRef::<f64>::with_strides(&[], usize::MAX, 0, usize::MAX, usize::MAX).is_ok());
}

/// Every stride against every length of a buffer, by arithmetic that cannot overflow.
#[test]
fn strides_are_taken_where_the_buffer_holds_them() {
    let (mut data, huge) = ([0.0_f64; 40], usize::MAX / 8 + 1);
    for (rows, cols) in [(3, 5), (5, 3), (1, 4), (4, 1), (1, 1), (0, 3), (3, 0)] {
        for stride in [0, 1, rows - usize::from(rows > 0), rows, rows + 1, 4_294_967_295, huge, usize::MAX] {
            for (row, col) in [(1, stride), (stride, 1)] {
                let steps = |len: usize, stride: usize| (len as i128 - 1) * stride as i128;
                let span = if rows * cols == 0 { 0 } else { steps(rows, row) + steps(cols, col) + 1 };
                for len in [span - 1, span, span + 1].into_iter().filter(|len| (0..=40).contains(len)).chain([40]) {
                    let len = usize::try_from(len).unwrap();
                    let case = format!("{rows} x {cols} with strides {row} and {col} in {len} elements");
                    let read = MatRef::with_strides(&data[..len], rows, cols, row, col).map(drop);
                    assert_eq!(read.is_ok(), span <= len as i128, "{case}: {read:?}");
                    let written = MatMut::with_strides(&mut data[..len], rows, cols, row, col).map(drop);
                    // Distinct elements: whoever counts them finds as many as there are.
                    let places: std::collections::HashSet<i128> = (0..rows.min(5))
                        .flat_map(|i| (0..cols.min(5)).map(move |j| steps(i + 1, row) + steps(j + 1, col)))
                        .collect();
                    if span > len as i128 || places.len() < rows * cols {
                        assert!(matches!(written, Err(Error::Shape(_))), "{case}");
                    } else if written.is_err() {
                        assert_eq!(broken(written).1, Rule::Strides, "{case}: the few that interleave are refused too");
                        assert!(row.min(col) * (if row < col { rows } else { cols } - 1) >= row.max(col), "{case}");
                    }
                }
            }
        }
    }
}

#[test]
fn spans_beyond_memory_are_refused() {
    let data = [0.0_f64; 4];
    for (rows, cols, row, col) in [
        (3, 1, usize::MAX, 1),
        (usize::MAX, usize::MAX, 1, usize::MAX),
        (2, 2, usize::MAX / 2, usize::MAX / 2 + 2),
        (2, 1, usize::MAX / 16 + 1, 1),
    ] {
        let result = MatRef::with_strides(&data, rows, cols, row, col).map(drop);
        assert_eq!(broken(result).1, Rule::Span, "{rows} x {cols}, {row}, {col}");
    }
    assert!(MatRef::column_major(&data, usize::MAX, 2).is_err());
    assert!(matches!(Matrix::<f64>::zeros(usize::MAX, usize::MAX), Err(Error::Shape(_))));
    assert!(matches!(Matrix::<f64>::zeros(1 << 40, 1 << 19), Err(Error::OutOfMemory { .. })));
    // SAFETY: refused before anything is read.
    let raw = unsafe { MatRef::<f64>::from_raw(&Device::cpu(), 8, 1 << 40, 1 << 40, 1, 1 << 40) };
    assert_eq!(broken(raw.map(drop)).1, Rule::Span);
}

#[test]
fn overlapping_results_are_refused() {
    let mut data = vec![0.0; 100];
    for (rows, cols, row, col) in [(3, 4, 0, 1), (3, 4, 1, 0), (3, 4, 1, 2), (3, 4, 3, 1), (4, 3, 2, 6)] {
        let result = MatMut::with_strides(&mut data, rows, cols, row, col).map(drop);
        let (operand, rule, ..) = broken(result);
        assert_eq!((operand, rule), (Operand::View, Rule::Strides), "{rows} x {cols}, {row}, {col}");
        // Reading them is legal.
        assert!(MatRef::with_strides(&data, rows, cols, row, col).is_ok());
    }
}

#[test]
fn a_result_over_an_operand_is_refused() {
    let cpu = Device::cpu();
    let mut data = vec![1.0_f64; 64];
    let base = u64::try_from(data.as_mut_ptr().expose_provenance()).unwrap();
    // A is 4 x 4 at 16..32; C in turn at its last element, its first, inside, and between its columns.
    for (at, row, col, shared) in [(31, 1, 4, 8), (1, 1, 4, 8), (16, 1, 4, 128), (20, 1, 4, 96)] {
        // SAFETY: all of it is inside `data`, which lives on; the calls are refused before they touch it.
        let (a, c) = unsafe {
            let a = MatRef::<f64>::from_raw(&cpu, base + 16 * 8, 4, 4, 1, 4).unwrap();
            (a, MatMut::<f64>::from_raw(&cpu, base + at * 8, 4, 4, row, col).unwrap())
        };
        let other = [1.0; 16];
        let other = MatRef::column_major(&other, 4, 4).unwrap();
        let mut c = c;
        for (a, b, operand) in [(a, other, Operand::A), (other, a, Operand::B)] {
            let result = gemm(&stream(), 1.0, a, b, 1.0, c.reborrow());
            let (name, rule, required, actual, text) = broken(result);
            assert_eq!((name, rule, required), (operand, Rule::Overlap, 0));
            assert_eq!(actual, shared, "{text}");
            assert!(text.starts_with(&format!("C overlaps {operand}: ")), "{text}");
        }
    }
    // Neighbours share nothing.
    // SAFETY: inside `data`, apart from each other.
    let (a, c) = unsafe {
        let a = MatRef::<f64>::from_raw(&cpu, base, 4, 4, 1, 4).unwrap();
        (a, MatMut::<f64>::from_raw(&cpu, base + 16 * 8, 4, 4, 1, 4).unwrap())
    };
    gemm(&stream(), 1.0, a, a, 0.0, c).unwrap();
    assert_eq!(&data[15..33], &[&[1.0][..], &[4.0; 16], &[1.0]].concat());
}

#[test]
fn ranges_must_lie_inside() {
    let data: Vec<f64> = (0..12).map(f64::from).collect();
    let view = MatRef::column_major(&data, 3, 4).unwrap();
    assert_eq!(view.rows(1..3).unwrap().cols(2..).unwrap().get(1, 1), Some(11.0));
    assert_eq!(view.cols(4..).unwrap().shape().cols, 0);
    assert_eq!(view.t().rows(..=0).unwrap().get(0, 2), Some(2.0));
    #[expect(clippy::reversed_empty_ranges, reason = "that is the fault")]
    for bad in [2..1, 0..4, 4..4, 3..usize::MAX] {
        assert_eq!(broken(view.rows(bad).map(drop)).1, Rule::Range);
    }
    assert!(view.rows(0..=usize::MAX).is_err());
    assert_eq!((view.get(3, 0), view.get(0, 4)), (None, None));
    #[expect(clippy::reversed_empty_ranges, reason = "that is the fault")]
    for bad in [3..2, 0..5, 5..5, 4..usize::MAX] {
        assert_eq!(broken(view.cols(bad).map(drop)).1, Rule::Range);
    }
}

/// The same of a matrix that is written: what is outside is neither viewed nor set.
#[test]
fn ranges_of_results_must_lie_inside() {
    let mut data = [7.0; 16];
    let whole = |data: &mut [f64; 16], use_it: &mut dyn FnMut(MatMut<'_, f64>)| {
        use_it(MatMut::with_strides(&mut data[2..13], 3, 3, 1, 4).unwrap());
        // The last line needs no padding.
        assert_eq!(data[..2], [7.0; 2]);
        assert_eq!(data[13..], [7.0; 3]);
    };
    #[expect(clippy::reversed_empty_ranges, reason = "that is the fault")]
    for bad in [2..1, 0..4, 4..4, 3..usize::MAX] {
        whole(&mut data, &mut |view| assert_eq!(broken(view.rows(bad.clone()).map(drop)).1, Rule::Range));
        whole(&mut data, &mut |view| assert_eq!(broken(view.cols(bad.clone()).map(drop)).1, Rule::Range));
    }
    for (i, j) in [(3, 0), (0, 3), (3, 3), (2, usize::MAX), (usize::MAX, 2), (usize::MAX, usize::MAX)] {
        whole(&mut data, &mut |mut view| assert!(!view.set(i, j, 1.0), "{i} {j}"));
        whole(&mut data, &mut |view| assert!(!view.t().set(j, i, 1.0), "{i} {j}"));
    }
    // A part ends where it ends, not where its matrix does.
    whole(&mut data, &mut |view| {
        let mut part = view.rows(1..2).unwrap().cols(..2).unwrap();
        assert!(!part.set(1, 0, 1.0) && !part.set(0, 2, 1.0));
    });
    assert_eq!(data, [7.0; 16]);
    whole(&mut data, &mut |view| assert!(view.rows(1..).unwrap().cols(2..).unwrap().set(1, 0, 1.0)));
    let expected: [f64; 16] = std::array::from_fn(|at| if at == 2 + 2 + 2 * 4 { 1.0 } else { 7.0 });
    assert_eq!(data, expected);
}

#[test]
fn plans_refuse_what_they_were_not_made_for() {
    let cpu = Device::cpu();
    let shape = |rows, cols| Shape::packed(rows, cols, Layout::ColumnMajor, Dtype::F64);
    let plan = Plan::gemm(&cpu, shape(3, 4), shape(4, 2), shape(3, 2)).build().unwrap();
    plan.warm_up().unwrap();
    plan.warm_up_on(&stream()).unwrap();
    assert_eq!((plan.operation(), plan.variant(), plan.entry()), ("tsmm", "cpu", None));
    let data = [1.0; 64];
    let of = |rows, cols| MatRef::column_major(&data, rows, cols).unwrap();
    let mut out = [f64::NAN; 64];
    let mut run =
        |a, b, (rows, cols)| plan.run(&stream(), 1.0, a, b, 0.0, MatMut::column_major(&mut out, rows, cols).unwrap());
    run(of(3, 4), of(4, 2), (3, 2)).unwrap();
    let found = |result| {
        let (operand, rule, ..) = broken(result);
        (operand, rule)
    };
    assert_eq!(found(run(of(2, 4), of(4, 2), (2, 2))), (Operand::A, Rule::Rows));
    assert_eq!(found(run(of(3, 5), of(5, 2), (3, 2))), (Operand::A, Rule::Cols));
    assert_eq!(found(run(of(3, 4), of(4, 3), (3, 3))), (Operand::B, Rule::Cols));
    assert_eq!(found(run(of(3, 4), of(4, 2), (4, 2))), (Operand::C, Rule::Rows));
    let strided = MatRef::with_strides(&data, 3, 4, 1, 5).unwrap();
    let (operand, rule, required, actual, text) = broken(run(strided, of(4, 2), (3, 2)));
    assert_eq!((operand, rule, required, actual), (Operand::A, Rule::Strides, 3, 5));
    assert_eq!(text, "A is 3 x 4 with strides 1 and 5, but the plan is for 3 x 4 with strides 1 and 3");
    assert!(out[..6] == [4.0; 6] && out[6..].iter().all(|element| element.is_nan()), "a refusal writes nothing");
    let narrow = [1.0_f32; 12];
    let mut single = [0.0_f32; 6];
    let (a, b) = (MatRef::column_major(&narrow, 3, 4), MatRef::column_major(&narrow, 4, 2));
    let c = MatMut::column_major(&mut single, 3, 2).unwrap();
    let result = plan.run(&stream(), 1.0, a.unwrap(), b.unwrap(), 0.0, c);
    let text = "A is of f32, but the product is of f64".to_owned();
    assert_eq!(broken(result), (Operand::A, Rule::Dtype, 8, 4, text));
    assert_eq!(single, [0.0; 6]);
}

#[test]
fn plans_are_refused_for_bad_shapes_and_variants() {
    let cpu = Device::cpu();
    let shape = |rows, cols| Shape::packed(rows, cols, Layout::RowMajor, Dtype::F32);
    let build = |a, b, c| Plan::gemm(&cpu, a, b, c).build().map(drop);
    assert_eq!(broken(build(shape(3, 4), shape(5, 2), shape(3, 2))).0, Operand::B);
    let double = Shape::packed(4, 2, Layout::RowMajor, Dtype::F64);
    assert_eq!(broken(build(shape(3, 4), double, shape(3, 2))).1, Rule::Dtype);
    let flat = Shape::with_strides(3, 2, Strides { row: 1, col: 1 }, Dtype::F32);
    assert_eq!(broken(build(shape(3, 4), shape(4, 2), flat)).1, Rule::Strides);
    let named = |name| Plan::gemm(&cpu, shape(3, 4), shape(4, 2), shape(3, 2)).variant(name).build().map(drop);
    match named("tsm2r_quick") {
        Err(Error::UnknownVariant { name, known, .. }) => {
            assert_eq!(name, "tsm2r_quick");
            assert!(known.is_sorted() && known.contains(&"tsm2r_prefetch") && known.contains(&"gemm_tiled"));
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(named("tsm2r_prefetch"), Err(Error::Unsupported { .. })));
}

/// What is said to be known the same call takes.
#[test]
fn products_and_batches_have_names_of_their_own() {
    let cpu = Device::cpu();
    let shape = Shape::packed(3, 3, Layout::RowMajor, Dtype::F32);
    let product = |name| Plan::gemm(&cpu, shape, shape, shape).variant(name).build().map(drop);
    let stream = cpu.stream().unwrap();
    let batch = |name| {
        let (a, mut c) = ([1.0_f32; 9], [0.0; 9]);
        let factor = BatchRef::row_major(&a, 1, 3, 3)?;
        let c = BatchMut::row_major(&mut c, 1, 3, 3)?;
        lanky_host::gemm_batched_by(&stream, name, 1.0, factor.clone(), factor, 0.0, c)
    };
    let known = |result: lanky_host::Result<()>| match result {
        Err(Error::UnknownVariant { known, .. }) => known,
        other => panic!("{other:?}"),
    };
    let (of_products, of_batches) = (known(product("batched_any")), known(batch("tsm2r_inner")));
    assert!(of_products.contains(&"tsm2r_inner") && of_batches.contains(&"batched_any"));
    for name in of_products {
        assert!(matches!(product(name), Err(Error::Unsupported { .. })), "{name}: the CPU has none");
    }
    for name in of_batches {
        assert!(matches!(batch(name), Err(Error::Unsupported { .. })), "{name}: the CPU has none");
    }
}

#[test]
fn plans_say_what_they_do() {
    let cpu = Device::cpu();
    let plan = |m, n, k| {
        let shape = |rows, cols| Shape::packed(rows, cols, Layout::ColumnMajor, Dtype::F64);
        Plan::gemm(&cpu, shape(m, k), shape(k, n), shape(m, n)).build().unwrap()
    };
    let text = plan(20480, 16, 20480).to_string();
    assert!(text.starts_with("tsm2r  f64  m = 20480, n = 16, k = 20480\n  on the CPU: "), "{text}");
    assert!(plan(0, 16, 5).to_string().ends_with("nothing to do: C is empty"));
    assert!(plan(3, 16, 0).to_string().ends_with("C <- beta C: nothing is multiplied"));
}

#[test]
fn handles_cross_threads() {
    fn send<T: Send>() {}
    fn sync<T: Sync>() {}
    send::<Device>();
    sync::<Device>();
    send::<Stream>();
    sync::<Stream>();
    send::<Plan>();
    sync::<Plan>();
    send::<Matrix<f64>>();
    sync::<Matrix<f32>>();
    send::<MatRef<'_, f64>>();
    sync::<MatRef<'_, f64>>();
    send::<MatMut<'_, f64>>();
    sync::<MatMut<'_, f64>>();
    send::<BatchRef<'_, f64>>();
    sync::<BatchRef<'_, f64>>();
    send::<BatchMut<'_, f64>>();
    sync::<BatchMut<'_, f64>>();
    send::<Graph>(); // launched by one thread at a time
    send::<Mark>();
    sync::<Mark>();
}
