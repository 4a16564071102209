//! What the paper used: Tables 3 and 4.

use super::Parameters;
use crate::{Dtype, Machine};

/// A row of Table 3, or of Table 4's kernels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// The GPU.
    pub machine: Machine,
    /// Element type.
    pub dtype: Dtype,
    /// Threads a block.
    pub t1: u32,
    /// Columns a thread; where it is none, all n (see [`Row::parameters`]).
    pub t2: Option<u32>,
    /// Elements of A a thread.
    pub t3: u32,
    /// Registers a thread, for the largest n, 16.
    pub registers: u32,
    /// The row holds from this m on.
    pub m_from: u64,
}

/// Rows of A from which a V100 in f64 takes t3 = 12 instead of 16.
///
/// The paper's text has lost the number. The authors' code tests for fewer than 20480 rows, while its comment says
/// 10240: we go by what the code does.
const V100_M: u64 = 20_480;

/// The largest n of the paper, for which its tables give registers.
pub(super) const LARGEST_N: u64 = 16;

/// Table 3. Its rows for TSM2L (Table 4, first optimisation) are the V100's.
pub const TABLE3: [Row; 9] = [
    row(Machine::K40C, Dtype::F32, [128, 0, 4], 64, 0),
    row(Machine::K40C, Dtype::F64, [128, 0, 4], 128, 0),
    row(Machine::M40, Dtype::F32, [256, 8, 4], 40, 0),
    row(Machine::M40, Dtype::F64, [256, 8, 4], 70, 0),
    row(Machine::P100, Dtype::F32, [128, 4, 4], 32, 0),
    row(Machine::P100, Dtype::F64, [128, 4, 4], 56, 0),
    row(Machine::V100, Dtype::F32, [128, 0, 32], 144, 0),
    row(Machine::V100, Dtype::F64, [128, 0, 16], 180, 0),
    row(Machine::V100, Dtype::F64, [128, 0, 12], 168, V100_M),
];

const fn row(machine: Machine, dtype: Dtype, [t1, t2, t3]: [u32; 3], registers: u32, m_from: u64) -> Row {
    Row { machine, dtype, t1, t2: if t2 == 0 { None } else { Some(t2) }, t3, registers, m_from }
}

impl Row {
    /// The row for an m x n product, if the paper used this GPU: by what it can do, not by name.
    ///
    /// # Source
    /// TSM2X, Table 3. Which of a V100's rows in f64 holds is the authors' code's: the last from 20480 rows on, and for more
    /// than 16 columns whatever m.
    pub fn of(machine: &Machine, dtype: Dtype, m: u64, n: u64) -> Option<&'static Row> {
        let named = super::named(machine)?.machine;
        let fits = |row: &&Row| row.machine == named && row.dtype == dtype && (row.m_from <= m || n > LARGEST_N);
        TABLE3.iter().rfind(fits)
    }

    /// The parameters for n columns; where the table has no t2 it is n up to [`Row::widest`], and more columns are more
    /// passes over A.
    ///
    /// # Source
    /// TSM2X, Table 3. For n above 16, which the paper has not, t2 is the authors' code's on a V100, and ours elsewhere.
    pub fn parameters(&self, n: u64) -> Parameters {
        let widest = self.widest();
        let all = match u32::try_from(n) {
            // The authors' next kernel after 16 columns has room for 32.
            Ok(n) if u64::from(n) <= LARGEST_N => n,
            _ => widest,
        };
        Parameters { t1: self.t1, t2: self.t2.unwrap_or(all), t3: self.t3 }
    }

    /// The largest t2 where the table has none: on a V100 that of the authors' kernels, 16 columns in f32 and 32 in f64;
    /// on other GPUs 16, the largest n of the paper.
    ///
    /// # Source
    /// The authors' code, whose kernels are chosen for a V100 alone.
    pub fn widest(&self) -> u32 {
        if self.dtype == Dtype::F64 && self.machine == Machine::V100 { 32 } else { 16 }
    }

    /// C0: what the row's registers leave beside (e/4)(3·t2 + 2·t3).
    ///
    /// # Source
    /// TSM2X, Table 3 and Eq. (1), with t2 = 16 where the table has none: registers are "for the largest n". Ours.
    pub fn fixed_registers(&self) -> u32 {
        let words = if self.dtype.bytes() == 8 { 2 } else { 1 };
        self.registers - words * (3 * self.t2.unwrap_or(16) + 2 * self.t3)
    }
}

/// Registers of TSM2L's second optimisation on a V100 at n = 16: element type, t3, registers (Table 4).
pub const TSM2L_INTERLEAVED: [(Dtype, u32, u32); 3] =
    [(Dtype::F32, 32, 251), (Dtype::F64, 16, 254), (Dtype::F64, 12, 252)];

/// C0 of a GPU: Table 3's first row of it, else a V100's; of complex types that of their parts, since the table has none.
pub(super) fn fixed_registers(machine: &Machine, dtype: Dtype) -> u32 {
    let row = Row::of(machine, dtype.real(), 0, 1).or_else(|| Row::of(&Machine::V100, dtype.real(), 0, 1));
    row.map_or(0, Row::fixed_registers)
}

