//! The entries of a tall A: they serve narrow products alone, so that most sizes of the other checks are not for them.

use crate::case::{Case, Spec};
use crate::check::capture::replayed;
use crate::compare::{bitwise, equal};
use crate::driver::Driver;
use crate::entries::{Entry, tried};
use crate::lab::{Lab, Outcome, ensure, named};
use crate::operand::Storage;
use crate::oracle::exact;
use crate::real::{Real, integer, unit};
use host::{Error, tsmm_in_place};
use model::variants::tsmm::widest;
use model::{Dtype, Layout, Variant};

const RUNS: usize = 100;
/// Rows of which every block takes several tiles, and the most steps and columns of them: widths are the affair of the edges.
const SEVERAL: usize = 400_011;
const NARROW: usize = 13;
/// Rows of the runs that are compared.
const REPEATED: usize = 20_011;

/// Both element types.
pub fn run(lab: &Lab) -> Outcome {
    sweep::<f32>(lab)?;
    sweep::<f64>(lab)
}

/// The entries of a type, each with the most columns and steps of k that it serves.
pub fn tall(dtype: Dtype) -> impl Iterator<Item = (&'static Variant, (usize, usize))> {
    let of_type = tried().filter(move |v| v.dtype == dtype);
    of_type.filter_map(|v| widest(v).map(|(columns, steps)| (v, (columns as usize, steps as usize))))
}

fn sweep<T: Real>(lab: &Lab) -> Outcome {
    if !lab.device.is_cuda() {
        lab.skip("tsmm", "the CPU has no entries");
        return Ok(());
    }
    for (row, (v, widths)) in tall(T::DTYPE).enumerate() {
        edges::<T>(lab, v, widths, row)?;
        let narrow = (widths.0.min(NARROW), widths.1.min(NARROW));
        one::<T>(lab, "several turns", v, Spec { beta: 0.5, ..Spec::plain((SEVERAL, narrow.0, narrow.1)) })?;
        let wide = Spec::plain((SEVERAL / 7, widths.0, widths.1)).turned();
        one::<T>(lab, "several turns", v, Spec { beta: -1.0, ..wide })?;
        let same = repeated::<T>(lab, v, widths);
        lab.record(|| format!("tsmm, {RUNS} runs, {}", v.entry), same)?;
    }
    graphs::<T>(lab)?;
    for (index, (n, k)) in [(1, 1), (3, 7), (16, 16), (17, 33), (48, 48), (64, 64), (1, 64)].into_iter().enumerate() {
        for (row_major, pad) in [(true, 0), (true, 3), (false, 0), (false, 1)] {
            let name = || format!("in place n={n} k={k} by rows {row_major} pad {pad}");
            lab.record(name, in_place::<T>(lab, [30_011, n, k], index as u64, row_major, pad))?;
        }
    }
    Ok(())
}

/// Where operands lie, with A by columns for an entry that takes nothing else.
pub fn taken(v: &Variant, mut storage: [Storage; 3]) -> [Storage; 3] {
    storage[0].row_major &= v.layout != Layout::Columns;
    storage
}

/// Exact, with everything around the operands watched.
fn one<T: Real>(lab: &Lab, what: &str, v: &Variant, spec: Spec) -> Outcome {
    let spec = Spec { storage: taken(v, spec.storage), ..spec };
    let mut case = spec.integers::<T>(lab)?;
    let expected = exact(&case);
    let rows = spec.size.0;
    let result = case
        .plan(lab, Some(v.entry))
        .map_err(Into::into)
        .and_then(|plan| equal(&case.run(lab, &plan)?, &expected, rows));
    lab.record(|| format!("tsmm, {what}: {} {}", v.entry, spec.name::<T>()), result)
}

/// Rows round those of a tile, widths round the widest.
pub fn sizes(v: &Variant, (columns, steps): (usize, usize)) -> impl Iterator<Item = (usize, (usize, usize, usize))> {
    let rows = v.rows as usize;
    let all =
        [rows - 1, rows, rows + 1, 3 * rows + 5, 2 * rows, 129].into_iter().enumerate().flat_map(move |(index, m)| {
            let widths = [columns, columns - 1, columns / 2 + 1, 1].into_iter().enumerate();
            widths.map(move |(at, n)| {
                let k = [steps, steps.max(2) - 1, steps / 2 + 1, 1][(index + at) % 4];
                (4 * index + at, (m, n, k))
            })
        });
    all.filter(|(_, (m, n, _))| *n > 0 && m > n)
}

