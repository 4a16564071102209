//! What the lanes of a warp do together: shuffles, votes, matrix products.

use crate::fault::{Fault, FaultKind};
use crate::port::Call;
use crate::sm::{Group, Sm};
use crate::sync::Lanes;
use cuda_std::hooks::{Shuffle, Vote};

impl Sm<'_> {
    /// `shfl.sync`: every lane of the group waits with a [`Call::Shuffle`].
    pub(crate) fn shuffle(&self, group: &Group) -> Result<(), Box<Fault>> {
        let mut values = [0; 32];
        for lane in Lanes(group.lanes) {
            if let Call::Shuffle { value, .. } = call(group, lane) {
                values[lane as usize] = *value;
            }
        }
        for lane in Lanes(group.lanes) {
            let Call::Shuffle { how, value, lane: by, width, result } = call(group, lane) else { continue };
            let (source, inside) = source(*how, lane, *by, *width);
            if inside && group.lanes & (1 << source) == 0 {
                let message =
                    format!("a shuffle from lane {source}, which the mask {:#010x} does not name", group.lanes);
                return Err(self.fault(FaultKind::WrongLane, group, lane, message));
            }
            *result = if inside { (values[source as usize], true) } else { (*value, false) };
        }
        Ok(())
    }

    /// `vote.sync`: every lane of the group waits with a [`Call::Vote`].
    pub(crate) fn vote(&self, group: &Group) {
        let mut ballot = 0;
        for lane in Lanes(group.lanes) {
            if let Call::Vote { predicate, .. } = call(group, lane) {
                ballot |= u32::from(*predicate) << lane;
            }
        }
        for lane in Lanes(group.lanes) {
            if let Call::Vote { vote, result, .. } = call(group, lane) {
                *result = match vote {
                    Vote::All => u32::from(ballot == group.lanes),
                    Vote::Any => u32::from(ballot != 0),
                    Vote::Ballot => ballot,
                };
            }
        }
    }

    /// `mma.m16n8k8` or `.m16n8k16` in f64: every lane of the warp waits with a [`Call::Mma`].
    ///
    /// Sums are chains of fused multiply-adds over ascending k, from C on, as on an H200.
    pub(crate) fn mma(&mut self, group: &Group) {
        let fragments = Fragments::of(group, |lane| match call(group, lane) {
            Call::Mma { a, b, .. } => (*a, *b),
            _ => (&[], &[]),
        });
        for lane in Lanes(group.lanes) {
            if let Call::Mma { c, result, .. } = call(group, lane) {
                *result = fragments.sums(lane, *c, |terms, c| terms.fold(c, |sum, (a, b)| a.mul_add(b, sum)));
            }
        }
        self.counters.mma += 1;
    }

    /// `mma.m16n8k8` of f32 without their last 13 bits: every lane of the warp waits with a [`Call::MmaTf32`].
    ///
    /// Products are exact; sums are those of f64, rounded towards 0. A device keeps fewer bits, and may differ in the last one of the largest term.
    pub(crate) fn mma_tf32(&mut self, group: &Group) {
        let fragments = Fragments::of(group, |lane| match call(group, lane) {
            Call::MmaTf32 { a, b, .. } => (*a, *b),
            _ => (&[], &[]),
        });
        let seen = |x: f32| f64::from(f32::from_bits(x.to_bits() & !((1 << 13) - 1)));
        for lane in Lanes(group.lanes) {
            if let Call::MmaTf32 { c, result, .. } = call(group, lane) {
                *result = fragments.sums(lane, *c, |terms, c| {
                    towards_zero(terms.fold(f64::from(c), |sum, (a, b)| seen(a).mul_add(seen(b), sum)))
                });
            }
        }
        self.counters.mma += 1;
    }
}

/// What the lanes of a warp hand to an `mma`: with g = lane / 4 and q = lane % 4, `a[i]` is A(g + 8 (i % 2), q + 4 (i / 2)), `b[i]` is B(q + 4 i, g), and
/// `c[i]` is C(g + 8 (i / 2), 2 q + i % 2).
struct Fragments<T> {
    a: [[T; 16]; 16], // by rows
    b: [[T; 16]; 8],  // by columns
    steps: usize,
}

