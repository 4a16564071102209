//! What a block takes to begin and to end, while it does not do both, load and multiply.

use super::Constants;
use crate::{Kernel, Machine, Operation, Problem, Variant};

/// Bytes that the cache takes in one piece.
const SECTOR: f64 = 32.0;

/// Latencies of the memory that a block of `gemv_wide` takes beside its loads: it divides to find its place, and few of its threads
/// add the sums of all. On an H200 on 2026-11-22 a GEMV of 0.3 to 3 MB in f32 took 1 to 2 us longer than by `gemv_columns`.
const WIDE_LATENCIES: f64 = 2.5;

/// The same of the other kernels of products with vectors: nothing is on its way before a block's first loads, and behind its last ones lanes and groups
/// are added. On an H200 on 2026-11-26 each wave but the first cost f32 of 0.4 GB 1 to 2 us.
const VECTOR_LATENCIES: f64 = 2.0;

/// The ends of a block of [`Kernel::Ring`] and, but for the storing, of [`Kernel::GemmRing`]. Of the other kernels many small blocks are on an SM at a time, and their ends
/// are in the constants that were fitted to them: here they are 0, but those of entries for vectors, and where B is filled into shared memory first: 64 x 64 x 64 took
/// 27.7 us on an H200 on 2026-11-22 by `dtsmm_element_0x1_u4_t256_shared`, 19.5 in f32, of which 16 loads of B one after the other are 9.
pub(super) struct Ends {
    /// Nothing is multiplied while the first stage is on its way; nothing is loaded while the last one is multiplied. The
    /// longer of the two is in the times of all stages, the shorter comes on top. s.
    turn_s: f64,
    /// The block's part of C is stored, s: of a [`Kernel::GemmRing`], whose C is not narrow, it is in the time of all of C.
    store_s: f64,
    /// The same where that is a slot, s.
    slot_store_s: f64,
    /// Whether the first wave's are counted elsewhere: in what a launch takes.
    first_is_free: bool,
}

impl Ends {
    /// Of an entry whose blocks multiply at this rate of the whole machine.
    pub(super) fn of(
        variant: &Variant,
        problem: &Problem,
        machine: &Machine,
        fma_per_s: f64,
        constants: &Constants,
    ) -> Ends {
        if !matches!(variant.kernel, Kernel::Ring | Kernel::GemmRing) {
            let latencies = match variant.kernel {
                Kernel::Gemv if variant.name == "gemv_wide" => WIDE_LATENCIES,
                Kernel::Gemv if !variant.is_sorensens() => VECTOR_LATENCIES,
                // Each thread waits for an element of B before it loads the next.
                Kernel::Tall if variant.entry.ends_with("_shared") => {
                    (problem.k as f64 * problem.n as f64 / f64::from(variant.threads)).max(1.0)
                }
                _ => 0.0,
            };
            let first_is_free = variant.kernel == Kernel::Gemv && variant.name != "gemv_wide";
            return Ends {
                turn_s: latencies * machine.memory_latency_s,
                store_s: 0.0,
                slot_store_s: 0.0,
                first_is_free,
            };
        }
        let (sms, is_ring) = (f64::from(machine.sms), variant.kernel == Kernel::Ring);
        let (rows, cols, steps) = (f64::from(variant.rows), f64::from(variant.t2), f64::from(variant.t3));
        let loaded = if is_ring { rows } else { rows + cols }; // B of a tall A comes from a cache
        let load_s = loaded * steps * problem.dtype.bytes() as f64 * sms / machine.read_bytes_per_s;
        let multiply_s = rows * cols * steps * f64::from(variant.dtype.fmas()) * sms / fma_per_s;
        Ends {
            turn_s: machine.memory_latency_s + load_s.min(multiply_s),
            store_s: if is_ring { store_s(variant, problem, problem.c.row, machine, constants) } else { 0.0 },
            slot_store_s: if is_ring { store_s(variant, problem, 1, machine, constants) } else { 0.0 },
            first_is_free: false,
        }
    }

    /// What a block takes to begin and to end where k is in `splits` parts, s.
    fn seconds(&self, splits: u32) -> f64 {
        self.turn_s + if splits > 1 { self.slot_store_s } else { self.store_s }
    }

    /// In full waves, of which an SM has a share `full_share` for each block, and a last one, with the share `last_share` or 0, s.
    pub(super) fn in_waves_s(&self, splits: u32, fulls: f64, full_share: f64, last_share: f64) -> f64 {
        let first = match (self.first_is_free, fulls > 0.0) {
            (false, _) => 0.0,
            (true, true) => full_share,
            (true, false) => last_share,
        };
        self.seconds(splits) * (fulls * full_share + last_share - first)
    }

    /// In any waves at least, of which one is there, s.
    pub(super) fn least_s(&self, splits: u32, full_share: f64) -> f64 {
        if self.first_is_free { 0.0 } else { self.seconds(splits) * full_share }
    }
}

