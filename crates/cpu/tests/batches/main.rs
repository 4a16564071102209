//! Every kind of batch against the sum that defines it, on every set of instructions that the CPU has.

mod common;
#[cfg(feature = "search")]
mod search;

use common::{ALIGNED, Case, GUARD, Matrix, Numbers, STORES, Store, Value, available, same};
use lanky_cpu::{Instructions, Matrices};
use num_complex::Complex;

fn check<T: Value>(name: &str, case: &mut Case<T>, instructions: Instructions) {
    let expected = case.expected();
    let before = case.c.data.clone();
    case.run(instructions);
    let (m, n, k) = (case.c.rows, case.c.cols, case.a.cols);
    let wrong = case.c.data.iter().zip(&expected).position(|(x, y)| !same(&[*x], &[*y]));
    assert!(
        wrong.is_none(),
        "{name}, {instructions:?}: {m} x {n} x {k}, {} matrices, C {:?}: element {wrong:?} is {:?} and not {:?}",
        case.c.count,
        (case.c.row, case.c.col, case.c.stride),
        wrong.map(|at| case.c.data[at]),
        wrong.map(|at| expected[at]),
    );
    case.c.data = before;
}

/// Squares of all sizes, and other shapes, in every layout of each operand.
fn shapes<T: Value>() {
    let mut numbers = Numbers(1);
    let mut shapes: Vec<_> = (1..=32).map(|n| (n, n, n)).collect();
    shapes.extend([
        (1, 32, 5),
        (32, 1, 7),
        (5, 3, 1),
        (17, 9, 31),
        (2, 3, 4),
        (3, 2, 1),
        (1, 1, 4),
        (1, 4, 1),
        (4, 1, 2),
    ]);
    shapes.extend([(8, 16, 32), (31, 32, 2), (7, 29, 16), (12, 20, 8), (0, 3, 4), (3, 0, 4), (3, 4, 0)]);
    for (at, shape) in shapes.into_iter().enumerate() {
        for (turn, a) in STORES.into_iter().enumerate() {
            for b in STORES {
                let c = STORES[(at + turn) % 7];
                let c = if c == Store::Shared { Store::ByCols } else { c };
                for instructions in available() {
                    let count = numbers.below(10);
                    let mut case = Case::<T>::new(shape, count, [a, b, c], || numbers.integer());
                    case.alpha = numbers.integer();
                    case.beta = [T::of_two(0.0, 0.0), T::of_two(1.0, 0.0), numbers.integer()][numbers.below(3)];
                    (case.a.conj, case.b.conj) = (numbers.below(2) == 1, numbers.below(2) == 1);
                    if case.beta == T::of_two(0.0, 0.0) {
                        // It is not read, however C is reached.
                        case.c = Matrix::new(c, shape.0, shape.1, count, T::canary);
                    }
                    check("shapes", &mut case, instructions);
                }
            }
        }
    }
}

#[test]
fn shapes_and_layouts() {
    shapes::<f32>();
    shapes::<f64>();
    shapes::<Complex<f32>>();
    shapes::<Complex<f64>>();
}

/// Squares without gaps have kernels of their own; α = 1 and β = 0 are treated apart.
fn squares<T: Value>() {
    let factors = [(1.0, 0.0), (1.0, 1.0), (-2.0, 0.0), (-2.0, 2.0)];
    for (n, store) in (1..=32).flat_map(|n| [(n, Store::ByCols), (n, Store::ByRows)]) {
        for (alpha, beta) in factors {
            for instructions in available() {
                let mut numbers = Numbers(n as u64);
                let mut case = Case::<T>::new((n, n, n), 5, [store; 3], || numbers.integer());
                (case.alpha, case.beta) = (T::of_two(alpha, 0.0), T::of_two(beta, 0.0));
                (case.a.conj, case.b.conj) = (n % 2 == 1, n % 3 == 1);
                check("squares", &mut case, instructions);
            }
        }
    }
}

#[test]
fn squares_of_every_size() {
    squares::<f32>();
    squares::<f64>();
    squares::<Complex<f32>>();
    squares::<Complex<f64>>();
}

/// Beyond what the caches hold C is streamed: from any address to any other, whatever is around it.
fn large<T: Value>(n: usize) {
    let count = (34 << 20) / (3 * n * n * size_of::<T>());
    let mut numbers = Numbers(2);
    for (c, store) in [(Store::ByCols, Store::ByCols), (Store::ByRows, Store::ByRows), (Store::ByCols, Store::ByRows)] {
        let mut case = Case::<T>::new((n, n, n), count, [store, store, c], || numbers.integer());
        for guard in [GUARD, ALIGNED] {
            case.c = Matrix::behind(guard, c, (n, n), count, T::canary);
            for instructions in available() {
                check("large", &mut case, instructions);
            }
        }
    }
}

