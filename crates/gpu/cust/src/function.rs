//! Kernels, and the grids and blocks that they are launched with.

use crate::error::{CudaError, CudaResult, refuse};
use crate::module::Module;
use crate::sys::{self, CUfunction};
use std::ffi::c_int;
use std::marker::PhantomData;

/// Blocks of a grid, along each axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GridSize {
    /// Along x; up to 2³¹ − 1.
    pub x: u32,
    /// Along y; up to 65535.
    pub y: u32,
    /// Along z; up to 65535.
    pub z: u32,
}

/// Threads of a block, along each axis; at most 1024 in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockSize {
    /// Along x; up to 1024.
    pub x: u32,
    /// Along y; up to 1024.
    pub y: u32,
    /// Along z; up to 64.
    pub z: u32,
}

/// Stamps what grids and blocks have in common.
macro_rules! extents {
    ($($name:ident)*) => {$(
        impl $name {
            /// x by 1 by 1.
            #[inline]
            pub fn x(x: u32) -> $name { $name { x, y: 1, z: 1 } }
            /// x by y by 1.
            #[inline]
            pub fn xy(x: u32, y: u32) -> $name { $name { x, y, z: 1 } }
            /// x by y by z.
            #[inline]
            pub fn xyz(x: u32, y: u32, z: u32) -> $name { $name { x, y, z } }
        }
        impl From<u32> for $name { fn from(x: u32) -> $name { $name::x(x) } }
        impl From<(u32, u32)> for $name { fn from((x, y): (u32, u32)) -> $name { $name::xy(x, y) } }
        impl From<(u32, u32, u32)> for $name { fn from((x, y, z): (u32, u32, u32)) -> $name { $name::xyz(x, y, z) } }
        impl<'a> From<&'a $name> for $name { fn from(other: &$name) -> $name { *other } }
    )*};
}

extents!(GridSize BlockSize);

/// What can be asked of a kernel.
#[repr(u32)]
#[non_exhaustive]
#[derive(Debug, Copy, Clone, PartialEq, Eq, Hash)]
pub enum FunctionAttribute {
    /// Threads that a block may have.
    MaxThreadsPerBlock = 0,
    /// Bytes of statically allocated shared memory a block.
    SharedMemorySizeBytes = 1,
    /// Bytes of constant memory.
    ConstSizeBytes = 2,
    /// Bytes of local memory a thread: 0 if nothing is spilled and no array lies there.
    LocalSizeBytes = 3,
    /// Registers a thread.
    NumRegisters = 4,
    /// The PTX version it was compiled for, times ten.
    PtxVersion = 5,
    /// The architecture of its code, times ten.
    BinaryVersion = 6,
    /// Whether global loads are cached in L1 by a compiler option.
    CacheModeCa = 7,
}

impl FunctionAttribute {
    fn raw(self) -> c_int {
        match self {
            FunctionAttribute::MaxThreadsPerBlock => 0,
            FunctionAttribute::SharedMemorySizeBytes => 1,
            FunctionAttribute::ConstSizeBytes => 2,
            FunctionAttribute::LocalSizeBytes => 3,
            FunctionAttribute::NumRegisters => 4,
            FunctionAttribute::PtxVersion => 5,
            FunctionAttribute::BinaryVersion => 6,
            FunctionAttribute::CacheModeCa => 7,
        }
    }
}

/// A kernel of a loaded module.
#[derive(Debug)]
pub struct Function<'a> {
    inner: CUfunction,
    module: PhantomData<&'a Module>,
}

// SAFETY: the driver lets any thread use a kernel.
unsafe impl Send for Function<'_> {}
// SAFETY: a shared function only gives its handle and asks for attributes; the driver locks it for itself.
unsafe impl Sync for Function<'_> {}

impl Function<'_> {
    pub(crate) fn new(inner: CUfunction, _module: &Module) -> Function<'_> {
        Function { inner, module: PhantomData }
    }

    /// What the driver says about the kernel. `cuFuncGetAttribute`.
    ///
    /// # Errors
    /// [Those of the driver](crate#errors).
    pub fn get_attribute(&self, attr: FunctionAttribute) -> CudaResult<i32> {
        let mut value = 0;
        // SAFETY: the module keeps the kernel alive; `value` is a place for the answer.
        unsafe { sys::cuFuncGetAttribute(&raw mut value, attr.raw(), self.inner) }.to_result()?;
        Ok(value)
    }

    pub(crate) fn set_attribute(&self, attribute: c_int, value: c_int) -> CudaResult<()> {
        // SAFETY: the module keeps the kernel alive.
        unsafe { sys::cuFuncSetAttribute(self.inner, attribute, value) }.to_result()
    }

    /// The driver's handle, alive as long as the module is.
    pub fn to_raw(&self) -> CUfunction {
        self.inner
    }

    /// Blocks of this kernel that a multiprocessor holds at once. `cuOccupancyMaxActiveBlocksPerMultiprocessor`.
    ///
    /// # Errors
    /// [`InvalidValue`](CudaError::InvalidValue) for a block of more threads than there can be; [those of the
    /// driver](crate#errors).
    pub fn max_active_blocks_per_multiprocessor(
        &self,
        block_size: BlockSize,
        dynamic_smem_size: usize,
    ) -> CudaResult<u32> {
        let function = "cuOccupancyMaxActiveBlocksPerMultiprocessor";
        let threads = block_size.x.checked_mul(block_size.y).and_then(|plane| plane.checked_mul(block_size.z));
        let Some(Ok(threads)) = threads.map(c_int::try_from) else {
            return Err(refuse(function, CudaError::InvalidValue, format!("no block has the size {block_size:?}")));
        };
        let (mut blocks, kernel) = (0, self.inner);
        // SAFETY: the module keeps the kernel alive; `blocks` is a place for the answer.
        unsafe {
            sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(&raw mut blocks, kernel, threads, dynamic_smem_size)
        }
        .to_result()?;
        Ok(u32::try_from(blocks).unwrap_or(0))
    }
}

/// Gives a kernel to a stream: `launch!(function<<<grid, block, shared_bytes, stream>>>(arguments...))`, or
/// `launch!(module.kernel<<<..>>>(..))`. A [`CudaResult`]; to be used in an `unsafe` block, under the conditions of
/// [`Stream::launch`](crate::stream::Stream::launch).
#[macro_export]
macro_rules! launch {
    ($module:ident . $function:ident <<<$grid:expr, $block:expr, $shared:expr, $stream:ident>>>
        ($($argument:expr),* $(,)?)) => {
        $module.get_function(::core::stringify!($function)).and_then(|function| {
            $crate::launch!(function<<<$grid, $block, $shared, $stream>>>($($argument),*))
        })
    };
    ($function:ident <<<$grid:expr, $block:expr, $shared:expr, $stream:ident>>>($($argument:expr),* $(,)?)) => {
        $stream.launch(&$function, $grid, $block, $shared, &[$($crate::function::argument(&$argument)),*])
    };
}

/// The address of a kernel's argument.
#[doc(hidden)]
pub fn argument<T: crate::memory::DeviceCopy>(value: &T) -> *mut std::ffi::c_void {
    (&raw const *value).cast_mut().cast()
}
