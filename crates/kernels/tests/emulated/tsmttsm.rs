//! Products of two tall matrices, however they are finished; and Gram matrices.

use crate::harness::{Case, Element, Layout, are, order};
use cuda_std::{Complex, Global};
use lanky_kernels::table::{self, Reduced, ReducedFn};
use model::launch::reduced::{Finish, STAGES, Triangle, WORK_HEAD_BYTES, codes};
use model::launch::tiling;
use model::variants::{SUM_SLOTS_THREADS, reduce_slots};
use model::{Kernel, Strides, Variant};
use simt::{Counters, Launch, Memory};

/// Cases whose rows are whole 16 bytes, by rows and by columns, with more rounds than are in flight and some rows more.
pub fn streams([rows, cols, step]: [u32; 3]) -> Vec<Case> {
    let (even, k) = (|side: u32| side.next_multiple_of(4), 5 * step + 3);
    let by_rows = |case: Case| Case { by_rows: [false, true, true], ..case };
    let by_columns = |case: Case| Case { by_rows: [true, false, false], ..case };
    let less = |side: u32, by: u32| side.saturating_sub(by).max(1);
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
        // Rings of packed rows go round twice; of odd widths, of even ones, of multiples of 4; and from where 16 bytes do not begin.
        by_rows(Case::plain(less(rows, 3), less(cols, 1), 9 * step + 5)),
        by_rows(Case { splits: 2, ..Case::plain(less(rows, 2), less(cols, 6), 9 * step) }),
        by_rows(Case { beta: 1.0, ..Case::plain(less(rows, 4), less(cols, 12), 4 * step + 2) }),
        by_rows(Case { offset: 1, splits: 2, ..Case::plain(less(rows, 1), less(cols, 3), 3 * step + 1) }),
    ]
}

/// As [`streams`], of a C of one tile, of several, and of as many as the block has threads for: most groups, and fewest.
pub fn fitted(variant: &Variant) -> Vec<Case> {
    let most = variant.most_columns().expect("one tile of C");
    let sides = [(variant.rows, variant.t2), (33.min(most), 31.min(most)), (most, most)];
    let of = |(m, n): (u32, u32)| streams([m, n, tiling(variant, m.into(), n.into()).k_step]);
    sides.into_iter().flat_map(of).collect()
}

/// Computes the case in each of the ways to finish it, and each triangle of a Gram matrix, and compares.
pub fn check(variant: &Variant, case: Case) -> Counters {
    match table::reduced(variant.entry) {
        Some(Reduced::F32(entry)) => check_all(variant, entry, case),
        Some(Reduced::F64(entry)) => check_all(variant, entry, case),
        Some(Reduced::C64(entry)) => check_all(variant, entry, case),
        Some(Reduced::C128(entry)) => check_all(variant, entry, case),
        None => panic!("{} is in the model's table only", variant.entry),
    }
}

fn check_all<T: Element>(variant: &Variant, entry: ReducedFn<T>, mut case: Case) -> Counters {
    let gram = variant.kernel == Kernel::Gram;
    let most = variant.most_columns().unwrap_or(u32::MAX);
    (case.m, case.n) = (case.m.min(most), case.n.min(variant.most_across().unwrap_or(u32::MAX)));
    if gram {
        (case.n, case.by_rows[1]) = (case.m, !case.by_rows[0]);
    }
    if variant.kernel == Kernel::Gemv {
        case.n = case.n.min(variant.t2);
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

/// Layouts of A, B and C of a case; a Gram matrix's B is its A.
pub fn layouts(variant: &Variant, case: Case) -> [Layout; 3] {
    let [at_a, at_b, at_c] = case.layouts();
    [at_a, if variant.kernel == Kernel::Gram { at_a.transposed() } else { at_b }, at_c]
}

fn check_one<T: Element>(variant: &Variant, entry: ReducedFn<T>, case: Case, finish: (Finish, Triangle)) -> Counters {
    let Case { m, n, k, conj, .. } = case;
    let [at_a, at_b, at_c] = layouts(variant, case);
    let a = at_a.filled::<T>(1);
    let b = if variant.kernel == Kernel::Gram { a.clone() } else { at_b.filled::<T>(2) };
    let c = at_c.filled::<T>(3);
    let (counters, got, written) = run(variant, entry, case, finish, [&a, &b, &c]);
    let (alpha, beta) = (T::factor(case.alpha), T::factor(case.beta));
    let (a, b) = (|i, l| a[at_a.at(i, l)].conj_if(conj & 1 == 1), |l, j| b[at_b.at(l, j)].conj_if(conj & 2 == 2));
    let sum = |i, j| (0..k).fold(T::ZERO, |sum, l| sum.add(a(i, l).mul(b(l, j))));
    let mut expected: Vec<Option<T>> = vec![None; at_c.len];
    for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))).filter(|(i, j)| is_asked_for(finish.1, *i, *j)) {
        let at = at_c.at(i, j);
        let old = if beta.is_zero() { T::ZERO } else { beta.mul(c[at]) };
        expected[at] = Some(alpha.mul(sum(i, j)).add(old));
    }
    are(&got, &written, &expected);
    counters
}

