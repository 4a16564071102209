//! From times to rows: of ours with the fastest of the others, or of the others alone.

use model::roofline::Bound;
use model::variants::splits_f32;

use super::case::Case;
use super::contest::{self, Role, Times};
use super::data::Data;
use super::entrants::Contestant;
use super::measure::{Bench, TOO_FAST_BY};
use super::outcome::{Measured, Time};
use super::result::{ABOVE, Best, CACHED, Derived, GRAPH, Row, Timing};
use super::stats::Summary;
use super::{fault, table};
use crate::error::Fault;
use crate::real::Real;
use crate::say;

/// What is ours in a row.
type Own<'c, 'b> = (&'c Contestant<'b>, Summary);

/// The seconds that an entry cannot be faster than: of f32 that is split the memory's alone, for the units that it takes have no ceiling here.
fn least_s(bound: &Bound, entry: &str) -> f64 {
    if splits_f32(entry) { bound.memory_s } else { bound.seconds() }
}

impl<'b> Bench<'b> {
    /// A row for each of ours, with the fastest of the others. `how` is said of all of them.
    ///
    /// # Errors
    /// That results cannot be written.
    pub fn add_all<T: Real>(
        &mut self,
        case: &Case,
        data: &Data<'_, T>,
        bound: &Bound,
        contestants: &[Contestant<'b>],
        times: &Times,
        how: &str,
    ) -> Result<(), Fault> {
        let cached = if how == GRAPH { contest::is_graph_cached(&data.parts) } else { data.parts.cached };
        let (mut own, mut others) = (Vec::new(), Vec::new());
        for (contestant, times) in contestants.iter().zip(times) {
            let name = &contestant.name;
            match times {
                // Not raced.
                Ok(times) if times.is_empty() => {}
                Ok(times) => match (summary(times, self.args.seed), contestant.role) {
                    (None, _) => self.outcome.not_run(format!("{name}: it took no time that the clock shows")),
                    (Some(times), Role::Other) => others.push(Time { name: name.clone(), ns: times.median * 1e9 }),
                    (Some(times), _) => own.push((contestant, times)),
                },
                Err(error) if contestant.role == Role::Other => {
                    self.outcome.opponents_out.push(format!("{name}{how}: {}: {error}", case.name()));
                }
                Err(error) => {
                    self.outcome.failed(&format!("{} by {name}{how}", case.name()), &error.clone().into());
                }
            }
        }
        let how = if cached { format!("{how}{CACHED}") } else { how.into() };
        // An opponent that is above the bound stays one: it may be the bound that is wrong, and it must not be flattered.
        let held = self.is_held(cached);
        for time in others.iter_mut().filter(|_| held) {
            if self.is_above(case, bound.seconds(), &time.name, time.ns) {
                time.name += ABOVE;
            }
        }
        if contestants.iter().all(|contestant| contestant.role == Role::Other) {
            return if others.is_empty() { Ok(()) } else { self.add(case, bound, how, None, &others) };
        }
        for (contestant, times) in own {
            let mut variant = format!("{}{how}", contestant.name);
            if held && self.is_above(case, least_s(bound, &contestant.name), &variant, times.median * 1e9) {
                variant += ABOVE;
            }
            self.add(case, bound, variant, Some((contestant, times)), &others)?;
        }
        Ok(())
    }

    /// Whether a figure is above the ceiling; then it is put on record.
    fn is_above(&mut self, case: &Case, least_s: f64, name: &str, ns: f64) -> bool {
        let fraction = least_s * 1e9 / ns;
        if fraction > TOO_FAST_BY {
            self.outcome.above(format!("{} by {name}: {:.1}% of the bound", case.name(), 100.0 * fraction));
        }
        fraction > TOO_FAST_BY
    }

    /// Adds a row: of ours by who chose it, or of the others alone.
    fn add(
        &mut self,
        case: &Case,
        bound: &Bound,
        variant: String,
        ours: Option<Own<'_, 'b>>,
        others: &[Time],
    ) -> Result<(), Fault> {
        let ns = |seconds: f64| seconds * 1e9;
        let fastest = others.iter().min_by(|a, b| a.ns.total_cmp(&b.ns));
        let origin = &self.outcome.origin;
        let (chooser, times) = (ours.map_or("", |(own, _)| own.chooser), ours.map(|(_, times)| times));
        let launch = ours.and_then(|(own, _)| own.launch.clone());
        let row = Row {
            case: case.clone(),
            device: origin.device.clone(),
            variant,
            chooser: chooser.into(),
            splits: launch.as_ref().map(|launch| launch.splits),
            samples: times.map_or(self.args.samples, |times| times.samples),
            ours: times.map(|times| Timing {
                ns_median: ns(times.median),
                ns_low: ns(times.low),
                ns_high: ns(times.high),
                ns_min: ns(times.min),
            }),
            bytes: (bound.read_bytes + bound.write_bytes) as f64,
            flops: bound.flops,
            bound_ns: ns(bound.seconds()),
            best: fastest.map(|time| Best { opponent: time.name.clone(), opponent_ns: time.ns }),
            derived: Derived::default(),
            seed: self.args.seed,
            commit: origin.commit.clone(),
            driver: origin.driver.clone(),
            date: origin.date.clone(),
        };
        let row = row.derive();
        self.journal.row(&row)?;
        let measured = Measured { error_of_measurement: row.is_error(), row, launch, opponents: others.to_vec() };
        if !self.args.json {
            say::print(&table::row(&measured))?;
        }
        self.outcome.rows.push(measured);
        Ok(())
    }
}

/// Of times that the clock shows.
pub fn summary(times: &[f64], seed: u64) -> Option<Summary> {
    let planted = if fault::planted(fault::TOO_FAST) { 1e-3 } else { 1.0 };
    let times: Vec<f64> = times.iter().map(|time| time * planted).collect();
    Summary::of(&times, seed).filter(|s| s.median > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_split_is_held_against_the_memory_alone() {
        let bound = Bound { read_bytes: 1, write_bytes: 1, flops: 1.0, memory_s: 1.0, arithmetic_s: 2.0 };
        let of = |entry| least_s(&bound, entry);
        assert_eq!([of("stsm2r_split_32x64_n64_k32_s3_t256"), of("stsm2r_staged_8x8_n64_k16_s3_t128")], [1.0, 2.0]);
    }
}
