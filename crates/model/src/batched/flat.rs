//! Batches of matrices without gaps, which warps copy whole, as they lie, into shared memory of their own and back.

use super::fragments::{Block, ByWarps, ISSUE_CYCLES, Needs, upright};
use super::{BatchedChoice, BatchedProblem, NEEDED_IN_FLIGHT, is_faster, narrow, scarce};
use crate::launch::batched::{FlatTile, Laid, SharedSide};
use crate::occupancy::by_shared;
use crate::roofline::peak_fma_rate;
use crate::variants::batched::Batched;
use crate::{Dtype, Machine};

/// Most stages of a ring.
const MOST_STAGES: u32 = 4;
/// Most problems that warps take at a time.
const MOST_TOGETHER: u32 = 8;
/// Instructions of a lane for the problems of a stage, for each of them, whatever its size, and for 8 steps of k; for 16 bytes that it
/// copies, for an element of A or B that it loads from shared memory for the matrix units, real or complex, and for one of C.
/// Counted in the code, but for the second, which is fitted as [`BETWEEN`] is.
const STAGE: f64 = 280.0;
const PROBLEM: f64 = 100.0;
const STEPS: f64 = 15.0;
const COPY: f64 = 8.0;
const LOAD: f64 = 2.5;
const COMPLEX_LOAD: f64 = 4.0;
const STORE: f64 = 20.0;
/// How many times as many instructions complex sums are on the vector units, with what holds them up. Fitted, as
/// [`LANE_CYCLES`] is, to 2 GB of problems on an H200 on 2026-11-25.
const COMPLEX_SUM: f64 = 1.4;
/// Cycles from an instruction of a warp to its next on the vector units, whose operands are loaded a step ahead, or whose warps are more.
const LANE_CYCLES: f64 = 2.4;
/// Cycles in which warps wait for what they read of shared memory, and for each other, for the problems of a stage. Fitted, as
/// [`BETWEEN`] is, to 2 GB of problems on an H200.
const WAITS: f64 = 1200.0;
/// How many times as long memory takes where matrices do not begin at multiples of 16 bytes, since their ends are copied by elements, and
/// where lines, which are copied one by one, are no whole sectors. Fitted, as what is said to be so is, to 2 GB of n x n,
/// n = 3 to 32, on an H200 on 2026-11-25.
const BETWEEN: f64 = 1.17;
const BY_HALVES: f64 = 1.15;
/// Bytes that these ends, or these lines' parts of sectors, are as much as for each matrix: of large ones they are less than the above. By eye, to 2 GB
/// of n x n in double precision on an H200 on 2026-11-30, where 21 to 31 columns took 0.88 to 0.92 of what was expected.
const ENDS: f64 = 250.0;
/// Warp instructions that an SM issues a cycle.
const ISSUED: f64 = 4.0;
/// Rows and columns of which lanes of a warp have whole parts, on the matrix units.
const OCTET: u64 = 8;

/// Bytes of shared memory of a block whose ring has so many stages of so many problems.
pub(super) fn shared_bytes(variant: &Batched, p: &BatchedProblem, problems: u32, stages: u32) -> u32 {
    let (bytes, codes) = (narrow(p.dtype.bytes()), p.sides(1).map(|side| side.code));
    let tile = FlatTile::new(
        [narrow(p.m), narrow(p.n), narrow(p.k)],
        codes,
        problems,
        p.reads_c,
        16 / bytes,
        variant.reads_late(),
    );
    tile.shared_len(stages) * bytes
}

