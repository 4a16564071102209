//! Kernels. For the GPU the build script of the package above compiles this crate; for tests it is an ordinary one.
#![no_std]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx, stdarch_nvptx))]

use cuda_std::prelude::*;

/// y[i] <- a x[i] + y[i] for i < n, a thread each.
///
/// # Safety
/// `x` and `y` have n elements and do not overlap.
#[kernel]
pub unsafe fn axpy(n: u32, a: f32, x: Global<f32>, y: Global<f32>) {
    let i = thread::block_idx_x() * thread::block_dim_x() + thread::thread_idx_x();
    if i < n {
        let i = u64::from(i);
        // SAFETY: i < n.
        unsafe { y.store(i, a * x.load(i) + y.load(i)) };
    }
}

#[cfg(target_arch = "nvptx64")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: `trap` has no requirements.
    unsafe { core::arch::nvptx::trap() }
}
