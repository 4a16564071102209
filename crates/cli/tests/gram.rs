//! `lanky gram` against a plain reference, exactly: integers small enough that no sum is rounded.

mod common;

use common::{Array, Bench, Number, product, transposed};
use serde_json::Value;

fn values<T: Number>(array: &Array<T>) -> Vec<f64> {
    array.data.iter().map(|x| x.value()).collect()
}

/// A (or, transposed, its columns) by itself; `beta` with a G0 that is not symmetric.
fn check<T: Number>((k, n): (usize, usize), fortran: (bool, bool), transpose: bool, beta: Option<f64>) {
    let bench = Bench::new();
    let a = Array::<T>::integers(&if transpose { [n, k] } else { [k, n] }, 1, fortran.0);
    let c = Array::<T>::integers(&[n, n], 3, fortran.1);
    bench.put("a.npy", a.file(1));
    bench.put("c0.npy", c.file(2));
    let beta_text = beta.unwrap_or_default().to_string();
    let mut args = vec!["gram", "a.npy", "-o", "g.npy", "--alpha", "2", "--no-conj"];
    args.extend(transpose.then_some("--transpose-a"));
    if beta.is_some() {
        args.extend(["--beta", &beta_text, "--c", "c0.npy"]);
    }
    bench.succeed(&args);
    let a = values(&a);
    let (a, a_t) = if transpose { (transposed(&a, n, k), a) } else { (a.clone(), transposed(&a, k, n)) };
    let expected = product(&a_t, &a, (n, n, k), 2.0, beta.unwrap_or_default(), &values(&c));
    let found = Array::<T>::read(&bench.get("g.npy"));
    assert_eq!(found.shape, [n, n], "{args:?}");
    assert_eq!(found.fortran, if beta.is_some() { fortran.1 } else { fortran.0 }, "{args:?}");
    assert_eq!(values(&found), expected, "{args:?} {fortran:?}");
}

#[test]
fn all_orders_transposes_and_factors() {
    for number in 0..8 {
        let bit = |place: usize| number >> place & 1 == 1;
        check::<f64>((61, 7), (bit(0), bit(1)), bit(2), [None, Some(-1.0), Some(0.0)][number % 3]);
        check::<f32>((5, 12), (bit(1), bit(2)), bit(0), [Some(0.5), None][number % 2]);
    }
}

#[test]
fn json_says_what_was_done() {
    let bench = Bench::new();
    bench.put("a.npy", Array::<f64>::integers(&[70, 3], 1, false).file(1));
    let output = bench.succeed(&["gram", "a.npy", "-o", "g.npy", "--json"]);
    let object: Value = serde_json::from_slice(&output.stdout).expect("one JSON value");
    assert_eq!(
        (&object["operation"], &object["m"], &object["n"], &object["k"]),
        (&"gram".into(), &3.into(), &3.into(), &70.into())
    );
}

#[test]
fn what_is_wrong_is_named_and_leaves_no_file() {
    let bench = Bench::new();
    bench.put("a.npy", Array::<f64>::integers(&[9, 3], 1, false).file(1));
    bench.put("c0.npy", Array::<f64>::integers(&[3, 4], 1, false).file(1));
    for (args, said) in [
        (&["gram", "a.npy", "-o", "g.npy", "--c", "c0.npy"][..], "C0 is 3 x 4, but C is 3 x 3"),
        (&["gram", "a.npy", "-o", "g.npy", "--beta", "2"], "--beta 2 needs the matrix that it multiplies"),
        (&["gram", "a.npy", "-o", "-", "--json"], "cannot both go to standard output"),
        (&["gram", "a.npy", "-o", "g.npy", "--variant", "gram_none"], "unknown variant"),
    ] {
        let found = bench.fail(2, args);
        assert!(found.contains(said), "{found}");
        assert_eq!(bench.names(), ["a.npy", "c0.npy"]);
    }
}
