//! Tiles of whole problems in stages of shared memory: how many problems, how many stages.

use super::{BatchedChoice, BatchedEstimate, BatchedProblem, NEEDED_IN_FLIGHT, codes, is_faster, narrow, scarce};
use crate::launch::batched::{Laid, MOST_PROBLEMS, Tile};
use crate::occupancy::{by_shared, resident_blocks};
use crate::roofline::{Bound, fma_rate, root_of_fourths, sum_of_fourths};
use crate::variants::batched::Batched;
use crate::{Dtype, Machine};

/// Cycles of an access to shared memory until its value is there.
const SHARED_CYCLES: f64 = 30.0;
/// Cycles a copy takes of a warp that has several one after the other: a dozen instructions, of layouts with gaps twice as many.
const COPY_CYCLES: f64 = 30.0;

/// Cycles a step takes longer for each sum of a thread whose tile reaches past the matrix, where sums have conditions, but of c128. On an
/// H200 on 2026-11-22, m = n = k of 3 and 5 by 4 x 4 sums took 4 to 10 times as long as without.
const GUARD_CYCLES: f64 = 12.0;

/// How many times as long tiles take because their threads copy, multiply, and wait for each other. It says nothing of which tile is best.
///
/// # Source
/// An H200 on 2026-11-22, 2 GB of problems, m = n = k: medians of what sizes took against the estimate without it; of c64 and c128 beyond 16
/// on 2026-11-25, by what was the fastest of all entries.
pub(super) fn at_the_same_time(dtype: Dtype, side: u64) -> f64 {
    match (dtype, side) {
        (Dtype::C64, ..=8) => 1.25,
        (Dtype::C64, ..=12) => 1.4,
        (Dtype::C64, ..=16) => 1.7,
        (Dtype::C64, _) => 2.2,
        (Dtype::C128, 17..) => 1.6,
        (_, ..=8) => 1.15,
        (_, ..=12) => 1.2,
        (_, _) => 1.3,
    }
}

/// An entry laid over a batch: what all of its tiles have in common.
pub(super) struct Work<'a> {
    variant: &'static Batched,
    p: &'a BatchedProblem,
    machine: &'a Machine,
    pub(super) sides: [Laid; 3],
    /// Threads a problem.
    pub(super) owners: u32,
    /// Blocks an SM holds whatever their shared memory.
    most_resident: u32,
    bound: Bound,
    /// Elements that a problem loads.
    loaded: f64,
    /// Multiply-adds, s.
    arithmetic_s: f64,
    /// Accesses of shared memory at least, or multiply-adds, s.
    least_busy_s: f64,
    /// Turns at least: all steps of k, dealt evenly to as many threads as there may be at a time, s.
    least_turns_s: f64,
    /// Cycles that a block's threads take for the problems that they compute at a time.
    turn_cycles: f64,
    /// How many times as long tiles take because they do all of it at the same time.
    at_the_same_time: f64,
    /// A launch, and a latency, s.
    fixed_s: f64,
}

/// A tile, and what it is expected to take.
#[derive(Clone, Copy)]
pub(super) struct Tiled {
    pub(super) problems: u32,
    pub(super) stages: u32,
    pub(super) shared_bytes: u32,
    pub(super) estimate: BatchedEstimate,
}

/// What goes on at the same time.
fn largest(estimate: &BatchedEstimate) -> [f64; 3] {
    [estimate.memory_s, estimate.shared_s.max(estimate.arithmetic_s), estimate.turns_s]
}

fn len(side: &Laid) -> f64 {
    f64::from(side.shared.len * side.shared.lines)
}

