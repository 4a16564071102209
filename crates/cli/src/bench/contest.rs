//! Timing: whoever computes the same product takes turns, A B A B, on the same data and stream.

use lanky::{Device, Scalar, Stream};

use super::data::{Addresses, Data, Parts};
use crate::error::Fault;

/// Somebody who computes a case.
pub trait Run {
    /// Prepares what depends on where the data is: every later call is for one of these places. It is called before anything
    /// is timed or recorded.
    ///
    /// # Errors
    /// Whatever prevents it.
    fn ready(&mut self, _stream: &Stream, _all: &[Addresses]) -> lanky::Result<()> {
        Ok(())
    }

    /// Gives C <- op(A) op(B) + beta C to the stream, or does it.
    ///
    /// # Safety
    /// At the addresses is a turn's data of the case that this was prepared for; it stays until the work is done.
    ///
    /// # Errors
    /// Whatever prevents it.
    unsafe fn enqueue(&mut self, at: Addresses) -> lanky::Result<()>;
}

/// Runs of each before any is timed.
const WARM_UP: u64 = 3;
/// On a GPU so many rounds are given to the stream before they are waited for, behind a run that is not timed: then the
/// device is not idle when a timed one comes.
const ROUNDS_AT_ONCE: usize = 10;
/// But no longer than this, s.
const SECONDS_AT_ONCE: f64 = 0.05;
/// Runs in one graph: at least so many, and one of every part of the data if these are not more than so many.
const RUNS_A_GRAPH: (u64, u64) = (20, 500);
/// Opponents that take so many times as long as the fastest before them, and longer than so many seconds, are left out: thirty
/// runs would say no more.
const HOPELESS: (f64, f64) = (20.0, 0.01);

/// Seconds of every run of each contestant, `samples` of each, taking turns. One that fails has none, and its error. The
/// first `own` are ours.
pub fn race<T: Scalar>(
    stream: &Stream,
    data: &mut Data<'_, T>,
    contestants: &mut [&mut dyn Run],
    own: usize,
    samples: usize,
) -> Result<Vec<lanky::Result<Vec<f64>>>, Fault> {
    let mut turn = 0;
    let mut results: Vec<lanky::Result<Vec<f64>>> = contestants.iter().map(|_| Ok(Vec::new())).collect();
    let (mut round_s, mut first_s) = (0.0, f64::INFINITY);
    let places = data.all_addresses();
    for (which, (contestant, result)) in contestants.iter_mut().zip(&mut results).enumerate() {
        match contestant.ready(stream, &places).and_then(|()| warm(stream, data, *contestant, &mut turn)) {
            Ok(seconds) if which >= own && seconds > HOPELESS.1.max(HOPELESS.0 * first_s) => {
                *result =
                    Err(lanky::Error::Unsupported { what: format!("more runs of {}", crate::say::time(seconds)) });
            }
            Ok(seconds) => {
                round_s += seconds;
                first_s = first_s.min(seconds);
            }
            Err(error) => *result = Err(error),
        }
    }
    let is_gpu = stream.device().is_cuda();
    let mut left = samples;
    while left > 0 {
        let rounds = if is_gpu { rounds_at_once(round_s).min(left) } else { 1 };
        left -= rounds;
        if let Some(contestant) = contestants.first_mut().filter(|_| is_gpu) {
            // A failure shows when it is timed.
            let _ = run(data, *contestant, &mut turn);
        }
        let mut marks = Vec::with_capacity(rounds * contestants.len());
        for _ in 0..rounds {
            for (which, contestant) in contestants.iter_mut().enumerate().filter(|(which, _)| results[*which].is_ok()) {
                let start = stream.mark()?;
                let done = run(data, *contestant, &mut turn);
                marks.push((which, done, start, stream.mark()?));
            }
        }
        for (which, done, start, end) in marks {
            let seconds = done.and_then(|()| end.seconds_since(&start));
            match (&mut results[which], seconds) {
                (Ok(times), Ok(seconds)) => times.push(seconds),
                (Ok(_), Err(error)) => results[which] = Err(error),
                (Err(_), _) => {}
            }
        }
    }
    stream.synchronize()?;
    Ok(results)
}

fn rounds_at_once(round_s: f64) -> usize {
    let fitting = (1..ROUNDS_AT_ONCE).rev().find(|&rounds| crate::say::float(rounds + 1) * round_s <= SECONDS_AT_ONCE);
    fitting.map_or(1, |rounds| rounds + 1)
}

fn run<T: Scalar>(data: &mut Data<'_, T>, contestant: &mut dyn Run, turn: &mut u64) -> lanky::Result<()> {
    let at = data.addresses(*turn);
    *turn += 1;
    // SAFETY: the addresses are of the case's data, which outlives the work: C is freed only when the device is idle, and
    // on the CPU the work is done at once.
    unsafe { contestant.enqueue(at) }
}

