//! Batches whose problems lie one behind the other, which blocks take several at a time by bulk copies.

use super::fragments::{WAVES, upright};
use super::slots::slots;
use super::{BatchedChoice, BatchedEstimate, BatchedProblem, codes, is_faster, narrow};
use crate::launch::batched::{BulkTile, Laid, MOST_PROBLEMS};
use crate::occupancy::resident_blocks;
use crate::roofline::root_of_fourths;
use crate::variants::batched::{Batched, Design};
use crate::{Dtype, Machine, Refusal};

/// Fewest and most stages of a block.
fn possible_stages(variant: &Batched) -> core::ops::RangeInclusive<u32> {
    if variant.design() == Design::Over { 1..=1 } else { 2..=3 }
}

/// Cycles in which a scheduler issues a slot of the listing ([`super::slots`]), of single and of double precision; cycles of a wavefront of shared
/// memory; cycles that a step waits for its loads. Fitted, as the next number is, to the least times of 2 GB of n x n, n = 3 to 32, in blocks of all
/// sizes of all entries on H200s on 2026-11-30 (by-runs.csv in benches/results/trials), the more the nearer to the fastest.
const ISSUED: f64 = 1.2;
const ISSUED_DOUBLE: f64 = 1.4;
const WAVEFRONTS: f64 = 0.7;
const STEP_WAITS: f64 = 25.0;
/// Cycles from asking for a stage to having it, of which turns with several stages wait for their share; C's leaving is in it.
const STAGE_WAITS: f64 = 3500.0;
/// Turns that a launch's first and last ones take longer, where there are that many and others: half a gigabyte takes more than a quarter of the time of
/// two.
const LAST_TURNS: f64 = 0.7;
const FEW_TURNS: u64 = 2;
/// Bytes that the memory moves more for each matrix of a group whose run ends within a sector of so many bytes, which is moved with the next group's, too,
/// and of C is written in two parts.
const SPLIT_SECTOR: f64 = 128.0;
const SECTOR: f64 = 32.0;

/// Units of a problem as the entry sees it: down, and across.
fn units(variant: &Batched, of: &BatchedProblem) -> (u32, u32) {
    (narrow(of.m).div_ceil(variant.tm), narrow(of.n).div_ceil(variant.tn))
}

/// Elements that a lane loads at a time.
fn piece(variant: &Batched) -> u32 {
    let width = 16 / narrow(variant.dtype.bytes());
    if variant.tm % width == 0 { width } else { 1 }
}

/// The fewest problems whose matrices are all whole pieces of 16 bytes.
fn least_problems(of: &BatchedProblem) -> u32 {
    let bytes = narrow(of.dtype.bytes());
    let is_whole = |elements: u64, problems: u32| narrow(elements) * bytes * problems % 16 == 0;
    let all = |problems: &u32| [of.m * of.k, of.k * of.n, of.m * of.n].iter().all(|len| is_whole(*len, *problems));
    [1, 2].into_iter().find(all).unwrap_or(4)
}

/// The most problems, all of whose matrices are whole pieces, of which so many threads have a unit each.
fn most_problems(variant: &Batched, of: &BatchedProblem, threads: u32) -> Option<u32> {
    let ((down, across), least) = (units(variant, of), least_problems(of));
    let most = threads / (down * across) / least * least;
    (most > 0).then_some(most)
}

/// Threads of a block that has so many problems a stage: each of them has a unit.
fn threads(variant: &Batched, of: &BatchedProblem, problems: u32) -> u32 {
    let (down, across) = units(variant, of);
    (problems * down * across).next_multiple_of(32)
}

/// Bytes of shared memory of its block.
fn shared_bytes(variant: &Batched, of: &BatchedProblem, problems: u32, stages: u32) -> u32 {
    let bytes = narrow(of.dtype.bytes());
    let sizes = [narrow(of.m), narrow(of.n), narrow(of.k)];
    let tile = if variant.design() == Design::Over { BulkTile::over } else { BulkTile::new };
    tile(sizes, problems, 16 / bytes).shared_bytes(stages, bytes)
}

