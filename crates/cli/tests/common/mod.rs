//! Runs the program, and reads and writes .npy files by code that shares nothing with it.
#![allow(dead_code, reason = "each test uses its part")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, OnceLock};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use signal_hook::consts::SIGHUP;
use tempfile::TempDir;

/// A folder of its own for one test.
pub struct Bench {
    folder: TempDir,
}

impl Bench {
    /// An empty folder.
    pub fn new() -> Self {
        Self { folder: TempDir::new().expect("a temporary folder") }
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file.
    pub fn put(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).expect("the folder can be written");
    }

    /// Reads a file.
    pub fn get(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).expect("the file is there")
    }

    /// The names in the folder, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).expect("the folder is there");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// The program, to be run in the folder; the model alone decides, whatever the library carries.
    pub fn command(&self, args: &[&str]) -> Command {
        hear_hang_ups();
        let mut command = Command::new(env!("CARGO_BIN_EXE_lanky"));
        command.args(args).current_dir(self.folder.path()).env("LANKY_TUNED", "none");
        command
    }

    /// Runs the program in the folder.
    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the program starts")
    }

    /// Runs it on the CPU and wants success.
    pub fn succeed(&self, args: &[&str]) -> Output {
        let output = self.run(&[args, &["--device", "cpu"]].concat());
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
        output
    }

    /// Runs it and wants this exit code, nothing on standard output, and one line on standard error, which is returned.
    pub fn fail(&self, code: i32, args: &[&str]) -> String {
        let output = self.run(args);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {error}");
        assert!(output.stdout.is_empty(), "{args:?}: {}", text(&output.stdout));
        assert!(error.starts_with("lanky: ") && error.ends_with('\n'), "{args:?}: {error:?}");
        assert_eq!(error.lines().count(), 1, "{args:?}: {error}");
        assert!(!error.contains("panicked"), "{args:?}: {error}");
        error
    }
}

/// A run of `lanky bench` of a moment: one small case of each element type.
pub const SMALL: [&str; 13] =
    ["bench", "--m", "90", "--k", "70", "--n", "3", "--samples", "5", "--device", "cpu", "--beta", "0"];

/// The first line of its results.
pub const HEADER: &str = "family,dtype,layout,op_a,op_b,beta,m,n,k,lda,ldb,ldc,batch,device,variant,chooser,splits,samples,ns_median,\
    ns_low,ns_high,ns_min,bytes,flops,gbs,bound_ns,fraction,opponent,opponent_ns,ratio,seed,commit,driver,date";

/// Arguments, and more of them.
pub fn plus<'a>(args: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [args, more].concat()
}

/// Runs it without opponents that this machine may have.
pub fn alone(bench: &Bench, args: &[&str]) -> Output {
    bench.command(args).args(["--against", "none"]).output().expect("the program starts")
}

/// KiB of addresses that do for a small product: the 58 MB of the program itself, unoptimised, and 64 MiB.
pub const KIB: u64 = 122_200;

