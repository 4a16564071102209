//! Which entries there are for a product, and how its operands must lie for each.
//!
//! An entry of a ring takes A in one layout only. Every sweep gives it that one, so that no entry is left out of a check
//! without a word; the other one is asserted to be refused.

use crate::case::{Case, Spec};
use crate::lab::{Lab, Outcome, ensure};
use crate::real::Real;
use host::{Error, Plan};
use model::variants::batched::{BATCHED, Batched};
use model::variants::tsmm::widest;
use model::{Dtype, Kernel, Layout, VARIANTS, Variant};
use std::sync::OnceLock;
use watched::Share;

/// What a plan is asked for: an entry, or nothing, so that the model chooses.
pub type Entry = Option<&'static str>;

/// Which of so many shares of the entries is tried, and how their names or their variants' begin: all where nothing was asked for.
static CHOSEN: OnceLock<(Share, String)> = OnceLock::new();

/// Makes these the ones that are tried, before anything is.
pub fn choose(share: Share, start: String) {
    assert!(CHOSEN.set((share, start)).is_ok(), "entries were tried already, of another share");
}

/// Whether what has this number in a list is tried.
pub fn is_tried(index: usize) -> bool {
    share().has(index)
}

fn chosen() -> &'static (Share, String) {
    CHOSEN.get_or_init(|| (Share::WHOLE, String::new()))
}

fn share() -> Share {
    chosen().0
}

/// Whether an entry or its variant is named so.
fn is_named(entry: &str, variant: &str) -> bool {
    let start = chosen().1.as_str();
    entry.starts_with(start) || variant.starts_with(start)
}

/// The entries that are tried, but those of batches.
pub fn tried() -> impl Iterator<Item = &'static Variant> {
    share().of(VARIANTS).filter(|v| is_named(v.entry, v.name))
}

/// Those of batches.
pub fn tried_of_batches() -> impl Iterator<Item = &'static Batched> {
    share().of(BATCHED).filter(|v| is_named(v.entry, v.name))
}

/// The model's choice, and if asked for each entry of an element type; those of two tall matrices and of vectors are in
/// [`Spec::groups_of_all`].
pub fn all(dtype: Dtype, forced: bool) -> Vec<Entry> {
    let forced = tried().filter(|v| forced && v.dtype == dtype && !v.is_reduced());
    [None].into_iter().chain(forced.map(|v| Some(v.entry))).collect()
}

fn variant(entry: Entry) -> Option<&'static Variant> {
    VARIANTS.iter().find(|v| Some(v.entry) == entry)
}

/// Whether an entry is of two tall matrices or of vectors.
pub fn is_reduced(entry: Entry) -> bool {
    variant(entry).is_some_and(Variant::is_reduced)
}

/// Whether an entry is of vectors.
pub fn is_of_vectors(entry: Entry) -> bool {
    variant(entry).is_some_and(|v| v.kernel == Kernel::Gemv)
}

/// Whether an entry's blocks have all of k, so that it is never cut.
pub fn all_of_k(entry: Entry) -> bool {
    variant(entry).is_some_and(Variant::has_all_of_k)
}

/// Whether an entry takes an A and a B of these strides, rows first. C of more columns than rows is computed transposed:
/// then the A that the kernel sees is Bᵀ.
pub fn takes(entry: Entry, (m, n, k): (usize, usize, usize), a: (usize, usize), b: (usize, usize)) -> bool {
    let Some(v) = variant(entry) else { return true };
    let swapped = v.wants_rows() && n > m;
    let (rows, (row, col)) = if swapped { (n, (b.1, b.0)) } else { (m, a) };
    match v.layout {
        Layout::Any => true,
        Layout::Columns => row == 1 || rows == 1,
        Layout::Rows => col == 1 || k == 1,
    }
}

/// Whether a product is no wider, and its k no more, than an entry serves, and of whole tiles for those that serve no others.
pub fn serves(entry: Entry, (m, n, k): (usize, usize, usize)) -> bool {
    let most = variant(entry).and_then(widest);
    let is_whole = |of: [u32; 3]| [m, n, k].iter().zip(of).all(|(size, of)| size % of as usize == 0);
    variant(entry).and_then(Variant::multiples).is_none_or(is_whole)
        && most.is_none_or(|(columns, steps)| m.min(n) <= columns as usize && k <= steps as usize)
        && variant(entry).and_then(Variant::most_columns).is_none_or(|most| m.max(n) <= most as usize)
        && variant(entry).and_then(Variant::most_across).is_none_or(|most| m.min(n) <= most as usize)
}

/// Fails unless the plan was refused because A does not lie as the entry wants it, or the product is too wide for it.
pub fn refused(entry: Entry, plan: host::Result<Plan>) -> Outcome {
    let whole = variant(entry).is_some_and(|v| v.multiples().is_some());
    // What takes A by columns alone may say first that the product is too wide.
    let is_tall = variant(entry).is_some_and(|v| v.kernel == Kernel::Tsmm && v.layout == Layout::Columns);
    let wanted = match variant(entry).map(|v| v.layout) {
        _ if whole => "it serves whole tiles alone",
        Some(Layout::Any) => "it serves at most",
        Some(Layout::Rows) => "it wants unit stride along the rows of A",
        _ => "it wants unit stride down the columns of A",
    };
    match plan {
        Err(Error::Unsupported { what }) if what.contains("it serves at most") && is_tall => Ok(()),
        Err(Error::Unsupported { what }) => ensure(what.contains(wanted), || format!("'{what}' hides that {wanted}")),
        other => Err(format!("expected Unsupported, since {wanted}; found {other:?}").into()),
    }
}

