//! `lanky plan`: what the model would choose for a product, on the GPU here or on one that it knows.

use model::{Machine, Problem, Refusal};

use crate::args::{Gpu, PlanArgs, check_variant};
use crate::error::Fault;
use crate::report;

/// Runs the command.
pub fn run(args: &PlanArgs) -> Result<(), Fault> {
    check_variant(args.variant.as_deref())?;
    let (m, n, k) = (args.m, args.n, args.k);
    let dtype = args.dtype.into();
    if m == 0 || n == 0 || k == 0 {
        let what = if k == 0 && m != 0 && n != 0 { "C <- beta C is all there is to do" } else { "C has no element" };
        return report::print(&format!("m = {m}, n = {n}, k = {k}, {dtype}: nothing is multiplied, {what}"));
    }
    let machine = machine(args.gpu);
    let problem = Problem::column_major(dtype, m, n, k);
    let choice = model::choose(&problem, &machine, args.variant.as_deref()).map_err(refused)?;
    report::print(&format!("{choice}\n  on        {}", words(&machine)))
}

/// The GPU that was named, the one that is here, or the H200.
fn machine(gpu: Option<Gpu>) -> Machine {
    match gpu {
        Some(Gpu::H200) => Machine::H200,
        Some(Gpu::V100) => Machine::V100,
        None => match lanky::Device::cuda(0) {
            Ok(device) => device.machine().copied().unwrap_or(Machine::H200),
            Err(reason) => {
                report::note(&format!("planned for an H200 ({reason})"));
                Machine::H200
            }
        },
    }
}

fn refused(refusal: Refusal) -> Fault {
    Fault::Input(refusal.to_string())
}

fn words(machine: &Machine) -> String {
    format!(
        "{}: {} SMs, {} read, {} written, {:.1} TFLOP/s in f64",
        machine.name,
        machine.sms,
        report::rate(machine.read_bytes_per_s / 1e9),
        report::rate(machine.write_bytes_per_s / 1e9),
        2.0 * machine.fma_f64_per_s / 1e12
    )
}
