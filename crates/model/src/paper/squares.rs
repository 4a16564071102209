//! A course report's square products on a GK210: what a tile takes, occupancy, and where the roofline puts it.
//!
//! # Source
//! T. E. Zosa IV, Matrix multiplication: parallel computation via GPGPU programming, course report, University of
//! California, San Diego, 2017. It does not state its precision. That it is f64 is reconstructed: 32 bytes of shared
//! memory a thread are four elements of 8, and only in f64 do interleaved loads of four elements not fit.

use crate::Machine;
use crate::occupancy::{Residency, residency};

/// How a thread's work is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Threads along each side of a block.
    pub side: u32,
    /// Elements of C a thread along each side: 1, or 2 for the four of Algorithm 3.
    pub elements: u32,
    /// Pairs of tiles: 2 where the next are loaded while these are used (Algorithm 2).
    pub buffers: u32,
}

/// Shared memory a block, bytes: tiles of A and B of elements·side x side each, in every buffer.
///
/// # Source
/// Zosa, Sections 2.7.2 and 2.8, in words.
pub const fn shared_bytes(layout: Layout, elem_bytes: u32) -> u32 {
    2 * layout.elements * layout.side * layout.side * elem_bytes * layout.buffers
}

/// Loads from memory for each element of C of an n x n product, its tile's sides apart: 2n, halved by four elements a
/// thread that share theirs.
///
/// # Source
/// Zosa, Section 2.7.2.
pub const fn loads_per_element(n: u64, elements: u64) -> u64 {
    2 * n / elements
}

/// What an SM holds of a layout.
///
/// # Source
/// Zosa, Section 2.9, by CUDA's rules.
pub fn resident(machine: &Machine, layout: Layout, registers: u32, elem_bytes: u32) -> Residency {
    residency(machine, layout.side * layout.side, registers, shared_bytes(layout, elem_bytes))
}

/// Operations a byte that a rate means if the memory binds: rate / bandwidth.
///
/// # Source
/// Zosa, Figs. 3 and 4.
pub fn implied_intensity(flops_per_s: f64, bytes_per_s: f64) -> f64 {
    flops_per_s / bytes_per_s
}

/// Sizes of the sweep: one below, at and above every multiple of 32 from 64 to 2048.
///
/// # Source
/// Zosa, Section 2.10: 189 sizes.
pub fn sizes() -> impl Iterator<Item = u32> {
    (2..=64).flat_map(|j| [32 * j - 1, 32 * j, 32 * j + 1])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::occupancy::Limit;

    const BEST_LAYOUT: Layout = Layout { side: 32, elements: 2, buffers: 1 };

    /// Section 2.9: 55 registers and 32 bytes a thread, an occupancy of 1 with 32 x 32 threads.
    #[test]
    fn the_best_kernel_fills_a_gk210() {
        assert_eq!(shared_bytes(BEST_LAYOUT, 8), 32 * 1024);
        let found = resident(&Machine::GK210, BEST_LAYOUT, 55, 8);
        assert_eq!((found.limit(), found.occupancy(&Machine::GK210)), (Limit::Threads, 1.0));
        // 16 blocks of 8 x 8 threads are half as many as it holds.
        let small = resident(&Machine::GK210, Layout { side: 8, ..BEST_LAYOUT }, 55, 8);
        assert_eq!((small.limit(), small.occupancy(&Machine::GK210)), (Limit::Blocks, 0.5));
    }

    /// Section 3.2: two buffers of it are more than a block may have, in f64 alone.
    #[test]
    fn interleaving_and_four_elements_do_not_fit_together() {
        let both = Layout { buffers: 2, ..BEST_LAYOUT };
        let most = Machine::GK210.shared_per_block;
        assert!(shared_bytes(both, 8) > most && shared_bytes(both, 4) <= most);
        assert!(shared_bytes(Layout { elements: 1, ..both }, 8) <= most);
        assert_eq!(resident(&Machine::GK210, both, 55, 8).blocks(), 0);
        assert_eq!((loads_per_element(1024, 1), loads_per_element(1024, 2)), (2048, 1024));
    }

    /// Figs. 3 and 4: 2 operations a byte of 240 GB/s, 3 of 154.
    #[test]
    fn the_roofline_points_are_the_figures() {
        assert_eq!(implied_intensity(480e9, 240e9), 2.0);
        assert!((implied_intensity(480e9, 154e9) - 3.0).abs() <= 0.2);
        assert_eq!((Machine::GK210.bus_bytes_per_s, Machine::GK210.read_bytes_per_s), (240e9, 154e9));
    }

    /// Section 2.10.
    #[test]
    fn a_sweep_has_189_sizes() {
        assert_eq!((sizes().count(), sizes().min(), sizes().max()), (189, Some(63), Some(2049)));
    }
}
