//! Memory and a stream of cust's: a product in place, in the context that is current. Without a GPU it says so.
use cust::memory::{CopyDestination, DeviceBuffer};
use cust::prelude::*;
use lanky::prelude::{Device, MatMut, MatRef, Matrix, Plan};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if let Err(reason) = Device::cuda(0) {
        println!("skipped: {reason}");
        return Ok(());
    }
    cust::init(CudaFlags::empty())?;
    let _context = Context::new(cust::device::Device::get_device(0)?)?;
    let theirs = Stream::new(StreamFlags::NON_BLOCKING, None)?;
    let (m, n, k) = (3000, 8, 500);
    let a = Matrix::from_fn(m, k, |i, l| ((i + 2 * l) % 7) as f32)?;
    let b = Matrix::from_fn(k, n, |l, j| ((3 * l + j) % 5) as f32)?;
    let a_there = DeviceBuffer::from_slice(a.as_slice().unwrap_or_default())?;
    let b_there = DeviceBuffer::from_slice(b.as_slice().unwrap_or_default())?;
    let c_there = DeviceBuffer::<f32>::zeroed(m * n)?;

    let device = Device::from_current_context()?;
    // SAFETY: a stream of this context, which outlives it.
    let stream = unsafe { lanky::Stream::from_raw(&device, theirs.as_inner().cast()) };
    let address = |buffer: &DeviceBuffer<f32>| buffer.as_device_ptr().as_raw();
    // SAFETY: the buffers are as long as the shapes ask, and are used on this stream alone.
    let (view_a, view_b, c) = unsafe {
        (
            MatRef::<f32>::from_raw(&device, address(&a_there), m, k, 1, m)?,
            MatRef::<f32>::from_raw(&device, address(&b_there), k, n, 1, k)?,
            MatMut::<f32>::from_raw(&device, address(&c_there), m, n, 1, m)?,
        )
    };
    let plan = Plan::gemm(&device, view_a.shape(), view_b.shape(), c.shape()).build()?;
    plan.warm_up_on(&stream)?; // from here on nothing is allocated
    plan.run(&stream, 1.0, view_a, view_b, 0.0, c)?;
    theirs.synchronize()?;

    let mut found = vec![0.0; m * n];
    c_there.copy_to(&mut found[..])?;
    let expected = Device::cpu().matmul(a.view(), b.view())?;
    assert_eq!(Some(&found[..]), expected.as_slice());
    println!("{device}: the product in cust's memory is right");
    Ok(())
}
