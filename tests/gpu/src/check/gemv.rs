//! A matrix times a vector, or two: every entry at the edges of its tiles, in every way to finish, and the calls.

use crate::case::{ALPHAS, BETAS, Spec};
use crate::check::repeat::{self, RUNS};
use crate::compare::equal;
use crate::entries::{Entry, takes, tried};
use crate::lab::{Lab, Outcome, named};
use crate::operand::Storage;
use crate::oracle::exact;
use crate::real::{Real, unit};
use host::{Dtype, gemv};
use model::Kernel;

/// Rows and steps: at the edges of tiles of 8 to 1024 rows and of 32 to 1024 steps, few of either, and so many steps that they
/// are cut.
pub const SIZES: [(usize, usize); 22] = [
    (1, 1),
    (1, 300_001),
    (3, 65),
    (7, 40_003),
    (8, 1024),
    (9, 513),
    (31, 129),
    (64, 4096),
    (65, 63),
    (127, 2047),
    (128, 512),
    (129, 511),
    (255, 100),
    (511, 64),
    (512, 1023),
    (513, 8),
    (1000, 1000),
    (1023, 257),
    (1024, 33),
    (1025, 1),
    (70_001, 3),
    (20_011, 130),
];

/// Both real element types.
pub fn run(lab: &Lab) -> Outcome {
    for vectors in [1, 2] {
        sweep::<f32>(lab, &SIZES, vectors)?;
        sweep::<f64>(lab, &SIZES, vectors)?;
    }
    same_bits::<f32>(lab)?;
    same_bits::<f64>(lab)
}

/// A little of it, for a tool that is slow.
pub fn small<T: Real>(lab: &Lab) -> Outcome {
    let sizes = [(131, 37), (5, 4099), (1, 70)];
    sweep::<T>(lab, &sizes, 1)?;
    sweep::<T>(lab, &sizes, 2)
}

/// The model's choice, and on a GPU each entry that takes A as it lies, and so many vectors.
pub fn entries(lab: &Lab, dtype: Dtype, spec: &Spec) -> Vec<Entry> {
    let ((m, n, k), [a, b, _]) = (spec.size, spec.storage);
    let is_asked = |v: &&model::Variant| v.dtype == dtype && v.kernel == Kernel::Gemv && n <= v.t2 as usize;
    let of_vectors = |v: &&model::Variant| lab.device.is_cuda() && is_asked(v);
    let forced = tried().filter(of_vectors).map(|v| Some(v.entry));
    let suits = |entry: &Entry| takes(*entry, spec.size, a.strides(m, k), b.strides(k, n));
    [None].into_iter().chain(forced.filter(suits)).collect()
}

/// A by columns and by rows: packed, lines of whole 16 bytes, and off them by the base or by a gap; strided vectors, so many.
pub fn specs((m, k): (usize, usize), vectors: usize, index: usize) -> Vec<Spec> {
    let (alpha, beta) = (ALPHAS[index % 3], BETAS[index % BETAS.len()]);
    let mut all = Vec::new();
    for row_major in [false, true] {
        let line = if row_major { k } else { m };
        let whole = line.next_multiple_of(4) - line;
        for (at, (pad, offset)) in [(0, 0), (whole, 0), (whole, 1), (1, 0)].into_iter().enumerate() {
            let a = Storage::new(row_major, pad, offset);
            // By rows a vector has its gap behind every element.
            let vector = |bit: usize| Storage::new(at & bit > 0, at, at / 2);
            all.push(Spec { size: (m, vectors, k), storage: [a, vector(1), vector(2)], alpha, beta });
        }
    }
    all
}

