//! Matrices of ndarray, faer, nalgebra and DLPack: the same memory, any legal strides, and refusals of the others.
#![cfg(any(feature = "dlpack", feature = "faer", feature = "nalgebra", feature = "ndarray"))]
#![expect(clippy::unwrap_used, reason = "a test fails by it")]

use lanky_host::{Device, Error, MatMut, MatRef, Rule, gemm};

/// 0, 1, 2, ..
fn numbers(len: usize) -> Vec<f64> {
    (0..len).map(|at| at as f64).collect()
}

fn rule(error: Error) -> Option<Rule> {
    match error {
        Error::Shape(error) => Some(error.rule),
        _ => None,
    }
}

/// Element by element, and the same address.
fn same(view: MatRef<'_, f64>, pointer: *const f64, rows: usize, cols: usize, at: impl Fn(usize, usize) -> f64) {
    assert_eq!((view.nrows(), view.ncols()), (rows, cols));
    assert_eq!(view.as_raw(), u64::try_from(pointer.addr()).unwrap());
    for i in 0..rows {
        for j in 0..cols {
            assert_eq!(view.get(i, j), Some(at(i, j)), "({i}, {j})");
        }
    }
}

#[cfg(feature = "ndarray")]
#[test]
fn arrays_of_ndarray() {
    use lanky_host::ndarray::{Array2, ArrayView2, ArrayViewMut2, s};
    let mut array = Array2::from_shape_vec((6, 8), numbers(48)).unwrap();
    for part in [s![.., ..], s![1..5;2, 2..;3], s![2..3, ..], s![.., 7..8], s![3..3, ..]] {
        for view in [array.slice(part), array.slice(part).reversed_axes()] {
            let ours = MatRef::try_from(view).unwrap();
            same(ours, view.as_ptr(), view.nrows(), view.ncols(), |i, j| view[(i, j)]);
            let back = ArrayView2::try_from(ours).unwrap();
            assert_eq!((back, back.as_ptr()), (view, view.as_ptr()));
        }
    }
    for backwards in [s![..;-1, ..], s![.., ..;-1]] {
        assert_eq!(rule(MatRef::try_from(array.slice(backwards)).unwrap_err()), Some(Rule::Strides));
        assert_eq!(rule(MatMut::try_from(array.slice_mut(backwards)).unwrap_err()), Some(Rule::Strides));
    }
    // One element is walked in no direction.
    assert!(MatRef::try_from(array.slice(s![2..3;-1, ..])).is_ok());
    let row = lanky_host::ndarray::arr1(&[1.0, 2.0]);
    let repeated = row.broadcast((3, 2)).unwrap();
    same(MatRef::try_from(repeated).unwrap(), row.as_ptr(), 3, 2, |_, j| row[j]);

    let a = array.clone();
    let mut c = Array2::from_elem((6, 6), f64::NAN);
    let (view, out) = (MatRef::try_from(a.view()).unwrap(), MatMut::try_from(c.view_mut()).unwrap());
    gemm(&Device::cpu().stream().unwrap(), 1.0, view, view.t(), 0.0, out).unwrap();
    assert_eq!(c, a.dot(&a.t()));
    let mut back = ArrayViewMut2::try_from(MatMut::try_from(array.slice_mut(s![..;2, ..])).unwrap()).unwrap();
    back[(1, 3)] = -1.0;
    assert_eq!(array[(2, 3)], -1.0);
}

/// One element, or none, as a matrix of more than can be.
#[cfg(any(feature = "ndarray", feature = "nalgebra", feature = "faer"))]
const ENDLESS: [(usize, usize); 4] = [(1 << 33, 1 << 31), (usize::MAX, 1), (1, usize::MAX), (usize::MAX, usize::MAX)];

#[cfg(any(feature = "ndarray", feature = "nalgebra", feature = "faer"))]
fn repeated((rows, cols): (usize, usize)) -> MatRef<'static, f64> {
    MatRef::with_strides(&[1.0], rows, cols, 0, 0).unwrap()
}

