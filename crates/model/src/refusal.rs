//! Why a product cannot be computed as it was asked for.

use crate::choose::{LARGEST_DIMENSION, reasons};
use crate::variants::Layout;
use crate::{Machine, Problem};
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
            Refusal::Threads { threads } => write!(f, "its blocks need {threads} threads"),
            Refusal::TooWide { columns, steps: Some(steps) } => {
                write!(f, "it serves at most {columns} columns of C and k up to {steps}")
            }
            Refusal::TooWide { columns, steps: None } => write!(f, "it serves at most {columns} columns of C"),
            Refusal::NotWhole { of: [m, n, k] } => {
                write!(f, "it serves whole tiles alone: m, n and k that are multiples of {m}, {n} and {k}")
            }
            Refusal::GridTooLarge { columns } => write!(f, "it serves at most {columns} columns"),
            Refusal::LargerThanBatches { name, value } => {
                write!(f, "{name} is {value}, the kernels of batches take up to {}", crate::batched::LARGEST)
            }
            Refusal::LargerThanFragments { name, value, most } => {
                write!(f, "{name} is {value}, of which the lanes of a warp take up to {most}")
            }
            Refusal::NotPacked => f.write_str("it takes packed batches alone, one matrix behind the other"),
            Refusal::AnyOrder => f.write_str("it adds in any order, so that no two runs need give the same bits"),
            Refusal::OtherOperation { gram: true } => f.write_str("it computes no Gram matrices"),
            Refusal::OtherOperation { gram: false } => f.write_str("it computes Gram matrices alone"),
        }
    }
}

impl core::error::Error for Refusal {}

/// Every reason why no entry in question can compute a product, for a message: `it needs compute capability 9.0; it wants
/// unit stride along the rows of A (6 of 12 entries)`.
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
        let entries = || reasons(self.problem, self.machine, self.force);
        match self.refusal {
            // Of the product or the name, before any entry is looked at.
            Refusal::UnknownVariant
            | Refusal::NoSuchDtype { .. }
            | Refusal::DimensionTooLarge { .. }
            | Refusal::LargerThanBatches { .. }
            | Refusal::LargerThanFragments { .. }
            | Refusal::NotPacked
            | Refusal::AnyOrder
            | Refusal::OtherOperation { .. } => {
                return write!(f, "{}", self.refusal);
            }
            Refusal::Layout { .. }
            | Refusal::TooOld { .. }
            | Refusal::SharedMemory { .. }
            | Refusal::Registers { .. }
            | Refusal::Threads { .. }
            | Refusal::TooWide { .. }
            | Refusal::NotWhole { .. }
            | Refusal::GridTooLarge { .. } => {}
        }
        let all = entries().count();
        let mut separator = "";
        for (at, reason) in entries().flatten().flatten().enumerate() {
            // Each once.
            if entries().flatten().flatten().take(at).any(|earlier| earlier == reason) {
                continue;
            }
            write!(f, "{separator}{reason}")?;
            separator = "; ";
            let of = entries().filter(|reasons| reasons.contains(&Some(reason))).count();
            if of < all {
                write!(f, " ({of} of {all} entries)")?;
            }
        }
        Ok(())
    }
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
        let entry = "dtsm2r_mma_16x64_n64_k16_s4_t128_rows";
        assert_eq!(said(&by_columns, &Machine::H200, entry), "it wants unit stride along the rows of A");
        let too_large =
            |bytes| std::format!("it needs compute capability 9.0; its blocks need {bytes} bytes of shared memory");
        let shared = crate::VARIANTS.iter().find(|v| v.entry == entry).map(|v| tiling(v, 1000, 16).shared_bytes);
        assert_eq!(Some(said(&by_rows, &Machine::P100, entry)), shared.map(too_large));
        let old = "it needs compute capability 9.0; it wants unit stride along the rows of A";
        assert!(said(&by_columns, &Machine::P100, entry).starts_with(old));
        let of_all = said(&by_columns, &Machine::A100, "tsm2r_mma");
        let table = || crate::VARIANTS.iter().filter(|v| v.name == "tsm2r_mma");
        let (entries, by_rows) =
            (table().count(), table().filter(|v| v.layout == crate::variants::Layout::Rows).count());
        assert!(of_all.starts_with("it needs compute capability 9.0; "), "{of_all}");
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
            std::format!("its threads need {registers} registers; its blocks need 128 threads")
        );
        assert!(choose(&problem, &few, None).is_err());
    }

    #[test]
    fn what_no_entry_is_asked_for_is_one_reason() {
        let problem = Problem::column_major(Dtype::F64, 1 << 32, 2, 2);
        assert_eq!(
            said(&problem, &Machine::H200, "tsm2r_inner"),
            "m is 4294967296, the kernels count up to 4294901759"
        );
        let problem = Problem::column_major(Dtype::F32, 10, 10, 100);
        assert_eq!(said(&problem, &Machine::H200, "tsm2r_mma"), "it has no entry for f32");
        assert_eq!(said(&problem, &Machine::H200, "tsm3r"), "no variant or entry has this name");
    }
}
