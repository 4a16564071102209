//! Why a product cannot be computed as it was asked for.

use crate::batched::BatchedProblem;
use crate::choose::{LARGEST_DIMENSION, reasons, too_long};
use crate::occupancy::Residency;
use crate::variants::Layout;
use crate::{Machine, Problem, batched};
use core::fmt;

/// Why no entry can compute a product.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No variant or entry has the name that was asked for.
    UnknownVariant,
    /// The variant exists, but has no entry of this element type.
    NoSuchDtype {
        /// The element type that was asked for.
        dtype: crate::Dtype,
    },
    /// A dimension exceeds [`LARGEST_DIMENSION`].
    DimensionTooLarge {
        /// `m`, `n` or `k`.
        name: &'static str,
        /// Its value.
        value: u64,
    },
    /// The variant wants A's unit stride along its rows, or down its columns, and the product has it elsewhere.
    Layout {
        /// Where the variant's last entry wants it.
        wanted: Layout,
    },
    /// The machine lacks the variant's instructions.
    TooOld {
        /// The compute capability that it needs.
        needs: (u32, u32),
    },
    /// A block of the machine has too little shared memory.
    SharedMemory {
        /// Bytes that a block needs.
        bytes: u32,
    },
    /// A thread of the machine has too few registers.
    Registers {
        /// Registers that a thread needs.
        registers: u32,
    },
    /// A block of the machine has too few registers.
    BlockRegisters {
        /// Registers that a thread needs.
        registers: u32,
        /// Threads that a block has.
        threads: u32,
        /// Registers of a block at most.
        most: u32,
    },
    /// A block of the machine has too few threads.
    Threads {
        /// Threads that a block needs.
        threads: u32,
    },
    /// C has more columns, or k is more, than the variant's last entry has room for.
    TooWide {
        /// Columns of C that it serves at most.
        columns: u32,
        /// The most that k may be, where there is a limit.
        steps: Option<u32>,
    },
    /// The variant serves whole tiles alone.
    NotWhole {
        /// What m, n and k must be multiples of.
        of: [u32; 3],
    },
    /// The variant would need more blocks than a grid has.
    GridTooLarge {
        /// Columns that it can serve at most.
        columns: u64,
    },
    /// The variant would cut C into more tiles than a grid has blocks along x.
    TooManyTiles {
        /// How many.
        tiles: u64,
    },
    /// A dimension of a batch exceeds [`crate::batched::LARGEST`].
    LargerThanBatches {
        /// `m`, `n` or `k`.
        name: &'static str,
        /// Its value.
        value: u64,
    },
    /// A dimension of a batch exceeds what the entry has registers for.
    LargerThanFragments {
        /// `m`, `n` or `k`.
        name: &'static str,
        /// Its value.
        value: u64,
        /// The most that it may be.
        most: u32,
    },
    /// The variant takes packed batches alone, which start at multiples of 16 bytes where their lines are spaced.
    NotPacked,
    /// The variant takes matrices without gaps alone.
    Gaps,
    /// The variant takes batches alone whose A, B and C are each one run from a multiple of 16 bytes on, all by columns or all by rows.
    NotRuns,
    /// A dimension of a batch is smaller than what a thread computes.
    SmallerThanTile {
        /// `m` or `n`.
        name: &'static str,
        /// Its value.
        value: u64,
        /// The least that it may be.
        least: u32,
    },
    /// The variant adds in any order, and the same bits were asked for.
    AnyOrder,
    /// The variant computes Gram matrices alone, or none.
    OtherOperation {
        /// Whether a Gram matrix was asked for.
        gram: bool,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::UnknownVariant => f.write_str("no variant or entry has this name"),
            Refusal::NoSuchDtype { dtype } => write!(f, "it has no entry for {dtype}"),
            Refusal::DimensionTooLarge { name, value } => {
                write!(f, "{name} is {value}, the kernels count up to {LARGEST_DIMENSION}")
            }
            Refusal::Layout { wanted: Layout::Rows } => f.write_str("it wants unit stride along the rows of A"),
            Refusal::Layout { .. } => f.write_str("it wants unit stride down the columns of A"),
            Refusal::TooOld { needs: (major, minor) } => write!(f, "it needs compute capability {major}.{minor}"),
            Refusal::SharedMemory { bytes } => write!(f, "its blocks need {bytes} bytes of shared memory"),
            Refusal::Registers { registers } => write!(f, "its threads need {registers} registers"),
            Refusal::BlockRegisters { registers, threads, most } => {
                write!(f, "its blocks need {registers} registers for each of {threads} threads, a block has {most}")
            }
            Refusal::Threads { threads } => write!(f, "its blocks need {threads} threads"),
            Refusal::TooWide { columns, steps: Some(steps) } => {
                write!(f, "it serves at most {columns} columns of C and k up to {steps}")
            }
            Refusal::TooWide { columns, steps: None } => write!(f, "it serves at most {columns} columns of C"),
            Refusal::NotWhole { of: [m, n, k] } => {
                write!(f, "it serves whole tiles alone: m, n and k that are multiples of {m}, {n} and {k}")
            }
            Refusal::GridTooLarge { columns } => write!(f, "it serves at most {columns} columns"),
            Refusal::TooManyTiles { tiles } => {
                write!(
                    f,
                    "it would cut C into {tiles} tiles, and a grid has up to {} blocks for them",
                    crate::launch::GRID_X
                )
            }
            Refusal::LargerThanBatches { name, value } => {
                write!(f, "{name} is {value}, the kernels of batches take up to {}", crate::batched::LARGEST)
            }
            Refusal::LargerThanFragments { name, value, most } => {
                write!(f, "{name} is {value}, of which the lanes of a warp take up to {most}")
            }
            Refusal::NotPacked => f.write_str("it takes packed batches alone, one matrix behind the other"),
            Refusal::Gaps => f.write_str("it takes matrices without gaps alone, the elements of each in one run"),
            Refusal::NotRuns => f.write_str(
                "it takes batches alone whose A, B and C are each one run from a multiple of 16 bytes on, all by columns or all by rows",
            ),
            Refusal::SmallerThanTile { name, value, least } => {
                write!(f, "{name} is {value}, its threads compute {least} at least")
            }
            Refusal::AnyOrder => f.write_str("it adds in any order, so that no two runs need give the same bits"),
            Refusal::OtherOperation { gram: true } => f.write_str("it computes no Gram matrices, or no triangle of one"),
            Refusal::OtherOperation { gram: false } => f.write_str("it computes Gram matrices alone"),
        }
    }
}

