//! The run of a kernel whose blocks finish C themselves, with a workspace of a ticket and slots.

use bytemuck::Pod;
use kernels::table::{self, Element};
use model::launch::reduced::{Finish, REDUCE_ELEMENTS, Triangle, WORK_HEAD_BYTES, codes, finish, reduce_bytes};
use model::launch::tiling;
use model::variants::{SUM_SLOTS_THREADS, reduce_slots};
use model::{Dtype, Strides};
use simt::{Buffer, Counters, Launch, Memory};

use super::emulate::{Request, fault, len};
use crate::error::Fault;

/// A, B and C in the emulator's memory, each with its strides.
pub struct Operands<T> {
    pub a: (Buffer<T>, Strides),
    pub b: (Buffer<T>, Strides),
    pub c: (Buffer<T>, Strides),
}

impl Request {
    /// The kernel, and where many slots are to be added the launch that adds them.
    pub fn run_finishing<T: Element + Pod>(
        &self,
        memory: &mut Memory,
        operands: &Operands<T>,
        (alpha, beta): (T, T),
        launch: Launch,
    ) -> Result<(Counters, Option<Counters>), Fault> {
        let (m, n, k, splits) = (self.m, self.n, self.k, self.splits);
        let Some(entry) = table::reduced(self.variant.entry).and_then(T::of_reduced) else {
            return Err(Fault::Input(format!("{} is not among the kernels of this program", self.variant.entry)));
        };
        let dtype: Dtype = self.variant.dtype;
        let slots = if splits > 1 { u64::from(m) * u64::from(n) * u64::from(splits) } else { 0 };
        let head = u64::from(WORK_HEAD_BYTES) / dtype.bytes();
        let work = memory.inout("slots", &vec![T::ZERO; len(head + slots)]);
        let how = finish(&tiling(self.variant, m.into(), n.into()), m.into(), n.into(), splits, dtype.bytes());
        let told = codes(self.variant, how, Triangle::Full, m.into(), n.into());
        let Operands { a: (a, sa), b: (b, sb), c: (c, sc) } = operands;
        let outcome = launch.run(memory, |operands| {
            let (a, b, c) = (operands.global(*a), operands.global(*b), operands.global(*c));
            let work = operands.global(work);
            let (sa, sb, sc) = ((sa.row, sa.col), (sb.row, sb.col), (sc.row, sc.col));
            // SAFETY: the operands span their elements, and the geometry is that of the entry's row.
            unsafe {
                entry(m, n, k, a, sa.0, sa.1, b, sb.0, sb.1, alpha, beta, c, sc.0, sc.1, work, told, 0);
            }
        });
        let counters = outcome.map_err(fault)?;
        if how != Finish::SecondLaunch {
            return Ok((counters, None));
        }
        let (grid, block) = ([(m * n).div_ceil(REDUCE_ELEMENTS), 1, 1], [SUM_SLOTS_THREADS, 1, 1]);
        let (kernel, shared_bytes) = (reduce_slots(dtype), reduce_bytes(dtype.bytes()));
        let launch = Launch { kernel, grid, block, shared_bytes, step_limit: u64::MAX, ..Launch::default() };
        let outcome = launch.run(memory, |operands| {
            let (c, work) = (operands.global(*c), operands.global(work));
            // SAFETY: the grid covers C, and the operands span their elements.
            unsafe { T::REDUCE_SLOTS(m, n, splits, alpha, beta, c, sc.row, sc.col, work, how.code()) };
        });
        Ok((counters, Some(outcome.map_err(fault)?)))
    }
}
