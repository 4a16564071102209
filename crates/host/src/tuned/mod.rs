//! Databases of measurements, which `lanky tune` writes: what took least at shapes that were tried, and plans that follow it.
//!
//! # Which one
//! | where | what a plan follows |
//! |---|---|
//! | nothing is said | the database that this library carries for the GPU, if it carries one ([`shipped`]) |
//! | [`Device::load_tuned`](crate::Device::load_tuned) | that file, from then on |
//! | [`Device::set_tuned`](crate::Device::set_tuned) | that database, or none: the model alone |
//!
//! The library looks for no file and reads no variable of the environment; the program `lanky` reads LANKY_TUNED.
//!
//! # What it decides
//! A cell is a shape with the entry and the parts of k that took least of all that were timed there. A product asks the
//! nearest cell, by the distance of the logarithms of m, n and k, of those of its own [`Class`]: family, element type,
//! layouts of op(A), op(B) and C, and whether C is read; and of those whose lines of A and B are aligned to 16 bytes as
//! its own are, or are not. At the very lengths of the cell, without gaps between lines, it gets the entry with the parts
//! that were timed. Else, no length more than [`REACH`] times or less than one [`REACH`]-th of the cell's, it gets the
//! entry with the parts that the model expects to be best, times what was best at the cell over what the model expected
//! there: if that should be faster than the model's own choice, by what the model expects of both, times what the cell
//! says of such expectations ([`Cell::gain`]), by more than what was timed is sure of ([`SURE`], [`ELSEWHERE`], three
//! times the cell's noise). It gets neither where the entry cannot run (the rules are those of [`model::choose()`]: cells of Gram matrices are of whole ones, and what writes
//! all of C computes no triangle); then,
//! where the model has come to the cell's entry by itself, and where there is no cell, the model decides. So it does for
//! [`tsmm_in_place`](crate::tsmm_in_place) and for variants that are asked for by name.
//!
//! # The same bits
//! The same plan gives the same bits every time, tuned or not. But a database changes which plan is made, and with it the order
//! in which sums round: who needs the same bits on all machines sets one database, or none, on all of them.

mod class;
mod shipped;
mod text;

pub use class::{Class, FAMILIES, parse_layout};
pub use shipped::shipped;

use crate::error::{Error, Result};
use crate::text::read_text;
use class::{alignment, is_packed};
use model::{Choice, Chooser, Machine, Parts, Problem, Variant, choose_given};
use std::path::Path;

/// A cell speaks for lengths up to so many times its own, and down to one of so many parts of them.
pub const REACH: u64 = 8;
/// What a cell says of lengths that are not its own is followed where it promises so much: 5%. Of the 8128 cells of an
/// H200 (bd01486), each asked what its nearest neighbour says of it, 103 got something else though the model's
/// choice was as good as the best, by this and [`ELSEWHERE`] alone; by neither it was 1206.
pub const SURE: f64 = 1.05;
/// So much where the model's own choice is another entry than the two of the cell: 25%.
pub const ELSEWHERE: f64 = 1.25;
/// The version of the text that is written and read.
pub const VERSION: u32 = 1;

/// Where and how the cells of a [`Database`] were timed. An empty text is written as `unknown`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Origin {
    /// The GPU's name: `NVIDIA H200`.
    pub gpu: String,
    /// Its compute capability.
    pub compute_capability: (u32, u32),
    /// Its streaming multiprocessors.
    pub sms: u32,
    /// The driver's own version: `580.159`.
    pub driver: String,
    /// What the program was built from.
    pub commit: String,
    /// The day, UTC: `2026-11-22`.
    pub date: String,
}

impl Origin {
    /// Refuses another GPU: one of another name, compute capability or number of multiprocessors.
    ///
    /// # Errors
    /// What it is of, and what was required.
    pub fn check(&self, machine: &Machine) -> Result<(), String> {
        let words = |gpu: &str, (major, minor): (u32, u32), sms: u32| {
            format!("{gpu} of compute capability {major}.{minor} with {sms} SMs")
        };
        let (of, capability) = (self, machine.compute_capability);
        if of.gpu == machine.name.as_str() && of.compute_capability == capability && of.sms == machine.sms {
            return Ok(());
        }
        let found = words(&of.gpu, of.compute_capability, of.sms);
        Err(format!("it is of {found}, but required is {}", words(machine.name.as_str(), capability, machine.sms)))
    }
}

/// What was found at one shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The kind of product.
    pub class: Class,
    /// m, n and k.
    pub lengths: [u64; 3],
    /// What took least.
    pub best: Timed,
    /// What the model would have taken.
    pub model: Timed,
    /// Half of the 95% interval of the best one's median, as a share of that.
    pub noise: f64,
    /// What no kernel can beat as a share of what the best one took.
    pub fraction: f64,
}

/// An entry that was timed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timed {
    /// The entry.
    pub variant: &'static Variant,
    /// Parts of k.
    pub parts: u32,
    /// Parts that the model expected to be best for this entry.
    pub expected_parts: u32,
    /// The median of its times, ns; over several shapes around the cell's the mean.
    pub ns: f64,
}

impl Cell {
    /// The product, without gaps between its lines.
    pub fn problem(&self) -> Option<Problem> {
        self.class.problem(self.lengths)
    }

    /// How many times as long as the best the model's choice took.
    pub fn loss(&self) -> f64 {
        self.model.ns / self.best.ns
    }

