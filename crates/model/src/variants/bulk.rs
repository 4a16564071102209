//! The entries of TSMM for packed rows by bulk copies: `tsmm_bulk`, `tsmm_bulk_registers`, `tsmm_bulk_shared` and `tsmm_bulk_rows`; and what
//! their kernels and launches must agree on.

use super::tsmm::fragment;
use super::{Kernel, Layout, Variant, elem};

/// The entries with a ring of slots for each warp: `entry: element, warps, R, NT, KS, slots, blocks an SM`; a slot has room for R rows of up to
/// 8·NT columns and KS fragments of steps, and for more that are narrower ([`slot_rows`]).
#[macro_export]
macro_rules! tsmm_bulk_variants {
    ($emit:ident) => {
        $emit! {
            // entry                               elem warps R NT KS slots blocks
            dtsmm_bulk_32x8_n8_k16_s3_t256:        f64,  8, 32, 1, 1, 3, 2;
            dtsmm_bulk_16x8_n8_k64_s3_t256:        f64,  8, 16, 1, 4, 3, 1;
            dtsmm_bulk_32x16_n16_k16_s3_t256:      f64,  8, 32, 2, 1, 3, 2;
            dtsmm_bulk_16x16_n16_k64_s3_t256:      f64,  8, 16, 2, 4, 3, 1;
            dtsmm_bulk_16x24_n24_k32_s3_t128:      f64,  4, 16, 3, 2, 3, 4;
            dtsmm_bulk_16x24_n24_k64_s3_t128:      f64,  4, 16, 3, 4, 3, 2;
            dtsmm_bulk_16x32_n32_k32_s3_t128:      f64,  4, 16, 4, 2, 3, 3;
            dtsmm_bulk_16x32_n32_k64_s3_t128:      f64,  4, 16, 4, 4, 3, 2;
            dtsmm_bulk_16x40_n40_k48_s3_t128:      f64,  4, 16, 5, 3, 3, 2;
            dtsmm_bulk_16x40_n40_k64_s3_t256:      f64,  8, 16, 5, 4, 3, 1;
            dtsmm_bulk_16x48_n48_k48_s3_t256:      f64,  8, 16, 6, 3, 3, 1;
            dtsmm_bulk_16x56_n56_k64_s3_t256:      f64,  8, 16, 7, 4, 3, 1;
            dtsmm_bulk_16x64_n64_k64_s3_t256:      f64,  8, 16, 8, 4, 3, 1;

            ztsmm_bulk_16x8_n8_k16_s3_t256:        c128, 8, 16, 1, 2, 3, 2;
            ztsmm_bulk_8x8_n8_k64_s3_t128:         c128, 4, 8, 1, 8, 3, 2;
            ztsmm_bulk_16x16_n16_k16_s3_t256:      c128, 8, 16, 2, 2, 3, 2;
            ztsmm_bulk_8x16_n16_k64_s3_t128:       c128, 4, 8, 2, 8, 3, 2;
            ztsmm_bulk_8x24_n24_k24_s3_t128:       c128, 4, 8, 3, 3, 3, 4;
            ztsmm_bulk_8x24_n24_k64_s2_t128:       c128, 4, 8, 3, 8, 2, 2;
            ztsmm_bulk_16x32_n32_k32_s3_t128:      c128, 4, 16, 4, 4, 3, 2;
            ztsmm_bulk_8x32_n32_k32_s3_t256:       c128, 8, 8, 4, 4, 3, 2;
            ztsmm_bulk_8x32_n32_k64_s2_t128:       c128, 4, 8, 4, 8, 2, 2;
            ztsmm_bulk_8x40_n40_k40_s3_t128:       c128, 4, 8, 5, 5, 3, 2;
            ztsmm_bulk_8x48_n48_k48_s3_t128:       c128, 4, 8, 6, 6, 3, 2;
            ztsmm_bulk_8x64_n64_k64_s2_t256:       c128, 8, 8, 8, 8, 2, 1;
        }
    };
}

/// Those of f32 and c64 on the vector units with B in registers: `entry: element, warps, R, LC, CT, K, slots, blocks an SM`; LC lanes have CT
/// columns each, and up to K steps of them.
#[macro_export]
macro_rules! tsmm_bulk_registers_variants {
    ($emit:ident) => {
        $emit! {
            // entry                                         elem warps R LC CT K slots blocks
            stsmm_bulk_registers_4x1_n8_k64_s3_t128:         f32, 4, 32, 8, 1, 64, 3, 2;
            ctsmm_bulk_registers_4x1_n8_k16_s3_t256:         c64, 8, 32, 8, 1, 16, 3, 2;
            ctsmm_bulk_registers_4x2_n64_k16_s3_t128:        c64, 4, 8, 32, 2, 16, 3, 3;
        }
    };
}

