//! Which products of the matrix units a C takes whose lines are taken by eights, as `tsmttsm_eights` and `gram_eights` take them.

use crate::{Dtype, Kernel, Variant};

/// Lines that are taken together.
pub const EIGHT: u32 = 8;
/// The most products of any C.
pub const MOST: usize = 24;

/// Eights of lines of a product: A's, A's once more, and B's. In f64 a product has two eights of A, of which the second may be the first again; of
/// complex elements there is one, whose real and imaginary parts are two.
pub type Product = (usize, usize, usize);

/// Eights of lines that so many lines have.
pub const fn eights(lines: u32) -> usize {
    lines.div_ceil(EIGHT) as usize
}

/// Pieces of k in an eight of a tile of so many lines.
pub const fn pieces(lines: u32) -> u32 {
    if lines < EIGHT { EIGHT / lines } else { 1 }
}

/// The i-th eight that meets eight `col` of a Gram matrix of `sides`, so that each two meet once, and each itself.
///
/// They stand in a ring, and each meets itself and those of the half of it that begins there. Of an even number the first meets all, and the others,
/// an odd number, stand in the ring.
const fn met(sides: usize, col: usize, i: usize) -> Option<usize> {
    let is_even = sides % 2 == 0;
    let (first, ring) = if is_even { (1, sides - 1) } else { (0, sides) };
    let (count, eight) =
        if is_even && col == 0 { (sides, i) } else { (ring.div_ceil(2), first + (col + ring - first + i) % ring) };
    if i < count { Some(eight) } else { None }
}

/// The products of a C of so many eights down and along, or of the triangle of a Gram matrix, in f64 `paired`; and how many they are.
pub const fn list((down, along): (usize, usize), paired: bool, gram: bool) -> ([Product; MOST], usize) {
    let mut all = [(0, 0, 0); MOST];
    let (mut count, mut col) = (0, 0);
    while col < along {
        let mut i = 0;
        while i < down {
            let (row, next) = match (gram, paired) {
                (true, true) => (met(down, col, i), met(down, col, i + 1)),
                (true, false) if i < col => (None, None),
                _ if i + 1 < down => (Some(i), Some(i + 1)),
                _ => (Some(i), None),
            };
            if let Some(row) = row {
                let second = match next {
                    Some(next) if paired => next,
                    _ => row,
                };
                all[count] = (row, second, col);
                count += 1;
            }
            i += if paired { 2 } else { 1 };
        }
        col += 1;
    }
    (all, count)
}

/// The same of a tile of BM x BN.
pub const fn products(bm: u32, bn: u32, paired: bool, gram: bool) -> ([Product; MOST], usize) {
    list((eights(bm), eights(bn)), paired, gram)
}

/// Multiply-adds of elements that an entry's group of warps takes for a row of the tall matrices, as if all were there.
pub(crate) fn sums_a_row(variant: &Variant) -> u32 {
    let paired = matches!(variant.dtype, Dtype::F64);
    let (_, count) = products(variant.rows, variant.t2, paired, variant.kernel == Kernel::Gram);
    count as u32 * EIGHT * EIGHT * if paired { 2 } else { 1 } / pieces(variant.rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn pairs_of(product: &Product) -> [(usize, usize); 2] {
        let &(row, second, col) = product;
        [(row, col), (second, col)]
    }

    /// Each two eights of a Gram matrix meet once, in either order, and of C each of A's each of B's.
    #[test]
    fn every_two_eights_meet_once() {
        for sides in 1..=6 {
            let (all, count) = list((sides, sides), sides < 6, true);
            let met: BTreeSet<_> = all[..count].iter().flat_map(pairs_of).map(|(i, j)| (i.max(j), i.min(j))).collect();
            assert_eq!(met.len(), sides * (sides + 1) / 2, "{sides}");
            for along in 1..=2 {
                let (all, count) = list((sides, along), true, false);
                let met: BTreeSet<_> = all[..count].iter().flat_map(pairs_of).collect();
                assert_eq!((met.len(), count), (sides * along, sides.div_ceil(2) * along));
            }
        }
        assert_eq!([1, 2, 3, 4].map(|sides| list((sides, sides), true, true).1), [1, 2, 3, 5]);
        assert_eq!([2, 4, 6].map(|sides| list((sides, sides), false, true).1), [3, 10, 21]);
    }

    /// No two products of a Gram matrix have the same two eights but one whose second is its first.
    #[test]
    fn none_meets_twice() {
        for (sides, paired) in (1..=6).map(|sides| (sides, sides < 6)) {
            let (all, count) = list((sides, sides), paired, true);
            let mut met = BTreeSet::new();
            for &(row, second, col) in &all[..count] {
                assert!(met.insert((row.max(col), row.min(col))));
                assert!(
                    row == second || met.insert((second.max(col), second.min(col))),
                    "{sides}: {row} {second} {col}"
                );
            }
        }
    }
}
