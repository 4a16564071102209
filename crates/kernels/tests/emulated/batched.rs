//! Every entry of batches: around the edges of its tiles and of the sizes, in every layout, strided, listed and shared, in
//! one turn and in several.

use crate::harness::{Element, FAR, Layout, are, order};
use crate::runs::{block_of_runs, takes_runs};
use lanky_kernels::table::{self, Batched as Function, BatchedFn};
use model::launch::batched::{CONJ_BIT, FlatTile, Laid, Lie, Tile, laid};
use model::variants::batched::{BATCHED, Batched, Design};
use model::{BatchedChoice, BatchedProblem, Machine, choose_batched};
use simt::{Buffer, Counters, Launch, Memory};

/// How the matrices of an operand follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// So many elements between the end of one and the start of the next.
    Gap(u64),
    /// All problems have the first.
    Shared,
    /// Listed, the last first, so many elements between them.
    Listed(u64),
}

/// A batch to compute.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub sizes: [u32; 3],
    pub count: u32,
    pub problems: u32,
    pub stages: u32,
    pub blocks: u32,
    pub by_rows: [bool; 3],
    /// Elements between lines.
    pub gaps: [u64; 3],
    pub follow: [Follow; 3],
    pub offset: usize,
    pub alpha: f64,
    pub beta: f64,
    pub conj: u32,
    /// Whether sums are rounded: then the result is not compared.
    pub is_rounded: bool,
}

/// An operand: its data, NaN in all gaps; matrices that are far apart lie behind each other in it.
pub struct Operand<T> {
    pub layout: Layout,
    pub starts: Vec<u64>,
    pub data: Vec<T>,
    lie: Lie,
    /// Where kernels find them, if they are listed.
    list: Vec<u64>,
    pieces: Option<(usize, usize)>,
}

impl<T: Element> Operand<T> {
    fn new(case: &Case, which: usize, (rows, cols): (u32, u32)) -> Self {
        let layout = Layout::new(rows, cols, case.by_rows[which], case.gaps[which]);
        let (len, count) = (layout.len as u64, u64::from(case.count));
        let behind = |gap: u64| if gap < FAR { len + gap } else { (len + gap).next_multiple_of(4) };
        let (stride, listed) = match case.follow[which] {
            Follow::Gap(gap) => (behind(gap), false),
            Follow::Shared => (0, false),
            Follow::Listed(gap) => (behind(gap), true),
        };
        let starts = |stride: u64| -> Vec<u64> {
            (0..count).map(|problem| if listed { (count - 1 - problem) * stride } else { problem * stride }).collect()
        };
        let pieces = if stride < FAR { layout.pieces() } else { Some((len as usize, stride as usize)) };
        let list = if listed { starts(stride) } else { Vec::new() };
        let starts = starts(if pieces.is_some() { len } else { stride });
        let mut data = vec![T::canary(); (starts.iter().max().map_or(0, |last| last + len)) as usize];
        for (problem, start) in starts.iter().enumerate() {
            let mut matrix = layout.filled::<T>(which as u64 * 31 + problem as u64);
            if case.is_rounded {
                let third = T::exactly(f64::from(1.0_f32 / 3.0));
                for (at, value) in matrix.iter_mut().enumerate() {
                    *value = value.add(T::exactly(at as f64)).mul(third.mul(third).mul(third));
                }
            }
            for (at, value) in matrix.into_iter().enumerate() {
                data[*start as usize + at] = value;
            }
        }
        let width = (16 / size_of::<T>()) as u32;
        let first = if listed && !list.iter().all(|start| start % u64::from(width) == 0) { 1 } else { 0 };
        let skew = (case.offset as u32 % width).max(first % width);
        Operand { layout, starts, data, lie: Lie { strides: layout.strides, stride, listed, skew }, list, pieces }
    }

    pub fn at(&self, problem: u32, i: u32, j: u32) -> usize {
        self.starts[problem as usize] as usize + self.layout.at(i, j)
    }

    fn get(&self, problem: u32, i: u32, j: u32, conj: bool) -> T {
        self.data[self.at(problem, i, j)].conj_if(conj)
    }

    /// The offsets as bits of numbers; none where they are not listed.
    fn list(&self) -> Vec<f64> {
        self.list.iter().map(|start| f64::from_bits(*start)).collect()
    }
}

