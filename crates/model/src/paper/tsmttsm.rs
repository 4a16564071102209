//! Ernst et al.'s products of two tall matrices: intensity, registers of a tile, and the latency that stands in the way.
//!
//! # Source
//! D. Ernst, G. Hager, J. Thies, G. Wellein, Performance engineering for real and complex tall & skinny matrix
//! multiplication kernels on GPUs, Int. J. High Perform. Comput. Appl. 35 (2021). Its letters are kept: K is the long
//! side, A is K x M, B is K x N, all row-major, f64 and complex f64, on a V100 PCIe. All formulas are printed there;
//! what is ours is said.

use crate::Machine;

/// The element types of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// D: f64.
    Real,
    /// Z: complex f64, of twice the bytes and four times the operations.
    Complex,
}

impl Element {
    /// Bytes an element.
    pub const fn bytes(self) -> u32 {
        match self {
            Element::Real => 8,
            Element::Complex => 16,
        }
    }

    /// Operations of a multiply-add, two of real numbers.
    pub const fn flops(self) -> u32 {
        match self {
            Element::Real => 2,
            Element::Complex => 8,
        }
    }

    /// 32-bit registers an element.
    pub const fn registers(self) -> u32 {
        self.bytes() / 4
    }
}

/// Operations a byte: 2MNK / ((MK + NK + MN) · 8), four times the operations and twice the bytes where complex.
///
/// # Source
/// Ernst et al., Eq. (1), of both products since stores need no prior read.
pub fn intensity(element: Element, [m, n, k]: [f64; 3]) -> f64 {
    let elements = m * k + n * k + m * n;
    f64::from(element.flops()) * m * n * k / (elements * f64::from(element.bytes()))
}

/// The same for K far above M and N: 2MN / ((M + N) · 8), which is M/8 (real) and M/4 (complex) where M = N.
///
/// # Source
/// Ernst et al., Eq. (1) and Section 1.3.
pub fn intensity_of_tall(element: Element, [m, n]: [f64; 2]) -> f64 {
    f64::from(element.flops()) * m * n / ((m + n) * f64::from(element.bytes()))
}

/// The rate that nothing exceeds, operations/s: min(intensity · bandwidth, peak).
///
/// # Source
/// Ernst et al., Section 1.3, the roofline of Williams et al.
pub fn roofline(intensity: f64, bytes_per_s: f64, flops_per_s: f64) -> f64 {
    (intensity * bytes_per_s).min(flops_per_s)
}

/// The widths up to which a roofline's memory side is the lower one, where M = N.
///
/// # Source
/// The same, solved for M: ours.
pub fn knee(element: Element, bytes_per_s: f64, flops_per_s: f64) -> f64 {
    let intensity_of_one = intensity_of_tall(element, [1.0, 1.0]);
    flops_per_s / bytes_per_s / intensity_of_one
}

/// A thread's tile of C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// T_M: rows.
    pub m: u32,
    /// T_N: columns.
    pub n: u32,
    /// Whether a step's elements are loaded while the step before is computed.
    pub leap_frog: bool,
}

/// 32-bit registers a thread: 2·(T_M·T_N + 2·(T_M + T_N) + 8); a single set of loaded values without leap-frogging.
///
/// # Source
/// Ernst et al., Section 5.2, for real numbers with leap-frogging; sums, loaded values, eight for other purposes. A
/// complex element's four registers are those of the authors' tuner.
pub const fn registers(element: Element, tile: Tile) -> u32 {
    let sets = if tile.leap_frog { 2 } else { 1 };
    element.registers() * (tile.m * tile.n + sets * (tile.m + tile.n) + 8)
}

/// Registers of sums alone, a thread having all of C: 2MN.
///
/// # Source
/// Ernst et al., Section 3, of the kernel that is parallel over K only.
pub const fn registers_of_whole_c(element: Element, m: u32, n: u32) -> u32 {
    element.registers() * m * n
}

/// Whether the authors' tuner generates a tile: at most 255 registers a thread and 65536 a block.
///
/// # Source
/// The authors' code, which leaves the eight for other purposes out; so does this.
pub const fn is_generated(element: Element, tile: Tile, block: u32) -> bool {
    let registers = registers(element, tile) - 8 * element.registers();
    registers <= 255 && registers * block <= 65_536
}

/// Latency of memory, cycles, by what a read kernel reached: f·N·8 B / b.
///
/// f: clock, Hz. N: threads, each with one load of 8 bytes in flight. b: bandwidth, bytes/s.
///
/// # Source
/// Ernst et al., Eq. (3): Little's law.
pub fn latency_cycles(clock_hz: f64, threads: f64, bytes_per_s: f64) -> f64 {
    clock_hz * threads * 8.0 / bytes_per_s
}

/// Cycles that a quadrant of an SM computes on a tile: 4 a multiply-add of a warp, 8 lanes having 32 to do.
///
/// # Source
/// Ernst et al., Sections 1.6.3 and 5.3.
pub const fn compute_cycles(tile: Tile) -> u32 {
    4 * tile.m * tile.n
}

/// Cycles a step in which a quadrant computes nothing: the other warps are done before the data of the first is there.
///
/// # Source
/// Ernst et al., Section 5.3, in words, of two warps without leap-frogging. A formula for any number is ours.
pub fn stall_cycles(tile: Tile, warps_per_quadrant: u32, latency_cycles: f64) -> f64 {
    let others = warps_per_quadrant.saturating_sub(1);
    (latency_cycles - f64::from(others * compute_cycles(tile))).max(0.0)
}