/// A size, and who is tried with it.
pub type Group = ((usize, usize, usize), Vec<Entry>);

/// The entries of two tall matrices and of vectors with what they are tried with, of a product for all others: as many rows and columns as they
/// have tiles for, and as many columns as they take vectors. Those that add atomically are not: their bits are nobody's promise.
pub fn reduced_groups(dtype: Dtype, (m, n, k): (usize, usize, usize)) -> Vec<Group> {
    let tall = ((m.min(13), n.min(8), k), reduced(dtype, Kernel::Tsmttsm));
    [vec![tall], of_vectors(dtype, (m, k))].concat()
}

/// The entries of vectors by how many they take, with m x k times so many.
pub fn of_vectors(dtype: Dtype, (m, k): (usize, usize)) -> Vec<Group> {
    let takes = |count: u32| move |entry: &Entry| variant(*entry).is_some_and(|v| v.t2 == count);
    let of = |count| ((m, count as usize, k), reduced(dtype, Kernel::Gemv).into_iter().filter(takes(count)).collect());
    [1, 2].map(of).into_iter().filter(|(_, entries): &Group| !entries.is_empty()).collect()
}

/// The entries of these kernels that give the same bits again.
pub fn reduced(dtype: Dtype, kernel: Kernel) -> Vec<Entry> {
    let asked = |v: &&Variant| v.dtype == dtype && v.kernel == kernel && !v.adds_atomically();
    tried().filter(asked).map(|v| Some(v.entry)).collect()
}

/// A group of [`Spec::groups_of_all`]; in place of that of two tall matrices all entries of those that serve this size: some take
/// many steps at once, and k must be long to be cut, and some few columns.
pub fn with_tall(group: (Spec, Vec<Entry>), dtype: Dtype, size: (usize, usize, usize)) -> (Spec, Vec<Entry>) {
    let (spec, entries) = group;
    let is_tall = |entry: &Entry| variant(*entry).is_some_and(|v| v.kernel == Kernel::Tsmttsm);
    if !entries.iter().all(is_tall) {
        return (spec, entries);
    }
    (Spec { size, ..spec }, reduced(dtype, Kernel::Tsmttsm).into_iter().filter(|entry| serves(*entry, size)).collect())
}

/// Those of Gram matrices by the columns with which they are tried: n, or as many as they serve; the model's choice with n.
pub fn grams(dtype: Dtype, forced: bool, n: usize) -> Vec<(usize, Vec<Entry>)> {
    let mut groups: Vec<(usize, Vec<Entry>)> = vec![(n, vec![None])];
    for entry in reduced(dtype, Kernel::Gram).into_iter().filter(|_| forced) {
        let most = variant(entry).and_then(Variant::most_columns);
        let columns = most.map_or(n, |most| n.min(most as usize));
        match groups.iter_mut().find(|(of, _)| *of == columns) {
            Some((_, entries)) => entries.push(entry),
            None => groups.push((columns, vec![entry])),
        }
    }
    groups
}

impl Spec {
    /// [`Spec::groups`], and on a GPU those of the entries of two tall matrices and of vectors, at their sizes.
    pub fn groups_of_all(self, dtype: Dtype, forced: bool) -> Vec<(Spec, Vec<Entry>)> {
        let of = |(size, entries)| Spec { size, ..self }.groups(entries);
        let reduced = reduced_groups(dtype, self.size).into_iter().filter(|_| forced);
        let groups = self.groups(all(dtype, forced)).into_iter().chain(reduced.flat_map(of));
        groups.filter(|(_, entries)| !entries.is_empty()).collect()
    }

    /// Whether an entry serves its size, and takes its operands as they lie.
    pub fn suits(&self, entry: Entry) -> bool {
        let ((m, n, k), [a, b, _]) = (self.size, self.storage);
        serves(entry, self.size) && takes(entry, self.size, a.strides(m, k), b.strides(k, n))
    }

    /// The same with the large one of A and B laid out the other way.
    pub fn turned(mut self) -> Spec {
        let large = usize::from(self.size.1 > self.size.0);
        self.storage[large].row_major = !self.storage[large].row_major;
        self
    }

    /// The product with those that take it, and, if there are others, the turned one with them and the model's choice:
    /// every entry that serves its size is in one of both.
    pub fn groups(self, entries: Vec<Entry>) -> Vec<(Spec, Vec<Entry>)> {
        let served = entries.into_iter().filter(|entry| serves(*entry, self.size));
        let (here, others): (Vec<Entry>, Vec<Entry>) = served.partition(|entry| self.suits(*entry));
        let mut groups = vec![(self, here)];
        if !others.is_empty() {
            groups.push((self.turned(), [None].into_iter().chain(others).collect()));
        }
        groups
    }
}

