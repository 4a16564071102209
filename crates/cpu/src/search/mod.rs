//! The search of MAGMA's authors: every loop order and blocking of one product, by name, and which of them are worth a try.
//!
//! C is cut into blocks of `rows` x `cols`, and the sum into windows of `steps`. Three loops go over the blocks and the windows,
//! in any order; where the windows are the innermost one, the sums of a block stay in registers throughout, else they are put
//! by between windows. Inside a window either a vector of A meets all columns before the next one (by rows), or an element of B all vectors (by
//! columns). The next product is asked for between windows, or not.
//!
//! For those who search (feature `search`): what [`crate::gemm_batched`] does was found so, and by reading what the
//! compiler makes of it.
//!
//! Source: the CPU rows of the paper on batched small products (its sections 4 and 6); registers of A, B and C are said there, the other
//! counts here follow from blocks and vectors.

mod kernel;
mod trial;

use crate::job::Job;
use crate::route::{Instructions, share};
use crate::simd::{Portable, Simd};
use crate::{Batch, Element, MOST};
use std::fmt;
use std::ops::Range;
use std::str::FromStr;
pub use trial::Trial;

#[cfg(target_arch = "x86_64")]
use crate::simd::Avx2;
#[cfg(all(target_arch = "x86_64", has_avx512))]
use crate::simd::Avx512;

/// The loops over blocks of rows (i), blocks of columns (j) and windows of the sum (l), the outermost first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// i, j, l
    Ijl,
    /// j, i, l
    Jil,
    /// i, l, j
    Ilj,
    /// j, l, i
    Jli,
    /// l, i, j
    Lij,
    /// l, j, i
    Lji,
}

impl Order {
    /// All six.
    pub const ALL: [Order; 6] = [Order::Ijl, Order::Jil, Order::Ilj, Order::Jli, Order::Lij, Order::Lji];

    const fn name(self) -> &'static str {
        match self {
            Order::Ijl => "ijl",
            Order::Jil => "jil",
            Order::Ilj => "ilj",
            Order::Jli => "jli",
            Order::Lij => "lij",
            Order::Lji => "lji",
        }
    }

    /// Whether the sums of a block stay in registers from the first step to the last.
    pub const fn keeps_sums(self) -> bool {
        matches!(self, Order::Ijl | Order::Jil)
    }
}

/// A kernel: blocks, windows, and loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocking {
    /// Rows of a block.
    pub rows: usize,
    /// Columns of a block.
    pub cols: usize,
    /// Steps of a window; where [`Order::keeps_sums`] there is one of all, and this is [`MOST`].
    pub steps: usize,
    /// The loops over them.
    pub order: Order,
    /// Whether a window's inner loops go along the columns for each vector of rows, and not the other way round.
    pub by_rows: bool,
    /// Whether the next product is asked for.
    pub asks: bool,
}

/// Most columns of a block.
const MOST_COLUMNS: usize = 8;
/// Most vectors along the rows of a block.
const MOST_VECTORS: usize = 4;
/// Steps of a window.
const STEPS: [usize; 5] = [1, 2, 4, 8, 16];

/// Why a kernel is not worth a try.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// Its rows are no whole number of vectors: A and C would be loaded and stored by elements.
    Elements,
    /// A block and what it is multiplied by need more registers than there are.
    Registers {
        /// Needed.
        needed: usize,
        /// There are.
        there: usize,
    },
    /// It uses less than half of the registers, though the product has work for more: its multiply-adds wait for each other.
    Idle {
        /// Used.
        used: usize,
    },
    /// Its blocks, or its windows, are more than half empty, whatever the product: a smaller one does the same.
    Empty,
}

impl Blocking {
    /// Every kernel for vectors of so many elements: 11 264 for four.
    pub fn all(lanes: usize) -> impl Iterator<Item = Blocking> {
        let sizes = (1..=MOST_VECTORS * lanes).flat_map(|rows| (1..=MOST_COLUMNS).map(move |cols| (rows, cols)));
        let loops = move |(rows, cols)| {
            let steps = |order: Order| if order.keeps_sums() { &[MOST][..] } else { &STEPS };
            let orders =
                Order::ALL.into_iter().flat_map(move |order| steps(order).iter().map(move |&steps| (order, steps)));
            let both = [(false, false), (false, true), (true, false), (true, true)];
            orders.flat_map(move |(order, steps)| {
                both.map(move |(by_rows, asks)| Blocking { rows, cols, steps, order, by_rows, asks })
            })
        };
        sizes.flat_map(loops)
    }

