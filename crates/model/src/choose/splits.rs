//! Into how many parts an entry cuts k.

use crate::roofline::{Estimator, MOST_SPLITS};
use core::cell::Cell;

/// Powers of two up to [`MOST_SPLITS`].
const OCTAVES: usize = MOST_SPLITS.ilog2() as usize + 1;

/// Estimates closer than this are alike: then fewer splits need less scratch.
pub(super) const ALIKE: f64 = 1.01;

/// The fewest parts of k whose expected time is like the least, and that time, s; `None` if the least is found to be more than
/// `enough_s`.
pub(super) fn best_split(estimator: &mut Estimator<'_>, enough_s: f64) -> Option<(u32, f64)> {
    estimator.sharpen();
    let search = Search::new(estimator, enough_s);
    // What takes no longer is like the least, whatever that is, and no more parts are wanted.
    let sure_s = ALIKE * search.octaves.iter().fold(f64::INFINITY, |least, octave| least.min(octave.least_s));
    let (least_s, most) = search.least(sure_s);
    if least_s > enough_s {
        return None;
    }
    let (mut fewest, mut time_s) = search.fewest(ALIKE * least_s)?;
    // It is like the least so far, which may not be the least of all.
    while most < u32::MAX && time_s > sure_s {
        let Some(less_s) = search.less(time_s) else { break };
        (fewest, time_s) = search.fewest(ALIKE * less_s)?;
    }
    Some((fewest, time_s))
}

/// Parts from a power of two to below the next.
#[derive(Clone, Copy)]
struct Octave {
    first: u32,
    last: u32,
    /// What all of them take at least, s.
    least_s: f64,
}

/// A search among all numbers of parts: more parts have more slots, and fewer more latency, and most octaves hold nothing that is
/// enough.
struct Search<'a> {
    estimator: &'a Estimator<'a>,
    enough_s: f64,
    octaves: [Octave; OCTAVES],
    /// The times of few parts, which are asked for several times: NaN where nothing is known, and less than 0 that it is more.
    known: [Cell<f64>; KNOWN],
}

/// More parts than that are seldom asked for again.
const KNOWN: usize = 256;

impl<'a> Search<'a> {
    fn new(estimator: &'a Estimator<'a>, enough_s: f64) -> Self {
        let most = estimator.most_splits();
        // What is not there is not enough either, also where nothing ever is.
        let mut octaves = [Octave { first: 0, last: 0, least_s: f64::NAN }; OCTAVES];
        for (log, octave) in octaves[..=most.ilog2() as usize].iter_mut().enumerate() {
            let (first, last) = (1 << log, (2 << log).min(most + 1) - 1);
            // More than is like enough need not be known.
            if estimator.slots_from_s(first) <= ALIKE * enough_s {
                *octave = Octave { first, last, least_s: estimator.least_between_s(first, last) };
            }
        }
        Search { estimator, enough_s, octaves, known: [const { Cell::new(f64::NAN) }; KNOWN] }
    }

    /// The time with k in `splits` parts, s; or infinity, if it is more than `limit_s`.
    fn seconds(&self, splits: u32, limit_s: f64) -> f64 {
        let Some(known) = self.known.get(splits as usize) else {
            return self.estimator.seconds_within(splits, limit_s);
        };
        if known.get() >= 0.0 {
            return known.get();
        } else if -known.get() >= limit_s {
            return f64::INFINITY;
        }
        let seconds = self.estimator.seconds_within(splits, limit_s);
        known.set(if seconds < f64::INFINITY { seconds } else { -limit_s });
        seconds
    }

    /// The least time, and [`u32::MAX`]; or the least of those up to parts that take no more than `sure_s`, and these.
    fn least(&self, sure_s: f64) -> (f64, u32) {
        let (mut least_s, mut most) = (f64::INFINITY, u32::MAX);
        // A few first: what is far above them need not be worked out.
        for (skipped, taken) in [(0, 1), (1, usize::MAX)] {
            for octave in &self.octaves {
                // Nor is an octave that is not there.
                let is_worth = octave.first < most && octave.least_s <= self.enough_s.min(least_s);
                if !is_worth {
                    continue;
                }
                let splits = self.estimator.splits_of(octave.first, octave.last).skip(skipped).take(taken);
                for splits in splits.take_while(|splits| *splits < most) {
                    let limit_s = self.enough_s.min(least_s).max(sure_s);
                    let seconds = self.seconds(splits, limit_s);
                    least_s = least_s.min(seconds);
                    if seconds <= sure_s {
                        most = splits;
                        break;
                    }
                }
            }
        }
        (least_s, most)
    }

    /// A time, if there is one, that is so much less than `time_s` that they are not alike.
    fn less(&self, time_s: f64) -> Option<f64> {
        // It is sooner found where bounds are the least.
        let at = |a: usize, b: usize| if self.octaves[b].least_s < self.octaves[a].least_s { b } else { a };
        let (fewer, more) = self.octaves.split_at((0..OCTAVES).reduce(at).unwrap_or(0));
        let octaves = more.iter().chain(fewer.iter().rev()).filter(|octave| ALIKE * octave.least_s < time_s);
        octaves
            .flat_map(|octave| self.estimator.splits_of(octave.first, octave.last))
            .map(|splits| self.seconds(splits, time_s / ALIKE))
            .find(|less_s| ALIKE * less_s < time_s)
    }

    /// The fewest parts that take no more than `alike_s`, and their time, s.
    fn fewest(&self, alike_s: f64) -> Option<(u32, f64)> {
        let octaves = self.octaves.iter().filter(|octave| octave.least_s <= alike_s);
        octaves
            .flat_map(|octave| self.estimator.splits_of(octave.first, octave.last))
            .map(|splits| (splits, self.seconds(splits, alike_s)))
            .find(|(_, seconds)| *seconds <= alike_s)
    }
}
