//! Modules: PTX or machine code loaded into a context.

use crate::error::{CudaError, CudaResult, DropResult, refuse};
use crate::function::Function;
use crate::owner::Owner;
use crate::sys::{self, CUjit_option, CUmodule, Status};
use std::ffi::{CStr, CString, c_uint, c_void};
use std::mem::ManuallyDrop;
use std::path::Path;
use std::ptr;

/// Code loaded into a context. Unloaded on drop, on whatever thread that is: work that uses it must have ended.
#[derive(Debug)]
pub struct Module {
    inner: CUmodule,
    owner: Owner,
}

// SAFETY: the driver lets any thread use a module, and `Owner` has the context current for what needs it.
unsafe impl Send for Module {}
// SAFETY: a shared module only looks for functions, for which the driver locks it.
unsafe impl Sync for Module {}

/// How much the driver's PTX compiler optimises.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OptLevel {
    /// Not at all.
    O0 = 0,
    /// A little.
    O1 = 1,
    /// More.
    O2 = 2,
    /// Much.
    O3 = 3,
    /// As much as it can; what is done unless told.
    O4 = 4,
}

/// What to take where a module has no exact match for the device.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum JitFallback {
    /// Its PTX.
    PreferPtx = 0,
    /// Machine code that is compatible.
    PreferCompatibleBinary = 1,
}

/// A setting of the driver's PTX compiler.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ModuleJitOption {
    /// Registers a thread, at most.
    MaxRegisters(u32),
    /// How much to optimise; O4 unless given.
    OptLevel(OptLevel),
    /// Compile for the device of the current context, which is what happens anyway.
    DetermineTargetFromContext,
    /// What to take where there is no exact match.
    Fallback(JitFallback),
    /// With debug information (the published crate's spelling).
    GenenerateDebugInfo(bool),
    /// With line numbers.
    GenerateLineInfo(bool),
}

/// A value as the driver wants it here: in place of the pointer to it.
fn value(bits: u32) -> *mut c_void {
    ptr::without_provenance_mut(usize::try_from(bits).unwrap_or(0))
}

impl ModuleJitOption {
    /// The driver's options and their values, as many of the one as of the other.
    pub fn into_raw(opts: &[Self]) -> (Vec<CUjit_option>, Vec<*mut c_void>) {
        opts.iter()
            .map(|option| match *option {
                Self::MaxRegisters(registers) => (0, value(registers)),
                Self::OptLevel(level) => (7, value(level as u32)),
                Self::DetermineTargetFromContext => (8, value(0)),
                Self::Fallback(fallback) => (10, value(fallback as u32)),
                Self::GenenerateDebugInfo(yes) => (11, value(u32::from(yes))),
                Self::GenerateLineInfo(yes) => (13, value(u32::from(yes))),
            })
            .unzip()
    }
}

/// Bytes for each of the compiler's two logs: hundreds of lines.
const LOG_BYTES: u32 = 16 * 1024;

/// Where the compiler writes what it has to say.
struct Logs {
    info: Vec<u8>,
    error: Vec<u8>,
}

impl Logs {
    fn new() -> Logs {
        let empty = vec![0; usize::try_from(LOG_BYTES).unwrap_or(0)];
        Logs { info: empty.clone(), error: empty }
    }

    /// Adds the options that make the compiler write here.
    fn ask(&mut self, options: &mut Vec<CUjit_option>, values: &mut Vec<*mut c_void>) {
        options.extend([3, 4, 5, 6]);
        let (info, error) = (self.info.as_mut_ptr().cast(), self.error.as_mut_ptr().cast());
        values.extend([info, value(LOG_BYTES), error, value(LOG_BYTES)]);
    }

    /// What was written: errors first.
    fn text(&self) -> String {
        let part = |bytes: &[u8]| {
            let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
            String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
        };
        [part(&self.error), part(&self.info)].into_iter().filter(|log| !log.is_empty()).collect::<Vec<_>>().join("\n")
    }
}

