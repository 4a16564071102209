//! The emulator's counters beside Nsight Compute's on an H200, for every TSM2R entry at two shapes.
//!
//! Requests and sectors of global memory, multiply-adds, loads of shared memory and their wavefronts are equal. Stores to
//! shared memory differ in two ways, both checked here:
//!
//! 1. In `tsm2r_shared_rowmajor` a thread's elements lie side by side, and ptxas fuses them into stores of 16 bytes: the
//!    SASS has `STS.128` where the kernel, and its PTX, store element by element. The warp's lanes stay T2 elements apart,
//!    so that a fused store takes 4 wavefronts for its 512 bytes, times the T2 · bytes / 16 lanes that meet in a bank.
//! 2. The GPU counts a few conflicts among stores that have none (at most 6% of the wavefronts, other ones in each run):
//!    stores wait for a pipe that global loads use as well. ncu's wavefronts less its conflicts are the emulator's.

use crate::harness::{Case, check};
use model::{Kernel, VARIANTS, Variant};
use simt::Counters;
use std::collections::BTreeMap;

const COUNTED: &str = include_str!("../data/ncu_h200.csv");

/// The rows of the file, as numbers by the names of its columns.
fn rows() -> Vec<(&'static str, BTreeMap<&'static str, u64>)> {
    let mut lines = COUNTED.lines().filter(|line| !line.starts_with('#'));
    let Some(header) = lines.next() else { panic!("no header") };
    let row = |line: &'static str| {
        let (Some((entry, cells)), Some((_, names))) = (line.split_once(','), header.split_once(',')) else {
            panic!("{line}: no entry")
        };
        let number = |cell: &str| cell.parse().unwrap_or_else(|_| panic!("{line}: {cell} is no number"));
        (entry, names.split(',').zip(cells.split(',').map(number)).collect())
    };
    lines.map(row).collect()
}

/// The emulator's counters under the names of the file's columns.
fn columns(variant: &Variant, counters: &Counters) -> BTreeMap<&'static str, u64> {
    let loads = || counters.operands.iter().map(|operand| operand.loads);
    let stores = || counters.operands.iter().map(|operand| operand.stores);
    let fma = |bytes| if variant.dtype.bytes() == bytes { counters.fma } else { 0 };
    BTreeMap::from([
        ("load_requests", loads().map(|t| t.instructions).sum()),
        ("load_sectors", loads().map(|t| t.bytes_moved / 32).sum()),
        ("store_requests", stores().map(|t| t.instructions).sum()),
        ("store_sectors", stores().map(|t| t.bytes_moved / 32).sum()),
        ("dfma", fma(8)),
        ("ffma", fma(4)),
        ("shared_loads", counters.shared.loads.instructions),
        ("shared_load_wavefronts", counters.shared.loads.wavefronts),
        ("shared_load_conflicts", counters.shared.loads.bank_conflicts),
    ])
}

/// Stores to shared memory and their wavefronts, as the SASS has them.
fn stores(variant: &Variant, counters: &Counters) -> [u64; 2] {
    let stores = counters.shared.stores;
    if variant.name != "tsm2r_shared_rowmajor" {
        assert_eq!(stores.bank_conflicts, 0, "{}", variant.entry);
        return [stores.instructions, stores.wavefronts];
    }
    let fused = stores.instructions * variant.dtype.bytes() / 16;
    let ways = u64::from(variant.t2) * variant.dtype.bytes() / 16;
    [fused, fused * 4 * ways]
}

/// Compares every row of one element type.
fn compare(letter: char) {
    for (entry, counted) in rows().into_iter().filter(|(entry, _)| entry.starts_with(letter)) {
        let Some(variant) = VARIANTS.iter().find(|variant| variant.entry == entry) else {
            panic!("{entry} was counted, but is not in the table: count anew")
        };
        let len = |name| u32::try_from(counted[name]).unwrap_or(u32::MAX);
        let counters = check(variant, Case::plain(len("m"), len("n"), len("k")));
        for (name, emulated) in columns(variant, &counters) {
            assert_eq!(emulated, counted[name], "{entry}: {name}");
        }
        let [instructions, wavefronts] = stores(variant, &counters);
        assert_eq!(instructions, counted["shared_stores"], "{entry}: stores to shared memory");
        let (all, conflicts) = (counted["shared_store_wavefronts"], counted["shared_store_conflicts"]);
        assert!(wavefronts <= all && (all - wavefronts) * 100 <= all * 6, "{entry}: {wavefronts} wavefronts, {all}");
        // A fused store's 512 bytes need four; those beyond are conflicts, to ncu as well.
        let fewest = if variant.name == "tsm2r_shared_rowmajor" { instructions * 4 } else { wavefronts };
        assert_eq!(all - conflicts, fewest, "{entry}: wavefronts less conflicts");
    }
}

#[test]
fn f64_counters_are_those_of_nsight_compute() {
    compare('d');
}

#[test]
fn f32_counters_are_those_of_nsight_compute() {
    compare('s');
}

/// Every entry that was in the table when the counting was done has both shapes; complex elements came later.
#[test]
fn every_variant_of_the_ladder_was_counted() {
    let rows = rows();
    for name in ["tsm2r_inner", "tsm2r_outer", "tsm2r_shared", "tsm2r_shared_rowmajor", "tsm2r_prefetch"] {
        let ladder = |v: &&Variant| v.kernel == Kernel::Tsm2r && v.name == name && !v.dtype.is_complex();
        for variant in VARIANTS.iter().filter(ladder) {
            let times = rows.iter().filter(|(entry, _)| *entry == variant.entry).count();
            assert_eq!(times, 2, "{}", variant.entry);
        }
    }
}
