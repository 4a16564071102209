//! Two tall matrices over their long side, and a matrix by itself: every entry, in every way to finish.

use crate::case::{ALPHAS, BETAS, Spec};
use crate::compare::{alike, bitwise, equal, within};
use crate::lab::{Lab, Outcome, ensure};
use crate::operand::{Operand, Storage};
use crate::oracle::{by_definition, chain, dot_of_integers, exact, near};
use crate::real::{Real, integer, unit};
use host::{Plan, Triangle};
use model::{Kernel, VARIANTS, Variant};
use rayon::prelude::*;

const RUNS: usize = 100;
/// Rows and columns of C; k with each, from one part of k to more than one block adds.
pub const SIDES: [(usize, usize); 12] =
    [(1, 1), (2, 1), (2, 2), (4, 4), (7, 3), (8, 8), (16, 16), (17, 3), (31, 33), (32, 32), (48, 16), (64, 64)];
const STEPS: [usize; 4] = [65, 4099, 65536, 300_001];

/// Both element types.
pub fn run(lab: &Lab) -> Outcome {
    sweep::<f32>(lab, &STEPS)?;
    sweep::<f64>(lab, &STEPS)?;
    same_bits::<f32>(lab)?;
    same_bits::<f64>(lab)
}

/// A little of it, for a tool that is slow.
pub fn small<T: Real>(lab: &Lab) -> Outcome {
    sweep::<T>(lab, &[4099])
}

/// Entries of an element type; the model's choice alone on the CPU.
fn entries<T: Real>(lab: &Lab, kernel: Kernel) -> Vec<Option<&'static Variant>> {
    let forced = VARIANTS.iter().filter(|v| lab.device.is_cuda() && v.dtype == T::DTYPE && v.kernel == kernel);
    [None].into_iter().chain(forced.map(Some)).collect()
}

pub fn named(entry: Option<&Variant>) -> &'static str {
    entry.map_or("chosen", |v| v.entry)
}

