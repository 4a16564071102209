//! What a database says: how much the model loses, and whether the bandwidth depends on the shape.

use std::fmt::Write;

use lanky::tuned::{Cell, Class, Database, FAMILIES};
use model::Operation;
use num_traits::cast;
use serde::Serialize;

use crate::say;
use crate::say::float;

/// From so many bytes of matrix on the bandwidth of a vector's product should not depend on the shape.
const LARGE: u64 = 256_000_000;

/// The model's loss in one family.
#[derive(Debug, PartialEq, Serialize)]
pub struct Loss {
    pub family: &'static str,
    pub shapes: usize,
    /// Shapes where nothing took less than the model's choice.
    pub best_by_model: usize,
    /// The geometric mean of its choice's time over the best one's.
    pub mean: f64,
    /// The largest.
    pub worst: f64,
    /// Where that was.
    pub worst_at: String,
}

/// Of all families that the database has.
pub fn losses(database: &Database) -> Vec<Loss> {
    FAMILIES.into_iter().filter_map(|family| loss(family.name(), database.cells())).collect()
}

fn loss(family: &'static str, cells: &[Cell]) -> Option<Loss> {
    let cells: Vec<&Cell> = cells.iter().filter(|cell| cell.class.family == family).collect();
    let worst = cells.iter().max_by(|a, b| a.loss().total_cmp(&b.loss()))?;
    let logarithms: f64 = cells.iter().map(|cell| cell.loss().ln()).sum();
    Some(Loss {
        family,
        shapes: cells.len(),
        best_by_model: cells.iter().filter(|cell| cell.loss() <= 1.0).count(),
        mean: (logarithms / float(cells.len())).exp(),
        worst: worst.loss(),
        worst_at: at(worst),
    })
}

/// A cell's kind and lengths.
pub fn at(cell: &Cell) -> String {
    let [m, n, k] = cell.lengths;
    format!("{}, {m} x {n} x {k}", cell.class)
}

/// 10^9 bytes of A, B and C a second.
pub fn gbs(cell: &Cell) -> f64 {
    let bytes =
        cell.problem().map_or(0, |p| super::mesh::bytes(&p) + if p.reads_c { p.m * p.n * p.dtype.bytes() } else { 0 });
    cast::<u64, f64>(bytes).unwrap_or(0.0) / cell.best.ns
}

/// How the bandwidth of large matrices by vectors depends on their shape.
#[derive(Debug, PartialEq, Serialize)]
pub struct Independence {
    pub class: String,
    /// Shapes of 256 MB of matrix and more.
    pub shapes: usize,
    /// The least bandwidth over the greatest.
    pub worst_over_best: f64,
    pub worst_gbs: f64,
    pub best_gbs: f64,
    pub worst_at: String,
}

/// Of every kind of product of a vector that has two such shapes.
pub fn independences(database: &Database) -> Vec<Independence> {
    let mut classes: Vec<Class> = database.cells().iter().map(|cell| cell.class).collect();
    classes.dedup();
    classes.into_iter().filter_map(|class| independence(class, database.cells())).collect()
}

/// The same of one kind.
pub fn independence(class: Class, cells: &[Cell]) -> Option<Independence> {
    let is_large =
        |cell: &&Cell| cell.problem().is_some_and(|p| p.m.saturating_mul(p.k).saturating_mul(p.dtype.bytes()) >= LARGE);
    let of_class = cells.iter().filter(|cell| cell.class == class && class.family == Operation::Gemv.name());
    let large: Vec<&Cell> = of_class.filter(is_large).collect();
    let by_rate = |a: &&&Cell, b: &&&Cell| gbs(a).total_cmp(&gbs(b));
    let (worst, best) = (large.iter().min_by(by_rate)?, large.iter().max_by(by_rate)?);
    (large.len() > 1).then(|| Independence {
        class: class.to_string(),
        shapes: large.len(),
        worst_over_best: gbs(worst) / gbs(best),
        worst_gbs: gbs(worst),
        best_gbs: gbs(best),
        worst_at: at(worst),
    })
}

/// Both in words, a line each.
pub fn text(database: &Database, with_losses: bool) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    if with_losses {
        for loss in losses(database) {
            let Loss { family, shapes, best_by_model, mean, worst, worst_at } = loss;
            let _ = writeln!(
                text,
                "{family:<8} the model's choice took {mean:.3} times as long as the best of {} in the geometric \
                 mean, {worst:.3} times at worst ({worst_at}); it was the best in {best_by_model}",
                super::shapes(shapes)
            );
        }
    }
    for one in independences(database) {
        let Independence { class, shapes, worst_over_best, worst_gbs, best_gbs, worst_at } = one;
        let _ = writeln!(
            text,
            "{class}: from 256 MB of matrix on, {shapes} shapes, the worst bandwidth is {worst_over_best:.3} of the best: {} \
             ({worst_at}) of {}",
            say::rate(worst_gbs),
            say::rate(best_gbs)
        );
    }
    text.trim_end().into()
}
