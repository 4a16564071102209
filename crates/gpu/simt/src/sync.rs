//! What orders the lanes of a warp: synchronisations, of all of them or of some.

/// The bits of a mask, ascending.
#[derive(Clone, Copy)]
pub(crate) struct Lanes(pub(crate) u32);

impl Iterator for Lanes {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        if self.0 == 0 {
            return None;
        }
        let lane = self.0.trailing_zeros();
        self.0 &= self.0 - 1;
        Some(lane)
    }
}

/// What orders the lanes of a warp among each other.
pub(crate) struct WarpSync {
    /// Counts synchronisations and fences.
    pub(crate) stamp: u32,
    /// The last synchronisation of all lanes.
    pub(crate) full: u32,
    /// `met[j][i]`: accesses of lane i with a stamp below are ordered before lane j's next. Absent as long as all
    /// synchronisations are of all lanes.
    met: Option<Box<[[u32; 32]; 32]>>,
}

impl WarpSync {
    pub(crate) fn new() -> Self {
        WarpSync { stamp: 1, full: 0, met: None }
    }

    /// Whether an access by `earlier` with this stamp is ordered before one by `lane` now.
    pub(crate) fn orders(&self, earlier: u32, lane: u32, stamp: u32) -> bool {
        stamp < self.full || self.met.as_ref().is_some_and(|met| stamp < met[lane as usize][earlier as usize])
    }

    /// The lanes of `mask` meet; `all` are those that the warp started with.
    pub(crate) fn meet(&mut self, mask: u32, all: u32) {
        self.stamp += 1;
        if mask == all {
            self.full = self.stamp;
            return;
        }
        let met = self.met.get_or_insert_with(|| Box::new([[0; 32]; 32]));
        let mut known = [0; 32];
        for lane in Lanes(mask) {
            for (known, &met) in known.iter_mut().zip(&met[lane as usize]) {
                *known = met.max(*known);
            }
        }
        for lane in Lanes(mask) {
            known[lane as usize] = self.stamp;
        }
        for lane in Lanes(mask) {
            met[lane as usize] = known;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partial_synchronisations_order_the_lanes_that_met_and_those_that_they_had_met() {
        let mut sync = WarpSync::new();
        let stamp = sync.stamp;
        sync.meet(0b0011, u32::MAX);
        assert!(sync.orders(0, 1, stamp) && sync.orders(1, 0, stamp) && !sync.orders(0, 2, stamp));
        sync.meet(0b0110, u32::MAX);
        assert!(sync.orders(0, 2, stamp), "0 met 1, which met 2");
        assert!(!sync.orders(2, 0, stamp), "0 has not met 2's past");
        assert!(!sync.orders(3, 0, stamp));
        sync.meet(u32::MAX, u32::MAX);
        assert!(sync.orders(3, 0, stamp));
        assert!(!sync.orders(3, 0, sync.stamp));
    }
}
