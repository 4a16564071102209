//! [`Global`] and [`Shared`]: the only ways in which a kernel touches memory.
//!
//! On the GPU a handle is a pointer or a 32-bit shared address, and an access is one instruction. On the host it also
//! knows its operand's name and extent, and every access reports the line that made it.

use crate::ptx::{self, GlobalAddress, Hint, SharedAddress};
use crate::{Scalar, Word};

#[cfg(not(target_arch = "nvptx64"))]
use crate::hooks::{Access, Space};

/// An operand in device memory; indices count elements, in 64 bits.
///
/// A kernel parameter of this type is a pointer: 8 bytes, where the host passes an address in device memory. It may be used
/// by any number of threads; what orders them is a barrier, a fence or an atomic.
#[derive(Clone, Copy)]
#[cfg_attr(target_arch = "nvptx64", repr(transparent))]
pub struct Global<T> {
    pointer: *mut T,
    #[cfg(not(target_arch = "nvptx64"))]
    name: &'static str,
    #[cfg(not(target_arch = "nvptx64"))]
    extent: u64,
    /// The operand's element that this handle calls 0.
    #[cfg(not(target_arch = "nvptx64"))]
    origin: u64,
}

impl<T: Scalar> Global<T> {
    /// A handle for an emulator: `extent` elements from `pointer` on, called `name` in its reports. Not there on the GPU.
    #[cfg(not(target_arch = "nvptx64"))]
    pub fn on_host(name: &'static str, pointer: *mut T, extent: u64) -> Self {
        Global { pointer, name, extent, origin: 0 }
    }

    /// The operand as counted from its element `index` on. An addition: what moves along an operand need not multiply.
    #[inline(always)]
    pub fn starting_at(mut self, index: u64) -> Self {
        self.pointer = self.pointer.wrapping_add(index as usize);
        #[cfg(not(target_arch = "nvptx64"))]
        {
            self.origin = self.origin.wrapping_add(index);
        }
        self
    }

    /// Element `index`. `ld.global.b32` or `.b64` (f32 or f64), any architecture: sees what this thread wrote.
    ///
    /// # Safety
    /// The element lies within the operand.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load(self, index: u64) -> T {
        // SAFETY: the element lies within the operand, as the caller promised.
        T::from_word(unsafe { T::Word::ld_global(self.at(index, false), Hint::Coherent) })
    }

    /// Element `index`, or zero where `inside` is false, without touching memory then. `ld.global.nc.b32` or
    /// `.b64`, from sm_32, predicated: no branch, and the first-level cache keeps the line.
    ///
    /// # Safety
    /// Where `inside`, the element lies within the operand; nobody writes the operand while the kernel runs.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_if(self, inside: bool, index: u64) -> T {
        // SAFETY: where `inside` the element lies within the operand, which nobody writes, as the caller promised.
        T::from_word(unsafe { T::Word::ld_global_if(self.at(index, true), Hint::ReadOnly, inside) })
    }

    /// Like [`Global::load_if`], for what streams by: its line is the first to leave the first-level cache.
    /// `ld.global.nc.L1::evict_first.b32` or `.b64`, from sm_70, PTX 7.4.
    ///
    /// # Safety
    /// As for [`Global::load_if`].
    #[inline(always)]
    #[track_caller]
    pub unsafe fn stream_if(self, inside: bool, index: u64) -> T {
        // SAFETY: where `inside` the element lies within the operand, which nobody writes, as the caller promised.
        T::from_word(unsafe { T::Word::ld_global_if(self.at(index, true), Hint::Streamed, inside) })
    }

    /// The 16 bytes from element `index` on. `ld.global.nc.L1::evict_first.v4.b32` or `.v2.b64`, from sm_70, PTX 7.4.
    ///
    /// # Safety
    /// All of them lie within the operand, the first is aligned to 16 bytes, and nobody writes the operand while the
    /// kernel runs.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn stream_wide(self, index: u64) -> T::Wide {
        // SAFETY: the 16 bytes lie within the operand, aligned, and nobody writes it, as the caller promised.
        T::from_words(unsafe { T::Word::ld_global_wide(self.at(index, true)) })
    }

    /// The same, or zeros where `inside` is false, without touching memory then. Predicated: no branch.
    ///
    /// # Safety
    /// As for [`Global::stream_wide`], where `inside`.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn stream_wide_if(self, inside: bool, index: u64) -> T::Wide {
        // SAFETY: where `inside` the 16 bytes lie within the operand, aligned, and nobody writes it, as the caller
        // promised.
        T::from_words(unsafe { T::Word::ld_global_wide_if(self.at(index, true), inside) })
    }

    /// Writes element `index`. `st.global.b32` or `.b64`, any architecture.
    ///
    /// # Safety
    /// The element lies within the operand, and no other thread reads or writes it without a barrier or fence between.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn store(self, index: u64, value: T) {
        // SAFETY: the element lies within the operand and is this thread's, as the caller promised.
        unsafe { T::Word::st_global(self.at(index, false), value.to_word()) }
    }

    /// Writes the 16 bytes from element `index` on, whose elements `values` gives. `st.global.v4.b32` or `.v2.b64`, any
    /// architecture.
    ///
    /// # Safety
    /// As for [`Global::store`], for all of them; the first is aligned to 16 bytes.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn store_wide(self, index: u64, mut values: impl FnMut(usize) -> T) {
        let words = T::Word::wide(|i| values(i).to_word());
        // SAFETY: the 16 bytes lie within the operand, aligned, and are this thread's, as the caller promised.
        unsafe { T::Word::st_global_wide(self.at(index, false), words) }
    }

    /// Whether the operand starts at a multiple of `bytes`, a power of two. No access to memory.
    #[inline(always)]
    pub fn is_aligned(self, bytes: u64) -> bool {
        self.pointer as u64 & (bytes - 1) == 0
    }

    /// Bytes by which the operand starts past a multiple of `bytes`, a power of two. No access to memory.
    #[inline(always)]
    pub fn past(self, bytes: u32) -> u32 {
        self.pointer as u64 as u32 & (bytes - 1)
    }

    /// Where element `index` lies, for the functions of [`ptx`]. No access to memory; the element need not exist.
    #[inline(always)]
    #[track_caller]
    pub fn address(self, index: u64) -> GlobalAddress {
        self.at(index, false)
    }

    #[cfg(target_arch = "nvptx64")]
    #[inline(always)]
    fn at(self, index: u64, _read_only: bool) -> GlobalAddress {
        GlobalAddress(self.pointer.wrapping_add(index as usize) as u64)
    }

    #[cfg(not(target_arch = "nvptx64"))]
    #[track_caller]
    fn at(self, index: u64, read_only: bool) -> GlobalAddress {
        GlobalAddress(Access {
            space: Space::Global,
            address: (self.pointer as u64).wrapping_add(index.wrapping_mul(size_of::<T>() as u64)),
            name: self.name,
            index: self.origin.wrapping_add(index),
            extent: Some(self.extent),
            element_bytes: size_of::<T>() as u32,
            read_only,
            location: core::panic::Location::caller(),
        })
    }
}

