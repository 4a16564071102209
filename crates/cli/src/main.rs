//! The program `lanky`: multiplies .npy matrices on an NVIDIA GPU or the CPU, and shows how.

mod args;
mod batch;
mod bench;
mod csv;
mod demo;
mod device;
mod error;
mod examples;
mod gemv;
mod gram;
mod info;
mod interrupt;
mod made_up;
mod memory;
mod mul;
mod npy;
mod operand;
mod output;
mod plan;
mod product;
mod progress;
mod real;
mod report;
mod say;
mod shell;
mod trace;
mod tune;
mod tuned;

use std::process::ExitCode;

use args::Command;
use error::Fault;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => fault.report(),
    }
}

fn run() -> Result<(), Fault> {
    let Some(cli) = args::parse()? else { return Ok(()) };
    progress::allow(cli.progress);
    interrupt::install();
    match cli.command {
        Command::Mul(args) => mul::run(&args),
        Command::Gemv(args) => gemv::run(&args),
        Command::Gram(args) => gram::run(&args),
        Command::Batch(args) => batch::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Info(args) => info::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Trace(args) => trace::run(&args),
        Command::Tune(args) => tune::run(&args),
        Command::Completions(args) => shell::completions(&args),
        Command::Man(args) => shell::man(&args),
    }
}