impl core::error::Error for Refusal {}

/// Why an SM holds no block: its shared memory, its registers and its threads, where one of them is too much.
pub(crate) fn too_large(
    held: &Residency,
    registers: u32,
    shared_bytes: u32,
    machine: &Machine,
) -> [Option<Refusal>; 3] {
    let (threads, most) = (held.threads, machine.registers_per_block);
    let of_registers = match registers > machine.registers_per_thread {
        true => Refusal::Registers { registers },
        false => Refusal::BlockRegisters { registers, threads, most },
    };
    [
        (held.by_shared == 0).then_some(Refusal::SharedMemory { bytes: shared_bytes }),
        (held.by_registers == 0).then_some(of_registers),
        (held.by_threads == 0).then_some(Refusal::Threads { threads }),
    ]
}

/// Every reason why no entry in question can compute a product, with what the machine has, for a message: `it needs compute
/// capability 9.0, NVIDIA A100-SXM4-40GB has 8.0; it wants unit stride along the rows of A (6 of 12 entries)`.
#[derive(Clone, Copy, Debug)]
pub struct Refusals<'a> {
    /// What [`crate::choose()`] said.
    pub refusal: Refusal,
    /// The product.
    pub problem: &'a Problem,
    /// The machine.
    pub machine: &'a Machine,
    /// The variant or entry that was asked for.
    pub force: Option<&'a str>,
}

