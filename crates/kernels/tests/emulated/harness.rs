//! Runs a product and compares it, element by element, with a plain one.

use cuda_std::{Complex, Global};
use lanky_kernels::table::{self, Product, ProductFn};
use model::launch::reduced::{WORK_HEAD_BYTES, has_tickets, is_joined};
use model::launch::{slots_len, tiling};
use model::variants::SUM_SLOTS_THREADS;
use model::{Dtype, Strides, Variant, span, sum_slots};
use simt::{Buffer, Counters, Launch, Memory};
use watched::numbers::integer;

/// An element type of the kernels.
pub trait Element: watched::Element + table::Element {
    const DTYPE: Dtype;
    /// The number, which must fit exactly.
    fn exactly(value: f64) -> Self {
        let made = Self::of_two(value, 0.0);
        assert_eq!(made.two(), [value, 0.0]);
        made
    }
    /// What α or β is for a number: of complex ones, but for 0 and 1, with an imaginary part.
    fn factor(value: f64) -> Self {
        Self::of_two(value, if value == 0.0 || value == 1.0 { 0.0 } else { 2.0 * value })
    }
}

macro_rules! elements {
    ($($element:ty: $dtype:ident;)*) => {
        $(impl Element for $element { const DTYPE: Dtype = Dtype::$dtype; })*
    };
}
elements! { f32: F32; f64: F64; Complex<f32>: C64; Complex<f64>: C128; }

/// Gaps from here on have no memory: what lies behind them is further away than 32 bits count.
pub const FAR: u64 = (1 << 32) + 64;

/// A matrix in memory.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pub rows: u32,
    pub cols: u32,
    /// As kernels see it.
    pub strides: Strides,
    /// Elements of its data, in which far lines lie behind each other.
    pub len: usize,
    by_rows: bool,
}

impl Layout {
    /// By rows or by columns, `gap` elements between the end of one and the start of the next.
    pub fn new(rows: u32, cols: u32, by_rows: bool, gap: u64) -> Layout {
        let along = u64::from(if by_rows { cols } else { rows });
        let line = if gap < FAR { along + gap } else { (along + gap).next_multiple_of(4) };
        let strides = if by_rows { Strides::row_major(line) } else { Strides::column_major(line) };
        let len = if gap < FAR { span(rows.into(), cols.into(), strides) } else { Some(u64::from(rows * cols)) };
        let Some(len) = len else { panic!("{rows} x {cols} is too large") };
        Layout { rows, cols, strides, len: len as usize, by_rows }
    }

    /// The same memory as its transpose.
    pub fn transposed(self) -> Layout {
        let Layout { rows, cols, strides, by_rows, .. } = self;
        Layout { rows: cols, cols: rows, strides: strides.transposed(), by_rows: !by_rows, ..self }
    }

    /// Where element (i, j) lies in its data.
    pub fn at(&self, i: u32, j: u32) -> usize {
        let (line, along, at) = if self.by_rows { (i, self.cols, j) } else { (j, self.rows, i) };
        let line_len = self.pieces().map_or(self.strides.row.max(self.strides.col), |_| along.into());
        (u64::from(line) * line_len) as usize + at as usize
    }

    /// Elements of a line, and how far lines are apart, where that is further than 32 bits count.
    pub fn pieces(&self) -> Option<(usize, usize)> {
        let (along, distance) =
            if self.by_rows { (self.cols, self.strides.row) } else { (self.rows, self.strides.col) };
        (distance >= FAR).then_some((along as usize, distance as usize))
    }

    /// Small integers at the elements, NaN between them.
    pub fn filled<T: Element>(&self, seed: u64) -> Vec<T> {
        let part = |seed, i, j| integer(seed, i as usize, j as usize, 2);
        self.laid(|i, j| T::of_two(part(seed, i, j), part(seed + 1000, i, j)))
    }

    /// These at the elements, NaN between them.
    pub fn laid<T: Element>(&self, of: impl Fn(u32, u32) -> T) -> Vec<T> {
        let mut data = vec![T::canary(); self.len];
        self.places().for_each(|(i, j)| data[self.at(i, j)] = of(i, j));
        data
    }

    /// Rows and columns of its elements, down the columns.
    pub fn places(self) -> impl Iterator<Item = (u32, u32)> {
        (0..self.cols).flat_map(move |j| (0..self.rows).map(move |i| (i, j)))
    }
}

