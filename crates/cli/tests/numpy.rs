//! Files that NumPy 2.4 wrote (data/make.py): of both orders and all versions of the format they are read as what they are, and the
//! product is written as NumPy writes it, byte by byte.

mod common;

use common::Bench;

fn data(name: &str) -> String {
    format!("{}/tests/data/{name}.npy", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn files_are_read_and_written_as_numpys() {
    let bench = Bench::new();
    for dtype in ["f4", "f8", "c8", "c16"] {
        let [a, b, c] = ["a", "b", "c"].map(|name| data(&format!("{name}-{dtype}")));
        bench.succeed(&["mul", &a, &b, "-o", "c.npy"]);
        assert!(bench.get("c.npy") == std::fs::read(c).expect("a file of the tests"), "{dtype}");
    }
}

#[test]
fn the_other_order_of_bytes_is_refused() {
    let bench = Bench::new();
    let (big, b) = (data("a-big"), data("b-f8"));
    let error = bench.fail(2, &["mul", &big, &b, "-o", "c.npy", "--device", "cpu"]);
    assert!(error.starts_with(&format!("lanky: {big}: ")) && error.contains(">f8"), "{error}");
    assert_eq!(bench.names(), [""; 0]);
}
