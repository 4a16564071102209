//! The bytes of a .npy file, version 1.0.

use std::borrow::Cow;

use lanky::Scalar;
use model::Dtype;

use super::{Header, Order};

/// NumPy aligns the body to this many bytes, so that it can be mapped.
const ALIGNMENT: usize = 64;

/// Everything before the first element.
pub fn header_bytes(header: &Header) -> Vec<u8> {
    let descr = match header.dtype {
        Dtype::F32 => "<f4",
        Dtype::F64 => "<f8",
        Dtype::C64 => "<c8",
        Dtype::C128 => "<c16",
    };
    let order = if header.order == Order::Fortran { "True" } else { "False" };
    let mut lengths = header.shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    if header.shape.len() == 1 {
        lengths.push(',');
    }
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': ({lengths}), }}");
    // 10 bytes before the text and the line feed after it.
    let padding = (ALIGNMENT - (10 + text.len() + 1) % ALIGNMENT) % ALIGNMENT;
    text.extend(std::iter::repeat_n(' ', padding));
    text.push('\n');
    let length = u16::try_from(text.len()).expect("three lengths of 20 digits fit into 64 KiB");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(length.to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes
}

/// Elements as the file holds them: little-endian.
pub fn as_bytes<T: Scalar>(elements: &[T]) -> Cow<'_, [u8]> {
    let bytes: &[u8] = bytemuck::cast_slice(elements);
    if cfg!(target_endian = "little") {
        return Cow::Borrowed(bytes);
    }
    let mut swapped = bytes.to_vec();
    swapped.chunks_exact_mut(size_of::<T::Real>()).for_each(<[u8]>::reverse);
    Cow::Owned(swapped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_read_back_and_aligned() {
        for shape in [vec![], vec![7], vec![3, 4], vec![u64::MAX >> 4, 1], vec![5, 6, 7]] {
            for (dtype, order) in [Dtype::F32, Dtype::F64, Dtype::C64, Dtype::C128].map(|dtype| (dtype, Order::C)) {
                let order = if dtype == Dtype::F64 { Order::Fortran } else { order };
                let header = Header { dtype, order, shape: shape.clone() };
                let bytes = header_bytes(&header);
                assert_eq!(bytes.len() % ALIGNMENT, 0);
                assert_eq!(Header::parse(&bytes[10..]), Ok(header));
            }
        }
    }

    #[test]
    fn is_the_text_that_numpy_writes() {
        let header = Header { dtype: Dtype::F64, order: Order::C, shape: vec![3, 4] };
        let text = "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }";
        assert!(header_bytes(&header)[10..].starts_with(text.as_bytes()));
    }
}
