//! The shapes that are tried: a logarithmic mesh for each family, coarse first.

use std::collections::BTreeSet;

use lanky::tuned::Class;
use model::Problem;
use num_traits::cast;

/// Widths of skinny operands.
const WIDTHS: [u64; 6] = [2, 4, 8, 16, 32, 64];

/// The lengths along one side.
#[derive(Clone, Debug, PartialEq)]
enum Side {
    /// From the first to the last, so many in geometric progression.
    Long(u64, u64, u32),
    /// All of these, from the coarsest mesh on.
    These(&'static [u64]),
    /// What another side has: m of a Gram matrix is its n.
    AsN,
}

/// m, n and k of a family. Sørensen's mesh for gemv; the others are ours.
fn sides(family: &str) -> [Side; 3] {
    use Side::{AsN, Long, These};
    let widths = || These(&WIDTHS);
    match family {
        "gemv" => [Long(10, 3_162_278, 24), These(&[1]), Long(10, 3_162_278, 24)],
        "tsm2r" => [Long(100, 1_000_000, 13), widths(), Long(100, 1_000_000, 13)],
        "tsmm" => [Long(1000, 100_000_000, 16), widths(), widths()],
        "tsmttsm" => [widths(), widths(), Long(1000, 100_000_000, 16)],
        "gram" => [AsN, widths(), Long(1000, 100_000_000, 16)],
        _ => [Long(128, 8192, 7), Long(128, 8192, 7), Long(128, 8192, 7)],
    }
}

/// Layouts of op(A), op(B) and C that a family is tuned for, unless others are asked for: A by columns and by rows.
pub fn usual_layouts(family: &str) -> [[bool; 3]; 2] {
    match family {
        // A tall matrix, transposed: the other factor lies the other way round.
        "tsmttsm" | "gram" => [[true, false, true], [false, true, true]],
        "tsmm" => [[true, true, true], [false, false, false]],
        _ => [[true, true, true], [false, true, true]],
    }
}

/// A shape of the mesh.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    pub class: Class,
    /// m, n and k.
    pub lengths: [u64; 3],
    /// The shapes that are timed for it: its own, or nine around it.
    pub points: Vec<[u64; 3]>,
    /// 0 is the coarsest mesh, of every eighth or fourth line.
    level: u32,
}

impl Side {
    /// Each length with its level, and the ratio from one to the next.
    fn lengths(&self) -> (Vec<(u64, u32)>, f64) {
        match self {
            Self::Long(first, last, count) => {
                let ratio = (float(*last) / float(*first)).powf(1.0 / f64::from(count - 1));
                let coarsest = if *count > 16 { 3 } else { 2 };
                let length = |index: u32| rounded(float(*first) * ratio.powf(f64::from(index)));
                let level =
                    |index: u32| coarsest - if index == 0 { coarsest } else { index.trailing_zeros().min(coarsest) };
                ((0..*count).map(|index| (length(index), level(index))).collect(), ratio)
            }
            Self::These(lengths) => (lengths.iter().map(|&length| (length, 0)).collect(), 1.0),
            Self::AsN => (Vec::new(), 1.0),
        }
    }
}

/// A shape of its own.
#[cfg(test)]
pub fn alone(class: Class, lengths: [u64; 3]) -> Place {
    Place { class, lengths, points: vec![lengths], level: 0 }
}

/// All shapes of these kinds of products that have no more bytes, the coarsest mesh of all kinds first. With `nine` each is the
/// mean of nine (of three, where one side alone is long), a third of the mesh apart.
pub fn places(classes: &[Class], largest_bytes: u64, nine: bool) -> Vec<Place> {
    let mut all: Vec<Place> = classes.iter().flat_map(|class| of_class(*class, largest_bytes, nine)).collect();
    all.sort_by_key(|place| place.level);
    all
}

fn of_class(class: Class, largest_bytes: u64, nine: bool) -> Vec<Place> {
    let sides = sides(class.family);
    let [m, n, k] = &sides;
    let (ns, (ks, _)) = (n.lengths().0, k.lengths());
    let mut places = Vec::new();
    for &(n, n_level) in &ns {
        let ms = if *m == Side::AsN { vec![(n, 0)] } else { m.lengths().0 };
        for &(m, m_level) in &ms {
            for &(k, k_level) in &ks {
                let lengths = [m, n, k];
                if class.problem(lengths).is_none_or(|p| bytes(&p) > largest_bytes) {
                    continue;
                }
                let points = if nine { around(&class, lengths, &sides) } else { vec![lengths] };
                places.push(Place { class, lengths, points, level: m_level.max(n_level).max(k_level) });
            }
        }
    }
    places
}

