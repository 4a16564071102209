//! The command line.

use cpu::Instructions;

pub struct Args {
    pub csv: Option<String>,
    pub dtypes: Vec<String>,
    pub betas: Vec<f64>,
    pub sizes: Vec<usize>,
    /// MiB that a product of the whole batch moves.
    pub mib: usize,
    pub rounds: usize,
    pub ours_only: bool,
    pub processor_time: bool,
    pub instructions: Instructions,
}

impl Args {
    pub fn parse() -> Result<Args, String> {
        let mut args = Args {
            csv: None,
            dtypes: ["f32", "f64", "c64", "c128"].map(String::from).to_vec(),
            betas: vec![0.0, 1.0],
            sizes: (1..=32).collect(),
            mib: 128,
            rounds: 15,
            ours_only: false,
            processor_time: false,
            instructions: Instructions::detect(),
        };
        let mut words = std::env::args().skip(1);
        while let Some(option) = words.next() {
            if option == "--ours-only" {
                args.ours_only = true;
                continue;
            }
            if option == "--processor-time" {
                args.processor_time = true;
                continue;
            }
            let value = words.next().ok_or_else(|| format!("{option} needs a value"))?;
            match option.as_str() {
                "--csv" => args.csv = Some(value),
                "--dtype" => args.dtypes = value.split(',').map(String::from).collect(),
                "--beta" => args.betas = numbers(&option, &value)?,
                "--n" => args.sizes = numbers(&option, &value)?,
                "--mib" => args.mib = one(&option, &value)?,
                "--rounds" => args.rounds = one(&option, &value)?,
                "--instructions" => {
                    let named = |one: &Instructions| format!("{one:?}").to_lowercase() == value && one.is_available();
                    let found = Instructions::ALL.into_iter().find(named);
                    args.instructions = found.ok_or_else(|| format!("{option} {value}: not on this machine"))?;
                }
                _ => return Err(format!("{option} is unknown: see the top of src/main.rs")),
            }
        }
        match args.sizes.iter().find(|n| !(1..=cpu::MOST).contains(*n)) {
            Some(n) => Err(format!("--n {n}: from 1 to {}", cpu::MOST)),
            None if args.mib == 0 || args.rounds == 0 => Err("--mib and --rounds: at least 1".into()),
            None => Ok(args),
        }
    }
}

fn one<T: std::str::FromStr>(option: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("{option} {value}: no such number"))
}

fn numbers<T: std::str::FromStr>(option: &str, values: &str) -> Result<Vec<T>, String> {
    values.split(',').map(|value| one(option, value)).collect()
}
