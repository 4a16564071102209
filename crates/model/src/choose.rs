//! Filter what can run, estimate each, take the fastest; and say why.

use crate::launch::reduced::{self, Finish};
use crate::launch::{GRID_X, GRID_YZ, Tiling, blocks_along_x, slots_len, tiling};
use crate::occupancy::{Residency, registers_at, residency};
use crate::refusal::too_large;
use crate::roofline::{Bound, Constants, Estimate, Estimator, bound};
use crate::variants::Layout;
use crate::variants::tsmm::widest;
use crate::{Dtype, Kernel, Machine, Operation, Problem, Refusal, VARIANTS, Variant};
use core::ops::ControlFlow;

mod across;
mod given;
mod in_place;
mod splits;
mod text;

pub use across::choose_across;
pub use given::{Chooser, Parts, choose_given};
pub use in_place::choose_in_place;
use splits::best_split;

/// How a product is computed: the entry, its launch, and what is expected of it.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// What the shape asks for.
    pub operation: Operation,
    /// The product as it is launched: transposed where `swapped`.
    pub problem: Problem,
    /// Whether Cᵀ = Bᵀ Aᵀ is computed: m and n, A and B, and all rows and columns change places.
    pub swapped: bool,
    /// The entry.
    pub variant: &'static Variant,
    /// Blocks along x, y (parts of k) and z.
    pub grid: [u32; 3],
    /// Threads a block.
    pub threads: u32,
    /// Dynamic shared memory a block, bytes.
    pub shared_bytes: u32,
    /// Parts of k, each with its slot; added in order.
    pub splits: u32,
    /// Elements of scratch for the slots: of whole tiles where blocks join them, else of C.
    pub slots_len: u64,
    /// How the sums of the parts become C.
    pub finish: Finish,
    /// What no kernel can beat.
    pub bound: Bound,
    /// What this one is expected to do.
    pub estimate: Estimate,
    /// Who chose it.
    pub chooser: Chooser,
}

/// The largest m, n and k: kernels count them in 32 bits, and coordinates of a tile that hangs over must not wrap.
pub const LARGEST_DIMENSION: u64 = u32::MAX as u64 - (1 << 16);

/// Each entry in question for a product, with every reason why it cannot compute it.
pub(crate) fn reasons<'a>(
    problem: &'a Problem,
    machine: &'a Machine,
    force: Option<&'a str>,
) -> impl Iterator<Item = [Option<Refusal>; 8]> + 'a {
    in_question(problem, force).map(move |place| {
        let variant = &VARIANTS[place];
        let (_, launched) = laid(variant, problem);
        let (tiles, registers) = (tiling(variant, launched.m, launched.n), registers_at(place, machine));
        let held = residency(machine, variant.threads, registers, tiles.shared_bytes);
        let (mut all, mut count) = ([None; 8], 0);
        let _ = refusals(variant, (registers, &held), &launched, &tiles, machine, |refusal| {
            (all[count], count) = (Some(refusal), count + 1);
            ControlFlow::Continue(())
        });
        all
    })
}

/// The entry and launch for a product on a machine, all dimensions at least 1. A and B are in the memory, unless the machine
/// is one that sees them in its cache: [`Machine::warm`].
///
/// `force` names a variant (`tsm2r_prefetch`) or an entry (`dtsm2r_prefetch_1x8_u16_t128`) to choose among.
///
/// # Errors
/// A [`Refusal`] where nothing is eligible; [`Refusals`](crate::Refusals) has all reasons.
pub fn choose(problem: &Problem, machine: &Machine, force: Option<&str>) -> Result<Choice, Refusal> {
    check(problem, force)?;
    // What an entry cannot take less than is soon found, and of most that is more than what the most promising one takes.
    let (mut leasts, mut fits) = ([(0.0, 0); VARIANTS.len()], 0);
    let mut refusal = Refusal::NoSuchDtype { dtype: problem.dtype };
    for place in in_question(problem, force) {
        match Laid::new(place, problem, machine) {
            Ok(laid) => (leasts[fits], fits) = ((laid.estimator(machine).least_s(), place), fits + 1),
            Err(why) => refusal = why,
        }
    }
    let mut best: Option<Best<'_>> = None;
    while let Some(at) = first_of_least(&leasts[..fits]) {
        let (_, place) = leasts[at];
        (leasts[at], fits) = (leasts[fits - 1], fits - 1);
        let enough_s = best.as_ref().map_or(f64::INFINITY, |best| best.seconds);
        let mut fit = Fit::new(place, problem, machine)?;
        let Some((splits, seconds)) = best_split(&mut fit.estimator, enough_s) else { continue };
        // The first of equals.
        let is_better = |best: &Best<'_>| seconds < best.seconds || (seconds == best.seconds && place < best.place);
        if best.as_ref().is_none_or(is_better) {
            best = Some(Best { seconds, place, splits, fit });
            fits = kept(&mut leasts[..fits], seconds);
        }
    }
    let chooser = if force.is_some() { Chooser::Caller } else { Chooser::Model };
    best.map(|best| Choice { chooser, ..best.fit.launch(best.splits) }).ok_or(refusal)
}

