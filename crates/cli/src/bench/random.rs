//! Numbers that follow from a seed: for resampling, and for the order in which contestants run.

use crate::made_up::wide;

/// SplitMix64 (Steele, Lea, Flood 2014).
pub struct Random(u64);

impl Random {
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Of a seed and a name: what is called otherwise has numbers that have nothing to do with these.
    pub fn of(seed: u64, name: &str) -> Self {
        let mixed = name.bytes().fold(seed, |state, letter| Self(state ^ u64::from(letter)).next());
        Self(mixed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// An index below `len`; the remainder's bias is some 10^-17 here.
    pub fn below(&mut self, len: usize) -> usize {
        let index = self.next() % wide(len).max(1);
        usize::try_from(index).unwrap_or(0)
    }

    /// Any order of these, all orders being as likely (Fisher and Yates).
    pub fn shuffle<T>(&mut self, all: &mut [T]) {
        for last in (1..all.len()).rev() {
            all.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_numbers_are_those_of_the_algorithm() {
        // The reference implementation's first outputs from the seed 1234567.
        let mut random = Random::new(1_234_567);
        assert_eq!([random.next(), random.next()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    #[test]
    fn all_orders_are_as_likely() {
        let mut random = Random::new(7);
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..6000 {
            let mut order = [0, 1, 2];
            random.shuffle(&mut order);
            *counts.entry(order).or_insert(0) += 1;
        }
        // 1000 each; a standard deviation is 29.
        assert_eq!(counts.len(), 6);
        assert!(counts.values().all(|count| (870..1130).contains(count)), "{counts:?}");
    }

    #[test]
    fn names_and_seeds_tell_orders_apart() {
        let first = |seed, name| Random::of(seed, name).next();
        assert_eq!(first(1, "a case"), first(1, "a case"));
        assert!(first(1, "a case") != first(1, "a cast") && first(1, "a case") != first(2, "a case"));
    }
}
