//! The same calls on a real driver and GPU; where there is none, each test says that it is skipped.

mod common;

use lanky_cust::context::{Context, CurrentContext};
use lanky_cust::device::{Device, DeviceAttribute};
use lanky_cust::error::CudaError;
use lanky_cust::event::{Event, EventFlags, EventStatus};
use lanky_cust::extra;
use lanky_cust::function::{BlockSize, FunctionAttribute};
use lanky_cust::memory::{AsyncCopyDestination, DeviceBuffer, LockedBuffer, mem_get_info};
use lanky_cust::module::Module;
use lanky_cust::stream::{Stream, StreamFlags};
use lanky_cust::{CudaFlags, launch};

/// add(n: u32, repeats: u32, a: f32, x: *const f32, y: *mut f32): y[i] += a x[i], `repeats` times.
const ADD: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry add(.param .u32 n, .param .u32 repeats, .param .f32 a, .param .u64 x, .param .u64 y)
{
    .reg .pred %p<3>; .reg .b32 %r<7>; .reg .f32 %f<4>; .reg .b64 %rd<6>;
    ld.param.u32 %r1, [n]; ld.param.u32 %r6, [repeats]; ld.param.f32 %f1, [a];
    ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y];
    mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
    mad.lo.u32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra done;
    mul.wide.u32 %rd3, %r5, 4;
    add.u64 %rd4, %rd1, %rd3; add.u64 %rd5, %rd2, %rd3;
again:
    ld.volatile.f32 %f2, [%rd4]; ld.volatile.f32 %f3, [%rd5];
    fma.rn.f32 %f3, %f1, %f2, %f3;
    st.volatile.f32 [%rd5], %f3;
    sub.u32 %r6, %r6, 1;
    setp.ne.u32 %p2, %r6, 0;
    @%p2 bra again;
done:
    ret;
}";

type Tested = Result<(), Box<dyn std::error::Error>>;

fn gpu(test: &str) -> Option<Context> {
    let count = extra::load().map_err(|none| none.to_string()).and_then(|_| {
        let count = lanky_cust::init(CudaFlags::empty()).and_then(|()| Device::num_devices());
        count.map_err(|error| error.to_string())
    });
    let reason = match count {
        Ok(0) => "the driver sees no device".to_owned(),
        Ok(_) => return Some(Device::get_device(0).and_then(Context::new).expect("a context on device 0")),
        Err(reason) => reason,
    };
    common::skipped(test, &reason);
    None
}

#[test]
fn a_kernel_runs_between_copies() -> Tested {
    let Some(_context) = gpu("a_kernel_runs_between_copies") else { return Ok(()) };
    let module = Module::from_ptx(ADD, &[])?;
    let stream = Stream::new(StreamFlags::NON_BLOCKING, None)?;
    assert_eq!(stream.get_flags()?, StreamFlags::NON_BLOCKING);
    assert!(!extra::is_capturing(&stream)?);
    const N: u32 = 100_003;
    let x: Vec<f32> = (0..N).map(|i| f32::from(u8::try_from(i % 251).unwrap_or(0))).collect();
    let (x_there, y_there) = (DeviceBuffer::from_slice(&x)?, DeviceBuffer::<f32>::zeroed(x.len())?);
    let (start, end) = (Event::new(EventFlags::DEFAULT)?, Event::new(EventFlags::DEFAULT)?);
    start.record(&stream)?;
    // Long enough that a copy which did not wait for it would see zeros.
    // SAFETY: these are the kernel's parameters; both buffers have N elements and outlive the kernel, as the module does.
    unsafe {
        let (x, y) = (x_there.as_device_ptr(), y_there.as_device_ptr());
        launch!(module.add<<<N.div_ceil(256), 256, 0, stream>>>(N, 2000_u32, 2.0_f32, x, y))?;
    }
    end.record(&stream)?;
    // Not synchronised: a blocking copy waits for all earlier work.
    let y = y_there.as_host_vec()?;
    assert!(y.iter().zip(&x).all(|(y, x)| *y == 4000.0 * x));
    assert_eq!(end.query()?, EventStatus::Ready);
    let milliseconds = end.elapsed_time_f32(&start)?;
    assert!(milliseconds > 0.0 && end.elapsed(&start)?.as_secs_f32() > 0.0);
    Ok(())
}

#[test]
fn pinned_memory_copies_in_a_streams_order() -> Tested {
    let Some(_context) = gpu("pinned_memory_copies_in_a_streams_order") else { return Ok(()) };
    let stream = Stream::new(StreamFlags::NON_BLOCKING, None)?;
    let there = LockedBuffer::from_slice(&[1_u64, 2, 3, 4, 5])?;
    let mut back = LockedBuffer::new(&0_u64, 5)?;
    // SAFETY: all of these live until the stream is waited for, and nothing else uses them before.
    unsafe {
        let mut first = DeviceBuffer::<u64>::uninitialized_async(5, &stream)?;
        let mut second = DeviceBuffer::<u64>::zeroed_async(5, &stream)?;
        first.async_copy_from(&there, &stream)?;
        second.async_copy_from(&first, &stream)?;
        second.async_copy_to(&mut back, &stream)?;
        first.drop_async(&stream)?;
        second.drop_async(&stream)?;
    }
    stream.synchronize()?;
    assert_eq!(*back, *there);
    Ok(())
}