/// Those with B in shared memory: `entry: element, warps, TM, TN, ACROSS, K, slots, blocks an SM`; a lane has TM x TN sums, and so many lanes
/// are along the columns.
#[macro_export]
macro_rules! tsmm_bulk_shared_variants {
    ($emit:ident) => {
        $emit! {
            // entry                                      elem warps TM TN ACROSS K slots blocks
            stsmm_bulk_shared_4x4_n8_k32_s2_t128:         f32, 4, 4, 4, 2, 32, 2, 3;
            stsmm_bulk_shared_8x4_n16_k32_s3_t128:        f32, 4, 8, 4, 4, 32, 3, 2;
            stsmm_bulk_shared_4x4_n16_k64_s3_t128:        f32, 4, 4, 4, 4, 64, 3, 2;
            stsmm_bulk_shared_8x3_n24_k24_s3_t128:        f32, 4, 8, 3, 8, 24, 3, 4;
            stsmm_bulk_shared_4x6_n24_k64_s3_t128:        f32, 4, 4, 6, 4, 64, 3, 2;
            stsmm_bulk_shared_8x4_n32_k32_s3_t128:        f32, 4, 8, 4, 8, 32, 3, 3;
            stsmm_bulk_shared_8x4_n32_k64_s3_t128:        f32, 4, 8, 4, 8, 64, 3, 2;
            stsmm_bulk_shared_8x5_n40_k40_s3_t128:        f32, 4, 8, 5, 8, 40, 3, 3;
            stsmm_bulk_shared_8x6_n48_k48_s2_t128:        f32, 4, 8, 6, 8, 48, 2, 3;
            stsmm_bulk_shared_8x8_n64_k64_s3_t128:        f32, 4, 8, 8, 8, 64, 3, 2;

            ctsmm_bulk_shared_4x4_n16_k16_s3_t128:        c64, 4, 4, 4, 4, 16, 3, 4;
            ctsmm_bulk_shared_4x4_n16_k32_s3_t128:        c64, 4, 4, 4, 4, 32, 3, 2;
            ctsmm_bulk_shared_4x2_n16_k64_s2_t384:        c64, 12, 4, 2, 8, 64, 2, 1;
            ctsmm_bulk_shared_8x3_n24_k24_s2_t128:        c64, 4, 8, 3, 8, 24, 2, 4;
            ctsmm_bulk_shared_4x3_n24_k64_s2_t384:        c64, 12, 4, 3, 8, 64, 2, 1;
            ctsmm_bulk_shared_8x4_n32_k32_s2_t128:        c64, 4, 8, 4, 8, 32, 2, 3;
            ctsmm_bulk_shared_4x4_n32_k64_s2_t384:        c64, 12, 4, 4, 8, 64, 2, 1;
            ctsmm_bulk_shared_8x5_n40_k40_s2_t128:        c64, 4, 8, 5, 8, 40, 2, 2;
            ctsmm_bulk_shared_8x6_n48_k48_s2_t256:        c64, 8, 8, 6, 8, 48, 2, 1;
            ctsmm_bulk_shared_8x4_n64_k64_s2_t384:        c64, 12, 8, 4, 16, 64, 2, 1;
        }
    };
}

/// Those of a lane a row: `entry: element, warps, TM, TN, N, K, slots, blocks an SM`; a lane has TM rows, and multiplies TN of up to N columns at a
/// time.
#[macro_export]
macro_rules! tsmm_bulk_rows_variants {
    ($emit:ident) => {
        $emit! {
            // entry                                      elem warps TM TN N K slots blocks
            stsmm_bulk_rows_4x4_n8_k8_s3_t128:            f32, 4, 4, 4, 8, 8, 3, 4;
            stsmm_bulk_rows_2x4_n16_k16_s3_t128:          f32, 4, 2, 4, 16, 16, 3, 4;
            stsmm_bulk_rows_2x4_n24_k8_s3_t128:           f32, 4, 2, 4, 24, 8, 3, 3;
            stsmm_bulk_rows_1x8_n32_k8_s3_t128:           f32, 4, 1, 8, 32, 8, 3, 4;

            dtsmm_bulk_rows_2x2_n8_k8_s3_t128:            f64, 4, 2, 2, 8, 8, 3, 4;
            dtsmm_bulk_rows_1x4_n24_k8_s3_t128:           f64, 4, 1, 4, 24, 8, 3, 3;

            ctsmm_bulk_rows_2x2_n8_k8_s3_t128:            c64, 4, 2, 2, 8, 8, 3, 4;
            ctsmm_bulk_rows_1x4_n16_k16_s3_t128:          c64, 4, 1, 4, 16, 16, 3, 4;
            ctsmm_bulk_rows_1x4_n24_k8_s3_t128:           c64, 4, 1, 4, 24, 8, 3, 3;

            ztsmm_bulk_rows_1x2_n8_k8_s3_t128:            c128, 4, 1, 2, 8, 8, 3, 4;
        }
    };
}