/// The program where there are so many KiB of addresses, hardly any memory.
pub fn limited(bench: &Bench, kib: u64, args: &[&str]) -> Output {
    let line = format!("ulimit -v {kib} && exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    // One thread, whose stack and heap are all the addresses that are set aside.
    command.args(["-c", &line, env!("CARGO_BIN_EXE_lanky")]).args(args).env("RAYON_NUM_THREADS", "1");
    command.env("LANKY_TUNED", "none").current_dir(bench.path("")).output().expect("a shell")
}

/// A signal that the tests ignore, as under `nohup`, is ignored by what they start; what they handle is there as it is by default.
fn hear_hang_ups() {
    static HEARD: OnceLock<()> = OnceLock::new();
    HEARD.get_or_init(|| {
        if signals("self", "SigIgn:") & 1 == 1 {
            let handler = signal_hook::flag::register(SIGHUP, Arc::default());
            handler.expect("SIGHUP may be handled");
        }
    });
}

/// The signals of a process that are ignored, or caught, or wait; bit 0 is signal 1.
fn signals(process: &str, which: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("it is there");
    let mask = status.lines().find_map(|line| line.strip_prefix(which)).expect("a line of Linux");
    u64::from_str_radix(mask.trim(), 16).expect("a mask")
}

/// Waits until a process handles SIGTERM, for a signal before that ends it as any other program.
pub fn await_handlers(process: u32) {
    let began = Instant::now();
    while signals(&process.to_string(), "SigCgt:") >> 14 & 1 == 0 {
        assert!(began.elapsed() < Duration::from_secs(60), "it handles no signal");
        sleep(Duration::from_millis(1));
    }
}

/// Waits until a process was given what it was sent: of two signals that wait the lower one comes first.
pub fn await_given(process: u32) {
    let began = Instant::now();
    while signals(&process.to_string(), "ShdPnd:") != 0 {
        assert!(began.elapsed() < Duration::from_secs(60), "it takes no signal");
        sleep(Duration::from_millis(1));
    }
}

/// Says that a test is left out, past the test harness, which keeps what passing tests print, and to the count of `.ci/run`.
pub fn skipped(test: &str, reason: &str) {
    writeln!(std::io::stderr(), "SKIPPED {test}: {reason}").expect("stderr");
    if let Some(count) = std::env::var_os("LANKY_SKIPPED") {
        let file = fs::OpenOptions::new().create(true).append(true).open(count);
        file.and_then(|mut file| file.write_all(format!("{test}: {reason}\n").as_bytes())).expect("a file of lines");
    }
}

/// The folder of a driver library without a GPU, whose kernels do nothing; `None` where its source is not.
pub fn fake() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let made = FOLDER.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/tests/driver/libcuda.rs");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fake-driver");
        if !source.exists() {
            return None;
        }
        fs::create_dir_all(&folder).expect("the target folder can be written");
        let made = folder.join(format!("made-{}", std::process::id()));
        let output = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
            .args(["--edition", "2024", "--crate-type", "cdylib", "-Copt-level=1", "-Cdebuginfo=0", "-o"])
            .args([&made, &source])
            .output()
            .expect("rustc starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
        fs::rename(made, folder.join("libcuda.so.1")).expect("the target folder can be written");
        Some(folder)
    });
    made.as_deref()
}

/// Bytes as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// An element of the tests.
pub trait Number: Copy + PartialEq + std::fmt::Debug {
    /// NumPy's name for it.
    const DESCR: &'static str;
    /// The nearest element.
    fn of(value: f64) -> Self;
    /// The value.
    fn value(self) -> f64;
    /// Its bytes in a file.
    fn bytes(self) -> Vec<u8>;
    /// From its bytes in a file.
    fn from_bytes(bytes: &[u8]) -> Self;
}

impl Number for f32 {
    const DESCR: &'static str = "<f4";
    fn of(value: f64) -> Self {
        value as f32
    }
    fn value(self) -> f64 {
        f64::from(self)
    }
    fn bytes(self) -> Vec<u8> {
        self.to_le_bytes().to_vec()
    }
    fn from_bytes(bytes: &[u8]) -> Self {
        f32::from_le_bytes(bytes.try_into().expect("4 bytes"))
    }
}

impl Number for f64 {
    const DESCR: &'static str = "<f8";
    fn of(value: f64) -> Self {
        value
    }
    fn value(self) -> f64 {
        self
    }
    fn bytes(self) -> Vec<u8> {
        self.to_le_bytes().to_vec()
    }
    fn from_bytes(bytes: &[u8]) -> Self {
        f64::from_le_bytes(bytes.try_into().expect("8 bytes"))
    }
}

/// A matrix, row by row, with the axes it has in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Array<T> {
    /// Lengths of the axes.
    pub shape: Vec<usize>,
    /// Row by row.
    pub data: Vec<T>,
    /// Whether the file is in Fortran order.
    pub fortran: bool,
}

impl<T: Number> Array<T> {
    /// Small integers, different in every place.
    pub fn integers(shape: &[usize], seed: usize, fortran: bool) -> Self {
        let count = shape.iter().product();
        let data = (0..count).map(|index| T::of(((index * 7 + seed * 3 + index / 5) % 5) as f64 - 2.0)).collect();
        Self { shape: shape.to_vec(), data, fortran }
    }

