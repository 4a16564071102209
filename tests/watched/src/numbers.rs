//! Numbers made from a seed and a position: the same everywhere, in any order, at any size.

use crate::Real;

/// Bits that depend on a seed and a position alone (the mixer of splitmix64).
pub fn hash(seed: u64, i: usize, j: usize) -> u64 {
    let at = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (j as u64).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    let mut z = at.wrapping_add(seed.wrapping_add(1).wrapping_mul(0x1656_67b1_9e37_79f9));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// An integer in -bound..=bound.
pub fn integer(seed: u64, i: usize, j: usize, bound: u64) -> f64 {
    (hash(seed, i, j) % (2 * bound + 1)) as f64 - bound as f64
}

/// Uniform in (-1, 1), with every bit that f64 has.
pub fn unit(seed: u64, i: usize, j: usize) -> f64 {
    (hash(seed, i, j) >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

/// Of a matrix u vᵀ, whose products are known at any size, an element of u: an integer in -2..=2.
pub fn u<T: Real>(i: usize) -> T {
    T::of(integer(5, i, 0, 2))
}

/// An element of v.
pub fn v<T: Real>(l: usize) -> T {
    T::of(integer(6, l, 1, 2))
}

/// The product of two numbers by their parts.
pub fn times([a, b]: [f64; 2], [c, d]: [f64; 2]) -> [f64; 2] {
    [a * c - b * d, a * d + b * c]
}

/// A number or its conjugate.
pub fn conj_if([re, im]: [f64; 2], conj: bool) -> [f64; 2] {
    [re, if conj { -im } else { im }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_depend_on_every_part_of_the_position() {
        assert_ne!(hash(1, 2, 3), hash(1, 3, 2));
        assert_ne!(hash(1, 2, 3), hash(2, 2, 3));
        let all: Vec<f64> = (0..1000).map(|i| integer(7, i, 0, 3)).collect();
        assert!(all.iter().all(|v| v.abs() <= 3.0) && all.contains(&-3.0) && all.contains(&3.0));
        assert!((0..1000).all(|i| unit(7, i, 1).abs() <= 1.0));
        assert_eq!(times([1.0, -2.0], conj_if([3.0, -4.0], true)), [11.0, -2.0]);
    }
}