impl fmt::Display for Refusals<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.refusal {
            // Of the name, before any entry is looked at.
            Refusal::UnknownVariant => write!(f, "{}", self.refusal),
            Refusal::NoSuchDtype { .. } | Refusal::AnyOrder | Refusal::OtherOperation { .. } => {
                too_old_for_all(f, self.machine)?;
                write!(f, "{}", self.refusal)
            }
            Refusal::DimensionTooLarge { .. } => {
                too_old_for_all(f, self.machine)?;
                listed(f, None, || core::iter::once(too_long(self.problem)))
            }
            _ => {
                too_old_for_all(f, self.machine)?;
                listed(f, Some(self.machine), || reasons(self.problem, self.machine, self.force))
            }
        }
    }
}

/// The same of a batch.
#[derive(Clone, Copy, Debug)]
pub struct BatchedRefusals<'a> {
    /// What [`crate::choose_batched`] said.
    pub refusal: Refusal,
    /// The batch.
    pub problem: &'a BatchedProblem,
    /// The machine.
    pub machine: &'a Machine,
    /// The variant or entry that was asked for.
    pub force: Option<&'a str>,
}

impl fmt::Display for BatchedRefusals<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.refusal {
            Refusal::UnknownVariant | Refusal::NoSuchDtype { .. } => write!(f, "{}", self.refusal),
            _ => {
                too_old_for_all(f, self.machine)?;
                listed(f, Some(self.machine), || batched::reasons(self.problem, self.machine, self.force))
            }
        }
    }
}

/// Says first that kernels are not made for a machine, whatever else is wrong there.
fn too_old_for_all(f: &mut fmt::Formatter<'_>, machine: &Machine) -> fmt::Result {
    let (oldest, (major, minor)) = (Machine::COMMON.compute_capability, machine.compute_capability);
    if (major, minor) >= oldest {
        return Ok(());
    }
    let name = machine.name;
    write!(f, "the kernels need compute capability {}.{}, {name} has {major}.{minor}; ", oldest.0, oldest.1)
}

/// A reason with what the machine has of that of which it has too little.
struct Beside<'a> {
    reason: Refusal,
    machine: &'a Machine,
}

impl fmt::Display for Beside<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Beside { reason, machine } = self;
        write!(f, "{reason}")?;
        match *reason {
            Refusal::TooOld { .. } => {
                let (major, minor) = machine.compute_capability;
                write!(f, ", {} has {major}.{minor}", machine.name)
            }
            Refusal::SharedMemory { bytes } if bytes > machine.shared_per_block => {
                write!(f, ", a block has {}", machine.shared_per_block)
            }
            Refusal::SharedMemory { .. } => {
                write!(f, ", an SM has {} less {} of each block", machine.shared_per_sm, machine.shared_reserved)
            }
            Refusal::Registers { .. } => write!(f, ", a thread has {}", machine.registers_per_thread),
            Refusal::Threads { threads } if threads > machine.threads_per_block => {
                write!(f, ", a block has {}", machine.threads_per_block)
            }
            // Others say it themselves. An entry's own most threads are no number of the machine.
            _ => Ok(()),
        }
    }
}

