//! A bar on standard error, if that is a terminal (or `--progress` says otherwise) and the work takes longer than a second:
//! of bytes while they move, of steps while they are counted, of nothing countable while the device computes.

use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};

/// When bars are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum When {
    Auto,
    Always,
    Never,
}

static ALLOWED: OnceLock<When> = OnceLock::new();

/// What `--progress` asks for; before the first bar.
pub fn allow(when: When) {
    let _ = ALLOWED.set(when);
}

fn is_shown() -> bool {
    match ALLOWED.get() {
        Some(When::Always) => true,
        Some(When::Never) => false,
        Some(When::Auto) | None => io::stderr().is_terminal(),
    }
}

/// Work that ends sooner shows nothing.
const PATIENCE: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(100);

const MOVING: &str = "{msg} {wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";
const COUNTING: &str = "{msg} {wide_bar} {pos} of {len}";
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
        let alive = is_shown().then(|| show_later(bar.clone())).flatten();
        Self { bar, _alive: alive }
    }

    /// Of so many steps; `words` say of what.
    pub fn of_steps(words: &str, steps: usize) -> Self {
        let progress = Self::new(words, u64::try_from(steps).unwrap_or(u64::MAX));
        set(&progress.bar, COUNTING, words);
        progress
    }

    /// So many of the steps are done; how it stands, in words.
    pub fn reached(&self, steps: usize, words: &str) {
        self.bar.set_position(u64::try_from(steps).unwrap_or(u64::MAX));
        self.bar.set_message(words.to_string());
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

/// `None` where the system starts no thread for it: work goes on without a bar.
fn show_later(bar: ProgressBar) -> Option<Sender<()>> {
    let (alive, ended) = mpsc::channel::<()>();
    let show = move || {
        let ends_within = |time| ended.recv_timeout(time) != Err(RecvTimeoutError::Timeout);
        if ends_within(PATIENCE) {
            return;
        }
        bar.set_draw_target(if io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::term_like_with_hz(Box::new(Pipe), 1)
        });
        // By this thread: the bar's own steady tick takes another one, or panics.
        while !bar.is_finished() {
            bar.tick();
            if ends_within(TICK) {
                return;
            }
        }
    };
    thread::Builder::new().name("bar".into()).spawn(show).is_ok().then_some(alive)
}

/// Standard error that is no terminal, with `--progress always`: the bar anew on each line, once a second.
#[derive(Debug)]
struct Pipe;

impl TermLike for Pipe {
    fn width(&self) -> u16 {
        80
    }

    fn move_cursor_up(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_down(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_right(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_left(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        writeln!(io::stderr(), "{}", text.trim_end())
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        let text = text.trim();
        if text.is_empty() { Ok(()) } else { writeln!(io::stderr(), "{text}") }
    }

    fn clear_line(&self) -> io::Result<()> {
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_templates_are_ones() {
        for template in [MOVING, COUNTING, COMPUTING] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
        assert!(!COMPUTING.contains("bytes") && !COMPUTING.contains("eta"));
    }
}
