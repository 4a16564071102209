//! Every product entry under the emulator: no fault, the exact product, nothing written outside C, nothing read at β = 0.

use bytemuck::Pod;
use cuda_std::{Global, Scalar};
use lanky_kernels::{gemm, slots, tsm2r};
use model::launch::{slots_len, tiling};
use model::variants::SUM_SLOTS_THREADS;
use model::{Dtype, Kernel, VARIANTS, Variant, sum_slots};
use simt::{Buffer, Counters, Launch, Memory};

/// A product kernel.
type Entry<T> = unsafe fn(u32, u32, u32, Global<T>, u64, u64, Global<T>, u64, u64, T, T, Global<T>, u64, u64, u64);
/// A sum of slots.
type SumSlots<T> = unsafe fn(u32, u32, Global<T>, u32, T, T, Global<T>, u64, u64);

/// An entry of either element type.
enum Function {
    F32(Entry<f32>),
    F64(Entry<f64>),
}

/// The spelling of an element type in a table row.
mod elem {
    use super::{Entry, Function};
    pub fn f32(entry: Entry<f32>) -> Function {
        Function::F32(entry)
    }
    pub fn f64(entry: Entry<f64>) -> Function {
        Function::F64(entry)
    }
}

macro_rules! tsm2r_entry {
    ($($entry:ident: $elem:ident, $variant:ident, $t1:literal, $t2:literal, $t3:literal, $blocks:literal, $wide:literal;)*) => {
        const TSM2R: &[(&str, fn() -> Function)] = &[$((stringify!($entry), || elem::$elem(tsm2r::$entry))),*];
    };
}
model::tsm2r_variants!(tsm2r_entry);

macro_rules! gemm_entry {
    ($($entry:ident: $elem:ident, $tm:literal, $tn:literal, $threads:literal, $blocks:literal;)*) => {
        const GEMM: &[(&str, fn() -> Function)] = &[$((stringify!($entry), || elem::$elem(gemm::$entry))),*];
    };
}
model::gemm_variants!(gemm_entry);

