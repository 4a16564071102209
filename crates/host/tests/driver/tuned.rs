//! Plans that follow a database of measurements: what it says is launched, and nothing else changes.

use super::*;
use lanky_host::tuned::{Cell, Class, Database, Origin, Timed};
use lanky_host::{Dtype, Error, Layout, Plan, Shape, gemm, model};

pub const LENGTHS: (usize, usize, usize) = (2_000, 4, 3_000);

fn problem((m, n, k): (usize, usize, usize)) -> model::Problem {
    let wide = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
    model::Problem::column_major(Dtype::F64, wide(m), wide(n), wide(k))
}

/// Of the fake GPU, by what the model thinks second best, with a part of k more.
pub fn database(machine: &model::Machine, sms: u32) -> Database {
    let p = problem(LENGTHS);
    let mut weighed: Vec<model::Choice> = model::candidates(&p, machine, None).expect("it is served").collect();
    weighed.sort_by(|a, b| a.estimate.seconds.total_cmp(&b.estimate.seconds));
    let timed = |choice: &model::Choice, more, ns| Timed {
        variant: choice.variant,
        parts: choice.splits + more,
        expected_parts: choice.splits,
        ns,
    };
    let (class, lengths) = Class::of(&p).expect("unit strides");
    let (best, model) = (timed(&weighed[1], 1, 5_000.0), timed(&weighed[0], 0, 6_000.0));
    let origin =
        Origin { gpu: "Fake".into(), compute_capability: machine.compute_capability, sms, ..Origin::default() };
    Database::new(origin, [Cell { class, lengths, best, model, noise: 0.0, fraction: 0.5 }])
}

fn plan(device: &Device, (m, n, k): (usize, usize, usize)) -> Result<Plan> {
    let shape = |rows, cols| Shape::packed(rows, cols, Layout::ColumnMajor, Dtype::F64);
    Plan::gemm(device, shape(m, k), shape(k, n), shape(m, n)).build()
}

#[test]
fn what_was_measured_is_launched() {
    const NAME: &str = "tuned::what_was_measured_is_launched";
    with_driver(NAME, "", || {
        let device = Device::cuda(0)?;
        let (stream, machine) = (device.stream()?, *device.machine().expect("a GPU"));
        let (tuned, (m, n, k)) = (database(&machine, 132), LENGTHS);
        let best = tuned.cells()[0].best;
        assert!(device.tuned().is_none(), "nothing is carried for it");
        let before = *plan(&device, LENGTHS)?.choice().expect("a kernel");
        assert_eq!(before.chooser, model::Chooser::Model);
        assert_ne!(before.variant.entry, best.variant.entry);
        device.set_tuned(Some(tuned.clone()))?;
        assert_eq!(device.tuned().as_deref(), Some(&tuned));
        let after = *plan(&device, LENGTHS)?.choice().expect("a kernel");
        assert_eq!(after.chooser, model::Chooser::Tuned { at: [2_000, 4, 3_000], ns: 5_000 });
        assert_eq!((after.variant.entry, after.splits), (best.variant.entry, best.parts));

        // A call without a plan too, with slots for all parts; and the shape next to it.
        let (a, b) = (device.zeros::<f64>(m, k)?, device.zeros::<f64>(k, n)?);
        let mut c = device.zeros::<f64>(m, n)?;
        launches();
        gemm(&stream, 1.0, a.view(), b.view(), 0.0, c.view_mut())?;
        stream.synchronize()?;
        let [x, y, z] = after.grid;
        let expected = format!("{} {x} {y} {z} {} {}", after.variant.entry, after.threads, after.shared_bytes);
        assert_eq!(launches().first(), Some(&expected));
        assert_eq!(plan(&device, (m + 4, n, k))?.entry(), Some(best.variant.entry));
        // Not where a variant is asked for, C is read, or the model alone is to decide.
        let shape = |rows, cols| Shape::packed(rows, cols, Layout::ColumnMajor, Dtype::F64);
        let builder = || Plan::gemm(&device, shape(m, k), shape(k, n), shape(m, n));
        assert_eq!(builder().reads_c().build()?.choice().map(|c| c.chooser), Some(model::Chooser::Model));
        let forced = builder().variant(best.variant.entry).parts(3).build()?;
        assert_eq!(forced.choice().map(|c| (c.chooser, c.splits)), Some((model::Chooser::Caller, 3)));
        device.set_tuned(None)?;
        assert_eq!(plan(&device, LENGTHS)?.choice(), Some(&before));
        assert_eq!(misused(), [""; 0]);
        Ok(())
    });
}

/// What is refused leaves what was followed before.
#[test]
fn another_gpus_database_is_refused_by_name() {
    const NAME: &str = "tuned::another_gpus_database_is_refused_by_name";
    with_driver(NAME, "", || {
        let device = Device::cuda(0)?;
        let machine = *device.machine().expect("a GPU");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("tuned-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("the target folder can be written");
        let path = folder.join("x.tuned");
        let load = |text: &str| {
            std::fs::write(&path, text).expect("written");
            device.load_tuned(&path)
        };
        let whole = database(&machine, 132);
        load(&whole.to_string())?;
        for (text, reason) in [
            (
                database(&machine, 16).to_string(),
                "it is of Fake of compute capability 9.0 with 16 SMs, but required is Fake",
            ),
            (whole.to_string().replacen("tuned 1", "tuned 7", 1), "line 1: it is of version 7, but required is 1"),
            (whole.to_string().replace("5000.0", "4000.0"), "it was changed or damaged"),
            (String::new(), "line 1: no database of lanky tune"),
        ] {
            let error = load(&text).expect_err("refused");
            assert!(matches!(error, Error::Tuned { .. }) && !error.is_device(), "{error:?}");
            assert!(error.to_string().starts_with(&format!("{}: {reason}", path.display())), "{error}");
            assert_eq!(device.tuned().as_deref(), Some(&whole), "it stays as it was");
        }
        std::fs::remove_file(&path).expect("it was there");
        assert!(device.load_tuned(&path).is_err_and(|error| error.to_string().contains("x.tuned: No such file")));
        std::fs::remove_dir(&folder).expect("it is empty");
        assert!(Device::cpu().set_tuned(None).is_err_and(|error| error.to_string().contains("on the CPU")));
        Ok(())
    });
}
