//! What can go wrong, as plain data: no type of another crate, one line of text each. [`Error`] has the table of what to do.

use std::fmt;

/// The result of every fallible call. The default lets it stand for the standard one where a prelude brings it in.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call did nothing. Nothing was launched and nothing written after an error was found, save where
/// [`Error::Driver`] reports the failure of earlier asynchronous work, and of [large batches on the CPU](crate::gemm_batched()#errors)
/// where memory runs out.
///
/// | error | what to do |
/// |---|---|
/// | [`Error::Shape`] | correct the call: the text names operand, rule, required and given |
/// | [`Error::Unsupported`] | the text says the way out |
/// | [`Error::UnknownVariant`] | take one of the names in it |
/// | [`Error::NoDriver`] | install NVIDIA's driver (`libcuda.so.1`), or use [`Device::cpu`](crate::Device::cpu) |
/// | [`Error::DriverTooOld`] | update the driver |
/// | [`Error::DriverSetup`] | as its text says: another driver, another library, a restart, or the container's devices |
/// | [`Error::NoDevice`] | look at CUDA_VISIBLE_DEVICES and `nvidia-smi`; the GPU must be of compute capability 8.0 or later |
/// | [`Error::DeviceBusy`] | wait for, or end, the process that has the GPU to itself; or take another GPU |
/// | [`Error::OutOfMemory`] | multiply fewer rows at a time, or drop matrices and plans |
/// | [`Error::Jit`] | report it with the log in it: the driver refused a kernel of this library |
/// | [`Error::Driver`] | a fault of the driver, or of earlier work: LANKY_SYNC=1 tells which kernel's |
/// | [`Error::ContextLost`] | restart the process; the CPU still multiplies in this one |
/// | [`Error::WrongDevice`] | `upload` or `download` the operand that is named |
/// | [`Error::WrongStream`] | take a stream of the device that the text names |
/// | [`Error::WrongPlan`] | make a plan for the device that the text names |
/// | [`Error::Forked`] | open the GPU in the child alone |
/// | [`Error::ColdPlanInCapture`] | call [`Plan::warm_up_on`](crate::Plan::warm_up_on) before the capture |
/// | [`Error::Tuned`] | tune again on this GPU (`lanky tune`), or go on: the model decides |
/// | [`Error::Io`] | as the caller's own reader or writer failed |
///
/// After every one of them the process lives on, and matrices, plans and streams can be dropped, also while work that
/// uses them is in flight: a drop waits for that work, or leaves the memory to a context that is lost.
#[non_exhaustive]
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// An operand does not fit.
    #[error("{0}")]
    Shape(#[from] ShapeError),
    /// A legal call that nothing here can serve.
    #[error("unsupported: {what}")]
    Unsupported {
        /// What is unsupported, and the way out.
        what: String,
    },
    /// No variant of what was called has this name: products and batches have their own.
    #[error("unknown variant {name:?}; known are {}", known.join(", "))]
    #[non_exhaustive]
    UnknownVariant {
        /// The name that was asked for.
        name: String,
        /// Every name that the call takes, but for entries'.
        known: Vec<&'static str>,
    },
    /// There is no usable NVIDIA driver library.
    #[error("no NVIDIA driver: {reason}")]
    #[non_exhaustive]
    NoDriver {
        /// The names and paths that were tried, in order.
        tried: Vec<String>,
        /// Why none would do.
        reason: String,
    },
    /// There is a driver, but not this device.
    #[error("no usable GPU: {reason}")]
    #[non_exhaustive]
    NoDevice {
        /// What was looked for, and what is there.
        reason: String,
    },
    /// The driver is older than the instructions of the kernels.
    #[error("the driver is for CUDA {driver}, but the kernels need CUDA {needs}: update the driver")]
    #[non_exhaustive]
    DriverTooOld {
        /// The newest CUDA that the driver serves.
        driver: Version,
        /// The oldest CUDA that serves the kernels.
        needs: Version,
    },
    /// The driver is there, but as it is installed, or loaded, it serves nobody: a stub in place of its library, parts that are not of
    /// one version, no access to the devices.
    #[error("the NVIDIA driver cannot be used as it is: {operation}: {name} ({code}): {remedy}")]
    #[non_exhaustive]
    DriverSetup {
        /// The driver's function that reported it, and what was asked for: `cuInit in Device::cuda`.
        operation: String,
        /// The driver's code.
        code: i32,
        /// The code's name.
        name: String,
        /// What it means, and what to do.
        remedy: &'static str,
    },
    /// Another process has the device to itself, or the device does not answer.
    #[error("the GPU is busy or not available: {operation}: {name} ({code})")]
    #[non_exhaustive]
    DeviceBusy {
        /// The driver's function that reported it, and what was asked for: `cuMemcpyHtoDAsync in Device::upload`.
        operation: String,
        /// The driver's code.
        code: i32,
        /// The code's name.
        name: String,
    },
    /// Memory ran out, on the device or (`free` and `total` then 0) on the host, pinned memory included.
    #[error("{}out of memory{}{}", before_colon(operation), wanted_bytes(*wanted), of_which(*free, *total))]
    #[non_exhaustive]
    OutOfMemory {
        /// The driver's function that reported it, and what was asked for; empty where it is the host's own memory.
        operation: String,
        /// Bytes asked for; 0 where the driver itself wanted them, for a context or a kernel.
        wanted: u64,
        /// Bytes free when it failed; 0 if unknown.
        free: u64,
        /// Bytes there are; 0 if unknown.
        total: u64,
    },
    /// The driver could not compile a kernel.
    #[error("the driver refused kernel {entry}: {operation}: {name} ({code}){}", after_colon(log))]
    #[non_exhaustive]
    Jit {
        /// The entry that was to be loaded.
        entry: String,
        /// The driver's function that refused it, and what was asked for: `cuModuleLoadDataEx in Plan::warm_up`.
        operation: String,
        /// The driver's code.
        code: i32,
        /// The code's name.
        name: String,
        /// The compiler's log; may have several lines (its first is in the message).
        log: String,
    },
    /// The driver reported a failure: of this operation, or of earlier asynchronous work.
    #[error("{operation} failed: {name} ({code}){}", after_colon(text))]
    #[non_exhaustive]
    Driver {
        /// The driver's function that reported it, and what was asked for: `cuMemcpyHtoDAsync in Device::upload`.
        operation: String,
        /// The driver's code.
        code: i32,
        /// The code's name.
        name: String,
        /// The driver's explanation.
        text: String,
    },
    /// An operand lies where this stream cannot reach it.
    #[error("{operand} is on {actual}, but the call is for {expected}: upload or download it first")]
    #[non_exhaustive]
    WrongDevice {
        /// Which operand.
        operand: Operand,
        /// The device of the call.
        expected: String,
        /// The device of the operand.
        actual: String,
    },
    /// A stream of another device than the call's, or than the plan's.
    #[error("the stream is of {actual}, but the {whose} is for {expected}: take a stream of {expected}")]
    #[non_exhaustive]
    WrongStream {
        /// `call` or `plan`.
        whose: &'static str,
        /// The device of the call or the plan.
        expected: String,
        /// The device of the stream.
        actual: String,
    },
    /// A plan of another device than the call's.
    #[error("the plan is for {actual}, but the call is for {expected}: make a plan for {expected}")]
    #[non_exhaustive]
    WrongPlan {
        /// The device of the call.
        expected: String,
        /// The device of the plan.
        actual: String,
    },
    /// The GPU's context is gone. After a fault, such as a wild address in somebody's kernel, no GPU call of this process can
    /// succeed any more; where other code of the process has reset the device, none of that GPU.
    #[error(
        "the GPU context was lost in {operation} or in work before it: {name} ({code}); restart the process, or use the CPU"
    )]
    #[non_exhaustive]
    ContextLost {
        /// The driver's function that first reported it, and what was asked for then.
        operation: String,
        /// The driver's code.
        code: i32,
        /// The code's name.
        name: String,
    },
    /// The process was forked after the GPU was opened; CUDA does not survive that.
    #[error("the GPU was opened before this process was forked: open it in the child, in a process that never did")]
    Forked,
    /// The first use of a plan fell into the capture of a CUDA graph, where nothing can be loaded or allocated.
    #[error("{what} during graph capture: call warm_up_on(&stream) before the capture begins")]
    #[non_exhaustive]
    ColdPlanInCapture {
        /// What would have had to be loaded or allocated.
        what: String,
    },
    /// A database of measurements that plans cannot follow.
    #[error("{database}: {reason}")]
    #[non_exhaustive]
    Tuned {
        /// Its file, or what it is.
        database: String,
        /// What was found, and what was required.
        reason: String,
    },
    /// Reading or writing through a caller's function failed, or the system started no thread.
    #[error("{text}")]
    #[non_exhaustive]
    Io {
        /// The kind of failure.
        kind: std::io::ErrorKind,
        /// Its text.
        text: String,
    },
}

