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

register!(/** `%tid.x`: this thread in its block. Any architecture, as all registers here. */ thread_idx_x, _thread_idx_x, Register::ThreadIdx(0));
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

/// This thread in a grid that has one dimension: block · threads a block + thread, from three registers. For grids of fewer
/// than 2^32 threads.
#[inline(always)]
#[track_caller]
pub fn index_1d() -> u32 {
    block_idx_x() * block_dim_x() + thread_idx_x()
}

/// Waits until every thread of the block is here; what they wrote to shared and global memory before is then seen by
/// all of them. `bar.sync 0`, any architecture. Every thread of the block must reach the same call.
#[inline(always)]
#[track_caller]
pub fn sync_threads() {
    // SAFETY: a barrier touches no memory; accesses that rely on it are unsafe, and promise that it lies between. Where
    // threads of a block miss it, which safe code can do, PTX promises nothing: GPUs hang, or go on too soon, and the
    // emulator fails.
    #[cfg(target_arch = "nvptx64")]
    unsafe {
        nvptx::_syncthreads();
    }
    #[cfg(not(target_arch = "nvptx64"))]
    hooks().barrier(Barrier::Sync, true, core::panic::Location::caller());
}

/// One barrier that also computes: an instruction on the GPU, a hook elsewhere.
macro_rules! barrier_red {
    ($(#[$doc:meta])* $name:ident, $instructions:literal, $barrier:expr) => {
        $(#[$doc])*
        ///
        /// From sm_30, PTX 6.0. Every thread of the block must reach the same call.
        #[inline(always)]
        #[track_caller]
        pub fn $name(predicate: u32) -> u32 {
            #[cfg(target_arch = "nvptx64")]
            {
                let result: u32;
                // SAFETY: registers alone; else as for `sync_threads`.
                unsafe { asm!($instructions, out(reg32) result, in(reg32) predicate) };
                result
            }
            #[cfg(not(target_arch = "nvptx64"))]
            hooks().barrier($barrier, predicate != 0, core::panic::Location::caller())
        }
    };
}

barrier_red!(/** Waits as [`sync_threads`] does and returns how many threads gave a predicate that is not 0.
    `barrier.red.popc.u32`. */
    sync_threads_count, "{{ .reg .pred p; setp.ne.u32 p, {1}, 0; barrier.red.popc.u32 {0}, 0, p; }}", Barrier::Count);
barrier_red!(/** Waits as [`sync_threads`] does and returns 1 if every predicate is not 0, else 0. `barrier.red.and.pred`. */
    sync_threads_and, "{{ .reg .pred p, q; setp.ne.u32 p, {1}, 0; barrier.red.and.pred q, 0, p; selp.u32 {0}, 1, 0, q; }}", Barrier::And);
barrier_red!(/** Waits as [`sync_threads`] does and returns 1 if any predicate is not 0, else 0. `barrier.red.or.pred`. */
    sync_threads_or, "{{ .reg .pred p, q; setp.ne.u32 p, {1}, 0; barrier.red.or.pred q, 0, p; selp.u32 {0}, 1, 0, q; }}", Barrier::Or);

/// Orders this thread's accesses to memory: those before, for all threads of the GPU, before those after, in one order
/// that all fences of this kind share. `fence.sc.gpu`, from sm_70, PTX 6.0.
#[inline(always)]
#[track_caller]
pub fn device_fence() {
    // SAFETY: a fence has no requirements.
    #[cfg(target_arch = "nvptx64")]
    unsafe {
        asm!("fence.sc.gpu;");
    }
    #[cfg(not(target_arch = "nvptx64"))]
    hooks().fence(Fence::Device, core::panic::Location::caller());
}
