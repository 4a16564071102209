//! Operands that end where mapped memory ends, or begin where it begins: an element read or written beyond is a fault of the
//! process, and so is one written to an operand that is read. On the CPU; `lanky-gpu-tests check guards` is a GPU's.
#![cfg(target_os = "linux")]

use lanky_host::{
    BatchMut, BatchRef, Complex, Device, MatMut, MatRef, Scalar, Stream, gemm, gemm_batched, gemv, gram, tsmm_in_place,
};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use std::ffi::c_void;
use std::marker::PhantomData;
use std::process::Command;

const PAGE: usize = 4096;

/// Where elements lie among pages that may be touched.
#[derive(Clone, Copy, Debug, PartialEq)]
enum At {
    Start,
    End,
}

/// Elements in pages of their own, between pages that nobody may touch.
struct Mapped<T> {
    base: *mut c_void,
    bytes: usize,
    first: *mut T,
    len: usize,
    elements: PhantomData<T>,
}

impl<T: Scalar> Mapped<T> {
    fn new(at: At, len: usize, fill: impl Fn(usize) -> T) -> Self {
        let size = size_of::<T>();
        let room = (len * size).next_multiple_of(PAGE).max(PAGE);
        let bytes = room + 2 * PAGE;
        // SAFETY: new memory, which nothing else knows of.
        let base = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, ProtFlags::empty(), MapFlags::PRIVATE) };
        let base = base.expect("address space");
        // SAFETY: the pages between the first and the last of those.
        unsafe { mprotect(base.byte_add(PAGE), room, MprotectFlags::READ | MprotectFlags::WRITE) }.expect("memory");
        // Pages are multiples of every element.
        let offset = if at == At::Start { 0 } else { room - len * size };
        // SAFETY: inside the mapping.
        let first = unsafe { base.byte_add(PAGE + offset) }.cast::<T>();
        let mut mapped = Mapped { base, bytes, first, len, elements: PhantomData };
        mapped.slice_mut().iter_mut().enumerate().for_each(|(at, element)| *element = fill(at));
        mapped
    }

    /// The same for what is only read.
    fn read_only(at: At, len: usize, fill: impl Fn(usize) -> T) -> Self {
        let mapped = Mapped::new(at, len, fill);
        // SAFETY: the pages that were made writable; nothing refers to them.
        unsafe { mprotect(mapped.base.byte_add(PAGE), mapped.bytes - 2 * PAGE, MprotectFlags::READ) }.expect("memory");
        mapped
    }

    fn slice(&self) -> &[T] {
        // SAFETY: so many elements, all of which were written, or are zeros.
        unsafe { std::slice::from_raw_parts(self.first, self.len) }
    }

    fn slice_mut(&mut self) -> &mut [T] {
        // SAFETY: as above; borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.first, self.len) }
    }
}

impl<T> Drop for Mapped<T> {
    fn drop(&mut self) {
        // SAFETY: what was mapped, and nothing refers to it.
        unsafe { munmap(self.base, self.bytes) }.expect("it was mapped");
    }
}

fn number<T: Scalar>(value: f64) -> T {
    T::of_parts(num_traits::cast(value).expect("a number"), num_traits::Zero::zero())
}

/// Element (i, j) of A, and of B.
fn of(i: usize, j: usize) -> f64 {
    ((3 * i + 5 * j) % 7) as f64 - 3.0
}

/// How rows x cols elements lie: by rows or by columns, with a gap behind each but the last, which may end the memory.
#[derive(Clone, Copy, Debug)]
struct Lie {
    rows: usize,
    cols: usize,
    by_rows: bool,
    /// From each row, or column, to the next.
    line: usize,
    strides: (usize, usize),
}

impl Lie {
    fn new(rows: usize, cols: usize, by_rows: bool, gap: usize) -> Lie {
        let line = if by_rows { cols } else { rows } + gap;
        Lie { rows, cols, by_rows, line, strides: if by_rows { (line, 1) } else { (1, line) } }
    }

    fn len(&self) -> usize {
        if self.rows * self.cols == 0 {
            0
        } else {
            (self.rows - 1) * self.strides.0 + (self.cols - 1) * self.strides.1 + 1
        }
    }

    /// [`of`] where elements are, NaN between them.
    fn fill<T: Scalar>(&self, at: usize) -> T {
        let (line, within) = (at / self.line, at % self.line);
        let (i, j) = if self.by_rows { (line, within) } else { (within, line) };
        if i < self.rows && j < self.cols { number(of(i, j)) } else { number(f64::NAN) }
    }