impl Error {
    /// The host has not so many bytes.
    pub(crate) fn host_memory(wanted: u64) -> Error {
        Error::OutOfMemory { operation: String::new(), wanted, free: 0, total: 0 }
    }

    /// Whether no device is usable, or it failed; false for faults of the call itself.
    pub fn is_device(&self) -> bool {
        match self {
            Error::NoDriver { .. }
            | Error::NoDevice { .. }
            | Error::DriverTooOld { .. }
            | Error::DriverSetup { .. }
            | Error::DeviceBusy { .. }
            | Error::OutOfMemory { .. }
            | Error::Jit { .. }
            | Error::Driver { .. }
            | Error::ContextLost { .. }
            | Error::Forked => true,
            Error::Shape(_)
            | Error::Unsupported { .. }
            | Error::UnknownVariant { .. }
            | Error::WrongDevice { .. }
            | Error::WrongStream { .. }
            | Error::WrongPlan { .. }
            | Error::ColdPlanInCapture { .. }
            | Error::Tuned { .. }
            | Error::Io { .. } => false,
        }
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Error::Io { kind: error.kind(), text: one_line(&error.to_string()) }
    }
}

/// A version of CUDA; shown as `13.0`.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// 13 of 13.0.
    pub major: u32,
    /// 0 of 13.0.
    pub minor: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Which matrix of C ← α A B + β C, or vector of y ← α A x + β y.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// The left factor.
    A,
    /// The right factor.
    B,
    /// The result.
    C,
    /// The vector that a matrix is multiplied with.
    X,
    /// The vector that results.
    Y,
    /// A matrix that has no place in a product yet.
    View,
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Operand::A => "A",
            Operand::B => "B",
            Operand::C => "C",
            Operand::X => "x",
            Operand::Y => "y",
            Operand::View => "the matrix",
        })
    }
}