/// Rows of a tile in a slot of `len` elements, `cols` each: whole fragments, one at least.
pub const fn slot_rows(len: u32, cols: u32, fragment: u32) -> u32 {
    let fitting = match len.checked_div(cols) {
        Some(rows) => rows,
        None => len,
    };
    if fitting < fragment { fragment } else { fitting / fragment * fragment }
}

/// Whether a slot of `len` elements has room for a fragment's rows of A and of C: else C's are in the next.
pub const fn holds_both(len: u32, cols_of_both: u32, fragment: u32) -> bool {
    fragment * cols_of_both <= len
}

/// Tiles that a warp of `tsmm_bulk` takes, of so many columns of C and steps, at most: where B is little, as few as keep its ring full. Blocks
/// that end hand their place to others, so that no SM waits for the slowest, and what is read and written stays close together; but each
/// brings B.
///
/// # Source
/// H200s on 2026-11-28, matrices of 1 GB, of what a copy moves (benches/results/trials/bring.csv), in turns of 4, 8 and 16 tiles and in one of all:
/// f64 of 19 to 32 columns 96, 94%, 17 x 3 75, 82, 20 x 60 86, 96, 36 and 40 columns -, 93, 92, 42 and 46 -, 90 and 85, 92 and 89, 52 -, -, 85, 90;
/// c128 of 17 columns 84, 90, of 25 84, 88, of 32 92, 93, 40 by bulk copies -, 73, 80; f32 20 x 60 62, 60, -, 67. On the vector
/// units (lanes.csv there, run 2) four tiles take 1.03 times as long as eight in the middle from 17 to 32 columns, and 0.995 below, by entries of
/// `tsmm_bulk_shared` and `tsmm_bulk_rows` within a tenth of the best. All of a warp's tiles in one (copies.csv there, and tall-widths.csv and tsmm.csv of
/// 2026-11-29, which have all of more than 16 columns so): by `tsmm_bulk_shared` of more than 32 columns f32 takes 0.85 to 1.01 of the time, with n and k from 17 to 31
/// 0.95 to 0.99, but 8 x 24, 16 x 32, 24 x 12 and 32 x 32 1.02 to 1.07, and `tsmm_bulk_rows` 1.02 to 1.08; c64 of both 0.92 to 1.03.
/// Of others than these, such as f64 of up to 16 columns of C from more than 32, by what their neighbours take.
pub const fn slot_turns(is_mma: bool, is_complex: bool, n: u64, k: u64) -> u64 {
    let cols = if n > k { n } else { k };
    match (cols, is_mma) {
        (33.., false) => u64::MAX,
        (17..=32, false) if is_complex || n > 16 && k > 16 && cols < 32 => u64::MAX,
        (17..=32, _) if !is_mma || is_complex || n + k < 32 => 8,
        (..=32, _) => 4,
        _ if !is_complex && n <= 40 => 8,
        (33..=48, _) => 16,
        _ => u64::MAX,
    }
}

macro_rules! bulk_rows {
    ($($entry:ident: $elem:ident, $warps:literal, $r:literal, $nt:literal, $ks:literal, $slots:literal, $blocks:literal;)*) => {
        pub(super) const BULK: &[Variant] = &[$(Variant {
            name: "tsmm_bulk", entry: stringify!($entry), dtype: elem::$elem, kernel: Kernel::Tsmm, threads: 32 * $warps,
            t2: 8 * $nt, t3: fragment(elem::$elem) * $ks, rows: $r * $warps, cols: 8 * $nt, stages: $slots,
            layout: Layout::Any, mma: true, min_blocks: $blocks, wide_shared: true,
        }),*];
    };
}
tsmm_bulk_variants!(bulk_rows);

macro_rules! bulk_registers_rows {
    ($($entry:ident: $elem:ident, $warps:literal, $r:literal, $lc:literal, $ct:literal, $k:literal, $slots:literal, $blocks:literal;)*) => {
        pub(super) const BULK_REGISTERS: &[Variant] = &[$(Variant {
            name: "tsmm_bulk_registers", entry: stringify!($entry), dtype: elem::$elem, kernel: Kernel::Tsmm, threads: 32 * $warps,
            t2: $lc * $ct, t3: $k, rows: $r * $warps, cols: $ct, stages: $slots,
            layout: Layout::Any, mma: false, min_blocks: $blocks, wide_shared: true,
        }),*];
    };
}
tsmm_bulk_registers_variants!(bulk_registers_rows);

