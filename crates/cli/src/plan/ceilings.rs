//! What a GPU reached, from the file of ceilings that `lanky bench` writes.

use std::path::Path;

use lanky::text::read_text;
use model::Machine;
use model::machine::Ceilings;
use model::results::{CEILING, FIELDS};

use crate::csv;
use crate::error::Fault;

/// How far `gbs` may be from bytes by nanoseconds, relatively: it has three decimals.
const ROUNDED: f64 = 1e-3;

/// The machine with what was measured of it.
///
/// # Errors
/// [`Fault::Input`], one line that starts with the path and names the line and the field: the file is none of ceilings, is
/// damaged, is of another GPU, or says what cannot be.
pub fn calibrate(machine: &Machine, path: &Path) -> Result<Machine, Fault> {
    let text = read_text(path).map_err(|error| Fault::file(path, &error))?;
    let calibrated = parse(&text, machine.name.as_str())
        .and_then(|ceilings| machine.calibrated(&ceilings).map_err(|error| format!("with these ceilings {error}")));
    calibrated.map_err(|reason| Fault::at(path, &reason))
}

/// The ceilings of a GPU in a file's text, or what is wrong with it.
fn parse(text: &str, gpu: &str) -> Result<Ceilings, String> {
    let mut records = csv::records(text)?.into_iter();
    let (_, header) = records.next().ok_or("it is empty, not ceilings of lanky bench")?;
    if header != FIELDS {
        return Err("no ceilings of lanky bench: its columns are not those of results".into());
    }
    let mut ceilings = Ceilings::default();
    for (number, fields) in records {
        let line = Line { fields: &fields };
        line.take_up(&mut ceilings, gpu).map_err(|reason| format!("line {number}: {reason}"))?;
    }
    if ceilings.read.is_none() {
        return Err(format!("it has no ceiling of reading, a row of family {CEILING} and variant read"));
    }
    Ok(ceilings)
}

/// A record by the names of its columns.
struct Line<'a> {
    fields: &'a [String],
}