#[cfg(feature = "ndarray")]
#[test]
fn arrays_of_more_elements_than_can_be_are_refused() {
    use lanky_host::ndarray::{ArrayView2, ArrayViewMut2};
    for size in ENDLESS {
        let error = ArrayView2::try_from(repeated(size)).unwrap_err();
        let Error::Shape(error) = error else { panic!("{error}") };
        let counted = (size.0 as u64).saturating_mul(size.1 as u64);
        assert_eq!((error.rule, error.required, error.actual), (Rule::Span, i64::MAX as u64, counted), "{error}");
    }
    let view = ArrayView2::try_from(repeated((1 << 32, (1 << 31) - 1))).unwrap();
    assert_eq!((view.len(), view[(1 << 31, 7)]), ((1 << 32) * ((1 << 31) - 1), 1.0));

    let most = isize::MAX as usize / 8;
    for (rows, cols) in [(0, most), (most, 0), (0, 0)] {
        let view = ArrayView2::try_from(MatRef::<f64>::column_major(&[], rows, cols).unwrap()).unwrap();
        assert_eq!((view.dim(), view.to_owned().dim()), ((rows, cols), (rows, cols)));
        let mut none = [0.0_f64; 0];
        let view = ArrayViewMut2::try_from(MatMut::row_major(&mut none, rows, cols).unwrap()).unwrap();
        assert_eq!(view.dim(), (rows, cols));
    }
    for (rows, cols) in [(0, most + 1), (most + 1, 0), (0, usize::MAX), (usize::MAX, 0)] {
        let view = MatRef::<f64>::column_major(&[], rows, cols).unwrap();
        assert_eq!(rule(ArrayView2::try_from(view).unwrap_err()), Some(Rule::Span));
        let mut none = [0.0_f64; 0];
        let view = MatMut::row_major(&mut none, rows, cols).unwrap();
        assert_eq!(rule(ArrayViewMut2::try_from(view).unwrap_err()), Some(Rule::Span));
    }
}

#[cfg(feature = "nalgebra")]
#[test]
fn views_of_nalgebra_have_no_more_elements_than_can_be() {
    use lanky_host::nalgebra::{Dyn, MatrixView};
    type View<'a> = MatrixView<'a, f64, Dyn, Dyn, Dyn, Dyn>;
    let most = isize::MAX as usize / 8;
    for size in ENDLESS.into_iter().chain([(1 << 30, 1 << 30), (most + 1, 1)]) {
        assert_eq!(rule(View::try_from(repeated(size)).unwrap_err()), Some(Rule::Span), "{size:?}");
    }
    assert_eq!(View::try_from(repeated((most, 1))).unwrap()[(1 << 59, 0)], 1.0);
    for (rows, cols) in [(0, usize::MAX), (usize::MAX, 0)] {
        let view = View::try_from(MatRef::<f64>::column_major(&[], rows, cols).unwrap()).unwrap();
        assert_eq!((view.shape(), view.iter().count()), ((rows, cols), 0));
    }
}

#[cfg(feature = "faer")]
#[test]
fn views_of_faer_have_any_number_of_elements() {
    use lanky_host::faer::MatRef as Their;
    for size in ENDLESS {
        let view = Their::try_from(repeated(size)).unwrap();
        assert_eq!((view.shape(), view[(size.0 - 1, size.1 - 1)]), (size, 1.0));
    }
    let view = Their::try_from(MatRef::<f64>::column_major(&[], 0, usize::MAX).unwrap()).unwrap();
    assert_eq!(view.shape(), (0, usize::MAX));
}

/// What has no elements may lie at address 0, which theirs may not.
#[cfg(all(feature = "ndarray", feature = "nalgebra", feature = "faer"))]
#[test]
fn what_lies_nowhere_is_handed_on() {
    use lanky_host::nalgebra::{Dyn, MatrixView};
    // SAFETY: there are no elements.
    let ours = unsafe { MatRef::<f64>::from_raw(&Device::cpu(), 0, 0, 3, 1, 1) }.unwrap();
    assert_eq!(lanky_host::ndarray::ArrayView2::try_from(ours).unwrap().dim(), (0, 3));
    assert_eq!(lanky_host::faer::MatRef::try_from(ours).unwrap().shape(), (0, 3));
    assert_eq!(MatrixView::<_, Dyn, Dyn, Dyn, Dyn>::try_from(ours).unwrap().shape(), (0, 3));
}

