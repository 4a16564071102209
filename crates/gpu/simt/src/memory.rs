//! The operands of a launch: their data, who may do what with them, and what was done.

use crate::shadow::Word;
use bytemuck::Pod;
use cuda_std::{Global, Scalar};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Where operands begin: as device allocations do.
const ALIGN: usize = 256;
/// Bytes on either side of an operand, which nothing may touch.
const GUARD: usize = 256;
/// What the guards hold.
const GUARD_BYTE: u8 = 0xa5;
/// What outputs hold before a kernel writes them: a NaN in every float format.
const POISON: u8 = 0xff;

/// One operand of a [`Memory`], which alone it is for.
#[derive(Debug, PartialEq, Eq)]
pub struct Buffer<T> {
    index: usize,
    element: PhantomData<fn() -> T>,
}

impl<T> Clone for Buffer<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Buffer<T> {}

/// What a kernel may do with an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Read.
    Input,
    /// Written, and read where it was written.
    Output,
    /// Read and written.
    InOut,
}

/// One operand and its history.
pub(crate) struct Operand {
    pub(crate) name: &'static str,
    pub(crate) role: Role,
    /// Where its data is.
    pub(crate) base: *mut u8,
    pub(crate) bytes: u64,
    /// Where it begins as kernels see it: there, or if it lies in pieces, where no memory is.
    address: u64,
    pieces: Option<Pieces>,
    /// A word each 4 bytes; none for inputs.
    pub(crate) words: Vec<Word>,
    element_bytes: usize,
    storage: Option<Storage>,
}

impl Operand {
    /// Memory of someone else's that a handle led to: initialised, and anyone may read and write it.
    pub(crate) fn foreign(name: &'static str, base: *mut u8, bytes: u64, element_bytes: usize) -> Self {
        let words = vec![Word::default(); (bytes as usize).div_ceil(4)];
        let address = base as u64;
        Operand { name, role: Role::InOut, base, bytes, address, pieces: None, words, element_bytes, storage: None }
    }

    /// The byte's offset in its data, if all `bytes` from `address` on lie in the operand, and in one piece.
    pub(crate) fn offset(&self, address: u64, bytes: u32) -> Option<u64> {
        let offset = address.wrapping_sub(self.address);
        let (before, at, len) = match self.pieces {
            None => (0, offset, self.bytes),
            Some(Pieces { bytes, distance }) => ((offset / distance).checked_mul(bytes)?, offset % distance, bytes),
        };
        (before < self.bytes && at < len && len - at >= u64::from(bytes)).then_some(before + at)
    }

    /// Whether the address lies between the first and the last of its pieces, or in one.
    pub(crate) fn has_between_pieces(&self, address: u64) -> bool {
        self.pieces.is_some() && address.wrapping_sub(self.address) < self.span()
    }

    /// The bytes from its first to its last one as kernels see it.
    fn span(&self) -> u64 {
        match self.pieces {
            Some(Pieces { bytes, distance }) if self.bytes > 0 => (self.bytes / bytes - 1) * distance + bytes,
            _ => self.bytes,
        }
    }
}

/// Of an operand that is not in one: the bytes of each, and from the start of one to the start of the next.
#[derive(Clone, Copy)]
struct Pieces {
    bytes: u64,
    distance: u64,
}

/// An allocation: guard, data, guard.
struct Storage {
    start: NonNull<u8>,
    layout: Layout,
    data: usize,
    len: usize,
}

impl Storage {
    /// `len` bytes that start `offset` bytes past a multiple of [`ALIGN`].
    fn new(len: usize, offset: usize) -> Self {
        let data = GUARD + offset;
        let total = data.checked_add(len).and_then(|end| end.checked_add(GUARD));
        let Some(Ok(layout)) = total.map(|total| Layout::from_size_align(total, ALIGN)) else {
            panic!("an operand of {len} bytes does not fit into memory")
        };
        // SAFETY: the layout is not empty: it holds two guards.
        let Some(start) = NonNull::new(unsafe { alloc(layout) }) else { handle_alloc_error(layout) };
        // SAFETY: all of it was just allocated.
        unsafe {
            start.as_ptr().write_bytes(GUARD_BYTE, layout.size());
            start.as_ptr().add(data).write_bytes(POISON, len);
        }
        Storage { start, layout, data, len }
    }

    fn base(&self) -> *mut u8 {
        // SAFETY: `data` lies in the allocation.
        unsafe { self.start.as_ptr().add(self.data) }
    }

    fn guards_intact(&self) -> bool {
        // SAFETY: the whole allocation was initialised, and nobody holds a reference into it.
        let all = unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.layout.size()) };
        let guards = all[..self.data].iter().chain(&all[self.data + self.len..]);
        guards.into_iter().all(|&byte| byte == GUARD_BYTE)
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and dropped once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// The device memory of an emulated GPU: operands, each at a multiple of 256 bytes unless told otherwise. They keep their
/// contents and history from launch to launch, and cannot be removed.
///
/// Cost: the data, copied; of what may be written 64 bytes of history for each 4.
#[derive(Default)]
pub struct Memory {
    pub(crate) operands: Vec<Operand>,
    /// The last epoch in use.
    pub(crate) epoch: u32,
    offset: usize,
    pieces: Option<(usize, usize)>,
}

// SAFETY: the pointers lead into allocations that it owns alone; foreign operands are gone when a launch ends.
unsafe impl Send for Memory {}

impl Memory {
    /// No operands yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Operands that are added from now on start this many elements past a multiple of 256 bytes, as views into larger
    /// allocations do. 0 at first.
    pub fn offset(&mut self, elements: usize) {
        self.offset = elements;
    }