impl Line<'_> {
    fn text(&self, name: &str) -> &str {
        let place = FIELDS.iter().position(|field| *field == name);
        place.and_then(|place| self.fields.get(place)).map_or("", String::as_str)
    }

    /// A number above 0.
    fn positive(&self, name: &str) -> Result<f64, String> {
        let text = self.text(name);
        let number = text.parse::<f64>().ok().filter(|number| *number > 0.0 && number.is_finite());
        number.ok_or_else(|| format!("{name} is '{text}', not a number above 0"))
    }

    /// Takes up the row's rate; of several for one kind of work the highest.
    fn take_up(&self, ceilings: &mut Ceilings, gpu: &str) -> Result<(), String> {
        if self.fields.len() != FIELDS.len() {
            return Err(format!("{} fields, not {}", self.fields.len(), FIELDS.len()));
        }
        if self.text("family") != CEILING {
            return Err(format!("family is '{}', not {CEILING}", self.text("family")));
        }
        if self.text("device") != gpu {
            return Err(format!("device is '{}', but the plan is for {gpu}", self.text("device")));
        }
        let rate = match (self.text("variant"), self.text("dtype")) {
            ("read", _) => (&mut ceilings.read, self.bytes_per_s()?),
            ("copy", _) => (&mut ceilings.copy, self.bytes_per_s()?),
            ("write", _) => (&mut ceilings.write, self.bytes_per_s()?),
            // In place: what the model has no use for must still be whole.
            ("update", _) => return self.bytes_per_s().map(drop),
            ("fma", "f32") => (&mut ceilings.fma_f32, self.fmas_per_s()?),
            ("fma", "f64") => (&mut ceilings.fma_f64, self.fmas_per_s()?),
            ("mma", "f64") => (&mut ceilings.mma_f64, self.fmas_per_s()?),
            (variant, dtype) => {
                return Err(format!(
                    "variant is '{variant}' in '{dtype}': known are read, copy, write, update, fma, mma"
                ));
            }
        };
        let (known, found) = rate;
        *known = Some(known.map_or(found, |known| known.max(found)));
        Ok(())
    }

    fn bytes_per_s(&self) -> Result<f64, String> {
        let (bytes, ns) = (self.positive("bytes")?, self.positive("ns_median")?);
        let gbs = self.positive("gbs")?;
        if (gbs * ns / bytes - 1.0).abs() <= ROUNDED {
            Ok(bytes / ns * 1e9)
        } else {
            Err(format!("gbs is {gbs}, but bytes by ns_median are {:.3}", bytes / ns))
        }
    }

    /// A multiply-add is two flops.
    fn fmas_per_s(&self) -> Result<f64, String> {
        Ok(self.positive("flops")? / 2.0 / self.positive("ns_median")? * 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row of a file of ceilings: kind of work, element type, bytes, flops, ns, GB/s.
    fn row(what: &str, dtype: &str, bytes: &str, flops: &str, ns: &str, gbs: &str) -> String {
        let fields = FIELDS.map(|name| match name {
            "family" => CEILING,
            "dtype" => dtype,
            "device" => "NVIDIA H200",
            "variant" => what,
            "ns_median" => ns,
            "bytes" => bytes,
            "flops" => flops,
            "gbs" => gbs,
            _ => "",
        });
        csv::line(fields)
    }

    fn file(rows: &[String]) -> String {
        csv::line(FIELDS) + &rows.concat()
    }

    #[test]
    fn rates_are_what_a_hand_finds() {
        let text = file(&[
            row("read", "f64", "4000000000", "0", "1000000.0", "4000.000"),
            row("read", "f32", "4100000000", "0", "1000000.0", "4100.000"),
            row("copy", "f64", "7000000", "0", "2000.0", "3500.000"),
            row("update", "f64", "7000000", "0", "2000.0", "3500.000"),
            row("fma", "f32", "0", "66000000", "1000.0", ""),
            row("mma", "f64", "0", "64000000", "1000.0", ""),
        ]);
        let wanted = Ceilings {
            read: Some(4.1e12),
            copy: Some(3.5e12),
            write: None,
            fma_f32: Some(33e12),
            fma_f64: None,
            mma_f64: Some(32e12),
        };
        assert_eq!(parse(&text, "NVIDIA H200"), Ok(wanted));
    }

    #[test]
    fn damage_is_named() {
        let read = row("read", "f64", "4000000000", "0", "1000000.0", "4000.000");
        for (rows, reason) in [
            (vec![], "it has no ceiling of reading, a row of family ceiling and variant read"),
            (vec![read.replace("4000000000", "many")], "line 2: bytes is 'many', not a number above 0"),
            (vec![read.clone(), read.replace("1000000.0", "0.0")], "line 3: ns_median is '0.0', not a number above 0"),
            (vec![read.replace("1000000.0", "NaN")], "line 2: ns_median is 'NaN', not a number above 0"),
            (vec![read.replace("4000.000", "4300.000")], "line 2: gbs is 4300, but bytes by ns_median are 4000.000"),
            (
                vec![read.replace("H200", "H100 PCIe")],
                "line 2: device is 'NVIDIA H100 PCIe', but the plan is for NVIDIA H200",
            ),
            (vec![read.replace("ceiling,", "tsm2r,")], "line 2: family is 'tsm2r', not ceiling"),
            (
                vec![read.replace(",read,", ",reed,")],
                "line 2: variant is 'reed' in 'f64': known are read, copy, write, update, fma, mma",
            ),
            (vec![read.clone(), "ceiling,f64\n".into()], "line 3: 2 fields, not 34"),
        ] {
            assert_eq!(parse(&file(&rows), "NVIDIA H200"), Err(reason.into()), "{rows:?}");
        }
        assert!(parse("", "x").is_err_and(|why| why.starts_with("it is empty")));
        assert!(parse("a,b\n1,2\n", "x").is_err_and(|why| why.contains("columns are not those")));
    }
}
