//! CUDA graphs: a warm plan may be recorded and replayed, over whatever its buffers then hold; a cold one is refused
//! without harm to the recording, and so are lists of matrices.

mod kinds;

use super::repeat::cancelling;
use super::splits::cut;
use super::tsmttsm::Gram;
use super::{batched, complex};
use crate::case::{Case, Spec};
use crate::compare::{bitwise, equal};
use crate::driver::{Driver, Graph, Recording};
use crate::entries::{self, Entry};
use crate::lab::{Fault, Lab, Outcome, dtype_name, ensure, named};
use crate::oracle::exact;
use crate::real::{Element, Real, integer, unit};
use host::{Complex, Error, Plan, Scalar, Triangle};
use kinds::Recorded;

const REPLAYS: usize = 100;
/// m, n, k.
pub const SIZE: (usize, usize, usize) = (70, 5, 4099);
/// Of what is tried beside it where each step takes time.
const SMALL: (usize, usize, usize) = (70, 3, 1031);
/// Of a Gram matrix.
pub const SQUARE: (usize, usize, usize) = (5, 5, 8209);

/// All element types.
pub fn run(lab: &Lab) -> Outcome {
    let Some(raw) = lab.stream.as_raw() else {
        lab.skip("capture", "the CPU has no graphs");
        return Ok(());
    };
    let driver = match Driver::open(raw) {
        Ok(driver) => driver,
        Err(why) => {
            lab.skip("capture", &why.to_string());
            return Ok(());
        }
    };
    every::<f32>(lab, &driver)?;
    every::<f64>(lab, &driver)?;
    every_complex::<f32>(lab, &driver)?;
    every_complex::<f64>(lab, &driver)?;
    grams::<f32>(lab, &driver)?;
    grams::<f64>(lab, &driver)?;
    complex_grams::<f32>(lab, &driver)?;
    complex_grams::<f64>(lab, &driver)?;
    batches::<f32>(lab, &driver)?;
    batches::<f64>(lab, &driver)?;
    batches::<Complex<f32>>(lab, &driver)?;
    batches::<Complex<f64>>(lab, &driver)?;
    rounding::<f32>(lab, &driver)?;
    rounding::<f64>(lab, &driver)
}

/// Of two tall matrices: some entries take many steps at once.
pub fn tall(is_emulated: bool) -> (usize, usize, usize) {
    if is_emulated { (3, 2, 16_411) } else { (8, 5, 40_009) }
}

fn size(lab: &Lab) -> (usize, usize, usize) {
    if lab.is_emulated() { SMALL } else { SIZE }
}

fn every<T: Real>(lab: &Lab, driver: &Driver) -> Outcome {
    let spec = Spec { beta: 0.5, ..Spec::plain(SIZE) };
    // Cold first: afterwards the kernels are loaded, and only the workspace would be missing.
    let refused = cold(lab, driver, &mut spec.integers::<T>(lab)?);
    lab.record(|| format!("capture of a cold plan, {}", dtype_name::<T>()), refused)?;
    for group in lab.groups_of_all::<T>(spec) {
        let (spec, entries) = entries::with_tall(group, T::DTYPE, tall(lab.is_emulated()));
        let mut case = spec.integers::<T>(lab)?;
        for entry in some(lab, entries) {
            let plan = cut(entry, || case.builder(lab));
            warm_twice(lab, driver, &mut case, (entry, &plan), &spec.name::<T>())?;
        }
    }
    Ok(())
}

fn every_complex<R: Real>(lab: &Lab, driver: &Driver) -> Outcome
where
    Complex<R>: Scalar<Real = R>,
{
    let (dtype, spec) = (Complex::<R>::DTYPE, complex::plain(size(lab)));
    for group in spec.plain().groups_of_all(dtype, lab.device.is_cuda()) {
        let (plain, entries) = entries::with_tall(group, dtype, tall(lab.is_emulated()));
        let spec = complex::Spec { size: plain.size, storage: plain.storage, ..spec };
        let mut product = complex::of_integers::<R>(lab, spec)?;
        for entry in some(lab, entries) {
            let plan = cut(entry, || product.builder(lab));
            warm_twice(lab, driver, &mut product, (entry, &plan), &spec.name::<R>())?;
        }
    }
    Ok(())
}

