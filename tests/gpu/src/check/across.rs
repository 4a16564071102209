//! Plans for all GPUs: the entry and the parts of k are those of every GPU, and the results those of that entry in those parts.
//! All bits are told as one number, so that two GPUs can be compared; those of small products are [`BITS_OF_FEW`] everywhere, also on
//! the emulator.

use super::task::{Task, What};
use crate::compare::{bitwise, equal_parts};
use crate::lab::{Lab, Outcome, dtype_name, ensure};
use crate::real::{Element, integer, unit};
use host::{Complex, Determinism, Matrix, Plan};
use model::choose_across;

type Case = (What, (usize, usize, usize));

/// Of every family that is chosen for all GPUs: skinny, few rows, tall times small, two tall matrices, a vector, squares, a
/// Gram matrix.
const CASES: [Case; 11] = [
    (What::Product, (4099, 8, 4099)),
    (What::Product, (33, 9, 16411)),
    (What::Product, (100_003, 5, 7)),
    (What::Product, (13, 7, 100_003)),
    (What::Product, (4099, 1, 513)),
    (What::Product, (300, 290, 310)),
    (What::Product, (1, 1, 70_001)),
    (What::Vector, (5003, 1, 3001)),
    (What::Vector, (7, 1, 100_003)),
    (What::Gram, (7, 7, 100_003)),
    (What::Gram, (48, 48, 20_011)),
];
/// The same of small ones, which the emulator computes too.
const FEW: [Case; 7] = [
    (What::Product, (37, 3, 1031)),
    (What::Product, (259, 5, 7)),
    (What::Product, (3, 5, 2053)),
    (What::Product, (35, 33, 37)),
    (What::Vector, (131, 1, 257)),
    (What::Vector, (7, 1, 2053)),
    (What::Gram, (5, 5, 2053)),
];
/// Their bits, of all element types: the emulator's, which computes as IEEE 754 has it, and so every GPU's.
const BITS_OF_FEW: u64 = 0xa047_9049_15b1_830c;
const RUNS: usize = 20;

/// The hash of Fowler, Noll and Vo.
struct Hash(u64);

impl Hash {
    fn add<T: Element>(&mut self, values: &[T]) {
        let bytes = values.iter().flat_map(|value| value.bits().to_le_bytes());
        self.0 = bytes.fold(self.0, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    }
}

/// All element types; the larger ones on a GPU alone.
pub fn run(lab: &Lab) -> Outcome {
    let few = bits(lab, &FEW)?;
    lab.note(&format!(
        "across: all bits of small products as one number, on all GPUs and emulated the same: {few:016x}"
    ));
    if lab.device.is_cuda() {
        let is_known = ensure(few == BITS_OF_FEW, || format!("{few:016x}, not {BITS_OF_FEW:016x}"));
        lab.record(|| "across, all bits of small products".into(), is_known)?;
    }
    if !lab.is_emulated() {
        let all = bits(lab, &CASES)?;
        lab.note(&format!("across: all bits as one number, of all GPUs the same: {all:016x}"));
    }
    Ok(())
}

/// The bits of all results as one number.
fn bits(lab: &Lab, cases: &[Case]) -> Outcome<u64> {
    let mut hash = Hash(0xcbf2_9ce4_8422_2325);
    sweep::<f32>(lab, cases, &mut hash)?;
    sweep::<f64>(lab, cases, &mut hash)?;
    sweep::<Complex<f32>>(lab, cases, &mut hash)?;
    sweep::<Complex<f64>>(lab, cases, &mut hash)?;
    Ok(hash.0)
}

fn sweep<T: Element>(lab: &Lab, cases: &[Case], hash: &mut Hash) -> Outcome {
    for (index, (what, size)) in cases.iter().copied().enumerate() {
        for by_rows in [false, true] {
            let factors = [0.5, [0.0, 1.0][index % 2]];
            let by_rows = [by_rows, by_rows && what == What::Gram];
            let result = alike::<T>(lab, (what, size), by_rows, factors, hash);
            let dtype = dtype_name::<T>();
            lab.record(|| format!("across {what:?} {dtype} {size:?} by rows {by_rows:?} {factors:?}"), result)?;
        }
    }
    Ok(())
}

/// Its C, from which each run starts.
struct Results<'l, T> {
    lab: &'l Lab,
    task: Task<T>,
    factors: [f64; 2],
    old: Matrix<T>,
}

