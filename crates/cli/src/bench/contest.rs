//! Timing: whoever computes the same product takes turns, on the same data and stream, each once a round.
//!
//! The order is drawn anew for every round, so that nobody always runs behind the same one, on what that left in the cache,
//! or first, when the device is coolest.

use std::collections::HashMap;

use lanky::{Graph, Stream};

use super::data::{Addresses, Data, Parts};
use super::random::Random;
use crate::error::Fault;
use crate::real::Real;

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

/// Runs of each before any is timed. Of one of many entries fewer: the check has run it once, and most are left out then.
const WARM_UP: u64 = 3;
const WARM_UP_ENTRY: u64 = 2;
/// One of many entries that takes so many times as long as the fastest of ours keeps its one timing and runs no more.
const FAR_BEHIND: f64 = 1.5;
/// On a GPU so many rounds are given to the stream before they are waited for, behind a run that is not timed: then the
/// device is not idle when a timed one comes.
const ROUNDS_AT_ONCE: usize = 10;
/// But no longer than this, s.
const SECONDS_AT_ONCE: f64 = 0.05;
/// Runs in one graph: as many as take so long, s, and one of every part of the data, but not more than so many.
const GRAPH_S: f64 = 2e-3;
const RUNS_A_GRAPH: u64 = 500;
/// What takes less is also timed in graphs, s: alone between two events a launch takes some microseconds that it does not
/// take behind another.
const IN_GRAPHS_S: f64 = 1e-3;
/// So are those of many entries that take less, s.
const ENTRY_IN_GRAPHS_S: f64 = 20e-6;
/// Graphs of one are timed until they have taken so long, s, but so many at least.
const GRAPHS: (f64, usize) = (0.03, 5);
/// Opponents that take so many times as long as the fastest of all, and longer than so many seconds, are left out: thirty
/// runs would say no more.
const HOPELESS: (f64, f64) = (20.0, 0.01);

/// Who takes part, which decides how early it may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Ours: the plan's own choice, or what was asked for by name.
    Ours,
    /// Ours: one of all entries that can compute the case, most of which are far behind.
    Entry,
    /// Somebody else.
    Other,
}

/// One who takes turns.
pub struct Lane<'r> {
    pub run: &'r mut dyn Run,
    pub role: Role,
}

/// Seconds of every run of each contestant. One that fails has none, and its error; an entry that is far behind has one.
pub type Times = Vec<lanky::Result<Vec<f64>>>;

/// A race that is under way.
struct Race<'r, 'l> {
    stream: &'r Stream,
    lanes: &'r mut [Lane<'l>],
    times: Times,
    /// Who still runs.
    running: Vec<usize>,
    turn: u64,
}

