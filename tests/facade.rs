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

/// Prints a line that tells the bits of products of many shapes: `.ci/run features` compares it between features.
#[test]
fn the_bits_of_products() -> lanky::Result<()> {
    fn product<T: Scalar>(m: usize, n: usize, k: usize, of: fn(f64) -> T) -> lanky::Result<Matrix<T>> {
        // Sums of which each order of adding gives other bits.
        let a = Matrix::from_fn(m, k, |i, l| of(((i * 37 + l * 101) as f64).sin()))?;
        let b = Matrix::from_fn(k, n, |l, j| of(1.0 / (1.0 + (l * 3 + j * 7) as f64)))?;
        let mut c = Matrix::from_fn(m, n, |i, j| of((i as f64 - j as f64) / 3.0))?;
        let stream = Device::cpu().stream()?;
        gemm(&stream, of(1.25), a.view(), b.view(), of(-0.5), c.view_mut())?;
        let (rows, mut turned) = (a.view().rows(..m / 2)?, Matrix::from_fn(n, m / 2, |_, _| of(f64::NAN))?);
        gemm(&stream, of(1.0), b.t(), rows.t(), of(0.0), turned.view_mut())?;
        let joined = |i, j| if j < n { c.get(i, j) } else { turned.get(j - n, i) };
        Matrix::from_fn(m / 2, 2 * n, |i, j| joined(i, j).unwrap_or_else(T::zero))
    }
    let mut digest = 0xcbf2_9ce4_8422_2325_u64; // FNV-1a
    let mut add = |bits: u64| digest = (digest ^ bits).wrapping_mul(0x0100_0000_01b3);
    for (m, n, k) in [(1000, 4, 700), (999, 17, 33), (64, 64, 5000), (3, 1, 9), (500, 1, 500), (130, 131, 129)] {
        let (single, double) = (product(m, n, k, |x| x as f32)?, product(m, n, k, |x| x)?);
        assert!(double.as_slice().is_some_and(|all| all.iter().any(|x| *x != 0.0)));
        single.as_slice().into_iter().flatten().for_each(|x| add(u64::from(x.to_bits())));
        double.as_slice().into_iter().flatten().for_each(|x| add(x.to_bits()));
    }
    println!("the bits of products: {digest:016x}");
    Ok(())
}