/// Threads and bytes of shared memory of the smallest block.
pub(super) fn least_block(variant: &Batched, p: &BatchedProblem) -> (u32, u32) {
    let (of, _) = upright(p);
    let problems = least_problems(&of);
    (threads(variant, &of, problems), shared_bytes(variant, &of, problems, *possible_stages(variant).start()))
}

/// Why it cannot compute a batch, by how it lies and by its sizes.
pub(super) fn reasons(variant: &Batched, p: &BatchedProblem) -> [Option<Refusal>; 3] {
    let (of, swapped) = upright(p);
    let is_run = |laid: &Laid| {
        let line = laid.shared.lines <= 1 || laid.shared.len <= 1;
        laid.is_seamless() && laid.code.skew == 0 && (laid.code.by_columns || line)
    };
    let runs = (!of.sides(1).iter().all(is_run)).then_some(Refusal::NotRuns);
    let (m, n) = if swapped { ("n", "m") } else { ("m", "n") };
    let small = [(m, of.m, variant.tm), (n, of.n, variant.tn)]
        .into_iter()
        .find(|(_, value, least)| *value < u64::from(*least))
        .map(|(name, value, least)| Refusal::SmallerThanTile { name, value, least });
    let piece = piece(variant);
    let is_whole = |value: u64| value % u64::from(piece) == 0;
    let of_sizes = if swapped { [1, piece, piece] } else { [piece, 1, piece] };
    let pieces = (!is_whole(of.m) || !is_whole(of.k)).then_some(Refusal::NotWhole { of: of_sizes });
    [small, runs, pieces]
}

/// The launch of an entry, by as many problems and stages as are best; of equals the fewest.
pub(super) fn choose(variant: &'static Batched, p: &BatchedProblem, machine: &Machine) -> Option<BatchedChoice> {
    let (of, swapped) = upright(p);
    let (sides, bound) = (of.sides(1), p.bound(machine));
    let by = ByUnits { variant, of: &of, machine, memory_s: bound.memory_s, waves: Waves::new(variant, &of) };
    let mut best: Option<BatchedChoice> = None;
    // The fewest, for of large ones others may not fit, and as many as so many warps have threads for.
    let filling = (1..=variant.threads / 32).filter_map(|warps| most_problems(variant, &of, 32 * warps));
    let mut before = 0;
    for problems in core::iter::once(least_problems(&of)).chain(filling) {
        let threads = threads(variant, &of, problems);
        if problems == before || threads > variant.threads {
            continue;
        }
        before = problems;
        for stages in possible_stages(variant) {
            let shared_bytes = shared_bytes(variant, &of, problems, stages);
            let resident = resident_blocks(machine, threads, variant.registers(machine), shared_bytes);
            if resident == 0 {
                continue;
            }
            let groups = p.count.div_ceil(u64::from(problems));
            let turns = groups.div_ceil(u64::from(resident * machine.sms));
            let estimate = by.estimate([problems, stages, resident], turns);
            if best.as_ref().is_some_and(|best| !is_faster(&estimate, &best.estimate)) {
                continue;
            }
            let places = u64::from(resident) * u64::from(machine.sms);
            let blocks = groups.min(places * (turns / SHORTEST).clamp(1, WAVES));
            best = Some(BatchedChoice {
                problem: *p,
                variant,
                problems,
                stages,
                blocks: blocks.min(MOST_PROBLEMS) as u32,
                threads,
                shared_bytes,
                swapped,
                sides,
                codes: codes(&of, &sides),
                bound,
                estimate,
            });
        }
    }
    best
}

/// Fewest turns of a block, whose first one waits for memory.
const SHORTEST: u64 = 8;

/// An entry and the batch as it sees it.
struct ByUnits<'a> {
    variant: &'static Batched,
    of: &'a BatchedProblem,
    machine: &'a Machine,
    memory_s: f64,
    waves: Waves,
}