/// The launch of an entry, by as many problems and stages as are best; of equals the fewest.
pub(super) fn choose(variant: &'static Batched, p: &BatchedProblem, machine: &Machine) -> BatchedChoice {
    // Strides do for any C; but of c128 the bits are to be those of `batched_fragments`.
    let upright = if p.dtype == Dtype::C128 { upright(p) } else { (*p, false) };
    let by = ByWarps::new(variant, p, machine, upright);
    let factors = factors(variant, &by.of, machine);
    let of = |problems, stages| {
        let block = Block { problems, stages, shared_bytes: shared_bytes(variant, p, problems, stages) };
        (block, by.estimate(block, |by, resident| needs(by, &factors, block, resident)))
    };
    let mut best = of(1, 2);
    // Several are one run where all are.
    let most = if by.sides.iter().all(Laid::is_seamless) { MOST_TOGETHER } else { 1 };
    for (problems, stages) in (1..=most).flat_map(|problems| (2..=MOST_STAGES).map(move |stages| (problems, stages))) {
        if by_shared(machine, shared_bytes(variant, p, problems, stages)) == 0 {
            continue;
        }
        let next = of(problems, stages);
        if is_faster(&next.1, &best.1) {
            best = next;
        }
    }
    by.choice(best.0, best.1)
}

/// What a problem's warps do with A and B.
struct Factors {
    /// Wavefronts of loads from shared memory.
    wavefronts: f64,
    /// Instructions of warps: loads with their addresses, and multiply-adds of the vector units.
    instructions: f64,
    /// Multiply-adds of the units that do them, for all problems, s.
    units_s: f64,
    /// Cycles from an instruction of a warp to its next.
    issue_cycles: f64,
}

fn factors(variant: &Batched, p: &BatchedProblem, machine: &Machine) -> Factors {
    if matches!(p.dtype, Dtype::F64 | Dtype::C128) {
        by_fragments(variant, p, machine)
    } else {
        by_lanes(variant, p, machine)
    }
}

/// On the matrix units: those past the last row, column or step are loaded too.
fn by_fragments(variant: &Batched, p: &BatchedProblem, machine: &Machine) -> Factors {
    let (tm, fmas) = (f64::from(variant.tm), f64::from(p.dtype.fmas()));
    let (across, down) = (f64::from(variant.across), f64::from(variant.parts / variant.across));
    let (m, n, k) = (u64::from(variant.tm), u64::from(variant.tm), p.k.next_multiple_of(OCTET));
    // The products with real and with imaginary parts are one after the other; a fragment has 16 rows: of c128 the real and the imaginary
    // parts of 8.
    let (passes, rows, load) = if p.dtype.is_complex() { (2.0, 8, COMPLEX_LOAD) } else { (1.0, 16, LOAD) };
    let elements = passes * ((m * k) as f64 * across + (k * n) as f64 * down);
    let padded = f64::from(variant.tm.next_multiple_of(rows)) * tm * k as f64 * fmas;
    Factors {
        instructions: elements / 32.0 * load,
        wavefronts: 1.5 * elements * p.dtype.bytes() as f64 / 128.0,
        units_s: padded * p.count as f64 / peak_fma_rate(machine, p.dtype),
        issue_cycles: ISSUE_CYCLES,
    }
}

/// On the vector units: a lane loads an element of A for each of its rows, and one of B for each of its columns, at each step.
fn by_lanes(variant: &Batched, p: &BatchedProblem, machine: &Machine) -> Factors {
    let (k, parts, fmas) = (p.k as f64, f64::from(variant.parts), f64::from(p.dtype.fmas()));
    let (rows, cols) = (f64::from(variant.tm / 8), f64::from(variant.tm / 4 / variant.across));
    let (loads, sums) = (parts * k * (rows + cols), parts * k * rows * cols * fmas);
    let sums = if p.dtype.is_complex() { COMPLEX_SUM * sums } else { sums };
    let units_s = 32.0 * sums * p.count as f64 / peak_fma_rate(machine, p.dtype);
    Factors { instructions: loads + sums, wavefronts: loads, units_s, issue_cycles: LANE_CYCLES }
}

