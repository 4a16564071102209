//! Offsets beyond 31 and 32 bits: f32 matrices of 2^32 + 2^20 elements, tall, long, with large leading dimensions, and a
//! result of that size.
//!
//! A = u vᵀ for u, v made from their positions, so that C = u (vᵀ B) is known at any size: an element taken from a wrong
//! place shows. All are integers in -2..=2, and every sum stays below 2^24: results are exact.

use crate::entries::{Entry, refused, serves, takes};
use crate::lab::{Lab, Outcome, ensure, named};
use crate::real::{Element, Real, integer};
use host::{Layout, MatMut, MatRef, Matrix, Plan, gemm};
use rayon::prelude::*;
use std::ops::Range;

/// Elements that one task makes.
const TASK: usize = 1 << 16;
/// Rows that are looked at in one place.
const PIECE: usize = 256;

fn u(i: usize) -> f32 {
    f32::of(integer(5, i, 0, 2))
}

fn v(l: usize) -> f32 {
    f32::of(integer(6, l, 1, 2))
}

fn b(l: usize, j: usize) -> f32 {
    f32::of(integer(7, l, j, 2))
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
    fn upload(self, lab: &Lab) -> Outcome<Matrix<f32>> {
        let mut done = 0;
        let mut fill = |piece: &mut [f32]| {
            piece.par_chunks_mut(TASK).enumerate().for_each(|(task, part)| self.fill(done + task * TASK, part));
            done += piece.len();
            Ok(())
        };
        let matrix = lab.device.upload_with(&lab.stream, self.ld, self.lines, Layout::ColumnMajor, &mut fill)?;
        lab.stream.synchronize()?;
        Ok(matrix)
    }

    /// The elements of memory from `start` on.
    fn fill(self, start: usize, part: &mut [f32]) {
        let (mut line, mut at) = (start / self.ld, start % self.ld);
        for value in part {
            let (i, l) = if self.row_major { (line, at) } else { (at, line) };
            *value = if at < self.used { u(i) * v(l) } else { f32::canary() };
            at += 1;
            if at == self.ld {
                (line, at) = (line + 1, 0);
            }
        }
    }

    /// A in its memory.
    fn view(self, matrix: &Matrix<f32>) -> host::Result<MatRef<'_, f32>> {
        let lines = matrix.view().rows(..self.used)?;
        Ok(if self.row_major { lines.t() } else { lines })
    }
}

/// All of them; `log2` is 32 but for a trial on a smaller device.
pub fn run(lab: &Lab, log2: u32) -> Outcome {
    ensure((16..=34).contains(&log2), || format!("2^{log2} elements are too few or too many"))?;
    let (all, more) = (1_usize << log2, 1_usize << (log2 - 12));
    let rows = 1 << log2.saturating_sub(20).max(6);
    for row_major in [false, true] {
        let name = |what: &str| format!("{what}, {}-major", if row_major { "row" } else { "column" });
        products(lab, &name("tall"), (all + more) / 64, 64, 4, row_major)?;
        products(lab, &name("long"), rows, (all + more) / rows, 5, row_major)?;
        leading_dimension(lab, &name("leading dimension"), all / 2 + 1, more + 1, row_major)?;
    }
    products(lab, "large result", (all + more) / 2, 2, 2, false)
}

/// Whether the device has so many bytes free; says so if not.
fn fits(lab: &Lab, name: &str, elements: usize) -> Outcome<bool> {
    let (wanted, free) = ((elements * size_of::<f32>()) as u64, lab.device.memory()?.0);
    let fits = wanted + wanted / 16 < free;
    if !fits {
        lab.skip(&format!("large {name}"), &format!("{wanted} bytes are needed, {free} are free"));
    }
    Ok(fits)
}

/// A packed A of m x k.
fn products(lab: &Lab, name: &str, m: usize, k: usize, n: usize, row_major: bool) -> Outcome {
    if !fits(lab, name, m * k + k * n + m * n)? {
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
    if !fits(lab, name, 2 * 3 * ld)? {
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
    let kept = !gaps.is_empty() && gaps.iter().all(|value| value.bits() == 0);
    lab.record(|| format!("large {name}: gaps"), ensure(kept, || "what lies between C's lines was written".into()))
}

/// C = A B by the model's choice and every entry.
fn by_every_entry(lab: &Lab, name: &str, a: MatRef<'_, f32>, mut c: MatMut<'_, f32>) -> Outcome {
    let (m, n, k) = (a.nrows(), c.ncols(), a.ncols());
    let host_b = Matrix::from_fn(k, n, b)?;
    let there = lab.device.upload(&lab.stream, host_b.view())?;
    let weights: Vec<f32> = (0..n).map(|j| (0..k).map(|l| v(l) * b(l, j)).sum()).collect();
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

fn plan(lab: &Lab, entry: Entry, a: MatRef<'_, f32>, b: MatRef<'_, f32>, c: MatRef<'_, f32>) -> host::Result<Plan> {
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
    compare(lab, c.as_ref(), ranges, |i, j| u(i) * weights[j])
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
fn compare(
    lab: &Lab,
    c: MatRef<'_, f32>,
    ranges: &[Range<usize>],
    expected: impl Fn(usize, usize) -> f32 + Sync,
) -> Outcome {
    for range in ranges {
        let part = lab.device.download(&lab.stream, c.rows(range.clone())?)?;
        let view = part.view();
        let wrong = (0..view.nrows()).into_par_iter().find_first(|&i| {
            (0..view.ncols()).any(|j| {
                let (found, right) = (view.get(i, j), expected(range.start + i, j));
                !found.is_some_and(|found| found == right || (right.is_nan() && found.is_nan()))
            })
        });
        if let Some(i) = wrong {
            let row = |of: &dyn Fn(usize) -> f32| (0..view.ncols()).map(of).collect::<Vec<f32>>();
            let found = row(&|j| view.get(i, j).unwrap_or(f32::NAN));
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
            let mut all = [0.0; 35];
            for (at, part) in all.chunks_mut(4).enumerate() {
                stored.fill(4 * at, part);
            }
            for (at, &value) in all.iter().enumerate() {
                let (line, position) = (at / 7, at % 7);
                let (i, l) = if row_major { (line, position) } else { (position, line) };
                assert!(if position < 6 { value == u(i) * v(l) } else { value.is_nan() }, "{at}");
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
        let c = Matrix::from_fn(5, 2, |i, j| u(i) * j as f32 + f32::from(i == 4 && j == 1))?;
        let right = |i, j| u(i) * j as f32;
        let (first, all) = (0..4, 0..5);
        assert!(compare(&lab, c.view(), &[first.clone(), all], right).is_err());
        assert!(compare(&lab, c.view(), std::slice::from_ref(&first), right).is_ok());
        assert!(compare(&lab, c.view(), std::slice::from_ref(&first), |_, _| f32::NAN).is_err());
        Ok(())
    }
}
