//! This project's own batches as contestants.

use lanky::{BatchMut, BatchRef, Error, Scalar, Stream, gemm_batched, gemm_batched_by};
use model::launch::batched::Lie;
use model::{BatchedProblem, Strides, choose_batched};
use num_traits::{Float, Zero, cast};

use super::contest::Run;
use super::data::Addresses;
use super::fault;
use super::job::Job;
use super::ours::Launch;
use crate::real::Real;

/// A batch on a stream, by the model's choice or by one variant.
pub struct OursBatched<'s, T> {
    stream: &'s Stream,
    job: Job,
    alpha: T,
    beta: T,
    variant: Option<&'s str>,
    entry: &'static str,
    launch: Option<Launch>,
}

impl<'s, T: Scalar> OursBatched<'s, T> {
    /// # Errors
    /// Where no entry, or not this variant, takes the batch; a variant is a GPU's.
    pub fn new(stream: &'s Stream, job: &Job, beta: f64, variant: Option<&'s str>) -> lanky::Result<Self>
    where
        T::Real: Real,
    {
        let problem = problem(job);
        let unsupported = |what: String| Error::Unsupported { what };
        let (entry, launch) = match stream.device().machine() {
            Some(machine) => {
                let choice = choose_batched(&problem, machine, variant).map_err(|why| unsupported(why.to_string()))?;
                (choice.variant.entry, Some(Launch::of_batch(&choice)))
            }
            None if variant.is_some() => return Err(unsupported("variants are for GPUs".into())),
            None => ("cpu", None),
        };
        let alpha = if fault::planted(fault::WRONG) { T::one() + T::one() } else { T::one() };
        let beta = T::of_parts(cast(beta).unwrap_or_else(T::Real::nan), T::Real::zero());
        Ok(Self { stream, job: *job, alpha, beta, variant, entry, launch })
    }

    /// The entry that computes it; `cpu` on the CPU.
    pub fn entry(&self) -> &'static str {
        self.entry
    }

    /// How it is launched; `None` on the CPU.
    pub fn launch(&self) -> Option<Launch> {
        self.launch.clone()
    }
}

/// The job as the model sees it: its parts start at multiples of 256 bytes.
fn problem(job: &Job) -> BatchedProblem {
    let p = job.of_elements();
    let lie = |strides, stride| Lie { strides, stride, listed: false, skew: 0 };
    let [a, b, c] = job.steps;
    BatchedProblem {
        dtype: p.dtype,
        m: p.m,
        n: p.n,
        k: p.k,
        count: job.batch,
        a: lie(p.a, a),
        b: lie(p.b, b),
        c: lie(p.c, c),
        reads_c: p.reads_c,
        conj_a: p.conj_a,
        conj_b: p.conj_b,
    }
}

impl<T: Scalar> Run for OursBatched<'_, T> {
    unsafe fn enqueue(&mut self, at: Addresses) -> lanky::Result<()> {
        // They were narrowed with the data that fits into memory; a stride that is never taken may be anything.
        let length = |length: u64| usize::try_from(length).unwrap_or(1);
        let strides = |strides: Strides| (length(strides.row), length(strides.col));
        let (p, device, count) = (self.job.of_elements(), self.stream.device(), length(self.job.batch));
        let ([a, b, c], [m, n, k]) = (self.job.steps.map(length), [p.m, p.n, p.k].map(length));
        // SAFETY: the caller's promise: the case's data is at these addresses until the work is done.
        let (a, b, c) = unsafe {
            (
                BatchRef::<T>::from_raw(device, at.a, count, a, (m, k), strides(p.a))?,
                BatchRef::<T>::from_raw(device, at.b, count, b, (k, n), strides(p.b))?,
                BatchMut::<T>::from_raw(device, at.c, count, c, (m, n), strides(p.c))?,
            )
        };
        match self.variant {
            None => gemm_batched(self.stream, self.alpha, a, b, self.beta, c),
            Some(variant) => gemm_batched_by(self.stream, variant, self.alpha, a, b, self.beta, c),
        }
    }
}