    fn read<'a, T: Scalar>(&self, memory: &'a Mapped<T>) -> MatRef<'a, T> {
        MatRef::with_strides(memory.slice(), self.rows, self.cols, self.strides.0, self.strides.1).expect("it spans it")
    }

    fn written<'a, T: Scalar>(&self, memory: &'a mut Mapped<T>) -> MatMut<'a, T> {
        MatMut::with_strides(memory.slice_mut(), self.rows, self.cols, self.strides.0, self.strides.1)
            .expect("it spans it")
    }
}

fn sum(m: usize, n: usize, k: usize, i: usize, j: usize) -> f64 {
    assert!(i < m && j < n);
    (0..k).map(|l| of(i, l) * of(l, j)).sum()
}

/// A product, and where it has one column gemv too.
fn multiplies<T: Scalar>(stream: &Stream, at: At, (m, n, k): (usize, usize, usize), bits: usize, gap: usize) {
    let lies =
        [Lie::new(m, k, bits & 1 == 1, gap), Lie::new(k, n, bits & 2 == 2, gap), Lie::new(m, n, bits & 4 == 4, gap)];
    let [a, b] = [lies[0], lies[1]].map(|lie| Mapped::<T>::read_only(at, lie.len(), |at| lie.fill(at)));
    for beta in [0.0, 1.0] {
        let mut c = Mapped::<T>::new(at, lies[2].len(), |_| number(if beta == 0.0 { f64::NAN } else { 2.0 }));
        let (a, b) = (lies[0].read(&a), lies[1].read(&b));
        let (one, beta_t) = (number::<T>(1.0), number::<T>(beta));
        gemm(stream, one, a, b, beta_t, lies[2].written(&mut c)).expect("a product");
        let check = |c: MatMut<'_, T>| {
            for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                assert_eq!(c.get(i, j), Some(number(sum(m, n, k, i, j) + 2.0 * beta)), "({i}, {j}) {lies:?}");
            }
        };
        check(lies[2].written(&mut c));
        if n == 1 {
            c.slice_mut().fill(number(2.0));
            gemv(stream, one, a, b, beta_t, lies[2].written(&mut c)).expect("a product");
            check(lies[2].written(&mut c));
        }
    }
}

/// A Gram matrix, and a product in place.
fn tall<T: Scalar>(stream: &Stream, at: At, (m, n): (usize, usize), by_rows: bool, gap: usize) {
    let (lie, square) = (Lie::new(m, n, by_rows, gap), Lie::new(n, n, !by_rows, gap));
    let a = Mapped::<T>::read_only(at, lie.len(), |at| lie.fill(at));
    let mut c = Mapped::<T>::new(at, square.len(), |_| number(f64::NAN));
    gram(stream, number(1.0), lie.read(&a), number(0.0), square.written(&mut c)).expect("a Gram matrix");
    let b = Mapped::<T>::read_only(at, square.len(), |at| square.fill(at));
    let mut changed = Mapped::<T>::new(at, lie.len(), |at| lie.fill(at));
    tsmm_in_place(stream, number(1.0), lie.written(&mut changed), square.read(&b)).expect("a product");
    for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
        let by_hand: f64 = (0..m).map(|l| of(l, i) * of(l, j)).sum();
        assert_eq!(square.read(&c).get(i, j), Some(number(by_hand)), "({i}, {j}) of {lie:?}");
    }
    for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
        assert_eq!(lie.read(&changed).get(i, j), Some(number(sum(m, n, n, i, j))), "({i}, {j}) of {lie:?}");
    }
}

