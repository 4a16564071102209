//! A database as text: what it is of, a line for each cell, and a check of all of it.

use super::{Cell, Class, Database, Origin, Timed, VERSION};
use model::{VARIANTS, Variant};
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

/// What the first line begins with.
const MAGIC: &str = "lanky tuned ";
/// The names of what follows it, in order.
const HEADS: [&str; 7] = ["gpu", "compute-capability", "sms", "driver", "commit", "date", "cells"];
/// The columns of a cell.
const COLUMNS: &str = "family dtype layout reads_c m n k entry parts expected_parts ns noise fraction model_entry model_parts model_expected model_ns";

impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = self.body();
        writeln!(f, "{body}end {:016x}", check(&body))
    }
}

impl Database {
    /// All lines but the last.
    fn body(&self) -> String {
        let Origin { gpu, compute_capability: (major, minor), sms, driver, commit, date } = &self.origin;
        let mut text = format!("{MAGIC}{VERSION}\n");
        let values = [
            said(gpu),
            format!("{major}.{minor}"),
            sms.to_string(),
            said(driver),
            said(commit),
            said(date),
            self.cells.len().to_string(),
        ];
        for (name, value) in HEADS.iter().zip(values) {
            text += &format!("{name} {value}\n");
        }
        text += COLUMNS;
        text.push('\n');
        for cell in &self.cells {
            text += &line(cell);
        }
        text
    }

    /// From the text of one.
    ///
    /// # Errors
    /// What is wrong with it: the line, what was found, and what was required.
    pub fn parse(text: &str) -> Result<Database, String> {
        let version = text.lines().next().and_then(|first| first.strip_prefix(MAGIC));
        let version =
            version.ok_or_else(|| format!("line 1: no database of lanky tune, which begins with '{MAGIC}'"))?;
        if version != VERSION.to_string() {
            return Err(format!("line 1: it is of version {version}, but required is {VERSION}: tune again"));
        }
        let (body, checked) = whole(text)?;
        let mut lines = body.lines().zip(1..).skip(1);
        let (origin, wanted) = heads(&mut lines)?;
        let mut found: Vec<Cell> = Vec::new();
        for (text, number) in lines {
            let cell = cell(text).map_err(|reason| format!("line {number}: {reason}"))?;
            let place = |cell: &Cell| (cell.class, cell.lengths);
            if found.last().is_some_and(|before| place(before) >= place(&cell)) {
                return Err(format!("line {number}: out of order"));
            }
            found.push(cell);
        }
        if found.len() != wanted {
            let line = HEADS.len() + 1;
            return Err(format!("line {line}: {} cells were found, but {wanted} are required", found.len()));
        }
        checked?;
        Ok(Database { origin, cells: found })
    }
}

/// What a text says that it is of; its cells are not looked at.
pub(super) fn origin(text: &str) -> Result<Origin, String> {
    heads(&mut text.lines().zip(1..).skip(1)).map(|(origin, _)| origin)
}

/// What it is of, and how many cells follow; the lines up to the columns are taken.
fn heads<'t>(lines: &mut impl Iterator<Item = (&'t str, i32)>) -> Result<(Origin, usize), String> {
    let mut values = [("", 0); HEADS.len()];
    for (name, value) in HEADS.into_iter().zip(&mut values) {
        let (text, number) = lines.next().ok_or_else(|| format!("it ends before its line '{name}'"))?;
        let found = text.strip_prefix(name).and_then(|rest| rest.strip_prefix(' '));
        *value = (found.ok_or_else(|| format!("line {number}: '{text}', but required is '{name}'"))?, number);
    }
    let [gpu, (capability, line), sms, driver, commit, date, cells] = values;
    let (major, minor) = capability.split_once('.').unwrap_or((capability, ""));
    let capability = |text| number(text, HEADS[1], line);
    let origin = Origin {
        gpu: heard(gpu.0),
        compute_capability: (capability(major)?, capability(minor)?),
        sms: number(sms.0, HEADS[2], sms.1)?,
        driver: heard(driver.0),
        commit: heard(commit.0),
        date: heard(date.0),
    };
    match lines.next() {
        Some((COLUMNS, _)) => Ok((origin, number(cells.0, HEADS[6], cells.1)?)),
        Some((_, number)) => Err(format!("line {number}: other columns than those of version {VERSION}")),
        None => Err("it ends before its columns".into()),
    }
}

