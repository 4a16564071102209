//! `lanky mul` against a plain reference, exactly: integers small enough that no sum is rounded.

mod common;

use common::{Array, Bench, Number, product, text, transposed};
use serde_json::Value;

struct Case {
    m: usize,
    n: usize,
    k: usize,
    /// Fortran order of A, B and C0.
    fortran: (bool, bool, bool),
    transpose: (bool, bool),
    version: u8,
    alpha: f64,
    /// beta and C0, or neither.
    beta: Option<f64>,
}

fn check<T: Number>(case: &Case) {
    let Case { m, n, k, fortran, transpose, version, alpha, beta } = *case;
    let bench = Bench::new();
    let stored = |rows, cols, flipped| if flipped { [cols, rows] } else { [rows, cols] };
    let a = Array::<T>::integers(&stored(m, k, transpose.0), 1, fortran.0);
    let b = Array::<T>::integers(&stored(k, n, transpose.1), 2, fortran.1);
    let c = Array::<T>::integers(&[m, n], 3, fortran.2);
    bench.put("a.npy", a.file(version));
    bench.put("b.npy", b.file(version % 3 + 1));
    bench.put("c0.npy", c.file(3));
    let (alpha_text, beta_text) = (alpha.to_string(), beta.unwrap_or_default().to_string());
    let mut args = vec!["mul", "a.npy", "b.npy", "-o", "c.npy", "--alpha", &alpha_text];
    args.extend(transpose.0.then_some("--transpose-a"));
    args.extend(transpose.1.then_some("--transpose-b"));
    if beta.is_some() {
        args.extend(["--beta", &beta_text, "--c", "c0.npy"]);
    }
    bench.succeed(&args);
    let values = |array: &Array<T>| array.data.iter().map(|x| x.value()).collect::<Vec<_>>();
    let (mut a_values, mut b_values) = (values(&a), values(&b));
    if transpose.0 {
        a_values = transposed(&a_values, k, m);
    }
    if transpose.1 {
        b_values = transposed(&b_values, n, k);
    }
    let expected = product(&a_values, &b_values, (m, n, k), alpha, beta.unwrap_or_default(), &values(&c));
    let found = Array::<T>::read(&bench.get("c.npy"));
    assert_eq!(found.shape, [m, n], "{args:?}");
    assert_eq!(found.fortran, if beta.is_some() { fortran.2 } else { fortran.0 }, "{args:?}");
    assert_eq!(values(&found), expected, "{args:?} {fortran:?}");
    assert_eq!(bench.names(), ["a.npy", "b.npy", "c.npy", "c0.npy"]);
}

/// Inputs by links, also by one to a link and through a linked folder.
#[test]
fn links_are_followed() {
    let bench = Bench::new();
    bench.put("a.npy", Array::<f64>::integers(&[5, 3], 1, false).file(1));
    bench.put("b.npy", Array::<f64>::integers(&[3, 2], 2, true).file(1));
    bench.put("c0.npy", Array::<f64>::integers(&[5, 2], 3, false).file(1));
    for (target, link) in [
        ("a.npy", "link.npy"),
        ("link.npy", "again.npy"),
        ("b.npy", "b-link.npy"),
        ("c0.npy", "c-link.npy"),
        (".", "folder"),
    ] {
        std::os::unix::fs::symlink(target, bench.path(link)).expect("links can be made");
    }
    let mul = |a, b, c0, c| bench.succeed(&["mul", a, b, "--beta", "2", "--c", c0, "-o", c]);
    mul("a.npy", "b.npy", "c0.npy", "c.npy");
    for a in ["link.npy", "again.npy", "folder/link.npy"] {
        mul(a, "b-link.npy", "c-link.npy", "by-links.npy");
        assert_eq!(bench.get("by-links.npy"), bench.get("c.npy"), "{a}");
    }
}

#[test]
fn all_orders_versions_transposes_and_factors() {
    let bit = |number: usize, place: usize| number >> place & 1 == 1;
    for number in 0..32 {
        let case = Case {
            m: 13,
            n: 3,
            k: 7,
            fortran: (bit(number, 0), bit(number, 1), bit(number, 4)),
            transpose: (bit(number, 2), bit(number, 3)),
            version: u8::try_from(number % 3 + 1).unwrap(),
            alpha: [1.0, -1.0, 0.5, 0.0][number % 4],
            beta: [None, Some(-2.0), Some(1.0), Some(0.0), Some(0.5)][number % 5],
        };
        check::<f64>(&case);
        check::<f32>(&case);
    }
}

#[test]
fn empty_products() {
    for (m, n, k) in [(0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0)] {
        for beta in [None, Some(-1.0)] {
            let plain = (false, false);
            let case = Case { m, n, k, fortran: (true, false, true), transpose: plain, version: 1, alpha: 1.0, beta };
            check::<f64>(&case);
        }
    }
}

