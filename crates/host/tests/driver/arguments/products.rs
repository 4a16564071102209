//! Products, Gram matrices and products in place.

use super::*;
use lanky_host::{BatchMut, BatchRef, gemm_batched, gemv};

#[test]
fn products_say_what_is_wrong_first() {
    const NAME: &str = "arguments::products::products_say_what_is_wrong_first";
    with_driver(NAME, "devices=2", || {
        let world = World::new()?;
        let run = |g: &Given| {
            let (a, b, c) = (world.read(g.a), world.read(g.b), world.written(g.c));
            gemm(&world.streams[0], T::from(1.0), a, b, T::from(0.0), c)
        };
        let tall: Fault = ("a.rows c.rows", |g| (rows(&mut g.a, HUGE), rows(&mut g.c, HUGE)).0, Said::Unsupported);
        let faults = [
            A_ELSEWHERE,
            B_ON_THE_HOST,
            C_ELSEWHERE,
            ("b.rows", |g| rows(&mut g.b, 5), Said::Shape(Operand::B, Rule::Rows)),
            ("c.rows", |g| rows(&mut g.c, 6), Said::Shape(Operand::C, Rule::Rows)),
            ("c.cols", |g| g.c.cols = 2, Said::Shape(Operand::C, Rule::Cols)),
            C_OVER_A,
            C_OVER_B,
            A_MISALIGNED,
            B_MISALIGNED,
            C_MISALIGNED,
            tall,
        ];
        each_and_in_pairs("gemm", product(), &faults, &run);
        let faults = [&[A_ON_A_GPU, B_ON_A_GPU, C_ON_A_GPU], &faults[3..8]].concat();
        each_and_in_pairs("gemm on the CPU", on_the_cpu(product()), &faults, &|g| {
            let (a, b, c) = (world.read(g.a), world.read(g.b), world.written(g.c));
            gemm(&world.streams[2], T::from(1.0), a, b, T::from(0.0), c)
        });
        Ok(())
    });
}

#[test]
fn gram_matrices_and_products_in_place_say_what_is_wrong_first() {
    const NAME: &str = "arguments::products::gram_matrices_and_products_in_place_say_what_is_wrong_first";
    with_driver(NAME, "devices=2", || {
        let world = World::new()?;
        let good = Given { a: view(A, 9, 5), c: view(C, 5, 5), ..product() };
        let tall: Fault = ("a.rows", |g| rows(&mut g.a, HUGE), Said::Unsupported);
        let faults = [
            A_ELSEWHERE,
            C_ELSEWHERE,
            ("c.rows", |g| rows(&mut g.c, 6), Said::Shape(Operand::C, Rule::Rows)),
            ("c.cols", |g| g.c.cols = 4, Said::Shape(Operand::C, Rule::Cols)),
            C_OVER_A,
            A_MISALIGNED,
            C_MISALIGNED,
            tall,
        ];
        let one = T::from(1.0);
        each_and_in_pairs("gram", good, &faults, &|g| {
            gram(&world.streams[0], one, world.read(g.a), one, world.written(g.c))
        });
        each_and_in_pairs("gram_triangle", good, &faults, &|g| {
            gram_triangle(&world.streams[0], Triangle::Lower, one, world.read(g.a), one, world.written(g.c))
        });
        let (host, faults) = (on_the_cpu(good), [&[A_ON_A_GPU, C_ON_A_GPU], &faults[2..5]].concat());
        each_and_in_pairs("gram on the CPU", host, &faults, &|g| {
            gram(&world.streams[2], one, world.read(g.a), one, world.written(g.c))
        });
        each_and_in_pairs("gram_triangle on the CPU", host, &faults, &|g| {
            gram_triangle(&world.streams[2], Triangle::Upper, one, world.read(g.a), one, world.written(g.c))
        });
        // In the caller's terms: there is no B, and A is not transposed.
        let mut given = good;
        rows(&mut given.c, 6);
        let error = gram(&world.streams[0], one, world.read(given.a), one, world.written(given.c));
        assert_eq!(error.expect_err("6 x 5").to_string(), "C is 6 x 5, but A is 9 x 5: C needs 5 rows");

        let good = Given { a: view(A, 9, 5), b: view(B, 5, 3), ..product() };
        let wide: Fault = ("a.cols b.rows", |g| (g.a.cols = 65, rows(&mut g.b, 65)).0, Said::Unsupported);
        let faults = [
            A_ELSEWHERE,
            B_ON_THE_HOST,
            ("b.rows", |g| rows(&mut g.b, 6), Said::Shape(Operand::B, Rule::Rows)),
            ("b.cols", |g| g.b.cols = 70, Said::Shape(Operand::B, Rule::Cols)),
            ("b.at", |g| g.b.at = g.a.at + ELEMENT, Said::Shape(Operand::B, Rule::Overlap)),
            A_MISALIGNED,
            B_MISALIGNED,
            wide,
            ("a.rows", |g| rows(&mut g.a, HUGE), Said::Unsupported),
        ];
        each_and_in_pairs("tsmm_in_place", good, &faults, &|g| {
            tsmm_in_place(&world.streams[0], one, world.written(g.a), world.read(g.b))
        });
        each_and_in_pairs("tsmm_in_place with alpha = 0", good, &faults[..7], &|g| {
            tsmm_in_place(&world.streams[0], T::from(0.0), world.written(g.a), world.read(g.b))
        });
        let faults = [&[A_ON_A_GPU, B_ON_A_GPU], &faults[2..5]].concat();
        each_and_in_pairs("tsmm_in_place on the CPU", on_the_cpu(good), &faults, &|g| {
            tsmm_in_place(&world.streams[2], one, world.written(g.a), world.read(g.b))
        });
        let done = tsmm_in_place(&world.streams[0], one, world.written(good.a), world.read(good.b));
        assert_eq!(done.map_err(|error| said(&error)), Ok(()));
        let over = View { at: A, ..good.b };
        let error = tsmm_in_place(&world.streams[0], one, world.written(good.a), world.read(over));
        assert!(error.expect_err("B lies in A").to_string().starts_with("A overlaps B: "));
        Ok(())
    });
}