pub fn check(variant: &Batched, case: Case) -> Counters {
    println!("{} {case:?}", variant.entry); // shown if what follows fails
    match table::batched(variant.entry) {
        Some(Function::F32(entry)) => run(variant, entry, case).0,
        Some(Function::F64(entry)) => run(variant, entry, case).0,
        Some(Function::C64(entry)) => run(variant, entry, case).0,
        Some(Function::C128(entry)) => run(variant, entry, case).0,
        None => panic!("{} is in the model's table only", variant.entry),
    }
}

/// What an entry leaves in C's memory.
pub fn bits(variant: &Batched, case: Case) -> Vec<u8> {
    fn bytes<T: Element>(c: &[T]) -> Vec<u8> {
        c.iter().flat_map(|value| bytemuck::bytes_of(value).to_vec()).collect()
    }
    println!("{} {case:?}", variant.entry); // shown if what follows fails
    match table::batched(variant.entry) {
        Some(Function::F32(entry)) => bytes(&run(variant, entry, case).1),
        Some(Function::F64(entry)) => bytes(&run(variant, entry, case).1),
        Some(Function::C64(entry)) => bytes(&run(variant, entry, case).1),
        Some(Function::C128(entry)) => bytes(&run(variant, entry, case).1),
        None => panic!("{} is in the model's table only", variant.entry),
    }
}

/// A, B and C of a case.
pub fn operands<T: Element>(case: &Case) -> [Operand<T>; 3] {
    let [m, n, k] = case.sizes;
    [Operand::new(case, 0, (m, k)), Operand::new(case, 1, (k, n)), Operand::new(case, 2, (m, n))]
}

/// What an entry does, and C's memory behind it.
pub fn run<T: Element>(variant: &Batched, entry: BatchedFn<T>, case: Case) -> (Counters, Vec<T>) {
    run_with(variant, entry, case, operands(&case))
}