/// Every reason once, with what the machine has and the number of entries that it is of where it is not of all.
fn listed<R, I>(f: &mut fmt::Formatter<'_>, machine: Option<&Machine>, entries: impl Fn() -> I) -> fmt::Result
where
    I: Iterator<Item = R>,
    R: AsRef<[Option<Refusal>]> + IntoIterator<Item = Option<Refusal>>,
{
    let all = entries().count();
    let mut separator = "";
    for (at, reason) in entries().flatten().flatten().enumerate() {
        if entries().flatten().flatten().take(at).any(|earlier| earlier == reason) {
            continue;
        }
        f.write_str(separator)?;
        match machine {
            Some(machine) => write!(f, "{}", Beside { reason, machine })?,
            None => write!(f, "{reason}")?,
        }
        separator = "; ";
        let of = entries().filter(|reasons| reasons.as_ref().contains(&Some(reason))).count();
        if of < all {
            write!(f, " ({of} of {all} entries)")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::tiling;
    use crate::{Dtype, Strides, choose};
    use std::string::{String, ToString};

    fn said(problem: &Problem, machine: &Machine, force: &str) -> String {
        let Err(refusal) = choose(problem, machine, Some(force)) else { panic!("{force} is not refused") };
        Refusals { refusal, problem, machine, force: Some(force) }.to_string()
    }

    #[test]
    fn every_reason_is_listed_once() {
        let by_columns = Problem::column_major(Dtype::F64, 1000, 16, 1000);
        let by_rows = Problem { a: Strides::row_major(1000), ..by_columns };
        let entry = "dtsm2r_mma_16x48_n48_k16_s3_t256_rows";
        assert_eq!(said(&by_columns, &Machine::H200, entry), "it wants unit stride along the rows of A");
        let old = "the kernels need compute capability 8.0, Tesla P100-SXM2-16GB has 6.0; it needs compute capability 9.0, Tesla P100-SXM2-16GB has 6.0; ";
        let too_large = |bytes| std::format!("{old}its blocks need {bytes} bytes of shared memory, a block has 49152");
        let shared = crate::VARIANTS.iter().find(|v| v.entry == entry).map(|v| tiling(v, 1000, 16).shared_bytes);
        assert_eq!(Some(said(&by_rows, &Machine::P100, entry)), shared.map(too_large));
        let strided = std::format!("{old}it wants unit stride along the rows of A; ");
        assert!(said(&by_columns, &Machine::P100, entry).starts_with(&strided));
        let of_all = said(&by_columns, &Machine::A100, "tsm2r_mma");
        let table = || crate::VARIANTS.iter().filter(|v| v.name == "tsm2r_mma" && v.dtype == Dtype::F64);
        let (entries, by_rows) =
            (table().count(), table().filter(|v| v.layout == crate::variants::Layout::Rows).count());
        assert!(of_all.starts_with("it needs compute capability 9.0, NVIDIA A100-SXM4-40GB has 8.0; "), "{of_all}");
        assert!(
            of_all.contains(&std::format!("it wants unit stride along the rows of A ({by_rows} of {entries} entries)")),
            "{of_all}"
        );
        assert_eq!(of_all.matches("compute capability").count(), 1, "{of_all}");
    }

    #[test]
    fn what_a_block_cannot_have_is_refused() {
        let problem = Problem::column_major(Dtype::F64, 1000, 2, 1000);
        let entry = "dtsm2r_prefetch_1x2_u16_t128";
        let few = Machine { threads_per_block: 64, registers_per_thread: 16, ..Machine::H200 };
        let registers =
            crate::occupancy::registers(crate::VARIANTS.iter().find(|v| v.entry == entry).expect("an entry"), &few);
        assert_eq!(
            said(&problem, &few, entry),
            std::format!(
                "its threads need {registers} registers, a thread has 16; its blocks need 128 threads, a block has 64"
            )
        );
        // A block may have so much, but an SM keeps more of each than it has left.
        let by_rows = Problem { a: Strides::row_major(1000), ..Problem::column_major(Dtype::F64, 1000, 48, 1000) };
        let ring = "dtsm2r_mma_16x48_n48_k16_s3_t256_rows";
        let shared = crate::VARIANTS.iter().find(|v| v.entry == ring).map(|v| tiling(v, 1000, 48).shared_bytes);
        let bytes = shared.expect("an entry");
        let kept = Machine { shared_per_sm: bytes, shared_per_block: bytes, ..Machine::H200 };
        let has = std::format!("{bytes} bytes of shared memory, an SM has {bytes} less 1024 of each block");
        assert_eq!(said(&by_rows, &kept, ring), std::format!("its blocks need {has}"));
        assert!(choose(&problem, &few, None).is_err());
    }

    /// A C2050's block has 32768 registers.
    #[test]
    fn what_no_sm_holds_is_refused() {
        let problem = Problem::column_major(Dtype::F32, 2048, 64, 2048);
        let naive = crate::VARIANTS.iter().find(|v| v.name == "gemm_naive" && v.dtype == Dtype::F32).expect("an entry");
        let registers = crate::occupancy::registers(naive, &Machine::C2050);
        assert!(registers <= 63 && naive.threads * registers > 32_768, "{registers}");
        let needs = std::format!("registers for each of {} threads, a block has 32768", naive.threads);
        let old = "the kernels need compute capability 8.0, Tesla C2050 has 2.0; ";
        assert_eq!(
            said(&problem, &Machine::C2050, naive.entry),
            std::format!("{old}its blocks need {registers} {needs}")
        );
        let shapes = [(1024, 64, 320), (1024, 1, 64), (16, 16, 100_000), (100_000, 8, 8)];
        for (name, machine) in crate::machine::TABLE {
            for v in crate::VARIANTS {
                for (m, n, k) in shapes {
                    let by_columns = Problem::column_major(v.dtype, m, n, k);
                    let by_rows = Problem { a: Strides::row_major(k), ..by_columns };
                    for p in [by_columns, by_rows, Problem::gram(v.dtype, n, k, by_columns.a)] {
                        let Ok(choice) = choose(&p, &machine, Some(v.entry)) else { continue };
                        let registers = crate::occupancy::registers(v, &machine);
                        let blocks =
                            crate::occupancy::resident_blocks(&machine, v.threads, registers, choice.shared_bytes);
                        assert!(blocks >= 1 && blocks == choice.estimate.resident, "{name}: {choice}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_no_entry_is_asked_for_is_one_reason() {
        let problem = Problem::column_major(Dtype::F64, 1 << 32, 2, 2);
        assert_eq!(
            said(&problem, &Machine::H200, "tsm2r_inner"),
            "m is 4294967296, the kernels count up to 4294901759"
        );
        let problem = Problem::column_major(Dtype::F64, 1 << 32, 2, 1 << 33);
        assert_eq!(
            said(&problem, &Machine::H200, "tsm2r_inner"),
            "m is 4294967296, the kernels count up to 4294901759; k is 8589934592, the kernels count up to 4294901759"
        );
        let problem = Problem::column_major(Dtype::F32, 10, 10, 100);
        assert_eq!(said(&problem, &Machine::H200, "tsm2r_mma"), "it has no entry for f32");
        let old = "the kernels need compute capability 8.0, Tesla V100-PCIE-16GB has 7.0; it has no entry for f32";
        assert_eq!(said(&problem, &Machine::V100, "tsm2r_mma"), old);
        assert_eq!(said(&problem, &Machine::H200, "tsm3r"), "no variant or entry has this name");
    }

    #[test]
    fn every_reason_of_a_batch_is_listed_once() {
        let said = |p: &BatchedProblem, machine: &Machine, force| {
            let Err(refusal) = crate::choose_batched(p, machine, force) else { panic!("{force:?} is not refused") };
            BatchedRefusals { refusal, problem: p, machine, force }.to_string()
        };
        let large = BatchedProblem::column_major(Dtype::F64, (40, 40, 8), 1000);
        let dimensions = "m is 40, the kernels of batches take up to 32; n is 40, the kernels of batches take up to 32";
        assert_eq!(said(&large, &Machine::H200, None), dimensions);
        assert_eq!(
            said(&large, &Machine::V100, Some("batched_packed")),
            std::format!(
                "the kernels need compute capability 8.0, Tesla V100-PCIE-16GB has 7.0; {dimensions}; it needs compute capability \
                 8.0, Tesla V100-PCIE-16GB has 7.0"
            )
        );
        let small = BatchedProblem::column_major(Dtype::F64, (32, 8, 32), 1000);
        let few = Machine { registers_per_thread: 64, ..Machine::H200 };
        let fragments = said(&small, &few, Some("batched_fragments"));
        for reason in ["m is 32, of which the lanes of a warp take up to 16 (1 of 3 entries)", "k is 32,"] {
            assert!(fragments.contains(reason), "{reason}: {fragments}");
        }
        assert!(fragments.contains("its threads need ") && !fragments.contains("shared memory"), "{fragments}");
        assert_eq!(said(&small, &Machine::H200, Some("tsm2r")), "no variant or entry has this name");
    }
}
