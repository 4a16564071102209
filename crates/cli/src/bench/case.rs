//! What is measured: a product with its layout, operations and leading dimensions.

use std::fmt;

use model::results::FAMILIES;
use model::{Dtype, Problem, Strides};

use super::job::Job;

/// What a case of family gram must be.
const NO_GRAM: &str =
    "a Gram matrix is of one matrix: m = n, ops tn or nt, A and B with one layout and leading dimension";
/// Element types, as results name them; the latter two have no kernels yet.
const DTYPES: [&str; 4] = ["f32", "f64", "c64", "c128"];

/// How a stored matrix lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Unit stride down a column.
    Column,
    /// Unit stride along a row.
    Row,
}

impl Order {
    const fn letter(self) -> char {
        match self {
            Self::Column => 'c',
            Self::Row => 'r',
        }
    }

    /// Strides of a stored matrix of this leading dimension.
    const fn strides(self, ld: u64) -> Strides {
        match self {
            Self::Column => Strides::column_major(ld),
            Self::Row => Strides::row_major(ld),
        }
    }

    /// Lines of a leading dimension each.
    const fn lines(self, rows: u64, cols: u64) -> u64 {
        match self {
            Self::Column => cols,
            Self::Row => rows,
        }
    }

    /// The least leading dimension of a rows x cols matrix.
    fn packed(self, rows: u64, cols: u64) -> u64 {
        match self {
            Self::Column => rows.max(1),
            Self::Row => cols.max(1),
        }
    }
}

/// The orders of A, B and C as they are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout(pub [Order; 3]);

impl Layout {
    pub const COLUMN_MAJOR: Self = Self([Order::Column; 3]);

    /// `ccc`, `rcc`; also `col` and `row`, which are all three.
    pub fn parse(text: &str) -> Option<Self> {
        let text = match text {
            "col" => "ccc",
            "row" => "rrr",
            text => text,
        };
        let mut orders = text.chars().map(|letter| match letter {
            'c' => Some(Order::Column),
            'r' => Some(Order::Row),
            _ => None,
        });
        let all = [orders.next()??, orders.next()??, orders.next()??];
        orders.next().is_none().then_some(Self(all))
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: String = self.0.iter().map(|order| order.letter()).collect();
        f.pad(&text)
    }
}

/// One product to measure: C (m x n) = op(A) op(B) + beta C.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// One of [`FAMILIES`].
    pub family: &'static str,
    /// `f32`, `f64`, `c64` or `c128`.
    pub dtype: &'static str,
    pub layout: Layout,
    /// Whether A is used transposed, so stored k x m.
    pub transpose_a: bool,
    /// Whether B is used transposed, so stored n x k.
    pub transpose_b: bool,
    pub beta: f64,
    pub m: u64,
    pub n: u64,
    pub k: u64,
    /// Leading dimensions as stored.
    pub lda: u64,
    pub ldb: u64,
    pub ldc: u64,
    pub batch: u64,
}

impl Case {
    /// Column-major, packed, beta = 0, one product.
    pub fn plain(family: &'static str, dtype: &'static str, (m, n, k): (u64, u64, u64)) -> Self {
        let case = Self {
            family,
            dtype,
            layout: Layout::COLUMN_MAJOR,
            transpose_a: false,
            transpose_b: false,
            beta: 0.0,
            m,
            n,
            k,
            lda: 0,
            ldb: 0,
            ldc: 0,
            batch: 1,
        };
        case.packed()
    }

    /// With the least leading dimensions for its layout and operations.
    pub fn packed(mut self) -> Self {
        let [(a_rows, a_cols), (b_rows, b_cols)] = self.stored();
        let [a, b, c] = self.layout.0;
        self.lda = a.packed(a_rows, a_cols);
        self.ldb = b.packed(b_rows, b_cols);
        self.ldc = c.packed(self.m, self.n);
        self
    }

    /// Rows and columns of A and B as they are stored.
    fn stored(&self) -> [(u64, u64); 2] {
        let a = if self.transpose_a { (self.k, self.m) } else { (self.m, self.k) };
        let b = if self.transpose_b { (self.n, self.k) } else { (self.k, self.n) };
        [a, b]
    }