macro_rules! bulk_shared_rows {
    ($($entry:ident: $elem:ident, $warps:literal, $tm:literal, $tn:literal, $across:literal, $k:literal, $slots:literal, $blocks:literal;)*) => {
        pub(super) const BULK_SHARED: &[Variant] = &[$(Variant {
            name: "tsmm_bulk_shared", entry: stringify!($entry), dtype: elem::$elem, kernel: Kernel::Tsmm, threads: 32 * $warps,
            t2: $across * $tn, t3: $k, rows: $tm * 32 / $across * $warps, cols: $tn, stages: $slots,
            layout: Layout::Any, mma: false, min_blocks: $blocks, wide_shared: true,
        }),*];
    };
}
tsmm_bulk_shared_variants!(bulk_shared_rows);

macro_rules! bulk_rows_rows {
    ($($entry:ident: $elem:ident, $warps:literal, $tm:literal, $tn:literal, $n:literal, $k:literal, $slots:literal, $blocks:literal;)*) => {
        pub(super) const BULK_ROWS: &[Variant] = &[$(Variant {
            name: "tsmm_bulk_rows", entry: stringify!($entry), dtype: elem::$elem, kernel: Kernel::Tsmm, threads: 32 * $warps,
            t2: $n, t3: $k, rows: 32 * $tm * $warps, cols: $tn, stages: $slots,
            layout: Layout::Any, mma: false, min_blocks: $blocks, wide_shared: true,
        }),*];
    };
}
tsmm_bulk_rows_variants!(bulk_rows_rows);

/// Rows of a lane of `tsmm_bulk_registers`.
const ROWS_IN_REGISTERS: u32 = 4;

impl Variant {
    /// Rows that a lane of [`Variant::is_bulk`] on the vector units multiplies at a time.
    pub(crate) const fn bulk_lane_rows(&self) -> u32 {
        self.bulk_fragment() * (self.t2 / self.bulk_lane_columns()) / 32
    }

    /// Columns of C that a lane of these multiplies, for its rows: of `tsmm_bulk_rows` all, so many at a time.
    pub(crate) const fn bulk_lane_columns(&self) -> u32 {
        if matches!(self.name.as_bytes(), b"tsmm_bulk_rows") { self.t2 } else { self.cols }
    }

    /// Rows that a warp of [`Variant::is_bulk`] multiplies at a time.
    pub(crate) const fn bulk_fragment(&self) -> u32 {
        match self.name.as_bytes() {
            b"tsmm_bulk_registers" => ROWS_IN_REGISTERS * 32 / (self.t2 / self.cols),
            _ if self.mma => fragment(self.dtype),
            _ => self.rows / (self.threads / 32),
        }
    }

    /// Whether its warps have rings of slots, which bulk copies fill.
    pub(crate) const fn is_bulk(&self) -> bool {
        matches!(self.name.as_bytes(), b"tsmm_bulk" | b"tsmm_bulk_registers" | b"tsmm_bulk_shared" | b"tsmm_bulk_rows")
    }

    /// Elements of a slot of `tsmm_bulk`.
    pub(crate) const fn slot_len(&self) -> u32 {
        self.rows / (self.threads / 32) * if self.t2 > self.t3 { self.t2 } else { self.t3 }
    }

    /// Rows that the warps of a block of `tsmm_bulk` have in a slot each, of `cols` columns of A or of C, whichever has more.
    pub(crate) fn bulk_rows(&self, cols: u64) -> u64 {
        let cols = u32::try_from(cols).unwrap_or(u32::MAX);
        u64::from(slot_rows(self.slot_len(), cols, self.bulk_fragment()) * (self.threads / 32))
    }
}

#[cfg(test)]
mod tests {
    use crate::VARIANTS;
    use std::format;

    #[test]
    fn what_a_lane_has_is_in_an_entrys_name() {
        for v in VARIANTS.iter().filter(|v| v.is_bulk() && !v.mma) {
            let (rows, sums) = (v.bulk_lane_rows(), v.bulk_fragment() * v.t2 / 32);
            let own = format!("_{rows}x{}_n{}_k{}_", v.cols, v.t2, v.t3);
            assert!(v.entry.contains(&own) && sums == rows * v.bulk_lane_columns(), "{}: {own}", v.entry);
        }
    }
}
