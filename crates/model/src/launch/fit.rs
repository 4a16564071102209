//! How the threads of a block share a C of as many tiles as it has, a tile a thread, in groups along k: `tsmttsm_fitted` and `gram_fitted`.
//!
//! # Lines of a tile
//! Where rows of A and B are whole pieces of 16 bytes, and tiles' sides too, tile i of a side has every so many-th piece of it from piece i on, so that neighbours read
//! neighbours. Where they are not, it has neighbouring lines, which a thread loads one by one at fixed distances from one address: tiles of 5, 7, 9 and 11 lines begin in
//! as many banks as there are tiles, and end near the last line of more widths than those of 4, 8 and 12. Tiles that would begin in two banks have every so many-th line
//! ([`are_apart`]).
//! # Rows of a group
//! Where groups' rows begin decides which banks their lanes read. Of whole pieces an odd number of rows a group makes as many places as there can be; else the most rows are
//! taken with which few groups of a warp meet, as far as one can count that here (`ways`).

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

    /// The fit of an m x n C that a kernel of tiles of TM x TN was told of.
    pub const fn told(code: u32, tile: (u32, u32), shape: (u32, u32), gram: bool) -> Fit {
        Fit::new(tile, shape, gram, ((code >> 16 & 0xff) + 1, code >> 24))
    }
}

/// What an entry is told of how its threads share an m x n C: nothing but of a fitted one.
pub fn code(variant: &Variant, m: u64, n: u64) -> u32 {
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

/// Elements of shared memory in which a block adds its groups' sums, so many rows of their tiles at once: behind the largest C one for each thread's.
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

/// The most of a fitted entry.
pub(crate) const fn most_columns(variant: &Variant) -> u32 {
    most_side(variant.threads, (variant.rows, variant.t2), is_gram(variant))
}

const fn is_gram(variant: &Variant) -> bool {
    matches!(variant.kernel, Kernel::Gram)
}

/// Those of an m x n C, which is as large as such entries serve.
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
        let groups = [most, most / 2 * 2, most / width * width];
        let fits = groups.into_iter().filter(|groups| *groups > 0).flat_map(|groups| {
            let most = all / groups;
            (most.saturating_sub(ROWS_TRIED).max(1)..=most).rev().map(move |rows| (groups, rows))
        });
        let fits =
            fits.filter(|(groups, rows)| groups * rows * shape.0 % width == 0 && groups * rows * shape.1 % width == 0);
        fits.min_by_key(|dealt| time(&whole, tile, shape, *dealt, width)).unwrap_or((width, 1))
    };
    Fit::new(tile, shape, gram, dealt)
}

/// Fewer rows a group than the most that are looked at.
const ROWS_TRIED: u32 = 9;

/// The odd number that is no larger; of 0 and 1 1.
const fn odd(x: u32) -> u32 {
    if x < 2 { 1 } else { x - (x + 1) % 2 }
}

/// What a stage takes, by its instructions and the lanes that meet in a bank, for each 4096 of its rows.
fn time(whole: &Fit, tile: (u32, u32), shape: (u32, u32), (groups, rows): (u32, u32), width: u32) -> u32 {
    /// Instructions of a stage beside its rows', and of a row beside products and loads.
    const STAGE: u32 = 150;
    const ROW: u32 = 6;
    let (tm, tn) = tile;
    let (a, b) = both_ways(whole, tile, shape, rows, width);
    let row = tm * tn + tm + tn + ROW + 2 * (tm * a + tn * b);
    (row * rows + STAGE) * 4096 / (groups * rows)
}

/// [`ways`] of both sides.
fn both_ways(whole: &Fit, (tm, tn): (u32, u32), (m, n): (u32, u32), rows: u32, width: u32) -> (u32, u32) {
    let apart = |lines: u32| if are_apart(lines, width) { 1 } else { lines };
    let of = |columns: u32, tiles: u32, lines: u32| ways(8 * width, whole.tiles, rows * columns, (tiles, apart(lines)));
    (of(m, whole.down, tm), of(n, whole.along, tn))
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
    let (a, b) = both_ways(&fit, tile, shape, fit.rows, width);
    let side = |lines: u32, ways: u32| {
        let load = if are_apart(lines, width) { 2.0 } else { LOAD };
        f64::from(lines) * (load + MEETS * f64::from(ways - 1))
    };
    side(tile.0, a) + side(tile.1, b)
}

/// How many lanes of as many as there are `banks`, which are as wide as an element, read one of them at once, or about that: of groups whose rows begin `apart` elements from
/// each other, with `tiles` tiles each, of which so many are different on this side, and begin so many `lines` from each other.
fn ways(banks: u32, tiles: u32, apart: u32, (different, lines): (u32, u32)) -> u32 {
    let at = |tile: u32| 1u32 << (tile * lines % banks);
    // Where lines of a group's tiles begin from each other, and itself.
    let places =
        (0..different).fold(0, |places, tile| places | at(tile) | 1 << ((banks - tile * lines % banks) % banks));
    let within = (1..different).filter(|tile| tile * lines % banks == 0).count();
    let groups = (1..banks.div_ceil(tiles)).filter(|group| places >> (group * apart % banks) & 1 == 1).count();
    1 + (within + groups) as u32
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
                assert_eq!(Fit::told(f.code() | 0x9f, tile, (m, n), gram), f);
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