/// The best so far.
struct Best<'a> {
    seconds: f64,
    place: usize,
    splits: u32,
    fit: Fit<'a>,
}

/// Where the least number is, the first of equals.
fn first_of_least(numbers: &[(f64, usize)]) -> Option<usize> {
    (0..numbers.len()).reduce(|a, b| if numbers[b].0 < numbers[a].0 { b } else { a })
}

/// Moves those that are no more than `limit` to the front; how many they are.
fn kept(numbers: &mut [(f64, usize)], limit: f64) -> usize {
    let mut kept = 0;
    for at in 0..numbers.len() {
        if numbers[at].0 <= limit {
            numbers.swap(kept, at);
            kept += 1;
        }
    }
    kept
}

/// Every entry that [`choose`] weighs, in the table's order, at the splits that suit it best.
///
/// # Errors
/// As [`choose`], where the problem or the name rules out all of them.
pub fn candidates<'a>(
    problem: &'a Problem,
    machine: &'a Machine,
    force: Option<&'a str>,
) -> Result<impl Iterator<Item = Choice> + 'a, Refusal> {
    check(problem, force)?;
    let chooser = if force.is_some() { Chooser::Caller } else { Chooser::Model };
    let fits = considered(problem, machine, force).flatten();
    Ok(fits.map(move |fit| Choice { chooser, ..fit.choice() }))
}

/// Each dimension that is too large.
pub(crate) fn too_long(problem: &Problem) -> [Option<Refusal>; 3] {
    [("m", problem.m), ("n", problem.n), ("k", problem.k)]
        .map(|(name, value)| (value > LARGEST_DIMENSION).then_some(Refusal::DimensionTooLarge { name, value }))
}

/// What rules out every entry.
fn check(problem: &Problem, force: Option<&str>) -> Result<(), Refusal> {
    if let Some(refusal) = too_long(problem).into_iter().flatten().next() {
        return Err(refusal);
    }
    if VARIANTS.iter().all(|v| !named(v, force)) {
        return Err(Refusal::UnknownVariant);
    }
    if VARIANTS.iter().all(|v| !named(v, force) || !v.computes(problem)) {
        return Err(Refusal::OtherOperation { gram: problem.gram });
    }
    Ok(())
}

/// Whether an entry or its variant is the one that was asked for, if any was.
fn named(variant: &Variant, force: Option<&str>) -> bool {
    force.is_none_or(|name| name == variant.name || name == variant.entry)
}

/// The places in [`VARIANTS`] of the entries that are in question for a problem.
fn in_question<'a>(problem: &'a Problem, force: Option<&'a str>) -> impl Iterator<Item = usize> + 'a {
    let asked = move |v: &Variant| if force.is_none() { serves(v, problem) } else { named(v, force) };
    let others = problem.gram.then(|| of_kind(problem.dtype, false)).into_iter().flatten();
    let all = of_kind(problem.dtype, problem.gram).chain(others.filter(|place| VARIANTS[*place].computes(problem)));
    all.filter(move |place| asked(&VARIANTS[*place]))
}

/// The places of the entries of an element type, for Gram matrices or for other products.
fn of_kind(dtype: Dtype, gram: bool) -> impl Iterator<Item = usize> {
    let (places, ends) = &BY_KIND;
    let kind = kind(dtype, gram);
    let first = if kind == 0 { 0 } else { ends[kind - 1] };
    places[first..ends[kind]].iter().map(|place| usize::from(*place))
}

/// A number for each element type and kind of product.
const fn kind(dtype: Dtype, gram: bool) -> usize {
    2 * dtype as usize + gram as usize
}

const KINDS: usize = 2 * Dtype::ALL.len();

