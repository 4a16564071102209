//! Launches: what to run, and the run itself.

use crate::block::Scheduler;
use crate::bulk::Bulk;
use crate::copies::Copies;
use crate::counters::{Counters, OperandCounters};
use crate::fault::{Fault, FaultKind};
use crate::memory::{Handles, Memory};
use crate::order::Order;
use crate::port::Port;
use crate::proxy::Proxy;
use crate::readers::Readers;
use crate::release::Releases;
use crate::shadow::Word;
use crate::sm::{Clock, Sm};
use crate::stack::Pool;
use std::cell::Cell;

/// Threads a block at most.
const THREADS: u64 = 1024;
/// Bytes of shared memory a block at most: what compute capability 9.0 gives to one.
const SHARED_BYTES: u32 = 227 << 10;

thread_local! {
    /// Stacks are kept from launch to launch.
    static POOL: Cell<Pool> = const { Cell::new(Pool::new()) };
}

/// A launch: which kernel in how many threads. All but the kernel's name has a default.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// The kernel's name, for messages.
    pub kernel: &'a str,
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads a block along x, y and z; 1024 together at most.
    pub block: [u32; 3],
    /// Dynamic shared memory a block, in bytes.
    pub shared_bytes: u32,
    /// The order of blocks, and of warps within one. 0 takes them as they are numbered; `None` takes the seed from the
    /// environment variable `SIMT_SEED`, or 0.
    pub seed: Option<u64>,
    /// Warp instructions after which the kernel is taken to be endless: 2²⁵ by default, which take a minute or so.
    pub step_limit: u64,
    /// How many accesses of the first warp to record, in [`Counters::patterns`].
    pub record: usize,
}

impl Default for Launch<'_> {
    /// One block of one warp, without shared memory.
    fn default() -> Self {
        Launch {
            kernel: "kernel",
            grid: [1; 3],
            block: [32, 1, 1],
            shared_bytes: 0,
            seed: None,
            step_limit: 1 << 25,
            record: 0,
        }
    }
}

/// Runs a kernel whose handles do not come from a [`Memory`]: `thread` is called once for each GPU thread. All memory that
/// its handles span counts as initialised, and as written by anyone who likes.
///
/// # Errors
/// As [`Launch::run`].
///
/// # Example
/// ```
/// use cuda_std::{Global, thread};
/// let mut data = [1.0_f32; 64];
/// let x = Global::on_host("x", data.as_mut_ptr(), 64);
/// let double = || {
///     let i = thread::index_1d().into();
///     unsafe { x.store(i, 2.0 * x.load(i)) };
/// };
/// let counters = lanky_simt::launch([2, 1, 1], [32, 1, 1], 0, double)?;
/// assert_eq!(counters.operand("x").stores.elements, 64);
/// assert_eq!(data, [2.0; 64]);
/// # Ok::<(), Box<lanky_simt::Fault>>(())
/// ```
pub fn launch(grid: [u32; 3], block: [u32; 3], shared_bytes: u32, thread: impl Fn()) -> Result<Counters, Box<Fault>> {
    Launch { grid, block, shared_bytes, ..Launch::default() }.run(&mut Memory::new(), |_| thread())
}