/// The same of operands that lie as the case has it.
pub fn run_with<T: Element>(
    variant: &Batched,
    entry: BatchedFn<T>,
    case: Case,
    [a, b, c]: [Operand<T>; 3],
) -> (Counters, Vec<T>) {
    let [m, n, k] = case.sizes;
    let (alpha, beta) = (T::factor(case.alpha), T::factor(case.beta));
    let (width, owners) = ((16 / size_of::<T>()) as u32, variant.owners(m, n, k));
    let laid = |of: &Operand<T>, shape| laid(of.lie, shape, case.count.into(), width, owners);
    let (la, lb, lc) = (laid(&a, (m, k)), laid(&b, (k, n)), laid(&c, (m, n)));
    let reads_c = !beta.is_zero();
    let tile = Tile::new([la.shared, lb.shared, lc.shared], case.problems, reads_c, width);
    let codes = la.code.pack() | lb.code.pack() << 8 | lc.code.pack() << 16 | case.conj << CONJ_BIT;

    let mut memory = Memory::new();
    memory.offset(case.offset);
    memory.pieces(a.pieces);
    let ba = memory.input("A", &a.data);
    memory.pieces(b.pieces);
    let bb = memory.input("B", &b.data);
    memory.pieces(c.pieces);
    let bc = if reads_c { memory.inout("C", &c.data) } else { memory.output("C", c.data.len()) };
    memory.pieces(None);
    memory.offset(0);
    let lists = [&a, &b, &c].map(|operand| operand.list());
    let [list_a, list_b, list_c]: [Buffer<f64>; 3] = std::array::from_fn(|i| memory.input("list", &lists[i]));
    let grid = [case.blocks.min(case.count.div_ceil(case.problems)), 1, 1];
    let shared_bytes = tile.shared_len(case.stages) * size_of::<T>() as u32;
    let block = [variant.threads, 1, 1];
    let seed = order(format_args!("{} {case:?}", variant.entry));
    let launch = Launch { kernel: variant.entry, grid, block, shared_bytes, seed, ..Launch::default() };
    let problem = BatchedProblem {
        dtype: T::DTYPE,
        m: m.into(),
        n: n.into(),
        k: k.into(),
        count: case.count.into(),
        a: a.lie,
        b: b.lie,
        c: c.lie,
        reads_c,
        conj_a: case.conj & 1 == 1,
        conj_b: case.conj & 2 == 2,
    };
    // Others than tiles have one launch for a batch; some take turns.
    let mut swapped = false;
    let chosen = choose_batched(&problem, &Machine::H200, Some(variant.entry));
    let (launch, problems, sides, codes) = match (variant.design(), chosen) {
        (Design::Tile, _) => (launch, case.problems, [la, lb, lc], codes),
        // In as many stages as the case has, and as many problems at a time as fit.
        (Design::Flat, Ok(choice)) => {
            let bytes = |choice: &BatchedChoice, problems| {
                let sizes = if choice.swapped { [n, m, k] } else { case.sizes };
                let tile = FlatTile::new(
                    sizes,
                    choice.sides.map(|side| side.code),
                    problems,
                    reads_c,
                    width,
                    variant.reads_late(),
                );
                tile.shared_len(case.stages) * size_of::<T>() as u32
            };
            let most = if choice.sides.iter().all(Laid::is_seamless) { case.problems.min(8) } else { 1 };
            let fits = |problems: &u32| bytes(&choice, *problems) <= Machine::H200.shared_per_block;
            let problems = (1..=most).rev().find(fits).unwrap_or(1);
            // What the model launches so, for this batch or a large one, has as much shared memory.
            let large = BatchedProblem { count: LARGE, ..problem };
            for choice in [Ok(choice), choose_batched(&large, &Machine::H200, Some(variant.entry))] {
                let Ok(choice) = choice else { panic!("{}: {choice:?}", variant.entry) };
                let is_chosen = (choice.problems, choice.stages) == (problems, case.stages);
                assert!(!is_chosen || choice.shared_bytes == bytes(&choice, problems), "{}", variant.entry);
            }
            let blocks = case.count.div_ceil(problems).min(case.blocks);
            swapped = choice.swapped;
            (
                Launch { grid: [blocks, 1, 1], shared_bytes: bytes(&choice, problems), ..launch },
                problems,
                choice.sides,
                choice.codes,
            )
        }
        (Design::Bulk | Design::Over, Ok(choice)) => {
            let (problems, threads, shared_bytes) = block_of_runs(variant, &case, &choice, &problem);
            let (grid, block) = ([case.count.div_ceil(problems).min(case.blocks), 1, 1], [threads, 1, 1]);
            swapped = choice.swapped;
            (Launch { grid, block, shared_bytes, ..launch }, problems, choice.sides, choice.codes)
        }
        (design, Ok(choice)) => {
            let is_a_warps = design.is_by_warps();
            assert!(is_a_warps || choice.codes == codes, "{}", variant.entry);
            let (block, shared_bytes) = ([choice.threads, 1, 1], choice.shared_bytes);
            let in_turn = is_a_warps || design == Design::Prefetch;
            let blocks = if in_turn { choice.blocks.min(case.blocks) } else { choice.blocks };
            swapped = choice.swapped;
            (
                Launch { grid: [blocks, 1, 1], block, shared_bytes, ..launch },
                choice.problems,
                choice.sides,
                choice.codes,
            )
        }
        (_, Err(refusal)) => panic!("{}: {refusal}", variant.entry),
    };
    let outcome = launch.run(&mut memory, |of| {
        let strides = |laid: &Laid| (laid.stride, laid.strides.row, laid.strides.col);
        let [(a_stride, a_row, a_col), (b_stride, b_row, b_col), (c_stride, c_row, c_col)] =
            sides.map(|laid| strides(&laid));
        let ((a, list_a), (b, list_b)) =
            if swapped { ((bb, list_b), (ba, list_a)) } else { ((ba, list_a), (bb, list_b)) };
        let (m, n) = if swapped { (n, m) } else { (m, n) };
        // SAFETY: the operands span their elements and lie as `laid` says; the emulator checks.
        unsafe {
            entry(
                m,
                n,
                k,
                case.count,
                problems,
                case.stages,
                of.global(a),
                of.global(list_a),
                a_stride,
                a_row,
                a_col,
                of.global(b),
                of.global(list_b),
                b_stride,
                b_row,
                b_col,
                alpha,
                beta,
                of.global(bc),
                of.global(list_c),
                c_stride,
                c_row,
                c_col,
                codes,
            )
        };
    });
    let counters = outcome.unwrap_or_else(|fault| panic!("{fault}"));
    if !case.is_rounded {
        compare(&memory, bc, [&a, &b, &c], &case, (alpha, beta));
    }
    (counters, memory.read(bc).to_vec())
}

