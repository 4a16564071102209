//! Which kernel computes a batch of small products, in which tiles, and why.
//!
//! Every size up to [`LARGEST`] is bound by memory on the GPUs of the table, so a choice is one of what keeps the memory busy: how many
//! problems a tile has, how many stages are on their way, how many blocks an SM holds, and whether a block is done with a
//! tile before the next one is there.

use crate::launch::batched::{CONJ_BIT, Laid, Lie, MOST_PROBLEMS, Tile, laid};
use crate::occupancy::{residency, resident_blocks};
use crate::paper::batched as paper;
use crate::roofline::{Bound, fma_rate, peak_fma_rate, root_of_fourths};
use crate::variants::batched::{BATCHED, Batched, Design};
use crate::{Dtype, Machine, Refusal};

mod fragments;
mod warps;

/// The largest m, n and k of batches.
pub const LARGEST: u64 = 32;

/// Bytes that an SM of an H200 must have in flight to read at its ceiling, by copies into shared memory: three times what the
/// latency of an idle memory asks for.
const NEEDED_IN_FLIGHT: f64 = 64e3;

/// A batch: C_i (m x n) ← α A_i (m x k) B_i (k x n) + β C_i.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BatchedProblem {
    /// Element type.
    pub dtype: Dtype,
    /// Rows of C.
    pub m: u64,
    /// Columns of C.
    pub n: u64,
    /// Columns of A.
    pub k: u64,
    /// Problems.
    pub count: u64,
    /// A.
    pub a: Lie,
    /// B.
    pub b: Lie,
    /// C.
    pub c: Lie,
    /// Whether β is not 0.
    pub reads_c: bool,
    /// Whether A is the conjugate of what is stored.
    pub conj_a: bool,
    /// Whether B is.
    pub conj_b: bool,
}

impl BatchedProblem {
    /// Packed column-major matrices; C is not read.
    pub const fn column_major(dtype: Dtype, (m, n, k): (u64, u64, u64), count: u64) -> Self {
        let (a, b, c) = (Lie::packed(m, k), Lie::packed(k, n), Lie::packed(m, n));
        BatchedProblem { dtype, m, n, k, count, a, b, c, reads_c: false, conj_a: false, conj_b: false }
    }

    /// What no kernel can beat: each matrix read once, those that all problems share once in all, C written once.
    pub fn bound(&self, machine: &Machine) -> Bound {
        let e = self.dtype.bytes();
        let of = |lie: &Lie, len: u64| {
            let count = if !lie.listed && lie.stride == 0 { self.count.min(1) } else { self.count };
            len.saturating_mul(e).saturating_mul(count)
        };
        let write_bytes = of(&Lie { stride: 1, ..self.c }, self.m * self.n);
        let factors = of(&self.a, self.m * self.k).saturating_add(of(&self.b, self.k * self.n));
        let read_bytes = factors.saturating_add(if self.reads_c { write_bytes } else { 0 });
        let fmas = (self.m * self.n * self.k) as f64 * self.count as f64 * f64::from(self.dtype.fmas());
        Bound {
            read_bytes,
            write_bytes,
            flops: 2.0 * fmas,
            memory_s: read_bytes as f64 / machine.read_bytes_per_s + write_bytes as f64 / machine.write_bytes_per_s,
            arithmetic_s: fmas / peak_fma_rate(machine, self.dtype),
        }
    }
}

/// What a batch is expected to take, and of what: the fourth root of the sum of the times' fourth powers, in which the largest counts
/// most, times what tiles lose by doing all of that at the same time, and a launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchedEstimate {
    /// Blocks an SM holds.
    pub resident: u32,
    /// Bytes that they have in flight, an SM, at most.
    pub in_flight: f64,
    /// Memory, at what is in flight, s.
    pub memory_s: f64,
    /// Accesses of shared memory, s.
    pub shared_s: f64,
    /// Multiply-adds, those of sums that are not stored among them, s.
    pub arithmetic_s: f64,
    /// What a block does one thing after the other, all blocks at a time, s.
    pub turns_s: f64,
    /// All of it, s.
    pub seconds: f64,
}

