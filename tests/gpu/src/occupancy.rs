//! Occupancy: the blocks of every entry that an SM holds, as the driver counts them and as the model does.
//!
//! What the driver says of an H200 is kept as `crates/model/tests/data/occupancy_h200.csv`, to which a test without a GPU
//! holds the model: `lanky-gpu-tests occupancy --csv FILE` writes it.

use crate::entries;
use crate::lab::{Lab, Outcome, ensure};
use cust::extra::set_max_dynamic_shared;
use cust::function::{BlockSize, FunctionAttribute};
use cust::module::Module;
use model::Machine;
use model::launch::{BlockShape, block_shapes};
use model::occupancy::{Residency, residency};
use std::fmt::Write;

/// The columns of the file.
pub const HEADER: &str = "entry,registers,threads,shared_static,shared_dynamic,blocks";

/// Compares every entry that this GPU takes, in its one launch shape or, of batches, in all of them; writes what the driver said where `csv` names a file: of a share
/// a part of it, since one process takes minutes.
pub fn run(lab: &Lab, csv: Option<&str>) -> Outcome {
    let Some(machine) = lab.device.machine() else {
        lab.skip("occupancy", "the CPU has no driver to ask");
        return Ok(());
    };
    let mut found = Vec::new();
    let mut shapes: Vec<BlockShape> = block_shapes().chain(model::batched::block_shapes(machine)).collect();
    shapes.sort_unstable_by_key(key);
    shapes.dedup();
    for (_, shape) in shapes.into_iter().enumerate().filter(|(at, _)| entries::is_tried(*at)) {
        let Some(text) = host::ptx::module(shape.entry, machine.compute_capability) else {
            lab.skip(&format!("occupancy {}", shape.entry), "it needs a newer GPU");
            continue;
        };
        let result = Held::ask(&shape, &text).and_then(|held| {
            let agrees = held.check(machine);
            found.push(held);
            agrees
        });
        let BlockShape { entry, threads, shared_bytes } = shape;
        lab.record(|| format!("occupancy {entry}, {threads} threads, {shared_bytes} bytes"), result)?;
    }
    if let Some(path) = csv {
        std::fs::write(path, table(&mut found))?;
    }
    Ok(())
}

fn key(shape: &BlockShape) -> (&'static str, u32, u32) {
    (shape.entry, shape.threads, shape.shared_bytes)
}

/// The file: one line an entry and block, by name, so that a change of the table changes no other line.
fn table(found: &mut [Held]) -> String {
    found.sort_unstable_by_key(|held| key(&held.shape));
    let mut text = format!("{HEADER}\n");
    for Held { shape, registers, shared_static, blocks } in &*found {
        let BlockShape { entry, threads, shared_bytes } = shape;
        // Writing to a string does not fail.
        let _ = writeln!(text, "{entry},{registers},{threads},{shared_static},{shared_bytes},{blocks}");
    }
    text
}

/// What the driver says of an entry in a launch shape.
struct Held {
    shape: BlockShape,
    /// A thread.
    registers: u32,
    /// A block, bytes.
    shared_static: u32,
    /// An SM.
    blocks: u32,
}

impl Held {
    /// Of the entry in the module that has this text.
    fn ask(shape: &BlockShape, text: &str) -> Outcome<Held> {
        let module = Module::from_ptx(text, &[])?;
        let function = module.get_function(shape.entry)?;
        let attribute = |attribute| -> Outcome<u32> { Ok(function.get_attribute(attribute)?.try_into()?) };
        // As a launch does: without it, more than 48 KiB are more than a block may have.
        set_max_dynamic_shared(&function, shape.shared_bytes)?;
        let block = BlockSize::x(shape.threads);
        let blocks = function.max_active_blocks_per_multiprocessor(block, usize::try_from(shape.shared_bytes)?)?;
        Ok(Held {
            shape: *shape,
            registers: attribute(FunctionAttribute::NumRegisters)?,
            shared_static: attribute(FunctionAttribute::SharedMemorySizeBytes)?,
            blocks,
        })
    }

    /// The model's residency with the driver's registers.
    fn modelled(&self, machine: &Machine) -> Residency {
        residency(machine, self.shape.threads, self.registers, self.shared_static + self.shape.shared_bytes)
    }

    fn check(&self, machine: &Machine) -> Outcome {
        let modelled = self.modelled(machine);
        ensure(modelled.blocks() == self.blocks && self.blocks > 0, || {
            let Held { shape, registers, shared_static, blocks } = self;
            format!(
                "the driver holds {blocks} blocks of {} threads, {registers} registers, {shared_static} + {} bytes; \
                 the model {}: {modelled:?}",
                shape.threads,
                shape.shared_bytes,
                modelled.blocks()
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(entry: &'static str, blocks: u32) -> Held {
        Held {
            shape: BlockShape { entry, threads: 128, shared_bytes: 16 << 10 },
            registers: 104,
            shared_static: 0,
            blocks,
        }
    }

    #[test]
    fn another_count_than_the_models_is_a_failure() {
        assert!(held("a", 4).check(&Machine::H200).is_ok());
        for blocks in [0, 3, 5] {
            let said = held("a", blocks).check(&Machine::H200).map_err(|fault| fault.to_string());
            assert!(said.is_err_and(|fault| fault.contains("the model 4")), "{blocks}");
        }
    }

    #[test]
    fn the_file_is_in_order() {
        let text = table(&mut [held("b", 4), held("a", 3)]);
        assert_eq!(text, format!("{HEADER}\na,104,128,0,16384,3\nb,104,128,0,16384,4\n"));
    }
}
