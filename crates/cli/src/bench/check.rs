//! Whether a product is right: sampled elements against sums of products that keep what rounding loses.

use lanky::Stream;
use rayon::prelude::*;

use super::contest::Run;
use super::data::{Data, Place};
use super::job::Job;
use super::looked::sampled;
use crate::error::Fault;
use crate::made_up::{Dot, gamma, spread};
use crate::real::Real;

/// Rows and columns that are looked at, at most.
const ROWS: u64 = 32;
const COLS: u64 = 32;
/// And members of a batch.
const MEMBERS: u64 = 8;
/// The turn whose part is looked at: the second, so that a part that is never reached does not go unseen.
const TURN: u64 = 1;

/// What sampled elements of C must be.
pub struct Oracle {
    places: Vec<Place>,
    /// Real and imaginary parts.
    values: Vec<[f64; 2]>,
    /// How far the parts of a right result may be from the value.
    bounds: Vec<[f64; 2]>,
    reals: usize,
}

impl Oracle {
    /// Computed from the elements' formula, not from what the device holds.
    pub fn new<T: Real>(data: &Data<'_, T>) -> Self {
        let (p, reals) = (data.job.problem, data.job.reals);
        let (rows, cols) = (sampled(p.m, ROWS), sampled(p.n, COLS));
        let mut oracle = Self { places: Vec::new(), values: Vec::new(), bounds: Vec::new(), reals: count(reals) };
        let terms = count(p.k.saturating_mul(reals)).saturating_add(2);
        let (product, scaling) = (gamma::<T>(terms), gamma::<T>(2));
        for member in spread(data.job.batch, MEMBERS) {
            let sums = sums(data, member, &rows, &cols);
            let element = |place: usize| {
                let mut parts = sums[place];
                let mut bound = parts.map(|part| product * part.magnitude());
                if data.beta != 0.0 {
                    let old = data.element(2, TURN, (member, rows[place / cols.len()], cols[place % cols.len()]));
                    for ((part, bound), old) in parts.iter_mut().zip(&mut bound).zip(old) {
                        part.add(data.beta, old);
                        *bound += scaling * (data.beta * old).abs();
                    }
                }
                (parts.map(Dot::value), bound)
            };
            let (values, bounds): (Vec<_>, Vec<_>) = (0..sums.len()).map(element).unzip();
            oracle.values.extend(values);
            oracle.bounds.extend(bounds);
            oracle.places.extend(rows.iter().flat_map(|&i| cols.iter().map(move |&j| (member, i, j))));
        }
        oracle
    }

