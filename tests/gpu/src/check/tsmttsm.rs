//! Two tall matrices over their long side, and a matrix by itself: every entry, in every way to finish.

use crate::case::{ALPHAS, BETAS, Spec};
use crate::check::repeat::{self, RUNS};
use crate::compare::{alike, equal, within};
use crate::entries::tried;
use crate::lab::{Lab, Outcome, ensure};
use crate::operand::{Operand, Storage};
use crate::oracle::{by_definition, chain, dot_of_integers, exact, near};
use crate::real::{Real, integer, unit};
use host::{Plan, PlanBuilder, Triangle};
use model::{Kernel, Variant};
use rayon::prelude::*;

/// The sizes and steps of which the bits are compared.
const BITS: [(usize, usize); 4] = [(16, 16), (64, 64), (5, 5), (1, 1)];
const LONG: usize = 50_021;
/// Rows and columns of C; k with each, from one part of k to more than one block adds.
pub const SIDES: [(usize, usize); 12] =
    [(1, 1), (2, 1), (2, 2), (4, 4), (7, 3), (8, 8), (16, 16), (17, 3), (31, 33), (32, 32), (48, 16), (64, 64)];
/// Tiles of C by which an entry is tried on an emulated GPU, at most.
const MOST_TILES: usize = 72;
const STEPS: [usize; 4] = [65, 4099, 65536, 300_001];

/// Both element types.
pub fn run(lab: &Lab) -> Outcome {
    sweep::<f32>(lab, &STEPS)?;
    sweep::<f64>(lab, &STEPS)?;
    same_bits::<f32>(lab, LONG, RUNS)?;
    same_bits::<f64>(lab, LONG, RUNS)
}

/// A little of it, for a tool that is slow.
pub fn small<T: Real>(lab: &Lab) -> Outcome {
    sweep::<T>(lab, &[lab.few_rows(4099)])
}

/// Entries of an element type for products; the model's choice alone on the CPU.
fn entries<T: Real>(lab: &Lab) -> Vec<Option<&'static Variant>> {
    forced::<T>(lab, &|v| v.kernel == Kernel::Tsmttsm)
}

/// The same for Gram matrices of a tall matrix that lies so: by rows there are more that compute all than a triangle.
fn gram_entries<T: Real>(lab: &Lab, spec: Spec, triangle: Triangle) -> Vec<Option<&'static Variant>> {
    let is_part = triangle != Triangle::Full || !spec.storage[1].row_major;
    forced::<T>(lab, &|v| v.computes_gram(is_part))
}

fn forced<T: Real>(lab: &Lab, computes: &dyn Fn(&Variant) -> bool) -> Vec<Option<&'static Variant>> {
    let forced = tried().filter(|v| lab.device.is_cuda() && v.dtype == T::DTYPE && computes(v));
    [None].into_iter().chain(forced.map(Some)).collect()
}

pub fn named(entry: Option<&Variant>) -> &'static str {
    entry.map_or("chosen", |v| v.entry)
}

/// Tall matrices by rows and by columns, packed, with gaps, and off their alignment.
pub fn specs((m, n): (usize, usize), k: usize, index: usize) -> Vec<Spec> {
    let lying = |row_major: bool, pad: usize, offset: usize| {
        // Of op(A), which is m x k, the tall matrix's rows are columns.
        let of = |row_major| Storage::new(row_major, pad, offset);
        [of(!row_major), of(row_major), of(index % 2 > 0)]
    };
    let (alpha, beta) = (ALPHAS[index % 3], BETAS[index % BETAS.len()]);
    let even = |side: usize| side.next_multiple_of(4) - side;
    let spec = |storage| Spec { size: (m, n, k), storage, alpha, beta };
    vec![spec(lying(true, 0, 0)), spec(lying(true, 1, 1)), spec(lying(false, even(k), 0)), spec(lying(false, 1, 1))]
}

fn sweep<T: Real>(lab: &Lab, steps: &[usize]) -> Outcome {
    let cases = SIDES.iter().flat_map(|sides| steps.iter().map(move |&k| (*sides, k)));
    for (index, (sides, k)) in cases.enumerate() {
        // Sums of the larger ones would not be exact in f32.
        if k as f64 * 9.0 * T::U >= 1.0 {
            continue;
        }
        for (at, spec) in specs(sides, k, index).into_iter().enumerate() {
            // Long ones in one layout each: they take the time.
            if k > 10_000 && at != index % 4 || !lab.takes(index + at, 4) {
                continue;
            }
            products::<T>(lab, spec)?;
            if sides.0 == sides.1 {
                grams::<T>(lab, spec, index)?;
            }
        }
    }
    Ok(())
}

