//! The command line.

use crate::lab::Outcome;
use host::Device;
use watched::Share;

/// What is printed where the command line is wrong.
pub const USAGE: &str = "\
usage: lanky-gpu-tests COMMAND [--device cuda:N|cpu] [options]
  small                 every entry on small shapes: for compute-sanitizer  [--only PART]...
  check                 every check                 [--only NAME]...
  large                 more than 2^32 elements     [--log2 N] for 2^N
  occupancy             blocks an SM by the driver and by the model      [--csv FILE]
  cold                  the first call of a process, with the driver's cache empty and filled
  busy                  multiplies until its input ends
  beyond                touches what is not mapped   --only behind|before|written
  first                 the first call of this process              [--limit SECONDS]
With --share I/N checks try an N-th of the entries, and occupancy of their blocks, one of 0/N to N-1/N; with --entries NAME those whose own name or
variant's begins so; all without. The checks local and grids try all.
The device is cuda:0 unless another is named. Exit codes: 0 all passed, 1 a failure, 2 wrong usage, 3 no device.";

/// The options of all commands.
pub struct Args {
    /// What is done.
    pub command: String,
    /// `cuda:N` or `cpu`.
    pub device: String,
    /// Checks, or parts of `small`, that are run; all if empty.
    pub only: Vec<String>,
    /// Logarithm of the elements of a large matrix.
    pub log2: u32,
    /// Where a table is written.
    pub csv: Option<String>,
    /// What loading may add to a first call, s.
    pub limit: f64,
    /// The entries that are tried: a share of those whose names begin so.
    pub share: Share,
    pub entries: String,
}

impl Args {
    fn new(command: String) -> Args {
        let (device, share) = ("cuda:0".to_owned(), Share::WHOLE);
        let entries = String::new();
        Args { command, device, only: Vec::new(), log2: 32, csv: None, limit: f64::INFINITY, share, entries }
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
            let value = words.next().ok_or_else(|| format!("{option} needs a value"))?;
            args.set(&option, value)?;
        }
        Ok(args)
    }

    fn set(&mut self, option: &str, value: String) -> Outcome {
        match option {
            "--device" => self.device = value,
            "--only" => self.only.push(value),
            "--log2" => self.log2 = value.parse()?,
            "--csv" => self.csv = Some(value),
            "--limit" => self.limit = value.parse()?,
            "--share" => self.share = share(&value)?,
            "--entries" => self.entries = value,
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

/// A share from `I/N`.
fn share(text: &str) -> Outcome<Share> {
    let (at, of) = text.split_once('/').ok_or_else(|| format!("{text} is no share I/N"))?;
    let share = Share { at: at.parse()?, of: of.parse()? };
    if share.at < share.of {
        Ok(share)
    } else {
        Err(format!("of {text} there is nothing: shares are 0/N to N-1/N").into())
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
        let args = parse("large --device cuda:2 --log2 30 --only a --only b")?;
        assert_eq!((args.ordinal()?, args.log2), (Some(2), 30));
        assert_eq!(args.only, ["a", "b"]);
        assert_eq!(parse("check --device cpu")?.ordinal()?, None);
        assert_eq!(parse("small --share 2/3")?.share, Share { at: 2, of: 3 });
        assert_eq!([parse("check")?.entries, parse("check --entries tsm2r_split")?.entries], ["", "tsm2r_split"]);
        for wrong in [
            "check --device",
            "check --sort x",
            "large --log2 x",
            "small --share 1",
            "small --share 3/3",
            "small --share 0/0",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(parse("check --device gpu")?.ordinal().is_err());
        Ok(())
    }
}