    /// Whether the elements are right; if not, which is not.
    ///
    /// # Errors
    /// The first wrong element, in words.
    fn compare<T: Real>(&self, found: &[[T; 2]]) -> Result<(), String> {
        for (((&(member, i, j), value), bound), found) in
            self.places.iter().zip(&self.values).zip(&self.bounds).zip(found)
        {
            for part in 0..self.reals {
                let (value, bound, found) = (value[part], bound[part], found[part]);
                let error = (found.to_f64().unwrap_or(f64::NAN) - value).abs();
                // Not `error > bound`, which is false of a NaN.
                let right = error <= bound;
                if !right {
                    let of = if member == 0 { String::new() } else { format!(" of member {member}") };
                    let which = if part == 0 { "" } else { "imaginary part of " };
                    return Err(format!(
                        "{which}element ({i}, {j}){of} is {found}, not {value:e} (within {bound:.1e})"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Poisons C, runs once, and compares: elements of C, and what lies between them.
    ///
    /// # Errors
    /// Those of the device, outside of the run.
    pub fn check<T: Real>(&self, stream: &Stream, data: &mut Data<'_, T>, run: &mut dyn Run) -> Result<Verdict, Fault> {
        data.spoil(stream)?;
        let at = data.addresses(TURN);
        if let Err(error) = run.ready(stream, &[at]) {
            return Ok(Verdict::Failed(error));
        }
        // SAFETY: the addresses are of the case's data, which this function borrows until the work is done.
        let given = unsafe { run.enqueue(at) };
        if let Err(error) = given.and(stream.synchronize()) {
            return Ok(Verdict::Failed(error));
        }
        let compared = data.fetch(stream, TURN, &self.places)?.and_then(|found| self.compare(&found));
        Ok(compared.map_or_else(Verdict::Wrong, |()| Verdict::Right))
    }
}

/// What a check finds.
#[derive(Debug)]
pub enum Verdict {
    Right,
    /// What is wrong with the product, in words.
    Wrong(String),
    /// There is no product.
    Failed(lanky::Error),
}

/// Steps of k whose elements are made at a time.
const PIECE: u64 = 1 << 10;
/// Parts of k that threads take, at most.
const PARTS: u64 = 64;
/// Steps of k from which on the products of a piece are summed plainly: by the worst case that is 1% of what an element of f64
/// with so many terms may be off by.
const LONG: u64 = 1 << 20;

/// Real and imaginary part of the sampled elements of A B, row by row; of real numbers the second is nothing.
fn sums<T: Real>(data: &Data<'_, T>, member: u64, rows: &[u64], cols: &[u64]) -> Vec<[Dot; 2]> {
    let steps = data.job.problem.k.div_ceil(PARTS).next_multiple_of(PIECE).max(1);
    let part = |first: u64| {
        let mut sums = vec![[Dot::default(); 2]; rows.len() * cols.len()];
        let last = data.job.problem.k.min(first + steps);
        for piece in (first..last).step_by(PIECE as usize) {
            let steps = || piece..last.min(piece + PIECE);
            let line = |operand, of: &dyn Fn(u64) -> (u64, u64)| -> [Vec<f64>; 2] {
                steps()
                    .map(of)
                    .map(|(i, j)| <(f64, f64)>::from(data.element(operand, TURN, (member, i, j))))
                    .unzip()
                    .into()
            };
            let a: Vec<_> = rows.iter().map(|&i| line(0, &|l| (i, l))).collect();
            let b: Vec<_> = cols.iter().map(|&j| line(1, &|l| (l, j))).collect();
            let pairs = a.iter().flat_map(|a| b.iter().map(move |b| (a, b)));
            sums.iter_mut().zip(pairs).for_each(|(sum, (a, b))| add(sum, a, b, data.job));
        }
        sums
    };
    let firsts: Vec<u64> = (0..data.job.problem.k).step_by(count(steps)).collect();
    let parts: Vec<_> = firsts.into_par_iter().map(part).collect();
    let mut sums = vec![[Dot::default(); 2]; rows.len() * cols.len()];
    for part in parts {
        for (sum, part) in sums.iter_mut().flatten().zip(part.into_iter().flatten()) {
            sum.join(part);
        }
    }
    sums
}

/// Adds the products of a piece, of real and of imaginary parts, to a real and an imaginary part.
fn add([real, imaginary]: &mut [Dot; 2], a: &[Vec<f64>; 2], b: &[Vec<f64>; 2], job: Job) {
    let products = |sum: &mut Dot, sign: f64, a: &[f64], b: &[f64]| {
        if job.problem.k >= LONG {
            sum.add_block(sign, a, b);
        } else {
            a.iter().zip(b).for_each(|(a, b)| sum.add(sign * a, *b));
        }
    };
    products(real, 1.0, &a[0], &b[0]);
    if job.reals == 2 {
        products(real, -1.0, &a[1], &b[1]);
        products(imaginary, 1.0, &a[0], &b[1]);
        products(imaginary, 1.0, &a[1], &b[0]);
    }
}

fn count(length: u64) -> usize {
    usize::try_from(length).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::data::{Addresses, Parts, Pool};
    use super::super::job::Job;
    use super::*;
    use crate::made_up::MadeUp;
    use lanky::Device;
    use model::{Dtype, Problem, Strides};

    /// 64 of 40960 terms, which the worst case of rounding in f32 would hide, and of so many that blocks are summed plainly.
    #[test]
    fn a_lost_stage_of_a_long_sum_is_found() -> Result<(), Fault> {
        loses_a_stage::<f32>(Job::single(Problem::column_major(Dtype::F32, 33, 3, 40960)))?;
        loses_a_stage::<f64>(Job::single(Problem::column_major(Dtype::F64, 3, 1, LONG + 77)))?;
        loses_a_stage::<f64>(Job { reals: 2, ..Job::single(Problem::column_major(Dtype::F64, 2, 1, LONG)) })
    }

    fn loses_a_stage<T: Real>(job: Job) -> Result<(), Fault> {
        let stream = Device::cpu().stream()?;
        let parts = Parts::new(&job, 1 << 16, false).expect("it fits");
        let [len_a, len_b, _] = parts.lengths().expect("it fits");
        let a = Pool::<T>::new(&stream, MadeUp { seed: 1 << 60 }, len_a)?;
        let b = Pool::new(&stream, MadeUp { seed: 2 << 60 }, len_b)?;
        let data = Data::new(&stream, job, 0.0, parts, [&a, &b], MadeUp { seed: 3 << 60 })?;
        let oracle = Oracle::new(&data);
        let product = |terms: std::ops::Range<u64>| -> Vec<[T; 2]> {
            let rounded = |x: f64| T::from(x).expect("a number");
            let sum = |&(t, i, j): &Place| {
                let terms = terms.clone().map(|l| [data.element(0, 1, (t, i, l)), data.element(1, 1, (t, l, j))]);
                terms.fold([rounded(0.0); 2], |[real, imaginary], [a, b]| {
                    let ([ar, ai], [br, bi]) = (a.map(rounded), b.map(rounded));
                    [real + ar * br - ai * bi, imaginary + ar * bi + ai * br]
                })
            };
            oracle.places.iter().map(sum).collect()
        };
        let k = job.problem.k;
        assert_eq!(oracle.compare(&product(0..k)), Ok(()));
        assert!(oracle.compare(&product(0..k - 64)).is_err());
        Ok(())
    }

    /// Multiplies as it should, and then writes one real where the test says.
    struct Vandal {
        job: Job,
        beta: f64,
        writes: Option<(usize, f64)>,
    }

    impl Run for Vandal {
        unsafe fn enqueue(&mut self, at: Addresses) -> lanky::Result<()> {
            let p = self.job.problem;
            let of = |address: u64, place: u64| (address + 8 * place) as usize as *mut f64;
            for (i, j) in (0..p.m).flat_map(|i| (0..p.n).map(move |j| (i, j))) {
                // SAFETY: `at` has the data of the case, as `enqueue`'s caller promised, and each place is one of the
                // job's.
                unsafe {
                    let term = |l| *of(at.a, self.job.place(0, 0, i, l)) * *of(at.b, self.job.place(1, 0, l, j));
                    let c = of(at.c, self.job.place(2, 0, i, j));
                    let old = if self.beta == 0.0 { 0.0 } else { self.beta * *c };
                    *c = old + (0..p.k).map(term).sum::<f64>();
                }
            }
            if let Some((place, value)) = self.writes {
                // SAFETY: the test's `place` is in a gap of C's data, which `at` has, as `enqueue`'s caller promised.
                unsafe { *of(at.c, place as u64) = value };
            }
            Ok(())
        }
    }

    /// C is 5 x 3 in lines of 8 with a gap of 3, and of 40 reals behind its last; by rows in lines of 8 with a gap of 5.
    #[test]
    fn what_is_written_between_the_elements_is_found() -> Result<(), Fault> {
        let stream = Device::cpu().stream()?;
        for (c, gaps, inside) in [
            (Strides::column_major(8), [5, 7, 13, 21, 24, 63], [4, 8, 20]),
            (Strides::row_major(8), [3, 7, 11, 35, 40, 63], [2, 8, 34]),
        ] {
            let job = Job::single(Problem { c, ..Problem::column_major(Dtype::F64, 5, 3, 4) });
            for beta in [0.0, 0.5] {
                let parts = Parts::new(&job, 1 << 12, false).expect("it fits");
                let [len_a, len_b, _] = parts.lengths().expect("it fits");
                let a = Pool::<f64>::new(&stream, MadeUp { seed: 1 << 60 }, len_a)?;
                let b = Pool::new(&stream, MadeUp { seed: 2 << 60 }, len_b)?;
                let mut data = Data::new(&stream, job, beta, parts, [&a, &b], MadeUp { seed: 3 << 60 })?;
                let oracle = Oracle::new(&data);
                // The whole of it at once, and in stretches, which are all of one so small.
                for whole_bytes in [u64::MAX, 0] {
                    data.whole_bytes = whole_bytes;
                    let mut check = |writes| oracle.check(&stream, &mut data, &mut Vandal { job, beta, writes });
                    assert!(matches!(check(None)?, Verdict::Right), "{c:?} beta {beta}");
                    for place in gaps {
                        let Verdict::Wrong(why) = check(Some((place, 0.0)))? else { panic!("{place} of {c:?}") };
                        assert!(why.starts_with(&format!("element {place} of C in memory, which is not")), "{why}");
                    }
                    for place in inside {
                        let Verdict::Wrong(why) = check(Some((place, 7.5)))? else { panic!("{place} of {c:?}") };
                        assert!(why.starts_with("element ("), "{why}");
                    }
                }
            }
        }
        Ok(())
    }

    /// Of a large C, 100 lines of 40 elements with 3960 between them and 48 behind the last, what is sampled, beside
    /// it or behind everything is looked at; what a look at everything finds besides is not.
    #[test]
    fn a_large_c_is_looked_at_where_it_is_sampled() -> Result<(), Fault> {
        let stream = Device::cpu().stream()?;
        let shapes = [(40, 100, Strides::column_major(4000)), (100, 40, Strides::row_major(4000))];
        for ((m, n, c), beta) in shapes.into_iter().flat_map(|shape| [(shape, 0.0), (shape, 0.5)]) {
            let plain = Problem::column_major(Dtype::F64, m, n, 2);
            let job = Job::single(Problem { c, ..plain });
            let parts = Parts::new(&job, 1, false).expect("it fits");
            let [len_a, len_b, _] = parts.lengths().expect("it fits");
            let a = Pool::<f64>::new(&stream, MadeUp { seed: 1 << 60 }, len_a)?;
            let b = Pool::new(&stream, MadeUp { seed: 2 << 60 }, len_b)?;
            let mut data = Data::new(&stream, job, beta, parts, [&a, &b], MadeUp { seed: 3 << 60 })?;
            let oracle = Oracle::new(&data);
            let lines = sampled(100, 32);
            let unseen = (1..99).find(|line| !lines.contains(line) && !lines.contains(&(line + 1))).expect("some");
            let beside = lines[5] * 4000;
            // Real, and whether a look at the samples alone finds it.
            let writes = [
                (0, true),
                (99 * 4000 + 39, true),
                (beside, true),
                (beside - 1, true),
                (beside - 1024, true),
                (beside + 40, true),
                (beside + 1063, true),
                (99 * 4000 + 40, true),
                (99 * 4000 + 87, true),
                (beside + 2000, false),
                (unseen * 4000 + 40, false),
            ];
            for (whole_bytes, finds_all) in [(u64::MAX, true), (1 << 10, false)] {
                data.whole_bytes = whole_bytes;
                let mut check = |writes| oracle.check(&stream, &mut data, &mut Vandal { job, beta, writes });
                assert!(matches!(check(None)?, Verdict::Right), "{c:?} beta {beta}");
                for (place, sampled) in writes {
                    let [at] = super::super::data::narrow([place])?;
                    let verdict = check(Some((at, 7.5)))?;
                    let found = matches!(verdict, Verdict::Wrong(_));
                    assert_eq!(found, sampled || finds_all, "{place} of {c:?} beta {beta}, {verdict:?}");
                }
            }
        }
        Ok(())
    }

    /// Both factors are one matrix: the check must know it.
    #[test]
    fn a_gram_matrix_is_checked_against_its_one_factor() -> Result<(), Fault> {
        let stream = Device::cpu().stream()?;
        let problem = Problem { a: Strides::row_major(30), ..Problem::column_major(Dtype::F64, 6, 6, 30) };
        let job = Job { shares_a: true, ..Job::single(problem) };
        let parts = Parts::new(&job, 1 << 12, false).expect("it fits");
        let [len_a, len_b, _] = parts.lengths().expect("it fits");
        assert_eq!(len_b, 0, "B takes no room");
        let a = Pool::<f64>::new(&stream, MadeUp { seed: 1 << 60 }, len_a)?;
        let b = Pool::new(&stream, MadeUp { seed: 2 << 60 }, 1)?;
        let mut data = Data::new(&stream, job, 0.0, parts, [&a, &b], MadeUp { seed: 3 << 60 })?;
        let oracle = Oracle::new(&data);
        let mut product = Vandal { job, beta: 0.0, writes: None };
        assert!(matches!(oracle.check(&stream, &mut data, &mut product)?, Verdict::Right));
        // The diagonal is a sum of squares.
        let [found, _] = data.fetch(&stream, 1, &[(0, 2, 2)])?.expect("nothing else was written")[0];
        assert!(found > 1.0, "{found}");
        Ok(())
    }

    #[test]
    fn what_is_wrong_or_not_a_number_is_found() -> Result<(), Fault> {
        let stream = Device::cpu().stream()?;
        let problem = Problem { b: Strides::row_major(9), ..Problem::column_major(Dtype::F64, 70, 5, 40) };
        let single = Job::single(problem);
        let complex = Job { reals: 2, batch: 3, steps: [70 * 40, 9 * 40, 70 * 5], ..single };
        for (job, beta) in [(single, 0.0), (single, 0.5), (complex, 0.0), (complex, 0.5)] {
            let parts = Parts::new(&job, 1 << 16, false).expect("it fits");
            let [len_a, len_b, _] = parts.lengths().expect("it fits");
            let a = Pool::<f64>::new(&stream, MadeUp { seed: 1 << 60 }, len_a)?;
            let b = Pool::new(&stream, MadeUp { seed: 2 << 60 }, len_b)?;
            let data = Data::new(&stream, job, beta, parts, [&a, &b], MadeUp { seed: 3 << 60 })?;
            let oracle = Oracle::new(&data);
            let right = |&(t, i, j): &Place| {
                let old = data.element(2, 1, (t, i, j));
                let mut sum = old.map(|old| beta * old);
                for l in 0..40 {
                    let (x, y) = (data.element(0, 1, (t, i, l)), data.element(1, 1, (t, l, j)));
                    sum[0] += x[0] * y[0] - x[1] * y[1];
                    sum[1] += x[0] * y[1] + x[1] * y[0];
                }
                sum
            };
            let right: Vec<[f64; 2]> = oracle.places.iter().map(right).collect();
            assert_eq!(oracle.compare(&right), Ok(()));
            let last = right.len() - 1;
            assert_eq!(oracle.places[last], (job.batch - 1, 69, 4));
            for (place, part) in [(7, 0), (last, oracle.reals - 1)] {
                for wrong in [f64::NAN, f64::INFINITY, right[place][part] * (1.0 + 1e-9)] {
                    let mut found = right.clone();
                    found[place][part] = wrong;
                    assert!(oracle.compare(&found).is_err(), "{wrong} for {:?}", right[place]);
                }
            }
        }
        Ok(())
    }
}
