//! GPUs known by heart.
//!
//! Counts, clocks and nominal rates are those of NVIDIA's data sheets and white papers; limits of an SM are those of the
//! table of compute capabilities in the CUDA C Programming Guide; granules and partitions are those of CUDA's occupancy
//! header. What a machine's own documentation names is from elsewhere.

use super::{Assumed, Machine, Name};

/// Every machine with its name in lower case, without spaces.
pub const TABLE: [(&str, Machine); 11] = [
    ("k40c", Machine::K40C),
    ("m40", Machine::M40),
    ("p100", Machine::P100),
    ("v100", Machine::V100),
    ("a100", Machine::A100),
    ("h100", Machine::H100),
    ("h200", Machine::H200),
    ("b200", Machine::B200),
    ("rtx4090", Machine::RTX4090),
    ("gk210", Machine::GK210),
    ("c2050", Machine::C2050),
];

/// The machine that the table calls `name`.
///
/// ```
/// assert_eq!(lanky_model::machine::by_name("rtx4090").map(|m| m.sms), Some(128));
/// assert_eq!(lanky_model::machine::by_name("rtx5090"), None);
/// ```
pub fn by_name(name: &str) -> Option<Machine> {
    TABLE.iter().find(|(known, _)| *known == name).map(|&(_, machine)| machine)
}

/// Share of a bus's nominal rate that reads reach: 4.65 of 4.81 TB/s on an H200 (3201 MHz, 6016 bits, as its driver says).
const READ_SHARE: f64 = 0.966;
/// Share of a bus's nominal rate that writes reach: 3.90 of 4.81 TB/s on an H200.
const WRITE_SHARE: f64 = 0.81;

/// How much longer a load takes under load than alone: 664 of 435 cycles on a V100 (Ernst et al., Section 5.3).
const LOADED: f64 = 664.0 / 435.0;

/// Latency of a memory of GDDR5, s: 400 cycles of a K40c, the most that the CUDA C Programming Guide (4.2, Section
/// 5.2.3) gives for Kepler. No better figure for these machines is known to us.
const GDDR5_LATENCY_S: f64 = 400.0 / 745e6;

impl Machine {
    /// NVIDIA H200 SXM. Bandwidths: measured with this project's read kernel (4.65 TB/s) and by gpu-benches (write-only
    /// 3.90 TB/s). Its cache: 60 MiB, as its driver says (580.159) and `lanky info` prints, of which 41.9 MB stay; NVIDIA's
    /// data sheet of the H100, whose chip it has, says 50 MB; by the read kernel 21.8 bytes a cycle and SM, 5.7 TB/s.
    /// Latency and launch: what fits timings of this project's kernels; alone a load takes 375 ns on an H100 (gpu-benches).
    /// Rates: 64 and 128 lanes an SM at 1.98 GHz; matrix units: 67 TF in f64, 494 TF in tf32 at 1.83 GHz, dense. Assumed: a
    /// V100's 4 cycles of multiply-adds.
    pub const H200: Machine = Machine {
        name: Name::new("NVIDIA H200"),
        compute_capability: (9, 0),
        sms: 132,
        clock_hz: 1.98e9,
        registers_per_sm: 65_536,
        registers_per_block: 65_536,
        registers_per_thread: 255,
        register_granule: 256,
        register_partitions: 4,
        shared_per_sm: 233_472,
        shared_per_block: 232_448,
        shared_reserved: 1024,
        shared_granule: 128,
        threads_per_sm: 2048,
        threads_per_block: 1024,
        blocks_per_sm: 32,
        l2_bytes: 60 << 20,
        l2_read_bytes_per_s: 132.0 * 21.8 * 1.98e9,
        bus_bytes_per_s: 2.0 * 3.201e9 * 6016.0 / 8.0,
        read_bytes_per_s: 4.65e12,
        write_bytes_per_s: 3.90e12,
        memory_latency_s: 580e-9,
        fma_f32_per_s: 132.0 * 128.0 * 1.98e9,
        fma_f64_per_s: 132.0 * 64.0 * 1.98e9,
        fma_latency_cycles: 4.0,
        mma_f64_per_s: 132.0 * 128.0 * 1.98e9,
        mma_tf32_per_s: 132.0 * 1024.0 * 1.98e9,
        launch_s: 5e-6,
        assumed: Assumed::of(&["fma_latency_cycles"]),
    };

