//! The run under the emulator.

use std::str::FromStr;

use bytemuck::Pod;
use kernels::table::{self, Element};
use model::launch::reduced::{TICKETS, WORK_HEAD_BYTES, has_tickets, is_joined};
use model::launch::{slots_len, tiling};
use model::variants::SUM_SLOTS_THREADS;
use model::{Dtype, Layout, Refusal, Strides, Variant, span, sum_slots};
use simt::{Buffer, Counters, FaultKind, Launch, Memory};

use super::finished::Operands;
use crate::error::Fault;
use crate::memory;

/// Multiply-adds that are emulated at most: a few minutes.
const MOST_FMAS: u128 = 2_000_000_000;
/// Elements of A and of B at most.
const MOST_READ: u64 = 1 << 26;
/// Elements of C and of the slots at most: of what is written, each 4 bytes take 64 more of history.
const MOST_WRITTEN: u64 = 1 << 23;

/// Addresses that the emulator takes for a thread's stack.
const STACK_BYTES: u64 = 256 << 10;
/// Bytes of history of each byte that may be written.
const HISTORY: u64 = 16;

/// Whether A, B and C lie by rows.
#[derive(Clone, Copy, Debug)]
pub struct Layouts {
    by_rows: [bool; 3],
}

impl Layouts {
    /// Whether A lies as an entry wants it.
    pub fn suits(self, wanted: Layout) -> bool {
        match wanted {
            Layout::Any => true,
            Layout::Columns => !self.by_rows[0],
            Layout::Rows => self.by_rows[0],
        }
    }
}

impl FromStr for Layouts {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let letters = match text {
            "column-major" => "ccc",
            "row-major" => "rrr",
            letters => letters,
        };
        let mut by_rows = [false; 3];
        let known = letters.len() == 3 && letters.bytes().all(|letter| matches!(letter, b'c' | b'r'));
        for (by_rows, letter) in by_rows.iter_mut().zip(letters.bytes()) {
            *by_rows = letter == b'r';
        }
        if known { Ok(Self { by_rows }) } else { Err("column-major, row-major, or three letters c or r, as in rcc") }
    }
}

/// What to run.
pub struct Request {
    pub variant: &'static Variant,
    pub m: u32,
    pub n: u32,
    pub k: u32,
    pub layouts: Layouts,
    pub splits: u32,
    /// Accesses of the first warp to record.
    pub patterns: usize,
}

/// What was run, and what it did.
pub struct Outcome {
    pub request: Request,
    pub grid: [u32; 3],
    pub shared_bytes: u32,
    pub counters: Counters,
    /// Of the kernel that adds the sums of the parts of k.
    pub added: Option<Counters>,
}

/// A packed matrix: strides and elements.
fn packed(rows: u32, cols: u32, by_rows: bool) -> (Strides, u64) {
    let strides = if by_rows { Strides::row_major(cols.into()) } else { Strides::column_major(rows.into()) };
    (strides, span(rows.into(), cols.into(), strides).unwrap_or(u64::MAX))
}

impl Request {
    /// Whether the entry serves the shape: some serve whole tiles alone.
    fn fits(&self) -> Result<(), Fault> {
        let Self { m, n, k, .. } = *self;
        match self.variant.multiples() {
            Some(of) if [m, n, k].iter().zip(of).any(|(size, of)| size % of != 0) => {
                Err(Fault::Input(format!("{}: {}", self.variant.name, Refusal::NotWhole { of })))
            }
            _ => Ok(()),
        }
    }

    /// Refuses what the entry does not serve, and what takes too long, or more memory than a laptop has.
    pub fn check(&self) -> Result<(), Fault> {
        self.fits()?;
        let Self { m, n, k, .. } = *self;
        // The threads beyond the last row compute too.
        let rows = m.max(self.variant.threads.max(self.variant.rows));
        let fmas = u128::from(rows) * u128::from(n) * u128::from(k);
        let tiling = tiling(self.variant, m.into(), n.into());
        if self.splits > 1 && !has_tickets(self.variant, &tiling) {
            let (entry, tiles) = (self.variant.entry, tiling.of_c());
            let message =
                format!("has tickets for {TICKETS} tiles of C, not for {tiles}; in one part of k it needs none");
            return Err(Fault::Input(format!("{m} x {n} x {k}: {entry} {message}")));
        }
        let slots = slots_len(self.variant, &tiling, m.into(), n.into(), self.splits);
        let product = |rows: u32, cols: u32| u64::from(rows) * u64::from(cols);
        let operands = [("A", product(m, k), MOST_READ), ("B", product(k, n), MOST_READ)];
        let results = [("C", product(m, n), MOST_WRITTEN), ("the slots", slots, MOST_WRITTEN)];
        if fmas > MOST_FMAS {
            let message = "take too long thread by thread: 2 10^9 at most; smaller shapes show the same";
            return Err(Fault::Input(format!("{m} x {n} x {k}: {fmas} multiply-adds {message}")));
        }
        if let Some((name, len, most)) = operands.into_iter().chain(results).find(|(_, len, most)| len > most) {
            return Err(Fault::Input(format!("{name}: {len} elements are too many to emulate, {most} at most")));
        }
        Ok(())
    }

