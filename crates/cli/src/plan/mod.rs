//! `lanky plan`: what would be chosen for a product and why, on the GPU here, one that is known, or one from a file.

mod against;
mod batch;
mod ceilings;
mod choice;
mod drawing;
mod file;
mod gpu;
mod head;
pub mod lies;
mod paper;
mod tuned;

use std::path::Path;

use model::variants::batched::BATCHED;
use model::{Dtype, Problem};
use serde::Serialize;

use choice::Plan;

use crate::args::{PlanArgs, check_variant};
use crate::error::Fault;
use crate::output;
use crate::say;

/// Runs the command.
pub fn run(args: &PlanArgs) -> Result<(), Fault> {
    check_variant(args.variant.as_deref())?;
    check_operation(args)?;
    let tuned = crate::tuned::file();
    let read: Vec<&Path> = [&args.gpu_file, &args.ceilings, &tuned].into_iter().filter_map(Option::as_deref).collect();
    output::refuse_to_replace(&read, args.svg.as_deref().as_slice())?;
    let &[m, n, k] = args.lengths.as_slice() else { return against(args) };
    let dtype: Dtype = args.dtype.into();
    let (machine, note) = gpu::machine(args)?;
    if m == 0 || n == 0 || k == 0 || args.batch == Some(0) {
        return nothing(args, dtype, [m, n, k]);
    }
    if let Some(count) = args.batch {
        let text = batch::text(args, dtype, [m, n, k], count, &machine)?;
        if let Some(note) = note {
            say::note(&note);
        }
        return say::print(&text);
    }
    let (problem, unusual) = args.lies.problem(dtype, [m, n, k], args.beta)?;
    let problem = Problem { splits_f32: args.split_f32, ..problem };
    let text = if args.paper {
        if args.json { say::json(&paper::Object::of(&problem, &machine))? } else { paper::text(&problem, &machine) }
    } else {
        let of = if args.cached { Plan::cached } else { Plan::of };
        let plan = of(&problem, &machine, args.variant.as_deref())?;
        // What was timed was timed in memory.
        let plan = if args.cached || args.variant.is_some() { plan } else { tuned::followed(plan, &problem) };
        if let Some(path) = &args.svg {
            output::write(path, &drawing::roofline(&plan, &problem).alone())?;
        }
        let object = || say::json(&choice::Object::of(&plan, &problem, &unusual));
        if args.json { object()? } else { choice::text(&plan, &problem, &unusual) }
    };
    if let Some(note) = note {
        say::note(&note);
    }
    say::print(&text)
}

/// Refuses a variant of one product where a batch is planned, and one of batches where one product is.
fn check_operation(args: &PlanArgs) -> Result<(), Fault> {
    let Some(name) = args.variant.as_deref() else { return Ok(()) };
    let is_of_batches = BATCHED.iter().any(|variant| variant.name == name || variant.entry == name);
    let (of, asked) = match (is_of_batches, args.batch) {
        (true, None) => ("batches", "one product; --batch COUNT plans a batch"),
        (false, Some(_)) => ("one product", "a batch"),
        _ => return Ok(()),
    };
    Err(Fault::Input(format!("variant {name}: it is of another operation, {of}, and the plan is for {asked}")))
}

/// Compares predictions with results.
fn against(args: &PlanArgs) -> Result<(), Fault> {
    let machine = gpu::named(args)?;
    if args.ceilings.is_some() && machine.is_none() {
        return Err(Fault::Input("--ceilings with --against: name the GPU that they are of with --gpu".into()));
    }
    let compared = against::compare(&args.against, machine.as_ref(), args.split_f32)?;
    if args.json { say::print_json(&compared) } else { say::print(&compared.text()) }
}

/// The object of `plan --json` where nothing is multiplied.
#[derive(Serialize)]
struct Nothing {
    operation: &'static str,
    dtype: &'static str,
    m: u64,
    n: u64,
    k: u64,
    reason: &'static str,
}

/// Says that there is nothing to choose.
fn nothing(args: &PlanArgs, dtype: Dtype, [m, n, k]: [u64; 3]) -> Result<(), Fault> {
    if let Some(path) = &args.svg {
        return Err(Fault::at(path, "no figure: nothing is multiplied"));
    }
    if args.paper {
        return Err(Fault::Input(format!(
            "--paper: m = {m}, n = {n}, k = {k}: nothing is multiplied, and nothing reasoned"
        )));
    }
    let reason = if m != 0 && n != 0 { "C <- beta C is all there is to do" } else { "C has no element" };
    if args.json {
        say::print_json(&Nothing { operation: "none", dtype: dtype.name(), m, n, k, reason })
    } else {
        say::print(&format!("m = {m}, n = {n}, k = {k}, {dtype}: nothing is multiplied, {reason}"))
    }
}