    /// Operands that are added from now on lie in pieces of so many elements, from the start of one to the start of the next
    /// so many, however far that is: what they are given, and what is read of them, are the pieces behind each other. An
    /// access between them is out of bounds. `None` at first: one piece.
    pub fn pieces(&mut self, elements_and_distance: Option<(usize, usize)>) {
        self.pieces = elements_and_distance;
    }

    /// An operand that the kernel only reads, a copy of `data`; `name` is what reports and counters call it.
    ///
    /// # Panics
    /// Where an element is no whole number of 4-byte words, there is no such room, or its data is no whole number of pieces.
    pub fn input<T: Pod>(&mut self, name: &'static str, data: &[T]) -> Buffer<T> {
        self.add(name, Role::Input, data.len(), Some(data))
    }

    /// An operand of `len` elements that the kernel writes: reading one that nothing wrote is a fault. All bits are
    /// set, which is NaN in every float type.
    ///
    /// # Panics
    /// Where an element is no whole number of 4-byte words, or there is no such room.
    pub fn output<T: Pod>(&mut self, name: &'static str, len: usize) -> Buffer<T> {
        self.add(name, Role::Output, len, None)
    }

    /// An operand that the kernel reads and writes, at first a copy of `data`.
    ///
    /// # Panics
    /// Where an element is no whole number of 4-byte words, or there is no such room.
    pub fn inout<T: Pod>(&mut self, name: &'static str, data: &[T]) -> Buffer<T> {
        self.add(name, Role::InOut, data.len(), Some(data))
    }

    /// What an operand holds, copied.
    ///
    /// # Panics
    /// Where the buffer is another memory's and this one has no such operand.
    pub fn read<T: Pod>(&self, buffer: Buffer<T>) -> Vec<T> {
        let operand = &self.operands[buffer.index];
        let len = operand.bytes as usize / size_of::<T>();
        let mut data = vec![T::zeroed(); len];
        // SAFETY: the operand's storage holds `len` elements, every bit pattern is a T, and `data` is its own.
        unsafe { operand.base.copy_to_nonoverlapping(data.as_mut_ptr().cast(), len * size_of::<T>()) };
        data
    }

    /// Which elements of an operand kernels have written, all launches taken together; none of an input.
    ///
    /// # Panics
    /// As [`Memory::read`].
    pub fn written<T: Pod>(&self, buffer: Buffer<T>) -> Vec<bool> {
        let operand = &self.operands[buffer.index];
        let len = operand.bytes as usize / operand.element_bytes;
        let words = operand.element_bytes.div_ceil(4);
        let is_written = |element: usize| operand.words[element * words..][..words].iter().any(Word::is_written);
        (0..len).map(|element| !operand.words.is_empty() && is_written(element)).collect()
    }

    /// Whether the bytes around all operands are as they were. The emulator stops every access outside of an operand, so
    /// this only fails where something went around it.
    pub fn guards_intact(&self) -> bool {
        self.operands.iter().filter_map(|operand| operand.storage.as_ref()).all(Storage::guards_intact)
    }

    /// The handles that kernels take.
    pub(crate) fn handles(&self) -> Handles {
        Handles { operands: self.operands.iter().map(|o| (o.name, o.address as usize as *mut u8, o.span())).collect() }
    }

    fn add<T: Pod>(&mut self, name: &'static str, role: Role, len: usize, data: Option<&[T]>) -> Buffer<T> {
        let element_bytes = size_of::<T>();
        assert!(element_bytes % 4 == 0 && element_bytes > 0, "{name}: elements are whole 4-byte words");
        let bytes = len * element_bytes;
        let storage = Storage::new(bytes, self.offset * element_bytes);
        let base = storage.base();
        let pieces = self.pieces.filter(|_| len > 0).map(|(elements, distance)| {
            assert!(
                elements > 0 && len % elements == 0 && elements <= distance,
                "{name}: pieces lie behind each other"
            );
            Pieces { bytes: (elements * element_bytes) as u64, distance: (distance * element_bytes) as u64 }
        });
        // Beyond what processors have addresses for, and far from each other.
        let apart = ((self.operands.len() as u64 + 1) << 48) + (self.offset * element_bytes) as u64;
        let address = if pieces.is_some() { apart } else { base as u64 };
        if let Some(data) = data {
            // SAFETY: `data` holds `bytes` bytes, and so does the storage, which is another allocation.
            unsafe { base.copy_from_nonoverlapping(data.as_ptr().cast(), bytes) };
        }
        let words = if role == Role::Input { Vec::new() } else { vec![Word::default(); bytes / 4] };
        self.operands.push(Operand {
            name,
            role,
            base,
            bytes: bytes as u64,
            address,
            pieces,
            words,
            element_bytes,
            storage: Some(storage),
        });
        Buffer { index: self.operands.len() - 1, element: PhantomData }
    }
}

/// Hands kernels their operands: what [`crate::Launch::run`] calls each thread with.
pub struct Handles {
    operands: Vec<(&'static str, *mut u8, u64)>,
}

impl Handles {
    /// The operand as a kernel takes it.
    ///
    /// # Panics
    /// As [`Memory::read`]; the launch then ends with [`FaultKind::Panicked`](crate::FaultKind::Panicked).
    pub fn global<T: Scalar>(&self, buffer: Buffer<T>) -> Global<T> {
        let (name, base, bytes) = self.operands[buffer.index];
        Global::on_host(name, base.cast(), bytes / size_of::<T>() as u64)
    }
}

/// A null pointer in an operand's place, of no elements: for what a kernel must not touch. An access is a fault.
pub fn null<T: Scalar>(name: &'static str) -> Global<T> {
    Global::on_host(name, std::ptr::null_mut(), 0)
}
