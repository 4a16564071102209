//! Complex elements: every entry of theirs, with every combination of conjugates.

mod gemv;
mod parts;
mod product;
mod reduced;
mod tsmm;

use crate::compare::{bitwise, equal_parts};
use crate::entries::{Entry, all, reduced_groups, refused};
use crate::lab::{Lab, Outcome, ensure, named};
use crate::operand::Storage;
use crate::oracle::chain;
use crate::real::{Real, integer, unit};
use crate::shapes::Edges;
use host::{Complex, Error, MatRef, Rule, Scalar};
use product::{ALPHAS, BETAS};
use watched::parts::{alike, within};

pub use gemv::run as run_gemv;
pub use parts::run as run_parts;
pub use product::{Product, Spec, exact};
pub use reduced::{Gram, run as run_reduced};
pub use tsmm::{in_place, run as run_tsmm};

use super::repeat;
use super::splits::{SIZES as LONG, split};

/// Of the sizes at tile edges one in so many is taken, other ones for the other type.
const STRIDE: usize = 5;

/// Both complex types.
pub fn run_edges(lab: &Lab) -> Outcome {
    edges::<f32>(lab, 0)?;
    edges::<f64>(lab, 2)
}

/// A product of integers of this size by every entry of theirs.
pub fn one<R: Real>(lab: &Lab, check: &str, spec: Spec) -> Outcome
where
    Complex<R>: Scalar<Real = R>,
{
    let mut groups = spec.groups_of_all(dtype::<R>(), lab.device.is_cuda()).into_iter();
    groups.try_for_each(|(spec, entries)| integers::<R>(lab, check, &spec, entries))
}

fn edges<R: Real>(lab: &Lab, skipped: usize) -> Outcome
where
    Complex<R>: Scalar<Real = R>,
{
    for (index, size) in Edges::of(dtype::<R>()).sizes().into_iter().enumerate().skip(skipped).step_by(STRIDE) {
        for (spec, entries) in Spec::varied(size, index).groups(entries::<R>(lab)) {
            integers::<R>(lab, "complex", &spec, entries)?;
        }
    }
    Ok(())
}

/// Small shapes in every layout and with every conjugate, for compute-sanitizer.
pub fn small(lab: &Lab) -> Outcome {
    let layouts = (0..32).filter(|index| lab.takes(*index, 11));
    for (index, size) in layouts.flat_map(|index| [(131, 3, 37), (7, 19, 13)].map(|size| (index, size))) {
        let spec = Spec { conj: [index & 1 > 0, index & 2 > 0], ..Spec::varied(size, index) };
        for (spec, entries) in spec.groups(entries::<f32>(lab)) {
            integers::<f32>(lab, "small complex", &spec, entries)?;
        }
        for (spec, entries) in spec.groups(entries::<f64>(lab)) {
            integers::<f64>(lab, "small complex", &spec, entries)?;
        }
    }
    tsmm::small(lab)?;
    reduced::small(lab)?;
    gemv::small(lab)
}

fn dtype<R: Real>() -> host::Dtype
where
    Complex<R>: Scalar,
{
    Complex::<R>::DTYPE
}

fn entries<R: Real>(lab: &Lab) -> Vec<Entry>
where
    Complex<R>: Scalar,
{
    all(dtype::<R>(), lab.device.is_cuda())
}

/// Packed and column-major, with conjugates of A, and factors that are complex.
pub fn plain(size: (usize, usize, usize)) -> Spec {
    let (alpha, beta) = (ALPHAS[1], BETAS[3]);
    Spec { size, storage: [Storage::default(); 3], conj: [true, false], alpha, beta }
}

/// A product of integers.
pub fn of_integers<R: Real>(lab: &Lab, spec: Spec) -> Outcome<Product<R>>
where
    Complex<R>: Scalar<Real = R>,
{
    let part = |seed| move |i, j, im| integer(seed + 10 * im, i, j, 3);
    Product::<R>::new(lab, spec, part(1), part(2), part(3))
}