fn products<T: Real>(lab: &Lab, spec: Spec) -> Outcome {
    let mut case = spec.integers::<T>(lab)?;
    let expected = exact(&case);
    let (m, n, _) = spec.size;
    let suits = |entry: &Option<&Variant>| serves(*entry, (m, n)) && has_few_tiles(lab, *entry, (m, n));
    for entry in entries::<T>(lab).into_iter().filter(suits) {
        let result = case.plan(lab, entry.map(|v| v.entry)).map_err(Into::into).and_then(|plan| {
            // Twice: the second finds the ticket that the first has left.
            case.run(lab, &plan)?;
            equal(&case.run(lab, &plan)?, &expected, spec.size.0)
        });
        lab.record(|| format!("tsmttsm {} {}", named(entry), spec.name::<T>()), result)?;
    }
    Ok(())
}

/// A, C and what is asked of C.
pub struct Gram<T> {
    pub spec: Spec,
    pub a: Operand<T>,
    pub c: Operand<T>,
    triangle: Triangle,
}

impl<T: Real> Gram<T> {
    pub fn new(lab: &Lab, spec: Spec, triangle: Triangle, a: impl Fn(usize, usize) -> f64) -> Outcome<Self> {
        let ((_, n, k), [_, sb, sc]) = (spec.size, spec.storage);
        let asked = |i: usize, j: usize| asked_for(triangle, i, j);
        let before = |i, j| if spec.beta == 0.0 && asked(i, j) { T::canary() } else { T::of(integer(3, i, j, 3)) };
        let a = Operand::new(lab, k, n, sb, |l, j| T::of(a(l, j)))?;
        Ok(Gram { spec, a, c: Operand::new(lab, n, n, sc, before)?, triangle })
    }

    pub fn plan(&self, lab: &Lab, entry: Option<&Variant>) -> host::Result<Plan> {
        entry.into_iter().fold(self.builder(lab)?, |builder, v| builder.variant(v.entry)).build()
    }

    pub fn builder(&self, lab: &Lab) -> host::Result<PlanBuilder> {
        let n = self.spec.size.1;
        let (row, col) = self.spec.storage[2].strides(n, n);
        let strides = model::Strides { row: row as u64, col: col as u64 };
        let c = host::Shape::with_strides(n, n, strides, T::DTYPE);
        Ok(Plan::gram(&lab.device, self.a.view(lab)?.shape(), c).triangle(self.triangle))
    }

    /// Gives it to the stream, and does nothing else.
    pub fn enqueue(&mut self, lab: &Lab, plan: &Plan) -> host::Result<()> {
        let (alpha, beta) = (T::of(self.spec.alpha), T::of(self.spec.beta));
        plan.run_gram(&lab.stream, alpha, self.a.view(lab)?, beta, self.c.view_mut(lab)?)
    }

    pub fn run(&mut self, lab: &Lab, plan: &Plan) -> Outcome<Vec<T>> {
        let found = self.run_unwatched(lab, plan);
        self.a.unchanged("A")?;
        found
    }

    /// The same, without a look at A.
    pub fn run_unwatched(&mut self, lab: &Lab, plan: &Plan) -> Outcome<Vec<T>> {
        self.c.reset()?;
        self.enqueue(lab, plan)?;
        lab.stream.synchronize()?;
        self.c.result("C")
    }

    /// What C must be, of integers.
    pub fn exact(&self) -> Vec<f64> {
        let (_, n, k) = self.spec.size;
        let column = |j| (0..k).map(|l| self.a.get(l, j).wide() as i32).collect();
        let cols: Vec<Vec<i32>> = (0..n).map(column).collect();
        let one = |e: usize| {
            let (i, j) = (e % n, e / n);
            let old = self.c.get(i, j).wide();
            if !asked_for(self.triangle, i, j) {
                return old;
            }
            let sum = dot_of_integers(&cols[i], &cols[j]) as f64;
            self.spec.alpha * sum + if self.spec.beta == 0.0 { 0.0 } else { self.spec.beta * old }
        };
        (0..n * n).into_par_iter().map(one).collect()
    }
}

pub fn asked_for(triangle: Triangle, i: usize, j: usize) -> bool {
    match triangle {
        Triangle::Full => true,
        Triangle::Lower => i >= j,
        Triangle::Upper => i <= j,
    }
}

/// Whether an entry has rows and columns enough.
pub fn serves(entry: Option<&Variant>, (m, n): (usize, usize)) -> bool {
    let is_most = |most: Option<u32>, side: usize| most.is_none_or(|most| side <= most as usize);
    entry.is_none_or(|v| is_most(v.most_columns(), m.max(n)) && is_most(v.most_across(), m.min(n)))
}

