//! Timing: a median of runs between two events each.

use crate::lab::Outcome;
use host::Stream;

/// Seconds a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    /// Half of the runs were quicker.
    pub median: f64,
    /// The quickest.
    pub min: f64,
    /// The slowest.
    pub max: f64,
}

/// Runs before the timed ones.
const WARM_UP: usize = 3;
/// Quicker ones are led by a run that is not timed, s: while the device is busy with it the timed one is enqueued, so that
/// no launch is waited for between the events.
const LED: f64 = 5e-3;
/// Slower ones are run less often, s.
const SLOW: f64 = 25e-3;
/// As often as this.
const SLOW_SAMPLES: usize = 10;

impl Times {
    /// Of all runs.
    fn of(mut all: Vec<f64>) -> Outcome<Times> {
        all.sort_by(f64::total_cmp);
        let (Some(&min), Some(&max)) = (all.first(), all.last()) else { return Err("nothing was timed".into()) };
        let median = (all[(all.len() - 1) / 2] + all[all.len() / 2]) / 2.0;
        Ok(Times { median, min, max })
    }
}

/// Times `work`, which gives work to the stream, `samples` times.
pub fn sample(stream: &Stream, samples: usize, mut work: impl FnMut() -> host::Result<()>) -> Outcome<Times> {
    for _ in 0..WARM_UP {
        work()?;
    }
    stream.synchronize()?;
    let first = stream.timed(&mut work)?;
    let led = first < LED && stream.as_raw().is_some();
    let count = if first > SLOW { samples.min(SLOW_SAMPLES) } else { samples };
    let mut all = Vec::with_capacity(count);
    for _ in 0..count {
        if led {
            work()?;
        }
        all.push(stream.timed(&mut work)?);
    }
    Times::of(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() -> Outcome {
        assert_eq!(Times::of(vec![3.0, 1.0, 2.0])?, Times { median: 2.0, min: 1.0, max: 3.0 });
        assert_eq!(Times::of(vec![4.0, 1.0, 2.0, 3.0])?.median, 2.5);
        assert!(Times::of(Vec::new()).is_err());
        Ok(())
    }

    #[test]
    fn every_run_is_counted() -> Outcome {
        let stream = host::Device::cpu().stream()?;
        let mut runs = 0;
        sample(&stream, 30, || {
            runs += 1;
            Ok(())
        })?;
        assert_eq!(runs, WARM_UP + 1 + 30);
        Ok(())
    }
}
