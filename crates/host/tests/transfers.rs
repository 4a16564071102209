//! Matrices to the CPU device and back: the same calls as with a GPU.

use lanky_host::{Device, Error, Layout, MatRef, Matrix};
use std::io;

fn value(i: usize, j: usize) -> f64 {
    (i * 1000 + j) as f64
}

#[test]
fn copies_keep_every_element() {
    let device = Device::cpu();
    let stream = device.stream().unwrap();
    let (rows, cols) = (301, 207);
    let matrix = Matrix::from_fn(rows, cols, value).unwrap();
    let strided = matrix.view().rows(1..).unwrap().cols(2..=200).unwrap();
    for (view, base) in [(matrix.view(), (0, 0)), (strided, (1, 2))] {
        let copy = device.upload(&stream, view).unwrap();
        let back = copy.download(&stream).unwrap();
        assert_eq!(copy.layout(), Layout::ColumnMajor);
        for i in 0..view.nrows() {
            for j in 0..view.ncols() {
                assert_eq!(back.get(i, j), Some(value(i + base.0, j + base.1)));
            }
        }
        let turned = device.upload(&stream, view.t()).unwrap();
        assert_eq!((turned.layout(), turned.as_slice()), (Layout::RowMajor, copy.as_slice()));
    }
}

#[test]
fn streamed_elements_come_in_storage_order() {
    let device = Device::cpu();
    let stream = device.stream().unwrap();
    // Several pieces, the last of them not full.
    let (rows, cols) = (2503, 1009);
    for layout in [Layout::ColumnMajor, Layout::RowMajor] {
        let (mut next, mut pieces) = (0_u32, 0);
        let matrix = device
            .upload_with::<f64>(&stream, rows, cols, layout, &mut |piece| {
                pieces += 1;
                for element in piece {
                    *element = f64::from(next);
                    next += 1;
                }
                Ok(())
            })
            .unwrap();
        assert!(pieces > 1);
        assert_eq!(usize::try_from(next).unwrap(), rows * cols);
        let (i, j) = (1234, 987);
        let at = if layout == Layout::ColumnMajor { i + j * rows } else { i * cols + j };
        assert_eq!(matrix.get(i, j), Some(at as f64));
        for order in [Layout::ColumnMajor, Layout::RowMajor] {
            let mut found = Vec::new();
            matrix
                .download_with(&stream, order, &mut |piece| {
                    found.extend_from_slice(piece);
                    Ok(())
                })
                .unwrap();
            let expected = MatRef::column_major(&found, rows, cols).unwrap();
            let expected =
                if order == Layout::ColumnMajor { expected } else { MatRef::row_major(&found, rows, cols).unwrap() };
            for (i, j) in [(0, 0), (1, 0), (0, 1), (i, j), (rows - 1, cols - 1)] {
                assert_eq!(expected.get(i, j), matrix.get(i, j), "{layout:?} in {order:?}");
            }
        }
    }
}

#[test]
fn failures_of_the_callers_functions_come_back() {
    let device = Device::cpu();
    let stream = device.stream().unwrap();
    let full = |_: &mut [f32]| Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file ended early"));
    match device.upload_with::<f32>(&stream, 3, 4, Layout::RowMajor, &mut { full }) {
        Err(Error::Io { kind: io::ErrorKind::UnexpectedEof, text, .. }) => assert_eq!(text, "the file ended early"),
        other => panic!("{other:?}"),
    }
    let matrix = Matrix::<f32>::zeros(3, 4).unwrap();
    let result = matrix.download_with(&stream, Layout::RowMajor, &mut |_| Err(io::ErrorKind::StorageFull.into()));
    assert!(matches!(result, Err(Error::Io { kind: io::ErrorKind::StorageFull, .. })));
}

#[test]
fn empty_matrices_move() {
    let device = Device::cpu();
    let stream = device.stream().unwrap();
    for (rows, cols) in [(0, 0), (0, 5), (5, 0)] {
        let matrix = device.upload(&stream, Matrix::<f64>::zeros(rows, cols).unwrap().view()).unwrap();
        assert_eq!((matrix.nrows(), matrix.ncols(), matrix.as_slice()), (rows, cols, Some(&[][..])));
        let mut calls = 0;
        let count = &mut |_: &mut [f64]| {
            calls += 1;
            Ok(())
        };
        device.upload_with::<f64>(&stream, rows, cols, Layout::ColumnMajor, count).unwrap();
        assert_eq!(calls, 0);
    }
}

#[test]
fn vectors_become_matrices_of_just_their_size() {
    let matrix = Matrix::from_vec(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2, 3, Layout::RowMajor).unwrap();
    assert_eq!((matrix.get(0, 2), matrix.get(1, 0)), (Some(3.0), Some(4.0)));
    assert_eq!(matrix.t().get(2, 0), Some(3.0));
    assert!(Matrix::from_vec(vec![1.0; 7], 2, 3, Layout::RowMajor).is_err());
    assert!(Matrix::from_vec(vec![1.0; 5], 2, 3, Layout::RowMajor).is_err());
    assert_eq!(matrix.into_vec().unwrap().len(), 6);
}
