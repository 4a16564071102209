//! A bar on standard error, if that is a terminal and the work takes longer than a second: of bytes while they move, of
//! nothing countable while the device computes.

use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Work that ends sooner shows nothing.
const PATIENCE: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(100);

const MOVING: &str = "{msg} {wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";
const COMPUTING: &str = "{msg} {spinner}";

/// A bar that is gone once this is dropped.
pub struct Progress {
    bar: ProgressBar,
    /// Dropped with the bar, which ends the thread that waits to show it.
    _alive: Option<Sender<()>>,
}

impl Progress {
    /// Of `bytes` to move; `words` say on what.
    pub fn new(words: &str, bytes: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::hidden());
        set(&bar, MOVING, words);
        let alive = io::stderr().is_terminal().then(|| show_later(bar.clone()));
        Self { bar, _alive: alive }
    }

    /// From now on the rest of the bytes moves; the rate is theirs alone.
    pub fn transfer(&self, words: &str) {
        set(&self.bar, MOVING, words);
        self.bar.reset_eta();
    }

    /// From now on nothing moves: there is no rate, and nobody knows for how long.
    pub fn compute(&self, words: &str) {
        set(&self.bar, COMPUTING, words);
    }

    /// More of the bytes have moved.
    pub fn advance(&self, bytes: usize) {
        self.bar.inc(u64::try_from(bytes).unwrap_or(u64::MAX));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn set(bar: &ProgressBar, template: &str, words: &str) {
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_message(words.to_string());
}

fn show_later(bar: ProgressBar) -> Sender<()> {
    let (alive, ended) = mpsc::channel::<()>();
    thread::spawn(move || {
        if ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            bar.set_draw_target(ProgressDrawTarget::stderr());
            bar.enable_steady_tick(TICK);
        }
    });
    alive
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_templates_are_ones() {
        for template in [MOVING, COMPUTING] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
        assert!(!COMPUTING.contains("bytes") && !COMPUTING.contains("eta"));
    }
}