#[cfg(feature = "faer")]
#[test]
fn matrices_of_faer() {
    use lanky_host::faer::{Mat, MatMut as Theirs, MatRef as Their};
    let mut a = Mat::from_fn(6, 8, |i, j| (i * 8 + j) as f64);
    for view in [a.as_ref(), a.as_ref().transpose(), a.as_ref().submatrix(1, 2, 3, 4), a.as_ref().submatrix(6, 0, 0, 8)]
    {
        let ours = MatRef::try_from(view).unwrap();
        same(ours, view.as_ptr(), view.nrows(), view.ncols(), |i, j| view[(i, j)]);
        let back = Their::try_from(ours).unwrap();
        assert_eq!((back, back.as_ptr()), (view, view.as_ptr()));
    }
    assert_eq!(rule(MatRef::try_from(a.as_ref().reverse_rows()).unwrap_err()), Some(Rule::Strides));
    let mut c = Mat::<f64>::zeros(6, 6);
    let view = MatRef::try_from(a.as_ref()).unwrap();
    let out = MatMut::try_from(c.as_mut()).unwrap();
    gemm(&Device::cpu().stream().unwrap(), 1.0, view, view.t(), 0.0, out).unwrap();
    assert_eq!(c, &a * a.transpose());
    let mut back = Theirs::try_from(MatMut::try_from(a.as_mut()).unwrap()).unwrap();
    back[(2, 3)] = -1.0;
    assert_eq!(a[(2, 3)], -1.0);
}

#[cfg(feature = "nalgebra")]
#[test]
fn matrices_of_nalgebra() {
    use lanky_host::nalgebra::{DMatrix, Dyn, Matrix3x4, MatrixView, MatrixViewMut};
    let mut a = DMatrix::from_fn(6, 8, |i, j| (i * 8 + j) as f64);
    let view = a.view((1, 2), (3, 4));
    same(MatRef::try_from(view).unwrap(), view.as_ptr(), 3, 4, |i, j| view[(i, j)]);
    let view = a.view_with_steps((0, 1), (2, 3), (2, 1));
    let ours = MatRef::try_from(view).unwrap();
    same(ours, view.as_ptr(), 2, 3, |i, j| view[(i, j)]);
    let back = MatrixView::<_, Dyn, Dyn, Dyn, Dyn>::try_from(ours).unwrap();
    assert_eq!((back, back.as_ptr()), (view, view.as_ptr()));
    let fixed = Matrix3x4::from_fn(|i, j| (i + 10 * j) as f64);
    same(MatRef::try_from(fixed.fixed_view::<3, 4>(0, 0)).unwrap(), fixed.as_ptr(), 3, 4, |i, j| fixed[(i, j)]);
    let rows = numbers(12);
    let ours = MatRef::row_major(&rows, 3, 4).unwrap();
    let theirs = MatrixView::<_, Dyn, Dyn, Dyn, Dyn>::try_from(ours).unwrap();
    assert_eq!(theirs[(2, 1)], 9.0);

    let mut c = DMatrix::from_element(6, 6, f64::NAN);
    let view = MatRef::try_from(a.view((0, 0), (6, 8))).unwrap();
    let out = MatMut::try_from(c.view_mut((0, 0), (6, 6))).unwrap();
    gemm(&Device::cpu().stream().unwrap(), 1.0, view, view.t(), 0.0, out).unwrap();
    assert_eq!(c, &a * a.transpose());
    let ours = MatMut::try_from(a.view_mut((0, 0), (6, 8))).unwrap();
    let mut back = MatrixViewMut::<_, Dyn, Dyn, Dyn, Dyn>::try_from(ours).unwrap();
    back[(2, 3)] = -1.0;
    assert_eq!(a[(2, 3)], -1.0);
}

#[cfg(feature = "dlpack")]
mod dlpack {
    use super::*;
    use lanky_host::Matrix;
    use lanky_host::interop::dlpack::{DLDataType, DLDevice, DLManagedTensor, DLTensor, Tensor};
    use std::ffi::c_void;
    use std::ptr::null_mut;

    unsafe extern "C" fn count(managed: *mut DLManagedTensor) {
        // SAFETY: the tests' tensors point at a counter.
        unsafe { *(*managed).manager_ctx.cast::<u32>() += 1 };
    }