/// The text before the last line, and whether that is what it has to be: damage has a better name where a line says nothing
/// that it can.
fn whole(text: &str) -> Result<(&str, Result<(), String>), String> {
    let cut = "it was cut off: its last line is none of 'end' and its check";
    let without = text.strip_suffix('\n').ok_or(cut)?;
    let (body, last) = text.split_at(without.rfind('\n').map_or(0, |at| at + 1));
    let found = last.trim_end_matches('\n').strip_prefix("end ").ok_or(cut)?;
    let required = format!("{:016x}", check(body));
    let same = if found == required {
        Ok(())
    } else {
        Err(format!("it was changed or damaged: its check is {found}, but required for its text is {required}"))
    };
    Ok((body, same))
}

/// FNV-1a of 64 bits.
fn check(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

fn said(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.is_empty() { "unknown".into() } else { words.join(" ") }
}

fn heard(text: &str) -> String {
    if text == "unknown" { String::new() } else { text.into() }
}

fn line(cell: &Cell) -> String {
    let Cell { class, lengths: [m, n, k], best, model, noise, fraction } = cell;
    let timed = |t: &Timed| (t.variant.entry, t.parts, t.expected_parts, t.ns);
    let ((entry, parts, expected, ns), (model, model_parts, model_expected, model_ns)) = (timed(best), timed(model));
    format!(
        "{class} {m} {n} {k} {entry} {parts} {expected} {ns:.1} {noise:.4} {fraction:.4} {model} {model_parts} \
         {model_expected} {model_ns:.1}\n"
    )
}

fn cell(text: &str) -> Result<Cell, String> {
    let words: Vec<&str> = text.split(' ').collect();
    let &[
        family,
        dtype,
        layout,
        beta,
        m,
        n,
        k,
        entry,
        parts,
        expected,
        ns,
        noise,
        fraction,
        own,
        own_parts,
        own_expected,
        own_ns,
    ] = words.as_slice()
    else {
        return Err(format!("{} words, but required are {}", words.len(), COLUMNS.split(' ').count()));
    };
    let class = Class::parse(family, dtype, layout, beta)
        .ok_or_else(|| format!("'{family} {dtype} {layout} {beta}' is no kind of product"))?;
    let lengths = [whole_number(m, "m")?, whole_number(n, "n")?, whole_number(k, "k")?];
    let problem = class.problem(lengths).ok_or_else(|| format!("{m} x {n} x {k} is no product of family {family}"))?;
    let timed = |entry: &str, parts: &str, expected: &str, ns: &str| -> Result<Timed, String> {
        let variant = variant(entry, &problem)?;
        let (parts, expected_parts) = (whole_number(parts, "parts")?, whole_number(expected, "expected_parts")?);
        Ok(Timed { variant, parts, expected_parts, ns: positive(ns, "ns")? })
    };
    let (best, model) = (timed(entry, parts, expected, ns)?, timed(own, own_parts, own_expected, own_ns)?);
    let noise = noise.parse().ok().filter(|noise: &f64| *noise >= 0.0 && noise.is_finite());
    Ok(Cell {
        class,
        lengths,
        best,
        model,
        noise: noise.ok_or("noise is no number of 0 or more")?,
        fraction: positive(fraction, "fraction")?,
    })
}

/// A database names two of a thousand in each of its thousands of lines.
static BY_ENTRY: LazyLock<HashMap<&str, &Variant>> =
    LazyLock::new(|| VARIANTS.iter().map(|variant| (variant.entry, variant)).collect());

/// An entry that may be chosen for a product: sums of atomics are not the same twice, and f32 is split for who allows it alone.
fn variant(entry: &str, problem: &model::Problem) -> Result<&'static Variant, String> {
    let found = BY_ENTRY.get(entry).copied();
    let found = found.ok_or_else(|| format!("entry {entry} is none of this version's: tune again"))?;
    if found.dtype != problem.dtype || !found.computes(problem) || found.adds_atomically() || found.splits_f32() {
        return Err(format!("entry {entry} does not compute this product"));
    }
    Ok(found)
}

fn number<N: FromStr>(text: &str, name: &str, line: i32) -> Result<N, String> {
    text.parse().map_err(|_| format!("line {line}: {name} is '{text}', not a whole number"))
}

fn whole_number<N: FromStr + PartialOrd + From<u8>>(text: &str, name: &str) -> Result<N, String> {
    let found = text.parse().ok().filter(|number: &N| *number >= N::from(1));
    found.ok_or_else(|| format!("{name} is '{text}', not a whole number of 1 or more"))
}

fn positive(text: &str, name: &str) -> Result<f64, String> {
    let found = text.parse().ok().filter(|number: &f64| *number > 0.0 && number.is_finite());
    found.ok_or_else(|| format!("{name} is '{text}', not a number above 0"))
}
