//! Random data: every element within the bound of its plan's own chain of roundings.

use crate::case::{Case, Spec};
use crate::compare::within;
use crate::lab::{Lab, Outcome, named};
use crate::oracle::{Near, chain, near};
use crate::real::{Real, hash, unit};

/// What the elements are.
#[derive(Clone, Copy, Debug)]
enum Data {
    /// Uniform in (−1, 1).
    Signed,
    /// Uniform in (0, 1): sums grow.
    Positive,
    /// Powers of two of very different sizes.
    Geometric,
    /// The second half of A's rows undoes the first, but for its last bits.
    Cancelling,
}

const KINDS: [Data; 4] = [Data::Signed, Data::Positive, Data::Geometric, Data::Cancelling];
const SIZES: [(usize, usize, usize); 4] = [(257, 7, 1031), (33, 16, 4099), (5, 3, 16411), (6, 131, 260)];
/// On an emulated GPU.
const SMALL: [(usize, usize, usize); 2] = [(33, 16, 261), (6, 35, 67)];

/// Both element types.
pub fn run(lab: &Lab) -> Outcome {
    sweep::<f32>(lab)?;
    sweep::<f64>(lab)?;
    ones(lab)
}

fn element<T: Real>(data: Data, seed: u64, i: usize, l: usize, k: usize) -> f64 {
    let value = unit(seed, i, l);
    match data {
        Data::Signed => value,
        Data::Positive => value.abs(),
        Data::Geometric => {
            let exponent = (hash(seed + 7, i, l) % (2 * T::EXPONENT as u64 + 1)) as i64 - T::EXPONENT;
            value * (exponent as f64).exp2()
        }
        Data::Cancelling if l >= k / 2 => -unit(seed, i, l - k / 2) * (1.0 + T::U * 8.0),
        Data::Cancelling => value,
    }
}

fn sweep<T: Real>(lab: &Lab) -> Outcome {
    kinds::<T>(lab, if lab.is_emulated() { &SMALL } else { &SIZES })
}

fn kinds<T: Real>(lab: &Lab, sizes: &[(usize, usize, usize)]) -> Outcome {
    for (index, (data, size)) in KINDS.into_iter().flat_map(|d| sizes.iter().map(move |s| (d, *s))).enumerate() {
        let k = size.2;
        // B's halves are equal, so that A's cancel.
        let in_b = |l: usize| if matches!(data, Data::Cancelling) && l >= k / 2 { l - k / 2 } else { l };
        let of_b = if matches!(data, Data::Cancelling) { Data::Signed } else { data };
        for (spec, entries) in lab.groups_of_all::<T>(Spec::varied(size, index)) {
            let mut case = spec.make::<T>(
                lab,
                |i, l| element::<T>(data, 1, i, l, k),
                |l, j| element::<T>(of_b, 2, in_b(l), j, k),
                |i, j| unit(3, i, j),
            )?;
            let expected = near(&case);
            for entry in entries {
                let result = one(lab, &mut case, &expected, entry, matches!(data, Data::Signed));
                lab.record(|| format!("rounding {} {data:?} {}", named(entry), spec.name::<T>()), result)?;
            }
        }
    }
    Ok(())
}

fn one<T: Real>(lab: &Lab, case: &mut Case<T>, expected: &[Near], entry: Option<&str>, usual: bool) -> Outcome {
    let plan = case.plan(lab, entry)?;
    let (rows, k) = (case.spec.size.0, case.spec.size.2);
    let length = chain(plan.choice(), k);
    let found = case.run(lab, &plan)?;
    within(&found, expected, rows, length, k)?;
    if usual {
        let count = unusual(&found, expected, length, k);
        if count > 0 {
            let spec = case.spec.name::<T>();
            lab.note(&format!("{} {spec}: {count} errors above a quarter of 6 sqrt(L) u |A||B|", named(entry)));
        }
    }
    Ok(())
}

/// Errors above a quarter of their usual size. The bound hides a lost last bit where k is long; that does not.
fn unusual<T: Real>(found: &[T], expected: &[Near], length: f64, k: usize) -> usize {
    let far = |(f, near): &(&T, &Near)| near.error(f.wide()) > near.usual::<T>(length, k) / 4.0;
    found.iter().zip(expected).filter(far).count()
}

/// 2^24 + 1 ones in f32: one running sum would stop at 2^24, and cannot say 2^24 + 1 either. Split sums must be as close
/// as theirs: within γ of their own chains.
fn ones(lab: &Lab) -> Outcome {
    if !lab.device.is_cuda() {
        lab.skip("rounding of ones", "the CPU's parts of k are no plan's");
        return Ok(());
    }
    if lab.is_emulated() {
        return Ok(()); // it would take minutes, and an operand is 64 MB
    }
    let spec = Spec::plain((3, 2, (1 << 24) + 1));
    let mut case = spec.make::<f32>(lab, |_, _| 1.0, |_, _| 1.0, |_, _| 0.0)?;
    let expected = near(&case);
    let result = one(lab, &mut case, &expected, None, false);
    lab.record(|| format!("rounding of ones, {}", spec.name::<f32>()), result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::Device;

    /// On the CPU too: each kind of data, in parts of k and without.
    #[test]
    fn every_kind_of_data_is_within_the_bound_on_the_cpu() -> Outcome {
        let lab = Lab::new(Device::cpu(), 16)?;
        kinds::<f32>(&lab, &SIZES)?;
        kinds::<f64>(&lab, &SIZES)?;
        assert!(lab.finish() && lab.passed() == 2 * KINDS.len() * SIZES.len());
        Ok(())
    }

    /// Factors of eleven bits, as TF32 has them: of a long sum that is within the bound, and told all the same.
    #[test]
    fn what_the_bound_hides_is_told() -> Outcome {
        let (lab, spec) = (Lab::new(Device::cpu(), 16)?, Spec::plain((33, 16, 4099)));
        let mut case = spec.make::<f32>(&lab, |i, l| unit(1, i, l), |l, j| unit(2, l, j), |_, _| 0.0)?;
        let (near, length) = (near(&case), 4099.0);
        let plan = case.plan(&lab, None)?;
        assert_eq!(unusual(&case.run(&lab, &plan)?, &near, length, 4099), 0);
        let short = |x: f64| f64::from(f32::from_bits((x as f32).to_bits() & !0x1fff));
        let element = |e: usize| (0..4099).map(|l| short(unit(1, e % 33, l)) * short(unit(2, l, e / 33))).sum::<f64>();
        let lost: Vec<f32> = (0..33 * 16).map(|e| element(e) as f32).collect();
        within(&lost, &near, 33, length, 4099)?;
        assert!(unusual(&lost, &near, length, 4099) > 0);
        Ok(())
    }
}