impl<'a> Work<'a> {
    pub(super) fn new(variant: &'static Batched, p: &'a BatchedProblem, machine: &'a Machine) -> Self {
        let owners = variant.owners(narrow(p.m), narrow(p.n), narrow(p.k));
        let (sides, k) = (p.sides(owners), p.k as f64);
        let (tm, tn, fmas) = (f64::from(variant.tm), f64::from(variant.tn), f64::from(p.dtype.fmas()));
        let (rate, sms) = (fma_rate(machine, p.dtype), f64::from(machine.sms));
        let fma_cycles = 8.0 * sms * machine.clock_hz / rate;
        let is_guarded = p.m % u64::from(variant.tm) != 0 || p.n % u64::from(variant.tn) != 0;
        let guards = if is_guarded && p.dtype != Dtype::C128 { GUARD_CYCLES * tm * tn } else { 0.0 };
        let steps = k * (SHARED_CYCLES / 4.0 + tm + tn + tm * tn * fmas * fma_cycles.max(1.0) + guards);
        let turn_cycles = steps + 4.0 * tm * tn;
        let most_resident = resident_blocks(machine, variant.threads, variant.registers(machine), 0);
        let arithmetic_s = f64::from(owners) * tm * tn * k * fmas * p.count as f64 / rate;
        let at_a_time = sms * f64::from(most_resident * (variant.threads / owners).max(1));
        let mut work = Work {
            variant,
            p,
            machine,
            owners,
            most_resident,
            bound: p.bound(machine),
            loaded: len(&sides[0]) + len(&sides[1]) + if p.reads_c { len(&sides[2]) } else { 0.0 },
            arithmetic_s,
            least_busy_s: 0.0,
            least_turns_s: p.count as f64 / at_a_time * turn_cycles / machine.clock_hz,
            turn_cycles,
            at_the_same_time: at_the_same_time(p.dtype, p.m.max(p.n).max(p.k)),
            fixed_s: machine.launch_s + machine.memory_latency_s,
            sides,
        };
        work.least_busy_s = work.shared_s(f64::from(owners) / 32.0).max(arithmetic_s);
        work
    }

    /// The best tile; `None` if all are found to take more than `enough_s`.
    pub(super) fn choose_tile(&self, enough_s: f64) -> Option<BatchedChoice> {
        let bytes = narrow(self.p.dtype.bytes());
        let mut best: Option<Tiled> = None;
        let mut limit_s = enough_s;
        let there_are = |problems: &u32| u64::from(*problems) <= self.p.count.max(1);
        for problems in tiles(self.variant.threads / self.owners).filter(there_are) {
            // Smaller ones have less in flight.
            if self.is_above(self.in_flight(problems, 4, self.most_resident), limit_s) {
                break;
            }
            let tile = Tile::new(self.sides.map(|side| side.shared), problems, self.p.reads_c, 16 / bytes);
            let mut of_stages: Option<Tiled> = None;
            for stages in [2, 3, 4] {
                let Some(shared_bytes) = tile.shared_len(stages).checked_mul(bytes) else { break };
                let resident = by_shared(self.machine, shared_bytes).min(self.most_resident);
                if resident == 0 {
                    break;
                }
                let Some(estimate) = self.estimate_within(problems, stages, resident, limit_s) else { continue };
                if of_stages.is_none_or(|best| is_faster(&estimate, &best.estimate)) {
                    of_stages = Some(Tiled { problems, stages, shared_bytes, estimate });
                }
            }
            // Of equals the smallest.
            if let Some(tiled) =
                of_stages.filter(|next| best.is_none_or(|best| !is_faster(&best.estimate, &next.estimate)))
            {
                limit_s = limit_s.min(tiled.estimate.seconds);
                best = Some(tiled);
            }
        }
        best.map(|tiled| self.launch(tiled))
    }

    pub(super) fn launch(&self, Tiled { problems, stages, shared_bytes, estimate }: Tiled) -> BatchedChoice {
        let tiles = self.p.count.div_ceil(u64::from(problems));
        let places = u64::from(estimate.resident) * u64::from(self.machine.sms);
        BatchedChoice {
            problem: *self.p,
            variant: self.variant,
            problems,
            stages,
            blocks: tiles.min(places).min(MOST_PROBLEMS) as u32,
            threads: self.variant.threads,
            shared_bytes,
            swapped: false,
            sides: self.sides,
            codes: codes(self.p, &self.sides),
            bound: self.bound,
            estimate,
        }
    }

    /// Bytes that an SM has in flight: what is multiplied next is there by then, in part.
    fn in_flight(&self, problems: u32, stages: u32, resident: u32) -> f64 {
        let bytes = self.p.dtype.bytes() as f64;
        f64::from(resident) * (f64::from(stages) - 1.5) * f64::from(problems) * self.loaded * bytes
    }

    fn memory_s(&self, in_flight: f64) -> f64 {
        self.bound.memory_s * scarce(NEEDED_IN_FLIGHT, in_flight)
    }

