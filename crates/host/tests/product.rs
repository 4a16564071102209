//! Products on the CPU: exact on integers, within the bound of their rounding errors on anything else.

mod common;

use common::{Buffer, Case, PACKED, Real, Storage, bits, right, watch};
use lanky_host::{Device, Dtype, Layout, MatMut, MatRef, Plan, Shape, gemm, gram, tsmm_in_place};
use proptest::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use watched::compare::{equal, within};
use watched::numbers::{integer, unit};

fn storage() -> impl Strategy<Value = Storage> {
    (any::<bool>(), 1_usize..=3, 0_usize..=3, 0_usize..=3).prop_map(|(row_major, step, pad, offset)| Storage {
        row_major,
        step,
        pad,
        offset,
    })
}

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![0_usize..=9, prop::sample::select(vec![13, 16, 17, 31, 32, 33, 61, 64, 67, 127, 131])]
}

fn scalar() -> impl Strategy<Value = f64> {
    prop::sample::select(vec![0.0, -0.0, 1.0, -1.0, 0.5])
}

fn case() -> impl Strategy<Value = Case> {
    ((size(), size(), size()), [storage(), storage(), storage()], scalar(), scalar(), any::<u64>())
        .prop_map(|(size, storage, alpha, beta, seed)| Case { size, storage, alpha, beta, seed })
}

fn is_exact<T: Real>(case: &Case) {
    let done = case.run::<T>(|seed, i, j| integer(seed, i, j, 3)).unwrap();
    right(equal(&done.c, &done.terms().exact(), case.size.0));
}

fn is_within_its_bound<T: Real>(case: &Case) {
    let (done, (rows, _, k)) = (case.run::<T>(unit).unwrap(), case.size);
    right(within(&done.c, &done.terms().near(), rows, k as f64, k));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn integers_are_exact_in_f64(case in case()) {
        is_exact::<f64>(&case);
    }

    #[test]
    fn integers_are_exact_in_f32(case in case()) {
        is_exact::<f32>(&case);
    }

    #[test]
    fn errors_are_within_their_bound_in_f64(case in case()) {
        is_within_its_bound::<f64>(&case);
    }

    #[test]
    fn errors_are_within_their_bound_in_f32(case in case()) {
        is_within_its_bound::<f32>(&case);
    }
}

/// Each element in turn is spoiled: NaN, an infinity, one that is off by a little more than rounding is, or its neighbour's.
#[test]
fn the_bound_refuses_nan() {
    let case = Case { size: (5, 4, 300), storage: [PACKED; 3], alpha: -1.0, beta: 0.5, seed: 7 };
    let done = case.run::<f64>(unit).unwrap();
    let near = done.terms().near();
    right(within(&done.c, &near, 5, 300.0, 300));
    for (at, was) in done.c.iter().enumerate() {
        let neighbour = done.c[(at + 1) % done.c.len()];
        for wrong in [f64::NAN, f64::INFINITY, -f64::INFINITY, was + 1e-10, was - 1e-10, neighbour] {
            let mut found = done.c.clone();
            found[at] = wrong;
            let fault = within(&found, &near, 5, 300.0, 300).expect_err("a wrong element").to_string();
            assert!(
                fault.contains(&format!("1 of 20 elements are wrong, the first ({}, {})", at % 5, at / 5)),
                "{fault}"
            );
        }
    }
}

/// Sizes at which several blocks run in parallel.
const LARGE: [(usize, usize, usize); 5] =
    [(1009, 7, 523), (7, 1009, 523), (521, 67, 131), (4099, 1, 311), (1, 4099, 311)];

/// Few parts of k of one block of C, and of two.
const IN_PARTS: [(usize, usize, usize); 3] = [(3, 5, 200_017), (67, 3, 30_011), (1009, 3, 60_013)];

