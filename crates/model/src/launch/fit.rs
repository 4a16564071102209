//! How the threads of a block share a C of as many tiles as it has, a tile a thread, in groups along k: `tsmttsm_fitted` and `gram_fitted`.
//!
//! # Lines of a tile
//! Where rows of A and B are whole pieces of 16 bytes, and tiles' sides too, tile i of a side has every so many-th piece of it from piece i on, so that neighbours read
//! neighbours. Where they are not, it has neighbouring lines, which a thread loads one by one at fixed distances from one address: tiles of 5, 7, 9 and 11 lines begin in
//! as many banks as there are tiles, and end near the last line of more widths than those of 4, 8 and 12. Tiles that would begin in two banks have every so many-th line
//! ([`are_apart`]).
//! # Rows of a group
//! Where groups' rows begin decides which banks their lanes read. Of whole pieces an odd number of rows a group makes as many places as there can be; else as many
//! are taken as a stage takes least time of, by its instructions and by the groups of a warp that meet, as far as one can count that here (`ways`).

use super::Tiling;
use super::reduced::shared_len;
use crate::shape::SKINNY;
use crate::{Kernel, Variant};

/// Stages of the ring.
pub const STAGES: u32 = 3;

/// How the threads of a block share an m x n C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fit {
    /// Tiles along m.
    pub down: u32,
    /// Tiles along n.
    pub along: u32,
    /// Tiles, and threads a group: of a Gram matrix those that are not above the diagonal.
    pub tiles: u32,
    /// Groups; threads that are no whole one have nothing to multiply.
    pub groups: u32,
    /// Rows of a stage that are a group's, one behind the other.
    pub rows: u32,
    /// Rows of a stage.
    pub steps: u32,
}

impl Fit {
    /// Of tiles of TM x TN, and so many groups of so many rows.
    const fn new((tm, tn): (u32, u32), (m, n): (u32, u32), gram: bool, (groups, rows): (u32, u32)) -> Fit {
        let (down, along) = (m.div_ceil(tm), n.div_ceil(tn));
        let tiles = if gram { down * (down + 1) / 2 } else { down * along };
        Fit { down, along, tiles, groups, rows, steps: groups * rows }
    }

    /// What a kernel is told of it, beside a [`Finish::code`](super::reduced::Finish::code) and a [`Triangle::code`](super::reduced::Triangle::code); it knows tiles and C.
    const fn code(&self) -> u32 {
        (self.groups - 1) << 16 | self.rows << 24
    }

    /// The fit of an m x n C that a kernel of tiles of TM x TN was told of: groups but one in bits 16 to 23, their rows from there on.
    pub const fn told(code: u32, tile: (u32, u32), shape: (u32, u32), gram: bool) -> Fit {
        Fit::new(tile, shape, gram, ((code >> 16 & 0xff) + 1, code >> 24))
    }
}

/// What an entry is told of how its threads share an m x n C: nothing but of a fitted one.
pub(super) fn code(variant: &Variant, m: u64, n: u64) -> u32 {
    if variant.is_fitted() { of(variant, m, n).code() } else { 0 }
}

/// Whether rows of A and B of an m x n C, and tiles' sides, are pieces of 16 bytes, of so many elements.
pub const fn are_pieces((tm, tn): (u32, u32), (m, n): (u32, u32), width: u32) -> bool {
    (tm | tn | m | n) % width == 0
}

/// Whether tiles of so many lines, elements of which `width` are 16 bytes, have every so many-th where they have no pieces: where they began one behind
/// the other, one in two would have the same bank.
pub const fn are_apart(lines: u32, width: u32) -> bool {
    lines % (4 * width) == 0
}

/// Elements of a stage's rows.
const fn stage_rows(threads: u32, (tm, tn): (u32, u32), steps: u32, gram: bool) -> u32 {
    threads * steps * if gram { tm } else { tm + tn }
}

/// Elements behind a stage's last row, which a tile reads and C does not have: whole pieces.
pub const fn slack((tm, tn): (u32, u32)) -> u32 {
    (if tm > tn { tm } else { tn }).next_multiple_of(4)
}

/// Elements of a stage of `threads` threads, with `steps` rows a thread where C is one tile.
pub const fn len(threads: u32, tile: (u32, u32), steps: u32, gram: bool) -> u32 {
    stage_rows(threads, tile, steps, gram) + slack(tile)
}

/// The most rows and columns of C: those of which there are no more tiles than a block has threads.
const fn most_side(threads: u32, tile: (u32, u32), gram: bool) -> u32 {
    let mut side = SKINNY as u32;
    while Fit::new(tile, (side, side), gram, (1, 1)).tiles > threads {
        side -= 1;
    }
    side
}

