//! One plan on four streams at once, each thread with its own C, another product beside them: the bits of one run alone.

use crate::case::Spec;
use crate::compare::bitwise;
use crate::lab::{Fault, Lab, Outcome, dtype_name, ensure, named};
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
    size: (usize, usize, usize),
    /// A, or Aᵀ where A is to lie by rows.
    a: Matrix<T>,
    b: Matrix<T>,
    by_rows: bool,
}

impl<T: Real> Operands<T> {
    fn new(lab: &Lab, size: (usize, usize, usize), by_rows: bool) -> Outcome<Self> {
        let (m, n, k) = size;
        let upload = |host: Matrix<T>| -> Outcome<Matrix<T>> {
            let there = lab.device.upload(&lab.stream, host.view())?;
            lab.stream.synchronize()?;
            Ok(there)
        };
        let a = |i, l| T::of(unit(1, i, l));
        let a = if by_rows { Matrix::from_fn(k, m, |l, i| a(i, l)) } else { Matrix::from_fn(m, k, a) };
        let b = Matrix::from_fn(k, n, |l, j| T::of(unit(2, l, j)));
        Ok(Operands { size, a: upload(a?)?, b: upload(b?)?, by_rows })
    }

    fn a(&self) -> MatRef<'_, T> {
        if self.by_rows { self.a.view().t() } else { self.a.view() }
    }

    /// A plan by this entry.
    fn plan(&self, lab: &Lab, entry: Option<&str>) -> Outcome<Plan> {
        let c = host::Shape::packed(self.size.0, self.size.1, Layout::ColumnMajor, T::DTYPE);
        let builder = Plan::gemm(&lab.device, self.a().shape(), self.b.shape(), c);
        Ok(entry.into_iter().fold(builder, |builder, name| builder.variant(name)).build()?)
    }

    /// C after `runs` runs on a stream of its own, all of them enqueued before the last is waited for; every fifth is
    /// fetched and compared.
    fn runs(&self, device: &Device, plan: &Plan, runs: usize, expected: Option<&[T]>) -> Outcome<Vec<T>> {
        let stream = device.stream()?;
        plan.warm_up_on(&stream)?;
        let mut c = device.zeros::<T>(self.size.0, self.size.1)?;
        let mut found = Vec::new();
        for run in 0..runs {
            plan.run(&stream, T::one(), self.a(), self.b.view(), T::zero(), c.view_mut())?;
            if run % 5 == 0 || run + 1 == runs {
                found = c.download(&stream)?.into_vec().ok_or("the copy is not on the host")?;
                if let Some(expected) = expected {
                    bitwise(&found, expected, self.size.0).map_err(|fault| format!("run {run}: {fault}"))?;
                }
            }
        }
        Ok(found)
    }

    /// The same product again and again without a plan: the stream's own workspace.
    fn hog(&self, device: &Device) -> Outcome {
        let stream = device.stream()?;
        let mut c = device.zeros::<T>(self.size.0, self.size.1)?;
        for _ in 0..RUNS {
            gemm(&stream, T::one(), self.a(), self.b.view(), T::one(), c.view_mut())?;
        }
        Ok(stream.synchronize()?)
    }
}

/// Eight threads with 200 runs each, whose runs go to eight streams in turn, so that threads meet on each: every result is
/// looked at.
pub fn run_many(lab: &Lab) -> Outcome {
    many::<f32>(lab)?;
    many::<f64>(lab)
}

fn many<T: Real>(lab: &Lab) -> Outcome {
    for by_rows in [false, true] {
        let operands = Operands::<T>::new(lab, SIZE, by_rows)?;
        let plan = operands.plan(lab, None)?;
        let result = in_turn(lab, &operands, &plan);
        lab.record(|| format!("threads {} by rows {by_rows}", dtype_name::<T>()), result)?;
    }
    Ok(())
}

fn in_turn<T: Real>(lab: &Lab, operands: &Operands<T>, plan: &Plan) -> Outcome {
    const MANY: usize = 8;
    const RUNS: usize = 200;
    let device = &lab.device;
    let expected = operands.runs(device, plan, 1, None)?;
    let streams = (0..MANY).map(|_| device.stream()).collect::<host::Result<Vec<_>>>()?;
    let work = |thread: usize| -> Outcome {
        let mut c = device.zeros::<T>(SIZE.0, SIZE.1)?;
        for run in 0..RUNS {
            let stream = &streams[(thread + run) % MANY];
            plan.run(stream, T::one(), operands.a(), operands.b.view(), T::zero(), c.view_mut())?;
            let found = c.download(stream)?.into_vec().ok_or("the copy is not on the host")?;
            bitwise(&found, &expected, SIZE.0).map_err(|fault| format!("thread {thread}, run {run}: {fault}"))?;
            // So that what a run leaves out is not the last one's.
            gemm(stream, T::zero(), operands.a(), operands.b.view(), T::of(f64::NAN), c.view_mut())?;
            stream.synchronize()?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..MANY).map(|thread| scope.spawn(move || work(thread))).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, Outcome>| {
            thread.join().unwrap_or_else(|_| Err(Fault::from("a thread panicked")))
        };
        // All of them, so that none is left running.
        threads.into_iter().map(join).collect::<Vec<_>>().into_iter().collect()
    })
}

/// The bits of products of both types, several times each.
pub fn bits(lab: &Lab) -> Outcome<Vec<u128>> {
    fn of<T: Real>(lab: &Lab, found: &mut Vec<u128>) -> Outcome {
        let operands = Operands::<T>::new(lab, SIZE, false)?;
        let plan = operands.plan(lab, None)?;
        let results = (0..10).map(|_| operands.runs(&lab.device, &plan, 5, None));
        results.into_iter().try_for_each(|result| {
            found.extend(result?.iter().map(|value| value.bits()));
            Ok(())
        })
    }
    let mut found = Vec::new();
    of::<f32>(lab, &mut found)?;
    of::<f64>(lab, &mut found)?;
    Ok(found)
}

fn sweep<T: Real>(lab: &Lab) -> Outcome {
    for (spec, entries) in lab.groups_of_all::<T>(Spec::plain(SIZE)) {
        let operands = Operands::<T>::new(lab, spec.size, spec.storage[0].row_major)?;
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
