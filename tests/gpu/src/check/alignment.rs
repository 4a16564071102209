//! Element alignment is enough: bases 0 to 16 elements beside an aligned address and leading dimensions 0 to 4 beyond
//! the line, of A, B and C apart, with m mod 8 from 0 to 7, give the bits of the aligned product.

use crate::case::{Case, Spec};
use crate::compare::bitwise;
use crate::entries::Entry;
use crate::lab::{Lab, Outcome, named};
use crate::operand::Storage;
use crate::real::{Real, unit};
use host::Plan;

const N: usize = 5;
const K: usize = 35;

/// Both element types.
pub fn run(lab: &Lab) -> Outcome {
    sweep::<f32>(lab)?;
    sweep::<f64>(lab)
}

fn make<T: Real>(lab: &Lab, m: usize, storage: [Storage; 3]) -> Outcome<Case<T>> {
    let spec = Spec { storage, beta: 0.5, ..Spec::plain((m, N, K)) };
    spec.make(lab, |i, l| unit(1, i, l), |l, j| unit(2, l, j), |i, j| unit(3, i, j))
}

fn sweep<T: Real>(lab: &Lab) -> Outcome {
    for row_major in [false, true] {
        let aligned = Storage { row_major, pad: 0, offset: 0 };
        for remainder in 0..8 {
            let m = 128 + remainder;
            let references = aligned_bits::<T>(lab, m, aligned)?;
            for index in (0..3 * 17 * 5).filter(|index| index % 8 == remainder) {
                let (operand, offset, pad) = (index % 3, index / 3 % 17, index / 51);
                let mut storage = [aligned; 3];
                storage[operand] = Storage { row_major, pad, offset };
                one_storage(lab, m, storage, &references)?;
            }
        }
    }
    Ok(())
}

/// An entry, its plan's number of parts, and the bits of its aligned product.
type Reference<T> = (Entry, u32, Vec<T>);

fn splits(plan: &Plan) -> u32 {
    plan.choice().map_or(1, |choice| choice.splits)
}

fn aligned_bits<T: Real>(lab: &Lab, m: usize, storage: Storage) -> Outcome<Vec<Reference<T>>> {
    let mut case = make::<T>(lab, m, [storage; 3])?;
    let mut references = Vec::new();
    for entry in lab.entries::<T>().into_iter().filter(|entry| case.spec.suits(*entry)).collect::<Vec<_>>() {
        let plan = case.plan(lab, entry)?;
        references.push((entry, splits(&plan), case.run(lab, &plan)?));
    }
    Ok(references)
}

fn one_storage<T: Real>(lab: &Lab, m: usize, storage: [Storage; 3], references: &[Reference<T>]) -> Outcome {
    let mut case = make::<T>(lab, m, storage)?;
    for (entry, parts, bits) in references {
        let result = case.plan(lab, *entry).map_err(Into::into).and_then(|plan| {
            if splits(&plan) != *parts {
                return Err(format!("k in {} parts, aligned in {parts}", splits(&plan)).into());
            }
            bitwise(&case.run(lab, &plan)?, bits, m)
        });
        lab.record(|| format!("alignment {} {}", named(*entry), case.spec.name::<T>()), result)?;
    }
    Ok(())
}
