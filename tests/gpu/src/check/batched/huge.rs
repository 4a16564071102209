//! Batches of so many problems, or with matrices so far apart, that 32 bits do not count them.

use super::{Case, Follow, Spec, entries, is_refused};
use crate::entries::Entry;
use crate::lab::{Lab, Outcome, dtype_name, ensure, named};
use crate::memory::Memory;
use crate::operand::Storage;
use crate::real::{Element, integer, times};
use host::{BatchMut, BatchRef, Complex, Dtype, Matrix, gemm_batched, gemm_batched_by};
use model::variants::batched::BATCHED;

/// Matrices that are far apart: the last one begins past 2^32 elements.
const COUNT: usize = 3;
/// Elements of NaN before and behind each of them, of which none may be written.
const MARGIN: usize = 64;
/// m, n, k, and by how much matrices of one operand are more than 2^31 elements apart: aligned as vectors are, and not.
const SIZES: [((usize, usize, usize), usize); 4] =
    [((2, 2, 2), 2), ((8, 8, 8), 4), ((13, 9, 11), 3), ((32, 32, 32), 2)];

/// Ten million problems; more than a launch takes; matrices more than 2^32 elements apart.
pub fn run(lab: &Lab) -> Outcome {
    let storage = [Storage::default(), Storage { offset: 1, ..Storage::default() }, Storage::default()];
    let (follow, conj) = ([Follow::Strided, Follow::Shared, Follow::Strided], [false; 2]);
    let count = if lab.is_emulated() { 1003 } else { 10_000_000 };
    let spec = Spec { size: (2, 1, 2), count, storage, follow, conj, alpha: 1.0, beta: 0.0 };
    let mut case = Case::<f32>::integers(lab, spec)?;
    for entry in entries(lab, Dtype::F32) {
        let result = case.run(lab, entry).and_then(|found| case.right(&found));
        if !result.as_ref().is_err_and(|fault| is_refused(entry, fault)) {
            lab.record(|| format!("batched, huge, {} {}", named(entry), spec.name(Dtype::F32)), result)?;
        }
    }
    drop(case);
    launches(lab)?;
    apart::<f32>(lab)?;
    apart::<f64>(lab)?;
    apart::<Complex<f32>>(lab)?;
    apart::<Complex<f64>>(lab)
}

/// Whether so many bytes are free; of a GPU that is real they must be.
fn has_room(lab: &Lab, name: &str, bytes: usize) -> Outcome<bool> {
    let (free, _) = lab.device.memory()?;
    let is_there = lab.device.is_cuda() && free > bytes as u64 + (256 << 20);
    if !is_there {
        lab.skip(name, &format!("it takes a GPU with {} MB of free memory", bytes >> 20));
    }
    Ok(is_there)
}

fn multiply<T: Element>(
    lab: &Lab,
    entry: Entry,
    a: BatchRef<'_, T>,
    b: BatchRef<'_, T>,
    c: BatchMut<'_, T>,
) -> Outcome {
    let (one, zero) = (T::of_two(1.0, 0.0), T::of_two(0.0, 0.0));
    match entry {
        None => gemm_batched(&lab.stream, one, a, b, zero, c)?,
        Some(name) => gemm_batched_by(&lab.stream, name, one, a, b, zero, c)?,
    }
    Ok(lab.stream.synchronize()?)
}

