//! Maxima without edges: the root of the sum of powers, in which the largest counts most. To 1e-10: sooner found than the
//! last bits of it, which no estimate has.

/// The cube root of a positive number that is neither tiny nor huge.
///
/// A third of the bits is a third of the exponent, and within 6% of the root; each step of Halley's iteration leaves a
/// smaller error than the cube of the last one's.
fn cube_root(x: f64) -> f64 {
    /// Two thirds of the exponent's bias, less what a straight line between powers of two is above the root.
    const BIAS: u64 = 0x2A9F_7893_782D_A1CE;
    let mut root = f64::from_bits(x.to_bits() / 3 + BIAS);
    for _ in 0..2 {
        let cube = root * root * root;
        root *= (cube + 2.0 * x) / (2.0 * cube + x);
    }
    root
}

/// The fourth root of a positive number that is neither tiny nor huge, in the same way: a fourth of the bits is within 4% of it.
fn fourth_root(x: f64) -> f64 {
    /// Three fourths of the exponent's bias, less what a straight line between powers of two is above the root.
    const BIAS: u64 = 0x2FF3_6000_0000_0000;
    let mut root = f64::from_bits(x.to_bits() / 4 + BIAS);
    for _ in 0..2 {
        let fourth = (root * root) * (root * root);
        root *= (3.0 * fourth + 5.0 * x) / (5.0 * fourth + 3.0 * x);
    }
    root
}

/// (a³ + b³)^⅓ of terms that are not negative.
pub(super) fn root_of_cubes(a: f64, b: f64) -> f64 {
    let sum = a * a * a + b * b * b;
    if sum <= 0.0 { 0.0 } else { cube_root(sum) }
}

/// (Σ terms⁴)^¼ of terms that are not negative.
pub(crate) fn root_of_fourths<const N: usize>(terms: [f64; N]) -> f64 {
    let sum = sum_of_fourths(terms);
    if sum <= 0.0 { 0.0 } else { fourth_root(sum) }
}

/// Σ terms⁴.
pub(crate) fn sum_of_fourths<const N: usize>(terms: [f64; N]) -> f64 {
    terms.iter().map(|t| (t * t) * (t * t)).sum()
}

/// The least of lines through (0, `offset`) with these slopes.
fn least_line(lines: [(f64, f64); 3], z: f64) -> f64 {
    lines.iter().fold(f64::INFINITY, |least, (offset, slope)| least.min(offset + slope * z))
}

/// What [`root_of_cubes`] is not below, and nearly is, sooner found: (1 + z)^⅓ is above its chords from z = 0 to 0.3, to 0.64
/// and to 1.
pub(super) fn least_of_cubes(a: f64, b: f64) -> f64 {
    const CHORDS: [(f64, f64); 3] = [(1.0, 0.3046), (1.0138, 0.2584), (1.0358, 0.2240)];
    let (large, small) = if a > b { (a, b) } else { (b, a) };
    if large <= 0.0 {
        return 0.0;
    }
    let share = small / large;
    large * least_line(CHORDS, share * share * share)
}

/// What [`root_of_fourths`] is not below, and nearly is: (1 + z)^¼ is above its chords from z = 0 to 0.4, to 1 and to 2.
pub(super) fn least_of_fourths(terms: [f64; 3]) -> f64 {
    const CHORDS: [(f64, f64); 3] = [(1.0, 0.2193), (1.0201, 0.1690), (1.0623, 0.1268)];
    let largest = terms.iter().fold(0.0_f64, |a, &b| a.max(b));
    if largest <= 0.0 {
        return 0.0;
    }
    let fourth = (largest * largest) * (largest * largest);
    largest * least_line(CHORDS, (sum_of_fourths(terms) - fourth) / fourth)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_term_counts() {
        assert_eq!((root_of_cubes(0.0, 0.0), root_of_fourths([0.0; 3])), (0.0, 0.0));
        for (a, b, root) in [(0.0, 7.0, 7.0), (3.0, 5.0, 152.0_f64.cbrt()), (1e-9, 1e-9, 2.0_f64.cbrt() * 1e-9)] {
            assert!((root_of_cubes(a, b) / root - 1.0).abs() <= 1e-10, "{a} {b}");
        }
        for (terms, root) in [
            ([7.0, 0.0, 0.0], 7.0_f64),
            ([2.0, 2.0, 0.0], 2.378_414_230_005_442),
            ([1e-9; 3], 1.316_074_012_952_492e-9),
        ] {
            let found = root_of_fourths(terms);
            assert!((found / root - 1.0).abs() <= 1e-10, "{terms:?}: {found}");
        }
    }

    #[test]
    fn chords_are_below_their_roots_and_near() {
        for at in 0..=100 {
            let (x, y) = (f64::from(at) / 100.0, f64::from(at * 37 % 101) / 100.0);
            for (least, root) in [
                (least_of_cubes(3.0, 3.0 * x), root_of_cubes(3.0 * x, 3.0)),
                (least_of_fourths([2.0 * y, 2.0, 2.0 * x]), root_of_fourths([2.0, 2.0 * x, 2.0 * y])),
            ] {
                assert!(least <= root * (1.0 + 1e-9) && least >= root * 0.995, "{x} {y}: {least} {root}");
            }
        }
        assert_eq!((least_of_cubes(0.0, 0.0), least_of_fourths([0.0; 3])), (0.0, 0.0));
    }

    #[test]
    fn roots_are_the_standard_librarys() {
        for i in -300_i32..=300 {
            let x = 1.3_f64.powi(i);
            assert!((fourth_root(x) / x.sqrt().sqrt() - 1.0).abs() <= 1e-10, "{x}");
            assert!((cube_root(x) / x.cbrt() - 1.0).abs() <= 1e-10, "{x}");
        }
    }
}