    /// Accesses of shared memory where a problem has so many warps, s.
    fn shared_s(&self, warps: f64) -> f64 {
        let Work { variant, p, machine, .. } = self;
        let (tm, tn, bytes) = (f64::from(variant.tm), f64::from(variant.tn), p.dtype.bytes() as f64);
        // A warp's access of 4 or 8 bytes a lane is one of the memory's, since lanes share what they read; of 16 two.
        let moved = (self.loaded + len(&self.sides[2])) * bytes / 128.0;
        let accesses =
            warps * (p.k as f64 * (tm + tn) + 2.0 * tm * tn) * (bytes / 8.0).max(1.0) * self.conflicts() + 2.0 * moved;
        accesses * p.count as f64 / (f64::from(machine.sms) * machine.clock_hz)
    }

    /// Lanes of so many problems meet in a bank: matrices that are an odd number of 16-byte pieces apart begin in eight places. Of one that
    /// problems share lanes read the same.
    fn conflicts(&self) -> f64 {
        let bytes = self.p.dtype.bytes();
        let together = (128.0 / bytes as f64).min(32.0) / f64::from(self.owners);
        let width = narrow(16 / bytes);
        let is_spaced = self.sides.iter().any(|side| side.shared.each > 0 && side.shared.each % width == 0);
        if is_spaced { (together / 8.0).max(1.0) } else { 1.0 }
    }

    /// Whether tiles with so much in flight take more, whatever else they are.
    fn is_above(&self, in_flight: f64, limit_s: f64) -> bool {
        self.are_above([self.memory_s(in_flight), self.least_busy_s, self.least_turns_s], limit_s)
    }

    /// Whether terms make more than that, found without a root; not where it is so by no more than roots are rounded by.
    fn are_above(&self, terms: [f64; 3], limit_s: f64) -> bool {
        let left_s = (limit_s - self.fixed_s) / self.at_the_same_time * (1.0 + 1e-9);
        left_s < 0.0 || sum_of_fourths(terms) > sum_of_fourths([left_s, 0.0, 0.0])
    }

    pub(super) fn estimate(&self, problems: u32, stages: u32, resident: u32) -> BatchedEstimate {
        self.summed(self.terms(problems, stages, resident))
    }

    /// The estimate of a tile; `None` where it is found to take more than `limit_s`.
    fn estimate_within(&self, problems: u32, stages: u32, resident: u32, limit_s: f64) -> Option<BatchedEstimate> {
        if self.is_above(self.in_flight(problems, stages, resident), limit_s) {
            return None;
        }
        let estimate = self.terms(problems, stages, resident);
        (!self.are_above(largest(&estimate), limit_s)).then(|| self.summed(estimate))
    }

    fn summed(&self, estimate: BatchedEstimate) -> BatchedEstimate {
        let seconds = root_of_fourths(largest(&estimate)) * self.at_the_same_time + self.fixed_s;
        BatchedEstimate { seconds, ..estimate }
    }

    /// The estimate of a tile, but for all of it.
    fn terms(&self, problems: u32, stages: u32, resident: u32) -> BatchedEstimate {
        let Work { variant, p, machine, sides, owners, arithmetic_s, .. } = self;
        let in_flight = self.in_flight(problems, stages, resident);
        let memory_s = self.memory_s(in_flight);
        let shared_s = self.shared_s(f64::from((problems * owners).div_ceil(32)) / f64::from(problems));
        // Copies, steps of k whose loads go out by fours, sums into C, C's way out, two barriers.
        let copies = |side: &Laid| {
            let unit = if side.is_packed() || side.code.wide { 16 / narrow(p.dtype.bytes()) } else { 1 };
            (problems * side.shared.len * side.shared.lines).div_ceil(unit * variant.threads)
        };
        let copies = f64::from(sides.iter().map(copies).sum::<u32>());
        let at_a_time = (variant.threads / owners).max(1);
        let cycles =
            copies * COPY_CYCLES + f64::from(problems.div_ceil(at_a_time)) * self.turn_cycles + 4.0 * SHARED_CYCLES;
        let turns = p.count.div_ceil(u64::from(problems)).div_ceil(u64::from(machine.sms * resident));
        let turns_s = turns as f64 * cycles / machine.clock_hz;
        BatchedEstimate {
            resident,
            in_flight,
            memory_s,
            shared_s,
            arithmetic_s: *arithmetic_s,
            turns_s,
            seconds: f64::NAN,
        }
    }
}

/// Numbers of problems a tile, from the largest on: some multiples of what a block's threads compute at a time, that, and fewer.
fn tiles(at_a_time: u32) -> impl Iterator<Item = u32> {
    (2..=MOST_TURNS).rev().map(move |turns| turns * at_a_time).chain((1..=at_a_time).rev())
}

/// Most turns in which the threads of a block take the problems of a tile.
const MOST_TURNS: u32 = 8;
