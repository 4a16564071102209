//! MAGMA's batches of small products: their bound, how many share a block, and the blocking of the larger ones.
//!
//! # Source
//! I. Masliah, A. Abdelfattah, A. Haidar, S. Tomov, M. Baboulin, J. Falcou, J. Dongarra, Algorithms and optimization
//! techniques for high-performance matrix-matrix multiplications of very small matrices, Parallel Comput. 81 (2019).
//! C_i = α A_i B_i + β C_i, square, n up to 32. Its β of bandwidth is spelled out; its general forms are ours where said.

/// One product of a batch: C (m x n) = α A (m x k) B (k x n) + β C.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Product {
    /// Rows of A and C.
    pub m: u32,
    /// Columns of B and C.
    pub n: u32,
    /// Columns of A, rows of B.
    pub k: u32,
    /// ρ: bytes an element.
    pub elem_bytes: u32,
    /// Operations of a multiply-add: 2, 8 where complex.
    pub fma_flops: u32,
    /// Whether C is read: β is not 0.
    pub reads_c: bool,
}

impl Product {
    /// A square product of n x n matrices in f64 that reads C, as in the paper's figures.
    pub const fn square_f64(n: u32) -> Product {
        Product { m: n, n, k: n, elem_bytes: 8, fma_flops: 2, reads_c: true }
    }

    /// Operations: 2mnk, of complex types 8mnk.
    ///
    /// # Source
    /// MAGMA, Section 3, of square products in real types: 2n³; the rest is ours.
    pub fn flops(&self) -> f64 {
        f64::from(self.fma_flops) * f64::from(self.m) * f64::from(self.n) * f64::from(self.k)
    }

    /// Bytes: ρ(mk + kn + 2mn), one mn less where C is not read. Square: 4n²ρ.
    ///
    /// # Source
    /// MAGMA, Section 3, of square products that read C; the rest is ours.
    pub fn bytes(&self) -> f64 {
        let (m, n, k) = (f64::from(self.m), f64::from(self.n), f64::from(self.k));
        let times = if self.reads_c { 2.0 } else { 1.0 };
        f64::from(self.elem_bytes) * (m * k + k * n + times * m * n)
    }

    /// The least time, s: max(bytes / bandwidth, operations / peak), reads and writes one after the other.
    ///
    /// # Source
    /// MAGMA, Section 3.
    pub fn least_s(&self, bytes_per_s: f64, flops_per_s: f64) -> f64 {
        (self.bytes() / bytes_per_s).max(self.flops() / flops_per_s)
    }

    /// The highest rate where memory binds, operations/s: flops · bandwidth / bytes. Square f64: n · bandwidth / 16.
    ///
    /// # Source
    /// MAGMA, Section 3.
    pub fn memory_bound(&self, bytes_per_s: f64) -> f64 {
        self.flops() * bytes_per_s / self.bytes()
    }
}

/// The kernels that MAGMA dispatches to by size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// n to 10: a block of n x n threads a product, several products a block.
    Aggregated,
    /// n from 11 to 19: one product a block.
    Single,
    /// n from 20 to 32: one product a block, in four parts of [`blocking`].
    Blocked,
}

/// The kernel for n x n products; `None` past 32 and for 0.
///
/// # Source
/// MAGMA, Section 7.4.
pub const fn design(n: u32) -> Option<Design> {
    match n {
        1..=10 => Some(Design::Aggregated),
        11..=19 => Some(Design::Single),
        20..=32 => Some(Design::Blocked),
        _ => None,
    }
}

/// tba: products a block, so that it has two warps at least, 2 at least where it aggregates.
///
/// # Source
/// MAGMA, Section 7.3: 16 of 2 x 2, which are two warps; above 1 up to n = 10. The paper tunes the others and does not
/// print them: two warps as the rule is ours.
pub fn products_per_block(n: u32) -> u32 {
    match design(n) {
        Some(Design::Aggregated) => 64_u32.div_ceil(n * n).max(2),
        _ => 1,
    }
}

/// What a block of one product takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Threads: s x s.
    pub threads: u32,
    /// Shared memory for parts of A and B, bytes: 2s x s elements.
    pub shared_bytes: u32,
}

/// A block of s x s threads, s being n for the plain kernel and N̂ for the blocked one.
///
/// # Source
/// MAGMA, Section 7.4.
pub const fn block(side: u32, elem_bytes: u32) -> Block {
    Block { threads: side * side, shared_bytes: 2 * side * side * elem_bytes }
}