/// What the batch needs, in blocks of which an SM holds so many.
fn needs(by: &ByWarps<'_>, factors: &Factors, block: Block, resident: u32) -> Needs {
    let ByWarps { variant, machine, of: p, sides, bound, .. } = by;
    let Block { problems, stages, .. } = block;
    let (bytes, count) = (p.dtype.bytes() as f64, p.count as f64);
    let reads_c = f64::from(u8::from(p.reads_c));
    let [a, b, c] = sides.each_ref().map(|side| f64::from(side.shared.len * side.shared.lines));
    let loaded = a + b + reads_c * c;
    // What lanes copy, in pieces: of a line as many as of the longest, since so many lanes take it.
    let width = 16.0 / bytes;
    let [of_a, of_b, of_c] = sides.each_ref().map(|side| {
        let SharedSide { len, lines, .. } = side.shared;
        f64::from(lines) * if side.code.wide { 32.0 / width } else { f64::from(len) / width }
    });
    let pieces = of_a + of_b + (1.0 + reads_c) * of_c;
    let each = f64::from(problems);
    let ahead = f64::from(stages - 1);
    // C of a single problem is asked for when its turn begins.
    let loading =
        if problems == 1 && variant.reads_late() { ahead * (a + b) + reads_c * c } else { ahead * each * loaded };
    let in_flight = f64::from(resident) * bytes * loading;
    let sector = narrow(32 / p.dtype.bytes());
    let is_whole = |side: &Laid| side.shared.len % sector == 0;
    let ends = ENDS / ((a + b + c) * bytes / 3.0);
    let between = match (sides.iter().all(|side| side.code.wide), sides.iter().all(is_whole)) {
        (true, true) => 1.0,
        (true, false) => BY_HALVES.min(1.0 + ends),
        (false, _) => BETWEEN.min(1.0 + ends),
    };
    let memory_s = bound.memory_s * between * scarce(NEEDED_IN_FLIGHT, in_flight);
    let sms_s = |cycles: f64| cycles * count / (f64::from(machine.sms) * machine.clock_hz);
    let (parts, results) = (f64::from(variant.parts), f64::from(variant.tm * variant.tm));
    let Factors { instructions: of_factors, wavefronts, units_s, issue_cycles } = *factors;
    // C is in as many wavefronts as its bytes are, or twice as many; what is copied goes in, and C out, once.
    let of_results = (1.5 * (1.0 + reads_c) * results + loaded + 2.0 * c) * bytes / 128.0;
    let shared_s = sms_s(wavefronts + of_results);
    let instructions = (STAGE / each + PROBLEM + STEPS * p.k.div_ceil(OCTET) as f64) * parts
        + (pieces * COPY + results * STORE * (1.0 + reads_c) / 2.0) / 32.0
        + of_factors;
    let arithmetic_s = sms_s(instructions / ISSUED).max(units_s);
    // What is copied, and of a list, is on its way long before.
    let cycles = instructions * issue_cycles * each / parts + WAITS;
    Needs { in_flight, memory_s, shared_s, arithmetic_s, cycles }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::batched::Lie;
    use crate::variants::batched::BATCHED;
    use crate::{Refusal, Strides, choose_batched};

    fn square(dtype: Dtype, n: u64, reads_c: bool) -> BatchedProblem {
        let p = BatchedProblem::column_major(dtype, (n, n, n), 2_000_000_000 / (4 * dtype.bytes() * n * n));
        BatchedProblem { reads_c, ..p }
    }

    /// The same, but listed.
    fn listed(dtype: Dtype, n: u64, reads_c: bool) -> BatchedProblem {
        let p = square(dtype, n, reads_c);
        BatchedProblem { a: Lie { listed: true, ..p.a }, ..p }
    }

    /// Of sizes that others move by parts of sectors, or one latency after another; never more shared memory than an SM has.
    #[test]
    fn they_are_chosen_for_large_sizes() {
        for (dtype, reads_c) in Dtype::ALL.into_iter().flat_map(|dtype| [(dtype, false), (dtype, true)]) {
            for n in [23, 27, 29, 31] {
                let Ok(choice) = choose_batched(&listed(dtype, n, reads_c), &Machine::H200, None) else {
                    panic!("{n}")
                };
                assert_eq!(choice.variant.name, "batched_flat", "{dtype} {n}");
                assert!(choice.estimate.seconds < 2.5 * choice.bound.seconds(), "{n}: {:?}", choice.estimate);
                let shared = choice.shared_bytes * choice.estimate.resident;
                assert!(shared <= Machine::H200.shared_per_sm && choice.stages >= 2, "{dtype} {n}");
            }
            // Of double precision also where all are one run.
            for n in [28, 32].into_iter().filter(|_| matches!(dtype, Dtype::F64 | Dtype::C128)) {
                let choice = choose_batched(&square(dtype, n, reads_c), &Machine::H200, None);
                assert_eq!(choice.map(|choice| choice.variant.name), Ok("batched_flat"), "{dtype} {n}");
            }
            for n in 1..=3 {
                let choice = choose_batched(&listed(dtype, n, reads_c), &Machine::H200, None);
                assert_eq!(choice.map(|choice| choice.variant.name), Ok("batched_any"), "{dtype} {n}");
            }
        }
    }

    /// Several problems at a time where all are one run, which they are not where they are listed, shared or apart.
    #[test]
    fn small_ones_are_taken_together() {
        let p = square(Dtype::F64, 6, true);
        let problems = |p: &BatchedProblem| {
            choose_batched(p, &Machine::H200, Some("batched_flat")).map(|choice| (choice.problems > 1, choice.swapped))
        };
        assert_eq!(problems(&p), Ok((true, false)));
        for a in [Lie { stride: 37, ..p.a }, Lie { stride: 0, ..p.a }, Lie { listed: true, ..p.a }] {
            assert_eq!(problems(&BatchedProblem { a, ..p }), Ok((false, false)));
        }
    }

    /// 24 rows of c128 are whole fragments, of f64 they take two of 16.
    #[test]
    fn fragments_past_the_last_row_are_computed_too() {
        for (dtype, fmas) in [(Dtype::F64, 32.0 * 24.0 * 24.0), (Dtype::C128, 4.0 * 24.0 * 24.0 * 24.0)] {
            let p = BatchedProblem::column_major(dtype, (20, 17, 24), 1000);
            let variant = BATCHED.iter().find(|v| v.name == "batched_flat" && v.dtype == dtype && v.tm == 24);
            let Some(variant) = variant else { panic!("{dtype}") };
            let found = factors(variant, &p, &Machine::H200).units_s * peak_fma_rate(&Machine::H200, dtype) / 1000.0;
            assert!((found / fmas - 1.0).abs() < 1e-9, "{dtype}: {found}, not {fmas}");
        }
    }

    #[test]
    fn refusals_say_why() {
        let p = square(Dtype::F64, 24, false);
        let why = |p: &BatchedProblem, machine: &Machine, name| choose_batched(p, machine, Some(name)).map(|_| ());
        assert_eq!(why(&p, &Machine::A100, "batched_flat"), Err(Refusal::TooOld { needs: (9, 0) }));
        let too_large = Refusal::LargerThanFragments { name: "m", value: 28, most: 24 };
        let larger = square(Dtype::F64, 28, false);
        assert_eq!(why(&larger, &Machine::H200, "dbatched_flat_24x24_t96"), Err(too_large));
        let apart = BatchedProblem { a: Lie { strides: Strides::column_major(25), stride: 600, ..p.a }, ..p };
        assert_eq!(why(&apart, &Machine::H200, "batched_flat"), Err(Refusal::Gaps));
        let single = BatchedProblem { dtype: Dtype::F32, ..p };
        assert_eq!(why(&single, &Machine::H200, "batched_flat"), Ok(()));
        assert_eq!(
            why(&single, &Machine::H200, "dbatched_flat_24x24_t96"),
            Err(Refusal::NoSuchDtype { dtype: Dtype::F32 })
        );
    }
}
