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
    unsafe fn(u32, u32, u32, Global<T>, u64, u64, Global<T>, u64, u64, T, T, Global<T>, u64, u64, u64, u32, Global<T>);

/// A kernel that adds slots; its parameters are those of [`slots::body`].
pub type SumSlotsFn<T> = unsafe fn(u32, u32, Global<T>, u32, T, T, Global<T>, u64, u64);

/// A kernel of two tall matrices, or of a matrix and a vector; its parameters are those of [`crate::tsmttsm::Reduced`], in order, without `slot_len` and with `conj` at the end.
pub type ReducedFn<T> =
    unsafe fn(u32, u32, u32, Global<T>, u64, u64, Global<T>, u64, u64, T, T, Global<T>, u64, u64, Global<T>, u32, u32);

/// A kernel that adds the slots of those; its parameters are those of [`crate::tsmttsm::finish::sreduce_slots_t256`].
pub type ReduceSlotsFn<T> = unsafe fn(u32, u32, u32, T, T, Global<T>, u64, u64, Global<T>, u32);

/// A kernel of batches; its parameters are those of [`crate::batched::Batched`], in order, an operand's being its base, its
/// list and its strides.
pub type BatchedFn<T> = unsafe fn(
    u32,
    u32,
    u32,
    u32,
    u32,
    u32,
    Global<T>,
    Global<f64>,
    u64,
    u64,
    u64,
    Global<T>,
    Global<f64>,
    u64,
    u64,
    u64,
    T,
    T,
    Global<T>,
    Global<f64>,
    u64,
    u64,
    u64,
    u32,
);

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

mod split {
    use super::{Product, elem};
    use crate::tsm2r as entries;
    model::split_variants!(rows);
}

mod gemm {
    use super::{Product, elem};
    use crate::gemm as entries;
    model::gemm_variants!(rows);
}

mod gemm_ladder {
    use super::{Product, elem};
    use crate::gemm as entries;
    model::gemm_ladder_variants!(rows);
}

mod gemm_staged {
    use super::{Product, elem};
    use crate::gemm as entries;
    model::gemm_staged_variants!(rows);
}

mod gemm_mma {
    use super::{Product, elem};
    use crate::gemm as entries;
    model::gemm_mma_variants!(rows);
}

/// A kernel that is called so, of one of the element types.
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub enum Reduced {
    F32(ReducedFn<f32>),
    F64(ReducedFn<f64>),
    C64(ReducedFn<Complex<f32>>),
    C128(ReducedFn<Complex<f64>>),
}

/// The rows of the kernels of two tall matrices.
mod reduced_tables {
    use super::{Complex, Reduced, ReducedFn};

    mod elem {
        use super::{Complex, Reduced, ReducedFn};
        pub fn f32(entry: ReducedFn<f32>) -> Reduced {
            Reduced::F32(entry)
        }
        pub fn f64(entry: ReducedFn<f64>) -> Reduced {
            Reduced::F64(entry)
        }
        pub fn c64(entry: ReducedFn<Complex<f32>>) -> Reduced {
            Reduced::C64(entry)
        }
        pub fn c128(entry: ReducedFn<Complex<f64>>) -> Reduced {
            Reduced::C128(entry)
        }
    }

    /// `reduced(entry)`: the function of a row of the table.
    macro_rules! rows {
        ($($entry:ident: $elem:ident $(, $parameter:tt)*;)*) => {
            pub fn reduced(entry: &str) -> Option<super::Reduced> {
                let rows = [$((stringify!($entry), super::elem::$elem(entries::$entry))),*];
                rows.into_iter().find(|(name, _)| *name == entry).map(|(_, reduced)| reduced)
            }
        };
    }

