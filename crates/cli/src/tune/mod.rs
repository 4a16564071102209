//! `lanky tune`: times what could compute a product over a mesh of shapes, and writes what took least into a database that
//! plans follow.

mod args;
mod compare;
mod entrants;
mod gpu;
mod map;
mod mesh;
mod search;
mod session;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

pub use args::TuneArgs;
use lanky::tuned::{Cell, Class, Database, FAMILIES, Origin};
use lanky::{Device, Stream};
use model::{Dtype, Machine};
use serde::Serialize;

use crate::args::Place as Where;
use crate::bench::origin;
use crate::device;
use crate::error::Fault;
use crate::interrupt;
use crate::output::{self, Output};
use crate::progress::Progress;
use crate::say;
use crate::tuned;
use mesh::Place;
use session::{End, Found, Session};

/// Shapes with a fault that are listed.
const LISTED: usize = 10;
/// The file is written anew after so long, s.
const SAVED_EVERY_S: f64 = 2.0;

/// Runs the command.
///
/// # Errors
/// [`Fault::Check`] if a product was wrong or a shape could not be measured, [`Fault::Memory`] if there was too little memory for
/// some alone, [`Fault::Stopped`] after a signal: after all that was found was written.
pub fn run(args: &TuneArgs) -> Result<(), Fault> {
    if let Some(path) = &args.from {
        return said(args, &tuned::read(path)?, path, None);
    }
    if args.device == Where::Cpu {
        return search::run(args);
    }
    refuse_what_is_of_the_cpu(args)?;
    let device = gpu(args)?;
    let machine = *device.machine().ok_or_else(|| Fault::Device("no GPU to tune".into()))?;
    let path = args.output.clone().unwrap_or_else(|| PathBuf::from(file_name(device.name())));
    let mut places = mesh::places(&classes(args), megabytes(args.largest), args.paper);
    let mut journal = Journal::new(&path, &machine, origin_of(&device, &machine))?;
    journal.missing_first(&mut places);
    if cfg!(debug_assertions) {
        say::note("this is an unoptimised build: its checks and its data take long, its kernels do not");
    }
    interrupt::stop_by_asking();
    let stream = device.stream()?;
    let found = device.entered(|| measured(args, &stream, &machine, places, &mut journal))??;
    journal.take(&found.cells);
    journal.save()?;
    said(args, &journal.database, &path, Some(&found))?;
    verdict(&found)
}

/// What only the search on the CPU takes.
fn refuse_what_is_of_the_cpu(args: &TuneArgs) -> Result<(), Fault> {
    let why = match (args.family.contains(&"batched"), args.n.is_empty()) {
        (true, _) => "--family batched: on a GPU a batch has one kernel a size; --device cpu searches those of the CPU",
        (false, false) => "--n is of --device cpu: on a GPU shapes are those of a mesh",
        (false, true) => return Ok(()),
    };
    Err(Fault::Input(why.into()))
}

/// The GPU that is asked for.
fn gpu(args: &TuneArgs) -> Result<Device, Fault> {
    let device = device::open(args.device)?;
    if device.is_cuda() { Ok(device) } else { Err(Fault::Device(format!("no GPU to tune: {}", device.reason()))) }
}

/// Measures by the device, which shows how far it is.
fn measured(
    args: &TuneArgs,
    stream: &Stream,
    machine: &Machine,
    mut places: Vec<Place>,
    journal: &mut Journal,
) -> Result<Found, Fault> {
    let began = Instant::now();
    let ceilings = stream.device().ceilings(stream)?;
    let mut gpu = gpu::Gpu::new(stream, ceilings, (args.samples, args.seed), began, &mut places)?;
    let progress = Progress::of_steps("tuning", places.len());
    let session = Session::new(&mut gpu, *machine, args.budget, args.samples, args.paper);
    session.run(&places, &mut |standing| {
        progress.reached(standing.done, &format!("tuning, {} left", left(standing.left_s)));
        journal.add(standing.cells, began.elapsed().as_secs_f64())
    })
}

/// `41 s`, `3 min`.
fn left(seconds: f64) -> String {
    if seconds < 100.0 { format!("{seconds:.0} s") } else { format!("{:.0} min", seconds / 60.0) }
}

