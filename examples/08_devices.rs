//! The rows of C by all devices there are: each GPU a part, or the CPU all of it.
use lanky::prelude::*;

fn main() -> lanky::Result<()> {
    let gpus = Device::count().unwrap_or(0);
    let mut devices = (0..gpus).filter_map(|ordinal| Device::cuda(ordinal).ok()).collect::<Vec<_>>();
    if devices.is_empty() {
        devices.push(Device::auto());
    }
    let (m, n, k) = (6000, 4, 1000);
    let a = Matrix::from_fn(m, k, |i, l| ((i + 2 * l) % 7) as f64)?;
    let b = Matrix::from_fn(k, n, |l, j| ((3 * l + j) % 5) as f64)?;

    let rows = m.div_ceil(devices.len());
    for (which, device) in devices.iter().enumerate() {
        let (first, end) = ((which * rows).min(m), ((which + 1) * rows).min(m));
        let part = device.matmul(a.view().rows(first..end)?, b.view())?;
        for (i, j) in [(first, 0), (end - 1, n - 1)] {
            let by_hand: usize = (0..k).map(|l| (i + 2 * l) % 7 * ((3 * l + j) % 5)).sum();
            assert_eq!(part.get(i - first, j), Some(by_hand as f64), "element ({i}, {j})");
        }
        println!("rows {first} to {}: {device}", end - 1);
    }
    if let [one, other, ..] = &devices[..] {
        // What lies on one GPU is no operand of another's: an error, not a crash.
        let there = one.upload(&one.stream()?, b.view())?;
        let error = other.matmul(a.view(), there.view()).err().map(|error| error.to_string());
        println!("{}", error.unwrap_or_else(|| "a matrix of another GPU was taken".to_owned()));
    } else {
        println!("one device only: two were not tried");
    }
    Ok(())
}