    /// Those that are worth a try for m x k by k x n.
    pub fn kept(instructions: Instructions, bytes: usize, (m, n, k): (usize, usize, usize)) -> Vec<Blocking> {
        let (lanes, registers) = instructions.vectors(bytes);
        Self::all(lanes).filter(|one| one.dropped((lanes, registers), (m, n, k)).is_none()).collect()
    }

    /// Why it is not worth a try for m x k by k x n, on a CPU with so many registers of so many lanes.
    pub fn dropped(&self, (lanes, registers): (usize, usize), (m, n, k): (usize, usize, usize)) -> Option<Dropped> {
        if self.rows % lanes != 0 {
            return Some(Dropped::Elements);
        }
        let vectors = self.rows / lanes;
        // Its sums, and of A and B what the inner loops keep: all of one, one of the other.
        let used = vectors * self.cols + 1 + if self.by_rows { self.cols } else { vectors };
        if used > registers {
            return Some(Dropped::Registers { needed: used, there: registers });
        }
        let too_large = |size: usize, whole: usize| size > 1 && size >= 2 * whole;
        if too_large(vectors, m.div_ceil(lanes))
            || too_large(self.cols, n)
            || (!self.order.keeps_sums() && too_large(self.steps, k))
        {
            return Some(Dropped::Empty);
        }
        let could_use = (m.div_ceil(lanes) * n).min(registers);
        (2 * used < could_use).then_some(Dropped::Idle { used })
    }
}

/// `loops_16x6x8_jli_by_rows_asking`
impl fmt::Display for Blocking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Blocking { rows, cols, steps, order, by_rows, asks } = *self;
        let inner = if by_rows { "by_rows" } else { "by_cols" };
        write!(f, "loops_{rows}x{cols}x{steps}_{}_{inner}{}", order.name(), if asks { "_asking" } else { "" })
    }
}

/// No kernel has that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownName;

impl FromStr for Blocking {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        let parse = || {
            let mut words = name.strip_prefix("loops_")?.splitn(3, '_');
            let mut sizes = words.next()?.splitn(3, 'x').map(|size| size.parse::<usize>().ok());
            let (rows, cols, steps) = (sizes.next()??, sizes.next()??, sizes.next()??);
            let order = words.next()?;
            let order = Order::ALL.into_iter().find(|one| one.name() == order)?;
            let (inner, asks) = match words.next()?.strip_suffix("_asking") {
                Some(inner) => (inner.to_owned(), true),
                None => (name.rsplit_once(order.name())?.1.strip_prefix('_')?.to_owned(), false),
            };
            let by_rows = match inner.as_str() {
                "by_rows" => true,
                "by_cols" => false,
                _ => return None,
            };
            Some(Blocking { rows, cols, steps, order, by_rows, asks })
        };
        // One that is written otherwise, as 08, is another name.
        parse().filter(|found| found.to_string() == name).ok_or(UnknownName)
    }
}

/// C_i ← α A_i B_i + β C_i by that kernel, the rows of A and C next to each other. Where `blocking` does not suit the
/// instructions, the nearest block does that does: it is for those that [`Blocking::kept`] gives.
///
/// # Panics
/// As [`crate::gemm_batched_with`], and if rows of A or C are not next to each other, α or β is not real, or an element is complex.
///
/// # Safety
/// As [`crate::gemm_batched_with`].
pub unsafe fn gemm_batched_by<T: Element>(instructions: Instructions, blocking: Blocking, batch: &Batch<T>) {
    assert!(T::PARTS == 1 && batch.a.row == 1 && batch.c.row == 1, "rows next to each other, of real numbers");
    assert!(batch.m.max(batch.n).max(batch.k) <= MOST, "{} x {} x {}", batch.m, batch.n, batch.k);
    if batch.m == 0 || batch.n == 0 || batch.k == 0 || batch.count == 0 {
        // SAFETY: what this is promised is what `gemm_batched_with` asks for.
        return unsafe { crate::gemm_batched_with(instructions, batch) };
    }
    let job = Job::as_given(batch);
    share(job.count, job.bytes(1), &|range| {
        // SAFETY: the range is of the batch (`share`), the rest what the caller promised; each range is one thread's.
        unsafe { T::Part::products_by(instructions, &blocking, &job, range) }
    });
}

