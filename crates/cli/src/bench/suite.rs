//! Where cases come from: flags, or a suite of the literature's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lanky::Device;
use lanky::text::read_text;

use super::args::BenchArgs;
use super::case::{self, Case, Layout, parse_op};
use crate::csv;
use crate::error::Fault;

/// The suite that the program carries; benches/suite is the same folder.
const DEFAULT: [&str; 8] = [
    include_str!("../../suite/tsm2r.csv"),
    include_str!("../../suite/tsmm.csv"),
    include_str!("../../suite/tsm2l.csv"),
    include_str!("../../suite/tsmttsm.csv"),
    include_str!("../../suite/gram.csv"),
    include_str!("../../suite/gemv.csv"),
    include_str!("../../suite/gemm.csv"),
    include_str!("../../suite/batched.csv"),
];
/// The name of that one.
const CARRIED: &str = "default";
/// Names a suite where `--suite` does not.
const VARIABLE: &str = "LANKY_SUITE";

/// The columns of a suite.
const FIELDS: [&str; 15] = [
    "family", "source", "dtype", "layout", "op_a", "op_b", "beta", "m", "n", "k", "lda", "ldb", "ldc", "batch", "note",
];

/// What is to be measured.
pub struct Cases {
    /// In order.
    pub distinct: Vec<Case>,
    /// How many more there were, each like one of those.
    pub repeated: usize,
}

/// The suite that is asked for, a file or [`CARRIED`], if one is.
fn asked(args: &BenchArgs) -> Option<PathBuf> {
    let sizes_given = [&args.m, &args.n, &args.k, &args.batch].iter().any(|lengths| !lengths.is_empty());
    match &args.suite {
        Some(path) => Some(path.clone()),
        None if sizes_given => None,
        None => std::env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(Into::into),
    }
}

/// The file that the cases are read from, if they are.
pub fn file(args: &BenchArgs) -> Option<PathBuf> {
    asked(args).filter(|path| path != Path::new(CARRIED))
}

/// All cases that the flags ask for.
pub fn cases(args: &BenchArgs, device: &Device) -> Result<Cases, Fault> {
    let cases = match asked(args) {
        Some(path) => of_suite(args, &path)?,
        None => of_flags(args, device),
    };
    if let Some((case, fault)) = cases.iter().find_map(|case| case.fault().map(|fault| (case, fault))) {
        return Err(Fault::Input(format!("{}: {fault}", case.name())));
    }
    let count = cases.len();
    let mut distinct: Vec<Case> = Vec::with_capacity(count);
    for case in cases {
        if !distinct.contains(&case) {
            distinct.push(case);
        }
    }
    Ok(Cases { repeated: count - distinct.len(), distinct })
}