    /// NVIDIA H100 SXM5 80 GB: an H200 with less memory and less of its cache. Assumed: the share of 3.35 TB/s that an H200
    /// reaches, its latency, and the bytes a cycle and SM of its cache.
    pub const H100: Machine = Machine {
        name: Name::new("NVIDIA H100 80GB HBM3"),
        l2_bytes: 50 << 20,
        bus_bytes_per_s: 3.35e12,
        read_bytes_per_s: 3.35e12 * READ_SHARE,
        write_bytes_per_s: 3.35e12 * WRITE_SHARE,
        assumed: Assumed::of(&[
            "l2_read_bytes_per_s",
            "read_bytes_per_s",
            "write_bytes_per_s",
            "memory_latency_s",
            "fma_latency_cycles",
            "launch_s",
        ]),
        ..Machine::H200
    };

    /// NVIDIA B200 SXM: 148 SMs at 1.965 GHz, 37 TF in f64 by vectors and matrices alike, 1.1 PF in tf32, dense; 126 MB
    /// of cache, 8 TB/s. Reads, writes and latency: an H200's share and time; nothing was measured.
    pub const B200: Machine = Machine {
        name: Name::new("NVIDIA B200"),
        compute_capability: (10, 0),
        sms: 148,
        clock_hz: 1.965e9,
        l2_bytes: 126 << 20,
        l2_read_bytes_per_s: 0.0,
        bus_bytes_per_s: 8e12,
        read_bytes_per_s: 8e12 * READ_SHARE,
        write_bytes_per_s: 8e12 * WRITE_SHARE,
        fma_f32_per_s: 148.0 * 128.0 * 1.965e9,
        fma_f64_per_s: 148.0 * 64.0 * 1.965e9,
        mma_f64_per_s: 148.0 * 64.0 * 1.965e9,
        mma_tf32_per_s: 148.0 * 2048.0 * 1.965e9,
        assumed: Assumed::of(&[
            "read_bytes_per_s",
            "write_bytes_per_s",
            "memory_latency_s",
            "fma_latency_cycles",
            "launch_s",
        ]),
        ..Machine::H200
    };

    /// NVIDIA A100 SXM4 40 GB. Reads 1490, writes 1503 GB/s, latency alone 574 cycles: gpu-benches (gpu-stream,
    /// cuda-latency, a100_40). Rates: 9.7 and 19.5 TF by vectors, 19.5 in f64 and 156 in tf32 by matrices, dense. Assumed:
    /// that the latency grows under load as a V100's does, and a V100's 4 cycles of multiply-adds.
    pub const A100: Machine = Machine {
        name: Name::new("NVIDIA A100-SXM4-40GB"),
        compute_capability: (8, 0),
        sms: 108,
        clock_hz: 1.41e9,
        shared_per_sm: 164 << 10,
        shared_per_block: 163 << 10,
        l2_bytes: 40 << 20,
        l2_read_bytes_per_s: 0.0,
        bus_bytes_per_s: 1.555e12,
        read_bytes_per_s: 1.490e12,
        write_bytes_per_s: 1.503e12,
        memory_latency_s: 574.0 / 1.41e9 * LOADED,
        fma_f32_per_s: 108.0 * 64.0 * 1.41e9,
        fma_f64_per_s: 108.0 * 32.0 * 1.41e9,
        mma_f64_per_s: 108.0 * 64.0 * 1.41e9,
        mma_tf32_per_s: 108.0 * 512.0 * 1.41e9,
        assumed: Assumed::of(&["memory_latency_s", "fma_latency_cycles", "launch_s"]),
        ..Machine::H200
    };

