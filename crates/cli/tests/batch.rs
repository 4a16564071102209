//! `lanky batch` against a plain reference, exactly: integers small enough that no sum is rounded.

mod common;

use common::{Array, Bench, Number, npy, product, text, transposed};
use serde_json::Value;

const SIZES: (usize, usize, usize, usize) = (5, 3, 4, 2);

fn values<T: Number>(array: &Array<T>) -> Vec<f64> {
    array.data.iter().map(|x| x.value()).collect()
}

/// The file of an array of three axes in Fortran order: the last axis runs slowest.
fn fortran<T: Number>(array: &Array<T>) -> Vec<u8> {
    let [x, y, z] = array.shape[..] else { panic!("three axes") };
    let header = format!("{{'descr': '{}', 'fortran_order': True, 'shape': ({x}, {y}, {z}), }}\n", T::DESCR);
    let places = (0..z).flat_map(|k| (0..y).flat_map(move |j| (0..x).map(move |i| (i * y + j) * z + k)));
    npy(1, &header, &places.flat_map(|place| array.data[place].bytes()).collect::<Vec<u8>>())
}

fn file<T: Number>(array: &Array<T>, by_fortran: bool) -> Vec<u8> {
    if by_fortran { fortran(array) } else { array.file(1) }
}

/// All products of a case; a shared operand has two axes.
fn check<T: Number>(number: usize) {
    let bit = |place: usize| number >> place & 1 == 1;
    let (count, m, n, k) = SIZES;
    let (transpose, shared) = ((bit(0), bit(1)), (number % 5 == 3, number % 5 == 4));
    let (alpha, beta) = ([1.0, -1.0, 0.5, 0.0][number % 4], [None, Some(-2.0), Some(1.0), Some(0.0)][number / 4 % 4]);
    let stored = |rows, cols, flipped: bool, shared: bool| {
        let matrix = if flipped { [cols, rows] } else { [rows, cols] };
        if shared { matrix.to_vec() } else { [&[count], &matrix[..]].concat() }
    };
    let a = Array::<T>::integers(&stored(m, k, transpose.0, shared.0), 1, false);
    let b = Array::<T>::integers(&stored(k, n, transpose.1, shared.1), 2, false);
    let c = Array::<T>::integers(&[count, m, n], 3, false);
    let bench = Bench::new();
    bench.put("a.npy", file(&a, bit(2) && !shared.0));
    bench.put("b.npy", file(&b, bit(3) && !shared.1));
    bench.put("c0.npy", file(&c, bit(4)));
    let (alpha_text, beta_text) = (alpha.to_string(), beta.unwrap_or_default().to_string());
    let mut args = vec!["batch", "a.npy", "b.npy", "-o", "c.npy", "--alpha", &alpha_text];
    args.extend(transpose.0.then_some(if bit(4) { "--adjoint-a" } else { "--transpose-a" }));
    args.extend(transpose.1.then_some(if bit(3) { "--adjoint-b" } else { "--transpose-b" }));
    if beta.is_some() {
        args.extend(["--beta", &beta_text, "--c", "c0.npy"]);
    }
    bench.succeed(&args);
    let (a, b, c) = (values(&a), values(&b), values(&c));
    let matrix = |all: &[f64], index: usize, shared, (rows, cols): (usize, usize), flipped| {
        let start = if shared { 0 } else { index * rows * cols };
        let one = all[start..start + rows * cols].to_vec();
        if flipped { transposed(&one, cols, rows) } else { one }
    };
    let expected: Vec<f64> = (0..count)
        .flat_map(|index| {
            let a = matrix(&a, index, shared.0, (m, k), transpose.0);
            let b = matrix(&b, index, shared.1, (k, n), transpose.1);
            product(&a, &b, (m, n, k), alpha, beta.unwrap_or_default(), &c[index * m * n..])
        })
        .collect();
    let found = Array::<T>::read(&bench.get("c.npy"));
    assert_eq!((found.shape.as_slice(), found.fortran), (&[count, m, n][..], false), "{args:?}");
    assert_eq!(values(&found), expected, "{number} {args:?}");
}

#[test]
fn all_orders_transposes_factors_and_shared_operands() {
    for number in 0..40 {
        check::<f64>(number);
        check::<f32>(number);
    }
}

#[test]
fn an_adjoint_is_conjugated() {
    let bench = Bench::new();
    let complex = |shape: &str, numbers: &[f64]| {
        let header = format!("{{'descr': '<c16', 'fortran_order': False, 'shape': {shape}, }}\n");
        npy(1, &header, &numbers.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>())
    };
    // Two matrices of one element: 1 + 2i and 3 + 4i, times i.
    bench.put("a.npy", complex("(2, 1, 1)", &[1.0, 2.0, 3.0, 4.0]));
    bench.put("b.npy", complex("(1, 1)", &[0.0, 1.0]));
    bench.succeed(&["batch", "a.npy", "b.npy", "-o", "c.npy", "--adjoint-a", "--alpha", "0,2"]);
    let file = bench.get("c.npy");
    let numbers: Vec<f64> = file[file.len() - 32..].chunks(8).map(f64::from_bytes).collect();
    // 2i (1 - 2i) i = -2 + 4i
    assert_eq!(numbers, [-2.0, 4.0, -6.0, 8.0]);
}

