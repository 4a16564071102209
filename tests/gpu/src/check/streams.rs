//! One plan on several streams at once, each thread with its own C, other products beside them: the bits of one run alone.

mod crowd;
mod lists;

use super::splits::{PARTS, cut};
use super::task::{Task, What};
use crate::case::Spec;
use crate::compare::bitwise;
use crate::entries::{Entry, grams, with_tall};
use crate::lab::{Fault, Lab, Outcome, dtype_name, ensure, named};
use crate::real::{Element, unit};
use host::{Complex, Device, Plan};
use model::launch::reduced::Finish;
use std::thread::ScopedJoinHandle;

const THREADS: usize = 4;
const RUNS: usize = 50;
/// C ← A B.
const PLAIN: [f64; 2] = [1.0, 0.0];
/// Of which the entries are named, in parts of k: of a ring and of two tall matrices last blocks add the slots, of the other another launch.
const RING: &str = "tsm2r_staged";
const PREFETCH: &str = "tsm2r_prefetch";
const TWO_TALL: &str = "tsmttsm_tiled";

/// m, n and k: of a product whose slots last blocks or another launch add, of two tall matrices, and of a Gram matrix.
#[derive(Clone, Copy)]
pub struct Sizes {
    pub product: (usize, usize, usize),
    pub tall: (usize, usize, usize),
    pub square: (usize, usize, usize),
}

pub const LARGE: Sizes = Sizes { product: (150, 6, 8209), tall: (8, 6, 40_009), square: (6, 6, 8209) };
/// Where each step takes time.
const SMALL: Sizes = Sizes { product: (70, 3, 1031), tall: (5, 3, 8209), square: (5, 5, 8209) };

fn sizes(lab: &Lab) -> Sizes {
    if lab.is_emulated() { SMALL } else { LARGE }
}

/// All element types, two of them where the GPU is emulated; and batches whose lists streams keep.
pub fn run(lab: &Lab) -> Outcome {
    if !lab.is_emulated() {
        sweep::<f32>(lab)?;
        sweep::<Complex<f64>>(lab)?;
    }
    sweep::<f64>(lab)?;
    sweep::<Complex<f32>>(lab)?;
    lists::run(lab)
}

/// Every entry: those of products and of vectors as they want A, and those of Gram matrices.
fn sweep<T: Element>(lab: &Lab) -> Outcome {
    let is_cuda = lab.device.is_cuda();
    for group in Spec::plain(sizes(lab).product).groups_of_all(T::DTYPE, is_cuda) {
        let (spec, entries) = with_tall(group, T::DTYPE, sizes(lab).tall);
        let by_rows = [spec.storage[0].row_major, spec.storage[1].row_major];
        let tasks = both::<T>(lab, What::Product, spec.size, by_rows)?;
        each(lab, &tasks, entries, &spec.name::<T>())?;
    }
    let (_, n, k) = sizes(lab).square;
    for (n, entries) in grams(T::DTYPE, is_cuda, n) {
        for by_rows in [false, true] {
            let tasks = both::<T>(lab, What::Gram, (n, n, k), [by_rows; 2])?;
            let name = format!("of a Gram matrix, {} n={n} by rows {by_rows}", dtype_name::<T>());
            each(lab, &tasks, entries.clone(), &name)?;
        }
    }
    Ok(())
}

fn each<T: Element>(lab: &Lab, tasks: &[Task<T>; 2], entries: Vec<Entry>, name: &str) -> Outcome {
    for (_, entry) in entries.into_iter().enumerate().filter(|(index, _)| lab.takes(*index, 50)) {
        // Without a workspace nothing of it would be looked at.
        let result = cut(entry, || Ok(tasks[0].builder(lab))).and_then(|plan| at_once(lab, tasks, &plan));
        lab.record(|| format!("streams {} {name}", named(entry)), result)?;
    }
    Ok(())
}

/// Two that one plan computes, with other numbers: those of one in the other's workspace would be seen.
fn both<T: Element>(lab: &Lab, what: What, size: (usize, usize, usize), by_rows: [bool; 2]) -> Outcome<[Task<T>; 2]> {
    let of = |more: u64| Task::new(lab, what, size, by_rows, move |seed, i, j| unit(seed + more, i, j));
    Ok([of(0)?, of(100)?])
}

