//! Who multiplies what of a block's tile of C, and where the fragments come from: what [`super::ring`] and [`super::packed`] ask of
//! [`super::mma`] and [`super::dealt`], and they of the stages.

use super::Reduced;
use super::finish;
use super::fragments::Squares;

/// A step of one of the tall matrices, as a stage has it.
pub trait Operand<T: Squares> {
    /// This lane's part of half of the rows of COUNT times SIDE lines from `line` of the block's on.
    ///
    /// # Safety
    /// The stage is whole, and has them.
    unsafe fn load<const COUNT: usize>(&self, line: u32, half: u32) -> [T::Half; COUNT];
}

/// How a block's warps share its tile of C.
pub trait Division<T: Squares> {
    /// Rows and columns of the tile.
    const BM: u32;
    /// As above.
    const BN: u32;
    /// Threads a block.
    const THREADS: u32;
    /// Groups of warps that take a stage's steps in turn.
    const KG: u32;
    /// Whether B is A, and the lower triangle is all there is.
    const GRAM: bool;

    /// Has each warp do `work` with a share of its own, and the tile whole in shared memory when all threads are back. A warp's share may have
    /// code of its own: warps meet at barriers that are not the same instruction.
    ///
    /// # Safety
    /// All threads of the block are here; where `work` ends nobody uses the stages any more.
    unsafe fn run(work: impl Work<T>, paired: bool);

    /// Finishes C from the tile.
    ///
    /// # Safety
    /// All threads of the block are here, and the tile is whole; `model::launch::tiling`'s shared memory; the operands span their elements.
    #[inline(always)]
    unsafe fn finish(x: &Reduced<T>) {
        let shape = (Self::BM, Self::BN, Self::THREADS);
        // SAFETY: what the caller promised.
        unsafe { if Self::GRAM { finish::tile::<T, true>(x, shape) } else { finish::tile::<T, false>(x, shape) } }
    }
}

/// What a warp does with its share: all stages of a block's part of k.
pub trait Work<T: Squares> {
    /// Has the share multiply them.
    ///
    /// # Safety
    /// All threads of the block are here, each with its warp's share.
    unsafe fn go<S: Share<T>>(self, share: &mut S);
}

/// A warp's share of the block's tile of C: its sums.
pub trait Share<T: Squares> {
    /// What a lane loads of half of a step's rows.
    type Loaded: Copy;

    /// The warp's group.
    fn group(&self) -> u32;

    /// Loads half of a step's rows.
    ///
    /// # Safety
    /// The stage is whole.
    unsafe fn load(&self, a: &impl Operand<T>, b: &impl Operand<T>, half: u32) -> Self::Loaded;

    /// Multiplies them, with the conjugates of B where `conj_b`.
    ///
    /// # Safety
    /// All lanes of the warp are here.
    unsafe fn multiply(&mut self, loaded: Self::Loaded, conj_b: bool);
}
