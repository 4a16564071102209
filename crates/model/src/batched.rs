//! Which kernel computes a batch of small products, in which tiles, and why.
//!
//! Every size up to [`LARGEST`] is bound by memory on the GPUs of the table, so a choice is one of what keeps the memory busy: how many
//! problems a tile has, how many stages are on their way, how many blocks an SM holds, and whether a block is done with a
//! tile before the next one is there.

use crate::launch::BlockShape;
use crate::launch::batched::{CONJ_BIT, Laid, Lie, MOST_PROBLEMS, laid};
use crate::occupancy::resident_blocks;
use crate::paper::batched as paper;
use crate::roofline::{Bound, peak_fma_rate};
use crate::variants::batched::{BATCHED, Batched, Design};
use crate::{Dtype, Machine, Refusal};

mod bulk;
mod flat;
mod fragments;
mod reasons;
mod slots;
mod tile;
mod warps;

use tile::{Tiled, Work};

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

    /// A, B and C where `owners` threads compute a product; all dimensions at most [`LARGEST`].
    fn sides(&self, owners: u32) -> [Laid; 3] {
        let (m, n, k) = (narrow(self.m), narrow(self.n), narrow(self.k));
        let lay = |lie, shape| laid(lie, shape, self.count, narrow(16 / self.dtype.bytes()), owners);
        [lay(self.a, (m, k)), lay(self.b, (k, n)), lay(self.c, (m, n))]
    }

    /// What no kernel can beat: each matrix read once, those that all problems share once in all, C written once.
    pub fn bound(&self, machine: &Machine) -> Bound {
        let e = self.dtype.bytes();
        let of = |lie: &Lie, len: u64| {
            let count = if !lie.listed && lie.stride == 0 { self.count.min(1) } else { self.count };
            len.saturating_mul(e).saturating_mul(count)
        };
        let write_bytes = of(&Lie { stride: 1, ..self.c }, self.m.saturating_mul(self.n));
        let factors =
            of(&self.a, self.m.saturating_mul(self.k)).saturating_add(of(&self.b, self.k.saturating_mul(self.n)));
        let read_bytes = factors.saturating_add(if self.reads_c { write_bytes } else { 0 });
        let fmas = self.m as f64 * self.n as f64 * self.k as f64 * self.count as f64 * f64::from(self.dtype.fmas());
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
    /// Blocks, which take tiles in turn, or each some that follow one another.
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

/// The entry, the tile and the launch for a batch. A C without rows or columns is refused: there is nothing to compute. `force` names a
/// variant (`batched_packed`) or an entry.
///
/// # Errors
/// A [`Refusal`] where no entry takes it; [`BatchedRefusals`](crate::BatchedRefusals) has all reasons.
pub fn choose_batched(p: &BatchedProblem, machine: &Machine, force: Option<&str>) -> Result<BatchedChoice, Refusal> {
    if !BATCHED.iter().any(|v| named(v, force)) {
        return Err(Refusal::UnknownVariant);
    }
    let mut refusal = Refusal::NoSuchDtype { dtype: p.dtype };
    let mut best: Option<BatchedChoice> = None;
    for variant in in_question(p, force) {
        if let Some(why) = reasons::reasons(variant, p, machine).into_iter().flatten().next() {
            refusal = why;
            continue;
        }
        let choice = match variant.design() {
            Design::Fragments => Some(fragments::choose(variant, p, machine)),
            Design::Warps => Some(warps::choose(variant, p, machine)),
            Design::Flat => Some(flat::choose(variant, p, machine)),
            Design::Bulk | Design::Over => bulk::choose(variant, p, machine),
            Design::Tile => {
                let enough_s = best.map_or(f64::INFINITY, |best| best.estimate.seconds);
                Work::new(variant, p, machine).choose_tile(enough_s)
            }
            _ => Some(papers(variant, p, machine)),
        };
        if let Some(choice) = choice.filter(|choice| best.is_none_or(|best| is_better(choice, &best))) {
            best = Some(choice);
        }
    }
    best.ok_or(refusal)
}

/// Each entry in question for a batch, with every reason why it cannot compute it.
pub(crate) fn reasons<'a>(
    p: &'a BatchedProblem,
    machine: &'a Machine,
    force: Option<&'a str>,
) -> impl Iterator<Item = [Option<Refusal>; 9]> + 'a {
    in_question(p, force).map(move |variant| reasons::reasons(variant, p, machine))
}