/// C_i is α A_i B_i + β C_i, and nothing else was written.
fn compare<T: Element>(
    memory: &Memory,
    buffer: Buffer<T>,
    [a, b, c]: [&Operand<T>; 3],
    case: &Case,
    (alpha, beta): (T, T),
) {
    assert!(memory.guards_intact());
    let [m, n, k] = case.sizes;
    let mut expected = vec![None; c.data.len()];
    for problem in 0..case.count {
        for i in 0..m {
            for j in 0..n {
                let sum = (0..k).fold(T::ZERO, |sum, l| {
                    sum.add(a.get(problem, i, l, case.conj & 1 == 1).mul(b.get(problem, l, j, case.conj & 2 == 2)))
                });
                let old = if beta.is_zero() { T::ZERO } else { beta.mul(c.get(problem, i, j, false)) };
                expected[c.at(problem, i, j)] = Some(alpha.mul(sum).add(old));
            }
        }
    }
    are(&memory.read(buffer), &memory.written(buffer), &expected);
}

/// Problems of a batch that fills a GPU.
pub const LARGE: u64 = 1_000_000;

/// What α and β are.
const FACTORS: [f64; 4] = [1.0, 0.0, -1.0, 0.5];

/// Sizes that an entry takes: edges of its tile, odd and even, all different, one alone.
fn sizes(variant: &Batched) -> Vec<[u32; 3]> {
    let (tm, tn) = (variant.tm, variant.tn);
    let mut sizes = vec![
        [1, 1, 1],
        [2, 2, 2],
        [3, 2, 5],
        [4, 4, 4],
        [5, 3, 7],
        [tm, tn, 8],
        [tm + 1, tn + 1, 3],
        [8, 8, 8],
        [7, 9, 6],
        [16, 12, 4],
        [13, 17, 11],
        [1, 9, 4],
        [9, 1, 2],
        [32, 8, 16],
        [24, 32, 12],
        [32, 32, 32],
        [31, 29, 30],
    ];
    if variant.design().is_by_runs() {
        sizes.extend([[tm.max(tn), tm.max(tn), 1], [8, 20, 12], [12, 8, 4], [16, 16, 8], [10, 14, 6], [9, 13, 0]]);
        sizes.push([tn, tm, 8]);
        sizes.retain(|sizes| takes_runs(variant, *sizes, false) || takes_runs(variant, *sizes, true));
    }
    sizes.retain(|[m, n, k]| variant.owners(*m, *n, *k) <= variant.threads);
    if variant.design().is_by_warps() {
        let (most, steps) = (variant.tm, variant.tn);
        sizes.extend([[most, most - 1, steps], [most - 7, most - 8, steps - 1], [most - 1, 2, steps - 7]]);
        sizes.extend([[6, 4, 9], [2, 7, 3], [7, 1, 12]]);
        sizes.retain(|[m, n, k]| m.max(n) <= &most && k <= &steps && m * n * k > 0);
    }
    sizes
}

pub fn cases(variant: &Batched) -> Vec<Case> {
    let mut cases = Vec::new();
    for (at, sizes) in sizes(variant).into_iter().enumerate() {
        let most = variant.threads / variant.owners(sizes[0], sizes[1], sizes[2]);
        let [m, n, k] = sizes;
        // Of whatever type, four stages of them fit into a block's shared memory.
        let fit = (2560 / (m * n + m * k + n * k)).max(1);
        let many = (2 * most + 1).min(fit);
        for run in 0..6 {
            let turn = at * 7 + run;
            // As many as the threads compute at a time, fewer, and more.
            let problems = [most.min(24), most.div_ceil(2).min(24), 1, many][turn % 4].min(fit);
            let bits = turn * 5 / 2;
            // The first two of six are packed: aligned, and not.
            let packed = run < 2 || variant.is_packed();
            let gap = |which: usize| {
                if packed || variant.design() == Design::Flat { 0 } else { [0, 1, 4, 0][(turn + which) % 4] }
            };
            let follow = |which: usize| match (packed, (turn + 2 * which) % 5) {
                (true, _) | (_, 0) => Follow::Gap(0),
                (_, 1) => Follow::Gap(3),
                (_, 2) if which < 2 => Follow::Shared,
                (_, 3) => Follow::Listed(1),
                _ => Follow::Listed(4),
            };
            let by_rows = [bits & 1 == 1, bits & 2 == 2, bits & 4 == 4];
            let runs = variant.design().is_by_runs();
            cases.push(Case {
                sizes,
                count: [2 * problems + 1, 3 * problems, 5, 1][turn / 2 % 4],
                problems,
                stages: 2 + turn as u32 % 3,
                blocks: [1, 2, u32::MAX][turn % 3],
                by_rows: if runs { [by_rows[0]; 3] } else { by_rows },
                gaps: [gap(0), gap(1), gap(2)],
                follow: [follow(0), follow(1), follow(2)],
                offset: if runs {
                    0
                } else if run == 1 {
                    1
                } else {
                    turn / 3 % 2 * (run / 3)
                },
                alpha: FACTORS[turn % 4],
                beta: FACTORS[(turn / 4 + 1) % 4],
                conj: turn as u32 % 4,
                is_rounded: false,
            });
        }
    }
    let nothing = Case { sizes: no_steps(variant), count: 7, problems: 2, beta: 0.5, ..plain([1; 3]) };
    cases.extend([nothing, Case { beta: 0.0, ..nothing }]);
    cases.retain(|case| !variant.is_packed() || is_packed(variant, case));
    cases
}