#[test]
fn json_is_exactly_one_object() {
    let bench = Bench::new();
    for (count, m, n, k) in [(6, 5, 4, 3), (0, 5, 4, 3), (3, 5, 4, 0)] {
        bench.put("a.npy", Array::<f32>::integers(&[count, m, k], 1, false).file(1));
        bench.put("b.npy", Array::<f32>::integers(&[count, k, n], 2, false).file(1));
        let output = bench.succeed(&["batch", "a.npy", "b.npy", "-o", "c.npy", "--json"]);
        let object: Value = serde_json::from_slice(&output.stdout).expect("one JSON value");
        let mut keys: Vec<&str> = object.as_object().expect("an object").keys().map(String::as_str).collect();
        keys.sort_unstable();
        assert_eq!(keys, ["batch", "device", "dtype", "gbs", "k", "m", "n", "operation", "seconds"]);
        assert_eq!((&object["batch"], &object["m"]), (&count.into(), &m.into()));
        assert_eq!((object["device"].as_str(), object["dtype"].as_str()), (Some("cpu"), Some("f32")));
        assert_eq!(text(&output.stdout).lines().count(), 1);
        assert_eq!(Array::<f32>::read(&bench.get("c.npy")).shape, [count, m, n]);
    }
}

#[test]
fn the_same_bytes_twice_into_a_pipe_and_over_an_input() {
    let bench = Bench::new();
    let mut a = Array::<f64>::integers(&[2000, 7, 7], 1, false);
    a.data.iter_mut().enumerate().for_each(|(index, x)| *x += (index as f64).sin());
    bench.put("a.npy", a.file(1));
    bench.put("b.npy", Array::<f64>::integers(&[7, 7], 2, true).file(1));
    bench.succeed(&["batch", "a.npy", "b.npy", "-o", "c.npy"]);
    let first = bench.get("c.npy");
    assert_eq!(bench.succeed(&["batch", "a.npy", "b.npy", "-o", "-"]).stdout, first);
    let one = bench.command(&["batch", "a.npy", "b.npy", "-o", "a.npy"]).env("RAYON_NUM_THREADS", "1").output();
    assert!(one.expect("it runs").status.success());
    assert_eq!(bench.get("a.npy"), first);
}

#[test]
fn what_does_not_fit_is_refused() {
    let bench = Bench::new();
    let put = |name: &str, shape: &[usize]| bench.put(name, Array::<f64>::integers(shape, 1, false).file(1));
    put("a.npy", &[3, 2, 4]);
    put("b.npy", &[3, 4, 5]);
    put("two.npy", &[2, 4, 5]);
    put("rows.npy", &[3, 5, 5]);
    put("one.npy", &[4, 5]);
    put("vector.npy", &[4]);
    bench.put("f32.npy", Array::<f32>::integers(&[3, 4, 5], 1, false).file(1));
    let plain = |a, b| vec!["batch", a, b, "-o", "c.npy"];
    for (args, words) in [
        (
            plain("a.npy", "two.npy"),
            "two.npy: B is 2 of 4 x 5, but A is 3 of 2 x 4: B needs 3 matrices, or one for all",
        ),
        (plain("a.npy", "rows.npy"), "rows.npy: B is 3 of 5 x 5, but A is 3 of 2 x 4: B needs 4 rows"),
        (plain("a.npy", "f32.npy"), "f32.npy: B is f32, but A is f64: both must be of one type"),
        (
            plain("one.npy", "one.npy"),
            "one.npy: B is 4 x 5, for all products, but A is 4 x 5, for all products: B needs 5 rows",
        ),
        (
            plain("a.npy", "vector.npy"),
            "vector.npy: it has one axis: B needs three, the batch first, or two for a shared matrix",
        ),
        ([plain("one.npy", "one.npy"), vec!["--transpose-b"]].concat(), "one.npy: neither A nor B has three axes"),
        ([plain("a.npy", "b.npy"), vec!["--beta", "2"]].concat(), "--beta 2 needs the matrix that it multiplies"),
        ([plain("a.npy", "b.npy"), vec!["--c", "b.npy"]].concat(), "b.npy: C0 is 3 x 4 x 5, but C is 3 x 2 x 5"),
        ([plain("a.npy", "b.npy"), vec!["--c", "f32.npy"]].concat(), "f32.npy: C0 is f32, but A is f64"),
        (vec!["mul", "a.npy", "b.npy", "-o", "c.npy"], "a.npy: it has 3 axes, but a matrix has two at most"),
    ] {
        let error = bench.fail(2, &args);
        assert!(error.contains(words), "{args:?}: {error}");
    }
    assert!(!common::exists(&bench.path("c.npy")));
}
