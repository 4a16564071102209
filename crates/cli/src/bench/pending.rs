//! The cases that are still to be measured: whoever ends the run early says which are missing.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::say;

static PENDING: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());

fn pending() -> MutexGuard<'static, VecDeque<String>> {
    PENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All that are to be measured, in order.
pub fn expect(names: impl Iterator<Item = String>) {
    pending().extend(names);
}

/// This one is done, as well as it can be.
pub fn done(name: &str) {
    let mut pending = pending();
    if let Some(place) = pending.iter().position(|expected| expected == name) {
        pending.remove(place);
    }
}

/// Names what is missing, a line each.
pub fn say_missing() {
    let pending = pending();
    if !pending.is_empty() {
        say::note(&text(pending.iter()));
    }
}

fn text<'n>(names: impl ExactSizeIterator<Item = &'n String>) -> String {
    let words = if names.len() == 1 { "1 case is missing:" } else { &format!("{} cases are missing:", names.len()) };
    names.fold(words.to_string(), |text, name| text + "\n  " + name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_is_not_missing() {
        // In any order: some are left out before others begin.
        expect(["a", "b", "c"].map(String::from).into_iter());
        done("b");
        done("no such");
        assert_eq!(*pending(), ["a", "c"]);
        done("a");
        done("c");
        assert!(pending().is_empty());
    }

    #[test]
    fn missing_cases_have_their_names() {
        let names = ["one".to_string(), "two".to_string()];
        assert_eq!(text(names.iter()), "2 cases are missing:\n  one\n  two");
        assert_eq!(text(names[..1].iter()), "1 case is missing:\n  one");
    }
}