/// What an operand broke.
///
/// # Example
/// ```
/// use lanky_host::{Device, Error, MatRef, Operand, Rule};
/// let a = MatRef::column_major(&[1.0; 6], 3, 2)?;
/// let Err(Error::Shape(error)) = Device::cpu().matmul(a, a) else { panic!("3 x 2 times 3 x 2") };
/// assert_eq!((error.operand, error.rule), (Operand::B, Rule::Rows));
/// assert_eq!((error.required, error.actual), (2, 3));
/// # Ok::<(), lanky_host::Error>(())
/// ```
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Its number of rows follows from the other operands.
    Rows,
    /// Its number of columns follows from the other operands.
    Cols,
    /// Its strides: not negative; where it is written, no two elements at one place; in a plan's run the plan's.
    Strides,
    /// Its span, rs·(rows−1) + cs·(cols−1) + 1 elements, must fit in its buffer and in 63 bits of bytes; an owned
    /// matrix has exactly its elements.
    Span,
    /// Its memory may not overlap that of the result.
    Overlap,
    /// A range of its rows or columns must lie inside it.
    Range,
    /// Of a batch: as many matrices as the result has.
    Count,
    /// Its element type is the plan's.
    Dtype,
    /// Conjugated or not: a result is not; in a plan's run as in the plan.
    Conjugate,
    /// On a GPU complex elements lie at multiples of their size.
    Alignment,
    /// What has elements lies at another address than 0.
    Address,
}