/// Problems of one element, three more than a launch takes.
fn launches(lab: &Lab) -> Outcome {
    const MOST: usize = 1 << 30;
    // A launch of the emulator takes them one by one.
    let first = if lab.is_emulated() { 1 << 10 } else { MOST };
    let (count, len) = (first + 3, first + 3 + 2 * MARGIN);
    if !has_room(lab, "batched, more than a launch", len * size_of::<f32>())? {
        return Ok(());
    }
    let number = |value: f32| -> Outcome<Matrix<f32>> {
        Ok(lab.device.upload(&lab.stream, Matrix::from_fn(1, 1, |_, _| value)?.view())?)
    };
    let (a, b) = (number(3.0)?, number(-5.0)?);
    lab.stream.synchronize()?;
    let mut c = Memory::new(lab, len * size_of::<f32>())?;
    let address = c.address() + (MARGIN * size_of::<f32>()) as u64;
    for entry in entries(lab, Dtype::F32) {
        c.fill(0xff)?;
        // SAFETY: so many elements behind the margin, which live till the stream was waited for.
        let all = unsafe { BatchMut::<f32>::from_raw(&lab.device, address, count, 1, (1, 1), (1, 1)) }?;
        let (a, b) = (BatchRef::shared(a.view(), count), BatchRef::shared(b.view(), count));
        let result = multiply(lab, entry, a, b, all).and_then(|()| every_one(&c, first));
        if !result.as_ref().is_err_and(|fault| is_refused(entry, fault)) {
            lab.record(|| format!("batched, {count} problems of one element, {}", named(entry)), result)?;
        }
    }
    Ok(())
}

/// The first, the last, those about the second launch's first one, some of each million, and the margins.
fn every_one(c: &Memory, first: usize) -> Outcome {
    let count = first + 3;
    // Elements from the first of the memory on, so many each time.
    for start in (0..first).step_by(1 << 20).chain([first, first + MARGIN / 2, count, count + MARGIN]) {
        let mut found = [0.0_f32; MARGIN];
        c.read(start * size_of::<f32>(), bytemuck::cast_slice_mut(&mut found))?;
        for (at, value) in (start..).zip(found) {
            let is_one = (MARGIN..MARGIN + count).contains(&at);
            let fine = if is_one { value == -15.0 } else { value.to_bits() == u32::MAX };
            ensure(fine, || format!("problem {} is {value}", at as i128 - MARGIN as i128))?;
        }
    }
    Ok(())
}

/// Three matrices of one operand, far apart in memory of NaN.
struct Far<'m> {
    memory: &'m mut Memory,
    stride: usize,
    shape: (usize, usize),
}

impl Far<'_> {
    /// Of NaN, with its margins.
    fn line<T: Element>(&self) -> Vec<T> {
        vec![T::canary(); self.shape.0 * self.shape.1 + 2 * MARGIN]
    }

    fn put<T: Element>(&mut self, value: impl Fn(usize, usize, usize) -> T) -> Outcome {
        let (rows, cols) = self.shape;
        for p in 0..COUNT {
            let mut line = self.line::<T>();
            (0..rows * cols).for_each(|e| line[MARGIN + e] = value(p, e % rows, e / rows));
            self.memory.write(p * self.stride * size_of::<T>(), bytemuck::cast_slice(&line))?;
        }
        Ok(())
    }

    fn address<T: Element>(&self) -> u64 {
        self.memory.address() + (MARGIN * size_of::<T>()) as u64
    }

    fn read<T: Element>(&self, lab: &Lab) -> Outcome<BatchRef<'static, T>> {
        let (rows, cols) = self.shape;
        // SAFETY: the memory has three such matrices, and lives till the stream was waited for.
        let batch = unsafe {
            BatchRef::from_raw(&lab.device, self.address::<T>(), COUNT, self.stride, (rows, cols), (1, rows))
        };
        Ok(batch?)
    }

    fn write<T: Element>(&mut self, lab: &Lab) -> Outcome<BatchMut<'static, T>> {
        let (rows, cols) = self.shape;
        // SAFETY: as for `read`; nothing else uses it till then.
        let batch = unsafe {
            BatchMut::from_raw(&lab.device, self.address::<T>(), COUNT, self.stride, (rows, cols), (1, rows))
        };
        Ok(batch?)
    }

    /// Fails unless each has these elements, and the margins are as they were.
    fn is<T: Element>(&self, expected: impl Fn(usize, usize, usize) -> [f64; 2]) -> Outcome {
        let (rows, cols) = self.shape;
        for p in 0..COUNT {
            let mut line = self.line::<T>();
            self.memory.read(p * self.stride * size_of::<T>(), bytemuck::cast_slice_mut(&mut line))?;
            for (at, found) in line.into_iter().enumerate() {
                let inside = at.checked_sub(MARGIN).filter(|e| *e < rows * cols);
                let fine = match inside {
                    Some(e) => found.two() == expected(p, e % rows, e / rows),
                    None => found.bits() == T::canary().bits(),
                };
                ensure(fine, || format!("matrix {p}, element {}: {found:?}", at as i128 - MARGIN as i128))?;
            }
        }
        Ok(())
    }
}

