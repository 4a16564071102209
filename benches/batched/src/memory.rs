//! What the memory of this machine gives to all cores: the bounds.

use crate::args::Args;
use crate::clock;
use rayon::prelude::*;
use std::hint::black_box;

/// Bytes that the arrays have in common: a page.
pub const PAGE: usize = 4096;

/// A kind of traffic, its bytes, and the seconds of each round.
pub struct Rate {
    pub name: &'static str,
    pub bytes: usize,
    pub seconds: Vec<f64>,
}

impl Rate {
    pub fn gbs(&self) -> f64 {
        self.bytes as f64 / self.seconds.iter().copied().fold(f64::INFINITY, f64::min) / 1e9
    }
}

/// Pages of an array, so that it begins at one.
#[derive(Clone)]
#[repr(C, align(4096))]
pub struct Page(pub [f64; PAGE / 8]);

/// An array of this many bytes, each page written by the thread that will use it.
pub fn pages(bytes: usize, value: f64) -> Vec<Page> {
    let mut pages = vec![Page([0.0; PAGE / 8]); bytes.div_ceil(PAGE)];
    pages.par_chunks_mut(share(bytes.div_ceil(PAGE))).for_each(|part| part.fill(Page([value; PAGE / 8])));
    pages
}

/// A contiguous part for each thread.
fn share(pages: usize) -> usize {
    pages.div_ceil(rayon::current_num_threads()).max(1)
}

/// The traffic of a batch without its arithmetic: A and B read, C written past the caches, or read and written.
pub struct Mix<'p> {
    pub a: &'p [Page],
    pub b: &'p [Page],
    pub c: &'p mut [Page],
    pub reads_c: bool,
}

impl Mix<'_> {
    /// Seconds of one pass.
    pub fn run(&mut self) -> f64 {
        let part = share(self.c.len());
        let start = clock::now();
        let parts = self.c.par_chunks_mut(part).zip(self.a.par_chunks(part)).zip(self.b.par_chunks(part));
        if self.reads_c {
            parts.with_max_len(1).for_each(|((c, a), b)| {
                for ((c, a), b) in c.iter_mut().zip(a).zip(b) {
                    for ((c, a), b) in c.0.iter_mut().zip(&a.0).zip(&b.0) {
                        *c += a + b;
                    }
                }
            });
        } else {
            parts.with_max_len(1).for_each(|((c, a), b)| {
                for ((c, a), b) in c.iter_mut().zip(a).zip(b) {
                    streamed(c, |at| a.0[at] + b.0[at]);
                }
                end_of_stream();
            });
        }
        clock::now() - start
    }
}

/// A page past the caches.
#[inline(always)]
fn streamed(to: &mut Page, value: impl Fn(usize) -> f64) {
    #[cfg(target_arch = "x86_64")]
    for at in (0..to.0.len()).step_by(2) {
        use std::arch::x86_64::{_mm_set_pd, _mm_stream_pd};
        // SAFETY: both elements are inside the page, whose pairs are aligned to 16 bytes.
        unsafe { _mm_stream_pd(to.0.as_mut_ptr().add(at), _mm_set_pd(value(at + 1), value(at))) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    for (at, to) in to.0.iter_mut().enumerate() {
        *to = value(at);
    }
}

fn end_of_stream() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every CPU of the target has it.
    unsafe {
        std::arch::x86_64::_mm_sfence()
    }
}

/// Read, copy with ordinary and with streaming stores, and the two mixes of a batch, each `rounds` times in turn.
pub fn of_all(args: &Args) -> Vec<Rate> {
    let bytes = args.mib << 20;
    let (a, b) = (pages(bytes / 3, 1.0), pages(bytes / 3, 2.0));
    let mut c = pages(bytes / 3, 3.0);
    let array = a.len() * PAGE;
    let names =
        [("read", 1), ("copy", 2), ("copy past the caches", 2), ("2 read, 1 written", 3), ("3 read, 1 written", 4)];
    let mut rates = names.map(|(name, arrays)| Rate { name, bytes: arrays * array, seconds: Vec::new() });
    let timed = |work: &mut dyn FnMut()| {
        let start = clock::now();
        work();
        clock::now() - start
    };
    let part = share(a.len());
    for _ in 0..args.rounds {
        rates[0].seconds.push(timed(&mut || {
            black_box(a.par_chunks(part).with_max_len(1).map(folded).reduce(|| 0, |x, y| x ^ y));
        }));
        rates[1].seconds.push(timed(&mut || {
            c.par_chunks_mut(part).zip(a.par_chunks(part)).with_max_len(1).for_each(|(c, a)| {
                for (c, a) in c.iter_mut().zip(a) {
                    for (c, a) in c.0.iter_mut().zip(&a.0) {
                        *c = scaled(*a);
                    }
                }
            });
        }));
        rates[2].seconds.push(timed(&mut || {
            c.par_chunks_mut(part).zip(a.par_chunks(part)).with_max_len(1).for_each(|(c, a)| {
                c.iter_mut().zip(a).for_each(|(c, a)| streamed(c, |at| a.0[at]));
                end_of_stream();
            });
        }));
        for (rate, reads_c) in [(3, false), (4, true)] {
            rates[rate].seconds.push(Mix { a: &a, b: &b, c: &mut c, reads_c }.run());
        }
    }
    assert!(c.iter().all(|page| page.0.iter().all(|&value| value == 6.0)), "a mix computed something else");
    rates.into()
}

fn folded(pages: &[Page]) -> u64 {
    pages.iter().flat_map(|page| &page.0).fold(0, |folded, value| folded ^ value.to_bits())
}

/// Not a copy of the library's, which chooses its stores by the length.
#[inline(always)]
fn scaled(x: f64) -> f64 {
    x * 1.5
}