/// How a batch is computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchedChoice {
    /// The batch.
    pub problem: BatchedProblem,
    /// The entry.
    pub variant: &'static Batched,
    /// Problems a tile.
    pub problems: u32,
    /// Stages.
    pub stages: u32,
    /// Blocks, which take tiles in turn.
    pub blocks: u32,
    /// Threads a block.
    pub threads: u32,
    /// Dynamic shared memory a block, bytes.
    pub shared_bytes: u32,
    /// Whether the transposed product is computed: the entry's m, n, A and B are n, m, Bᵀ and Aᵀ, and its C is Cᵀ.
    pub swapped: bool,
    /// A, B and C as the entry is told of them, in its order.
    pub sides: [Laid; 3],
    /// The same, and the conjugates.
    pub codes: u32,
    /// What no kernel can beat.
    pub bound: Bound,
    /// What this one is expected to do.
    pub estimate: BatchedEstimate,
}

/// The entry, the tile and the launch for a batch of at least one problem, all dimensions of C at least 1. `force` names a
/// variant (`batched_packed`) or an entry.
///
/// # Errors
/// A [`Refusal`] where no entry takes it.
pub fn choose_batched(p: &BatchedProblem, machine: &Machine, force: Option<&str>) -> Result<BatchedChoice, Refusal> {
    for (name, value) in [("m", p.m), ("n", p.n), ("k", p.k)] {
        if value > LARGEST {
            return Err(Refusal::LargerThanBatches { name, value });
        }
    }
    let named = |v: &Batched| force.is_none_or(|name| name == v.name || name == v.entry);
    if !BATCHED.iter().any(named) {
        return Err(Refusal::UnknownVariant);
    }
    let mut refusal = Refusal::NoSuchDtype { dtype: p.dtype };
    let mut best: Option<BatchedChoice> = None;
    // The paper's are there to be named.
    let in_question = |v: &&Batched| named(v) && v.dtype == p.dtype && (force.is_some() || v.design().is_ours());
    for variant in BATCHED.iter().filter(in_question) {
        if machine.compute_capability < variant.since() {
            refusal = Refusal::TooOld { needs: variant.since() };
            continue;
        }
        match choose_tile(variant, p, machine) {
            Ok(choice) if best.is_none_or(|best| is_better(&choice, &best)) => best = Some(choice),
            Ok(_) => {}
            Err(why) => refusal = why,
        }
    }
    best.ok_or(refusal)
}

/// Whether one is faster than the other, or at the same time has the shorter turns.
fn is_better(one: &BatchedChoice, other: &BatchedChoice) -> bool {
    let (a, b) = (&one.estimate, &other.estimate);
    a.seconds < b.seconds || (a.seconds == b.seconds && a.turns_s < b.turns_s)
}

/// The best tile of an entry.
fn choose_tile(variant: &'static Batched, p: &BatchedProblem, machine: &Machine) -> Result<BatchedChoice, Refusal> {
    match variant.design() {
        Design::Fragments => return fragments::choose(variant, p, machine),
        Design::Warps => return warps::choose(variant, p, machine),
        _ => {}
    }
    let narrow = |length: u64| u32::try_from(length).unwrap_or(u32::MAX);
    let (m, n, k) = (narrow(p.m), narrow(p.n), narrow(p.k));
    let (owners, width) = (variant.owners(m, n, k), narrow(16 / p.dtype.bytes()));
    if owners > variant.threads {
        return Err(Refusal::Threads { threads: owners });
    }
    let lay = |lie, shape| laid(lie, shape, p.count, width, owners);
    let sides = [lay(p.a, (m, k)), lay(p.b, (k, n)), lay(p.c, (m, n))];
    if variant.is_packed() && !sides.iter().all(Laid::is_packed) {
        return Err(Refusal::NotPacked);
    }
    if variant.design() != Design::Tile {
        return papers(variant, p, machine, (sides, owners));
    }
    let mut best: Option<BatchedChoice> = None;
    let mut bytes = 0;
    for problems in tiles(variant.threads / owners).take_while(|problems| u64::from(*problems) <= p.count.max(1)) {
        for stages in [2, 3, 4] {
            let Some(choice) = launch(variant, p, machine, (sides, owners), problems, stages) else {
                bytes = bytes.max(Tile::new(sides.map(|s| s.shared), 1, p.reads_c, width).shared_len(2));
                continue;
            };
            if best.is_none_or(|best| is_better(&choice, &best)) {
                best = Some(choice);
            }
        }
    }
    best.ok_or(Refusal::SharedMemory { bytes: bytes.saturating_mul(narrow(p.dtype.bytes())) })
}

/// Numbers of problems a tile: as many as a block's threads compute at a time, fewer, and some multiples.
fn tiles(at_a_time: u32) -> impl Iterator<Item = u32> {
    (1..=at_a_time).chain((2..=MOST_TURNS).map(move |turns| turns * at_a_time))
}