    /// A tensor as a producer makes it, changed by `change`; what is made of it, and how often it was deleted.
    fn made<R>(
        data: &mut [f64],
        shape: &mut [i64],
        strides: Option<&mut [i64]>,
        change: impl FnOnce(&mut DLTensor),
        look: impl FnOnce(&mut Tensor) -> R,
    ) -> (R, u32) {
        let mut deleted = 0_u32;
        let mut managed = DLManagedTensor {
            dl_tensor: DLTensor {
                data: data.as_mut_ptr().cast(),
                device: DLDevice { device_type: 1, device_id: 0 },
                ndim: i32::try_from(shape.len()).unwrap(),
                dtype: DLDataType { code: 2, bits: 64, lanes: 1 },
                shape: shape.as_mut_ptr(),
                strides: strides.map_or(null_mut(), <[i64]>::as_mut_ptr),
                byte_offset: 0,
            },
            manager_ctx: (&raw mut deleted).cast::<c_void>(),
            deleter: Some(count),
        };
        change(&mut managed.dl_tensor);
        // SAFETY: what it says of itself is true, or is refused before the memory is looked at.
        let mut tensor = unsafe { Tensor::from_raw(&raw mut managed) }.unwrap();
        let result = look(&mut tensor);
        drop(tensor);
        (result, deleted)
    }

    #[test]
    fn tensors_come_in() {
        let mut data = numbers(24);
        let pointer = data.as_ptr();
        let view = |tensor: &mut Tensor| {
            same(tensor.view().unwrap(), pointer, 4, 6, |i, j| (6 * i + j) as f64);
        };
        assert_eq!(made(&mut data, &mut [4, 6], None, |_| {}, view).1, 1);
        assert_eq!(made(&mut data, &mut [4, 6], Some(&mut [6, 1]), |_| {}, view).1, 1);
        let part = |tensor: &mut Tensor| {
            // SAFETY: nothing else looks at the memory.
            unsafe { tensor.view_mut::<f64>() }.unwrap().set(1, 1, -1.0);
            // SAFETY: three elements on, in the same array.
            same(tensor.view().unwrap(), unsafe { pointer.add(3) }, 2, 2, |i, j| {
                if (i, j) == (1, 1) { -1.0 } else { (3 + 12 * i + 2 * j) as f64 }
            });
        };
        made(&mut data, &mut [2, 2], Some(&mut [12, 2]), |tensor| tensor.byte_offset = 24, part);
        assert_eq!(data[17], -1.0);
        let column = |tensor: &mut Tensor| tensor.view::<f64>().unwrap().ncols();
        assert_eq!(made(&mut data, &mut [24], None, |_| {}, column).0, 1);
        assert_eq!(made(&mut data, &mut [0, 3], None, |_| {}, |t| t.view::<f64>().unwrap().ncols()).0, 3);
    }

    #[test]
    fn memory_is_the_hosts_or_a_gpus() {
        let mut data = numbers(24);
        let is_host = |tensor: &mut Tensor| tensor.view::<f64>().map(|view| view.is_host());
        for (device_type, expected) in [(1, true), (3, true), (2, false), (13, false)] {
            let on = |tensor: &mut DLTensor| tensor.device = DLDevice { device_type, device_id: 1 };
            assert_eq!(made(&mut data, &mut [4, 6], None, on, is_host).0.unwrap(), expected, "{device_type}");
        }
        for device in [(2, -1), (13, -1), (4, 0), (10, 0), (0, 0)] {
            let on = |tensor: &mut DLTensor| tensor.device = DLDevice { device_type: device.0, device_id: device.1 };
            let (refused, deleted) = made(&mut data, &mut [4, 6], None, on, is_host);
            assert!(matches!(refused, Err(Error::Unsupported { .. })) && deleted == 1, "{device:?}");
        }
        let where_it_is = |tensor: &mut Tensor| tensor.view::<f64>().unwrap_err().to_string();
        let on = |tensor: &mut DLTensor| tensor.device = DLDevice { device_type: 10, device_id: 7 };
        let (text, _) = made(&mut data, &mut [4, 6], None, on, where_it_is);
        assert!(text.contains("device_type: 10") && text.contains("device_id: 7"), "{text}");
    }

