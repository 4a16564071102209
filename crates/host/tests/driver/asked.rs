//! What the driver is asked of a kernel: its function once, and shared memory where a launch wants more than any before.

use super::*;
use lanky_host::{BatchMut, BatchRef, Plan, Triangle, gemm, gemm_batched, gram, gram_triangle};
use std::collections::BTreeMap;

fn count(calls: &[String], name: &str) -> usize {
    calls.iter().filter(|call| *call == name).count()
}

#[test]
fn of_each_kernel_the_driver_is_asked_once() {
    const NAME: &str = "asked::of_each_kernel_the_driver_is_asked_once";
    with_driver(NAME, "", || {
        let device = Device::cuda(0)?;
        let (one, two) = (device.stream()?, device.stream()?);
        let (a, b) = (device.zeros::<f64>(300, 20_000)?, device.zeros::<f64>(20_000, 4)?);
        let (mut c, mut square) = (device.zeros::<f64>(300, 4)?, device.zeros::<f64>(4, 4)?);
        calls();
        launches();
        let plan = Plan::gemm(&device, a.shape(), b.shape(), c.shape()).build()?;
        for stream in [&one, &two, &one] {
            gemm(stream, 1.0, a.view(), b.view(), 0.0, c.view_mut())?;
            gemm(stream, 0.0, a.view(), b.view(), 2.0, c.view_mut())?;
            gram(stream, 1.0, b.view(), 0.0, square.view_mut())?;
            plan.run(stream, 1.0, a.view(), b.view(), 1.0, c.view_mut())?;
        }
        // The entry of each launch, and its bytes of shared memory: the last word.
        let mut shared = BTreeMap::new();
        for launch in launches() {
            let words: Vec<&str> = launch.split(' ').collect();
            shared.insert(words[0].to_owned(), words[5].parse::<u32>().expect("bytes"));
        }
        assert!(shared.len() >= 3, "products, sums and Gram matrices: {shared:?}");
        let calls = calls();
        assert_eq!(count(&calls, "cuModuleGetFunction"), shared.len(), "{calls:?}");
        let asking = shared.values().filter(|&&bytes| bytes > 48 << 10).count();
        assert!(asking > 0, "one of them wants more than it may have without asking: {shared:?}");
        assert_eq!(count(&calls, "cuFuncSetAttribute"), asking);
        assert_eq!(misused(), [""; 0]);
        Ok(())
    });
}

/// Launches of one entry that want different amounts: the fake refuses more than what was asked for last.
#[test]
fn what_a_kernel_was_allowed_it_keeps() {
    const NAME: &str = "asked::what_a_kernel_was_allowed_it_keeps";
    with_driver(NAME, "", || {
        let device = Device::cuda(0)?;
        let stream = device.stream()?;
        let mut seen: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        let mut round = |sides: &mut dyn Iterator<Item = usize>| -> Result<()> {
            for side in sides {
                let data = device.zeros::<f64>(side * 500, side)?;
                let mut out = device.zeros::<f64>(side * 500, side)?;
                let factor = BatchRef::parts_below(data.view(), 500)?;
                gemm_batched(&stream, 1.0, factor.clone(), factor, 0.0, BatchMut::parts_below(out.view_mut(), 500)?)?;
                for launch in launches() {
                    let (entry, bytes) = (launch.split(' ').next(), launch.rsplit(' ').next());
                    let bytes = bytes.and_then(|bytes| bytes.parse().ok()).expect("bytes");
                    seen.entry(entry.expect("an entry").to_owned()).or_default().push(bytes);
                }
            }
            Ok(())
        };
        launches();
        calls();
        round(&mut (1..=32))?;
        assert_eq!(misused(), [""; 0]);
        let more = count(&calls(), "cuFuncSetAttribute");
        round(&mut (1..=32).rev())?;
        assert_eq!(count(&calls(), "cuFuncSetAttribute"), 0, "all had been allowed");
        let asking = |sizes: &&Vec<u32>| {
            let mut large: Vec<u32> = sizes.iter().copied().filter(|&bytes| bytes > 48 << 10).collect();
            large.dedup();
            large.len() > 2
        };
        assert!(seen.values().any(|sizes| asking(&sizes)) && more > 1, "an entry with several amounts: {seen:?}");
        assert_eq!(misused(), [""; 0]);
        Ok(())
    });
}

/// All of a Gram matrix of few rows is computed as any product is, by an entry that writes all of it; of a triangle none is asked that does.
#[test]
fn triangles_go_to_entries_that_write_no_more() {
    const NAME: &str = "asked::triangles_go_to_entries_that_write_no_more";
    with_driver(NAME, "", || {
        let device = Device::cuda(0)?;
        let stream = device.stream()?;
        let (rows, mut c) = (device.zeros::<f64>(64, 1000)?, device.zeros::<f64>(64, 64)?);
        for triangle in [Triangle::Full, Triangle::Lower, Triangle::Upper] {
            let plan = Plan::gram(&device, rows.view().t().shape(), c.shape()).triangle(triangle).build()?;
            launches();
            gram_triangle(&stream, triangle, 1.0, rows.view().t(), 0.0, c.view_mut())?;
            plan.run_gram(&stream, 1.0, rows.view().t(), 0.0, c.view_mut())?;
            let launches = launches();
            let of_gram = launches.iter().filter(|launch| launch.starts_with("dgram_")).count();
            assert_eq!((launches.len(), of_gram), (2, if triangle == Triangle::Full { 0 } else { 2 }), "{launches:?}");
        }
        Ok(())
    });
}