/// A batch of seven at equal distances, and listed; `bits` are which operands lie by rows, and whether C is added to.
fn batch<T: Scalar>(stream: &Stream, at: At, (m, n, k): (usize, usize, usize), bits: usize, gap: usize) {
    const COUNT: usize = 7;
    let lies =
        [Lie::new(m, k, bits & 1 == 1, gap), Lie::new(k, n, bits & 2 == 2, gap), Lie::new(m, n, bits & 4 == 4, 0)];
    let step = |lie: &Lie| lie.len() + gap;
    let spread = |lie: Lie| {
        let len = (COUNT - 1) * step(&lie) + lie.len();
        Mapped::<T>::read_only(at, len, move |at| {
            let within = at % step(&lie);
            if within < lie.len() { lie.fill(within) } else { number(f64::NAN) }
        })
    };
    let (a, b) = (spread(lies[0]), spread(lies[1]));
    let of_a = BatchRef::with_strides(a.slice(), COUNT, step(&lies[0]), (m, k), lies[0].strides).expect("it spans it");
    let of_b = BatchRef::with_strides(b.slice(), COUNT, step(&lies[1]), (k, n), lies[1].strides).expect("it spans it");
    let views: Vec<_> = (0..COUNT).rev().filter_map(|index| of_a.get(index)).collect();
    let listed = BatchRef::listed(&views).expect("of one shape");
    for factor in [of_a, listed] {
        let [old, beta] = if bits & 8 == 8 { [3.0, 1.0] } else { [f64::NAN, 0.0] };
        let mut c = Mapped::<T>::new(at, COUNT * lies[2].len(), |_| number(old));
        let out =
            BatchMut::with_strides(c.slice_mut(), COUNT, lies[2].len(), (m, n), lies[2].strides).expect("it does");
        gemm_batched(stream, number(1.0), factor, of_b.clone(), number(beta), out).expect("products");
        let old = if beta == 0.0 { 0.0 } else { old };
        for product in c.slice().chunks(lies[2].len().max(1)) {
            for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                let found = product[i * lies[2].strides.0 + j * lies[2].strides.1];
                assert_eq!(found, number(old + sum(m, n, k, i, j)), "({i}, {j}) of {lies:?}");
            }
        }
    }
}

fn every_call<T: Scalar>() {
    let stream = Device::cpu().stream().expect("the CPU");
    let sides = [1, 3, 4, 8, 15, 17, 33, 64, 65];
    for (turn, at) in (0..36).flat_map(|turn| [(turn, At::Start), (turn, At::End)]) {
        let side = |factor: usize, offset: usize| sides[(turn * factor + offset) % sides.len()];
        let (m, n, k) = (side(1, 0), [1, side(2, 3), side(4, 1)][turn % 3], side(5, 2));
        multiplies::<T>(&stream, at, (m, n, k), turn, turn % 3);
        tall::<T>(&stream, at, (side(7, 1), side(1, 0).min(33)), turn % 2 == 0, turn / 2 % 3);
        batch::<T>(&stream, at, (m.min(33), n.min(33), k.min(33)), turn, turn % 2);
    }
    // Vectors end in every lane.
    for (n, at) in (1..=32).flat_map(|n| [(n, At::Start), (n, At::End)]) {
        batch::<T>(&stream, at, (n, n, n), 8 * (n % 2), 0);
        batch::<T>(&stream, at, (n, n, n), 8 * ((n + 1) % 2), 0);
        batch::<T>(&stream, at, (n, 33 - n, 5), n + 8, n % 2);
    }
    // Blocks of rows, and parts of k.
    for at in [At::Start, At::End] {
        multiplies::<T>(&stream, at, (1003, 8, 301), 5, 0);
        multiplies::<T>(&stream, at, (3, 2, 100_003), 1, 0);
    }
}

#[test]
fn nothing_beyond_operands_of_f32_is_touched() {
    every_call::<f32>();
}

#[test]
fn nothing_beyond_operands_of_f64_is_touched() {
    every_call::<f64>();
}

#[test]
fn nothing_beyond_complex_operands_is_touched() {
    every_call::<Complex<f32>>();
    every_call::<Complex<f64>>();
}

/// What those tests look for ends the process: one element before, one behind, one written where all is read.
#[test]
fn an_element_too_far_would_be_seen() {
    const NAME: &str = "LANKY_TEST_TOO_FAR";
    const SIGSEGV: i32 = 11;
    let touch = |what: &str| {
        let ends = Mapped::<f64>::read_only(At::End, 700, |_| 1.0);
        let starts = Mapped::<f64>::read_only(At::Start, 700, |_| 1.0);
        // SAFETY: none of it is: it is what must end the process.
        unsafe {
            match what {
                "behind" => std::hint::black_box(ends.first.add(ends.len).read_volatile()),
                "before" => std::hint::black_box(starts.first.sub(1).read_volatile()),
                _ => {
                    ends.first.write_volatile(2.0);
                    0.0
                }
            }
        };
    };
    if let Ok(what) = std::env::var(NAME) {
        return touch(&what);
    }
    for what in ["behind", "before", "written"] {
        use std::os::unix::process::ExitStatusExt;
        let me = std::env::current_exe().expect("a path");
        let output = Command::new(me).args(["--exact", "an_element_too_far_would_be_seen"]).env(NAME, what).output();
        assert_eq!(output.expect("it starts").status.signal(), Some(SIGSEGV), "{what}");
    }
}
