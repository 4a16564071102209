//! The only kernel launches.

use crate::driver;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::scalar::Scalar;
use crate::shape::wide;
use crate::stream::CudaStream;
use model::launch::reduced::{self, Finish, Triangle};
use model::{BatchedChoice, Choice, Strides};
use std::ffi::c_void;

/// An operand in device memory.
#[derive(Clone, Copy)]
pub(crate) struct DeviceOperand {
    pub(crate) address: u64,
    pub(crate) strides: Strides,
    /// Whether the elements are the conjugates of what is stored.
    pub(crate) conj: bool,
}

impl DeviceOperand {
    fn t(self) -> Self {
        DeviceOperand { strides: self.strides.transposed(), ..self }
    }
}

/// α, A, B, β and C of a product, C = m x n.
#[derive(Clone, Copy)]
pub(crate) struct Operands<T> {
    pub(crate) m: u32,
    pub(crate) n: u32,
    pub(crate) k: u32,
    pub(crate) alpha: T,
    pub(crate) a: DeviceOperand,
    pub(crate) b: DeviceOperand,
    pub(crate) beta: T,
    pub(crate) c: DeviceOperand,
}

impl<T> Operands<T> {
    /// Cᵀ ← α Bᵀ Aᵀ + β Cᵀ, the same product.
    fn transposed(self) -> Self {
        Operands { m: self.n, n: self.m, a: self.b.t(), b: self.a.t(), c: self.c.t(), ..self }
    }
}

/// The parameters of a kernel: each an address of a value that the launch reads before it returns.
macro_rules! parameters {
    ($($value:expr),* $(,)?) => { [$((&raw const $value).cast_mut().cast::<c_void>()),*] };
}

/// C ← α A B + β C by the chosen entry; where k is split, by slots that its blocks join or that [`sum_slots`] adds, by `adds`.
///
/// # Safety
/// The context is current. The operands are memory of the stream's context: A m x k, B k x n, C m x n, C overlapping
/// neither. `choice` is of this product. `work` is the address of a workspace of the stream's alone, whose tickets are 0, with `choice.slots_len`
/// elements behind its head, if the choice has any.
pub(crate) unsafe fn product<T: Scalar>(
    stream: &CudaStream,
    choice: &Choice,
    kernel: &Kernel,
    (work, adds): (u64, Option<&Kernel>),
    operands: Operands<T>,
) -> Result<()> {
    let p = if choice.swapped { operands.transposed() } else { operands };
    let tiles = u64::from(choice.grid[0]) * u64::from(choice.grid[2]);
    debug_assert!(choice.finish != reduced::Finish::LastBlock || tiles <= reduced::TICKETS.into());
    let slots = work + u64::from(reduced::WORK_HEAD_BYTES);
    let (out, alpha, beta, slot_len) = match adds {
        Some(_) => {
            let strides = Strides::column_major(u64::from(p.m));
            let out = DeviceOperand { address: slots, strides, conj: false };
            (out, T::one(), T::zero(), u64::from(p.m) * u64::from(p.n))
        }
        None => (p.c, p.alpha, p.beta, 0),
    };
    let conj = u32::from(p.a.conj) | u32::from(p.b.conj) << 1;
    let arguments = parameters![
        p.m,
        p.n,
        p.k,
        p.a.address,
        p.a.strides.row,
        p.a.strides.col,
        p.b.address,
        p.b.strides.row,
        p.b.strides.col,
        alpha,
        beta,
        out.address,
        out.strides.row,
        out.strides.col,
        slot_len,
        conj,
        work,
    ];
    let [x, y, z] = choice.grid;
    // SAFETY: the entry's parameters are those of `arguments`, in number and type (`model`'s contract for every product
    // entry); they name memory that the caller vouches for.
    unsafe { launch(stream, kernel, (x, y, z), choice.threads, choice.shared_bytes, &arguments) }?;
    match adds {
        // SAFETY: the slots are those that the launch before this one, on the same stream, fills.
        Some(adds) => unsafe { sum_slots(stream, adds, slots, choice.splits, p) },
        None => Ok(()),
    }
}

