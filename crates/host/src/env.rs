//! What there is on this machine: for `lanky info`, and for the first line of every program.

use crate::driver;
use crate::error::{Error, Result, Version};
use crate::gpu::Facts;
use crate::ptx;

/// What is known about the GPUs of this machine; from [`gpu_report`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GpuReport {
    /// The file of the driver library; `None` if there is none, or it does not initialise.
    pub library: Option<String>,
    /// The newest CUDA that the driver serves; `None` where `library` is, or it does not say.
    pub driver: Option<Version>,
    /// The driver's own version: `580.159`; from /proc, so `None` elsewhere than on Linux.
    pub driver_release: Option<String>,
    /// Why there are no `devices`, or why the list breaks off. `None` also where each of them has a problem of its own.
    pub problem: Option<Error>,
    /// The GPUs that the driver sees, usable or not.
    pub devices: Vec<DeviceReport>,
}

/// What is known about one GPU.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeviceReport {
    /// Its number, for [`Device::cuda`](crate::Device::cuda).
    pub ordinal: u32,
    /// Its name.
    pub name: String,
    /// Major and minor compute capability.
    pub compute_capability: (u32, u32),
    /// Streaming multiprocessors.
    pub sms: u32,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Second-level cache, bytes.
    pub l2_bytes: u64,
    /// What the model takes from a GPU that is like it, since nobody has measured this one's or its driver does not say:
    /// fields of [`model::Machine`].
    pub assumed: Vec<&'static str>,
    /// The architecture that the kernels it gets were built for: `sm_90`.
    pub arch: Option<String>,
    /// Why it cannot be used; `None` if it can.
    pub problem: Option<String>,
}

/// Looks at everything and opens no device: the driver library is loaded and initialised, but no context is created.
///
/// # Example
/// ```
/// let report = lanky_host::env::gpu_report();
/// match &report.problem {
///     Some(error) => eprintln!("no GPU: {error}"),
///     None => assert!(!report.devices.is_empty()),
/// }
/// ```
pub fn gpu_report() -> GpuReport {
    let _during = driver::during("env::gpu_report");
    let mut report =
        GpuReport { library: None, driver: None, driver_release: driver_release(), problem: None, devices: Vec::new() };
    if let Err(error) = fill(&mut report) {
        report.problem = Some(error);
    }
    report
}

fn fill(report: &mut GpuReport) -> Result<()> {
    report.library = Some(driver::open()?);
    let driver = driver::version()?;
    report.driver = Some(driver);
    let count = cust::device::Device::num_devices().map_err(driver::failed)?;
    for ordinal in 0..count {
        let raw = cust::device::Device::get_device(ordinal).map_err(driver::failed)?;
        let facts = Facts::read(raw)?;
        let arch = ptx::module(model::variants::READ_CEILING, facts.compute_capability).as_ref().and_then(target_in);
        let machine = facts.machine();
        let problem = facts.usable(driver).err().map(|error| error.to_string());
        report.devices.push(DeviceReport {
            ordinal,
            compute_capability: facts.compute_capability,
            sms: machine.sms,
            memory_bytes: facts.memory_bytes,
            l2_bytes: machine.l2_bytes,
            assumed: machine.assumed.names().collect(),
            arch,
            problem,
            name: facts.name,
        });
    }
    if count == 0 {
        return Err(Error::NoDevice { reason: "the driver sees no device".to_owned() });
    }
    Ok(())
}

/// The architecture that a PTX text is for.
fn target_in(ptx: &impl AsRef<str>) -> Option<String> {
    let target = ptx.as_ref().lines().find_map(|line| line.trim().strip_prefix(".target"))?;
    Some(target.trim().to_owned())
}

/// The driver's own version, as its kernel module says it: `580.159`.
pub(crate) fn driver_release() -> Option<String> {
    release_in(&std::fs::read_to_string("/proc/driver/nvidia/version").ok()?)
}

/// The first word of the first line that is numbers and dots.
fn release_in(text: &str) -> Option<String> {
    let is_release = |word: &&str| word.contains('.') && word.chars().all(|c| c.is_ascii_digit() || c == '.');
    text.lines().next()?.split_whitespace().find(is_release).map(str::to_owned)
}

/// Bytes of the host's memory: available, and all.
pub(crate) fn host_memory() -> Result<(u64, u64)> {
    let unknown = || Error::Unsupported { what: "the size of the memory of this system".to_owned() };
    let text = std::fs::read_to_string("/proc/meminfo").map_err(|_| unknown())?;
    memory_in(&text).ok_or_else(unknown)
}

/// MemAvailable and MemTotal of /proc/meminfo, which are in KiB.
fn memory_in(text: &str) -> Option<(u64, u64)> {
    let kib = |name: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':').split_whitespace().next()?.parse().ok()
    };
    Some((kib("MemAvailable")?.checked_mul(1024)?, kib("MemTotal")?.checked_mul(1024)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_found_in_both_drivers_lines() {
        for line in [
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159  Tue Jan 1 00:00:00 UTC 2026\nGCC version: 12.2.0",
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159  Release Build  (root)",
        ] {
            assert_eq!(release_in(line).as_deref(), Some("580.159"));
        }
        assert_eq!(release_in(""), None);
    }

    #[test]
    fn memory_is_read_in_bytes() {
        assert_eq!(memory_in("MemTotal:  8 kB\nMemFree: 1 kB\nMemAvailable:   3 kB\n"), Some((3072, 8192)));
        assert_eq!(memory_in("MemTotal:  8 kB\n"), None);
    }
}