/// An operand that does not fit. Its text says so in one line: `B is 300 x 4, but A is 200 x 299: B needs 299 rows`.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeError {
    /// Which operand, in the caller's terms.
    pub operand: Operand,
    /// What it broke.
    pub rule: Rule,
    /// What the rule asks for, in the rule's unit: rows, columns, matrices, elements (strides, spans), bytes of an element
    /// ([`Rule::Dtype`]), bytes shared ([`Rule::Overlap`]: 0), 1 for conjugated and 0 for not ([`Rule::Conjugate`]), or a
    /// multiple of bytes, and the bytes beyond one ([`Rule::Alignment`]), or the least address, and 0 ([`Rule::Address`]).
    pub required: u64,
    /// What the operand has, in the same unit.
    pub actual: u64,
    detail: String,
}

impl ShapeError {
    pub(crate) fn new(operand: Operand, rule: Rule, required: u64, actual: u64, detail: String) -> Self {
        ShapeError { operand, rule, required, actual, detail }
    }
}

impl fmt::Display for ShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for ShapeError {}

fn wanted_bytes(wanted: u64) -> String {
    if wanted == 0 { String::new() } else { format!(": {wanted} bytes wanted") }
}

fn of_which(free: u64, total: u64) -> String {
    if total == 0 { String::new() } else { format!(", {free} of {total} bytes free") }
}

fn before_colon(operation: &str) -> String {
    if operation.is_empty() { String::new() } else { format!("{operation}: ") }
}