/// Elements of shared memory in which a block adds its groups' sums, so many rows of their tiles at once: the largest C, and behind it `rows` x TN for each thread.
const fn sums_len(threads: u32, (tm, tn): (u32, u32), gram: bool, rows: u32) -> u32 {
    let most = most_side(threads, (tm, tn), gram);
    shared_len(most.next_multiple_of(tm), most.next_multiple_of(tn), threads) + threads * rows * tn
}

/// Rows of their tiles of which groups' sums are added at once: as many as the stages' memory has room for, so that an SM has as many blocks as that allows.
pub const fn rows_at_once(threads: u32, (tm, tn): (u32, u32), steps: u32, gram: bool) -> u32 {
    let ring = STAGES * len(threads, (tm, tn), steps, gram);
    let mut rows = tm;
    while rows > 1 && sums_len(threads, (tm, tn), gram, rows) > ring {
        rows -= 1;
    }
    rows
}

/// The most rows and columns of C of a fitted entry.
pub(crate) const fn most_columns(variant: &Variant) -> u32 {
    most_side(variant.threads, (variant.rows, variant.t2), is_gram(variant))
}

const fn is_gram(variant: &Variant) -> bool {
    matches!(variant.kernel, Kernel::Gram)
}

/// m and n, taken for 1 where they are 0 and for the most that there are where they are more, which nobody launches.
fn sides(m: u64, n: u64) -> (u32, u32) {
    let side = |lines: u64| lines.clamp(1, SKINNY) as u32;
    (side(m), side(n))
}

/// A fitted entry's fit of an m x n C.
pub(crate) fn of(variant: &Variant, m: u64, n: u64) -> Fit {
    let (tile, shape, gram) = ((variant.rows, variant.t2), sides(m, n), is_gram(variant));
    let width = 16 / variant.dtype.bytes() as u32;
    let whole = Fit::new(tile, shape, gram, (1, 1));
    let columns = if gram { shape.0 } else { shape.0 + shape.1 };
    let all = stage_rows(variant.threads, tile, variant.t3, gram) / columns;
    let most = (variant.threads / whole.tiles).max(1);
    let dealt = if are_pieces(tile, shape, width) {
        (most, odd(all / most))
    } else {
        // Rows of any width make whole pieces together, of a multiple of `width` groups if of no other number of them.
        let sides = both(&whole, tile, shape, width);
        let groups = [most, most / 2 * 2, most / width * width];
        let differ = |at: usize| groups[at] > 0 && (at == 0 || groups[at] != groups[at - 1]);
        let fits = (0..groups.len()).filter(|at| differ(*at)).flat_map(|at| {
            let most = all / groups[at];
            (most.saturating_sub(ROWS_TRIED).max(1)..=most).rev().map(move |rows| (groups[at], rows))
        });
        let are_whole = |columns: u32, (groups, rows): (u32, u32)| groups * rows * columns % width == 0;
        let fits = fits.filter(|dealt| are_whole(shape.0, *dealt) && are_whole(shape.1, *dealt));
        let products = tile.0 * tile.1 * variant.dtype.fmas();
        fits.min_by_key(|dealt| time(&sides, products, whole.tiles, *dealt))
            .expect("of ten numbers of rows one is whole pieces")
    };
    Fit::new(tile, shape, gram, dealt)
}

/// Fewer rows a group than the most that are looked at.
const ROWS_TRIED: u32 = 9;

/// The odd number that is no larger; of 0 and 1 1.
const fn odd(x: u32) -> u32 {
    if x < 2 { 1 } else { x - (x + 1) % 2 }
}

/// What a stage takes, by its instructions, `products` of a row and tile among them, and the lanes that meet in a bank, for each 4096 of its rows.
fn time([a, b]: &[Side; 2], products: u32, tiles: u32, (groups, rows): (u32, u32)) -> u32 {
    /// Instructions of a stage beside its rows', and of a row beside products and loads.
    const STAGE: u32 = 150;
    const ROW: u32 = 6;
    let loads = a.lines * (1 + 2 * a.ways(tiles, rows)) + b.lines * (1 + 2 * b.ways(tiles, rows));
    let row = products + loads + ROW;
    (row * rows + STAGE) * 4096 / (groups * rows)
}

/// Instructions of a fitted entry's loads of a row of an m x n C, or as long as lanes take that meet in a bank: of pieces a load and an address, of neighbouring lines loads.
pub(crate) fn loads(variant: &Variant, m: u64, n: u64) -> f64 {
    /// What a load without an address takes, which is not all that the instruction is, and each other lane of its bank.
    const LOAD: f64 = 1.4;
    const MEETS: f64 = 1.5;
    let (tile, shape, width) = ((variant.rows, variant.t2), sides(m, n), 16 / variant.dtype.bytes() as u32);
    if are_pieces(tile, shape, width) {
        return f64::from(2 * (tile.0 + tile.1)) / f64::from(width);
    }
    let fit = of(variant, m, n);
    let side = |side: &Side| {
        let load = if are_apart(side.lines, width) { 2.0 } else { LOAD };
        f64::from(side.lines) * (load + MEETS * f64::from(side.ways(fit.tiles, fit.rows) - 1))
    };
    both(&fit, tile, shape, width).iter().map(side).sum()
}