/// The places of all entries by their kinds, and where in that the places of each kind end: a choice looks at no others.
const BY_KIND: ([u16; VARIANTS.len()], [usize; KINDS]) = {
    let (mut places, mut ends, mut count) = ([0; VARIANTS.len()], [0; KINDS], 0);
    let mut of = 0;
    while of < KINDS {
        let mut place = 0;
        while place < VARIANTS.len() {
            let v = &VARIANTS[place];
            if kind(v.dtype, matches!(v.kernel, Kernel::Gram)) == of {
                (places[count], count) = (place as u16, count + 1);
            }
            place += 1;
        }
        ends[of] = count;
        of += 1;
    }
    (places, ends)
};

/// The same, each with what it would do or why it cannot.
fn considered<'a>(
    problem: &'a Problem,
    machine: &'a Machine,
    force: Option<&'a str>,
) -> impl Iterator<Item = Result<Fit<'a>, Refusal>> + 'a {
    in_question(problem, force).map(move |place| Fit::new(place, problem, machine))
}

/// Whether the model considers an entry for a shape: TSM2R's where one side is skinny and k is not, but not where both are tall; those for products of
/// any shape where neither side is skinny, and from [`most_columns`] on, with long tiles there alone, and the plainest everywhere but for two tall matrices; rings of both also where [it is short](Problem::is_short), and there what [has no stages](is_soon_there), one
/// for [two tall matrices](suits_few_rows) and their Gram matrices; GEMV's where that side is 1, or as many as they take vectors, and they can load the matrix.
fn serves(variant: &Variant, problem: &Problem) -> bool {
    let few = problem.k <= few_steps(problem) || variant.is_reduced() && problem.m.max(problem.n) <= FEW_SUMS;
    if variant.kernel != Kernel::Gemv && !few && is_vectors(problem) {
        return false;
    }
    let least = problem.m.min(problem.n);
    let has_a_large_operand = problem.k > crate::shape::SKINNY && !are_two_tall(problem);
    match variant.kernel {
        _ if variant.splits_f32() && !may_be_split(problem) => false,
        Kernel::Ring if problem.is_short() || suits_few_rows(variant, problem) => true,
        Kernel::Ring if problem.gram => false,
        Kernel::Tsm2r if problem.is_short() && is_soon_there(variant, problem) => true,
        Kernel::Tsm2r | Kernel::Ring => least <= crate::shape::SKINNY && has_a_large_operand,
        Kernel::Gemm => !are_two_tall(problem) || problem.operation() != Operation::Tsmttsm,
        // They teach.
        Kernel::Ladder => false,
        Kernel::GemmRing => {
            let is_wide = least > most_columns(problem) && has_a_large_operand;
            (is_wide || problem.operation() == Operation::Gemm || problem.is_short())
                && (!variant.mma || variant.dtype.is_complex() || variant.copies_elements() != comes_by_pieces(problem))
                && (!variant.is_along_k() || problem.a.col == 1 && problem.b.row == 1)
                && (!variant.is_long() || laid(variant, problem).1.n <= u64::from(variant.t2))
        }
        Kernel::Tsmttsm => {
            let tall = problem.m.max(problem.n) <= crate::shape::SKINNY && problem.k > crate::shape::SKINNY;
            tall && !variant.adds_atomically()
        }
        Kernel::Gram => !is_half_empty(variant, problem),
        Kernel::Gemv => variant.suits(problem) && (variant.t2 == 1 || has_a_large_operand),
        Kernel::Tsmm | Kernel::Tall => {
            let is_narrow = least <= crate::shape::SKINNY && problem.k <= crate::shape::SKINNY;
            is_narrow
                && (!variant.is_outer() || is_mostly_written(problem))
                && (least > 1 || suits_a_vector(variant, problem))
        }
    }
}

/// Whether nearly all that a tall product moves is a C that is written: for these `tsmm_outer` is considered. Of fewer columns others take less, and where C is read too (benches/results/trials/outer.csv).
fn is_mostly_written(problem: &Problem) -> bool {
    let columns = problem.m.min(problem.n);
    columns >= 16 && columns >= 2 * problem.k && !problem.reads_c && !problem.is_short()
}

/// Whether f32 may be split: of a large matrix and more columns than the memory has time for. On H200s on 2026-11-30 16 columns took 0.96 to 1.02 of the time of whole elements (benches/results/trials/split.csv).
fn may_be_split(problem: &Problem) -> bool {
    problem.splits_f32 && problem.operation() == Operation::Tsm2r && problem.m.min(problem.n) > 16
}