#[test]
fn large_batches() {
    large::<f64>(1);
    large::<f32>(2);
    large::<f32>(4);
    large::<f64>(4);
    large::<f32>(8);
    large::<Complex<f64>>(2);
    large::<f64>(12);
    large::<f64>(16);
    large::<Complex<f32>>(2);
    large::<f64>(3);
    large::<Complex<f64>>(5);
    large::<f32>(11);
    large::<Complex<f64>>(32);
    large::<f64>(13);
    large::<f64>(19);
    large::<f32>(23);
    large::<f32>(24);
    large::<f32>(27);
    large::<Complex<f32>>(9);
}

/// β = 0 does not read C, α = 0 neither A nor B.
fn not_read<T: Value>() {
    let (zero, one) = (T::of_two(0.0, 0.0), T::of_two(1.0, 0.0));
    // Larger ones take miri minutes.
    let sizes = (1..=9).chain([16, 31]).filter(|n| !cfg!(miri) || *n <= 3);
    for (n, instructions) in sizes.flat_map(|n| available().into_iter().map(move |i| (n, i))) {
        let nan = T::canary;
        let mut numbers = Numbers(n as u64);
        let mut case = Case::<T>::new((n, n, n), 3, [Store::ByCols; 3], || numbers.integer());
        case.c = Matrix::new(Store::ByCols, n, n, 3, nan);
        check("C not read", &mut case, instructions);
        case.alpha = zero;
        (case.a, case.b) = (Matrix::new(Store::ByRows, n, n, 3, nan), Matrix::new(Store::ByRows, n, n, 3, nan));
        check("nothing read", &mut case, instructions);
        case.c = Matrix::new(Store::ColGaps, n, n, 3, || numbers.integer());
        for beta in [one, T::of_two(2.0, 0.0), T::of_two(2.0, -1.0)] {
            case.beta = beta;
            check("C scaled", &mut case, instructions);
        }
    }
}

/// A NaN in A makes a row of NaN, of its own matrix alone, and an infinity in B a column of them.
fn travels<T: Value>() {
    let one = T::of_two(1.0, 0.0);
    for (n, instructions) in (1..=9).chain([16, 31]).flat_map(|n| available().into_iter().map(move |i| (n, i))) {
        let mut case = Case::<T>::new((n, n, n), 3, [Store::ByCols; 3], || one);
        let at = case.a.index(1, n - 1, n / 2);
        case.a.data[at] = T::of_two(f64::NAN, f64::NAN);
        let infinite = case.b.index(2, 0, n - 1);
        case.b.data[infinite] = T::of_two(f64::INFINITY, 0.0);
        case.run(instructions);
        for (index, i, j) in (0..3).flat_map(|m| (0..n * n).map(move |e| (m, e % n, e / n))) {
            let value = case.c.get(index, i, j);
            assert_eq!(value.is_nan(), index == 1 && i == n - 1, "{instructions:?} n = {n} {index} {i} {j}: {value:?}");
            if index == 2 && j == n - 1 {
                assert_eq!(value.two()[0], f64::INFINITY, "{instructions:?} n = {n} {i}");
            }
        }
    }
}

#[test]
fn what_is_not_asked_for_is_not_read() {
    not_read::<f32>();
    not_read::<f64>();
    not_read::<Complex<f32>>();
    not_read::<Complex<f64>>();
}

#[test]
fn what_is_not_finite_travels() {
    travels::<f32>();
    travels::<f64>();
}