/// One product of integers by these entries, exactly; those of another layout are in another group.
fn integers<R: Real>(lab: &Lab, check: &str, spec: &Spec, entries: Vec<Entry>) -> Outcome
where
    Complex<R>: Scalar<Real = R>,
{
    let mut product = of_integers::<R>(lab, *spec)?;
    let expected = exact(&product);
    for entry in entries {
        let result = product.plan(lab, entry).map_err(Into::into).and_then(|plan| {
            let found = product.run(lab, &plan)?;
            equal_parts(&found, &expected, spec.size.0)
        });
        lab.record(|| format!("{check} {} {}", named(entry), spec.name::<R>()), result)?;
    }
    Ok(())
}

/// Both complex types.
pub fn run_splits(lab: &Lab) -> Outcome {
    if !lab.device.is_cuda() {
        lab.skip("complex-splits", "the CPU has none");
        return Ok(());
    }
    splits::<f32>(lab)?;
    splits::<f64>(lab)
}

fn splits<R: Real>(lab: &Lab) -> Outcome
where
    Complex<R>: Scalar<Real = R>,
{
    for (index, size) in LONG.into_iter().enumerate() {
        let spec = Spec { conj: [index & 1 > 0, index & 2 > 0], ..Spec::varied(size, index) };
        for (spec, entries) in spec.groups(entries::<R>(lab)) {
            integers::<R>(lab, "complex-splits", &spec, entries.clone())?;
            let part = |seed| move |i, j, im| unit(seed + 10 * im, i, j);
            let mut product = Product::<R>::new(lab, spec, part(1), part(2), part(3))?;
            let nan = |_, _, _| f64::NAN;
            let mut poison = Product::<R>::new(lab, spec, nan, nan, part(3))?;
            for entry in entries {
                let result = product.plan(lab, entry).map_err(Into::into).and_then(|plan| {
                    split(plan.choice(), entry)?;
                    let first = product.run(lab, &plan)?;
                    let again = || product.run_unwatched(lab, &plan);
                    repeat::again(&first, size.0, repeat::RUNS, again, || poison.run_unwatched(lab, &plan))
                });
                lab.record(|| format!("complex-splits, again, {} {}", named(entry), spec.name::<R>()), result)?;
            }
        }
    }
    Ok(())
}

/// Both complex types.
pub fn run_special(lab: &Lab) -> Outcome {
    special::<f32>(lab)?;
    special::<f64>(lab)?;
    nothing::<f32>(lab)?;
    nothing::<f64>(lab)
}

/// A NaN or an infinity in one part of an element of A or B.
fn special<R: Real>(lab: &Lab) -> Outcome
where
    Complex<R>: Scalar<Real = R>,
{
    let specials = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    let cases = (0..16).flat_map(|index| specials.map(|special| (index, special))).enumerate();
    for (_, (index, special)) in cases.filter(|(case, _)| lab.takes(*case, 17)) {
        let spec = Spec { conj: [index & 1 > 0, index & 2 > 0], ..Spec::varied((130, 9, 70), index) };
        let spec = Spec { alpha: ALPHAS[index % 3], ..spec };
        let (row, l, col) = ([0, 31, 129][index % 3], [0, 15, 64, 69][index % 4], index % 9);
        let part = |seed| move |i, j, im| integer(seed + 10 * im, i, j, 1);
        for (spec, entries) in spec.groups_of_all(dtype::<R>(), lab.device.is_cuda()) {
            let (row, col) = (row % spec.size.0, col % spec.size.1);
            let mut product = Product::<R>::new(lab, spec, part(1), part(2), part(3))?;
            let (operand, at) = if index & 4 > 0 { (&mut product.a, (row, l)) } else { (&mut product.b, (l, col)) };
            let old = operand.get(at.0, at.1);
            let new = if index & 8 > 0 { (old.re, R::of(special)) } else { (R::of(special), old.im) };
            operand.set(at.0, at.1, Complex::new(new.0, new.1));
            operand.reset()?;
            let expected = product.terms().parts();
            for entry in entries {
                let result = product.plan(lab, entry).map_err(Into::into).and_then(|plan| {
                    let found = product.run(lab, &plan)?;
                    alike(&found, &expected, spec.size.0, lab.device.is_cuda())
                });
                let name = || format!("complex-special {} {special} at {at:?} {}", named(entry), spec.name::<R>());
                lab.record(name, result)?;
            }
        }
    }
    Ok(())
}

