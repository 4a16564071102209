//! The occupancy calculator against what an H200's driver says of every entry.
//!
//! The file is `lanky-gpu-tests occupancy --csv crates/model/tests/data/occupancy_h200.csv`: entry, registers a thread,
//! threads a block, static and dynamic shared memory a block in bytes, blocks an SM.

use lanky_model::Machine;
use lanky_model::launch::block_shapes;
use lanky_model::occupancy::resident_blocks;
use std::collections::BTreeMap;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/occupancy_h200.csv");
/// Entries that no driver was asked of yet.
const NOT_YET: &[&str] = &[
    "dbatched_fragments_16x16_k16_t128",
    "dbatched_fragments_24x24_k24_t64",
    "dbatched_fragments_32x32_k32_t64",
    "zbatched_fragments_16x16_k16_t128",
    "zbatched_fragments_24x24_k24_t64",
    "zbatched_fragments_32x16_k32_t64",
    "sbatched_warps_4x6_t64",
    "sbatched_warps_4x8_t64",
    "cbatched_warps_2x4_t64",
    "cbatched_warps_4x6_t64",
    "cbatched_warps_4x8_t64",
    "dtsmttsm_ring_48x16_m48n48_d1_t192",
    "dtsmttsm_ring_32x32_m64n64_d1_t128",
    "dtsmttsm_ring_32x32_m64n64_d1_t256",
    "dgram_ring_32x32_m64n64_d1_t96",
    "dgemm_mma_32x32_m64_n64_k16_s4_t128",
    "dgemm_mma_64x32_m128_n128_k16_s4_t256",
    "dgemm_mma_64x32_m128_n64_k16_s4_t128",
];
const AGAIN: &str = "lanky-gpu-tests occupancy --csv crates/model/tests/data/occupancy_h200.csv on an H200";

/// What the driver said of an entry: registers, threads, static and dynamic shared memory, blocks.
fn said() -> BTreeMap<String, [u32; 5]> {
    let text = std::fs::read_to_string(FILE).unwrap_or_else(|error| panic!("{FILE}: {error}: {AGAIN}"));
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("entry,registers,threads,shared_static,shared_dynamic,blocks"), "{AGAIN}");
    let row = |line: &str| {
        let (entry, numbers) = line.split_once(',').unwrap_or_else(|| panic!("{line}"));
        let numbers: Vec<u32> = numbers.split(',').map(|n| n.parse().unwrap_or_else(|_| panic!("{line}"))).collect();
        (entry.to_owned(), numbers.try_into().unwrap_or_else(|_| panic!("{line}")))
    };
    lines.map(row).collect()
}

#[test]
fn the_calculator_is_the_drivers() {
    for (entry, [registers, threads, shared_static, shared_dynamic, blocks]) in said() {
        let ours = resident_blocks(&Machine::H200, threads, registers, shared_static + shared_dynamic);
        assert_eq!(ours, blocks, "{entry}: {registers} registers, {shared_static} + {shared_dynamic} bytes");
    }
}

/// No entry is left out, none is launched otherwise than it was asked for, and none is gone.
#[test]
fn the_file_is_of_these_entries() {
    let mut said = said();
    for shape in block_shapes() {
        if NOT_YET.contains(&shape.entry) {
            assert!(!said.contains_key(shape.entry), "{} is in the file: take it from the list", shape.entry);
            continue;
        }
        let Some([_, threads, _, shared_dynamic, _]) = said.remove(shape.entry) else {
            panic!("{} is not in the file: {AGAIN}", shape.entry)
        };
        assert_eq!((threads, shared_dynamic), (shape.threads, shape.shared_bytes), "{}: {AGAIN}", shape.entry);
    }
    assert!(said.is_empty(), "there is no entry {:?}: {AGAIN}", said.keys());
}
