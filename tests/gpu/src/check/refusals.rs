//! Wrong arguments: the operand and the rule are named, the first of two is reported, and C keeps every byte.

use crate::case::{Case, Spec};
use crate::compare::bitwise;
use crate::lab::{Lab, Outcome, dtype_name, ensure};
use crate::operand::{Operand, Storage};
use crate::real::Real;
use host::{Dtype, Error, MatMut, MatRef, Matrix, Operand as Name, Plan, Rule, Shape, gemm};

const SIZE: (usize, usize, usize) = (9, 4, 7);

/// Both element types.
pub fn run(lab: &Lab) -> Outcome {
    every::<f32>(lab)?;
    every::<f64>(lab)
}

fn every<T: Real>(lab: &Lab) -> Outcome {
    sizes::<T>(lab)?;
    overlaps::<T>(lab)?;
    places::<T>(lab)?;
    plans::<T>(lab)?;
    strides::<T>(lab)?;
    lab.record(|| format!("A times itself, {}", dtype_name::<T>()), itself::<T>(lab))
}

fn case<T: Real>(lab: &Lab) -> Outcome<Case<T>> {
    let storage = Storage::new(false, 12, 1);
    Spec { storage: [storage; 3], beta: 0.5, ..Spec::plain(SIZE) }.integers(lab)
}

/// Records that a call gave this error, and that the operands are as before.
fn refused<T: Real>(
    lab: &Lab,
    case: &Case<T>,
    what: &str,
    result: host::Result<()>,
    fine: impl Fn(&Error) -> bool,
) -> Outcome {
    lab.stream.synchronize()?;
    let verdict = match &result {
        Err(error) => ensure(fine(error), || format!("found {error:?}")),
        Ok(()) => Err("it was accepted".into()),
    };
    let kept = [("A", &case.a), ("B", &case.b), ("C", &case.c)];
    let verdict = kept.into_iter().fold(verdict, |verdict, (name, operand)| verdict.and(operand.unchanged(name)));
    lab.record(|| format!("refusal of {what}, {}", dtype_name::<T>()), verdict)
}

/// Whether it is a shape error of this operand and rule.
fn shape(operand: Name, rule: Rule) -> impl Fn(&Error) -> bool {
    move |error| matches!(error, Error::Shape(e) if e.operand == operand && e.rule == rule)
}

fn sizes<T: Real>(lab: &Lab) -> Outcome {
    let mut case = case::<T>(lab)?;
    let one = T::one();
    type Cut = (usize, usize, usize);
    // Rows of B, rows and columns of C that are left out: one wrong, then two, of which the first counts.
    let cuts: [(&str, Cut, Name, Rule); 6] = [
        ("B's rows", (1, 0, 0), Name::B, Rule::Rows),
        ("C's rows", (0, 1, 0), Name::C, Rule::Rows),
        ("C's columns", (0, 0, 1), Name::C, Rule::Cols),
        ("B's rows and C's rows", (1, 1, 0), Name::B, Rule::Rows),
        ("B's rows and C's columns", (1, 0, 1), Name::B, Rule::Rows),
        ("C's rows and columns", (0, 1, 1), Name::C, Rule::Rows),
    ];
    for (what, (b_rows, c_rows, c_cols), operand, rule) in cuts {
        let a = case.a.view(lab)?;
        let b = case.b.view(lab)?.rows(b_rows..)?;
        let c = case.c.view_mut(lab)?.rows(c_rows..)?.cols(c_cols..)?;
        let result = gemm(&lab.stream, one, a, b, one, c);
        refused(lab, &case, what, result, shape(operand, rule))?;
    }
    Ok(())
}

/// A view of C's size over memory of another operand, `skip` elements behind its first.
fn over<T: Real>(lab: &Lab, operand: &Operand<T>, skip: isize) -> host::Result<MatMut<'static, T>> {
    let address = operand.address().wrapping_add_signed((skip * size_of::<T>() as isize) as i64);
    let ld = operand.strides().1;
    // SAFETY: inside the operand's memory and guards; the product that it is made for must refuse it.
    unsafe { MatMut::from_raw(&lab.device, address, SIZE.0, SIZE.1, 1, ld) }
}