/// The kernels of the search, of a real type.
pub trait Searched: crate::simd::Real {
    /// A range of the batch, on this thread.
    ///
    /// # Safety
    /// As [`gemm_batched_by`].
    unsafe fn products_by(instructions: Instructions, blocking: &Blocking, job: &Job<Self>, range: Range<usize>);
}

macro_rules! searched {
    ($($real:ty: $lanes:literal;)*) => {$(
        impl Searched for $real {
            unsafe fn products_by(
                instructions: Instructions,
                blocking: &Blocking,
                job: &Job<$real>,
                range: Range<usize>,
            ) {
                // SAFETY: `instructions` are the CPU's and the range's matrices there, as the caller promised; each arm
                // has the vectors of its instructions.
                unsafe {
                    match instructions {
                        #[cfg(target_arch = "x86_64")]
                        Instructions::Avx2 => kernel::products::<Avx2<$real>>(blocking, job, range),
                        #[cfg(all(target_arch = "x86_64", has_avx512))]
                        Instructions::Avx512 => kernel::products::<Avx512<$real>>(blocking, job, range),
                        _ => kernel::products::<Portable<$real, $lanes>>(blocking, job, range),
                    }
                }
            }
        }
    )*};
}
searched! { f32: 4; f64: 2; }

impl Instructions {
    /// Elements of so many bytes in a vector, and vectors that the CPU holds.
    pub fn vectors(self, bytes: usize) -> (usize, usize) {
        fn of<S: Simd>(bytes: usize) -> (usize, usize) {
            (size_of::<S::Vector>() / bytes, S::REGISTERS)
        }
        match self {
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2 => of::<Avx2<f64>>(bytes),
            #[cfg(all(target_arch = "x86_64", has_avx512))]
            Instructions::Avx512 => of::<Avx512<f64>>(bytes),
            _ => of::<Portable<f64, 2>>(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_kernel() {
        for one in Blocking::all(4) {
            assert_eq!(one.to_string().parse(), Ok(one));
        }
        for wrong in
            ["", "loops_8x4x8_jil", "loops_8x4_jil_by_rows", "loops_08x4x8_jil_by_rows", "loops_8x4x8_jil_by_rows_"]
        {
            assert_eq!(wrong.parse::<Blocking>(), Err(UnknownName), "{wrong}");
        }
        let one = Blocking { rows: 16, cols: 6, steps: 8, order: Order::Jli, by_rows: true, asks: true };
        assert_eq!(one.to_string(), "loops_16x6x8_jli_by_rows_asking");
    }

    /// Of ten thousand and more about a thousand is left; in the paper it was 1812.
    #[test]
    fn what_has_no_chance_is_dropped() {
        for (lanes, registers) in [(2, 16), (4, 16), (8, 16), (8, 32), (16, 32)] {
            let all = Blocking::all(lanes).count();
            let cpu = (lanes, registers);
            let kept: Vec<_> = Blocking::all(lanes).filter(|one| one.dropped(cpu, (32, 32, 32)).is_none()).collect();
            assert!(
                (700..1900).contains(&kept.len()) && 5 * kept.len() < all,
                "{lanes} lanes: {} of {all}",
                kept.len()
            );
            assert!(kept.iter().all(|one| one.rows % lanes == 0));
        }
        let one = Blocking { rows: 8, cols: 6, steps: 8, order: Order::Ijl, by_rows: false, asks: false };
        let avx2 = |one: Blocking| one.dropped((4, 16), (32, 32, 32));
        assert_eq!(avx2(one), None);
        assert_eq!(avx2(Blocking { rows: 7, ..one }), Some(Dropped::Elements));
        assert_eq!(avx2(Blocking { rows: 12, ..one }), Some(Dropped::Registers { needed: 22, there: 16 }));
        assert_eq!(avx2(Blocking { rows: 4, cols: 3, ..one }), Some(Dropped::Idle { used: 5 }));
        assert_eq!(one.dropped((4, 16), (4, 32, 32)), Some(Dropped::Empty));
        // A small product has no work for more registers.
        assert_eq!(Blocking { rows: 4, cols: 3, ..one }.dropped((4, 16), (4, 3, 8)), None);
    }
}