    /// The file, in this version of the format.
    pub fn file(&self, version: u8) -> Vec<u8> {
        let shape: Vec<String> = self.shape.iter().map(|length| format!("{length},")).collect();
        let order = if self.fortran { "True" } else { "False" };
        let header = format!(
            "{{'descr': '{}', 'fortran_order': {order}, 'shape': ({}), }}\n",
            T::DESCR,
            shape.join(" ").trim_end_matches(if self.shape.len() > 1 { "," } else { "" })
        );
        npy(version, &header, &self.body())
    }

    fn body(&self) -> Vec<u8> {
        let (rows, cols) = self.as_matrix();
        let mut body = Vec::new();
        for place in 0..rows * cols {
            let (i, j) = if self.fortran { (place % rows, place / rows) } else { (place / cols, place % cols) };
            body.extend(self.data[i * cols + j].bytes());
        }
        body
    }

    fn as_matrix(&self) -> (usize, usize) {
        match self.shape[..] {
            [] => (1, 1),
            [length] => (1, length),
            [rows, cols] => (rows, cols),
            [batch, rows, cols] => (batch * rows, cols),
            _ => panic!("three axes at most"),
        }
    }

    /// Reads a file that the program wrote.
    pub fn read(bytes: &[u8]) -> Self {
        assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00");
        let length = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
        let header = text(&bytes[10..10 + length]);
        assert!(header.contains(&format!("'descr': '{}'", T::DESCR)), "{header}");
        assert!(header.ends_with('\n') && (10 + length) % 64 == 0, "{header:?}");
        let fortran = header.contains("'fortran_order': True");
        let shape = header.split("'shape': (").nth(1).and_then(|rest| rest.split(')').next()).expect("a shape");
        let shape: Vec<usize> =
            shape.split(',').map(str::trim).filter(|x| !x.is_empty()).map(|x| x.parse().expect("a length")).collect();
        let stored: Vec<T> = bytes[10 + length..].chunks(size_of::<T>()).map(T::from_bytes).collect();
        assert_eq!(stored.len(), shape.iter().product::<usize>());
        let mut array = Self { shape, data: stored.clone(), fortran };
        let (rows, cols) = array.as_matrix();
        if fortran {
            array.data = (0..rows * cols).map(|place| stored[place / cols + place % cols * rows]).collect();
        }
        array
    }
}

/// A file with any header text.
pub fn npy(version: u8, header: &str, body: &[u8]) -> Vec<u8> {
    let mut file = b"\x93NUMPY".to_vec();
    file.extend([version, 0]);
    match version {
        1 => file.extend(u16::try_from(header.len()).expect("a short header").to_le_bytes()),
        _ => file.extend(u32::try_from(header.len()).expect("a short header").to_le_bytes()),
    }
    file.extend(header.as_bytes());
    file.extend(body);
    file
}

/// A 2 x 2 f64 file with another `descr` or shape.
pub fn with(descr: &str, shape: &str) -> Vec<u8> {
    npy(1, &format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n"), &[0; 32])
}

/// alpha A B + beta C0 in f64, all row by row.
pub fn product(a: &[f64], b: &[f64], (m, n, k): (usize, usize, usize), alpha: f64, beta: f64, c: &[f64]) -> Vec<f64> {
    let sum = |i: usize, j: usize| (0..k).map(|l| a[i * k + l] * b[l * n + j]).sum::<f64>();
    let element = |place: usize| {
        let old = if beta == 0.0 { 0.0 } else { beta * c[place] };
        alpha * sum(place / n, place % n) + old
    };
    (0..m * n).map(element).collect()
}

/// Row by row to column by column.
pub fn transposed<T: Copy>(data: &[T], rows: usize, cols: usize) -> Vec<T> {
    (0..rows * cols).map(|place| data[place % rows * cols + place / rows]).collect()
}

/// Whether something is at this path.
pub fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Standard output of a `lanky plan` that succeeds with nothing on standard error.
pub fn says(bench: &Bench, args: &[&str]) -> String {
    let output = bench.run(&[&["plan"], args].concat());
    assert!(output.status.success() && output.stderr.is_empty(), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// The one object that it prints as JSON.
pub fn object(bench: &Bench, args: &[&str]) -> Value {
    serde_json::from_str(&says(bench, &[args, &["--json"]].concat())).expect("one JSON value")
}

/// Results of an H200 that are kept in the repository: of the choices.
pub const RESULTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/results/h200/tsm2r.csv");