/// What the product kernel did; C's memory behind it and what adds its slots, and which of it was written.
pub fn run<T: Element>(
    variant: &Variant,
    entry: ReducedFn<T>,
    case: Case,
    (finish, triangle): (Finish, Triangle),
    [a, b, c]: [&[T]; 3],
) -> (Counters, Vec<T>, Vec<bool>) {
    let Case { m, n, k, offset, alpha, beta, splits, conj, .. } = case;
    let gram = variant.kernel == Kernel::Gram;
    let [at_a, at_b, at_c] = layouts(variant, case);
    let (alpha, beta) = (T::factor(alpha), T::factor(beta));

    let mut memory = Memory::new();
    memory.offset(offset);
    memory.pieces(at_a.pieces());
    let buffer_a = memory.input("A", a);
    memory.pieces(at_b.pieces());
    let buffer_b = if gram { buffer_a } else { memory.input("B", b) };
    // Atomics add to what another launch left of C.
    let atomic = variant.adds_atomically();
    let scaled: Vec<T> = c.iter().map(|old| if beta.is_zero() { T::ZERO } else { beta.mul(*old) }).collect();
    memory.pieces(at_c.pieces());
    let buffer_c = match (atomic, beta.is_zero()) {
        (true, _) => memory.inout("C", &scaled),
        (_, true) => memory.output("C", c.len()),
        _ => memory.inout("C", c),
    };
    memory.pieces(None);
    memory.offset(0);
    let head = WORK_HEAD_BYTES as usize / size_of::<T>();
    let work = memory.inout("ticket and slots", &vec![T::ZERO; head + m as usize * n as usize * splits as usize]);
    let codes = codes(variant, finish, triangle, m.into(), n.into());
    let tiling = tiling(variant, m.into(), n.into());
    let launch = Launch {
        kernel: variant.entry,
        grid: [tiling.x as u32, splits, tiling.z as u32],
        block: [variant.threads, 1, 1],
        shared_bytes: tiling.shared_bytes,
        seed: order(format_args!("{} {m} {n} {k} {splits} {codes} {conj} {at_a:?} {at_c:?}", variant.entry)),
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
            seed: order(format_args!("{} {m} {n} {splits} {codes} {conj}", T::DTYPE)),
            ..Launch::default()
        };
        let codes = codes | u32::from(gram) << 8 | u32::from(gram && matches!(conj, 1 | 2)) << 9;
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
    (counters, memory.read(buffer_c), memory.written(buffer_c))
}

/// Numbers that are rounded: (j, i) is the conjugate of (i, j) to the bit and the diagonal real, however it is finished; of
/// factors that both are conjugated, or neither, it is the same number.
#[test]
fn gram_matrices_are_hermitian_to_the_bit() {
    for entry in [
        "zgram_leapfrog_2x2_m8n8_u2_t256",
        "zgram_whole_2x2_m2n2_u2_t256",
        "zgram_staged_2x2_m8n8_u4_t256",
        "zgram_mma_16x16_m16n16_d4_t256",
        "zgram_ring_8x56_m56n56_d1_t128",
        "zgram_eights_24x24_m24n24_d1_t128",
    ] {
        let variant = model::VARIANTS.iter().find(|v| v.entry == entry).expect("a row of the table");
        let Some(Reduced::C128(function)) = table::reduced(entry) else { panic!("{entry}") };
        let rounded = |x: Complex<f64>| Complex::new(x.re / 3.0, x.im / 7.0);
        are_hermitian(variant, function, [false, true, false], rounded);
    }
}

/// The same of lines along k, by elements and by pieces, and of as many tiles as C has.
#[test]
fn gram_matrices_by_lines_are_hermitian_to_the_bit() {
    let are_some = |v: &&Variant| matches!(v.name, "gram_lines" | "gram_fitted") && v.dtype == model::Dtype::C64;
    for variant in model::VARIANTS.iter().filter(are_some) {
        let Some(Reduced::C64(function)) = table::reduced(variant.entry) else { panic!("{}", variant.entry) };
        for by_rows in [[false, true, false], [true, false, false]] {
            are_hermitian(variant, function, by_rows, |x: Complex<f32>| Complex::new(x.re / 3.0, x.im / 7.0));
        }
    }
    let entry = "zgram_lines_8x48_m48n48_d1_t128";
    let variant = model::VARIANTS.iter().find(|v| v.entry == entry).expect("a row of the table");
    let Some(Reduced::C128(function)) = table::reduced(entry) else { panic!("{entry}") };
    are_hermitian(variant, function, [true, false, false], |x: Complex<f64>| Complex::new(x.re / 3.0, x.im / 7.0));
}

