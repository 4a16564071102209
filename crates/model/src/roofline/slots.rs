//! What the parts of k cost beside their products: their slots, and who adds them.

use super::Constants;
use crate::launch::Tiling;
use crate::launch::reduced::{JOINED, joined_s, last_block_s, most_joined, most_last_block_splits};
use crate::{Kernel, Machine, Variant};

/// Times of slots and of what adds them.
#[derive(Clone, Copy)]
pub(super) struct Slots {
    /// Time of a slot of each element of C, s.
    slot_s: f64,
    /// What last blocks take to add no slot, and one, s; and most parts for which they do.
    last_block_s: (f64, f64),
    last_block_splits: u32,
    /// What another launch takes, which last blocks at most take as long as.
    launch_s: f64,
    /// Where blocks join the parts of their tile.
    joined: Joined,
}

/// Times where the last block of each tile joins its parts, whatever it takes.
#[derive(Clone, Copy)]
struct Joined {
    /// Most parts for which they do; 1 where none does.
    splits: u32,
    /// What it takes to join no slot, and each, s.
    none_s: f64,
    slot_s: f64,
}

impl Joined {
    /// Of an entry and a C that takes so long to be written and read. Slots are of whole tiles; of TSM2R's, which may have 64 columns for C's one, that
    /// tells.
    fn new(variant: &Variant, tiling: &Tiling, c_s: f64, machine: &Machine) -> Joined {
        let tile_bytes = f64::from(variant.rows * variant.t2) * variant.dtype.bytes() as f64;
        let slot_bytes = tiling.of_c() as f64 * tile_bytes;
        let moved_s = JOINED
            * match variant.kernel {
                Kernel::Ring => slot_bytes / machine.write_bytes_per_s + slot_bytes / machine.read_bytes_per_s,
                _ => c_s,
            };
        let none_s = joined_s(machine, variant, 0);
        let slot_s = moved_s + joined_s(machine, variant, 1) - none_s;
        Joined { splits: most_joined(variant, tiling), none_s, slot_s }
    }
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
        let (last_block_splits, last_block_s) = if variant.is_reduced() {
            let adding_s = |splits| last_block_s(machine, tiling, c_bytes, splits);
            (most_last_block_splits(tiling, c_bytes as u64), (adding_s(0), adding_s(1)))
        } else {
            (1, (0.0, 0.0))
        };
        let slot_s = constants.slot_cost * (written_s + read_s);
        let joined = Joined::new(variant, tiling, written_s + read_s, machine);
        Slots { slot_s, last_block_s, last_block_splits, launch_s: machine.launch_s, joined }
    }

    /// Of so many parts, s.
    pub(super) fn seconds(&self, splits: u32) -> f64 {
        if splits <= 1 {
            return 0.0;
        }
        if splits <= self.joined.splits {
            return self.joined.none_s + self.joined.slot_s * f64::from(splits);
        }
        let (none_s, one_s) = self.last_block_s;
        let last_block_s = none_s + (one_s - none_s) * f64::from(splits);
        let is_launched = splits > self.last_block_splits || last_block_s > self.launch_s;
        self.slot_s * f64::from(splits) + if is_launched { self.launch_s } else { last_block_s }
    }

    /// What neither so many parts nor more take less than, s: another launch may add more of them sooner than last blocks join fewer.
    pub(super) fn least_from_s(&self, splits: u32) -> f64 {
        let seconds = self.seconds(splits);
        let beyond = self.joined.splits.saturating_add(1);
        if splits > 1 && splits < beyond { seconds.min(self.seconds(beyond)) } else { seconds }
    }
}
