//! What the instructions compute, on the GPU of the machine.

use crate::modules::{Modules, brought, compiled};
use crate::skip;
use crate::table::{Case, table};
use cust::prelude::*;
use std::error::Error;

/// Behind the results: must stay zero.
const BEYOND: usize = 256;
/// Bytes of dynamic shared memory a block.
const SHARED: u32 = 4096;

fn context() -> Result<Context, String> {
    let context = cust::init(CudaFlags::empty()).and_then(|()| Device::get_device(0)).and_then(Context::new);
    context.map_err(|error| format!("no usable GPU: {error}"))
}

/// The bytes that the kernel left, those beyond the results included.
fn run(case: &Case, ptx: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let module = Module::from_ptx(ptx, &[]).map_err(|error| format!("{error}: {:?}", cust::extra::last_failure()))?;
    let stream = Stream::new(StreamFlags::NON_BLOCKING, None)?;
    let input = DeviceBuffer::from_slice(&case.input)?;
    let out = DeviceBuffer::<u8>::zeroed(case.expected.len() + BEYOND)?;
    let kernel = module.get_function(case.entry)?;
    // SAFETY: these are the kernel's parameters; the table gives the input that it reads and the bytes that it writes; all
    // of it, and the module, outlive the kernel.
    unsafe {
        launch!(kernel<<<case.blocks, case.threads, SHARED, stream>>>(input.as_device_ptr(), out.as_device_ptr()))?;
    }
    stream.synchronize()?;
    Ok(out.as_host_vec()?)
}

/// What differs from the table, one line a case.
fn differences(modules: &Modules, newest: bool) -> Result<Vec<String>, Box<dyn Error>> {
    let mut found = Vec::new();
    let mut runs = 0;
    for (arch, modules) in modules.by_arch().into_iter().filter(|(arch, _)| newest || *arch == "sm_80") {
        for case in table().iter().filter(|case| arch == "sm_90" || !case.needs_sm_90) {
            let module = modules.iter().find(|module| module.entry == case.entry);
            let module = module.ok_or_else(|| format!("there is no {} for {arch}", case.entry))?;
            let given = run(case, &module.ptx).map_err(|error| format!("{} for {arch}: {error}", case.entry))?;
            let (results, beyond) = given.split_at(case.expected.len());
            if let Some(at) = (0..results.len()).find(|&at| results[at] != case.expected[at]) {
                let word = at / 4 * 4..at / 4 * 4 + 4;
                let (given, expected) = (&results[word.clone()], &case.expected[word]);
                found.push(format!("{} for {arch}: byte {at}: word {given:02x?}, not {expected:02x?}", case.entry));
            }
            if beyond.iter().any(|&byte| byte != 0) {
                found.push(format!("{} for {arch}: wrote behind its results", case.entry));
            }
            runs += 1;
        }
    }
    assert!(runs > 0, "nothing ran");
    println!("{runs} kernels ran");
    Ok(found)
}

#[test]
fn on_a_gpu_every_instruction_computes_what_it_should() -> Result<(), Box<dyn Error>> {
    let required = std::env::var("LANKY_REQUIRE_GPU").is_ok_and(|value| value == "1");
    let ready = context().and_then(|context| match compiled() {
        Ok(_) => Ok((context, None)),
        Err(_) => brought().map(|modules| (context, Some(modules))),
    });
    let (_context, brought) = match ready {
        Ok(ready) => ready,
        Err(reason) if required => return Err(reason.into()),
        Err(reason) => {
            skip("on_a_gpu_every_instruction_computes_what_it_should", &reason);
            return Ok(());
        }
    };
    let major = Device::get_device(0)?.get_attribute(cust::device::DeviceAttribute::ComputeCapabilityMajor)?;
    let modules = match &brought {
        Some(brought) => brought,
        None => compiled()?,
    };
    let found = differences(modules, major >= 9)?;
    assert!(found.is_empty(), "{}", found.join("\n"));
    Ok(())
}