/// α = 0 with A and B of NaN, k = 0, β = 0 over NaN, and empty results.
fn nothing<R: Real>(lab: &Lab) -> Outcome
where
    Complex<R>: Scalar<Real = R>,
{
    for (index, beta) in (0..4).flat_map(|index| BETAS.map(|beta| (index, beta))) {
        let size = [(37, 5, 9), (37, 5, 0), (0, 5, 9), (37, 0, 9)][index];
        let spec = Spec { alpha: (0.0, -0.0), beta, ..Spec::varied(size, index) };
        let mut product =
            Product::<R>::new(lab, spec, |_, _, _| f64::NAN, |_, _, _| f64::NAN, |i, j, im| integer(3 + im, i, j, 3))?;
        let expected = product.terms().scaled();
        let result = product.plan(lab, None).map_err(Into::into).and_then(|plan| {
            plan.warm_up()?;
            let found = product.run(lab, &plan)?;
            equal_parts(&found, &expected, size.0)
        });
        lab.record(|| format!("complex-special, nothing to multiply, {}", spec.name::<R>()), result)?;
    }
    Ok(())
}

/// Both complex types.
pub fn run_rounding(lab: &Lab) -> Outcome {
    rounding::<f32>(lab)?;
    rounding::<f64>(lab)
}

fn rounding<R: Real>(lab: &Lab) -> Outcome
where
    Complex<R>: Scalar<Real = R>,
{
    let sizes = [(257, 7, 1031), (33, 16, 4099), (6, 131, 260), (130, 40, 300)];
    for (index, size) in (0..4).flat_map(|index| sizes.map(|size| (index, size))) {
        let spec = Spec { conj: [index & 1 > 0, index & 2 > 0], ..Spec::varied(size, index) };
        for (spec, entries) in spec.groups_of_all(dtype::<R>(), lab.device.is_cuda()) {
            let part = |seed| move |i, j, im| unit(seed + 10 * im, i, j);
            let mut product = Product::<R>::new(lab, spec, part(1), part(2), part(3))?;
            let expected = product.terms().near_parts();
            for entry in entries {
                let result = product.plan(lab, entry).map_err(Into::into).and_then(|plan| {
                    let length = chain(plan.choice(), size.2);
                    within(&product.run(lab, &plan)?, &expected, spec.size, length)
                });
                lab.record(|| format!("complex-rounding {} {}", named(entry), spec.name::<R>()), result)?;
            }
        }
    }
    Ok(())
}

/// Both complex types.
pub fn run_alignment(lab: &Lab) -> Outcome {
    alignment::<f32>(lab)?;
    alignment::<f64>(lab)?;
    lab.record(|| "complex-alignment, half an element, c64".into(), half::<f32>(lab))?;
    lab.record(|| "complex-alignment, half an element, c128".into(), half::<f64>(lab))
}

/// One operand at a time is moved by elements, or has a gap.
fn alignment<R: Real>(lab: &Lab) -> Outcome
where
    Complex<R>: Scalar<Real = R>,
{
    for (a_by_rows, b_by_rows, m) in (0..8).map(|at| (at & 1 > 0, at & 2 > 0, [128, 131][at / 4])) {
        let aligned = |row_major| Storage::new(row_major, 0, 0);
        let storage = [aligned(a_by_rows), aligned(b_by_rows), aligned(a_by_rows)];
        let of = |size| Spec { storage, conj: [true, false], beta: (1.0, -2.0), ..Spec::varied(size, 0) };
        if a_by_rows == b_by_rows {
            moved::<R>(lab, of((m, 5, 35)), entries::<R>(lab))?;
        }
        for (size, entries) in reduced_groups(dtype::<R>(), (m, 5, 1031)).into_iter().filter(|_| lab.device.is_cuda()) {
            let spec = of(size);
            moved::<R>(lab, spec, entries.into_iter().filter(|entry| spec.suits(*entry)).collect())?;
        }
    }
    Ok(())
}

