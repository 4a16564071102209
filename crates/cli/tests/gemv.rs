//! `lanky gemv` against a plain reference, exactly: integers small enough that no sum is rounded.

mod common;

use common::{Array, Bench, Number, product, transposed};
use serde_json::Value;

fn values<T: Number>(array: &Array<T>) -> Vec<f64> {
    array.data.iter().map(|x| x.value()).collect()
}

/// op(A) is m x k; x lies as one axis, a column or a row.
fn check<T: Number>((m, k): (usize, usize), fortran: bool, op: Option<&str>, x_axes: usize, beta: Option<f64>) {
    let bench = Bench::new();
    let a = Array::<T>::integers(&if op.is_some() { [k, m] } else { [m, k] }, 1, fortran);
    let x = Array::<T>::integers([&[k][..], &[k, 1], &[1, k]][x_axes], 2, fortran);
    let y = Array::<T>::integers(&[m], 3, false);
    bench.put("a.npy", a.file(1));
    bench.put("x.npy", x.file(1));
    bench.put("y0.npy", y.file(2));
    let beta_text = beta.unwrap_or_default().to_string();
    let mut args = vec!["gemv", "a.npy", "x.npy", "-o", "y.npy", "--alpha", "2"];
    args.extend(op);
    if beta.is_some() {
        args.extend(["--beta", &beta_text, "--y", "y0.npy"]);
    }
    bench.succeed(&args);
    let a = if op.is_some() { transposed(&values(&a), k, m) } else { values(&a) };
    let expected = product(&a, &values(&x), (m, 1, k), 2.0, beta.unwrap_or_default(), &values(&y));
    let found = Array::<T>::read(&bench.get("y.npy"));
    assert_eq!((found.shape.as_slice(), values(&found)), (&[m][..], expected), "{args:?} {fortran} {x_axes}");
}

#[test]
fn all_orders_operations_and_factors() {
    for number in 0..12 {
        let op = [None, Some("--transpose-a"), Some("--adjoint-a")][number % 3];
        check::<f64>((61, 7), number & 1 == 1, op, number / 4, [None, Some(-1.0), Some(0.0)][number / 2 % 3]);
        check::<f32>((5, 300), number & 2 == 2, op, number / 4, [Some(0.5), None][number % 2]);
    }
    check::<f64>((1, 9), false, None, 0, None);
}

/// Without --beta y0 counts once.
#[test]
fn y0_is_added() {
    let bench = Bench::new();
    bench.put("a.npy", Array::<f64> { shape: vec![2, 2], data: vec![1.0, 2.0, 3.0, 4.0], fortran: false }.file(1));
    bench.put("v.npy", Array::<f64> { shape: vec![2], data: vec![1.0, 10.0], fortran: false }.file(1));
    bench.succeed(&["gemv", "a.npy", "v.npy", "-o", "v.npy", "--y", "v.npy"]);
    assert_eq!(Array::<f64>::read(&bench.get("v.npy")).data, [22.0, 53.0]);
}

#[test]
fn json_says_what_was_done() {
    let bench = Bench::new();
    bench.put("a.npy", Array::<f64>::integers(&[70, 3], 1, false).file(1));
    bench.put("x.npy", Array::<f64>::integers(&[70], 1, false).file(1));
    let output = bench.succeed(&["gemv", "a.npy", "x.npy", "-o", "y.npy", "--transpose-a", "--json"]);
    let object: Value = serde_json::from_slice(&output.stdout).expect("one JSON value");
    assert_eq!(
        (&object["operation"], &object["m"], &object["n"], &object["k"]),
        (&"gemv".into(), &3.into(), &1.into(), &70.into())
    );
}

#[test]
fn what_is_wrong_is_named_and_leaves_no_file() {
    let bench = Bench::new();
    bench.put("a.npy", Array::<f64>::integers(&[9, 3], 1, false).file(1));
    bench.put("x.npy", Array::<f64>::integers(&[3], 1, false).file(1));
    bench.put("b.npy", Array::<f64>::integers(&[3, 2], 1, false).file(1));
    bench.put("x32.npy", Array::<f32>::integers(&[3], 1, false).file(1));
    let all = bench.names();
    let base = ["gemv", "a.npy", "x.npy", "-o", "y.npy"];
    for (args, said) in [
        (&["gemv", "a.npy", "b.npy", "-o", "y.npy"][..], "b.npy: x is 3 x 2, not a vector: lanky mul"),
        (&["gemv", "a.npy", "x32.npy", "-o", "y.npy"], "x is f32, but A is f64"),
        (
            &["gemv", "a.npy", "x.npy", "-o", "y.npy", "--transpose-a"],
            "x has 3 elements, but A transposed is 3 x 9: x needs 9",
        ),
        (
            &["gemv", "a.npy", "x.npy", "-o", "y.npy", "--adjoint-a"],
            "x has 3 elements, but the adjoint of A is 3 x 9: x needs 9",
        ),
        (&[&base[..], &["--y", "x.npy"]].concat(), "C0 is a vector of 3, but C is a vector of 9"),
        (&[&base[..], &["--y", "b.npy"]].concat(), "C0 is 3 x 2, but C is a vector of 9"),
        (&[&base[..], &["--beta", "2"]].concat(), "--beta 2 needs the matrix that it multiplies"),
        (&["gemv", "a.npy", "x.npy", "-o", "-", "--json"], "cannot both go to standard output"),
        (&[&base[..], &["--variant", "gemv_none"]].concat(), "unknown variant"),
    ] {
        let found = bench.fail(2, args);
        assert!(found.contains(said), "{found}");
        assert_eq!(bench.names(), all);
    }
}
