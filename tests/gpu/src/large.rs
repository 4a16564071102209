//! Offsets beyond 31 and 32 bits: f32 matrices of 2^32 + 2^20 elements, tall, long, with large leading dimensions, and a
//! result of that size; of f64 two tall ones, which are the same, their Gram matrix, and products with a vector.
//!
//! A = u vᵀ for [`u`] and [`v`] made from their positions, so that C = u (vᵀ B) is known at any size: an element taken from a wrong
//! place shows. All are integers in -2..=2, and every sum stays below 2^24, in f64 below 2^53: results are exact.

use crate::check::tsmttsm;
use crate::entries::{Entry, reduced, refused, serves, takes};
use crate::lab::{Lab, Outcome, ensure, named};
use crate::real::{Real, integer, u, v};
use host::{Layout, MatMut, MatRef, Matrix, Plan, gemm};
use model::{Dtype, Kernel, VARIANTS};
use rayon::prelude::*;
use std::ops::Range;
use std::time::Instant;

/// Elements that one task makes.
const TASK: usize = 1 << 16;
/// Rows that are looked at in one place.
const PIECE: usize = 256;

fn b(l: usize, j: usize) -> f32 {
    integer(7, l, j, 2) as f32
}

/// What is multiplied in memory: lines of A, the first `used` elements of each in use.
#[derive(Clone, Copy)]
struct Stored {
    /// Elements a line: the leading dimension.
    ld: usize,
    lines: usize,
    used: usize,
    /// Whether a line is a row of A.
    row_major: bool,
}

impl Stored {
    /// A on the device; what is not in use is NaN.
    fn upload<T: Real>(self, lab: &Lab) -> Outcome<Matrix<T>> {
        let mut done = 0;
        let mut fill = |piece: &mut [T]| {
            piece.par_chunks_mut(TASK).enumerate().for_each(|(task, part)| self.fill(done + task * TASK, part));
            done += piece.len();
            Ok(())
        };
        let matrix = lab.device.upload_with(&lab.stream, self.ld, self.lines, Layout::ColumnMajor, &mut fill)?;
        lab.stream.synchronize()?;
        Ok(matrix)
    }

    /// The elements of memory from `start` on.
    fn fill<T: Real>(self, start: usize, part: &mut [T]) {
        let (mut line, mut at) = (start / self.ld, start % self.ld);
        for value in part {
            let (i, l) = if self.row_major { (line, at) } else { (at, line) };
            *value = if at < self.used { u::<T>(i) * v::<T>(l) } else { T::canary() };
            at += 1;
            if at == self.ld {
                (line, at) = (line + 1, 0);
            }
        }
    }

    /// A in its memory.
    fn view<T: Real>(self, matrix: &Matrix<T>) -> host::Result<MatRef<'_, T>> {
        let lines = matrix.view().rows(..self.used)?;
        Ok(if self.row_major { lines.t() } else { lines })
    }
}

/// All of them; `log2` is 32 but for a trial on a smaller device.
pub fn run(lab: &Lab, log2: u32) -> Outcome {
    ensure((16..=34).contains(&log2), || format!("2^{log2} elements are too few or too many"))?;
    let (all, more) = (1_usize << log2, 1_usize << (log2 - 12));
    let rows = 1 << log2.saturating_sub(20).max(6);
    let start = Instant::now();
    // Minutes, of which each tells that something happens.
    let done = |what: &str| eprintln!("{what}: {:.1} s", start.elapsed().as_secs_f64());
    for row_major in [false, true] {
        let name = |what: &str| format!("{what}, {}-major", if row_major { "row" } else { "column" });
        products(lab, &name("tall"), (all + more) / 64, 64, 4, row_major)?;
        done(&name("tall"));
        products(lab, &name("long"), rows, (all + more) / rows, 5, row_major)?;
        done(&name("long"));
        leading_dimension(lab, &name("leading dimension"), all / 2 + 1, more + 1, row_major)?;
        done(&name("leading dimension"));
    }
    products(lab, "large result", (all + more) / 2, 2, 2, false)?;
    done("large result");
    for (width, row_major) in [(17, true), (48, true), (8, false)] {
        two_tall(lab, (all + more) / width, width, row_major)?;
        done(&format!("two tall matrices of {width} columns"));
    }
    Ok(())
}

