//! Reading .npy files: the header, and the body into a buffer that is there.
//!
//! The code is the program's own, which is no library: its files are compiled in here once more.

#[allow(dead_code, unused_imports, reason = "the program uses all of it")]
#[path = "../../../crates/cli/src/error.rs"]
mod error;
#[allow(dead_code, unused_imports, reason = "the program uses all of it")]
#[path = "../../../crates/cli/src/npy/mod.rs"]
mod npy;

mod end;

use std::io::Write;
use std::path::Path;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use end::or_end;
use model::Dtype;
use npy::{Header, Input, Order, as_bytes, header_bytes};

const ROWS: usize = 1 << 20;
const COLS: usize = 8;

fn write(path: &Path) -> std::io::Result<()> {
    let shape = vec![ROWS as u64, COLS as u64];
    let mut file = std::fs::File::create(path)?;
    file.write_all(&header_bytes(&Header { dtype: Dtype::F64, order: Order::C, shape }))?;
    file.write_all(&as_bytes(&vec![1.0_f64; ROWS * COLS]))
}

fn reading(c: &mut Criterion) {
    let folder = or_end("a folder", tempfile::tempdir());
    let path = folder.path().join("a.npy");
    or_end("writing", write(&path));
    let open = || or_end("the header", Input::open(&path));
    c.bench_function("npy header", |b| b.iter(|| open().header().clone()));
    let mut group = c.benchmark_group("npy body");
    let mut elements = vec![0.0_f64; ROWS * COLS];
    group.throughput(Throughput::Bytes(u64::try_from(size_of_val(elements.as_slice())).unwrap_or(u64::MAX)));
    group.sample_size(20);
    group.bench_function("from the file cache", |b| {
        b.iter(|| or_end("the body", open().fill(&mut elements)));
    });
    group.finish();
}

criterion_group!(benches, reading);
criterion_main!(benches);
