//! The entries of TSMM for columns: `tsmm_lines` and `tsmm_lines_mma`; and what their kernels and launches must agree on.

use super::tsmm::WIDEST;
use super::{Kernel, Layout, Variant, elem};
use crate::Dtype;

/// The entries with a ring of stages of A's columns for each block: `entry: element, warps, TM, TN, LX, most n, stages, blocks
/// an SM`; a lane has TM x TN sums, LX lanes are beside each other.
#[macro_export]
macro_rules! tsmm_lines_variants {
    ($emit:ident) => {
        $emit! {
            // entry                             elem warps TM TN LX n stages blocks
            stsmm_lines_8x8_n16_k64_s4_t128:     f32, 4, 8, 8,  2, 16, 4, 3;
            stsmm_lines_4x12_n24_k64_s4_t128:    f32, 4, 4, 12, 2, 24, 4, 4;
            stsmm_lines_8x8_n32_k64_s4_t128:     f32, 4, 8, 8,  2, 32, 4, 3;
            stsmm_lines_8x8_n48_k64_s4_t96:      f32, 3, 8, 8,  2, 48, 4, 4;
            stsmm_lines_8x8_n64_k64_s3_t128:     f32, 4, 8, 8,  2, 64, 3, 3;

            dtsmm_lines_4x8_n16_k64_s4_t128:     f64, 4, 4, 8,  2, 16, 4, 3;
            dtsmm_lines_4x8_n32_k64_s4_t128:     f64, 4, 4, 8,  2, 32, 4, 3;

            ctsmm_lines_4x4_n16_k64_s4_t128:     c64, 4, 4, 4,  4, 16, 4, 4;
            ctsmm_lines_8x6_n24_k64_s4_t128:     c64, 4, 8, 6,  4, 24, 4, 2;
            ctsmm_lines_8x4_n32_k64_s4_t128:     c64, 4, 8, 4,  4, 32, 4, 3;
            ctsmm_lines_8x6_n48_k64_s4_t128:     c64, 4, 8, 6,  2, 48, 4, 2;
            ctsmm_lines_8x4_n64_k64_s4_t128:     c64, 4, 8, 4,  4, 64, 4, 3;
        }
    };
}

/// Those of f64 on the matrix units: `entry: element, warps, TM, TN, most n, stages, blocks an SM`; a warp has 4·TM rows and 8·TN columns.
#[macro_export]
macro_rules! tsmm_lines_mma_variants {
    ($emit:ident) => {
        $emit! {
            // entry                                elem warps TM TN n stages blocks
            dtsmm_lines_mma_8x4_n32_k64_s3_t128:    f64, 4, 8, 4, 32, 3, 3;
            dtsmm_lines_mma_8x6_n48_k64_s3_t128:    f64, 4, 8, 6, 48, 3, 2;
            dtsmm_lines_mma_8x4_n64_k64_s4_t128:    f64, 4, 8, 4, 64, 4, 3;
        }
    };
}

/// Lines of a stage of `tsmm_lines`, 8 KiB; of `tsmm_lines_mma` the steps of a fragment.
pub const fn lines_steps(rows: u32, elem_bytes: u32, mma: bool) -> u32 {
    if mma { 16 } else { (8 << 10) / (rows * elem_bytes) }
}

/// Elements from a line of such a stage to the next: a line that begins within a piece of 16 bytes has one more, and four lines of f64 lie 32
/// bytes apart in the banks.
pub const fn line_pitch(rows: u32, elem_bytes: u32) -> u32 {
    rows + 32 / elem_bytes
}

macro_rules! lines_rows {
    ($($entry:ident: $elem:ident, $warps:literal, $tm:literal, $tn:literal, $lx:literal, $bn:literal, $stages:literal, $blocks:literal;)*) => {
        pub(super) const LINES: &[Variant] = &[$(Variant {
            name: "tsmm_lines", entry: stringify!($entry), dtype: elem::$elem, kernel: Kernel::Tsmm, threads: 32 * $warps,
            t2: $bn, t3: WIDEST, rows: 32 * $tm * $warps * $tn / $bn, cols: $tn, stages: $stages, layout: Layout::Columns,
            mma: false, min_blocks: $blocks, wide_shared: true,
        }),*];
    };
}
tsmm_lines_variants!(lines_rows);

macro_rules! lines_mma_rows {
    ($($entry:ident: $elem:ident, $warps:literal, $tm:literal, $tn:literal, $bn:literal, $stages:literal, $blocks:literal;)*) => {
        pub(super) const LINES_MMA: &[Variant] = &[$(Variant {
            name: "tsmm_lines_mma", entry: stringify!($entry), dtype: elem::$elem, kernel: Kernel::Tsmm, threads: 32 * $warps,
            t2: $bn, t3: WIDEST, rows: 32 * $tm * $warps * $tn / $bn, cols: $tn, stages: $stages, layout: Layout::Columns,
            mma: true, min_blocks: $blocks, wide_shared: true,
        }),*];
    };
}
tsmm_lines_mma_variants!(lines_mma_rows);

impl Variant {
    /// Whether its blocks have rings of A's columns, which bulk copies fill.
    pub(crate) const fn is_lines(&self) -> bool {
        matches!(self.name.as_bytes(), b"tsmm_lines" | b"tsmm_lines_mma")
    }

    /// Columns of C that a warp of [`Variant::is_lines`] has: TN of each of the lanes that are beside each other.
    pub(crate) const fn warp_cols(&self) -> u32 {
        match (self.mma, self.dtype) {
            (true, _) => 8 * self.cols,
            (false, Dtype::C64) if self.t2 != 48 => 4 * self.cols,
            (false, _) => 2 * self.cols,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::VARIANTS;

    macro_rules! cols {
        ($($entry:ident: $elem:ident, $warps:literal, $tm:literal, $tn:literal, $lx:literal, $bn:literal, $stages:literal, $blocks:literal;)*) => {
            const COLS: &[(&str, u32)] = &[$((stringify!($entry), $lx * $tn)),*];
        };
    }
    crate::tsmm_lines_variants!(cols);

    #[test]
    fn warps_have_the_columns_of_their_lanes() {
        for (entry, cols) in COLS {
            let Some(v) = VARIANTS.iter().find(|v| v.entry == *entry) else { panic!("{entry} is in no table") };
            assert_eq!(v.warp_cols(), *cols, "{entry}");
            assert!(v.t2 % cols == 0 && (v.threads / 32) % (v.t2 / cols) == 0, "{entry}");
        }
        for v in VARIANTS.iter().filter(|v| v.is_lines()) {
            let (warps, across) = (v.threads / 32, v.t2 / v.warp_cols());
            // Lanes beside each other have TN columns each, and those below each other TM rows.
            assert_eq!(v.rows, warps / across * v.own_rows() * (32 * v.cols / v.warp_cols()), "{}", v.entry);
        }
    }
}
