//! Products with a narrow side against the sum that defines them, on every set of instructions that the CPU has.

#[path = "../batches/common.rs"]
mod common;

use common::{Case, Matrix, Numbers, STORES, Store, Value, available, same};
use lanky_cpu::{Instructions, Output, gemm_tall_with};
use num_complex::Complex;

fn run<T: Value>(case: &mut Case<T>, instructions: Instructions, past_caches: bool) {
    assert!(instructions.is_available());
    // SAFETY: the CPU has the instructions, and the buffers were made for these sizes and strides.
    case.run_by(|batch| unsafe { gemm_tall_with(instructions, batch, Output { lower: false, past_caches }) });
}

fn check<T: Value>(case: &mut Case<T>, instructions: Instructions) {
    let (expected, before) = (case.expected(), case.c.data.clone());
    for past_caches in [false, true] {
        run(case, instructions, past_caches);
        let wrong = case.c.data.iter().zip(&expected).position(|(x, y)| !same(&[*x], &[*y]));
        assert!(
            wrong.is_none(),
            "{instructions:?}: {} x {} x {}, strides {:?}, past caches {past_caches}: element {wrong:?} is {:?} and not {:?}",
            case.c.rows,
            case.c.cols,
            case.a.cols,
            [&case.a, &case.b, &case.c].map(|matrix| (matrix.row, matrix.col)),
            wrong.map(|at| case.c.data[at]),
            wrong.map(|at| expected[at]),
        );
        case.c.data.clone_from(&before);
    }
}

/// m, n and k.
type Shape = (usize, usize, usize);

/// At the edges of vectors (2 to 16 lanes), tiles (1 to 8 columns, 1 to 3 vectors), blocks (1 to 4 KiB of rows, 64 columns and more)
/// and steps (8, 16, and up to what fits into 32 KiB), and where all of them meet.
const SHAPES: [Shape; 26] = [
    (1, 1, 1),
    (2, 3, 5),
    (1, 9, 4),
    (7, 1, 9),
    (8, 2, 8),
    (9, 5, 17),
    (16, 4, 16),
    (17, 13, 33),
    (23, 24, 25),
    (31, 15, 1),
    (48, 8, 7),
    (65, 7, 19),
    (64, 64, 65),
    (71, 66, 13),
    (129, 33, 9),
    (511, 1, 10),
    (513, 3, 17),
    (1025, 9, 18),
    (1537, 17, 16),
    (2051, 2, 7),
    (3, 5, 1100),
    (1, 2, 4099),
    (4, 4, 1025),
    (33, 17, 260),
    (0, 3, 4),
    (3, 4, 0),
];

/// Both ways round, in every layout of A and B, and some of C.
fn shapes<T: Value>() {
    let zero = T::of_two(0.0, 0.0);
    let mut numbers = Numbers(1);
    let both_ways = SHAPES.into_iter().flat_map(|(m, n, k)| [(m, n, k), (n, m, k)]);
    for (at, shape) in both_ways.enumerate().filter(|(at, _)| !cfg!(miri) || *at < 12) {
        for (turn, a) in STORES.into_iter().enumerate() {
            for b in STORES {
                let c = STORES[(at + turn + numbers.below(7)) % 7];
                let c = if c == Store::Shared { Store::ByRows } else { c };
                let count = if shape.0 * shape.1 * shape.2 < 1000 { numbers.below(3) } else { 1 };
                let mut case = Case::<T>::new(shape, count, [a, b, c], || numbers.integer());
                case.alpha = numbers.integer();
                case.beta = [zero, T::of_two(1.0, 0.0), numbers.integer()][numbers.below(3)];
                (case.a.conj, case.b.conj) = (numbers.below(2) == 1, numbers.below(2) == 1);
                if case.beta == zero {
                    // It is not read, however C is reached.
                    case.c = Matrix::new(c, shape.0, shape.1, count, T::canary);
                }
                if case.alpha == zero {
                    // Nor are these.
                    (case.a, case.b) = (
                        Matrix::new(a, shape.0, shape.2, count, T::canary),
                        Matrix::new(b, shape.2, shape.1, count, T::canary),
                    );
                }
                available().into_iter().for_each(|instructions| check(&mut case, instructions));
            }
        }
    }
}

#[test]
fn shapes_of_f32() {
    shapes::<f32>();
}

