//! What a launch of a tall product takes to begin; of few rows that is nearly all of its time.
//!
//! # Source
//! An H200 on 2026-11-29, all entries in graphs: cases of tsm2l.csv and tsmm.csv whose bound is below 50 us (benches/results/trials/begin.csv), and 488 of 4 to
//! 100000 rows (few-rows.csv). With these the choices take 1.01 to 1.04 times as long as the fastest in the geometric mean of each type. An entry that either file
//! does not have took 1.6 times as long as the fastest, or more, which was fitted to, too. Numbers are latencies of the memory, beside [`Machine::launch_s`], which in graphs is 6 of
//! them too long for all entries alike, so that some are negative.

use crate::{Dtype, Kernel, Machine, Operation, Problem, Variant};

/// Bytes that an SM's copies bring its blocks of a ring in a latency, 57 GB/s: stages come whole, with zeros for what is not there. `dtsm2r_mma_16x8_n8_k64_s2_t128_rows`
/// takes 0.15 to 0.37 us longer than `.._k32_..` in 31 cases of few-rows.csv of which one stage of either has all steps, 32 and 16 KiB.
const A_LATENCY_BYTES: f64 = 32768.0;

/// Latencies a step and byte of an element that `tsmm_element` waits for what it looks up, with B in shared memory and in the first-level cache. By rows of few-rows.csv, a
/// step: f32 0.05 and 0.07 us, f64 0.06 and 0.13, c64 0.08 and 0.14, c128 from the cache 0.27; 0.03 to 0.07 of that are latencies of A.
const LOOKED_UP: (f64, f64) = (0.017, 0.031);

/// What a launch of a tall product takes beside [`Machine::launch_s`]: stages that are cleared, B that is brought, the first tile on its way with nothing
/// to multiply yet. `an_sm` is how many blocks of the launch an SM has, one after the other or at once. s.
pub(super) fn begin_s(variant: &Variant, problem: &Problem, an_sm: f64, machine: &Machine) -> f64 {
    let are_two_tall = matches!(problem.operation(), Operation::Tsmttsm | Operation::Gram);
    let latencies = match variant.kernel {
        Kernel::Tsmm | Kernel::Tall => tall(variant, problem, an_sm),
        // From two-tall.csv, beside what those made for two tall matrices take.
        _ if variant.is_small_ring() && are_two_tall => -0.9,
        _ if problem.operation() != Operation::Tsmm => 0.0,
        _ => others(variant, problem, an_sm),
    };
    latencies * machine.memory_latency_s
}

/// Of entries for tall products, in latencies. What was fitted to few rows says nothing of more, or of vectors.
fn tall(variant: &Variant, problem: &Problem, an_sm: f64) -> f64 {
    // Of 64 x 64 elements, what an entry keeps of B.
    let kept = f64::from(variant.t2 * variant.t3) / 4096.0;
    let (is_complex, few) = (variant.dtype.is_complex(), problem.is_short());
    let (k, bytes, late) = (problem.k as f64, problem.dtype.bytes() as f64, late(problem));
    // A step's loads wait for those before.
    let chain = if variant.dtype == Dtype::C128 { 0.4 } else { 0.13 } * k;
    match variant.name {
        "tsm2l_interleaved" => 0.15,
        "tsmm_registers" if is_complex || !few => 1.0 + 0.15 * an_sm,
        // Each thread asks for its elements of C where it has their sums.
        "tsmm_registers" => (1.4 + 0.22 * bytes) * late - 2.3 + 0.15 * an_sm,
        "tsmm_packed" if few => 1.0,
        "tsm2l_tiled" if few => 1.0,
        "tsm2l_tiled" => 1.5,
        "tsmm_row" => 1.7,
        "tsm2l_columns" if variant.cols < 8 => 1.7,
        "tsmm_element" if !few => chain + 0.05 * an_sm,
        "tsmm_element" => {
            let looked_up = if variant.entry.ends_with("_cache") { LOOKED_UP.1 } else { LOOKED_UP.0 };
            // The lanes of a warp have elements of B and C that are columns apart.
            let apart = if problem.c.row == 1 && problem.n > 4 { 0.1 * k } else { 0.0 };
            looked_up * bytes * k + apart + 1.2 * late - 1.2 + 0.05 * an_sm
        }
        "tsmm_group" => 1.0 + chain,
        // Each lane brings its own elements of B.
        "tsmm_fragments" if !few => 13.0 * kept,
        "tsmm_fragments" => 20.0 * kept + 2.0 * late - 1.6,
        "tsmm_bulk" if few => 2.8 + 5.0 * kept,
        "tsmm_bulk" | "tsmm_mma" | "tsmm_staged" => 3.5 + 5.0 * kept,
        "tsmm_bulk_shared" if is_complex => 5.0,
        "tsmm_bulk_shared" => 3.0,
        "tsmm_bulk_registers" if !is_complex => 5.0,
        "tsmm_bulk_registers" | "tsmm_bulk_rows" => 3.0,
        "tsmm_lines" => 3.9 + kept,
        "tsmm_lines_mma" => 8.4,
        _ => 3.5,
    }
}