    mod tiles {
        use crate::tsmttsm as entries;
        model::tsmttsm_variants!(rows);
    }
    mod mma {
        use crate::tsmttsm as entries;
        model::tsmttsm_mma_variants!(rows);
    }
    mod gram {
        use crate::tsmttsm as entries;
        model::gram_variants!(rows);
    }
    mod staged {
        use crate::tsmttsm as entries;
        model::tsmttsm_staged_variants!(rows);
    }
    mod gram_staged {
        use crate::tsmttsm as entries;
        model::gram_staged_variants!(rows);
    }
    mod fitted {
        use crate::tsmttsm as entries;
        model::tsmttsm_fitted_variants!(rows);
    }
    mod gram_fitted {
        use crate::tsmttsm as entries;
        model::gram_fitted_variants!(rows);
    }
    mod lines {
        use crate::tsmttsm as entries;
        model::tsmttsm_lines_variants!(rows);
    }
    mod gram_lines {
        use crate::tsmttsm as entries;
        model::gram_lines_variants!(rows);
    }
    mod gram_mma {
        use crate::tsmttsm as entries;
        model::gram_mma_variants!(rows);
    }
    mod folded {
        use crate::tsmttsm as entries;
        model::tsmttsm_folded_variants!(rows);
    }
    mod gram_folded {
        use crate::tsmttsm as entries;
        model::gram_folded_variants!(rows);
    }
    mod ring {
        use crate::tsmttsm as entries;
        model::tsmttsm_ring_variants!(rows);
    }
    mod dealt {
        use crate::tsmttsm as entries;
        model::tsmttsm_dealt_variants!(rows);
    }
    mod gram_ring {
        use crate::tsmttsm as entries;
        model::gram_ring_variants!(rows);
    }
    mod lines_mma {
        use crate::tsmttsm as entries;
        model::tsmttsm_lines_mma_variants!(rows);
    }
    mod gram_lines_mma {
        use crate::tsmttsm as entries;
        model::gram_lines_mma_variants!(rows);
    }
    mod gram_dealt_lines {
        use crate::tsmttsm as entries;
        model::gram_dealt_lines_variants!(rows);
    }
    mod packed {
        use crate::tsmttsm as entries;
        model::tsmttsm_packed_variants!(rows);
    }
    mod gram_packed {
        use crate::tsmttsm as entries;
        model::gram_packed_variants!(rows);
    }
    mod eights {
        use crate::tsmttsm as entries;
        model::tsmttsm_eights_variants!(rows);
    }
    mod gram_eights {
        use crate::tsmttsm as entries;
        model::gram_eights_variants!(rows);
    }

    mod gemv {
        use crate::gemv as entries;
        model::gemv_variants!(rows);
    }
    mod gemv_lines {
        use crate::gemv as entries;
        model::gemv_lines_variants!(rows);
    }

    pub fn reduced(entry: &str) -> Option<Reduced> {
        let tall = [
            tiles::reduced,
            mma::reduced,
            folded::reduced,
            staged::reduced,
            fitted::reduced,
            lines::reduced,
            ring::reduced,
            dealt::reduced,
            lines_mma::reduced,
            packed::reduced,
            eights::reduced,
        ];
        let gram = [
            gram::reduced,
            gram_mma::reduced,
            gram_folded::reduced,
            gram_staged::reduced,
            gram_fitted::reduced,
            gram_lines::reduced,
            gram_ring::reduced,
            gram_lines_mma::reduced,
            gram_packed::reduced,
            gram_eights::reduced,
            gram_dealt_lines::reduced,
        ];
        let vectors = [gemv::reduced, gemv_lines::reduced];
        let tables = tall.into_iter().chain(gram).chain(vectors);
        tables.into_iter().find_map(|table| table(entry))
    }
}

/// The kernel of two tall matrices, or of a matrix and a vector, with this entry name; `None` if no row of `model::VARIANTS` has it.
pub fn reduced(entry: &str) -> Option<Reduced> {
    reduced_tables::reduced(entry)
}

/// A kernel that is called as those of batches are, of one of the element types.
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub enum Batched {
    F32(BatchedFn<f32>),
    F64(BatchedFn<f64>),
    C64(BatchedFn<Complex<f32>>),
    C128(BatchedFn<Complex<f64>>),
}