/// Gram matrices, whose last blocks take tickets, which must be as they were before the next replay.
fn grams<T: Real>(lab: &Lab, driver: &Driver) -> Outcome {
    let (_, n, k) = SQUARE;
    for (n, entries) in entries::grams(T::DTYPE, lab.device.is_cuda(), n) {
        for (row_major, triangle) in [(false, Triangle::Full), (true, Triangle::Lower)] {
            let mut spec = Spec { alpha: -1.0, beta: 0.5, ..Spec::plain((n, n, k)) };
            spec.storage[1].row_major = row_major;
            let mut gram = Gram::<T>::new(lab, spec, triangle, |l, j| integer(2, l, j, 3))?;
            for entry in some(lab, entries.clone()) {
                let plan = cut(entry, || gram.builder(lab));
                warm_twice(lab, driver, &mut gram, (entry, &plan), &spec.name::<T>())?;
            }
        }
    }
    Ok(())
}

/// The same of complex elements: Hermitian, of which the last blocks mirror conjugates, and symmetric.
fn complex_grams<R: Real>(lab: &Lab, driver: &Driver) -> Outcome
where
    Complex<R>: Scalar<Real = R>,
{
    let (dtype, (_, n, k)) = (Complex::<R>::DTYPE, SQUARE);
    for (n, entries) in entries::grams(dtype, lab.device.is_cuda(), n) {
        for (no_conj, triangle) in [(false, Triangle::Full), (true, Triangle::Upper)] {
            let mut spec = complex::Spec { conj: [false, no_conj], ..complex::plain((n, n, k)) };
            spec.storage[1].row_major = no_conj;
            let part = |l, j, im| integer(2 + 10 * im, l, j, 3);
            let mut gram = complex::Gram::<R>::new(lab, spec, triangle, part)?;
            for entry in some(lab, entries.clone()) {
                let plan = cut(entry, || gram.builder(lab));
                warm_twice(lab, driver, &mut gram, (entry, &plan), &spec.name::<R>())?;
            }
        }
    }
    Ok(())
}

/// Every entry, and every 50th of the emulator's.
fn some<E>(lab: &Lab, entries: Vec<E>) -> impl Iterator<Item = E> {
    entries.into_iter().enumerate().filter(|(index, _)| lab.takes(*index, 50)).map(|(_, entry)| entry)
}

/// Warm on the stream itself, and on whichever comes first.
fn warm_twice<W: Recorded>(
    lab: &Lab,
    driver: &Driver,
    what: &mut W,
    (entry, plan): (Entry, &Outcome<Plan>),
    name: &str,
) -> Outcome {
    for for_stream in [true, false] {
        let result = plan.as_ref().map_err(|error| Fault::from(error.to_string())).and_then(|plan| {
            if for_stream {
                plan.warm_up_on(&lab.stream)?
            } else {
                plan.warm_up()?
            }
            let replays = if entry.is_some() || lab.is_emulated() { 3 } else { REPLAYS };
            replayed(lab, driver, what, Some(plan), replays)
        });
        lab.record(|| format!("capture {} {} {name}", W::KIND, named(entry)), result)?;
    }
    Ok(())
}

fn recorded<'d>(lab: &Lab, driver: &'d Driver, what: &mut impl Recorded, plan: Option<&Plan>) -> Outcome<Graph<'d>> {
    lab.stream.synchronize()?;
    let recording = Recording::begin(driver)?;
    let enqueued = what.enqueue(lab, plan);
    let graph = recording.end();
    enqueued?;
    graph
}

/// Records and replays it, with other integers in the same memory now and then.
pub fn replayed(lab: &Lab, driver: &Driver, what: &mut impl Recorded, plan: Option<&Plan>, replays: usize) -> Outcome {
    let graph = recorded(lab, driver, what, plan)?;
    for replay in 0..replays {
        if replay % 20 == 0 {
            what.renew(replay as u64)?;
        }
        what.clear()?;
        graph.launch()?;
        lab.stream.synchronize()?;
        if replay % 20 < 2 {
            what.look().map_err(|fault| format!("replay {replay}: {fault}"))?;
        }
    }
    Ok(())
}