impl<T: Copy + Default> Fragments<T> {
    fn of<'a>(group: &Group, held: impl Fn(u32) -> (&'a [T], &'a [T])) -> Self
    where
        T: 'a,
    {
        let mut all = Fragments { a: [[T::default(); 16]; 16], b: [[T::default(); 16]; 8], steps: 0 };
        for lane in Lanes(group.lanes) {
            let (g, q) = (lane as usize / 4, lane as usize % 4);
            let (a, b) = held(lane);
            all.steps = 2 * a.len();
            a.iter().enumerate().for_each(|(i, &x)| all.a[g + 8 * (i % 2)][q + 4 * (i / 2)] = x);
            b.iter().enumerate().for_each(|(i, &x)| all.b[g][q + 4 * i] = x);
        }
        all
    }

    /// A lane's sums, each of the factors of an element of A B over ascending k, and of what C was.
    fn sums(&self, lane: u32, c: [T; 4], add: impl Fn(&mut dyn Iterator<Item = (T, T)>, T) -> T) -> [T; 4] {
        let (g, q) = (lane as usize / 4, lane as usize % 4);
        std::array::from_fn(|i| {
            let (row, col) = (g + 8 * (i / 2), 2 * q + i % 2);
            add(&mut self.a[row].iter().copied().zip(self.b[col].iter().copied()).take(self.steps), c[i])
        })
    }
}

/// The f32 next to x that is no further from 0: of what is too large the largest, since rounding towards 0 makes no infinity.
fn towards_zero(x: f64) -> f32 {
    let nearest = x as f32;
    if f64::from(nearest).abs() > x.abs() { f32::from_bits(nearest.to_bits() - 1) } else { nearest }
}

/// The call that a lane of the group waits with.
fn call<'a>(group: &Group<'a>, lane: u32) -> &'a mut Call<'static> {
    // SAFETY: it lies on the stack of the lane's suspended thread, which only this group reaches, and one lane's call is
    // used at a time.
    unsafe { &mut *group.warp.request(group.slots, lane).call }
}

/// The lane that `lane` gets its value from, and whether it is within reach: `shfl.sync` as the PTX ISA defines it.
fn source(how: Shuffle, lane: u32, by: u32, width: u32) -> (u32, bool) {
    let segment = 32u32.wrapping_sub(width) & 31; // the bits of a lane's number that name its segment
    let (by, low) = (by & 31, lane & segment);
    let high = low | (31 & !segment);
    match how {
        Shuffle::Up => (lane.wrapping_sub(by), lane >= low + by),
        Shuffle::Down => (lane + by, lane + by <= high),
        Shuffle::Xor => (lane ^ by, lane ^ by <= high),
        Shuffle::Idx => (low | (by & !segment), true),
    }
}

#[cfg(test)]
mod tests {
    use super::source;
    use cuda_std::hooks::Shuffle::{Down, Idx, Up, Xor};

    #[test]
    fn sources_of_shuffles() {
        assert_eq!(source(Up, 5, 2, 32), (3, true));
        assert!(!source(Up, 1, 2, 32).1);
        assert!(!source(Up, 9, 2, 8).1);
        assert_eq!(source(Up, 10, 2, 8), (8, true));
        assert_eq!(source(Down, 5, 2, 8), (7, true));
        assert!(!source(Down, 6, 2, 8).1);
        assert!(!source(Down, 31, 1, 32).1);
        assert_eq!(source(Xor, 5, 16, 32), (21, true));
        assert!(!source(Xor, 5, 8, 8).1);
        assert_eq!(source(Xor, 13, 8, 8), (5, true));
        assert_eq!(source(Idx, 13, 3, 8), (11, true));
        assert_eq!(source(Idx, 13, 11, 8), (11, true));
        assert_eq!(source(Idx, 13, 35, 32), (3, true));
    }
}