/// Warps that a quadrant of an SM holds with so many registers a thread.
///
/// # Source
/// Ernst et al., Section 1.6.1, by [`crate::occupancy::residency`] of blocks of one warp a quadrant.
pub fn warps_per_quadrant(machine: &Machine, registers: u32) -> u32 {
    crate::occupancy::resident_blocks(machine, 128, registers, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Element::{Complex, Real};

    const READ: f64 = 880e9;
    const PEAK: f64 = 80.0 * 32.0 * 2.0 * 1.38e9;

    #[test]
    fn intensity_grows_with_the_width() {
        for m in 1..=64 {
            let m = f64::from(m);
            assert_eq!(intensity_of_tall(Real, [m, m]), m / 8.0);
            assert_eq!(intensity_of_tall(Complex, [m, m]), m / 4.0);
            let long = f64::from(1 << 29) / m;
            assert!((intensity(Real, [m, m, long]) / intensity_of_tall(Real, [m, m]) - 1.0).abs() <= 1e-5);
        }
        assert_eq!(intensity_of_tall(Real, [1.0, 1.0]), 0.125);
    }

    /// Section 1.6.3: 7066 GF. Eq. (2) prints 7060 GF for 8 flop/B times 880 GB/s, which are 7040.
    #[test]
    fn a_width_of_64_is_at_the_knee() {
        assert!((PEAK / 1e9 - 7066.0).abs() <= 1.0);
        let limit = roofline(intensity_of_tall(Real, [64.0, 64.0]), READ, PEAK);
        assert_eq!(limit, 7040e9);
        assert!((limit / PEAK - 1.0).abs() <= 0.005);
        assert!((knee(Real, READ, PEAK) - 64.2).abs() <= 0.1 && (knee(Complex, READ, PEAK) - 32.1).abs() <= 0.1);
        // The plateau.
        assert!((4766e9 / PEAK - 2.0 / 3.0).abs() <= 0.01);
        assert_eq!(2.0 * Machine::V100.fma_f64_per_s, PEAK);
    }

    /// Section 5.3 and Table 1: 3.0 GB/s by one block of four warps, 681 GB/s at a quarter of all threads.
    #[test]
    fn latencies_are_470_and_664_cycles() {
        assert!((latency_cycles(1.38e9, 128.0, 3.0e9) - 470.0).abs() <= 1.5);
        let quarter = 80.0 * 2048.0 / 4.0;
        assert!((latency_cycles(1.38e9, quarter, 681e9) - 664.0).abs() <= 0.5);
        // The pointer chase's 435 are near the first; the machine has the second.
        assert!((435.0_f64 / 470.0 - 1.0).abs() <= 0.08);
        assert_eq!(Machine::V100.memory_latency_s * Machine::V100.clock_hz, 664.0);
    }

    /// Section 3: past 11 x 11 the sums alone spill.
    #[test]
    fn a_whole_c_spills_past_11_columns() {
        assert!(registers_of_whole_c(Real, 11, 11) <= 256 && registers_of_whole_c(Real, 12, 12) > 256);
        assert_eq!(registers_of_whole_c(Real, 11, 8), 176);
    }

    /// Section 5.2: the iso-lines of 128 and 256 registers, an occupancy of 25% and 12.5%, and spills.
    #[test]
    fn tiles_sit_below_the_iso_lines() {
        let tile = |m, n, leap_frog| Tile { m, n, leap_frog };
        assert_eq!(registers(Real, tile(4, 8, true)), 128);
        assert_eq!(registers(Real, tile(8, 8, true)), 208);
        // The best tile without leap-frogging has no room for it.
        assert_eq!((registers(Real, tile(11, 8, false)), registers(Real, tile(11, 8, true))), (230, 268));
        assert_eq!((warps_per_quadrant(&Machine::V100, 128), warps_per_quadrant(&Machine::V100, 32)), (4, 16));
        assert_eq!((warps_per_quadrant(&Machine::V100, 176), warps_per_quadrant(&Machine::V100, 255)), (2, 2));
    }

    #[test]
    fn the_tuner_rejects_what_cannot_run() {
        let tile = |m, n, leap_frog| Tile { m, n, leap_frog };
        assert!(is_generated(Real, tile(11, 8, true), 256) && !is_generated(Real, tile(11, 9, true), 256));
        assert!(is_generated(Complex, tile(7, 7, false), 256) && !is_generated(Complex, tile(7, 7, true), 128));
        assert!(!is_generated(Real, tile(8, 8, true), 512));
    }

    /// Section 5.3: 352 cycles of one warp do not cover the other's 664.
    #[test]
    fn two_warps_of_an_11_x_8_tile_stall() {
        let tile = Tile { m: 11, n: 8, leap_frog: false };
        assert_eq!(compute_cycles(tile), 352);
        let warps = warps_per_quadrant(&Machine::V100, registers_of_whole_c(Real, 11, 8));
        assert_eq!(stall_cycles(tile, warps, 664.0), 312.0);
        assert_eq!(stall_cycles(tile, 3, 664.0), 0.0);
        // Computing for two warps of every 352 + 664 cycles is what the plateau is of the peak.
        let busy = f64::from(2 * compute_cycles(tile)) / (f64::from(compute_cycles(tile)) + 664.0);
        assert!((busy - 2.0 / 3.0).abs() <= 0.03, "{busy}");
    }
}