/// Beside the operand and the rule an error has what is required and what was given.
#[test]
fn what_is_required_and_given_is_told() {
    const NAME: &str = "arguments::products::what_is_required_and_given_is_told";
    with_driver(NAME, "devices=2", || {
        let (world, one) = (World::new()?, T::from(1.0));
        type Spoiler = fn(&mut Given);
        let wrong: [(Spoiler, u64, u64); 6] = [
            (|g| rows(&mut g.b, 6), 4, 6),
            (|g| rows(&mut g.c, 7), 5, 7),
            (|g| g.c.cols = 2, 3, 2),
            // Of 20 elements of A the last 19.
            (|g| g.c.at = g.a.at + ELEMENT, 0, 15 * ELEMENT),
            (|g| g.a.at += 8, ELEMENT, 8),
            (|g| g.c.at += 4, ELEMENT, 4),
        ];
        for (index, (spoil, required, actual)) in wrong.into_iter().enumerate() {
            let mut given = product();
            spoil(&mut given);
            let (a, b, c) = (world.read(given.a), world.read(given.b), world.written(given.c));
            let error = gemm(&world.streams[0], one, a, b, one, c).expect_err("a wrong argument");
            let Error::Shape(error) = error else { panic!("{error}") };
            assert_eq!((error.required, error.actual), (required, actual), "{index}: {error}");
        }
        Ok(())
    });
}

/// Nothing is launched where α = 0 or k = 0 leaves C as it is.
#[test]
fn nothing_is_launched_where_c_stays_as_it_is() {
    const NAME: &str = "arguments::products::nothing_is_launched_where_c_stays_as_it_is";
    with_driver(NAME, "devices=2", || {
        let world = World::new()?;
        let (stream, one, zero) = (&world.streams[0], T::from(1.0), T::from(0.0));
        calls();
        for (alpha, k) in [(zero, 4), (one, 0), (zero, 0)] {
            let (a, b, c) = (view(A, 5, k), view(B, k, 3), view(C, 5, 3));
            gemm(stream, alpha, world.read(a), world.read(b), one, world.written(c))?;
            gemv(stream, alpha, world.read(a), world.read(view(B, k, 1)), one, world.written(view(C, 5, 1)))?;
            let tall = view(A, k, 3);
            gram(stream, alpha, world.read(tall), one, world.written(view(C, 3, 3)))?;
            gram_triangle(stream, Triangle::Lower, alpha, world.read(tall), one, world.written(view(C, 3, 3)))?;
            assert_eq!(calls(), [""; 0], "alpha = {alpha}, k = {k}");
        }
        Ok(())
    });
}

