//! What the parts of k cost beside their products: their slots, and who adds them.

use super::Constants;
use crate::launch::Tiling;
use crate::launch::reduced::{JOINED, joined_s, last_block_s, most_last_block_splits};
use crate::{Machine, Variant};

/// Times of slots and of what adds them.
#[derive(Clone, Copy)]
pub(super) struct Slots {
    /// Time of a slot of each element of C, s.
    slot_s: f64,
    /// What last blocks take to add no slot, and one, s; and most parts for which they do.
    last_block_s: (f64, f64),
    last_block_splits: u32,
    /// What another launch takes, which last blocks at most take as long as; infinity where blocks join the parts of their tile, whatever it takes.
    launch_s: f64,
}

impl Slots {
    /// Of an entry and a C that takes so long to be written, and read.
    pub(super) fn new(
        variant: &Variant,
        tiling: &Tiling,
        (c_bytes, written_s, read_s): (f64, f64, f64),
        machine: &Machine,
        constants: &Constants,
    ) -> Self {
        if variant.joins() {
            return Slots {
                slot_s: JOINED * (written_s + read_s),
                last_block_s: (joined_s(machine, variant, 0), joined_s(machine, variant, 1)),
                last_block_splits: u32::MAX,
                launch_s: f64::INFINITY,
            };
        }
        let (last_block_splits, last_block_s) = if variant.is_reduced() {
            let adding_s = |splits| last_block_s(machine, tiling, c_bytes, splits);
            (most_last_block_splits(tiling, c_bytes as u64), (adding_s(0), adding_s(1)))
        } else {
            (1, (0.0, 0.0))
        };
        let slot_s = constants.slot_cost * (written_s + read_s);
        Slots { slot_s, last_block_s, last_block_splits, launch_s: machine.launch_s }
    }

    /// Of so many parts, s.
    pub(super) fn seconds(&self, splits: u32) -> f64 {
        if splits <= 1 {
            return 0.0;
        }
        let (none_s, one_s) = self.last_block_s;
        let last_block_s = none_s + (one_s - none_s) * f64::from(splits);
        let is_launched = splits > self.last_block_splits || last_block_s > self.launch_s;
        self.slot_s * f64::from(splits) + if is_launched { self.launch_s } else { last_block_s }
    }
}