/// The N̂ that [`Design::Blocked`] may take, least and most: ⌈N/2⌉ ≤ N̂ < N. It is tuned.
///
/// # Source
/// MAGMA, Eq. (1); M̂ of rectangular products alike (Section 7.6).
pub const fn blocking(n: u32) -> (u32, u32) {
    (n.div_ceil(2), n.saturating_sub(1))
}

/// Sides of the parts of a dimension n that N̂ cuts: N̂ and N - N̂.
///
/// # Source
/// MAGMA, Eq. (2).
pub const fn parts(n: u32, side: u32) -> (u32, u32) {
    (side, n - side)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Machine;
    use crate::occupancy::residency;

    /// n · bandwidth / 16 in f64, / 8 in f32, and the others of the same formula.
    #[test]
    fn bounds_are_the_papers() {
        for n in 1..=32 {
            let real = Product::square_f64(n);
            let per_byte = |p: Product| p.memory_bound(1.0) / f64::from(n);
            let near = |p: Product, want: f64| assert!((per_byte(p) - want).abs() <= 1e-12, "{p:?}: {}", per_byte(p));
            near(real, 1.0 / 16.0);
            near(Product { elem_bytes: 4, ..real }, 1.0 / 8.0);
            near(Product { reads_c: false, ..real }, 1.0 / 12.0);
            near(Product { elem_bytes: 16, fma_flops: 8, ..real }, 1.0 / 8.0);
            near(Product { elem_bytes: 8, fma_flops: 8, ..real }, 1.0 / 4.0);
            assert_eq!(real.bytes(), 32.0 * f64::from(n * n));
        }
        let rectangular = Product { m: 3, n: 5, k: 7, ..Product::square_f64(1) };
        assert_eq!((rectangular.flops(), rectangular.bytes()), (210.0, 8.0 * (21.0 + 35.0 + 30.0)));
    }

    /// Sections 3, 6 and 7.7: GF at n = 32 by the measured bandwidths.
    #[test]
    fn results_are_below_their_bounds() {
        let at_32 = |gbs: f64| Product::square_f64(32).memory_bound(gbs * 1e9) / 1e9;
        assert_eq!((at_32(600.0), at_32(44.0)), (1200.0, 88.0));
        // About 1600 GF on a V100 are 95% of the bound: 842 GB/s. A read and write kernel has 820 (Ernst et al.).
        assert!((1600.0 / 0.95 / at_32(1.0) - 842.0).abs() <= 1.0);
        // 85 GF on ten cores of a Haswell are within 90%.
        assert!(85.0 / at_32(44.0) >= 0.9);
    }

    #[test]
    fn memory_binds_every_size_on_the_papers_gpus() {
        for machine in [Machine::P100, Machine::V100] {
            for n in 1..=32 {
                let p = Product::square_f64(n);
                let least = p.least_s(machine.read_bytes_per_s, 2.0 * machine.fma_f64_per_s);
                assert_eq!(least, p.bytes() / machine.read_bytes_per_s, "{} {n}", machine.name);
            }
        }
    }

    #[test]
    fn sizes_are_dispatched_as_in_the_paper() {
        for (n, expected) in [
            (0, None),
            (1, Some(Design::Aggregated)),
            (10, Some(Design::Aggregated)),
            (11, Some(Design::Single)),
            (19, Some(Design::Single)),
            (20, Some(Design::Blocked)),
            (32, Some(Design::Blocked)),
            (33, None),
        ] {
            assert_eq!(design(n), expected, "{n}");
            assert_eq!(products_per_block(n) > 1, expected == Some(Design::Aggregated), "{n}");
        }
        assert_eq!((products_per_block(2), products_per_block(2) * 4), (16, 64));
    }

    /// Section 7.4: of 1024 threads and 16 KB two blocks fill an SM, and shared memory is left over.
    #[test]
    fn a_smaller_block_of_32_x_32_holds_more() {
        let resident = |b: Block| residency(&Machine::P100, b.threads, 32, b.shared_bytes);
        let plain = block(32, 8);
        assert_eq!((plain.threads, plain.shared_bytes), (1024, 16 << 10));
        let found = resident(plain);
        assert_eq!((found.blocks(), found.limit(), found.by_shared), (2, crate::occupancy::Limit::Threads, 4));
        assert_eq!(blocking(32), (16, 31));
        assert_eq!(resident(block(16, 8)).blocks(), 8);
        assert_eq!((blocking(21), parts(21, 11)), ((11, 20), (11, 10)));
    }
}
