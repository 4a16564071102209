//! What was measured, on the terminal and in a file.

use crate::args::Args;
use crate::case::Raced;
use crate::memory::Rate;
use std::fs::File;
use std::io::Write;

pub struct Record {
    csv: Option<File>,
}

impl Record {
    pub fn new(args: &Args) -> Result<Self, String> {
        let mut csv = match &args.csv {
            Some(path) => Some(File::create(path).map_err(|error| format!("{path}: {error}"))?),
            None => None,
        };
        if let Some(csv) = &mut csv {
            let threads = rayon::current_num_threads();
            let head = format!(
                "# {}, {threads} threads, {:?}, {} MiB a case, {} rounds, {}, 1-minute load {}\n\
                 dtype,n,beta,count,library,best_ns,median_ns,memory_best_ns,memory_median_ns,multiply_ns,gbs,\
                 percent_of_bound,percent_by_medians\n",
                processor(),
                args.instructions,
                args.mib,
                args.rounds,
                if args.processor_time { "processor time" } else { "wall clock" },
                load(),
            );
            csv.write_all(head.as_bytes()).map_err(|error| error.to_string())?;
        }
        Ok(Record { csv })
    }

    pub fn rate(&mut self, rate: &Rate) -> Result<(), String> {
        println!("{:<24}{:8.1} GB/s", rate.name, rate.gbs());
        self.write(&format!("# {}: {:.2} GB/s\n", rate.name, rate.gbs()))
    }

    pub fn fmas(&mut self, fmas: f64) -> Result<(), String> {
        println!("{:<24}{:8.1} G/s", "multiply-adds of f64", fmas / 1e9);
        self.write(&format!("# multiply-adds of f64: {:.1} G/s\n", fmas / 1e9))
    }

    /// The bound is the longer of the two: of the memory's traffic, and of the multiply-adds.
    pub fn case(&mut self, result: &Raced, products: f64) -> Result<(), String> {
        let Raced { dtype, n, count, beta, bytes, .. } = *result;
        let memory = Times::of(&result.bound);
        let multiply = (count * n * n * n) as f64 / products;
        let bound = Times { best: memory.best.max(multiply), median: memory.median.max(multiply) };
        print!(
            "{dtype:>5} n {n:>2} beta {beta}: memory {:5.1} GB/s, multiply-adds {:3.0}% of it:",
            bytes as f64 / memory.best / 1e9,
            100.0 * multiply / memory.best
        );
        for (name, seconds) in &result.entrants {
            let times = Times::of(seconds);
            let (percent, by_medians) = (100.0 * bound.best / times.best, 100.0 * bound.median / times.median);
            print!("  {name} {percent:.1} ({by_medians:.1})");
            self.write(&format!(
                "{dtype},{n},{beta},{count},{name},{:.0},{:.0},{:.0},{:.0},{:.0},{:.3},{percent:.2},{by_medians:.2}\n",
                times.best * 1e9,
                times.median * 1e9,
                memory.best * 1e9,
                memory.median * 1e9,
                multiply * 1e9,
                bytes as f64 / times.best / 1e9,
            ))?;
        }
        println!();
        Ok(())
    }

    fn write(&mut self, text: &str) -> Result<(), String> {
        self.csv.as_mut().map_or(Ok(()), |csv| csv.write_all(text.as_bytes()).map_err(|error| error.to_string()))
    }

    pub fn end(mut self) -> Result<(), String> {
        self.write(&format!("# 1-minute load at the end {}\n", load()))
    }
}

struct Times {
    best: f64,
    median: f64,
}

impl Times {
    fn of(seconds: &[f64]) -> Times {
        let mut sorted = seconds.to_vec();
        sorted.sort_by(f64::total_cmp);
        Times { best: sorted[0], median: sorted[sorted.len() / 2] }
    }
}

/// A line of a file of the system's, or nothing.
fn line(path: &str, start: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().find(|line| line.starts_with(start)).unwrap_or_default().to_owned()
}

fn processor() -> String {
    line("/proc/cpuinfo", "model name").split(':').nth(1).unwrap_or("a processor").trim().to_owned()
}

fn load() -> String {
    line("/proc/loadavg", "").split(' ').next().unwrap_or_default().to_owned()
}