/// Whether an entry of TSM2R that has no stages is considered for few rows: in f32 by columns those of one or two columns a thread are many blocks that begin at once.
///
/// # Source
/// As of [`Problem::is_short`]: of 46 cases in f32 by columns `tsm2r_outer_1x2` and `_prefetch_1x1` were the fastest in 20, 0.65 to 0.98 of the time of what was chosen without them; of
/// the other types and by rows in 7 of 442.
fn is_soon_there(variant: &Variant, problem: &Problem) -> bool {
    let is_plain = matches!(variant.name, "tsm2r_outer" | "tsm2r_prefetch") && variant.t2 <= 2;
    is_plain && variant.dtype == Dtype::F32 && laid(variant, problem).1.a.row == 1
}

/// Most rows of two tall matrices for which rings on the matrix units are considered.
const FEW_TALL_ROWS: u64 = 8192;

/// Whether an entry of TSM2R is considered for two tall matrices: they have so few rows that what counts is when the last block is done, and more blocks, of less of C, are.
///
/// # Source
/// An H200 on 2026-11-29 (benches/results/trials/two-tall.csv), 16 x 16 to 64 x 64 in f64 and 100 to 5000 rows: 64 x 64 of 1000 rows took 5.7 us in 8 parts of k where the fastest entry for two tall
/// matrices took 7.9, cuBLAS 6.3. Of wider tiles, and of the other types' rings (two-tall-rings.csv), none was so much faster.
fn suits_few_rows(variant: &Variant, problem: &Problem) -> bool {
    let Problem { a, b, k, .. } = *problem;
    let are_two_tall = matches!(problem.operation(), Operation::Tsmttsm | Operation::Gram);
    are_two_tall && variant.is_small_ring() && (a.row, b.col) == (1, 1) && k <= FEW_TALL_ROWS
}

/// Whether a tile of lines along k has no more than half of its lines. On an H200 on 2026-11-28 Gram matrices of 8 columns in c64 took 515 us by tiles of 16 x 16 and
/// 248 by `gram_leapfrog`, where the model expects it the other way round (columns-variants.csv).
fn is_half_empty(variant: &Variant, problem: &Problem) -> bool {
    variant.is_by_lines() && !variant.mma && 2 * problem.m.max(problem.n) <= u64::from(variant.t2)
}

/// Most columns for which TSM2R's entries alone are considered. On an H200 on 2026-11-25, m = k = 10240 to 40960 in f64, `gemm_mma` took 0.77 to
/// 0.97 of the time of the entries for 64 columns that TSM2R had then, and of 48 1.07 to 1.27 times as long as its own. In f32 64 columns by rows
/// are faster so where k is 128. Where an A by rows has lines of no whole 16 bytes in f64, whatever lies behind them,
/// so that bits do not depend on that, 10000 x 48 x 10001 took 0.75 of the time by `gemm_mma_elements` and 10000 x 32 x 10001 0.97
/// (edges-variants.csv); between the two nothing was measured.
fn most_columns(problem: &Problem) -> u64 {
    let by_elements = problem.dtype == Dtype::F64 && problem.a.col == 1 && problem.k % 2 != 0;
    if by_elements { 32 } else { 48 }
}

/// Whether A and B can be copied by 16 bytes, where they begin at such: their lines are aligned to them and end with them.
fn comes_by_pieces(problem: &Problem) -> bool {
    let pieces = |unit: u64, other: u64, len: u64| unit == 1 && (other | len) % (16 / problem.dtype.bytes()) == 0;
    let Problem { a, b, m, n, k, .. } = *problem;
    (pieces(a.row, a.col, m) || pieces(a.col, a.row, k)) && (pieces(b.row, b.col, k) || pieces(b.col, b.row, n))
}

/// Whether both matrices are tall, and lie as the kernels for them load best: both along their rows, or both along k. Those of TSM2R, which have
/// few rows to cut then, took 1.1 to 4 times as long on an H200; but [few rows](suits_few_rows).
fn are_two_tall(problem: &Problem) -> bool {
    let Problem { a, b, m, n, .. } = problem;
    let along = |a: u64, b: u64| (a == 1 || *m == 1) && (b == 1 || *n == 1);
    *m.max(n) <= crate::shape::SKINNY && (along(a.row, b.col) || (a.col == 1 && b.row == 1))
}