/// A piece of the block's dynamic shared memory; indices count elements, in 32 bits. How many bytes a block has is said at
/// the launch; a handle does not know.
#[derive(Clone, Copy)]
pub struct Shared<T> {
    base: u32,
    element: core::marker::PhantomData<T>,
}

impl<T: Scalar> Shared<T> {
    /// The same piece, of whose place the compiler knows nothing any more: it goes on by adding from here.
    #[inline(always)]
    pub fn opaque(self) -> Self {
        Shared { base: ptx::opaque(self.base), ..self }
    }

    /// The piece that starts `elements` elements of T into the block's dynamic shared memory, which is aligned to 16 bytes.
    #[inline(always)]
    pub fn at(elements: u32) -> Self {
        let base = ptx::dynamic_shared() + elements * size_of::<T>() as u32;
        Shared { base, element: core::marker::PhantomData }
    }

    /// The piece from its element `index` on.
    #[inline(always)]
    pub fn starting_at(self, index: u32) -> Self {
        Shared {
            base: self.base.wrapping_add(index.wrapping_mul(size_of::<T>() as u32)),
            element: core::marker::PhantomData,
        }
    }

    /// Element `index`. `ld.shared.b32` or `.b64`, any architecture.
    ///
    /// # Safety
    /// The element lies within the block's shared memory; a barrier, or a phase of an mbarrier, lies between this and another thread's write.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load(self, index: u32) -> T {
        // SAFETY: the element lies within the block's memory and nobody writes it now, as the caller promised.
        T::from_word(unsafe { T::Word::ld_shared(self.address(index)) })
    }

    /// The 16 bytes from element `index` on. `ld.shared.v4.b32` or `.v2.b64`, any architecture.
    ///
    /// # Safety
    /// As for [`Shared::load`], for all of them; the first is aligned to 16 bytes.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_wide(self, index: u32) -> T::Wide {
        // SAFETY: the 16 bytes lie within the block's memory, aligned, and nobody writes them now, as the caller
        // promised.
        T::from_words(unsafe { T::Word::ld_shared_wide(self.address(index)) })
    }

    /// Writes element `index`. `st.shared.b32` or `.b64`, any architecture.
    ///
    /// # Safety
    /// The element lies within the block's shared memory; a barrier, or a phase of an mbarrier, lies between this and another thread's access.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn store(self, index: u32, value: T) {
        // SAFETY: the element lies within the block's memory and is this thread's now, as the caller promised.
        unsafe { T::Word::st_shared(self.address(index), value.to_word()) }
    }

    /// Writes the 16 bytes from element `index` on, whose elements `values` gives. `st.shared.v4.b32` or `.v2.b64`, any
    /// architecture.
    ///
    /// # Safety
    /// As for [`Shared::store`], for all of them; the first is aligned to 16 bytes.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn store_wide(self, index: u32, mut values: impl FnMut(usize) -> T) {
        let words = T::Word::wide(|i| values(i).to_word());
        // SAFETY: the 16 bytes lie within the block's memory, aligned, and are this thread's now, as the caller
        // promised.
        unsafe { T::Word::st_shared_wide(self.address(index), words) }
    }

    /// Where element `index` lies, for the functions of [`ptx`].
    #[inline(always)]
    #[track_caller]
    pub fn address(self, index: u32) -> SharedAddress {
        let address = self.base + index * size_of::<T>() as u32;
        #[cfg(target_arch = "nvptx64")]
        return SharedAddress(address);
        #[cfg(not(target_arch = "nvptx64"))]
        return SharedAddress(Access {
            space: Space::Shared,
            address: u64::from(address),
            name: "shared memory",
            index: u64::from(index),
            extent: None,
            element_bytes: size_of::<T>() as u32,
            read_only: false,
            location: core::panic::Location::caller(),
        });
    }
}