/// Most turns in which the threads of a block take the problems of a tile.
const MOST_TURNS: u32 = 8;

/// An entry with a tile; `None` if an SM holds no block of it.
fn launch(
    variant: &'static Batched,
    p: &BatchedProblem,
    machine: &Machine,
    (sides, owners): ([Laid; 3], u32),
    problems: u32,
    stages: u32,
) -> Option<BatchedChoice> {
    let bytes = p.dtype.bytes() as u32;
    let tile = Tile::new(sides.map(|side| side.shared), problems, p.reads_c, 16 / bytes);
    let shared_bytes = tile.shared_len(stages).checked_mul(bytes)?;
    let resident = resident_blocks(machine, variant.threads, variant.registers(machine), shared_bytes);
    if resident == 0 || residency(machine, variant.threads, variant.registers(machine), shared_bytes).by_shared == 0 {
        return None;
    }
    let tiles = p.count.div_ceil(u64::from(problems));
    let blocks = tiles.min(u64::from(resident) * u64::from(machine.sms)).min(MOST_PROBLEMS) as u32;
    let codes = codes(p, &sides);
    let bound = p.bound(machine);
    let estimate = estimate(variant, p, machine, (&sides, owners), (problems, stages, resident));
    let threads = variant.threads;
    Some(BatchedChoice {
        problem: *p,
        variant,
        problems,
        stages,
        blocks,
        threads,
        shared_bytes,
        swapped: false,
        sides,
        codes,
        bound,
        estimate,
    })
}

/// How the operands lie, as an entry is told.
fn codes(p: &BatchedProblem, sides: &[Laid; 3]) -> u32 {
    let [a, b, c] = sides.map(|side| side.code.pack());
    a | b << 8 | c << 16 | (u32::from(p.conj_a) | u32::from(p.conj_b) << 1) << CONJ_BIT
}

/// The launch of an entry of MAGMA's: the paper's products a block and threads, whole warps of them.
fn papers(
    variant: &'static Batched,
    p: &BatchedProblem,
    machine: &Machine,
    (sides, owners): ([Laid; 3], u32),
) -> Result<BatchedChoice, Refusal> {
    let (m, n, k) = (p.m as u32, p.n as u32, p.k as u32);
    let (bytes, design) = (p.dtype.bytes() as u32, variant.design());
    let problems = match design {
        Design::Aggregated => paper::products_per_block(m.max(n)).min(variant.threads / owners).max(1),
        _ => 1,
    };
    let threads = (problems * owners).next_multiple_of(32);
    let elements = if design == Design::Blocked { 2 * owners } else { problems * (m * k + k * n) };
    let shared_bytes = elements * bytes;
    let resident = resident_blocks(machine, threads, variant.registers(machine), shared_bytes);
    if resident == 0 {
        return Err(Refusal::SharedMemory { bytes: shared_bytes });
    }
    let tiles = p.count.div_ceil(u64::from(problems)).min(MOST_PROBLEMS);
    let places = u64::from(resident) * u64::from(machine.sms);
    let blocks = if design == Design::Prefetch { tiles.min(places) } else { tiles } as u32;
    let (codes, bound) = (codes(p, &sides), p.bound(machine));
    let estimate = estimate(variant, p, machine, (&sides, owners), (problems, 2, resident));
    let stages = 1;
    Ok(BatchedChoice {
        problem: *p,
        variant,
        problems,
        stages,
        blocks,
        threads,
        shared_bytes,
        swapped: false,
        sides,
        codes,
        bound,
        estimate,
    })
}

/// Cycles of an access to shared memory until its value is there.
const SHARED_CYCLES: f64 = 30.0;
/// Cycles a copy takes of a warp that has several one after the other: a dozen instructions, of layouts with gaps twice as many.
const COPY_CYCLES: f64 = 30.0;

/// Cycles a step takes longer for each real sum of a thread whose tile reaches past the matrix, where sums have conditions. On an H200
/// on 2026-11-22, m = n = k of 3 and 5 by 4 x 4 sums took 4 to 10 times as long as without.
const GUARD_CYCLES: f64 = 12.0;

/// How many times as long tiles take because their threads copy, multiply, and wait for each other. It says nothing of which tile is best.
///
/// # Source
/// An H200 on 2026-11-22, 2 GB of problems, m = n = k: medians of what sizes took against the estimate without it.
fn at_the_same_time(dtype: Dtype, side: u64) -> f64 {
    match (dtype, side) {
        (Dtype::C64, ..=8) => 1.25,
        (Dtype::C64, ..=12) => 1.4,
        (Dtype::C64, _) => 1.7,
        (_, ..=8) => 1.15,
        (_, ..=12) => 1.2,
        (_, _) => 1.3,
    }
}