/// How lanes read rows of one side of C that are no whole pieces.
struct Side {
    /// Elements from row to row, and lines of a tile.
    columns: u32,
    lines: u32,
    /// Banks, which are as wide as an element: 32 or 16.
    banks: u32,
    /// Where lines of a group's tiles begin from each other: a bit a bank.
    places: u32,
    /// Tiles of a group that begin in the first one's bank, and that one.
    within: u32,
}

/// Those of both sides.
fn both(fit: &Fit, (tm, tn): (u32, u32), (m, n): (u32, u32), width: u32) -> [Side; 2] {
    [Side::new(m, (fit.down, tm), width), Side::new(n, (fit.along, tn), width)]
}

impl Side {
    fn new(columns: u32, (tiles, lines): (u32, u32), width: u32) -> Side {
        let banks = 8 * width;
        let first = |tile: u32| tile * if are_apart(lines, width) { 1 } else { lines } % banks;
        let places = (0..tiles).fold(0, |all, tile| all | 1 << first(tile) | 1 << ((banks - first(tile)) % banks));
        let within = (0..tiles).filter(|tile| first(*tile) == 0).count() as u32;
        Side { columns, lines, banks, places, within }
    }

    /// How many lanes of as many as there are banks read one of them at once, or about that: of groups of so many tiles, whose rows begin so many rows
    /// from each other.
    fn ways(&self, tiles: u32, rows: u32) -> u32 {
        let apart = rows * self.columns;
        let others = 1..self.banks.div_ceil(tiles);
        // Banks are a power of two: a division for each would be felt in plans.
        self.within + others.map(|group| self.places >> ((group * apart) & (self.banks - 1)) & 1).sum::<u32>()
    }
}