/// The rows of the kernels of batches.
mod batched_tables {
    mod elem {
        use super::super::{Batched, BatchedFn, Complex};
        pub fn f32(entry: BatchedFn<f32>) -> Batched {
            Batched::F32(entry)
        }
        pub fn f64(entry: BatchedFn<f64>) -> Batched {
            Batched::F64(entry)
        }
        pub fn c64(entry: BatchedFn<Complex<f32>>) -> Batched {
            Batched::C64(entry)
        }
        pub fn c128(entry: BatchedFn<Complex<f64>>) -> Batched {
            Batched::C128(entry)
        }
    }

    macro_rules! rows {
        ($($entry:ident: $elem:ident $(, $parameter:tt)*;)*) => {
            pub fn batched(entry: &str) -> Option<super::super::Batched> {
                let rows = [$((stringify!($entry), super::elem::$elem(entries::$entry))),*];
                rows.into_iter().find(|(name, _)| *name == entry).map(|(_, batched)| batched)
            }
        };
    }
    pub mod tile {
        use crate::batched as entries;
        model::batched_tile_variants!(rows);
    }
    pub mod fragments {
        use crate::batched as entries;
        model::batched_fragments_variants!(rows);
    }
    pub mod warps {
        use crate::batched as entries;
        model::batched_warps_variants!(rows);
    }
    pub mod flat_lanes {
        use crate::batched as entries;
        model::batched_flat_lanes_variants!(rows);
    }
    pub mod flat_complex {
        use crate::batched as entries;
        model::batched_flat_complex_variants!(rows);
    }
    pub mod flat_real {
        use crate::batched as entries;
        model::batched_flat_real_variants!(rows);
    }
    pub mod bulk {
        use crate::batched as entries;
        model::batched_bulk_variants!(rows);
    }
    pub mod over {
        use crate::batched as entries;
        model::batched_over_variants!(rows);
    }
    pub mod complex_fragments {
        use crate::batched as entries;
        model::batched_complex_fragments_variants!(rows);
    }
    pub mod paper {
        use crate::batched as entries;
        model::batched_paper_variants!(rows);
    }
}