/// In which order a case's blocks and warps are taken: each case in one of its own, the same in every run; by SIMT_SEED's where that
/// is set, as a fault's message says. The number is shown if what follows fails.
pub fn order(case: std::fmt::Arguments<'_>) -> Option<u64> {
    if std::env::var_os("SIMT_SEED").is_some() {
        return None;
    }
    // FNV-1a.
    let mix = |seed: u64, byte: u8| (seed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let seed = case.to_string().bytes().fold(0xcbf2_9ce4_8422_2325, mix);
    println!("SIMT_SEED={seed}");
    Some(seed)
}

/// C as a kernel gets it: without a value where β = 0, so that reading it is a fault.
pub fn result<T: Element>(memory: &mut Memory, c: &[T], beta: T) -> Buffer<T> {
    if beta.is_zero() { memory.output("C", c.len()) } else { memory.inout("C", c) }
}

/// C is α · `sum`(i, j) + β · `before`, and nothing else was written.
pub fn compare<T: Element>(
    memory: &Memory,
    (buffer, layout): (Buffer<T>, Layout),
    before: &[T],
    (alpha, beta): (T, T),
    sum: impl Fn(u32, u32) -> T,
) {
    assert!(memory.guards_intact());
    let mut expected = vec![None; layout.len];
    for (i, j) in layout.places() {
        let at = layout.at(i, j);
        let old = if beta.is_zero() { T::ZERO } else { beta.mul(before[at]) };
        expected[at] = Some(alpha.mul(sum(i, j)).add(old));
    }
    are(&memory.read(buffer), &memory.written(buffer), &expected);
}

/// Each element of C's memory is the one that is expected, and was written; where none is, it was not.
pub fn are<T: Element>(got: &[T], written: &[bool], expected: &[Option<T>]) {
    for (at, expected) in expected.iter().enumerate() {
        assert_eq!(written[at], expected.is_some(), "whether element {at} of C's memory was written");
        assert!(expected.is_none_or(|expected| got[at] == expected), "{at}: {:?}, not {expected:?}", got[at]);
    }
}

/// A product to compute.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub m: u32,
    pub n: u32,
    pub k: u32,
    /// Whether A, B and C lie by rows.
    pub by_rows: [bool; 3],
    /// Elements between the end of a row or column and the start of the next.
    pub gap: u64,
    /// Elements more of it in C.
    pub c_gap: u64,
    /// Elements by which the operands start past 256 bytes.
    pub offset: usize,
    pub alpha: f64,
    pub beta: f64,
    pub splits: u32,
    /// Bit 0: the conjugates of A; bit 1: of B.
    pub conj: u32,
}

impl Case {
    /// C = A B, all packed by columns, in one part.
    pub const fn plain(m: u32, n: u32, k: u32) -> Case {
        Case { m, n, k, by_rows: [false; 3], gap: 0, c_gap: 0, offset: 0, alpha: 1.0, beta: 0.0, splits: 1, conj: 0 }
    }

    /// Of A, B and C.
    pub fn layouts(&self) -> [Layout; 3] {
        let Case { m, n, k, by_rows: [a, b, c], gap, c_gap, .. } = *self;
        [Layout::new(m, k, a, gap), Layout::new(k, n, b, gap), Layout::new(m, n, c, gap + c_gap)]
    }
}

/// Computes the case with an entry, of whichever type, and compares; gives what the product kernel did.
pub fn check(variant: &Variant, case: Case) -> Counters {
    check_in_turn(variant, case, u32::MAX)
}

/// The same with at most so many blocks along x, which take the tiles in turn.
pub fn check_in_turn(variant: &Variant, case: Case, blocks: u32) -> Counters {
    println!("{} {case:?}", variant.entry); // shown if what follows fails
    if variant.is_reduced() {
        return crate::tsmttsm::check(variant, case);
    }
    match table::product(variant.entry) {
        Some(Product::F32(entry)) => check_product(variant, entry, case, blocks),
        Some(Product::F64(entry)) => check_product(variant, entry, case, blocks),
        Some(Product::C64(entry)) => check_product(variant, entry, case, blocks),
        Some(Product::C128(entry)) => check_product(variant, entry, case, blocks),
        None => panic!("{} is in the model's table only", variant.entry),
    }
}

fn check_product<T: Element>(variant: &Variant, entry: ProductFn<T>, case: Case, blocks: u32) -> Counters {
    let Case { k, conj, .. } = case;
    let [at_a, at_b, at_c] = case.layouts();
    let (a, b, c) = (at_a.filled::<T>(1), at_b.filled::<T>(2), at_c.filled::<T>(3));
    let (counters, memory, buffer_c) = run_product(variant, entry, case, blocks, [&a, &b, &c]);
    compare(&memory, (buffer_c, at_c), &c, (T::factor(case.alpha), T::factor(case.beta)), |i, j| {
        let (a, b) = (|l| a[at_a.at(i, l)].conj_if(conj & 1 == 1), |l| b[at_b.at(l, j)].conj_if(conj & 2 == 2));
        (0..k).fold(T::ZERO, |sum, l| sum.add(a(l).mul(b(l))))
    });
    counters
}