    /// What no product can have: a dimension of 0, a leading dimension less than a line.
    pub fn fault(&self) -> Option<String> {
        for (name, length) in [("m", self.m), ("n", self.n), ("k", self.k), ("batch", self.batch)] {
            if length == 0 {
                return Some(format!("{name} is 0"));
            }
        }
        let least = self.clone().packed();
        let lds = [("lda", self.lda, least.lda), ("ldb", self.ldb, least.ldb), ("ldc", self.ldc, least.ldc)];
        lds.iter()
            .find(|(_, ld, least)| ld < least)
            .map(|(name, ld, least)| format!("{name} is {ld}, but a line has {least} elements"))
            .or_else(|| (self.family == "gram" && !self.is_gram()).then(|| NO_GRAM.into()))
    }

    /// Whether it is a matrix times itself: one of the two is used transposed, and both are stored alike.
    fn is_gram(&self) -> bool {
        let [a, b, _] = self.layout.0;
        self.m == self.n && self.transpose_a != self.transpose_b && a == b && self.lda == self.ldb
    }

    /// The case in memory: op(A), op(B), C, as the model sees one member, and where the next one lies. `None` beyond 64 bits.
    pub fn job(&self) -> Option<Job> {
        let (dtype, reals) = match self.dtype {
            "f32" => (Dtype::F32, 1),
            "f64" => (Dtype::F64, 1),
            "c64" => (Dtype::F32, 2),
            _ => (Dtype::F64, 2),
        };
        let [a, b, c] = self.layout.0;
        let [stored_a, stored_b] = self.stored();
        let step = |order: Order, ld: u64, (rows, cols): (u64, u64)| ld.checked_mul(order.lines(rows, cols));
        let steps = [step(a, self.lda, stored_a)?, step(b, self.ldb, stored_b)?, step(c, self.ldc, (self.m, self.n))?];
        let (a, b) = (a.strides(self.lda), b.strides(self.ldb));
        let problem = Problem {
            dtype,
            m: self.m,
            n: self.n,
            k: self.k,
            a: if self.transpose_a { a.transposed() } else { a },
            b: if self.transpose_b { b.transposed() } else { b },
            c: c.strides(self.ldc),
            reads_c: self.beta != 0.0,
            gram: self.family == "gram",
            triangle: false,
            conj_a: false,
            conj_b: false,
            splits_f32: false,
        };
        Some(Job { problem, reals, batch: self.batch, steps, shares_a: self.family == "gram" })
    }

    /// Why this project does not compute it yet; `None` if it does.
    pub fn not_yet(&self) -> Option<String> {
        let batched = self.family == "batched";
        if self.batch != 1 && !batched { Some(format!("{} of many at once is not there", self.family)) } else { None }
    }

    /// `tsm2r f64 20480 x 16 x 20480`, and what is not the usual.
    pub fn name(&self) -> String {
        let Self { family, dtype, m, n, k, .. } = self;
        format!("{family} {dtype} {m} x {n} x {k}{}", self.unusual())
    }

    /// What is not column-major, packed, plain, single, with beta = 0: ` rcc tn x100 beta 1 lda 4`.
    pub fn unusual(&self) -> String {
        let mut words = String::new();
        if self.layout != Layout::COLUMN_MAJOR {
            words += &format!(" {}", self.layout);
        }
        if self.transpose_a || self.transpose_b {
            words += &format!(" {}{}", op(self.transpose_a), op(self.transpose_b));
        }
        if self.batch != 1 {
            words += &format!(" x{}", self.batch);
        }
        if self.beta != 0.0 {
            words += &format!(" beta {}", self.beta);
        }
        let least = self.clone().packed();
        for (name, ld, least) in
            [("lda", self.lda, least.lda), ("ldb", self.ldb, least.ldb), ("ldc", self.ldc, least.ldc)]
        {
            if ld != least {
                words += &format!(" {name} {ld}");
            }
        }
        words
    }
}

/// BLAS's letter.
pub const fn op(transposed: bool) -> &'static str {
    if transposed { "t" } else { "n" }
}

/// The other way round.
pub fn parse_op(text: &str) -> Option<bool> {
    match text {
        "n" => Some(false),
        "t" => Some(true),
        _ => None,
    }
}

/// A family by its name.
pub fn family(name: &str) -> Result<&'static str, String> {
    let known = FAMILIES.into_iter().find(|family| *family == name);
    known.ok_or_else(|| format!("known are {}", FAMILIES.join(", ")))
}