#[test]
fn vectors_lose_their_axis() {
    // (A, B, flags, shape of C)
    type Row = (&'static [usize], &'static [usize], &'static [&'static str], &'static [usize]);
    let table: [Row; 8] = [
        (&[5], &[5, 3], &[], &[3]),
        (&[4, 5], &[5], &[], &[4]),
        (&[5], &[5], &[], &[]),
        (&[5], &[3, 5], &["--transpose-b"], &[3]),
        (&[5, 4], &[5], &["--transpose-a"], &[4]),
        (&[4], &[1, 3], &["--transpose-a"], &[4, 3]),
        (&[4, 1], &[3], &["--transpose-b"], &[4, 3]),
        (&[4], &[3], &["--transpose-a", "--transpose-b"], &[4, 3]),
    ];
    for (a_shape, b_shape, flags, c_shape) in table {
        let bench = Bench::new();
        let a = Array::<f64>::integers(a_shape, 1, false);
        let b = Array::<f64>::integers(b_shape, 2, false);
        let c = Array::<f64>::integers(c_shape, 3, false);
        bench.put("a.npy", a.file(1));
        bench.put("b.npy", b.file(2));
        bench.put("c0.npy", c.file(1));
        let plain = ["mul", "a.npy", "b.npy", "-o", "c.npy"];
        bench.succeed(&[&plain, flags].concat());
        let found = Array::<f64>::read(&bench.get("c.npy"));
        assert_eq!(found.shape, c_shape, "{a_shape:?} {b_shape:?}");
        let k = if flags.contains(&"--transpose-a") && a_shape.len() == 1 { 1 } else { 5 };
        let k = if a_shape == [4, 1] { 1 } else { k };
        let (m, n) = (a.data.len() / k, b.data.len() / k);
        let a_rows = if a_shape == [5, 4] { transposed(&a.data, 5, 4) } else { a.data.clone() };
        let b_rows = if b_shape == [3, 5] { transposed(&b.data, 3, 5) } else { b.data.clone() };
        let expected = product(&a_rows, &b_rows, (m, n, k), 1.0, 0.0, &[]);
        assert_eq!(found.data, expected, "{a_shape:?} {b_shape:?}");
        // --c alone adds C0.
        bench.succeed(&[&plain, flags, &["--c", "c0.npy"]].concat());
        let sums: Vec<f64> = expected.iter().zip(&c.data).map(|(x, y)| x + y).collect();
        assert_eq!(Array::<f64>::read(&bench.get("c.npy")).data, sums, "{a_shape:?} {b_shape:?}");
    }
}

#[test]
fn beta_zero_never_reads_c() {
    let bench = Bench::new();
    bench.put("a.npy", Array::<f64>::integers(&[4, 2], 1, false).file(1));
    bench.put("b.npy", Array::<f64>::integers(&[2, 3], 2, false).file(1));
    let nans = Array { shape: vec![4, 3], data: vec![f64::NAN; 12], fortran: false };
    bench.put("c0.npy", nans.file(1));
    bench.succeed(&["mul", "a.npy", "b.npy", "-o", "c.npy", "--c", "c0.npy", "--beta", "0"]);
    assert!(Array::<f64>::read(&bench.get("c.npy")).data.iter().all(|x| x.is_finite()));
}

#[test]
fn json_is_exactly_one_object() {
    for (m, k, n) in [(6, 5, 4), (0, 5, 4), (6, 0, 4)] {
        let bench = Bench::new();
        bench.put("a.npy", Array::<f32>::integers(&[m, k], 1, false).file(1));
        bench.put("b.npy", Array::<f32>::integers(&[k, n], 2, false).file(1));
        let output = bench.succeed(&["mul", "a.npy", "b.npy", "-o", "c.npy", "--json"]);
        let object: Value = serde_json::from_slice(&output.stdout).expect("one JSON value");
        let mut keys: Vec<&str> = object.as_object().expect("an object").keys().map(String::as_str).collect();
        keys.sort_unstable();
        assert_eq!(keys, ["device", "dtype", "gbs", "k", "m", "n", "operation", "seconds", "variant"]);
        assert_eq!((&object["m"], &object["n"], &object["k"]), (&m.into(), &n.into(), &k.into()));
        assert_eq!((object["device"].as_str(), object["dtype"].as_str()), (Some("cpu"), Some("f32")));
        assert!(object["variant"].is_string() && object["operation"].is_string(), "{object}");
        assert!(object["seconds"].is_number() && object["gbs"].is_number(), "{object}");
        assert_eq!(text(&output.stdout).lines().count(), 1);
    }
}

#[test]
fn without_json_standard_output_stays_empty_and_the_device_is_named() {
    let bench = Bench::new();
    bench.put("a.npy", Array::<f64>::integers(&[4, 2], 1, false).file(1));
    let output = bench.succeed(&["mul", "a.npy", "a.npy", "--transpose-b", "-o", "c.npy"]);
    assert!(output.stdout.is_empty());
    assert!(text(&output.stderr).starts_with("cpu"), "{}", text(&output.stderr));
}

