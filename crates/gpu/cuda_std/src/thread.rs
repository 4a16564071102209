//! Who am I, and waiting for the others of my block. Names and signatures as in rust-cuda's `cuda_std::thread`.

#[cfg(target_arch = "nvptx64")]
use core::arch::{asm, nvptx};

#[cfg(not(target_arch = "nvptx64"))]
use crate::hooks::{Barrier, Fence, Register, hooks};

/// One special register: an intrinsic on the GPU, a hook elsewhere.
macro_rules! register {
    ($(#[$doc:meta])* $name:ident, $intrinsic:ident, $register:expr) => {
        $(#[$doc])*
        #[inline(always)]
        #[track_caller]
        pub fn $name() -> u32 {
            // SAFETY: reading a special register has no requirements.
            #[cfg(target_arch = "nvptx64")]
            return unsafe { nvptx::$intrinsic() as u32 };
            #[cfg(not(target_arch = "nvptx64"))]
            return hooks().register($register);
        }
    };
}

register!(/** `%tid.x`: this thread in its block. */ thread_idx_x, _thread_idx_x, Register::ThreadIdx(0));
register!(/** `%tid.y`. */ thread_idx_y, _thread_idx_y, Register::ThreadIdx(1));
register!(/** `%tid.z`. */ thread_idx_z, _thread_idx_z, Register::ThreadIdx(2));
register!(/** `%ctaid.x`: this block in its grid. */ block_idx_x, _block_idx_x, Register::BlockIdx(0));
register!(/** `%ctaid.y`. */ block_idx_y, _block_idx_y, Register::BlockIdx(1));
register!(/** `%ctaid.z`. */ block_idx_z, _block_idx_z, Register::BlockIdx(2));
register!(/** `%ntid.x`: threads a block. */ block_dim_x, _block_dim_x, Register::BlockDim(0));
register!(/** `%ntid.y`. */ block_dim_y, _block_dim_y, Register::BlockDim(1));
register!(/** `%ntid.z`. */ block_dim_z, _block_dim_z, Register::BlockDim(2));
register!(/** `%nctaid.x`: blocks a grid. */ grid_dim_x, _grid_dim_x, Register::GridDim(0));
register!(/** `%nctaid.y`. */ grid_dim_y, _grid_dim_y, Register::GridDim(1));
register!(/** `%nctaid.z`. */ grid_dim_z, _grid_dim_z, Register::GridDim(2));

/// This thread in a grid that has one dimension: block · threads a block + thread.
#[inline(always)]
#[track_caller]
pub fn index_1d() -> u32 {
    block_idx_x() * block_dim_x() + thread_idx_x()
}

/// Waits until every thread of the block is here; what they wrote to shared and global memory before is then seen by
/// all of them. `barrier.sync 0`. Every thread of the block must reach the same call.
#[inline(always)]
#[track_caller]
pub fn sync_threads() {
    // SAFETY: that all threads get here is what the caller promises; a kernel that breaks it hangs or misreads its own
    // memory.
    #[cfg(target_arch = "nvptx64")]
    unsafe {
        nvptx::_syncthreads();
    }
    #[cfg(not(target_arch = "nvptx64"))]
    hooks().barrier(Barrier::Sync, true, core::panic::Location::caller());
}

/// Waits for the block and returns how many of its threads gave a predicate that is not 0. `barrier.red.popc`.
#[inline(always)]
#[track_caller]
pub fn sync_threads_count(predicate: u32) -> u32 {
    #[cfg(target_arch = "nvptx64")]
    {
        let count: u32;
        // SAFETY: as for `sync_threads`.
        unsafe {
            asm!("{{ .reg .pred p; setp.ne.u32 p, {1}, 0; barrier.red.popc.u32 {0}, 0, p; }}", out(reg32) count, in(reg32) predicate);
        }
        count
    }
    #[cfg(not(target_arch = "nvptx64"))]
    hooks().barrier(Barrier::Count, predicate != 0, core::panic::Location::caller())
}

/// Waits for the block and returns 1 if every predicate is not 0, else 0. `barrier.red.and`, by counting.
#[inline(always)]
#[track_caller]
pub fn sync_threads_and(predicate: u32) -> u32 {
    let refused = sync_threads_count((predicate == 0) as u32);
    (refused == 0) as u32
}

/// Waits for the block and returns 1 if any predicate is not 0, else 0. `barrier.red.or`, by counting.
#[inline(always)]
#[track_caller]
pub fn sync_threads_or(predicate: u32) -> u32 {
    (sync_threads_count(predicate) != 0) as u32
}

/// Makes this thread's writes visible to all threads of the GPU before any that it makes later. `fence.acq_rel.gpu`.
#[inline(always)]
#[track_caller]
pub fn device_fence() {
    // SAFETY: a fence has no requirements.
    #[cfg(target_arch = "nvptx64")]
    unsafe {
        asm!("fence.acq_rel.gpu;");
    }
    #[cfg(not(target_arch = "nvptx64"))]
    hooks().fence(Fence::Device);
}
