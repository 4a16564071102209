//! Not alone on the GPU: another process that keeps it busy, and two that check at once.

use super::{batched, streams};
use crate::args;
use crate::lab::{Lab, Outcome, ensure, is_emulated};
use crate::real::integer;
use host::{Device, Matrix, gemm};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// What the other process says once it computes.
const BUSY: &str = "busy";

/// A process of this program, with what it says.
struct Other {
    child: Child,
    said: BufReader<ChildStdout>,
}

fn name(device: &Device) -> String {
    device.ordinal().map_or_else(|| "cpu".to_owned(), |ordinal| format!("cuda:{ordinal}"))
}

impl Other {
    fn start(lab: &Lab, words: &[&str]) -> Outcome<Other> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(words).args(["--device", &name(&lab.device)]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let said = BufReader::new(child.stdout.take().ok_or("it has no output")?);
        Ok(Other { child, said })
    }

    /// Lets it end; whether it ended well, and what it said last.
    fn end(mut self) -> Outcome<String> {
        drop(self.child.stdin.take());
        let mut said = String::new();
        self.said.read_to_string(&mut said)?;
        let status = self.child.wait()?;
        let last = said.lines().last().unwrap_or_default().to_owned();
        ensure(status.success(), || format!("the other process ended with {status}: {last}"))?;
        Ok(last)
    }
}

/// Those of products, of Gram matrices and of batches.
fn bits(lab: &Lab) -> Outcome<Vec<u128>> {
    let mut found = streams::bits(lab)?;
    batched::bits(lab, &mut found)?;
    Ok(found)
}

/// The bits of all that are those of a quiet GPU while another process keeps it busy.
pub fn run_beside_a_load(lab: &Lab) -> Outcome {
    let quiet = bits(lab)?;
    let mut other = Other::start(lab, &["busy"])?;
    let mut line = String::new();
    other.said.read_line(&mut line)?;
    ensure(line.trim() == BUSY, || format!("the other process said {line:?}"))?;
    let mut result = Ok(());
    let times = if lab.is_emulated() { 1 } else { 10 };
    for _ in 0..times {
        let loaded = bits(lab)?;
        result = result.and_then(|()| ensure(loaded == quiet, || "other bits under load".into()));
    }
    let ended = other.child.try_wait()?;
    ensure(ended.is_none(), || format!("the other process was not there to the end: {ended:?}"))?;
    lab.record(|| "load".into(), result)?;
    let last = other.end();
    let products = last.as_ref().ok().and_then(|last| last.split(' ').next()?.parse::<u32>().ok()).unwrap_or(0);
    lab.record(
        || "load, the other process".into(),
        last.and_then(|last| ensure(products > 0, || format!("it computed nothing: {last}"))),
    )
}

/// Two processes check every entry at once.
pub fn run_two(lab: &Lab) -> Outcome {
    let both = [Other::start(lab, &["small"])?, Other::start(lab, &["small"])?];
    for (which, other) in both.into_iter().enumerate() {
        let result =
            other.end().and_then(|last| ensure(last.contains(" passed, 0 failed"), || format!("it said {last:?}")));
        lab.record(|| format!("two, process {which}"), result)?;
    }
    Ok(())
}

/// Multiplies on the device until nobody listens any more, and looks at what comes out; whether it was right.
pub fn busy(ordinal: Option<u32>) -> Outcome<bool> {
    let device = args::open(ordinal)?;
    let is_small = !device.is_cuda() || is_emulated(&device);
    let (m, n, k) = if is_small { (2000, 4, 300) } else { (20_000, 16, 5000) };
    let stream = device.stream()?;
    let host = |rows, cols, seed| Matrix::from_fn(rows, cols, |i, j| integer(seed, i, j, 2) as f32);
    let (a, b) = (device.upload(&stream, host(m, k, 3)?.view())?, device.upload(&stream, host(k, n, 4)?.view())?);
    let mut c = device.zeros::<f32>(m, n)?;
    let over = AtomicBool::new(false);
    let products = std::thread::scope(|scope| -> Outcome<u32> {
        scope.spawn(|| {
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            over.store(true, Ordering::Relaxed);
        });
        let mut products = 0;
        // At least one, also where it is over at once.
        while products == 0 || !over.load(Ordering::Relaxed) {
            for _ in 0..20 {
                gemm(&stream, 1.0, a.view(), b.view(), 0.0, c.view_mut())?;
            }
            stream.synchronize()?;
            if products == 0 {
                println!("{BUSY}");
                std::io::stdout().flush()?;
            }
            products += 20;
        }
        Ok(products)
    })?;
    let found = c.download(&stream)?;
    let right = (0..m).step_by(997).all(|i| {
        (0..n).all(|j| {
            let sum: f64 = (0..k).map(|l| integer(3, i, l, 2) * integer(4, l, j, 2)).sum();
            found.get(i, j) == Some(sum as f32)
        })
    });
    println!("{products} products, the last of them {}", if right { "right" } else { "wrong" });
    Ok(right)
}
