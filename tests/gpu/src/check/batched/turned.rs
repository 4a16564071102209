//! Batches of so many problems that each block of `batched_bulk` and `batched_over` has several groups of them, one after the other in the same stages.

use super::{Case, Follow, Spec, is_refused};
use crate::entries::tried_of_batches;
use crate::lab::{Lab, Outcome, ensure, named};
use crate::operand::Storage;
use crate::real::Element;
use host::Complex;
use model::variants::batched::Batched;
use model::{BatchedProblem, Machine, choose_batched};

/// m, n, k, and problems.
const SIZES: [((usize, usize, usize), usize); 3] = [((8, 8, 8), 60_000), ((9, 13, 11), 30_000), ((16, 20, 12), 45_000)];
/// Groups a block, at least, of one of the sizes.
const TURNS: u64 = 4;

/// Groups that each block has, as an H200 is launched.
fn turns<T: Element>(spec: &Spec, entry: &str) -> u64 {
    let [m, n, k] = [spec.size.0, spec.size.1, spec.size.2].map(|size| size as u64);
    let sizes = if spec.storage[2].row_major { (n, m, k) } else { (m, n, k) };
    let p = BatchedProblem::column_major(T::DTYPE, sizes, spec.count as u64);
    let p = BatchedProblem { reads_c: spec.beta != 0.0, ..p };
    let choice = choose_batched(&p, &Machine::H200, Some(entry));
    choice.map_or(0, |choice| p.count.div_ceil(choice.problems.into()) / u64::from(choice.blocks.max(1)))
}

/// Integers of every problem, by columns and by rows, so that what a stage had before is told from what it has.
fn of<T: Element>(lab: &Lab) -> Outcome {
    let is_ours = |v: &&Batched| v.design().is_by_runs() && v.dtype == T::DTYPE && lab.device.is_cuda();
    let entries: Vec<&Batched> = tried_of_batches().filter(is_ours).collect();
    let mut most = vec![0; entries.len()];
    for ((size, count), by_rows) in SIZES.into_iter().flat_map(|size| [(size, false), (size, true)]) {
        let count = if lab.is_emulated() { 40 } else { count };
        let (storage, beta) = (Storage::new(by_rows, 0, 0), if by_rows { 1.0 } else { 0.0 });
        let spec = Spec {
            size,
            count,
            storage: [storage; 3],
            follow: [Follow::Strided; 3],
            conj: [by_rows, false],
            alpha: 0.5,
            beta,
        };
        let mut case = Case::<T>::integers(lab, spec)?;
        for (most, variant) in most.iter_mut().zip(&entries) {
            let entry = Some(variant.entry);
            let result = case.run(lab, entry).and_then(|found| case.right(&found));
            if result.as_ref().is_err_and(|fault| is_refused(entry, fault)) {
                continue;
            }
            *most = turns::<T>(&spec, variant.entry).max(*most);
            lab.record(|| format!("batched turns {} {}", named(entry), spec.name(T::DTYPE)), result)?;
        }
    }
    for (most, variant) in most.into_iter().zip(entries).filter(|_| !lab.is_emulated()) {
        let turned = ensure(most >= TURNS, || format!("its blocks have {most} groups at most"));
        lab.record(|| format!("batched turns {}", variant.entry), turned)?;
    }
    Ok(())
}

pub fn run(lab: &Lab) -> Outcome {
    of::<f32>(lab)?;
    of::<f64>(lab)?;
    of::<Complex<f32>>(lab)?;
    of::<Complex<f64>>(lab)
}