/// These sizes in every layout, with gaps and offsets.
fn edges<T: Real>(lab: &Lab, v: &Variant, widths: (usize, usize), row: usize) -> Outcome {
    for (index, size) in sizes(v, widths) {
        one::<T>(lab, "edges", v, Spec::varied(size, 31 * row + index))?;
    }
    Ok(())
}

/// What compute-sanitizer gets through: two tiles and a ragged end of the widest, by every entry.
pub fn small<T: Real>(lab: &Lab) -> Outcome {
    if !lab.device.is_cuda() {
        lab.skip("tsmm", "the CPU has no entries");
        return Ok(());
    }
    for (row, (v, (n, k))) in tall(T::DTYPE).enumerate() {
        for layouts in [row, row + 3] {
            one::<T>(lab, "small", v, Spec::varied((2 * v.rows as usize + 5, n, k), layouts))?;
        }
    }
    Ok(())
}

/// Data that rounds, the same bits.
fn repeated<T: Real>(lab: &Lab, v: &Variant, (n, k): (usize, usize)) -> Outcome {
    let spec = Spec { beta: 0.5, ..Spec::plain((REPEATED, n, k)) };
    let mut case: Case<T> = spec.make(lab, |i, l| unit(1, i, l), |l, j| unit(2, l, j), |i, j| unit(3, i, j))?;
    let plan = case.plan(lab, Some(v.entry))?;
    let first = case.run(lab, &plan)?;
    for run in 1..RUNS {
        let again = case.run_unwatched(lab, &plan)?;
        bitwise(&again, &first, REPEATED).map_err(|fault| format!("run {run}: {fault}"))?;
    }
    Ok(())
}

/// One launch of a warm plan, recorded and replayed.
fn graphs<T: Real>(lab: &Lab) -> Outcome {
    let driver = match lab.stream.as_raw().map(Driver::open) {
        Some(Ok(driver)) => driver,
        Some(Err(why)) => {
            lab.skip("tsmm, graphs", &why.to_string());
            return Ok(());
        }
        None => return Ok(()),
    };
    for (v, (n, k)) in tall(T::DTYPE) {
        let entry: Entry = Some(v.entry);
        let mut case = Spec { beta: 0.5, ..Spec::plain((3001, n, k)) }.integers::<T>(lab)?;
        let result = case.plan(lab, entry).map_err(Into::into).and_then(|plan| {
            plan.warm_up_on(&lab.stream)?;
            replayed(lab, &driver, &mut case, Some(&plan), 3)
        });
        lab.record(|| format!("tsmm, graph of {}", named(entry)), result)?;
    }
    Ok(())
}

/// The first n columns of A become the product; nothing else of its memory changes.
pub fn in_place<T: Real>(lab: &Lab, [m, n, k]: [usize; 3], seed: u64, row_major: bool, pad: usize) -> Outcome {
    let mut spec = Spec::plain((m, n, k));
    spec.storage[0].row_major = row_major;
    spec.storage[0].pad = pad;
    let a = |i, l| integer(10 + seed, i, l, 3);
    let b = |l, j| integer(2, l, j, 3);
    let case: Case<T> = spec.make(lab, a, b, |_, _| 0.0)?;
    let expected = exact(&case);
    // A stands in C's place, with guards around it: m x k, of which n columns are written.
    let mut both = Spec { size: (m, k, k), ..spec };
    both.storage[2] = spec.storage[0];
    both.beta = 1.0;
    let mut both: Case<T> = both.make(lab, |_, _| 0.0, |_, _| 0.0, a)?;
    tsmm_in_place(&lab.stream, T::of(1.0), both.c.view_mut(lab)?, case.b.view(lab)?)?;
    lab.stream.synchronize()?;
    let found = both.c.result("A")?;
    equal(&found[..m * n], &expected, m)?;
    let kept = |at: usize| found[at].bits() == T::of(a(at % m, at / m)).bits();
    ensure((m * n..m * k).all(kept), || "columns of A beside the product changed".into())?;
    case.b.unchanged("B")?;
    // What would reach into other rows is refused, and nothing is written.
    let wide: Case<T> = Spec::plain((m, k + 1, k)).make(lab, a, b, |_, _| 0.0)?;
    match tsmm_in_place(&lab.stream, T::of(1.0), both.c.view_mut(lab)?, wide.b.view(lab)?) {
        Err(Error::Shape(_)) => {
            ensure(both.c.result("A")?.iter().zip(&found).all(|(a, b)| a.bits() == b.bits()), || {
                "a refused call wrote".into()
            })
        }
        other => Err(format!("expected a ShapeError, found {other:?}").into()),
    }
}
