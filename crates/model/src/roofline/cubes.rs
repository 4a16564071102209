//! A maximum without edges.

/// (Σ terms³)^⅓ of terms that are not negative; 0 if all are.
pub(super) fn root_of_cubes(terms: &[f64]) -> f64 {
    let largest = terms.iter().fold(0.0_f64, |a, &b| a.max(b));
    if largest <= 0.0 {
        return 0.0;
    }
    let scale = 1.0 / largest;
    let sum: f64 = terms.iter().map(|t| (t * scale) * (t * scale) * (t * scale)).sum();
    largest * cube_root(sum)
}

/// The cube root of a positive number that is neither tiny nor huge: there is none in core.
///
/// A third of the bits is a third of the exponent, and within 6% of the root; each step of Halley's iteration leaves a
/// smaller error than the cube of the last one's.
fn cube_root(x: f64) -> f64 {
    /// Two thirds of the exponent's bias, less what a straight line between powers of two is above the root.
    const BIAS: u64 = 0x2A9F_7893_782D_A1CE;
    let mut root = f64::from_bits(x.to_bits() / 3 + BIAS);
    for _ in 0..3 {
        let cube = root * root * root;
        root *= (cube + 2.0 * x) / (2.0 * cube + x);
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_term_counts() {
        assert_eq!(root_of_cubes(&[0.0, 0.0]), 0.0);
        for (terms, root) in [(&[3.0, 4.0, 5.0][..], 6.0), (&[7.0][..], 7.0), (&[1e-9; 8][..], 2e-9), (&[1.0; 27], 3.0)]
        {
            assert!((root_of_cubes(terms) / root - 1.0).abs() <= 1e-9, "{terms:?}: {}", root_of_cubes(terms));
        }
    }

    #[test]
    fn cube_roots_are_the_standard_librarys() {
        for i in -300_i32..=300 {
            let x = 1.1_f64.powi(i);
            assert!((cube_root(x) / x.cbrt() - 1.0).abs() <= 1e-15, "{x}");
        }
    }
}
