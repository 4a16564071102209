//! Why an entry cannot compute a batch.

use super::{BatchedProblem, LARGEST, aggregated, bulk, flat, fragments, narrow, warps};
use crate::launch::batched::{Laid, Tile};
use crate::occupancy::residency;
use crate::refusal::too_large;
use crate::variants::batched::{Batched, Design};
use crate::{Machine, Refusal};

/// Every reason why an entry cannot compute a batch.
pub(super) fn reasons(variant: &Batched, p: &BatchedProblem, machine: &Machine) -> [Option<Refusal>; 9] {
    let [m, n, k] = [("m", p.m), ("n", p.n), ("k", p.k)].map(|(name, value)| {
        let most = if name == "k" { variant.tn } else { variant.tm };
        if value > LARGEST {
            Some(Refusal::LargerThanBatches { name, value })
        } else if value == 0 && name != "k" {
            Some(Refusal::SmallerThanTile { name, value, least: 1 })
        } else {
            (variant.design().is_by_warps() && value > u64::from(most)).then_some(Refusal::LargerThanFragments {
                name,
                value,
                most,
            })
        }
    });
    let too_old = (machine.compute_capability < variant.since()).then_some(Refusal::TooOld { needs: variant.since() });
    if p.m.max(p.n).max(p.k) > LARGEST || p.m.min(p.n) == 0 {
        return [m, n, k, too_old, None, None, None, None, None];
    }
    if variant.design().is_by_runs() {
        let [small, runs, pieces] = bulk::reasons(variant, p);
        if small.is_some() || runs.is_some() || pieces.is_some() {
            return [m, n, k, too_old, small, runs, pieces, None, None];
        }
    }
    let (owners, registers) = (variant.owners(narrow(p.m), narrow(p.n), narrow(p.k)), variant.registers(machine));
    let (least_threads, shared_bytes) = least_block(variant, p, owners);
    let [shared, registers, threads] =
        too_large(&residency(machine, least_threads, registers, shared_bytes), registers, shared_bytes, machine);
    let needed = if variant.design().is_by_runs() { least_threads } else { owners };
    let threads = if needed > variant.threads { Some(Refusal::Threads { threads: needed }) } else { threads };
    let is_packed = || p.sides(owners).iter().all(Laid::is_packed);
    let not_packed =
        (variant.is_packed() && !variant.design().is_by_runs() && !is_packed()).then_some(Refusal::NotPacked);
    let is_flat = || p.sides(owners).iter().all(Laid::is_flat);
    let gaps = (variant.design() == Design::Flat && !is_flat()).then_some(Refusal::Gaps);
    [m, n, k, too_old, not_packed, gaps, shared, registers, threads]
}

/// Threads and bytes of shared memory of the smallest block in which an entry computes a batch.
fn least_block(variant: &Batched, p: &BatchedProblem, owners: u32) -> (u32, u32) {
    let bytes = narrow(p.dtype.bytes());
    match variant.design() {
        Design::Fragments => (variant.threads, 0),
        Design::Bulk | Design::Over => bulk::least_block(variant, p),
        Design::Flat => (variant.threads, flat::shared_bytes(variant, p, 1, 2)),
        Design::Warps => warps::block(variant, &fragments::upright(p).0),
        Design::Tile => {
            let tile = Tile::new(p.sides(owners).map(|side| side.shared), 1, p.reads_c, 16 / bytes);
            (variant.threads, tile.shared_len(2) * bytes)
        }
        Design::Single | Design::Aggregated | Design::Prefetch | Design::Blocked => {
            let (_, threads, shared_bytes) = aggregated(variant, p, owners);
            (threads.min(variant.threads), shared_bytes)
        }
    }
}