    /// What every GPU from compute capability 8.0 on can run, for plans that are to give the same bits on all of them
    /// ([`crate::choose_across`]): an A100 whose blocks have no more shared memory than an RTX 4090's. No machine of the table.
    /// What is changed here changes those bits.
    pub const COMMON: Machine = Machine {
        name: Name::new("any GPU from compute capability 8.0 on"),
        shared_per_block: Machine::RTX4090.shared_per_block,
        ..Machine::A100
    };

    /// NVIDIA GeForce RTX 4090: 82.6 TF in f32 and tf32, a 64th of that in f64. Shares of its 1008 GB/s (844 and 846 of
    /// 864 GB/s) and latency alone (632 cycles at 2.49 GHz) are those of an L40, its sibling: gpu-benches (gpu-stream,
    /// gpu-latency, l40), that under load growing as a V100's does.
    pub const RTX4090: Machine = Machine {
        name: Name::new("NVIDIA GeForce RTX 4090"),
        compute_capability: (8, 9),
        sms: 128,
        clock_hz: 2.52e9,
        shared_per_sm: 100 << 10,
        shared_per_block: 99 << 10,
        threads_per_sm: 1536,
        blocks_per_sm: 24,
        l2_bytes: 72 << 20,
        l2_read_bytes_per_s: 0.0,
        bus_bytes_per_s: 1.008e12,
        read_bytes_per_s: 1.008e12 * 844.0 / 864.0,
        write_bytes_per_s: 1.008e12 * 846.0 / 864.0,
        memory_latency_s: 632.0 / 2.49e9 * LOADED,
        fma_f32_per_s: 128.0 * 128.0 * 2.52e9,
        fma_f64_per_s: 128.0 * 2.0 * 2.52e9,
        mma_f64_per_s: 0.0,
        mma_tf32_per_s: 128.0 * 128.0 * 2.52e9,
        assumed: Assumed::of(&[
            "read_bytes_per_s",
            "write_bytes_per_s",
            "memory_latency_s",
            "fma_latency_cycles",
            "launch_s",
        ]),
        ..Machine::H200
    };

    /// NVIDIA V100 PCIe 16 GB. Bandwidths: Ernst et al. (read 880, scale 820 GB/s), latency 664 cycles under load there;
    /// writes are derived, as what scaling takes beside reading: 768 GB/s. Rates: 32 and 64 lanes an SM at 1.38 GHz, which is
    /// their 7066 GF. Multiply-adds take 4 cycles (its white paper). Launches are assumed to take what an H200's do.
    pub const V100: Machine = Machine {
        name: Name::new("Tesla V100-PCIE-16GB"),
        compute_capability: (7, 0),
        sms: 80,
        clock_hz: 1.38e9,
        shared_per_sm: 96 << 10,
        shared_per_block: 96 << 10,
        shared_reserved: 0,
        shared_granule: 256,
        l2_bytes: 6 << 20,
        l2_read_bytes_per_s: 0.0,
        bus_bytes_per_s: 900e9,
        read_bytes_per_s: 880e9,
        write_bytes_per_s: 1.0 / (2.0 / 820e9 - 1.0 / 880e9),
        memory_latency_s: 664.0 / 1.38e9,
        fma_f32_per_s: 80.0 * 64.0 * 1.38e9,
        fma_f64_per_s: 80.0 * 32.0 * 1.38e9,
        mma_f64_per_s: 0.0,
        mma_tf32_per_s: 0.0,
        assumed: Assumed::of(&["launch_s"]),
        ..Machine::H200
    };

