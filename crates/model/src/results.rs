//! The fields of measured results: one schema for all families, here and nowhere else.

/// The columns of a results file, in their order. README.md in benches/ says what each holds.
pub const FIELDS: [&str; 34] = [
    "family",
    "dtype",
    "layout",
    "op_a",
    "op_b",
    "beta",
    "m",
    "n",
    "k",
    "lda",
    "ldb",
    "ldc",
    "batch",
    "device",
    "variant",
    "chooser",
    "splits",
    "samples",
    "ns_median",
    "ns_low",
    "ns_high",
    "ns_min",
    "bytes",
    "flops",
    "gbs",
    "bound_ns",
    "fraction",
    "opponent",
    "opponent_ns",
    "ratio",
    "seed",
    "commit",
    "driver",
    "date",
];

/// The families of cases, as the first column has them.
pub const FAMILIES: [&str; 8] = ["tsm2r", "tsmm", "tsm2l", "tsmttsm", "gram", "gemv", "gemm", "batched"];

/// What the first column has where no product was measured, but what the device does at most.
pub const CEILING: &str = "ceiling";