/// Each operand in turn lies far apart, by every entry that takes it so: those of packed batches do not.
fn apart<T: Element>(lab: &Lab) -> Outcome {
    // The emulator's memory is the host's: there it is the check that is checked.
    let least: usize = if lab.is_emulated() { 1 << 12 } else { 1 << 31 };
    let len = |beyond: usize| (COUNT - 1) * (least + beyond) + 32 * 32 + 2 * MARGIN;
    let bytes = len(4) * size_of::<T>();
    if !has_room(lab, "batched, far apart", bytes)? {
        return Ok(());
    }
    let mut far = Memory::new(lab, bytes)?;
    let mut taken = vec![0; entries(lab, T::DTYPE).len()];
    for (size, beyond) in SIZES {
        for operand in 0..3 {
            far.fill(0xff)?;
            for (place, entry) in entries(lab, T::DTYPE).into_iter().enumerate() {
                let result = one::<T>(lab, &mut far, size, (operand, least + beyond), entry);
                if result.as_ref().is_err_and(|fault| is_refused(entry, fault)) {
                    continue;
                }
                taken[place] += 1;
                let name = ["A", "B", "C"][operand];
                let what = || format!("batched, {name} far apart, {size:?} {} {}", dtype_name::<T>(), named(entry));
                lab.record(what, result)?;
            }
        }
    }
    for (taken, entry) in taken.into_iter().zip(entries(lab, T::DTYPE)) {
        let is_packed = BATCHED.iter().any(|v| Some(v.entry) == entry && v.is_packed());
        let ran = ensure(is_packed || taken >= 3, || "it was refused".into());
        lab.record(|| format!("batched, far apart, {}", named(entry)), ran)?;
    }
    Ok(())
}

fn one<T: Element>(
    lab: &Lab,
    far: &mut Memory,
    (m, n, k): (usize, usize, usize),
    (operand, stride): (usize, usize),
    entry: Entry,
) -> Outcome {
    let two = |seed: u64, p: usize, i, j| {
        [integer(seed, 40 * p + i, j, 3), integer(seed + 9, 40 * p + i, j, if T::DTYPE.is_complex() { 3 } else { 0 })]
    };
    let value = |seed| {
        move |p, i, j| {
            let [re, im] = two(seed, p, i, j);
            T::of_two(re, im)
        }
    };
    let shapes = [(m, k), (k, n), (m, n)];
    // The others are near: packed, but for the margins between them.
    let near = |which: usize| shapes[which].0 * shapes[which].1 + 2 * MARGIN;
    let mut memories = [0, 1, 2].map(|which| Memory::new(lab, COUNT * near(which) * size_of::<T>()));
    let mut all = Vec::with_capacity(3);
    let mut far = Some(far);
    for (which, memory) in memories.iter_mut().enumerate() {
        let memory = memory.as_mut().map_err(|fault| fault.to_string())?;
        let (memory, stride) = match far.take_if(|_| which == operand) {
            Some(far) => (far, stride),
            None => (memory, near(which)),
        };
        all.push(Far { memory, stride, shape: shapes[which] });
    }
    let [a, b, c] = &mut all[..] else { return Err("three operands".into()) };
    a.put(value(1))?;
    b.put(value(2))?;
    c.put(|_, _, _| T::canary())?;
    multiply::<T>(lab, entry, a.read(lab)?, b.read(lab)?, c.write(lab)?)?;
    c.is::<T>(|p, i, j| {
        let products = (0..k).map(|l| times(two(1, p, i, l), two(2, p, l, j)));
        products.fold([0.0; 2], |[re, im], [x, y]| [re + x, im + y])
    })
}
