//! How the operands of a planned product lie: by columns or by rows, transposed, with gaps, or both one matrix.

use clap::Args;
use model::{Dtype, Problem};

use crate::bench::args::{layout, ops};
use crate::bench::case::{Case, Layout};
use crate::error::Fault;

#[derive(Debug, Args)]
#[group(id = "lies", multiple = true, conflicts_with_all = ["paper", "batch", "against"])]
pub struct LiesArgs {
    /// How A, B and C lie: a letter each, c (by columns) or r (by rows); col and row are ccc and rrr [default: ccc]
    #[arg(long, value_parser = layout, value_name = "ccc")]
    pub layout: Option<Layout>,
    /// Whether A and B are used transposed: nn, tn, nt, tt [default: nn, with --gram tn]
    #[arg(long, value_parser = ops, value_name = "nn")]
    pub ops: Option<(bool, bool)>,
    /// A and B are one matrix: A^T A, or with --ops nt A A^T
    #[arg(long)]
    pub gram: bool,
    /// Leading dimension of A as stored [default: no gaps]
    #[arg(long)]
    pub lda: Option<u64>,
    /// Leading dimension of B as stored [default: no gaps]
    #[arg(long)]
    pub ldb: Option<u64>,
    /// Leading dimension of C [default: no gaps]
    #[arg(long)]
    pub ldc: Option<u64>,
}

impl LiesArgs {
    /// The product, and in words what of it is unusual.
    ///
    /// # Errors
    /// [`Fault::Input`] for a leading dimension that is less than a line, for a Gram matrix that is none, and past 64 bits.
    pub fn problem(&self, dtype: Dtype, [m, n, k]: [u64; 3], beta: f64) -> Result<(Problem, String), Fault> {
        let family = if self.gram { "gram" } else { "gemm" };
        let (transpose_a, transpose_b) = self.ops.unwrap_or((self.gram, false));
        let layout = self.layout.unwrap_or(Layout::COLUMN_MAJOR);
        let plain = Case { layout, transpose_a, transpose_b, beta, ..Case::plain(family, dtype.name(), (m, n, k)) };
        let packed = plain.packed();
        let case = Case {
            lda: self.lda.unwrap_or(packed.lda),
            ldb: self.ldb.or(self.lda.filter(|_| self.gram)).unwrap_or(packed.ldb),
            ldc: self.ldc.unwrap_or(packed.ldc),
            ..packed
        };
        if let Some(fault) = case.fault() {
            return Err(Fault::Input(fault));
        }
        let too_large = || Fault::Input(format!("{m} x {n} x {k}: an operand spans more than 64 bits count"));
        let problem = case.job().ok_or_else(too_large)?.of_elements();
        let gram = if self.gram { " A by itself" } else { "" };
        let words = Case { beta: 0.0, ..case }.unusual();
        Ok((problem, format!("{gram}{words}").trim_start().to_owned()))
    }
}
