//! Batches by cuBLAS: members a fixed distance apart, or each behind a pointer of an array on the device.

use std::collections::HashMap;
use std::ffi::{c_int, c_longlong};
use std::rc::Rc;

use lanky::{Layout, Matrix, Stream};

use super::super::blas::{self, Gemm};
use super::super::{Opponent, Product, failed};
use super::{Call, Cublas, status};
use crate::bench::contest::Run;
use crate::bench::data::Addresses;
use crate::bench::job::Job;
use crate::made_up::wide;

/// A batch in BLAS's words.
pub struct Words {
    gemm: Gemm,
    count: c_int,
}

impl Words {
    /// `None` where lengths are beyond BLAS, and for a single product, which is ?gemm's.
    fn of(job: &Job) -> Option<Self> {
        let count = c_int::try_from(job.batch).ok().filter(|count| *count > 1)?;
        Some(Self { gemm: blas::gemm(&job.problem)?, count })
    }
}

/// cublas?gemmStridedBatched.
pub struct Strided(pub Rc<Cublas>);

impl Opponent for Strided {
    fn name(&self) -> &str {
        "cublas-strided"
    }

    fn prepare<'s>(&'s self, product: Product<'s>) -> Option<Box<dyn Run + 's>> {
        let words = Words::of(&product.job)?;
        let [a, b, c] = product.job.steps.map(c_longlong::try_from);
        let steps = [a.ok()?, b.ok()?, c.ok()?];
        Some(Box::new(Call::new(&self.0, (words, steps), &product)))
    }
}

impl Run for Call<'_, (Words, [c_longlong; 3])> {
    unsafe fn enqueue(&mut self, at: Addresses) -> lanky::Result<()> {
        let (Words { gemm, count }, [step_a, step_b, step_c]) = &self.words;
        let Gemm { swapped, transpose_a, transpose_b, m, n, k, lda, ldb, ldc } = *gemm;
        let (a, step_a, b, step_b) =
            if swapped { (at.b, *step_b, at.a, *step_a) } else { (at.a, *step_a, at.b, *step_b) };
        let (alpha, beta) = (self.factors.alpha(), self.factors.beta());
        let strided = self.cublas.strided[self.factors.place()];
        let (op_a, op_b) = (c_int::from(transpose_a), c_int::from(transpose_b));
        let (handle, c) = (self.cublas.handle, at.c);
        // SAFETY: the batch that `words` says lies at `at` until the work is done, as `enqueue`'s caller promised.
        let code = unsafe {
            strided(handle, op_a, op_b, m, n, k, alpha, a, lda, step_a, b, ldb, step_b, beta, c, ldc, *step_c, *count)
        };
        status("cublas?gemmStridedBatched", code)
    }
}

/// cublas?gemmBatched.
pub struct Batched(pub Rc<Cublas>);

impl Opponent for Batched {
    fn name(&self) -> &str {
        "cublas-batched"
    }

    fn prepare<'s>(&'s self, product: Product<'s>) -> Option<Box<dyn Run + 's>> {
        let words = Words::of(&product.job)?;
        let pointers = Pointers { job: product.job, arrays: None, places: HashMap::new() };
        Some(Box::new(Call::new(&self.0, (words, pointers), &product)))
    }
}

/// Arrays of pointers to all members, for every place that the data may be at.
pub struct Pointers {
    job: Job,
    /// For each place the pointers to A, to B and to C. Bits of addresses, which nobody takes for numbers.
    arrays: Option<Matrix<f64>>,
    places: HashMap<Addresses, u64>,
}

