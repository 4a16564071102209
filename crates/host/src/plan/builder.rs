//! What a plan is made from, and how it is decided.

use super::{Plan, check_dtype};
use crate::device::{Device, Kind};
use crate::error::{Error, Operand, Result};
use crate::ops::enqueue::unknown_variant;
use crate::ops::gemm::{PRODUCT, problem};
use crate::ops::{gemv, gram};
use crate::shape::{Shape, agree, check_distinct, check_not_conjugated, wide};
use model::launch::reduced::Triangle;
use model::{Dtype, Operation, Problem, VARIANTS, classify};
use std::sync::Mutex;

/// What a plan is made from; see [`Plan::gemm`].
#[derive(Clone, Debug)]
#[must_use = "nothing is planned before build()"]
pub struct PlanBuilder {
    pub(super) device: Device,
    pub(super) a: Shape,
    pub(super) b: Shape,
    pub(super) c: Shape,
    pub(super) variant: Option<String>,
    pub(super) parts: Option<u32>,
    pub(super) reads_c: bool,
    pub(super) gram: Option<Triangle>,
    pub(super) determinism: Determinism,
    pub(super) splits_f32: bool,
    /// As the caller calls A, B and C.
    pub(crate) names: [Operand; 3],
}

/// On which GPUs a plan gives the same bits.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Determinism {
    /// On this one, every time. What is fastest on it is planned, by its number of SMs, its bandwidths, and measurements.
    #[default]
    OneGpu,
    /// On every GPU of compute capability 8.0 or later, whatever it is and whatever slice of it, by the same version of this
    /// library: the kernel and the parts of k follow from shapes, strides, element type and what the builder was told, and from
    /// nothing of the device. What the newest have alone, such as matrix units for f64, is not used, and what is faster there is
    /// not planned.
    AcrossGpus,
}

impl PlanBuilder {
    /// On which GPUs the plan gives the same bits; [`Determinism::OneGpu`] unless this is called. On the CPU, whose products never
    /// depend on the number of threads, it says nothing; a GPU's bits are not the CPU's.
    ///
    /// # Example
    /// ```no_run
    /// use lanky_host::{Determinism, Device, Dtype, Layout, Plan, Shape};
    /// let shape = |rows, cols| Shape::packed(rows, cols, Layout::ColumnMajor, Dtype::F64);
    /// let plan = Plan::gemm(&Device::cuda(0)?, shape(20_000, 300), shape(300, 4), shape(20_000, 4))
    ///     .determinism(Determinism::AcrossGpus)
    ///     .build()?;
    /// assert!(plan.to_string().contains("the same bits on each"));
    /// # Ok::<(), lanky_host::Error>(())
    /// ```
    pub fn determinism(mut self, determinism: Determinism) -> Self {
        self.determinism = determinism;
        self
    }

    /// Allows products of f32 by the matrix units, which multiply each element in two parts, where the model expects that to be faster: of a large matrix
    /// and 17 to 64 columns (or rows, the other way round), from compute capability 9.0 on. Of another product, of other elements, and with
    /// [`Determinism::AcrossGpus`] it says nothing.
    ///
    /// An element is off by at most (k/16 + parts of k + 40) · 2⁻²⁴ · Σ|a b| before α and β; of fused multiply-adds that is k · 2⁻²⁴ · Σ|a b| in one part, and such
    /// products have more than 64 steps. An element of A or B that is infinite, or at least 2¹²⁸ (1 - 2⁻¹²), makes NaN of its row or column of C, and parts
    /// below 2⁻¹²⁶, of elements below 2⁻¹⁰³, may be taken for 0. The same plan gives the same bits, as ever.
    ///
    /// # Example
    /// ```no_run
    /// use lanky_host::{Device, Dtype, Layout, Plan, Shape};
    /// let shape = |rows, cols| Shape::packed(rows, cols, Layout::RowMajor, Dtype::F32);
    /// let plan = Plan::gemm(&Device::cuda(0)?, shape(20_480, 20_480), shape(20_480, 32), shape(20_480, 32)).split_f32().build()?;
    /// assert!(plan.to_string().contains("tsm2r_split"));
    /// # Ok::<(), lanky_host::Error>(())
    /// ```
    pub fn split_f32(mut self) -> Self {
        self.splits_f32 = true;
        self
    }

