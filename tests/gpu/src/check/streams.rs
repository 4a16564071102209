//! One plan on four streams at once, each thread with its own C, another product beside them: the bits of one run alone.

use crate::case::Spec;
use crate::compare::bitwise;
use crate::lab::{Fault, Lab, Outcome, ensure, named};
use crate::real::{Real, unit};
use host::{Device, Layout, MatRef, Matrix, Plan, gemm};

const THREADS: usize = 4;
const RUNS: usize = 50;
const SIZE: (usize, usize, usize) = (150, 6, 8209);

/// Both element types.
pub fn run(lab: &Lab) -> Outcome {
    sweep::<f32>(lab)?;
    sweep::<f64>(lab)
}

struct Operands<T> {
    /// A, or Aᵀ where A is to lie by rows.
    a: Matrix<T>,
    b: Matrix<T>,
    by_rows: bool,
}

impl<T: Real> Operands<T> {
    fn new(lab: &Lab, by_rows: bool) -> Outcome<Self> {
        let (m, n, k) = SIZE;
        let upload = |host: Matrix<T>| -> Outcome<Matrix<T>> {
            let there = lab.device.upload(&lab.stream, host.view())?;
            lab.stream.synchronize()?;
            Ok(there)
        };
        let a = |i, l| T::of(unit(1, i, l));
        let a = if by_rows { Matrix::from_fn(k, m, |l, i| a(i, l)) } else { Matrix::from_fn(m, k, a) };
        let b = Matrix::from_fn(k, n, |l, j| T::of(unit(2, l, j)));
        Ok(Operands { a: upload(a?)?, b: upload(b?)?, by_rows })
    }

    fn a(&self) -> MatRef<'_, T> {
        if self.by_rows { self.a.view().t() } else { self.a.view() }
    }

    /// A plan by this entry.
    fn plan(&self, lab: &Lab, entry: Option<&str>) -> Outcome<Plan> {
        let c = host::Shape::packed(SIZE.0, SIZE.1, Layout::ColumnMajor, T::DTYPE);
        let builder = Plan::gemm(&lab.device, self.a().shape(), self.b.shape(), c);
        Ok(entry.into_iter().fold(builder, |builder, name| builder.variant(name)).build()?)
    }

    /// C after `runs` runs on a stream of its own, all of them enqueued before the last is waited for; every fifth is
    /// fetched and compared.
    fn runs(&self, device: &Device, plan: &Plan, runs: usize, expected: Option<&[T]>) -> Outcome<Vec<T>> {
        let stream = device.stream()?;
        plan.warm_up_on(&stream)?;
        let mut c = device.zeros::<T>(SIZE.0, SIZE.1)?;
        let mut found = Vec::new();
        for run in 0..runs {
            plan.run(&stream, T::one(), self.a(), self.b.view(), T::zero(), c.view_mut())?;
            if run % 5 == 0 || run + 1 == runs {
                found = c.download(&stream)?.into_vec().ok_or("the copy is not on the host")?;
                if let Some(expected) = expected {
                    bitwise(&found, expected, SIZE.0).map_err(|fault| format!("run {run}: {fault}"))?;
                }
            }
        }
        Ok(found)
    }

    /// The same product again and again without a plan: the stream's own workspace.
    fn hog(&self, device: &Device) -> Outcome {
        let stream = device.stream()?;
        let mut c = device.zeros::<T>(SIZE.0, SIZE.1)?;
        for _ in 0..RUNS {
            gemm(&stream, T::one(), self.a(), self.b.view(), T::one(), c.view_mut())?;
        }
        Ok(stream.synchronize()?)
    }
}

fn sweep<T: Real>(lab: &Lab) -> Outcome {
    for (spec, entries) in lab.groups::<T>(Spec::plain(SIZE)) {
        let operands = Operands::<T>::new(lab, spec.storage[0].row_major)?;
        for entry in entries {
            let result = operands.plan(lab, entry).and_then(|plan| at_once(lab, &operands, &plan));
            lab.record(|| format!("streams {} {}", named(entry), spec.name::<T>()), result)?;
        }
    }
    Ok(())
}

fn at_once<T: Real>(lab: &Lab, operands: &Operands<T>, plan: &Plan) -> Outcome {
    let device = &lab.device;
    let expected = operands.runs(device, plan, 1, None)?;
    let results: Vec<Outcome> = std::thread::scope(|scope| {
        let run = || operands.runs(device, plan, RUNS, Some(&expected)).map(drop);
        let mut threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(run)).collect();
        threads.push(scope.spawn(|| operands.hog(device)));
        let join = |thread: std::thread::ScopedJoinHandle<'_, Outcome>| {
            thread.join().unwrap_or_else(|_| Err(Fault::from("a thread panicked")))
        };
        threads.into_iter().map(join).collect()
    });
    ensure(results.len() == THREADS + 1, || "threads are missing".into())?;
    results.into_iter().collect()
}