fn overlaps<T: Real>(lab: &Lab) -> Outcome {
    let case = case::<T>(lab)?;
    let (m, n, k) = SIZE;
    let one = T::one();
    let last = |operand: &Operand<T>, rows: usize, cols: usize| (operand.strides().1 * (cols - 1) + rows - 1) as isize;
    let c_span = |operand: &Operand<T>| (operand.strides().1 * (n - 1) + m) as isize;
    let places = [
        ("C on A", Name::A, 0),
        ("C on A's last element", Name::A, last(&case.a, m, k)),
        ("C's last element on A", Name::A, 1 - c_span(&case.a)),
        // Rows m .. of the leading dimension are free of elements: the ranges overlap, the elements do not.
        ("C between A's columns", Name::A, m as isize),
        ("C on B", Name::B, 0),
        ("C on B's last element", Name::B, last(&case.b, k, n)),
        ("C's last element on B", Name::B, 1 - c_span(&case.b)),
    ];
    for (what, name, skip) in places {
        let c = over(lab, if name == Name::A { &case.a } else { &case.b }, skip)?;
        let result = gemm(&lab.stream, one, case.a.view(lab)?, case.b.view(lab)?, one, c);
        refused(lab, &case, what, result, shape(name, Rule::Overlap))?;
    }
    Ok(())
}

fn places<T: Real>(lab: &Lab) -> Outcome {
    if !lab.device.is_cuda() {
        lab.skip("refusals of host operands", "the CPU's operands are the host's");
        return Ok(());
    }
    let mut case = case::<T>(lab)?;
    let (m, n, k) = SIZE;
    let (a, b, mut c) = (Matrix::<T>::zeros(m, k)?, Matrix::<T>::zeros(k, n)?, Matrix::<T>::zeros(m, n)?);
    let one = T::one();
    let is = |name: Name| move |error: &Error| matches!(error, Error::WrongDevice { operand, .. } if *operand == name);
    let result = gemm(&lab.stream, one, a.view(), case.b.view(lab)?, one, case.c.view_mut(lab)?);
    refused(lab, &case, "A on the host", result, is(Name::A))?;
    let result = gemm(&lab.stream, one, case.a.view(lab)?, b.view(), one, case.c.view_mut(lab)?);
    refused(lab, &case, "B on the host", result, is(Name::B))?;
    let result = gemm(&lab.stream, one, case.a.view(lab)?, case.b.view(lab)?, one, c.view_mut());
    refused(lab, &case, "C on the host", result, is(Name::C))?;
    // A wrong place comes before a wrong size.
    let result = gemm(&lab.stream, one, case.a.view(lab)?, b.view().rows(1..)?, one, case.c.view_mut(lab)?);
    refused(lab, &case, "B on the host and too short", result, is(Name::B))
}

