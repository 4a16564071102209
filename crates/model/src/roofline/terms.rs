//! What a time consists of.

use super::cubes::root_of_cubes;

/// Blocks that run at once.
pub(super) struct Wave {
    /// What bandwidth, latency, delivery and arithmetic alone would take, k whole, s.
    pub(super) terms_s: [f64; 4],
    /// The share by which the SMs with one block more than the others lengthen it.
    pub(super) uneven: f64,
}

impl Wave {
    pub(super) fn seconds(&self) -> f64 {
        root_of_cubes(&self.terms_s) * (1.0 + self.uneven)
    }

    /// What [`Wave::seconds`] is not below, sooner found.
    pub(super) fn least_s(&self) -> f64 {
        self.terms_s.iter().fold(0.0_f64, |a, &b| a.max(b)) * (1.0 + self.uneven)
    }
}

/// What each resource alone would take for all waves of an entry, and what comes on top.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// The bytes at the memory's rate, s.
    pub bandwidth_s: f64,
    /// The same bytes at the rate that Little's law gives those in flight, s.
    pub latency_s: f64,
    /// B from shared memory or cache to every lane, s.
    pub delivery_s: f64,
    /// The multiply-adds, s.
    pub arithmetic_s: f64,
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
        ];
        others.into_iter().fold(("the bandwidth", self.bandwidth_s), |a, b| if b.1 > a.1 { b } else { a })
    }
}
