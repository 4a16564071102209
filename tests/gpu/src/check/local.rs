//! Local memory: no entry has any, as this GPU's driver compiles it.

use crate::lab::{Lab, Outcome, ensure};
use cust::function::FunctionAttribute;
use cust::module::Module;
use model::VARIANTS;
use std::collections::BTreeSet;

/// Every entry of the table has a module, and of every module that this GPU takes no byte lies in local memory: nothing
/// is spilled, and no array is indexed by what only a run knows.
pub fn run(lab: &Lab) -> Outcome {
    let carried: BTreeSet<&str> = host::ptx::all().map(|(entry, ..)| entry).collect();
    for variant in VARIANTS {
        let found = ensure(carried.contains(variant.entry), || "no module has it".into());
        lab.record(|| format!("local {}", variant.entry), found)?;
    }
    let Some(machine) = lab.device.machine() else {
        lab.skip("local", "the CPU has no kernels");
        return Ok(());
    };
    for entry in carried {
        match host::ptx::module(entry, machine.compute_capability) {
            Some(text) => lab.record(|| format!("local {entry}"), no_local(entry, &text))?,
            None => lab.skip(&format!("local {entry}"), "it needs a newer GPU"),
        }
    }
    Ok(())
}

fn no_local(entry: &str, text: &str) -> Outcome {
    let module = Module::from_ptx(text, &[])?;
    let bytes = module.get_function(entry)?.get_attribute(FunctionAttribute::LocalSizeBytes)?;
    ensure(bytes == 0, || format!("{bytes} bytes a thread"))
}
