//! Entries of a tall complex A: widths and tiles, with every conjugate, several turns, the same bits, in place.

use super::product::{ALPHAS, BETAS, Product, Spec};
use super::{dtype, integers};
use crate::case;
use crate::check::tsmm::{sizes, taken, tall};
use crate::compare::{bitwise, equal_parts};
use crate::lab::{Lab, Outcome, ensure};
use crate::operand::Operand;
use crate::real::{Real, integer, unit};
use host::{Complex, Scalar, tsmm_in_place};
use model::Variant;

const RUNS: usize = 100;
/// Rows of which every block takes several tiles, and the most steps and columns of them.
const SEVERAL: usize = 400_011;
const NARROW: usize = 13;
/// Rows of the runs that are compared.
const REPEATED: usize = 20_011;

/// Both complex types.
pub fn run(lab: &Lab) -> Outcome {
    if !lab.device.is_cuda() {
        lab.skip("complex-tsmm", "the CPU has no entries");
        return Ok(());
    }
    sweep::<f32>(lab)?;
    sweep::<f64>(lab)
}

/// What compute-sanitizer gets through: two tiles and a ragged end of the widest, by every entry.
pub fn small(lab: &Lab) -> Outcome {
    if !lab.device.is_cuda() {
        return Ok(());
    }
    of_two_tiles::<f32>(lab)?;
    of_two_tiles::<f64>(lab)
}

fn of_two_tiles<R: Real>(lab: &Lab) -> Outcome
where
    Complex<R>: Scalar<Real = R>,
{
    for (row, (v, (n, k))) in tall(dtype::<R>()).enumerate() {
        let spec = Spec::varied((2 * v.rows as usize + 5, n, k), row);
        let spec = Spec { storage: taken(v, spec.storage), ..spec };
        integers::<R>(lab, "small complex", &spec, vec![Some(v.entry)])?;
    }
    Ok(())
}

fn sweep<R: Real>(lab: &Lab) -> Outcome
where
    Complex<R>: Scalar<Real = R>,
{
    for (row, (v, (columns, steps))) in tall(dtype::<R>()).enumerate() {
        for (index, size) in sizes(v, (columns, steps)) {
            let spec = Spec::varied(size, 31 * row + index);
            let spec = Spec { storage: taken(v, spec.storage), ..spec };
            integers::<R>(lab, "complex-tsmm", &spec, vec![Some(v.entry)])?;
        }
        let size = (SEVERAL, columns.min(NARROW), steps.min(NARROW));
        let conj = [row & 1 > 0, row & 2 > 0];
        let storage = case::Spec::plain(size).storage;
        let plain = Spec { size, storage, conj, alpha: ALPHAS[row % ALPHAS.len()], beta: BETAS[row % BETAS.len()] };
        integers::<R>(lab, "complex-tsmm, several turns", &plain, vec![Some(v.entry)])?;
        let same = repeated::<R>(lab, v, Spec { size: (REPEATED, columns, steps), ..plain });
        lab.record(|| format!("complex-tsmm, {RUNS} runs, {}", v.entry), same)?;
    }
    for (index, (n, k)) in [(1, 1), (3, 7), (16, 16), (17, 33), (48, 48), (64, 64), (1, 64)].into_iter().enumerate() {
        for (row_major, pad) in [(true, 0), (true, 3), (false, 0), (false, 1)] {
            let name = || format!("complex-tsmm, in place n={n} k={k} by rows {row_major} pad {pad}");
            lab.record(name, in_place::<R>(lab, [30_011, n, k], index as u64, row_major, pad))?;
        }
    }
    Ok(())
}

/// Data that rounds, the same bits.
fn repeated<R: Real>(lab: &Lab, v: &Variant, spec: Spec) -> Outcome
where
    Complex<R>: Scalar<Real = R>,
{
    let part = |seed| move |i, j, im| unit(seed + 10 * im, i, j);
    let mut product = Product::<R>::new(lab, spec, part(1), part(2), part(3))?;
    let plan = product.plan(lab, Some(v.entry))?;
    let first = product.run(lab, &plan)?;
    (1..RUNS).try_for_each(|run| {
        let again = product.run(lab, &plan)?;
        bitwise(&again, &first, spec.size.0).map_err(|fault| format!("run {run}: {fault}").into())
    })
}

/// The first n columns of A become the product; nothing else of its memory changes.
pub fn in_place<R: Real>(lab: &Lab, [m, n, k]: [usize; 3], seed: u64, row_major: bool, pad: usize) -> Outcome
where
    Complex<R>: Scalar<Real = R>,
{
    let mut storage = case::Spec::plain((m, n, k)).storage;
    (storage[0].row_major, storage[0].pad) = (row_major, pad);
    let alpha = ALPHAS[seed as usize % ALPHAS.len()];
    let spec = Spec { size: (m, n, k), storage, conj: [false; 2], alpha, beta: (0.0, 0.0) };
    let a = |i, l, im| integer(10 + seed + 100 * im, i, l, 3);
    let product = Product::<R>::new(lab, spec, a, |l, j, im| integer(2 + 10 * im, l, j, 3), |_, _, _| 0.0)?;
    let expected = product.terms().parts();
    // A again, with guards around it, to be written.
    let number = |i, l| Complex::new(R::of(a(i, l, 0)), R::of(a(i, l, 1)));
    let mut both = Operand::new(lab, m, k, storage[0], number)?;
    let alpha = Complex::new(R::of(alpha.0), R::of(alpha.1));
    tsmm_in_place(&lab.stream, alpha, both.view_mut(lab)?, product.b.view(lab)?)?;
    lab.stream.synchronize()?;
    let found = both.result("A")?;
    equal_parts(&found[..m * n], &expected, m)?;
    ensure((m * n..m * k).all(|at| found[at] == number(at % m, at / m)), || {
        "columns of A beside the product changed".into()
    })?;
    product.b.unchanged("B")
}
