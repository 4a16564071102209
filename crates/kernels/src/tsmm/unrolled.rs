//! Loops that are surely unrolled: what is indexed by their counter stays in registers. The compiler gives up on long ones.

/// What is done in each turn.
pub(super) trait Turns {
    /// In the `at`-th.
    fn turn(&mut self, at: usize);
}

/// N turns, up to 64, one after the other.
#[inline(always)]
pub(super) fn unrolled<const N: usize>(turns: &mut impl Turns) {
    const { assert!(N <= 64) };
    eight::<N>(0, turns);
    eight::<N>(8, turns);
    eight::<N>(16, turns);
    eight::<N>(24, turns);
    eight::<N>(32, turns);
    eight::<N>(40, turns);
    eight::<N>(48, turns);
    eight::<N>(56, turns);
}

#[inline(always)]
fn eight<const N: usize>(first: usize, turns: &mut impl Turns) {
    two::<N>(first, turns);
    two::<N>(first + 2, turns);
    two::<N>(first + 4, turns);
    two::<N>(first + 6, turns);
}

#[inline(always)]
fn two<const N: usize>(first: usize, turns: &mut impl Turns) {
    if first < N {
        turns.turn(first);
    }
    if first + 1 < N {
        turns.turn(first + 1);
    }
}