#[test]
fn a_small_result_of_a_long_k_is_computed_in_parts() {
    let shape = |rows, cols| Shape::packed(rows, cols, Layout::RowMajor, Dtype::F64);
    for ((m, n, k), words) in [
        (IN_PARTS[0], "1 block of 5 columns of C and 11 parts of k"),
        (IN_PARTS[1], "1 block of 67 rows of C and 23 parts of k"),
        (IN_PARTS[2], "2 blocks of 512 rows of C and 21 parts of k"),
        ((64, 64, 10_000_000), "1 block of 64 rows of C and 128 parts of k"),
        ((1009, 7, 523), "2 blocks of 512 rows of C, in parallel"),
        // Blocks are enough.
        ((8191, 7, 523), "16 blocks of 512 rows of C, in parallel"),
        // The sums of more parts would be as large as A and B.
        ((1000, 1000, 1000), "16 blocks of 64 rows of C, in parallel"),
        ((3, 5, 1000), "in one block, by one thread"),
    ] {
        let plan = Plan::gemm(&Device::cpu(), shape(m, k), shape(k, n), shape(m, n)).build().unwrap();
        assert!(plan.to_string().contains(words), "{plan}");
    }
    let row_major = Storage::new(true, 3, 0);
    for size in IN_PARTS {
        is_exact::<f64>(&Case { size, storage: [row_major, PACKED, row_major], alpha: -1.0, beta: 0.5, seed: 7 });
        let case = Case { size, storage: [PACKED, row_major, PACKED], alpha: 1.0, beta: 0.0, seed: 11 };
        let of = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| bits(&case.run::<f64>(unit).unwrap().c))
        };
        assert!(of(1) == of(3), "{case:?}");
    }
}

#[test]
fn integers_are_exact_at_parallel_sizes() {
    let row_major = Storage::new(true, 3, 0);
    for size in LARGE {
        for storage in [[PACKED; 3], [row_major; 3], [PACKED, row_major, PACKED], [row_major, PACKED, row_major]] {
            let case = Case { size, storage, alpha: -1.0, beta: 0.5, seed: 7 };
            is_exact::<f32>(&case);
            is_exact::<f64>(&case);
        }
    }
}

#[test]
fn large_zero_blocks_are_exact() {
    // Data of mostly zeros, in whole blocks, at sizes where the work is spread: what one library got wrong.
    let (m, n, k) = (1031, 35, 601);
    for row_major in [false, true] {
        let storage = Storage::new(row_major, 0, 0);
        let block = |i: usize, j: usize, p: usize, q: usize| i64::from((i / p + j / q) % 3 == 0);
        let left = |i: usize, l: usize| block(i, l, 200, 150) * ((i * 7 + l * 3) % 5) as i64;
        let right = |l: usize, j: usize| block(l, j, 200, 8) * ((l + j * 11) % 7) as i64;
        let a = Buffer::<f64>::new(m, k, storage, |i, l| left(i, l) as f64);
        let b = Buffer::<f64>::new(k, n, storage, |l, j| right(l, j) as f64);
        let mut c = Buffer::<f64>::new(m, n, storage, |_, _| f64::NAN);
        let stream = Device::cpu().stream().unwrap();
        gemm(&stream, 1.0, a.view().unwrap(), b.view().unwrap(), 0.0, c.view_mut().unwrap()).unwrap();
        for i in 0..m {
            for j in 0..n {
                let sum: i64 = (0..k).map(|l| left(i, l) * right(l, j)).sum();
                assert_eq!(c.get(i, j), sum as f64, "element ({i}, {j}), row-major {row_major}");
            }
        }
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    // Of the last two k is cut into parts, whose number follows from that of the blocks.
    for size in LARGE.into_iter().chain([(3, 2, 90_001), IN_PARTS[2]]) {
        for row_major in [false, true] {
            let storage = [Storage::new(row_major, 1, 0), PACKED, Storage::new(row_major, 0, 0)];
            let case = Case { size, storage, alpha: 1.0, beta: -1.0, seed: 11 };
            let of = |threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let single = pool.install(|| bits(&case.run::<f32>(unit).unwrap().c));
                let double = pool.install(|| bits(&case.run::<f64>(unit).unwrap().c));
                (single, double)
            };
            let one = of(1);
            for threads in [2, 4, 7] {
                assert!(of(threads) == one, "{threads} threads, {case:?}");
            }
        }
    }
}