/// Whether the device has so many bytes free; says so if not.
fn fits<T>(lab: &Lab, name: &str, elements: usize) -> Outcome<bool> {
    let (wanted, free) = ((elements * size_of::<T>()) as u64, lab.device.memory()?.0);
    let fits = wanted + wanted / 16 < free;
    if !fits {
        lab.skip(&format!("large {name}"), &format!("{wanted} bytes are needed, {free} are free"));
    }
    Ok(fits)
}

/// A packed A of m x k.
fn products(lab: &Lab, name: &str, m: usize, k: usize, n: usize, row_major: bool) -> Outcome {
    if !fits::<f32>(lab, name, m * k + k * n + m * n)? {
        return Ok(());
    }
    let (ld, lines) = if row_major { (k, m) } else { (m, k) };
    let stored = Stored { ld, lines, used: ld, row_major };
    let a = stored.upload(lab)?;
    let mut c = lab.device.zeros::<f32>(m, n)?;
    by_every_entry(lab, name, stored.view(&a)?, c.view_mut())
}

/// Three lines far apart, of A and of C.
fn leading_dimension(lab: &Lab, name: &str, ld: usize, used: usize, row_major: bool) -> Outcome {
    if !fits::<f32>(lab, name, 2 * 3 * ld)? {
        return Ok(());
    }
    let stored = Stored { ld, lines: 3, used, row_major };
    let a = stored.upload(lab)?;
    let mut c = lab.device.zeros::<f32>(ld, 3)?;
    let a = stored.view(&a)?;
    // The first elements of C's three lines: its columns, or its rows where A has three rows.
    let in_use = if row_major { 7 } else { used };
    let lines = c.view_mut().rows(..in_use)?;
    by_every_entry(lab, name, a, if row_major { lines.t() } else { lines })?;
    let beyond = c.view().rows(in_use..in_use + PIECE.min(ld - in_use))?;
    let gaps = lab.device.download(&lab.stream, beyond)?.into_vec().unwrap_or_default();
    let kept = !gaps.is_empty() && gaps.iter().all(|value| value.to_bits() == 0);
    lab.record(|| format!("large {name}: gaps"), ensure(kept, || "what lies between C's lines was written".into()))
}

/// C = A B by the model's choice and every entry.
fn by_every_entry(lab: &Lab, name: &str, a: MatRef<'_, f32>, mut c: MatMut<'_, f32>) -> Outcome {
    let (m, n, k) = (a.nrows(), c.ncols(), a.ncols());
    let host_b = Matrix::from_fn(k, n, b)?;
    let there = lab.device.upload(&lab.stream, host_b.view())?;
    let weights: Vec<f32> = (0..n).map(|j| (0..k).map(|l| v::<f32>(l) * b(l, j)).sum()).collect();
    let ranges = places(m, a.shape().strides);
    let strides = |strides: model::Strides| (strides.row as usize, strides.col as usize);
    let (of_a, of_b) = (strides(a.shape().strides), strides(there.shape().strides));
    for entry in lab.entries::<f32>() {
        let result = if serves(entry, (m, n, k)) && takes(entry, (m, n, k), of_a, of_b) {
            one(lab, entry, a, there.view(), c.reborrow(), &ranges, &weights)
        } else {
            refused(entry, plan(lab, entry, a, there.view(), c.as_ref()))
        };
        lab.record(|| format!("large {name} {} m={m} n={n} k={k}", named(entry)), result)?;
    }
    // The chosen one's product is looked at as a whole.
    let all: Vec<Range<usize>> = (0..m).step_by(1 << 22).map(|start| start..m.min(start + (1 << 22))).collect();
    let result = one(lab, None, a, there.view(), c.reborrow(), &all, &weights);
    lab.record(|| format!("large {name} every row m={m} n={n} k={k}"), result)
}

fn plan<T: Real>(lab: &Lab, entry: Entry, a: MatRef<'_, T>, b: MatRef<'_, T>, c: MatRef<'_, T>) -> host::Result<Plan> {
    let builder = Plan::gemm(&lab.device, a.shape(), b.shape(), c.shape());
    entry.into_iter().fold(builder, |builder, name| builder.variant(name)).build()
}