#[test]
fn the_same_bytes_twice_and_into_a_pipe() {
    let bench = Bench::new();
    let mut a = Array::<f64>::integers(&[300, 70], 1, false);
    a.data.iter_mut().enumerate().for_each(|(index, x)| *x += (index as f64).sin());
    bench.put("a.npy", a.file(1));
    bench.put("b.npy", Array::<f64>::integers(&[70, 5], 2, true).file(1));
    bench.succeed(&["mul", "a.npy", "b.npy", "-o", "c1.npy"]);
    bench.succeed(&["mul", "a.npy", "b.npy", "-o", "c2.npy"]);
    assert_eq!(bench.get("c1.npy"), bench.get("c2.npy"));
    for name in ["-", "/dev/stdout"] {
        let output = bench.succeed(&["mul", "a.npy", "b.npy", "-o", name]);
        assert_eq!(output.stdout, bench.get("c1.npy"));
    }
    let again = bench
        .command(&["mul", "a.npy", "b.npy", "-o", "c3.npy", "--device", "cpu"])
        .env("RAYON_NUM_THREADS", "1")
        .output();
    assert!(again.unwrap().status.success());
    assert_eq!(bench.get("c3.npy"), bench.get("c1.npy"));
}

#[test]
fn the_output_may_be_an_input_a_link_or_dev_null() {
    let bench = Bench::new();
    bench.put("a.npy", Array::<f64>::integers(&[3, 3], 1, false).file(1));
    bench.put("b.npy", Array::<f64>::integers(&[3, 3], 2, false).file(1));
    bench.succeed(&["mul", "a.npy", "b.npy", "-o", "c.npy"]);
    let expected = bench.get("c.npy");
    std::os::unix::fs::symlink("real.npy", bench.path("link.npy")).unwrap();
    bench.put("real.npy", "old");
    bench.succeed(&["mul", "a.npy", "b.npy", "-o", "link.npy"]);
    assert!(bench.path("link.npy").symlink_metadata().unwrap().is_symlink());
    assert_eq!(bench.get("real.npy"), expected);
    bench.succeed(&["mul", "a.npy", "b.npy", "-o", "/dev/null"]);
    bench.succeed(&["mul", "a.npy", "b.npy", "-o", "a.npy"]);
    assert_eq!(bench.get("a.npy"), expected);
    assert_eq!(bench.names(), ["a.npy", "b.npy", "c.npy", "link.npy", "real.npy"]);
}

#[test]
fn the_output_gets_the_permissions_of_any_new_file() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new();
    bench.put("a.npy", Array::<f64>::integers(&[3, 3], 1, false).file(1));
    bench.succeed(&["mul", "a.npy", "a.npy", "-o", "c.npy"]);
    let mode = |name: &str| bench.path(name).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("c.npy"), mode("a.npy"));
}

#[test]
fn an_output_that_is_there_keeps_its_permissions() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let bench = Bench::new();
    bench.put("a.npy", Array::<f64>::integers(&[3, 3], 1, false).file(1));
    bench.put("c.npy", "old");
    std::os::unix::fs::symlink("c.npy", bench.path("link.npy")).unwrap();
    for (mode, name) in [(0o600, "c.npy"), (0o666, "c.npy"), (0o640, "link.npy"), (0o755, "c.npy")] {
        std::fs::set_permissions(bench.path("c.npy"), std::fs::Permissions::from_mode(mode)).unwrap();
        // Only root may give files away: others keep what is theirs.
        let _ = std::os::unix::fs::chown(bench.path("c.npy"), Some(1000), Some(1000));
        let before = bench.path("c.npy").metadata().unwrap();
        bench.succeed(&["mul", "a.npy", "a.npy", "-o", name]);
        let after = bench.path("c.npy").metadata().unwrap();
        let rights = |facts: &std::fs::Metadata| (facts.mode() & 0o7777, facts.uid(), facts.gid());
        assert_eq!(rights(&after), rights(&before), "{mode:o}");
        assert!(after.ino() != before.ino() && bench.get("c.npy").starts_with(b"\x93NUMPY"));
    }
}

#[test]
fn coefficients_are_read_as_the_element_type() {
    let bench = Bench::new();
    let one = Array { shape: vec![1, 1], data: vec![1.0_f32], fortran: false };
    bench.put("a.npy", one.file(1));
    for alpha in ["-1", "-1e-3", "0.1", "+2", "-inf", "+Infinity", "inf"] {
        bench.succeed(&["mul", "a.npy", "a.npy", "-o", "c.npy", "--alpha", alpha]);
        assert_eq!(Array::<f32>::read(&bench.get("c.npy")).data, [alpha.parse::<f32>().unwrap()]);
    }
    bench.succeed(&["mul", "a.npy", "a.npy", "-o", "c.npy", "--beta=-1", "--c", "a.npy"]);
    assert_eq!(Array::<f32>::read(&bench.get("c.npy")).data, [0.0]);
}