/// α = 0 leaves what scales C alone to be launched, whatever A and B are.
#[test]
fn nothing_is_multiplied_by_0() {
    const NAME: &str = "arguments::products::nothing_is_multiplied_by_0";
    with_driver(NAME, "devices=2", || {
        let world = World::new()?;
        let (stream, zero, beta) = (&world.streams[0], T::from(0.0), T::from(2.0));
        let entries = || launches().into_iter().map(|line| line.split(' ').next().unwrap_or_default().to_owned());
        launches();
        let (a, b, c) = (view(A, 200, 40), view(B, 40, 3), view(C, 200, 3));
        gemm(stream, zero, world.read(a), world.read(b), beta, world.written(c))?;
        gemv(stream, zero, world.read(a), world.read(view(B, 40, 1)), beta, world.written(view(C, 200, 1)))?;
        tsmm_in_place(stream, zero, world.written(a), world.read(b))?;
        assert_eq!(entries().collect::<Vec<_>>(), ["zsum_slots_t256"; 3]);
        let (tall, square) = (view(A, 2000, 5), view(C, 5, 5));
        gram(stream, zero, world.read(tall), beta, world.written(square))?;
        gram_triangle(stream, Triangle::Lower, zero, world.read(tall), beta, world.written(square))?;
        assert_eq!(entries().collect::<Vec<_>>(), ["zreduce_slots_t256"; 2]);
        Ok(())
    });
}

/// An operand without elements lies nowhere: where it would begin is not looked at. The others are looked at also where nothing is
/// left to do.
#[test]
fn what_has_no_elements_lies_nowhere() {
    const NAME: &str = "arguments::products::what_has_no_elements_lies_nowhere";
    with_driver(NAME, "devices=2", || {
        let (world, one) = (World::new()?, T::from(1.0));
        let stream = &world.streams[0];
        let at = |at: u64, rows, cols| view(at, rows, cols);
        let (odd, none) = (8, 0);
        let shape = |v: View| world.read(v).shape();
        let plan = |a, b, c| Plan::gemm(&world.devices[0], shape(a), shape(b), shape(c)).build();
        calls();
        for nowhere in [odd, none] {
            let (a, b, c) = (at(nowhere, 0, 4), at(B, 4, 3), at(nowhere, 0, 3));
            gemm(stream, one, world.read(a), world.read(b), one, world.written(c))?;
            gemv(stream, one, world.read(a), world.read(at(B, 4, 1)), one, world.written(at(nowhere, 0, 1)))?;
            gram(stream, one, world.read(at(nowhere, 4, 0)), one, world.written(at(nowhere, 0, 0)))?;
            tsmm_in_place(stream, one, world.written(a), world.read(b))?;
            plan(a, b, c)?.run(stream, one, world.read(a), world.read(b), one, world.written(c))?;
            let batch = (world.read_batch(a), world.read_batch(b), world.written_batch(c));
            gemm_batched(stream, one, batch.0, batch.1, one, batch.2)?;
            assert_eq!(calls(), [""; 0]);
        }
        let (a, b, c) = (at(A, 0, 4), at(B + odd, 4, 3), at(C, 0, 3));
        let b_is = |result: Result<()>| assert_eq!(result.map_err(|error| said(&error)), Err(B_MISALIGNED.2));
        b_is(gemm(stream, one, world.read(a), world.read(b), one, world.written(c)));
        b_is(tsmm_in_place(stream, one, world.written(a), world.read(b)));
        b_is(plan(a, b, c)?.run(stream, one, world.read(a), world.read(b), one, world.written(c)));
        b_is(gemm_batched(stream, one, world.read_batch(a), world.read_batch(b), one, world.written_batch(c)));
        Ok(())
    });
}

