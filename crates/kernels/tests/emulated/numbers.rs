//! Any product, or batch of them, by its entry, of numbers that a test makes up: f64 in and out, two an element, whatever its type.

use crate::batched;
use crate::harness::{Case, Element, run_product};
use crate::places;
use crate::tsmttsm;
use lanky_kernels::table::{self, BatchedFn, Product, ProductFn, Reduced, ReducedFn};
use model::launch::reduced::{Finish, Triangle};
use model::variants::batched::{BATCHED, Batched};
use model::{Dtype, Kernel, VARIANTS, Variant};
use watched::Share;

/// Parts of an element; the second of a real one is 0.
pub type Number = [f64; 2];

/// Elements of A, B and C by problem, row and column.
pub type Numbers<'a> = [&'a dyn Fn(u32, u32, u32) -> Number; 3];

/// What is computed by which entry.
#[derive(Clone, Copy, Debug)]
pub enum Job {
    One(&'static Variant, Case),
    Batch(&'static Batched, batched::Case),
}

/// The entries that are tried: all, or those whose turn it is.
pub fn tried() -> impl Iterator<Item = &'static Variant> {
    Share::whose_turn_it_is().of(VARIANTS)
}

/// A few products for each entry that is not of batches, in all of its layouts, in one part of k and in two.
pub fn products() -> Vec<Vec<Job>> {
    let of = |variant: &'static Variant| {
        let mut cases: Vec<Case> =
            places::cases(variant).into_iter().filter(|case| places::takes(variant, *case)).collect();
        if let (true, Some([m, n, k])) = (cases.is_empty(), variant.multiples()) {
            cases.push(Case::plain(m, n, k));
        }
        cases
            .into_iter()
            .enumerate()
            .map(|(at, case)| Job::One(variant, Case { conj: conj(variant, at), ..case }))
            .collect()
    };
    tried().map(of).collect()
}

/// Which factors are conjugated: of a Gram matrix neither, so that it is symmetric and its diagonal as complex as the rest.
fn conj(variant: &Variant, at: usize) -> u32 {
    if variant.kernel == Kernel::Gram { 0 } else { at as u32 % 4 }
}

/// A few batches for each of their entries: strided, listed and shared.
pub fn batches() -> Vec<Vec<Job>> {
    let of = |variant: &'static Batched| {
        let is_some = |case: &batched::Case| case.sizes[2] > 0 && case.count > 1;
        let cases: Vec<batched::Case> = batched::cases(variant).into_iter().filter(is_some).collect();
        let job = |case: &batched::Case| Job::Batch(variant, batched::Case { is_rounded: true, ..*case });
        cases.iter().step_by(cases.len().div_ceil(5)).map(job).collect()
    };
    BATCHED.iter().map(of).collect()
}

impl Job {
    /// Whether its entry multiplies in parts.
    pub fn splits_f32(&self) -> bool {
        matches!(self, Job::One(variant, _) if variant.splits_f32())
    }

    pub fn dtype(&self) -> Dtype {
        match self {
            Job::One(variant, _) => variant.dtype,
            Job::Batch(variant, _) => variant.dtype,
        }
    }

    /// m, n and k.
    pub fn sizes(&self) -> [u32; 3] {
        match self {
            Job::One(_, case) => [case.m, case.n, case.k],
            Job::Batch(_, case) => case.sizes,
        }
    }

    pub fn problems(&self) -> u32 {
        if let Job::Batch(_, case) = self { case.count } else { 1 }
    }

    /// Whether the conjugates of A's and of B's elements are multiplied.
    pub fn conj(&self) -> [bool; 2] {
        let (Job::One(_, Case { conj, .. }) | Job::Batch(_, batched::Case { conj, .. })) = self;
        [conj & 1 == 1, conj & 2 == 2]
    }

    /// The same with these α and β.
    pub fn scaled(mut self, factors: [f64; 2]) -> Job {
        let (Job::One(_, Case { alpha, beta, .. }) | Job::Batch(_, batched::Case { alpha, beta, .. })) = &mut self;
        [*alpha, *beta] = factors;
        self
    }

    /// Whether B is A transposed.
    pub fn is_gram(&self) -> bool {
        matches!(self, Job::One(variant, _) if variant.kernel == Kernel::Gram)
    }

