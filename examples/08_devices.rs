//! The rows of C by all devices there are: each GPU a part, or the CPU all of it. A number as argument is
//! that of the GPUs that there must be: `cargo run --release --example 08_devices -- 2`.
use lanky::Operand;
use lanky::prelude::*;

fn main() -> lanky::Result<()> {
    let gpus = Device::count().unwrap_or(0);
    let mut devices = (0..gpus).filter_map(|ordinal| Device::cuda(ordinal).ok()).collect::<Vec<_>>();
    let wanted = std::env::args().nth(1).map_or(0, |text| text.parse::<usize>().expect("a number of GPUs"));
    assert!(devices.len() >= wanted, "{} GPUs of {wanted} are usable", devices.len());
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
        assert_eq!((part.nrows(), part.ncols()), (end - first, n));
        for (i, j) in (first..end).step_by(97).chain([end - 1]).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let by_hand: usize = (0..k).map(|l| (i + 2 * l) % 7 * ((3 * l + j) % 5)).sum();
            assert_eq!(part.get(i - first, j), Some(by_hand as f64), "element ({i}, {j}) by {device}");
        }
        println!("rows {first} to {}: {device}", end - 1);
    }
    if let [one, other, ..] = &devices[..] {
        // What lies on one GPU is no operand of another's: an error, not a crash.
        let there = one.upload(&one.stream()?, b.view())?;
        let refused = other.matmul(a.view(), there.view());
        assert!(matches!(refused, Err(Error::WrongDevice { operand: Operand::B, .. })), "{refused:?}");
        let plan = Plan::gemm(one, a.shape(), b.shape(), one.zeros::<f64>(m, n)?.shape()).build()?;
        assert!(matches!(other.warm_up(&[&plan]), Err(Error::WrongPlan { .. })));
        assert!(matches!(plan.warm_up_on(&other.stream()?), Err(Error::WrongStream { .. })));
        println!("{} GPUs, each its rows; what is of one is refused by another", devices.len());
    } else {
        println!("one device only: two were not tried");
    }
    Ok(())
}