/// How many times fewer threads than rows TSM2L launches on a V100.
///
/// # Source
/// TSM2X, Section 4.3: 1, 1, 2, 8 in f32 and 1, 1, 1, 4 in f64 for 1e4, 1e5, 1e6, 1e7 rows; between them, the authors'
/// code.
pub const fn tcf(dtype: Dtype, m: u64) -> u32 {
    match dtype {
        Dtype::F32 if m >= 10_000_000 => 8,
        Dtype::F32 if m >= 1_000_000 => 2,
        Dtype::F64 if m >= 10_000_000 => 4,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Constants, registers_per_thread};
    use super::*;
    use std::vec::Vec;

    /// The strong check of Eq. (1): all nine rows leave a small positive constant.
    #[test]
    fn table_3_leaves_6_to_32_registers() {
        let left: Vec<u32> = TABLE3.iter().map(Row::fixed_registers).collect();
        assert_eq!(left, [8, 16, 8, 6, 12, 16, 32, 20, 24]);
    }

    #[test]
    fn eq_1_yields_table_3s_registers() {
        for row in &TABLE3 {
            let gpu = Constants {
                fixed_registers: f64::from(row.fixed_registers()),
                ..Constants::of(&row.machine, row.dtype)
            };
            let Parameters { t2, t3, .. } = row.parameters(16);
            assert_eq!(registers_per_thread(&gpu, f64::from(t2), f64::from(t3)), f64::from(row.registers));
        }
    }

    /// Bytes a block: t1·t2·e.
    #[test]
    fn shared_memory_is_the_tables() {
        for (machine, dtype, bytes) in [
            (Machine::M40, Dtype::F32, 8192),
            (Machine::M40, Dtype::F64, 16_384),
            (Machine::P100, Dtype::F32, 2048),
            (Machine::P100, Dtype::F64, 4096),
            (Machine::K40C, Dtype::F32, 512 * 16),
            (Machine::V100, Dtype::F64, 1024 * 16),
        ] {
            let Some(row) = Row::of(&machine, dtype, 10_240, 16) else { panic!("{}", machine.name) };
            let Parameters { t1, t2, .. } = row.parameters(16);
            assert_eq!(u64::from(t1 * t2) * dtype.bytes(), bytes, "{}", machine.name);
        }
    }

    #[test]
    fn complex_types_have_the_constants_of_their_parts() {
        for machine in [Machine::V100, Machine::P100, Machine::H200] {
            for (dtype, real) in [(Dtype::C64, Dtype::F32), (Dtype::C128, Dtype::F64)] {
                assert_eq!(Row::of(&machine, dtype, 10_240, 16), None);
                assert_eq!(fixed_registers(&machine, dtype), fixed_registers(&machine, real));
            }
        }
        assert_eq!([Dtype::C64, Dtype::C128].map(|dtype| fixed_registers(&Machine::H200, dtype)), [32, 20]);
    }

    #[test]
    fn t2_is_n_up_to_the_widest_kernel() {
        for (machine, dtype, widest) in [
            (Machine::K40C, Dtype::F32, 16),
            (Machine::K40C, Dtype::F64, 16),
            (Machine::V100, Dtype::F32, 16),
            (Machine::V100, Dtype::F64, 32),
        ] {
            let t2 = |n| Row::of(&machine, dtype, 10_240, n).map(|row| row.parameters(n).t2);
            let wanted = [1, 16, widest, widest, widest, widest, widest].map(Some);
            assert_eq!([1, 16, 17, 32, 33, 4096, u64::MAX].map(t2), wanted, "{} {dtype}", machine.name);
        }
        // What the table prints stays.
        assert_eq!(Row::of(&Machine::M40, Dtype::F64, 10_240, 64).map(|row| row.parameters(64).t2), Some(8));
    }

    /// The authors' last kernel in f64 has t2 = 32 and t3 = 12, also for few rows; by (1) more registers than there are.
    #[test]
    fn more_than_16_columns_in_f64_fetch_12_elements() {
        let t3 = |dtype, n| Row::of(&Machine::V100, dtype, 4096, n).map(|row| row.t3);
        assert_eq!([t3(Dtype::F64, 16), t3(Dtype::F64, 17), t3(Dtype::F64, 4096)], [Some(16), Some(12), Some(12)]);
        assert_eq!([t3(Dtype::F32, 16), t3(Dtype::F32, 17)], [Some(32), Some(32)]);
    }

    #[test]
    fn a_v100_fetches_fewer_elements_of_tall_matrices() {
        let t3 = |m| Row::of(&Machine::V100, Dtype::F64, m, 16).map(|row| row.t3);
        assert_eq!([t3(10_240), t3(20_479), t3(20_480), t3(40_960)], [Some(16), Some(16), Some(12), Some(12)]);
        assert_eq!(Row::of(&Machine::H200, Dtype::F64, 20_480, 16), None);
    }

    /// What the reconstruction cannot yield: the second optimisation also fetches the next C, which is t2 elements more than (1).
    /// Table 4 has another 42 to 91 registers.
    #[test]
    fn registers_of_the_interleaved_kernel_do_not_follow() {
        for ((dtype, t3, printed), more) in TSM2L_INTERLEAVED.into_iter().zip([91, 42, 52]) {
            let gpu = Constants::of(&Machine::V100, dtype);
            let row = TABLE3.iter().find(|row| (row.dtype, row.t3, row.t2) == (dtype, t3, None));
            let gpu = Constants { fixed_registers: row.map_or(f64::NAN, |row| row.fixed_registers().into()), ..gpu };
            let next_c = 16.0 * gpu.elem_bytes / 4.0;
            let followed = registers_per_thread(&gpu, 16.0, f64::from(t3)) + next_c;
            assert_eq!(f64::from(printed) - followed, f64::from(more), "{dtype} {t3}");
        }
    }

    #[test]
    fn tcf_is_section_4_3s() {
        let of = |dtype| [10_000, 100_000, 1_000_000, 10_000_000].map(|m| tcf(dtype, m));
        assert_eq!((of(Dtype::F32), of(Dtype::F64)), ([1, 1, 2, 8], [1, 1, 1, 4]));
    }
}