    /// Asks for a variant (`tsm2r_prefetch`) or one of its entries (`dtsm2r_prefetch_1x8_u16_t128`) by name; the model
    /// chooses the rest. Without it the model chooses among all. [`PlanBuilder::build`] looks at the name;
    /// [`model::VARIANTS`] lists them.
    pub fn variant(mut self, name: &str) -> Self {
        self.variant = Some(name.to_owned());
        self
    }

    /// With a variant: asks for so many parts of k, of which a shape has at least 1 and at most some. Of a plan without a
    /// variant it says nothing.
    pub fn parts(mut self, parts: u32) -> Self {
        self.parts = Some(parts);
        self
    }

    /// Says that the plan will be run with β ≠ 0, so that the reading of C is in what is chosen for and expected. Without it
    /// β = 0 is expected; either may be run.
    pub fn reads_c(mut self) -> Self {
        self.reads_c = true;
        self
    }

    /// Of a Gram matrix: what of it is read and written. Of another product it says nothing.
    pub fn triangle(mut self, triangle: Triangle) -> Self {
        self.gram = self.gram.map(|_| triangle);
        self
    }

    /// Of a Gram matrix of complex elements: Aᵀ A, in place of Aᴴ A. Of another product, or of real elements, it says nothing.
    pub fn no_conj(mut self) -> Self {
        if self.gram.is_some() {
            self.a = self.b.t();
        }
        self
    }

    /// Decides; nothing is loaded, allocated or launched.
    ///
    /// The model, or measurements that the device follows ([`tuned`](crate::tuned)), choose for the shapes, the element type, and
    /// whether C is read ([`PlanBuilder::reads_c`]). A GPU remembers
    /// what was chosen for all of that, so that the next plan of it costs a look-up, unless a variant is forced, or the bits are to
    /// be those of all GPUs.
    ///
    /// # Errors
    /// In this order: why the device was refused, if it was; [`Error::Shape`] if the element types or the sizes do not
    /// agree, the elements of C overlap each other, or C is conjugated; [`Error::UnknownVariant`]; [`Error::Unsupported`] if the variant
    /// cannot serve the shape or the device (the CPU has none), or a dimension exceeds
    /// [`model::choose::LARGEST_DIMENSION`] on a GPU.
    pub fn build(self) -> Result<Plan> {
        let PlanBuilder { device, a, b, c, variant, parts, reads_c, gram, determinism, splits_f32, names } = self;
        let variant = variant.as_deref();
        if let Kind::Refused(error) = device.kind() {
            return Err(Error::clone(error));
        }
        let [of_a, of_b, of_c] = names;
        for (operand, shape) in [(of_a, &a), (of_b, &b)] {
            check_dtype(operand, shape, c.dtype)?;
        }
        if names != PRODUCT {
            gemv::check_vectors(&a, &b, &c)?;
        }
        if gram.is_some() {
            gram::agree_gram(&b, &c)?;
        }
        let (m, n, k) = agree(&a, &b, &c)?;
        check_distinct(of_c, &c)?;
        check_not_conjugated(of_c, &c)?;
        let is_known = |name: &str| VARIANTS.iter().any(|v| v.name == name || v.entry == name);
        if let Some(name) = variant.filter(|name| !is_known(name)) {
            return Err(unknown_variant(name));
        }
        let choice = match (device.kind(), variant) {
            _ if m == 0 || n == 0 || k == 0 => None,
            (Kind::Cuda(gpu), variant) => {
                let triangle = gram.is_some_and(|triangle| triangle != Triangle::Full);
                let splits_f32 = splits_f32 && determinism == Determinism::OneGpu && c.dtype == Dtype::F32;
                let problem = Problem { gram: gram.is_some(), triangle, splits_f32, ..problem(&a, &b, &c, reads_c) };
                Some(match (determinism, variant.zip(parts)) {
                    (Determinism::AcrossGpus, _) => gpu.choices.choose_across(&problem, variant, parts)?,
                    (Determinism::OneGpu, Some((name, parts))) => gpu.choice_of(&problem, name, parts)?,
                    (Determinism::OneGpu, None) => gpu.choice(&problem, variant)?,
                })
            }
            (_, Some(name)) => {
                let what = format!("variant {name} on the CPU: the variants are a GPU's kernels");
                return Err(Error::Unsupported { what });
            }
            (_, None) => None,
        };
        let operation = if gram.is_some() { Operation::Gram } else { classify(wide(m), wide(n), wide(k)) };
        Ok(Plan { device, a, b, c, operation, gram, choice, workspaces: Mutex::default() })
    }
}