/// The blocks in which a machine computes batches of n x n matrices, n up to [`LARGEST`], as it is chosen and by each entry that is
/// named, of packed matrices and others, with and without C: some more than once.
pub fn block_shapes(machine: &Machine) -> impl Iterator<Item = BlockShape> {
    let forces = || core::iter::once(None).chain(BATCHED.iter().map(|v| Some(v.entry)));
    let sizes = || Dtype::ALL.into_iter().flat_map(|dtype| (1..=LARGEST).map(move |n| (dtype, n)));
    let problems = sizes().flat_map(|(dtype, n)| {
        [(false, 0), (true, 0), (false, 1), (true, 1)].map(|(reads_c, apart)| {
            let p = BatchedProblem::column_major(dtype, (n, n, n), COUNT);
            BatchedProblem { reads_c, a: Lie { stride: p.a.stride + apart, ..p.a }, ..p }
        })
    });
    problems.flat_map(move |p| forces().filter_map(move |force| choose_batched(&p, machine, force).ok())).map(
        |choice| BlockShape { entry: choice.variant.entry, threads: choice.threads, shared_bytes: choice.shared_bytes },
    )
}

/// Problems of the batches whose blocks are listed: enough for tiles of any size.
const COUNT: u64 = 100_000;

/// Whether an entry or its variant is the one that was asked for, if any was.
fn named(variant: &Batched, force: Option<&str>) -> bool {
    force.is_none_or(|name| name == variant.name || name == variant.entry)
}

/// The entries that are in question for a batch: the paper's are there to be named.
fn in_question<'a>(p: &'a BatchedProblem, force: Option<&'a str>) -> impl Iterator<Item = &'static Batched> + 'a {
    let is_asked = move |v: &&Batched| named(v, force) && (force.is_some() || v.design().is_ours());
    BATCHED.iter().filter(move |v| v.dtype == p.dtype && is_asked(v))
}

/// Whether one is faster than the other, or at the same time has the shorter turns.
fn is_better(one: &BatchedChoice, other: &BatchedChoice) -> bool {
    is_faster(&one.estimate, &other.estimate)
}

fn is_faster(a: &BatchedEstimate, b: &BatchedEstimate) -> bool {
    a.seconds < b.seconds || (a.seconds == b.seconds && a.turns_s < b.turns_s)
}

/// A length in 32 bits.
fn narrow(length: u64) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// How the operands lie, as an entry is told.
fn codes(p: &BatchedProblem, sides: &[Laid; 3]) -> u32 {
    let [a, b, c] = sides.map(|side| side.code.pack());
    a | b << 8 | c << 16 | (u32::from(p.conj_a) | u32::from(p.conj_b) << 1) << CONJ_BIT
}

/// Products a block of an entry of MAGMA's, its threads, whole warps of them, and its bytes of shared memory.
fn aggregated(variant: &Batched, p: &BatchedProblem, owners: u32) -> (u32, u32, u32) {
    let (m, n, k) = (narrow(p.m), narrow(p.n), narrow(p.k));
    let problems = match variant.design() {
        Design::Aggregated => paper::products_per_block(m.max(n)).min(variant.threads / owners).max(1),
        _ => 1,
    };
    let elements = if variant.design() == Design::Blocked { 2 * owners } else { problems * (m * k + k * n) };
    (problems, (problems * owners).next_multiple_of(32), elements * narrow(p.dtype.bytes()))
}

/// The launch of an entry of MAGMA's: the paper's products a block and threads.
fn papers(variant: &'static Batched, p: &BatchedProblem, machine: &Machine) -> BatchedChoice {
    let work = Work::new(variant, p, machine);
    let (problems, threads, shared_bytes) = aggregated(variant, p, work.owners);
    let resident = resident_blocks(machine, threads, variant.registers(machine), shared_bytes);
    let choice =
        work.launch(Tiled { problems, stages: 1, shared_bytes, estimate: work.estimate(problems, 2, resident) });
    let tiles = p.count.div_ceil(u64::from(problems)).min(MOST_PROBLEMS) as u32;
    let blocks = if variant.design() == Design::Prefetch { choice.blocks } else { tiles };
    BatchedChoice { blocks, threads, ..choice }
}