fn moved<R: Real>(lab: &Lab, plain: Spec, entries: Vec<Entry>) -> Outcome
where
    Complex<R>: Scalar<Real = R>,
{
    let part = |seed| move |i, j, im| unit(seed + 10 * im, i, j);
    let mut reference = Product::<R>::new(lab, plain, part(1), part(2), part(3))?;
    for entry in entries {
        if !plain.suits(entry) {
            let result = refused(entry, reference.plan(lab, entry));
            lab.record(|| format!("complex-alignment, refusal, {}", named(entry)), result)?;
            continue;
        }
        let plan = reference.plan(lab, entry)?;
        let parts = plan.choice().map_or(1, |choice| choice.splits);
        // The model may choose another entry for operands that lie elsewhere: the promise is of one plan.
        let taken = entry.or(plan.choice().map(|choice| choice.variant.entry));
        let bits = reference.run(lab, &plan)?;
        for (operand, offset, pad) in (0..3).flat_map(|o| [(o, 1, 0), (o, 0, 1), (o, 2, 1), (o, 3, 2)]) {
            let mut storage = plain.storage;
            storage[operand] = Storage { pad, offset, ..storage[operand] };
            let spec = Spec { storage, ..plain };
            let mut moved = Product::<R>::new(lab, spec, part(1), part(2), part(3))?;
            // Of vectors the model weighs the leading dimension: in as many parts.
            let given = moved.builder(lab)?;
            let given = match entry.filter(|_| plain.size.1 == 1) {
                Some(name) => given.variant(name).parts(parts).build(),
                None => moved.plan(lab, taken),
            };
            let result = given.map_err(Into::into).and_then(|plan| {
                let found = plan.choice().map_or(1, |choice| choice.splits);
                ensure(found == parts, || format!("k in {found} parts, aligned in {parts}"))?;
                bitwise(&moved.run(lab, &plan)?, &bits, plain.size.0)
            });
            lab.record(|| format!("complex-alignment {} {}", named(entry), spec.name::<R>()), result)?;
        }
    }
    Ok(())
}

/// An address that is no multiple of an element is refused on a GPU, and no kernel sees it.
fn half<R: Real>(lab: &Lab) -> Outcome
where
    Complex<R>: Scalar<Real = R>,
{
    if !lab.device.is_cuda() {
        lab.skip("half an element", "the CPU takes any address");
        return Ok(());
    }
    let mut product = Product::<R>::new(lab, Spec::varied((9, 4, 7), 1), |_, _, _| 1.0, |_, _, _| 1.0, |_, _, _| 1.0)?;
    let (address, (row, col)) = (product.a.address() - size_of::<R>() as u64, product.a.strides());
    // SAFETY: inside of the operand's guards; the address is what is to be refused before anything is read.
    let a = unsafe { MatRef::<Complex<R>>::from_raw(&lab.device, address, 9, 7, row, col) }?;
    let one = Complex::new(R::of(1.0), R::of(0.0));
    match host::gemm(&lab.stream, one, a, product.b.view(lab)?, one, product.c.view_mut(lab)?) {
        Err(Error::Shape(error)) if error.rule == Rule::Alignment && error.operand == host::Operand::A => {}
        other => return Err(format!("found {other:?}").into()),
    }
    lab.stream.synchronize()?;
    product.c.unchanged("C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries::tests::planned;
    use host::Device;
    use model::{Kernel, Refusal, VARIANTS, Variant};

    /// All of it on the CPU, where there is one entry: the checks' own check.
    #[test]
    fn the_checks_pass_on_the_cpu() -> Outcome {
        let lab = Lab::new(Device::cpu(), 16)?;
        for check in [run_special, run_parts, run_rounding, run_alignment, small] {
            check(&lab)?;
        }
        assert!(lab.finish());
        Ok(())
    }

    #[test]
    fn the_long_sizes_are_split_on_a_large_gpu() -> Result<(), Refusal> {
        // A tall A's kernels never cut k.
        let is_tall = |v: &Variant| matches!(v.kernel, Kernel::Tsmm | Kernel::Tall);
        for v in VARIANTS.iter().filter(|v| v.dtype.is_complex() && !v.is_reduced() && !is_tall(v)) {
            for (index, size) in LONG.into_iter().enumerate() {
                let groups = Spec::varied(size, index).groups(vec![Some(v.entry)]);
                let Some((spec, _)) = groups.iter().find(|(_, entries)| entries.contains(&Some(v.entry))) else {
                    panic!("{} is in no group", v.entry)
                };
                assert!(planned(&spec.plain(), v)?.splits > 1, "{} {size:?}", v.entry);
            }
        }
        Ok(())
    }
}
