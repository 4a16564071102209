//! GEMM: C ← α A B + β C for any shape and any strides, transposes included.
//!
//! | variant | idea |
//! |---|---|
//! | [`tiled`] | a block stages tiles of A and B in shared memory, a thread keeps TM x TN sums in registers |
//!
//! Serves every product that no kernel of its own takes.

pub mod tiled;

use crate::product::{c64, c128, product_entry};
use cuda_std::prelude::*;

macro_rules! entries {
    ($($entry:ident: $elem:ident, $tm:literal, $tn:literal, $threads:literal, $blocks:literal;)*) => {
        $(product_entry!($entry, $elem, tiled::body::<$elem, $tm, $tn, $threads>);)*
    };
}
model::gemm_variants!(entries);
model::gemm_complex_variants!(entries);