/// The number of so many bytes there; one that no image reaches if they are not in it.
fn number(image: &[u8], at: u64, len: u64) -> u64 {
    let place = usize::try_from(at).ok().zip(usize::try_from(at.saturating_add(len)).ok());
    let bytes = place.and_then(|(start, end)| image.get(start..end));
    bytes.map_or(u64::MAX, |bytes| bytes.iter().rev().fold(0, |high, &low| high << 8 | u64::from(low)))
}

/// Where an image ends by its own header, since the driver is not told how long it is: a cubin, which is ELF of 64 bits, behind
/// the last of what it leads to; a fatbin behind as many bytes as it says. 0 of text; nowhere, if it leads to another address.
fn end_of(image: &[u8]) -> u64 {
    match image {
        [0x7f, b'E', b'L', b'F', 2, 1, ..] => Table::ALL.iter().fold(64, |end, table| end.max(table.end(image))),
        [0x50, 0xed, 0x55, 0xba, ..] => number(image, 6, 2).saturating_add(number(image, 8, 8)),
        [0x7f, b'E', b'L', b'F', ..] | [0xb1, 0x43, 0x62, 0x46, ..] => u64::MAX,
        _ => 0,
    }
}

/// A table of ELF: where the header has its start, an entry's length and their count; and where an entry has what.
struct Table {
    start: u64,
    each: u64,
    count: u64,
    entry_len: u64,
    kind: u64,
    first: u64,
    bytes: u64,
    /// The type of what is in memory alone.
    absent: u64,
    /// Whether the first entry has the count, where 16 bits do not.
    counts: bool,
}

impl Table {
    const SEGMENTS: Table =
        Table { start: 32, each: 54, count: 56, entry_len: 56, kind: 0, first: 8, bytes: 32, absent: 0, counts: false };
    const SECTIONS: Table =
        Table { start: 40, each: 58, count: 60, entry_len: 64, kind: 4, first: 24, bytes: 32, absent: 8, counts: true };
    const ALL: [Table; 2] = [Self::SEGMENTS, Self::SECTIONS];

    /// Where the last of it ends: the table, or what an entry has in the file. Nowhere, if the table is not whole.
    fn end(&self, image: &[u8]) -> u64 {
        let (start, each) = (number(image, self.start, 8), number(image, self.each, 2));
        let count = match number(image, self.count, 2) {
            0 if start == 0 || !self.counts => return 0,
            0 => number(image, start.saturating_add(self.bytes), 8),
            count => count,
        };
        let table = start.saturating_add(each.saturating_mul(count));
        if each < self.entry_len || table > image.len() as u64 {
            return u64::MAX;
        }
        let end_of_entry = |at: u64| match number(image, at + self.kind, 4) {
            0 => 0,
            absent if absent == self.absent => 0,
            _ => number(image, at + self.first, 8).saturating_add(number(image, at + self.bytes, 8)),
        };
        (0..count).map(|index| end_of_entry(start + index * each)).fold(table, u64::max)
    }
}

impl Module {
    /// Loads a file of PTX, of a cubin or of a fatbin.
    ///
    /// # Errors
    /// [`FileNotFound`](CudaError::FileNotFound) if it cannot be read, and those of [`Module::from_ptx`] and [`Module::from_cubin`].
    pub fn from_file<P: AsRef<Path>>(path: P) -> CudaResult<Module> {
        let path = path.as_ref();
        let bytes = std::fs::read(path)
            .map_err(|error| refuse("cuModuleLoad", CudaError::FileNotFound, format!("{}: {error}", path.display())))?;
        Self::from_cubin(bytes, &[])
    }

    /// Loads a fatbin.
    ///
    /// # Errors
    /// As [`Module::from_cubin`]; also of nvcc's wrapper of one, which leads to another address.
    pub fn from_fatbin<T: AsRef<[u8]>>(bytes: T, options: &[ModuleJitOption]) -> CudaResult<Module> {
        Self::from_cubin(bytes, options)
    }