/// Whether an entry of a tall A is considered for a few columns by rows and a vector. On an H200 on 2026-11-26, beside what was fastest and predicted to be
/// that: `tsmm_element`, whose threads have a row each, took 1.3 to 8 times as long with 10 to 30 columns, since the first-level cache does not
/// keep the lines that a warp opens until their next elements are asked for; `tsmm_bulk`, whose blocks begin late, twice as long with 80 KB to 1 MB.
fn suits_a_vector(variant: &Variant, problem: &Problem) -> bool {
    let row_bytes = problem.k * problem.dtype.bytes();
    match variant.name {
        "tsmm_element" => row_bytes <= 32,
        _ if variant.is_bulk() => problem.m.max(problem.n) * row_bytes >= 4 << 20,
        _ => true,
    }
}

/// Most steps of a vector's product for which the kernels of a tall A are considered: those of GEMV have more on their way than
/// that, lanes of the one along rows more than 64.
fn few_steps(problem: &Problem) -> u64 {
    let launched = if problem.n > problem.m { problem.transposed() } else { *problem };
    if launched.a.row == 1 { 8 } else { crate::shape::SKINNY }
}

/// Most elements of a vector's product for which the kernels of two tall matrices are considered.
const FEW_SUMS: u64 = 4;

/// Whether a product is a matrix times a vector, of which the matrix has a unit stride, as GEMV's entries take it.
fn is_vectors(problem: &Problem) -> bool {
    let launched = if problem.n > problem.m { problem.transposed() } else { *problem };
    launched.n == 1 && !launched.gram && (takes(Layout::Columns, &launched) || takes(Layout::Rows, &launched))
}

/// Whether A's strides are of a layout; a side of one element has any stride.
fn takes(layout: Layout, launched: &Problem) -> bool {
    match layout {
        Layout::Any => true,
        Layout::Columns => launched.a.row == 1 || launched.m == 1,
        Layout::Rows => launched.a.col == 1 || launched.k == 1,
    }
}

/// Every reason why an entry cannot compute a product that is launched so, until `found` has heard enough.
#[inline(always)]
fn refusals(
    variant: &Variant,
    (registers, held): (u32, &Residency),
    launched: &Problem,
    tiles: &Tiling,
    machine: &Machine,
    mut found: impl FnMut(Refusal) -> ControlFlow<()>,
) -> ControlFlow<()> {
    if let Some((columns, steps)) = most(variant) {
        let taller = variant.most_columns().filter(|rows| launched.m > u64::from(*rows));
        if launched.n > u64::from(columns) || steps.is_some_and(|k| launched.k > u64::from(k)) {
            found(Refusal::TooWide { columns, steps })?;
        } else if let Some(columns) = taller {
            found(Refusal::TooWide { columns, steps })?;
        }
    }
    if let Some(of) = variant.multiples() {
        let sizes = [launched.m, launched.n, launched.k];
        if sizes.iter().zip(&of).any(|(size, of)| size % u64::from(*of) != 0) {
            found(Refusal::NotWhole { of })?;
        }
    }
    if machine.compute_capability < variant.since() {
        found(Refusal::TooOld { needs: variant.since() })?;
    }
    if !takes(variant.layout, launched) {
        found(Refusal::Layout { wanted: variant.layout })?;
    }
    if held.blocks() == 0 {
        for reason in too_large(held, registers, tiles.shared_bytes, machine).into_iter().flatten() {
            found(reason)?;
        }
    }
    if tiles.z > u64::from(GRID_YZ) {
        found(Refusal::GridTooLarge { columns: u64::from(GRID_YZ) * u64::from(variant.t2) })?;
    } else if tiles.x > GRID_X {
        found(Refusal::TooManyTiles { tiles: tiles.x })?;
    }
    ControlFlow::Continue(())
}

/// The most columns of C that an entry serves, and the most that k may be, where there are limits.
fn most(variant: &Variant) -> Option<(u32, Option<u32>)> {
    let tall = widest(variant).map(|(columns, steps)| (columns, Some(steps)));
    let vector = (variant.kernel == Kernel::Gemv).then_some((variant.t2, None));
    tall.or(vector).or(variant.most_across().map(|columns| (columns, None)))
}