    /// NVIDIA Tesla P100 SXM2 16 GB: 10.6 and 5.3 TF; two partitions an SM. Nominal 720 GB/s (TSM2X, Table 2), of which
    /// both ways reach 600 (MAGMA, Section 3). Latency: a V100's time, whose memory is of the same kind. Multiply-adds
    /// take 6 cycles (white paper of the V100).
    pub const P100: Machine = Machine {
        name: Name::new("Tesla P100-SXM2-16GB"),
        compute_capability: (6, 0),
        sms: 56,
        clock_hz: 1.48e9,
        register_partitions: 2,
        shared_per_sm: 64 << 10,
        shared_per_block: 48 << 10,
        l2_bytes: 4 << 20,
        bus_bytes_per_s: 720e9,
        read_bytes_per_s: 600e9,
        write_bytes_per_s: 600e9,
        fma_f32_per_s: 56.0 * 64.0 * 1.48e9,
        fma_f64_per_s: 56.0 * 32.0 * 1.48e9,
        fma_latency_cycles: 6.0,
        assumed: Assumed::of(&["memory_latency_s", "launch_s"]),
        ..Machine::V100
    };

    /// NVIDIA Tesla M40 12 GB: 6.8 TF in f32, a 32nd of that in f64, 288 GB/s. Reads and writes: an H200's shares.
    /// Multiply-adds: a P100's 6 cycles.
    pub const M40: Machine = Machine {
        name: Name::new("Tesla M40"),
        compute_capability: (5, 2),
        sms: 24,
        clock_hz: 1.114e9,
        register_partitions: 4,
        shared_per_sm: 96 << 10,
        l2_bytes: 3 << 20,
        bus_bytes_per_s: 288e9,
        read_bytes_per_s: 288e9 * READ_SHARE,
        write_bytes_per_s: 288e9 * WRITE_SHARE,
        memory_latency_s: GDDR5_LATENCY_S,
        fma_f32_per_s: 24.0 * 128.0 * 1.114e9,
        fma_f64_per_s: 24.0 * 4.0 * 1.114e9,
        assumed: Assumed::of(&[
            "read_bytes_per_s",
            "write_bytes_per_s",
            "memory_latency_s",
            "fma_latency_cycles",
            "launch_s",
        ]),
        ..Machine::P100
    };

    /// NVIDIA Tesla K40c 12 GB at its base clock of 745 MHz: 4.3 and 1.43 TF, 288 GB/s. Reads and writes: an H200's
    /// shares. Multiply-adds: the programming guide's 11 cycles.
    pub const K40C: Machine = Machine {
        name: Name::new("Tesla K40c"),
        compute_capability: (3, 5),
        sms: 15,
        clock_hz: 745e6,
        shared_per_sm: 48 << 10,
        blocks_per_sm: 16,
        l2_bytes: 3 << 19,
        fma_f32_per_s: 15.0 * 192.0 * 745e6,
        fma_f64_per_s: 15.0 * 64.0 * 745e6,
        fma_latency_cycles: 11.0,
        assumed: Assumed::of(&["read_bytes_per_s", "write_bytes_per_s", "launch_s"]),
        ..Machine::M40
    };

    /// NVIDIA GK210, half a Tesla K80, at its boost clock of 875 MHz: twice a K40c's registers. 154 of nominally 240
    /// GB/s (course report, Figs. 3 and 4), taken for writes too.
    pub const GK210: Machine = Machine {
        name: Name::new("Tesla K80"),
        compute_capability: (3, 7),
        sms: 13,
        clock_hz: 875e6,
        registers_per_sm: 131_072,
        shared_per_sm: 112 << 10,
        bus_bytes_per_s: 240e9,
        read_bytes_per_s: 154e9,
        write_bytes_per_s: 154e9,
        fma_f32_per_s: 13.0 * 192.0 * 875e6,
        fma_f64_per_s: 13.0 * 64.0 * 875e6,
        assumed: Assumed::of(&["write_bytes_per_s", "memory_latency_s", "launch_s"]),
        ..Machine::K40C
    };

