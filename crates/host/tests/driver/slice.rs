//! A slice of a GPU: a device of few multiprocessors and little memory, for which the model plans as for any other.

use super::elsewhere::borrowed;
use super::*;
use lanky_host::{Complex, Determinism, Dtype, Layout, Plan, Scalar, Shape, Stream, Strides, gemm, model};

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

/// GPUs and slices of them.
const MACHINES: [&str; 6] = [
    "sms=108 capability=80",
    "sms=16",
    "sms=1 memory=400000000",
    "",
    "sms=128 capability=89",
    "sms=300 capability=120",
];

/// Operations and m, n, k.
const ACROSS: [(&str, usize, usize, usize); 14] = [
    ("gemm", 2_000, 4, 2_000),
    ("gemm", 300, 4, 20_000),
    ("gemm", 20_000, 8, 8),
    ("gemm", 8, 6, 30_000),
    ("gemm", 500, 500, 500),
    ("gemm", 300, 1, 20_000),
    ("gemm", tuned::LENGTHS.0, tuned::LENGTHS.1, tuned::LENGTHS.2),
    ("gram", 8, 8, 30_000),
    ("gram", 16, 16, 300_000),
    ("gram", 300, 300, 300),
    ("gemv", 300, 1, 20_000),
    ("gemv", 20_000, 1, 300),
    ("gemv", 7, 1, 300_000),
    ("gemv", 2_000, 1, 2_000),
];

/// Whatever the GPU, and whatever it is told to follow, the same entries and parts of k are launched, of each operation and type.
#[test]
fn plans_across_gpus_are_the_same_on_each() {
    const NAME: &str = "slice::plans_across_gpus_are_the_same_on_each";
    with_driver(NAME, "", || {
        unpacked();
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let [launched, otherwise] =
            ["launched", "otherwise"].map(|what| folder.join(format!("driver-{what}-{}", std::process::id())));
        let mut differ = String::new();
        let on_each = MACHINES.map(|words| {
            let found = in_a_fork(60, || {
                tell(words);
                let [all, own] = across().unwrap_or_else(|error| panic!("{words}: {error}"));
                std::fs::write(&launched, all.join("\n")).expect("the target folder can be written");
                std::fs::write(&otherwise, own.join("\n")).expect("the target folder can be written");
            });
            found.unwrap_or_else(|error| panic!("{words}: {error}"));
            differ += &std::fs::read_to_string(&otherwise).expect("the fork wrote it");
            std::fs::read_to_string(&launched).expect("the fork wrote it")
        });
        for (words, found) in MACHINES.iter().zip(&on_each).skip(1) {
            let mut pairs = found.lines().zip(on_each[0].lines());
            assert!(found == &on_each[0], "{words}: {:?}", pairs.find(|(found, first)| found != first));
        }
        // Without it they would be others, of each operation and type: or this test saw nothing.
        for operation in ["gemm", "gram", "gemv"] {
            for dtype in [Dtype::F32, Dtype::F64, Dtype::C64, Dtype::C128] {
                assert!(differ.contains(&format!("{operation} {dtype} ")), "{operation} {dtype}");
            }
        }
        std::fs::remove_file(launched).and_then(|()| std::fs::remove_file(otherwise)).expect("they are there");
        Ok(())
    });
}

/// All that is launched on this machine, and the plans that would be others if they were for it alone.
fn across() -> Result<[Vec<String>; 2]> {
    let device = Device::cuda(0)?;
    let (stream, machine) = (device.stream()?, *device.machine().expect("a GPU"));
    device.set_tuned(Some(tuned::database(&machine, machine.sms)))?;
    let mut found = [const { Vec::new() }; 2];
    for case in ACROSS {
        plan_across::<f32>(&stream, case, &mut found)?;
        plan_across::<f64>(&stream, case, &mut found)?;
        plan_across::<Complex<f32>>(&stream, case, &mut found)?;
        plan_across::<Complex<f64>>(&stream, case, &mut found)?;
    }
    // What not all of them have is refused by name.
    let shape = |rows, cols| Shape::packed(rows, cols, Layout::ColumnMajor, Dtype::F64);
    let builder = Plan::gemm(&device, shape(500, 400), shape(400, 4), shape(500, 4));
    let refused = builder.variant("tsm2r_mma").determinism(Determinism::AcrossGpus).build().expect_err("refused");
    let text = "unsupported: variant tsm2r_mma: it needs compute capability 9.0";
    assert!(refused.to_string().starts_with(text), "{refused}");
    assert_eq!(misused(), [""; 0]);
    Ok(found)
}

/// Runs the plan of a case, which must be what the model chooses for the machine that all have in common.
fn plan_across<T: Scalar>(
    stream: &Stream,
    (operation, m, n, k): (&str, usize, usize, usize),
    [all, otherwise]: &mut [Vec<String>; 2],
) -> Result<()> {
    let device = stream.device();
    let (a, b, c) = borrowed::<T>(device, (m, n, k))?;
    let builder = match operation {
        "gemm" => Plan::gemm(device, a.shape(), b.shape(), c.shape()),
        "gram" => Plan::gram(device, b.shape(), c.shape()),
        _ => Plan::gemv(device, a.shape(), b.shape(), c.shape()),
    };
    let plan = builder.determinism(Determinism::AcrossGpus).build()?;
    let wide = |value: usize| value as u64;
    let problem = match operation {
        "gram" => model::Problem::gram(T::DTYPE, wide(n), wide(k), Strides::row_major(wide(k))),
        _ => model::Problem { dtype: T::DTYPE, ..choice_problem(m, n, k) },
    };
    let what = |choice: &model::Choice| (choice.variant.entry, choice.splits, choice.swapped, choice.finish);
    let common = model::choose(&problem, &model::Machine::COMMON, None).expect("a kernel");
    let (case, choice) = (format!("{operation} {} {m} x {n} x {k}", T::DTYPE), plan.choice().expect("a kernel"));
    assert_eq!((what(choice), choice.chooser), (what(&common), model::Chooser::Common), "{case}: {plan}");
    assert!(plan.to_string().ends_with("the same bits on each"), "{case}: {plan}");
    let own = model::choose(&problem, device.machine().expect("a GPU"), None).expect("a kernel");
    if what(&own) != what(&common) {
        otherwise.push(format!("{case}\n"));
    }
    launches();
    match operation {
        "gemm" => plan.run(stream, T::one(), a, b, T::zero(), c),
        "gram" => plan.run_gram(stream, T::one(), b, T::zero(), c),
        _ => plan.run_gemv(stream, T::one(), a, b, T::zero(), c),
    }?;
    stream.synchronize()?;
    let mut launched = launches();
    // Of blocks that take rows in turn there are as many as the machine holds.
    if matches!(choice.variant.kernel, model::Kernel::Tsmm | model::Kernel::Tall) {
        let mut words: Vec<&str> = launched[0].split(' ').collect();
        assert_eq!((words[0], words[1]), (choice.variant.entry, choice.grid[0].to_string().as_str()), "{case}");
        words[1] = "as many as it holds";
        launched[0] = words.join(" ");
    }
    all.extend(launched.iter().map(|launch| format!("{case}: {launch}")));
    Ok(())
}

fn choice_problem(m: usize, n: usize, k: usize) -> model::Problem {
    let wide = |value: usize| value as u64;
    model::Problem {
        a: Strides::column_major(wide(m)),
        ..model::Problem::column_major(Dtype::F64, wide(m), wide(n), wide(k))
    }
}
