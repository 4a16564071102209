//! On the device, in order on a stream: C ← 2 AᵀB + C, of which only some rows are then fetched.
use lanky::prelude::*;

fn main() -> lanky::Result<()> {
    let (m, n, k) = (4, 3, 1000);
    let a: Vec<f32> = (0..k * m).map(|at| (at % 3) as f32).collect();
    let b: Vec<f32> = (0..k * n).map(|at| (at % 2) as f32).collect();

    let device = Device::auto();
    let stream = device.stream()?;
    // A is stored k x m by columns, B k x n by rows; the slices are free again when the calls return.
    let a = device.upload(&stream, MatRef::column_major(&a, k, m)?)?;
    let b = device.upload(&stream, MatRef::row_major(&b, k, n)?)?;
    let mut c = device.zeros::<f32>(m, n)?;

    let seconds = stream.timed(|| gemm(&stream, 2.0, a.t(), b.view(), 1.0, c.view_mut()))?;

    let some = device.download(&stream, c.view().rows(1..3)?)?;
    for i in 0..some.nrows() {
        let row: Vec<f32> = (0..n).filter_map(|j| some.get(i, j)).collect();
        println!("row {}: {row:?}", i + 1);
        for (j, &element) in row.iter().enumerate() {
            let by_hand: usize = (0..k).map(|l| 2 * ((l + (i + 1) * k) % 3) * ((l * n + j) % 2)).sum();
            assert_eq!(element, by_hand as f32, "element ({}, {j})", i + 1);
        }
    }
    eprintln!("{device}: {:.1} us", seconds * 1e6);
    Ok(())
}