/// Of complex products, Gram matrices and products in place: large ones, and those with k in parts.
#[test]
fn any_number_of_threads_gives_the_same_bits_of_other_products() {
    use num_complex::Complex;
    let data = |seed, len| (0..len).map(|at| Complex::new(unit(seed, at, 0), unit(seed, at, 1))).collect::<Vec<_>>();
    let (tall, b, by_parts) = (data(1, 30_011 * 5), data(2, 5 * 5), data(3, 2 * 60_001));
    let one = Complex::new(0.7, -0.2);
    let of = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let stream = Device::cpu().stream().unwrap();
            let (a, b) = (MatRef::column_major(&tall, 30_011, 5).unwrap(), MatRef::column_major(&b, 5, 5).unwrap());
            let long = MatRef::column_major(&by_parts, 60_001, 2).unwrap();
            let mut all =
                vec![vec![Complex::default(); 30_011 * 5], vec![Complex::default(); 25], vec![Complex::default(); 4]];
            all.push(tall.clone());
            let [product, gram_of_tall, gram_of_long, in_place] = &mut all[..] else { panic!("four") };
            gemm(&stream, one, a, b.h(), one - one, MatMut::column_major(product, 30_011, 5).unwrap()).unwrap();
            gram(&stream, one, a, one, MatMut::column_major(gram_of_tall, 5, 5).unwrap()).unwrap();
            gram(&stream, one, long, one, MatMut::column_major(gram_of_long, 2, 2).unwrap()).unwrap();
            tsmm_in_place(&stream, one, MatMut::column_major(in_place, 30_011, 5).unwrap(), b).unwrap();
            all.concat().into_iter().map(|c| (c.re.to_bits(), c.im.to_bits())).collect::<Vec<_>>()
        })
    };
    let one_thread = of(1);
    for threads in [2, 3, 7] {
        assert!(of(threads) == one_thread, "{threads} threads");
    }
}

/// The bits of a product whose operands begin so many elements into their memory.
fn bits_behind<T: Real>((m, n, k): (usize, usize, usize), [a, b, c]: [usize; 3]) -> Vec<u128> {
    let behind = |seed, offset: usize, len: usize| -> Vec<T> {
        let before = std::iter::repeat_n(T::canary(), offset);
        before.chain((0..len).map(|at| T::of(unit(seed, at, 0)))).collect()
    };
    let (of_a, of_b, mut of_c) = (behind(1, a, m * k), behind(2, b, k * n), behind(3, c, m * n));
    let (left, right) = (MatRef::column_major(&of_a[a..], m, k), MatRef::column_major(&of_b[b..], k, n));
    let into = MatMut::column_major(&mut of_c[c..], m, n).unwrap();
    gemm(&Device::cpu().stream().unwrap(), T::of(0.7), left.unwrap(), right.unwrap(), T::of(-0.3), into).unwrap();
    bits(&of_c[c..])
}

#[test]
fn where_operands_begin_changes_no_bits() {
    fn check<T: Real>() {
        for size in [(13, 5, 67), (131, 9, 31), (3, 2, 90_001)] {
            let expected = bits_behind::<T>(size, [0; 3]);
            for offset in 1..64 / size_of::<T>() {
                for offsets in [[offset, 0, 0], [0, offset, 0], [0, 0, offset], [offset; 3]] {
                    assert!(bits_behind::<T>(size, offsets) == expected, "{size:?} behind {offsets:?} elements");
                }
            }
        }
    }
    check::<f32>();
    check::<f64>();
}

/// Of matrices and of vectors: gaps behind the lines of any operand, in every layout.
#[test]
fn leading_dimensions_change_no_bits() {
    let sizes = [(13, 5, 67), (131, 9, 31), (3, 2, 30_001), (40, 30, 1)];
    let vectors =
        [(7, 1, 500), (70, 90, 1), (300, 1, 70), (2, 1, 60_000), (1, 7, 500), (1, 300, 70), (1, 1, 3001), (33, 1, 1)];
    for size in sizes.into_iter().chain(vectors) {
        for layouts in 0..8 {
            let bits = |pads: [usize; 3]| {
                let storage = [0, 1, 2].map(|at| Storage::new(layouts >> at & 1 > 0, pads[at], 0));
                bits(&Case { size, storage, alpha: 0.7, beta: -0.3, seed: 29 }.run::<f64>(unit).unwrap().c)
            };
            let packed = bits([0; 3]);
            for pads in [[1, 0, 0], [0, 1, 0], [0, 0, 1], [3, 5, 7]] {
                assert!(bits(pads) == packed, "{size:?}, by rows {layouts:03b}, {pads:?} between lines");
            }
        }
    }
}