/// Of entries that are made for other products and serve tall ones of few rows, in latencies.
fn others(variant: &Variant, problem: &Problem, an_sm: f64) -> f64 {
    let (k, late) = (problem.k as f64, late(problem));
    // Of an SM's blocks, each scheduler's. Those of an A by rows take longer than by columns: why was not looked at.
    let warps = an_sm * f64::from(variant.threads) / 128.0;
    let a_block = if problem.a.row == 1 { 0.3 } else { 1.1 };
    let brought = brought_bytes(variant, problem) / A_LATENCY_BYTES * an_sm.max(1.0);
    match (variant.kernel, variant.name) {
        // So few elements come from the second-level cache, sooner than the model thinks: in half of the time that it has for a step.
        (Kernel::Tsm2r, "tsm2r_outer") => 2.0 * late - 0.7 - 0.04 * k,
        (Kernel::Tsm2r, "tsm2r_prefetch") => 2.3 + 0.55 * f64::from(variant.t2),
        // Made for many steps.
        (Kernel::Tsm2r, _) => 10.0,
        // Of few steps a block is hardly more than its stages and its end.
        (Kernel::Ring, _) => brought + a_block * warps + 2.0 * late - if variant.mma { 1.3 } else { 0.5 },
        (Kernel::GemmRing, _) if variant.mma => brought + 4.0 * late + 0.4,
        // c64's and c128's take a microsecond longer than f32's and f64's, and more for each block of an SM: why was not looked at.
        (Kernel::GemmRing, _) if variant.dtype.is_complex() => brought + 0.6 * an_sm + 4.0 * late + 2.3,
        (Kernel::GemmRing, _) => brought + 4.0 * late + 0.6,
        (Kernel::Gemm, _) => 5.0,
        _ => 3.5,
    }
}

/// 1 where C is read: what has no time for it before the sums are there waits for it then.
fn late(problem: &Problem) -> f64 {
    f64::from(u8::from(problem.reads_c))
}