/// An element type by its name.
pub fn dtype(name: &str) -> Result<&'static str, String> {
    let known = DTYPES.into_iter().find(|dtype| *dtype == name);
    known.ok_or_else(|| format!("known are {}", DTYPES.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_follow_layout_and_operation() {
        let case = Case {
            layout: Layout::parse("rcr").expect("a layout"),
            transpose_a: true,
            ..Case::plain("tsm2r", "f64", (5, 3, 7))
        };
        let case = case.packed();
        // A is stored 7 x 5 by rows, B 7 x 3 by columns, C 5 x 3 by rows.
        assert_eq!((case.lda, case.ldb, case.ldc), (5, 7, 3));
        let job = case.job().expect("it fits");
        let p = job.problem;
        assert_eq!(p.a, Strides { row: 1, col: 5 });
        assert_eq!(p.b, Strides { row: 1, col: 7 });
        assert_eq!(p.c, Strides { row: 3, col: 1 });
        assert_eq!(job.member_reals(), Some([35, 21, 15]));
        assert_eq!(case.name(), "tsm2r f64 5 x 3 x 7 rcr tn");
    }

    #[test]
    fn impossible_cases_say_why() {
        let case = Case::plain("gemm", "f32", (5, 3, 7));
        assert_eq!(case.fault(), None);
        assert_eq!(Case { k: 0, ..case.clone() }.fault(), Some("k is 0".into()));
        let short = Case { ldb: 6, ..case.clone() };
        assert_eq!(short.fault(), Some("ldb is 6, but a line has 7 elements".into()));
        assert_eq!(Case { lda: 8, ..case }.unusual(), " lda 8");
    }

    #[test]
    fn a_gram_matrix_has_one_factor() {
        let plain = Case::plain("gram", "f64", (5, 5, 700));
        assert_eq!(plain.fault(), Some(NO_GRAM.into()));
        let gram = Case { transpose_a: true, ..plain }.packed();
        assert_eq!((gram.fault(), gram.lda, gram.ldb), (None, 700, 700));
        assert!(gram.job().is_some_and(|job| job.shares_a));
        assert_eq!(Case { lda: 701, ..gram.clone() }.fault(), Some(NO_GRAM.into()));
        assert_eq!(Case { n: 4, ..gram }.packed().fault(), Some(NO_GRAM.into()));
        assert!(Case::plain("tsmttsm", "f64", (5, 5, 700)).job().is_some_and(|job| !job.shares_a));
    }

    #[test]
    fn what_is_not_there_yet_is_said() {
        let not_yet = |case: &Case| case.not_yet().unwrap_or_default();
        assert_eq!(Case::plain("tsm2r", "c64", (5, 3, 7)).not_yet(), None);
        for family in ["tsm2r", "tsmm", "tsm2l", "tsmttsm", "gram", "gemv", "gemm"] {
            assert_eq!(Case::plain(family, "f32", (5, 5, 700)).not_yet(), None, "{family} is served by what there is");
        }
        let real = Case::plain("gemm", "f64", (5, 3, 7));
        assert_eq!((real.not_yet(), real.name().as_str()), (None, "gemm f64 5 x 3 x 7"));
        let many = Case { batch: 3, ..real };
        assert_eq!(not_yet(&many), "gemm of many at once is not there");
        assert_eq!(many.name(), "gemm f64 5 x 3 x 7 x3");
    }

    #[test]
    fn members_of_a_batch_have_whole_lines() {
        let case = Case {
            layout: Layout::parse("rcr").expect("a layout"),
            transpose_a: true,
            lda: 6,
            batch: 9,
            ..Case::plain("batched", "c128", (5, 3, 7))
        };
        // A is stored 7 x 5, row by row with gaps; B 7 x 3; C 5 x 3, whose leading dimension is still that of columns.
        let job = case.job().expect("it fits");
        assert_eq!((job.steps, job.reals, job.batch, job.problem.dtype), ([42, 21, 25], 2, 9, Dtype::F64));
    }

    #[test]
    fn layouts_have_three_letters() {
        for text in ["ccc", "rrr", "rcc"] {
            assert_eq!(Layout::parse(text).map(|l| l.to_string()), Some(text.to_string()));
        }
        assert_eq!(Layout::parse("row"), Layout::parse("rrr"));
        assert_eq!([Layout::parse("cc"), Layout::parse("cccc"), Layout::parse("cxc")], [None; 3]);
    }
}
