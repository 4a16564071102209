//! A kernel that is loaded into a context, and what its driver was asked about it, once.

use crate::driver;
use crate::error::Result;
use crate::gpu::lock;
use cust::function::Function;
use cust::module::Module;
use std::ffi::c_void;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Shared memory that a block may have without opting in, bytes.
const SHARED_WITHOUT_ASKING: u32 = 48 << 10;

pub(crate) struct Kernel {
    pub(crate) entry: &'static str,
    module: Module,
    /// The module's function of that name; null before it was fetched.
    function: AtomicPtr<c_void>,
    /// Bytes of dynamic shared memory that its blocks may have: never fewer than before, since another thread may be about
    /// to launch with them.
    allowed: Mutex<u32>,
}

impl Kernel {
    pub(crate) fn new(entry: &'static str, module: Module) -> Self {
        Kernel { entry, module, function: AtomicPtr::new(ptr::null_mut()), allowed: Mutex::new(SHARED_WITHOUT_ASKING) }
    }

    /// The function, whose blocks may have so much dynamic shared memory; the driver is asked at the first call, and where
    /// more is wanted than before. The context must be current.
    pub(crate) fn function(&self, shared_bytes: u32) -> Result<Function<'_>> {
        let function = self.fetched()?;
        if shared_bytes > SHARED_WITHOUT_ASKING {
            let mut allowed = lock(&self.allowed);
            if shared_bytes > *allowed {
                driver::allow_shared(&function, shared_bytes)
                    .map_err(|error| driver::launch_failed(error, self.entry))?;
                *allowed = shared_bytes;
            }
        }
        Ok(function)
    }

    fn fetched(&self) -> Result<Function<'_>> {
        let known = self.function.load(Ordering::Relaxed);
        if !known.is_null() {
            // SAFETY: below it was got from this module, which lives as long as the result.
            return Ok(unsafe { driver::function_of(&self.module, known) });
        }
        let function = self.module.get_function(self.entry).map_err(|error| driver::load_failed(error, self.entry))?;
        self.function.store(function.to_raw().cast(), Ordering::Relaxed);
        Ok(function)
    }
}