/// The same with conjugates, which a copy without gaps has not taken yet.
#[test]
fn leading_dimensions_of_conjugates_change_no_bits() {
    use num_complex::Complex;
    let (m, k) = (9, 301);
    let matrix = |seed, len| (0..len).map(|at| Complex::new(unit(seed, at, 0), unit(seed, at, 1))).collect::<Vec<_>>();
    let (a, x) = (matrix(1, m * k), matrix(2, k));
    let product = |gap: usize| {
        let mut wide = vec![Complex::new(f64::NAN, f64::NAN); k * gap];
        x.iter().enumerate().for_each(|(l, element)| wide[l * gap] = *element);
        let mut c = vec![Complex::new(f64::NAN, 0.0); m * gap];
        let (stream, a) = (Device::cpu().stream().unwrap(), MatRef::column_major(&a, m, k).unwrap());
        let x = MatRef::vector(&wide, k, gap).unwrap().conj();
        let one = Complex::new(1.0, 0.0);
        gemm(&stream, one, a, x, one - one, MatMut::vector(&mut c, m, gap).unwrap()).unwrap();
        c.iter().step_by(gap).map(|c| (c.re.to_bits(), c.im.to_bits())).collect::<Vec<_>>()
    };
    let packed = product(1);
    assert!(product(2) == packed && product(5) == packed);
    let first: Complex<f64> = (0..k).map(|l| a[l * m] * x[l].conj()).sum();
    let (re, im) = packed[0];
    assert!((first - Complex::new(f64::from_bits(re), f64::from_bits(im))).norm() <= 1e-12);
}

/// What a product may write is C's elements; anything else of A, B and C is written in turn.
#[test]
fn what_a_product_may_not_write_is_seen() {
    let gaps = Storage { step: 2, ..Storage::new(true, 3, 1) };
    let made = || [(5, 4), (4, 3), (5, 3)].map(|(m, n)| Buffer::<f64>::new(m, n, gaps, |i, j| (i + j) as f64));
    let [a, b, c] = made();
    let elements: Vec<usize> = (0..15).map(|e| c.image.at(e / 3, e % 3)).collect();
    for (which, len) in [a.all.len(), b.all.len(), c.all.len()].into_iter().enumerate() {
        for at in 0..len {
            let damaged = || {
                watch(&mut made(), |operands| {
                    operands[which].all[at] = -7.0;
                    Ok(())
                })
            };
            let is_seen = catch_unwind(AssertUnwindSafe(damaged)).is_err();
            assert_eq!(is_seen, which < 2 || !elements.contains(&at), "element {at} of operand {which}");
        }
    }
}

#[test]
fn nan_and_infinity_reach_their_row_and_no_other() {
    let (m, n, k) = (131, 5, 67);
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        for (row, depth) in [(0, 0), (1, 2), (1, 66), (63, 1), (64, 31), (65, 32), (127, 33), (128, 64), (130, 66)] {
            let a = Buffer::<f64>::new(m, k, PACKED, |i, l| if (i, l) == (row, depth) { bad } else { 1.0 });
            // Zeros in B: an infinity times zero must give a NaN.
            let b = Buffer::<f64>::new(k, n, PACKED, |_, j| if j == 0 { 0.0 } else { 1.0 });
            let mut c = Buffer::<f64>::new(m, n, PACKED, |_, _| 1.0);
            let stream = Device::cpu().stream().unwrap();
            gemm(&stream, 1.0, a.view().unwrap(), b.view().unwrap(), 1.0, c.view_mut().unwrap()).unwrap();
            for i in 0..m {
                for j in 0..n {
                    let expected = match (i == row, j) {
                        (false, 0) => 1.0,
                        (false, _) => 68.0,
                        (true, 0) => f64::NAN,
                        (true, _) => bad,
                    };
                    let found = c.get(i, j);
                    assert!(
                        found == expected || (found.is_nan() && expected.is_nan()),
                        "({i}, {j}) is {found}, not {expected}, for {bad} at ({row}, {depth})"
                    );
                }
            }
        }
    }
}

