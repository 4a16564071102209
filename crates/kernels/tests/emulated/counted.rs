//! What the papers say about memory, counted; and what emulation costs.

use crate::harness::{Case, check};
use model::{Kernel, VARIANTS, Variant};

fn variant(entry: &str) -> &'static Variant {
    VARIANTS.iter().find(|variant| variant.entry == entry).unwrap_or_else(|| panic!("there is no {entry}"))
}

/// 10^7 fused multiply-adds with all checks on, by the plainest kernel and by the paper's best.
#[test]
fn ten_million_multiply_adds_take_less_than_five_seconds() {
    for entry in ["dtsm2r_inner_1x1_u1_t128", "dtsm2r_prefetch_1x8_u4_t128"] {
        let start = std::time::Instant::now();
        let counters = check(variant(entry), Case::plain(1280, 8, 977));
        let seconds = start.elapsed().as_secs_f64();
        assert!(counters.fma >= 10_000_000, "{}", counters.fma);
        let accesses: u64 = counters.operands.iter().map(|o| o.loads.elements + o.stores.elements).sum();
        println!(
            "{entry}: {seconds:.2} s, {} fma, {} accesses of global memory, {} of shared memory a warp",
            counters.fma, accesses, counters.shared.loads.instructions
        );
        assert!(seconds < 5.0, "{entry}: {seconds:.2} s");
    }
}

/// TSM2X's claims about memory: m = k = 768, n = 4, f64, everything column-major, t1 = 128.
#[test]
fn traffic_is_what_the_paper_says() {
    let (m, n, k, t1) = (768u64, 4u64, 768u64, 128u64);
    let mut efficiencies = Vec::new();
    for (name, a_reads, b_reads) in [
        ("tsm2r_inner_1x1_u1_t128", n, m),
        ("tsm2r_outer_1x4_u1_t128", 1, m),
        ("tsm2r_shared_1x4_u4_t128", 1, m / t1),
        ("tsm2r_shared_rowmajor_1x4_u4_t128", 1, m / t1),
        ("tsm2r_prefetch_1x4_u4_t128", 1, m / t1),
    ] {
        let counters = check(variant(&format!("d{name}")), Case::plain(768, 4, 768));
        let (a, b) = (counters.operand("A").loads, counters.operand("B").loads);
        assert_eq!(counters.fma, m * n * k, "{name}");
        assert_eq!((a.elements, b.elements), (m * k * a_reads, k * n * b_reads), "{name}");
        assert_eq!(a.efficiency(), 1.0, "{name}");
        efficiencies.push(b.efficiency());
        let stores = counters.shared.stores;
        let ways = if name.contains("rowmajor") { 4 } else { 1 };
        assert_eq!(stores.wavefronts, stores.instructions * 2 * ways, "{name}: a warp of f64 needs two wavefronts");
        assert_eq!(counters.shared.loads.bank_conflicts, 0, "{name}");
    }
    assert_eq!(efficiencies, [0.25, 0.25, 1.0, 1.0, 1.0]);
}

/// Stages along k: lines of an A and a B are 16 bytes more than their steps apart, so that those of a step lie in different banks.
#[test]
fn lines_along_k_meet_in_no_bank() {
    for name in ["sgemm_along_8x8_m128_n64_k16_s3_t128", "cgemm_along_8x4_m64_n64_k16_s3_t128"] {
        let case = Case { by_rows: [true, false, false], ..Case::plain(128, 64, 64) };
        let counters = check(variant(name), case);
        assert!(counters.shared.loads.instructions > 0, "{name}");
        assert_eq!(counters.shared.loads.bank_conflicts, 0, "{name}");
    }
}

/// Rings by rows to the matrix units, whose lines are turned in place of gaps: what lanes load of A and B lies in different banks.
#[test]
fn turned_lines_meet_in_no_bank() {
    let rings = VARIANTS.iter().filter(|v| v.kernel == Kernel::Ring && v.mma && v.entry.ends_with("_rows"));
    let mut entries = 0;
    for entry in rings {
        let case = Case { by_rows: [true, false, false], ..Case::plain(entry.rows, entry.t2, 128) };
        let loads = check(entry, case).shared.loads;
        assert!(loads.instructions > 0 && loads.bank_conflicts == 0, "{}: {}", entry.entry, loads.bank_conflicts);
        entries += 1;
    }
    assert!(entries >= 10, "{entries}");
}