impl Launch<'_> {
    /// Runs the kernel: `thread` is called once for each GPU thread, and calls the kernel. All of it happens on this OS
    /// thread, block after block, before this returns; the crate's page says what it costs.
    ///
    /// # Errors
    /// The first rule that the kernel breaks, of the kinds of [`FaultKind`]; the memory then holds what was written
    /// until that moment. [`FaultKind::BadLaunch`], before anything runs, for a grid, a block or shared memory that no
    /// GPU has, and for a SIMT_SEED that is no number.
    pub fn run(&self, memory: &mut Memory, thread: impl Fn(&Handles)) -> Result<Counters, Box<Fault>> {
        let seed = self.check()?;
        let handles = memory.handles();
        let body = || thread(&handles);
        let port = Port::new(self.grid, self.block, self.step_limit.saturating_mul(32));
        let operands = memory.operands.len();
        let entered = port.enter();
        let mut scheduler = self.scheduler(memory, &port, &body, seed);
        let outcome = scheduler.run_grid(self.grid);
        scheduler.stop_threads();
        drop(entered);
        let Scheduler { mut sm, pool, .. } = scheduler;
        POOL.set(pool);
        sm.settle_stores();
        sm.operands.truncate(operands);
        let epoch = sm.clock.epoch;
        let mut counters = std::mem::take(&mut sm.counters);
        counters.fma = port.fma.get();
        counters.operands = std::mem::take(&mut sm.traffic).into_iter().filter(is_touched).collect();
        memory.epoch = epoch;
        outcome.map(|()| counters)
    }

    /// Refuses what no GPU launches; gives the seed.
    fn check(&self) -> Result<u64, Box<Fault>> {
        let seed = match self.seed {
            Some(seed) => Ok(seed),
            None => std::env::var("SIMT_SEED").map_or(Ok(0), |text| text.trim().parse().map_err(|_| text)),
        };
        let threads = self.block.iter().map(|&along| u64::from(along)).product::<u64>();
        let message = if let Err(text) = &seed {
            format!("SIMT_SEED is {text:?}, not a number")
        } else if self.grid.contains(&0)
            || self.grid[1] > 65535
            || self.grid[2] > 65535
            || self.grid[0] > i32::MAX as u32
        {
            format!("a grid of {:?} blocks", self.grid)
        } else if threads == 0 || threads > THREADS {
            format!("a block of {:?} threads; it has 1 to {THREADS}", self.block)
        } else if self.shared_bytes > SHARED_BYTES {
            format!("{} bytes of shared memory a block; there are {SHARED_BYTES}", self.shared_bytes)
        } else {
            return Ok(seed.unwrap_or(0));
        };
        let kernel = self.kernel.to_string();
        let (kind, seed) = (FaultKind::BadLaunch, 0);
        Err(Box::new(Fault { kind, kernel, party: None, operand: None, index: None, other: None, message, seed }))
    }

    fn scheduler<'l>(&'l self, memory: &'l mut Memory, port: &'l Port, body: &'l dyn Fn(), seed: u64) -> Scheduler<'l> {
        let threads = port.slots.len();
        let named = |name| OperandCounters { name, ..OperandCounters::default() };
        let sm = Sm {
            kernel: self.kernel,
            seed,
            traffic: memory.operands.iter().map(|operand| named(operand.name)).collect(),
            operands: &mut memory.operands,
            last: 0,
            shared: vec![0; self.shared_bytes as usize],
            words: vec![Word::default(); (self.shared_bytes as usize).div_ceil(4)],
            readers: Readers::new((self.shared_bytes as usize).div_ceil(4), threads),
            copies: (0..threads).map(|_| Copies::default()).collect(),
            bulk: Bulk::new(threads),
            counters: Counters::default(),
            record: self.record,
            block: [0; 3],
            clock: Clock {
                epoch: memory.epoch,
                block_first: 0,
                launch_first: memory.epoch + 1,
                releases: Releases::new(threads),
                proxy: Proxy::new(threads),
            },
            number: 0,
        };
        Scheduler {
            port,
            body,
            sm,
            pool: POOL.take(),
            order: Order::new(seed),
            steps_left: self.step_limit,
            threads: Vec::with_capacity(threads),
            warps: Vec::new(),
        }
    }
}

impl Scheduler<'_> {
    fn run_grid(&mut self, [x, y, z]: [u32; 3]) -> Result<(), Box<Fault>> {
        let blocks = u64::from(x) * u64::from(y) * u64::from(z);
        for at in self.order.permutation(blocks) {
            let (row, plane) = (u64::from(x), u64::from(x) * u64::from(y));
            self.run_block([(at % row) as u32, (at / row % u64::from(y)) as u32, (at / plane) as u32])?;
        }
        Ok(())
    }
}

fn is_touched(operand: &OperandCounters) -> bool {
    *operand != OperandCounters { name: operand.name, ..OperandCounters::default() }
}