    /// How many times as long as `choice` the model's `own` should take, somewhere else: what the model expects of the two, times what was
    /// timed over what it expected of the two that are here.
    pub fn gain(&self, machine: &Machine, choice: &Choice, own: &Choice) -> Option<f64> {
        let here = self.problem()?;
        let expected = |timed: &Timed| {
            let given = choose_given(&here, machine, timed.variant.entry, Parts::Exactly(timed.parts));
            given.ok().map(|given| given.estimate.seconds)
        };
        let correction = self.loss() * expected(&self.best)? / expected(&self.model)?;
        Some(correction * own.estimate.seconds / choice.estimate.seconds)
    }

    /// Whether `choice` gains enough over `own` that it is followed.
    fn is_sure(&self, machine: &Machine, choice: &Choice, own: &Choice) -> bool {
        let (own_entry, model_entry) = (own.variant.entry, self.model.variant.entry);
        if own_entry == self.best.variant.entry && own_entry != model_entry {
            return false; // the model has come to the same, and knows no less of its parts of k
        }
        let least = if own_entry == model_entry { SURE } else { ELSEWHERE };
        let least = least.max(1.0 + 3.0 * self.noise);
        self.gain(machine, choice, own).is_some_and(|gain| gain >= least)
    }
}

/// What was timed on one GPU. Its Display is the text that [`Database::parse`] reads: a line for each cell, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Database {
    origin: Origin,
    /// By class and lengths, none twice.
    cells: Vec<Cell>,
}

impl Database {
    /// Of cells in any order; of two of one class and shape the latter stays.
    pub fn new(origin: Origin, cells: impl IntoIterator<Item = Cell>) -> Database {
        let by_place: std::collections::BTreeMap<(Class, [u64; 3]), Cell> =
            cells.into_iter().map(|cell| ((cell.class, cell.lengths), cell)).collect();
        Database { origin, cells: by_place.into_values().collect() }
    }

    /// From a file of [`Database`]'s text.
    ///
    /// # Errors
    /// [`Error::Tuned`], which names the file, the line, and what is wrong with it; also where the file cannot be read.
    pub fn read(path: impl AsRef<Path>) -> Result<Database> {
        let path = path.as_ref();
        let read = read_text(path).map_err(|error| error.to_string());
        read.and_then(|text| Database::parse(&text))
            .map_err(|reason| Error::Tuned { database: path.display().to_string(), reason })
    }

    /// Where and how it was timed.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// All cells, by class and lengths.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// Refuses a database of another GPU: [`Origin::check`].
    ///
    /// # Errors
    /// What it is of, and what was required.
    pub fn check(&self, machine: &Machine) -> Result<(), String> {
        self.origin.check(machine)
    }

    /// The nearest cell of a product's class, if it reaches so far, of those whose lines lie as the product's: at multiples of 16 bytes or not.
    pub fn nearest(&self, problem: &Problem) -> Option<&Cell> {
        let (class, lengths) = Class::of(problem)?;
        let first = self.cells.partition_point(|cell| cell.class < class);
        let of_class = self.cells.get(first..)?.iter().take_while(|cell| cell.class == class);
        let mut nearest: Option<(f64, &Cell)> = None;
        let lies = alignment(problem);
        let lie_so = |cell: &&Cell| cell.problem().is_some_and(|there| alignment(&there) == lies);
        for cell in of_class.filter(|cell| reaches(cell.lengths, lengths)).filter(lie_so) {
            let distance = distance(cell.lengths, lengths);
            if nearest.is_none_or(|(least, _)| distance < least) {
                nearest = Some((distance, cell));
            }
        }
        nearest.map(|(_, cell)| cell)
    }

    /// What a product gets where the model alone would choose `own`; `None` where that is what it gets. Entry and parts of k are those that
    /// were measured, which the model checks and estimates: the one choice that is not the model's.
    pub fn choose(&self, problem: &Problem, machine: &Machine, own: &Choice) -> Option<Choice> {
        // Databases are of products that nobody allowed to be split.
        if own.variant.splits_f32() {
            return None;
        }
        let cell = self.nearest(problem)?;
        let is_there = Class::of(problem).is_some_and(|(_, lengths)| lengths == cell.lengths) && is_packed(problem);
        let Timed { variant, parts, expected_parts, ns } = cell.best;
        let parts = match is_there {
            true => Parts::Exactly(parts),
            false => Parts::Scaled { measured: parts, expected: expected_parts },
        };
        let mut choice = choose_given(problem, machine, variant.entry, parts).ok()?;
        // What was timed at this very shape, without gaps, needs nobody's expectation.
        if choice.variant.adds_atomically() || (!is_there && !cell.is_sure(machine, &choice, own)) {
            return None;
        }
        let ns = num_traits::ToPrimitive::to_u64(&ns).unwrap_or(0);
        choice.chooser = Chooser::Tuned { at: cell.lengths, ns };
        Some(choice)
    }
}

/// Whether a cell speaks for these lengths.
fn reaches(cell: [u64; 3], lengths: [u64; 3]) -> bool {
    cell.into_iter().zip(lengths).all(|(a, b)| a <= b.saturating_mul(REACH) && b <= a.saturating_mul(REACH))
}

/// Of the logarithms, squared.
fn distance(a: [u64; 3], b: [u64; 3]) -> f64 {
    let log = |length: u64| num_traits::ToPrimitive::to_f64(&length).unwrap_or(f64::INFINITY).ln();
    a.into_iter().zip(b).map(|(a, b)| (log(a) - log(b)).powi(2)).sum()
}

#[cfg(test)]
mod tests;