/// What the product kernel did with A, B and C, and the memory behind it and what adds its slots.
pub fn run_product<T: Element>(
    variant: &Variant,
    entry: ProductFn<T>,
    case: Case,
    blocks: u32,
    [a, b, c]: [&[T]; 3],
) -> (Counters, Memory, Buffer<T>) {
    let Case { m, n, k, offset, alpha, beta, splits, conj, .. } = case;
    let [at_a, at_b, at_c] = case.layouts();
    let (alpha, beta) = (T::factor(alpha), T::factor(beta));

    let mut memory = Memory::new();
    memory.offset(offset);
    memory.pieces(at_a.pieces());
    let buffer_a = memory.input("A", a);
    memory.pieces(at_b.pieces());
    let buffer_b = memory.input("B", b);
    memory.pieces(at_c.pieces());
    let buffer_c = result(&mut memory, c, beta);
    memory.pieces(None);
    let tiling = tiling(variant, m.into(), n.into());
    assert!(splits == 1 || has_tickets(variant, &tiling));
    let slots = slots_len(variant, &tiling, m.into(), n.into(), splits) as usize;
    let joins = is_joined(variant, &tiling, splits);
    let adds = splits > 1 && !joins;
    let head = WORK_HEAD_BYTES as usize / size_of::<T>();
    let scratch = match joins {
        // Tickets are 0; nobody may count on what the slots held.
        true => memory.inout("slots", &[vec![T::ZERO; head], vec![T::factor(f64::NAN); slots]].concat()),
        false => memory.output::<T>("slots", slots),
    };
    let packed = Layout::new(m, n, false, 0);
    let (out, at_out, scale, add, slot_len) = match adds {
        true => (scratch, packed, T::ONE, T::ZERO, packed.len as u64),
        false => (buffer_c, at_c, alpha, beta, 0),
    };
    let grid = [blocks.min(tiling.x as u32), splits, tiling.z as u32];
    let block = [variant.threads, 1, 1];
    let shared_bytes = tiling.shared_bytes;
    let seed = order(format_args!("{} {case:?} {grid:?}", variant.entry));
    let launch = Launch { kernel: variant.entry, grid, block, shared_bytes, seed, ..Launch::default() };
    let outcome = launch.run(&mut memory, |operands| {
        let (a, b, c) = (operands.global(buffer_a), operands.global(buffer_b), operands.global(out));
        let (sa, sb, sc) = (at_a.strides, at_b.strides, at_out.strides);
        let work = operands.global(scratch);
        // SAFETY: the operands span their elements, and the geometry is that of the entry's row; the emulator checks.
        unsafe {
            entry(m, n, k, a, sa.row, sa.col, b, sb.row, sb.col, scale, add, c, sc.row, sc.col, slot_len, conj, work);
        }
    });
    let counters = outcome.unwrap_or_else(|fault| panic!("{fault}"));
    if joins {
        assert!(memory.read(scratch)[..head].iter().all(|word| word.is_zero()), "tickets are 0 again");
    }
    if adds {
        add_slots(&mut memory, (scratch, splits), (buffer_c, at_c), (alpha, beta));
    }
    (counters, memory, buffer_c)
}

/// Runs the entry that adds `count` slots.
pub fn add_slots<T: Element>(
    memory: &mut Memory,
    (slots, count): (Buffer<T>, u32),
    (c, layout): (Buffer<T>, Layout),
    (alpha, beta): (T, T),
) -> Counters {
    let Layout { rows, cols, strides, .. } = layout;
    let grid = [(rows * cols).div_ceil(SUM_SLOTS_THREADS), 1, 1];
    let (kernel, block) = (sum_slots(T::DTYPE), [SUM_SLOTS_THREADS, 1, 1]);
    let seed = order(format_args!("{kernel} {count} {layout:?}"));
    let launch = Launch { kernel, grid, block, seed, ..Launch::default() };
    let outcome = launch.run(memory, |operands| {
        let (slots, c): (Global<T>, Global<T>) = (operands.global(slots), operands.global(c));
        // SAFETY: the grid covers C, the operands span their elements; the emulator checks.
        unsafe { T::SUM_SLOTS(rows, cols, slots, count, alpha, beta, c, strides.row, strides.col) };
    });
    outcome.unwrap_or_else(|fault| panic!("{fault}"))
}
