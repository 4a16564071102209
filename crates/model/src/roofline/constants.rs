//! The numbers of an estimate that no data sheet has.

/// What is fitted to measured times. All else of an [`Estimator`](super::Estimator) is counted, or the machine's.
///
/// README.md of this crate says how to fit them anew.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constants {
    /// Share of the matrix units' rate that loops with loads from shared memory in them reach.
    pub mma_share: f64,
    /// How many times as long as a read kernel's reads of A take that go through a ring.
    pub ring_reads: f64,
    /// How many latencies of the memory pass while what a ring has in flight arrives: its threads wait for a whole stage,
    /// meet, and multiply before they ask for more.
    pub ring_latencies: f64,
    /// How much longer a ring of two stages takes whose block is alone on its SM, for each thousand steps of k in a part: a late
    /// stage is waited for at once, and blocks that began together ask for lines ever further apart.
    pub strayed: f64,
    /// Share of A that comes from memory again when another group of columns reads it; the rest is still in a cache.
    pub read_again: f64,
    /// Times of a slot's bytes at the rates of the memory that storing and adding them takes: accesses are short, and the
    /// second kernel starts with nothing in flight.
    pub slot_cost: f64,
    /// How much of the way from blocks dealt evenly to SMs that are full those of a last wave are found: they take the
    /// places that become free, and those of an SM become free together.
    pub crowded: f64,
    /// Share of a full wave's time that passes, for each place which a last wave leaves empty, while the blocks of the full
    /// waves before it end one after another and the SMs that run dry draw nothing.
    pub drained: f64,
    /// Share of a wave's time that passes while the last blocks of an entry of [`Kernel::Gemv`](crate::Kernel::Gemv) end, which do not end at once.
    pub uneven: f64,
    /// Issue slots that a warp of a ring spends a stage beside its multiply-adds, loads, moves and copies: the barrier, the
    /// wait, addresses, and what it cannot fill around them.
    pub stage_slots: f64,
    /// How much longer the instructions of a ring with 64 sums a thread or more take where a scheduler has one warp, which it cannot leave while the warp
    /// waits for operands; nothing where it has two, and in between in proportion.
    pub lone_warp: f64,
    /// Issue slots that a warp with a row a thread spends a step of k beside multiply-adds and loads.
    pub step_slots: f64,
    /// The same of the plain product.
    pub gemm_step_slots: f64,
    /// As [`Constants::stage_slots`], of a ring for products of any shape: counted in what the assembler makes of it, not fitted.
    pub gemm_stage_slots: f64,
    /// How many times as long as a read kernel's reads from the second-level cache take what a ring for products of any shape pulls from it: blocks
    /// that run together ask for the same lines. From f64 alone; in f32 it moved no choice.
    pub gemm_pulls: f64,
    /// Bytes a cycle that an SM's lanes are handed, a broadcast counted a lane, by loads of 16 bytes from shared memory.
    pub wide_bytes_per_cycle: f64,
    /// The same of a ring, whose lanes take different elements and not one by broadcast.
    pub ring_bytes_per_cycle: f64,
    /// The same by loads of an element, from the first-level cache.
    pub narrow_bytes_per_cycle: f64,
    /// Bytes a cycle and SM that a block of a ring stores, a sector counted for each element that has one of its own.
    pub stored_bytes_per_cycle: f64,
    /// How many times as long loads of A take that has its rows contiguous, where a thread has a row: f32.
    pub by_rows_f32: f64,
    /// The same in f64.
    pub by_rows_f64: f64,
}

impl Constants {
    /// What choices are made with.
    ///
    /// # Source
    /// 10574 times of TSM2R on an H200 (driver 580.159, 2026-11-22), each in the parts of k in which it was taken: what most choices
    /// are within 3% of the fastest with, and most predictions within 10%. They are those that benches/results/h200 had at commit
    /// 7527965, built from 93e258c-dirty. What is there now is a later run, built from 3eb0d5a-dirty, that these constants have not
    /// seen: benches/NOTES.md has how near they are to it. `read_again`, `slot_cost` and `crowded` are held at what 2510 times of
    /// earlier kernels gave, since these were taken in few numbers of parts.
    /// `strayed` is from `stsm2r_staged_8x8_n16_k16_s2_t256` at 40960 x 12 x 40960, 1740 us in 3 parts, and on two other H200s 1483 and 1494
    /// in 13, and from what grows with the length of a part in between.
    /// `lone_warp` is from m = 10240 to 30720 in f32 on another H200 that day: with 120 blocks of 4 warps on 132 SMs seven cases by
    /// `stsm2r_staged_8x12_n48` take 1.35 times as long a stage as with 240, three by entries of 8 x 8 1.2 to 1.37 times.
    /// `drained` is from 40960 x 16 x 40960 in f64, 640 blocks in 396 places 3070 us, 1920 blocks 2955 us; `by_rows_f64` is from
    /// a comparison at m = k = 20480, where such an A took 2.4 times as long. `uneven` is from 192 times of f32 matrices of 0.13 to 6 GB and a vector in
    /// 1 to 8 waves of blocks on an H200 (2026-11-26). Choices moved with the fit and were not timed
    /// again: benches/NOTES.md has how many. `gemm_pulls` is from 207 squares in f64 by each entry of `gemm_mma` on an H200 (2026-11-25), of
    /// which 64 x 64 drew up to 6.5 TB/s; the choices are within 3% of the fastest in 98% of those of benches/results/h200/gemm-variants.csv, entries of a
    /// day later, with blocks' ends in the estimate. `gemm_stage_slots` is from stages of 16 steps.
    pub const FITTED: Constants = Constants {
        mma_share: 0.85,
        ring_reads: 0.991,
        ring_latencies: 1.133,
        strayed: 0.0038,
        read_again: 0.979,
        slot_cost: 1.358,
        crowded: 0.283,
        drained: 0.1285,
        uneven: 0.03,
        stage_slots: 139.4,
        lone_warp: 0.35,
        step_slots: 9.0,
        gemm_step_slots: 36.0,
        gemm_stage_slots: 60.0,
        gemm_pulls: 0.62,
        wide_bytes_per_cycle: 180.8,
        ring_bytes_per_cycle: 140.2,
        narrow_bytes_per_cycle: 72.2,
        stored_bytes_per_cycle: 14.65,
        by_rows_f32: 5.05,
        by_rows_f64: 2.4,
    };
}