fn sweep<T: Real>(lab: &Lab, sizes: &[(usize, usize)], vectors: usize) -> Outcome {
    for (index, &size) in sizes.iter().enumerate() {
        // Sums of the larger ones would not be exact in f32.
        if size.1 as f64 * 9.0 * T::U >= 1.0 {
            continue;
        }
        for spec in specs(size, vectors, index) {
            let mut case = spec.integers::<T>(lab)?;
            let expected = exact(&case);
            for entry in entries(lab, T::DTYPE, &spec) {
                let result = case.plan(lab, entry).map_err(Into::into).and_then(|plan| {
                    // Twice: the second finds the ticket that the first has left.
                    case.run(lab, &plan)?;
                    equal(&case.run(lab, &plan)?, &expected, size.0)
                });
                lab.record(|| format!("gemv {} {}", named(entry), spec.name::<T>()), result)?;
            }
            if vectors > 1 {
                continue;
            }
            let (alpha, beta) = (T::of(spec.alpha), T::of(spec.beta));
            case.c.reset()?;
            let (a, x) = (case.a.view(lab)?, case.b.view(lab)?);
            gemv(&lab.stream, alpha, a, x, beta, case.c.view_mut(lab)?)?;
            lab.stream.synchronize()?;
            let result = case.c.result("C").and_then(|found| equal(&found, &expected, size.0));
            lab.record(|| format!("gemv, called, {}", spec.name::<T>()), result)?;
        }
    }
    Ok(())
}

/// Random numbers: 100 runs have the bits of the first.
fn same_bits<T: Real>(lab: &Lab) -> Outcome {
    for (index, size) in [(7, 50_021), (1000, 3001), (20_011, 300)].into_iter().enumerate() {
        for spec in [1, 2].into_iter().flat_map(|vectors| specs(size, vectors, index)).step_by(3) {
            let spec = Spec { alpha: 1.0, beta: 0.0, ..spec };
            let mut case = spec.make::<T>(lab, |i, l| unit(1, i, l), |l, j| unit(2, l, j), |_, _| 0.0)?;
            let mut poison = spec.make::<T>(lab, |_, _| f64::NAN, |_, _| f64::NAN, |_, _| 0.0)?;
            for entry in entries(lab, T::DTYPE, &spec) {
                let result = case.plan(lab, entry).map_err(Into::into).and_then(|plan| {
                    let first = case.run(lab, &plan)?;
                    let again = || case.run_unwatched(lab, &plan);
                    repeat::again(&first, size.0, RUNS, again, || poison.run_unwatched(lab, &plan))
                });
                lab.record(|| format!("gemv, bits of {} {}", named(entry), spec.name::<T>()), result)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::launch::reduced::Finish;
    use model::{Machine, Problem, Strides, VARIANTS, choose};
    use std::collections::HashSet;

    /// Of every entry some case has k whole and, unless the entry always has, one is finished by last blocks or a second launch; and each entry meets full tiles and
    /// ragged ones. Of all together some are finished by last blocks, and some by a second launch.
    #[test]
    fn every_way_to_finish_is_met() {
        let mut all = HashSet::new();
        for v in VARIANTS.iter().filter(|v| v.kernel == Kernel::Gemv) {
            let finish = |(m, k): (usize, usize)| {
                let (m, k) = (m as u64, k as u64);
                let by_rows = v.layout == model::Layout::Rows;
                let a = if by_rows { Strides::row_major(k) } else { Strides::column_major(m) };
                let problem = Problem { a, ..Problem::column_major(v.dtype, m, v.t2.into(), k) };
                choose(&problem, &Machine::H200, Some(v.entry)).map(|choice| choice.finish)
            };
            let met: HashSet<Finish> = SIZES.into_iter().filter_map(|size| finish(size).ok()).collect();
            let wanted = if v.has_all_of_k() { 1 } else { 2 };
            assert!(met.contains(&Finish::Direct) && met.len() >= wanted, "{}: {met:?}", v.entry);
            let rows = v.rows as usize;
            assert!(SIZES.iter().any(|(m, _)| m % rows == 0) && SIZES.iter().any(|(m, _)| *m > rows && m % rows > 0));
            all.extend(met);
        }
        assert_eq!(all.len(), 3, "{all:?}");
    }
}