/// The bits depend neither on the place in the batch, nor on the layout, nor on the length of the batch or the threads.
fn bits<T: Value>(n: usize, count: usize) {
    let mut numbers = Numbers(3);
    // One row of A is -0.
    let zero = |at: usize| at < n * n && at % n == n / 2;
    let value: Vec<T> =
        (0..3 * n * n).map(|at| if zero(at) { T::of_two(-0.0, -0.0) } else { numbers.fraction() }).collect();
    let stores = [Store::ByCols, Store::ByRows, Store::ColGaps, Store::NoUnit, Store::Listed];
    let layouts = (0..5).map(|turn| [stores[turn], stores[(turn + 2) % 5], stores[(turn + 1) % 5]]);
    let squares = [[Store::ByCols; 3], [Store::ByRows; 3], [Store::NoUnit, Store::ByCols, Store::ByCols]];
    let layouts: Vec<_> = layouts.chain(squares).collect();
    let threads = [1, 2, 3].map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build());
    for (alpha, beta) in [([0.3, -0.7], [1.1, 0.9]), ([1.0, 0.0], [0.0, 0.0]), ([0.3, 0.0], [1.1, 0.0])] {
        let mut reference: Option<Vec<u128>> = None;
        for instructions in available().into_iter().filter(|one| *one != Instructions::Portable) {
            // Of real factors one layout of any kernel, and the squares.
            let skipped = if alpha[1] == 0.0 { 4 } else { 0 };
            for (turn, &layout) in layouts.iter().enumerate().skip(skipped) {
                let mut case = Case::<T>::new((n, n, n), count, layout, T::canary);
                for (index, e) in (0..count).flat_map(|index| (0..n * n).map(move |e| (index, e))) {
                    let (a, b, c) = (
                        case.a.index(index, e % n, e / n),
                        case.b.index(index, e % n, e / n),
                        case.c.index(index, e % n, e / n),
                    );
                    (case.a.data[a], case.b.data[b], case.c.data[c]) =
                        (value[e], value[n * n + e], value[2 * n * n + e]);
                }
                (case.alpha, case.beta) = (T::of_two(alpha[0], alpha[1]), T::of_two(beta[0], beta[1]));
                threads[turn % 3].as_ref().expect("threads").install(|| case.run(instructions));
                for index in 0..count {
                    let bits: Vec<_> = (0..n * n).map(|e| case.c.get(index, e % n, e / n).bits()).collect();
                    let reference = reference.get_or_insert_with(|| bits.clone());
                    assert_eq!(
                        &bits, reference,
                        "{instructions:?} n = {n}, matrix {index}, {layout:?}, {alpha:?} {beta:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn the_same_bits() {
    for n in 1..=32 {
        bits::<f32>(n, 7);
        bits::<f64>(n, 7);
        bits::<Complex<f32>>(n, 7);
        bits::<Complex<f64>>(n, 7);
    }
    bits::<f64>(3, 20_000);
    bits::<f32>(2, 50_000);
    bits::<Complex<f64>>(2, 10_000);
}

/// The error of a sum of k products, whatever the instructions: gamma(k + 2) of the sum of absolute values.
#[test]
fn errors_of_sums() {
    let (n, count) = (29, 5);
    for instructions in available() {
        let mut numbers = Numbers(4);
        let mut case =
            Case::<f32>::new((n, n, n), count, [Store::ByCols, Store::ByRows, Store::ByCols], || numbers.fraction());
        let old = case.c.data.clone();
        (case.alpha, case.beta) = (0.7, -0.3);
        case.run(instructions);
        let unit = (n as f64 + 2.0) * 2.0_f64.powi(-24);
        let gamma = unit / (1.0 - unit);
        for (index, i, j) in (0..count).flat_map(|m| (0..n * n).map(move |e| (m, e % n, e / n))) {
            let (mut sum, mut of_absolutes) = (0.0_f64, 0.0_f64);
            for l in 0..n {
                let product = f64::from(case.a.get(index, i, l)) * f64::from(case.b.get(index, l, j));
                (sum, of_absolutes) = (sum + product, of_absolutes + product.abs());
            }
            let old = f64::from(old[case.c.index(index, i, j)]);
            let exact = f64::from(0.7_f32) * sum + f64::from(-0.3_f32) * old;
            let error = (f64::from(case.c.get(index, i, j)) - exact).abs();
            assert!(
                error <= gamma * (0.7 * of_absolutes + 0.3 * old.abs()),
                "{instructions:?} {index} {i} {j}: {error}"
            );
        }
    }
}

#[test]
fn differences_are_seen() {
    assert!(same(&[f64::NAN, 1.0], &[f64::NAN, 1.0]));
    for (given, expected) in [(1.0, f64::NAN), (f64::NAN, 1.0), (1.0, 2.0)] {
        assert!(!same(&[given], &[expected]));
    }
    assert!(!same(&[1.0], &[1.0, 1.0]));
}

/// Each element of the memory of A, B and C is written in turn, guards and gaps and all, by a number, a NaN, and one bit.
fn damaged<T: Value>() {
    let fresh =
        || Case::<T>::new((2, 3, 1), 2, [Store::NoUnit, Store::RowGaps, Store::ColGaps], || T::of_two(1.0, 2.0));
    let mut first = fresh();
    assert!(first.watch(|_| ()).is_ok());
    let (lengths, elements) =
        ([&first.a, &first.b, &first.c].map(|matrix| matrix.data.len()), first.c.places().collect::<Vec<_>>());
    for (operand, len) in lengths.into_iter().enumerate() {
        for (at, how) in (0..len).flat_map(|at| [0, 1, 2].map(|how| (at, how))) {
            let outcome = fresh().watch(|batch| {
                let Matrices::Strided { first, .. } = [batch.a, batch.b, batch.c][operand].matrices else { return };
                let into = first.cast_mut().wrapping_sub(GUARD).wrapping_add(at);
                // SAFETY: an element of the operand's memory, at which nothing else looks meanwhile.
                unsafe {
                    match how {
                        0 => into.write(T::of_two(0.5, 0.5)),
                        1 => into.write(T::of_two(f64::NAN, f64::NAN)),
                        _ => *into.cast::<u8>() ^= 1,
                    }
                }
            });
            let may_be = operand == 2 && elements.contains(&at);
            assert_eq!(outcome.is_ok(), may_be, "{operand} {at} {how}: {outcome:?}");
        }
    }
}

#[test]
fn what_is_written_beside_a_batch_is_seen() {
    damaged::<f32>();
    damaged::<Complex<f64>>();
}
