//! How the products of the matrix units that a C takes are dealt to a block's four warps, where none has a square of squares.

use super::reduced::square_side;
use crate::{Dtype, Kernel, Variant};

/// Warps that share them.
pub const WARPS: usize = 4;
/// The most products of any C.
pub const MOST: usize = 49;

/// Row and column of a square, and which part of it.
pub type Product = (usize, usize, usize);

/// Products of a C of `sides` squares a side, each of which takes so many parts, or of the triangle of a Gram matrix.
pub const fn products(sides: usize, parts: usize, gram: bool) -> usize {
    parts * if gram { sides * (sides + 1) / 2 } else { sides * sides }
}

/// The most that a warp has of them.
pub const fn most(sides: usize, parts: usize, gram: bool) -> usize {
    products(sides, parts, gram).div_ceil(WARPS)
}

/// Columns of what a warp has of them, were it one row of squares.
pub(crate) const fn columns(dtype: Dtype, sides: u32, gram: bool) -> u32 {
    let parts = if dtype.is_complex() { 1 } else { 2 };
    most(sides as usize, parts, gram) as u32 * square_side(dtype) / parts as u32
}

/// Lines of A and B that the warp with the most of them loads, or more: of a Gram matrix all, else half of each and those in the middle.
pub(crate) const fn lines(variant: &Variant) -> u32 {
    variant.rows + if matches!(variant.kernel, Kernel::Gram) { 0 } else { square_side(variant.dtype) }
}

/// The products of so many squares a side, of so many parts each, in an order in which neighbours have few lines.
///
/// Of a triangle those of the two triangles on its diagonal, then what is below the first and beside the second, column by column. Of a whole C, whose
/// side is odd, a pinwheel: four rectangles around the square in the middle, which goes with the first.
pub const fn list(sides: usize, parts: usize, gram: bool) -> [Product; MOST] {
    let mut all = [(0, 0, 0); MOST];
    let middle = sides / 2;
    let (mut at, mut place) = (0, 0);
    while place < 4 * sides * sides * parts {
        let (piece, part) = (place / (sides * sides * parts), place % parts);
        let (row, col) = (place / parts % sides, place / parts / sides % sides);
        let is_there = match (gram, piece) {
            (true, 0) => row < middle && col <= row,
            (true, 1) => col >= middle && col <= row,
            (true, 2) => row >= middle && col < middle,
            (true, _) => false,
            (false, 0) => row <= middle && col < middle || row == middle && col == middle,
            (false, 1) => row < middle && col >= middle,
            (false, 2) => row >= middle && col > middle,
            (false, _) => row > middle && col <= middle,
        };
        if is_there {
            all[at] = (row, col, part);
            at += 1;
        }
        place += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Those whose products are dealt, and no others, have the list: a warp's share is its columns, and its lines are no more than are
    /// reckoned with.
    #[test]
    fn entries_are_dealt_what_they_say() {
        let is_listed = |v: &&Variant| v.entry.contains("_ring_8x") || v.entry.contains("_lines_8x") && v.mma;
        let is_f64s = |v: &&Variant| v.entry.contains("_16x40_m64n64_");
        let found: BTreeSet<_> = crate::VARIANTS.iter().filter(|v| v.is_dealt()).map(|v| v.entry).collect();
        let wanted: BTreeSet<_> =
            crate::VARIANTS.iter().filter(|v| is_listed(v) || is_f64s(v)).map(|v| v.entry).collect();
        assert_eq!(found, wanted);
        assert!(found.len() >= 13, "{found:?}");
        for v in crate::VARIANTS.iter().filter(|v| v.is_dealt()) {
            let (side, gram) = (square_side(v.dtype), v.kernel == Kernel::Gram);
            let (sides, parts) = ((v.rows / side) as usize, if v.dtype.is_complex() { 1 } else { 2 });
            assert_eq!((v.rows, v.threads as usize, v.cols), (v.t2, 32 * WARPS, columns(v.dtype, v.rows / side, gram)));
            let most_lines = (0..WARPS).map(|warp| lines_of(warp, sides, parts, gram)).max();
            assert!(most_lines.is_some_and(|most| most as u32 * side <= lines(v)), "{}: {most_lines:?}", v.entry);
        }
    }

    /// Lines that a warp's run of the list has.
    fn lines_of(warp: usize, sides: usize, parts: usize, gram: bool) -> usize {
        let (count, list) = (products(sides, parts, gram), list(sides, parts, gram));
        let run = (count * warp).div_ceil(WARPS)..(count * (warp + 1)).div_ceil(WARPS);
        assert!(run.len() <= most(sides, parts, gram));
        let of_b = if gram { 0 } else { sides };
        list[run].iter().flat_map(|&(row, col, _)| [row, of_b + col]).collect::<BTreeSet<_>>().len()
    }

    /// Each product once, in the triangle or in C; by the runs of warps few lines.
    #[test]
    fn every_product_is_one_warps() {
        for (sides, parts, gram, lines) in [
            (4, 2, true, [2, 3, 3, 4]),
            (4, 1, true, [2, 2, 3, 3]),
            (5, 1, true, [3, 3, 4, 4]),
            (6, 1, true, [3, 3, 5, 5]),
            (7, 1, true, [4, 4, 6, 6]),
            (8, 1, true, [4, 5, 6, 7]),
            (5, 1, false, [6, 5, 5, 5]),
            (7, 1, false, [8, 7, 7, 7]),
        ] {
            let (count, list) = (products(sides, parts, gram), list(sides, parts, gram));
            let mut there = BTreeSet::new();
            for &(row, col, part) in list.iter().take(count) {
                assert!(row < sides && col < sides && part < parts && (!gram || col <= row));
                assert!(there.insert((row, col, part)), "{sides}: {row} {col} {part} twice");
            }
            let found = core::array::from_fn(|warp| lines_of(warp, sides, parts, gram));
            assert_eq!(found, lines, "{sides} {parts} {gram}");
        }
    }
}