#[test]
fn shapes_of_f64() {
    shapes::<f64>();
}

#[test]
fn shapes_of_complex_f32() {
    shapes::<Complex<f32>>();
}

#[test]
fn shapes_of_complex_f64() {
    shapes::<Complex<f64>>();
}

/// Not a bit depends on how the operands lie, nor on which of them vectors are loaded of.
fn bits<T: Value>((m, n, k): Shape) {
    let mut numbers = Numbers(3);
    let mut values = |len| (0..len).map(|_| numbers.fraction()).collect::<Vec<T>>();
    let values = [values(m * k), values(k * n), values(m * n)];
    // Portable vectors may round a multiply-add twice.
    let mut references: [Option<Vec<u128>>; 2] = [None, None];
    for instructions in available() {
        for (turn, a) in STORES.into_iter().enumerate() {
            for b in STORES {
                let c = if STORES[turn] == Store::Shared { Store::ByCols } else { STORES[turn] };
                let mut case = Case::<T>::new((m, n, k), 1, [a, b, c], T::canary);
                for (matrix, values) in [&mut case.a, &mut case.b, &mut case.c].into_iter().zip(&values) {
                    let places: Vec<usize> = matrix.places().collect();
                    places.into_iter().zip(values).for_each(|(at, value)| matrix.data[at] = *value);
                }
                (case.alpha, case.beta) = (T::of_two(0.3, -0.7), T::of_two(1.1, 0.9));
                run(&mut case, instructions, false);
                let bits: Vec<_> = case.c.places().map(|at| case.c.data[at].bits()).collect();
                let reference = &mut references[usize::from(instructions == Instructions::Portable)];
                let reference = reference.get_or_insert_with(|| bits.clone());
                assert!(&bits == reference, "{instructions:?} {m} x {n} x {k}, {a:?} {b:?} {c:?}");
            }
        }
    }
}

#[test]
fn layouts_change_no_bits() {
    for shape in [(37, 5, 67), (5, 37, 67), (3, 2, 2100), (530, 3, 21), (16, 16, 70)] {
        bits::<f32>(shape);
        bits::<f64>(shape);
        bits::<Complex<f32>>(shape);
        bits::<Complex<f64>>(shape);
    }
}

/// What is asked for of a triangle has the bits of the whole product; each element above the diagonal has them too, or is what it was.
fn triangles<T: Value>() {
    for n in [1, 2, 5, 8, 9, 16, 23, 24, 25, 33, 47, 48, 64, 65, 97] {
        for (a, b) in STORES.into_iter().flat_map(|a| STORES.into_iter().map(move |b| (a, b))) {
            let c = [Store::ByCols, Store::ByRows, Store::ColGaps][n % 3];
            let mut numbers = Numbers(n as u64);
            let mut case = Case::<T>::new((n, n, 67), 1, [a, b, c], || numbers.fraction());
            let before = case.c.data.clone();
            (case.alpha, case.beta) = (T::of_two(0.3, -0.7), T::of_two(if n % 2 == 0 { 0.0 } else { 1.1 }, 0.0));
            for instructions in available() {
                case.c.data.clone_from(&before);
                run(&mut case, instructions, false);
                let whole = std::mem::replace(&mut case.c.data, before.clone());
                let output = Output { lower: true, past_caches: false };
                // SAFETY: the CPU has the instructions, and the buffers were made for these sizes and strides.
                case.run_by(|batch| unsafe { gemm_tall_with(instructions, batch, output) });
                let (mut left, mut elsewhere) = (0, before.clone());
                for (i, j) in (0..n).flat_map(|j| (0..n).map(move |i| (i, j))) {
                    let at = case.c.index(0, i, j);
                    let [found, product, old] = [&case.c.data, &whole, &before].map(|data| data[at].bits());
                    left += usize::from(found != product);
                    let is_right = found == product || (i < j && found == old);
                    assert!(is_right, "{instructions:?} {n} of {a:?} {b:?} {c:?}: ({i}, {j}) is {found:x}");
                    elsewhere[at] = case.c.data[at];
                }
                assert!(same(&case.c.data, &elsewhere), "{instructions:?} {n} of {a:?} {b:?} {c:?}: beside C");
                // A panel has 3 vectors of 64 bytes at the most.
                assert!(
                    n * size_of::<T>() < 4 * 64 || left > 0,
                    "{instructions:?} {n} of {a:?} {b:?} {c:?}: all is computed"
                );
            }
        }
    }
}

