//! A slice of a GPU: a device of few multiprocessors and little memory, for which the model plans as for any other.

use super::*;
use lanky_host::{Dtype, Layout, Plan, Shape, Strides, gemm, model};

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

fn choice_problem(m: usize, n: usize, k: usize) -> model::Problem {
    let wide = |value: usize| value as u64;
    model::Problem {
        a: Strides::column_major(wide(m)),
        ..model::Problem::column_major(Dtype::F64, wide(m), wide(n), wide(k))
    }
}
