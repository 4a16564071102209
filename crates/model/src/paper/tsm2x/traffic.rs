//! Eq. (15): what is read, how much of it is used, and how shared memory is laid out.

/// (15) Elements of A that are read: m·k·⌈n/t2⌉.
///
/// # Source
/// TSM2X, Section 3.1.7: A is loaded again for each group of columns. Reconstructed.
pub fn a_traffic(m: u64, n: u64, k: u64, t2: u32) -> u64 {
    m.saturating_mul(k).saturating_mul(n.div_ceil(u64::from(t2.max(1))))
}

/// (15) Elements of B that are read: k·n·⌈m/t1⌉; each thread for itself (t1 = 1) reads k·n·m.
///
/// # Source
/// TSM2X, Section 3.1.4: a tile in shared memory serves t1 rows. Reconstructed; rounding up is ours.
pub fn b_traffic(m: u64, n: u64, k: u64, t1: u32) -> u64 {
    k.saturating_mul(n).saturating_mul(m.div_ceil(u64::from(t1.max(1))))
}

/// Elements of A that Algorithm 1 reads: m·k·n, an inner product reading its row anew for each column.
///
/// # Source
/// TSM2X, Section 3.1.2. What Algorithm 2, the outer product, does to it is (15) with t2 = n.
pub fn a_traffic_inner(m: u64, n: u64, k: u64) -> u64 {
    m.saturating_mul(k).saturating_mul(n)
}

/// Share of a transaction's bytes that is used where all threads of a warp load the same element.
///
/// # Source
/// TSM2X, Section 3.1.3, of B in Algorithms 1 and 2; transactions have 32 or 128 bytes.
pub fn broadcast_efficiency(elem_bytes: u32, transaction_bytes: u32) -> f64 {
    f64::from(elem_bytes) / f64::from(transaction_bytes)
}

/// How a t1 x t2 tile of B lies in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// A column's elements are neighbours.
    ColumnMajor,
    /// A row's elements are neighbours.
    RowMajor,
}

/// Threads of a warp that meet in a bank when they store a column of a tile, each its row's element: 1 is no conflict.
///
/// Column-major they are in 32 banks; row-major in 32 / t2, where t2 is a power of two.
///
/// # Source
/// TSM2X, Section 3.1.4 and Fig. 1, which say up to t2; the greatest common divisor for other t2 is ours. An element is
/// a bank's word: wider ones are stored by half a warp at a time, in as many banks.
pub const fn bank_conflict(storage: Storage, t2: u32) -> u32 {
    let (mut a, mut b) = match storage {
        Storage::ColumnMajor => (1, 32),
        Storage::RowMajor => (t2, 32),
    };
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_memory_divides_the_reads_of_b_by_t1() {
        assert_eq!(a_traffic(1000, 16, 500, 8), 2 * 1000 * 500);
        assert_eq!(a_traffic(1000, 17, 500, 8), 3 * 1000 * 500);
        assert_eq!(b_traffic(1024, 16, 500, 1), 1024 * 16 * 500);
        assert_eq!(b_traffic(1024, 16, 500, 128), 8 * 16 * 500);
    }

    /// Section 3.1.3: an eighth of what is moved in f32, a quarter in f64.
    #[test]
    fn a_broadcast_uses_a_quarter_of_its_sector() {
        assert_eq!((broadcast_efficiency(8, 32), broadcast_efficiency(4, 32)), (0.25, 0.125));
        assert_eq!(broadcast_efficiency(8, 128), 0.0625);
    }

    /// Fig. 1: a 64 x 2 tile.
    #[test]
    fn a_row_major_tile_conflicts_t2_ways() {
        assert_eq!((bank_conflict(Storage::ColumnMajor, 2), bank_conflict(Storage::RowMajor, 2)), (1, 2));
        for t2 in [1, 4, 8, 16, 32] {
            assert_eq!((bank_conflict(Storage::ColumnMajor, t2), bank_conflict(Storage::RowMajor, t2)), (1, t2));
        }
        assert_eq!((bank_conflict(Storage::RowMajor, 3), bank_conflict(Storage::RowMajor, 6)), (1, 2));
    }

    #[test]
    fn an_outer_product_reads_a_once() {
        assert_eq!(a_traffic_inner(1000, 16, 500), 16 * a_traffic(1000, 16, 500, 16));
    }
}
