//! What each command's help ends with: examples, every line of which a test parses, and what else there is to say.

pub const MUL: &str = "\
Examples:
  lanky mul A.npy B.npy -o C.npy
  lanky mul A.npy B.npy -o C.npy --transpose-a
  lanky mul A.npy B.npy -o C.npy --alpha 2 --c C0.npy --beta -1 --device cpu";

pub const GEMV: &str = "\
Examples:
  lanky gemv A.npy x.npy -o y.npy
  lanky gemv A.npy x.npy -o y.npy --transpose-a
  lanky gemv complex.npy x.npy -o y.npy --adjoint-a --alpha 2 --y y0.npy --beta -1 --device cpu";

pub const GRAM: &str = "\
Examples:
  lanky gram A.npy -o G.npy
  lanky gram A.npy -o G.npy --alpha -1 --c G0.npy --device cpu --json
  lanky gram complex.npy -o G.npy --no-conj";

pub const BATCH: &str = "\
Examples:
  lanky batch A.npy B.npy -o C.npy
  lanky batch A.npy B.npy -o C.npy --adjoint-a --alpha 2 --c C0.npy --beta -1 --json";

pub const DEMO: &str = "\
Examples:
  lanky demo
  lanky demo --m 100000 --n 4 --k 1000 --dtype f32 --device cuda:0";

pub const INFO: &str = "\
Examples:
  lanky info
  lanky info --ptx kernels";

pub const PLAN: &str = "\
Examples:
  lanky plan 20480 4 20480
  lanky plan 1000000 16 1000000 --gpu rtx4090 --paper
Environment: LANKY_TUNED a database of lanky tune that plans follow (unset: the library's of the GPU; none: the model alone).";

pub const BENCH: &str = "\
Examples:
  lanky bench --family tsm2r --m 20480 --k 20480 --n 1,2,4,8
  lanky bench --quick --csv results.csv

Without a suite the cases are those of --m, --n, --k and --batch, all with each other.
Environment: LANKY_SUITE names a suite for where none of --suite, --m, --n, --k and --batch is given, LANKY_CUBLAS and
LANKY_OPENBLAS a library or its folder, LANKY_OPPONENTS the library of benches/opponents, LANKY_COMMIT the commit that
results are of, LANKY_TUNED a database of lanky tune that plans follow (unset: the library's of the GPU; none: the model
alone).";

pub const REPORT: &str = "\
Examples:
  lanky report results.csv -o results.html";

pub const TRACE: &str = "\
Examples:
  lanky trace tsm2r --variant tsm2r_shared
  lanky trace gemv --m 8 --k 4096 --dtype f32
  lanky trace tsm2r --variant tsm2r_shared_rowmajor --svg warp.svg";

pub const TUNE: &str = "\
Plans follow the library's database of the GPU, or the one that LANKY_TUNED names or a program loads (Device::load_tuned); see README.md.
Examples:
  lanky tune
  lanky tune --family gemv --dtype f64 --budget 5m --compare --map maps
  lanky tune --from nvidia-h200.tuned --compare";

pub const COMPLETIONS: &str = "\
Examples:
  lanky completions bash
  lanky completions fish";

pub const MAN: &str = "\
Examples:
  lanky man
  lanky man --out man1";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::{CommandFactory, Parser};

    #[test]
    fn every_example_is_a_command_line() {
        let all = [MUL, GEMV, GRAM, BATCH, DEMO, INFO, PLAN, BENCH, REPORT, TRACE, TUNE, COMPLETIONS, MAN];
        for line in all.iter().flat_map(|text| text.lines()).filter(|line| line.starts_with("  ")) {
            let parsed = Cli::try_parse_from(line.split_whitespace());
            assert!(parsed.is_ok(), "{line}: {}", parsed.err().map_or_else(String::new, |error| error.to_string()));
        }
        for command in Cli::command().get_subcommands() {
            assert!(command.get_after_help().is_some(), "{} has no examples", command.get_name());
        }
        Cli::command().debug_assert();
    }
}