/// An element type of the kernels.
trait Element: Scalar + Pod + PartialEq + std::fmt::Debug {
    const NAN: Self;
    fn from(value: i32) -> Self;
    fn sum_slots() -> (&'static str, SumSlots<Self>);
}

macro_rules! element {
    ($float:ident, $dtype:ident, $sum:ident) => {
        impl Element for $float {
            const NAN: $float = $float::NAN;
            fn from(value: i32) -> $float {
                value as $float
            }
            fn sum_slots() -> (&'static str, SumSlots<$float>) {
                (sum_slots(Dtype::$dtype), slots::$sum)
            }
        }
    };
}
element!(f32, F32, ssum_slots_t256);
element!(f64, F64, dsum_slots_t256);

/// A product to compute.
#[derive(Clone, Copy, Debug)]
struct Case {
    m: u32,
    n: u32,
    k: u32,
    /// Whether A, B and C lie by rows.
    by_rows: [bool; 3],
    /// Elements between the end of a row or column and the start of the next.
    gap: u64,
    alpha: i32,
    beta: i32,
    splits: u32,
}

/// A matrix's strides and length in memory.
fn strides(rows: u32, cols: u32, by_rows: bool, gap: u64) -> (u64, u64, usize) {
    let (rows, cols) = (u64::from(rows), u64::from(cols));
    let (row, col) = if by_rows { (cols + gap, 1) } else { (1, rows + gap) };
    (row, col, ((rows - 1) * row + (cols - 1) * col + 1) as usize)
}

/// Small integers at a matrix's elements, NaN between them.
fn filled<T: Element>(rows: u32, cols: u32, (row, col, len): (u64, u64, usize), seed: u64) -> Vec<T> {
    let mut data = vec![T::NAN; len];
    for i in 0..u64::from(rows) {
        for j in 0..u64::from(cols) {
            let random = (i * 7919 + j * 104_729 + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            data[(i * row + j * col) as usize] = <T as Element>::from((random % 5) as i32 - 2);
        }
    }
    data
}

/// Runs the case with an entry and compares with a plain product; gives what the product kernel did.
fn check<T: Element>(variant: &Variant, entry: Entry<T>, case: Case) -> Counters {
    let Case { m, n, k, by_rows, gap, alpha, beta, splits } = case;
    let place = format!("{} {case:?}", variant.entry);
    let shape_a = strides(m, k, by_rows[0], gap);
    let shape_b = strides(k, n, by_rows[1], gap);
    let shape_c = strides(m, n, by_rows[2], gap);
    let (a, b, c) = (filled::<T>(m, k, shape_a, 1), filled::<T>(k, n, shape_b, 2), filled::<T>(m, n, shape_c, 3));
    let (alpha, beta) = (<T as Element>::from(alpha), <T as Element>::from(beta));

    let mut memory = Memory::new();
    let (buffer_a, buffer_b) = (memory.input("A", &a), memory.input("B", &b));
    let buffer_c = if beta.is_zero() { memory.output("C", c.len()) } else { memory.inout("C", &c) };
    let scratch = memory.output::<T>("slots", slots_len(m.into(), n.into(), splits) as usize);
    let (out, scale, add, out_row, out_col, slot_len) = match splits {
        1 => (buffer_c, alpha, beta, shape_c.0, shape_c.1, 0),
        _ => (scratch, T::ONE, T::ZERO, 1, m.into(), u64::from(m) * u64::from(n)),
    };
    let tiling = tiling(variant, m.into(), n.into());
    let grid = [tiling.x as u32, splits, tiling.z as u32];
    let block = [variant.threads, 1, 1];
    let launch = Launch { kernel: variant.entry, grid, block, shared_bytes: tiling.shared_bytes, ..Launch::default() };
    let counters = launch.run(&mut memory, |operands| {
        let (a, b, c) = (operands.global(buffer_a), operands.global(buffer_b), operands.global(out));
        // SAFETY: the operands span their elements, and the geometry is that of the entry's row; the emulator checks.
        unsafe {
            entry(m, n, k, a, shape_a.0, shape_a.1, b, shape_b.0, shape_b.1, scale, add, c, out_row, out_col, slot_len)
        };
    });
    let counters = counters.unwrap_or_else(|fault| panic!("{place}: {fault}"));
    if splits > 1 {
        add_slots(&mut memory, case, scratch, buffer_c, (alpha, beta));
    }

    assert!(memory.guards_intact(), "{place}");
    let (got, written) = (memory.read(buffer_c), memory.written(buffer_c));
    let mut expected = vec![None; c.len()];
    for i in 0..m {
        for j in 0..n {
            let at =
                |(row, col, _): (u64, u64, usize), i: u32, j: u32| (u64::from(i) * row + u64::from(j) * col) as usize;
            let sum = (0..k).fold(T::ZERO, |sum, l| sum.add(a[at(shape_a, i, l)].mul(b[at(shape_b, l, j)])));
            let before = if beta.is_zero() { T::ZERO } else { beta.mul(c[at(shape_c, i, j)]) };
            expected[at(shape_c, i, j)] = Some(alpha.mul(sum).add(before));
        }
    }
    for (at, expected) in expected.into_iter().enumerate() {
        assert_eq!(written[at], expected.is_some(), "{place}: element {at} of C's memory");
        assert!(expected.is_none_or(|expected| got[at] == expected), "{place}: {:?} {expected:?}", got[at]);
    }
    counters
}

fn add_slots<T: Element>(memory: &mut Memory, case: Case, scratch: Buffer<T>, c: Buffer<T>, (alpha, beta): (T, T)) {
    let (kernel, entry) = T::sum_slots();
    let (row, col, _) = strides(case.m, case.n, case.by_rows[2], case.gap);
    let grid = [(case.m * case.n).div_ceil(SUM_SLOTS_THREADS), 1, 1];
    let launch = Launch { kernel, grid, block: [SUM_SLOTS_THREADS, 1, 1], ..Launch::default() };
    let outcome = launch.run(memory, |operands| {
        let (slots, c) = (operands.global(scratch), operands.global(c));
        // SAFETY: as above.
        unsafe { entry(case.m, case.n, slots, case.splits, alpha, beta, c, row, col) };
    });
    outcome.unwrap_or_else(|fault| panic!("{kernel} {case:?}: {fault}"));
}

fn check_entry(variant: &Variant, case: Case) -> Counters {
    let table = if variant.kernel == Kernel::Gemm { GEMM } else { TSM2R };
    let Some((_, function)) = table.iter().find(|(entry, _)| *entry == variant.entry) else {
        panic!("{} is in the model's table only", variant.entry)
    };
    match function() {
        Function::F32(entry) => check(variant, entry, case),
        Function::F64(entry) => check(variant, entry, case),
    }
}

/// Each entry at five shapes round its tile: shorter, ragged and longer than a tile in each direction, every layout, gaps,
/// α and β that are 0, 1 and neither, one part of k and three.
#[test]
fn every_entry_computes_the_product_without_a_fault() {
    let cases = [
        Case { m: 1, n: 1, k: 1, by_rows: [false; 3], gap: 0, alpha: 1, beta: 0, splits: 1 },
        Case { m: 131, n: 5, k: 137, by_rows: [false; 3], gap: 3, alpha: 2, beta: 0, splits: 1 },
        Case { m: 127, n: 17, k: 67, by_rows: [true, true, false], gap: 1, alpha: -1, beta: 2, splits: 1 },
        Case { m: 33, n: 3, k: 263, by_rows: [false, true, true], gap: 0, alpha: 1, beta: 1, splits: 3 },
        Case { m: 5, n: 2, k: 129, by_rows: [true, false, true], gap: 2, alpha: 0, beta: 0, splits: 2 },
    ];
    for variant in VARIANTS {
        for case in cases {
            check_entry(variant, case);
        }
    }
}

/// 10^7 fused multiply-adds with all checks on, by the plainest kernel and by the paper's best.
#[test]
#[cfg_attr(debug_assertions, ignore = "the bound is for a release build")]
fn ten_million_multiply_adds_take_less_than_five_seconds() {
    for entry in ["dtsm2r_inner_1x1_u1_t128", "dtsm2r_prefetch_1x8_u4_t128"] {
        let Some(variant) = VARIANTS.iter().find(|variant| variant.entry == entry) else { panic!("no {entry}") };
        let case = Case { m: 1280, n: 8, k: 977, by_rows: [false; 3], gap: 0, alpha: 1, beta: 0, splits: 1 };
        let start = std::time::Instant::now();
        let counters = check_entry(variant, case);
        let seconds = start.elapsed().as_secs_f64();
        assert!(counters.fma >= 10_000_000, "{}", counters.fma);
        let accesses: u64 = counters.operands.iter().map(|o| o.loads.elements + o.stores.elements).sum();
        println!(
            "{entry}: {seconds:.2} s, {} fma, {} accesses of global memory, {} of shared memory a warp",
            counters.fma, accesses, counters.shared.loads.instructions
        );
        assert!(seconds < 5.0, "{entry}: {seconds:.2} s");
    }
}

/// TSM2X's claims about memory, counted: m = k = 768, n = 4, f64, everything column-major, t1 = 128.
#[test]
fn traffic_is_what_the_paper_says() {
    let (m, n, k, t1) = (768u64, 4u64, 768u64, 128u64);
    let case = Case { m: 768, n: 4, k: 768, by_rows: [false; 3], gap: 0, alpha: 1, beta: 0, splits: 1 };
    let mut efficiencies = Vec::new();
    for (name, a_reads, b_reads) in [
        ("tsm2r_inner_1x1_u1_t128", n, m),
        ("tsm2r_outer_1x4_u1_t128", 1, m),
        ("tsm2r_shared_1x4_u4_t128", 1, m / t1),
        ("tsm2r_shared_rowmajor_1x4_u4_t128", 1, m / t1),
        ("tsm2r_prefetch_1x4_u4_t128", 1, m / t1),
    ] {
        let Some(variant) = VARIANTS.iter().find(|v| v.entry == format!("d{name}")) else { panic!("no d{name}") };
        let counters = check_entry(variant, case);
        let (a, b) = (counters.operand("A").loads, counters.operand("B").loads);
        assert_eq!(counters.fma, m * n * k, "{name}");
        assert_eq!((a.elements, b.elements), (m * k * a_reads, k * n * b_reads), "{name}");
        assert_eq!(a.efficiency(), 1.0, "{name}");
        efficiencies.push(b.efficiency());
        let stores = counters.shared.stores;
        let ways = if name.contains("rowmajor") { 4 } else { 1 };
        assert_eq!(stores.wavefronts, stores.instructions * 2 * ways, "{name}: a warp of f64 needs two wavefronts");
        assert_eq!(counters.shared.loads.bank_conflicts, 0, "{name}");
    }
    assert_eq!(efficiencies, [0.25, 0.25, 1.0, 1.0, 1.0]);
}
