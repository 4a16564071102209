//! The entries as functions, by name: for whoever runs them on the host.
//!
//! ```
//! use lanky_kernels::table::{Product, product};
//! assert!(matches!(product("dtsm2r_inner_1x1_u1_t128"), Some(Product::F64(_))));
//! assert!(product("dtsm2r").is_none());
//! ```

use crate::slots;
pub use cuda_std::Complex;
use cuda_std::Global;

/// A product kernel; its parameters are those of [`crate::product::Product`], in order.
pub type ProductFn<T> =
    unsafe fn(u32, u32, u32, Global<T>, u64, u64, Global<T>, u64, u64, T, T, Global<T>, u64, u64, u64, u32);

/// A kernel that adds slots; its parameters are those of [`slots::body`].
pub type SumSlotsFn<T> = unsafe fn(u32, u32, Global<T>, u32, T, T, Global<T>, u64, u64);

/// A product kernel of one of the element types.
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub enum Product {
    F32(ProductFn<f32>),
    F64(ProductFn<f64>),
    C64(ProductFn<Complex<f32>>),
    C128(ProductFn<Complex<f64>>),
}

/// The spelling of an element type in a table row.
mod elem {
    use super::{Complex, Product, ProductFn};
    pub fn f32(entry: ProductFn<f32>) -> Product {
        Product::F32(entry)
    }
    pub fn f64(entry: ProductFn<f64>) -> Product {
        Product::F64(entry)
    }
    pub fn c64(entry: ProductFn<Complex<f32>>) -> Product {
        Product::C64(entry)
    }
    pub fn c128(entry: ProductFn<Complex<f64>>) -> Product {
        Product::C128(entry)
    }
}

/// `product(entry)`: the function of a row of the table.
macro_rules! rows {
    ($($entry:ident: $elem:ident $(, $parameter:tt)*;)*) => {
        pub fn product(entry: &str) -> Option<Product> {
            let rows = [$((stringify!($entry), elem::$elem(entries::$entry))),*];
            rows.into_iter().find(|(name, _)| *name == entry).map(|(_, product)| product)
        }
    };
}

mod tsm2r {
    use super::{Product, elem};
    use crate::tsm2r as entries;
    model::tsm2r_variants!(rows);
}

mod staged {
    use super::{Product, elem};
    use crate::tsm2r as entries;
    model::staged_variants!(rows);
}

mod mma {
    use super::{Product, elem};
    use crate::tsm2r as entries;
    model::mma_variants!(rows);
}

mod gemm {
    use super::{Product, elem};
    use crate::gemm as entries;
    model::gemm_variants!(rows);
}

mod tsm2r_complex {
    use super::{Product, elem};
    use crate::tsm2r as entries;
    model::tsm2r_complex_variants!(rows);
}

mod staged_complex {
    use super::{Product, elem};
    use crate::tsm2r as entries;
    model::staged_complex_variants!(rows);
}

mod gemm_complex {
    use super::{Product, elem};
    use crate::gemm as entries;
    model::gemm_complex_variants!(rows);
}

/// The tables of TSMM.
macro_rules! tall {
    ($($module:ident: $variants:ident),*) => {$(
        mod $module {
            use super::{Product, elem};
            use crate::tsmm as entries;
            model::$variants!(rows);
        }
    )*};
}
tall!(
    tsm2l: tsm2l_variants,
    group: group_variants,
    columns: columns_variants,
    tsmm_staged: tsmm_staged_variants,
    tsmm_mma: tsmm_mma_variants
);

/// The product kernel with this entry name; `None` if no row of `model::VARIANTS` has it.
pub fn product(entry: &str) -> Option<Product> {
    let real = [tsm2r::product, staged::product, mma::product, gemm::product];
    let complex = [tsm2r_complex::product, staged_complex::product, gemm_complex::product];
    let tall = [tsm2l::product, group::product, columns::product, tsmm_staged::product, tsmm_mma::product];
    real.into_iter().chain(complex).chain(tall).find_map(|table| table(entry))
}

/// An element type whose product kernels are in the table.
pub trait Element: cuda_std::Scalar {
    /// The function of a [`Product`], if it is of this type.
    fn of(product: Product) -> Option<ProductFn<Self>>;
    /// The kernel that adds slots of this type; its name is `model::sum_slots`'s.
    const SUM_SLOTS: SumSlotsFn<Self>;
}

impl Element for f32 {
    fn of(product: Product) -> Option<ProductFn<f32>> {
        if let Product::F32(function) = product { Some(function) } else { None }
    }
    const SUM_SLOTS: SumSlotsFn<f32> = slots::ssum_slots_t256;
}

impl Element for f64 {
    fn of(product: Product) -> Option<ProductFn<f64>> {
        if let Product::F64(function) = product { Some(function) } else { None }
    }
    const SUM_SLOTS: SumSlotsFn<f64> = slots::dsum_slots_t256;
}

impl Element for Complex<f32> {
    fn of(product: Product) -> Option<ProductFn<Self>> {
        if let Product::C64(function) = product { Some(function) } else { None }
    }
    const SUM_SLOTS: SumSlotsFn<Self> = slots::csum_slots_t256;
}

impl Element for Complex<f64> {
    fn of(product: Product) -> Option<ProductFn<Self>> {
        if let Product::C128(function) = product { Some(function) } else { None }
    }
    const SUM_SLOTS: SumSlotsFn<Self> = slots::zsum_slots_t256;
}
