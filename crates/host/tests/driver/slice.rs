//! A slice of a GPU: a device of few multiprocessors and little memory, for which the model plans as for any other.

use super::*;
use lanky_host::{Determinism, Dtype, Layout, Plan, Shape, Strides, gemm, model};

/// Shapes of each operation, m, n, k.
const SHAPES: [(usize, usize, usize); 6] =
    [(2_000, 4, 2_000), (300, 4, 20_000), (20_000, 8, 8), (8, 6, 30_000), (500, 500, 500), (300, 1, 20_000)];

#[test]
fn a_slice_is_planned_for_as_what_it_is() {
    const NAME: &str = "slice::a_slice_is_planned_for_as_what_it_is";
    for sms in [16, 132] {
        with_driver(NAME, &format!("sms={sms} memory=1000000000"), || {
            let device = Device::cuda(0)?;
            let machine = *device.machine().expect("a GPU");
            assert_eq!((machine.sms, device.memory()?.1), (sms, 1_000_000_000));
            assert!(device.to_string().contains(&format!("{sms} SMs")), "{device}");
            let stream = device.stream()?;
            for (m, n, k) in SHAPES {
                let shape = |rows, cols| Shape::packed(rows, cols, Layout::ColumnMajor, Dtype::F64);
                let plan = Plan::gemm(&device, shape(m, k), shape(k, n), shape(m, n)).build()?;
                let choice = *plan.choice().expect("a kernel");
                let alone = model::choose(&choice_problem(m, n, k), &machine, None).expect("a kernel");
                assert_eq!(choice, alone, "m = {m}, n = {n}, k = {k}: not what the model chooses for this machine");
                let (a, b) = (device.zeros::<f64>(m, k)?, device.zeros::<f64>(k, n)?);
                let mut c = device.zeros::<f64>(m, n)?;
                launches();
                gemm(&stream, 1.0, a.view(), b.view(), 0.0, c.view_mut())?;
                stream.synchronize()?;
                let [x, y, z] = choice.grid;
                let expected =
                    format!("{} {x} {y} {z} {} {}", choice.variant.entry, choice.threads, choice.shared_bytes);
                assert_eq!(launches().first(), Some(&expected), "what is launched is what was planned");
            }
            assert_eq!(misused(), [""; 0]);
            Ok(())
        });
    }
}

/// Each thing that a GPU has is what its driver says, though none has these.
#[test]
fn what_a_gpu_has_is_read() {
    const NAME: &str = "slice::what_a_gpu_has_is_read";
    const SAID: &str = "sms=7 memory=1000000000 l2=3000000 registers=40000 shared=90000 block=80000 threads=1120 bus=777 \
                        clock=1234000 memory_clock=2000000";
    with_driver(NAME, SAID, || {
        let machine = *Device::cuda(0)?.machine().expect("a GPU");
        assert_eq!((machine.sms, machine.l2_bytes, machine.registers_per_sm), (7, 3_000_000, 40_000));
        assert_eq!((machine.shared_per_sm, machine.shared_per_block, machine.threads_per_sm), (90_000, 80_000, 1120));
        // Two transfers a clock of 777 bits.
        assert_eq!((machine.clock_hz, machine.bus_bytes_per_s), (1.234e9, 2.0 * 2e9 * 777.0 / 8.0));
        Ok(())
    });
}

/// Where k is cut to fill the GPU, a smaller one is filled by fewer parts.
#[test]
fn a_slice_is_filled_by_fewer_blocks() {
    const NAME: &str = "slice::a_slice_is_filled_by_fewer_blocks";
    with_driver(NAME, "sms=16", || {
        let small = *Device::cuda(0)?.machine().expect("a GPU");
        let whole = model::Machine { sms: 132, ..small };
        for (m, n, k) in [(300, 4, 20_000), (8, 6, 3_000_000)] {
            let blocks = |machine| {
                let choice = model::choose(&choice_problem(m, n, k), machine, None).expect("a kernel");
                choice.grid.iter().map(|&along| u64::from(along)).product::<u64>()
            };
            assert!(blocks(&small) < blocks(&whole), "{m} x {n} x {k}: {} and {}", blocks(&small), blocks(&whole));
        }
        Ok(())
    });
}

/// Whatever the GPU, and whatever it is told to follow, the same entries and parts of k are launched.
#[test]
fn plans_across_gpus_are_the_same_on_each() {
    const NAME: &str = "slice::plans_across_gpus_are_the_same_on_each";
    for words in [
        "",
        "sms=16",
        "sms=1 memory=400000000",
        "sms=108 capability=80",
        "sms=128 capability=89",
        "sms=300 capability=120",
    ] {
        with_driver(NAME, words, || {
            let device = Device::cuda(0)?;
            let (stream, machine) = (device.stream()?, *device.machine().expect("a GPU"));
            device.set_tuned(Some(tuned::database(&machine, machine.sms)))?;
            for (m, n, k) in SHAPES.into_iter().chain([tuned::LENGTHS]) {
                let shape = |rows, cols| Shape::packed(rows, cols, Layout::ColumnMajor, Dtype::F64);
                let builder = || Plan::gemm(&device, shape(m, k), shape(k, n), shape(m, n));
                let plan = builder().determinism(Determinism::AcrossGpus).build()?;
                let common = model::choose(&choice_problem(m, n, k), &model::Machine::COMMON, None).expect("a kernel");
                let (a, b) = (device.zeros::<f64>(m, k)?, device.zeros::<f64>(k, n)?);
                let mut c = device.zeros::<f64>(m, n)?;
                launches();
                plan.run(&stream, 1.0, a.view(), b.view(), 0.0, c.view_mut())?;
                stream.synchronize()?;
                let launched = launches();
                let words: Vec<&str> = launched[0].split(' ').collect();
                let expected = (common.variant.entry, common.splits.to_string());
                assert_eq!((words[0], words[2].to_owned()), expected, "m = {m}, n = {n}, k = {k}: {plan}");
                assert!(plan.to_string().ends_with("the same bits on each"), "{plan}");
            }
            // What not all of them have is refused by name.
            let shape = |rows, cols| Shape::packed(rows, cols, Layout::ColumnMajor, Dtype::F64);
            let builder = Plan::gemm(&device, shape(500, 400), shape(400, 4), shape(500, 4));
            let refused =
                builder.variant("tsm2r_mma").determinism(Determinism::AcrossGpus).build().expect_err("refused");
            assert!(
                refused.to_string().starts_with("unsupported: variant tsm2r_mma: it needs compute capability 9.0"),
                "{refused}"
            );
            assert_eq!(misused(), [""; 0]);
            Ok(())
        });
    }
}

fn choice_problem(m: usize, n: usize, k: usize) -> model::Problem {
    let wide = |value: usize| value as u64;
    model::Problem {
        a: Strides::column_major(wide(m)),
        ..model::Problem::column_major(Dtype::F64, wide(m), wide(n), wide(k))
    }
}