/// What each entry does with a case that may lie otherwise than it wants: `product` if it takes it, else the refusal.
pub fn product_or_refusal<T: Real>(
    lab: &Lab,
    case: &mut Case<T>,
    entry: Entry,
    product: impl FnOnce(&mut Case<T>, &Plan) -> Outcome,
) -> Outcome {
    let plan = case.plan(lab, entry);
    if case.spec.suits(entry) { product(case, &plan?) } else { refused(entry, plan) }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::check::splits;
    use crate::operand::Storage;
    use crate::shapes::Edges;
    use model::{Choice, Machine, Problem, Refusal, Strides, choose};

    /// A case as the model is told of it.
    pub fn problem(spec: &Spec, dtype: Dtype) -> Problem {
        let ((m, n, k), [a, b, c]) = (spec.size, spec.storage);
        let wide = |length: usize| length as u64;
        let strides = |storage: Storage, rows, cols| {
            let (row, col) = storage.strides(rows, cols);
            Strides { row: wide(row), col: wide(col) }
        };
        let (a, b, c) = (strides(a, m, k), strides(b, k, n), strides(c, m, n));
        Problem { a, b, c, ..Problem::column_major(dtype, wide(m), wide(n), wide(k)) }
    }

    /// What the model decides for an entry on a large GPU.
    pub fn planned(spec: &Spec, v: &Variant) -> Result<Choice, Refusal> {
        choose(&problem(spec, v.dtype), &Machine::H200, Some(v.entry))
    }

    /// The rule written here is the model's: no entry is left out, and none is asked for what it refuses.
    #[test]
    fn every_entry_has_every_product_in_a_layout_that_it_takes() {
        let sizes = Edges::of(Dtype::F64).sizes().into_iter().step_by(7).chain(splits::SIZES);
        let mut refusals = 0;
        for (index, size) in sizes.enumerate() {
            for spec in [Spec::varied(size, index), Spec::plain(size)] {
                for dtype in [Dtype::F32, Dtype::F64] {
                    let groups = spec.groups(all(dtype, true));
                    for v in VARIANTS.iter().filter(|v| v.dtype == dtype && !v.is_reduced()) {
                        let with: Vec<&Spec> =
                            groups.iter().filter(|(_, e)| e.contains(&Some(v.entry))).map(|(spec, _)| spec).collect();
                        assert_eq!(with.len(), usize::from(serves(Some(v.entry), size)), "{} {size:?}", v.entry);
                        let too_wide =
                            widest(v).map(|(columns, steps)| Refusal::TooWide { columns, steps: Some(steps) });
                        let too_wide = too_wide.or(v.multiples().map(|of| Refusal::NotWhole { of }));
                        if with.is_empty() {
                            assert_eq!(planned(&spec, v).err(), too_wide, "{} {spec:?}", v.entry);
                            continue;
                        }
                        assert!(planned(with[0], v).is_ok(), "{} {:?}", v.entry, with[0]);
                        for spec in [spec, spec.turned()].iter().filter(|spec| !spec.suits(Some(v.entry))) {
                            refusals += 1;
                            let refusal = Refusal::Layout { wanted: v.layout };
                            assert_eq!(planned(spec, v).err(), Some(refusal), "{} {spec:?}", v.entry);
                        }
                    }
                }
            }
        }
        assert!(refusals > 1000, "{refusals}");
    }

    /// Each entry is in one share, and each share has some of every kernel in every type that has twice as many.
    #[test]
    fn shares_are_all_entries() {
        for of in [1, 3] {
            let shares: Vec<Vec<&Variant>> = (0..of).map(|at| Share { at, of }.of(VARIANTS).collect()).collect();
            let together = || shares.iter().flatten();
            assert_eq!(together().count(), VARIANTS.len());
            assert!(VARIANTS.iter().all(|v| together().any(|other| other.entry == v.entry)), "of {of}");
            for v in VARIANTS {
                let alike = |other: &&Variant| other.kernel == v.kernel && other.dtype == v.dtype;
                let many = VARIANTS.iter().filter(alike).count() >= 2 * of;
                let everywhere = shares.iter().all(|share| share.iter().copied().any(|other| alike(&other)));
                assert!(!many || everywhere, "of {of}: {:?} in {:?}", v.kernel, v.dtype);
            }
            let batches: usize = (0..of).map(|at| Share { at, of }.of(BATCHED).count()).sum();
            assert_eq!(batches, BATCHED.len());
        }
    }

    #[test]
    fn a_refusal_must_name_the_layout() {
        let refusal = |what: &str| Err(Error::Unsupported { what: what.into() });
        let rows = VARIANTS.iter().find(|v| v.layout == Layout::Rows).map(|v| v.entry);
        assert!(refused(rows, refusal("x: it wants unit stride along the rows of A")).is_ok());
        assert!(refused(rows, refusal("x: it wants unit stride down the columns of A")).is_err());
        assert!(refused(rows, refusal("x")).is_err());
    }
}
