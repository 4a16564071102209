//! A program of somebody who has lanky from its packages alone: a product on the CPU, why there is no GPU, and the PTX of
//! every variant.
use lanky::prelude::*;

fn main() -> lanky::Result<()> {
    let device = Device::auto();
    println!("{device}: {}", device.reason());

    let a = Matrix::from_fn(1000, 200, |i, l| ((i + 2 * l) % 7) as f64)?;
    let b = Matrix::from_fn(200, 4, |l, j| ((3 * l + j) % 5) as f64)?;
    let c = Device::cpu().matmul(a.view(), b.view())?;
    for (i, j) in [(0, 0), (10, 2), (999, 3)] {
        let by_hand: usize = (0..200).map(|l| (i + 2 * l) % 7 * ((3 * l + j) % 5)).sum();
        assert_eq!(c.get(i, j), Some(by_hand as f64), "element ({i}, {j})");
    }

    let variants = lanky::model::VARIANTS;
    for variant in variants {
        for capability in [(8, 0), (9, 0), (12, 0)] {
            let text = lanky::ptx::module(variant.entry, capability);
            // What needs the instructions of a later GPU is for that one alone.
            assert!(text.is_some() || capability < (9, 0), "no PTX of {} for {capability:?}", variant.entry);
            assert!(text.is_none_or(|text| text.contains(&format!(".visible .entry {}(", variant.entry))));
        }
    }
    assert_eq!(lanky::ptx::ORIGIN, "committed");
    println!("{} variants have PTX", variants.len());
    match Device::cuda(0) {
        Ok(gpu) => println!("a GPU: {gpu}"),
        Err(error) => println!("no GPU: {error}"),
    }
    Ok(())
}
