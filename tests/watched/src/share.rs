/// One of several shares, into which entries are dealt like cards: each share has some of every kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Its number, from 0.
    pub at: usize,
    /// How many there are.
    pub of: usize,
}

impl Share {
    /// All there is.
    pub const WHOLE: Share = Share { at: 0, of: 1 };
    /// Parts into which entries are dealt where tests take turns.
    const TURNS: usize = 3;

    /// What tests are to try that take minutes: all, or, where LANKY_TURN, a number, says whose turn it is, every third
    /// entry. CI sets it, by the commit, so that the next commit tries the next third.
    ///
    /// # Panics
    /// Where LANKY_TURN is no number.
    #[must_use]
    pub fn whose_turn_it_is() -> Share {
        std::env::var_os("LANKY_TURN").map_or(Share::WHOLE, |turn| {
            let turn: usize = turn.to_str().and_then(|turn| turn.parse().ok()).expect("LANKY_TURN is a number");
            Share { at: turn % Share::TURNS, of: Share::TURNS }
        })
    }

    /// Of a list what is this share's.
    pub fn of<T>(self, all: &'static [T]) -> impl Iterator<Item = &'static T> {
        all.iter().skip(self.at).step_by(self.of)
    }

    /// Whether what has this number in a list is this share's.
    #[must_use]
    pub const fn has(self, index: usize) -> bool {
        index % self.of == self.at
    }
}