impl ByUnits<'_> {
    /// What is expected of blocks with so many problems and stages, of which an SM holds so many, in so many turns.
    fn estimate(&self, [problems, stages, resident]: [u32; 3], turns: u64) -> BatchedEstimate {
        let ByUnits { variant, of, machine, .. } = *self;
        let (k, bytes, count) = (of.k as f64, of.dtype.bytes() as f64, of.count as f64);
        let is_double = matches!(of.dtype, Dtype::F64 | Dtype::C128);
        let reads_c = f64::from(u8::from(of.reads_c));
        let (each, ahead) = (f64::from(problems), f64::from((stages - 1).max(1)));
        let warps = f64::from(threads(variant, of, problems) / 32);
        let fmas = f64::from(variant.tm * variant.tn * of.dtype.fmas());
        // The units of double precision take two cycles for a warp.
        let (least, a_slot) = if is_double { (2.0, ISSUED_DOUBLE) } else { (1.0, ISSUED) };
        let issued = fmas * slots(variant).max(least) * a_slot;
        let (mk, kn, mn) = ((of.m * of.k) as f64, (of.k * of.n) as f64, (of.m * of.n) as f64);
        let Waves { step: of_step, of_c } = self.waves;
        let copied = (mk + kn + mn * (1.0 + reads_c)) * bytes / 128.0;
        let wavefronts = warps * (k * of_step + of_c * (1.0 + reads_c)) / each + copied;
        let sms_s = |cycles: f64| cycles * count / (f64::from(machine.sms) * machine.clock_hz);
        let with_c = if variant.design() == Design::Over { 0.0 } else { reads_c * mn };
        let in_flight = f64::from(resident) * ahead * each * (mk + kn + with_c) * bytes;
        let runs = [mk, kn, mn].map(|len| len * bytes * each);
        let split = runs.iter().filter(|run| **run % SECTOR != 0.0).count() as f64 * SPLIT_SECTOR;
        let memory_s = self.memory_s * (1.0 + split / runs.iter().sum::<f64>());
        let shared_s = sms_s(wavefronts * WAVEFRONTS);
        let arithmetic_s = sms_s(k * issued * warps / each / 4.0);
        let turns_s = turns as f64 * (k * (issued + STEP_WAITS) + STAGE_WAITS / ahead) / machine.clock_hz;
        // Nothing of it is done by the same parts of an SM.
        let last = if turns > FEW_TURNS { LAST_TURNS / turns as f64 } else { 0.0 };
        let seconds = root_of_fourths([memory_s, shared_s, arithmetic_s, turns_s]) * (1.0 + last);
        let seconds = seconds + machine.launch_s + machine.memory_latency_s;
        BatchedEstimate { resident, in_flight, memory_s, shared_s, arithmetic_s, turns_s, seconds }
    }
}

/// Wavefronts in which shared memory hands a warp what it reads, counted from where its lanes' units begin.
#[derive(Clone, Copy)]
struct Waves {
    /// Of A and B at a step.
    step: f64,
    /// Of all of C that it has.
    of_c: f64,
}

impl Waves {
    /// Warps that are looked at.
    const MOST: u32 = 8;