    /// Loads a cubin.
    ///
    /// # Errors
    /// As [`Module::from_ptx`]; [`InvalidImage`](CudaError::InvalidImage) if it is cut off, or leads beyond its end.
    pub fn from_cubin<T: AsRef<[u8]>>(bytes: T, options: &[ModuleJitOption]) -> CudaResult<Module> {
        let bytes = bytes.as_ref();
        if end_of(bytes) > bytes.len() as u64 {
            return Err(refuse("cuModuleLoadDataEx", CudaError::InvalidImage, "machine code that is cut off"));
        }
        // A zero at the end, so that nothing taken for text runs past it.
        let image = [bytes, &[0]].concat();
        // SAFETY: the image is alive during the call, and is whole by its own header (`end_of`) or text that ends with a
        // zero; of what is between, its compiler is trusted.
        unsafe { Self::load(image.as_ptr().cast(), options) }
    }

    /// Loads PTX into the current context, compiling it (or taking it from the driver's cache on disk).
    /// `cuModuleLoadDataEx`.
    ///
    /// # Errors
    /// [`InvalidPtx`](CudaError::InvalidPtx) and others where it does not compile;
    /// [`crate::extra::last_failure`] has the code and the compiler's log.
    pub fn from_ptx_cstr(cstr: &CStr, options: &[ModuleJitOption]) -> CudaResult<Module> {
        // SAFETY: the text is alive during the call, and ends with a zero.
        unsafe { Self::load(cstr.as_ptr().cast(), options) }
    }

    /// As [`Module::from_ptx_cstr`].
    ///
    /// # Errors
    /// As there; [`InvalidPtx`](CudaError::InvalidPtx) also if there is a zero byte in the text.
    pub fn from_ptx<T: AsRef<str>>(string: T, options: &[ModuleJitOption]) -> CudaResult<Module> {
        let Ok(text) = CString::new(string.as_ref()) else {
            return Err(refuse("cuModuleLoadDataEx", CudaError::InvalidPtx, "there is a zero byte in the PTX"));
        };
        Self::from_ptx_cstr(&text, options)
    }

    /// # Safety
    /// `image` is PTX that ends with a zero byte, or a whole cubin or fatbin.
    unsafe fn load(image: *const c_void, options: &[ModuleJitOption]) -> CudaResult<Module> {
        let (mut options, mut values) = ModuleJitOption::into_raw(options);
        let mut logs = Logs::new();
        logs.ask(&mut options, &mut values);
        let count = c_uint::try_from(options.len()).unwrap_or(0);
        let mut inner = ptr::null_mut();
        // SAFETY: the image ends with a zero or is whole, as the caller promised; there are `count` options and values,
        // and the log buffers that they point to are as long as they say and alive during the call.
        let status =
            unsafe { sys::cuModuleLoadDataEx(&raw mut inner, image, count, options.as_mut_ptr(), values.as_mut_ptr()) };
        status.with_log(|| logs.text())?;
        Ok(Module { inner, owner: Owner::current() })
    }

    /// The kernel of that name. `cuModuleGetFunction`.
    ///
    /// # Errors
    /// [`NotFound`](CudaError::NotFound) if there is none, and [those of the driver](crate#errors).
    pub fn get_function<T: AsRef<str>>(&self, name: T) -> CudaResult<Function<'_>> {
        let Ok(name) = CString::new(name.as_ref()) else {
            return Err(refuse(
                "cuModuleGetFunction",
                CudaError::NotFound,
                "there is a zero byte in the kernel's name",
            ));
        };
        let mut function = ptr::null_mut();
        // SAFETY: module and name are alive; `function` is a place for the answer.
        unsafe { sys::cuModuleGetFunction(&raw mut function, self.inner, name.as_ptr()) }.to_result()?;
        Ok(Function::new(function, self))
    }

    fn unload(&self) -> Status {
        // SAFETY: the module is this one's own, and both callers end with it; functions borrow it.
        self.owner.free(|| unsafe { sys::cuModuleUnload(self.inner) })
    }

    /// Unloads the module. `cuModuleUnload`.
    ///
    /// # Errors
    /// [Those of the driver](crate#errors), with the module.
    pub fn drop(module: Module) -> DropResult<Module> {
        match module.unload().to_result() {
            Ok(()) => {
                let mut module = ManuallyDrop::new(module);
                // SAFETY: `module` is not used, and not dropped, after this.
                unsafe { ptr::drop_in_place(&raw mut module.owner) };
                Ok(())
            }
            Err(error) => Err((error, module)),
        }
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        let _ = self.unload();
    }
}