#[test]
fn why_ptx_does_not_compile_is_told() -> Tested {
    let Some(_context) = gpu("why_ptx_does_not_compile_is_told") else { return Ok(()) };
    let broken = ADD.replace("fma.rn.f32", "fma.rn.f33");
    assert_eq!(Module::from_ptx(broken, &[]).map(drop), Err(CudaError::InvalidPtx));
    let failure = extra::last_failure().expect("there was one");
    assert_eq!((failure.function, failure.name.as_str()), ("cuModuleLoadDataEx", "CUDA_ERROR_INVALID_PTX"));
    assert!(failure.log.contains("f33"), "{failure}\n{}", failure.log);

    let newer = ADD.replace(".version 7.0", ".version 99.0");
    assert!(Module::from_ptx(newer, &[]).is_err());
    let failure = extra::last_failure().expect("there was one");
    assert!([218, 222].contains(&failure.code), "{failure}\n{}", failure.log);

    let module = Module::from_ptx(ADD, &[])?;
    assert_eq!(module.get_function("subtract").map(drop), Err(CudaError::NotFound));
    Ok(())
}

#[test]
fn a_kernel_tells_what_it_needs() -> Tested {
    let Some(_context) = gpu("a_kernel_tells_what_it_needs") else { return Ok(()) };
    let device = Device::get_device(0)?;
    assert!(!device.name()?.is_empty() && device.total_memory()? > 1 << 30);
    assert_eq!(device.get_attribute(DeviceAttribute::WarpSize)?, 32);
    let module = Module::from_ptx(ADD, &[])?;
    let add = module.get_function("add")?;
    assert_eq!(add.get_attribute(FunctionAttribute::LocalSizeBytes)?, 0);
    assert!(add.get_attribute(FunctionAttribute::NumRegisters)? > 0);
    assert!(add.max_active_blocks_per_multiprocessor(BlockSize::x(256), 0)? >= 4);
    let most = u32::try_from(extra::device_attribute(device, 97)?)?;
    extra::set_max_dynamic_shared(&add, most)?;
    assert_eq!(extra::set_max_dynamic_shared(&add, most + 1), Err(CudaError::InvalidValue));
    Ok(())
}

/// Dropped on a thread without a context, and after the context: the memory is free again, and the thread as it was.
#[test]
fn things_dropped_anywhere_are_freed() -> Tested {
    let Some(context) = gpu("things_dropped_anywhere_are_freed") else { return Ok(()) };
    let memory = || DeviceBuffer::<u8>::zeroed(1 << 32);
    drop(memory()?);
    let (before, _) = mem_get_info()?;
    let things = (memory()?, Stream::new(StreamFlags::DEFAULT, None)?, Event::new(EventFlags::DEFAULT)?);
    let module = Module::from_ptx(ADD, &[])?;
    assert!(mem_get_info()?.0 + (1 << 31) < before);
    std::thread::spawn(move || {
        drop((things, module));
        assert_eq!(extra::current_context_raw(), Ok(std::ptr::null_mut()));
    })
    .join()
    .expect("no panic");
    // Other tests of this process have some kilobytes.
    assert!(mem_get_info()?.0 + (1 << 30) > before);

    let (kept, raw) = (memory()?, context.as_raw());
    drop(context);
    assert_eq!(CurrentContext::synchronize(), Ok(()), "what was made in a context keeps it alive");
    drop(kept);
    let again = Context::new(Device::get_device(0)?)?;
    let other = extra::enter(&again)?;
    assert_eq!(extra::current_context_raw()?, again.as_raw().cast());
    drop(other);
    assert_eq!(again.as_raw(), raw, "a device has one primary context");
    Ok(())
}

#[test]
fn no_room_is_an_error_and_the_next_call_works() -> Tested {
    let Some(_context) = gpu("no_room_is_an_error_and_the_next_call_works") else { return Ok(()) };
    // SAFETY: nothing reads it.
    let given = unsafe { DeviceBuffer::<u8>::uninitialized(1 << 50) }.map(drop);
    assert_eq!(given, Err(CudaError::OutOfMemory));
    let failure = extra::last_failure().expect("there was one");
    assert_eq!((failure.function, failure.code), ("cuMemAlloc", 2));
    assert_eq!(DeviceBuffer::from_slice(&[7_u8])?.as_host_vec()?, [7]);
    Ok(())
}
