//! What results are of: device, driver, commit, day.

use std::time::{SystemTime, UNIX_EPOCH};

use lanky::Device;

/// By build.rs.
const BUILT_FROM: &str = env!("LANKY_BUILT_FROM");

/// The same for all rows of a run.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Origin {
    pub device: String,
    pub driver: String,
    pub commit: String,
    pub date: String,
}

impl Origin {
    pub fn new(device: &Device) -> Self {
        let driver = if device.is_cuda() { lanky::env::gpu_report().driver_release } else { None };
        Self { device: name(device), driver: driver.unwrap_or_default(), commit: commit(), date: today() }
    }
}

/// `NVIDIA H200`; of a CPU what it calls itself, with its cores.
fn name(device: &Device) -> String {
    if device.is_cuda() {
        return device.name().to_string();
    }
    let facts = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = facts.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or("cpu", |(_, name)| name.trim());
    format!("{model}, {} threads", rayon::current_num_threads())
}

/// LANKY_COMMIT, else what the program was built from: a commit, with -dirty if files differed from it, or `unknown`.
fn commit() -> String {
    let told = std::env::var("LANKY_COMMIT").ok().filter(|commit| !commit.is_empty());
    told.unwrap_or_else(|| BUILT_FROM.into())
}

fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    day(seconds / 86400)
}

/// `2026-11-21`, of days since 1970-01-01 in the Gregorian calendar.
fn day(mut days: u64) -> String {
    let is_leap = |year: u64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let mut year = 1970;
    loop {
        let length = if is_leap(year) { 366 } else { 365 };
        if days < length {
            break;
        }
        days -= length;
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year:04}-{month:02}-{:02}", days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_knows_what_it_was_built_from() {
        let hash = BUILT_FROM.strip_suffix("-dirty").unwrap_or(BUILT_FROM);
        let is_hash = hash.len() >= 7 && hash.bytes().all(|letter| letter.is_ascii_hexdigit());
        let told = option_env!("LANKY_COMMIT") == Some(BUILT_FROM);
        assert!(is_hash || told || BUILT_FROM == "unknown", "{BUILT_FROM}");
    }

    #[test]
    fn days_have_dates() {
        // By the calendar: 2000-02-29 is day 11016; 2026-11-21 day 20778.
        for (days, date) in [
            (0, "1970-01-01"),
            (30, "1970-01-31"),
            (31, "1970-02-01"),
            (364, "1970-12-31"),
            (365, "1971-01-01"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (20_778, "2026-11-21"),
        ] {
            assert_eq!(day(days), date);
        }
    }
}