impl Pointers {
    /// Makes them for these places alone.
    ///
    /// # Errors
    /// If they take more than half of the memory that is free.
    fn make(&mut self, stream: &Stream, all: &[Addresses]) -> lanky::Result<()> {
        let refused = |bytes: String| failed("cublas?gemmBatched", format!("no room for {bytes} bytes of pointers"));
        self.arrays = None;
        self.places = all.iter().zip(0..).map(|(at, place)| (*at, place)).collect();
        let (free, _) = stream.device().memory()?;
        let bytes = wide(all.len()).checked_mul(3 * 8).and_then(|bytes| bytes.checked_mul(self.job.batch));
        let bytes = bytes.ok_or_else(|| refused("too many".into()))?;
        if bytes > free / 2 {
            return Err(refused(bytes.to_string()));
        }
        let len = usize::try_from(bytes / 8).map_err(|_| refused(bytes.to_string()))?;
        let (batch, steps) = (self.job.batch, self.job.step_bytes());
        let bases: Vec<[u64; 3]> = all.iter().map(|at| [at.a, at.b, at.c]).collect();
        let mut next = 0_u64;
        let mut fill = |bits: &mut [f64]| {
            for bits in bits {
                // The member moves fastest, then the operand, then the place.
                let (member, operand, place) = (next % batch, next / batch % 3, next / batch / 3);
                let [operand, place] = [operand, place].map(|index| usize::try_from(index).unwrap_or(0));
                *bits = f64::from_bits(bases[place][operand] + member * steps[operand]);
                next += 1;
            }
            Ok(())
        };
        self.arrays = Some(stream.device().upload_with(stream, len, 1, Layout::ColumnMajor, &mut fill)?);
        stream.synchronize()
    }

    /// Addresses of the three arrays for the data at this place.
    fn at(&self, at: &Addresses) -> lanky::Result<[u64; 3]> {
        let unknown = || failed("cublas?gemmBatched", "no pointers for this data");
        let arrays = self.arrays.as_ref().ok_or_else(unknown)?;
        let place = self.places.get(at).ok_or_else(unknown)?;
        let first = arrays.view().as_raw();
        Ok([0, 1, 2].map(|operand| first + 8 * self.job.batch * (3 * place + operand)))
    }
}

impl Run for Call<'_, (Words, Pointers)> {
    fn ready(&mut self, stream: &Stream, all: &[Addresses]) -> lanky::Result<()> {
        self.words.1.make(stream, all)
    }

    unsafe fn enqueue(&mut self, at: Addresses) -> lanky::Result<()> {
        let (Words { gemm, count }, pointers) = &self.words;
        let Gemm { swapped, transpose_a, transpose_b, m, n, k, lda, ldb, ldc } = *gemm;
        let [a, b, c] = pointers.at(&at)?;
        let (a, b) = if swapped { (b, a) } else { (a, b) };
        let (alpha, beta) = (self.factors.alpha(), self.factors.beta());
        let batched = self.cublas.batched[self.factors.place()];
        let (op_a, op_b) = (c_int::from(transpose_a), c_int::from(transpose_b));
        let handle = self.cublas.handle;
        // SAFETY: the caller's memory, of the batch that `words` says, and the arrays that point into it; they live until
        // others are made for other places, which is not before the stream has been waited for.
        let code = unsafe { batched(handle, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, *count) };
        status("cublas?gemmBatched", code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanky::Device;
    use model::{Dtype, Problem};

    #[test]
    fn every_member_of_every_place_has_its_pointers() -> lanky::Result<()> {
        let stream = Device::cpu().stream()?;
        let single = Job::single(Problem::column_major(Dtype::F32, 2, 2, 2));
        let job = Job { reals: 2, batch: 3, steps: [4, 5, 6], ..single };
        let mut pointers = Pointers { job, arrays: None, places: HashMap::new() };
        let places = [100, 1000].map(|a| Addresses { a, b: a + 7, c: a + 9 });
        assert!(pointers.at(&places[0]).is_err());
        pointers.make(&stream, &places)?;
        let first = pointers.at(&places[0])?[0];
        assert_eq!(pointers.at(&places[1])?, [first + 72, first + 96, first + 120]);
        assert!(pointers.at(&Addresses { a: 1, ..places[0] }).is_err());
        let arrays = pointers.arrays.as_ref().map(|all| (0..18).map(|at| all.get(at, 0).map(f64::to_bits)));
        let arrays: Vec<Option<u64>> = arrays.into_iter().flatten().collect();
        // A complex f32 has 8 bytes.
        let of_one = |a: u64| [a, a + 32, a + 64, a + 7, a + 47, a + 87, a + 9, a + 57, a + 105];
        let expected: Vec<Option<u64>> = [100, 1000].into_iter().flat_map(of_one).map(Some).collect();
        assert_eq!(arrays, expected);
        Ok(())
    }

    #[test]
    fn a_single_product_is_no_batch() {
        let job = Job::single(Problem::column_major(Dtype::F32, 2, 2, 2));
        assert!(Words::of(&job).is_none() && Words::of(&Job { batch: 1 << 31, ..job }).is_none());
        assert!(Words::of(&Job { batch: 5, ..job }).is_some_and(|words| words.count == 5));
    }
}