/// The warm-up; seconds of its last run.
fn warm<T: Scalar>(
    stream: &Stream,
    data: &mut Data<'_, T>,
    contestant: &mut dyn Run,
    turn: &mut u64,
) -> lanky::Result<f64> {
    for _ in 1..WARM_UP {
        run(data, contestant, turn)?;
    }
    stream.synchronize()?;
    stream.timed(|| run(data, contestant, turn))
}

/// Whether a graph comes back to a part of the data before all others had their turn: then it finds it in the cache.
pub fn is_graph_cached(parts: &Parts) -> bool {
    parts.cached || parts.count > RUNS_A_GRAPH.1
}

/// Seconds a run inside a CUDA graph of many, `samples` times.
///
/// # Errors
/// Whatever prevents the recording, or the run.
pub fn in_graph<T: Scalar>(
    stream: &Stream,
    data: &mut Data<'_, T>,
    contestant: &mut dyn Run,
    samples: usize,
) -> lanky::Result<Vec<f64>> {
    let places = data.all_addresses();
    contestant.ready(stream, &places)?;
    let mut turn = 0;
    let runs = data.parts.count.clamp(RUNS_A_GRAPH.0, RUNS_A_GRAPH.1);
    let mut graph = stream.record(|| (0..runs).try_for_each(|_| run(data, contestant, &mut turn)))?;
    let mut launch = || {
        // SAFETY: the data and the contestant, with its plan, are borrowed until the stream has been waited for, below and
        // in `timed`.
        unsafe { graph.launch(stream) }
    };
    launch()?;
    stream.synchronize()?;
    let mut times = Vec::with_capacity(samples);
    for _ in 0..samples {
        times.push(stream.timed(&mut launch)? / crate::say::float(usize::try_from(runs).unwrap_or(1)));
    }
    stream.synchronize()?;
    Ok(times)
}

/// Whether launches, and not the device, set the pace of a run of so many seconds.
pub fn is_launch_bound(device: &Device, seconds: f64) -> bool {
    device.is_cuda() && seconds < 20e-6
}

#[cfg(test)]
mod tests {
    use super::super::data::Pool;
    use super::super::job::Job;
    use super::*;
    use crate::made_up::MadeUp;
    use model::{Dtype, Problem};
    use std::cell::RefCell;

    struct Scribe<'l> {
        letter: char,
        log: &'l RefCell<Vec<(char, u64)>>,
        fails: bool,
    }

    impl Run for Scribe<'_> {
        unsafe fn enqueue(&mut self, at: Addresses) -> lanky::Result<()> {
            self.log.borrow_mut().push((self.letter, at.a));
            if self.fails { Err(lanky::Error::Unsupported { what: "this".into() }) } else { Ok(()) }
        }
    }

    #[test]
    fn contestants_take_turns_and_parts() -> Result<(), Fault> {
        let stream = Device::cpu().stream()?;
        let problem = Job::single(Problem::column_major(Dtype::F32, 16, 4, 4));
        // 768 bytes, with the grains.
        let parts = Parts::new(&problem, 384, false).expect("it fits");
        assert_eq!(parts.count, 3);
        let [len_a, len_b, _] = parts.lengths().expect("it fits");
        let a = Pool::<f32>::new(&stream, MadeUp { seed: 0 }, len_a)?;
        let b = Pool::new(&stream, MadeUp { seed: 9 }, len_b)?;
        let mut data = Data::new(&stream, problem, 0.0, parts, [&a, &b], MadeUp { seed: 3 })?;
        let log = RefCell::new(Vec::new());
        let mut first = Scribe { letter: 'A', log: &log, fails: false };
        let mut second = Scribe { letter: 'B', log: &log, fails: false };
        let mut third = Scribe { letter: 'X', log: &log, fails: true };
        let results = race(&stream, &mut data, &mut [&mut first, &mut second, &mut third], 1, 30)?;
        let lengths: Vec<Option<usize>> = results.iter().map(|r| r.as_ref().ok().map(Vec::len)).collect();
        assert_eq!(lengths, [Some(30), Some(30), None]);
        let log = log.into_inner();
        let letters: String = log.iter().map(|(letter, _)| letter).collect();
        assert_eq!(letters, ["AAABBBX", &"AB".repeat(30)].concat());
        // Every turn has other data than the two before it.
        assert!(log.windows(3).all(|three| three[0].1 != three[1].1 && three[0].1 != three[2].1));
        Ok(())
    }

    #[test]
    fn graphs_that_come_back_too_soon_are_cached() {
        let job = |m| Job::single(Problem::column_major(Dtype::F64, m, 2, 100));
        let parts = |m| Parts::new(&job(m), 60 << 20, false).expect("it fits");
        // 8 MB, and 80 kB: 31 and 3084 parts of 240 MB.
        assert!(!is_graph_cached(&parts(10_000)) && is_graph_cached(&parts(100)));
    }

    #[test]
    fn long_rounds_are_waited_for_one_by_one() {
        assert_eq!([0.0, 0.005, 0.02, 1.0].map(rounds_at_once), [10, 10, 2, 1]);
    }
}
