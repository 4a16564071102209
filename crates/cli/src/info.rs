//! `lanky info`: devices, driver, kernels; and the PTX itself.

use std::fs;
use std::io::Write;
use std::path::Path;

use lanky::env::{DeviceReport, GpuReport};
use serde::Serialize;

use crate::args::InfoArgs;
use crate::error::Fault;
use crate::output::Output;
use crate::say;

/// Runs the command.
pub fn run(args: &InfoArgs) -> Result<(), Fault> {
    if let Some(directory) = &args.ptx {
        write_ptx(directory)?;
    }
    let info = Info::gather();
    if args.json { say::print_json(&info) } else { say::print(&info.text()) }
}

/// The object of `info --json`.
#[derive(Serialize)]
struct Info {
    version: &'static str,
    /// The CPU's line.
    cpu: String,
    /// Path of libcuda.
    library: Option<String>,
    /// The newest CUDA that the driver serves: `13.0`.
    cuda: Option<String>,
    /// The driver's release: `580.159`.
    driver: Option<String>,
    /// Why no GPU can be used.
    problem: Option<String>,
    gpus: Vec<Gpu>,
    ptx: Ptx,
    variants: Vec<Variant>,
}

#[derive(Serialize)]
struct Gpu {
    device: String,
    name: String,
    compute_capability: String,
    sms: u32,
    memory_bytes: u64,
    l2_bytes: u64,
    /// What plans take from a GPU that is like it.
    assumed: Vec<&'static str>,
    /// Whose PTX it gets: `sm_90`.
    architecture: Option<String>,
    problem: Option<String>,
}

#[derive(Serialize)]
struct Ptx {
    origin: &'static str,
    modules: usize,
    architectures: Vec<String>,
}

#[derive(Serialize)]
struct Variant {
    name: &'static str,
    entries: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    entry: &'static str,
    dtype: &'static str,
    /// The architectures whose PTX of it is carried.
    architectures: Vec<String>,
}

impl Info {
    fn gather() -> Self {
        let GpuReport { library, driver, driver_release, problem, devices, .. } = lanky::env::gpu_report();
        let modules: Vec<(String, String)> =
            lanky::ptx::all().map(|(entry, arch, _)| (entry.to_string(), arch.to_string())).collect();
        let mut architectures: Vec<String> = modules.iter().map(|(_, arch)| arch.clone()).collect();
        architectures.sort_unstable();
        architectures.dedup();
        Self {
            version: env!("CARGO_PKG_VERSION"),
            cpu: lanky::Device::cpu().to_string(),
            library,
            cuda: driver.map(|version| version.to_string()),
            driver: driver_release,
            problem: problem.map(|error| error.to_string()),
            gpus: devices.into_iter().map(gpu).collect(),
            ptx: Ptx { origin: lanky::ptx::ORIGIN, modules: modules.len(), architectures },
            variants: variants(&modules),
        }
    }

    fn text(&self) -> String {
        let cuda = self.cuda.as_ref().map(|version| format!("CUDA {version}"));
        let known: Vec<String> = [self.driver.clone(), cuda, self.library.clone()].into_iter().flatten().collect();
        let driver = if known.is_empty() { "none".into() } else { known.join(", ") };
        let mut lines = vec![format!("lanky {}", self.version), self.cpu.clone(), format!("driver  {driver}")];
        lines.extend(self.problem.iter().map(|problem| format!("no GPU  {problem}")));
        lines.extend(self.gpus.iter().map(Gpu::line));
        let Ptx { origin, modules, architectures } = &self.ptx;
        lines.push(format!("PTX  {modules} modules for {}, {origin}", architectures.join(", ")));
        for variant in &self.variants {
            lines.push(format!("variant {}", variant.name));
            lines.extend(variant.entries.iter().map(Entry::line));
        }
        lines.join("\n")
    }
}

impl Gpu {
    fn line(&self) -> String {
        let memory = say::bytes(say::float(usize::try_from(self.memory_bytes).unwrap_or(usize::MAX)));
        let Self { device, name, compute_capability, sms, architecture, .. } = self;
        let kernels = match (&self.problem, architecture) {
            (Some(problem), _) => format!("not usable: {problem}"),
            (None, Some(arch)) => format!("runs the PTX of {arch}"),
            (None, None) => "runs no PTX that is carried".into(),
        };
        let assumed = match self.assumed.as_slice() {
            [] => String::new(),
            assumed => format!(", planned for with another's {}", assumed.join(", ")),
        };
        format!("{device}  {name}, compute capability {compute_capability}, {sms} SMs, {memory}, {kernels}{assumed}")
    }
}

impl Entry {
    fn line(&self) -> String {
        let carried = match self.architectures.as_slice() {
            [] => "not carried".into(),
            architectures => architectures.join(", "),
        };
        format!("  {:<40} {}  {carried}", self.entry, self.dtype)
    }
}

fn gpu(device: DeviceReport) -> Gpu {
    let (major, minor) = device.compute_capability;
    Gpu {
        device: format!("cuda:{}", device.ordinal),
        name: device.name,
        compute_capability: format!("{major}.{minor}"),
        sms: device.sms,
        memory_bytes: device.memory_bytes,
        l2_bytes: device.l2_bytes,
        assumed: device.assumed,
        architecture: device.arch,
        problem: device.problem,
    }
}

/// The model's table, grouped by variant, with what is carried of it.
fn variants(modules: &[(String, String)]) -> Vec<Variant> {
    let mut variants: Vec<Variant> = Vec::new();
    for row in model::VARIANTS {
        let carried = modules.iter().filter(|(entry, _)| entry == row.entry);
        let entry = Entry {
            entry: row.entry,
            dtype: row.dtype.name(),
            architectures: carried.map(|(_, arch)| arch.clone()).collect(),
        };
        match variants.iter_mut().find(|variant| variant.name == row.name) {
            Some(variant) => variant.entries.push(entry),
            None => variants.push(Variant { name: row.name, entries: vec![entry] }),
        }
    }
    variants
}

/// Each module as `DIR/<entry>.<architecture>.ptx`.
fn write_ptx(directory: &Path) -> Result<(), Fault> {
    fs::create_dir_all(directory).map_err(|error| Fault::file(directory, &error))?;
    for (entry, arch, text) in lanky::ptx::all() {
        let path = directory.join(format!("{entry}.{arch}.ptx"));
        let mut output = Output::create(&path)?;
        output.write_all(text.as_bytes()).map_err(|error| output.fault(&error))?;
        output.commit()?;
    }
    Ok(())
}
