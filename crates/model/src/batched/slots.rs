//! What a multiply-add of the entries that take problems by runs costs a scheduler.

use crate::variants::batched::Batched;

/// Issue slots of a real multiply-add, by the listing of the innermost loop (nvdisasm, of what ptxas 13.0.88 makes of each entry for sm_90, on
/// 2026-11-30): its instructions, and in single precision half a slot for each multiply-add two of whose registers are of one bank, unless one of
/// them is that of the one before. These are the assembler's choice: of equal tiles one has a third more than another.
const SLOTS: &[(&str, f64)] = &[
    ("cbatched_bulk_2x2_t256", 1.95),
    ("cbatched_bulk_2x4_t256", 1.75),
    ("cbatched_bulk_3x3_t128", 1.69),
    ("cbatched_bulk_3x4_t128", 1.57),
    ("cbatched_bulk_5x4_t128", 1.45),
    ("cbatched_over_11x3_t128", 1.41),
    ("cbatched_over_13x3_t128", 1.35),
    ("cbatched_over_15x2_t128", 1.53),
    ("cbatched_over_5x3_t128", 1.54),
    ("cbatched_over_5x5_t128", 1.57),
    ("cbatched_over_6x3_t128", 1.49),
    ("cbatched_over_7x3_t128", 1.55),
    ("cbatched_over_7x4_t128", 1.35),
    ("cbatched_over_8x4_t128", 1.38),
    ("cbatched_over_9x4_t128", 1.33),
    ("dbatched_bulk_1x2_t256", 3.53),
    ("dbatched_bulk_2x2_t256", 2.02),
    ("dbatched_bulk_3x3_t256", 1.83),
    ("dbatched_bulk_3x4_t256", 1.85),
    ("dbatched_bulk_5x4_t128", 1.62),
    ("dbatched_over_15x2_t128", 1.69),
    ("dbatched_over_3x5_t128", 1.73),
    ("dbatched_over_7x4_t128", 1.68),
    ("sbatched_bulk_1x2_t256", 3.99),
    ("sbatched_bulk_3x3_t256", 2.13),
    ("sbatched_bulk_3x4_t256", 2.19),
    ("sbatched_bulk_4x4_t256", 1.45),
    ("sbatched_bulk_5x4_t256", 1.96),
    ("sbatched_bulk_7x4_t256", 1.85),
    ("sbatched_over_7x7_t128", 1.68),
    ("sbatched_over_9x4_t128", 1.69),
    ("zbatched_bulk_1x2_t256", 1.92),
    ("zbatched_bulk_3x2_t128", 1.44),
    ("zbatched_over_3x4_t128", 1.44),
    ("zbatched_over_5x3_t128", 1.50),
    ("zbatched_over_5x4_t128", 1.26),
];

/// The same of an entry.
pub(super) fn slots(variant: &Batched) -> f64 {
    SLOTS.iter().find(|(entry, _)| *entry == variant.entry).map_or(USUAL, |(_, slots)| *slots)
}

/// Of one that is not in the list.
const USUAL: f64 = 1.8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::variants::batched::BATCHED;

    #[test]
    fn each_entry_by_runs_is_listed_once_and_no_other() {
        let by_runs = || BATCHED.iter().filter(|v| v.design().is_by_runs());
        for v in by_runs() {
            assert_eq!(SLOTS.iter().filter(|(entry, _)| *entry == v.entry).count(), 1, "{}", v.entry);
        }
        assert_eq!(by_runs().count(), SLOTS.len());
        assert!(SLOTS.iter().all(|(_, slots)| (1.0..4.0).contains(slots)));
    }
}
