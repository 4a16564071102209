//! Comparators. Each is written so that a NaN that should not be there fails, and says where the first fault is.

use crate::oracle::Near;
use crate::{Element, Outcome, Real};

/// Fails unless there are as many, with the first element for which `fine` does not hold, and the number of those; elements lie down
/// columns of so many rows.
pub fn all<T: Element>(
    found: &[T],
    expected: usize,
    rows: usize,
    fine: impl Fn(usize) -> bool,
    text: impl Fn(usize) -> String,
) -> Outcome {
    let count = found.len();
    if count != expected {
        return Err(format!("{count} elements, expected {expected}").into());
    }
    let Some(first) = (0..count).find(|&e| !fine(e)) else { return Ok(()) };
    let wrong = (first..count).filter(|&e| !fine(e)).count();
    let (i, j, found) = (first % rows.max(1), first / rows.max(1), found[first]);
    let text = text(first);
    Err(format!("{wrong} of {count} elements are wrong, the first ({i}, {j}): expected {text}, found {found:?}").into())
}

/// Equal as numbers; −0 is 0.
pub fn equal<T: Real>(found: &[T], expected: &[f64], rows: usize) -> Outcome {
    let right = |e: usize| T::of(expected[e]);
    all(found, expected.len(), rows, |e| found[e] == right(e), |e| format!("{:?}", right(e)))
}

/// The same of numbers by their parts.
pub fn equal_parts<T: Element>(found: &[T], expected: &[[f64; 2]], rows: usize) -> Outcome {
    all(found, expected.len(), rows, |e| found[e].two() == expected[e], |e| format!("{:?}", expected[e]))
}

/// Equal in every bit.
pub fn bitwise<T: Element>(found: &[T], expected: &[T], rows: usize) -> Outcome {
    // Much faster than an element at a time; of what differs they tell which.
    if bytemuck::cast_slice::<T, u8>(found) == bytemuck::cast_slice::<T, u8>(expected) {
        return Ok(());
    }
    let text = |e: usize| format!("{:?} ({:#x}, not {:#x})", expected[e], expected[e].bits(), found[e].bits());
    all(found, expected.len(), rows, |e| found[e].bits() == expected[e].bits(), text)
}

/// No further away than the bound for chains of `length` roundings in sums over k.
pub fn within<T: Real>(found: &[T], expected: &[Near], rows: usize, length: f64, k: usize) -> Outcome {
    let off = |e: usize| (expected[e].error(found[e].wide()), expected[e].bound::<T>(length, k));
    let fine = |e: usize| {
        let (error, bound) = off(e);
        error <= bound
    };
    let text = |e: usize| format!("{:e} +- {:e}, not {:e} off", expected[e].value, off(e).1, off(e).0);
    all(found, expected.len(), rows, fine, text)
}

/// Whether it is NaN where NaN is expected, that infinity where one is, and else equal as a number.
pub fn same_kind(found: f64, expected: f64) -> bool {
    found == expected || (found.is_nan() && expected.is_nan())
}

/// The same of all.
pub fn alike<T: Real>(found: &[T], expected: &[f64], rows: usize) -> Outcome {
    let right = |e: usize| T::of(expected[e]).wide();
    all(found, expected.len(), rows, |e| same_kind(found[e].wide(), right(e)), |e| format!("{:?}", expected[e]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An element whose bound is about 0.5 for chains of 2^51 in f64, and of 2^22 in f32.
    fn near(value: f64) -> Near {
        Near { value, rest: 0.0, size: 1.5, old: 0.0 }
    }

    #[test]
    fn a_wrong_element_fails_and_is_named() {
        let text = |outcome: Outcome| outcome.map_err(|fault| fault.to_string());
        let found = [1.0_f64, 2.0, 3.0, 4.0];
        assert_eq!(text(equal(&found, &[1.0, 2.0, 3.0, 4.0], 2)), Ok(()));
        let expected = "1 of 4 elements are wrong, the first (1, 1): expected 5.0, found 4.0";
        assert_eq!(text(equal(&found, &[1.0, 2.0, 3.0, 5.0], 2)), Err(expected.into()));
        assert!(bitwise(&[0.0_f64], &[-0.0], 1).is_err() && equal(&[0.0_f64], &[-0.0], 1).is_ok());
        let off = |first: f64| within(&found, &[first, 2.0, 3.0, 4.0].map(near), 2, 2_f64.powi(51), 1);
        assert!(off(1.4).is_ok() && off(1.6).is_err() && off(0.6).is_ok() && off(0.4).is_err());
        assert!(equal(&found, &[1.0], 2).is_err() && bitwise(&found, &[], 2).is_err());
    }

    #[test]
    fn nan_fails_everywhere() {
        let nan = [f32::NAN];
        assert!(equal(&nan, &[1.0], 1).is_err() && equal(&nan, &[f64::NAN], 1).is_err());
        let within = |found: &[f32], near: Near| within(found, &[near], 1, 2_f64.powi(22), 1);
        assert!(within(&[1.0], near(1.0)).is_ok());
        assert!(within(&nan, near(1.0)).is_err() && within(&[1.0], near(f64::NAN)).is_err());
        assert!(within(&[1.0], Near { size: f64::NAN, ..near(1.0) }).is_err());
        assert!(equal_parts(&nan, &[[1.0, 0.0]], 1).is_err() && equal_parts(&nan, &[[f64::NAN, 0.0]], 1).is_err());
        assert!(
            equal_parts(&[1.0_f32], &[[1.0, 0.0]], 1).is_ok() && equal_parts(&[1.0_f32], &[[2.0, 0.0]], 1).is_err()
        );
        assert!(alike(&nan, &[1.0], 1).is_err() && alike(&nan, &[f64::INFINITY], 1).is_err());
        assert!(alike(&[1.0_f32], &[f64::NAN], 1).is_err() && alike(&nan, &[f64::NAN], 1).is_ok());
        assert!(alike(&[f32::INFINITY], &[f64::NEG_INFINITY], 1).is_err());
        assert!(bitwise(&nan, &nan, 1).is_ok() && bitwise(&nan, &[f32::canary()], 1).is_err());
    }
}