/// C ← α A B + β C by an entry of two tall matrices, whose blocks finish as the choice says; `triangle` of a Gram matrix.
///
/// # Safety
/// As for [`product`]. `work` is the address of a workspace of the stream's alone, whose ticket is 0, with `choice.slots_len`
/// elements behind its head, if the choice has any; `adds` is the kernel that [`Finish::SecondLaunch`] asks for.
pub(crate) unsafe fn reduced<T: Scalar>(
    stream: &CudaStream,
    choice: &Choice,
    kernel: &Kernel,
    (work, adds): (u64, Option<&Kernel>),
    operands: Operands<T>,
    triangle: Triangle,
) -> Result<()> {
    let p = if choice.swapped { operands.transposed() } else { operands };
    let atomic = choice.variant.adds_atomically();
    let of_gram = (choice.variant.kernel == model::Kernel::Gram).then_some(triangle);
    let conj = u32::from(p.a.conj) | u32::from(p.b.conj) << 1;
    let finish = if atomic { Finish::Direct } else { choice.finish };
    let finish = reduced::codes(choice.variant, finish, triangle, p.m.into(), p.n.into());
    let arguments = parameters![
        p.m,
        p.n,
        p.k,
        p.a.address,
        p.a.strides.row,
        p.a.strides.col,
        p.b.address,
        p.b.strides.row,
        p.b.strides.col,
        p.alpha,
        p.beta,
        p.c.address,
        p.c.strides.row,
        p.c.strides.col,
        work,
        finish,
        conj,
    ];
    let [x, y, z] = choice.grid;
    // SAFETY: the entry's parameters are those of `arguments`, in number and type (`model`'s contract for every entry of two
    // tall matrices); they name memory that the caller vouches for.
    unsafe { launch(stream, kernel, (x, y, z), choice.threads, choice.shared_bytes, &arguments) }?;
    match adds {
        // SAFETY: the slots are those that the launch before this one, on the same stream, fills.
        Some(adds) if !atomic => unsafe { reduce_slots(stream, adds, work, choice.splits, p, of_gram) },
        _ => Ok(()),
    }
}

/// An operand of a batch: its first matrix, and the list of where all are, in elements from there; 0 where they are not
/// listed.
#[derive(Clone, Copy)]
pub(crate) struct BatchOperand {
    pub(crate) address: u64,
    pub(crate) list: u64,
}

/// C_i ← α A_i B_i + β C_i by the chosen entry.
///
/// # Safety
/// The context is current. The operands are batches in memory of the stream's context that lie as `choice` says; no two
/// elements of C share an address, and C overlaps neither A nor B.
pub(crate) unsafe fn batched<T: Scalar>(
    stream: &CudaStream,
    choice: &BatchedChoice,
    kernel: &Kernel,
    (alpha, beta): (T, T),
    [a, b, c]: [BatchOperand; 3],
) -> Result<()> {
    let p = &choice.problem;
    let [mut m, mut n, k, count] = [dim("m", p.m)?, dim("n", p.n)?, dim("k", p.k)?, dim("the batch", p.count)?];
    let (mut a, mut b) = (a, b);
    if choice.swapped {
        core::mem::swap(&mut m, &mut n);
        core::mem::swap(&mut a, &mut b);
    }
    let [of_a, of_b, of_c] = choice.sides;
    let arguments = parameters![
        m,
        n,
        k,
        count,
        choice.problems,
        choice.stages,
        a.address,
        a.list,
        of_a.stride,
        of_a.strides.row,
        of_a.strides.col,
        b.address,
        b.list,
        of_b.stride,
        of_b.strides.row,
        of_b.strides.col,
        alpha,
        beta,
        c.address,
        c.list,
        of_c.stride,
        of_c.strides.row,
        of_c.strides.col,
        choice.codes,
    ];
    // SAFETY: the entry's parameters are those of `arguments`, in number and type (`model`'s contract for every entry of a
    // batch); they name memory that the caller vouches for.
    unsafe { launch(stream, kernel, (choice.blocks, 1, 1), choice.threads, choice.shared_bytes, &arguments) }
}

fn dim(name: &str, value: u64) -> Result<u32> {
    dimension(name, crate::shape::narrow(value))
}

/// C ← α (sum of the `count` slots behind the workspace's head) + β C, or β C where there are none; of a Gram matrix the
/// triangle, from slots that have the lower one.
///
/// # Safety
/// As for [`sum_slots`].
pub(crate) unsafe fn reduce_slots<T: Scalar>(
    stream: &CudaStream,
    kernel: &Kernel,
    work: u64,
    count: u32,
    operands: Operands<T>,
    triangle: Option<Triangle>,
) -> Result<()> {
    let Operands { m, n, alpha, a, b, beta, c, .. } = operands;
    let threads = model::variants::SUM_SLOTS_THREADS;
    let blocks = blocks_for(m, n, reduced::REDUCE_ELEMENTS)?;
    let finish = triangle.map_or(0, |triangle| reduced::lower_code(triangle, a.conj != b.conj));
    let arguments = parameters![m, n, count, alpha, beta, c.address, c.strides.row, c.strides.col, work, finish];
    let shared_bytes = reduced::reduce_bytes(T::DTYPE.bytes());
    // SAFETY: `arguments` are what the `reduce_slots` entries take, in number and type; C and the workspace with its
    // slots are there, as the caller promised.
    unsafe { launch(stream, kernel, (blocks, 1, 1), threads, shared_bytes, &arguments) }
}