/// The tiling: C is one tile. Shared memory is the ring's, and then that of the groups' sums.
pub(super) fn tiling(variant: &Variant, m: u64, n: u64) -> Tiling {
    let (threads, tile, steps, gram) = (variant.threads, (variant.rows, variant.t2), variant.t3, is_gram(variant));
    let ring = STAGES * len(threads, tile, steps, gram);
    let sums = sums_len(threads, tile, gram, rows_at_once(threads, tile, steps, gram));
    let shared_bytes = ring.max(sums) * variant.dtype.bytes() as u32;
    Tiling { x: 1, z: 1, shared_bytes, k_step: of(variant, m, n).steps, a_reads: 1, b_reads: 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VARIANTS;

    fn fitted() -> impl Iterator<Item = (&'static Variant, u32, bool)> {
        let all = VARIANTS.iter().filter(|v| v.is_fitted());
        all.map(|v| (v, v.most_columns().unwrap_or(0), is_gram(v)))
    }

    /// Every C up to the largest: tiles that cover it, a thread each, rows that fit a stage and are whole pieces, most threads with something to do.
    #[test]
    fn a_fit_has_all_of_c_and_no_more_threads_than_there_are() {
        for (v, most, gram) in fitted() {
            let (tile, width) = ((v.rows, v.t2), 16 / v.dtype.bytes() as u32);
            let room = len(v.threads, tile, v.t3, gram) - slack(tile);
            for (m, n) in (1..=most).flat_map(|m| (1..=most).map(move |n| (m, n))).filter(|(m, n)| !gram || m == n) {
                let f = of(v, m.into(), n.into());
                let case = std::format!("{} {m} x {n}: {f:?}", v.entry);
                assert!(f.down * tile.0 >= m && (f.down - 1) * tile.0 < m, "{case}");
                assert!(f.along * tile.1 >= n && (f.along - 1) * tile.1 < n, "{case}");
                assert_eq!(f.tiles, if gram { f.down * (f.down + 1) / 2 } else { f.down * f.along }, "{case}");
                assert!(f.tiles * f.groups <= v.threads && f.groups > 0 && f.rows > 0, "{case}");
                assert_eq!((Fit::told(f.code() | 0x9f, tile, (m, n), gram), f.code() & 0xffff), (f, 0));
                let columns = if gram { m } else { m + n };
                assert!(f.steps == f.groups * f.rows && f.steps * columns <= room, "{case}");
                assert!(f.steps * m % width == 0 && f.steps * n % width == 0, "{case}");
                // Three stages past the last step of k are below 2³², and the groups' sums fit behind C's.
                assert!(
                    u64::from(STAGES * f.steps) + crate::choose::LARGEST_DIMENSION <= u64::from(u32::MAX),
                    "{case}"
                );
                let at_once = rows_at_once(v.threads, tile, v.t3, gram);
                let sums =
                    f.groups * f.tiles * at_once * tile.1 + shared_len(f.down * tile.0, f.along * tile.1, v.threads);
                let shared_len = super::super::tiling(v, m.into(), n.into()).shared_bytes / v.dtype.bytes() as u32;
                assert!(sums <= shared_len && STAGES * (room + slack(tile)) <= shared_len, "{case}");
                // What a tile reads of the last row of all, by pieces of 16 bytes or one by one, ends in the slack.
                assert!(f.down * tile.0 - m < slack(tile) && f.along * tile.1 - n < slack(tile), "{case}");
                // As many groups as there can be, but for whole pieces.
                let most = v.threads / f.tiles;
                assert!(f.groups == most || !are_pieces(tile, (m, n), width) && f.groups + width > most, "{case}");
                assert!(!are_pieces(tile, (m, n), width) || f.rows % 2 == 1, "{case}");
            }
        }
        assert_eq!(fitted().count(), 23);
    }

    /// Of 33 columns in tiles of 11, three begin in banks 0, 11 and 22: groups 6 rows apart, 198 elements or 6 banks, meet in none of four; 8 rows apart, 8 banks, the fifth
    /// reads the first's. Of tiles of 8 the fifth does. Of 40 columns rows 4 apart all begin in one bank.
    #[test]
    fn lanes_that_meet_in_a_bank_are_counted() {
        let of_33 = Side::new(33, (3, 11), 4);
        assert_eq!((of_33.places, of_33.within), (1 | 1 << 11 | 1 << 22 | 1 << 21 | 1 << 10, 1));
        assert_eq!([(9, 6), (6, 8), (6, 4)].map(|(tiles, rows)| of_33.ways(tiles, rows)), [1, 2, 1]);
        let of_8 = Side::new(40, (5, 8), 4);
        assert_eq!((of_8.within, of_8.ways(25, 7)), (2, 3));
        assert_eq!(Side::new(40, (4, 11), 4).ways(16, 4), 2);
        // Of c64 16 banks; tiles of 8 lines have every so many-th.
        assert_eq!((Side::new(17, (3, 8), 2).places, Side::new(17, (4, 5), 2).within), (7 | 3 << 14, 1));
    }

    /// 22 loads of 33 x 31; of 36 x 36 by pieces of 12 six and as many addresses; of tiles of 16 in f32 lines have addresses.
    #[test]
    fn loads_of_a_row_are_counted() {
        assert_eq!(loads(entry("stsmttsm_fitted_11x11_u2_t128"), 33, 31), 22.0 * 1.4);
        assert_eq!(loads(entry("stsmttsm_fitted_12x12_u3_t128"), 36, 36), 12.0);
        assert!(loads(entry("stsmttsm_fitted_16x8_u3_t128"), 31, 31) >= 16.0 * 2.0 + 8.0 * 1.4);
    }

    /// All of 11 x 11 sums are 61952 bytes and C's 17428, more than the ring's 67728: eight rows of eleven at once. Those of 4 x 4 go together.
    #[test]
    fn sums_take_no_more_memory_than_stages() {
        assert_eq!(rows_at_once(128, (11, 11), 2, false), 8);
        assert_eq!(rows_at_once(128, (4, 4), 4, false), 4);
        for (v, ..) in fitted() {
            let (tile, gram) = ((v.rows, v.t2), is_gram(v));
            let bytes = super::super::tiling(v, 3, 3).shared_bytes / v.dtype.bytes() as u32;
            assert_eq!(bytes, STAGES * len(v.threads, tile, v.t3, gram), "{}", v.entry);
        }
    }

    fn entry(entry: &str) -> &'static Variant {
        VARIANTS.iter().find(|v| v.entry == entry).expect("an entry")
    }

    /// Of 33 x 31 3 x 3 tiles of 11 x 11; of a Gram matrix of 64 columns 36 of 64, three groups of 128 threads.
    #[test]
    fn threads_are_dealt_to_tiles() {
        let wanted = Fit { down: 3, along: 3, tiles: 9, groups: 14, rows: 6, steps: 84 };
        assert_eq!(of(entry("stsmttsm_fitted_11x11_u2_t128"), 33, 31), wanted);
        let wanted = Fit { down: 8, along: 8, tiles: 36, groups: 3, rows: 21, steps: 63 };
        assert_eq!(of(entry("sgram_fitted_8x8_u4_t128"), 64, 64), wanted);
    }
}