/// The first line that says something, after a colon: messages stay on one line, the whole text is in the field.
fn after_colon(text: &str) -> String {
    match text.lines().map(str::trim).find(|line| !line.is_empty()) {
        Some(line) => format!(": {line}"),
        None => String::new(),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_is_one_clear_line() {
        let version = |major, minor| Version { major, minor };
        let memory = |operation: &str, wanted, free, total| Error::OutOfMemory {
            operation: operation.into(),
            wanted,
            free,
            total,
        };
        let shape = ShapeError::new(Operand::B, Rule::Rows, 299, 300, "B is 300 x 4: B needs 299 rows".into());
        let table: Vec<(Error, &str)> = vec![
            (shape.into(), "B is 300 x 4: B needs 299 rows"),
            (Error::Unsupported { what: "n = 5000000000 on a GPU".into() }, "unsupported: n = 5000000000 on a GPU"),
            (
                Error::UnknownVariant { name: "x".into(), known: vec!["gemm", "tsm2r_inner"] },
                "unknown variant \"x\"; known are gemm, tsm2r_inner",
            ),
            (
                Error::NoDriver { tried: vec![], reason: "no libcuda.so.1 found".into() },
                "no NVIDIA driver: no libcuda.so.1 found",
            ),
            (Error::NoDevice { reason: "there is 1 device, not 5".into() }, "no usable GPU: there is 1 device, not 5"),
            (
                Error::DriverTooOld { driver: version(11, 2), needs: version(11, 8) },
                "the driver is for CUDA 11.2, but the kernels need CUDA 11.8: update the driver",
            ),
            (
                Error::DriverSetup { operation: "o in f".into(), code: 803, name: "N".into(), remedy: "restart" },
                "the NVIDIA driver cannot be used as it is: o in f: N (803): restart",
            ),
            (memory("o", 10, 3, 7), "o: out of memory: 10 bytes wanted, 3 of 7 bytes free"),
            (memory("", 10, 0, 0), "out of memory: 10 bytes wanted"),
            (memory("o in f", 0, 0, 0), "o in f: out of memory"),
            (
                Error::DeviceBusy { operation: "o".into(), code: 46, name: "N".into() },
                "the GPU is busy or not available: o: N (46)",
            ),
            (
                Error::WrongStream { whose: "plan", expected: "cpu".into(), actual: "cuda:0".into() },
                "the stream is of cuda:0, but the plan is for cpu: take a stream of cpu",
            ),
            (
                Error::WrongPlan { expected: "cuda:1".into(), actual: "cuda:0".into() },
                "the plan is for cuda:0, but the call is for cuda:1: make a plan for cuda:1",
            ),
            (
                Error::Jit {
                    entry: "e".into(),
                    operation: "o in f".into(),
                    code: 218,
                    name: "CUDA_ERROR_INVALID_PTX".into(),
                    log: "\nptxas: line 3\nline 4".into(),
                },
                "the driver refused kernel e: o in f: CUDA_ERROR_INVALID_PTX (218): ptxas: line 3",
            ),
            (
                Error::Driver { operation: "cuInit".into(), code: 999, name: "N".into(), text: String::new() },
                "cuInit failed: N (999)",
            ),
            (
                Error::WrongDevice { operand: Operand::A, expected: "cpu".into(), actual: "cuda:0".into() },
                "A is on cuda:0, but the call is for cpu: upload or download it first",
            ),
            (
                Error::Tuned { database: "x.tuned".into(), reason: "line 3: sms is 'many'".into() },
                "x.tuned: line 3: sms is 'many'",
            ),
            (std::io::Error::other("two\nlines").into(), "two lines"),
        ];
        for (error, text) in table {
            assert_eq!(error.to_string(), text);
        }
    }

    #[test]
    fn errors_cross_threads() {
        fn check<T: Send + Sync + Clone + 'static>() {}
        check::<Error>();
    }

    /// The variants of the enumeration that lack a row of its table with something to do, and rows of no variant.
    fn not_in_both(source: &str) -> Vec<String> {
        let name = |text: &str| text.chars().take_while(|letter| letter.is_alphanumeric()).collect::<String>();
        let (before, after) = source.split_once("pub enum Error {").unwrap_or_default();
        let body = after.split("\n}").next().unwrap_or_default();
        let variants =
            body.lines().filter_map(|line| line.strip_prefix("    ")).map(name).filter(|name| !name.is_empty());
        let rows = before.lines().filter_map(|line| line.strip_prefix("/// | [`Error::"));
        let rows = rows.filter(|row| row.split('|').nth(1).is_some_and(|what| !what.trim().is_empty())).map(name);
        let (variants, rows): (Vec<_>, Vec<_>) = (variants.collect(), rows.collect());
        assert!(variants.len() > 15, "{variants:?}");
        let alone = |from: &[String], to: &[String]| {
            from.iter().filter(|name| to.iter().filter(|other| other == name).count() != 1).cloned().collect::<Vec<_>>()
        };
        [alone(&variants, &rows), alone(&rows, &variants)].concat()
    }

    #[test]
    fn the_table_says_of_every_error_what_to_do() {
        let source = include_str!("error.rs");
        assert_eq!(not_in_both(source), [""; 0]);
        let row = source.lines().find(|line| line.starts_with("/// | [`Error::NoDriver`]")).unwrap_or_default();
        assert_eq!(not_in_both(&source.replace(row, "///")), ["NoDriver"]);
        assert_eq!(not_in_both(&source.replace(row, "/// | [`Error::NoDriver`] | |")), ["NoDriver"]);
        assert_eq!(not_in_both(&source.replace(row, &format!("{row}\n/// | [`Error::Gone`] | x |"))), ["Gone"]);
    }
}
