//! Complex numbers through the program: files, factors, adjoints, and the commands that take an element type.

mod common;

use common::{Bench, alone, npy, text};
use serde_json::Value;

/// A file of c8 or c16, in C order.
fn file(descr: &str, rows: usize, cols: usize, value: impl Fn(usize, usize) -> [f64; 2]) -> Vec<u8> {
    let header = format!("{{'descr': '<{descr}', 'fortran_order': False, 'shape': ({rows}, {cols}), }}");
    let elements = (0..rows).flat_map(|i| (0..cols).map(move |j| (i, j)));
    let parts = elements.flat_map(|(i, j)| value(i, j));
    let bytes: Vec<u8> = match descr {
        "c8" => parts.flat_map(|part| (part as f32).to_le_bytes()).collect(),
        _ => parts.flat_map(f64::to_le_bytes).collect(),
    };
    npy(1, &header, &bytes)
}

/// The header's text, and the parts of the elements in the file's order.
fn read(bytes: &[u8]) -> (String, Vec<f64>) {
    let length = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = text(&bytes[10..length]);
    let body = &bytes[length..];
    let parts = if header.contains("c8") {
        body.chunks_exact(4).map(|b| f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]]))).collect()
    } else {
        body.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().expect("8 bytes"))).collect()
    };
    (header, parts)
}

fn a(i: usize, l: usize) -> [f64; 2] {
    [(i % 5) as f64 - 2.0, (l % 3) as f64 - 1.0]
}

fn b(l: usize, j: usize) -> [f64; 2] {
    [(l % 4) as f64 - 1.0, (j % 3) as f64 + 1.0]
}

fn times(x: [f64; 2], y: [f64; 2]) -> [f64; 2] {
    [x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]]
}

fn conj([re, im]: [f64; 2]) -> [f64; 2] {
    [re, -im]
}

/// C = (1 - 2i) op(A) op(B) + (i) C0 by the program, for every way to use A and B.
#[test]
fn products_of_files_are_exact() {
    const M: usize = 7;
    const N: usize = 3;
    const K: usize = 11;
    let c0 = |i: usize, j: usize| [i as f64, j as f64 - 1.0];
    for (run, descr) in ["c8", "c16"].into_iter().flat_map(|descr| (0..9_usize).map(move |run| (run, descr))) {
        let (of_a, of_b) = (run % 3, run / 3);
        let bench = Bench::new();
        // As stored: what is used transposed or adjoint lies the other way round.
        bench.put("a.npy", if of_a == 0 { file(descr, M, K, a) } else { file(descr, K, M, |l, i| a(i, l)) });
        bench.put("b.npy", if of_b == 0 { file(descr, K, N, b) } else { file(descr, N, K, |j, l| b(l, j)) });
        bench.put("c0.npy", file(descr, M, N, c0));
        let mut args =
            vec!["mul", "a.npy", "b.npy", "-o", "c.npy", "--alpha", "1,-2", "--beta", "0,1", "--c", "c0.npy"];
        args.extend([None, Some("--transpose-a"), Some("--adjoint-a")][of_a]);
        args.extend([None, Some("--transpose-b"), Some("--adjoint-b")][of_b]);
        bench.succeed(&args);
        let (header, found) = read(&bench.get("c.npy"));
        assert!(header.contains(&format!("'descr': '<{descr}'")) && header.contains("(7, 3)"), "{header}");
        let mut expected = Vec::new();
        for (i, j) in (0..M).flat_map(|i| (0..N).map(move |j| (i, j))) {
            let mut sum = [0.0; 2];
            for l in 0..K {
                let x = if of_a == 2 { conj(a(i, l)) } else { a(i, l) };
                let y = if of_b == 2 { conj(b(l, j)) } else { b(l, j) };
                let product = times(x, y);
                sum = [sum[0] + product[0], sum[1] + product[1]];
            }
            let (scaled, old) = (times([1.0, -2.0], sum), times([0.0, 1.0], c0(i, j)));
            expected.extend([scaled[0] + old[0], scaled[1] + old[1]]);
        }
        assert_eq!(found, expected, "{args:?}");
    }
}

/// G = (1 - 2i) Aᴴ A + (i) G0, or Aᵀ A, of A or of its rows, by rows and by columns.
#[test]
fn gram_matrices_of_files_are_exact() {
    const K: usize = 11;
    const N: usize = 4;
    let g0 = |i: usize, j: usize| [i as f64, j as f64 - 1.0];
    for (run, descr) in ["c8", "c16"].into_iter().flat_map(|descr| (0..8_usize).map(move |run| (run, descr))) {
        let (of_rows, no_conj, with_g0) = (run & 1 == 1, run & 2 == 2, run & 4 == 4);
        let bench = Bench::new();
        bench.put("a.npy", if of_rows { file(descr, N, K, |j, l| a(l, j)) } else { file(descr, K, N, a) });
        bench.put("g0.npy", file(descr, N, N, g0));
        let mut args = vec!["gram", "a.npy", "-o", "g.npy", "--alpha", "1,-2"];
        args.extend(of_rows.then_some("--transpose-a"));
        args.extend(no_conj.then_some("--no-conj"));
        if with_g0 {
            args.extend(["--beta", "0,1", "--c", "g0.npy"]);
        }
        bench.succeed(&args);
        let (_, found) = read(&bench.get("g.npy"));
        let mut expected = Vec::new();
        for (i, j) in (0..N).flat_map(|i| (0..N).map(move |j| (i, j))) {
            let mut sum = [0.0; 2];
            for l in 0..K {
                // Of a matrix's rows it is A Aᴴ.
                let (x, y) = if of_rows { (a(l, j), a(l, i)) } else { (a(l, i), a(l, j)) };
                let product = times(if no_conj { x } else { conj(x) }, y);
                sum = [sum[0] + product[0], sum[1] + product[1]];
            }
            let (scaled, old) = (times([1.0, -2.0], sum), times([0.0, 1.0], if with_g0 { g0(i, j) } else { [0.0; 2] }));
            expected.extend([scaled[0] + old[0], scaled[1] + old[1]]);
        }
        assert_eq!(found, expected, "{args:?}");
    }
}