fn are_hermitian<T: Element + PartialEq + std::fmt::Debug>(
    variant: &Variant,
    function: ReducedFn<T>,
    by_rows: [bool; 3],
    rounded: impl Fn(T) -> T,
) {
    // Of as many tiles as C has several, and a last one that is not all there.
    let (m, k) = match variant.is_fitted() {
        true => (33, 4 * tiling(variant, 33, 33).k_step),
        false => (variant.rows, 700),
    };
    for (splits, finish) in [(1, Finish::Direct), (3, Finish::SecondLaunch), (3, Finish::LastBlock)] {
        for conj in 0..4 {
            let case = Case { splits, conj, ..Case::plain(m, m, k) };
            let case = Case { by_rows, ..case };
            let [at_a, _, at_c] = layouts(variant, case);
            let a: Vec<T> = at_a.filled(1).into_iter().map(&rounded).collect();
            let c = vec![watched::Element::canary(); at_c.len];
            let (_, got, _) = run(variant, function, case, (finish, Triangle::Full), [&a, &a, &c]);
            let is_real = |x: T| x == x.real_if(true);
            for (i, j) in (0..m).flat_map(|i| (0..m).map(move |j| (i, j))) {
                let is_hermitian = matches!(conj, 1 | 2);
                let (x, y) = (got[at_c.at(i, j)], got[at_c.at(j, i)].conj_if(is_hermitian));
                assert!(
                    x == y && (!is_hermitian || i != j || is_real(x)),
                    "{} {finish:?} {conj}: {x:?} {y:?}",
                    variant.entry
                );
            }
            assert!(!is_real(got[at_c.at(m - 1, 0)]), "{}", variant.entry);
        }
    }
}

/// Packed rows of any width are read once, by copies of 16 bytes, and but at their begin in whole sectors; from where 16 bytes do not begin they are copied by elements.
#[test]
fn packed_rows_come_in_pieces_whatever_their_width() {
    for variant in model::VARIANTS.iter().filter(|v| v.is_fitted()) {
        let is_gram = variant.kernel == Kernel::Gram;
        for (m, n) in [(33, 31), (31, 31), (32, 24)] {
            let n = if is_gram { m } else { n };
            let width = 16 / variant.dtype.bytes() as u32;
            let k = 4 * tiling(variant, m.into(), n.into()).k_step;
            let counted = |offset: usize| {
                // Of complex numbers a Hermitian one, what is above whose diagonal is the conjugate of what is below.
                let conj = u32::from(is_gram && variant.dtype.is_complex());
                let case = Case { by_rows: [false, true, true], offset, conj, ..Case::plain(m, n, k) };
                check(variant, case)
            };
            let counters = counted(0);
            let bytes = |lines: u32| u64::from(lines) * u64::from(k) * variant.dtype.bytes();
            let (a, b) = (bytes(m), if is_gram { 0 } else { bytes(n) });
            for (operand, bytes) in [("A", a), ("B", b)] {
                let loads = counters.operand(operand).loads;
                let of = format!("{} {m} x {n} {operand}", variant.entry);
                // A stage, and so each of its warps' copies, may begin within a sector.
                assert_eq!(loads.bytes_used, bytes, "{of}");
                assert!(loads.bytes_moved <= bytes + bytes / 16 + 64 * 4, "{of}: {}", loads.bytes_moved);
            }
            // A warp's copies of 16 bytes, but that the last ones of a stage are not a whole warp's.
            let (pieces, stages) = ((a + b) / 16, u64::from(k / tiling(variant, m.into(), n.into()).k_step));
            let most = pieces / 32 + 2 * stages * u64::from(variant.threads / 32);
            assert!(
                (pieces / 32..=most).contains(&counters.cp_async),
                "{} {m} x {n}: {}",
                variant.entry,
                counters.cp_async
            );
            assert!(counted(1).cp_async >= u64::from(width) * (pieces / 32), "{} {m} x {n}", variant.entry);
        }
    }
}

/// Of lines along k each byte is read once, in whole sectors, by copies of 16 bytes, and what is multiplied meets in no bank: adding the groups' sums
/// does, at the end, however long k is.
#[test]
fn lines_are_read_once_and_meet_in_no_bank() {
    for variant in model::VARIANTS.iter().filter(|v| v.is_by_lines()) {
        let [m, n] = [variant.rows, variant.t2];
        let conflicts = [12, 24].map(|stages| {
            let k = stages * tiling(variant, 1, 1).k_step;
            let counters = check(variant, Case { by_rows: [true, false, false], ..Case::plain(m, n, k) });
            let bytes = |lines: u32| u64::from(lines) * u64::from(k) * variant.dtype.bytes();
            let (a, b) = (bytes(m), if variant.kernel == Kernel::Gram { 0 } else { bytes(n) });
            for (operand, bytes) in [("A", a), ("B", b)] {
                let loads = counters.operand(operand).loads;
                assert_eq!((loads.bytes_used, loads.bytes_moved), (bytes, bytes), "{} {operand}", variant.entry);
            }
            // The matrix units' rings have as many stages more, of zeros, behind the last.
            let zeros = if variant.mma { u64::from(STAGES) * (a + b) / u64::from(stages) } else { 0 };
            assert_eq!(counters.cp_async, (a + b + zeros) / (32 * 16), "{}", variant.entry);
            counters.shared.loads.bank_conflicts
        });
        assert_eq!(conflicts[0], conflicts[1], "{}", variant.entry);
    }
}