    fn new(variant: &Batched, of: &BatchedProblem) -> Waves {
        let [m, n, k] = [narrow(of.m), narrow(of.n), narrow(of.k)];
        let ((down, across), piece) = (units(variant, of), piece(variant));
        let each = down * across;
        let bytes = narrow(of.dtype.bytes());
        let warps = (each * 2).div_ceil(32).min(Self::MOST);
        let mut found = [0; 3];
        for warp in 0..warps {
            let places = |at: &dyn Fn(u32, u32, u32) -> u32| -> [u32; 32] {
                core::array::from_fn(|lane| {
                    let unit = 32 * warp + lane as u32;
                    let (problem, rest) = (unit / each, unit % each);
                    let row = (rest % down * variant.tm).min(m - variant.tm);
                    let col = (rest / down * variant.tn).min(n - variant.tn);
                    at(problem, row, col) * bytes
                })
            };
            found[0] += wavefronts(places(&|problem, row, _| problem * m * k + row), piece * bytes);
            found[1] += wavefronts(places(&|problem, _, col| problem * k * n + col * k), piece * bytes);
            found[2] += wavefronts(places(&|problem, row, col| problem * m * n + col * m + row), piece * bytes);
        }
        let [a, b, c] = found.map(|found| f64::from(found) / f64::from(warps) / f64::from(piece));
        let (tm, tn) = (f64::from(variant.tm), f64::from(variant.tn));
        Waves { step: a * tm + b * tn, of_c: c * tm * tn }
    }
}

