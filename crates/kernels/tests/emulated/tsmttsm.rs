//! Products of two tall matrices, however they are finished; and Gram matrices.

use crate::harness::{Case, Element, Layout};
use cuda_std::Global;
use lanky_kernels::table::{self, Reduced, ReducedFn};
use lanky_kernels::tsmttsm::finish::Atomic;
use model::launch::reduced::{Finish, Triangle, WORK_HEAD_BYTES};
use model::launch::tiling;
use model::variants::{SUM_SLOTS_THREADS, reduce_slots};
use model::{Kernel, Strides, Variant};
use simt::{Counters, Launch, Memory};

/// Cases whose rows are whole 16 bytes, by rows and by columns, with more rounds than are in flight and some rows more.
pub fn streams([rows, cols, step]: [u32; 3]) -> Vec<Case> {
    let (even, k) = (|side: u32| side.next_multiple_of(4), 5 * step + 3);
    let by_rows = |case: Case| Case { by_rows: [false, true, true], ..case };
    let by_columns = |case: Case| Case { by_rows: [true, false, false], ..case };
    // Of A, which is m x k, columns are rows of the tall matrix.
    let plain = Case { alpha: 0.5, ..Case::plain(rows, cols, k) };
    vec![
        by_rows(plain),
        by_rows(Case { splits: 2, beta: 1.0, ..Case::plain(even(rows), even(cols), k) }),
        by_rows(Case { splits: 3, ..Case::plain(even(rows + 1), even(cols + 5), k) }),
        by_columns(Case { gap: u64::from(k.next_multiple_of(4) - k), ..plain }),
        by_columns(Case {
            splits: 2,
            beta: -1.0,
            gap: u64::from(k.next_multiple_of(4) - k),
            ..Case::plain(rows + 1, 1, k)
        }),
        by_rows(Case { gap: 1, offset: 1, ..plain }),
    ]
}

/// Computes the case in each of the ways to finish it, and each triangle of a Gram matrix, and compares.
pub fn check(variant: &Variant, case: Case) -> Counters {
    match table::reduced(variant.entry) {
        Some(Reduced::F32(entry)) => check_all(variant, entry, case),
        Some(Reduced::F64(entry)) => check_all(variant, entry, case),
        None => panic!("{} is in the model's table only", variant.entry),
    }
}

fn check_all<T: Element + Atomic>(variant: &Variant, entry: ReducedFn<T>, mut case: Case) -> Counters {
    let gram = variant.kernel == Kernel::Gram;
    if gram {
        case.m = case.m.min(variant.most_columns().unwrap_or(u32::MAX));
        (case.n, case.by_rows[1]) = (case.m, !case.by_rows[0]);
    }
    let finishes: &[Finish] = match case.splits {
        1 => &[Finish::Direct],
        _ if variant.adds_atomically() => &[Finish::Direct],
        _ => &[Finish::SecondLaunch, Finish::LastBlock],
    };
    // One triangle a case.
    let triangle = [Triangle::Full, Triangle::Lower, Triangle::Upper][if gram { case.k as usize % 3 } else { 0 }];
    let run = |finish: &Finish| check_one(variant, entry, case, (*finish, triangle));
    finishes.iter().map(run).fold(Counters::default(), |_, counters| counters)
}

/// Whether an element is written.
fn is_asked_for(triangle: Triangle, i: u32, j: u32) -> bool {
    match triangle {
        Triangle::Full => true,
        Triangle::Lower => i >= j,
        Triangle::Upper => i <= j,
    }
}