/// C ← α (sum of the first `count` slots, in order) + β C; A and B are not looked at. With `count` = 0 it is C ← β C.
///
/// # Safety
/// The context is current. C is m x n memory of the stream's context; `slots` has `count` column-major m x n matrices.
pub(crate) unsafe fn sum_slots<T: Scalar>(
    stream: &CudaStream,
    kernel: &Kernel,
    slots: u64,
    count: u32,
    operands: Operands<T>,
) -> Result<()> {
    let Operands { m, n, alpha, beta, c, .. } = operands;
    let threads = model::variants::SUM_SLOTS_THREADS;
    let blocks = blocks_for(m, n, threads)?;
    let arguments = parameters![m, n, slots, count, alpha, beta, c.address, c.strides.row, c.strides.col];
    // SAFETY: `arguments` are what the `sum_slots` entries take, in number and type; C and the slots are there, as the
    // caller promised.
    unsafe { launch(stream, kernel, (blocks, 1, 1), threads, 0, &arguments) }
}

/// Blocks for an m x n result, each of so many elements; refused where a grid has not so many.
fn blocks_for(m: u32, n: u32, each: u32) -> Result<u32> {
    let blocks = (u64::from(m) * u64::from(n)).div_ceil(u64::from(each));
    match u32::try_from(blocks) {
        Ok(blocks) if u64::from(blocks) <= model::launch::GRID_X => Ok(blocks),
        _ => Err(crate::Error::Unsupported { what: format!("a result of {m} x {n} elements on a GPU") }),
    }
}

/// Moves `words` 16-byte words by an entry of `ceiling::memory`, whose parameters are the words and one or two addresses.
///
/// # Safety
/// The context is current. The addresses are as many as the entry has, each of what its documentation says.
pub(crate) unsafe fn memory_ceiling(
    stream: &CudaStream,
    kernel: &Kernel,
    blocks: u32,
    words: u64,
    addresses: &[u64],
) -> Result<()> {
    let mut arguments = vec![(&raw const words).cast_mut().cast::<c_void>()];
    arguments.extend(addresses.iter().map(|address| (&raw const *address).cast_mut().cast::<c_void>()));
    // SAFETY: `arguments` are the words and as many addresses as the entry has, each of memory that its documentation
    // asks for, as the caller promised.
    unsafe { launch(stream, kernel, (blocks, 1, 1), model::variants::CEILING_THREADS, 0, &arguments) }
}

/// Multiplies by an entry of `ceiling::arithmetic`.
///
/// # Safety
/// The context is current. `out` has an element a thread, of the entry's type, which is T.
pub(crate) unsafe fn arithmetic_ceiling<T: Scalar>(
    stream: &CudaStream,
    kernel: &Kernel,
    blocks: u32,
    rounds: u32,
    x: T,
    out: u64,
) -> Result<()> {
    let arguments = parameters![rounds, x, out];
    // SAFETY: `arguments` are what every entry of `ceiling::arithmetic` takes: rounds, a factor of its type T, and
    // `out`, which has an element a thread, as the caller promised.
    unsafe { launch(stream, kernel, (blocks, 1, 1), model::variants::CEILING_THREADS, 0, &arguments) }
}

/// # Safety
/// The context is current, and the arguments are the entry's, naming memory of that context.
unsafe fn launch(
    stream: &CudaStream,
    kernel: &Kernel,
    grid: (u32, u32, u32),
    threads: u32,
    shared_bytes: u32,
    arguments: &[*mut c_void],
) -> Result<()> {
    let function = kernel.function(shared_bytes)?;
    // Nothing runs while the stream is recorded, and to wait would spoil the recording. Asked before the launch: what work
    // before it did is not this kernel's.
    let waits = stream.gpu.synchronous && !driver::is_capturing(&stream.raw)?;
    // SAFETY: the context is current, and the arguments are the entry's and name memory of that context, as the caller
    // promised; `function` let blocks have `shared_bytes`, and its module stays loaded, as its GPU keeps every kernel till
    // the process ends.
    unsafe { stream.raw.launch(&function, grid, threads, shared_bytes, arguments) }
        .map_err(|error| driver::launch_failed(error, kernel.entry))?;
    if waits {
        stream.raw.synchronize().map_err(|error| driver::launch_failed(error, kernel.entry))?;
    }
    Ok(())
}

/// 32 bits of a dimension that the choice of a kernel has checked.
pub(crate) fn dimension(name: &str, value: usize) -> Result<u32> {
    u32::try_from(value).map_err(|_| crate::Error::Unsupported {
        what: format!("{name} = {} on a GPU, whose kernels count up to {}", wide(value), u32::MAX),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_has_no_more_blocks_than_there_are() {
        let most = u32::try_from(model::launch::GRID_X).expect("32 bits");
        assert_eq!(blocks_for(256, most, 256).ok(), Some(most));
        assert_eq!(blocks_for(3, 5, 4).ok(), Some(4));
        for (m, n) in [(256, most + 1), (1 << 20, 1 << 20), (u32::MAX, u32::MAX)] {
            assert!(matches!(blocks_for(m, n, 256), Err(crate::Error::Unsupported { .. })), "{m} x {n}");
        }
    }
}