/// Each length with each other; what is not given is what shows the device at its limit.
fn of_flags(args: &BenchArgs, device: &Device) -> Vec<Case> {
    let plain = args.family.is_empty() && args.m.is_empty() && args.n.is_empty() && args.k.is_empty();
    let families: &[&'static str] = match args.family.as_slice() {
        [] if plain => &["tsm2r", "gemm"],
        [] => &["tsm2r"],
        families => families,
    };
    let dtypes: &[&'static str] = if args.dtype.is_empty() { &["f64", "f32"] } else { &args.dtype };
    let mut cases = Vec::new();
    for &family in families {
        let batches = or(&args.batch, &[if family == "batched" { 10_000 } else { 1 }]);
        for &dtype in dtypes {
            for lengths in shapes(args, family, device.is_cuda()) {
                let of = |&batch: &u64| Case { batch, ..Case::plain(family, dtype, lengths) };
                cases.extend(batches.iter().flat_map(|batch| varied(args, of(batch))));
            }
        }
    }
    cases
}

/// What was given, or else the usual.
fn or(given: &[u64], usual: &[u64]) -> Vec<u64> {
    if given.is_empty() { usual.to_vec() } else { given.to_vec() }
}

/// m, n and k of a family: those that were given, each with each other, and else what is usual for it.
fn shapes(args: &BenchArgs, family: &str, is_cuda: bool) -> Vec<(u64, u64, u64)> {
    let (side, tall, square) = if is_cuda { (20480, 1 << 23, 4096) } else { (2048, 1 << 17, 512) };
    let width = match family {
        "gemm" => &[square][..],
        "batched" => &[16],
        "gemv" => &[1],
        _ => &[2, 4, 8, 16],
    };
    let mut shapes = Vec::new();
    let ms = |n: u64| match family {
        "tsmttsm" | "gram" => or(&args.m, &[n]),
        "tsmm" | "tsm2l" => or(&args.m, &[tall]),
        "gemm" | "batched" => or(&args.m, width),
        _ => or(&args.m, &[side]),
    };
    let ks = |m: u64, n: u64| match family {
        "tsmttsm" | "gram" => or(&args.k, &[tall]),
        "tsmm" | "tsm2l" => or(&args.k, &[n]),
        "gemm" | "batched" if args.m.is_empty() => or(&args.k, width),
        _ => or(&args.k, &[if args.m.is_empty() { side } else { m }]),
    };
    for n in or(&args.n, width) {
        for m in ms(n) {
            shapes.extend(ks(m, n).into_iter().map(|k| (m, n, k)));
        }
    }
    // One A with every n, before the next A.
    shapes.sort_by_key(|&(m, _, k)| (m, k));
    shapes
}

/// A case in all layouts and with all β that are asked for.
fn varied(args: &BenchArgs, case: Case) -> Vec<Case> {
    let layouts = if args.layout.is_empty() { vec![case.layout] } else { args.layout.clone() };
    let betas = if args.beta.is_empty() { vec![0.0, 1.0] } else { args.beta.clone() };
    let mut all = Vec::new();
    for layout in layouts {
        for &beta in &betas {
            // A matrix times itself: one of the two has to be transposed.
            let usual = (case.family == "gram", false);
            let (transpose_a, transpose_b) = args.ops.unwrap_or(usual);
            let packed = Case { layout, beta, transpose_a, transpose_b, ..case.clone() }.packed();
            all.push(Case {
                lda: args.lda.unwrap_or(packed.lda),
                ldb: args.ldb.unwrap_or(packed.ldb),
                ldc: args.ldc.unwrap_or(packed.ldc),
                ..packed
            });
        }
    }
    all
}

/// The rows of a suite that the flags leave.
fn of_suite(args: &BenchArgs, path: &Path) -> Result<Vec<Case>, Fault> {
    let mut cases = if path == Path::new(CARRIED) {
        let all: Result<Vec<Vec<Case>>, String> = DEFAULT.into_iter().map(parse).collect();
        all.map_err(|reason| Fault::Input(format!("the suite that is carried: {reason}")))?.concat()
    } else {
        let text = read_text(path).map_err(|error| Fault::file(path, &error))?;
        parse(&text).map_err(|reason| Fault::at(path, &reason))?
    };
    cases.retain(|case| {
        let in_family = args.family.is_empty() || args.family.contains(&case.family);
        let in_dtype = args.dtype.is_empty() || args.dtype.contains(&case.dtype);
        in_family && in_dtype && (args.layout.is_empty() || args.layout.contains(&case.layout))
    });
    let betas = |case: Case| match args.beta.as_slice() {
        [] => vec![case],
        betas => betas.iter().map(|&beta| Case { beta, ..case.clone() }).collect(),
    };
    // By element type, so that the pools of random elements are made once each.
    let mut by_dtype: BTreeMap<&str, Vec<Case>> = BTreeMap::new();
    for case in cases.into_iter().flat_map(betas) {
        by_dtype.entry(case.dtype).or_default().push(case);
    }
    Ok(by_dtype.into_values().flatten().collect())
}

/// The cases of a suite's text.
pub fn parse(text: &str) -> Result<Vec<Case>, String> {
    let mut records = csv::records(text)?.into_iter();
    match records.next() {
        Some((_, header)) if header == FIELDS => {}
        _ => return Err(format!("no suite: its first line must be {}", FIELDS.join(","))),
    }
    records.map(|(line, fields)| row(&fields).map_err(|reason| format!("line {line}: {reason}"))).collect()
}

fn finite(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

fn row(fields: &[String]) -> Result<Case, String> {
    let [family, _source, dtype, layout, op_a, op_b, beta, m, n, k, lda, ldb, ldc, batch, _note] = fields else {
        return Err(format!("{} fields, not {}", fields.len(), FIELDS.len()));
    };
    let number = |name: &str, text: &str| text.parse().map_err(|_| format!("{name} is '{text}', not a whole number"));
    let operation = |name: &str, text: &str| parse_op(text).ok_or_else(|| format!("{name} is '{text}', not n or t"));
    let case = Case {
        layout: Layout::parse(layout).ok_or_else(|| format!("layout is '{layout}'"))?,
        transpose_a: operation("op_a", op_a)?,
        transpose_b: operation("op_b", op_b)?,
        beta: finite(beta).ok_or_else(|| format!("beta is '{beta}', not a finite number"))?,
        batch: number("batch", batch)?,
        ..Case::plain(case::family(family)?, case::dtype(dtype)?, (number("m", m)?, number("n", n)?, number("k", k)?))
    };
    // Blank leading dimensions are those without gaps.
    let packed = case.packed();
    let leading = |name: &str, text: &str, least: u64| if text.is_empty() { Ok(least) } else { number(name, text) };
    let case = Case {
        lda: leading("lda", lda, packed.lda)?,
        ldb: leading("ldb", ldb, packed.ldb)?,
        ldc: leading("ldc", ldc, packed.ldc)?,
        ..packed
    };
    match case.fault() {
        Some(fault) => Err(fault),
        None => Ok(case),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::results::FAMILIES;

    #[test]
    fn the_carried_suite_is_whole() {
        let all: Vec<Case> = DEFAULT.into_iter().flat_map(|text| parse(text).expect("well-formed")).collect();
        assert_eq!(all.len(), 2731, "as many as its source has, and 16 by rows");
        for family in FAMILIES {
            assert!(all.iter().any(|case| case.family == family), "{family}");
        }
        let tsm2r = |dtype| all.iter().filter(|case| case.family == "tsm2r" && case.dtype == dtype).count();
        assert!(tsm2r("f32") >= 96 && tsm2r("f64") >= 96, "{} {}", tsm2r("f32"), tsm2r("f64"));
    }

    /// Those that `--suite` alone takes, too.
    #[test]
    fn every_suite_has_cases() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("suite");
        let files: Vec<_> = folder.read_dir().expect("a folder").map(|file| file.expect("a file").path()).collect();
        assert!(files.len() > DEFAULT.len(), "{files:?}");
        for file in files {
            let cases = parse(&std::fs::read_to_string(&file).expect("a text"));
            assert!(cases.as_ref().is_ok_and(|cases| !cases.is_empty()), "{}: {cases:?}", file.display());
        }
    }

    /// Not the literature's: larger squares, transposed ones, ones whose lines are not aligned, and the course's in f64.
    #[test]
    fn squares_are_a_suite_of_their_own() {
        let all = parse(include_str!("../../suite/squares.csv")).expect("well-formed");
        assert!(all.iter().all(|case| case.family == "gemm" && case.m == case.n && case.n == case.k));
        let at = |dtype, side| all.iter().filter(move |case| case.dtype == dtype && case.m == side);
        for dtype in ["f32", "f64"] {
            for side in [1024, 2048, 4096, 8192] {
                for ops in [(false, false), (true, false), (false, true), (true, true)] {
                    assert!(at(dtype, side).any(|case| (case.transpose_a, case.transpose_b) == ops), "{dtype} {side}");
                }
            }
        }
        assert!((2..=64).all(|j| (32 * j - 1..=32 * j + 1).all(|side| at("f64", side).count() > 0)));
    }

    #[test]
    fn a_row_says_what_is_wrong_with_it() {
        let header = FIELDS.join(",");
        let of = |row: &str| parse(&format!("{header}\n{row}\n"));
        let case = of("gemm,here,f32,rcc,n,t,1,4,5,6,,,,1,\"a, note\"").expect("well-formed").remove(0);
        assert_eq!((case.lda, case.ldb, case.ldc, case.beta), (6, 5, 4, 1.0));
        assert_eq!(of("gemm,here,f32,ccc,n,n,0,4,5,0,,,,1,"), Err("line 2: k is 0".into()));
        assert_eq!(
            of("gemm,here,f32,ccc,n,n,0,4,5,6,3,,,1,"),
            Err("line 2: lda is 3, but a line has 4 elements".into())
        );
        assert_eq!(of("gemm,here,f32,ccc,x,n,0,4,5,6,,,,1,"), Err("line 2: op_a is 'x', not n or t".into()));
        assert!(of("gemm,here").is_err_and(|why| why.contains("2 fields, not 15")));
        assert!(parse("a,b\n").is_err_and(|why| why.starts_with("no suite")));
    }
}
