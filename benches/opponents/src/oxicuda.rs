//! oxicuda-blas: on the context that is current, and on a stream of its own, since it takes no other's; events order the
//! two, so that what is timed on the caller's stream is the product and two hand-overs, of some microseconds.

use crate::{Call, FAILED, NOT_MINE, Outcome};
use libloading::Library;
use oxicuda_blas::handle::BlasHandle;
use oxicuda_blas::level3::gemm_api;
use oxicuda_blas::types::{GpuFloat, Layout, MatrixDesc, MatrixDescMut, Transpose};
use oxicuda_driver::{Context, Device, Stream};
use std::cell::RefCell;
use std::ffi::{c_int, c_uint, c_void};
use std::ptr;
use std::sync::Arc;

type Raw = *mut c_void;

thread_local! {
    static STATE: RefCell<Option<State>> = const { RefCell::new(None) };
}

/// Its handle, and the driver's calls that it does not offer for streams of others.
struct State {
    handle: BlasHandle,
    stream: Stream,
    /// Behind the caller's work, and behind its own.
    events: [Raw; 2],
    record: unsafe extern "system" fn(Raw, Raw) -> c_int,
    wait: unsafe extern "system" fn(Raw, Raw, c_uint) -> c_int,
}

/// CU_EVENT_DISABLE_TIMING
const NO_TIMING: c_uint = 2;

impl State {
    fn new() -> Option<State> {
        // SAFETY: the driver, which is loaded already: no code of it runs now. It stays loaded.
        let library: &'static Library = Box::leak(Box::new(unsafe { Library::new("libcuda.so.1") }.ok()?));
        // SAFETY: the types are those that NVIDIA's cuda.h declares for these names; the places are for the answers.
        unsafe {
            let current: unsafe extern "system" fn(*mut Raw) -> c_int = *library.get(b"cuCtxGetCurrent\0").ok()?;
            let device: unsafe extern "system" fn(*mut c_int) -> c_int = *library.get(b"cuCtxGetDevice\0").ok()?;
            let create: unsafe extern "system" fn(*mut Raw, c_uint) -> c_int = *library.get(b"cuEventCreate\0").ok()?;
            let (mut context, mut ordinal) = (ptr::null_mut(), 0);
            let mut events = [ptr::null_mut(); 2];
            let done = current(&raw mut context) == 0
                && device(&raw mut ordinal) == 0
                && events.iter_mut().all(|event| create(event, NO_TIMING) == 0);
            if !done || context.is_null() {
                return None;
            }
            // The driver numbers its devices as they are counted.
            let device = Device::get(ordinal).ok()?;
            // Not `Arc::new` of an owned one: the context is the program's.
            let context = Arc::new(Context::from_raw_borrowed(oxicuda_driver::ffi::CUcontext(context.cast()), device));
            let stream = Stream::new(&context).ok()?;
            let handle = BlasHandle::with_stream(&context, stream.clone()).ok()?;
            Some(State {
                handle,
                stream,
                events,
                record: *library.get(b"cuEventRecord\0").ok()?,
                wait: *library.get(b"cuStreamWaitEvent\0").ok()?,
            })
        }
    }

    /// What `to` gets from now on comes behind what `from` has.
    fn order(&self, event: Raw, from: Raw, to: Raw) -> Outcome {
        // SAFETY: the event is this one's own, the streams are alive, and the context is current.
        let done = unsafe { (self.record)(event, from) == 0 && (self.wait)(to, event, 0) == 0 };
        if done { Ok(()) } else { Err(FAILED) }
    }
}

/// # Safety
/// As `lanky_opponents_run`.
pub unsafe fn gemm(call: &Call) -> Outcome {
    if call.batch != 1 || call.dtype > 1 {
        return Err(NOT_MINE);
    }
    STATE.with_borrow_mut(|state| {
        if state.is_none() {
            *state = State::new();
        }
        let state = state.as_ref().ok_or(FAILED)?;
        let own: Raw = state.stream.raw().0.cast();
        state.order(state.events[0], call.stream, own)?;
        let done = match call.dtype {
            0 => multiply::<f32>(&state.handle, call, call.alpha as f32, call.beta as f32),
            _ => multiply::<f64>(&state.handle, call, call.alpha, call.beta),
        };
        // Also after a failure: whatever was begun comes before the caller's later work.
        state.order(state.events[1], own, call.stream)?;
        done
    })
}

/// Its products are of packed, row-major matrices: C, or C transposed, must be one; A and B may be used transposed.
fn multiply<T: GpuFloat>(handle: &BlasHandle, call: &Call, alpha: T, beta: T) -> Outcome {
    let [m, n, k] = [call.m, call.n, call.k].map(u32::try_from);
    let (Ok(m), Ok(n), Ok(k)) = (m, n, k) else { return Err(NOT_MINE) };
    let (a, b) = ((call.a, call.a_row, call.a_col), (call.b, call.b_row, call.b_col));
    let (m, n, a, b) = match (call.c_row, call.c_col) {
        (row, 1) if row == u64::from(n) => (m, n, a, b),
        (1, col) if col == u64::from(m) => (n, m, (b.0, b.2, b.1), (a.0, a.2, a.1)),
        _ => return Err(NOT_MINE),
    };
    let (a, op_a) = described::<T>(a, m, k)?;
    let (b, op_b) = described::<T>(b, k, n)?;
    let mut c = MatrixDescMut::from_raw(call.c, m, n, n, Layout::RowMajor);
    gemm_api::gemm(handle, op_a, op_b, alpha, &a, &b, beta, &mut c).map_err(|_| FAILED)
}

/// A packed rows x cols matrix, or its transpose, row by row.
fn described<T: GpuFloat>(
    (address, row, col): (u64, u64, u64),
    rows: u32,
    cols: u32,
) -> Result<(MatrixDesc<T>, Transpose), c_int> {
    if col == 1 && row == u64::from(cols) {
        Ok((MatrixDesc::from_raw(address, rows, cols, cols, Layout::RowMajor), Transpose::NoTrans))
    } else if row == 1 && col == u64::from(rows) {
        Ok((MatrixDesc::from_raw(address, cols, rows, rows, Layout::RowMajor), Transpose::Trans))
    } else {
        Err(NOT_MINE)
    }
}