/// Tall matrices by rows and by columns, packed, with gaps, and off their alignment.
pub fn specs((m, n): (usize, usize), k: usize, index: usize) -> Vec<Spec> {
    let lying = |row_major: bool, pad: usize, offset: usize| {
        // Of op(A), which is m x k, the tall matrix's rows are columns.
        let of = |row_major| Storage { row_major, pad, offset };
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
            if k > 10_000 && at != index % 4 {
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
    for entry in entries::<T>(lab, Kernel::Tsmttsm) {
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
struct Gram<T> {
    spec: Spec,
    a: Operand<T>,
    c: Operand<T>,
    triangle: Triangle,
}

impl<T: Real> Gram<T> {
    fn new(lab: &Lab, spec: Spec, triangle: Triangle, a: impl Fn(usize, usize) -> f64) -> Outcome<Self> {
        let ((_, n, k), [_, sb, sc]) = (spec.size, spec.storage);
        let asked = |i: usize, j: usize| asked_for(triangle, i, j);
        let before = |i, j| if spec.beta == 0.0 && asked(i, j) { T::canary() } else { T::of(integer(3, i, j, 3)) };
        let a = Operand::new(lab, k, n, sb, |l, j| T::of(a(l, j)))?;
        Ok(Gram { spec, a, c: Operand::new(lab, n, n, sc, before)?, triangle })
    }

    fn plan(&self, lab: &Lab, entry: Option<&Variant>) -> host::Result<Plan> {
        let n = self.spec.size.1;
        let (row, col) = self.spec.storage[2].strides(n, n);
        let strides = model::Strides { row: row as u64, col: col as u64 };
        let c = host::Shape::with_strides(n, n, strides, T::DTYPE);
        let builder = Plan::gram(&lab.device, self.a.view(lab)?.shape(), c).triangle(self.triangle);
        entry.into_iter().fold(builder, |builder, v| builder.variant(v.entry)).build()
    }

    fn run(&mut self, lab: &Lab, plan: &Plan) -> Outcome<Vec<T>> {
        let (alpha, beta) = (T::of(self.spec.alpha), T::of(self.spec.beta));
        self.c.reset()?;
        plan.run_gram(&lab.stream, alpha, self.a.view(lab)?, beta, self.c.view_mut(lab)?)?;
        lab.stream.synchronize()?;
        self.a.unchanged("A")?;
        self.c.result("C")
    }
}

pub fn asked_for(triangle: Triangle, i: usize, j: usize) -> bool {
    match triangle {
        Triangle::Full => true,
        Triangle::Lower => i >= j,
        Triangle::Upper => i <= j,
    }
}

/// Whether an entry has columns enough.
pub fn serves(entry: Option<&Variant>, n: usize) -> bool {
    entry.and_then(Variant::most_columns).is_none_or(|columns| n <= columns as usize)
}

fn grams<T: Real>(lab: &Lab, spec: Spec, index: usize) -> Outcome {
    let (_, n, k) = spec.size;
    let triangle = [Triangle::Full, Triangle::Lower, Triangle::Upper][index % 3];
    let value = |l: usize, j: usize| integer(2, l, j, 3);
    let mut gram = Gram::<T>::new(lab, spec, triangle, value)?;
    let cols: Vec<Vec<i32>> = (0..n).map(|j| (0..k).map(|l| value(l, j) as i32).collect()).collect();
    let expected: Vec<f64> = (0..n * n)
        .into_par_iter()
        .map(|e| {
            let (i, j) = (e % n, e / n);
            let old = integer(3, i, j, 3);
            if !asked_for(triangle, i, j) {
                return old;
            }
            let sum = dot_of_integers(&cols[i], &cols[j]) as f64;
            spec.alpha * sum + if spec.beta == 0.0 { 0.0 } else { spec.beta * old }
        })
        .collect();
    for entry in entries::<T>(lab, Kernel::Gram).into_iter().filter(|entry| serves(*entry, n)) {
        let result = gram.plan(lab, entry).map_err(Into::into).and_then(|plan| {
            gram.run(lab, &plan)?;
            equal(&gram.run(lab, &plan)?, &expected, n)
        });
        lab.record(|| format!("gram {} {triangle:?} {}", named(entry), spec.name::<T>()), result)?;
    }
    Ok(())
}

/// The bits of entries, and the parts of k that they are of, wherever operands lay before.
#[derive(Default)]
struct Anywhere(Vec<(&'static str, u32, Vec<u128>)>);

impl Anywhere {
    /// Fails if an entry had others for the same parts; the model's own choice may be another one.
    fn are<T: Real>(&mut self, entry: Option<&Variant>, plan: &Plan, found: &[T], rows: usize) -> Outcome {
        let Some(name) = entry.map(|v| v.entry) else { return Ok(()) };
        let splits = plan.choice().map_or(1, |choice| choice.splits);
        let bits: Vec<u128> = found.iter().map(|value| value.bits()).collect();
        match self.0.iter().find(|(of, parts, _)| *of == name && *parts == splits) {
            Some((.., before)) => match bits.iter().zip(before).position(|(new, old)| new != old) {
                Some(e) => {
                    Err(format!("({}, {}) has other bits where A and B lie elsewhere", e % rows, e / rows).into())
                }
                None => Ok(()),
            },
            None => {
                self.0.push((name, splits, bits));
                Ok(())
            }
        }
    }
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
                for entry in entries::<T>(lab, Kernel::Gram).into_iter().filter(|entry| serves(*entry, n)) {
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

/// Random numbers: 100 runs have the bits of the first, and a Gram matrix those of its transpose. Float atomics have not.
fn same_bits<T: Real>(lab: &Lab) -> Outcome {
    for (index, sides) in [(16, 16), (64, 64), (5, 5), (1, 1)].into_iter().enumerate() {
        let mut before = Anywhere::default();
        for (at, spec) in specs(sides, 50_021, 5 * index).into_iter().enumerate() {
            // By rows aligned and not, then by columns.
            if at % 2 == 0 {
                before = Anywhere::default();
            }
            let spec = Spec { alpha: 1.0, beta: 0.0, ..spec };
            let mut case = spec.make::<T>(lab, |i, l| unit(1, i, l), |l, j| unit(2, l, j), |_, _| 0.0)?;
            for entry in entries::<T>(lab, Kernel::Tsmttsm) {
                if entry.is_some_and(|v| v.adds_atomically()) {
                    continue;
                }
                let result = case.plan(lab, entry.map(|v| v.entry)).map_err(Into::into).and_then(|plan| {
                    let first = case.run(lab, &plan)?;
                    before.are(entry, &plan, &first, sides.0)?;
                    (1..RUNS).try_for_each(|_| bitwise(&case.run_unwatched(lab, &plan)?, &first, sides.0))
                });
                lab.record(|| format!("tsmttsm, bits of {} {}", named(entry), spec.name::<T>()), result)?;
            }
            let mut gram = Gram::<T>::new(lab, spec, Triangle::Full, |l, j| unit(2, l, j))?;
            for entry in entries::<T>(lab, Kernel::Gram).into_iter().filter(|entry| serves(*entry, sides.0)) {
                let result = gram.plan(lab, entry).map_err(Into::into).and_then(|plan| {
                    let first = gram.run(lab, &plan)?;
                    let n = sides.0;
                    before.are(entry, &plan, &first, n)?;
                    let symmetric = (0..n * n).all(|e| first[e].bits() == first[e % n * n + e / n].bits());
                    ensure(symmetric, || "it is not symmetric to the bit".into())?;
                    (1..RUNS).try_for_each(|_| bitwise(&gram.run(lab, &plan)?, &first, n))
                });
                lab.record(|| format!("gram, bits of {} {}", named(entry), spec.name::<T>()), result)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Machine, Problem, Strides, choose};

    /// Of every entry some case is in one part, one is finished by the last block and one, or by atomics all, otherwise.
    #[test]
    fn every_way_to_finish_is_met() {
        for v in VARIANTS.iter().filter(|v| matches!(v.kernel, Kernel::Tsmttsm | Kernel::Gram)) {
            let finishes: Vec<_> = SIDES
                .iter()
                .filter(|(m, n)| v.kernel == Kernel::Tsmttsm || (m == n && serves(Some(v), *n)))
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
