//! The roofline of a GPU with the choice marked.

use model::roofline::{fma_rate, peak_rate};
use model::{Choice, Problem};

use super::choice::{Plan, intensity};
use crate::report::axis::Axis;
use crate::report::plot::{Plot, Who};
use crate::report::short;
use crate::say;

/// Flops a byte across and GFLOP/s up: what the memory, or the cache, and the multipliers allow, the product's bound on it, the choice
/// at the time that is expected of it, and the other candidates below.
pub fn roofline(plan: &Plan, problem: &Problem) -> Plot {
    let Plan { machine, cached, choice, .. } = plan;
    let across = intensity(choice);
    let gflops = |seconds: f64| choice.bound.flops / seconds / 1e9;
    let (gbs, peak) = (machine.read_bytes_per_s / 1e9, 2.0 * peak_rate(machine, problem) / 1e9);
    let knee = peak / gbs;
    let (bound, expected) = (gflops(choice.bound.seconds()), gflops(choice.estimate.seconds));
    let slowest = plan.candidates.iter().map(|other| gflops(other.estimate.seconds)).fold(expected, f64::min);

    let x = Axis::logarithmic("flops a byte of A, B and C", across.min(knee) / 4.0, across.max(knee) * 4.0);
    let (left, right) = x.range();
    let y = Axis::logarithmic("GFLOP/s", slowest.min(left * gbs), peak);
    let (source, how) = if *cached { ("cache", ", cached") } else { ("memory", "") };
    let title = format!("{} on {}{how}", name(problem), machine.name);
    let mut plot = Plot::new(&title, x, y);
    plot.name(Who::Bound, &format!("{source} and multipliers"));
    plot.name_marks(Who::Ours, "the choice");
    plot.name_marks(Who::Theirs, "other entries");
    plot.line(Who::Bound, &[(left, left * gbs), (knee, peak), (right, peak)]);
    let vector = 2.0 * fma_rate(machine, problem.dtype) / 1e9;
    if vector < peak {
        plot.line(Who::Bound, &[(vector / gbs, vector), (right, vector)]);
    }
    let words = format!("bound: {} GFLOP/s, {}", short(bound), say::time(choice.bound.seconds()));
    plot.mark(Who::Bound, (across, bound), &words);
    for other in plan.candidates.iter().filter(|other| other.variant.entry != choice.variant.entry) {
        plot.mark(Who::Theirs, (across, gflops(other.estimate.seconds)), &mark(other));
    }
    plot.mark(Who::Ours, (across, expected), &mark(choice));
    plot
}

fn name(problem: &Problem) -> String {
    let Problem { dtype, m, n, k, .. } = problem;
    format!("{dtype} {m} x {n} x {k}")
}

/// What a candidate's mark says.
fn mark(choice: &Choice) -> String {
    let rate = choice.bound.flops / choice.estimate.seconds / 1e9;
    format!("{}: {} GFLOP/s, {}", choice.variant.entry, short(rate), say::time(choice.estimate.seconds))
}
