//! The occupancy calculator against what an H200's driver says of every entry.
//!
//! The file is `lanky-gpu-tests occupancy --csv crates/model/tests/data/occupancy_h200.csv`: entry, registers a thread,
//! threads a block, static and dynamic shared memory a block in bytes, blocks an SM.

use lanky_model::launch::block_shapes;
use lanky_model::occupancy::{self, resident_blocks};
use lanky_model::variants::batched::BATCHED;
use lanky_model::{DeviceFacts, Machine, VARIANTS, batched};
use std::collections::{BTreeMap, BTreeSet};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/occupancy_h200.csv");
const AGAIN: &str = "lanky-gpu-tests occupancy --csv crates/model/tests/data/occupancy_h200.csv on an H200";

/// The H200 as its driver describes it, by which plans on it choose: the blocks of batches follow from its rates. A bus of 6016
/// bits is the data sheet's 4.8 TB/s at 3201 MHz.
fn h200() -> Machine {
    let table = Machine::H200;
    Machine::from_device(&DeviceFacts {
        name: table.name.as_str(),
        compute_capability: table.compute_capability,
        sms: table.sms,
        clock_khz: 1_980_000,
        memory_clock_khz: 3_201_000,
        memory_bus_bits: 6016,
        registers_per_sm: table.registers_per_sm,
        shared_per_sm: table.shared_per_sm,
        shared_per_block: table.shared_per_block,
        threads_per_sm: table.threads_per_sm,
        l2_bytes: table.l2_bytes,
    })
}

/// What the driver said of an entry, by its name, threads and dynamic shared memory: registers, static shared memory, blocks.
fn said() -> BTreeMap<(String, u32, u32), [u32; 3]> {
    let text = std::fs::read_to_string(FILE).unwrap_or_else(|error| panic!("{FILE}: {error}: {AGAIN}"));
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("entry,registers,threads,shared_static,shared_dynamic,blocks"), "{AGAIN}");
    let row = |line: &str| {
        let (entry, numbers) = line.split_once(',').unwrap_or_else(|| panic!("{line}"));
        let numbers: Vec<u32> = numbers.split(',').map(|n| n.parse().unwrap_or_else(|_| panic!("{line}"))).collect();
        let [registers, threads, shared_static, shared_dynamic, blocks] =
            numbers.try_into().unwrap_or_else(|_| panic!("{line}"));
        ((entry.to_owned(), threads, shared_dynamic), [registers, shared_static, blocks])
    };
    lines.map(row).collect()
}

#[test]
fn the_calculator_is_the_drivers() {
    let machine = h200();
    for ((entry, threads, shared_dynamic), [registers, shared_static, blocks]) in said() {
        let ours = resident_blocks(&machine, threads, registers, shared_static + shared_dynamic);
        assert_eq!(ours, blocks, "{entry}: {registers} registers, {shared_static} + {shared_dynamic} bytes");
    }
}

/// The registers that the model goes by are those of the kernels that the driver was asked of.
#[test]
fn registers_are_the_drivers() {
    for ((entry, ..), [registers, ..]) in said() {
        let product = VARIANTS.iter().find(|v| v.entry == entry).map(|v| occupancy::registers(v, &Machine::H200));
        let batch = || BATCHED.iter().find(|v| v.entry == entry).map(|v| v.registers(&Machine::H200));
        assert!(product.or_else(batch).is_none_or(|ours| ours == registers), "{entry}: {product:?}, {registers}");
    }
}

/// No entry is left out, none is launched otherwise than it was asked for, and none is gone.
#[test]
fn the_file_is_of_these_entries() {
    let mut said = said();
    let wanted: BTreeSet<_> = block_shapes()
        .chain(batched::block_shapes(&h200()))
        .map(|shape| (shape.entry, shape.threads, shape.shared_bytes))
        .collect();
    let lacks = |(entry, threads, shared_bytes): &(&'static str, u32, u32)| {
        said.remove(&((*entry).to_owned(), *threads, *shared_bytes)).is_none()
    };
    let lacking: BTreeSet<_> = wanted.into_iter().filter(lacks).collect();
    assert_eq!(lacking, BTreeSet::new(), "{AGAIN}");
    assert!(said.is_empty(), "there is no entry {:?}: {AGAIN}", said.keys());
}

/// Each entry of batches has blocks, which differ in their shared memory where it is of stages.
#[test]
fn batches_have_blocks_of_several_sizes() {
    let shapes = |entry: &str| -> BTreeSet<(u32, u32)> {
        let of_entry = batched::block_shapes(&Machine::H200).filter(|shape| shape.entry == entry);
        of_entry.map(|shape| (shape.threads, shape.shared_bytes)).collect()
    };
    assert!(shapes("dbatched_packed_2x2_t128").len() > 10);
    assert_eq!(shapes("dbatched_fragments_16x16_k16_t128").len(), 1);
    let all: BTreeSet<_> = batched::block_shapes(&Machine::H200).map(|shape| shape.entry).collect();
    assert_eq!(all.len(), BATCHED.len());
}
