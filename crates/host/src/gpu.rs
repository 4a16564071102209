//! One GPU of this process: its primary context, what it is, and the kernels loaded into it.

use crate::choices::Choices;
use crate::driver::{self, Entered};
use crate::error::{Error, Result, Version};
use crate::kernel::Kernel;
use crate::left::Left;
use crate::ptx;
use crate::stream::Stream;
use cust::context::Context;
use cust::device::{Device as Raw, DeviceAttribute as Attribute};
use cust::error::{CudaError, CudaResult};
use cust::module::Module;
use model::{Choice, DeviceFacts, Machine, Problem};
use std::collections::{BTreeMap, HashMap};
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Opened GPUs stay open until the process ends, as CUDA's own runtime has it: the context and the loaded kernels are
/// there when the next `Device::cuda(0)` asks.
static OPEN: Mutex<BTreeMap<u32, Arc<Gpu>>> = Mutex::new(BTreeMap::new());

pub(crate) struct Gpu {
    pub(crate) ordinal: u32,
    pub(crate) name: String,
    pub(crate) machine: Machine,
    pub(crate) driver: Version,
    /// After every launch waits and names the kernel that failed (`LANKY_SYNC=1`).
    pub(crate) synchronous: bool,
    /// Streams of calls that take none.
    pub(crate) idle: Mutex<Vec<Stream>>,
    /// What the model chose, by shape.
    pub(crate) choices: Choices,
    /// What was let go of and could not be freed then.
    pub(crate) left: Left,
    context: Context,
    kernels: Mutex<HashMap<&'static str, Arc<Kernel>>>,
}

/// The guarded value, also after a panic elsewhere: what is guarded here is never left half done.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The same of what a thread of the parent may have had locked when this process was forked: it is not here to unlock it.
pub(crate) fn hold<T>(mutex: &Mutex<T>) -> Result<MutexGuard<'_, T>> {
    driver::same_process()?;
    Ok(lock(mutex))
}

