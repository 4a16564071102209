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
            Share::of_turn(turn.to_str().and_then(|turn| turn.parse().ok()).expect("LANKY_TURN is a number"))
        })
    }

    const fn of_turn(turn: usize) -> Share {
        Share { at: turn % Share::TURNS, of: Share::TURNS }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What is dealt: more than one round, and not whole rounds.
    const CARDS: [usize; 8] = [0, 1, 2, 3, 4, 5, 6, 7];

    #[test]
    fn every_card_is_dealt_once_in_as_many_turns() {
        assert_eq!(Share::WHOLE.of(&CARDS).count(), CARDS.len());
        for first in [0, 598] {
            let hands = [0, 1, 2].map(|on| Share::of_turn(first + on).of(&CARDS).copied().collect::<Vec<_>>());
            assert!(hands.iter().all(|hand| hand.len() >= 2), "{hands:?}");
            let mut all = hands.concat();
            all.sort_unstable();
            assert_eq!(all, CARDS);
        }
        assert_eq!(Share::of_turn(601), Share { at: 1, of: 3 });
    }

    #[test]
    fn a_share_has_what_it_is_dealt() {
        for share in [Share::WHOLE, Share::of_turn(0), Share::of_turn(1), Share::of_turn(2)] {
            let has: Vec<usize> = CARDS.into_iter().filter(|card| share.has(*card)).collect();
            assert_eq!(has, share.of(&CARDS).copied().collect::<Vec<_>>(), "{share:?}");
        }
    }
}