/// The kinds of products that are asked for.
fn classes(args: &TuneArgs) -> Vec<Class> {
    let all: Vec<&'static str> = FAMILIES.iter().map(|family| family.name()).collect();
    let families = if args.family.is_empty() { &all } else { &args.family };
    let dtypes: Vec<Dtype> = match args.dtype.as_slice() {
        [] => vec![Dtype::F32, Dtype::F64],
        given => given.iter().map(|&element| element.into()).collect(),
    };
    let mut classes = Vec::new();
    for &family in families {
        let usual = mesh::usual_layouts(family);
        let layouts = if args.layout.is_empty() { &usual[..] } else { &args.layout };
        for dtype in &dtypes {
            for &by_columns in layouts {
                let letters: String = by_columns.iter().map(|by| if *by { 'c' } else { 'r' }).collect();
                let of = |beta: &bool| Class::parse(family, dtype.name(), &letters, if *beta { "1" } else { "0" });
                classes.extend(args.beta.iter().filter_map(of));
            }
        }
    }
    classes
}

fn megabytes(count: usize) -> u64 {
    crate::made_up::wide(count).saturating_mul(1_000_000)
}

/// `NVIDIA H200` -> `nvidia-h200.tuned`
fn file_name(gpu: &str) -> String {
    let words: Vec<String> = gpu
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    format!("{}.tuned", words.join("-"))
}

fn origin_of(device: &Device, machine: &Machine) -> Origin {
    let found = origin::Origin::new(device);
    Origin {
        gpu: machine.name.to_string(),
        compute_capability: machine.compute_capability,
        sms: machine.sms,
        driver: found.driver,
        commit: found.commit,
        date: found.date,
    }
}

/// The database as it grows.
struct Journal {
    path: PathBuf,
    database: Database,
    /// Of the cells of the run so many are in it.
    taken: usize,
    saved_s: f64,
}

impl Journal {
    /// Of what is there, if something is.
    ///
    /// # Errors
    /// [`Fault::Input`]: the file cannot be written, or what is there is damaged, of another version or of another GPU.
    fn new(path: &Path, machine: &Machine, origin: Origin) -> Result<Self, Fault> {
        drop(Output::create(path)?);
        let old = if path.is_file() { Some(tuned::read(path)?) } else { None };
        if let Some(old) = &old {
            old.check(machine).map_err(|reason| Fault::at(path, &reason))?;
        }
        let origin = old.as_ref().map_or(origin.clone(), |old| both(old.origin(), &origin));
        let cells = old.map_or_else(Vec::new, |old| old.cells().to_vec());
        Ok(Self { path: path.into(), database: Database::new(origin, cells), taken: 0, saved_s: 0.0 })
    }

    /// Shapes that it lacks before those that it has.
    fn missing_first(&self, places: &mut [Place]) {
        let there: BTreeSet<(Class, [u64; 3])> =
            self.database.cells().iter().map(|cell| (cell.class, cell.lengths)).collect();
        places.sort_by_key(|place| there.contains(&(place.class, place.lengths)));
    }

    /// Takes up what is new of the run's cells; the file is written now and then.
    fn add(&mut self, cells: &[Cell], elapsed_s: f64) -> Result<(), Fault> {
        if elapsed_s - self.saved_s < SAVED_EVERY_S {
            return Ok(());
        }
        self.take(cells);
        self.saved_s = elapsed_s;
        self.save()
    }

    fn take(&mut self, cells: &[Cell]) {
        let new = cells.iter().skip(self.taken).cloned();
        let all = self.database.cells().iter().cloned().chain(new);
        self.database = Database::new(self.database.origin().clone(), all);
        self.taken = cells.len();
    }

    fn save(&self) -> Result<(), Fault> {
        if self.database.cells().is_empty() {
            return Ok(());
        }
        output::write(&self.path, &self.database.to_string())
    }
}

/// Where cells of two runs are from.
fn both(old: &Origin, new: &Origin) -> Origin {
    let joined = |old: &str, new: &str| {
        let mut words: Vec<&str> = old.split(", ").chain([new]).filter(|word| !word.is_empty()).collect();
        let mut seen = BTreeSet::new();
        words.retain(|word| seen.insert(*word));
        words.join(", ")
    };
    Origin {
        driver: joined(&old.driver, &new.driver),
        commit: joined(&old.commit, &new.commit),
        date: joined(&old.date, &new.date),
        ..new.clone()
    }
}

