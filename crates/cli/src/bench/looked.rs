//! Which of a C is looked at: all of a small one; of a large one the sampled elements, and what lies beside their lines.

use std::ops::Range;

use super::job::Job;
use crate::made_up::{spread, wide};

/// Of a gap so many elements at either end are looked at, if not all.
const EDGE: u64 = 1024;
/// Stretches that are no farther apart than so many reals are one: to fetch what is between them costs less than a copy.
const APART: u64 = 1024;
/// Tiles that kernels cut m or n into have powers of two of rows or columns, from and to these.
const TILES: [u32; 2] = [4, 10];

/// The lines of a member's C, columns or rows, and what is not C's between them and behind the last.
#[derive(Clone, Copy, Debug)]
pub struct Lines {
    /// Reals an element.
    reals: u64,
    /// Elements from one line to the next.
    ld: u64,
    /// Elements of a line.
    length: u64,
    lines: u64,
    /// Reals of all, with what is behind the last line.
    end: u64,
}

impl Lines {
    /// Of a job's C, behind whose first element are `end` reals that nobody else has.
    pub fn new(job: &Job, end: u64) -> Self {
        let p = job.problem;
        let by_columns = p.c.row == 1 && p.c.col >= p.m;
        let (ld, length, lines) = if by_columns { (p.c.col, p.m, p.n) } else { (p.c.row, p.n, p.m) };
        Self { reals: job.reals, ld: ld.max(1), length, lines, end }
    }

    /// Where gaps begin, from the first element on: behind the last where lines have none between them.
    pub fn first_gap(&self) -> u64 {
        self.reals * if self.ld == self.length { self.length * self.lines } else { self.length }
    }

    /// Whether the real is none of C's.
    pub fn is_gap(&self, at: u64) -> bool {
        let (line, along) = (at / self.reals / self.ld, at / self.reals % self.ld);
        along >= self.length || line >= self.lines
    }

    /// Stretches in order, in reals: the elements at these places (that of the real part), the gaps before and behind their
    /// lines, and what is behind the last line. Of long gaps the ends.
    pub fn stretches(&self, places: impl Iterator<Item = u64>) -> Vec<Range<u64>> {
        let mut all = self.gap(self.lines.saturating_sub(1));
        let mut lines = Vec::new();
        for at in places {
            all.push(at..at + self.reals);
            lines.push(at / self.reals / self.ld);
        }
        lines.sort_unstable();
        lines.dedup();
        for line in lines {
            all.extend(line.checked_sub(1).map(|before| self.gap(before)).into_iter().flatten());
            all.extend(self.gap(line));
        }
        joined(all)
    }

    /// Both ends of the gap behind a line.
    fn gap(&self, line: u64) -> Vec<Range<u64>> {
        let start = self.reals * (line * self.ld + self.length);
        let end = if line + 1 >= self.lines { self.end } else { self.end.min(self.reals * (line + 1) * self.ld) };
        let edge = self.reals * EDGE;
        vec![start..end.min(start + edge), start.max(end.saturating_sub(edge))..end]
    }
}

/// In order, without empty ones, and those that touch or nearly do as one.
fn joined(mut all: Vec<Range<u64>>) -> Vec<Range<u64>> {
    all.retain(|stretch| !stretch.is_empty());
    all.sort_unstable_by_key(|stretch| stretch.start);
    let mut joined: Vec<Range<u64>> = Vec::with_capacity(all.len());
    for stretch in all {
        match joined.last_mut() {
            Some(last) if stretch.start <= last.end + APART => last.end = last.end.max(stretch.end),
            _ => joined.push(stretch),
        }
    }
    joined
}

/// At most `most` indices below `length`, in order: the first and the last, for tiles of every length both sides of where
/// the last of them begins, and others spread between.
pub fn sampled(length: u64, most: u64) -> Vec<u64> {
    if length <= most {
        return (0..length).collect();
    }
    let begins = (TILES[0]..=TILES[1]).map(|log| (length - 1) >> log << log);
    let mut all: Vec<u64> = begins.filter(|&begin| begin > 0).flat_map(|begin| [begin - 1, begin]).collect();
    all.extend([0, length - 1]);
    all.sort_unstable();
    all.dedup();
    all.extend(spread(length, most.saturating_sub(wide(all.len()))));
    all.sort_unstable();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Dtype, Problem, Strides};

    #[test]
    fn rows_on_both_sides_of_every_last_tile_are_sampled() {
        for length in [1, 31, 32, 33, 70, 1000, 1024, 1025, 20480, 99_999_999, 536_870_912] {
            let all = sampled(length, 32);
            assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "{length}: {all:?}");
            assert_eq!((all[0], all[all.len() - 1]), (0, length - 1));
            assert!(all.len() >= 16.min(length as usize) && all.len() <= 32, "{length}: {all:?}");
            for tile in [16, 32, 64, 128, 256, 512, 1024] {
                let begin = (length - 1) / tile * tile;
                assert!(all.contains(&begin), "{length} in tiles of {tile}: {all:?}");
                assert!(begin == 0 || all.contains(&(begin - 1)), "{length} in tiles of {tile}: {all:?}");
            }
        }
        assert!(sampled(0, 32).is_empty());
        // Not near the end alone.
        assert!(sampled(99_999_999, 32).iter().filter(|row| (1_000_000..99_000_000).contains(*row)).count() >= 14);
    }

    #[test]
    fn stretches_are_the_elements_and_the_ends_of_the_gaps_beside_them() {
        // 3 rows of 4 elements, 10 000 apart, and 500 behind the last.
        let problem = Problem { c: Strides::row_major(10_000), ..Problem::column_major(Dtype::F64, 3, 4, 2) };
        let lines = Lines::new(&Job::single(problem), 20_504);
        let of_first = lines.stretches([0].into_iter());
        assert_eq!(of_first, [0..1028, 8976..10_000, 20_004..20_504]);
        let of_second = lines.stretches([10_002].into_iter());
        assert_eq!(of_second, [4..1028, 8976..11_028, 18_976..20_504]);
        assert_eq!(lines.first_gap(), 4);
        // No more of 10^8 rows than of these.
        let problem = Problem { c: Strides::row_major(10_000), m: 100_000_000, ..problem };
        let lines = Lines::new(&Job::single(problem), 1_000_000_000_000);
        let of_middle = lines.stretches([500_000_000_000].into_iter());
        assert_eq!(
            of_middle.iter().map(|stretch| stretch.end - stretch.start).sum::<u64>(),
            2 * 1024 + 2 * 1024 + 4 + 2048
        );
    }

    #[test]
    fn complex_elements_are_two_reals() {
        let job = Job { reals: 2, ..Job::single(Problem::column_major(Dtype::F64, 5000, 2, 2)) };
        let lines = Lines::new(&job, 20_064);
        assert_eq!(lines.stretches([8, 19_000].into_iter()), [8..10, 19_000..20_064]);
        assert_eq!(lines.first_gap(), 20_000);
        assert!(!lines.is_gap(19_999) && lines.is_gap(20_000));
    }
}
