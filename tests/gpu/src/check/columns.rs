//! What must not change a bit: NaN in other columns, the order of columns and rows, powers of two as factors.

use crate::case::{Case, Spec};
use crate::compare::bitwise;
use crate::entries::{Entry, is_of_vectors};
use crate::lab::{Lab, Outcome, named};
use crate::real::{Real, unit};

const SIZE: (usize, usize, usize) = (130, 8, 1031);
/// Where each step takes time.
const SMALL: (usize, usize, usize) = (SIZE.0, SIZE.1, 67);
const COLUMNS: [usize; 4] = [0, 3, 4, 7];

/// Both element types.
pub fn run(lab: &Lab) -> Outcome {
    sweep::<f32>(lab)?;
    sweep::<f64>(lab)
}

/// The plain product, and what is done to it: element (i, l) of A and (l, j) of B.
struct Change {
    name: &'static str,
    a: fn(usize, usize) -> f64,
    b: fn(usize, usize) -> f64,
    /// The element of the plain C, and its factor, that (i, j) must be.
    expect: fn(usize, usize) -> (usize, usize, f64),
}

fn a(i: usize, l: usize) -> f64 {
    unit(1, i, l)
}

fn b(l: usize, j: usize) -> f64 {
    unit(2, l, j)
}

const CHANGES: [Change; 4] = [
    Change { name: "nothing", a, b, expect: |i, j| (i, j, 1.0) },
    Change { name: "columns reversed", a, b: |l, j| b(l, 7 - j), expect: |i, j| (i, 7 - j, 1.0) },
    Change { name: "rows rotated", a: |i, l| a((i + 37) % 130, l), b, expect: |i, j| ((i + 37) % 130, j, 1.0) },
    Change { name: "A times 32", a: |i, l| 32.0 * a(i, l), b, expect: |i, j| (i, j, 32.0) },
];

fn sweep<T: Real>(lab: &Lab) -> Outcome {
    let size = if lab.is_emulated() { SMALL } else { SIZE };
    for (spec, entries) in lab.groups_of_all::<T>(Spec::plain(size)) {
        let mut plain = spec.make::<T>(lab, a, b, |_, _| 0.0)?;
        let mut base = Vec::new();
        for (_, entry) in entries.into_iter().enumerate().filter(|(index, _)| lab.takes(*index, 5)) {
            base.push((entry, case_run(lab, &mut plain, entry)?));
        }
        changed(lab, spec, &base)?;
        alone(lab, spec, &base)?;
    }
    Ok(())
}

/// Entries, and the bits of their plain products.
type Base<T> = [(Entry, Vec<T>)];

fn changed<T: Real>(lab: &Lab, spec: Spec, base: &Base<T>) -> Outcome {
    let (m, n, _) = spec.size;
    // Of fewer rows or columns those that leave them where they are.
    let stays = |change: &Change| {
        let (i, j, _) = (change.expect)(0, 0);
        (m == SIZE.0 || i == 0) && (n == SIZE.1 || j == 0)
    };
    for change in CHANGES.into_iter().filter(stays) {
        let mut case = spec.make::<T>(lab, change.a, change.b, |_, _| 0.0)?;
        let moves_rows = (change.expect)(0, 0).0 != 0;
        // Vectors' slots of a tile of few rows are added in another order.
        for (entry, bits) in base.iter().filter(|(entry, _)| !(moves_rows && is_of_vectors(*entry))) {
            let expect = |e: usize| {
                let (i, j, factor) = (change.expect)(e % m, e / m);
                bits[i + j * m] * T::of(factor)
            };
            let expected: Vec<T> = (0..bits.len()).map(expect).collect();
            let result = (|| bitwise(&case_run(lab, &mut case, *entry)?, &expected, m))();
            lab.record(|| format!("columns {} {}, {}", named(*entry), change.name, case.spec.name::<T>()), result)?;
        }
    }
    Ok(())
}

fn case_run<T: Real>(lab: &Lab, case: &mut Case<T>, entry: Entry) -> Outcome<Vec<T>> {
    let plan = case.plan(lab, entry)?;
    case.run(lab, &plan)
}

/// One column of B, the others NaN.
fn alone<T: Real>(lab: &Lab, spec: Spec, base: &Base<T>) -> Outcome {
    let (m, n, _) = spec.size;
    for kept in COLUMNS.into_iter().filter(|kept| *kept < n) {
        let mut case = spec.make::<T>(lab, a, |l, j| if j == kept { b(l, j) } else { f64::NAN }, |_, _| 0.0)?;
        for (entry, bits) in base {
            let column = |all: &[T]| all[kept * m..][..m].to_vec();
            let result = case_run(lab, &mut case, *entry).and_then(|found| bitwise(&column(&found), &column(bits), m));
            lab.record(|| format!("columns {} column {kept} alone, {}", named(*entry), case.spec.name::<T>()), result)?;
        }
    }
    Ok(())
}