#[test]
fn what_does_not_fit_is_named() {
    let bench = Bench::new();
    bench.put("c.npy", file("c8", 2, 2, a));
    bench.put("z.npy", file("c16", 2, 2, a));
    let real = npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }", &[0; 32]);
    bench.put("d.npy", real);
    let fail = |args: &[&str]| bench.fail(2, &[&["mul"], args, &["-o", "o.npy", "--device", "cpu"]].concat());
    let error = fail(&["c.npy", "z.npy"]);
    assert!(error.contains("z.npy") && error.contains("B is c128, but A is c64"), "{error}");
    let error = fail(&["d.npy", "c.npy"]);
    assert!(error.contains("B is c64, but A is f64"), "{error}");
    let error = fail(&["d.npy", "d.npy", "--alpha", "1,2"]);
    assert!(error.contains("--alpha 1,2 is complex, but the elements are f64"), "{error}");
    let error = fail(&["c.npy", "c.npy", "--alpha", "1,1e300"]);
    assert!(error.contains("--alpha 1,1e300 does not fit into c64"), "{error}");
    let error = fail(&["c.npy", "c.npy", "--alpha", "1,2,3"]);
    assert!(error.contains("more parts than a real and an imaginary one"), "{error}");
    let error = fail(&["c.npy", "c.npy", "--adjoint-a", "--transpose-a"]);
    assert!(error.contains("--adjoint-a"), "{error}");
    bench.put("t.npy", file("c8", 3, 2, a));
    let error = fail(&["c.npy", "t.npy", "--adjoint-b", "--adjoint-a", "--c", "z.npy"]);
    assert!(error.contains("C0 is c128, but A is c64"), "{error}");
    let error = fail(&["t.npy", "t.npy", "--adjoint-a", "--adjoint-b"]);
    assert!(error.contains("the adjoint of B is 2 x 3") && error.contains("--adjoint-b"), "{error}");
    assert_eq!(bench.names(), ["c.npy", "d.npy", "t.npy", "z.npy"]);
}

/// An adjoint of real numbers is a transpose.
#[test]
fn an_adjoint_of_real_numbers_is_the_transpose() {
    let bench = Bench::new();
    let body: Vec<u8> = (0..6).flat_map(|x| f64::from(x).to_le_bytes()).collect();
    bench.put("a.npy", npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }", &body));
    bench.succeed(&["mul", "a.npy", "a.npy", "--transpose-a", "-o", "t.npy"]);
    bench.succeed(&["mul", "a.npy", "a.npy", "--adjoint-a", "-o", "h.npy"]);
    assert_eq!(bench.get("t.npy"), bench.get("h.npy"));
}

#[test]
fn commands_take_complex_element_types() {
    let bench = Bench::new();
    for (dtype, letter) in [("c64", "c"), ("c128", "z")] {
        let json = |args: &[&str]| -> Value {
            let output = bench.run(&[args, &["--dtype", dtype, "--json"]].concat());
            assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
            serde_json::from_slice(&output.stdout).expect("one JSON value")
        };
        let demo = json(&["demo", "--m", "300", "--n", "3", "--k", "200", "--device", "cpu"]);
        assert!(demo["dtype"] == dtype && demo["passed"] == true && demo["error_of_bound"].is_number(), "{demo}");
        let plan = json(&["plan", "20480", "8", "20480", "--gpu", "h200"]);
        assert_eq!(plan["dtype"], dtype, "{plan}");
        assert!(text(plan["entry"].as_str().unwrap_or_default().as_bytes()).starts_with(letter), "{plan}");
        json(&["plan", "20480", "8", "20480", "--gpu", "v100", "--paper"]);
        let args = ["trace", "tsm2r", "--variant", "tsm2r_shared", "--m", "256", "--n", "4", "--k", "256"];
        let trace = json(&[&args[..], &["--alpha", "1,2", "--splits", "2"]].concat());
        // Four fused multiply-adds a product, and a few for the factors.
        assert_eq!(trace["fma"].as_u64().unwrap_or_default() / (256 * 4 * 256), 4, "{trace}");
    }
    let args =
        ["bench", "--m", "90", "--k", "70", "--n", "3", "--samples", "3", "--device", "cpu", "--dtype", "c64,c128"];
    let output = alone(&bench, &[&args[..], &["--beta", "0,1", "--json"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let object: Value = serde_json::from_slice(&output.stdout).expect("one JSON value");
    let rows = object["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 4, "{object}");
    for row in rows {
        assert!(row["variant"] == "cpu" && row["ns_median"].is_number() && row["flops"] == 8 * 90 * 3 * 70, "{row}");
    }
    let info = text(&bench.run(&["info"]).stdout);
    assert!(info.contains("ztsm2r_staged") && info.contains("cgemm_tiled"), "{info}");
}
