//! The same bits on every GPU.

use super::{Choice, Chooser, Fit, choose, choose_given};
use crate::{Machine, Parts, Problem, Refusal, VARIANTS};

/// What every GPU computes alike: the entry and the parts of k that [`choose`] takes for [`Machine::COMMON`], whatever this
/// machine is, launched on this one. The order of every sum follows from them and from the product's sizes; blocks that take
/// tiles in turn may be more or fewer.
///
/// `force` names a variant or an entry, and with one `parts` the parts of k, as in [`choose_given`].
///
/// # Errors
/// As [`choose`] for [`Machine::COMMON`]; for this one, where it has less than that. [`Refusal::AnyOrder`] for an entry whose
/// sums have none.
pub fn choose_across(
    problem: &Problem,
    machine: &Machine,
    force: Option<&str>,
    parts: Option<u32>,
) -> Result<Choice, Refusal> {
    let common = match force.zip(parts) {
        Some((name, parts)) => choose_given(problem, &Machine::COMMON, name, Parts::Exactly(parts))?,
        None => choose(problem, &Machine::COMMON, force)?,
    };
    if common.variant.adds_atomically() {
        return Err(Refusal::AnyOrder);
    }
    let place = VARIANTS.iter().position(|variant| variant.entry == common.variant.entry);
    let fit = Fit::new(place.ok_or(Refusal::UnknownVariant)?, problem, machine)?;
    Ok(Choice { chooser: Chooser::Common, ..fit.launch(common.splits) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::TABLE;
    use crate::{Dtype, Strides};

    const LENGTHS: [(u64, u64, u64); 16] = [
        (20_480, 4, 20_480),
        (300, 4, 1_000_000),
        (70, 2, 2_400),
        (1_000_000, 16, 16),
        (5_000_000, 3, 64),
        (16, 16, 10_000_000),
        (64, 33, 200_000),
        (20_000, 1, 300),
        (7, 1, 3_000_000),
        (1, 1, 1),
        (500, 500, 500),
        (4096, 4096, 4096),
        (33, 4000, 4000),
        (130, 129, 100_000),
        (63, 64, 65),
        (100_000, 65, 3),
    ];

    fn problems() -> impl Iterator<Item = Problem> {
        let dtypes = [Dtype::F32, Dtype::F64, Dtype::C64, Dtype::C128];
        dtypes.into_iter().flat_map(|dtype| {
            LENGTHS.into_iter().flat_map(move |(m, n, k)| {
                let p = Problem::column_major(dtype, m, n, k);
                let rows =
                    Problem { a: Strides::row_major(k), b: Strides::row_major(n), c: Strides::row_major(n), ..p };
                let tall = Problem { b: Strides::row_major(n), reads_c: true, ..p };
                [p, rows, tall, p.transposed(), Problem::gram(dtype, n.min(64), k, Strides::row_major(n.min(64)))]
            })
        })
    }

    /// All of the table for which kernels are carried; and slices of them.
    fn machines() -> impl Iterator<Item = Machine> {
        TABLE
            .into_iter()
            .map(|(_, machine)| machine)
            .filter(|machine| machine.compute_capability >= (8, 0))
            .flat_map(|machine| [machine.sms, 16, 7, 1].map(|sms| Machine { sms, ..machine }))
    }

    /// The parts that every element's sum has, and who computes it: what bits follow from.
    fn what(choice: &Choice) -> (&'static str, u32, bool, u32) {
        (choice.variant.entry, choice.splits, choice.swapped, choice.grid[1])
    }

    #[test]
    fn every_machine_is_given_the_same_entry_and_parts() -> Result<(), Refusal> {
        let (mut cases, mut otherwise) = (0, 0);
        for p in problems() {
            let common = choose_across(&p, &Machine::COMMON, None, None)?;
            assert_eq!(what(&common), what(&choose(&p, &Machine::COMMON, None)?));
            for machine in machines() {
                let here = choose_across(&p, &machine, None, None)?;
                assert_eq!(what(&here), what(&common), "{} with {} SMs: {p:?}", machine.name, machine.sms);
                assert_eq!(
                    (here.chooser, here.finish, here.slots_len),
                    (Chooser::Common, common.finish, common.slots_len)
                );
                assert!(here.estimate.seconds.is_finite() && here.estimate.seconds > 0.0, "{here}");
                cases += 1;
                otherwise += usize::from(what(&choose(&p, &machine, None)?) != what(&here));
            }
        }
        // Without it they would be others: or this test saw nothing.
        assert!(cases > 3000 && otherwise > cases / 4, "{otherwise} of {cases}");
        Ok(())
    }

    #[test]
    fn names_and_parts_are_followed_where_all_have_them() -> Result<(), Refusal> {
        let p = Problem::column_major(Dtype::F64, 300, 4, 1_000_000);
        for machine in machines() {
            let forced = choose_across(&p, &machine, Some("tsm2r_prefetch"), None)?;
            let of_parts = choose_across(&p, &machine, Some("tsm2r_prefetch"), Some(37))?;
            assert_eq!((forced.variant.name, of_parts.splits), ("tsm2r_prefetch", 37));
            // An H200 has it, an A100 has not.
            let needs = choose_across(&p, &machine, Some("tsm2r_mma"), None);
            assert!(needs.is_err(), "{needs:?}");
            let tall = Problem { m: 16, n: 16, a: Strides::row_major(1_000_000), ..p };
            assert_eq!(choose_across(&tall, &machine, Some("tsmttsm_atomic"), None), Err(Refusal::AnyOrder));
        }
        Ok(())
    }
}