fn one(
    lab: &Lab,
    entry: Entry,
    a: MatRef<'_, f32>,
    b: MatRef<'_, f32>,
    mut c: MatMut<'_, f32>,
    ranges: &[Range<usize>],
    weights: &[f32],
) -> Outcome {
    let plan = plan(lab, entry, a, b, c.as_ref())?;
    // C <- NaN C, so that what the last entry left there is not taken for this one's.
    gemm(&lab.stream, 0.0, a, b, f32::NAN, c.reborrow())?;
    compare(lab, c.as_ref(), ranges, |_, _| f32::NAN)?;
    plan.run(&lab.stream, 1.0, a, b, 0.0, c.reborrow())?;
    compare(lab, c.as_ref(), ranges, |i, j| u::<f32>(i) * weights[j])
}

/// Of an A of k x n in f64: AᵀA as a product and as a Gram matrix, Aᵀx and A x, by the model's choice and every entry.
fn two_tall(lab: &Lab, k: usize, n: usize, row_major: bool) -> Outcome {
    let name = format!("two tall matrices, {}-major", if row_major { "row" } else { "column" });
    if !fits::<f64>(lab, &name, k * n + 2 * k)? {
        return Ok(());
    }
    let (ld, lines) = if row_major { (n, k) } else { (k, n) };
    let stored = Stored { ld, lines, used: ld, row_major };
    let there: Matrix<f64> = stored.upload(lab)?;
    let a = stored.view(&there)?;
    let x = lab.device.upload(&lab.stream, Matrix::from_fn(k, 1, |l, _| u::<f64>(l))?.view())?;
    let y = lab.device.upload(&lab.stream, Matrix::from_fn(n, 1, |j, _| v::<f64>(j + 3))?.view())?;
    let squares: f64 = (0..k).into_par_iter().map(|l| u::<f64>(l) * u::<f64>(l)).sum();
    let weight: f64 = (0..n).map(|j| v::<f64>(j) * v::<f64>(j + 3)).sum();
    let all = |rows| std::iter::once(0..rows).collect::<Vec<Range<usize>>>();
    let fresh = |rows, cols| lab.device.upload(&lab.stream, Matrix::from_fn(rows, cols, |_, _| f64::NAN)?.view());
    let entries = |kernel| {
        let forced = reduced(Dtype::F64, kernel).into_iter().filter(|_| lab.device.is_cuda());
        let serves = |entry: &Entry| tsmttsm::serves(VARIANTS.iter().find(|v| Some(v.entry) == *entry), (n, n));
        std::iter::once(None).chain(forced.filter(serves)).collect::<Vec<Entry>>()
    };
    for entry in entries(Kernel::Tsmttsm) {
        let mut c = fresh(n, n)?;
        let plan = plan(lab, entry, a.t(), a, c.view())?;
        plan.run(&lab.stream, 1.0, a.t(), a, 0.0, c.view_mut())?;
        let result = compare(lab, c.view(), &all(n), |i, j| squares * v::<f64>(i) * v::<f64>(j));
        lab.record(|| format!("large {name} AᵀA {} k={k} n={n}", named(entry)), result)?;
    }
    for entry in entries(Kernel::Gram) {
        let mut c = fresh(n, n)?;
        let builder = Plan::gram(&lab.device, a.shape(), c.shape());
        let plan = entry.into_iter().fold(builder, |builder, name| builder.variant(name)).build()?;
        plan.run_gram(&lab.stream, 1.0, a, 0.0, c.view_mut())?;
        let result = compare(lab, c.view(), &all(n), |i, j| squares * v::<f64>(i) * v::<f64>(j));
        lab.record(|| format!("large {name} Gram {} k={k} n={n}", named(entry)), result)?;
    }
    let strides = |of: MatRef<'_, f64>| (of.shape().strides.row as usize, of.shape().strides.col as usize);
    for (a, x, transposed) in [(a.t(), x.view(), true), (a, y.view(), false)] {
        let (m, k) = (a.nrows(), a.ncols());
        // Aᵀ x = v Σ u², for x is u; A y = u Σ v y.
        let ranges = if transposed { all(m) } else { places(m, a.shape().strides) };
        let expected = |i, _| if transposed { squares * v::<f64>(i) } else { u::<f64>(i) * weight };
        let mut c = lab.device.zeros::<f64>(m, 1)?;
        for entry in entries(Kernel::Gemv).into_iter().filter(|entry| takes(*entry, (m, 1, k), strides(a), strides(x)))
        {
            gemm(&lab.stream, 0.0, a, x, f64::NAN, c.view_mut())?;
            plan(lab, entry, a, x, c.view())?.run(&lab.stream, 1.0, a, x, 0.0, c.view_mut())?;
            let result = compare(lab, c.view(), &ranges, expected);
            lab.record(|| format!("large {name} vector {} m={m} k={k}", named(entry)), result)?;
        }
    }
    Ok(())
}