impl<T: Element> Task<T> {
    /// C after `runs` runs on a stream of its own, all of them enqueued before the last is waited for; every fifth is
    /// fetched and compared.
    fn runs(&self, device: &Device, plan: &Plan, runs: usize, expected: Option<&[T]>) -> Outcome<Vec<T>> {
        let stream = device.stream()?;
        plan.warm_up_on(&stream)?;
        let mut c = device.zeros::<T>(self.size.0, self.size.1)?;
        let mut found = Vec::new();
        for run in 0..runs {
            self.run(&stream, plan, PLAIN, c.view_mut())?;
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
    fn hog(&self, device: &Device, runs: usize) -> Outcome {
        let stream = device.stream()?;
        let mut c = device.zeros::<T>(self.size.0, self.size.1)?;
        for _ in 0..runs {
            self.run_planless(&stream, c.view_mut())?;
        }
        Ok(stream.synchronize()?)
    }
}

/// Waits for all, so that none is left running; the first failure.
fn join(threads: Vec<ScopedJoinHandle<'_, Outcome>>) -> Outcome {
    let end =
        |thread: ScopedJoinHandle<'_, Outcome>| thread.join().unwrap_or_else(|_| Err(Fault::from("a thread panicked")));
    threads.into_iter().map(end).collect::<Vec<_>>().into_iter().collect()
}

fn at_once<T: Element>(lab: &Lab, tasks: &[Task<T>; 2], plan: &Plan) -> Outcome {
    let (device, runs) = (&lab.device, lab.times(RUNS));
    let expected = [tasks[0].runs(device, plan, 1, None)?, tasks[1].runs(device, plan, 1, None)?];
    let expected = &expected;
    std::thread::scope(|scope| {
        let run = |thread: usize| tasks[thread % 2].runs(device, plan, runs, Some(&expected[thread % 2])).map(drop);
        let mut threads: Vec<_> = (0..lab.times(THREADS)).map(|thread| scope.spawn(move || run(thread))).collect();
        threads.push(scope.spawn(|| tasks[0].hog(device, runs)));
        join(threads)
    })
}

/// A plan with its operands, whatever their type is.
trait Job {
    fn name(&self) -> &str;
    /// Eight threads with 200 runs each, whose runs go to eight streams in turn, so that threads meet on each.
    fn in_turn(&self, lab: &Lab) -> Outcome;
    /// Adds the bits of C, several times.
    fn bits(&self, lab: &Lab, found: &mut Vec<u128>) -> Outcome;
}

struct Planned<T> {
    name: String,
    tasks: [Task<T>; 2],
    plan: Plan,
}

impl<T: Element> Job for Planned<T> {
    fn name(&self) -> &str {
        &self.name
    }

    fn in_turn(&self, lab: &Lab) -> Outcome {
        let (many, runs) = (lab.times(8), lab.times(200));
        let (device, Planned { tasks, plan, .. }) = (&lab.device, self);
        let expected = [tasks[0].runs(device, plan, 1, None)?, tasks[1].runs(device, plan, 1, None)?];
        let streams = (0..many).map(|_| device.stream()).collect::<host::Result<Vec<_>>>()?;
        let (streams, expected) = (&streams, &expected);
        let work = move |thread: usize| -> Outcome {
            let (task, expected) = (&tasks[thread % 2], &expected[thread % 2]);
            let rows = task.size.0;
            let mut c = device.zeros::<T>(rows, task.size.1)?;
            for run in 0..runs {
                let stream = &streams[(thread + run) % many];
                task.run(stream, plan, PLAIN, c.view_mut())?;
                let found = c.download(stream)?.into_vec().ok_or("the copy is not on the host")?;
                bitwise(&found, expected, rows).map_err(|fault| format!("thread {thread}, run {run}: {fault}"))?;
                task.spoil(stream, c.view_mut())?;
                stream.synchronize()?;
            }
            Ok(())
        };
        std::thread::scope(|scope| join((0..many).map(|thread| scope.spawn(move || work(thread))).collect()))
    }

    fn bits(&self, lab: &Lab, found: &mut Vec<u128>) -> Outcome {
        let (times, runs) = if lab.is_emulated() { (1, 1) } else { (10, 5) };
        for _ in 0..times {
            let result = self.tasks[0].runs(&lab.device, &self.plan, runs, None)?;
            found.extend(result.iter().map(|value| value.bits()));
        }
        Ok(())
    }
}

/// A plan whose k is cut, by a variant or as it is chosen, and finished in one of these ways.
fn job<T: Element>(
    lab: &Lab,
    (what, variant): (What, Option<&str>),
    size: (usize, usize, usize),
    by_rows: [bool; 2],
    finishes: &[Finish],
) -> Outcome<Box<dyn Job>> {
    let tasks = both::<T>(lab, what, size, by_rows)?;
    let builder = tasks[0].builder(lab);
    let plan = match variant {
        Some(variant) if lab.device.is_cuda() => builder.variant(variant).parts(PARTS).build(),
        _ => builder.build(),
    }?;
    let entry = plan.entry().unwrap_or("the CPU");
    let name = format!("{what:?} {} of {size:?} by rows {by_rows:?}, {entry}", dtype_name::<T>());
    let is_so = plan.choice().is_none_or(|choice| choice.splits > 1 && finishes.contains(&choice.finish));
    ensure(is_so, || format!("{name}: it is not finished by {finishes:?}"))?;
    Ok(Box::new(Planned { name, tasks, plan }))
}

/// Plans whose workspace has slots, which another launch or last blocks add; the latter's has tickets too.
fn jobs(lab: &Lab) -> Outcome<Vec<Box<dyn Job>>> {
    let Sizes { product, tall, square } = sizes(lab);
    let (columns, rows) = ([false; 2], [true, false]);
    let (chosen, gram) = ((What::Product, None), (What::Gram, None));
    let [ring, prefetch, two_tall] = [RING, PREFETCH, TWO_TALL].map(|variant| (What::Product, Some(variant)));
    // What is chosen is a ring, whose blocks join, or not.
    let (any, adds, ticket) =
        (&[Finish::LastBlock, Finish::SecondLaunch], &[Finish::SecondLaunch], &[Finish::LastBlock]);
    Ok(vec![
        job::<f32>(lab, chosen, product, columns, any)?,
        job::<f32>(lab, chosen, product, rows, any)?,
        job::<f64>(lab, chosen, product, columns, any)?,
        job::<f64>(lab, chosen, product, rows, any)?,
        job::<Complex<f64>>(lab, chosen, product, columns, any)?,
        job::<f32>(lab, ring, product, columns, ticket)?,
        job::<f64>(lab, ring, product, rows, ticket)?,
        job::<f32>(lab, prefetch, product, columns, adds)?,
        job::<f64>(lab, prefetch, product, rows, adds)?,
        job::<f32>(lab, two_tall, tall, columns, ticket)?,
        job::<f64>(lab, two_tall, tall, [false, true], ticket)?,
        job::<f32>(lab, gram, square, columns, ticket)?,
        job::<f64>(lab, gram, square, [true; 2], ticket)?,
        job::<Complex<f64>>(lab, gram, square, [true; 2], ticket)?,
    ])
}

/// Threads that meet on streams: every result is looked at.
pub fn run_many(lab: &Lab) -> Outcome {
    for job in jobs(lab)? {
        let result = job.in_turn(lab);
        lab.record(|| format!("threads {}", job.name()), result)?;
    }
    crowd::run(lab)
}

/// The bits of all those products, several times each.
pub fn bits(lab: &Lab) -> Outcome<Vec<u128>> {
    let mut found = Vec::new();
    jobs(lab)?.iter().try_for_each(|job| job.bits(lab, &mut found))?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Dtype, Machine, Parts, Problem, Refusal, Strides, choose, choose_given};

    #[test]
    fn workspaces_have_slots_and_tickets_on_a_large_gpu() -> Result<(), Refusal> {
        let of = |dtype, (m, n, k): (usize, usize, usize)| Problem::column_major(dtype, m as u64, n as u64, k as u64);
        for (dtype, Sizes { product, tall, square }) in
            [Dtype::F32, Dtype::F64, Dtype::C128].into_iter().flat_map(|dtype| [(dtype, SMALL), (dtype, LARGE)])
        {
            let p = of(dtype, product);
            for p in [p, Problem { a: Strides::row_major(p.k), ..p }] {
                let choice = choose(&p, &Machine::H200, None)?;
                assert!(choice.splits > 1 && choice.finish != Finish::Direct, "{choice}");
                let choice = choose_given(&p, &Machine::H200, RING, Parts::Exactly(PARTS))?;
                assert_eq!((choice.splits, choice.finish), (PARTS, Finish::LastBlock), "{choice}");
                let choice = choose_given(&p, &Machine::H200, PREFETCH, Parts::Exactly(PARTS))?;
                assert_eq!((choice.splits, choice.finish), (PARTS, Finish::SecondLaunch), "{choice}");
            }
            let choice = choose_given(&of(dtype, tall), &Machine::H200, TWO_TALL, Parts::Exactly(PARTS))?;
            assert_eq!((choice.splits, choice.finish), (PARTS, Finish::LastBlock), "{choice}");
            let (n, k) = (square.1 as u64, square.2 as u64);
            for b in [Strides::column_major(k), Strides::row_major(n)] {
                let choice = choose(&Problem::gram(dtype, n, k, b), &Machine::H200, None)?;
                assert!(choice.splits > 1 && choice.finish == Finish::LastBlock, "{choice}");
            }
        }
        Ok(())
    }
}
