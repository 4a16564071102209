//! Numbers and names as the fields of a results file have them.

use model::results::FIELDS;

use super::result::Timing;

/// Digits behind the point of GB/s, and of shares of one.
pub const GBS_DIGITS: usize = 3;
pub const SHARE_DIGITS: usize = 4;

/// Nanoseconds as a file has them: to a tenth, or where there are few to what is left of them.
pub fn ns_text(ns: f64) -> String {
    if ns >= 10.0 { format!("{ns:.1}") } else { format!("{ns:.6}") }
}

/// The number that a text says; the text is one that was made of `number`.
pub fn rounded(text: &str, number: f64) -> f64 {
    text.parse().unwrap_or(number)
}

/// A record's fields by name.
pub struct Fields<'a> {
    fields: &'a [String],
}

impl<'a> Fields<'a> {
    pub const fn new(fields: &'a [String]) -> Self {
        Self { fields }
    }

    pub fn text(&self, name: &str) -> &str {
        let place = FIELDS.iter().position(|field| *field == name);
        place.and_then(|place| self.fields.get(place)).map_or("", String::as_str)
    }

    pub fn number<N: std::str::FromStr>(&self, name: &str) -> Result<N, String> {
        let text = self.text(name);
        text.parse().map_err(|_| format!("{name} is '{text}', not a number as it must be"))
    }

    pub fn positive(&self, name: &str) -> Result<f64, String> {
        let value: f64 = self.number(name)?;
        if value > 0.0 && value.is_finite() { Ok(value) } else { Err(format!("{name} is {value}, not above 0")) }
    }

    pub fn finite(&self, name: &str) -> Result<f64, String> {
        let value: f64 = self.number(name)?;
        if value.is_finite() { Ok(value) } else { Err(format!("{name} is {value}, not a finite number")) }
    }

    /// A number of parts, where it is noted.
    pub fn parts(&self, name: &str) -> Result<Option<u32>, String> {
        match self.text(name) {
            "" => Ok(None),
            text => match text.parse() {
                Ok(parts) if parts > 0 => Ok(Some(parts)),
                _ => Err(format!("{name} is '{text}', not a number of parts above 0")),
            },
        }
    }

    /// Times of ours.
    pub fn timing(&self) -> Result<Timing, String> {
        let [ns_median, ns_low, ns_high, ns_min] =
            ["ns_median", "ns_low", "ns_high", "ns_min"].map(|name| self.positive(name));
        Ok(Timing { ns_median: ns_median?, ns_low: ns_low?, ns_high: ns_high?, ns_min: ns_min? })
    }

    /// What follows from times, where there are any; what has few digits may be rounded to nothing.
    pub fn share(&self, name: &str, is_there: bool) -> Result<Option<f64>, String> {
        let text = self.text(name);
        if !is_there {
            return if text.is_empty() { Ok(None) } else { Err(format!("{name} is '{text}', but must be blank here")) };
        }
        match self.number(name)? {
            share if share >= 0.0 && f64::is_finite(share) => Ok(Some(share)),
            share => Err(format!("{name} is {share}, not a share")),
        }
    }
}