fn estimate(
    variant: &Batched,
    p: &BatchedProblem,
    machine: &Machine,
    (sides, owners): (&[Laid; 3], u32),
    (problems, stages, resident): (u32, u32, u32),
) -> BatchedEstimate {
    let (bytes, count, k) = (p.dtype.bytes() as f64, p.count as f64, p.k as f64);
    let (each, owners) = (f64::from(problems), f64::from(owners));
    let (sms, turn) = (f64::from(machine.sms), u64::from(machine.sms * resident));
    let (tm, tn) = (f64::from(variant.tm), f64::from(variant.tn));
    let len = |side: &Laid| f64::from(side.shared.len * side.shared.lines);
    let loaded = len(&sides[0]) + len(&sides[1]) + if p.reads_c { len(&sides[2]) } else { 0.0 };
    // What is multiplied next is there by then, in part.
    let in_flight = f64::from(resident) * (f64::from(stages) - 1.5) * each * loaded * bytes;
    let memory_s = p.bound(machine).memory_s * (NEEDED_IN_FLIGHT / in_flight).max(1.0);
    // A warp's access of 4 or 8 bytes a lane is one of the memory's, since lanes share what they read; of 16 two.
    let warps = f64::from((problems * variant.owners(p.m as u32, p.n as u32, p.k as u32)).div_ceil(32)) / each;
    let moved = (loaded + len(&sides[2])) * bytes / 128.0;
    let accesses = warps * (k * (tm + tn) + 2.0 * tm * tn) * (bytes / 8.0).max(1.0) + 2.0 * moved;
    let shared_s = accesses * count / (sms * machine.clock_hz);
    let fmas = owners * tm * tn * k * f64::from(p.dtype.fmas());
    let arithmetic_s = fmas * count / fma_rate(machine, p.dtype);
    // Copies, steps of k whose loads go out by fours, sums into C, C's way out, two barriers.
    let copies = |side: &Laid| {
        let unit = if side.is_packed() || side.code.wide { 16 / p.dtype.bytes() } else { 1 };
        (u64::from(problems * side.shared.len * side.shared.lines)).div_ceil(unit * u64::from(variant.threads))
    };
    let copies = sides.iter().map(copies).sum::<u64>() as f64;
    let fma_cycles = 8.0 * sms * machine.clock_hz / fma_rate(machine, p.dtype);
    let fmas_a_step = tm * tn * f64::from(p.dtype.fmas()) * fma_cycles.max(1.0);
    let is_guarded = p.m % u64::from(variant.tm) != 0 || p.n % u64::from(variant.tn) != 0;
    let guards = if is_guarded && !p.dtype.is_complex() { GUARD_CYCLES * tm * tn } else { 0.0 };
    let steps = k * (SHARED_CYCLES / 4.0 + tm + tn + fmas_a_step + guards);
    let at_a_time = (variant.threads / variant.owners(p.m as u32, p.n as u32, p.k as u32)).max(1);
    let cycles =
        copies * COPY_CYCLES + f64::from(problems.div_ceil(at_a_time)) * (steps + 4.0 * tm * tn) + 4.0 * SHARED_CYCLES;
    let turns = p.count.div_ceil(u64::from(problems)).div_ceil(turn);
    let turns_s = turns as f64 * cycles / machine.clock_hz;
    let terms = [memory_s, shared_s.max(arithmetic_s), turns_s];
    let side = p.m.max(p.n).max(p.k);
    let seconds =
        root_of_fourths(terms) * at_the_same_time(p.dtype, side) + machine.launch_s + machine.memory_latency_s;
    BatchedEstimate { resident, in_flight, memory_s, shared_s, arithmetic_s, turns_s, seconds }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn square(dtype: Dtype, n: u64, count: u64) -> BatchedProblem {
        BatchedProblem::column_major(dtype, (n, n, n), count)
    }

    /// Each size, type and kind of C: an entry whose blocks fit, with enough in flight, by the memory's time.
    #[test]
    fn every_size_is_served_and_bound_by_memory_on_an_h200() {
        for dtype in Dtype::ALL {
            for (n, reads_c) in (1..=LARGEST).flat_map(|n| [(n, false), (n, true)]) {
                let p = BatchedProblem { reads_c, ..square(dtype, n, (1 << 28) / (n * n)) };
                let Ok(choice) = choose_batched(&p, &Machine::H200, None) else { panic!("{dtype} {n}") };
                if choice.variant.design() != Design::Tile {
                    continue; // the tests' of `fragments` and `warps`
                }
                assert!(choice.variant.is_packed(), "{}", choice.variant.entry);
                let (found, bound) = (choice.estimate, choice.bound);
                assert!(bound.memory_s > bound.arithmetic_s, "{dtype} {n}");
                // Where threads' tiles reach past the matrix, sums have conditions: measured, m = n = 5 takes 1.4 times the bound.
                let (tm, tn) = (u64::from(choice.variant.tm), u64::from(choice.variant.tn));
                let most = if n % tm == 0 && n % tn == 0 { 1.5 } else { 3.5 };
                assert!(
                    found.in_flight >= 0.9 * NEEDED_IN_FLIGHT
                        && found.seconds <= most * at_the_same_time(dtype, n) * bound.seconds(),
                    "{dtype} {n}: {found:?}"
                );
                let shared = choice.shared_bytes * found.resident;
                assert!(shared <= Machine::H200.shared_per_sm && choice.stages >= 2, "{dtype} {n}");
            }
        }
    }

    #[test]
    fn what_is_not_packed_goes_to_the_other_entries() {
        let p = square(Dtype::F64, 8, 1000);
        let name = |p: &BatchedProblem| choose_batched(p, &Machine::H200, None).map(|choice| choice.variant.name);
        assert_eq!(name(&p), Ok("batched_packed"));
        for a in
            [Lie { stride: 65, ..p.a }, Lie { stride: 0, ..p.a }, Lie { listed: true, ..p.a }, Lie { skew: 1, ..p.a }]
        {
            assert_eq!(name(&BatchedProblem { a, ..p }), Ok("batched_any"), "{a:?}");
            let forced = choose_batched(&BatchedProblem { a, ..p }, &Machine::H200, Some("batched_packed"));
            assert_eq!(forced.map(|_| ()), Err(Refusal::NotPacked));
        }
    }

    #[test]
    fn refusals_say_why() {
        let p = square(Dtype::C64, 8, 10);
        let why =
            |p: &BatchedProblem, machine: &Machine, name| choose_batched(p, machine, name).map(|_| ()).unwrap_err();
        assert_eq!(why(&p, &Machine::H200, Some("batched")), Refusal::UnknownVariant);
        assert_eq!(why(&p, &Machine::H200, Some("batched_single")), Refusal::NoSuchDtype { dtype: Dtype::C64 });
        assert_eq!(why(&p, &Machine::V100, None), Refusal::TooOld { needs: (8, 0) });
        let large = BatchedProblem { k: 33, ..p };
        assert_eq!(why(&large, &Machine::H200, None), Refusal::LargerThanBatches { name: "k", value: 33 });
        let wide = square(Dtype::F64, 32, 10);
        let aggregated = why(&wide, &Machine::H200, Some("batched_aggregated"));
        assert_eq!(aggregated, Refusal::Threads { threads: 1024 });
    }

    /// MAGMA, Section 7: n x n threads, tba products a block, N^ of half the size.
    #[test]
    fn the_papers_launches_are_the_papers() {
        let of = |name, n| match choose_batched(&square(Dtype::F64, n, 1000), &Machine::H200, Some(name)) {
            Ok(choice) => (choice.threads, choice.problems, choice.blocks, choice.shared_bytes),
            Err(refusal) => panic!("{name} {n}: {refusal}"),
        };
        assert_eq!(of("batched_single", 16), (256, 1, 1000, 2 * 256 * 8));
        assert_eq!(of("batched_aggregated", 2), (64, 16, 63, 16 * 8 * 8));
        assert_eq!(of("batched_blocked", 32), (256, 1, 1000, 2 * 256 * 8));
        assert!(of("batched_prefetch", 16).2 <= 132 * 8);
    }

    /// A shared B is read once.
    #[test]
    fn bounds_count_each_matrix_once() {
        let p = BatchedProblem { reads_c: true, ..square(Dtype::F64, 8, 1000) };
        assert_eq!(p.bound(&Machine::H200).bytes(), 32 * 64 * 1000);
        let shared = BatchedProblem { b: Lie { stride: 0, ..p.b }, ..p };
        assert_eq!(shared.bound(&Machine::H200).read_bytes, 8 * 64 * 2001);
        assert_eq!(p.bound(&Machine::H200).flops, 2.0 * 512.0 * 1000.0);
    }
}
