//! The library as its users write it.
use lanky::prelude::*;

/// Somebody else's memory, in place: no copy.
///
/// # Safety
/// The pointers hold matrices of these shapes.
unsafe fn borrowed(device: &Device, a: u64, b: u64, c: u64, lda: usize) -> lanky::Result<()> {
    // SAFETY: a null stream is the CPU's; on a GPU it would be the legacy default stream, which always exists.
    let stream = unsafe { Stream::from_raw(device, std::ptr::null_mut()) };
    // SAFETY: the caller's promise.
    let (a, b, c) = unsafe {
        (
            MatRef::<f64>::from_raw(device, a, 100, 16, 1, lda)?,
            MatRef::<f64>::from_raw(device, b, 16, 3, 1, 16)?,
            MatMut::<f64>::from_raw(device, c, 100, 3, 1, lda)?,
        )
    };
    gemm(&stream, 1.0, a, b, 0.0, c)
}

#[test]
fn memory_of_others_is_used_in_place() -> Result<(), Box<dyn std::error::Error>> {
    let lda = 103;
    let mut a = vec![1.0_f64; lda * 16];
    let mut b = vec![2.0_f64; 16 * 3];
    let mut c = vec![f64::NAN; lda * 3];
    let address = |data: &mut Vec<f64>| u64::try_from(data.as_mut_ptr().expose_provenance());
    let (pa, pb, pc) = (address(&mut a)?, address(&mut b)?, address(&mut c)?);
    // SAFETY: the vectors live on, and are as long as the shapes ask.
    unsafe { borrowed(&Device::cpu(), pa, pb, pc, lda) }?;
    for (at, value) in c.iter().enumerate() {
        assert!(if at % lda < 100 { *value == 32.0 } else { value.is_nan() }, "element {at}");
    }
    Ok(())
}

#[test]
fn products_of_products_keep_their_layouts() -> lanky::Result<()> {
    let device = Device::cpu();
    let stream = device.stream()?;
    let a = Matrix::from_fn(50, 7, |i, l| (i * 3 + l) as f32 % 5.0)?;
    let gram = device.matmul(a.t(), a.view())?;
    let mut twice = Matrix::<f32>::zeros(7, 7)?;
    gemm(&stream, 2.0, a.t(), a.view(), 0.0, twice.view_mut())?;
    for (i, j) in (0..7).flat_map(|i| (0..7).map(move |j| (i, j))) {
        assert_eq!(twice.get(i, j), gram.get(i, j).map(|value| 2.0 * value));
        assert_eq!(gram.get(i, j), gram.get(j, i));
    }
    Ok(())
}
