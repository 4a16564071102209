//! Host in, host out, with or without a GPU.
use lanky::prelude::*;

fn main() -> lanky::Result<()> {
    let a = Matrix::from_fn(3000, 500, |i, l| ((i + 2 * l) % 7) as f64)?;
    let b = Matrix::from_fn(500, 4, |l, j| ((3 * l + j) % 5) as f64)?;

    let device = Device::auto(); // a GPU if there is a usable one, else the CPU
    eprintln!("{device}: {}", device.reason());
    let c = device.matmul(a.view(), b.view())?;

    let by_hand: usize = (0..500).map(|l| (2999 + 2 * l) % 7 * ((3 * l + 3) % 5)).sum();
    assert_eq!(c.get(2999, 3), Some(by_hand as f64));
    println!("C is {} x {}, its last element {by_hand}", c.nrows(), c.ncols());
    Ok(())
}