/// Whether an entry computes a C of this size by not too many tiles for an emulated GPU: more of them are more of the same.
pub fn has_few_tiles(lab: &Lab, entry: Option<&Variant>, (m, n): (usize, usize)) -> bool {
    let tiles = |v: &Variant| m.div_ceil(v.rows as usize) * n.div_ceil(v.cols as usize);
    !lab.is_emulated() || entry.is_none_or(|v| tiles(v) <= MOST_TILES)
}

fn grams<T: Real>(lab: &Lab, spec: Spec, index: usize) -> Outcome {
    let n = spec.size.1;
    let triangle = [Triangle::Full, Triangle::Lower, Triangle::Upper][index % 3];
    let mut gram = Gram::<T>::new(lab, spec, triangle, |l, j| integer(2, l, j, 3))?;
    let expected = gram.exact();
    let suits = |entry: &Option<&Variant>| serves(*entry, (n, n)) && has_few_tiles(lab, *entry, (n, n));
    for entry in gram_entries::<T>(lab, spec, triangle).into_iter().filter(suits) {
        let result = gram.plan(lab, entry).map_err(Into::into).and_then(|plan| {
            gram.run(lab, &plan)?;
            equal(&gram.run(lab, &plan)?, &expected, n)
        });
        lab.record(|| format!("gram {} {triangle:?} {}", named(entry), spec.name::<T>()), result)?;
    }
    Ok(())
}

/// What C was where A and B lay first: who computed it, in how many parts of k, and its bits.
#[derive(Default)]
struct Anywhere {
    first: Vec<(By, u32, Vec<u128>)>,
    compared: usize,
}

