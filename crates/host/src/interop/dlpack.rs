//! DLPack: how arrays of Python and of other languages hand their memory on, without a copy.
//!
//! The layout is that of DLPack's `DLManagedTensor` (before its version 1.0 added another struct beside it; all
//! producers still speak it).
//!
//! | of a tensor that comes in | is taken |
//! |---|---|
//! | device type 1 and 3, the CPU and pinned memory | as the host's |
//! | device type 2 and 13, CUDA and CUDA managed | as GPU number `device_id`'s; others are refused |
//! | one axis | as a column |
//! | strides null | as packed by rows, the last axis without gaps |
//! | a negative stride | not, where it is walked |
//! | `byte_offset` | added to `data`; the sum must be a multiple of what the element type is aligned to here: 4 bytes (f32, c64) or 8 (f64, c128) |
//! | no elements | with any `data`, null too, and any `byte_offset`; else a null `data` is refused |

use super::Foreign;
use crate::error::{Error, Operand, Result, Rule, ShapeError};
use crate::matrix::Matrix;
use crate::scalar::Scalar;
use crate::shape::wide;
use crate::view::{MatMut, MatRef, Place};
use std::ffi::c_void;
use std::fmt;
use std::ptr::NonNull;

/// `DLDevice`: where the memory is.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLDevice {
    /// 1 the CPU, 2 a CUDA GPU, 3 pinned memory of the host, 13 managed memory.
    pub device_type: i32,
    /// Number of the GPU.
    pub device_id: i32,
}

/// `DLDataType`: of what the elements are.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLDataType {
    /// 2 for IEEE numbers, 5 for complex ones.
    pub code: u8,
    /// 32 or 64; of complex numbers 64 or 128.
    pub bits: u8,
    /// 1.
    pub lanes: u16,
}

/// `DLTensor`: an array that something else owns.
#[repr(C)]
#[derive(Debug)]
pub struct DLTensor {
    /// The memory.
    pub data: *mut c_void,
    /// Where it is.
    pub device: DLDevice,
    /// Number of axes.
    pub ndim: i32,
    /// Of what the elements are.
    pub dtype: DLDataType,
    /// Elements along each axis.
    pub shape: *mut i64,
    /// Elements from one to the next along each axis; null for a packed row-major array.
    pub strides: *mut i64,
    /// Bytes from `data` to the first element.
    pub byte_offset: u64,
}

/// `DLManagedTensor`: an array, and how to let go of it.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensor {
    /// The array.
    pub dl_tensor: DLTensor,
    /// The owner's.
    pub manager_ctx: *mut c_void,
    /// Called once with this struct when the array is no longer needed.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensor)>,
}

const CPU: i32 = 1;
const CUDA: i32 = 2;
const CUDA_HOST: i32 = 3;
const CUDA_MANAGED: i32 = 13;
const FLOAT: u8 = 2;
const COMPLEX: u8 = 5;

/// What DLPack calls elements of T.
fn type_of<T: Scalar>() -> DLDataType {
    let code = if T::DTYPE.is_complex() { COMPLEX } else { FLOAT };
    DLDataType { code, bits: u8::try_from(8 * T::DTYPE.bytes()).unwrap_or(0), lanes: 1 }
}

/// A tensor to be read or written here, of one axis (a column) or two; given back to its owner when dropped.
///
/// # Example
/// ```
/// use lanky_host::Matrix;
/// let a = Matrix::from_fn(2, 3, |i, j| (10 * i + j) as f32)?;
/// let tensor = a.into_dlpack()?; // or `Tensor::from_raw` of what a producer gave
/// assert_eq!(tensor.view::<f32>()?.get(1, 2), Some(12.0));
/// assert!(tensor.view::<f64>().is_err()); // its elements are f32
/// # Ok::<(), lanky_host::Error>(())
/// ```
pub struct Tensor {
    managed: NonNull<DLManagedTensor>,
}

// SAFETY: DLPack hands tensors from thread to thread; the deleter may be called on any.
unsafe impl Send for Tensor {}

impl Tensor {
    /// Takes a tensor over.
    ///
    /// # Safety
    /// `managed` is a tensor that its producer made, handed over to nobody else; what it says of itself is true. For a
    /// GPU: all work that writes it has ended, or comes earlier on the stream that will read it.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if it is null.
    pub unsafe fn from_raw(managed: *mut DLManagedTensor) -> Result<Tensor> {
        let managed = NonNull::new(managed)
            .ok_or_else(|| Error::Unsupported { what: "a DLPack tensor that is null".to_owned() })?;
        Ok(Tensor { managed })
    }