/// The kernel of batches with this entry name; `None` if no row of `model::variants::batched::BATCHED` has it.
pub fn batched(entry: &str) -> Option<Batched> {
    use batched_tables::{bulk, complex_fragments, flat_complex, flat_lanes, flat_real, fragments, over, paper};
    use batched_tables::{tile, warps};
    let by_warps = [fragments::batched, complex_fragments::batched, warps::batched];
    let flat = [flat_real::batched, flat_complex::batched, flat_lanes::batched];
    let mut tables =
        [tile::batched, bulk::batched, over::batched, paper::batched].into_iter().chain(by_warps).chain(flat);
    tables.find_map(|table| table(entry))
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

mod mma_complex {
    use super::{Product, elem};
    use crate::tsm2r as entries;
    model::mma_complex_variants!(rows);
}

mod gemm_mma_complex {
    use super::{Product, elem};
    use crate::gemm as entries;
    model::gemm_mma_complex_variants!(rows);
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
    packed: packed_variants,
    columns: columns_variants,
    tsmm_outer: tsmm_outer_variants,
    tsmm_staged: tsmm_staged_variants,
    tsmm_mma: tsmm_mma_variants,
    fragments: tsmm_fragments_variants,
    bulk: tsmm_bulk_variants,
    bulk_registers: tsmm_bulk_registers_variants,
    bulk_shared: tsmm_bulk_shared_variants,
    bulk_rows: tsmm_bulk_rows_variants,
    lines: tsmm_lines_variants,
    lines_mma: tsmm_lines_mma_variants
);

/// The product kernel with this entry name; `None` if no row of `model::VARIANTS` has it.
pub fn product(entry: &str) -> Option<Product> {
    let real = [
        tsm2r::product,
        staged::product,
        mma::product,
        split::product,
        gemm::product,
        gemm_ladder::product,
        gemm_staged::product,
        gemm_mma::product,
    ];
    let complex = [
        tsm2r_complex::product,
        staged_complex::product,
        mma_complex::product,
        gemm_complex::product,
        gemm_mma_complex::product,
    ];
    let tall = [
        tsm2l::product,
        group::product,
        packed::product,
        columns::product,
        tsmm_outer::product,
        tsmm_staged::product,
        tsmm_mma::product,
    ];
    let bulk = [
        bulk::product,
        bulk_registers::product,
        bulk_shared::product,
        bulk_rows::product,
        lines::product,
        lines_mma::product,
    ];
    let tall = tall.into_iter().chain([fragments::product as fn(&str) -> Option<Product>]).chain(bulk);
    real.into_iter().chain(complex).chain(tall).find_map(|table| table(entry))
}

/// An element type whose product kernels are in the table.
pub trait Element: cuda_std::Scalar {
    /// The function of a [`Product`], if it is of this type.
    fn of(product: Product) -> Option<ProductFn<Self>>;
    /// The function of a [`Reduced`], if it is of this type.
    fn of_reduced(reduced: Reduced) -> Option<ReducedFn<Self>>;
    /// The function of a [`Batched`], if it is of this type.
    fn of_batched(batched: Batched) -> Option<BatchedFn<Self>>;
    /// The kernel that adds slots of this type; its name is `model::sum_slots`'s.
    const SUM_SLOTS: SumSlotsFn<Self>;
    /// The one that adds those of two tall matrices; its name is `model::variants::reduce_slots`'s.
    const REDUCE_SLOTS: ReduceSlotsFn<Self>;
}

impl Element for f32 {
    fn of(product: Product) -> Option<ProductFn<f32>> {
        if let Product::F32(function) = product { Some(function) } else { None }
    }
    fn of_reduced(reduced: Reduced) -> Option<ReducedFn<f32>> {
        if let Reduced::F32(function) = reduced { Some(function) } else { None }
    }
    fn of_batched(batched: Batched) -> Option<BatchedFn<Self>> {
        if let Batched::F32(function) = batched { Some(function) } else { None }
    }
    const REDUCE_SLOTS: ReduceSlotsFn<f32> = crate::tsmttsm::finish::sreduce_slots_t256;
    const SUM_SLOTS: SumSlotsFn<f32> = slots::ssum_slots_t256;
}

impl Element for f64 {
    fn of(product: Product) -> Option<ProductFn<f64>> {
        if let Product::F64(function) = product { Some(function) } else { None }
    }
    fn of_reduced(reduced: Reduced) -> Option<ReducedFn<f64>> {
        if let Reduced::F64(function) = reduced { Some(function) } else { None }
    }
    fn of_batched(batched: Batched) -> Option<BatchedFn<Self>> {
        if let Batched::F64(function) = batched { Some(function) } else { None }
    }
    const REDUCE_SLOTS: ReduceSlotsFn<f64> = crate::tsmttsm::finish::dreduce_slots_t256;
    const SUM_SLOTS: SumSlotsFn<f64> = slots::dsum_slots_t256;
}

impl Element for Complex<f32> {
    fn of(product: Product) -> Option<ProductFn<Self>> {
        if let Product::C64(function) = product { Some(function) } else { None }
    }
    fn of_reduced(reduced: Reduced) -> Option<ReducedFn<Self>> {
        if let Reduced::C64(function) = reduced { Some(function) } else { None }
    }
    fn of_batched(batched: Batched) -> Option<BatchedFn<Self>> {
        if let Batched::C64(function) = batched { Some(function) } else { None }
    }
    const REDUCE_SLOTS: ReduceSlotsFn<Self> = crate::tsmttsm::finish::creduce_slots_t256;
    const SUM_SLOTS: SumSlotsFn<Self> = slots::csum_slots_t256;
}

impl Element for Complex<f64> {
    fn of(product: Product) -> Option<ProductFn<Self>> {
        if let Product::C128(function) = product { Some(function) } else { None }
    }
    fn of_reduced(reduced: Reduced) -> Option<ReducedFn<Self>> {
        if let Reduced::C128(function) = reduced { Some(function) } else { None }
    }
    fn of_batched(batched: Batched) -> Option<BatchedFn<Self>> {
        if let Batched::C128(function) = batched { Some(function) } else { None }
    }
    const REDUCE_SLOTS: ReduceSlotsFn<Self> = crate::tsmttsm::finish::zreduce_slots_t256;
    const SUM_SLOTS: SumSlotsFn<Self> = slots::zsum_slots_t256;
}