    #[test]
    fn tensors_without_elements_need_no_memory() {
        let mut data = numbers(1);
        let nowhere = |tensor: &mut DLTensor| (tensor.data, tensor.byte_offset) = (null_mut(), 3);
        for shape in [[0, 3], [3, 0], [0, 0]] {
            let ((rows, cols, null), deleted) = made(&mut data, &mut shape.clone(), None, nowhere, |tensor| {
                // SAFETY: there is nothing to write.
                let (rows, cols) =
                    unsafe { tensor.view_mut::<f64>() }.map(|view| (view.nrows(), view.ncols())).unwrap();
                let view = tensor.view::<f64>().unwrap();
                (rows, cols, view.as_raw() == 0 || view.nrows() != rows || view.ncols() != cols)
            });
            assert_eq!((rows as i64, cols as i64, null, deleted), (shape[0], shape[1], false, 1));
        }
        let ((), deleted) = made(&mut data, &mut [0, 3], None, nowhere, |tensor| {
            let (empty, b, mut c) = (tensor.view().unwrap(), [0.0; 6], [0.0; 0]);
            let out = MatMut::column_major(&mut c, 0, 2).unwrap();
            gemm(&Device::cpu().stream().unwrap(), 1.0, empty, MatRef::column_major(&b, 3, 2).unwrap(), 0.0, out)
                .unwrap();
        });
        assert_eq!(deleted, 1);
        let without = |tensor: &mut DLTensor| tensor.data = null_mut();
        let error = made(&mut data, &mut [1, 1], None, without, |tensor| tensor.view::<f64>().unwrap_err()).0;
        assert_eq!(error.to_string(), "unsupported: a DLPack tensor of 1 x 1 without data");
        let shapeless = |tensor: &mut DLTensor| tensor.shape = null_mut();
        let error = made(&mut data, &mut [1, 1], None, shapeless, |tensor| tensor.view::<f64>().unwrap_err()).0;
        assert_eq!(error.to_string(), "unsupported: a DLPack tensor without a shape");
    }

    #[test]
    fn what_is_no_matrix_is_refused_and_given_back() {
        let mut data = numbers(24);
        let error = |tensor: &mut Tensor| tensor.view::<f64>().unwrap_err();
        let unsupported = |(error, deleted)| matches!(error, Error::Unsupported { .. }) && deleted == 1;
        for (change, expected) in [
            ((|t| t.dtype.bits = 32) as fn(&mut DLTensor), Rule::Dtype),
            (|t| t.dtype.code = 0, Rule::Dtype),
            (|t| t.dtype.lanes = 2, Rule::Dtype),
        ] {
            let (error, deleted) = made(&mut data, &mut [4, 6], None, change, error);
            assert_eq!((rule(error), deleted), (Some(expected), 1));
        }
        let negative = made(&mut data, &mut [4, 6], Some(&mut [-6, 1]), |_| {}, error);
        assert_eq!(rule(negative.0), Some(Rule::Strides));
        assert!(unsupported(made(&mut data, &mut [4, 3, 2], None, |_| {}, error)));
        assert!(unsupported(made(&mut data, &mut [], None, |_| {}, error)));
        assert!(unsupported(made(&mut data, &mut [4, -6], None, |_| {}, error)));
        assert!(unsupported(made(&mut data, &mut [4, 5], None, |t| t.byte_offset = 3, error)));
        assert!(unsupported(made(&mut data, &mut [4, 5], None, |t| t.device.device_type = 10, error)));
        // SAFETY: null is refused.
        assert!(matches!(unsafe { Tensor::from_raw(null_mut()) }, Err(Error::Unsupported { .. })));
        let overlap = |tensor: &mut Tensor| {
            // SAFETY: refused.
            rule(unsafe { tensor.view_mut::<f64>() }.unwrap_err())
        };
        assert_eq!(made(&mut data, &mut [4, 6], Some(&mut [0, 1]), |_| {}, overlap).0, Some(Rule::Strides));
    }

    #[test]
    fn matrices_go_out_and_come_back() {
        let matrix = Matrix::from_fn(5, 3, |i, j| (10 * i + j) as f32).unwrap();
        let pointer = matrix.as_slice().unwrap().as_ptr();
        let raw = matrix.into_dlpack().unwrap().into_raw();
        // SAFETY: just made, and handed to nobody else; dropped at the end, which frees the matrix.
        let tensor = unsafe { Tensor::from_raw(raw) }.unwrap();
        let view = tensor.view::<f32>().unwrap();
        assert_eq!((view.nrows(), view.ncols(), view.get(4, 2)), (5, 3, Some(42.0)));
        assert_eq!(view.as_raw(), u64::try_from(pointer.addr()).unwrap());
        assert_eq!(rule(tensor.view::<f64>().unwrap_err()), Some(Rule::Dtype));
        std::thread::spawn(move || drop(tensor)).join().unwrap();
    }
}
