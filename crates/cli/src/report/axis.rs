//! Axes: from numbers to places along a figure's side.

/// A range of numbers with its ticks.
#[derive(Clone, Debug)]
pub struct Axis {
    from: f64,
    to: f64,
    logarithmic: bool,
    /// Numbers with their labels.
    pub ticks: Vec<(f64, String)>,
    /// What is measured, with its unit.
    pub label: String,
}

impl Axis {
    /// From 0 to a round number that is not less than `most`.
    pub fn linear(label: &str, most: f64) -> Self {
        let step = round_step(most.max(f64::MIN_POSITIVE) / 5.0);
        let steps = (1..=50).find(|&steps| f64::from(steps) * step >= most).unwrap_or(50);
        let ticks = (0..=steps).map(|tick| f64::from(tick) * step).map(|number| (number, plain(number))).collect();
        Self { from: 0.0, to: f64::from(steps) * step, logarithmic: false, ticks, label: label.into() }
    }

    /// From a power of ten (or twice or five times one) below `least` to one above `most`.
    pub fn logarithmic(label: &str, least: f64, most: f64) -> Self {
        let least = least.max(1e-300);
        let most = most.max(1.01 * least);
        let mut ticks: Vec<f64> = Vec::new();
        let first = decade_below(least);
        let mut decade = first;
        while ticks.last().is_none_or(|&last| last < most) {
            ticks.extend([1.0, 2.0, 5.0].map(|digit| digit * decade));
            decade *= 10.0;
        }
        let from = ticks.iter().copied().filter(|&tick| tick <= least).fold(first, f64::max);
        let to = ticks.iter().copied().filter(|&tick| tick >= most).fold(f64::INFINITY, f64::min);
        ticks.retain(|&tick| tick >= from && tick <= to);
        if ticks.len() > 7 {
            ticks.retain(|&tick| {
                let digit = tick / decade_below(tick);
                !(1.5..9.5).contains(&digit)
            });
        }
        let ticks = ticks.into_iter().map(|number| (number, plain(number))).collect();
        Self { from, to, logarithmic: true, ticks, label: label.into() }
    }

    /// Logarithmic, with the numbers that occur as its ticks, as far as their labels have room.
    pub fn of_numbers(label: &str, numbers: &[f64]) -> Self {
        let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
        let most = numbers.iter().copied().fold(0.0, f64::max);
        let (from, to) = (least / 1.15, most * 1.15);
        let mut ticks: Vec<(f64, String)> = Vec::new();
        let room = (to / from).ln() / 18.0;
        for &number in numbers {
            if ticks.last().is_none_or(|(last, _)| (number / last).ln() >= room) {
                ticks.push((number, plain(number)));
            }
        }
        Self { from, to, logarithmic: true, ticks, label: label.into() }
    }

    /// 0 at its beginning, 1 at its end.
    pub fn place(&self, number: f64) -> f64 {
        let share = if self.logarithmic {
            (number / self.from).ln() / (self.to / self.from).ln()
        } else {
            (number - self.from) / (self.to - self.from)
        };
        share.clamp(0.0, 1.0)
    }

    pub fn range(&self) -> (f64, f64) {
        (self.from, self.to)
    }
}

/// The power of ten that is not above a positive number.
fn decade_below(number: f64) -> f64 {
    let decade = 10_f64.powf(number.log10().floor());
    if decade > number { decade / 10.0 } else { decade }
}

/// 1, 2 or 5 times a power of ten, not less than `step`.
fn round_step(step: f64) -> f64 {
    let decade = decade_below(step);
    let found = [1.0, 2.0, 5.0, 10.0].into_iter().find(|digit| digit * decade >= step * (1.0 - 1e-12));
    found.unwrap_or(10.0) * decade
}

/// `4000`, `0.5`, `1e6`.
fn plain(number: f64) -> String {
    let number = (number * 1e6).round() / 1e6;
    if number.abs() >= 1e6 { format!("{number:e}") } else { number.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, label)| label.as_str()).collect()
    }

    #[test]
    fn linear_axes_begin_at_zero_and_end_round() {
        let axis = Axis::linear("GB/s", 4650.0);
        assert_eq!(labels(&axis), ["0", "1000", "2000", "3000", "4000", "5000"]);
        assert_eq!([0.0, 2500.0, 5000.0, 9000.0].map(|x| axis.place(x)), [0.0, 0.5, 1.0, 1.0]);
        assert_eq!(labels(&Axis::linear("", 1.3)), ["0", "0.5", "1", "1.5"]);
        assert_eq!(Axis::linear("", 5.0).range(), (0.0, 5.0));
    }

    #[test]
    fn logarithmic_axes_have_decades() {
        let axis = Axis::logarithmic("", 0.3, 40.0);
        assert_eq!(axis.range(), (0.2, 50.0));
        assert!((axis.place(10_f64.sqrt()) - 0.5).abs() < 1e-12);
        assert_eq!(labels(&Axis::logarithmic("", 1.0, 900.0)), ["1", "10", "100", "1000"]);
        assert!(!Axis::logarithmic("", 5.0, 5.0).place(5.0).is_nan());
    }

    #[test]
    fn numbers_that_occur_are_ticks_where_there_is_room() {
        let axis = Axis::of_numbers("n", &[1.0, 2.0, 4.0, 8.0, 15.0, 16.0, 64.0]);
        assert_eq!(labels(&axis), ["1", "2", "4", "8", "15", "64"]);
    }
}