    /// NVIDIA Tesla C2050, Fermi: 1.03 TF in f32, half of that in f64, 144 GB/s. Reads and writes: an H200's shares.
    /// Latencies: 800 cycles and 22, the most that the programming guide (4.2, Section 5.2.3) gives.
    pub const C2050: Machine = Machine {
        name: Name::new("Tesla C2050"),
        compute_capability: (2, 0),
        sms: 14,
        clock_hz: 1.15e9,
        registers_per_sm: 32_768,
        registers_per_block: 32_768,
        registers_per_thread: 63,
        register_granule: 64,
        register_partitions: 2,
        shared_granule: 128,
        threads_per_sm: 1536,
        blocks_per_sm: 8,
        l2_bytes: 768 << 10,
        bus_bytes_per_s: 144e9,
        read_bytes_per_s: 144e9 * READ_SHARE,
        write_bytes_per_s: 144e9 * WRITE_SHARE,
        memory_latency_s: 800.0 / 1.15e9,
        fma_f32_per_s: 14.0 * 32.0 * 1.15e9,
        fma_f64_per_s: 14.0 * 16.0 * 1.15e9,
        fma_latency_cycles: 22.0,
        assumed: Assumed::of(&["read_bytes_per_s", "write_bytes_per_s", "launch_s"]),
        ..Machine::K40C
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Data sheets: TF in f32 and f64.
    #[test]
    fn peaks_are_the_data_sheets() {
        for (name, f32_tflops, f64_tflops) in [
            ("k40c", 4.29, 1.43),
            ("m40", 6.844, 0.213),
            ("p100", 10.6, 5.3),
            ("v100", 14.1, 7.066),
            ("a100", 19.5, 9.7),
            ("h100", 67.0, 34.0),
            ("h200", 67.0, 34.0),
            ("b200", 75.0, 37.0),
            ("rtx4090", 82.6, 1.29),
            ("gk210", 4.37, 1.456),
            ("c2050", 1.03, 0.515),
        ] {
            let Some(machine) = by_name(name) else { panic!("{name}") };
            assert!((2.0 * machine.fma_f32_per_s / 1e12 / f32_tflops - 1.0).abs() <= 0.02, "{name}");
            assert!((2.0 * machine.fma_f64_per_s / 1e12 / f64_tflops - 1.0).abs() <= 0.02, "{name}");
        }
    }

    /// Data sheets: dense TF of the matrix units in f64 and tf32.
    #[test]
    fn matrix_units_are_the_data_sheets() {
        for (name, f64_tflops, tf32_tflops) in
            [("a100", 19.5, 156.0), ("h200", 67.0, 494.7 * 1.98 / 1.83), ("b200", 37.0, 1100.0), ("rtx4090", 0.0, 82.6)]
        {
            let Some(machine) = by_name(name) else { panic!("{name}") };
            let near = |got: f64, want: f64| (2.0 * got / 1e12 - want).abs() <= 0.09 * want;
            assert!(near(machine.mma_f64_per_s, f64_tflops), "{name}");
            assert!(near(machine.mma_tf32_per_s, tf32_tflops), "{name}");
        }
    }

    #[test]
    fn names_are_lower_case_and_unique_and_every_machine_can_be() {
        for (at, (name, machine)) in TABLE.iter().enumerate() {
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()), "{name}");
            assert_eq!(TABLE.iter().position(|(other, m)| other == name || m.name == machine.name), Some(at), "{name}");
            assert_eq!(machine.check(), Ok(()), "{name}");
        }
    }

    #[test]
    fn an_architecture_is_not_older_than_what_its_row_is_made_of() {
        assert_eq!((Machine::H100.sms, Machine::H100.compute_capability), (132, (9, 0)));
        assert_eq!((Machine::GK210.shared_per_block, Machine::GK210.threads_per_sm), (48 << 10, 2048));
        assert_eq!((Machine::C2050.shared_per_sm, Machine::C2050.threads_per_block), (48 << 10, 1024));
        assert_eq!((Machine::M40.blocks_per_sm, Machine::K40C.blocks_per_sm), (32, 16));
    }
}