impl<T: Element> Results<'_, T> {
    fn of(&self, plan: &Plan) -> Outcome<Vec<T>> {
        let (device, stream) = (&self.lab.device, &self.lab.stream);
        let mut c = device.upload(stream, self.old.view())?;
        self.task.run(stream, plan, self.factors, c.view_mut())?;
        Ok(c.download(stream)?.into_vec().ok_or("the copy is not on the host")?)
    }

    /// For all GPUs, or for this one by an entry in so many parts.
    fn plan(&self, given: Option<(&str, u32)>) -> host::Result<Plan> {
        let builder = self.task.builder(self.lab);
        match given {
            None => builder.determinism(Determinism::AcrossGpus).build(),
            Some((entry, parts)) => builder.variant(entry).parts(parts).build(),
        }
    }
}

fn alike<T: Element>(lab: &Lab, (what, size): Case, by_rows: [bool; 2], factors: [f64; 2], hash: &mut Hash) -> Outcome {
    // C is NaN where nobody is to read it.
    let nan = if factors[1] == 0.0 { f64::NAN } else { 0.0 };
    let results = |part: fn(u64, usize, usize) -> f64| -> Outcome<Results<'_, T>> {
        let old = Matrix::from_fn(size.0, size.1, |i, j| T::of_two(nan + part(3, i, j), nan + part(13, i, j)))?;
        Ok(Results { lab, task: Task::<T>::new(lab, what, size, by_rows, part)?, factors, old })
    };
    let integers = results(|seed, i, j| integer(seed, i, j, 3))?;
    let plan = integers.plan(None)?;
    let found = integers.of(&plan)?;
    let old = |i, j| integers.old.get(i, j).map_or([f64::NAN; 2], T::two);
    equal_parts(&found, &integers.task.exact(factors, old), size.0)?;
    hash.add(&found);
    let random = results(unit)?;
    let first = random.of(&plan)?;
    let runs = if lab.is_emulated() { 1 } else { RUNS };
    (1..runs).try_for_each(|_| bitwise(&random.of(&plan)?, &first, size.0))?;
    hash.add(&first);
    let Some(choice) = plan.choice() else { return Ok(()) };
    let problem = if choice.swapped { choice.problem.transposed() } else { choice.problem };
    for (name, machine) in model::machine::TABLE.iter().filter(|(_, machine)| machine.compute_capability >= (8, 0)) {
        let there = choose_across(&problem, machine, None, None)?;
        let (here, there) = ((choice.variant.entry, choice.splits), (there.variant.entry, there.splits));
        ensure(here == there, || format!("{here:?}, on {name} {there:?}"))?;
    }
    // The same sums in the same order, asked for by name, in a plan of this GPU; a small one has fewer parts.
    let given = random.plan(Some((choice.variant.entry, choice.splits)))?;
    if given.choice().is_some_and(|given| given.splits == choice.splits) {
        return bitwise(&random.of(&given)?, &first, size.0);
    }
    let is_small = lab.device.machine().is_some_and(|here| here.sms < model::Machine::COMMON.sms);
    ensure(is_small, || format!("{given} has other parts than {}", choice.splits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bit_counts() {
        let hash = |values: &[f32]| {
            let mut hash = Hash(0xcbf2_9ce4_8422_2325);
            hash.add(values);
            hash.0
        };
        assert_eq!(hash(&[]), 0xcbf2_9ce4_8422_2325);
        assert_ne!(hash(&[0.0]), hash(&[-0.0]));
        assert_ne!(hash(&[1.0, 2.0]), hash(&[2.0, 1.0]));
        assert_ne!(hash(&[1.0]), hash(&[f32::from_bits(1.0_f32.to_bits() ^ 1)]));
    }
}