fn cold<T: Real>(lab: &Lab, driver: &Driver, case: &mut Case<T>) -> Outcome {
    let (warm, cold) = (case.plan(lab, None)?, case.plan(lab, None)?);
    ensure(cold.choice().is_some_and(|choice| choice.splits > 1), || "k is not split".into())?;
    warm.warm_up_on(&lab.stream)?;
    let recording = Recording::begin(driver)?;
    let refused = case.enqueue(lab, Some(&cold));
    let enqueued = case.enqueue(lab, Some(&warm));
    let graph = recording.end();
    ensure(matches!(refused, Err(Error::ColdPlanInCapture { .. })), || format!("found {refused:?}"))?;
    enqueued?;
    let graph = graph?;
    case.c.reset()?;
    graph.launch()?;
    lab.stream.synchronize()?;
    equal(&case.c.result("C")?, &exact(case), SIZE.0)
}

/// Batches at equal distances, once their kernel is loaded; and lists, which would have to be sent, beside them.
fn batches<T: Element>(lab: &Lab, driver: &Driver) -> Outcome {
    for size in [(3, 5, 4), (8, 8, 8), (13, 9, 11)] {
        let name = format!("{size:?} {}", dtype_name::<T>());
        let [mut strided, mut listed] = batched::recordable::<T>(lab, size)?;
        let replays = if lab.is_emulated() { 3 } else { REPLAYS };
        // Outside both are computed, and so the kernel is loaded.
        let warm = strided.enqueue(lab, None).and_then(|()| listed.enqueue(lab, None)).map_err(Into::into);
        let result = warm.and_then(|()| replayed(lab, driver, &mut strided, None, replays));
        lab.record(|| format!("capture of a batch, {name}"), result)?;
        let result = lists(lab, driver, &mut strided, &mut listed);
        lab.record(|| format!("capture of lists, {name}"), result)?;
    }
    Ok(())
}

/// A list is refused, also where the stream has had one as long; what is recorded around it is whole, and lists go on.
fn lists(lab: &Lab, driver: &Driver, strided: &mut impl Recorded, listed: &mut impl Recorded) -> Outcome {
    lab.stream.synchronize()?;
    let recording = Recording::begin(driver)?;
    let refused = listed.enqueue(lab, None);
    let enqueued = strided.enqueue(lab, None);
    let graph = recording.end();
    ensure(matches!(refused, Err(Error::ColdPlanInCapture { .. })), || format!("found {refused:?}"))?;
    enqueued?;
    let graph = graph?;
    strided.clear()?;
    graph.launch()?;
    lab.stream.synchronize()?;
    strided.look()?;
    listed.clear()?;
    listed.enqueue(lab, None)?;
    lab.stream.synchronize()?;
    listed.look()
}

/// Sums that cancel, of which every change of order shows: the bits in a graph are those outside.
fn rounding<T: Real>(lab: &Lab, driver: &Driver) -> Outcome {
    let spec = Spec { beta: 0.5, ..Spec::plain(size(lab)) };
    let mut case = cancelling::<T>(lab, spec)?;
    let plan = case.plan(lab, None)?;
    let outside = case.run(lab, &plan)?;
    let result = same_bits(lab, driver, &mut case, &plan, &outside);
    lab.record(|| format!("capture, bits of {}", spec.name::<T>()), result)?;
    let square = Spec::plain(SQUARE);
    let mut gram = Gram::<T>::new(lab, square, Triangle::Full, |l, j| unit(2, l, j))?;
    let plan = gram.plan(lab, None)?;
    let outside = gram.run(lab, &plan)?;
    let result = same_bits(lab, driver, &mut gram, &plan, &outside);
    lab.record(|| format!("capture, bits of a Gram matrix {}", square.name::<T>()), result)
}

fn same_bits<W: Recorded>(lab: &Lab, driver: &Driver, what: &mut W, plan: &Plan, outside: &[W::Element]) -> Outcome {
    ensure(plan.choice().is_some_and(|choice| choice.splits > 1), || "k is not split".into())?;
    plan.warm_up_on(&lab.stream)?;
    let graph = recorded(lab, driver, what, Some(plan))?;
    for replay in 0..lab.times(REPLAYS) {
        what.clear()?;
        graph.launch()?;
        lab.stream.synchronize()?;
        bitwise(&what.found()?, outside, 1).map_err(|fault| format!("replay {replay}: {fault}"))?;
    }
    Ok(())
}
