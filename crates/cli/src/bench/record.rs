//! From times to rows: of ours with the fastest of the others, or of the others alone.

use lanky::Scalar;
use model::roofline::Bound;

use super::case::Case;
use super::data::Data;
use super::entrants::Contestant;
use super::measure::{ABOVE, Bench, OTHERS_ARE_HELD, Times};
use super::outcome::{Measured, Time};
use super::result::{Best, CACHED, GRAPH, Row, Timing};
use super::stats::Summary;
use super::{contest, fault, table};
use crate::error::Fault;
use crate::say;

impl<'b> Bench<'b> {
    /// A row for each of ours, with the fastest of the others. `how` is said of all of them.
    pub fn add_all<T: Scalar>(
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
            match (times, contestant.chooser) {
                (Ok(times), Some(chooser)) => own.push((name, chooser, times)),
                (Ok(times), None) => {
                    let median = summary(times, self.args.seed).map(|s| s.median * 1e9);
                    others.extend(median.map(|ns| Time { name: name.clone(), ns }));
                }
                (Err(error), Some(_)) => return Err(Fault::from(error.clone())),
                (Err(error), None) => {
                    self.outcome.opponents_out.push(format!("{name}{how}: {}: {error}", case.name()));
                }
            }
        }
        let how = if cached { format!("{how}{CACHED}") } else { how.into() };
        // An opponent that is above the bound stays one: it may be the bound that is wrong, and it must not be flattered.
        let held = !cached && (OTHERS_ARE_HELD || fault::planted(fault::TOO_FAST));
        let above: Vec<bool> =
            others.iter().map(|time| held && self.is_above(case, bound, &time.name, time.ns)).collect();
        if contestants.iter().all(|contestant| contestant.chooser.is_none()) {
            let mut above = above.into_iter();
            others.retain(|_| above.next() == Some(false));
            return if others.is_empty() { Ok(()) } else { self.add(case, bound, how, None, &others) };
        }
        for (name, chooser, times) in own {
            let Some(times) = summary(times, self.args.seed) else {
                self.outcome.not_run("it took no time that the clock shows".into());
                continue;
            };
            let variant = format!("{name}{how}");
            if cached || !self.is_above(case, bound, &variant, times.median * 1e9) {
                self.add(case, bound, variant, Some((chooser, times)), &others)?;
            }
        }
        Ok(())
    }

    /// Whether a figure is above the ceiling; then it is put on record.
    fn is_above(&mut self, case: &Case, bound: &Bound, name: &str, ns: f64) -> bool {
        let fraction = bound.seconds() * 1e9 / ns;
        if fraction > ABOVE {
            let words = format!("{} by {name}: {:.1}% of the bound", case.name(), 100.0 * fraction);
            say::note(&format!("ERROR OF MEASUREMENT: {words}"));
            self.outcome.errors_of_measurement.push(words);
        }
        fraction > ABOVE
    }

    /// Adds a row: of ours by who chose it, or of the others alone.
    fn add(
        &mut self,
        case: &Case,
        bound: &Bound,
        variant: String,
        ours: Option<(&str, Summary)>,
        others: &[Time],
    ) -> Result<(), Fault> {
        let ns = |seconds: f64| seconds * 1e9;
        let fastest = others.iter().min_by(|a, b| a.ns.total_cmp(&b.ns));
        let origin = &self.outcome.origin;
        let row = Row {
            case: case.clone(),
            device: origin.device.clone(),
            variant,
            chooser: ours.map_or("", |(chooser, _)| chooser).into(),
            samples: ours.map_or(self.args.samples, |(_, times)| times.samples),
            ours: ours.map(|(_, times)| Timing {
                ns_median: ns(times.median),
                ns_low: ns(times.low),
                ns_high: ns(times.high),
                ns_min: ns(times.min),
            }),
            bytes: (bound.read_bytes + bound.write_bytes) as f64,
            flops: bound.flops,
            bound_ns: ns(bound.seconds()),
            best: fastest.map(|time| Best { opponent: time.name.clone(), opponent_ns: time.ns }),
            seed: self.args.seed,
            commit: origin.commit.clone(),
            driver: origin.driver.clone(),
            date: origin.date.clone(),
        };
        let measured = Measured { row, opponents: others.to_vec() };
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