    /// Hands the tensor on, as a pointer that is not null: the caller, or who it is given to, calls its deleter.
    pub fn into_raw(self) -> *mut DLManagedTensor {
        std::mem::ManuallyDrop::new(self).managed.as_ptr()
    }

    /// All of it, to be read; in place.
    ///
    /// # Errors
    /// [`Error::Shape`] if the elements are not of type T, or a stride is negative; [`Error::Unsupported`] for other
    /// than one or two axes, for memory of neither the host nor a CUDA GPU, and for elements without memory.
    pub fn view<T: Scalar>(&self) -> Result<MatRef<'_, T>> {
        let foreign = self.foreign::<T>()?;
        let foreign = Foreign {
            pointer: foreign.pointer.cast_const(),
            rows: foreign.rows,
            cols: foreign.cols,
            row_stride: foreign.row_stride,
            col_stride: foreign.col_stride,
            place: foreign.place,
        };
        // SAFETY: the tensor keeps its memory until it is dropped, by the promise of `from_raw`.
        unsafe { foreign.view() }
    }

    /// All of it, to be written; in place.
    ///
    /// # Safety
    /// The producer lets its consumer write, and nothing else reads or writes the memory meanwhile: this form of DLPack
    /// does not say so itself.
    ///
    /// # Errors
    /// As [`Tensor::view`], and [`Error::Shape`] if two elements share an address.
    pub unsafe fn view_mut<T: Scalar>(&mut self) -> Result<MatMut<'_, T>> {
        // SAFETY: the tensor keeps its memory until it is dropped (`from_raw`); nothing else uses it meanwhile, as the
        // caller promised.
        unsafe { self.foreign::<T>()?.view_mut() }
    }

    fn foreign<T: Scalar>(&self) -> Result<Foreign<*mut T>> {
        // SAFETY: a tensor that its producer made, by the promise of `from_raw`.
        let tensor = unsafe { &self.managed.as_ref().dl_tensor };
        let place = match (tensor.device.device_type, u32::try_from(tensor.device.device_id)) {
            (CPU | CUDA_HOST, _) => Place::Host,
            (CUDA | CUDA_MANAGED, Ok(ordinal)) => Place::Cuda(ordinal),
            _ => return Err(Error::Unsupported { what: format!("a DLPack tensor on {:?}", tensor.device) }),
        };
        if tensor.dtype != type_of::<T>() {
            let text = format!("the matrix is of DLPack's {:?}, but {} is asked for", tensor.dtype, T::DTYPE);
            let actual = u64::from(tensor.dtype.bits) / 8;
            return Err(ShapeError::new(Operand::View, Rule::Dtype, T::DTYPE.bytes(), actual, text).into());
        }
        let axes = usize::try_from(tensor.ndim).unwrap_or(0);
        if !(1..=2).contains(&axes) {
            return Err(Error::Unsupported {
                what: format!("a DLPack tensor of {} axes: it must have 1 or 2", tensor.ndim),
            });
        }
        if tensor.shape.is_null() {
            return Err(Error::Unsupported { what: "a DLPack tensor without a shape".to_owned() });
        }
        // SAFETY: a tensor has as many lengths as axes.
        let shape = unsafe { std::slice::from_raw_parts(tensor.shape, axes) };
        let length = |axis: usize| match shape.get(axis).map(|&len| usize::try_from(len)) {
            None => Ok(1),
            Some(Ok(len)) => Ok(len),
            Some(Err(_)) => Err(Error::Unsupported { what: format!("a DLPack tensor of shape {shape:?}") }),
        };
        let (rows, cols) = (length(0)?, length(1)?);
        // SAFETY: where they are not null, a tensor has as many strides as axes.
        let strides = (!tensor.strides.is_null()).then(|| unsafe { std::slice::from_raw_parts(tensor.strides, axes) });
        let signed = |stride: i64| isize::try_from(stride).unwrap_or(isize::MAX);
        let packed = isize::try_from(cols.max(1)).unwrap_or(isize::MAX);
        let row_stride = strides.map_or(packed, |strides| signed(strides[0]));
        let col_stride = strides.and_then(|strides| strides.get(1)).map_or(1, |&stride| signed(stride));
        let offset = usize::try_from(tensor.byte_offset).unwrap_or(usize::MAX);
        let pointer = match (tensor.data.is_null(), rows == 0 || cols == 0) {
            // Producers give what they like where there is no element.
            (_, true) => NonNull::dangling().as_ptr(),
            (true, false) => {
                return Err(Error::Unsupported { what: format!("a DLPack tensor of {rows} x {cols} without data") });
            }
            (false, false) => tensor.data.cast::<u8>().wrapping_add(offset).cast::<T>(),
        };
        if !pointer.is_aligned() {
            return Err(Error::Unsupported {
                what: format!(
                    "a DLPack tensor at {pointer:?}: no multiple of the {} bytes that {} is aligned to",
                    align_of::<T>(),
                    T::DTYPE
                ),
            });
        }
        Ok(Foreign { pointer, rows, cols, row_stride, col_stride, place })
    }
}