/// Time in which a block stores its part of C, whose rows are `stride` elements apart, s.
///
/// The threads of a warp have a row each. Unless rows are neighbours, each of their elements takes a sector, or as much of
/// it as lies between two rows. Of tall matrices times a small B, whose blocks have few steps and seldom store together, it takes half a sector, but twice its own bytes at
/// least: by what was fitted of rings to an H200's times of 2026-11-29 (benches/results/trials/few-rows.csv) 0.5 of a sector in f32, f64 and c64 by rows, and 1.4 to 1.9 of
/// its bytes by columns.
fn store_s(variant: &Variant, problem: &Problem, stride: u64, machine: &Machine, constants: &Constants) -> f64 {
    let elements = u64::from(variant.rows).min(problem.m) * u64::from(variant.t2).min(problem.n);
    let bytes = problem.dtype.bytes() as f64;
    let apart = stride as f64 * bytes;
    let taken = if problem.operation() == Operation::Tsmm {
        apart.min(SECTOR / 2.0).max(2.0 * bytes)
    } else {
        apart.min(SECTOR)
    };
    elements as f64 * taken / (constants.stored_bytes_per_cycle * machine.clock_hz)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dtype, Strides, VARIANTS};

    /// 21 bytes a cycle are stored.
    const PLAIN: Constants = Constants { stored_bytes_per_cycle: 21.0, ..Constants::FITTED };

    fn ends(entry: &str, c: Strides) -> Ends {
        let Some(v) = VARIANTS.iter().find(|v| v.entry == entry) else { panic!("{entry}") };
        let problem = Problem { c, ..Problem::column_major(Dtype::F32, 100_000, 16, 128) };
        Ends::of(v, &problem, &Machine::H200, Machine::H200.fma_f32_per_s, &PLAIN)
    }

    /// 4096 elements of C: at 41.6 GB/s an SM, 4 bytes or a sector of 32 each.
    #[test]
    fn rows_apart_take_a_sector_an_element() {
        let entry = "stsm2r_staged_4x8_n16_k32_s3_t128_rows";
        let (columns, rows) = (ends(entry, Strides::column_major(100_000)), ends(entry, Strides::row_major(16)));
        assert!((rows.store_s / 3.15e-6 - 1.0).abs() <= 0.01, "{}", rows.store_s);
        assert!((rows.store_s / columns.store_s - 8.0).abs() <= 1e-9);
        assert_eq!((rows.slot_store_s, rows.turn_s), (columns.store_s, columns.turn_s));
        assert_eq!((rows.seconds(1), rows.seconds(2)), (rows.turn_s + rows.store_s, columns.turn_s + columns.store_s));
        // Two elements a row: 8 bytes from one to the next.
        let narrow = ends(entry, Strides::row_major(2));
        assert!((narrow.store_s / columns.store_s - 2.0).abs() <= 1e-9);
    }

    /// Of few steps half a sector, or an element twice.
    #[test]
    fn few_rows_are_stored_by_themselves() {
        let variant = VARIANTS.iter().find(|v| v.entry == "stsm2r_staged_4x8_n16_k32_s3_t128_rows").expect("an entry");
        let taken = |k, c| {
            let problem = Problem { c, ..Problem::column_major(Dtype::F32, 1000, 16, k) };
            Ends::of(variant, &problem, &Machine::H200, Machine::H200.fma_f32_per_s, &PLAIN).store_s
        };
        let (columns, rows) = (Strides::column_major(1000), Strides::row_major(16));
        for (of, times) in [(columns, 2.0), (rows, 0.5)] {
            assert!((taken(64, of) / taken(65, of) - times).abs() <= 1e-9, "{of:?}");
        }
    }

    /// 32 KiB at 35.2 GB/s take 0.930 us, 131072 multiply-adds by 128 lanes at 1.98 GHz 0.517 us; 580 ns of latency. Of 64
    /// columns 131072 multiply-adds go with a quarter of the elements of A, 0.233 us.
    #[test]
    fn a_turn_is_the_shorter_of_a_stage_that_is_loaded_and_one_that_is_multiplied() {
        for (entry, shorter) in
            [("stsm2r_staged_4x8_n16_k32_s3_t128_rows", 0.517e-6), ("stsm2r_staged_8x8_n64_k16_s3_t128", 0.2325e-6)]
        {
            let found = ends(entry, Strides::row_major(16)).turn_s;
            assert!((found / (shorter + 0.580e-6) - 1.0).abs() <= 1e-3, "{entry}: {found}");
        }
        // Of a square's tile 256 lines of 8 steps, 8 KiB, and 131072 multiply-adds.
        let square = ends("sgemm_staged_8x16_m128_n128_k8_s3_t128", Strides::column_major(100_000));
        assert!((square.turn_s / (0.2325e-6 + 0.580e-6) - 1.0).abs() <= 1e-3 && square.seconds(1) == square.turn_s);
        assert_eq!(ends("stsm2r_prefetch_1x16_u32_t128", Strides::row_major(16)).seconds(1), 0.0);
    }

    /// 2 latencies of 580 ns, shared by two blocks of an SM: 1.5 waves have half of one more than the first, which is a launch's.
    #[test]
    fn a_vectors_first_wave_is_the_launchs() {
        let found = ends("sgemv_columns_4x1_m128n1_u8_t256", Strides::column_major(100_000));
        let turn_s = VECTOR_LATENCIES * Machine::H200.memory_latency_s;
        assert_eq!(found.in_waves_s(1, 1.0, 0.5, 0.5), 0.5 * turn_s);
        assert_eq!(
            [found.in_waves_s(1, 1.0, 0.5, 0.0), found.in_waves_s(1, 0.0, 0.5, 1.0), found.least_s(1, 0.5)],
            [0.0; 3]
        );
        let ring = ends("stsm2r_staged_8x8_n64_k16_s3_t128", Strides::row_major(16));
        assert_eq!(ring.in_waves_s(1, 1.0, 0.5, 0.0), ring.least_s(1, 0.5));
    }
}