/// The shape and those a third of the mesh from it, along its first two long sides, that are of its class.
fn around(class: &Class, lengths: [u64; 3], sides: &[Side; 3]) -> Vec<[u64; 3]> {
    let mut points = vec![lengths];
    let long = (0..3).filter(|&side| matches!(sides[side], Side::Long(..))).take(2);
    for side in long {
        let third = sides[side].lengths().1.powf(1.0 / 3.0);
        points = points
            .into_iter()
            .flat_map(|point| {
                [1.0 / third, 1.0, third].map(|factor| {
                    let mut moved = point;
                    moved[side] = rounded(float(point[side]) * factor);
                    moved
                })
            })
            .collect();
    }
    let distinct: BTreeSet<[u64; 3]> = points.into_iter().filter(|point| class.problem(*point).is_some()).collect();
    distinct.into_iter().collect()
}

/// Bytes of A, B and C, a Gram matrix's A once.
pub fn bytes(p: &Problem) -> u64 {
    let b = if p.gram { 0 } else { p.k.saturating_mul(p.n) };
    let elements = p.m.saturating_mul(p.k).saturating_add(b).saturating_add(p.m.saturating_mul(p.n));
    elements.saturating_mul(p.dtype.bytes())
}

fn float(length: u64) -> f64 {
    cast(length).unwrap_or(f64::INFINITY)
}

fn rounded(length: f64) -> u64 {
    cast(length.round()).unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(words: &str) -> Class {
        let words: Vec<&str> = words.split(' ').collect();
        Class::parse(words[0], words[1], words[2], words[3]).expect("a class")
    }

    #[test]
    fn gemv_has_sorensens_mesh() {
        let all = places(&[class("gemv f32 ccc 0")], u64::MAX, false);
        assert_eq!(all.len(), 24 * 24);
        let ms: BTreeSet<u64> = all.iter().map(|place| place.lengths[0]).collect();
        let first: Vec<u64> = ms.iter().copied().take(8).collect();
        assert_eq!((first, ms.last()), (vec![10, 17, 30, 52, 90, 157, 272, 472], Some(&3_162_278)));
        assert!(all.iter().all(|place| place.lengths[1] == 1 && place.points == [place.lengths]));
        let few = places(&[class("gemv f32 ccc 0")], 1_100_000_000, false);
        assert!(few.len() > 300 && few.iter().all(|place| place.lengths[0] * place.lengths[2] <= 275_000_000));
    }

    #[test]
    fn a_coarse_mesh_comes_first() {
        let all = places(&[class("gemv f32 ccc 0"), class("gemv f64 rcc 0")], u64::MAX, false);
        let of_level = |level| all.iter().filter(|place| place.level == level).count();
        // Every eighth of 24 lines, every fourth, every other, all; of both.
        assert_eq!([0, 1, 2, 3].map(of_level), [2 * 9, 2 * (36 - 9), 2 * (144 - 36), 2 * (576 - 144)]);
        assert!(all.is_sorted_by_key(|place| place.level));
        assert!(all[..18].iter().any(|place| place.class.dtype == "f64"), "all kinds at once");
    }

    #[test]
    fn every_family_has_shapes_of_its_own() {
        for family in lanky::tuned::FAMILIES.map(|family| family.name()) {
            for layout in usual_layouts(family) {
                let mut class = class(&format!("{family} f64 ccc 0"));
                class.by_columns = layout;
                let all = places(&[class], 1 << 30, true);
                assert!(all.len() >= 60, "{class}: {}", all.len());
                let coarse = all.iter().filter(|place| place.level == 0).count();
                assert!(coarse * 3 < all.len(), "{class}: {coarse} of {}", all.len());
                for place in all {
                    let p = class.problem(place.lengths).expect("of this class");
                    assert!(bytes(&p) <= 1 << 30 && place.points.contains(&place.lengths), "{place:?}");
                    assert!(place.points.iter().all(|point| class.problem(*point).is_some()));
                    assert!(place.points.len() >= 2 && place.points.len() <= 9, "{place:?}");
                }
            }
        }
    }

    #[test]
    fn nine_shapes_are_a_third_of_the_mesh_apart() {
        let all = places(&[class("gemv f64 ccc 0")], u64::MAX, true);
        let place = all.iter().find(|place| place.lengths == [1420, 1, 819]).expect("a shape");
        // 316227.8^(1/69) = 1.2014.
        let ms: BTreeSet<u64> = place.points.iter().map(|point| point[0]).collect();
        let ks: BTreeSet<u64> = place.points.iter().map(|point| point[2]).collect();
        assert_eq!((ms.into_iter().collect::<Vec<_>>(), place.points.len()), (vec![1182, 1420, 1706], 9));
        assert_eq!(ks.into_iter().collect::<Vec<_>>(), [682, 819, 984]);
    }
}
