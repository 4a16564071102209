//! Runs the kernel on the GPU, through cust. Without a driver it says so.
use cust::memory::DeviceBuffer;
use cust::prelude::*;
use std::error::Error;

const AXPY: &str = include_str!(concat!(env!("OUT_DIR"), "/axpy.ptx"));

fn main() -> Result<(), Box<dyn Error>> {
    println!("{} bytes of PTX", AXPY.len());
    if let Err(none) = cust::extra::load() {
        println!("skipped: {none}");
        return Ok(());
    }
    cust::init(CudaFlags::empty())?;
    let _context = Context::new(Device::get_device(0)?)?;
    let module = Module::from_ptx(AXPY, &[])?;
    let stream = Stream::new(StreamFlags::NON_BLOCKING, None)?;

    const N: u32 = 100_003;
    let x = DeviceBuffer::from_slice(&[1.0_f32; N as usize])?;
    let y = DeviceBuffer::from_slice(&[2.0_f32; N as usize])?;
    // SAFETY: the kernel's parameters; both buffers have N elements and outlive the kernel, as the module does.
    unsafe {
        launch!(module.axpy<<<N.div_ceil(128), 128, 0, stream>>>(N, 3.0_f32, x.as_device_ptr(), y.as_device_ptr()))?;
    }
    stream.synchronize()?;
    assert!(y.as_host_vec()?.iter().all(|&y| y == 5.0));
    println!("axpy of {N} elements on the GPU is right");
    Ok(())
}