/// Operands that are not those of the plan; plans that cannot be.
fn plans<T: Real>(lab: &Lab) -> Outcome {
    let mut case = case::<T>(lab)?;
    let one = T::one();
    let plan = case.plan(lab, None)?;
    let a = case.a.view(lab)?;
    let result = plan.run(&lab.stream, one, a.rows(1..)?, case.b.view(lab)?, one, case.c.view_mut(lab)?);
    refused(lab, &case, "a plan's A too short", result, shape(Name::A, Rule::Rows))?;
    let b = case.b.view(lab)?;
    let result = plan.run(&lab.stream, one, case.a.view(lab)?, b.cols(1..)?, one, case.c.view_mut(lab)?);
    refused(lab, &case, "a plan's B too narrow", result, shape(Name::B, Rule::Cols))?;
    let c = case.c.view_mut(lab)?.rows(1..)?;
    let result = plan.run(&lab.stream, one, case.a.view(lab)?, case.b.view(lab)?, one, c);
    refused(lab, &case, "a plan's C too short", result, shape(Name::C, Rule::Rows))?;
    let (address, ld) = (case.a.address(), case.a.strides().1 - 1);
    // SAFETY: shorter than A in its memory.
    let narrow = unsafe { MatRef::from_raw(&lab.device, address, SIZE.0, SIZE.2, 1, ld) }?;
    let result = plan.run(&lab.stream, one, narrow, case.b.view(lab)?, one, case.c.view_mut(lab)?);
    refused(lab, &case, "a plan's A with other strides", result, shape(Name::A, Rule::Strides))?;

    let (a, b, c) = (case.a.view(lab)?.shape(), case.b.view(lab)?.shape(), case.c.view_mut(lab)?.shape());
    let build = |a: Shape, variant: Option<&str>| {
        let builder = Plan::gemm(&lab.device, a, b, c);
        variant.into_iter().fold(builder, |builder, name| builder.variant(name)).build().map(drop)
    };
    let other = if T::DTYPE == Dtype::F32 { Dtype::F64 } else { Dtype::F32 };
    let result = build(Shape::with_strides(a.rows, a.cols, a.strides, other), None);
    refused(lab, &case, "a plan of two element types", result, shape(Name::A, Rule::Dtype))?;
    let unknown = |error: &Error| matches!(error, Error::UnknownVariant { known, .. } if !known.is_empty());
    refused(lab, &case, "an unknown variant", build(a, Some("tsm2r_none")), unknown)?;
    let foreign = model::VARIANTS.iter().find(|v| v.dtype == other).map(|v| v.entry);
    let unsupported = |error: &Error| matches!(error, Error::Unsupported { .. });
    refused(lab, &case, "an entry of another element type", build(a, foreign), unsupported)
}

/// Views that cannot be: written elements that share an address, spans beyond 63 bits; and the last column's padding.
fn strides<T: Real>(lab: &Lab) -> Outcome {
    let case = case::<T>(lab)?;
    let (address, far) = (case.c.address(), usize::MAX / 8 + 1);
    for (row, col, rule) in [(1, 0, Rule::Strides), (0, 9, Rule::Strides), (1, 8, Rule::Strides), (1, far, Rule::Span)]
    {
        // SAFETY: refused, or never used.
        let result = unsafe { MatMut::<T>::from_raw(&lab.device, address, 9, 4, row, col) }.map(drop);
        refused(lab, &case, &format!("C with strides {row} and {col}"), result, shape(Name::View, rule))?;
        // SAFETY: refused, or never used.
        let result = unsafe { MatRef::<T>::from_raw(&lab.device, address, 9, 4, row, col) }.map(drop);
        let fine = match rule {
            Rule::Span => result.is_err(),
            _ => result.is_ok(),
        };
        let verdict = ensure(fine, || format!("{result:?}"));
        lab.record(|| format!("a read view with strides {row} and {col}, {}", dtype_name::<T>()), verdict)?;
    }
    let data = vec![T::zero(); 11 * 3 + 9];
    let exact = MatRef::with_strides(&data, 9, 4, 1, 11).map(drop);
    lab.record(|| "a buffer of exactly the span".into(), exact.map_err(Into::into))?;
    let short = MatRef::with_strides(&data[1..], 9, 4, 1, 11).map(drop);
    refused(lab, &case, "a buffer one element short", short, shape(Name::View, Rule::Span))
}

/// A and B may share memory: A Aᵀ has the bits of A times a copy.
fn itself<T: Real>(lab: &Lab) -> Outcome {
    let (m, k) = (70, 131);
    let mut case = Spec::plain((m, m, k)).make::<T>(
        lab,
        |i, l| crate::real::unit(1, i, l),
        |l, j| crate::real::unit(1, j, l),
        |_, _| 0.0,
    )?;
    // The copy is laid out as the transposed view is.
    let row_major = Storage { row_major: true, ..Storage::default() };
    let copy = Operand::new(lab, k, m, row_major, |l, j| T::of(crate::real::unit(1, j, l)))?;
    let mut run = |shared: bool| -> Outcome<Vec<T>> {
        case.c.reset()?;
        let a = case.a.view(lab)?;
        let b = if shared { a.t() } else { copy.view(lab)? };
        gemm(&lab.stream, T::one(), a, b, T::zero(), case.c.view_mut(lab)?)?;
        lab.stream.synchronize()?;
        case.c.result("C")
    };
    let (shared, apart) = (run(true)?, run(false)?);
    bitwise(&shared, &apart, m)
}