fn check_one<T: Element + Atomic>(
    variant: &Variant,
    entry: ReducedFn<T>,
    case: Case,
    (finish, triangle): (Finish, Triangle),
) -> Counters {
    let Case { m, n, k, by_rows, gap, offset, alpha, beta, splits, conj } = case;
    let gram = variant.kernel == Kernel::Gram;
    let at_a = Layout::new(m, k, by_rows[0], gap);
    let at_b = Layout { rows: k, cols: n, ..if gram { transposed(at_a) } else { Layout::new(k, n, by_rows[1], gap) } };
    let at_c = Layout::new(m, n, by_rows[2], gap);
    let a = at_a.filled::<T>(1);
    let b = if gram { a.clone() } else { at_b.filled::<T>(2) };
    let c = at_c.filled::<T>(3);
    let (alpha, beta) = (T::exactly(alpha), T::exactly(beta));

    let mut memory = Memory::new();
    memory.offset(offset);
    let buffer_a = memory.input("A", &a);
    let buffer_b = if gram { buffer_a } else { memory.input("B", &b) };
    // Atomics add to what another launch left of C.
    let atomic = variant.adds_atomically();
    let scaled: Vec<T> = c.iter().map(|old| if beta.is_zero() { T::ZERO } else { beta.mul(*old) }).collect();
    let buffer_c = match (atomic, beta.is_zero()) {
        (true, _) => memory.inout("C", &scaled),
        (_, true) => memory.output("C", c.len()),
        _ => memory.inout("C", &c),
    };
    memory.offset(0);
    let head = WORK_HEAD_BYTES as usize / size_of::<T>();
    let work = memory.inout("ticket and slots", &vec![T::ZERO; head + m as usize * n as usize * splits as usize]);
    let codes = finish.code() | triangle.code();
    let tiling = tiling(variant, m.into(), n.into());
    let launch = Launch {
        kernel: variant.entry,
        grid: [tiling.x as u32, splits, tiling.z as u32],
        block: [variant.threads, 1, 1],
        shared_bytes: tiling.shared_bytes,
        ..Launch::default()
    };
    let outcome = launch.run(&mut memory, |operands| {
        let (a, b, c) = (operands.global(buffer_a), operands.global(buffer_b), operands.global(buffer_c));
        let (sa, sb, sc) = (at_a.strides, at_b.strides, at_c.strides);
        let work: Global<T> = operands.global(work);
        // SAFETY: the operands span their elements, and the geometry is that of the entry's row; the emulator checks.
        unsafe {
            entry(m, n, k, a, sa.row, sa.col, b, sb.row, sb.col, alpha, beta, c, sc.row, sc.col, work, codes, conj);
        }
    });
    let counters = outcome.unwrap_or_else(|fault| panic!("{fault}"));
    if finish == Finish::SecondLaunch {
        let blocks = (m * n).div_ceil(SUM_SLOTS_THREADS / 8);
        let launch = Launch {
            kernel: reduce_slots(T::DTYPE),
            grid: [blocks, 1, 1],
            block: [SUM_SLOTS_THREADS, 1, 1],
            shared_bytes: SUM_SLOTS_THREADS * size_of::<T>() as u32,
            ..Launch::default()
        };
        let codes = codes | u32::from(gram) << 8;
        let outcome = launch.run(&mut memory, |operands| {
            let (c, work): (Global<T>, Global<T>) = (operands.global(buffer_c), operands.global(work));
            let Strides { row, col } = at_c.strides;
            // SAFETY: the grid covers C, the operands span their elements; the emulator checks.
            unsafe { T::REDUCE_SLOTS(m, n, splits, alpha, beta, c, row, col, work, codes) };
        });
        outcome.unwrap_or_else(|fault| panic!("{fault}"));
    }
    assert!(memory.guards_intact());
    let after = memory.read(work);
    assert!(after[..head].iter().all(|word| word.is_zero()), "the ticket is 0 again");
    let sum = |i, j| (0..k).fold(T::ZERO, |sum, l| sum.add(a[at_a.at(i, l)].mul(b[at_b.at(l, j)])));
    let mut expected: Vec<Option<T>> = vec![None; at_c.len];
    for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))).filter(|(i, j)| is_asked_for(triangle, *i, *j)) {
        let at = at_c.at(i, j);
        let old = if beta.is_zero() { T::ZERO } else { beta.mul(c[at]) };
        expected[at] = Some(alpha.mul(sum(i, j)).add(old));
    }
    let (got, written) = (memory.read(buffer_c), memory.written(buffer_c));
    for (at, expected) in expected.into_iter().enumerate() {
        assert_eq!(written[at], expected.is_some(), "whether element {at} of C's memory was written");
        assert!(expected.is_none_or(|expected| got[at] == expected), "{at}: {:?}, not {expected:?}", got[at]);
    }
    counters
}

/// The layout of the transposed matrix.
fn transposed(layout: Layout) -> Layout {
    Layout { rows: layout.cols, cols: layout.rows, strides: layout.strides.transposed(), len: layout.len }
}