/// Bytes of whole stages that a block of a ring copies: of TSM2R's A alone, whose B is small.
fn brought_bytes(variant: &Variant, problem: &Problem) -> f64 {
    let lines = variant.rows + if variant.kernel == Kernel::GemmRing { variant.t2 } else { 0 };
    let steps = problem.k.next_multiple_of(u64::from(variant.t3.max(1)));
    (u64::from(lines) * steps * problem.dtype.bytes()) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Latencies of the memory that an entry takes to begin with so many blocks an SM; C is not read.
    fn begins(entry: &str, [m, n, k]: [u64; 3], an_sm: f64) -> f64 {
        let variant = crate::VARIANTS.iter().find(|one| one.entry == entry).unwrap();
        let problem = Problem::column_major(variant.dtype, m, n, k);
        begin_s(variant, &problem, an_sm, &Machine::H200) / Machine::H200.memory_latency_s
    }

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() <= 1e-9, "{found} for {expected}");
    }

    /// B that is kept, whatever the product has of it, and steps, one behind the other; of many rows and of vectors other numbers.
    #[test]
    fn a_launch_takes_what_its_blocks_keep_and_look_up() {
        for (size, whole, quarter, bulk) in
            [([100, 64, 64], 18.4, 3.4, 2.8), ([10_000_000, 3, 5], 13.0, 3.25, 3.5), ([100, 1, 5], 13.0, 3.25, 3.5)]
        {
            near(begins("dtsmm_fragments_16x64_n64_k64_s2_t64", size, 1.0), whole);
            near(begins("dtsmm_fragments_16x64_n64_k16_s2_t128", size, 1.0), quarter);
            near(begins("dtsmm_mma_16x32_n64_k64_s2_t128", size, 1.0), 8.5);
            near(begins("dtsmm_bulk_32x8_n8_k16_s3_t256", size, 1.0), bulk + 5.0 / 32.0);
        }
        near(begins("stsmm_element_0x1_u2_t256_cache", [100, 4, 50], 0.0), 5.0);
        near(begins("dtsmm_element_0x1_u4_t256_shared", [100, 4, 50], 0.0), 5.6);
        // Lanes that are columns apart, and blocks.
        near(begins("stsmm_element_0x1_u2_t256_cache", [100, 5, 50], 10.0), 10.5);
        near(begins("ztsmm_element_0x1_u2_t256_cache", [100_000, 4, 50], 10.0), 20.5);
    }

    /// Blocks, and the bytes of their stages: 32 KiB of 64 rows and 33 to 64 steps in f64, those of an SM one after the other; of products that are not tall nothing.
    #[test]
    fn a_launch_takes_what_rings_bring_and_how_many_blocks_there_are() {
        let entry = "dtsm2r_mma_16x8_n8_k32_s3_t128";
        for (k, an_sm, expected) in
            [(64, 0.1, -0.27), (33, 0.1, -0.27), (32, 0.1, -0.77), (64, 10.0, 11.7), (65, 10.0, 0.0)]
        {
            near(begins(entry, [1000, 64, k], an_sm), expected);
        }
        // Of both operands 96 lines.
        near(begins("cgemm_staged_4x2_m32_n32_k16_s3_t128", [1000, 64, 64], 0.5), 1.0 + 0.3 + 2.3);
        near(begins("stsm2r_outer_1x2_u1_t128", [1000, 64, 10], 0.5), -1.1);
    }

    /// Rings ask for C when all else is done.
    #[test]
    fn c_is_late() {
        for (entry, latencies) in [
            ("sgemm_staged_4x4_m64_n32_k16_s3_t128", 4.0),
            ("stsm2r_staged_4x4_n8_k16_s3_t128", 2.0),
            ("stsm2r_outer_1x2_u1_t128", 2.0),
            ("dtsmm_registers_8x1_u8_t256", 3.16),
            ("dtsmm_fragments_16x8_n8_k16_s2_t128", 2.0),
            ("dtsmm_element_0x1_u4_t256_shared", 1.2),
            ("dtsmm_mma_16x32_n64_k64_s2_t128", 0.0),
        ] {
            let variant = crate::VARIANTS.iter().find(|one| one.entry == entry).unwrap();
            let problem = Problem::column_major(variant.dtype, 10_000, 16, 8);
            let [without, with] =
                [false, true].map(|reads_c| begin_s(variant, &Problem { reads_c, ..problem }, 1.0, &Machine::H200));
            near((with - without) / Machine::H200.memory_latency_s, latencies);
        }
    }
}