/// Times of `samples` rounds, in each of which everybody runs once, in an order that `random` draws.
pub fn race<T: Real>(
    stream: &Stream,
    data: &mut Data<'_, T>,
    lanes: &mut [Lane<'_>],
    samples: usize,
    mut random: Random,
) -> Result<Times, Fault> {
    let times = lanes.iter().map(|_| Ok(Vec::new())).collect();
    let mut race = Race { stream, lanes, times, running: Vec::new(), turn: 0 };
    let round_s = race.begin(data);
    let is_gpu = stream.device().is_cuda();
    let mut left = samples;
    while left > 0 && !race.running.is_empty() {
        let rounds = if is_gpu { rounds_at_once(round_s).min(left) } else { 1 };
        left -= rounds;
        if is_gpu {
            let ahead = race.running[random.below(race.running.len())];
            // A failure shows when it is timed.
            let _ = run(data, race.lanes[ahead].run, &mut race.turn);
        }
        race.rounds(data, rounds, &mut random)?;
    }
    stream.synchronize()?;
    Ok(race.times)
}

impl Race<'_, '_> {
    /// Warms everybody up and leaves out who is hopeless; seconds of a round of those that stay.
    fn begin<T: Real>(&mut self, data: &mut Data<'_, T>) -> f64 {
        let places = data.all_addresses();
        let mut firsts = Vec::with_capacity(self.lanes.len());
        for (lane, times) in self.lanes.iter_mut().zip(&mut self.times) {
            let warmed = lane.run.ready(self.stream, &places).and_then(|()| {
                let runs = if lane.role == Role::Entry { WARM_UP_ENTRY } else { WARM_UP };
                warm(self.stream, data, lane.run, runs, &mut self.turn)
            });
            match warmed {
                Ok(seconds) => firsts.push(seconds),
                Err(error) => {
                    *times = Err(error);
                    firsts.push(f64::INFINITY);
                }
            }
        }
        let stays = stay(&self.lanes.iter().map(|lane| lane.role).zip(firsts.iter().copied()).collect::<Vec<_>>());
        let mut round_s = 0.0;
        for (which, (stays, seconds)) in stays.into_iter().zip(firsts).enumerate() {
            match (&self.times[which], self.lanes[which].role) {
                (Err(_), _) => {}
                (Ok(_), _) if stays => {
                    self.running.push(which);
                    round_s += seconds;
                }
                (Ok(_), Role::Other) => {
                    let what = format!("more runs of {}", crate::say::time(seconds));
                    self.times[which] = Err(lanky::Error::Unsupported { what });
                }
                (Ok(_), _) => self.times[which] = Ok(vec![seconds]),
            }
        }
        round_s
    }

    /// So many rounds, given to the stream before they are waited for. Who fails runs no more.
    fn rounds<T: Real>(&mut self, data: &mut Data<'_, T>, count: usize, random: &mut Random) -> Result<(), Fault> {
        let mut marks = Vec::with_capacity(count * self.running.len());
        for _ in 0..count {
            random.shuffle(&mut self.running);
            for &which in &self.running {
                let start = self.stream.mark()?;
                let done = run(data, self.lanes[which].run, &mut self.turn);
                marks.push((which, done, start, self.stream.mark()?));
            }
        }
        for (which, done, start, end) in marks {
            let seconds = done.and_then(|()| end.seconds_since(&start));
            match (&mut self.times[which], seconds) {
                (Ok(times), Ok(seconds)) => times.push(seconds),
                (Ok(_), Err(error)) => self.times[which] = Err(error),
                (Err(_), _) => {}
            }
        }
        let times = &self.times;
        self.running.retain(|which| times[*which].is_ok());
        Ok(())
    }
}

/// Who goes on after a first timing; infinite is that of one who failed.
fn stay(firsts: &[(Role, f64)]) -> Vec<bool> {
    let least = |ours: bool| {
        let of = firsts.iter().filter(|(role, _)| !ours || *role != Role::Other);
        of.map(|(_, seconds)| *seconds).fold(f64::INFINITY, f64::min)
    };
    let (ours_s, least_s) = (least(true), least(false));
    let stays = |(role, seconds): &(Role, f64)| match role {
        Role::Ours => true,
        Role::Entry => *seconds <= FAR_BEHIND * ours_s,
        Role::Other => *seconds <= HOPELESS.1.max(HOPELESS.0 * least_s),
    };
    firsts.iter().map(stays).collect()
}

fn rounds_at_once(round_s: f64) -> usize {
    let fitting = (1..ROUNDS_AT_ONCE).rev().find(|&rounds| crate::say::float(rounds + 1) * round_s <= SECONDS_AT_ONCE);
    fitting.map_or(1, |rounds| rounds + 1)
}

fn run<T: Real>(data: &mut Data<'_, T>, contestant: &mut dyn Run, turn: &mut u64) -> lanky::Result<()> {
    let at = data.addresses(*turn);
    *turn += 1;
    // SAFETY: the addresses are of the case's data, which outlives the work: C is freed only when the device is idle, and
    // on the CPU the work is done at once.
    unsafe { contestant.enqueue(at) }
}

/// So many runs; seconds of the last of them.
fn warm<T: Real>(
    stream: &Stream,
    data: &mut Data<'_, T>,
    contestant: &mut dyn Run,
    runs: u64,
    turn: &mut u64,
) -> lanky::Result<f64> {
    for _ in 1..runs {
        run(data, contestant, turn)?;
    }
    stream.synchronize()?;
    stream.timed(|| run(data, contestant, turn))
}

/// Whether a graph comes back to a part of the data before all others had their turn: then it finds it in the cache.
pub fn is_graph_cached(parts: &Parts) -> bool {
    parts.cached || parts.count > RUNS_A_GRAPH
}

/// Runs in a graph of what takes so many seconds a run.
pub fn runs_a_graph(parts: &Parts, seconds: f64) -> u64 {
    let long = (1..RUNS_A_GRAPH).find(|&runs| whole(runs) * seconds >= GRAPH_S).unwrap_or(RUNS_A_GRAPH);
    long.max(parts.count).min(RUNS_A_GRAPH)
}

/// How many graphs of so many runs are timed of what takes so many seconds a run: as many as samples, fewer where that takes long.
pub fn graphs(runs: u64, seconds: f64, samples: usize) -> usize {
    let (long, least) = GRAPHS;
    (least..samples).find(|&graphs| crate::say::float(graphs) * whole(runs) * seconds >= long).unwrap_or(samples)
}

fn whole(runs: u64) -> f64 {
    crate::say::float(usize::try_from(runs).unwrap_or(usize::MAX))
}

/// Seconds a run inside a CUDA graph of so many, `samples` times, the graphs taking turns in orders that `random` draws. Who is
/// not in `running` has none.
pub fn in_graphs<T: Real>(
    stream: &Stream,
    data: &mut Data<'_, T>,
    lanes: &mut [Lane<'_>],
    mut running: Vec<usize>,
    (runs, samples): (u64, usize),
    mut random: Random,
) -> Result<Times, Fault> {
    let mut times: Times = lanes.iter().map(|_| Ok(Vec::new())).collect();
    let mut graphs = HashMap::new();
    for &which in &running {
        match recorded(stream, data, lanes[which].run, runs) {
            Ok(graph) => drop(graphs.insert(which, graph)),
            Err(error) => times[which] = Err(error),
        }
    }
    for _ in 0..samples {
        random.shuffle(&mut running);
        for &which in &running {
            let (Some(graph), Ok(times_of)) = (graphs.get_mut(&which), &mut times[which]) else { continue };
            // SAFETY: the data and the contestants, with their plans, are borrowed until the stream has been waited for, in
            // `timed` or below.
            match stream.timed(|| unsafe { graph.launch(stream) }) {
                Ok(seconds) => times_of.push(seconds / whole(runs)),
                Err(error) => times[which] = Err(error),
            }
        }
    }
    stream.synchronize()?;
    Ok(times)
}

/// A graph of so many runs, launched once.
fn recorded<T: Real>(
    stream: &Stream,
    data: &mut Data<'_, T>,
    contestant: &mut dyn Run,
    runs: u64,
) -> lanky::Result<Graph> {
    contestant.ready(stream, &data.all_addresses())?;
    let mut turn = 0;
    let mut graph = stream.record(|| (0..runs).try_for_each(|_| run(data, contestant, &mut turn)))?;
    // SAFETY: the data and the contestant, with its plan, are borrowed until the stream has been waited for.
    unsafe { graph.launch(stream) }?;
    stream.synchronize()?;
    Ok(graph)
}

/// Whether a case of so many seconds a run is timed in graphs too, and whether so is one of many entries: on a GPU alone.
pub fn has_graphs(is_cuda: bool, role: Role, seconds: f64) -> bool {
    is_cuda && seconds < if role == Role::Entry { ENTRY_IN_GRAPHS_S } else { IN_GRAPHS_S }
}

#[cfg(test)]
mod tests {
    use super::super::data::Pool;
    use super::super::job::Job;
    use super::*;
    use crate::made_up::MadeUp;
    use lanky::Device;
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

    /// Runs a race over three parts of 768 bytes, with the grains, on the CPU.
    fn on_small_data<R>(run: impl FnOnce(&Stream, &mut Data<'_, f32>) -> Result<R, Fault>) -> Result<R, Fault> {
        let stream = Device::cpu().stream()?;
        let job = Job::single(Problem::column_major(Dtype::F32, 16, 4, 4));
        let parts = Parts::new(&job, 384, false).expect("it fits");
        assert_eq!(parts.count, 3);
        let [len_a, len_b, _] = parts.lengths().expect("it fits");
        let a = Pool::<f32>::new(&stream, MadeUp { seed: 0 }, len_a)?;
        let b = Pool::new(&stream, MadeUp { seed: 9 }, len_b)?;
        run(&stream, &mut Data::new(&stream, job, 0.0, parts, [&a, &b], MadeUp { seed: 3 })?)
    }

    /// Times of each, if it has some; who ran, and where its A was.
    type Raced = (Vec<Option<usize>>, Vec<(char, u64)>);

    /// What everybody did in a race of 30 rounds between contestants of these letters and roles; X fails.
    fn raced(lanes: &[(char, Role)], seed: u64) -> Result<Raced, Fault> {
        let log = RefCell::new(Vec::new());
        let scribe = |&(letter, _): &(char, Role)| Scribe { letter, log: &log, fails: letter == 'X' };
        let mut scribes: Vec<Scribe<'_>> = lanes.iter().map(scribe).collect();
        let mut running: Vec<Lane<'_>> = Vec::new();
        for (scribe, &(_, role)) in scribes.iter_mut().zip(lanes) {
            running.push(Lane { run: scribe, role });
        }
        let results = on_small_data(|stream, data| race(stream, data, &mut running, 30, Random::new(seed)))?;
        let lengths = results.iter().map(|r| r.as_ref().ok().map(Vec::len)).collect();
        Ok((lengths, log.into_inner()))
    }

    #[test]
    fn everybody_runs_once_a_round_on_other_data_each_time() -> Result<(), Fault> {
        let (lengths, log) = raced(&[('A', Role::Ours), ('B', Role::Other), ('X', Role::Other)], 5)?;
        assert_eq!(lengths, [Some(30), Some(30), None]);
        let letters: Vec<char> = log.iter().map(|(letter, _)| *letter).collect();
        let (warm_up, rounds) = letters.split_at(7);
        assert_eq!(warm_up.iter().collect::<String>(), "AAABBBX");
        assert_eq!(rounds.len(), 60);
        assert!(rounds.chunks(2).all(|round| round == ['A', 'B'] || round == ['B', 'A']), "{letters:?}");
        // Every turn has other data than the two before it.
        assert!(log.windows(3).all(|three| three[0].1 != three[1].1 && three[0].1 != three[2].1));
        Ok(())
    }

    #[test]
    fn the_order_is_drawn_for_every_round_from_the_seed() -> Result<(), Fault> {
        let lanes = [('A', Role::Ours), ('B', Role::Other), ('C', Role::Other)];
        let rounds = |seed| -> Result<Vec<String>, Fault> {
            let letters: Vec<char> = raced(&lanes, seed)?.1.iter().map(|(letter, _)| *letter).collect();
            Ok(letters[9..].chunks(3).map(|round| round.iter().collect()).collect())
        };
        let first = rounds(1)?;
        assert_eq!(first, rounds(1)?);
        assert_ne!(first, rounds(2)?);
        let orders: std::collections::BTreeSet<&String> = first.iter().collect();
        assert_eq!(orders.len(), 6, "all orders occur in thirty rounds: {first:?}");
        Ok(())
    }

    #[test]
    fn who_is_far_behind_is_left_out_by_its_role() {
        let firsts = [
            (Role::Ours, 9.0),
            (Role::Entry, 2.0),
            (Role::Entry, 3.0),
            (Role::Entry, 3.01),
            (Role::Other, 1.0),
            (Role::Other, 20.0),
            (Role::Other, 20.1),
            (Role::Entry, f64::INFINITY),
        ];
        // Ours at its best takes 2 s, everybody 1 s.
        assert_eq!(stay(&firsts), [true, true, true, false, true, true, false, false]);
        // What takes less than 10 ms is never hopeless.
        assert_eq!(stay(&[(Role::Other, 1e-5), (Role::Other, 9e-3)]), [true, true]);
    }

    #[test]
    fn an_entry_that_is_far_behind_keeps_its_one_timing() -> Result<(), Fault> {
        /// Takes its time.
        struct Sleeper(u64);
        impl Run for Sleeper {
            unsafe fn enqueue(&mut self, _: Addresses) -> lanky::Result<()> {
                std::thread::sleep(std::time::Duration::from_millis(self.0));
                Ok(())
            }
        }
        let (mut chosen, mut far) = (Sleeper(1), Sleeper(200));
        let mut lanes = [Lane { run: &mut chosen, role: Role::Ours }, Lane { run: &mut far, role: Role::Entry }];
        let times = on_small_data(|stream, data| race(stream, data, &mut lanes, 4, Random::new(1)))?;
        let [chosen, far] = times.as_slice() else { panic!("two lanes") };
        assert!(chosen.as_ref().is_ok_and(|times| times.len() == 4), "{chosen:?}");
        assert!(far.as_ref().is_ok_and(|times| times.len() == 1 && times[0] >= 0.2), "{far:?}");
        Ok(())
    }

    #[test]
    fn short_runs_on_a_gpu_have_graphs() {
        assert!(has_graphs(true, Role::Ours, 0.99e-3) && !has_graphs(true, Role::Ours, 1e-3));
        assert!(has_graphs(true, Role::Other, 0.99e-3) && !has_graphs(false, Role::Other, 1e-6));
        assert!(has_graphs(true, Role::Entry, 19e-6) && !has_graphs(true, Role::Entry, 20e-6));
    }

    #[test]
    fn graphs_are_long_enough_and_touch_all_parts() {
        let job = Job::single(Problem::column_major(Dtype::F64, 10_000, 2, 100));
        let parts = Parts::new(&job, 60 << 20, false).expect("it fits");
        assert_eq!(parts.count, 32);
        assert_eq!([1e-6, 1e-5, 1e-4, 1e-3].map(|seconds| runs_a_graph(&parts, seconds)), [500, 200, 32, 32]);
        // 2, 3.2 and 32 ms each.
        assert_eq!([(200, 1e-5), (32, 1e-4), (32, 1e-3)].map(|(runs, seconds)| graphs(runs, seconds, 30)), [15, 10, 5]);
        assert_eq!(graphs(32, 1e-3, 3), 3);
    }

    #[test]
    fn a_graph_that_cannot_be_recorded_is_an_error_of_its_own() -> Result<(), Fault> {
        let log = RefCell::new(Vec::new());
        let mut scribes = ['A', 'B'].map(|letter| Scribe { letter, log: &log, fails: false });
        let [first, second] = &mut scribes;
        let mut lanes = [Lane { run: first, role: Role::Ours }, Lane { run: second, role: Role::Entry }];
        let times =
            on_small_data(|stream, data| in_graphs(stream, data, &mut lanes, vec![0], (20, 3), Random::new(1)))?;
        assert!(times[0].as_ref().is_err_and(|error| error.to_string().contains("a graph on the CPU")), "{times:?}");
        assert!(times[1].as_ref().is_ok_and(Vec::is_empty), "it was not to run");
        assert!(log.into_inner().is_empty(), "nothing ran");
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
