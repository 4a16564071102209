//! A product of lanky between two kernels of somebody else's, in cudarc's context, on its stream and in its memory: no
//! copy, no synchronisation. `cargo run --release` in this folder; without a GPU it says so and does nothing.
use cudarc::driver::{CudaContext, CudaFunction, CudaSlice, CudaStream, DriverError};
use cudarc::{driver::DevicePtr, driver::DevicePtrMut, driver::LaunchConfig, driver::PushKernelArg, nvrtc::Ptx};
use lanky::prelude::*;
use std::error::Error;

/// x[i] *= 2
const DOUBLE: &str = ".version 7.4\n.target sm_80\n.address_size 64
.visible .entry double(.param .u64 x, .param .u32 n) {
    .reg .pred %p; .reg .b32 %r<5>; .reg .b64 %rd<4>; .reg .f64 %f<2>;
    mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r3, %r0, %r1, %r2;
    ld.param.u32 %r4, [n]; setp.ge.u32 %p, %r3, %r4; @%p ret;
    ld.param.u64 %rd0, [x]; cvta.to.global.u64 %rd1, %rd0; mul.wide.u32 %rd2, %r3, 8; add.u64 %rd3, %rd1, %rd2;
    ld.global.f64 %f0, [%rd3]; add.f64 %f1, %f0, %f0; st.global.f64 [%rd3], %f1; ret;
}";

fn double(stream: &CudaStream, kernel: &CudaFunction, x: &mut CudaSlice<f64>) -> Result<(), DriverError> {
    let len = u32::try_from(x.len()).unwrap_or(0);
    // SAFETY: the kernel takes an address and a length, and stays inside.
    unsafe { stream.launch_builder(kernel).arg(x).arg(&len).launch(LaunchConfig::for_num_elems(len)) }.map(drop)
}

fn main() -> Result<(), Box<dyn Error>> {
    if let Err(reason) = Device::cuda(0) {
        println!("skipped: {reason}"); // cudarc would panic
        return Ok(());
    }
    let context = CudaContext::new(0)?;
    let theirs = context.new_stream()?;
    let kernel = context.load_module(Ptx::from_src(DOUBLE))?.load_function("double")?;
    let (m, n, k) = (3000, 4, 500);
    let mut a = theirs.clone_htod(&(0..m * k).map(|at| (at % 5) as f64).collect::<Vec<_>>())?;
    let b = theirs.clone_htod(&(0..k * n).map(|at| (at % 3) as f64).collect::<Vec<_>>())?;
    let mut c = theirs.alloc_zeros::<f64>(m * n)?;

    context.bind_to_thread()?;
    let device = Device::from_current_context()?;
    // SAFETY: a stream of this context, which outlives it.
    let ours = unsafe { Stream::from_raw(&device, theirs.cu_stream().cast()) };
    double(&theirs, &kernel, &mut a)?; // before: A <- 2 A
    {
        // The guards tell cudarc what the work uses: they live until it is in the stream.
        let ((pa, _a), (pb, _b), (pc, _c)) = (a.device_ptr(&theirs), b.device_ptr(&theirs), c.device_ptr_mut(&theirs));
        // SAFETY: by columns, as long as the shapes ask, used on this stream alone.
        let (a, b) =
            unsafe { (MatRef::from_raw(&device, pa, m, k, 1, m)?, MatRef::from_raw(&device, pb, k, n, 1, k)?) };
        // SAFETY: as above.
        gemm(&ours, 1.0, a, b, 0.0, unsafe { MatMut::from_raw(&device, pc, m, n, 1, m) }?)?;
    }
    double(&theirs, &kernel, &mut c)?; // after: C <- 2 C
    let c = theirs.clone_dtoh(&c)?;
    for at in [0, 1, m - 1, m, m * n - 1] {
        let dot: usize = (0..k).map(|l| 4 * ((at % m + l * m) % 5) * ((l + at / m * k) % 3)).sum();
        assert_eq!(c[at], dot as f64, "element {at}");
    }
    println!("{device}: 4 A B between two kernels of cudarc's program is right");
    Ok(())
}
