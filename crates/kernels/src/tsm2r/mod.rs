//! TSM2R: C ← α A B + β C for a large A and a skinny B.
//!
//! | operand | shape | strides               | role                                                    |
//! |---------|-------|-----------------------|---------------------------------------------------------|
//! | A       | m x k | any; 1 x lda coalesces; the rings' own | the traffic: read once for every T2 columns of C |
//! | B       | k x n | any                   | small; each element is used by every row                |
//! | C       | m x n | any; slots are packed, or the rings' own | one sum a thread and column          |
//!
//! # The ladder
//! | variant | TSM2X | idea |
//! |---|---|---|
//! | [`inner`] | Algorithm 1 | a thread a row, one inner product after another: A is read n times |
//! | [`outer`] | Algorithm 2 | all n sums at once in registers: A is read once |
//! | [`shared`] | Algorithm 3 | B comes through shared memory, one tile a block, stored by columns |
//! | [`shared_rowmajor`] | Fig. 1 | the same with the tile stored by rows: conflicts where it is filled |
//! | [`prefetch`] | Algorithm 4 | what the next step needs is loaded before this one's arithmetic |
//! | [`staged`] | | A too comes through shared memory, several stages ahead ([`ring`]); several rows a thread; A by rows |
//! | [`mma`], [`complex_mma`] | | the same, multiplied by the matrix units: f64 and c128, from sm_90 on |
//! | [`split`] | | f32 by those units, each element in two parts: for who allows it |
//!
//! # Thread mapping
//! Thread t of block (x, y, z) owns row x·T1 + t and columns z·T2 .. of C; y is its part of k.
//!
//! # Tile parameters
//! T1: threads a block. T2: columns of C a thread. T3: elements of A that a thread loads together.
//!
//! # Zero β, tails
//! β = 0 never reads C. Loads outside the operands are zero and touch no memory, so there are no edge copies of a loop;
//! stores are guarded.
//!
//! # Determinism
//! A sum runs over k in ascending order; parts of k are cut by k alone and added in order. Same plan, same bits.
//!
//! # Cost
//! 2mnk flops, of complex elements 8mnk; reads m·k·⌈n/T2⌉ elements of A: `model::roofline`.
//!
//! # Source
//! Rivera et al., TSM2X, JPDC 151 (2021), Sect. 3; t1, t2, t3 there are T1, T2, T3 here. Ours: parts of k, tails,
//! strides, 128-bit loads from shared memory.

#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
pub mod complex_mma;
pub mod inner;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
pub mod mma;
pub mod outer;
pub mod prefetch;
pub mod ring;
pub mod shared;
pub mod shared_rowmajor;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
pub mod split;
pub mod staged;

use crate::product::{Product, c64, c128, product_entry};
use cuda_std::prelude::*;

/// Holds for every row of the table, or the row does not compile.
struct Check<const T1: usize, const T2: usize, const T3: usize>;

impl<const T1: usize, const T2: usize, const T3: usize> Check<T1, T2, T3> {
    const THREADS: () = assert!(T1 % 32 == 0 && T1 <= 1024, "T1 must be whole warps of one block");
    const TILES: () = assert!(T2 > 0 && T3 > 0 && T3 <= T1, "empty tiles, or more loads than rows of the tile of B");
}

/// This thread's row of C.
#[inline(always)]
fn own_row<const T1: usize>() -> u32 {
    thread::block_idx_x() * T1 as u32 + thread::thread_idx_x()
}

/// This thread's first column of C.
#[inline(always)]
fn own_col<const T2: usize>() -> u32 {
    thread::block_idx_z() * T2 as u32
}

/// Columns `l ..` of a row of A.
#[inline(always)]
unsafe fn load_a<T: Scalar, const T3: usize>(x: &Product<T>, row: u32, l: u32, end: u32) -> [T; T3] {
    // SAFETY: `end` <= k, from `Product::part`.
    core::array::from_fn(|i| unsafe { x.a(row, l + i as u32, end) })
}

/// Columns `col ..` of row `l` of B.
#[inline(always)]
unsafe fn load_b<T: Scalar, const T2: usize>(x: &Product<T>, l: u32, col: u32, end: u32) -> [T; T2] {
    // SAFETY: `end` <= k, from `Product::part`.
    core::array::from_fn(|j| unsafe { x.b(l, col + j as u32, end) })
}

/// Hands in the sums of a row.
#[inline(always)]
unsafe fn write_row<T: Scalar, const T2: usize>(x: &Product<T>, row: u32, col: u32, rc: [T; T2]) {
    for j in 0..T2 {
        // SAFETY: each thread owns its row and columns.
        unsafe { x.write(row, col + j as u32, rc[j]) };
    }
}

macro_rules! entries {
    ($($entry:ident: $elem:ident, $variant:ident, $t1:literal, $t2:literal, $t3:literal, $blocks:literal, $wide:literal;)*) => {
        $(product_entry!($entry, $elem, $variant::body::<$elem, $t1, $t2, $t3>);)*
    };
}
model::tsm2r_variants!(entries);
model::tsm2r_complex_variants!(entries);

macro_rules! staged_entries {
    ($($entry:ident: $elem:ident, $threads:literal, $tm:literal, $tn:literal, $bn:literal, $kt:literal, $stages:literal, $blocks:literal, $by_rows:literal;)*) => {
        $(product_entry!(
            $entry,
            $elem,
            staged::Staged::<$elem, ring::Block<$threads, { $threads / ($bn / $tn) * $tm }, $bn, $kt, $stages, $by_rows>, $tm, $tn>::body
        );)*
    };
}
model::staged_variants!(staged_entries);
model::staged_complex_variants!(staged_entries);

macro_rules! mma_entries {
    ($($entry:ident: $elem:ident, $warps:literal, $rb:literal, $nt:literal, $bn:literal, $kt:literal, $stages:literal, $blocks:literal, $by_rows:literal;)*) => {
        $(
            #[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
            product_entry!(
                $entry,
                $elem,
                mma::Mma::<ring::Block<{ 32 * $warps }, { $warps / ($bn / (8 * $nt)) * 16 * $rb }, $bn, $kt, $stages, $by_rows>, $rb, $nt>::body
            );
        )*
    };
}
model::mma_variants!(mma_entries);

macro_rules! split_entries {
    ($($entry:ident: $elem:ident, $warps:literal, $rb:literal, $nt:literal, $bn:literal, $kt:literal, $stages:literal, $blocks:literal, $by_rows:literal;)*) => {
        $(
            #[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
            product_entry!(
                $entry,
                $elem,
                split::Split::<ring::Block<{ 32 * $warps }, { 16 * $rb * $warps }, $bn, $kt, $stages, $by_rows>, $rb, $nt>::body
            );
        )*
    };
}
model::split_variants!(split_entries);

macro_rules! complex_mma_entries {
    ($($entry:ident: $elem:ident, $warps:literal, $rb:literal, $nt:literal, $bn:literal, $kt:literal, $stages:literal, $blocks:literal, $by_rows:literal;)*) => {
        $(
            #[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
            product_entry!(
                $entry,
                $elem,
                complex_mma::ComplexMma::<ring::Block<{ 32 * $warps }, { $warps / ($bn / (8 * $nt)) * 16 * $rb }, $bn, $kt, $stages, $by_rows>, $rb, $nt>::body
            );
        )*
    };
}
model::mma_complex_variants!(complex_mma_entries);
