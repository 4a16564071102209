//! What a time consists of.

use super::norm::{least_of_cubes, least_of_fourths, root_of_cubes, root_of_fourths, sum_of_fourths};

/// What each resource alone would take, s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Alone {
    pub(super) bandwidth_s: f64,
    pub(super) latency_s: f64,
    pub(super) delivery_s: f64,
    pub(super) arithmetic_s: f64,
    pub(super) issue_s: f64,
}

impl Alone {
    /// No blocks.
    pub(super) const NOTHING: Alone =
        Alone { bandwidth_s: 0.0, latency_s: 0.0, delivery_s: 0.0, arithmetic_s: 0.0, issue_s: 0.0 };

    /// (memory⁴ + delivery⁴ + max(arithmetic, issue)⁴)^¼ with memory = (bandwidth³ + latency³)^⅓, s.
    ///
    /// Bytes in flight draw bandwidth · x / (1 + x³)^⅓ where x times what Little's law needs are: in proportion while
    /// they are few, all of it when they are many. What is left overlaps, and alike terms get in each other's way.
    pub(super) fn seconds(&self) -> f64 {
        let memory_s = root_of_cubes(self.bandwidth_s, self.latency_s);
        root_of_fourths([memory_s, self.delivery_s, self.arithmetic_s.max(self.issue_s)])
    }

    /// What [`Alone::seconds`] is not below, sooner found.
    pub(super) fn least_s(&self) -> f64 {
        let memory_s = least_of_cubes(self.bandwidth_s, self.latency_s);
        least_of_fourths([memory_s, self.delivery_s, self.arithmetic_s.max(self.issue_s)])
    }

    /// Whether [`Alone::seconds`] is more, found without a fourth root; not always, but wherever it says so.
    pub(super) fn is_above(&self, seconds: f64) -> bool {
        let memory_s = least_of_cubes(self.bandwidth_s, self.latency_s);
        let terms = [memory_s, self.delivery_s, self.arithmetic_s.max(self.issue_s)];
        seconds < 0.0 || sum_of_fourths(terms) > sum_of_fourths([seconds, 0.0, 0.0])
    }
}

/// What each resource alone would take for all waves of an entry, and what comes on top.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// The bytes at the memory's rate, s; those of a ring at its own, which was measured to be 1.009 of that.
    pub bandwidth_s: f64,
    /// The same bytes at the rate that Little's law gives those in flight, s.
    pub latency_s: f64,
    /// B from shared memory or cache to every lane, s.
    pub delivery_s: f64,
    /// The multiply-adds on their units, s.
    pub arithmetic_s: f64,
    /// All instructions at the rate of the schedulers, s.
    pub issue_s: f64,
    /// C, the slots, the launches, and blocks that begin and end, s.
    pub overhead_s: f64,
}

impl Terms {
    /// The resource that alone would take longest, in words, and its time.
    pub fn largest(&self) -> (&'static str, f64) {
        let others = [
            ("what is in flight against the latency", self.latency_s),
            ("handing B to the lanes", self.delivery_s),
            ("the multiply-adds", self.arithmetic_s),
            ("issuing instructions", self.issue_s),
        ];
        others.into_iter().fold(("the bandwidth", self.bandwidth_s), |a, b| if b.1 > a.1 { b } else { a })
    }
}