/// Rows to look at: the first, the last, those whose elements of A lie around offsets of 2^31 and 2^32, and others.
fn places(m: usize, strides: model::Strides) -> Vec<Range<usize>> {
    let around = |row: usize| row.saturating_sub(PIECE / 2).min(m.saturating_sub(PIECE));
    let mut starts = vec![0, m.saturating_sub(PIECE)];
    for offset in [1_usize << 31, 1 << 32] {
        let row = match strides.row {
            1 => offset % usize::try_from(strides.col).unwrap_or(1).max(1),
            step => offset / usize::try_from(step).unwrap_or(1).max(1),
        };
        if row < m {
            starts.push(around(row));
        }
    }
    starts.extend((1..12).map(|part| around(m / 12 * part)));
    starts.into_iter().map(|start| start..m.min(start + PIECE)).collect()
}

/// Fails unless C is as expected in these rows; NaN is expected only where all is NaN.
fn compare<T: Real>(
    lab: &Lab,
    c: MatRef<'_, T>,
    ranges: &[Range<usize>],
    expected: impl Fn(usize, usize) -> T + Sync,
) -> Outcome {
    for range in ranges {
        let part = lab.device.download(&lab.stream, c.rows(range.clone())?)?;
        let view = part.view();
        let wrong = (0..view.nrows()).into_par_iter().find_first(|&i| {
            (0..view.ncols()).any(|j| {
                let (found, right): (Option<T>, T) = (view.get(i, j), expected(range.start + i, j));
                !found.is_some_and(|found| found == right || (right.is_nan() && found.is_nan()))
            })
        });
        if let Some(i) = wrong {
            let row = |of: &dyn Fn(usize) -> T| (0..view.ncols()).map(of).collect::<Vec<T>>();
            let found = row(&|j| view.get(i, j).unwrap_or(T::nan()));
            let right = row(&|j| expected(range.start + i, j));
            return Err(format!("row {}: expected {right:?}, found {found:?}", range.start + i).into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::Device;
    use model::Strides;

    #[test]
    fn lines_are_filled_in_any_pieces() {
        for row_major in [false, true] {
            let stored = Stored { ld: 7, lines: 5, used: 6, row_major };
            let mut all = [0.0_f32; 35];
            for (at, part) in all.chunks_mut(4).enumerate() {
                stored.fill(4 * at, part);
            }
            for (at, &value) in all.iter().enumerate() {
                let (line, position) = (at / 7, at % 7);
                let (i, l) = if row_major { (line, position) } else { (position, line) };
                assert!(if position < 6 { value == u::<f32>(i) * v::<f32>(l) } else { value.is_nan() }, "{at}");
            }
        }
    }

    #[test]
    fn the_rows_at_the_borders_are_looked_at() {
        let at = |m, strides, row: usize| places(m, strides).iter().any(|range| range.contains(&row));
        let m = (1 << 26) + (1 << 14);
        let tall = Strides::column_major(m as u64);
        assert!(at(m, tall, 0) && at(m, tall, m - 1) && at(m, tall, (1 << 32) % m) && at(m, tall, (1 << 31) % m));
        assert!(at(m, Strides::row_major(64), 1 << 26) && at(m, Strides::row_major(64), 1 << 25));
        assert_eq!(places(3, Strides::row_major(1 << 33)).first(), Some(&(0..3)));
    }

    #[test]
    fn a_wrong_row_is_found() -> Outcome {
        let lab = Lab::new(Device::cpu(), 8)?;
        run(&lab, 16)?;
        assert!(lab.finish());
        let c = Matrix::from_fn(5, 2, |i, j| u::<f32>(i) * j as f32 + f32::from(i == 4 && j == 1))?;
        let right = |i, j| u::<f32>(i) * j as f32;
        let (first, all) = (0..4, 0..5);
        assert!(compare(&lab, c.view(), &[first.clone(), all], right).is_err());
        assert!(compare(&lab, c.view(), std::slice::from_ref(&first), right).is_ok());
        assert!(compare(&lab, c.view(), std::slice::from_ref(&first), |_, _| f32::NAN).is_err());
        Ok(())
    }
}
