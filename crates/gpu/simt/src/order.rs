//! The seeded order of everything that a GPU leaves open.

/// A small generator of numbers that look random: splitmix64.
pub(crate) struct Order {
    state: u64,
    in_order: bool,
}

impl Order {
    /// For seed 0 everything goes in the order of its numbers.
    pub(crate) fn new(seed: u64) -> Self {
        Order { state: seed, in_order: seed == 0 }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is not 0; always 0 where things go in order. Its bias is far below what an order
    /// of blocks can show.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        if self.in_order { 0 } else { self.next() % bound }
    }

    /// The numbers below `len`, shuffled.
    pub(crate) fn permutation(&mut self, len: u64) -> Vec<u64> {
        let mut items: Vec<u64> = (0..len).collect();
        if !self.in_order {
            for at in (1..items.len()).rev() {
                items.swap(at, self.below(at as u64 + 1) as usize);
            }
        }
        items
    }
}

#[cfg(test)]
mod tests {
    use super::Order;

    #[test]
    fn a_permutation_holds_each_number_once_and_depends_on_the_seed() {
        let permute = |seed| Order::new(seed).permutation(100);
        let mut sorted = permute(7);
        sorted.sort_unstable();
        assert_eq!(sorted, permute(0));
        assert_eq!(permute(7), permute(7));
        assert_ne!(permute(7), permute(8));
        assert_ne!(permute(7), permute(0));
    }
}
