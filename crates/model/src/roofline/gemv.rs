//! What a block of GEMV multiplies and issues. Counted, but for one number.

use super::block::Work;
use super::{Constants, WARP};
use crate::{Problem, Variant};

/// How many times as long as a read kernel's reads those of `gemv_wide` by elements take, whose warps begin anywhere. On an H200 on
/// 2026-11-22 f32 of 10 to 90 rows and 80 to 670 MB took 1.27 to 1.42 times.
const BY_ELEMENTS: f64 = 1.35;
/// The same of `gemv_dots` whose warps have rows of their own, and so 512 bytes of each at a time where a block has 4 KiB, where rows are
/// [`LONG_BYTES`] or more. On H200s on 2026-11-26 f64 of 22275 to
/// 67002 rows of 1420 to 4270 took 1.04 to 1.05 times as long so (crates/host/tuned); on an H100 on 2026-11-28 20480 x 20480 in f64 1152 us by 64 rows a block in four parts,
/// 1084 by 8 in one, and of two vectors 1154 and 1090.
const BY_ROWS: f64 = 1.045;
/// Of shorter rows a block has a turn or two.
const LONG_BYTES: f64 = 8192.0;
/// Share of the time that blocks of many rows lose at least where columns do not start at multiples of 16 bytes: on an H200 on 2026-11-29 `gemv_columns`
/// of 1024 rows a block took 1.01 to 1.08 times as long as expected without it of f32 from 2 GB on, 0.97 to 1.03 times below.
const ASTRAY: f64 = 0.03;
/// Bytes of the widest load.
const WIDE_BYTES: f64 = 16.0;
/// Bytes that the memory gives at once.
const SECTOR_BYTES: f64 = 32.0;
/// Instructions of a load: an address and the load.
const LOAD: f64 = 2.0;
/// Instructions that add lanes' sums, a sum and a halving of the lanes: of each 32 bits a shuffle, and an addition.
const HALVINGS: f64 = 5.0;

/// Steps of k that a block takes at a time.
fn together(variant: &Variant) -> u64 {
    u64::from(variant.stages * variant.t3)
}

/// Whether it loads A by elements: Sørensen's do, and `gemv_wide` where columns do not follow each other.
fn by_elements(variant: &Variant, problem: &Problem) -> bool {
    variant.is_sorensens() || variant.name == "gemv_wide" && problem.a.col != problem.m
}

/// How many times as long as a read kernel's reads those of A take. Where columns do not start at multiples of 16 bytes a block's rows of each begin
/// and end within sectors that other blocks ask for too. The number of rows tells, and no leading dimension: the parts of k, and so the bits, do
/// not depend on it. f32 of 12844 rows, which are such multiples and no whole sectors, takes no longer by 128 rows a block than by 1024.
pub(super) fn detour(variant: &Variant, problem: &Problem) -> f64 {
    let bytes = problem.dtype.bytes() as f64;
    match variant.name {
        "gemv_wide" if by_elements(variant, problem) => BY_ELEMENTS,
        "gemv_dots" if variant.stages < variant.threads && problem.k as f64 * bytes >= LONG_BYTES => BY_ROWS,
        "gemv_lines" => BY_BULK,
        "gemv_columns" | "gemv_tall" if problem.m % (WIDE_BYTES as u64 / problem.dtype.bytes()) != 0 => {
            1.0 + (SECTOR_BYTES / (f64::from(variant.rows) * bytes)).max(ASTRAY)
        }
        _ => 1.0,
    }
}

/// Rows that a block has, and steps of k that it takes at a time: places of `gemv_wide` that have no row take columns.
fn tile(variant: &Variant, problem: &Problem) -> (u64, u64) {
    let rows = u64::from(variant.rows);
    if variant.name != "gemv_wide" {
        return (rows, together(variant));
    }
    let rows = rows.min(problem.m).max(1);
    let width = u64::from(variant.own_rows());
    (rows, u64::from(variant.threads) * width / rows / width * width * u64::from(variant.t3))
}

/// Of a block. What it asks for at a time is not more than there is.
pub(super) fn work(variant: &Variant, problem: &Problem) -> Work {
    if variant.is_gemv_lines() {
        return lines_work(variant, problem);
    }
    let (rows, at_once) = tile(variant, problem);
    let (own, vectors) = (f64::from(variant.own_rows()), f64::from(variant.t2));
    let loads = rows.min(problem.m) * at_once.min(problem.k);
    Work {
        fmas: rows as f64 * vectors * problem.k.next_multiple_of(at_once) as f64,
        // An element of x for each row of a thread, or for each of its places.
        delivered: if variant.name == "gemv_wide" { 1.0 } else { 1.0 / own },
        chains: f64::from(variant.threads) * own * vectors,
        loads: loads as f64,
    }
}