/// Sizes without steps that an entry takes.
fn no_steps(variant: &Batched) -> [u32; 3] {
    let least = variant.tm.max(variant.tn).max(8).next_multiple_of(4);
    if variant.design().is_by_runs() { [least, least, 0] } else { [3, 2, 0] }
}

/// Whether an entry for packed batches takes it.
fn is_packed(variant: &Batched, case: &Case) -> bool {
    if variant.design().is_by_runs() {
        return takes_runs(variant, case.sizes, case.by_rows[0]); // all of its cases lie so
    }
    let [m, n, k] = case.sizes;
    let width = (16 / variant.dtype.bytes()) as u32;
    [(m, k), (k, n), (m, n)].into_iter().enumerate().all(|(which, shape)| {
        let layout = Layout::new(shape.0, shape.1, case.by_rows[which], 0);
        let skew = case.offset as u32 % width;
        let lie = Lie { strides: layout.strides, stride: layout.len as u64, listed: false, skew };
        laid(lie, shape, case.count.into(), width, variant.owners(m, n, k)).is_packed()
    })
}

/// Where k is 0 there is nothing of A and B, and nothing of them is touched.
#[test]
fn a_product_of_no_steps_reads_neither_a_nor_b() {
    for variant in BATCHED.iter().filter(|variant| variant.design().is_ours()) {
        for sizes in [[8, 7, 0], [3, 5, 0], [8, 8, 0]] {
            if variant.design().is_by_runs() && !takes_runs(variant, sizes, false) {
                continue;
            }
            let counters = check(variant, Case { beta: 0.5, ..plain(sizes) });
            for operand in ["A", "B"] {
                assert_eq!(counters.operand(operand).loads.elements, 0, "{} {operand}", variant.entry);
            }
        }
    }
}

/// Then, and where C is not read, all of C is +0, though α may be negative or infinite and sums are conjugated.
#[test]
fn a_product_of_no_steps_is_plus_zero() {
    for variant in BATCHED {
        for (at, alpha) in [1.0, -1.0, 0.0, f64::INFINITY].into_iter().enumerate() {
            for conj in 0..4 {
                let (runs, by_rows) = (variant.design().is_by_runs(), (at + conj) % 2 == 1);
                let (sizes, by_rows) =
                    if runs { (no_steps(variant), [by_rows; 3]) } else { ([7, 5, 0], [false, false, by_rows]) };
                let case = Case { sizes, by_rows, alpha, conj: conj as u32, is_rounded: true, ..plain([1; 3]) };
                let bits = bits(variant, case);
                assert_eq!(bits.len() as u64, u64::from(9 * sizes[0] * sizes[1]) * variant.dtype.bytes());
                assert!(bits.iter().all(|byte| *byte == 0), "{} {case:?}", variant.entry);
            }
        }
    }
}

/// C_i = A_i B_i of packed column-major matrices.
pub const fn plain(sizes: [u32; 3]) -> Case {
    Case {
        sizes,
        count: 9,
        problems: 2,
        stages: 3,
        blocks: 2,
        by_rows: [false; 3],
        gaps: [0; 3],
        follow: [Follow::Gap(0); 3],
        offset: 0,
        alpha: 1.0,
        beta: 0.0,
        conj: 0,
        is_rounded: false,
    }
}

fn check_variant(name: &str) {
    let entries: Vec<&Batched> = BATCHED.iter().filter(|variant| variant.name == name).collect();
    assert!(!entries.is_empty(), "there is no variant {name}");
    for variant in entries {
        for case in cases(variant) {
            check(variant, case);
        }
    }
}

