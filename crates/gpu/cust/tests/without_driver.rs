//! What a machine without a driver sees: errors that say so, and no panic.

mod common;

use lanky_cust::context::{Context, ContextFlags, CurrentContext};
use lanky_cust::device::Device;
use lanky_cust::error::{CudaError, CudaResult};
use lanky_cust::event::{Event, EventFlags};
use lanky_cust::extra;
use lanky_cust::function::Function;
use lanky_cust::memory::{DeviceBuffer, DevicePointer, DeviceSlice, LockedBuffer, mem_get_info};
use lanky_cust::module::Module;
use lanky_cust::stream::{Stream, StreamFlags};
use lanky_cust::{CudaApiVersion, CudaFlags, init, quick_init};

/// Whether there is no driver here, which these tests are about.
fn no_driver(test: &str) -> bool {
    let library = extra::load();
    if let Ok(library) = &library {
        common::skipped(test, &format!("this machine has a driver, {}", library.path));
    }
    library.is_err()
}

#[test]
fn what_was_tried_is_told() {
    if no_driver("what_was_tried_is_told") {
        let none = extra::load().expect_err("asked just now");
        assert!(!none.tried.is_empty() && !none.reason.is_empty(), "{none}");
        assert!(none.to_string().contains(&none.tried[0]), "{none}");
        assert_eq!(extra::load(), Err(none), "the answer stays");
    }
}

#[test]
fn every_way_in_is_an_error() {
    if !no_driver("every_way_in_is_an_error") {
        return;
    }
    fn refused<T>(given: CudaResult<T>) {
        assert_eq!(given.map(drop), Err(CudaError::SharedObjectInitFailed));
        let failure = extra::last_failure().expect("there was one");
        assert_eq!(failure.code, 303);
        assert!(failure.function.starts_with("cu"), "{failure}");
        assert!(failure.text.starts_with("no CUDA driver library (tried "), "{failure}");
    }
    refused(init(CudaFlags::empty()));
    refused(quick_init());
    refused(CudaApiVersion::get());
    refused(extra::driver_version());
    refused(extra::current_context_raw());
    refused(extra::current_device());
    refused(Device::num_devices());
    refused(Device::devices());
    refused(Device::get_device(0));
    refused(Device::get_device(u32::MAX));
    refused(CurrentContext::get_device());
    refused(CurrentContext::get_flags());
    refused(CurrentContext::synchronize());
    refused(Stream::new(StreamFlags::NON_BLOCKING, None));
    refused(Event::new(EventFlags::DEFAULT));
    refused(Module::from_ptx(".version 7.8", &[]));
    refused(Module::from_cubin([0x7F], &[]));
    refused(mem_get_info());
    refused(DeviceBuffer::from_slice(&[1.0_f64]));
    refused(DeviceBuffer::<f32>::zeroed(4));
    refused(LockedBuffer::new(&1_u8, 4));
    assert_eq!(Module::from_file("/nowhere/at/all.ptx").map(drop), Err(CudaError::FileNotFound));
}

/// Somebody else's stream is only looked at when it is used.
#[test]
fn a_borrowed_stream_is_left_alone() {
    if no_driver("a_borrowed_stream_is_left_alone") {
        // SAFETY: nothing follows the pointer, since there is no driver.
        let stream = unsafe { extra::borrow_stream(std::ptr::without_provenance_mut(8)) };
        assert_eq!(stream.as_inner().addr(), 8);
        assert_eq!(extra::is_capturing(&stream), Err(CudaError::SharedObjectInitFailed));
    }
}

#[test]
fn what_goes_between_threads_is_on_purpose() {
    fn both<T: Send + Sync>() {}
    both::<Context>();
    both::<Device>();
    both::<Stream>();
    both::<Event>();
    both::<Module>();
    both::<Function<'_>>();
    both::<DeviceBuffer<f64>>();
    both::<DeviceSlice<f64>>();
    both::<LockedBuffer<f64>>();
    both::<extra::Failure>();
    both::<extra::NoDriver>();
    both::<CudaError>();
    // Who is in a context is in it on one thread.
    trait Either<A> {
        fn either() {}
    }
    impl<T: ?Sized> Either<()> for T {}
    impl<T: ?Sized + Send> Either<u8> for T {}
    <extra::Current as Either<_>>::either();
    <DevicePointer<u8> as Either<_>>::either();
}

/// Compiles only where the type has no `Clone`, and so no `Copy`: else it could be either of two.
#[test]
fn nothing_is_a_second_handle_of_memory() {
    trait Either<A> {
        fn either() {}
    }
    impl<T: ?Sized> Either<()> for T {}
    impl<T: Clone> Either<u8> for T {}
    <DeviceSlice<f64> as Either<_>>::either();
    <DeviceBuffer<f64> as Either<_>>::either();
}

#[test]
fn flags_are_the_drivers_bits() {
    assert_eq!(StreamFlags::NON_BLOCKING.bits(), 1);
    assert_eq!((EventFlags::BLOCKING_SYNC | EventFlags::DISABLE_TIMING).bits(), 3);
    assert_eq!(ContextFlags::SCHED_BLOCKING_SYNC.bits(), 4);
    assert_eq!(CudaFlags::empty().bits(), 0);
}

#[test]
fn names_of_codes_need_no_driver() {
    assert_eq!(extra::error_name(222), "CUDA_ERROR_UNSUPPORTED_PTX_VERSION");
    assert_eq!(extra::error_name(803), "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH");
    assert_eq!(extra::error_name(12_345), "CUDA_ERROR_12345");
    assert_eq!(extra::error_text(700), "a kernel used an address that is not its own");
}