/// Of a block of `gemv_lines`.
fn lines_work(variant: &Variant, problem: &Problem) -> Work {
    let rows = u64::from(variant.rows).min(problem.m);
    let drawn = DRAWN_BYTES[usize::from(variant.takes_a_run(problem))] / problem.dtype.bytes();
    Work {
        fmas: rows as f64 * problem.k as f64,
        delivered: 1.0 + 1.0 / f64::from(variant.own_rows()),
        chains: f64::from(variant.threads * variant.own_rows()),
        loads: (rows * problem.k).min(drawn) as f64,
    }
}

/// What a block of `gemv_lines` draws, as if it were so much on its way, by a piece of each column or by all of several: its ring holds 99 KiB. On an H200
/// on 2026-11-29 119 and 132 blocks were by pieces at 0.45 and 0.67 of the bound where twice as many are at 0.95, by runs 132 at 0.91 (results/trials/lines.csv, `turns`).
const DRAWN_BYTES: [u64; 2] = [16 << 10, 32 << 10];
/// How many times as long as expected without it reads of `gemv_lines` take, the same rows: f32 from 2 GB on 0.93 to 0.97.
const BY_BULK: f64 = 0.955;

/// Instructions that find a column in a stage.
const PLACE: f64 = 4.0;

/// What a warp issues, k whole: loads of A by 16 bytes, Sørensen's by elements; of x an element a step; multiply-adds; and
/// at the end the sums' way through shuffles and shared memory.
pub(super) fn instructions(variant: &Variant, problem: &Problem, constants: &Constants) -> f64 {
    let bytes = problem.dtype.bytes() as f64;
    let (own, at_once, vectors) = (f64::from(variant.own_rows()), f64::from(variant.t3), f64::from(variant.t2));
    if variant.is_gemv_lines() {
        let lanes = problem.m.clamp(1, variant.rows.into()).div_ceil(variant.own_rows().into()).next_multiple_of(32);
        let groups = u64::from(variant.rows / variant.own_rows()) / lanes;
        let step = own * (f64::from(variant.dtype.fmas()) + 1.0) + 1.0 + PLACE;
        return problem.k as f64 / groups as f64 * step;
    }
    let width = if by_elements(variant, problem) { 1.0 } else { WIDE_BYTES / bytes };
    let (_, together) = tile(variant, problem);
    let steps = problem.k.next_multiple_of(together) as f64 / together as f64 * at_once;
    let vector = if variant.name == "gemv_wide" { own } else { vectors };
    let step = own * (vectors * f64::from(variant.dtype.fmas()) + LOAD / width) + vector * LOAD;
    let shuffled = if variant.stages > 1 { own * vectors * HALVINGS * (bytes / 4.0 + 1.0) } else { 0.0 };
    let sums = shuffled + vectors * f64::from(variant.rows) / f64::from(variant.threads).max(WARP) * LOAD;
    steps * (step + constants.step_slots / at_once) + sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::reduced::k_step;
    use crate::{Dtype, Kernel, Machine, VARIANTS, choose};

    fn variant(entry: &str) -> &'static Variant {
        VARIANTS.iter().find(|v| v.entry == entry).expect("an entry")
    }

    /// Each that the model chooses asks for 32 KiB a block at a time, along the columns 16, where there is so much.
    #[test]
    fn a_block_has_16_or_32_kilobytes_in_flight() {
        for v in VARIANTS.iter().filter(|v| v.kernel == Kernel::Gemv && !v.is_sorensens()) {
            let work = work(v, &Problem::column_major(v.dtype, 100_000, 1, 100_000));
            let wanted = if matches!(v.name, "gemv_wide" | "gemv_lines") { 16384.0 } else { 32768.0 };
            assert_eq!(work.loads * v.dtype.bytes() as f64, wanted, "{}", v.entry);
            assert_eq!(k_step(v), v.stages * v.t3);
        }
        let v = variant("dgemv_dots_8x1_m64n1_u2_t256");
        assert_eq!(work(v, &Problem::column_major(Dtype::F64, 5, 1, 33)).loads, 5.0 * 33.0);
        // 50 columns of 10 rows a pass, 4 passes at a time.
        let low = work(variant("dgemv_wide_2x1_m128n1_u4_t256"), &Problem::column_major(Dtype::F64, 10, 1, 2000));
        assert_eq!((low.loads, low.fmas), (2000.0, 20_000.0));
    }

    /// f64 by columns, two rows a thread, eight groups: of 64 steps eight each, of two multiply-adds and two loads with their
    /// addresses; two sums through five halvings of two shuffles and an addition, and a quarter of an element added.
    #[test]
    fn instructions_are_counted() {
        let none = Constants { step_slots: 0.0, ..Constants::FITTED };
        let v = variant("dgemv_columns_2x1_m64n1_u8_t256");
        let problem = Problem::column_major(Dtype::F64, 64, 1, 64);
        assert_eq!(instructions(v, &problem, &none), 8.0 * (2.0 + 2.0 + 2.0) + 30.0 + 0.5);
        // Loads by elements.
        let v = variant("dgemv_several_rows_4x1_m512n1_u4_t128");
        assert_eq!(instructions(v, &problem, &none), 64.0 * (4.0 + 8.0 + 2.0) + 8.0);
    }

    /// A low matrix whose columns follow each other is loaded by 16 bytes, one with gaps by elements, which takes longer.
    #[test]
    fn gaps_in_a_low_matrix_cost_time() {
        let (v, packed) = (variant("dgemv_wide_2x1_m128n1_u4_t256"), Problem::column_major(Dtype::F64, 10, 1, 2000));
        let gaps = Problem { a: crate::Strides::column_major(12), ..packed };
        assert_eq!((detour(v, &packed), detour(v, &gaps)), (1.0, BY_ELEMENTS));
        let [few, more] = [&packed, &gaps].map(|problem| instructions(v, problem, &Constants::FITTED));
        assert!(few < more, "{few} {more}");
    }

    /// Where 16 bytes do not divide the rows a sector of 32 bytes is shared by blocks of 512, and more is lost than by those of 4096, whatever the leading dimension.
    #[test]
    fn columns_that_start_anywhere_share_sectors() {
        let share = |entry, m| detour(variant(entry), &Problem::column_major(Dtype::F32, m, 1, 1000)) - 1.0;
        let (long, short) = ("sgemv_columns_4x1_m1024n1_u8_t256", "sgemv_columns_4x1_m128n1_u8_t256");
        assert_eq!(
            [share(long, 100_001), share(short, 100_001), share(short, 100_004)],
            [1.0 + ASTRAY - 1.0, 1.0 / 16.0, 0.0]
        );
        let gaps =
            Problem { a: crate::Strides::column_major(100_007), ..Problem::column_major(Dtype::F32, 100_004, 1, 1000) };
        assert_eq!(detour(variant(short), &gaps), 1.0);
    }

    /// Long rows come faster to a block that has 4 KiB of each at a time.
    #[test]
    fn long_rows_are_a_blocks() {
        let of = |entry: &str, k| {
            let v = variant(entry);
            detour(v, &Problem { a: crate::Strides::row_major(k), ..Problem::column_major(v.dtype, 20_480, 1, k) })
        };
        let (warps, block) = ("dgemv_dots_8x1_m64n1_u2_t256", "dgemv_dots_8x1_m8n1_u2_t256");
        assert_eq!([of(warps, 1024), of(warps, 1023), of(block, 1024)], [BY_ROWS, 1.0, 1.0]);
        let p =
            Problem { a: crate::Strides::row_major(20_480), ..Problem::column_major(Dtype::F64, 20_480, 1, 20_480) };
        let choice = choose(&p, &Machine::H200, None).expect("an entry");
        assert_eq!(choice.variant.entry, block, "{choice}");
    }

    /// The paper's are chosen by name alone; (a) and (c) have k whole.
    #[test]
    fn sorensens_are_asked_for() {
        for (m, k) in [(20_480, 20_480), (100, 1_000_000), (1_000_000, 100)] {
            let p = Problem::column_major(Dtype::F64, m, 1, k);
            let chosen = choose(&p, &Machine::H200, None).expect("an entry");
            assert!(!chosen.variant.is_sorensens(), "{chosen}");
            let splits = |name| choose(&p, &Machine::H200, Some(name)).map(|choice| choice.splits);
            assert_eq!([splits("gemv_one_thread"), splits("gemv_several_rows")], [Ok(1), Ok(1)]);
            let shared = [splits("gemv_several_threads"), splits("gemv_versatile")];
            assert!(m > 50_000 || shared.iter().all(|splits| splits.as_ref().is_ok_and(|s| *s > 1)), "{shared:?}");
        }
    }
}
