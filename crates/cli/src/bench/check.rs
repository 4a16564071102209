//! Whether a product is right: sampled elements against sums of products that keep what rounding loses.

use lanky::{Scalar, Stream};
use rayon::prelude::*;

use super::contest::Run;
use super::data::Data;
use crate::error::Fault;
use crate::made_up::{Dot, gamma, wide};

/// Rows and columns that are looked at, at most.
const ROWS: usize = 32;
const COLS: usize = 32;
/// The turn whose part is looked at: the second, so that a part that is never reached does not go unseen.
const TURN: u64 = 1;

/// What sampled elements of C must be.
pub struct Oracle {
    places: Vec<(usize, usize)>,
    values: Vec<f64>,
    /// How far a right result may be from the value.
    bounds: Vec<f64>,
}

impl Oracle {
    /// Computed from the elements' formula, not from what the device holds.
    pub fn new<T: Scalar>(data: &Data<'_, T>) -> Self {
        let p = data.problem;
        let count = |length: u64| usize::try_from(length).unwrap_or(usize::MAX);
        let (rows, cols) = (spread(count(p.m), ROWS), spread(count(p.n), COLS));
        let places: Vec<(usize, usize)> = rows.iter().flat_map(|&i| cols.iter().map(move |&j| (i, j))).collect();
        let line = |operand, strides, i: Option<usize>, j: Option<usize>| -> Vec<f64> {
            let element = |l| {
                let (i, j) = (i.map_or(l, wide), j.map_or(l, wide));
                data.element(operand, TURN, strides, i, j)
            };
            (0..p.k).map(element).collect()
        };
        let a: Vec<Vec<f64>> = rows.par_iter().map(|&i| line(0, p.a, Some(i), None)).collect();
        let b: Vec<Vec<f64>> = cols.par_iter().map(|&j| line(1, p.b, None, Some(j))).collect();
        let (product, scaling) = (gamma::<T>(count(p.k).saturating_add(2)), gamma::<T>(2));
        let element = |place: usize| {
            let mut dot = Dot::default();
            for (&x, &y) in a[place / cols.len()].iter().zip(&b[place % cols.len()]) {
                dot.add(x, y);
            }
            let mut bound = product * dot.magnitude();
            if data.beta != 0.0 {
                let (i, j) = places[place];
                let old = data.element(2, TURN, p.c, wide(i), wide(j));
                dot.add(data.beta, old);
                bound += scaling * (data.beta * old).abs();
            }
            (dot.value(), bound)
        };
        let (values, bounds) = (0..places.len()).into_par_iter().map(element).unzip();
        Self { places, values, bounds }
    }

    /// Whether the elements are right; if not, which is not.
    ///
    /// # Errors
    /// The first wrong element, in words.
    fn compare<T: Scalar>(&self, found: &[T]) -> Result<(), String> {
        for (((&(i, j), &value), &bound), &found) in self.places.iter().zip(&self.values).zip(&self.bounds).zip(found) {
            let error = (found.to_f64().unwrap_or(f64::NAN) - value).abs();
            // Not `error > bound`, which is false of a NaN.
            let right = error <= bound;
            if !right {
                return Err(format!("element ({i}, {j}) is {found}, not {value:e} (within {bound:.1e})"));
            }
        }
        Ok(())
    }

    /// Poisons C, runs once, and compares.
    ///
    /// # Errors
    /// The outer one is the program's; the inner one says what is wrong with the product or why there is none.
    pub fn check<T: Scalar>(
        &self,
        stream: &Stream,
        data: &mut Data<'_, T>,
        run: &mut dyn Run,
    ) -> Result<Result<(), String>, Fault> {
        data.spoil(stream)?;
        let at = data.addresses(TURN);
        // SAFETY: the addresses are of the case's data, which this function borrows until the work is done.
        if let Err(error) = unsafe { run.enqueue(at) } {
            stream.synchronize()?;
            return Ok(Err(error.to_string()));
        }
        stream.synchronize()?;
        let found = data.fetch(stream, TURN, &self.places)?;
        Ok(self.compare(&found))
    }
}

/// At most `most` indices below `length`, among them the first and the last; off any grid of tiles.
fn spread(length: usize, most: usize) -> Vec<usize> {
    let count = most.min(length);
    let step = length / count.max(1);
    (0..count)
        .map(|place| match place {
            0 => 0,
            _ if place + 1 == count => length - 1,
            _ => step * place + place * 7 % step.max(1),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::data::{Parts, Pool};
    use super::*;
    use crate::made_up::MadeUp;
    use lanky::Device;
    use model::{Dtype, Problem, Strides};

    #[test]
    fn spreads_are_distinct_and_include_both_ends() {
        for length in [1, 2, 31, 32, 33, 63, 64, 100, 20480] {
            let spread = spread(length, 32);
            assert!(spread.windows(2).all(|pair| pair[0] < pair[1]), "{length}: {spread:?}");
            assert_eq!((spread[0], spread[spread.len() - 1], spread.len()), (0, length - 1, length.min(32)));
        }
    }

    #[test]
    fn what_is_wrong_or_not_a_number_is_found() -> Result<(), Fault> {
        let stream = Device::cpu().stream()?;
        let problem = Problem { b: Strides::row_major(9), ..Problem::column_major(Dtype::F64, 70, 5, 40) };
        let parts = Parts::new(&problem, 1 << 16, false).expect("it fits");
        let [len_a, len_b, _] = parts.lengths().expect("it fits");
        let a = Pool::<f64>::new(&stream, MadeUp { seed: 1 << 60 }, len_a)?;
        let b = Pool::new(&stream, MadeUp { seed: 2 << 60 }, len_b)?;
        for beta in [0.0, 0.5] {
            let data = Data::new(&stream, problem, beta, parts, [&a, &b], MadeUp { seed: 3 << 60 })?;
            let oracle = Oracle::new(&data);
            let right = |&(i, j): &(usize, usize)| {
                let (i, j) = (wide(i), wide(j));
                let term = |l| data.element(0, 1, problem.a, i, l) * data.element(1, 1, problem.b, l, j);
                (0..40).map(term).sum::<f64>() + beta * data.element(2, 1, problem.c, i, j)
            };
            let right: Vec<f64> = oracle.places.iter().map(right).collect();
            assert_eq!(oracle.compare(&right), Ok(()));
            for wrong in [f64::NAN, f64::INFINITY, right[7] * (1.0 + 1e-9)] {
                let mut found = right.clone();
                found[7] = wrong;
                assert!(oracle.compare(&found).is_err(), "{wrong} for {}", right[7]);
            }
        }
        Ok(())
    }
}