impl Gpu {
    /// GPU `ordinal`, opened at the first call.
    pub(crate) fn open(ordinal: u32) -> Result<Arc<Gpu>> {
        driver::alive()?;
        // Before the lock, which a thread of the parent may have held when this process was forked.
        driver::open()?;
        let mut open = lock(&OPEN);
        if let Some(gpu) = open.get(&ordinal) {
            return Ok(Arc::clone(gpu));
        }
        let count = Raw::num_devices().map_err(driver::failed)?;
        if ordinal >= count {
            let reason = match count {
                0 => "the driver sees no device".to_owned(),
                1 => format!("cuda:{ordinal} was asked for, but there is only cuda:0"),
                _ => format!("cuda:{ordinal} was asked for, but there are only cuda:0 to cuda:{}", count - 1),
            };
            return Err(Error::NoDevice { reason });
        }
        // Retaining the primary context makes it current, and the caller's must stay so: a thread of its own has none.
        let opened = std::thread::scope(|scope| {
            let caller = driver::asked_for();
            let thread = std::thread::Builder::new().spawn_scoped(scope, move || {
                let _during = caller.map(driver::during);
                Gpu::create(ordinal)
            })?;
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        let gpu = Arc::new(opened?);
        open.insert(ordinal, Arc::clone(&gpu));
        Ok(gpu)
    }

    fn create(ordinal: u32) -> Result<Gpu> {
        let raw = Raw::get_device(ordinal).map_err(driver::failed)?;
        let facts = Facts::read(raw)?;
        let driver = driver::version()?;
        facts.usable(driver)?;
        let context = Context::new(raw).map_err(driver::open_failed)?;
        let machine = facts.machine();
        Ok(Gpu {
            ordinal,
            machine,
            name: facts.name,
            driver,
            synchronous: std::env::var_os("LANKY_SYNC").is_some_and(|v| v == "1"),
            idle: Mutex::default(),
            choices: Choices::new(machine),
            left: Left::default(),
            context,
            kernels: Mutex::default(),
        })
    }

    /// Makes this GPU's context current on this thread until the result is dropped.
    pub(crate) fn enter(&self) -> Result<Entered> {
        driver::alive()?;
        driver::same_process()?;
        driver::enter(&self.context)
    }

    /// Whether `context` is this GPU's primary one.
    pub(crate) fn owns(&self, context: *mut c_void) -> bool {
        self.context.as_raw().cast::<c_void>() == context
    }

    /// Free and total bytes.
    pub(crate) fn memory(&self) -> Result<(u64, u64)> {
        let _current = self.enter()?;
        driver::memory()
    }

    /// What the model chooses for a product; thought about once, unless a variant is forced.
    pub(crate) fn choice(&self, problem: &Problem, force: Option<&str>) -> Result<Choice> {
        self.choices.choose(problem, force)
    }

    /// The same of so many parts of k.
    pub(crate) fn choice_of(&self, problem: &Problem, name: &str, parts: u32) -> Result<Choice> {
        self.choices.choose_given(problem, name, parts)
    }

    /// The same for a product whose C is A's first columns.
    pub(crate) fn choice_in_place(&self, problem: &Problem) -> Result<Choice> {
        self.choices.choose_in_place(problem)
    }

    /// An entry's kernel, if it is loaded.
    pub(crate) fn loaded(&self, entry: &'static str) -> Option<Arc<Kernel>> {
        lock(&self.kernels).get(entry).map(Arc::clone)
    }

    /// An entry's kernel, loaded at the first call. The context must be current.
    pub(crate) fn kernel(&self, entry: &'static str) -> Result<Arc<Kernel>> {
        let mut kernels = lock(&self.kernels);
        if let Some(kernel) = kernels.get(entry) {
            return Ok(Arc::clone(kernel));
        }
        let capability = self.machine.compute_capability;
        let text = ptx::module(entry, capability).ok_or_else(|| Error::Unsupported {
            what: format!("kernel {entry} on {} (compute capability {}.{})", self.name, capability.0, capability.1),
        })?;
        if let Some(needs) = needed_version(&text).filter(|&needs| self.driver < needs) {
            return Err(Error::DriverTooOld { driver: self.driver, needs });
        }
        let module = Module::from_ptx(text, &[]).map_err(|error| driver::load_failed(error, entry))?;
        let kernel = Arc::new(Kernel::new(entry, module));
        kernels.insert(entry, Arc::clone(&kernel));
        Ok(kernel)
    }
}

/// The oldest CUDA whose drivers accept this PTX. PTX ISA 7.x came with CUDA 11.x, 8.x with 12.x, 9.x with 13.x.
pub(crate) fn needed_version(ptx: &impl AsRef<str>) -> Option<Version> {
    let line = ptx.as_ref().lines().find_map(|line| line.trim().strip_prefix(".version"))?;
    let (major, minor) = line.trim().split_once('.')?;
    Some(Version { major: major.parse::<u32>().ok()?.checked_add(4)?, minor: minor.trim().parse().ok()? })
}

/// What the driver says about a device, before anything is opened on it.
pub(crate) struct Facts {
    pub(crate) name: String,
    pub(crate) compute_capability: (u32, u32),
    pub(crate) sms: u32,
    pub(crate) memory_bytes: u64,
    pub(crate) l2_bytes: u64,
    clock_khz: u32,
    memory_clock_khz: u32,
    memory_bus_bits: u32,
    registers_per_sm: u32,
    shared_per_sm: u32,
    shared_per_block: u32,
    threads_per_sm: u32,
}

impl Facts {
    pub(crate) fn read(raw: Raw) -> Result<Facts> {
        let get = |attribute| -> Result<u32> {
            let value = raw.get_attribute(attribute).map_err(driver::failed)?;
            Ok(u32::try_from(value).unwrap_or(0))
        };
        // What a driver does not know is 0: the model fills it.
        let known = |value: CudaResult<i32>| match value {
            Err(CudaError::InvalidValue) => Ok(0),
            value => Ok(u32::try_from(value.map_err(driver::failed)?).unwrap_or(0)),
        };
        let ask = |attribute| -> Result<u32> { known(raw.get_attribute(attribute)) };
        Ok(Facts {
            name: raw.name().map_err(driver::failed)?,
            compute_capability: (get(Attribute::ComputeCapabilityMajor)?, get(Attribute::ComputeCapabilityMinor)?),
            sms: ask(Attribute::MultiprocessorCount)?,
            memory_bytes: crate::shape::wide(raw.total_memory().map_err(driver::failed)?),
            l2_bytes: u64::from(ask(Attribute::L2CacheSize)?),
            clock_khz: ask(Attribute::ClockRate)?,
            memory_clock_khz: ask(Attribute::MemoryClockRate)?,
            memory_bus_bits: ask(Attribute::GlobalMemoryBusWidth)?,
            registers_per_sm: ask(Attribute::MaxRegistersPerMultiprocessor)?,
            shared_per_sm: ask(Attribute::MaxSharedMemoryPerMultiprocessor)?,
            shared_per_block: known(driver::shared_per_block(raw))?,
            threads_per_sm: ask(Attribute::MaxThreadsPerMultiprocessor)?,
        })
    }

    /// Refuses a device for which no kernels are carried, and a driver too old for those that are.
    pub(crate) fn usable(&self, driver: Version) -> Result<()> {
        if self.compute_capability < OLDEST {
            let (major, minor) = self.compute_capability;
            let reason = format!(
                "{} has compute capability {major}.{minor}; the kernels need {}.{}",
                self.name, OLDEST.0, OLDEST.1
            );
            return Err(Error::NoDevice { reason });
        }
        match ptx::module(model::variants::READ_CEILING, self.compute_capability).as_ref().and_then(needed_version) {
            Some(needs) if driver < needs => Err(Error::DriverTooOld { driver, needs }),
            _ => Ok(()),
        }
    }

    pub(crate) fn machine(&self) -> Machine {
        Machine::from_device(&DeviceFacts {
            name: &self.name,
            compute_capability: self.compute_capability,
            sms: self.sms,
            clock_khz: self.clock_khz,
            memory_clock_khz: self.memory_clock_khz,
            memory_bus_bits: self.memory_bus_bits,
            registers_per_sm: self.registers_per_sm,
            shared_per_sm: self.shared_per_sm,
            shared_per_block: self.shared_per_block,
            threads_per_sm: self.threads_per_sm,
            l2_bytes: self.l2_bytes,
        })
    }
}

/// The oldest compute capability for which kernels are carried.
const OLDEST: (u32, u32) = (8, 0);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ptx_versions_are_those_of_cuda_four_majors_on() {
        let of = |text| needed_version(&text).map(|v| (v.major, v.minor));
        assert_eq!(of("//\n.version 7.8\n.target sm_90"), Some((11, 8)));
        assert_eq!(of(".version 8.3"), Some((12, 3)));
        assert_eq!(of(".target sm_90"), None);
    }
}