    /// Asks for the memory that a run takes: the emulator ends the process where there is none.
    fn ask_for_memory(&self) -> Result<(), Fault> {
        let Self { variant, m, n, k, splits, .. } = *self;
        let tiling = tiling(variant, m.into(), n.into());
        let product = |rows: u32, cols: u32| u64::from(rows) * u64::from(cols);
        let slots = match variant.is_reduced() {
            true => product(m, n) * u64::from(splits),
            false => slots_len(variant, &tiling, m.into(), n.into(), splits),
        };
        let read = (product(m, k) + product(k, n)) * variant.dtype.bytes();
        let written = (product(m, n) + slots) * variant.dtype.bytes() + u64::from(WORK_HEAD_BYTES);
        // Of each operand there is for a moment what it is copied from.
        let operands = (2 * read).max(read + (2 + HISTORY) * written);
        let adding = if splits > 1 { SUM_SLOTS_THREADS } else { 0 };
        let stacks = u64::from(variant.threads.max(adding)) * STACK_BYTES;
        memory::ask(operands + stacks + (1 + HISTORY) * u64::from(tiling.shared_bytes))
    }

    fn grid(&self) -> [u32; 3] {
        let tiling = tiling(self.variant, self.m.into(), self.n.into());
        let blocks = |along: u64| u32::try_from(along).unwrap_or(u32::MAX);
        [blocks(tiling.x), self.splits, blocks(tiling.z)]
    }

    /// Runs it on made-up values, of which only their places are counted.
    pub fn run<T: Element + Pod>(self, alpha: T, beta: T) -> Result<Outcome, Fault> {
        let Self { variant, m, n, k, layouts, splits, patterns } = self;
        self.ask_for_memory()?;
        let [by_rows_a, by_rows_b, by_rows_c] = layouts.by_rows;
        let ((sa, len_a), (sb, len_b)) = (packed(m, k, by_rows_a), packed(k, n, by_rows_b));
        let (sc, len_c) = packed(m, n, by_rows_c);
        let mut memory = Memory::new();
        let (a, b) = (memory.input("A", &ones::<T>(len_a)), memory.input("B", &ones::<T>(len_b)));
        let c = if beta.is_zero() { memory.output("C", len(len_c)) } else { memory.inout("C", &ones::<T>(len_c)) };
        let grid = self.grid();
        let tiling = tiling(variant, m.into(), n.into());
        let shared_bytes = tiling.shared_bytes;
        let block = [variant.threads, 1, 1];
        let step_limit = u64::MAX; // the request was checked
        let launch = Launch {
            kernel: variant.entry,
            grid,
            block,
            shared_bytes,
            record: patterns,
            step_limit,
            ..Launch::default()
        };
        if variant.is_reduced() {
            let operands = Operands { a: (a, sa), b: (b, sb), c: (c, sc) };
            let (counters, added) = self.run_finishing(&mut memory, &operands, (alpha, beta), launch)?;
            return Ok(Outcome { request: self, grid, shared_bytes, counters, added });
        }
        let Some(entry) = table::product(variant.entry).and_then(T::of) else {
            return Err(Fault::Input(format!("{} is not among the kernels of this program", variant.entry)));
        };
        let slots_len = slots_len(variant, &tiling, m.into(), n.into(), splits);
        let joins = is_joined(variant, &tiling, splits);
        let adds = splits > 1 && !joins;
        let head = u64::from(WORK_HEAD_BYTES) / variant.dtype.bytes();
        let slots = match joins {
            true => memory.inout("slots", &vec![T::ZERO; len(head + slots_len)]),
            false => memory.output::<T>("slots", len(slots_len)),
        };
        let (out, so, scale, add, slot_len) = match adds {
            true => (slots, Strides::column_major(m.into()), T::ONE, T::ZERO, u64::from(m) * u64::from(n)),
            false => (c, sc, alpha, beta, 0),
        };
        let outcome = launch.run(&mut memory, |operands| {
            let (a, b, c) = (operands.global(a), operands.global(b), operands.global(out));
            let work = operands.global(slots);
            // SAFETY: the operands span their elements, and the geometry is that of the entry's row.
            unsafe {
                entry(m, n, k, a, sa.row, sa.col, b, sb.row, sb.col, scale, add, c, so.row, so.col, slot_len, 0, work);
            }
        });
        let counters = outcome.map_err(fault)?;
        let added = match adds {
            true => Some(self.add_slots(&mut memory, slots, (c, sc), (alpha, beta))?),
            false => None,
        };
        Ok(Outcome { request: self, grid, shared_bytes, counters, added })
    }

    fn add_slots<T: Element + Pod>(
        &self,
        memory: &mut Memory,
        slots: Buffer<T>,
        (c, strides): (Buffer<T>, Strides),
        (alpha, beta): (T, T),
    ) -> Result<Counters, Fault> {
        let Self { m, n, splits, .. } = *self;
        let dtype: Dtype = self.variant.dtype;
        // `check` keeps m n far below 2^32.
        let grid = [(m * n).div_ceil(SUM_SLOTS_THREADS), 1, 1];
        let block = [SUM_SLOTS_THREADS, 1, 1];
        let launch = Launch { kernel: sum_slots(dtype), grid, block, step_limit: u64::MAX, ..Launch::default() };
        let outcome = launch.run(memory, |operands| {
            let (slots, c) = (operands.global(slots), operands.global(c));
            // SAFETY: the grid covers C, and the operands span their elements.
            unsafe { T::SUM_SLOTS(m, n, slots, splits, alpha, beta, c, strides.row, strides.col) };
        });
        outcome.map_err(fault)
    }
}

/// What ended a launch: a rule that the kernel broke, or that there was no memory for the stack of one of its threads.
pub fn fault(fault: Box<simt::Fault>) -> Fault {
    let words = fault.to_string();
    match (fault.kind, fault.party) {
        (FaultKind::BadLaunch, Some(_)) => Fault::Memory(words),
        _ => Fault::Check(words),
    }
}

/// `check` has seen that it fits.
pub fn len(elements: u64) -> usize {
    usize::try_from(elements).unwrap_or(usize::MAX)
}

fn ones<T: Element>(elements: u64) -> Vec<T> {
    vec![T::ONE; len(elements)]
}
