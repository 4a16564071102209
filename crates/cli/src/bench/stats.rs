//! What is said of a series of times: its median, an interval of that, its least.

use super::random::Random;
use crate::say::float;

/// Resamplings of the bootstrap.
const RESAMPLINGS: usize = 1000;
/// Shares of the resampled medians below and above the 95% interval.
const TAIL: f64 = 0.025;

/// Of a series of times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// How many there are.
    pub samples: usize,
    /// Half are less.
    pub median: f64,
    /// The 95% interval of the median, by bootstrap.
    pub low: f64,
    pub high: f64,
    pub min: f64,
}

impl Summary {
    /// Of at least one time. The seed decides the resampling: the same series and seed give the same interval.
    pub fn of(times: &[f64], seed: u64) -> Option<Self> {
        let mut sorted = times.to_vec();
        sorted.sort_by(f64::total_cmp);
        let min = *sorted.first()?;
        let mut random = Random::new(seed);
        let mut medians: Vec<f64> = (0..RESAMPLINGS)
            .map(|_| {
                let mut resampled: Vec<f64> = times.iter().map(|_| sorted[random.below(sorted.len())]).collect();
                resampled.sort_by(f64::total_cmp);
                middle(&resampled)
            })
            .collect();
        medians.sort_by(f64::total_cmp);
        let (low, high) = (quantile(&medians, TAIL), quantile(&medians, 1.0 - TAIL));
        Some(Self { samples: times.len(), median: middle(&sorted), low, high, min })
    }
}

/// The median of a sorted series: the middle one, or the mean of both middle ones.
fn middle(sorted: &[f64]) -> f64 {
    let len = sorted.len();
    f64::midpoint(sorted[(len - 1) / 2], sorted[len / 2])
}

/// The least element of a sorted series that at least `share` of it does not exceed.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let least = (1..sorted.len()).find(|&count| float(count) >= share * float(sorted.len()));
    sorted[least.unwrap_or(sorted.len()) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_least_are_what_a_hand_finds() {
        let of = |times: &[f64]| Summary::of(times, 1).map(|s| (s.samples, s.median, s.min));
        assert_eq!(of(&[3.0, 1.0, 2.0]), Some((3, 2.0, 1.0)));
        assert_eq!(of(&[4.0, 1.0, 2.0, 10.0]), Some((4, 3.0, 1.0)));
        assert_eq!(of(&[7.0]), Some((1, 7.0, 7.0)));
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn quantiles_are_elements() {
        let series = [1.0, 2.0, 3.0, 4.0];
        assert_eq!([0.0, 0.25, 0.26, 0.5, 0.975, 1.0].map(|s| quantile(&series, s)), [1.0, 1.0, 2.0, 2.0, 4.0, 4.0]);
    }

    #[test]
    fn equal_times_leave_no_doubt() {
        let s = Summary::of(&[5.0; 30], 9).expect("times");
        assert_eq!((s.low, s.median, s.high), (5.0, 5.0, 5.0));
    }

    /// The median of 3 of {1, 2, 3} drawn with replacement is 1 in 7 of 27 cases, 2 in 13, 3 in 7: each tail of 2.5% lies
    /// within the ends.
    #[test]
    fn intervals_follow_from_all_resamplings() {
        let s = Summary::of(&[1.0, 2.0, 3.0], 3).expect("times");
        assert_eq!((s.low, s.high), (1.0, 3.0));
    }

    /// Ranks of the interval of a median of n are near n/2 ± 0.98 √n, whatever the distribution.
    #[test]
    fn intervals_have_the_width_that_theory_gives() {
        let times: Vec<f64> = (0..100).map(f64::from).collect();
        let s = Summary::of(&times, 7).expect("times");
        assert_eq!(s.median, 49.5);
        assert!((37.0..=43.0).contains(&s.low) && (56.0..=62.0).contains(&s.high), "{s:?}");
        assert_eq!(Summary::of(&times, 7), Some(s));
        assert!((0..20).any(|seed| Summary::of(&times, seed) != Some(s)));
    }
}