/// An entry, or the CPU, of a product or of a Gram matrix. The model's own choice on a GPU is none: it may be another
/// entry, or have other parts, where A and B lie elsewhere.
type By = (Kernel, &'static str);

fn by(lab: &Lab, kernel: Kernel, entry: Option<&Variant>) -> Option<By> {
    let name = entry.map(|v| v.entry).or((!lab.device.is_cuda()).then_some("the CPU"));
    name.map(|name| (kernel, name))
}

impl Anywhere {
    /// A plan by an entry, in as many parts of k as it had first.
    fn plan(&self, builder: PlanBuilder, by: Option<By>, entry: Option<&Variant>) -> host::Result<Plan> {
        let builder = entry.into_iter().fold(builder, |builder, v| builder.variant(v.entry));
        let before = self.first.iter().find(|(of, ..)| Some(*of) == by);
        before.into_iter().fold(builder, |builder, (_, parts, _)| builder.parts(*parts)).build()
    }

    /// Fails if the bits are others than they were first, or of other parts.
    fn are<T: Real>(&mut self, by: Option<By>, parts: u32, found: &[T], rows: usize) -> Outcome {
        let Some(by) = by else { return Ok(()) };
        let bits: Vec<u128> = found.iter().map(|value| value.bits()).collect();
        let Some((_, parts_before, before)) = self.first.iter().find(|(of, ..)| *of == by) else {
            self.first.push((by, parts, bits));
            return Ok(());
        };
        ensure(parts == *parts_before, || format!("k in {parts} parts, and in {parts_before} where it lay first"))?;
        self.compared += 1;
        match bits.iter().zip(before).position(|(new, old)| new != old) {
            Some(e) => Err(format!("({}, {}) has other bits where A and B lie elsewhere", e % rows, e / rows).into()),
            None => Ok(()),
        }
    }

    /// Fails unless all that were computed first were computed again.
    fn all(&self) -> Outcome {
        let (first, compared) = (self.first.len(), self.compared);
        ensure(first > 0 && compared == first, || format!("of {first} results {compared} were compared with another"))
    }
}

fn parts(plan: &Plan) -> u32 {
    plan.choice().map_or(1, |choice| choice.splits)
}

/// Gram matrices of random data within their bound, with a NaN or an infinity in one element of A, and of an A that is NaN where α = 0.
pub fn run_special(lab: &Lab) -> Outcome {
    special::<f32>(lab)?;
    special::<f64>(lab)
}

fn special<T: Real>(lab: &Lab) -> Outcome {
    for (index, n) in [1, 5, 8, 13, 33, 64].into_iter().enumerate() {
        for spec in specs((n, n), 4099, index) {
            for (what, alpha) in
                [(None, 0.5), (Some(f64::NAN), 1.0), (Some(f64::INFINITY), -1.0), (Some(f64::NAN), 0.0)]
            {
                let spec = Spec { alpha, beta: [0.0, 0.5][index % 2], ..spec };
                let place = (4097, n / 2);
                let value = |l, j| match what {
                    // All of it where nothing is to be read.
                    Some(special) if alpha == 0.0 || (l, j) == place => special,
                    Some(_) => integer(2, l, j, 1),
                    None => unit(2, l, j),
                };
                let case = spec.make::<T>(lab, |i, l| value(l, i), value, |i, j| integer(3, i, j, 3))?;
                let (near, exact) = (near(&case), by_definition(&case));
                let mut gram = Gram::<T>::new(lab, spec, Triangle::Full, value)?;
                for entry in
                    gram_entries::<T>(lab, spec, Triangle::Full).into_iter().filter(|entry| serves(*entry, (n, n)))
                {
                    let result = gram.plan(lab, entry).map_err(Into::into).and_then(|plan| {
                        let found = gram.run(lab, &plan)?;
                        match what {
                            None => within(&found, &near, n, chain(plan.choice(), spec.size.2), spec.size.2),
                            Some(_) => alike(&found, &exact, n),
                        }
                    });
                    lab.record(|| format!("gram-special {what:?} {} {}", named(entry), spec.name::<T>()), result)?;
                }
            }
        }
    }
    Ok(())
}

/// Random numbers: all runs have the bits of the first, wherever A and B lie, and a Gram matrix those of its transpose. Float
/// atomics have not.
fn same_bits<T: Real>(lab: &Lab, k: usize, runs: usize) -> Outcome {
    // One of vectors with gaps the CPU adds in another order than one without.
    let serves = |sides: &(usize, usize)| lab.device.is_cuda() || *sides != (1, 1);
    for (index, sides) in BITS.into_iter().enumerate().filter(|(_, sides)| serves(sides)) {
        // By rows aligned and not, then by columns.
        for pair in specs(sides, k, 5 * index).chunks(2) {
            let mut before = Anywhere::default();
            for spec in pair {
                let spec = Spec { alpha: 1.0, beta: 0.0, ..*spec };
                bits_of_products::<T>(lab, spec, runs, &mut before)?;
                bits_of_grams::<T>(lab, spec, runs, &mut before)?;
            }
            lab.record(|| format!("tsmttsm, bits anywhere {}", pair[0].name::<T>()), before.all())?;
        }
    }
    Ok(())
}

fn bits_of_products<T: Real>(lab: &Lab, spec: Spec, runs: usize, before: &mut Anywhere) -> Outcome {
    let mut case = spec.make::<T>(lab, |i, l| unit(1, i, l), |l, j| unit(2, l, j), |_, _| 0.0)?;
    let mut poison = spec.make::<T>(lab, |_, _| f64::NAN, |_, _| f64::NAN, |_, _| 0.0)?;
    let suits = |entry: &Option<&Variant>| {
        serves(*entry, (spec.size.0, spec.size.1)) && !entry.is_some_and(Variant::adds_atomically)
    };
    for entry in entries::<T>(lab).into_iter().filter(suits) {
        let by = by(lab, Kernel::Tsmttsm, entry);
        let plan = case.builder(lab).and_then(|builder| before.plan(builder, by, entry));
        let result = plan.map_err(Into::into).and_then(|plan| {
            let first = case.run(lab, &plan)?;
            before.are(by, parts(&plan), &first, spec.size.0)?;
            let again = || case.run_unwatched(lab, &plan);
            repeat::again(&first, spec.size.0, runs, again, || poison.run_unwatched(lab, &plan))
        });
        lab.record(|| format!("tsmttsm, bits of {} {}", named(entry), spec.name::<T>()), result)?;
    }
    Ok(())
}

fn bits_of_grams<T: Real>(lab: &Lab, spec: Spec, runs: usize, before: &mut Anywhere) -> Outcome {
    let n = spec.size.1;
    let mut gram = Gram::<T>::new(lab, spec, Triangle::Full, |l, j| unit(2, l, j))?;
    let mut poison = Gram::<T>::new(lab, spec, Triangle::Full, |_, _| f64::NAN)?;
    for entry in gram_entries::<T>(lab, spec, Triangle::Full).into_iter().filter(|entry| serves(*entry, (n, n))) {
        let by = by(lab, Kernel::Gram, entry);
        let plan = gram.builder(lab).and_then(|builder| before.plan(builder, by, entry));
        let result = plan.map_err(Into::into).and_then(|plan| {
            let first = gram.run(lab, &plan)?;
            before.are(by, parts(&plan), &first, n)?;
            let symmetric = (0..n * n).all(|e| first[e].bits() == first[e % n * n + e / n].bits());
            ensure(symmetric, || "it is not symmetric to the bit".into())?;
            let again = || gram.run_unwatched(lab, &plan);
            repeat::again(&first, n, runs, again, || poison.run_unwatched(lab, &plan))
        });
        lab.record(|| format!("gram, bits of {} {}", named(entry), spec.name::<T>()), result)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries::tests::problem;
    use host::Device;
    use model::{Machine, Parts, Problem, Refusal, Strides, VARIANTS, choose, choose_given};

    /// Of every entry some bits are compared with others, in the parts of k of those.
    #[test]
    fn operands_that_lie_elsewhere_have_as_many_parts() -> Result<(), Refusal> {
        let kinds = [Kernel::Tsmttsm, Kernel::Gram];
        for v in VARIANTS.iter().filter(|v| kinds.contains(&v.kernel) && !v.adds_atomically()) {
            let mut compared = 0;
            for (index, sides) in BITS.into_iter().enumerate().filter(|(_, sides)| serves(Some(v), *sides)) {
                for pair in specs(sides, LONG, 5 * index).chunks(2) {
                    let [first, second] = [0, 1].map(|at| {
                        let p = problem(&pair[at], v.dtype);
                        let gram = Problem::gram(v.dtype, p.n, p.k, p.b);
                        if v.kernel == Kernel::Gram { Problem { c: p.c, ..gram } } else { p }
                    });
                    let parts = choose(&first, &Machine::H200, Some(v.entry))?.splits;
                    let again = choose_given(&second, &Machine::H200, v.entry, Parts::Exactly(parts))?.splits;
                    assert_eq!(again, parts, "{} {:?}", v.entry, pair[1]);
                    compared += 1;
                }
            }
            assert!(compared > 0, "{}", v.entry);
        }
        Ok(())
    }

    /// On the CPU, where there is one entry of each kind.
    #[test]
    fn bits_are_compared_wherever_operands_lie() -> Outcome {
        let lab = Lab::new(Device::cpu(), 8)?;
        same_bits::<f32>(&lab, 4099, 2)?;
        same_bits::<f64>(&lab, 4099, 2)?;
        // Three sizes by rows and by columns: two products and two Gram matrices, and that they were compared.
        assert!(lab.finish() && lab.passed() == 2 * 3 * 2 * (4 + 1));
        Ok(())
    }

    #[test]
    fn what_is_not_compared_and_other_bits_are_found() -> Outcome {
        let (one, other) = (Some((Kernel::Gram, "one")), Some((Kernel::Gram, "other")));
        let mut before = Anywhere::default();
        assert!(before.all().is_err());
        before.are(one, 3, &[1.0, 2.0], 2)?;
        assert!(before.all().is_err());
        before.are(one, 3, &[1.0, 2.0], 2)?;
        before.all()?;
        assert!(before.are(one, 4, &[1.0, 2.0], 2).is_err() && before.are(one, 3, &[1.0, 2.5], 2).is_err());
        let mut before = Anywhere::default();
        before.are(one, 3, &[1.0], 1)?;
        before.are(other, 3, &[1.0], 1)?;
        before.are(None, 3, &[1.0], 1)?;
        before.are(one, 3, &[1.0], 1)?;
        assert!(before.all().is_err());
        Ok(())
    }

    /// Of every entry some case is in one part, one is finished by the last block and one, or by atomics all, otherwise.
    #[test]
    fn every_way_to_finish_is_met() {
        for v in VARIANTS.iter().filter(|v| matches!(v.kernel, Kernel::Tsmttsm | Kernel::Gram)) {
            let finishes: Vec<_> = SIDES
                .iter()
                .filter(|(m, n)| (v.kernel == Kernel::Tsmttsm || m == n) && serves(Some(v), (*m, *n)))
                .flat_map(|sides| STEPS.map(|k| (*sides, k)))
                .filter_map(|((m, n), k)| {
                    let (m, n, k) = (m as u64, n as u64, k as u64);
                    let p = match v.kernel {
                        Kernel::Gram => Problem::gram(v.dtype, n, k, Strides::column_major(n)),
                        _ => Problem::column_major(v.dtype, m, n, k),
                    };
                    choose(&p, &Machine::H200, Some(v.entry)).ok().map(|choice| choice.finish)
                })
                .collect();
            assert!(!finishes.is_empty(), "{}", v.entry);
            let met: std::collections::HashSet<_> = finishes.into_iter().collect();
            assert!(met.len() >= 2, "{}: {met:?}", v.entry);
        }
    }
}
