//! Element alignment is enough: bases 0 to 16 elements beside an aligned address and leading dimensions 0 to 4 beyond
//! the line, of A, B and C apart, with m mod 8 from 0 to 7, give the bits of the aligned product.

use crate::case::{Case, Spec};
use crate::compare::bitwise;
use crate::entries::{Entry, is_reduced, of_vectors, reduced};
use crate::lab::{Lab, Outcome, named};
use crate::operand::Storage;
use crate::real::{Real, unit};
use host::Plan;
use model::Kernel;

/// m, n, k.
type Size = (usize, usize, usize);

/// Both element types.
pub fn run(lab: &Lab) -> Outcome {
    sweep::<f32>(lab)?;
    sweep::<f64>(lab)
}

fn make<T: Real>(lab: &Lab, size: Size, storage: [Storage; 3]) -> Outcome<Case<T>> {
    let spec = Spec { storage, beta: 0.5, ..Spec::plain(size) };
    spec.make(lab, |i, l| unit(1, i, l), |l, j| unit(2, l, j), |i, j| unit(3, i, j))
}

/// With A and B by rows or by columns, the sizes with such a remainder, and who is tried with them: entries of two tall matrices and of
/// vectors in every layout, with enough steps for several rounds; those for squares in every layout, with lines of whole 16 bytes; the others
/// where both lie alike.
fn asked<T: Real>(lab: &Lab, [a_by_rows, b_by_rows]: [bool; 2], remainder: usize) -> Vec<(Size, Vec<Entry>)> {
    let plain = (a_by_rows == b_by_rows).then(|| ((128 + remainder, 5, 35), lab.entries::<T>()));
    let steps = 1028 + remainder;
    let every_way = [(Kernel::Tsmttsm, (5 + remainder, 5, steps)), (Kernel::GemmRing, (128 + remainder, 8, 36))];
    let every_way = every_way.map(|(kernel, size)| (size, reduced(T::DTYPE, kernel))).into_iter();
    let every_way = every_way.chain(of_vectors(T::DTYPE, (128 + remainder, steps))).filter(|_| lab.device.is_cuda());
    plain.into_iter().chain(every_way).collect()
}

fn sweep<T: Real>(lab: &Lab) -> Outcome {
    for (by_rows, remainder) in (0..4).flat_map(|order| (0..8).map(move |r| ([order & 1 > 0, order & 2 > 0], r))) {
        let aligned = |row_major| Storage::new(row_major, 0, 0);
        let aligned = [aligned(by_rows[0]), aligned(by_rows[1]), aligned(by_rows[0])];
        for (size, entries) in asked::<T>(lab, by_rows, remainder) {
            let references = aligned_bits::<T>(lab, size, aligned, entries)?;
            for index in (0..3 * 17 * 5).filter(|index| index % 8 == remainder) {
                let (operand, offset, pad) = (index % 3, index / 3 % 17, index / 51);
                let mut storage = aligned;
                storage[operand] = Storage { pad, offset, ..aligned[operand] };
                one_storage(lab, size, storage, &references)?;
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

fn aligned_bits<T: Real>(
    lab: &Lab,
    size: Size,
    storage: [Storage; 3],
    entries: Vec<Entry>,
) -> Outcome<Vec<Reference<T>>> {
    let mut case = make::<T>(lab, size, storage)?;
    let mut references = Vec::new();
    for entry in entries.into_iter().filter(|entry| case.spec.suits(*entry)).collect::<Vec<_>>() {
        let plan = case.plan(lab, entry)?;
        // The model may choose another entry for operands that lie elsewhere: the promise is of one plan.
        let taken = entry.or(plan.choice().map(|choice| choice.variant.entry));
        references.push((taken, splits(&plan), case.run(lab, &plan)?));
    }
    Ok(references)
}

/// A plan of the moved operands; of entries for vectors and for two tall matrices, whose leading dimensions the model weighs, in as
/// many parts.
fn plan_in_parts<T: Real>(lab: &Lab, case: &Case<T>, entry: Entry, parts: u32) -> Outcome<Plan> {
    let plan = case.plan(lab, entry)?;
    let (Some(entry), true) = (entry, is_reduced(entry)) else { return Ok(plan) };
    Ok(case.builder(lab)?.variant(entry).parts(parts).build()?)
}

fn one_storage<T: Real>(lab: &Lab, size: Size, storage: [Storage; 3], references: &[Reference<T>]) -> Outcome {
    let mut case = make::<T>(lab, size, storage)?;
    for (entry, parts, bits) in references {
        let result = plan_in_parts(lab, &case, *entry, *parts).and_then(|plan| {
            if splits(&plan) != *parts {
                return Err(format!("k in {} parts, aligned in {parts}", splits(&plan)).into());
            }
            bitwise(&case.run(lab, &plan)?, bits, size.0)
        });
        lab.record(|| format!("alignment {} {}", named(*entry), case.spec.name::<T>()), result)?;
    }
    Ok(())
}