macro_rules! tests {
    ($($variant:ident),*) => {
        $(#[test] fn $variant() { check_variant(stringify!($variant)) })*
        const NAMED: [&str; [$(stringify!($variant)),*].len()] = [$(stringify!($variant)),*];
    };
}
tests!(
    batched_packed,
    batched_any,
    batched_fragments,
    batched_warps,
    batched_flat,
    batched_bulk,
    batched_over,
    batched_single,
    batched_aggregated,
    batched_prefetch,
    batched_blocked
);

#[test]
fn every_variant_has_its_test() {
    assert!(BATCHED.iter().all(|variant| NAMED.contains(&variant.name)));
}

/// The cases are what they claim to be.
#[test]
fn cases_cover_layouts_factors_and_ways_to_follow() {
    for variant in BATCHED {
        let cases = cases(variant);
        let has = |what: &dyn Fn(&Case) -> bool| assert!(cases.iter().any(what), "{}", variant.entry);
        let runs = variant.design().is_by_runs();
        for layout in (0..8).filter(|layout| !runs || matches!(layout, 0 | 7)) {
            let by_rows = [layout & 1 == 1, layout & 2 == 2, layout & 4 == 4];
            has(&|case| case.by_rows == by_rows);
        }
        for beta in FACTORS {
            has(&|case| case.beta == beta && case.sizes[2] > 0);
        }
        // Of a packed batch that starts past a piece: where it moves as one run.
        has(&|case| case.offset == 1 || variant.dtype.bytes() == 16 || runs);
        for which in 0..if variant.is_packed() { 0 } else { 3 } {
            has(&|case| matches!(case.follow[which], Follow::Listed(_)));
            has(&|case| case.follow[which] == Follow::Gap(3));
        }
        if !variant.is_packed() {
            has(&|case| case.follow[0] == Follow::Shared && case.count > case.stages * case.problems);
            has(&|case| case.follow[1] == Follow::Shared);
        }
        for conj in 0..4 {
            has(&|case| case.conj == conj);
        }
        has(&|case| case.count > 2 * case.problems && case.blocks == 1 && case.problems > 1);
    }
}

/// A packed batch is moved once: no element of A, B or C twice, and in whole pieces where it lies so.
#[test]
fn packed_batches_are_moved_once_and_by_pieces() {
    for variant in BATCHED {
        for sizes in [[3, 3, 3], [4, 4, 4], [8, 8, 8], [7, 5, 9], [16, 16, 16]] {
            let [m, n, k] = sizes;
            let is_too_large = variant.design().is_by_warps() && m.max(n) > variant.tm;
            let is_too_large = is_too_large || variant.design().is_by_runs() && !takes_runs(variant, sizes, false);
            if !variant.design().is_ours() || is_too_large || variant.owners(m, n, k) * 2 > variant.threads {
                continue;
            }
            let case = Case { beta: 1.0, count: 18, problems: 2, blocks: 1, ..plain(sizes) };
            let counters = check(variant, case);
            for (name, elements) in [("A", m * k), ("B", k * n), ("C", m * n)] {
                let traffic = counters.operand(name);
                assert_eq!(traffic.loads.elements, u64::from(18 * elements), "{} {name}", variant.entry);
            }
            assert_eq!(counters.operand("C").stores.elements, u64::from(18 * m * n), "{}", variant.entry);
        }
    }
}

/// Fragments of columns that start at multiples of 32 bytes are whole sectors, of which each moves once for each warp that has it.
#[test]
fn fragments_move_whole_sectors() {
    for variant in BATCHED.iter().filter(|variant| variant.design() == Design::Fragments) {
        for bits in 0..8 {
            let n = variant.tm;
            let (sizes, bytes) = ([n, n, n], u64::from(5 * n * n) * variant.dtype.bytes());
            let by_rows = [bits & 1 == 1, bits & 2 == 2, bits & 4 == 4];
            let counters = check(variant, Case { beta: 1.0, count: 5, by_rows, blocks: 1, ..plain(sizes) });
            let [a, b, c] = ["A", "B", "C"].map(|name| counters.operand(name));
            // Each warp of a product reads all of A, or of B where C lies by rows.
            let (whole, part) = if by_rows[2] { (b, a) } else { (a, b) };
            let parts = u64::from(variant.parts);
            for (traffic, times) in [(whole.loads, parts), (part.loads, 1), (c.loads, 1), (c.stores, 1)] {
                let found = (traffic.bytes_used, traffic.bytes_moved);
                assert_eq!(found, (times * bytes, times * bytes), "{} {by_rows:?}", variant.entry);
            }
        }
    }
}