/// Wavefronts of a load of so many bytes by each lane of a warp: as many as different words meet in a bank, of 4 bytes for all lanes at a
/// time, of 8 for half of them, of 16 for a quarter.
fn wavefronts(places: [u32; 32], bytes: u32) -> u32 {
    let words = bytes / 4;
    let mut found = 0;
    for lanes in places.chunks((32 / words) as usize) {
        let mut most = 0;
        for bank in 0..32 {
            let mut seen: [u32; 32] = [0; 32];
            let mut different = 0;
            for place in lanes {
                let first = place / 4;
                let word = first + (bank + 32 - first % 32) % 32;
                if word < first + words && !seen[..different].contains(&word) {
                    seen[different] = word;
                    different += 1;
                }
            }
            most = most.max(different as u32);
        }
        found += most;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::batched::Lie;
    use crate::variants::batched::BATCHED;
    use crate::{Strides, choose_batched};

    fn entries() -> impl Iterator<Item = &'static Batched> {
        BATCHED.iter().filter(|variant| variant.design().is_by_runs())
    }

    fn forced(p: &BatchedProblem, entry: &str) -> Result<BatchedChoice, Refusal> {
        choose_batched(p, &Machine::H200, Some(entry))
    }

    /// As many as different words meet in a bank: none of the same word, half a warp at a time of 8 bytes, a quarter of 16.
    #[test]
    fn wavefronts_are_counted_bank_by_bank() {
        let apart = |bytes: u32| core::array::from_fn(|lane| lane as u32 * bytes);
        for (places, bytes, expected) in [
            (apart(4), 4, 1),
            (apart(0), 4, 1),
            (apart(12), 4, 1),
            (apart(8), 4, 2),
            (apart(128), 4, 32),
            (apart(8), 8, 2),
            (apart(0), 8, 2),
            (apart(16), 8, 4),
            (apart(24), 8, 2),
            (apart(16), 16, 4),
            (apart(32), 16, 8),
            (core::array::from_fn(|lane| lane as u32 / 16 * 64), 4, 1),
            (core::array::from_fn(|lane| lane as u32 / 8 * 128), 4, 4),
        ] {
            assert_eq!(wavefronts(places, bytes), expected, "{places:?} {bytes}");
        }
    }

    /// A thread for each unit of a stage, whole pieces of 16 bytes in each run, and no more shared memory than an SM has.
    #[test]
    fn stages_are_whole_pieces_and_blocks_have_a_thread_for_each_unit() {
        let mut taken = 0;
        for variant in entries() {
            for (m, n, k) in (1..=32).flat_map(|n| [(n, n, n), (n, 33 - n, 7), (32, n, 5)]) {
                let p = BatchedProblem::column_major(variant.dtype, (m, n, k), 1_000_000);
                let Ok(choice) = forced(&p, variant.entry) else { continue };
                let units = m.div_ceil(variant.tm.into()) * n.div_ceil(variant.tn.into());
                assert_eq!(u64::from(choice.threads), (u64::from(choice.problems) * units).next_multiple_of(32));
                assert!(choice.threads <= variant.threads, "{} {m} {n} {k}", variant.entry);
                for len in [m * k, k * n, m * n] {
                    assert_eq!(len * u64::from(choice.problems) * variant.dtype.bytes() % 16, 0, "{m} {n} {k}");
                }
                let shared = choice.shared_bytes * choice.estimate.resident;
                assert!(shared <= Machine::H200.shared_per_sm && choice.estimate.resident > 0, "{} {n}", variant.entry);
                taken += 1;
            }
        }
        assert!(taken > 700, "{taken}");
    }

    /// Of small problems that lie so, of all types, at what the memory takes.
    #[test]
    fn they_are_chosen_for_small_problems() {
        for (dtype, n, reads_c) in
            Dtype::ALL.into_iter().flat_map(|dtype| (3..=11).flat_map(move |n| [(dtype, n, false), (dtype, n, true)]))
        {
            let p = BatchedProblem::column_major(dtype, (n, n, n), 2_000_000_000 / (4 * dtype.bytes() * n * n));
            let p = BatchedProblem { reads_c, ..p };
            let Ok(choice) = choose_batched(&p, &Machine::H200, None) else { panic!("{dtype} {n}") };
            assert!(choice.variant.design().is_by_runs(), "{dtype} {n} {reads_c}: {}", choice.variant.entry);
            let times = choice.estimate.seconds / choice.bound.seconds();
            assert!((1.0..1.25).contains(&times), "{dtype} {n} {reads_c}: {times}");
        }
    }

    /// Large ones whose sides tiles divide, where rings have room for few lanes.
    #[test]
    fn one_stage_is_chosen_for_large_problems() {
        for (dtype, n) in [
            (Dtype::C64, 19),
            (Dtype::C64, 20),
            (Dtype::C64, 21),
            (Dtype::C64, 28),
            (Dtype::F32, 25),
            (Dtype::F32, 27),
            (Dtype::F64, 26),
            (Dtype::C128, 17),
            (Dtype::C128, 19),
        ] {
            let p = BatchedProblem::column_major(dtype, (n, n, n), 2_000_000_000 / (4 * dtype.bytes() * n * n));
            let choice = choose_batched(&p, &Machine::H200, None);
            assert!(
                choice.is_ok_and(|choice| choice.variant.design() == Design::Over && choice.stages == 1),
                "{dtype} {n}: {choice:?}"
            );
        }
    }

    /// A run that ends within a sector moves that sector twice; a launch of a turn or two has no others that its first and last could be longer than.
    #[test]
    fn ends_of_runs_and_of_launches_count() {
        let of = BatchedProblem::column_major(Dtype::F32, (17, 17, 17), 1_000_000);
        let Some(variant) = entries().find(|v| v.entry == "sbatched_over_9x4_t128") else { panic!("it is gone") };
        let memory_s = of.bound(&Machine::H200).memory_s;
        let by = ByUnits { variant, of: &of, machine: &Machine::H200, memory_s, waves: Waves::new(variant, &of) };
        // 8 problems are 9248 bytes, which are whole sectors, 12 are 13872.
        let [whole, split] = [8, 12].map(|problems| by.estimate([problems, 1, 4], 100).memory_s);
        assert!(whole == memory_s && (split / whole - 1.0 - 128.0 / 13872.0).abs() < 1e-9, "{whole} {split}");
        let [two, three] = [2, 3].map(|turns| by.estimate([8, 1, 4], turns).seconds);
        assert!(three > two + 0.99 * LAST_TURNS / 3.0 * memory_s, "{two} {three}");
    }

    /// C that is larger than A and B together has its place, all of it in whole pieces.
    #[test]
    fn a_stage_holds_the_larger_of_c_and_its_factors() {
        for (sizes, problems, expected) in
            [([8, 8, 8], 3, 2 * 192), ([9, 7, 2], 4, 252), ([9, 7, 3], 1, 64), ([5, 3, 1], 1, 16)]
        {
            let tile = BulkTile::over(sizes, problems, 4);
            assert_eq!((tile.c_at, tile.stage_len), (0, expected), "{sizes:?}");
        }
    }

    /// As few problems as are whole pieces, if no more fit.
    #[test]
    fn few_problems_are_taken_where_many_do_not_fit() {
        let small = Machine { shared_per_block: 99 << 10, ..Machine::H200 };
        let p = BatchedProblem::column_major(Dtype::C128, (3, 2, 32), 1000);
        let choice = choose_batched(&p, &small, Some("zbatched_bulk_3x2_t128"));
        assert!(matches!(choice, Ok(choice) if choice.shared_bytes <= 99 << 10 && choice.problems < 32), "{choice:?}");
    }

    /// By rows it is the transposed product.
    #[test]
    fn batches_by_rows_are_transposed() {
        let p = BatchedProblem::column_major(Dtype::F32, (9, 13, 11), 1000);
        let rows = |rows, cols| Lie::packed(cols, rows).t();
        let by_rows = BatchedProblem { a: rows(9, 11), b: rows(11, 13), c: rows(9, 13), ..p };
        let swapped = |p: &BatchedProblem| forced(p, "batched_bulk").map(|choice| choice.swapped);
        assert_eq!((swapped(&p), swapped(&by_rows)), (Ok(false), Ok(true)));
        for mixed in [BatchedProblem { a: p.a, ..by_rows }, BatchedProblem { c: p.c, ..by_rows }] {
            assert_eq!(swapped(&mixed), Err(Refusal::NotRuns));
        }
    }

    #[test]
    fn refusals_say_why() {
        let p = BatchedProblem::column_major(Dtype::F64, (9, 9, 9), 1000);
        let why = |p: &BatchedProblem, entry| forced(p, entry).map(|_| ());
        assert_eq!(why(&p, "batched_bulk"), Ok(()));
        let old = choose_batched(&p, &Machine::A100, Some("batched_bulk")).map(|_| ());
        assert_eq!(old, Err(Refusal::TooOld { needs: (9, 0) }));
        for a in [
            Lie { stride: 82, ..p.a },
            Lie { stride: 0, ..p.a },
            Lie { listed: true, ..p.a },
            Lie { skew: 1, ..p.a },
            Lie { strides: Strides::column_major(10), stride: 90, ..p.a },
        ] {
            assert_eq!(why(&BatchedProblem { a, ..p }, "batched_bulk"), Err(Refusal::NotRuns), "{a:?}");
        }
        let pieces = Refusal::NotWhole { of: [2, 1, 2] };
        assert_eq!(why(&p, "dbatched_bulk_2x2_t256"), Err(pieces));
        let small = BatchedProblem::column_major(Dtype::F64, (9, 2, 9), 1000);
        let least = Refusal::SmallerThanTile { name: "n", value: 2, least: 3 };
        assert_eq!(why(&small, "dbatched_bulk_3x3_t256"), Err(least));
        let by_rows = |dtype, (m, n, k): (u64, u64, u64)| {
            let rows = |rows: u64, cols: u64| Lie::packed(cols, rows).t();
            let p = BatchedProblem::column_major(dtype, (m, n, k), 1000);
            BatchedProblem { a: rows(m, k), b: rows(k, n), c: rows(m, n), ..p }
        };
        let of = |sizes, entry| why(&by_rows(Dtype::F64, sizes), entry);
        assert_eq!(of((8, 9, 8), "dbatched_bulk_2x2_t256"), Err(Refusal::NotWhole { of: [1, 2, 2] }));
        let least = Refusal::SmallerThanTile { name: "n", value: 2, least: 5 };
        assert_eq!(of((9, 2, 9), "dbatched_bulk_5x4_t128"), Err(least));
        // Four problems, whose runs are whole pieces, have more units than the entry has threads.
        let many = BatchedProblem::column_major(Dtype::F32, (31, 31, 31), 1000);
        assert_eq!(why(&many, "sbatched_bulk_3x3_t256"), Err(Refusal::Threads { threads: 512 }));
    }
}