/// To the bit, whatever the others hold: by blocks of rows, of columns, and in parts of k.
#[test]
fn a_column_depends_on_its_own_column_of_b_alone() {
    for (m, n, k) in [(131, 8, 67), (3, 8, 41), (3, 700, 67), (5, 8, 60_000)] {
        let number = |row: usize, col: usize, seed: usize| ((row * 7919 + col * 104_729 + seed) % 1009) as f64 / 1009.0;
        let product = |b: &dyn Fn(usize, usize) -> f64| {
            let a = Buffer::<f64>::new(m, k, PACKED, |i, l| number(i, l, 1) - 0.5);
            let b = Buffer::<f64>::new(k, n, PACKED, b);
            let mut c = Buffer::<f64>::new(m, n, PACKED, |_, _| 1.0);
            let stream = Device::cpu().stream().unwrap();
            gemm(&stream, 0.7, a.view().unwrap(), b.view().unwrap(), 0.3, c.view_mut().unwrap()).unwrap();
            c
        };
        let whole = product(&|l, j| number(l, j, 2));
        for own in (0..n).step_by(n.div_ceil(8)) {
            let alone = product(&|l, j| if j == own { number(l, j, 2) } else { f64::NAN });
            for i in 0..m {
                let (found, expected) = (alone.get(i, own), whole.get(i, own));
                assert_eq!(
                    found.to_bits(),
                    expected.to_bits(),
                    "{m} x {n} x {k}: ({i}, {own}) is {found}, not {expected}"
                );
            }
        }
    }
}

#[test]
fn alpha_zero_reads_neither_a_nor_b() {
    // With a narrow side, and without one.
    for (beta, n) in [0.0, -0.0, 0.5, 1.0].into_iter().flat_map(|beta| [4, 80].map(|n| (beta, n))) {
        let a = Buffer::<f64>::new(70, 3, PACKED, |_, _| f64::NAN);
        let b = Buffer::<f64>::new(3, n, PACKED, |_, _| f64::INFINITY);
        let mut c = Buffer::<f64>::new(70, n, PACKED, |_, _| if beta == 0.0 { f64::NAN } else { 3.0 });
        let stream = Device::cpu().stream().unwrap();
        for alpha in [0.0, -0.0] {
            gemm(&stream, alpha, a.view().unwrap(), b.view().unwrap(), beta, c.view_mut().unwrap()).unwrap();
        }
        let expected = if beta == 0.0 { 0.0 } else { 3.0 * beta * beta };
        assert!((0..70).all(|i| (0..n).all(|j| c.get(i, j).to_bits() == f64::to_bits(expected))), "beta = {beta}");
    }
}

#[test]
fn nan_factors_make_everything_nan() {
    for (alpha, beta) in [(f64::NAN, 0.0), (1.0, f64::NAN), (0.0, f64::NAN), (f64::NAN, 1.0)] {
        let a = Buffer::<f64>::new(3, 2, PACKED, |_, _| 1.0);
        let mut c = Buffer::<f64>::new(3, 3, PACKED, |_, _| 1.0);
        let stream = Device::cpu().stream().unwrap();
        let view = a.view().unwrap();
        gemm(&stream, alpha, view, view.t(), beta, c.view_mut().unwrap()).unwrap();
        assert!((0..3).all(|i| (0..3).all(|j| c.get(i, j).is_nan())), "alpha = {alpha}, beta = {beta}");
    }
}

#[test]
fn one_operand_may_be_both_factors() {
    let a = Buffer::<f64>::new(97, 13, PACKED, |i, l| ((i * 5 + l * 3) % 11) as f64 - 5.0);
    let mut c = Buffer::<f64>::new(13, 13, PACKED, |_, _| f64::NAN);
    let stream = Device::cpu().stream().unwrap();
    let view = a.view().unwrap();
    gemm(&stream, 1.0, view.t(), view, 0.0, c.view_mut().unwrap()).unwrap();
    for i in 0..13 {
        for j in 0..13 {
            let sum: f64 = (0..97).map(|l| a.get(l, i) * a.get(l, j)).sum();
            assert_eq!(c.get(i, j), sum);
        }
    }
}