impl Drop for Tensor {
    fn drop(&mut self) {
        // SAFETY: nobody else has the tensor, by the promise of `from_raw`.
        if let Some(deleter) = unsafe { self.managed.as_ref() }.deleter {
            // SAFETY: called once, here; the producer's own function for its own tensor.
            unsafe { deleter(self.managed.as_ptr()) };
        }
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: a tensor that its producer made, by the promise of `from_raw`.
        write!(f, "Tensor({:?})", unsafe { &self.managed.as_ref().dl_tensor })
    }
}

/// What `manager_ctx` points at: the matrix, and the numbers that the tensor points at.
struct Kept<T> {
    _matrix: Matrix<T>,
    shape: [i64; 2],
    strides: [i64; 2],
}

impl<T: Scalar> Matrix<T> {
    /// With the feature `dlpack`: the matrix as a tensor of DLPack of two axes, in place: dropped when the consumer
    /// calls the deleter, on any thread. Two small allocations; no element is copied. On a GPU the consumer must know
    /// the stream whose work writes it, or that work must have ended
    /// ([`Stream::synchronize`](crate::Stream::synchronize)).
    ///
    /// # Errors
    /// [`Error::Unsupported`] if a GPU's number or a length exceeds what DLPack holds; the matrix is then dropped.
    pub fn into_dlpack(mut self) -> Result<Tensor> {
        let too_large = |_| Error::Unsupported { what: "a matrix that DLPack's numbers do not hold".to_owned() };
        let shape = self.shape();
        let view = self.view_mut();
        let device = match view.place() {
            Place::Host => DLDevice { device_type: CPU, device_id: 0 },
            Place::Cuda(ordinal) => {
                DLDevice { device_type: CUDA, device_id: i32::try_from(ordinal).map_err(too_large)? }
            }
        };
        let data = { view }.as_mut_ptr().cast::<c_void>();
        let number = |value: u64| i64::try_from(value).map_err(too_large);
        let kept = Box::new(Kept {
            shape: [number(wide(shape.rows))?, number(wide(shape.cols))?],
            strides: [number(shape.strides.row)?, number(shape.strides.col)?],
            _matrix: self,
        });
        let kept = Box::into_raw(kept);
        // SAFETY: just made; the tensor's deleter is the one that frees it.
        let (shape, strides) = unsafe { (&raw mut (*kept).shape, &raw mut (*kept).strides) };
        let managed = Box::new(DLManagedTensor {
            dl_tensor: DLTensor {
                data,
                device,
                ndim: 2,
                dtype: type_of::<T>(),
                shape: shape.cast(),
                strides: strides.cast(),
                byte_offset: 0,
            },
            manager_ctx: kept.cast(),
            deleter: Some(delete::<T>),
        });
        Ok(Tensor { managed: NonNull::from(Box::leak(managed)) })
    }
}

/// # Safety
/// `managed` was made by [`Matrix::into_dlpack`] with the same T, and is used by nobody any more.
unsafe extern "C" fn delete<T>(managed: *mut DLManagedTensor) {
    if managed.is_null() {
        return;
    }
    // SAFETY: `into_dlpack` boxed a `Kept` of this T, as the caller promised; nobody uses it any more.
    drop(unsafe { Box::from_raw((*managed).manager_ctx.cast::<Kept<T>>()) });
    // SAFETY: `into_dlpack` leaked it from a box, as the caller promised; nobody uses it any more.
    drop(unsafe { Box::from_raw(managed) });
}