/// How many times as long memory takes where less is in flight than is needed. Where nothing is loaded nothing is waited for.
fn scarce(needed: f64, in_flight: f64) -> f64 {
    if in_flight > 0.0 { (needed / in_flight).max(1.0) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::tile::at_the_same_time;
    use super::*;
    use crate::launch::batched::Tile;

    /// Sizes up to which tiles are nearly bound by memory.
    const TILES: u64 = 16;

    fn square(dtype: Dtype, n: u64, count: u64) -> BatchedProblem {
        BatchedProblem::column_major(dtype, (n, n, n), count)
    }

    /// Each size, type and kind of C: an entry whose blocks fit, with enough in flight, by the memory's time.
    #[test]
    fn every_size_is_served_and_bound_by_memory_on_an_h200() {
        for dtype in Dtype::ALL {
            for (n, reads_c) in (1..=LARGEST).flat_map(|n| [(n, false), (n, true)]) {
                let p = BatchedProblem { reads_c, ..square(dtype, n, (1 << 28) / (n * n)) };
                // Large ones are the others', and in their tests.
                let force = (n <= TILES).then_some("batched_packed");
                let Ok(choice) = choose_batched(&p, &Machine::H200, force) else { panic!("{dtype} {n}") };
                if n > TILES {
                    assert!(!matches!(choice.variant.design(), Design::Tile), "{dtype} {n}: {}", choice.variant.entry);
                    continue;
                }
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
        let few = Machine { registers_per_thread: 64, ..Machine::H200 };
        let entry = "dbatched_packed_2x2_t128";
        let registers = BATCHED.iter().find(|v| v.entry == entry).map_or(0, |v| v.registers(&few));
        assert_eq!(why(&square(Dtype::F64, 8, 10), &few, Some(entry)), Refusal::Registers { registers });
        let small = Machine { registers_per_block: 64 * registers, ..Machine::H200 };
        let of_a_block = Refusal::BlockRegisters { registers, threads: 128, most: 64 * registers };
        assert_eq!(why(&square(Dtype::F64, 8, 10), &small, Some(entry)), of_a_block);
        let shared = Machine { shared_per_block: 1024, ..Machine::H200 };
        assert!(matches!(why(&square(Dtype::F64, 8, 10), &shared, Some(entry)), Refusal::SharedMemory { .. }));
        let one = Machine { threads_per_block: 32, ..Machine::H200 };
        assert_eq!(why(&square(Dtype::F64, 8, 10), &one, Some(entry)), Refusal::Threads { threads: 128 });
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

    /// What is left out takes no less, and of equals the smallest tile is taken.
    #[test]
    fn no_tile_is_better_than_the_one_that_is_chosen() {
        for machine in [Machine::H200, Machine::A100, Machine::RTX4090] {
            for variant in BATCHED.iter().filter(|v| v.design() == Design::Tile) {
                for ((m, n, k), count) in [
                    ((1, 1, 1), 100_000),
                    ((2, 3, 0), 1000),
                    ((4, 4, 4), 300_000),
                    ((8, 8, 8), 50),
                    ((16, 5, 32), 10_000),
                    ((32, 32, 32), 100_000),
                ] {
                    let p = BatchedProblem::column_major(variant.dtype, (m, n, k), count);
                    let Ok(choice) = choose_batched(&p, &machine, Some(variant.entry)) else { continue };
                    let (work, bytes) = (Work::new(variant, &p, &machine), p.dtype.bytes() as u32);
                    let mut best: Option<(BatchedEstimate, u32, u32)> = None;
                    for problems in (1..=8 * (variant.threads / work.owners)).filter(|each| u64::from(*each) <= count) {
                        let is_tried = problems <= variant.threads / work.owners
                            || problems % (variant.threads / work.owners) == 0;
                        for stages in [2, 3, 4].into_iter().filter(|_| is_tried) {
                            let tile = Tile::new(work.sides.map(|side| side.shared), problems, false, 16 / bytes);
                            let shared_bytes = tile.shared_len(stages) * bytes;
                            let registers = variant.registers(&machine);
                            let resident = resident_blocks(&machine, variant.threads, registers, shared_bytes);
                            if resident == 0 {
                                continue;
                            }
                            let estimate = work.estimate(problems, stages, resident);
                            if best.is_none_or(|(best, ..)| is_faster(&estimate, &best)) {
                                best = Some((estimate, problems, stages));
                            }
                        }
                    }
                    let chosen = Some((choice.estimate, choice.problems, choice.stages));
                    assert_eq!(chosen, best, "{} {m} {n} {k}", variant.entry);
                }
            }
        }
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