/// How an entry computes a product: as it is, or transposed.
fn laid(variant: &Variant, problem: &Problem) -> (bool, Problem) {
    let swapped = match variant.kernel {
        // Their C is stored 16 bytes down a column.
        Kernel::GemmRing => problem.c.row != 1 && problem.c.col == 1,
        // A thread owns a row: the longer side of C gives more of them.
        _ => variant.wants_rows() && problem.n > problem.m,
    };
    (swapped, if swapped { problem.transposed() } else { *problem })
}

/// How an entry's slots become C.
fn finish(variant: &Variant, tiles: &Tiling, launched: &Problem, splits: u32) -> Finish {
    match variant.is_reduced() {
        true => reduced::finish(tiles, launched.m, launched.n, splits, launched.dtype.bytes()),
        false if splits <= 1 => Finish::Direct,
        false if reduced::is_joined(variant, tiles, splits) => Finish::LastBlock,
        false => Finish::SecondLaunch,
    }
}

/// A launch that is allowed: what an entry is laid over, and what an SM holds of it.
struct Laid {
    variant: &'static Variant,
    /// Whether the product is computed transposed.
    swapped: bool,
    /// The problem as it is launched.
    launched: Problem,
    tiles: Tiling,
    /// Blocks that an SM holds.
    resident: u32,
}

impl Laid {
    #[inline(always)]
    fn new(place: usize, problem: &Problem, machine: &Machine) -> Result<Self, Refusal> {
        Self::lying(place, machine, laid(&VARIANTS[place], problem))
    }

    /// The same for a problem that is launched so, transposed or not.
    #[inline(always)]
    fn lying(place: usize, machine: &Machine, (swapped, launched): (bool, Problem)) -> Result<Self, Refusal> {
        let variant = &VARIANTS[place];
        let tiles = tiling(variant, launched.m, launched.n);
        let registers = registers_at(place, machine);
        let held = residency(machine, variant.threads, registers, tiles.shared_bytes);
        let mut refused = None;
        let _ = refusals(variant, (registers, &held), &launched, &tiles, machine, |refusal| {
            refused = Some(refusal);
            ControlFlow::Break(())
        });
        match refused {
            Some(refusal) => Err(refusal),
            None => Ok(Laid { variant, swapped, launched, tiles, resident: held.blocks() }),
        }
    }

    #[inline(always)]
    fn estimator<'a>(&self, machine: &'a Machine) -> Estimator<'a> {
        Estimator::of(&Constants::FITTED, self.resident, self.variant, &self.tiles, &self.launched, machine)
    }
}

/// An entry laid over a problem, and its estimates.
struct Fit<'a> {
    problem: &'a Problem,
    laid: Laid,
    estimator: Estimator<'a>,
}

impl<'a> Fit<'a> {
    fn new(place: usize, problem: &'a Problem, machine: &'a Machine) -> Result<Self, Refusal> {
        Ok(Self::of(Laid::new(place, problem, machine)?, problem, machine))
    }

    fn of(laid: Laid, problem: &'a Problem, machine: &'a Machine) -> Self {
        Fit { problem, estimator: laid.estimator(machine), laid }
    }

    /// The best launch of the entry.
    fn choice(mut self) -> Choice {
        let splits = best_split(&mut self.estimator, f64::INFINITY).map_or(1, |(splits, _)| splits);
        self.launch(splits)
    }

    fn launch(&self, splits: u32) -> Choice {
        let Laid { variant, swapped, launched, tiles, .. } = &self.laid;
        let narrow = |blocks: u64| u32::try_from(blocks).unwrap_or(u32::MAX);
        let x = blocks_along_x(variant, tiles, (launched.m, launched.n, launched.k), self.estimator.places());
        let bound = bound(launched, self.estimator.machine());
        let estimate = self.estimator.estimate(splits);
        Choice {
            operation: self.problem.operation(),
            problem: *launched,
            swapped: *swapped,
            variant,
            grid: [narrow(x), splits, narrow(tiles.z)],
            threads: variant.threads,
            shared_bytes: tiles.shared_bytes,
            splits,
            slots_len: if variant.adds_atomically() {
                0
            } else {
                slots_len(variant, tiles, launched.m, launched.n, splits)
            },
            finish: finish(variant, tiles, launched, splits),
            bound,
            // Rings were measured to read a little faster than the kernel that the machine's bandwidth is of.
            estimate: Estimate { seconds: estimate.seconds.max(bound.seconds()), ..estimate },
            chooser: Chooser::Model,
        }
    }
}

#[cfg(test)]
mod tests;