/// What is printed at the end.
#[derive(Serialize)]
struct Said {
    database: String,
    gpu: String,
    shapes: usize,
    /// Of this run.
    measured: Option<usize>,
    left: Option<usize>,
    failed: Vec<String>,
    wrong: Vec<String>,
    losses: Vec<compare::Loss>,
    independence: Vec<compare::Independence>,
}

/// Says what the database has, what the run did, and draws what is asked for.
fn said(args: &TuneArgs, database: &Database, path: &Path, found: Option<&Found>) -> Result<(), Fault> {
    if let Some(folder) = &args.map {
        draw(folder, database)?;
    }
    let left = |found: &Found| match found.end {
        End::Whole => 0,
        End::Budget { left } | End::Stopped { left } => left,
    };
    if args.json {
        return say::print_json(&Said {
            database: path.display().to_string(),
            gpu: database.origin().gpu.clone(),
            shapes: database.cells().len(),
            measured: found.map(|found| found.cells.len()),
            left: found.map(left),
            failed: found.map_or_else(Vec::new, |found| found.failed.clone()),
            wrong: found.map_or_else(Vec::new, |found| found.wrong.clone()),
            losses: compare::losses(database),
            independence: compare::independences(database),
        });
    }
    let mut lines = found.map_or_else(Vec::new, |found| ended(found, args.budget));
    let origin = database.origin();
    let of = if origin.date.is_empty() { String::new() } else { format!(", {}", origin.date) };
    let (count, gpu, file) = (database.cells().len(), &origin.gpu, path.display());
    if count > 0 {
        lines.push(format!("{file}: {} of {gpu}{of}; plans follow it with LANKY_TUNED={file}", shapes(count)));
    }
    lines.push(compare::text(database, args.compare));
    say::print(lines.join("\n").trim_end())
}

/// `1 shape`, `2 shapes`.
pub fn shapes(count: usize) -> String {
    if count == 1 { "1 shape".into() } else { format!("{count} shapes") }
}

/// How a run ended, a line each.
fn ended(found: &Found, budget_s: f64) -> Vec<String> {
    let measured = format!("{} measured", shapes(found.cells.len()));
    let again = "run it again for them: what the file lacks comes first";
    let mut lines = vec![match found.end {
        End::Whole => measured,
        End::Budget { left } => {
            format!("{measured} within the budget of {}; {left} left: {again}", say::time(budget_s))
        }
        End::Stopped { left } => format!("{measured} when it was stopped; {left} left: {again}"),
    }];
    for (what, all) in [("not measured", &found.failed), ("wrong", &found.wrong)] {
        lines.extend(all.iter().take(LISTED).map(|why| format!("{what}: {why}")));
        if all.len() > LISTED {
            lines.push(format!("{what}: {} others (--json has all)", all.len() - LISTED));
        }
    }
    lines
}

/// Makes the folder, and draws all figures into it.
fn draw(folder: &Path, database: &Database) -> Result<(), Fault> {
    std::fs::create_dir_all(folder).map_err(|error| Fault::file(folder, &error))?;
    map::figures(database).iter().try_for_each(|(name, text)| output::write(&folder.join(name), text))
}

/// The exit code of a run.
fn verdict(found: &Found) -> Result<(), Fault> {
    if let (End::Stopped { .. }, Some(signal)) = (found.end, interrupt::signalled()) {
        return Err(Fault::Stopped(signal));
    }
    if !found.wrong.is_empty() {
        return Err(Fault::Check(format!("{} of the best were wrong: {}", found.wrong.len(), found.wrong[0])));
    }
    match found.failed.first() {
        Some(why) if found.cells.is_empty() => Err(Fault::Device(format!("nothing could be measured: {why}"))),
        Some(why) => {
            let words = format!("{} could not be measured: {why}", shapes(found.failed.len()));
            Err(if found.without_memory == found.failed.len() { Fault::Memory(words) } else { Fault::Check(words) })
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
