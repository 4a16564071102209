//! A[:, ..n] ← α A B: a tall matrix of few columns, in place.

use crate::cpu;
use crate::driver;
use crate::error::{Error, Operand, Result, Rule, ShapeError};
use crate::matrix::closest_layout;
use crate::ops::enqueue::enqueue;
use crate::ops::gemm::{check_aligned, check_places, problem, refuse_overlap};
use crate::pack::pack;
use crate::scalar::Scalar;
use crate::shape::{Layout, agree, check_distinct, wide};
use crate::stream::{Queue, Stream};
use crate::view::{MatMut, MatRef};
use model::shape::SKINNY;

/// Rows that the CPU copies before it overwrites them.
const CPU_ROWS: usize = 4096;

/// The first n columns of A ← α A B, with A m x k, B k x n and n <= k <= 64: a tall matrix is changed where it lies. The
/// other k − n columns keep their values. Asynchronous on `stream` on a GPU.
///
/// This is legal because a row of the result needs no row of A but its own, and each block of the kernel has read all rows
/// of a tile before it writes the first of them. It is refused where that is not so: if the result has more columns than
/// A (it would reach into other rows), or k exceeds 64 (no kernel holds whole rows of A then). There is no β: what would be
/// added is overwritten. For a wide matrix, X ← α B X with B n x k, pass `x.t()` and `b.t()`.
///
/// NaN and infinities travel as in [`gemm`](crate::gemm()), whose error bound holds too; α = 0 reads neither A nor B and writes
/// zeros. Cost on a GPU: one launch, no workspace; A is read once, and n of its columns written. On the CPU up to 4096 rows of A are copied
/// at a time, to memory that is asked for before anything is written.
///
/// # Errors
/// In this order, nothing being launched or written: [`Error::WrongDevice`]; [`Error::Shape`] if B's rows are not A's
/// columns, n exceeds k ([`Rule::Cols`]), elements of A overlap each other, A overlaps B, or on a GPU complex elements do not lie at
/// multiples of their size; [`Error::Unsupported`] if k exceeds 64, or on a GPU m what the kernels count up to; then as
/// [`gemm`](crate::gemm()).
///
/// # Example
/// ```
/// use lanky_host::{Device, MatMut, MatRef, tsmm_in_place};
/// let mut a = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]; // 1 2; 3 4; 5 6
/// let stream = Device::cpu().stream()?;
/// let b = [0.0, 1.0, 1.0, 0.0];
/// tsmm_in_place(&stream, 1.0, MatMut::row_major(&mut a, 3, 2)?, MatRef::row_major(&b, 2, 2)?)?;
/// assert_eq!(a, [2.0, 1.0, 4.0, 3.0, 6.0, 5.0]);
/// # Ok::<(), lanky_host::Error>(())
/// ```
pub fn tsmm_in_place<T: Scalar>(stream: &Stream, alpha: T, mut a: MatMut<'_, T>, b: MatRef<'_, T>) -> Result<()> {
    let _during = driver::during("tsmm_in_place");
    check(stream, &a, &b)?;
    let n = b.ncols();
    if a.nrows() == 0 || n == 0 {
        return Ok(());
    }
    match stream.queue() {
        Queue::Cpu => on_cpu(alpha, a, b),
        Queue::Cuda(queue) => {
            let read = MatRef::of_parts(a.as_mut_ptr(), a.shape(), a.place());
            let mut c = a.cols(..n)?;
            let multiplies = alpha != T::zero();
            let problem = problem(&read.shape(), &b.shape(), &c.shape(), false);
            let choice = if multiplies { Some(queue.gpu.choice_in_place(&problem)?) } else { None };
            // `enqueue` asks for a C that overlaps no factor: here it is A's, and the choice is of a kernel that may.
            enqueue(queue, choice.as_ref(), &mut None, alpha, &read, &b, T::zero(), &mut c, None)
        }
    }
}

fn check<T: Scalar>(stream: &Stream, a: &MatMut<'_, T>, b: &MatRef<'_, T>) -> Result<()> {
    check_places(stream.device(), [(Operand::A, a.place()), (Operand::B, b.place())])?;
    let (n, k) = (b.ncols(), a.ncols());
    let mut c = a.shape();
    c.cols = n;
    agree(&a.shape(), &b.shape(), &c)?;
    if n > k {
        let text = format!("B has {n} columns: in place the result lies in A's {k}, so B may have {k} columns");
        return Err(ShapeError::new(Operand::B, Rule::Cols, wide(k), wide(n), text).into());
    }
    check_distinct(Operand::A, &a.shape())?;
    refuse_overlap(Operand::A, Operand::B, b, a)?;
    check_aligned::<T, 2>(stream.device(), [(Operand::A, a.extent()), (Operand::B, b.extent())])?;
    if wide(k) > SKINNY {
        let what =
            format!("a product in place with k = {k}: A may have {SKINNY} columns, whose rows a kernel holds whole");
        return Err(Error::Unsupported { what });
    }
    Ok(())
}

/// Rows are copied before they are overwritten, some at a time, to memory that is there before the first is. A product of so few rows
/// and columns asks for no more: k is whole.
fn on_cpu<T: Scalar>(alpha: T, a: MatMut<'_, T>, b: MatRef<'_, T>) -> Result<()> {
    let k = a.ncols();
    let len = a.nrows().min(CPU_ROWS) * k;
    let mut copies =
        bytemuck::allocation::try_zeroed_vec(len).map_err(|()| Error::host_memory(wide(len) * T::DTYPE.bytes()))?;
    let mut rest = a;
    while rest.nrows() > 0 {
        let (head, tail) = rest.split_rows(CPU_ROWS);
        let (rows, layout) = (head.nrows(), closest_layout(&head.shape()));
        let copy = &mut copies[..rows * k];
        pack(head.as_ref(), layout, 0, copy);
        let copy = match layout {
            Layout::ColumnMajor => MatRef::column_major(copy, rows, k),
            Layout::RowMajor => MatRef::row_major(copy, rows, k),
        }?;
        cpu::product(alpha, copy, b, T::zero(), head.cols(..b.ncols())?)?;
        rest = tail;
    }
    Ok(())
}