    /// Which of A's and of B's matrices a problem has.
    pub fn matrices(&self, problem: u32) -> [u32; 2] {
        let Job::Batch(_, case) = self else { return [problem; 2] };
        [0, 1].map(|which| if case.follow[which] == batched::Follow::Shared { 0 } else { problem })
    }

    /// C's elements down its columns, of one problem after another.
    pub fn run(self, numbers: Numbers) -> Vec<Number> {
        println!("{self:?}"); // shown if what follows fails
        match self {
            Job::One(variant, case) => match (table::product(variant.entry), table::reduced(variant.entry)) {
                (Some(Product::F32(entry)), _) => product(variant, entry, case, numbers),
                (Some(Product::F64(entry)), _) => product(variant, entry, case, numbers),
                (Some(Product::C64(entry)), _) => product(variant, entry, case, numbers),
                (Some(Product::C128(entry)), _) => product(variant, entry, case, numbers),
                (_, Some(Reduced::F32(entry))) => reduced(variant, entry, case, numbers),
                (_, Some(Reduced::F64(entry))) => reduced(variant, entry, case, numbers),
                (_, Some(Reduced::C64(entry))) => reduced(variant, entry, case, numbers),
                (_, Some(Reduced::C128(entry))) => reduced(variant, entry, case, numbers),
                _ => panic!("{} is in the model's table only", variant.entry),
            },
            Job::Batch(variant, case) => match table::batched(variant.entry) {
                Some(table::Batched::F32(entry)) => batch(variant, entry, case, numbers),
                Some(table::Batched::F64(entry)) => batch(variant, entry, case, numbers),
                Some(table::Batched::C64(entry)) => batch(variant, entry, case, numbers),
                Some(table::Batched::C128(entry)) => batch(variant, entry, case, numbers),
                None => panic!("{} is in the model's table only", variant.entry),
            },
        }
    }
}

/// The element that is nearest to these parts.
fn nearest<T: Element>([re, im]: Number) -> T {
    T::of_two(re, im)
}

fn product<T: Element>(variant: &Variant, entry: ProductFn<T>, case: Case, numbers: Numbers) -> Vec<Number> {
    let layouts = case.layouts();
    let [a, b, c] = [0, 1, 2].map(|which| layouts[which].laid(|i, j| nearest::<T>(numbers[which](0, i, j))));
    let (_, memory, buffer) = run_product(variant, entry, case, u32::MAX, [&a, &b, &c]);
    let got = memory.read(buffer);
    layouts[2].places().map(|(i, j)| got[layouts[2].at(i, j)].two()).collect()
}

fn reduced<T: Element>(variant: &Variant, entry: ReducedFn<T>, case: Case, numbers: Numbers) -> Vec<Number> {
    let layouts = tsmttsm::layouts(variant, case);
    let [a, b, c] = [0, 1, 2].map(|which| layouts[which].laid(|i, j| nearest::<T>(numbers[which](0, i, j))));
    let finish = if case.splits > 1 && !variant.adds_atomically() { Finish::LastBlock } else { Finish::Direct };
    let (_, got, _) = tsmttsm::run(variant, entry, case, (finish, Triangle::Full), [&a, &b, &c]);
    layouts[2].places().map(|(i, j)| got[layouts[2].at(i, j)].two()).collect()
}

fn batch<T: Element>(variant: &Batched, entry: BatchedFn<T>, case: batched::Case, numbers: Numbers) -> Vec<Number> {
    let mut operands = batched::operands::<T>(&case);
    for (which, operand) in operands.iter_mut().enumerate() {
        // Of one that all problems have the first counts, which is written last.
        for (problem, (i, j)) in (0..case.count).rev().flat_map(|p| operand.layout.places().map(move |at| (p, at))) {
            let at = operand.at(problem, i, j);
            operand.data[at] = nearest(numbers[which](problem, i, j));
        }
    }
    let c = &operands[2];
    let all = (0..case.count).flat_map(|problem| c.layout.places().map(move |at| (problem, at)));
    let places: Vec<usize> = all.map(|(problem, (i, j))| c.at(problem, i, j)).collect();
    let (_, got) = batched::run_with(variant, entry, case, operands);
    places.into_iter().map(|at| got[at].two()).collect()
}
