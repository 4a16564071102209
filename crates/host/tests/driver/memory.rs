//! What memory holds that the library says is zero: the fake's own has every bit set.

use super::elsewhere::borrowed;
use super::*;
use lanky_host::model::launch::reduced::WORK_HEAD_BYTES;
use lanky_host::{Complex, Plan, Scalar, gemm, gram};

/// Rows and columns: one element, less and more than a chunk of pinned memory, and none.
const SIZES: [(usize, usize); 7] = [(1, 1), (1, 2), (3, 5), (300, 7), (1, 4_097), (1_100_000, 2), (0, 4)];

/// Also where nothing is done before somebody waits.
#[test]
fn zeros_are_zeros() {
    const NAME: &str = "memory::zeros_are_zeros";
    for words in ["", "late=1"] {
        with_driver(NAME, words, || {
            let device = Device::cuda(0)?;
            each_is_zero::<f32>(&device)?;
            each_is_zero::<f64>(&device)?;
            each_is_zero::<Complex<f32>>(&device)?;
            each_is_zero::<Complex<f64>>(&device)
        });
    }
}

fn each_is_zero<T: Scalar>(device: &Device) -> Result<()> {
    let stream = device.stream()?;
    for (rows, cols) in SIZES {
        let zeros = device.zeros::<T>(rows, cols)?;
        let all = zeros.download(&stream)?;
        let other = all.as_slice().expect("the host's").iter().position(|value| *value != T::zero());
        assert_eq!((all.nrows(), all.ncols(), other), (rows, cols, None), "{} {rows} x {cols}", T::DTYPE);
    }
    Ok(())
}

/// Addresses and bytes of the device's memory.
fn allocations() -> Vec<(u64, u64)> {
    let number = |text: &str| text.parse().expect("a number");
    let pair = |text: &String| text.split_once(' ').map(|(address, bytes)| (number(address), number(bytes)));
    asked(9).iter().map(|text| pair(text).expect("two numbers")).collect()
}

/// The words of the head, by which blocks draw tickets, of the memory that was not there before; where there is no such memory, none.
fn heads(before: &[(u64, u64)]) -> Vec<Vec<u32>> {
    let words = |(address, bytes): (u64, u64)| {
        assert!(bytes >= u64::from(WORK_HEAD_BYTES), "a workspace without a head");
        let first = std::ptr::with_exposed_provenance::<u32>(address as usize);
        // SAFETY: the fake's memory is this process's, and has so many bytes.
        (0..WORK_HEAD_BYTES as usize / 4).map(|at| unsafe { first.add(at).read() }).collect()
    };
    allocations().into_iter().filter(|found| !before.contains(found)).map(words).collect()
}

/// Of a plan's workspace for each stream, of a stream's own, and of a larger one that takes its place. The fake's kernels draw no ticket.
#[test]
fn the_head_of_a_workspace_is_zero_when_it_is_first_used() {
    const NAME: &str = "memory::the_head_of_a_workspace_is_zero_when_it_is_first_used";
    with_driver(NAME, "", || {
        let device = Device::cuda(0)?;
        let zero = vec![0_u32; WORK_HEAD_BYTES as usize / 4];
        // Two tall matrices, whose last block adds the slots; a product by slots; a Gram matrix; and a larger one.
        for (operation, lengths) in [
            ("gemm", (16, 12, 300_000)),
            ("gemm", (300, 4, 20_000)),
            ("gram", (16, 16, 300_000)),
            ("gram", (40, 40, 300_000)),
        ] {
            let (a, b, c) = borrowed::<f64>(&device, lengths)?;
            let plan = match operation {
                "gemm" => Plan::gemm(&device, a.shape(), b.shape(), c.shape()),
                _ => Plan::gram(&device, b.shape(), c.shape()),
            };
            let plan = plan.build()?;
            assert!(plan.choice().is_some_and(|choice| choice.slots_len > 0), "it needs a workspace: {plan}");
            let (one, other) = (device.stream()?, device.stream()?);
            let before = allocations();
            plan.warm_up_on(&one)?;
            assert_eq!(heads(&before), [zero.as_slice()], "{plan}");
            let run = |stream: &lanky_host::Stream| -> Result<()> {
                let (a, b, c) = borrowed::<f64>(&device, lengths)?;
                match operation {
                    "gemm" => plan.run(stream, 1.0, a, b, 0.0, c),
                    _ => plan.run_gram(stream, 1.0, b, 0.0, c),
                }
            };
            run(&one)?;
            run(&other)?;
            assert_eq!(heads(&before), [zero.as_slice(), &zero], "{plan}");
            drop(plan);
            without_a_plan(&other, operation, &zero)?;
        }
        assert_eq!((misused(), freed_in_use()), (vec![], vec![]));
        Ok(())
    });
}

/// A stream's own workspace, and a larger one.
fn without_a_plan(stream: &lanky_host::Stream, operation: &str, zero: &[u32]) -> Result<()> {
    let before = allocations();
    for n in [8, 24] {
        let (a, b, c) = borrowed::<f64>(stream.device(), (n, n, 300_000))?;
        match operation {
            "gemm" => gemm(stream, 1.0, a, b, 0.0, c)?,
            _ => gram(stream, 1.0, b, 0.0, c)?,
        }
        assert_eq!(heads(&before), [zero], "{operation}, n = {n}");
    }
    Ok(())
}
