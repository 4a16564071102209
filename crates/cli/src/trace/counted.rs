//! What was counted, as JSON and as a table.

use serde::Serialize;
use simt::{Counters, OperandCounters, SharedTraffic};

use super::emulate::Outcome;

/// The object of `trace --json`.
#[derive(Serialize)]
pub struct Counted {
    pub variant: &'static str,
    pub entry: &'static str,
    pub dtype: &'static str,
    pub m: u32,
    pub n: u32,
    pub k: u32,
    /// Blocks along x, y (parts of k) and z.
    pub grid: [u32; 3],
    /// Threads a block.
    pub threads: u32,
    /// Dynamic shared memory a block.
    pub shared_bytes: u32,
    /// Fused multiply-adds, by every thread.
    pub fma: u64,
    /// Matrix multiply-adds, by warps.
    pub mma: u64,
    /// Barriers, one for each block that passes.
    pub barriers: u64,
    pub operands: Operands,
    pub shared: Shared,
}

#[derive(Serialize)]
pub struct Operands {
    #[serde(rename = "A")]
    pub a: Operand,
    #[serde(rename = "B")]
    pub b: Operand,
    #[serde(rename = "C")]
    pub c: Operand,
    /// The sums of the parts of k: written by one kernel, read by the next or by its own last block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<Operand>,
}

impl Operands {
    fn named(&self) -> impl Iterator<Item = (&'static str, &Operand)> {
        let all = [("A", Some(&self.a)), ("B", Some(&self.b)), ("C", Some(&self.c)), ("slots", self.slots.as_ref())];
        all.into_iter().filter_map(|(name, operand)| Some((name, operand?)))
    }
}

/// Loads and stores of an operand.
#[derive(Default, Serialize)]
pub struct Operand {
    /// By every thread that is not masked off.
    pub elements_loaded: u64,
    pub elements_stored: u64,
    /// Distinct bytes of each warp instruction.
    pub bytes_used: u64,
    /// Bytes of the distinct 32-byte sectors of each warp instruction.
    pub bytes_moved: u64,
    /// The former of the latter; 1 where nothing moves.
    pub efficiency: f64,
    /// Warp instructions that move something.
    pub requests: u64,
}

/// Shared memory; instructions are a warp's.
#[derive(Serialize)]
pub struct Shared {
    pub loads: u64,
    pub stores: u64,
    pub load_wavefronts: u64,
    pub store_wavefronts: u64,
    /// Wavefronts beyond the fewest that the bytes need, of loads and stores.
    pub bank_conflicts: u64,
    pub load_bank_conflicts: u64,
    pub store_bank_conflicts: u64,
}

impl Operand {
    fn add(&mut self, counters: OperandCounters) {
        let (loads, stores) = (counters.loads, counters.stores);
        self.elements_loaded += loads.elements;
        self.elements_stored += stores.elements;
        self.bytes_used += loads.bytes_used + stores.bytes_used;
        self.bytes_moved += loads.bytes_moved + stores.bytes_moved;
        self.requests += loads.instructions + stores.instructions;
        self.efficiency = if self.bytes_moved == 0 { 1.0 } else { self.bytes_used as f64 / self.bytes_moved as f64 };
    }
}

impl Counted {
    pub fn of(outcome: &Outcome) -> Self {
        let Outcome { request, grid, shared_bytes, counters, added } = outcome;
        let launches: Vec<&Counters> = std::iter::once(counters).chain(added).collect();
        let total = |count: fn(&Counters) -> u64| launches.iter().copied().map(count).sum();
        let operand = |name| {
            let mut sum = Operand { efficiency: 1.0, ..Operand::default() };
            launches.iter().for_each(|counters| sum.add(counters.operand(name)));
            sum
        };
        let SharedTraffic { instructions: loads, wavefronts: load_wavefronts, bank_conflicts: of_loads } =
            counters.shared.loads;
        let SharedTraffic { instructions: stores, wavefronts: store_wavefronts, bank_conflicts: of_stores } =
            counters.shared.stores;
        let slots = (request.splits > 1).then(|| operand("slots"));
        Self {
            variant: request.variant.name,
            entry: request.variant.entry,
            dtype: request.variant.dtype.name(),
            m: request.m,
            n: request.n,
            k: request.k,
            grid: *grid,
            threads: request.variant.threads,
            shared_bytes: *shared_bytes,
            fma: total(|counters| counters.fma),
            mma: total(|counters| counters.mma),
            barriers: total(|counters| counters.barriers),
            operands: Operands { a: operand("A"), b: operand("B"), c: operand("C"), slots },
            shared: Shared {
                loads,
                stores,
                load_wavefronts,
                store_wavefronts,
                bank_conflicts: of_loads + of_stores,
                load_bank_conflicts: of_loads,
                store_bank_conflicts: of_stores,
            },
        }
    }

    fn text(&self) -> String {
        let Self { entry, dtype, m, n, k, grid: [x, y, z], threads, .. } = self;
        let mut lines = vec![
            format!("{entry}   {dtype}   C {m} x {n} = A {m} x {k}  B {k} x {n}"),
            format!(
                "  grid {x} x {y} x {z}, {threads} threads and {} bytes of shared memory a block",
                self.shared_bytes
            ),
            format!(
                "  {:<8} {:>13} {:>13} {:>13} {:>13} {:>10}",
                "operand", "loaded", "stored", "bytes used", "moved", "efficiency"
            ),
        ];
        for (name, operand) in self.operands.named() {
            let Operand { elements_loaded, elements_stored, bytes_used, bytes_moved, efficiency, .. } = operand;
            let percent = 100.0 * efficiency;
            lines.push(format!(
                "  {name:<8} {elements_loaded:>13} {elements_stored:>13} {bytes_used:>13} {bytes_moved:>13} {percent:>9.1}%"
            ));
        }
        let mut line = |name: &str, words: String| lines.push(format!("  {name:<13} {words}"));
        let shared = &self.shared;
        let side = |count, wavefronts, conflicts| {
            format!("{count}, in {wavefronts} wavefronts, {conflicts} of them bank conflicts")
        };
        line("shared loads", side(shared.loads, shared.load_wavefronts, shared.load_bank_conflicts));
        line("shared stores", side(shared.stores, shared.store_wavefronts, shared.store_bank_conflicts));
        line("arithmetic", format!("{} fma, {} mma", self.fma, self.mma));
        line("barriers", self.barriers.to_string());
        lines.join("\n")
    }
}

/// The tables of all traces.
pub fn text(traces: &[Counted]) -> String {
    let texts: Vec<String> = traces.iter().map(Counted::text).collect();
    texts.join("\n\n")
}
