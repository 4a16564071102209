//! The command line.

use crate::lab::Outcome;
use host::{Device, Dtype};

/// What is printed where the command line is wrong.
pub const USAGE: &str = "\
usage: lanky-gpu-tests COMMAND [--device cuda:N|cpu] [options]
  small                 every entry on small shapes: for compute-sanitizer
  check                 every check                 [--only NAME]...
  large                 more than 2^32 elements     [--log2 N] for 2^N
  speed                 every entry and cuBLAS      [--size N] [--n 1,2,4] [--dtype f32|f64] [--layout col|row]
                        [--entry PART] [--samples N] [--csv FILE] [--json]
  occupancy             blocks an SM by the driver and by the model      [--csv FILE]
  cold                  the first call of a process
The device is cuda:0 unless another is named. Exit codes: 0 all passed, 1 a failure, 2 wrong usage, 3 no device.";

/// The options of all commands.
pub struct Args {
    /// What is done.
    pub command: String,
    /// `cuda:N` or `cpu`.
    pub device: String,
    /// Checks that are run; all if empty.
    pub only: Vec<String>,
    /// Logarithm of the elements of a large matrix.
    pub log2: u32,
    /// m = k of a timed product.
    pub size: usize,
    /// Its n.
    pub widths: Vec<usize>,
    /// Its element types.
    pub dtypes: Vec<Dtype>,
    /// Whether A is row-major, in turn.
    pub layouts: Vec<bool>,
    /// Part of the names of the entries that are timed.
    pub entry: String,
    /// Timed runs of each.
    pub samples: usize,
    /// Where the measurements go.
    pub csv: Option<String>,
    /// Whether they are printed as one JSON object.
    pub json: bool,
}

impl Args {
    fn new(command: String) -> Args {
        Args {
            command,
            device: "cuda:0".to_owned(),
            only: Vec::new(),
            log2: 32,
            size: 20480,
            widths: vec![1, 2, 4, 8, 16],
            dtypes: vec![Dtype::F64, Dtype::F32],
            layouts: vec![false, true],
            entry: String::new(),
            samples: 30,
            csv: None,
            json: false,
        }
    }

    /// From the words behind the program's name.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn parse(words: impl IntoIterator<Item = String>) -> Outcome<Args> {
        let mut words = words.into_iter();
        let command = words.next().ok_or("a command is missing")?;
        let mut args = Args::new(command);
        while let Some(option) = words.next() {
            if option == "--json" {
                args.json = true;
                continue;
            }
            let value = words.next().ok_or_else(|| format!("{option} needs a value"))?;
            args.set(&option, value)?;
        }
        if args.widths.contains(&0) || args.size == 0 || args.samples == 0 {
            return Err("sizes and samples start at 1".into());
        }
        Ok(args)
    }

    fn set(&mut self, option: &str, value: String) -> Outcome {
        match option {
            "--device" => self.device = value,
            "--only" => self.only.push(value),
            "--log2" => self.log2 = value.parse()?,
            "--size" => self.size = value.parse()?,
            "--samples" => self.samples = value.parse()?,
            "--entry" => self.entry = value,
            "--csv" => self.csv = Some(value),
            "--n" => self.widths = value.split(',').map(str::parse).collect::<Result<_, _>>()?,
            "--dtype" => {
                self.dtypes = match value.as_str() {
                    "f32" => vec![Dtype::F32],
                    "f64" => vec![Dtype::F64],
                    _ => return Err(format!("{value} is not f32 or f64").into()),
                }
            }
            "--layout" => {
                self.layouts = match value.as_str() {
                    "col" => vec![false],
                    "row" => vec![true],
                    _ => return Err(format!("{value} is not col or row").into()),
                }
            }
            _ => return Err(format!("there is no option {option}").into()),
        }
        Ok(())
    }

    /// The number of the GPU, `None` for the CPU.
    ///
    /// # Errors
    /// If the name is neither's.
    pub fn ordinal(&self) -> Outcome<Option<u32>> {
        match (self.device.as_str(), self.device.strip_prefix("cuda:")) {
            ("cpu", _) => Ok(None),
            (_, Some(number)) => Ok(Some(number.parse()?)),
            (name, None) => Err(format!("{name} is not cuda:N or cpu").into()),
        }
    }
}

/// The device of this number, or the CPU.
///
/// # Errors
/// If there is no such GPU.
pub fn open(ordinal: Option<u32>) -> host::Result<Device> {
    ordinal.map_or_else(|| Ok(Device::cpu()), Device::cuda)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Outcome<Args> {
        Args::parse(words.split(' ').map(str::to_owned))
    }

    #[test]
    fn options_are_read_and_mistakes_named() -> Outcome {
        let args = parse("speed --device cuda:2 --n 1,3 --dtype f32 --json --samples 5")?;
        assert_eq!((args.ordinal()?, args.widths, args.dtypes), (Some(2), vec![1, 3], vec![Dtype::F32]));
        assert!(args.json && args.samples == 5);
        assert_eq!(parse("check --device cpu")?.ordinal()?, None);
        for wrong in ["check --device", "check --sort x", "speed --n 1,x", "speed --n 0", "speed --dtype f16"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(parse("check --device gpu")?.ordinal().is_err());
        Ok(())
    }
}
