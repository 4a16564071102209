//! A case as it lies in memory: products of one shape, one or many, of real or complex numbers.

use model::roofline::{Bound, Rates, bound_at};
use model::{Dtype, Problem, Strides, span};

/// Products C <- op(A) op(B) + beta C, each member behind the one before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Job {
    /// One of them; its element type is that of the real parts, its strides count elements.
    pub problem: Problem,
    /// Reals an element: 2 of a complex one, the imaginary part behind the real one.
    pub reals: u64,
    /// How many products.
    pub batch: u64,
    /// Elements from one member's A, B and C to the next one's.
    pub steps: [u64; 3],
    /// Whether both factors are one stored matrix, as in a Gram matrix: A's.
    pub shares_a: bool,
}

impl Job {
    /// One product of real numbers.
    #[cfg(test)]
    pub fn single(problem: Problem) -> Self {
        Self { problem, reals: 1, batch: 1, steps: [0; 3], shares_a: false }
    }

    /// The same, which may be multiplied in parts, or not.
    pub fn split(self, splits_f32: bool) -> Self {
        Self { problem: Problem { splits_f32, ..self.problem }, ..self }
    }

    /// Whether it is one product of real numbers.
    pub fn is_single_real(&self) -> bool {
        self.reals == 1 && self.batch == 1
    }

    /// One of the products as the model sees it, of elements: its element type is theirs.
    pub fn of_elements(&self) -> Problem {
        let dtype = match (self.problem.dtype, self.reals) {
            (Dtype::F32, 2) => Dtype::C64,
            (Dtype::F64, 2) => Dtype::C128,
            (dtype, _) => dtype,
        };
        Problem { dtype, ..self.problem }
    }

    /// Strides of op(A), op(B) and C.
    pub fn strides(&self) -> [Strides; 3] {
        [self.problem.a, self.problem.b, self.problem.c]
    }

    /// Reals from the first to the last of a member's op(A), op(B) and C. `None` beyond 64 bits.
    pub fn member_reals(&self) -> Option<[u64; 3]> {
        let p = &self.problem;
        let spans = [span(p.m, p.k, p.a)?, span(p.k, p.n, p.b)?, span(p.m, p.n, p.c)?];
        let [a, b, c] = spans.map(|span| span.checked_mul(self.reals));
        Some([a?, b?, c?])
    }

    /// The same of all members.
    pub fn all_reals(&self) -> Option<[u64; 3]> {
        let last = self.batch.saturating_sub(1);
        let mut all = self.member_reals()?;
        for (reals, step) in all.iter_mut().zip(self.steps) {
            *reals = reals.checked_add(last.checked_mul(step)?.checked_mul(self.reals)?)?;
        }
        Some(all)
    }

    /// The place of an element's real part, in reals from the first member's first.
    pub fn place(&self, operand: usize, member: u64, i: u64, j: u64) -> u64 {
        let strides = self.strides()[operand];
        self.reals * (member * self.steps[operand] + i * strides.row + j * strides.col)
    }

    /// Bytes from a member's op(A), op(B) and C to the next one's.
    pub fn step_bytes(&self) -> [u64; 3] {
        self.steps.map(|step| step * self.element_bytes())
    }

    pub fn element_bytes(&self) -> u64 {
        self.reals * self.problem.dtype.bytes()
    }

    /// Of all members: a complex multiply-add is four real ones. Where both factors are one matrix, it is read once, and one
    /// triangle of C says all.
    pub fn bound(&self, rates: &Rates, reads_c: bool) -> Bound {
        let one = bound_at(&Problem { gram: self.shares_a, ..self.problem }, rates, reads_c);
        let moved = self.reals.saturating_mul(self.batch);
        let computed = self.reals.saturating_mul(moved) as f64;
        Bound {
            read_bytes: one.read_bytes.saturating_mul(moved),
            write_bytes: one.write_bytes.saturating_mul(moved),
            flops: one.flops * computed,
            memory_s: one.memory_s * moved as f64,
            arithmetic_s: one.arithmetic_s * computed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_and_complex_numbers_are_bounded_as_a_hand_finds() {
        // A 4 x 3, B 3 x 2, C 4 x 2: 18 elements read, 8 written, 24 multiply-adds; of c64 and ten times.
        let problem = Problem::column_major(Dtype::F32, 4, 2, 3);
        let job = Job { reals: 2, batch: 10, steps: [12, 6, 8], ..Job::single(problem) };
        let rates =
            Rates { read_bytes_per_s: 400.0, write_bytes_per_s: 320.0, copy_bytes_per_s: 640.0, fma_per_s: 96.0 };
        let b = job.bound(&rates, false);
        assert_eq!((b.read_bytes, b.write_bytes, b.flops), (1440, 640, 1920.0));
        assert_eq!((b.memory_s, b.arithmetic_s, b.seconds()), (4.0, 10.0, 10.0));
        assert_eq!(Job::single(problem).bound(&rates, true), bound_at(&problem, &rates, true));
        // The model counts complex elements as a whole.
        let one = Job { batch: 1, ..job };
        assert_eq!(one.bound(&rates, true), bound_at(&one.of_elements(), &rates, true));
    }

    /// A 100 x 4, C = AᵀA 4 x 4: 400 elements read, 16 written, and 10 sums of 100 products.
    #[test]
    fn a_gram_matrix_reads_its_factor_once() {
        let problem = Problem { a: Strides::row_major(100), ..Problem::column_major(Dtype::F64, 4, 4, 100) };
        let job = Job { shares_a: true, ..Job::single(problem) };
        let rates =
            Rates { read_bytes_per_s: 256.0, write_bytes_per_s: 32.0, copy_bytes_per_s: 128.0, fma_per_s: 100.0 };
        let b = job.bound(&rates, false);
        assert_eq!((b.read_bytes, b.write_bytes, b.flops), (3200, 128, 2000.0));
        assert_eq!((b.memory_s, b.arithmetic_s), (14.0, 10.0));
    }

    #[test]
    fn members_lie_behind_each_other() {
        let problem = Problem { a: Strides::row_major(5), ..Problem::column_major(Dtype::F64, 4, 2, 3) };
        let job = Job { reals: 2, batch: 3, steps: [20, 6, 8], ..Job::single(problem) };
        assert_eq!(job.member_reals(), Some([36, 12, 16]));
        assert_eq!(job.all_reals(), Some([116, 36, 48]));
        assert_eq!((job.place(0, 2, 3, 2), job.place(2, 1, 1, 1)), (2 * (40 + 17), 2 * (8 + 5)));
        assert_eq!(job.step_bytes(), [320, 96, 128]);
        assert_eq!(Job { steps: [u64::MAX, 0, 0], ..job }.all_reals(), None);
    }
}