/// No device has memory at address 0.
#[test]
fn nothing_lies_at_address_0() {
    const NAME: &str = "arguments::products::nothing_lies_at_address_0";
    with_driver(NAME, "", || {
        for device in [Device::cuda(0)?, Device::cpu()] {
            // SAFETY: nothing looks at the memory.
            let all = unsafe {
                [
                    MatRef::<f64>::from_raw(&device, 0, 2, 3, 1, 2).map(drop),
                    MatMut::<f64>::from_raw(&device, 0, 2, 3, 1, 2).map(drop),
                    BatchRef::<f64>::from_raw(&device, 0, 2, 6, (2, 3), (1, 2)).map(drop),
                    BatchMut::<f64>::from_raw(&device, 0, 2, 6, (2, 3), (1, 2)).map(drop),
                ]
            };
            for refused in all {
                let error = refused.expect_err("nothing is there");
                assert_eq!(said(&error), Said::Shape(Operand::View, Rule::Address), "{error}");
            }
            // SAFETY: as above.
            unsafe {
                MatRef::<f64>::from_raw(&device, 0, 0, 3, 1, 2)?;
                MatMut::<f64>::from_raw(&device, 0, 2, 0, 1, 2)?;
                BatchRef::<f64>::from_raw(&device, 0, 0, 6, (2, 3), (1, 2))?;
                BatchMut::<f64>::from_raw(&device, 0, 2, 6, (2, 0), (1, 2))?;
            }
        }
        Ok(())
    });
}

/// Of what lies at an address no more can be there than 2^63 - 1 bytes, however its strides and counts are multiplied.
#[test]
fn spans_at_an_address_fit_into_its_bytes() {
    const NAME: &str = "arguments::products::spans_at_an_address_fit_into_its_bytes";
    with_driver(NAME, "", || {
        let most = (1_usize << 60) - 1; // elements of 8 bytes
        // Matrices, elements from one to the next, sizes and strides: by one element, by much, and where 64 bits overflow.
        let batches = [
            (2, most - 5, (2, 3), (1, 2)),
            (2, 1 << 62, (2, 3), (1, 2)),
            (3, usize::MAX, (2, 3), (1, 2)),
            ((1 << 32) + 1, 1 << 32, (2, 3), (1, 2)),
            (1 << 63, 6, (2, 3), (1, 2)),
            (1, 6, (2, (1 << 32) + 1), (1, 1 << 32)),
            (1, 0, ((1 << 32) + 1, 2), (1 << 32, 1)),
        ];
        let matrices = [
            ((2, 2), (1, most - 1)),
            ((2, 2), (usize::MAX, 1)),
            ((2, (1 << 32) + 1), (1, 1 << 32)),
            (((1 << 32) + 1, 2), (1 << 32, 1)),
        ];
        for device in [Device::cuda(0)?, Device::cpu()] {
            calls();
            let refused = |result: Result<()>, what: &dyn std::fmt::Debug| {
                let error = result.err().unwrap_or_else(|| panic!("{what:?} is taken"));
                assert_eq!(said(&error), Said::Shape(Operand::View, Rule::Span), "{what:?}: {error}");
            };
            for batch @ (count, stride, size, strides) in batches {
                // SAFETY: nothing looks at the memory.
                let read = unsafe { BatchRef::<f64>::from_raw(&device, A, count, stride, size, strides) }.map(drop);
                refused(read, &batch);
                // SAFETY: as above.
                let written = unsafe { BatchMut::<f64>::from_raw(&device, A, count, stride, size, strides) }.map(drop);
                refused(written, &batch);
            }
            for matrix @ ((rows, cols), (row, col)) in matrices {
                // SAFETY: as above.
                refused(unsafe { MatRef::<f64>::from_raw(&device, A, rows, cols, row, col) }.map(drop), &matrix);
                // SAFETY: as above.
                refused(unsafe { MatMut::<f64>::from_raw(&device, A, rows, cols, row, col) }.map(drop), &matrix);
            }
            // SAFETY: as above.
            unsafe {
                BatchRef::<f64>::from_raw(&device, A, 2, most - 6, (2, 3), (1, 2))?;
                BatchMut::<f64>::from_raw(&device, A, 2, most - 6, (2, 3), (1, 2))?;
                MatRef::<f64>::from_raw(&device, A, 2, 2, 1, most - 2)?;
                MatMut::<f64>::from_raw(&device, A, 2, 2, 1, most - 2)?;
            }
            assert_eq!(calls(), [""; 0]);
        }
        Ok(())
    });
}