#[test]
fn a_triangle_has_the_same_bits() {
    triangles::<f32>();
    triangles::<f64>();
    triangles::<Complex<f32>>();
    triangles::<Complex<f64>>();
}

/// Of C and k, and elements of A: the first rows of a step are beyond the last rows of the step before, in vectors that hang over them.
const BAD: [(Shape, &[(usize, usize)]); 3] = [
    ((531, 5, 21), &[(0, 0), (0, 1), (2, 5), (4, 15), (15, 20), (16, 7), (255, 8), (256, 15), (512, 16), (530, 20)]),
    ((3, 5, 300), &[(0, 0), (0, 1), (1, 100), (0, 257), (2, 298), (2, 299)]),
    ((1, 2, 40), &[(0, 0), (0, 7), (0, 33), (0, 39)]),
];

/// A NaN in A makes its row of C NaN and no other, an infinity times zero too, wherever they are.
fn travels<T: Value>() {
    let (zero, one) = (T::of_two(0.0, 0.0), T::of_two(1.0, 0.0));
    let bads = BAD.into_iter().flat_map(|(shape, places)| places.iter().map(move |place| (shape, *place)));
    for ((m, n, k), (row, l)) in bads {
        for bad in [f64::NAN, f64::INFINITY, -f64::INFINITY] {
            for (store, instructions) in STORES.into_iter().flat_map(|s| available().into_iter().map(move |i| (s, i))) {
                let c = if store == Store::Shared { Store::ByRows } else { store };
                let mut case = Case::<T>::new((m, n, k), 1, [store, store, c], || one);
                let at = case.a.index(0, row, l);
                case.a.data[at] = T::of_two(bad, 0.0);
                for l in 0..k {
                    let at = case.b.index(0, l, 0);
                    case.b.data[at] = zero;
                }
                run(&mut case, instructions, false);
                for (i, j) in (0..n).flat_map(|j| (0..m).map(move |i| (i, j))) {
                    let found = case.c.get(0, i, j).two()[0];
                    let expected = match (i == row, j) {
                        (true, 0) => f64::NAN,
                        (true, _) => bad,
                        (false, 0) => 0.0,
                        (false, _) => k as f64,
                    };
                    let is_same = found == expected || (found.is_nan() && expected.is_nan());
                    assert!(
                        is_same,
                        "{instructions:?} {store:?} {m} x {n} x {k}: ({i}, {j}) is {found}, {bad} at ({row}, {l})"
                    );
                }
            }
        }
    }
}

#[test]
fn what_is_not_finite_travels() {
    travels::<f32>();
    travels::<f64>();
    travels::<Complex<f32>>();
    travels::<Complex<f64>>();
}

/// Each sum within gamma(k + 2) of the sum of absolute values.
#[test]
fn errors_of_sums() {
    let (m, n, k) = (521, 7, 301);
    for instructions in available() {
        let mut numbers = Numbers(4);
        let stores = [Store::ByCols, Store::ByRows, Store::ByCols];
        let mut case = Case::<f32>::new((m, n, k), 1, stores, || numbers.fraction());
        let old = case.c.data.clone();
        (case.alpha, case.beta) = (0.7, -0.3);
        run(&mut case, instructions, false);
        let unit = (k as f64 + 2.0) * 2.0_f64.powi(-24);
        let gamma = unit / (1.0 - unit);
        for (i, j) in (0..n).flat_map(|j| (0..m).map(move |i| (i, j))) {
            let products = (0..k).map(|l| f64::from(case.a.get(0, i, l)) * f64::from(case.b.get(0, l, j)));
            let (sum, of_absolutes) = products.fold((0.0, 0.0), |(sum, all), x| (sum + x, all + x.abs()));
            let old = f64::from(old[case.c.index(0, i, j)]);
            let exact = f64::from(0.7_f32) * sum + f64::from(-0.3_f32) * old;
            let error = (f64::from(case.c.get(0, i, j)) - exact).abs();
            assert!(error <= gamma * (0.7 * of_absolutes + 0.3 * old.abs()), "{instructions:?} {i} {j}: {error}");
        }
    }
}
