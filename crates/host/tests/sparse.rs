//! Operands whose lines are more than 2³² elements apart on the CPU: what lies between them takes no memory.

mod common;

use common::skipped;
use lanky_host::{BatchMut, BatchRef, Device, MatMut, MatRef, Result, Stream, gemm, gemm_batched, gram, tsmm_in_place};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Zeros that take no memory before they are written.
struct Sparse {
    base: *mut f32,
    len: usize,
}

impl Sparse {
    /// `None` where the system promises no more than there is.
    fn new(len: usize) -> Option<Sparse> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: new addresses.
        let base = unsafe { mmap_anonymous(std::ptr::null_mut(), 4 * len, ProtFlags::READ | ProtFlags::WRITE, flags) };
        Some(Sparse { base: base.ok()?.cast(), len })
    }

    /// A matrix of three lines that are so far apart, by rows or by columns.
    fn of_lines(far: usize) -> Option<Sparse> {
        Sparse::new(2 * far + 8)
    }

    fn all(&self) -> &[f32] {
        // SAFETY: mapped, of which every bit pattern is an f32, and not lent to be written.
        unsafe { std::slice::from_raw_parts(self.base, self.len) }
    }

    fn all_mut(&mut self) -> &mut [f32] {
        // SAFETY: as above, and this is the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.base, self.len) }
    }
}

impl Drop for Sparse {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and nothing is lent any more.
        unsafe { munmap(self.base.cast(), 4 * self.len) }.expect("it was mapped");
    }
}

fn value(i: usize, j: usize) -> f32 {
    ((i * 5 + j * 3) % 7) as f32 - 3.0
}

/// C = A B of 3 x 3 matrices, of which one, or all, have lines so far apart.
fn products(stream: &Stream, far: usize, by_rows: bool) -> Result<bool> {
    let expected = |i: usize, j: usize| (0..3).map(|l| value(i, l) * value(l, j)).sum::<f32>();
    for which in 0..4 {
        let lines = [0, 1, 2].map(|at| if which == at || which == 3 { far } else { 3 });
        let [Some(mut a), Some(mut b), Some(mut c)] = lines.map(Sparse::of_lines) else { return Ok(false) };
        let strides = |ld: usize| if by_rows { (ld, 1) } else { (1, ld) };
        let [of_a, of_b, of_c] = lines.map(strides);
        for (i, j) in (0..9).map(|e| (e / 3, e % 3)) {
            a.all_mut()[i * of_a.0 + j * of_a.1] = value(i, j);
            b.all_mut()[i * of_b.0 + j * of_b.1] = value(i, j);
            c.all_mut()[i * of_c.0 + j * of_c.1] = f32::NAN;
        }
        let (left, right) = (
            MatRef::with_strides(a.all(), 3, 3, of_a.0, of_a.1)?,
            MatRef::with_strides(b.all(), 3, 3, of_b.0, of_b.1)?,
        );
        gemm(stream, 1.0, left, right, 0.0, MatMut::with_strides(c.all_mut(), 3, 3, of_c.0, of_c.1)?)?;
        for (i, j) in (0..9).map(|e| (e / 3, e % 3)) {
            assert_eq!(c.all()[i * of_c.0 + j * of_c.1], expected(i, j), "({i}, {j}) of {lines:?}, by rows {by_rows}");
        }
        gram(stream, 1.0, left, 0.0, MatMut::with_strides(c.all_mut(), 3, 3, of_c.0, of_c.1)?)?;
        for (i, j) in (0..9).map(|e| (e / 3, e % 3)) {
            let sum: f32 = (0..3).map(|l| value(l, i) * value(l, j)).sum();
            assert_eq!(c.all()[i * of_c.0 + j * of_c.1], sum, "Gram ({i}, {j}) of {lines:?}, by rows {by_rows}");
        }
        tsmm_in_place(stream, 1.0, MatMut::with_strides(a.all_mut(), 3, 3, of_a.0, of_a.1)?, right)?;
        for (i, j) in (0..9).map(|e| (e / 3, e % 3)) {
            assert_eq!(a.all()[i * of_a.0 + j * of_a.1], expected(i, j), "in place ({i}, {j}) of {lines:?}");
        }
    }
    Ok(true)
}

/// Three products of 2 x 2 matrices so far apart.
fn batches(stream: &Stream, far: usize) -> Result<bool> {
    let [Some(mut a), Some(mut b), Some(mut c)] = [far; 3].map(Sparse::of_lines) else { return Ok(false) };
    let at = |p: usize, i: usize, j: usize| p * far + i + 2 * j;
    for (p, i, j) in (0..12).map(|e| (e / 4, e % 2, e / 2 % 2)) {
        a.all_mut()[at(p, i, j)] = value(i + p, j);
        b.all_mut()[at(p, i, j)] = value(i, j + p);
        c.all_mut()[at(p, i, j)] = f32::NAN;
    }
    let left = BatchRef::with_strides(a.all(), 3, far, (2, 2), (1, 2))?;
    let right = BatchRef::with_strides(b.all(), 3, far, (2, 2), (1, 2))?;
    let into = BatchMut::with_strides(c.all_mut(), 3, far, (2, 2), (1, 2))?;
    gemm_batched(stream, 1.0, left, right, 0.0, into)?;
    for (p, i, j) in (0..12).map(|e| (e / 4, e % 2, e / 2 % 2)) {
        let sum: f32 = (0..2).map(|l| value(i + p, l) * value(l, j + p)).sum();
        assert_eq!(c.all()[at(p, i, j)], sum, "({i}, {j}) of {p}, {far} apart");
    }
    Ok(true)
}

#[test]
fn lines_beyond_32_bits_are_found() -> Result<()> {
    let stream = Device::cpu().stream()?;
    // Of the first the last line alone is beyond.
    for far in [(1 << 31) + 1, (1 << 32) + 1] {
        for by_rows in [false, true] {
            if !products(&stream, far, by_rows)? || !batches(&stream, far)? {
                skipped("lines_beyond_32_bits_are_found", "the system sets aside no addresses without memory");
                return Ok(());
            }
        }
    }
    Ok(())
}
